"""What the history of a task says the task is: the fold of its events."""

from __future__ import annotations

import json

from .core import _DIGESTED, _EMPTY, _TRACKED, _shown, _size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..model import TaskRow

UNBORN: dict[str, Any] = {key: _shown(key, _EMPTY[key]) for key in _TRACKED} | {
    key: _size(_EMPTY[key]) for key in _DIGESTED
}
"""A task before its first event; of body, params and result the history tells size and SHA-256 only."""


def fold(events: Iterable[tuple[int, str, str]]) -> tuple[dict[str, Any], str | None]:
    """Return what the events of a task led to, and what is wrong with their row, if anything.

    ``events`` are number, kind and data (JSON), oldest first. Each change must start from what the events before it
    led to; an ``imported`` event settles what came before it.
    """
    state = dict(UNBORN)
    wrong = None
    for seq, kind, data in events:
        imported = kind == "imported"
        for field, change in json.loads(data).get("changes", {}).items():
            if field in state:
                if change["from"] != state[field] and not imported:
                    wrong = wrong or f"event {seq} changes {field} from a value that no event before it led to"
                state[field] = change["to"]
        if imported:
            wrong = None
    return state, wrong


def differences(task: TaskRow, state: dict[str, Any]) -> list[str]:
    """Return the fields of a task that are not as its history says."""
    tracked = [key for key in _TRACKED if _shown(key, task[key]) != state[key]]
    return tracked + [key for key in _DIGESTED if _size(task[key]) != state[key]]
