"""The formats that an import reads, and how a file shows which one it has."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .foreign import Row

TRACKERS = {
    "beads": "beads",
    "github": "github",
    "task-master": "taskmaster",
    "backlog": "backlog",
    "checklist": "checklist",
    "todo": "todo",
    "jira": "jira",
    "linear": "linear",
    "trello": "trello",
    "asana": "asana",
}
"""The formats of other trackers, and the module that reads each."""
FORMATS = ("json", "csv", *TRACKERS)


def reader_of(tracker: str) -> Callable[[Any], Iterator[Row]]:
    """Return the function that reads a tracker's file."""
    read: Callable[[Any], Iterator[Row]] = _module(tracker).read
    return read


def table_of(tracker: str) -> tuple[tuple[str, str], ...]:
    """Return what becomes what: pairs of a field of the tracker and its result, in Markdown."""
    table: tuple[tuple[str, str], ...] = _module(tracker).TABLE
    return table


def _module(tracker: str) -> Any:
    from importlib import import_module

    return import_module(f"{__package__}.{TRACKERS[tracker]}")
