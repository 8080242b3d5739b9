"""What an agent must know when it starts, or after its context was cut: as data, and as short text."""

from __future__ import annotations

import os

from .. import inputs, instants
from ..board.attention import attention
from ..board.predicates import IS_BLOCKED, IS_CLAIMABLE_BY, IS_DUE, IS_LEASED, IS_PROMOTED, IS_UNBLOCKED
from ..board.rows import LEAN_COLUMNS, LEAN_NAMES, to_task
from ..model import FRAMING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypedDict

    from ..board.core import Core, Transaction
    from ..model import Attention, Waiting

    class Some(TypedDict):
        """The number of tasks of a kind (counted up to ``COUNTED``), and the first of them."""

        count: int
        tasks: list[dict[str, Any]]

    class Briefing(TypedDict):
        """The agent, the tasks that it holds and lost, tasks that are ready, and how to work."""

        agent: str | None
        board: str
        exists: bool
        holds: Some
        lost: Waiting
        ready: Some
        assigned: dict[str, int]
        attention: Attention
        command: str
        protocol: list[str]


LIMIT = 2_000
"""The most characters of the text."""
HOLDS = 5
BEST = 3
COUNTED = 1_000
"""The highest count: a large board must not cost more than a small one."""
LOOKED_AT = 10_000
"""How many blocked tasks, and how many delayed ones, are searched for those assigned to the agent."""

INLINE = 52
"""The longest command that is written out wherever it is used; a longer one becomes a function of the shell."""

FUNCTION = "board"
"""The name of that function; another one than `atb`, which it may call."""

_FIRST = f"Agent Task Board: tasks shared with other agents, one holder each. {FRAMING}"
_TITLE = 56
_NAME = 100
_QUEUE = 24
_PATH = 110
_COMMAND = 480
"""The longest command of which the text has room for the function."""


def briefing(core: Core, agent: str | None, command: str) -> Briefing:
    """Return the briefing of an agent; ``None`` means that it has no name yet. ``command`` runs `atb` in its shell."""
    name = None if agent is None else inputs.agent_name(agent, "agent")
    with core.read() as tx:
        if name is not None:
            name = tx.canonical_name(name)
        values = {"agent": name, "now": tx.now, "counted": COUNTED, "looked_at": LOOKED_AT}
        held = f"FROM task INDEXED BY task_leased WHERE {IS_LEASED} AND claimed_by = :agent"
        live, dead = f"{held} AND lease_expires_at > :now", f"{held} AND lease_expires_at <= :now"
        holds: Some = {
            "count": _count(tx, f"SELECT 1 {live}", values),
            "tasks": _tasks(
                tx, f"SELECT seq {live} ORDER BY lease_expires_at LIMIT {HOLDS}", values, "lease_expires_at"
            ),
        }
        lost: Waiting = {
            "count": _count(tx, f"SELECT 1 {dead}", values),
            "ids": [row[0] for row in tx.execute(f"SELECT id {dead} ORDER BY lease_expires_at LIMIT {HOLDS}", values)],
        }
        ready = _ready(tx, values)
        assigned = _assigned(tx, values)
        waiting = attention(tx)
    return {
        "agent": name,
        "board": os.path.abspath(os.path.dirname(core.path)),
        "exists": core.exists(),
        "holds": holds,
        "lost": lost,
        "ready": ready,
        "assigned": assigned,
        "attention": waiting,
        "command": command,
        "protocol": protocol(core.settings.lease, command),
    }


def protocol(lease: int, command: str) -> list[str]:
    """Return how to work, in seven lines.

    ``lease`` is the length of a lease in milliseconds. The commands can be pasted once ID and the words in
    quotation marks are replaced. If ``command`` is long, they call a function of the shell, ``FUNCTION``.
    """
    beat = instants.format_length(max(lease // 3, instants.SECOND))
    atb = in_shell(command)
    return f"""\
Take work: `{atb} claim --save` (MCP: claim_task). ID is data.task.id or its last 6 characters; do what \
body and params ask.
Every {beat}: `{atb} heartbeat ID --progress 40`.
End it: `{atb} complete ID --note "what was done"`; or, if it did not work or cannot be done, \
`{atb} fail ID --error "why"`; not tried: `{atb} release ID --note "why"`; \
for another agent: `{atb} handoff ID --to AGENT --note "what is left"`.
lease_lost (exit 5): stop this task, publish nothing, go to 1. "token: missing": `{atb} resume ID --save`. \
Status review: a person decides; go to 1, never approve or reject.
More work: `{atb} add "title" --depends-on ID`; without --depends-on it waits for nothing. \
If your task waits for it: `{atb} update ID --depends-on NEW`, then release.
Nothing ready (`data: null`): do other work, or wait: `{atb} claim --save --wait 10m` (exit 9: none came), or report \
what `warnings` say and stop; no loop of claims.
Reading tasks: larger pN goes first; +blocked: waits for other tasks; needs=1: has 1 dependency; \
approval: goes to review; attempt=1/3: 1 of 3 attempts used; \
! or attention: waits for a person, or its lease ended.""".split("\n")


def in_shell(command: str) -> str:
    """Return the word or words that a command line of the text begins with."""
    return command if len(command) <= INLINE else FUNCTION


def _definition(command: str) -> list[str]:
    """Return the line that a shell needs first if the command is too long to be repeated."""
    if len(command) <= INLINE:
        return []
    if len(command) > _COMMAND:
        return [f"In each new shell first define `{FUNCTION}` as `command` of the same call with --json says."]
    return [f'In each new shell first: `{FUNCTION}() {{ {command} "$@"; }}`']


def _ready(tx: Transaction, values: dict[str, Any]) -> Some:
    """Return the tasks that the agent could claim, in the order of a claim.

    Of the delayed tasks that are due, but that no claim or tick has promoted yet, only the earliest are considered.
    """
    open_to_all = f"SELECT seq, priority FROM task WHERE {IS_PROMOTED} AND assignee IS NULL AND {IS_DUE}"
    for_it = f"SELECT seq, priority FROM task WHERE {IS_PROMOTED} AND assignee = :agent AND {IS_DUE}"
    due = (
        f"SELECT seq, priority FROM task WHERE {IS_UNBLOCKED} AND delayed = 1 AND not_before <= :now"
        f" AND {IS_CLAIMABLE_BY}"
    )
    by_rank = "ORDER BY priority DESC, seq"
    kinds = (f"{open_to_all} {by_rank}", f"{for_it} {by_rank}", f"{due} ORDER BY not_before")
    count, best = 0, []
    for kind in kinds:
        count += _count(tx, kind, values)
        first = f"SELECT seq FROM ({kind} LIMIT :counted) {by_rank} LIMIT {BEST}"
        best += _tasks(tx, first, values, "priority DESC, seq", seq=True)
    best.sort(key=lambda row: (-row[0]["priority"], row[1]))
    return {"count": min(count, COUNTED), "tasks": [task for task, _ in best[:BEST]]}


def _assigned(tx: Transaction, values: dict[str, Any]) -> dict[str, int]:
    """Return how many tasks that are assigned to the agent are blocked or delayed."""
    some = "SELECT 1 FROM (SELECT assignee FROM task WHERE {where} LIMIT :looked_at) WHERE assignee = :agent"
    blocked = some.format(where=IS_BLOCKED)
    delayed = some.format(where=f"{IS_UNBLOCKED} AND delayed = 1 AND not_before > :now")
    return {"blocked": _count(tx, blocked, values), "delayed": _count(tx, delayed, values)}


def _count(tx: Transaction, rows: str, values: dict[str, Any]) -> int:
    number: int = tx.execute(f"SELECT count(*) FROM ({rows} LIMIT :counted)", values).fetchone()[0]
    return number


def _tasks(tx: Transaction, chosen: str, values: dict[str, Any], order: str, *, seq: bool = False) -> list[Any]:
    """Return tasks as in a list; with ``seq``, pairs of a task and its sequence number."""
    rows = tx.execute(f"SELECT {LEAN_COLUMNS} FROM task WHERE seq IN ({chosen}) ORDER BY {order}", values).fetchall()
    found = []
    for row in rows:
        stored: Any = dict(zip(LEAN_NAMES, row, strict=True))
        task = to_task(stored, values["now"]).to_dict()
        found.append((task, row["seq"]) if seq else task)
    return found


# The text


def text(found: Briefing) -> str:
    """Return a briefing in at most ``LIMIT`` characters; held tasks come before ready ones."""
    from .compact import endings, word

    head = [_FIRST]
    name = found["agent"]
    if name is None:
        head.append("you: no name yet; the commands below give you one: keep it (MCP: as `agent` in EVERY call)")
    else:
        head.append(f"you: {word(_cut(name, _NAME, word))}; pass it as `agent` in EVERY MCP call")
    head.append(f"board: {_path(found['board'])}")
    if not found["exists"]:
        head[-1] += " (no board there yet; the first task that is added creates it)"
    head += _definition(found["command"])
    tail = [f"{number}. {line}" for number, line in enumerate(found["protocol"], 1)]
    attention = found["attention"]
    holds, ready, lost = found["holds"], found["ready"], found["lost"]
    shown = [*holds["tasks"], *ready["tasks"]]
    stuck = attention["stuck"]
    names = endings([*(task["id"] for task in shown), *lost["ids"], *attention["review"]["ids"], *stuck["ids"]])

    mine = [f"you hold {_number(holds['count'])}"]
    if holds["count"]:
        mine[0] += f"; for a new token: `{in_shell(found['command'])} resume ID --save` (resume_task):"
        mine += [_line(task, names, queue=False) for task in holds["tasks"]]
    if lost["count"]:
        mine.insert(0, f"your lease expired on {_number(lost['count'])}: {_ids(lost, names)}; stop that work")
    others = []
    unready = [f"{_number(count)} {kind}" for kind, count in found["assigned"].items() if count]
    if unready:
        others.append(f"assigned to you, not ready: {', '.join(unready)}")
    review, expired = attention["review"], attention["expired"]
    if review["count"]:
        others.append(f"waiting for a person: {_number(review['count'])} in review, {_ids(review, names)}")
    if stuck["count"]:
        others.append(f"stuck behind failed or cancelled tasks: {_number(stuck['count'])}, {_ids(stuck, names)}")
    if expired["count"]:
        others.append(f"expired leases: {_number(expired['count'])}; a claim returns their tasks to the queue")
    best = [f"ready for you: {_number(ready['count'])}", *(_line(task, names, queue=True) for task in ready["tasks"])]

    room = LIMIT - _size(head) - _size(tail)
    mine = _fitting(mine, room - _size(best[:1]))
    others = _fitting(others, room - _size(mine) - _size(best[:1]))
    best = _fitting(best, room - _size(mine) - _size(others))
    return "".join(f"{line}\n" for line in [*head, *mine, *best, *others, *tail])


def _fitting(lines: list[str], room: int) -> list[str]:
    """Return as many of the first lines as fit; the counts in them include what is left out."""
    while _size(lines) > room:
        lines = lines[:-1]
    return lines


def _size(lines: list[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _number(count: int) -> str:
    return f"{count:,} or more" if count == COUNTED else str(count)


def _ids(waiting: Waiting, names: Mapping[str, str]) -> str:
    more = ", ..." if waiting["count"] > len(waiting["ids"]) else ""
    return ", ".join(names[one] for one in waiting["ids"]) + more


def _line(task: dict[str, Any], names: Mapping[str, str], *, queue: bool) -> str:
    from .compact import line, quoted, word

    lean = task | {"tags": [], "blocked_by": [], "claimed_by": None, "title": _cut(task["title"], _TITLE, quoted)}
    lean["queue"] = _cut(task["queue"], _QUEUE, word) if queue else "default"
    lean["assignee"] = lean["assignee"] and "you"
    return f"- {line(lean, names[task['id']])}"


def _path(path: str) -> str:
    """Return a path, quoted if needed; of a long one only the end, which says more."""
    from .compact import quoted

    if path.isprintable() and len(path) <= _PATH:
        return path
    while len(quoted(path)) > _PATH:
        path = f"...{path[4:]}" if path.startswith("...") else f"...{path[1:]}"
    return quoted(path)


def _cut(value: str, room: int, how: Callable[[str], str]) -> str:
    """Return the longest beginning of a text that ``how`` writes in at most ``room`` characters."""
    if len(how(value)) <= room:
        return value
    low, high = 0, len(value)
    while low < high:
        middle = (low + high + 1) // 2
        if len(how(f"{value[:middle]}…")) <= room:
            low = middle
        else:
            high = middle - 1
    return f"{value[:low]}…"
