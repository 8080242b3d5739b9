"""Tasks as CSV: one row per task, nested values as JSON in a cell, and no cell that a spreadsheet runs as a formula."""

from __future__ import annotations

import re

from .. import inputs
from ..errors import InvalidInput
from ..model import DERIVED, JSON_KEYS
from .tabular import Table, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

    from ..model import TaskRow

COLUMNS = tuple(key for key in JSON_KEYS if key not in DERIVED)
"""The header of an exported table."""

NUMBERS = frozenset(("priority", "progress", "attempts", "max_attempts", "fence", "version", "max_runtime"))
NESTED = frozenset(("tags", "blocked_by", "params", "result", "artifacts"))
FLAGS = frozenset(("needs_approval", *DERIVED))
SPECIAL = "=+-@'\t\r\n\uff1d\uff0b\uff0d\uff20"
"""First characters of text that export puts an apostrophe before, since spreadsheets would run the text as a formula.

Some drop a tab or a line break at the beginning, and some take the fullwidth signs for plain ones. The apostrophe
itself is one of them, so that import can remove it again.
"""
_SPECIAL = f"[{re.escape(SPECIAL)}]"
_FORMULA = f'[ "\xa0\u3000]*{_SPECIAL}'
_CELLS = "[;\t\r\n]"
"""Where a spreadsheet that splits at semicolons or tabs, as in much of Europe, begins a cell within ours: it does not
see that ours is quoted."""
_TO_MARK = re.compile(rf"\A(?={_SPECIAL})|(?<={_CELLS})(?={_FORMULA})")
_MARKED = re.compile(rf"\A'(?={_SPECIAL})|(?<={_CELLS})'(?={_FORMULA})")
_IN_JSON = re.compile(rf";(?={_FORMULA})")
LISTS = frozenset(("tags", "blocked_by"))
"""Lists whose cell may also be words with commas between them, as a person writes them."""
_WHOLE = re.compile(r"(?<=[0-9])\.0+\Z", re.ASCII)
"""The end of a whole number as some spreadsheets write it."""


def write_row(row: TaskRow) -> list[object]:
    """Return the cells of a task; an empty cell means no value."""
    return [_cell(key, row[key]) for key in COLUMNS]


def _cell(key: str, value: Any) -> object:
    if value is None:
        return ""
    if key == "needs_approval":
        return "true" if value else "false"
    if key in NUMBERS:
        return value
    if key in NESTED:  # stored as JSON, which never starts with a special character and has semicolons in strings only
        return _IN_JSON.sub(r"\\u003b", value)
    return _TO_MARK.sub("'", value)


def read_rows(file: BinaryIO, on_empty: Callable[[str], object]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each row as its place (``line 18``) and a task without the empty cells.

    ``on_empty`` is called with the place of each row without content.

    Raises:
        InvalidInput: not CSV in UTF-8 or UTF-16, an unknown column, a row with too few or too many cells, or a cell
            that is not the number, flag or JSON that its column requires.
    """
    table = Table(file, on_empty)
    columns = _columns(table.header, table.first_line)
    for line, cells in table.rows():
        yield (
            f"line {line}",
            {key: _value(key, cell, line) for key, cell in zip(columns, cells, strict=True) if cell != ""},
        )


def _columns(header: list[str], line: int) -> list[str]:
    columns = ["_".join(name.lower().split()) for name in header]
    if "title" not in columns:
        hint = "The first line must have the column names, separated by commas; one of them must be `title`."
        raise refuse(line, "missing column: title", field="title", hint=hint)
    for name in filter(None, columns):
        if name not in JSON_KEYS:
            raise refuse(line, f"unknown column: {name[:60]!r}", field=name[:60])
        if columns.count(name) > 1:
            raise refuse(line, f"repeated column: {name}", field=name)
    return columns


def _value(key: str, cell: str, line: int) -> Any:
    if key in NUMBERS:
        try:
            return inputs.whole_number(_WHOLE.sub("", cell.strip()), key)
        except InvalidInput as error:
            raise refuse(line, error.message, field=key) from None
    if key in FLAGS:
        if cell.strip().lower() not in ("true", "false"):  # spreadsheets write them in capitals
            raise refuse(line, f"{key}: must be true or false: {cell[:60]!r}", field=key)
        return cell.strip().lower() == "true"
    if key in LISTS and not cell.lstrip().startswith(("[", "{")):
        return [word for part in cell.replace(";", ",").split(",") if (word := part.strip())]
    if key in NESTED:
        try:
            return inputs.parse_json(cell, key)
        except InvalidInput as error:
            raise refuse(line, error.message, field=key, hint=error.hint) from None
    return _MARKED.sub("", cell)
