"""What readers of several trackers need: a look at the beginning of a file, and small documents as a whole."""

from __future__ import annotations

import io

from .. import inputs
from ..errors import InvalidInput
from .tabular import Table, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from .foreign import Ignored

WHOLE = 64 * 1_048_576
"""Maximum number of bytes of a file that has to be read as a whole."""


def is_json(file: BinaryIO) -> tuple[bool, BinaryIO]:
    """Say whether a file begins as JSON does; return it with the part that was read."""
    start = file.read(64)
    is_object = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
    return is_object, _Joined(start, file)  # type: ignore[return-value]


class _Joined(io.RawIOBase):
    """A file, after its beginning that was already read."""

    def __init__(self, start: bytes, file: BinaryIO) -> None:
        self._start = start
        self._file = file

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        if size >= 0 and self._start:
            found, self._start = self._start[:size], self._start[size:]
            return found
        start, self._start = self._start, b""
        return start + self._file.read(size)


def read_document(file: BinaryIO) -> Any:
    """Return the JSON of a whole file.

    Raises:
        InvalidInput: not JSON, not UTF-8, or larger than ``WHOLE``.
    """
    content = b""
    while len(content) <= WHOLE and (chunk := file.read(WHOLE + 1 - len(content))):
        content += chunk
    if len(content) > WHOLE:
        raise InvalidInput(f"file: too large for this format (limit {WHOLE:,} bytes)", field="file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"file: line {line:,}: not UTF-8 at byte {error.start:,}", field="file") from None
    return inputs.parse_json(text, "file")


def read_table(
    file: BinaryIO, ignored: list[tuple[str, Ignored]], required: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the records of a table; ``ignored`` gets the rows without content.

    Raises:
        InvalidInput: not a table, or one of the required columns, in small letters, is missing.
    """
    from .foreign import Ignored

    table = Table(file, lambda place: ignored.append((place, Ignored("empty_row", place))))
    header = [name.lower() for name in table.header]
    missing = next((name for name in required if name not in header), None)
    if missing is not None:
        raise refuse(table.first_line, f"missing column: {missing}", field=missing)
    yield from table.records()


def words_of(cell: object) -> list[str]:
    """Return the words of a cell with commas between them, or of a list."""
    parts = cell if isinstance(cell, list) else [cell]
    return [word for part in parts if isinstance(part, str) for word in map(str.strip, part.split(",")) if word]
