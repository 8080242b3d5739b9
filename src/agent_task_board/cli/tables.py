"""Text for a terminal: aligned columns, cut to its width, with colour on a terminal only and no control characters."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import unicodedata

from .. import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

BOLD = "1"
"""The terminal's code for bold text."""

MIN_LAST = 16
"""The minimum width of the last column of a table."""

STATUS_COLOURS = {
    "queued": "36",
    "claimed": "34",
    "running": "34;1",
    "review": "33;1",
    "waiting": "33",
    "done": "32",
    "failed": "31;1",
    "cancelled": "90",
}

MIN_COLUMN = 6
"""The width to which columns are narrowed first: that of a task's name."""
MIN_CUT = 2
"""The width to which they are narrowed on a terminal that is narrower still."""

_INSTANT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_COLOUR = re.compile(rf"(\x1b\[(?:0|{'|'.join([BOLD, *STATUS_COLOURS.values()])})m)")
_WIDTHLESS = ("Mn", "Me", "Cf")
"""Categories of characters that need no column."""


def clean(text: str, *, keep_colours: bool = False) -> str:
    """Return text with hidden characters escaped: a task or an error message must not control the terminal.

    ``keep_colours`` keeps the codes that ``colour`` writes; whoever passes it has cleaned the text within them.
    """
    if keep_colours:
        parts = _COLOUR.split(text)
        return "".join(part if place % 2 else printable.escape_text(part) for place, part in enumerate(parts))
    return printable.escape_text(text)


def quoted_lines(text: str) -> list[str]:
    """Return text of a task as lines, each after a bar: no line of it can look like one of the board's own."""
    return [f"| {line}".rstrip() for line in clean(text.replace("\r\n", "\n")).split("\n")]


def width(text: str) -> int:
    """Return how many columns of a terminal a text needs."""
    if text.isascii():
        return len(text)
    return sum(
        2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
        if unicodedata.category(char) not in _WIDTHLESS
    )


def cut(text: str, columns: int) -> str:
    """Return a text of at most this many columns, with an ellipsis if it was cut."""
    if width(text) <= columns:
        return text
    if columns < 1:
        return ""
    used = 0
    for place, char in enumerate(text):
        used += width(char)
        if used > columns - 1:
            return text[:place] + "\u2026"
    return text


def one_line(value: Any) -> str:
    """Return a value as one line of text without hidden characters; ``-`` for ``None``."""
    if value is None:
        return "-"
    return printable.escape_line(re.sub(r"[ \n\t]+", " ", str(value).replace("\r\n", "\n")))


def colour(text: str, code: str) -> str:
    """Return a text in a colour, if standard output is a terminal and ``NO_COLOR`` is not set."""
    if not code or os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


def table_rows(rows: Sequence[Sequence[Any]], *, status: int | None = None) -> list[str]:
    """Return aligned columns without heads; the one at ``status`` is coloured."""
    heads = ["" if place != status else "STATUS" for place in range(len(rows[0]))] if rows else []
    return table(heads, rows, status="STATUS")[1:] if rows else []


def _fit(widths: list[int], columns: int, instants: set[int]) -> list[int]:
    """Return the widths of columns, the widest ones narrowed until all fit; those of instants as late as possible."""
    room = columns - 2 * (len(widths) - 1)
    widths = [*widths[:-1], min(widths[-1], max(MIN_LAST, room - sum(widths[:-1])))]
    for kept in (instants, set()):
        places = [place for place in range(len(widths)) if place not in kept]
        while sum(widths) > room and places:
            widest = max(places, key=lambda place: widths[place])
            if widths[widest] <= MIN_COLUMN:
                break
            widths[widest] -= 1
    while sum(widths) > room and max(widths[1:], default=0) > MIN_CUT:  # the first column names the row
        place = widths.index(max(widths[1:]), 1)
        widths[place] -= 1
    return widths


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], *, status: str | None = None) -> list[str]:
    """Return aligned columns; the one named ``status`` is coloured.

    On a terminal they are cut to its width, with an ellipsis: first the last column, then whichever is widest.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(width(row[place]) for row in [list(heads), *cells]) for place in range(len(heads))]
    columns = shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 10_000
    if sum(widths) + 2 * (len(heads) - 1) > columns:  # columns that say nothing make room for the others
        empty = {place for place in range(len(heads) - 1) if all(row[place] == "-" for row in cells)}
        keep = [place for place in range(len(heads)) if place not in empty]
        heads, widths = [heads[place] for place in keep], [widths[place] for place in keep]
        cells = [[row[place] for place in keep] for row in cells]
    instants = {place for place in range(len(heads)) if any(_INSTANT.match(row[place]) for row in cells)}
    widths = _fit(widths, columns, instants)
    lines = []
    for number, row in enumerate([list(heads), *cells]):
        shown = []
        for place, cell in enumerate(row):
            text = cut(cell, widths[place])
            text += " " * (widths[place] - width(text))
            if number == 0:
                text = colour(text, BOLD)
            elif heads[place] == status:
                text = colour(text, STATUS_COLOURS.get(cell.strip(), ""))
            shown.append(text)
        lines.append("  ".join(shown).rstrip())
    return lines


def labelled(facts: Iterable[tuple[str, str]]) -> list[str]:
    """Return one line for each label and its value."""
    return [f"{label:<12} {one_line(value)}" for label, value in facts]


def facts(data: dict[str, Any]) -> list[str]:
    """Return an object as lines with a label each."""
    return labelled(
        (key.replace("_", " "), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in data.items()
    )
