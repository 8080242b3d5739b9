"""Build refusals: each function explains why the guard of a verb did not accept a row."""

from __future__ import annotations

from ..errors import Conflict, LeaseLost
from ..model import FINAL, LEASED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from ..model import TaskRow


CYCLE_TASKS = 12
"""The most tasks of a dependency cycle that a refusal names."""


def shown(name: str) -> str:
    """Return a name as it stands in a sentence of the board: in quotation marks unless it is one plain word."""
    from ..printable import name as in_sentence  # only for refusals and expired leases

    return in_sentence(name)


def actual(row: TaskRow) -> dict[str, Any]:
    """Return ``details.actual`` of a refusal: the state of the task."""
    return {key: row[key] for key in ("status", "version", "claimed_by", "claimed_at", "lease_expires_at")}


def lease_lost(row: TaskRow, now: str) -> LeaseLost:
    """Return the refusal of a caller that does not hold the task; it says who does."""
    if row["status"] in LEASED:
        until = row["lease_expires_at"]
        state = f'it is "{row["status"]}" by {shown(row["claimed_by"])}, '
        state += f"whose lease ended at {until}" if until <= now else f"with another token, until {until}"
    else:
        state = f'it is "{row["status"]}"'
    hint = None
    if row["status"] in FINAL:
        hint = "The task is finished; nothing is left to do on it. Claim another one."
    elif row["status"] == "review":
        hint = "The task waits for a person. Stop working on it, and claim another one."
    return LeaseLost(f"task {row['id']} is not held with this token: {state}", hint=hint, actual=actual(row))


def lease_expired(row: TaskRow) -> str:
    """Return the error of an attempt whose lease expired."""
    return f"lease of {shown(row['claimed_by'] or '')} expired at {row['lease_expires_at']}"


def status_conflict(row: TaskRow, expected: Iterable[str], *, hint: str | None = None) -> Conflict:
    """Return the refusal of a verb that needs the task in another status."""
    wanted = " or ".join(f'"{status}"' for status in expected)
    message = f'task {row["id"]} is "{row["status"]}", not {wanted}'
    if row["status"] in LEASED:
        message += f"; {shown(row['claimed_by'])} has held it since {row['claimed_at']}"
    return Conflict(message, hint=hint, reason="status", actual=actual(row))


def version_conflict(row: TaskRow, expected: int | None) -> Conflict:
    """Return the refusal of a call that expected another version of the task."""
    return Conflict(
        f"task {row['id']} has version {row['version']}, not {expected}", reason="version", actual=actual(row)
    )


def key_conflict(key: str, holder: TaskRow) -> Conflict:
    """Return the refusal of a dedupe key that another unfinished task has."""
    return Conflict(
        f"task {holder['id']} already has dedupe key {key!r}",
        reason="dedupe",
        task_id=holder["id"],
        actual=actual(holder),
    )


def obstacle(row: TaskRow, agent: str) -> tuple[str, str]:
    """Return why a queued task is not ready for an agent: a conflict's reason, and the end of a sentence."""
    if row["stuck"]:
        return "blocked", f"is stuck behind a failed or cancelled task ({row['open_dependencies']} not done)"
    if row["open_dependencies"]:
        return "blocked", f"waits for other tasks ({row['open_dependencies']} not done)"
    if row["assignee"] not in (None, agent):
        return "assigned", f"is assigned to {shown(row['assignee'])}"
    return "delayed", f"cannot be claimed before {row['not_before']}"


def cycle(ids: Sequence[str]) -> str:
    """Return a dependency cycle as "A waits for B waits for A"; of a long one only the first tasks."""
    if len(ids) <= CYCLE_TASKS + 1:
        return " waits for ".join(ids)
    return f"{' waits for '.join(ids[:CYCLE_TASKS])}, and {len(ids) - 1 - CYCLE_TASKS:,} more"
