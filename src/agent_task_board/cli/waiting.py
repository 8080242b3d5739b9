"""The commands that wait for tasks, and that say why something does not happen."""

from __future__ import annotations

from ..errors import Empty, InvalidInput
from .command import Call, Command, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..model import Attention, Task
    from .parsing import Parser

LONGEST = "7d"
"""How long a wait without a limit lasts."""


def _wait_arguments(parser: Parser) -> None:
    parser.add_argument("ids", metavar="ID", nargs="*", help="the tasks to wait for: ids, or their ends or beginnings")
    parser.repeated(
        "--for",
        "STATUS",
        "wait for this status, or for one of several: done,failed (default: done, review, failed or cancelled); "
        "needs-you: until something needs a person",
    )
    parser.flag("--any", "wait until one of the tasks is there")
    parser.flag("--all", "wait until all of the tasks are there (default)")
    parser.option("--timeout", "LENGTH", f"wait this long at most (default: {LONGEST})")


def _wait(call: Call) -> Reply:
    from ..board import waiting

    args = call.args
    if args.any and args.all:
        raise InvalidInput("any: pass --any or --all, not both", field="any")
    statuses = [status.strip() for given in getattr(args, "for") for status in given.split(",") if status.strip()]
    limit = waiting.to_seconds(LONGEST if args.timeout is None else args.timeout, "timeout")
    if waiting.NEEDS_YOU in statuses:
        if args.ids or len(statuses) > 1:
            raise InvalidInput(f"for: {waiting.NEEDS_YOU} cannot be combined with statuses or tasks", field="for")
        needs = call.board.wait_for_person(wait=limit)
        if needs is None:
            raise Empty("the time is over: nothing needs a person")
        return Reply({"needs_you": needs}, page="needs", compact=_in_brief("needs-you", [], needs))
    waited = call.board.wait(args.ids, statuses, every=not args.any, wait=limit)
    if not waited.met:
        raise waited.refusal()
    return Reply(waited.to_dict(), page="tasks", compact=_in_brief("wait", waited.tasks, call.board.attention()))


def _in_brief(head: str, tasks: Sequence[Task], attention: Attention) -> Callable[[list[str]], str]:
    def in_brief(warnings: list[str]) -> str:
        from ..text import compact

        return compact.tasks(head, tasks, attention, warnings=warnings)

    return in_brief


def _why_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", help="the task (default: all unfinished tasks)")


def _why(call: Call) -> Reply:
    if call.args.id is None:
        every = call.board.why_nothing()
        return Reply({"why": every}, page="why_nothing", compact=_why_in_brief([every["text"]], every["reasons"]))
    found = call.board.why(call.args.id)
    return Reply(found, page="why", compact=_why_in_brief([], [{**found["why"], "first": found["task"]}]))


def _why_in_brief(head: list[str], reasons: Sequence[Mapping[str, Any]]) -> Callable[[list[str]], str]:
    def in_brief(warnings: list[str]) -> str:
        from ..text import compact

        return compact.reasons(head, reasons, warnings=warnings)

    return in_brief


COMMANDS = {
    "why": Command(
        _why,
        _why_arguments,
        "Say why a task is not being worked on, or why nothing is.",
        "`data` is {task, why}. `why` is {reason, text, change, chain}: one leading reason, what would change it,\n"
        "and the tasks that it waits for, one behind the other, at most 10. Without ID, `data.why` is\n"
        "{text, reasons}: for each reason the number of unfinished tasks and the first of them.",
        ("atb why 9F3K2A", "atb why"),
        reads=True,
    ),
    "wait": Command(
        _wait,
        _wait_arguments,
        "Wait until tasks reach a status, or until something needs a person.",
        "`data` is {tasks, met}, the tasks as they are now, or with --for needs-you {needs_you}: what needs a\n"
        "person, by reason. The wait costs next to nothing, and holds no lock. If the time is over, or the tasks\n"
        "can no longer get there, it is refused with `empty` (exit 9); `details.tasks` has their states.",
        (
            "atb wait 9F3K2A 7QX1ZB --for done --timeout 30m",
            "atb wait 9F3K2A 7QX1ZB --any",
            "atb wait --for needs-you --timeout 1h",
        ),
    ),
}
