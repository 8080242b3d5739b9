"""The routes: method, path, fields, action and response of each. The documentation is generated from this table."""

from __future__ import annotations

from ..board.fields import BLOCKED_BY, FIELDS
from ..errors import NotFound
from . import api, fields
from .messages import BadRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .api import Handler
    from .fields import Schema

ANSWERS: dict[str, tuple[str, str]] = {
    "task": ('{"task"}', 'the task after the call; `"replayed": true` if the call was a repetition'),
    "created": (
        '{"task", "created"}',
        "`created` is false if the dedupe key matched an existing task; `lease` if claimed",
    ),
    "lease": ('{"task", "lease": {"token", "fence", "expires_at"}}', "keep the token: no other call returns it again"),
    "next": (
        '{"task", "lease": {"token", "fence", "expires_at"}} or null',
        "`null` if no task is ready; `warnings` say why",
    ),
    "changed": ('{"task"}', "with `lease` if the call claimed the task"),
    "event": ('{"event"}', "the new event"),
    "tasks": ('{"tasks", "next"}', "`next` is the cursor of the next page, `null` on the last page"),
    "details": (
        '{"task", "attempts", "dependencies", "dependents", "comments"}',
        (
            "the task with its attempts, linked tasks and comments; of a stuck task also `stuck_by`, the failed or "
            "cancelled task that it waits for, of a returned one `returned` (`by`, `at`, `note`), and with the "
            "parameter `why`, of an unfinished one `why` it is not finished, in a sentence"
        ),
    ),
    "why": ('{"task", "why": {"reason", "text", "change", "chain"}}', "`chain` has at most 10 tasks"),
    "why_nothing": ('{"why": {"text", "reasons"}}', "each of `reasons` is `{reason, count, first, text, change}`"),
    "events": ('{"events", "next"}', "`next` is the sequence number for `after` (or `before`) of the next page"),
    "board": (
        '{"tasks", "counts", "truncated", "revision", "timezone"}',
        (
            "at most 10,000 tasks; `counts` counts all tasks by status; if tasks are stuck, `stuck` has for the id of "
            "each the failed or cancelled task that it waits for; `returned` has who rejected the work of returned ones"
        ),
    ),
    "agents": ('{"agents"}', "what each agent did, when it was last seen, and `holds`: its tasks under a lease"),
    "stats": (
        (
            '{"tasks", "archived", "by_status", "by_queue", "ready", "blocked", "stuck", "lease_expired", "days", '
            '"finished", "lead_time", "cycle_time", "running", "by_agent"}'
        ),
        "durations in seconds",
    ),
    "schedules": ('{"schedules"}', "the cron rules that create tasks"),
    "health": (
        '{"status", "version", "read_only", "data_dir"}',
        "`status` is `ok`; `data_dir` is `null` for whoever has not signed in",
    ),
    "signed_in": ('{"signed_in"}', "whether this browser has a session now"),
    "stream": ("text/event-stream", "one event per message, with its `seq` as `id`"),
    "markdown": ("text/markdown", "this page"),
    "openapi": ("application/json", "OpenAPI 3.1"),
}
"""The content of ``data``, and an explanation."""


class Route:
    """One method on one path.

    ``required`` and ``optional`` are the body fields, ``query`` the parameters, ``answer`` a key of ``ANSWERS``.
    ``refusals`` are error codes besides ``invalid_input``, which any route can return. ``example`` is the JSON body of
    the documentation's example.
    """

    __slots__ = (
        "answer",
        "details",
        "example",
        "handler",
        "method",
        "optional",
        "path",
        "query",
        "refusals",
        "required",
        "summary",
    )

    def __init__(
        self,
        method: str,
        path: str,
        handler: Handler | None,
        summary: str,
        answer: str,
        *,
        required: str = "",
        optional: str = "",
        query: str = "",
        refusals: str = "",
        details: str = "",
        example: str = "{}",
    ) -> None:
        self.method = method
        self.path = path
        self.handler = handler
        self.summary = summary
        self.answer = answer
        self.required = tuple(required.split())
        self.optional = tuple(optional.split())
        self.query = tuple(query.split())
        self.refusals = tuple(refusals.split())
        self.details = details
        self.example = example

    @property
    def writes(self) -> bool:
        """Whether the route changes the board."""
        return self.method != "GET"

    @property
    def is_public(self) -> bool:
        """Whether it can be used without a key or a session, also where the server asks for one."""
        return self.path in _PUBLIC

    @property
    def has_text(self) -> bool:
        """Whether the route can also return compact text."""
        return "budget" in self.query

    @property
    def claims_next(self) -> bool:
        """Whether ``queue`` selects the task to claim, and may be a list."""
        return self.path == "/api/claim"

    def parameters(self) -> dict[str, tuple[Schema, str]]:
        """Return the query parameters by name."""
        is_history = self.answer in ("events", "stream")
        return {
            name: fields.SEQUENCE[name] if is_history and name in fields.SEQUENCE else fields.QUERY[name]
            for name in self.query
        }

    def fields(self) -> dict[str, tuple[Schema, str]]:
        """Return the body fields by name."""
        return {
            name: fields.QUEUES if name == "queue" and self.claims_next else fields.BODY[name]
            for name in (*self.required, *self.optional)
        }


_PUBLIC = ("/api", "/api/openapi.json", "/healthz", "/api/session", "/api/session/end")
_TASK_FIELDS = " ".join([*(name for name in FIELDS if name != "title"), BLOCKED_BY])

ROUTES = (
    Route("GET", "/api", None, "This documentation.", "markdown"),
    Route("GET", "/api/openapi.json", None, "This API as an OpenAPI description.", "openapi"),
    Route("GET", "/healthz", api.health, "Check that the board is readable.", "health"),
    Route(
        "GET", "/api/board", api.board, "Get the whole board.", "board",
        query="budget",
        details="Tasks come without `body`, `params`, `result` and `error`, unfinished ones first. The response has\n"
        "an `ETag`: send it as `If-None-Match` to get 304 without a body while nothing has changed.",
    ),
    Route(
        "GET", "/api/tasks", api.list_tasks, "List the tasks that match all parameters.", "tasks",
        query="status queue assignee claimed_by tags ready blocked stuck overdue archived search all order full limit "
        "after budget",
    ),
    Route(
        "POST", "/api/tasks", api.add, "Add a task.", "created",
        required="title", optional=f"{_TASK_FIELDS} claim lease request_id agent actor",
        refusals="not_found conflict lease_lost",
        details="The status is 201, or 200 if the dedupe key matched an existing task.\n"
        'With `"claim": true`, the agent holds the task from the start: no other agent can claim it first.',
        example='{"title": "Write the parser", "priority": 5, "tags": ["parser"]}',
    ),
    Route(
        "GET", "/api/tasks/{id}", api.show, "Get one task.", "details", query="wait for output why budget",
        refusals="not_found busy",
        details="With `wait`, the response comes as soon as the task has one of the statuses `for`, or when the time\n"
        "is over: look at `status`.",
    ),
    Route(
        "PATCH", "/api/tasks/{id}", api.change, "Update a task, or claim it, if it has the expected state.", "changed",
        optional=f"title {_TASK_FIELDS} status if_status if_version comment lease request_id agent actor",
        refusals="not_found conflict lease_lost not_permitted",
        details='This is a compare-and-set. `{"if_status": "queued", "status": "claimed", "agent": "ada"}` claims the\n'
        "task; any later caller gets 409 with the current state. An array replaces the whole list; `null` clears a\n"
        "field.",
        example='{"if_status": "queued", "status": "claimed", "agent": "ada", "comment": "Picking this up."}',
    ),
    Route(
        "GET", "/api/tasks/{id}/events", api.events, "List the events of one task.", "events",
        query="after before limit wait", refusals="not_found busy",
    ),
    Route(
        "GET", "/api/tasks/{id}/why", api.why, "Say why a task is not being worked on.", "why", refusals="not_found",
        details="`why` is `{reason, text, change, chain}`: one leading reason, what would change it, and the tasks\n"
        "that it waits for, one behind the other.",
    ),
    Route("GET", "/api/why", api.why, "Say why nothing runs: how many tasks each reason keeps.", "why_nothing"),
    Route(
        "POST", "/api/claim", api.claim_next, "Claim the next ready task.", "next",
        required="agent", optional="queue tags lease if_status comment request_id actor", query="wait",
        refusals="lease_lost conflict busy",
        details="Claims the oldest of the tasks with the highest priority. Expired leases are ended first. With\n"
        "`wait`, the response comes as soon as a task is ready, or when the time is over.",
        example='{"agent": "ada", "lease": "15m"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/claim", api.claim, "Claim one particular task.", "lease",
        required="agent", optional="lease if_status comment request_id actor", query="wait",
        refusals="not_found conflict lease_lost busy",
        example='{"agent": "ada"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/resume", api.resume, "Get a new token for a task that the agent holds.", "lease",
        required="agent", optional="lease actor", refusals="not_found conflict lease_lost",
        details="For an agent that has lost its token. The old token becomes invalid.", example='{"agent": "ada"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/heartbeat", api.heartbeat, "Renew a lease.", "lease",
        required="token", optional="lease progress note agent actor", refusals="not_found lease_lost",
        details="The lease is renewed from now, for `lease` or its previous duration. The first heartbeat moves the\n"
        "task from claimed to running.",
        example='{"token": "TOKEN", "progress": 40, "note": "grammar written"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/complete", api.complete, "Submit the result.", "task",
        required="token", optional="result artifacts note agent actor", refusals="not_found lease_lost",
        details="The task is then done, or in review if it needs approval. If the response is lost, you can safely\n"
        "repeat the call.",
        example='{"token": "TOKEN", "result": {"tests": 12}, "artifacts": ["report.md"]}',
    ),
    Route(
        "POST", "/api/tasks/{id}/fail", api.fail, "Report that the attempt failed.", "task",
        required="token error", optional="retry_in no_retry agent actor", refusals="not_found lease_lost",
        details="The task is queued again with an increasing backoff, or fails permanently if no attempts are left.",
        example='{"token": "TOKEN", "error": "the tests need a network"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/release", api.release, "Return the task to its queue.", "task",
        required="token", optional="after note agent actor", refusals="not_found lease_lost",
        details="The attempt does not count toward `max_attempts`.", example='{"token": "TOKEN", "after": "1h"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/handoff", api.handoff, "Hand off the task to another agent.", "task",
        required="token to", optional="note agent actor", refusals="not_found lease_lost",
        details="The next agent sees the note. The attempt does not count toward `max_attempts`.",
        example='{"token": "TOKEN", "to": "bob", "note": "layout done, colours missing"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/done", api.done, "Finish a queued task without claiming it first.", "task",
        optional="result artifacts note agent actor", refusals="not_found conflict",
        details="For something small that is done already. An agent may do it where it could claim the task; the task\n"
        "then goes to review if it needs approval. A person may also finish a blocked, delayed or assigned task;\n"
        "`warnings` say so.",
        example='{"agent": "ada", "note": "fixed by the upgrade"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/approve", api.approve, "Approve the work of a task in review; people only.", "task",
        optional="note actor agent", refusals="not_found conflict not_permitted", example='{"note": "well done"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/reject", api.reject, "Reject the work of a task in review; people only.", "task",
        required="note", optional="actor agent", refusals="not_found conflict not_permitted",
        details="The task is queued again. The next agent sees the note.",
        example='{"note": "the colours are missing"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/reassign", api.reassign, "Queue a task for another agent.", "task",
        required="to", optional="note actor agent", refusals="not_found conflict",
        details="This revokes an active lease: further calls of its holder are refused.", example='{"to": "bob"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/retry", api.retry, "Queue a failed or cancelled task again.", "task",
        optional="actor agent", refusals="not_found conflict",
    ),
    Route(
        "POST", "/api/tasks/{id}/cancel", api.cancel, "Cancel a task.", "task",
        optional="note actor agent", refusals="not_found conflict not_permitted",
        details="This revokes an active lease. Tasks that depend on it stay blocked. Only a person can cancel a\n"
        "task in review.",
    ),
    Route(
        "POST", "/api/tasks/{id}/comments", api.comment, "Comment on a task.", "event",
        required="text", optional="actor agent", refusals="not_found", example='{"text": "See the issue."}',
    ),
    Route(
        "GET", "/api/events", api.events, "List the events of the whole board.", "events",
        query="after before limit task wait", refusals="not_found busy",
        details="With `wait`, the response comes as soon as there is an event after `after`, or when the time is over.",
    ),
    Route(
        "GET", "/api/stream", None, "Stream events as they happen.", "stream", query="after", refusals="busy",
        details="Server-sent events, starting now, or after the event that `Last-Event-ID` or `after` names. While\n"
        "there are no events, the server sends a comment line every 15 seconds. At most 32 streams can be open.",
    ),
    Route("GET", "/api/agents", api.agents, "List the agents and the tasks that they hold.", "agents"),
    Route("GET", "/api/stats", api.stats, "Get counts, throughput and durations.", "stats", query="days"),
    Route("GET", "/api/schedules", api.schedules, "List the schedules.", "schedules"),
)  # fmt: skip

SESSIONS = (
    Route("POST", "/api/session", api.sign_in, "Sign in with the code of a link.", "signed_in", required="code"),
    Route("POST", "/api/session/end", api.sign_out, "End the session of this browser.", "signed_in"),
)
"""How the page signs in and out, on a server that asks for it. They are the page's own: programs send a key."""


def find(routes: Mapping[str, dict[str, Route]], method: str, path: str) -> tuple[Route, str]:
    """Return the route of a request, and the task id in its path (or the empty string).

    Raises:
        NotFound: no route has this path.
        BadRequest: 405.
    """
    task = ""
    parts = path.split("/")
    if path not in routes and len(parts) in (4, 5) and parts[1:3] == ["api", "tasks"] and parts[3]:
        task, parts[3] = parts[3], "{id}"
        path = "/".join(parts)
    by_method = routes.get(path)
    if by_method is None:
        raise NotFound(f"unknown route: {path[:200]!r}", hint="GET /api lists the routes.")
    route = by_method.get("GET" if method == "HEAD" else method)
    if route is None:
        allow = ", ".join([*by_method, *(["HEAD"] if "GET" in by_method else [])])
        raise BadRequest(405, f"method not allowed: {method[:20]}", hint=f"Allowed: {allow}.", allow=allow)
    return route, task


def table() -> dict[str, dict[str, Route]]:
    """Return the routes by path and method."""
    found: dict[str, dict[str, Route]] = {}
    for route in (*ROUTES, *SESSIONS):
        found.setdefault(route.path, {})[route.method] = route
    return found
