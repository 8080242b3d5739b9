"""The routes: which method and path, what each takes, does and answers. Its documentation is made from this table."""

from __future__ import annotations

from ..errors import NotFound
from . import api, fields
from .messages import BadRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .api import Handler
    from .fields import Schema

ANSWERS: dict[str, tuple[str, str]] = {
    "task": ('{"task"}', 'the task as the call left it; `"replayed": true` where the call was a repetition'),
    "created": ('{"task", "created"}', "`created` false: a dedupe key gave the task that there is; `lease` if claimed"),
    "lease": ('{"task", "lease": {"token", "fence", "expires_at"}}', "keep the token: no other call tells it again"),
    "next": (
        '{"task", "lease": {"token", "fence", "expires_at"}} or null',
        "`null`: nothing is ready; `warnings` say why",
    ),
    "changed": ('{"task"}', "with `lease` where the call claimed it"),
    "event": ('{"event"}', "the event that was written"),
    "tasks": ('{"tasks", "next"}', "`next`: the cursor of the next page, `null` on the last one"),
    "details": ('{"task", "attempts", "dependencies", "dependents", "comments"}', "a task and what belongs to it"),
    "events": ('{"events", "next"}', "`next`: the number to go on after (or before)"),
    "board": (
        '{"tasks", "counts", "truncated", "revision", "timezone"}',
        "at most 10,000 tasks; counts of all by status",
    ),
    "agents": ('{"agents"}', "what each did, when it was last seen, and `holds`, the tasks under a lease now"),
    "stats": (
        (
            '{"tasks", "archived", "by_status", "by_queue", "ready", "blocked", "lease_expired", "days", "finished", '
            '"lead_time", "cycle_time", "running", "by_agent"}'
        ),
        "times in seconds",
    ),
    "schedules": ('{"schedules"}', "the cron rules that make tasks"),
    "health": ('{"status", "version", "read_only", "data_dir"}', "`status` is `ok`"),
    "stream": ("text/event-stream", "one event a message, its `seq` as `id`"),
    "markdown": ("text/markdown", "this page"),
    "openapi": ("application/json", "OpenAPI 3.1"),
}
"""What ``data`` holds, and a word on it."""


class Route:
    """One method on one path.

    ``required`` and ``optional`` are the fields of the body, ``query`` the parameters, ``answer`` a key of
    ``ANSWERS``. ``refusals`` are codes beside ``invalid_input``, which any route may give. ``example`` is the body of
    the example in the documentation, as JSON.
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
        """Whether it changes the board."""
        return self.method != "GET"

    @property
    def has_text(self) -> bool:
        """Whether it answers in compact text, too."""
        return "budget" in self.query

    @property
    def is_claim_of_any(self) -> bool:
        """Whether ``queue`` chooses what is claimed, and may be a list."""
        return self.path == "/api/claim"

    def parameters(self) -> dict[str, tuple[Schema, str]]:
        """Return the parameters of its query, by name."""
        of_events = self.answer in ("events", "stream")
        return {
            name: fields.SEQUENCE[name] if of_events and name in fields.SEQUENCE else fields.QUERY[name]
            for name in self.query
        }

    def fields(self) -> dict[str, tuple[Schema, str]]:
        """Return the fields of its body, by name."""
        return {
            name: fields.QUEUES if name == "queue" and self.is_claim_of_any else fields.BODY[name]
            for name in (*self.required, *self.optional)
        }


_OF_TASK = (
    "body queue priority assignee due_at not_before tags blocked_by params dedupe_key max_attempts needs_approval"
)

ROUTES = (
    Route("GET", "/api", None, "This documentation.", "markdown"),
    Route("GET", "/api/openapi.json", None, "The same for programs.", "openapi"),
    Route("GET", "/healthz", api.health, "Say whether the board can be read.", "health"),
    Route(
        "GET", "/api/board", api.board, "Every task that a board shows.", "board",
        query="budget",
        details="Tasks without `body`, `params` and `result`, unfinished ones first. Has an `ETag`: send it back as\n"
        "`If-None-Match`, and as long as nothing changes the answer is 304, without a body.",
    ),
    Route(
        "GET", "/api/tasks", api.list_tasks, "List tasks that meet every condition.", "tasks",
        query="status queue assignee claimed_by tags ready blocked overdue archived search order full limit after "
        "budget",
    ),
    Route(
        "POST", "/api/tasks", api.add, "Add a task.", "created",
        required="title", optional=f"{_OF_TASK} claim lease request_id agent actor",
        refusals="not_found conflict lease_lost",
        details="Answers 201, or 200 where a dedupe key gave the task that there is.\n"
        'With `"claim": true` the agent holds it from the very start: nobody ever sees it unclaimed.',
        example='{"title": "Write the parser", "priority": 5, "tags": ["parser"]}',
    ),
    Route(
        "GET", "/api/tasks/{id}", api.show, "Show one task.", "details", query="budget", refusals="not_found",
    ),
    Route(
        "PATCH", "/api/tasks/{id}", api.change, "Change a task, or claim it, if it is as expected.", "changed",
        optional=f"title {_OF_TASK} status if_status if_version comment lease request_id agent actor",
        refusals="not_found conflict lease_lost not_permitted",
        details='One compare-and-set. `{"if_status": "queued", "status": "claimed", "agent": "ada"}` claims the task;\n'
        "whoever comes second gets 409 with the state as it is. An array replaces the whole list, `null` clears a\n"
        "field.",
        example='{"if_status": "queued", "status": "claimed", "agent": "ada", "comment": "Picking this up."}',
    ),
    Route(
        "GET", "/api/tasks/{id}/events", api.events, "The history of one task.", "events",
        query="after before limit", refusals="not_found",
    ),
    Route(
        "POST", "/api/claim", api.claim_next, "Claim the best task that is ready.", "next",
        required="agent", optional="queue tags lease if_status comment request_id actor",
        refusals="lease_lost conflict",
        details="The largest priority first, then the oldest. Expired leases are taken back on the way.",
        example='{"agent": "ada", "lease": "15m"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/claim", api.claim, "Claim this task.", "lease",
        required="agent", optional="lease if_status comment request_id actor", refusals="not_found conflict lease_lost",
        example='{"agent": "ada"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/resume", api.resume, "Get a new token for a task that one holds.", "lease",
        required="agent", optional="lease actor", refusals="not_found conflict lease_lost",
        details="For an agent that lost its token. The old one is dead then.", example='{"agent": "ada"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/heartbeat", api.heartbeat, "Renew one's own lease.", "lease",
        required="token", optional="lease progress note agent actor", refusals="not_found lease_lost",
        details="By the length last asked for, counted from now. The first one takes the task from claimed to running.",
        example='{"token": "TOKEN", "progress": 40, "note": "grammar written"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/complete", api.complete, "Hand in the work.", "task",
        required="token", optional="result artifacts note agent actor", refusals="not_found lease_lost",
        details="The task is done, or in review if it needs approval. Repeating the call after a lost reply is safe.",
        example='{"token": "TOKEN", "result": {"tests": 12}, "artifacts": ["report.md"]}',
    ),
    Route(
        "POST", "/api/tasks/{id}/fail", api.fail, "Give up this attempt.", "task",
        required="token error", optional="retry_in no_retry agent actor", refusals="not_found lease_lost",
        details="The task waits for its next attempt, longer each time, or has failed when none is left.",
        example='{"token": "TOKEN", "error": "the tests need a network"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/release", api.release, "Give the task back, untouched.", "task",
        required="token", optional="after note agent actor", refusals="not_found lease_lost",
        details="The attempt does not count.", example='{"token": "TOKEN", "after": "1h"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/handoff", api.handoff, "Pass the task on to another agent.", "task",
        required="token to", optional="note agent actor", refusals="not_found lease_lost",
        details="The note travels with it. The attempt does not count.",
        example='{"token": "TOKEN", "to": "bob", "note": "layout done, colours missing"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/approve", api.approve, "Accept work in review; for people.", "task",
        optional="note actor agent", refusals="not_found conflict not_permitted", example='{"note": "well done"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/reject", api.reject, "Send work in review back to the queue; for people.", "task",
        required="note", optional="actor agent", refusals="not_found conflict not_permitted",
        example='{"note": "the colours are missing"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/reassign", api.reassign, "Put a task back into its queue for another agent.", "task",
        required="to", optional="note actor agent", refusals="not_found conflict",
        details="A live lease is revoked: its holder is refused from then on.", example='{"to": "bob"}',
    ),
    Route(
        "POST", "/api/tasks/{id}/retry", api.retry, "Put a failed or cancelled task back into its queue.", "task",
        optional="actor agent", refusals="not_found conflict",
    ),
    Route(
        "POST", "/api/tasks/{id}/cancel", api.cancel, "Call a task off.", "task",
        optional="note actor agent", refusals="not_found conflict",
        details="Whoever holds it is refused from then on. What waits for it stays blocked.",
    ),
    Route(
        "POST", "/api/tasks/{id}/comments", api.comment, "Comment on a task.", "event",
        required="text", optional="actor agent", refusals="not_found", example='{"text": "See the issue."}',
    ),
    Route(
        "GET", "/api/events", api.events, "The history of the whole board.", "events",
        query="after before limit task", refusals="not_found",
    ),
    Route(
        "GET", "/api/stream", None, "Events as they happen.", "stream", query="after", refusals="busy",
        details="Server-sent events, from now on; after a break, from the `Last-Event-ID` that the client sends, or\n"
        "from `after`. A comment line comes every 15 seconds while nothing happens. At most 32 at once.",
    ),
    Route("GET", "/api/agents", api.agents, "Who holds what.", "agents"),
    Route("GET", "/api/stats", api.stats, "Counts, and how work flows.", "stats", query="days"),
    Route("GET", "/api/schedules", api.schedules, "The schedules.", "schedules"),
)  # fmt: skip


def find(routes: Mapping[str, dict[str, Route]], method: str, path: str) -> tuple[Route, str]:
    """Return the route of a request, and the task that its path names (or the empty text).

    Raises:
        NotFound: there is no such path.
        BadRequest: 405.
    """
    task = ""
    parts = path.split("/")
    if path not in routes and len(parts) in (4, 5) and parts[1:3] == ["api", "tasks"] and parts[3]:
        task, parts[3] = parts[3], "{id}"
        path = "/".join(parts)
    by_method = routes.get(path)
    if by_method is None:
        raise NotFound(f"there is no route {path[:200]!r}", hint="GET /api lists the routes.")
    route = by_method.get("GET" if method == "HEAD" else method)
    if route is None:
        allow = ", ".join([*by_method, *(["HEAD"] if "GET" in by_method else [])])
        raise BadRequest(405, f"{method[:20]} is not for this route", hint=f"It takes {allow}.", allow=allow)
    return route, task


def table() -> dict[str, dict[str, Route]]:
    """Return the routes by path and method."""
    found: dict[str, dict[str, Route]] = {}
    for route in ROUTES:
        found.setdefault(route.path, {})[route.method] = route
    return found
