"""The JSON format of an export: its name, version and arrays, and a reader of such a document."""

from __future__ import annotations

from ..errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .json_stream import Piece

NAME = "agent-task-board"
VERSION = 1
"""The version that an export states; a file with a newer version is refused."""
ARRAYS = ("tasks", "attempts", "events", "comments", "schedules", "archived")
"""The arrays of an export, in their order."""

_IGNORED = frozenset("ok data error warnings exported_at counts revision timezone".split())
"""Members that commands print around tasks; they say nothing about the tasks."""


class DocumentReader:
    """Reads a document element by element, and checks the members around the elements.

    ``source`` is a file opened for bytes, or JSON that was already parsed.
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self._seen: set[str] = set()
        self.is_parsed = not hasattr(source, "read")
        """Whether the JSON was parsed by the caller, so that its limits still have to be checked."""
        self.warnings: list[str] = []

    @property
    def has_events(self) -> bool:
        """Whether the array ``events`` was found."""
        return "events" in self._seen

    def elements(self) -> Iterator[tuple[str, int, Any]]:
        """Yield each element as the name of its array, its index, and its value.

        Raises:
            InvalidInput: there are no tasks, an array is not one or is repeated, or the format is another one.
        """
        for name, index, value in self._pieces():
            if index is None:
                self._read_member(name, value)
            else:
                yield name, index, value
        if "tasks" not in self._seen:
            raise InvalidInput(
                "file: has neither an array of tasks nor an object with `tasks`",
                hint="Import the output of `atb export`, or an array of objects with a `title`.",
                field="file",
            )

    def _pieces(self) -> Iterator[Piece]:
        from . import json_stream

        split = json_stream.walk if self.is_parsed else json_stream.read
        return split(self._source, ARRAYS, bare="tasks")

    def _read_member(self, name: str, value: Any) -> None:
        if name in ARRAYS:
            if not isinstance(value, list):
                raise InvalidInput(f"{name}: must be a list", field=name)
            if name in self._seen:
                raise InvalidInput(f"{name}: is repeated", field=name)
        elif name == "format":
            if value != NAME:
                raise InvalidInput(f"format: {str(value)[:60]!r} (must be {NAME!r})", field="format")
        elif name == "version":
            if isinstance(value, bool) or value != VERSION:
                raise InvalidInput(
                    f"version: {str(value)[:60]} (this program reads version {VERSION})",
                    hint="Install the newest atb-board.",
                    field="version",
                )
        elif name == "next" or name == "truncated":
            if value:
                self.warnings.append(f"the file has only some of the tasks: its {name!r} is set")
        elif name not in _IGNORED:
            self.warnings.append(f"ignored the file's unknown member {name[:60]!r}")
        self._seen.add(name)
