"""The board as lines of a terminal: what needs a person, what is in progress and what is ready."""

from __future__ import annotations

from .. import instants, printable
from .tables import BOLD, STATUS_COLOURS, cut, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

FAINT = "2"
ALARM = "31;1"
NAME_COLUMNS = 16
"""The maximum width of a name."""
BAR = 8
"""The width of a bar of progress."""
WIDE = 100
"""Columns from which a task in progress shows its queue and a bar."""

REASONS = {
    "review": ("review", STATUS_COLOURS["review"], "updated_at"),
    "expired": ("lease expired", ALARM, "lease_expires_at"),
    "stuck": ("stuck", STATUS_COLOURS["stuck"], "updated_at"),
    "overdue": ("overdue", "35", "due_at"),
    "failed": ("failed", STATUS_COLOURS["failed"], "finished_at"),
}
"""Why a task needs a person: the words, their colour, and the instant since when."""

_UNITS = ((instants.DAY, "d", instants.HOUR, "h"), (instants.HOUR, "h", instants.MINUTE, "m"))
_IN_MINUTES = 2 * instants.MINUTE


class Frame:
    """Lines that fill a terminal, and when time alone changes them, in milliseconds since 1970."""

    __slots__ = ("lines", "until")

    def __init__(self, lines: list[str], until: int | None) -> None:
        self.lines = lines
        self.until = until


class _Pen:
    """Draws one frame: colours, and the lengths of time in it with the instant at which the first of them changes."""

    def __init__(self, now: int, *, colours: bool) -> None:
        self.now = now
        self.colours = colours
        self.until: int | None = None

    def paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[m" if code and text and self.colours else text

    def left(self, at: str) -> str:
        """Return how long it is until an instant."""
        length = max(0, instants.from_text(at) - self.now)
        text, unit = _length(length)
        self._changes_in(length % unit + 1)
        return f"{text} left"

    def since(self, at: str) -> str:
        """Return how long ago an instant was, in minutes or more: seconds would be drawn anew all the time."""
        length = max(0, self.now - instants.from_text(at))
        text, unit = _length(length) if length >= _IN_MINUTES else (f"{length // instants.MINUTE}m", instants.MINUTE)
        self._changes_in(unit - length % unit)
        return text

    def _changes_in(self, length: int) -> None:
        at = self.now + length
        self.until = at if self.until is None else min(self.until, at)


def frame(overview: dict[str, Any], path: str, columns: int, lines: int, now: int, *, colours: bool = True) -> Frame:
    """Return the ``data`` of an overview as lines for a terminal of a size; ``path`` is that of the board."""
    pen = _Pen(now, colours=colours)
    groups = [
        ("NEEDS YOU", _needs_you(overview, pen)),
        ("IN PROGRESS", [_held(task, pen, columns) for task in overview["in_progress"]["tasks"]]),
        ("READY", [_ready(task, pen) for task in overview["ready"]["tasks"]]),
    ]
    totals = [
        sum(group["count"] for group in overview["needs_you"].values()),
        overview["in_progress"]["count"],
        overview["ready"]["count"],
    ]
    drawn = [_title(path, columns, pen), _counts(overview, columns, pen)]
    room = lines - len(drawn) - 1 - 2 * len(groups)  # a blank and a head for each group, and the last line
    shown = _share(room, [len(rows) for _, rows in groups])
    for (name, rows), total, some in zip(groups, totals, shown, strict=True):
        code = ALARM if name == "NEEDS YOU" and total else BOLD
        head = cut(f"{name} {total:,}", columns)
        more = cut(f"  {some} shown", columns - width(head)) if some < total else ""
        drawn += ["", pen.paint(head, code) + pen.paint(more, FAINT)]
        drawn += _aligned(rows[:some], columns, pen)
    if lines > 3:
        drawn = drawn[: lines - 1]
        drawn += [""] * (lines - 1 - len(drawn)) + [pen.paint(cut("q quits", columns), FAINT)]
    return Frame(drawn[:lines], pen.until)


def _length(length: int) -> tuple[str, int]:
    """Return a length of time in at most two units, and the smaller of them in milliseconds."""
    for large, letter, small, other in _UNITS:
        if length >= large:
            rest = length % large // small
            return f"{length // large}{letter}" + (f" {rest}{other}" if rest else ""), small
    if length >= _IN_MINUTES:
        return f"{length // instants.MINUTE}m", instants.MINUTE
    return f"{length // instants.SECOND}s", instants.SECOND


def _share(room: int, wanted: Sequence[int]) -> list[int]:
    """Return how many lines each group gets: all that it wants, or a fair share."""
    shares = [0] * len(wanted)
    while room > 0 and shares != list(wanted):
        for place, most in enumerate(wanted):
            if room > 0 and shares[place] < most:
                shares[place] += 1
                room -= 1
    return shares


# Lines


def _title(path: str, columns: int, pen: _Pen) -> str:
    name = cut("Agent Task Board", columns)
    path = printable.escape_line(path)
    room = columns - width(name) - 2
    while width(path) > max(room, 0):  # the end of a path says more than its beginning
        path = f"…{path[2:]}" if path.startswith("…") else f"…{path[1:]}"
        if path == "…":
            path = ""
    return pen.paint(name, BOLD) + (f"  {pen.paint(path, FAINT)}" if path else "")


def _counts(overview: dict[str, Any], columns: int, pen: _Pen) -> str:
    counts = [(count, name, STATUS_COLOURS.get(name, "")) for name, count in overview["counts"].items()]
    counts += [(overview[name], name, FAINT) for name in ("blocked", "stuck", "delayed")]
    line, used = "", 0
    for count, name, code in counts:
        text = f"{count:,} {name}"
        if not count or used + len(text) > columns:
            continue
        line += pen.paint(text, code) + "  "
        used += len(text) + 2
    return line.rstrip() or cut("no tasks", columns)


Cell = tuple[str, str]
"""Text and its colour."""


def _needs_you(overview: dict[str, Any], pen: _Pen) -> list[list[Cell]]:
    return [
        [
            (task["id"][-6:], FAINT),
            (REASONS[reason][0], REASONS[reason][1]),
            (_name(task["claimed_by"] or task["assignee"]), ""),
            (pen.since(task[REASONS[reason][2]]), FAINT),
            (printable.escape_line(task["title"]), ""),
        ]
        for reason, group in overview["needs_you"].items()
        for task in group["tasks"]
    ]


def _held(task: dict[str, Any], pen: _Pen, columns: int) -> list[Cell]:
    progress = task["progress"]
    cells = [
        (task["id"][-6:], FAINT),
        (_name(task["claimed_by"]), ""),
        (task["status"], STATUS_COLOURS[task["status"]]),
        ("" if progress is None else f"{progress:>3} %", ""),
        (pen.left(task["lease_expires_at"]), FAINT),
        (printable.escape_line(task["title"]), ""),
    ]
    if columns >= WIDE:
        full = 0 if progress is None else progress * BAR // 100
        cells.insert(4, ("" if progress is None else "█" * full + "░" * (BAR - full), "32"))
        cells.insert(-1, (_name(task["queue"]), FAINT))
    return cells


def _ready(task: dict[str, Any], pen: _Pen) -> list[Cell]:
    wait = f"for {_name(task['assignee'])}" if task["assignee"] else ""
    return [
        (task["id"][-6:], FAINT),
        (f"p{task['priority']}" if task["priority"] else "", BOLD),
        (_name(task["queue"]), FAINT),
        (wait, ""),
        (pen.since(task["created_at"]), FAINT),
        (printable.escape_line(task["title"]), ""),
    ]


def _name(name: str | None) -> str:
    return cut(printable.name(name), NAME_COLUMNS) if name else ""


def _aligned(rows: list[list[Cell]], columns: int, pen: _Pen) -> list[str]:
    """Return rows with aligned columns; empty columns are left out, and what does not fit is cut with an ellipsis."""
    if not rows:
        return []
    widths = [max(width(row[place][0]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for row in rows:
        line, left = "", columns
        for place, (text, code) in enumerate(row):
            if not widths[place] or left <= 3:
                continue
            shown = cut(text, left - 2)
            is_last = place == len(row) - 1
            pad = "" if is_last else " " * (min(widths[place], left - 2) - width(shown))
            line += f"  {pen.paint(shown, code)}{pad}"
            left -= 2 + width(shown) + len(pad)
        lines.append(line.rstrip())
    return lines
