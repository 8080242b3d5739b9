"""One verb on one task, or on several: each its own transaction."""

from __future__ import annotations

from ..errors import BoardError
from .command import Call, Reply
from .leases import receipt_reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..model import Receipt


def for_each(call: Call, do: Callable[[str], Receipt], past: str) -> Reply:
    """Return the answer of a verb on the tasks of a call; ``past`` is its past tense, as compact text prints it.

    One task alone answers as every verb does. Of several, a refusal of one does not keep the others from being done.
    """
    ids: list[str] = call.args.ids
    if len(ids) == 1:
        return receipt_reply(call, do(ids[0]), past)
    results: list[dict[str, Any]] = []
    answers: list[Receipt | BoardError] = []
    for one in ids:
        try:
            receipt = do(one)
        except BoardError as error:
            answers.append(error)
            results.append({"id": one, "ok": False, "error": error.to_dict()})
        else:
            answers.append(receipt)
            call.warn(*receipt.warnings)
            results.append({"id": receipt.task.id, "ok": True, "task": receipt.task.to_dict()})

    def in_brief(warnings: list[str]) -> str:
        from ..text import compact

        texts = [
            compact.refusal(one) if isinstance(one, BoardError) else compact.receipt(one, past, warnings=[])
            for one in answers
        ]
        return "".join([*texts, *(f"{line}\n" for line in compact.notes(warnings))])

    refusals = [one for one in answers if isinstance(one, BoardError)]
    return Reply({"results": results}, page="results", compact=in_brief, error=refusals[0] if refusals else None)
