"""Finish a queued task in one call: for something small that was done without claiming it first."""

from __future__ import annotations

from .. import identity, inputs
from ..errors import Conflict
from ..model import AGENT, CLAIMED, QUEUED, Receipt
from . import refusals
from .core import as_agent
from .expiry import sweep
from .history import changes
from .predicates import IS_CLAIMABLE_BY, IS_DUE, IS_PROMOTED
from .refusals import shown
from .review import IS_PERSON, is_person
from .rows import to_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..identity import Actor
    from ..model import TaskRow
    from .core import Core, Transaction

MAY_FINISH = f"""(
    (:agent IS NULL AND status = 'queued' AND {IS_PERSON})
    OR (:agent IS NOT NULL AND {IS_PROMOTED} AND {IS_DUE} AND {IS_CLAIMABLE_BY}))"""
"""SQL: the guard. An agent (``:agent``) finishes what it could claim, a person (``:actor``) whatever is queued."""

FINISHED = """
    status = iif(needs_approval AND :agent IS NOT NULL, 'review', 'done'),
    finished_at = iif(needs_approval AND :agent IS NOT NULL, NULL, :now),
    claimed_by = :agent, claimed_at = iif(:agent IS NULL, NULL, :now),
    result = :result, artifacts = :artifacts, error = NULL,
    attempts = attempts + 1, fence = fence + 1, delayed = 0, stuck = 0"""
"""SQL: what a claim and a complete set. A person becomes no holder."""


def done(
    core: Core,
    task: str,
    *,
    result: Any,
    artifacts: Sequence[str],
    note: str | None,
    agent: str | None,
    actor: Actor | None,
) -> Receipt:
    """Do what ``Board.done`` promises."""
    stored = None if result is None else inputs.json_text(result, "result")
    files = inputs.json_text(inputs.artifacts(artifacts), "artifacts")
    note = inputs.note(note)
    by, agent = _who(core, agent, actor)
    with core.write(by) as tx:
        row = tx.find(task)
        sweep(tx, first="seq = :seq", values={"seq": row["seq"]})
        before = tx.task(row["seq"])
        if agent is None and not is_person(tx, before):
            agent, tx.by = tx.by.name, as_agent(tx.by)
        name = None if agent is None else tx.canonical_name(agent)
        values = {"agent": name, "actor": tx.by.name, "result": stored, "artifacts": files}
        after = tx.change(before, FINISHED, where=MAY_FINISH, values=values)
        if after is not None:
            _record(tx, before, after, name or tx.by.name, stored, note)
    # Outside the transaction: what the sweep did stays done even if the call is refused.
    if after is None:
        raise _refusal(before, name)
    return Receipt(to_task(after, tx.now), warnings=[*([] if name else _passed_over(before, tx.now)), *tx.warnings])


def _who(core: Core, agent: str | None, actor: Actor | None) -> tuple[Actor, str | None]:
    """Return who acts, and the agent as which it does: the one named, else a caller that says that it is one."""
    by = core.caller(actor)
    if agent is None:
        return by, by.name if by.kind == AGENT else None
    agent = inputs.agent_name(agent, "agent")
    return as_agent(by) if actor else identity.Actor(agent, AGENT), agent


def _record(tx: Transaction, before: TaskRow, after: TaskRow, who: str, result: str | None, note: str | None) -> None:
    """Record the attempt, and its claim and its end as two events."""
    number = tx.begin_attempt(after, who)
    tx.end_attempt(after, "completed", result=result, note=note)
    between = {**after, "status": CLAIMED, "result": before["result"], "artifacts": before["artifacts"]}
    tx.execute("UPDATE board SET revision = revision + 1")  # it grows with every event, and this one row has two
    tx.record(between, "claimed", {**changes(before, between), "attempt": number})
    tx.record(after, "completed", {**changes(between, after), "attempt": number, "note": note})


def _refusal(row: TaskRow, agent: str | None) -> Conflict:
    if row["status"] != QUEUED or agent is None:
        return refusals.status_conflict(row, [QUEUED])
    reason, what = refusals.obstacle(row, agent)
    return Conflict(f"task {row['id']} {what}", reason=reason, actual=refusals.actual(row))


def _passed_over(row: TaskRow, now: str) -> list[str]:
    """Say what would have kept an agent from the task."""
    said = []
    if row["open_dependencies"]:
        said.append(f"the task still waited for other tasks ({row['open_dependencies']} not done)")
    if row["not_before"] is not None and row["not_before"] > now:
        said.append(f"the task was not to be started before {row['not_before']}")
    if row["assignee"] is not None:
        said.append(f"the task was assigned to {shown(row['assignee'])}")
    return said
