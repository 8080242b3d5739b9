"""The output of the demo: a line for each event or, on a terminal, a table that is redrawn in place."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

    from ..model import Event

PLAIN, GOOD, WARN, BAD, FAINT = "", "32", "33", "31", "2"
"""Colours, as codes of the terminal."""

TONES = {
    "completed": GOOD,
    "approved": GOOD,
    "expired": BAD,
    "failed": WARN,
    "released": WARN,
    "handed_off": WARN,
    "rejected": WARN,
    "retried": WARN,
    "progressed": FAINT,
    "started": FAINT,
}
STATE_TONES = {"killed": BAD, "frozen": BAD, "idle": FAINT, "ended": FAINT}
SHOWN = ("queued", "claimed", "running", "review", "failed", "done")
LATEST = 10
"""The number of messages shown under the table."""


class Row(NamedTuple):
    """One agent in the table."""

    agent: str
    state: str
    progress: int | None = None
    title: str = ""


class Screen:
    """Prints every message as a line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._start = time.monotonic()

    def report(self, text: str, tone: str = PLAIN) -> None:
        """Print a message."""
        del tone  # lines have no colour: they go to files and pipes
        print(f"{self._elapsed()}  {text}", file=self._out, flush=True)

    def show(self, rows: Sequence[Row], counts: Mapping[str, int]) -> None:
        """Show the current state; the lines have already reported it."""

    def conclude(self, lines: Sequence[str]) -> None:
        """Print the last lines, below everything else."""
        print("", *lines, sep="\n", file=self._out, flush=True)

    def _elapsed(self) -> str:
        return f"{time.monotonic() - self._start:5.1f}s"


class LiveScreen(Screen):
    """Keeps a table of the agents up to date, with the latest messages below it."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(out)
        self._latest: deque[tuple[str, str]] = deque(maxlen=LATEST)
        self._colour = not os.environ.get("NO_COLOR")
        self._height = 0

    def report(self, text: str, tone: str = PLAIN) -> None:
        """Show a message at the next redraw, unless the table shows it anyway."""
        if tone != FAINT:
            self._latest.append((f"{self._elapsed()}  {text}", tone))

    def show(self, rows: Sequence[Row], counts: Mapping[str, int]) -> None:
        """Redraw the table in place."""
        columns, height = self._size()
        lines = [(f"{self._elapsed()}  " + "  ".join(f"{status} {counts[status]}" for status in SHOWN), "1"), ("", "")]
        for row in rows:
            progress = "" if row.progress is None else f"{row.progress} %"
            text = f"  {row.agent:<11} {row.state:<8} {progress:>5}  {row.title}"
            lines.append((text.rstrip(), STATE_TONES.get(row.state, PLAIN)))
        lines.append(("", ""))
        room = max(0, min(LATEST, height - len(lines) - 1))  # a table taller than the terminal cannot be redrawn
        latest = list(self._latest)[-room:] if room else []
        lines += latest + [("", "")] * (room - len(latest))
        back = f"\x1b[{self._height}F" if self._height else ""
        drawn = "".join(self._painted(text[: columns - 1], tone) + "\x1b[K\n" for text, tone in lines)
        self._out.write(f"{back}{drawn}\x1b[J")
        self._out.flush()
        self._height = len(lines)

    def _size(self) -> tuple[int, int]:
        """Return the columns and lines of this terminal; standard output may be another one, or a pipe."""
        try:
            return os.get_terminal_size(self._out.fileno())
        except OSError:
            return 80, 24

    def _painted(self, text: str, tone: str) -> str:
        return f"\x1b[{tone}m{text}\x1b[0m" if tone and self._colour else text


def sentence(event: Event, title: str) -> str:
    """Return an event as a sentence for people."""
    kind, who, data = event["kind"], event["actor"], event["data"]
    changes = data.get("changes", {})
    to = {field: change["to"] for field, change in changes.items()}
    note = f': "{data["note"]}"' if data.get("note") else ""
    task = f'"{title}"'
    if kind == "claimed":
        return f"{who} claims {task}, fence {to.get('fence')}"
    if kind == "started":
        return f"{who} starts {task}" + (f" after reading {note[2:]}" if note else "")
    if kind == "progressed":
        return f"{who} reports {to.get('progress')} % of {task}"
    if kind == "completed":
        end = "a person must review it" if to.get("status") == "review" else "done"
        return f"{who} completes {task}: {end}"
    if kind == "failed":
        end = "a person must retry it" if to.get("status") == "failed" else "another attempt follows"
        return f'{who} fails {task} ({end}): "{data.get("error")}"'
    if kind == "expired":
        if to.get("status") == "failed":
            return f"{data.get('error')}: {task} has no attempts left"
        return f"the lease of {changes['claimed_by']['from']} on {task} expires: any agent can claim it"
    if kind == "handed_off":
        return f"{who} hands {task} off to {to.get('assignee')}{note}"
    verbs = {"released": "releases", "approved": "approves", "rejected": "rejects", "retried": "retries"}
    return f"{who} {verbs.get(kind, kind)} {task}{note}"
