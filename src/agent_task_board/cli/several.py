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

SEVERAL = (
    'With several ids, each task is changed on its own: `data` is {"results": [{"id", "ok", "task" or\n'
    '"error"}]} in their order, and the exit code is that of the first refusal.'
)
"""What the help of such a verb says."""


def for_each(call: Call, verb: Callable[[str], Receipt], done: str) -> Reply:
    """Call a verb for each id given; one id alone is answered as by any other verb.

    ``done`` is the past tense of the verb, as compact text prints it. A refusal does not keep the following tasks from
    being tried.
    """
    given: list[str] = call.args.ids
    if len(given) == 1:
        return receipt_reply(call, verb(given[0]), done)
    results: list[dict[str, Any]] = []
    answers: list[Receipt | BoardError] = []
    warnings: list[str] = []
    for task in given:
        try:
            receipt = verb(task)
        except BoardError as error:
            answers.append(error)
            results.append({"id": task, "ok": False, "error": error.to_dict()})
        else:
            answers.append(receipt)
            warnings += [f"{task}: {warning}" for warning in receipt.warnings]
            results.append({"id": task, "ok": True, **receipt.to_dict()})

    def in_brief(warnings: list[str]) -> str:
        from ..text import compact

        texts = [
            compact.refusal(one) if isinstance(one, BoardError) else compact.receipt(one, done, warnings=[])
            for one in answers
        ]
        return compact.several(texts, warnings)

    refusals = [one for one in answers if isinstance(one, BoardError)]
    first = refusals[0] if refusals else None
    return Reply({"results": results}, page="results", warnings=warnings, compact=in_brief, error=first)
