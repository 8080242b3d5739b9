"""The fields of request bodies and the parameters of queries: meaning and JSON Schema of each.

Body fields have the names of the task's fields. The service validates the values; the schemas here document the rules
for clients, and a test compares the two.
"""

from __future__ import annotations

from .. import inputs
from ..board.fields import name_in_json
from ..board.queries import EVENT_LIMIT, LIST_LIMIT, ORDERS, SEARCH
from ..errors import BoardError, InvalidInput
from ..model import STATUSES
from ..text import compact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .routes import Route

    Schema = dict[str, Any]

WAIT_LIMIT = 240
"""Seconds that a request may wait, at most."""

DURATION: Schema = {"type": ["string", "number", "null"], "examples": ["15m", 900]}
_REFERENCE: Schema = {"type": "string", "minLength": 4, "maxLength": inputs.NAME}


def _text(limit: int, **more: Any) -> Schema:
    return {"type": "string", "maxLength": limit, **more}


def _nullable(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


BODY: dict[str, tuple[Schema, str]] = {
    "title": (_text(inputs.TITLE, minLength=1), "one line, up to 500 characters"),
    "body": (_nullable(_text(inputs.BODY)), "description in Markdown, up to 200,000 characters"),
    "queue": (_nullable(_text(inputs.NAME, minLength=1)), "queue from which agents claim it; default `default`"),
    "priority": (
        {"type": ["integer", "null"], "minimum": -inputs.PRIORITY, "maximum": inputs.PRIORITY},
        "higher numbers are claimed first; default 0",
    ),
    "assignee": (_nullable(_text(inputs.NAME)), "the only agent that can claim it; `none` or `null` for any"),
    "due_at": (
        _nullable(_text(inputs.NAME)),
        "deadline: an ISO 8601 instant, `today`, `tomorrow`, a weekday or `+2d`; a day means its end",
    ),
    "not_before": (
        _nullable(_text(inputs.NAME)),
        "earliest claim: an ISO 8601 instant, `today`, `tomorrow`, a weekday or `+2d`; a day means its start",
    ),
    "tags": (
        {"type": ["array", "null"], "items": _text(inputs.TAG, minLength=1), "maxItems": inputs.TAGS},
        "tags to filter by",
    ),
    "blocked_by": (
        {"type": ["array", "null"], "items": _REFERENCE, "maxItems": inputs.DEPENDENCIES},
        "ids of the tasks that must be done first",
    ),
    "params": ({"type": ["object", "null"]}, "input for the agent, a JSON object of up to 1 MiB"),
    "dedupe_key": (_nullable(_text(inputs.KEY)), "at most one unfinished task can have it"),
    "max_attempts": (
        {"type": ["integer", "null"], "minimum": 1, "maximum": inputs.MAX_ATTEMPTS},
        "number of attempts before it fails permanently",
    ),
    "max_runtime": (DURATION, "how long `atb run` lets the command of an attempt work, 1 second to 7 days"),
    "needs_approval": ({"type": ["boolean", "null"]}, "a person must approve the result; only a person can clear this"),
    "claim": (
        {"type": ["boolean", "null"]},
        "`true`: claim the new task in the same call, for `agent` or else `assignee`",
    ),
    "agent": (_nullable(_text(inputs.NAME)), "name of the calling agent, which cannot do what only people can"),
    "actor": (
        _nullable(_text(inputs.NAME)),
        "name for the history; default: the agent, otherwise the person who started the server",
    ),
    "token": (_text(inputs.KEY, minLength=1), "the lease token"),
    "lease": (DURATION, "duration of the lease, 1 second to 7 days"),
    "progress": ({"type": ["integer", "null"], "minimum": 0, "maximum": 100}, "progress in percent"),
    "result": ({}, "any JSON of up to 1 MiB"),
    "artifacts": (
        {"type": ["array", "null"], "items": _text(inputs.PATH, minLength=1), "maxItems": inputs.ARTIFACTS},
        "paths of created files",
    ),
    "note": (_nullable(_text(inputs.TEXT)), "note for the history and the next agent"),
    "error": (_text(inputs.TEXT, minLength=1), "what went wrong"),
    "retry_in": (DURATION, "backoff before the next attempt, instead of the default"),
    "no_retry": ({"type": ["boolean", "null"]}, "`true`: fail permanently, without further attempts"),
    "after": (DURATION, "delay before it can be claimed again"),
    "to": (_nullable(_text(inputs.NAME)), "the next agent; for a reassign also `none` or `null` for any"),
    "text": (_text(inputs.TEXT, minLength=1), "the comment"),
    "comment": (_nullable(_text(inputs.TEXT)), "comment to add in the same transaction"),
    "status": ({"const": "claimed"}, "only `claimed`: claim the task"),
    "if_status": ({"enum": [*STATUSES, None]}, "condition: the task has this status"),
    "if_version": ({"type": ["integer", "null"], "minimum": 0}, "condition: the task has this version"),
    "code": (_text(inputs.KEY, minLength=1), "the one-time code of the link"),
    "request_id": (
        _nullable(_text(inputs.KEY)),
        "name of this call; a repetition within 24 hours gets the same answer",
    ),
}
"""Every body field: its schema and its meaning. Durations are seconds or text such as `15m`."""

QUEUES = (
    {"type": ["string", "array", "null"], "items": _text(inputs.NAME, minLength=1), "maxItems": inputs.QUEUES},
    "a queue or a list of queues; default any",
)
"""`queue` of a claim."""

_FLAG: Schema = {"type": "boolean"}


def _list_of(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


QUERY: dict[str, tuple[Schema, str]] = {
    "status": (_list_of({"enum": list(STATUSES)}), "has one of these statuses (repeatable, or `a,b`)"),
    "queue": (_text(inputs.NAME, minLength=1), "is in this queue"),
    "assignee": (_text(inputs.NAME, minLength=1), "is assigned to this agent; `none` for unassigned"),
    "claimed_by": (_text(inputs.NAME, minLength=1), "is or was last held by this agent"),
    "tags": (_list_of(_text(inputs.TAG, minLength=1)), "has all these tags (repeatable)"),
    "ready": (_FLAG, "can be claimed now"),
    "blocked": (_FLAG, "waits for dependencies"),
    "stuck": (_FLAG, "waits for a failed or cancelled task, directly or through others"),
    "overdue": (_FLAG, "is unfinished and past its deadline"),
    "archived": (_FLAG, "is archived; without it, archived tasks appear only with `search`"),
    "search": (
        _text(SEARCH, minLength=1),
        'has all these words (or a `"phrase"`) in its texts or its id; each task then has a `snippet`',
    ),
    "order": (
        {"enum": list(ORDERS)},
        "sort order; default `work`: unfinished tasks first, those to claim next at the top; with `search`: best first",
    ),
    "all": (_FLAG, "with `Accept: text/plain`: include finished tasks, which it otherwise leaves out and counts"),
    "full": (_FLAG, "include `body`, `params`, `result` and `error`"),
    "limit": ({"type": "integer", "minimum": 1, "maximum": LIST_LIMIT}, "maximum number of entries; default 100"),
    "after": ({"type": "string"}, "the previous page's `next`"),
    "before": (
        {"type": "integer", "minimum": 0},
        "newest first, before this sequence number; 0 starts with the newest",
    ),
    "task": (_REFERENCE, "only events of this task"),
    "budget": (
        {"type": "integer", "minimum": compact.BUDGET_LOW, "maximum": compact.BUDGET_HIGH},
        "maximum number of tokens, at 4 characters each; requires `Accept: text/plain`",
    ),
    "wait": (
        {"type": "integer", "minimum": 0, "maximum": WAIT_LIMIT},
        f"wait this many seconds for it, at most {WAIT_LIMIT}; the answer comes at once when it is there",
    ),
    "for": (
        _list_of({"enum": list(STATUSES)}),
        "with `wait`: wait for one of these statuses; default `done`, `review`, `failed` or `cancelled`",
    ),
    "why": (_FLAG, "include `why` the task is not finished, in a sentence"),
    "output": (_FLAG, "include what the command of each attempt wrote, where that was kept"),
    "days": ({"type": "integer", "minimum": 1, "maximum": 366}, "days to include; default 14"),
}
"""Every query parameter."""

SEQUENCE: dict[str, tuple[Schema, str]] = {
    "after": ({"type": "integer", "minimum": 0}, "only events after this sequence number; default 0"),
    "limit": ({"type": "integer", "minimum": 1, "maximum": EVENT_LIMIT}, "maximum number of entries; default 100"),
}
"""`after` and `limit` of the event routes."""

_SINGULAR = {"tag": "tags"}
_OTHER_NAMES = {"depends_on": "blocked_by", "due": "due_at", "tag": "tags"}


def check_names(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse names that a route does not accept.

    Raises:
        InvalidInput: names the first unknown one; the hint suggests a known one.
    """
    allowed = list(known)
    for name in given:
        if name not in allowed:
            hint = inputs.did_you_mean(_OTHER_NAMES.get(name, name), allowed)
            hint = hint or f"Accepted: {', '.join(allowed) or 'none'}."
            raise InvalidInput(f"{name[:60]}: unknown {what}", hint=hint, field=name[:60])


def with_body_names(error: BoardError) -> BoardError:
    """Return a refusal with the field names of request bodies."""
    field = error.details.get("field")
    if isinstance(field, str) and name_in_json(field) != field:
        error.details["field"] = name_in_json(field)
        error.message = error.message.replace(f"{field}:", f"{name_in_json(field)}:", 1)
    return error


def read_body(content: bytes, route: Route) -> dict[str, Any]:
    """Return the fields of a body.

    Raises:
        InvalidInput: not a JSON object in UTF-8, or an unknown field.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"request: not UTF-8 at byte {error.start:,}", field="request") from None
    body = inputs.parse_object(text or "{}", "request")
    check_names(body, route.fields(), "field")
    return body


def read_query(query: str, known: dict[str, tuple[Schema, str]]) -> dict[str, Any]:
    """Return the query parameters with the types of their schemas: lists, numbers, booleans, text.

    Raises:
        InvalidInput: a malformed query, or an unknown, repeated or mistyped parameter.
    """
    from urllib.parse import parse_qsl

    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=200)
    except ValueError:
        raise InvalidInput("query: not UTF-8, or too many parameters (limit 200)", field="query") from None
    pairs = [(_SINGULAR.get(name, name), value) for name, value in pairs]
    check_names((name for name, _ in pairs), known, "parameter")
    found: dict[str, Any] = {}
    for name, value in pairs:
        kind = known[name][0].get("type", "string")
        if kind == "array":
            found.setdefault(name, []).append(value)
        elif name in found:
            raise InvalidInput(f"{name}: repeated (limit 1)", field=name)
        elif kind == "integer":
            found[name] = inputs.whole_number(value, name)
        elif kind == "boolean":
            found[name] = _flag(value, name)
        else:
            found[name] = value
    return found


def _flag(value: str, name: str) -> bool:
    return inputs.one_of(value or "true", name, ("true", "false", "1", "0")) in ("true", "1")
