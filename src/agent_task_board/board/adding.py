"""Add a task; ``insert`` is for everything else that creates tasks."""

from __future__ import annotations

from .. import identity, inputs, instants
from ..errors import Conflict, InvalidInput
from ..model import AGENT, Receipt
from . import dependencies, fields, refusals, stuck
from .claiming import claim_again, grant, lease_length, lease_of
from .core import as_agent, request_digest
from .history import changes
from .rows import COLUMNS, to_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..identity import Actor
    from ..model import Lease, Task, TaskRow
    from ..storage.db import Row
    from .core import Core, Transaction

LINES = 1_000
"""Tasks that one call of ``add_lines`` adds, at most."""
ID_ATTEMPTS = 10
"""How many new ids are tried before failing: two processes can generate the same one."""


def add(
    core: Core,
    given: dict[str, Any],
    *,
    depends_on: Sequence[str],
    request_id: str | None,
    claim: bool,
    agent: str | None,
    lease: str | float | None,
    actor: Actor | None,
) -> Receipt:
    """Do what ``Board.add`` promises; ``given`` has every field that can be set there."""
    if not inputs.boolean(claim, "claim") and lease is not None:
        raise InvalidInput("lease: requires `claim`", field="lease")
    given = {**given, "assignee": core.named(given["assignee"], actor, agent)}
    by, claimer = _who(core, agent, actor, given["assignee"] if claim else None)
    if claim and claimer is None:
        raise InvalidInput("agent: required to claim the task", hint="Give the agent's name.", field="agent")
    length = lease_length(core, lease)
    request_id = inputs.key(request_id, "request_id")
    columns = fields.stored(given, fields.Context(core.settings, core.clock()))
    depends_on = inputs.references(depends_on, fields.DEPENDS_ON)
    arguments = ""
    if request_id is not None:
        # A relative instant is the same argument whenever the call is repeated.
        written = {
            name: given[name].strip().lower() for name in fields.INSTANTS if instants.is_relative(given.get(name))
        }
        claimed_with = [inputs.name_key(claimer or ""), length] if claim else None
        asked = {**columns, **written, "params": given["params"] or {}}
        arguments = request_digest("add", [asked, depends_on, claimed_with])
    with core.write(by) as tx:
        earlier = tx.earlier_request(request_id, arguments)
        if earlier is not None:
            return _add_again(core, tx, earlier, claimer, None if lease is None else length)
        row, created = insert(core, tx, columns)
        if not created:
            if claim:
                raise refusals.key_conflict(columns["dedupe_key"], row)
            tx.remember_request(request_id, arguments, task_seq=row["seq"], attempt=None, created=False)
            warning = f"task {row['id']} already has dedupe key {columns['dedupe_key']!r}; no task was added"
            return Receipt(to_task(row, tx.now), created=False, warnings=[warning])
        sentences = dependencies.add(tx, row, dependencies.find_all(tx, depends_on))
        if sentences:
            stuck.settle(tx, row["seq"])
        row = tx.task(row["seq"])
        tx.record(row, "created", changes(None, row))
        number, granted = None, None
        if claim and claimer is not None:
            row, number, granted = _claim_at_once(core, tx, row, claimer, length)
        tx.remember_request(request_id, arguments, task_seq=row["seq"], attempt=number, created=True)
        return Receipt(to_task(row, tx.now), created=True, lease=granted, warnings=[*sentences, *tx.warnings])


def add_lines(
    core: Core, text: str, given: dict[str, Any], *, depends_on: Sequence[str], agent: str | None, actor: Actor | None
) -> tuple[list[Task], list[str]]:
    """Do what ``Board.add_lines`` promises; ``given`` holds every field that may be set, but for the title."""
    by, _ = _who(core, agent, actor, None)
    titles = [
        inputs.title(line, f"line {number}")
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not titles:
        raise InvalidInput("lines: no task in them", hint="Write one title a line.", field="lines")
    inputs.at_most(len(titles), "lines", LINES)
    depends_on = inputs.references(depends_on, fields.DEPENDS_ON)
    context = fields.Context(core.settings, core.clock())
    shared = fields.stored({name: value for name, value in given.items() if name != "title"}, context)
    added, sentences = [], []
    with core.write(by) as tx:
        others = dependencies.find_all(tx, depends_on)
        for title in titles:
            row, _ = insert(core, tx, {**shared, "title": title})
            sentences += dependencies.add(tx, row, others)
            if others:
                stuck.settle(tx, row["seq"])
            row = tx.task(row["seq"])
            tx.record(row, "created", changes(None, row))
            added.append(to_task(row, tx.now))
    return added, [*sentences, *tx.warnings]


def _who(core: Core, agent: str | None, actor: Actor | None, assignee: str | None) -> tuple[Actor, str | None]:
    """Return who adds a task, and which agent may claim it: the one named, else the caller, else the assignee.

    An agent acts for itself; a name given for the history is then that of an agent.
    """
    by = core.caller(actor)
    if agent is not None:
        agent = inputs.agent_name(agent, "agent")
    elif by.kind == AGENT:
        return by, by.name
    else:
        agent = inputs.assignee(assignee, "assignee")
    if agent is None:
        return by, None
    return as_agent(by) if actor else identity.Actor(agent, AGENT), agent


def insert(core: Core, tx: Transaction, columns: dict[str, Any]) -> tuple[TaskRow, bool]:
    """Insert a task with a new id; return it and ``True``, or the holder of its dedupe key and ``False``.

    ``columns`` is the result of ``fields.stored``, for an occurrence with ``schedule_id`` and ``occurrence_at``. The
    caller records the event.
    """
    holder = key_holder(tx, columns["dedupe_key"])
    if holder is not None:
        return holder, False
    assignee = tx.assignee(columns["assignee"])
    tx.by.name = tx.canonical_name(tx.by.name)  # if the actor is the new assignee, with the same spelling
    values = {"schedule_id": None, "occurrence_at": None, **columns}
    values |= {"assignee": assignee, "now": tx.now, "by": tx.by.name}
    for _ in range(ID_ATTEMPTS):
        rows = tx.tasks(
            f"""
            INSERT INTO task (id, title, body, queue, priority, assignee, due_at, not_before, delayed, tags,
                              params, dedupe_key, max_attempts, max_runtime, needs_approval, schedule_id, occurrence_at,
                              created_by, created_at, updated_at)
            VALUES (:id, :title, :body, :queue, :priority, :assignee, :due_at, :not_before,
                    coalesce(:not_before > :now, 0), :tags, :params, :dedupe_key, :max_attempts,
                    :max_runtime, :needs_approval, :schedule_id, :occurrence_at, :by, :now, :now)
                ON CONFLICT (id) DO NOTHING
            RETURNING {COLUMNS}
            """,
            {**values, "id": core.new_id()},
        )
        if rows:
            return rows[0], True
    raise RuntimeError(f"all {ID_ATTEMPTS} new task ids exist already")


def key_holder(tx: Transaction, key: str | None) -> TaskRow | None:
    """Return the unfinished task that has a dedupe key, if any."""
    rows = tx.tasks(
        f"""
        SELECT {COLUMNS} FROM task
         WHERE dedupe_key = ? AND dedupe_key IS NOT NULL AND status NOT IN ('done', 'failed', 'cancelled')
        """,
        (key,),
    )
    return rows[0] if rows else None


def _claim_at_once(core: Core, tx: Transaction, row: TaskRow, agent: str, length: int) -> tuple[TaskRow, int, Lease]:
    """Claim the task just inserted; return its row, attempt number and lease."""
    values = {"seq": row["seq"], "agent": tx.canonical_name(agent)}
    claimed = grant(core, tx, "seq = :seq", values, length, as_agent(tx.by))
    if claimed is None:
        reason, what = refusals.obstacle(row, values["agent"])
        raise Conflict(
            f"cannot claim the new task: it {what}",
            hint="Add it without claiming it.",
            reason=reason,
        )
    row, number, token = claimed
    return row, number, lease_of(row, token)


def _add_again(core: Core, tx: Transaction, earlier: Row, agent: str | None, length: int | None) -> Receipt:
    """Answer a repeated add; one that claimed gets a new token for its lease."""
    created = bool(earlier["created"])
    if earlier["attempt"] is not None and agent is not None:
        receipt = claim_again(core, tx, earlier, tx.canonical_name(agent), length, as_agent(tx.by))
        receipt.created = created
        return receipt
    return Receipt(to_task(tx.task(earlier["task_seq"]), tx.now), created=created, replayed=True)
