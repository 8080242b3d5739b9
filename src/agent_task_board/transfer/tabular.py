"""Read tables as spreadsheets and trackers write them: CSV with commas, semicolons or tabs, in UTF-8 or UTF-16."""

from __future__ import annotations

import codecs
import csv
import io

from ..errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

CELL = 8 * 1_048_576
"""Maximum number of characters of one cell; the default of the standard library is 131,072."""
LINE = 32 * 1_048_576
"""Maximum number of characters of one line."""
_DELIMITERS = ",;\t|"
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


class Table:
    """A table: its ``header``, and its rows.

    Empty lines before the header, and a line such as ``sep=;``, are passed over. ``on_empty`` is called with the place
    of each later row that has delimiters, but no content.
    """

    def __init__(self, file: BinaryIO, on_empty: Callable[[str], object]) -> None:
        csv.field_size_limit(max(CELL, csv.field_size_limit()))
        self._on_empty = on_empty
        self._lines = _Lines(file)
        first = self._lines.first_with_content()
        delimiter = None
        if first.strip().lower().startswith("sep=") and len(first.strip("\r\n")) == 5:
            delimiter = first[4]
            first = self._lines.first_with_content()
        self.first_line = self._lines.number or 1
        self._rows: Any = csv.reader(
            self._lines.starting_with(first), delimiter=delimiter or delimiter_of(first), strict=True
        )
        self.header = [name.strip() for name in self._next() or []]
        while self.header and not self.header[-1]:
            self.header.pop()

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of each row's first line, and its cells, as many as the header has.

        Raises:
            InvalidInput: not CSV, not text, or a row has too few cells, or content where the header has no name.
        """
        while True:
            line = self._lines.number + 1
            cells = self._next()
            if cells is None:
                return
            if not any(cell.strip() for cell in cells):
                if cells:
                    self._on_empty(f"line {line}")
                continue
            if len(cells) < len(self.header):
                raise refuse(line, f"has {len(cells)} cells (the header has {len(self.header)})")
            for number, cell in enumerate(cells, 1):
                if cell.strip() and (number > len(self.header) or not self.header[number - 1]):
                    raise refuse(line, f"has content in column {number}, which has no name in the header")
            yield line, cells[: len(self.header)]

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each row as its place (``line 18``) and its cells that are not empty, by the header in small letters.

        A column that the header has several times gives a list.
        """
        keys = [name.lower() for name in self.header]
        repeated = {key for key in keys if keys.count(key) > 1}
        for line, cells in self.rows():
            found: dict[str, Any] = {}
            for key, cell in zip(keys, cells, strict=True):
                if cell.strip():
                    if key in repeated:
                        found.setdefault(key, []).append(cell)
                    else:
                        found[key] = cell
            yield f"line {line}", found

    def _next(self) -> list[str] | None:
        """Return the next row; ``None`` at the end."""
        line = self._lines.number + 1
        try:
            cells: list[str] | None = next(self._rows, None)
        except UnicodeDecodeError:
            raise refuse(line, f"not {self._lines.encoding.upper()}, in this line or soon after it") from None
        except csv.Error as error:
            raise refuse(line, f"not CSV: {error}") from None
        return cells


def delimiter_of(header: str) -> str:
    """Return the character between the cells of a header: the most frequent one outside of quotes."""
    plain = "".join(header.split('"')[::2])
    return max(_DELIMITERS, key=plain.count)


def text_of(beginning: bytes) -> str:
    """Return the text of the beginning of a file, whose last character may be cut."""
    for mark, encoding in _MARKS:
        if beginning.startswith(mark):
            return beginning[len(mark) :].decode(encoding, "ignore")
    return beginning.decode("utf-8", "ignore")


class _Lines:
    """The lines of a file, their encoding known by its first bytes; the file stays open."""

    def __init__(self, file: BinaryIO) -> None:
        start = file.read(3)
        mark, self.encoding = next(((mark, name) for mark, name in _MARKS if start.startswith(mark)), (b"", "utf-8"))
        rest: Any = _Rest(start[len(mark) :], file)
        self._text = io.TextIOWrapper(rest, encoding=self.encoding, newline="")
        self.number = 0
        """The number of the last line that was read."""

    def first_with_content(self) -> str:
        """Read to the first line that has more than delimiters and white space; an empty one at the end."""
        while True:
            line = self._read()
            if not line or line.strip(_DELIMITERS + " \r\n"):
                return line

    def starting_with(self, first: str) -> Iterator[str]:
        """Yield a line that was read already, and those after it."""
        line = first
        while line:
            yield line
            line = self._read()

    def _read(self) -> str:
        try:
            line = self._text.readline(LINE + 1)
        except UnicodeDecodeError:
            raise refuse(self.number + 1, f"not {self.encoding.upper()}, in this line or soon after it") from None
        if len(line) > LINE:
            raise refuse(self.number + 1, f"too long (limit {LINE:,} characters)")
        self.number += 1 if line else 0
        return line


class _Rest(io.BufferedIOBase):
    """A file, after bytes that were already read from it."""

    def __init__(self, start: bytes, file: BinaryIO) -> None:
        self._start = start
        self._file = file

    def readable(self) -> bool:
        return True

    def read1(self, size: int = -1, /) -> bytes:
        if self._start:
            start, self._start = self._start, b""
            return start
        return self._file.read(size)

    def read(self, size: int | None = -1, /) -> bytes:
        return self.read1(-1 if size is None else size)


def refuse(line: int, what: str, *, field: str | None = None, hint: str | None = None) -> InvalidInput:
    """Return the refusal of a row, or of a cell in it."""
    place = f"line {line}"
    return InvalidInput(f"{place}: {what}", hint=hint, place=place, field=field)
