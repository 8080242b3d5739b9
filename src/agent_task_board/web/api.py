"""What each route of the API does: take the fields of the request, make one call of the service, answer."""

from __future__ import annotations

import json
import os
import threading

from .. import inputs
from .._version import __version__
from ..errors import InvalidInput
from ..hooks.delivery import deliver_soon
from ..identity import Actor
from ..model import AGENT, CLAIMED, HUMAN
from ..text import compact
from .messages import JSON, TEXT, Response, envelope, gzip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..board.snapshot import Snapshot
    from ..model import Receipt
    from ..service import Board
    from .messages import Head

    Handler = Callable[["Call"], Response]


class Api:
    """The service as the routes see it.

    Args:
        board: the board.
        person: who acts where a request does not say.
        read_only: whether every write is refused.
    """

    def __init__(self, board: Board, *, person: Actor, read_only: bool) -> None:
        self.board = board
        self.person = person
        self.read_only = read_only
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None
        self._whole = self._packed = self._text = b""
        self._tokens: int | None = None

    def tell_hooks(self) -> None:
        """Have hooks told what they are owed, in another thread."""
        if not self.read_only:
            deliver_soon(self.board)

    def snapshot(self, *, packed: bool) -> tuple[str, bytes]:
        """Return the tag of the board as it is now and its envelope, ``packed`` by gzip or as it is."""
        with self._lock:
            snapshot = self._take()
            if not self._whole:
                data = f'{{"ok":true,"data":{snapshot.text},"warnings":{json.dumps(missing(self.board))}}}\n'
                self._whole = data.encode()
            if packed and not self._packed:
                self._packed = gzip(self._whole)
            return f'W/"{snapshot.tag}"', self._packed if packed else self._whole

    def text(self, tokens: int | None) -> tuple[str, bytes]:
        """Return the tag of the board as it is now and its compact text of at most so many tokens."""
        with self._lock:
            snapshot = self._take()
            if not self._text or tokens != self._tokens:
                warnings = missing(self.board)
                attention = self.board.attention()
                text = compact.board(json.loads(snapshot.text), attention, tokens=tokens, warnings=warnings)
                self._text, self._tokens = text.encode(), tokens
            return f'W/"{snapshot.tag}-text"', self._text

    def _take(self) -> Snapshot:
        """Return the board as it is now; what was made of an earlier one is forgotten."""
        snapshot = self.board.snapshot(self._snapshot)
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._whole = self._packed = self._text = b""
        return snapshot


class Call:
    """One request: its task, its fields and its parameters, each name one that the route knows."""

    __slots__ = ("api", "body", "head", "id", "query")

    def __init__(self, api: Api, head: Head, task: str, query: dict[str, Any], body: dict[str, Any]) -> None:
        self.api = api
        self.head = head
        self.id = task
        self.query = query
        self.body = body

    @property
    def board(self) -> Board:
        """The board."""
        return self.api.board

    def need(self, name: str) -> Any:
        """Return a field that must be there.

        Raises:
            InvalidInput: it is missing.
        """
        value = self.body.get(name)
        if value is None:
            raise InvalidInput(f"{name}: is missing", field=name)
        return value

    def given(self, *names: str) -> dict[str, Any]:
        """Return those of the fields that were given, but for those that are ``null``."""
        return {name: self.body[name] for name in names if self.body.get(name) is not None}

    def speaker(self) -> Actor | None:
        """Return who acts, if the request says so: whoever names an agent speaks as one."""
        agent, actor = self.body.get("agent"), self.body.get("actor")
        if agent is not None:
            agent = inputs.agent_name(agent, "agent")
        if actor is not None:
            return Actor(inputs.actor_name(actor, "actor"), HUMAN if agent is None else AGENT)
        return None if agent is None else Actor(agent, AGENT)

    def actor(self) -> Actor:
        """Return who acts: whoever the request names, else the person at the board."""
        return self.speaker() or self.api.person

    def wants_text(self) -> bool:
        """Say whether the answer is to be compact text.

        Raises:
            InvalidInput: it is not, and yet there is a budget for it.
        """
        if self.head.prefers_text():
            return True
        if "budget" in self.query:
            raise InvalidInput("budget: goes with compact text only", hint="Send `Accept: text/plain`.", field="budget")
        return False

    def answer(self, data: Any, warnings: list[str] | None = None, **more: Any) -> Response:
        """Return the envelope, with a warning where there is no board."""
        return envelope(data, [*(warnings or ()), *missing(self.board)], **more)

    def receipt(self, receipt: Receipt) -> Response:
        """Return the answer of a verb."""
        return self.answer(receipt.to_dict(), receipt.warnings)


# Reads


def health(call: Call) -> Response:
    """Say that the board can be read."""
    call.board.revision()
    told = {"status": "ok", "version": __version__, "read_only": call.api.read_only}
    return call.answer({**told, "data_dir": os.path.dirname(call.board.path)})


def board(call: Call) -> Response:
    """Return every task that a page shows, or nothing where the client has seen that."""
    packed = call.head.accepts_gzip()
    if call.wants_text():
        tag, body = call.api.text(call.query.get("budget"))
        kind, packed = TEXT, False
    else:
        tag, body = call.api.snapshot(packed=packed)
        kind = JSON
    headers = [("ETag", tag), ("Vary", "Accept, Accept-Encoding"), ("Cache-Control", "no-cache")]
    if call.head.has_seen(tag):
        return Response(304, b"", headers)
    return Response(200, body, [("Content-Type", kind), *headers, *([("Content-Encoding", "gzip")] if packed else [])])


_VARIES = ("Vary", "Accept")


def list_tasks(call: Call) -> Response:
    """Return a page of tasks."""
    if not call.wants_text():
        return call.answer(call.board.list_tasks(**call.query).to_dict(), headers=[_VARIES])
    if call.query.pop("full", False):
        raise InvalidInput(
            "full: compact text shows whole tasks one at a time", hint="Use GET /api/tasks/ID.", field="full"
        )
    tokens, limit = call.query.pop("budget", None), call.query.pop("limit", 100)
    attention = call.board.attention()
    text = compact.task_list(
        lambda count: call.board.list_tasks(limit=count, **call.query).to_dict(),
        limit,
        attention,
        tokens=tokens,
        warnings=missing(call.board),
    )
    return _plain(text)


def show(call: Call) -> Response:
    """Return a task with what belongs to it."""
    found = call.board.show(call.id)
    if not call.wants_text():
        return call.answer(found, headers=[_VARIES])
    return _plain(compact.details(found, call.board.attention(), tokens=call.query.get("budget")))


def _plain(text: str) -> Response:
    return Response(200, text.encode(), [("Content-Type", TEXT), _VARIES])


def events(call: Call) -> Response:
    """Return events, of one task or of all."""
    task = call.id or call.query.pop("task", None)
    return call.answer(call.board.events(task=task, **call.query))


def agents(call: Call) -> Response:
    """Return who holds what."""
    return call.answer({"agents": call.board.agents()})


def stats(call: Call) -> Response:
    """Return counts and how work flows."""
    return call.answer(call.board.stats(**call.query))


def schedules(call: Call) -> Response:
    """Return the schedules."""
    return call.answer({"schedules": call.board.schedules()})


# Writes


def add(call: Call) -> Response:
    """Add a task, and claim it where that is asked for."""
    fields = call.given(
        "body", "queue", "priority", "assignee", "due_at", "not_before", "tags", "params", "dedupe_key",
        "max_attempts", "needs_approval", "request_id", "claim", "agent", "lease",
    )  # fmt: skip
    if fields.get("claim") is True and "agent" not in fields and "assignee" in fields:
        fields["agent"] = fields["assignee"]
    receipt = call.board.add(
        call.need("title"),
        depends_on=call.body["blocked_by"] if call.body.get("blocked_by") is not None else (),
        actor=call.speaker() or (None if "agent" in fields else call.api.person),
        **fields,
    )
    return call.answer(
        receipt.to_dict(),
        receipt.warnings,
        status=201 if receipt.created else 200,
        headers=[("Location", f"/api/tasks/{receipt.task.id}")],
    )


def change(call: Call) -> Response:
    """Change fields of a task, or claim it, if it is still in the state expected."""
    if "status" in call.body:
        return _claim_by_patch(call)
    fields = dict(call.body)
    for name in ("agent", "actor"):
        fields.pop(name, None)
    for name in ("lease", "request_id"):
        if fields.pop(name, None) is not None:
            raise InvalidInput(f'{name}: goes with "status": "{CLAIMED}" only', field=name)
    if "blocked_by" in fields:
        fields["depends_on"] = fields.pop("blocked_by")
    return call.receipt(call.board.update(call.id, actor=call.actor(), **fields))


_CLAIM_BY_PATCH = ("status", "assignee", "agent", "actor", "if_status", "if_version", "comment", "lease", "request_id")


def _claim_by_patch(call: Call) -> Response:
    status = call.body["status"]
    if status != CLAIMED:
        verb = _VERBS.get(status) if isinstance(status, str) else None
        raise InvalidInput(
            f'status: only "{CLAIMED}" can be set here',
            hint=f"Use POST /api/tasks/ID/{verb}."
            if verb
            else "Every other status has a route of its own; see GET /api.",
            field="status",
        )
    for name in call.body:
        if name not in _CLAIM_BY_PATCH:
            raise InvalidInput(
                f'{name}: does not go with "status": "{CLAIMED}"', hint="Change it in a call of its own.", field=name
            )
    agent = call.body.get("agent")
    if agent is None:
        agent = call.body.get("assignee")
    if agent is None:
        raise InvalidInput("agent: who claims the task?", hint="Send `agent` or `assignee`.", field="agent")
    return _granted(call, agent, task=call.id, **call.given("if_version"))


_VERBS = {
    "queued": "release",
    "running": "heartbeat",
    "review": "complete",
    "done": "complete",
    "failed": "fail",
    "cancelled": "cancel",
}
"""The verb that leads to a status."""


def claim(call: Call) -> Response:
    """Claim one task."""
    return _granted(call, call.need("agent"), task=call.id)


def claim_next(call: Call) -> Response:
    """Claim the best task that is ready, or say why there is none."""
    chosen = call.given("queue", "tags")
    if "queue" in chosen:
        queue = chosen.pop("queue")
        chosen["queues"] = [queue] if isinstance(queue, str) else queue
    return _granted(call, call.need("agent"), **chosen)


def _granted(call: Call, agent: Any, **chosen: Any) -> Response:
    options = call.given("lease", "if_status", "comment", "request_id")
    grant = call.board.claim(agent, actor=call.speaker(), **chosen, **options)
    if grant is None:
        return call.answer(None, call.board.nothing_ready(agent, **chosen))
    return call.receipt(grant)


def resume(call: Call) -> Response:
    """Give the holder a new token."""
    return call.receipt(call.board.resume(call.id, call.need("agent"), actor=call.speaker(), **call.given("lease")))


def heartbeat(call: Call) -> Response:
    """Renew a lease."""
    return _under_lease(call, call.board.heartbeat, "lease", "progress", "note")


def release(call: Call) -> Response:
    """Give a task back."""
    return _under_lease(call, call.board.release, "after", "note")


def complete(call: Call) -> Response:
    """Hand in work."""
    return _under_lease(call, call.board.complete, "result", "artifacts", "note")


def fail(call: Call) -> Response:
    """Give up an attempt."""
    return _under_lease(call, call.board.fail, "retry_in", "no_retry", error=call.need("error"))


def handoff(call: Call) -> Response:
    """Pass a task on."""
    return _under_lease(call, call.board.handoff, "note", to=call.need("to"))


def _under_lease(call: Call, verb: Callable[..., Receipt], *names: str, **needed: Any) -> Response:
    return call.receipt(verb(call.id, call.need("token"), actor=call.speaker(), **needed, **call.given(*names)))


def approve(call: Call) -> Response:
    """Accept work in review."""
    return call.receipt(call.board.approve(call.id, actor=call.actor(), **call.given("note")))


def reject(call: Call) -> Response:
    """Send work in review back."""
    return call.receipt(call.board.reject(call.id, note=call.need("note"), actor=call.actor()))


def reassign(call: Call) -> Response:
    """Give a task to another agent, or to any."""
    to = None if "to" in call.body and call.body["to"] is None else call.need("to")
    return call.receipt(call.board.reassign(call.id, to, actor=call.actor(), **call.given("note")))


def retry(call: Call) -> Response:
    """Put an ended task back."""
    return call.receipt(call.board.retry(call.id, actor=call.actor()))


def cancel(call: Call) -> Response:
    """Call a task off."""
    return call.receipt(call.board.cancel(call.id, actor=call.actor(), **call.given("note")))


def comment(call: Call) -> Response:
    """Write a comment."""
    return call.answer({"event": call.board.comment(call.id, call.need("text"), actor=call.actor())})


def missing(board: Board) -> list[str]:
    """Return what to warn of where the latest call found no board: a wrong directory must not look like a quiet one."""
    return [f"there is no board at {board.path} yet"] if board.is_missing else []
