"""Tasks as CSV: one row each, nested values as JSON in a cell, and no cell that a spreadsheet takes for a formula."""

from __future__ import annotations

import csv
import io

from .. import inputs
from ..errors import InvalidInput
from ..model import JSON_KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from ..model import TaskRow

DERIVED = ("ready", "blocked", "delayed", "lease_expired", "overdue")
COLUMNS = tuple(key for key in JSON_KEYS if key not in DERIVED)
"""The header of a table that is exported."""

NUMBERS = frozenset(("priority", "progress", "attempts", "max_attempts", "fence", "version"))
NESTED = frozenset(("tags", "blocked_by", "params", "result", "artifacts"))
FLAGS = frozenset(("needs_approval", *DERIVED))
SPECIAL = "=+-@'\t\r"
"""What a text cell must not start with: spreadsheets run it. The apostrophe is there so that it can be undone."""
CELL = 8 * 1_048_576
"""Characters of one cell, at most; the standard library takes 131,072, fewer than a body may have."""


def write_row(row: TaskRow) -> list[object]:
    """Return the cells of a task; an empty one stands for nothing."""
    return [_cell(key, row[key]) for key in COLUMNS]


def _cell(key: str, value: Any) -> object:
    if value is None:
        return ""
    if key == "needs_approval":
        return "true" if value else "false"
    if key in NUMBERS or key in NESTED:  # nested values are stored as JSON, which starts with nothing special
        return value
    return f"'{value}" if value[:1] in SPECIAL and value else value


def read_rows(file: BinaryIO) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each row as the place where it starts (``line 18``) and a task; empty cells are left out.

    Raises:
        InvalidInput: no CSV in UTF-8, an unknown column, a row of another length, or a cell that is no number, flag or
            JSON where one is due.
    """
    csv.field_size_limit(max(CELL, csv.field_size_limit()))
    with _Lines(file) as lines:
        rows = csv.reader(lines, strict=True)
        columns = _columns(_next(rows, 1) or [])
        while True:
            line = rows.line_num + 1
            cells = _next(rows, line)
            if cells is None:
                return
            if not cells:
                continue
            if len(cells) != len(columns):
                raise _refuse(line, f"{len(cells)} cells under {len(columns)} columns")
            yield (
                f"line {line}",
                {key: _value(key, cell, line) for key, cell in zip(columns, cells, strict=True) if cell != ""},
            )


class _Lines(io.TextIOWrapper):
    """The text of a file that stays open when this is done with it."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file, encoding="utf-8-sig", newline="")

    def __exit__(self, *_: object) -> None:
        self.detach()


def _next(rows: Any, line: int) -> list[str] | None:
    """Return the next row, or nothing at the end."""
    try:
        cells: list[str] | None = next(rows, None)
    except UnicodeDecodeError:
        raise _refuse(line, "this or a line soon after it is not UTF-8") from None
    except csv.Error as error:
        raise _refuse(line, f"is not CSV: {error}") from None
    return cells


def _columns(header: list[str]) -> list[str]:
    columns = [name.strip() for name in header]
    if "title" not in columns:
        hint = "The first line names the columns, with commas between them; one must be `title`."
        raise _refuse(1, "there is no column `title`", field="title", hint=hint)
    for name in columns:
        if name not in JSON_KEYS:
            raise _refuse(1, f"{name[:60]!r}: there is no such column", field=name[:60])
        if columns.count(name) > 1:
            raise _refuse(1, f"the column {name} is there twice", field=name)
    return columns


def _value(key: str, cell: str, line: int) -> Any:
    if key in NUMBERS:
        digits = cell.strip().removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
            raise _refuse(line, f"{key}: {cell[:60]!r} is not a whole number", field=key)
        return int(cell)
    if key in FLAGS:
        if cell.strip().lower() not in ("true", "false"):  # spreadsheets write them in capitals
            raise _refuse(line, f"{key}: {cell[:60]!r} is neither true nor false", field=key)
        return cell.strip().lower() == "true"
    if key in NESTED:
        try:
            return inputs.parse_json(cell, key)
        except InvalidInput as error:
            raise _refuse(line, error.message, field=key, hint=error.hint) from None
    return cell[1:] if cell[0] == "'" and cell[1:2] in SPECIAL and cell[1:] else cell


def _refuse(line: int, what: str, *, field: str | None = None, hint: str | None = None) -> InvalidInput:
    place = f"line {line}"
    return InvalidInput(f"{place}: {what}", hint=hint, place=place, field=field)
