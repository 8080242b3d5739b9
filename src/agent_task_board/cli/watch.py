"""The board live, for `atb watch`: drawn on a terminal, or a line of JSON for each change."""

from __future__ import annotations

import os
import select
import sys
import time

from .. import instants
from ..errors import Busy, NotFound
from .command import Call, Reply
from .output import complain, print_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..board.overview import Overview
    from ..service import Board

POLL_SECONDS = 0.25
"""How often the board is looked at for a change."""

PAUSE = 20
"""After a read, as many times as long as it took pass until the next one: a large board must not keep a core busy."""


class Reader:
    """Reads the board anew whenever somebody has written, or time alone has changed it."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._mark: tuple[int, ...] | None = None
        self._not_before = 0.0
        self.found: Overview | None = None

    def look(self) -> bool:
        """Read the board if it has changed; say whether it shows something else than before.

        Raises:
            NotFound: the board is not there.
        """
        from ..board.overview import overview

        began = time.monotonic()
        if began < self._not_before:
            return False
        before = self.found
        try:
            mark = self._board.database.change_mark()
            if mark is None:
                raise NotFound(f"there is no board at {self._board.path}")
            if before is not None and mark == self._mark and before.holds_at(instants.now()):
                return False
            self.found = overview(self._board)
        except Busy:  # for a moment, as while the board is recovered after a crash
            return False
        self._mark = mark  # read before the board was: a change in between is seen the next time
        took = time.monotonic() - began
        self._not_before = began + took * (1 + PAUSE)
        return before is None or before.data != self.found.data


def watch(call: Call) -> Reply:
    """Show the board until the person quits or the reader of the lines closes the pipe."""
    reader = Reader(call.board)
    reader.look()
    if call.warnings and not call.args.quiet:
        from .tables import clean

        complain(clean("".join(f"warning: {warning}\n" for warning in call.warnings)))
    if _draws(call):
        _draw(reader, call.board.path)
    else:
        _print(reader)
    return Reply(None, printed=True)


def _draws(call: Call) -> bool:
    """Say whether to draw for a person: on a terminal that can be drawn on, where the answer would be a table."""
    return call.style == "table" and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _print(reader: Reader) -> None:
    """Print a line of JSON now and for each change, until Ctrl-C or until the reader closes the pipe."""
    ended = select.poll()
    ended.register(sys.stdout.fileno(), 0)  # only reports a pipe whose reading end was closed
    has_changed = True
    while True:
        if has_changed and reader.found is not None:
            print_line({"at": instants.to_text(reader.found.at), **reader.found.data})
        if ended.poll(POLL_SECONDS * 1_000):
            return
        has_changed = reader.look()


def _draw(reader: Reader, path: str) -> None:
    """Draw the board until ``q``, Ctrl-C or a signal that ends the process."""
    from .drawing import frame
    from .screen import Ended, Screen

    keys = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
    colours = not os.environ.get("NO_COLOR")
    try:
        with Screen(sys.stdout.fileno(), keys) as screen:
            size, until = (0, 0), None
            has_changed = True
            while True:
                now = instants.now()
                if screen.size() != size or (until is not None and now >= until) or screen.is_blank:
                    has_changed = True
                if has_changed and reader.found is not None:
                    size = screen.size()
                    shown = frame(reader.found.data, os.path.dirname(path), *size, now, colours=colours)
                    screen.draw(shown.lines)
                    until = shown.until
                pressed = screen.wait(POLL_SECONDS)
                if pressed is None or b"q" in pressed.lower():
                    return
                has_changed = reader.look()
    except Ended as ended:
        raise SystemExit(128 + ended.number) from None
