"""Rebuild a task from its events alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from agent_task_board.model import Event

UNBORN: dict[str, Any] = {
    "status": None,
    "assignee": None,
    "claimed_by": None,
    "attempts": 0,
    "fence": 0,
    "priority": 0,
    "blocked_by": [],
    "tags": [],
    "due_at": None,
    "not_before": None,
    "needs_approval": False,
}
"""What the history of a task tells in full, as it is before the first event."""


def fold(events: Iterable[Event]) -> dict[str, Any]:
    """Return the fields of ``UNBORN`` as they are after a task's events, given oldest first.

    Raises:
        ValueError: an event starts from a value that the events before it did not lead to, so that one is missing.
    """
    state = dict(UNBORN)
    for event in events:
        for field, change in event["data"].get("changes", {}).items():
            if field not in state:
                continue
            if change["from"] != state[field]:
                raise ValueError(
                    f"event {event['seq']} ({event['kind']}) changes {field} from {change['from']!r},"
                    f" but the events before it led to {state[field]!r}"
                )
            state[field] = change["to"]
    return state
