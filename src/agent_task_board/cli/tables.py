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
LEGIBLE = 24
"""The width of the last column below which columns that can be spared are left out."""

STATUS_COLOURS = {
    "queued": "36",
    "claimed": "34",
    "running": "34;1",
    "review": "33;1",
    "waiting": "33",
    "stuck": "31",
    "done": "32",
    "failed": "31;1",
    "cancelled": "90",
}

MIN_COLUMN = 6
"""The width to which columns are narrowed first: that of a task's name."""
MIN_CUT = 2
"""The width to which they are narrowed on a terminal that is narrower still."""

_GAP = 2
"""Columns between two columns of a table."""
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
    room = columns - _GAP * (len(widths) - 1)
    if len(widths) - 1 not in instants:
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


def _chosen(heads: Sequence[str], cells: Sequence[Sequence[str]], columns: int, spare: Sequence[str]) -> list[int]:
    """Return the places of the columns to show: on a narrow terminal, the spare ones make room for the last one."""
    places = list(range(len(heads)))
    widths = [max(width(row[place]) for row in [heads, *cells]) for place in places]
    wanted = min(widths[-1], LEGIBLE)

    def is_too_wide(last: int) -> bool:
        others = [widths[place] for place in places[:-1]]
        hint = 0 if len(places) == len(heads) or not spared else _GAP + 1  # the column with the ellipsis
        return sum(others) + _GAP * len(others) + hint + last > columns

    spared = False
    if is_too_wide(widths[-1]):  # columns that say nothing go first
        places = [place for place in places if place == len(heads) - 1 or _says(cells, place)]
    for head in spare:
        if not is_too_wide(wanted):
            break
        if heads.index(head) in places:
            places.remove(heads.index(head))
            spared = True
    return places


def wrapped(text: str, columns: int) -> list[str]:
    """Return a text as lines of at most this many columns, broken between words where that is possible."""
    lines, line = [], ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        while width(longer) > columns:
            part = line or cut(longer, columns + 1).removesuffix("\u2026") or longer[0]
            lines.append(part)
            line, longer = "", longer.removeprefix(part).lstrip(" ")
        line = longer
    return [*lines, line]


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    status: str | None = None,
    spare: Sequence[str] = (),
    wrap: bool = False,
) -> list[str]:
    """Return aligned columns; the one named ``status`` is coloured.

    On a terminal they fit its width. Where they do not, columns without content are left out, then those named in
    ``spare``, in this order, until the last column is legible; a column with an ellipsis stands for them. Then cells
    are cut, with an ellipsis: those of the last column (``wrap`` breaks them into lines instead), then the widest.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    columns = shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 10_000
    places = _chosen(heads, cells, columns, spare)
    is_partial = any(heads.index(head) not in places and _says(cells, heads.index(head)) for head in spare)
    heads, cells = [heads[place] for place in places], [[row[place] for place in places] for row in cells]
    if is_partial:
        heads.insert(-1, "\u2026")
        for row in cells:
            row.insert(-1, "")
    widths = [max(width(row[place]) for row in [heads, *cells]) for place in range(len(heads))]
    instants = {place for place in range(len(heads)) if any(_INSTANT.match(row[place]) for row in cells)}
    widths = _fit(widths, columns, instants)
    lines = []
    for number, row in enumerate([list(heads), *cells]):
        shown = []
        rest = wrapped(row[-1], widths[-1]) if wrap else []
        for place, cell in enumerate([*row[:-1], rest.pop(0)] if rest else row):
            text = cut(cell, widths[place])
            text += " " * (widths[place] - width(text))
            if number == 0:
                text = colour(text, BOLD)
            elif heads[place] == status:
                text = colour(text, STATUS_COLOURS.get(cell.strip(), ""))
            shown.append(text)
        lines.append("  ".join(shown).rstrip())
        lines += [" " * (sum(widths[:-1]) + _GAP * (len(widths) - 1)) + line for line in rest]
    return lines


def _says(cells: Sequence[Sequence[str]], place: int) -> bool:
    return any(row[place] != "-" for row in cells)


def labelled(facts: Iterable[tuple[str, str | None]]) -> list[str]:
    """Return one line for each label and its value."""
    return [f"{label:<12} {one_line(value)}" for label, value in facts]


def facts(data: dict[str, Any]) -> list[str]:
    """Return an object as lines with a label each; a list has a line for each of its values."""
    return labelled(
        (key.replace("_", " ") if number == 0 else "", _word(line))
        for key, value in data.items()
        for number, line in enumerate((value or [None]) if isinstance(value, list) else [value])
    )


def _word(value: Any) -> str | None:
    """Return a fact in words; ``None``: there is none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str | None) else json.dumps(value, ensure_ascii=False)
