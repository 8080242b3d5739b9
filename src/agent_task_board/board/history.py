"""The history of a task: the changes that an event records, and the state that results from a task's events.

Of body, params and result, events have only size and SHA-256.
"""

from __future__ import annotations

import json

from ..model import JSON_LISTS
from ..storage.fingerprint import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..model import TaskRow

TRACKED = tuple(
    """
    title queue status priority assignee due_at not_before tags dedupe_key blocked_by needs_approval attempts
    max_attempts fence claimed_by progress artifacts max_runtime archived_at
    """.split()
)
"""The columns whose changes are recorded in events."""
DIGESTED = ("body", "params", "result")
"""The columns of which events have size and SHA-256."""

_EMPTY: dict[str, Any] = {
    **dict.fromkeys(TRACKED),
    **dict.fromkeys(JSON_LISTS, "[]"),
    **dict.fromkeys(("priority", "needs_approval", "attempts", "fence"), 0),
    "body": "",
    "params": "{}",
    "result": None,
}
"""The columns of a task before its first event."""


def changes(before: TaskRow | None, after: TaskRow) -> dict[str, Any]:
    """Return ``{"changes": {field: {"from", "to"}}}`` between two states of a row; ``None`` is a new task."""
    old = _EMPTY if before is None else before
    return {
        "changes": {
            key: {"from": as_recorded(key, old[key]), "to": as_recorded(key, after[key])}
            for key in (*TRACKED, *DIGESTED)
            if old[key] != after[key]
        }
    }


def as_recorded(key: str, value: Any) -> Any:
    """Return the value of a column as events record it."""
    if key in DIGESTED:
        return None if value is None else {"bytes": len(value.encode()), "sha256": digest(value)}
    if key in JSON_LISTS:
        return json.loads(value)
    return bool(value) if key == "needs_approval" else value


NEW_TASK: dict[str, Any] = {key: as_recorded(key, _EMPTY[key]) for key in (*TRACKED, *DIGESTED)}
"""The state of a task before its first event."""


def difference(state: dict[str, Any], row: TaskRow) -> dict[str, Any]:
    """Return ``{field: {"from", "to"}}`` between the result of ``fold`` and a row."""
    changed = {}
    for key in (*TRACKED, *DIGESTED):
        value = as_recorded(key, row[key])
        if value != state[key]:
            changed[key] = {"from": state[key], "to": value}
    return changed


def fold(events: Iterable[tuple[int, str, str]]) -> tuple[dict[str, Any], str | None]:
    """Return the state that results from a task's events, and the first inconsistency among them, if any.

    ``events`` are number, kind and data (JSON), oldest first. Each change must start from the result of the events
    before it. An ``imported`` event sets the state, whatever came before.
    """
    state = dict(NEW_TASK)
    wrong = None
    for seq, kind, data in events:
        imported = kind == "imported"
        for field, change in json.loads(data).get("changes", {}).items():
            if field in state:
                if change["from"] != state[field] and not imported:
                    wrong = (
                        wrong or f"event {seq} changes {field} from another value than the events before it result in"
                    )
                state[field] = change["to"]
        if imported:
            wrong = None
    return state, wrong
