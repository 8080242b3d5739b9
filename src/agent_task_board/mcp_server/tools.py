"""What each tool does: read its arguments, make one call of the service, answer one text."""

from __future__ import annotations

from .. import inputs
from ..errors import BoardError, Conflict, InvalidInput, NotFound, NotPermitted
from ..hooks.delivery import deliver_soon
from ..identity import Actor
from ..model import AGENT
from ..text import compact
from . import arguments
from .definitions import LIST_TOKENS, PAGE, TASK_TOKENS, TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..board.queries import TaskPage
    from ..model import Receipt
    from ..service import Board
    from .definitions import Tool

    Arguments = dict[str, Any]

_NAMED_HERE = {"id": "task_id"}
"""Fields that the service names otherwise than the arguments of tools."""
HELD_BEFORE = "If you claimed it under another name, as before a restart, pass that name as agent; else choose another."
"""What to do about a task that one cannot resume since somebody else holds it."""
HINTS = {
    "Run `atb tick` once: it brings the board up to date.": "Any tool that writes brings it up to date, as claim_task.",
}
"""Hints that the service words for the command line, as they read here."""


class Answer:
    """The text that a tool answers, and whether it is a refusal."""

    __slots__ = ("refused", "text")

    def __init__(self, text: str, *, refused: bool = False) -> None:
        self.text = text
        self.refused = refused


class Tools:
    """The tools over one board; safe to call from several threads.

    Args:
        board: the board.
        agent: who acts where a call names nobody; a function, since the client tells its name only later.
        read_only: offer only what reads.
        report: takes a fault of our own, which the answer names without its traceback.
    """

    def __init__(
        self,
        board: Board,
        agent: Callable[[], str],
        *,
        read_only: bool = False,
        report: Callable[[Exception], object] = repr,
    ) -> None:
        self.board = board
        self._agent = agent
        self._read_only = read_only
        self._report = report
        self._was_there = False
        self._has_told = board.created

    def offered(self) -> list[Tool]:
        """Return the tools that may be called."""
        return [tool for tool in TOOLS.values() if tool.reads or not self._read_only]

    def call(self, name: str, given: Arguments) -> Answer:
        """Call a tool; every refusal is an answer."""
        try:
            return Answer(self._call(name, given))
        except BoardError as error:
            return refused(self._explained(error))
        except Exception as error:
            self._report(error)
            return refused(BoardError(f"{type(error).__name__}: {error}"))

    def _call(self, name: str, given: Arguments) -> str:
        tool = TOOLS.get(name)
        if tool is None:
            raise InvalidInput(
                f"there is no tool {name[:60]!r}", hint=arguments.nearest(name, [one.name for one in self.offered()])
            )
        if self._read_only and not tool.reads:
            raise NotPermitted(
                f"{name}: this server only reads", hint="A server started without --read-only offers it."
            )
        self._was_there = self._was_there or self.board.exists()
        found = arguments.read(tool, given)
        if "agent" in found:
            found["agent"] = inputs.agent_name(found["agent"], "agent")
        text = _TOOLS[name](self, found)
        if self.board.has_pending_hooks:
            deliver_soon(self.board)
        return text

    def missing(self) -> list[str]:
        """Return what to warn of where there is no board: a wrong directory must not look like an empty queue."""
        if not self.board.is_missing:
            return []
        return [f"there is no board at {self.board.path} {'any more' if self._was_there else 'yet'}"]

    def _explained(self, error: BoardError) -> BoardError:
        """Return a refusal with what to do where the board has vanished."""
        if isinstance(error, NotFound) and self.board.is_missing:
            error.message = self.missing()[0]
            error.hint = "Nothing was changed. Put the board back, or start this server again: it makes a new one."
        return error

    # The tools

    def _create(self, found: Arguments) -> str:
        agent = found.pop("agent", None) or self._agent()
        receipt = self.board.add(
            found.pop("title"), agent=agent if found.get("claim") else None, actor=Actor(agent, AGENT), **found
        )
        made = [f"made a new board at {self.board.path}"] if self.board.created and not self._has_told else []
        self._has_told = self._has_told or bool(made)
        return compact.receipt(receipt, "created", warnings=[*receipt.warnings, *made])

    def _claim(self, found: Arguments) -> str:
        agent = found.pop("agent", None) or self._agent()
        chosen = {"queues": found.pop("queue", ()), "tags": found.pop("tags", ())}
        grant = self.board.claim(agent, task=found.pop("task_id", None), **chosen, **found)
        if grant is None:
            return compact.nothing([*self.board.nothing_ready(agent, **chosen), *self.missing()])
        return compact.receipt(grant, "claimed")

    def _resume(self, found: Arguments) -> str:
        try:
            receipt = self.board.resume(found["task_id"], found.get("agent") or self._agent())
        except Conflict as error:
            if error.details.get("reason") == "assigned":
                error.hint = HELD_BEFORE
            raise
        return compact.receipt(receipt, "resumed")

    def _under_lease(self, verb: Callable[..., Receipt], found: Arguments, done: str, *needed: str) -> str:
        """Call a verb of a holder; whoever has the token acts as the holder, unless the call names another."""
        agent = found.pop("agent", None)
        words = [found.pop(name) for name in ("task_id", "token", *needed)]
        return compact.receipt(verb(*words, actor=Actor(agent, AGENT) if agent else None, **found), done)

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
        details = self.board.show(found["task_id"])
        return compact.details(details, self.board.attention(), tokens=TASK_TOKENS)

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
    "add_comment": Tools._comment,
    "cancel_task": Tools._cancel,
}


def refused(error: BoardError) -> Answer:
    """Return a refusal that names arguments and tools as clients know them."""
    field = error.details.get("field")
    if field in _NAMED_HERE:
        error.details["field"] = _NAMED_HERE[field]
        error.message = error.message.replace(f"{field}:", f"{_NAMED_HERE[field]}:", 1)
    error.hint = HINTS.get(error.hint, error.hint)
    return Answer(compact.refusal(error), refused=True)
