"""The fields of request bodies and the parameters of queries: what each means, and its JSON Schema.

Bodies carry the names of a task's own fields. What a value must be is checked by the service; the schemas here tell
it to clients, and a test holds the two together.
"""

from __future__ import annotations

from .. import inputs
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

LENGTH: Schema = {"type": ["string", "number", "null"], "examples": ["15m", 900]}
_REFERENCE: Schema = {"type": "string", "minLength": 4, "maxLength": inputs.NAME}


def _text(limit: int, **more: Any) -> Schema:
    return {"type": "string", "maxLength": limit, **more}


def _or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


BODY: dict[str, tuple[Schema, str]] = {
    "title": (_text(inputs.TITLE, minLength=1), "one line, up to 500 characters"),
    "body": (_or_null(_text(inputs.BODY)), "what is to be done, as Markdown; up to 200,000 characters"),
    "queue": (_or_null(_text(inputs.NAME, minLength=1)), "the group that it is claimed from; `default` unless given"),
    "priority": (
        {"type": ["integer", "null"], "minimum": -inputs.PRIORITY, "maximum": inputs.PRIORITY},
        "larger is claimed first; 0 unless given",
    ),
    "assignee": (_or_null(_text(inputs.NAME)), "the only agent that may claim it; `none`, `null`: any"),
    "due_at": (_or_null(_text(inputs.NAME)), "deadline: an instant in ISO 8601, or a date, which means its end"),
    "not_before": (_or_null(_text(inputs.NAME)), "not to be claimed earlier: an instant, or a date, its beginning"),
    "tags": (
        {"type": ["array", "null"], "items": _text(inputs.TAG, minLength=1), "maxItems": inputs.TAGS},
        "words to choose and filter by",
    ),
    "blocked_by": (
        {"type": ["array", "null"], "items": _REFERENCE, "maxItems": inputs.DEPENDENCIES},
        "ids of the tasks that must be done first",
    ),
    "params": ({"type": ["object", "null"]}, "input for whoever does it, a JSON object of up to 1 MiB"),
    "dedupe_key": (_or_null(_text(inputs.KEY)), "at most one unfinished task holds it"),
    "max_attempts": (
        {"type": ["integer", "null"], "minimum": 1, "maximum": inputs.MAX_ATTEMPTS},
        "claims before it fails for good",
    ),
    "needs_approval": ({"type": ["boolean", "null"]}, "a person must approve it; only a person can take that away"),
    "claim": ({"type": ["boolean", "null"]}, "`true`: claim the new task at once, for `agent`, else for `assignee`"),
    "agent": (_or_null(_text(inputs.NAME)), "the agent that speaks; whoever sends it counts as an agent"),
    "actor": (_or_null(_text(inputs.NAME)), "who does it, for the history; the person at the board unless given"),
    "token": (_text(inputs.KEY, minLength=1), "the lease token of the claim"),
    "lease": (LENGTH, "length of the lease, 1 second to 7 days"),
    "progress": ({"type": ["integer", "null"], "minimum": 0, "maximum": 100}, "how far it is, in per cent"),
    "result": ({}, "what came out: any JSON of up to 1 MiB"),
    "artifacts": (
        {"type": ["array", "null"], "items": _text(inputs.PATH, minLength=1), "maxItems": inputs.ARTIFACTS},
        "paths of files that were made",
    ),
    "note": (_or_null(_text(inputs.TEXT)), "a word for the history, and for whoever has it next"),
    "error": (_text(inputs.TEXT, minLength=1), "what went wrong"),
    "retry_in": (LENGTH, "wait before the next attempt, instead of the usual one"),
    "no_retry": ({"type": ["boolean", "null"]}, "`true`: it has failed for good"),
    "after": (LENGTH, "not to be claimed again for that long"),
    "to": (_or_null(_text(inputs.NAME)), "the agent that shall have it; in a reassign `none` or `null` for any"),
    "text": (_text(inputs.TEXT, minLength=1), "the comment"),
    "comment": (_or_null(_text(inputs.TEXT)), "a comment, written in the same transaction"),
    "status": ({"const": "claimed"}, "`claimed`, and nothing else: claim it in the same call"),
    "if_status": ({"enum": [*STATUSES, None]}, "only if it has this status now"),
    "if_version": ({"type": ["integer", "null"], "minimum": 0}, "only if it has this version now"),
    "request_id": (_or_null(_text(inputs.KEY)), "names this call: repeated within 24 hours, it is answered again"),
}
"""Every field of a body: its schema and its meaning. Lengths of time are seconds or text such as `15m`."""

QUEUES = (
    {"type": ["string", "array", "null"], "items": _text(inputs.NAME, minLength=1), "maxItems": inputs.QUEUES},
    "a queue or a list of them to choose from; any unless given",
)
"""`queue` where a claim chooses by it."""

_FLAG: Schema = {"type": "boolean"}


def _repeated(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


QUERY: dict[str, tuple[Schema, str]] = {
    "status": (_repeated({"enum": list(STATUSES)}), "in one of these statuses (repeatable)"),
    "queue": (_text(inputs.NAME, minLength=1), "of this queue"),
    "assignee": (_text(inputs.NAME, minLength=1), "assigned to this agent, or to nobody: `none`"),
    "claimed_by": (_text(inputs.NAME, minLength=1), "that this agent holds or held last"),
    "tags": (_repeated(_text(inputs.TAG, minLength=1)), "with all these tags (repeatable)"),
    "ready": (_FLAG, "that could be claimed now"),
    "blocked": (_FLAG, "that wait for others"),
    "overdue": (_FLAG, "unfinished and past their deadline"),
    "archived": (_FLAG, "that are in the archive; else those only that are not, but for `search`"),
    "search": (_text(SEARCH, minLength=1), "with this text in id, title or body"),
    "order": ({"enum": list(ORDERS)}, "the order; `age` (oldest first) unless given"),
    "full": (_FLAG, "with body, params, result and error"),
    "limit": ({"type": "integer", "minimum": 1, "maximum": LIST_LIMIT}, "how many at most; 100 unless given"),
    "after": ({"type": "string"}, "go on after an earlier page: its `next`"),
    "before": ({"type": "integer", "minimum": 0}, "newest first, from below this number; 0: from the newest"),
    "task": (_REFERENCE, "of this task"),
    "budget": (
        {"type": "integer", "minimum": compact.BUDGET_LOW, "maximum": compact.BUDGET_HIGH},
        "how many tokens at most, of 4 characters each; only with `Accept: text/plain`",
    ),
    "days": ({"type": "integer", "minimum": 1, "maximum": 366}, "days to look back; 14 unless given"),
}
"""Every parameter of a query."""

SEQUENCE: dict[str, tuple[Schema, str]] = {
    "after": ({"type": "integer", "minimum": 0}, "later than this sequence number; 0 unless given"),
    "limit": ({"type": "integer", "minimum": 1, "maximum": EVENT_LIMIT}, "how many at most; 100 unless given"),
}
"""What `after` and `limit` are where events are asked for."""

_SINGULAR = {"tag": "tags"}
_FIELD_ELSEWHERE = {"depends_on": "blocked_by", "due": "due_at", "tag": "tags"}


def check_names(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse what a route does not know, by name.

    Raises:
        InvalidInput: the first such name; the hint tells what may have been meant.
    """
    allowed = list(known)
    for name in given:
        if name not in allowed:
            from difflib import get_close_matches

            near = _FIELD_ELSEWHERE.get(name) or next(iter(get_close_matches(name[:60], allowed, n=1)), None)
            hint = f"Did you mean {near!r}?" if near in allowed else f"It takes: {', '.join(allowed) or 'none'}."
            raise InvalidInput(f"{name[:60]}: there is no such {what} here", hint=hint, field=name[:60])


def as_sent(error: BoardError) -> BoardError:
    """Return a refusal that names a field as bodies do: ``blocked_by`` where the service says ``depends_on``."""
    if error.details.get("field") == "depends_on":
        error.details["field"] = "blocked_by"
        error.message = error.message.replace("depends_on:", "blocked_by:", 1)
    return error


def read_body(content: bytes, route: Route) -> dict[str, Any]:
    """Return the fields of a body.

    Raises:
        InvalidInput: not a JSON object in UTF-8, an unknown field, or one that is missing.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"request: not UTF-8 at byte {error.start:,}", field="request") from None
    body = inputs.parse_object(text or "{}", "request")
    check_names(body, route.fields(), "field")
    return body


def read_query(query: str, known: dict[str, tuple[Schema, str]]) -> dict[str, Any]:
    """Return the parameters of a query as their schemas want them: lists, numbers, booleans, text.

    Raises:
        InvalidInput: not a query, an unknown parameter, one given twice, or not of its type.
    """
    from urllib.parse import parse_qsl

    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=200)
    except ValueError:
        raise InvalidInput("the query is not UTF-8, or has too many parameters", field="query") from None
    pairs = [(_SINGULAR.get(name, name), value) for name, value in pairs]
    check_names((name for name, _ in pairs), known, "parameter")
    found: dict[str, Any] = {}
    for name, value in pairs:
        kind = known[name][0].get("type", "string")
        if kind == "array":
            found.setdefault(name, []).append(value)
        elif name in found:
            raise InvalidInput(f"{name}: is given twice", field=name)
        elif kind == "integer":
            found[name] = _whole(value, name)
        elif kind == "boolean":
            found[name] = _flag(value, name)
        else:
            found[name] = value
    return found


def _whole(value: str, name: str) -> int:
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise InvalidInput(f"{name}: {value[:60]!r} is not a whole number", field=name)
    return int(value)


def _flag(value: str, name: str) -> bool:
    return inputs.one_of(value or "true", name, ("true", "false", "1", "0")) in ("true", "1")
