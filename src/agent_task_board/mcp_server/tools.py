"""What each tool does: read the arguments, call the service once, answer with one text."""

from __future__ import annotations

from .. import exhaustion, inputs
from ..board import fields, waiting
from ..errors import BoardError, Conflict, InvalidInput, NotFound, NotPermitted
from ..hooks.delivery import deliver_soon
from ..identity import Actor
from ..instants import SECOND, parse_length
from ..model import AGENT
from ..text import compact
from . import arguments, neighbours
from .definitions import LIST_TOKENS, PAGE, TASK_TOKENS, TOOLS, WAIT_DEFAULT, WAIT_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..board.queries import TaskPage
    from ..model import Receipt
    from ..service import Board
    from .definitions import Tool

    Arguments = dict[str, Any]

_ARGUMENT_NAMES = {"id": "task_id"}
"""Fields of the service whose argument has another name."""
HELD_BY_ANOTHER = "If you claimed it under another name, for example before a restart, pass that name as agent. \
Otherwise choose another task."
"""The hint of ``resume_task`` if another agent holds the task."""


class Answer:
    """The text of a tool's answer, and whether it is a refusal."""

    __slots__ = ("is_refusal", "text")

    def __init__(self, text: str, *, is_refusal: bool = False) -> None:
        self.text = text
        self.is_refusal = is_refusal


class Tools:
    """The tools over one board; safe to call from several threads.

    Args:
        board: the board.
        agent: returns the agent of the current request; it acts if the call names no other.
        pause: sleeps for some seconds in a call that waits; true if the client has cancelled the call. By default, no
            call waits.
        read_only: offer only read-only tools.
        report: receives each unexpected exception; the answer has no traceback.
    """

    def __init__(
        self,
        board: Board,
        agent: Callable[[], str],
        *,
        pause: Callable[[float], bool] = waiting.at_once,
        read_only: bool = False,
        report: Callable[[Exception], object] = repr,
    ) -> None:
        self.board = board
        self._agent = agent
        self._pause = pause
        self._read_only = read_only
        self._report = report
        self._board_existed = False
        self._creation_reported = board.created

    def offered(self) -> list[Tool]:
        """Return the tools that may be called."""
        return [tool for tool in TOOLS.values() if tool.reads or not self._read_only]

    def waits(self, name: str, given: Arguments) -> bool:
        """Say whether a call waits for something to happen."""
        return name == "wait" or (name == "claim_task" and bool(given.get("wait")))

    def call(self, name: str, given: Arguments) -> Answer:
        """Call a tool; a refusal is an answer, too."""
        try:
            return Answer(self._call(name, given))
        except BoardError as error:
            return refusal(exhaustion.refusal(error) or self._with_missing_board(error))
        except Exception as error:
            known = exhaustion.refusal(error)
            if known is None:
                self._report(error)
                known = BoardError(f"{type(error).__name__}: {error}")
            return refusal(known)

    def _call(self, name: str, given: Arguments) -> str:
        tool = TOOLS.get(name)
        if tool is None:
            raise InvalidInput(
                f"there is no tool {name[:60]!r}", hint=neighbours.hint(name, [one.name for one in self.offered()])
            )
        if self._read_only and not tool.reads:
            raise NotPermitted(
                f"{name}: this server is read-only", hint="A server started without --read-only has this tool."
            )
        self._board_existed = self._board_existed or self.board.exists()
        context = fields.Context(self.board.settings, self.board.clock())
        found = arguments.read(tool, given, context)
        if "agent" in found:
            found["agent"] = inputs.agent_name(found["agent"], "agent")
        text = _TOOLS[name](self, found)
        if self.board.has_pending_hooks:
            deliver_soon(self.board)
        return text

    def missing(self) -> list[str]:
        """Return a warning if there is no board: a wrong directory must not look like an empty queue."""
        if not self.board.is_missing:
            return []
        return [f"there is no board at {self.board.path} {'any more' if self._board_existed else 'yet'}"]

    def _with_missing_board(self, error: BoardError) -> BoardError:
        """Return a refusal; if the board no longer exists, its message and hint say so."""
        if isinstance(error, NotFound) and self.board.is_missing:
            error.message = self.missing()[0]
            error.hint = (
                "Nothing was changed. Restore the data directory, or restart this server to create a new board."
            )
        return error

    # The tools

    def _create(self, found: Arguments) -> str:
        agent = found.pop("agent", None) or self._agent()
        receipt = self.board.add(
            found.pop("title"), agent=agent if found.get("claim") else None, actor=Actor(agent, AGENT), **found
        )
        warnings = list(receipt.warnings)
        if self.board.created and not self._creation_reported:
            warnings.append(f"created a board at {self.board.path}")
            self._creation_reported = True
        return compact.receipt(receipt, "created", warnings=warnings)

    def _claim(self, found: Arguments) -> str:
        agent = found.pop("agent", None) or self._agent()
        filters = {"queues": found.pop("queue", ()), "tags": found.pop("tags", ())}
        grant = None
        found["task"] = found.pop("task_id", None)
        wait = _seconds(found.pop("wait", None), "wait", 0)
        if wait:
            grant = waiting.claim(self.board, agent, seconds=wait, pause=self._pause, **filters, **found)
        if grant is None and (not wait or found["task"]):  # the refusal says why one task was not ready
            grant = self.board.claim(agent, **filters, **found)
        if grant is None:
            return compact.nothing([*self.board.nothing_ready(agent, **filters), *self.missing()])
        return compact.receipt(grant, "claimed")

    def _resume(self, found: Arguments) -> str:
        try:
            receipt = self.board.resume(found["task_id"], found.get("agent") or self._agent())
        except Conflict as error:
            if error.details.get("reason") == "assigned":
                error.hint = HELD_BY_ANOTHER
            raise
        return compact.receipt(receipt, "resumed")

    def _under_lease(self, verb: Callable[..., Receipt], found: Arguments, outcome: str, *required: str) -> str:
        """Call a verb that needs a lease; the actor is the holder of the token, unless the call names an agent."""
        agent = found.pop("agent", None)
        values = [found.pop(name) for name in ("task_id", "token", *required)]
        return compact.receipt(verb(*values, actor=Actor(agent, AGENT) if agent else None, **found), outcome)

    def _heartbeat(self, found: Arguments) -> str:
        return self._under_lease(self.board.heartbeat, found, "renewed")

    def _complete(self, found: Arguments) -> str:
        return self._under_lease(self.board.complete, found, "completed")

    def _fail(self, found: Arguments) -> str:
        return self._under_lease(self.board.fail, found, "failed", "error")

    def _release(self, found: Arguments) -> str:
        return self._under_lease(self.board.release, found, "released")

    def _handoff(self, found: Arguments) -> str:
        return self._under_lease(self.board.handoff, found, "handed_off", "to")

    def _list(self, found: Arguments) -> str:
        agent = found.pop("agent", None) or self._agent()
        limit = found.pop("limit", PAGE)

        def pages(count: int) -> TaskPage:
            return self.board.list_tasks(limit=count, hide_finished=True, agent=agent, **found)

        attention = self.board.attention()
        return compact.task_list(pages, limit, attention, tokens=LIST_TOKENS, warnings=self.missing())

    def _get(self, found: Arguments) -> str:
        details = self.board.show(found["task_id"], why=True)
        return compact.details(details, self.board.attention(), tokens=TASK_TOKENS)

    def _wait(self, found: Arguments) -> str:
        seconds = _seconds(found.get("timeout"), "timeout", WAIT_DEFAULT)
        waited = waiting.wait(
            self.board, found["task_ids"], found.get("status", ()), seconds=seconds, pause=self._pause
        )
        if not waited.met:
            raise waited.refusal()
        return compact.tasks("wait", waited.tasks, self.board.attention())

    def _why(self, found: Arguments) -> str:
        if "task_id" not in found:
            every = self.board.why_nothing()
            return compact.reasons([every["text"]], every["reasons"])
        answer = self.board.why(found["task_id"])
        return compact.reasons([], [{**answer["why"], "first": answer["task"]}])

    def _update(self, found: Arguments) -> str:
        actor = self._actor(found)
        found.pop("agent", None)
        added = found.pop(fields.DEPENDS_ON, ())
        task = found.pop("task_id")
        return compact.receipt(
            self.board.update(task, add_depends_on=added, own_only=True, actor=actor, **found), "updated"
        )

    def _comment(self, found: Arguments) -> str:
        return compact.commented(self.board.comment(found["task_id"], found["text"], actor=self._actor(found)))

    def _cancel(self, found: Arguments) -> str:
        return compact.receipt(
            self.board.cancel(found["task_id"], note=found.get("note"), actor=self._actor(found)), "cancelled"
        )

    def _actor(self, found: Arguments) -> Actor:
        return Actor(found.get("agent") or self._agent(), AGENT)


_TOOLS: dict[str, Callable[[Tools, Arguments], str]] = {
    "create_task": Tools._create,
    "claim_task": Tools._claim,
    "resume_task": Tools._resume,
    "heartbeat": Tools._heartbeat,
    "complete_task": Tools._complete,
    "fail_task": Tools._fail,
    "release_task": Tools._release,
    "handoff_task": Tools._handoff,
    "list_tasks": Tools._list,
    "get_task": Tools._get,
    "wait": Tools._wait,
    "why": Tools._why,
    "update_task": Tools._update,
    "add_comment": Tools._comment,
    "cancel_task": Tools._cancel,
}


def _seconds(value: Any, field: str, default: int) -> float:
    """Return the seconds that a call waits.

    Raises:
        InvalidInput: not a duration, or more than the server allows.
    """
    if value is None:
        return default
    return parse_length(value, field=field, high=WAIT_LIMIT * SECOND) / SECOND


def refusal(error: BoardError) -> Answer:
    """Return a refusal as an answer that names the arguments as the tools do."""
    field = error.details.get("field")
    if field in _ARGUMENT_NAMES:
        error.details["field"] = _ARGUMENT_NAMES[field]
        error.message = error.message.replace(f"{field}:", f"{_ARGUMENT_NAMES[field]}:", 1)
    return Answer(compact.refusal(error), is_refusal=True)
