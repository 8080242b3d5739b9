"""The handlers of the routes: each reads the request's fields, makes one service call and returns the response."""

from __future__ import annotations

import json
import os
import threading
import time

from .. import inputs
from .._version import __version__
from ..board import waiting
from ..board.fields import as_arguments
from ..board.queries import events_follow
from ..errors import InvalidInput, NotPermitted
from ..hooks.delivery import deliver_soon
from ..identity import Actor
from ..model import AGENT, CLAIMED, HUMAN
from ..text import compact
from .messages import JSON, TEXT, Response, envelope, gzip
from .room import ANSWER_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..board.queries import TaskPage
    from ..board.snapshot import Snapshot
    from ..model import EventPage, Receipt
    from ..service import Board
    from .access import Access, Caller
    from .messages import Head
    from .room import Room

    Handler = Callable[["Call"], Response]


SEARCH_TIME = 2.0
"""Seconds that a search may take."""
LOOK_INTERVAL = 0.05
"""Seconds between two looks at the clock and the client while a search runs."""


class Api:
    """The service as the routes see it.

    Args:
        board: the board; its actor is that of requests that name none.
        read_only: whether every write is refused.
    """

    def __init__(self, board: Board, *, read_only: bool) -> None:
        self.board = board
        self.read_only = read_only
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None
        self._envelope = self._compressed = self._text = b""
        self._tokens: int | None = None

    def deliver_hooks(self) -> None:
        """Deliver pending hook notifications in another thread."""
        if not self.read_only:
            deliver_soon(self.board)

    def snapshot(self, *, gzipped: bool) -> tuple[str, bytes]:
        """Return the current board's entity tag and its envelope, gzipped if ``gzipped``."""
        with self._lock:
            snapshot = self._refresh_snapshot()
            if not self._envelope:
                data = f'{{"ok":true,"data":{snapshot.text},"warnings":{json.dumps(missing_board(self.board))}}}\n'
                self._envelope = data.encode()
            if gzipped and not self._compressed:
                self._compressed = gzip(self._envelope)
            return f'W/"{snapshot.tag}"', self._compressed if gzipped else self._envelope

    def text(self, tokens: int | None) -> tuple[str, bytes]:
        """Return the current board's entity tag and its compact text of at most ``tokens`` tokens."""
        with self._lock:
            snapshot = self._refresh_snapshot()
            if not self._text or tokens != self._tokens:
                warnings = missing_board(self.board)
                attention = self.board.attention()
                text = compact.board(json.loads(snapshot.text), attention, tokens=tokens, warnings=warnings)
                self._text, self._tokens = text.encode(), tokens
            return f'W/"{snapshot.tag}-text"', self._text

    def _refresh_snapshot(self) -> Snapshot:
        """Return the current snapshot; drop the cached responses if it has changed."""
        snapshot = self.board.snapshot(self._snapshot)
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._envelope = self._compressed = self._text = b""
        return snapshot


class Call:
    """One request: its task id, body fields and query parameters, all with names that the route accepts."""

    __slots__ = ("access", "api", "body", "caller", "has_left", "head", "id", "pause", "query", "room")

    def __init__(
        self,
        api: Api,
        head: Head,
        task: str,
        query: dict[str, Any],
        body: dict[str, Any],
        pause: Callable[[float], bool] = waiting.at_once,
        *,
        access: Access,
        caller: Caller,
        room: Room,
        has_left: Callable[[], bool],
    ) -> None:
        self.api = api
        self.access = access
        self.caller = caller
        self.room = room
        self.has_left = has_left
        """Says whether the client has disconnected."""
        self.head = head
        self.id = task
        self.query = query
        self.body = body
        self.pause = pause
        """Sleeps for some seconds; true if there is no reason to wait longer, since the client has left."""

    @property
    def board(self) -> Board:
        """The board."""
        return self.api.board

    def require(self, name: str) -> Any:
        """Return a required field.

        Raises:
            InvalidInput: the field is missing.
        """
        value = self.body.get(name)
        if value is None:
            raise InvalidInput(f"{name}: missing", field=name)
        return value

    def given(self, *names: str) -> dict[str, Any]:
        """Return the given fields that are present and not ``null``."""
        return {name: self.body[name] for name in names if self.body.get(name) is not None}

    def named_actor(self) -> Actor | None:
        """Return the actor that the request names; ``None`` leaves it to the board. With ``agent``, it is an agent."""
        agent, actor = self.body.get("agent"), self.body.get("actor")
        if agent is not None:
            agent = inputs.agent_name(agent, "agent")
        if actor is not None:
            return Actor(inputs.actor_name(actor, "actor"), HUMAN if agent is None else AGENT)
        return None if agent is None else Actor(agent, AGENT)

    def wants_text(self) -> bool:
        """Return whether the response should be compact text.

        Raises:
            InvalidInput: JSON with a budget.
        """
        if self.head.prefers_text():
            return True
        if "budget" in self.query:
            raise InvalidInput("budget: requires compact text", hint="Send `Accept: text/plain`.", field="budget")
        return False

    def answer(self, data: Any, warnings: list[str] | None = None, **more: Any) -> Response:
        """Return the envelope, with a warning if there is no board."""
        return envelope(data, [*(warnings or ()), *missing_board(self.board)], **more)

    def receipt(self, receipt: Receipt) -> Response:
        """Return the response to a write."""
        return self.answer(receipt.to_dict(), receipt.warnings)


# Reads


def health(call: Call) -> Response:
    """Check that the board is readable."""
    call.board.revision()
    state = {"status": "ok", "version": __version__, "read_only": call.api.read_only}
    return call.answer({**state, "data_dir": os.path.dirname(call.board.path) if call.caller.is_known else None})


def board(call: Call) -> Response:
    """Return the whole board, or 304 if the client already has it."""
    gzipped = call.head.accepts_gzip()
    if call.wants_text():
        tag, body = call.api.text(call.query.get("budget"))
        kind, gzipped = TEXT, False
    else:
        tag, body = call.api.snapshot(gzipped=gzipped)
        kind = JSON
    headers = [("ETag", tag), ("Vary", "Accept, Accept-Encoding"), ("Cache-Control", "no-cache")]
    if call.head.has_seen(tag):
        return Response(304, b"", headers)
    packed = [("Content-Encoding", "gzip")] if gzipped else []
    return Response(200, body, [("Content-Type", kind), *headers, *packed], is_shared=True)


_VARIES = ("Vary", "Accept")


def list_tasks(call: Call) -> Response:
    """Return a page of tasks."""
    shows_all = call.query.pop("all", False)
    if not call.wants_text():
        limit = call.query.pop("limit", 100)
        while True:
            page = _page(call, limit)
            response = call.answer(page.to_dict(), page.warnings(), headers=[_VARIES])
            if len(response.body) <= ANSWER_LIMIT or len(page.tasks) == 1:
                return response
            limit = len(page.tasks) // 2  # many characters that JSON escapes
    if call.query.pop("full", False):
        raise InvalidInput(
            "full: requires JSON", hint="For one whole task as compact text, use GET /api/tasks/ID.", field="full"
        )
    tokens, limit = call.query.pop("budget", None), call.query.pop("limit", 100)
    attention = call.board.attention()
    text = compact.task_list(
        lambda count: _page(call, count, hide_finished=not shows_all),
        limit,
        attention,
        tokens=tokens,
        warnings=missing_board(call.board),
    )
    return _plain(text)


def _page(call: Call, limit: int, **more: Any) -> TaskPage:
    call.room.begin_again()
    stop = _stop(call) if "search" in call.query else None
    return call.board.list_tasks(limit=limit, agent=call.caller.agent, room=call.room, stop=stop, **call.query, **more)


def _stop(call: Call) -> Callable[[], bool]:
    """Return what says that a search must stop: it takes too long, or the client has left."""
    deadline = time.monotonic() + SEARCH_TIME
    next_look = time.monotonic() + LOOK_INTERVAL

    def stop() -> bool:
        nonlocal next_look
        now = time.monotonic()
        if now < next_look:
            return False
        next_look = now + LOOK_INTERVAL
        return now >= deadline or call.has_left()

    return stop


def show(call: Call) -> Response:
    """Return a task with its attempts, linked tasks and comments."""
    _wait_for_task(call)
    asked = {name: call.query.get(name, False) for name in ("output", "why")}
    found = call.board.show(call.id, **asked)
    if not call.wants_text():
        return call.answer(found, headers=[_VARIES])
    return _plain(compact.details(found, call.board.attention(), tokens=call.query.get("budget")))


def why(call: Call) -> Response:
    """Return why a task, or everything, is not being worked on."""
    return call.answer(call.board.why(call.id) if call.id else {"why": call.board.why_nothing()})


def _wait_for_task(call: Call) -> None:
    """Wait until the task has one of the statuses ``for``, at most ``wait`` seconds."""
    statuses, seconds = call.query.get("for", ()), call.query.get("wait")
    if seconds is not None:
        waiting.wait(call.board, [call.id], statuses, seconds=seconds, pause=call.pause)
    elif statuses:
        raise InvalidInput("for: requires wait", field="for")


def _plain(text: str) -> Response:
    return Response(200, text.encode(), [("Content-Type", TEXT), _VARIES])


def events(call: Call) -> Response:
    """Return events of one task or of the whole board."""
    task = call.id or call.query.pop("task", None)
    seconds = call.query.pop("wait", None)
    if seconds is not None and "before" in call.query:
        raise InvalidInput("wait: cannot be combined with before", field="wait")
    found = call.board.events(task=task, room=call.room, **call.query)
    if seconds is not None and not found["events"]:
        found = (
            waiting.until(
                call.board,
                lambda: _first(call.board.events(task=task, room=call.room, **call.query)),
                seconds=seconds,
                pause=call.pause,
            )
            or found
        )
    more = 0
    if "before" not in call.query and (len(found["events"]) == call.query.get("limit", 100) or call.room.is_full):
        more = call.board.count_events(found["next"], task=task)
    return call.answer(found, [events_follow(more)] if more else [])


def _first(found: EventPage) -> tuple[EventPage | None, None]:
    return (found if found["events"] else None), None


def agents(call: Call) -> Response:
    """Return the agents and the tasks that they hold."""
    return call.answer({"agents": call.board.agents()})


def stats(call: Call) -> Response:
    """Return counts, throughput and durations."""
    return call.answer(call.board.stats(**call.query))


def schedules(call: Call) -> Response:
    """Return the schedules."""
    return call.answer({"schedules": call.board.schedules()})


# Writes


def add(call: Call) -> Response:
    """Add a task, and claim it if requested."""
    call.require("title")
    given = as_arguments(call.given(*(name for name in call.body if name != "actor")))
    receipt = call.board.add(**given, actor=call.named_actor())
    return call.answer(
        receipt.to_dict(),
        receipt.warnings,
        status=201 if receipt.created else 200,
        headers=[("Location", f"/api/tasks/{receipt.task.id}")],
    )


def change(call: Call) -> Response:
    """Update fields of a task, or claim it, if it has the expected state."""
    if "status" in call.body:
        return _claim_by_patch(call)
    fields = dict(call.body)
    for name in ("agent", "actor"):
        fields.pop(name, None)
    for name in ("lease", "request_id"):
        if fields.pop(name, None) is not None:
            raise InvalidInput(f'{name}: requires "status": "{CLAIMED}"', field=name)
    return call.receipt(call.board.update(call.id, actor=call.named_actor(), **as_arguments(fields)))


_CLAIM_BY_PATCH = ("status", "assignee", "agent", "actor", "if_status", "if_version", "comment", "lease", "request_id")


def _claim_by_patch(call: Call) -> Response:
    status = call.body["status"]
    if status != CLAIMED:
        verb = _VERBS.get(status) if isinstance(status, str) else None
        raise InvalidInput(
            f'status: only "{CLAIMED}" can be set here',
            hint=f"Use POST /api/tasks/ID/{verb}." if verb else "Every other status has its own route; see GET /api.",
            field="status",
        )
    for name in call.body:
        if name not in _CLAIM_BY_PATCH:
            raise InvalidInput(
                f'{name}: not allowed with "status": "{CLAIMED}"', hint="Change it in a separate request.", field=name
            )
    agent, assignee = call.body.get("agent"), call.body.get("assignee")
    if assignee is not None and call.caller.agent is not None and not call.caller.is_agent(assignee):
        raise NotPermitted(
            f"assignee: not the agent of this key: {str(assignee)[:100]!r}",
            hint=f"A key claims for its own agent, {call.caller.agent!r}.",
            field="assignee",
        )
    if agent is None:
        agent = assignee
    if agent is None:
        raise InvalidInput(
            "agent: missing", hint="Send `agent` or `assignee`: the agent that claims the task.", field="agent"
        )
    return _claim(call, agent, task=call.id, **call.given("if_version"))


_VERBS = {
    "queued": "release",
    "running": "heartbeat",
    "review": "complete",
    "done": "complete",
    "failed": "fail",
    "cancelled": "cancel",
}
"""The route that leads to each status."""


def claim(call: Call) -> Response:
    """Claim one task."""
    return _claim(call, call.require("agent"), task=call.id)


def claim_next(call: Call) -> Response:
    """Claim the next ready task, or warn why there is none."""
    filters = call.given("queue", "tags")
    if "queue" in filters:
        queue = filters.pop("queue")
        filters["queues"] = [queue] if isinstance(queue, str) else queue
    return _claim(call, call.require("agent"), **filters)


def _claim(call: Call, agent: Any, **filters: Any) -> Response:
    options = call.given("lease", "if_status", "comment", "request_id")
    options["actor"] = call.named_actor()
    grant = None
    if seconds := call.query.get("wait"):
        grant = waiting.claim(call.board, agent, seconds=seconds, pause=call.pause, **filters, **options)
    if grant is None and (not seconds or "task" in filters):  # the refusal says why one task was not ready
        grant = call.board.claim(agent, **filters, **options)
    if grant is None:
        return call.answer(None, call.board.nothing_ready(agent, **filters))
    return call.receipt(grant)


def resume(call: Call) -> Response:
    """Issue a new token to the holder."""
    return call.receipt(
        call.board.resume(call.id, call.require("agent"), actor=call.named_actor(), **call.given("lease"))
    )


def heartbeat(call: Call) -> Response:
    """Renew a lease."""
    return _under_lease(call, call.board.heartbeat, "lease", "progress", "note")


def release(call: Call) -> Response:
    """Return a task to its queue."""
    return _under_lease(call, call.board.release, "after", "note")


def complete(call: Call) -> Response:
    """Submit the result."""
    return _under_lease(call, call.board.complete, "result", "artifacts", "note")


def fail(call: Call) -> Response:
    """End an attempt as failed."""
    return _under_lease(call, call.board.fail, "retry_in", "no_retry", error=call.require("error"))


def handoff(call: Call) -> Response:
    """Hand off a task to another agent."""
    return _under_lease(call, call.board.handoff, "note", to=call.require("to"))


def _under_lease(call: Call, verb: Callable[..., Receipt], *names: str, **needed: Any) -> Response:
    return call.receipt(verb(call.id, call.require("token"), actor=call.named_actor(), **needed, **call.given(*names)))


def done(call: Call) -> Response:
    """Finish a queued task without claiming it first."""
    given = call.given("result", "artifacts", "note", "agent")
    return call.receipt(call.board.done(call.id, actor=call.named_actor(), **given))


def approve(call: Call) -> Response:
    """Approve the work of a task in review."""
    return call.receipt(call.board.approve(call.id, actor=call.named_actor(), **call.given("note")))


def reject(call: Call) -> Response:
    """Reject the work of a task in review."""
    return call.receipt(call.board.reject(call.id, note=call.require("note"), actor=call.named_actor()))


def reassign(call: Call) -> Response:
    """Queue a task for another agent, or for any agent."""
    to = None if "to" in call.body and call.body["to"] is None else call.require("to")
    return call.receipt(call.board.reassign(call.id, to, actor=call.named_actor(), **call.given("note")))


def retry(call: Call) -> Response:
    """Queue a failed or cancelled task again."""
    return call.receipt(call.board.retry(call.id, actor=call.named_actor()))


def cancel(call: Call) -> Response:
    """Cancel a task."""
    return call.receipt(call.board.cancel(call.id, actor=call.named_actor(), **call.given("note")))


def comment(call: Call) -> Response:
    """Comment on a task."""
    return call.answer({"event": call.board.comment(call.id, call.require("text"), actor=call.named_actor())})


# Signing in


def sign_in(call: Call) -> Response:
    """Start a session of this browser."""
    code = inputs.line(call.require("code"), "code", inputs.KEY)
    cookie = call.access.sign_in(code, call.head, call.caller.peer)
    return call.answer({"signed_in": True}, headers=[("Set-Cookie", cookie)])


def sign_out(call: Call) -> Response:
    """End the session of this browser."""
    cookie = call.access.sign_out(call.caller, call.head)
    return call.answer({"signed_in": False}, headers=[("Set-Cookie", cookie)])


def missing_board(board: Board) -> list[str]:
    """Warn if the latest call found no board: a wrong directory must not look like an empty board."""
    return [f"there is no board at {board.path} yet"] if board.is_missing else []
