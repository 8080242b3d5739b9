"""Verbs that take several tasks: each in a transaction of its own, one answer for all."""

from __future__ import annotations

from ..errors import BoardError
from .command import Call, Reply
from .leases import receipt_reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..model import Receipt
    from .parsing import Parser

SEVERAL = (
    'With several ids, each task is changed on its own: `data` is {"results": [{"id", "ok", "task" or\n'
    '"error"}]} in their order, and the exit code is that of the first refusal.'
)
"""What the help of such a verb says."""


def ids(parser: Parser) -> None:
    """Add the ids of one or more tasks."""
    parser.add_argument(
        "ids", metavar="ID", nargs="+", help="the task: its id, or at least the last 4 characters of it (repeatable)"
    )


def for_each(call: Call, verb: Callable[[str], Receipt], done: str) -> Reply:
    """Call a verb for each id given; one id alone is answered as by any other verb.

    ``done`` is the past tense of the verb, as compact text prints it. A refusal does not keep the following tasks from
    being tried.
    """
    given: list[str] = call.args.ids
    if len(given) == 1:
        return receipt_reply(call, verb(given[0]), done)
    results: list[dict[str, Any]] = []
    warnings: list[str] = []
    refusals: list[BoardError] = []
    for task in given:
        try:
            receipt = verb(task)
        except BoardError as error:
            refusals.append(error)
            results.append({"id": task, "ok": False, "error": error.to_dict()})
        else:
            warnings += [f"{task}: {warning}" for warning in receipt.warnings]
            results.append({"id": task, "ok": True, **receipt.to_dict()})
    exit_code = refusals[0].exit_code if refusals else 0
    return Reply({"results": results}, page="results", warnings=warnings, exit_code=exit_code)
