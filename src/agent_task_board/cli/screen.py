"""A terminal that a command draws on: the alternate screen, its size, its keys, and its state put back at the end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType, TracebackType
    from typing import Any, Self

_BEGIN = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J"
"""The alternate screen, no cursor, no line wrap, nothing on it."""
_END = b"\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l"

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""The signals that end the command once the terminal is as it was."""

REDRAW = b"\x0c"
"""The key (Ctrl-L) that draws everything anew."""


class Ended(BaseException):
    """The process received one of the signals ``ENDING``."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Screen:
    """A context manager: the terminal is the command's own inside it, and as it was before afterwards.

    That holds after an exception, Ctrl-C, SIGTERM, SIGHUP and SIGQUIT, too, and while the process is stopped by Ctrl-Z.
    ``keys`` is the terminal's descriptor for reading, or ``None`` if the keys go elsewhere.
    """

    def __init__(self, out: int, keys: int | None) -> None:
        self._out = out
        self._keys = keys
        self._drawn: list[str] | None = None
        self._is_stopping = False
        self._is_ending = False
        self._handlers: dict[signal.Signals, Any] = {}
        self._attributes: list[Any] | None = None
        self._wakeup = -1

    def __enter__(self) -> Self:
        # A signal must end poll(), which Python begins anew after each handler: each writes a byte into this pipe.
        self._awake, self._wake = os.pipe()
        for end in (self._awake, self._wake):
            os.set_blocking(end, False)
        self._wakeup = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        self._poll = select.poll()
        self._poll.register(self._awake, select.POLLIN)
        if self._keys is not None:
            self._poll.register(self._keys, select.POLLIN)
        try:
            for number in (*ENDING, signal.SIGINT):
                self._handle(number, self._end)
            self._handle(signal.SIGTSTP, self._stop)
            for number in (signal.SIGWINCH, signal.SIGCONT):
                self._handle(number, self._blank)
            self._take()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in (*ENDING, signal.SIGINT):  # nothing may cut this short
            self._handle(number, signal.SIG_IGN)
        try:
            self._give_back()
        except OSError:  # the terminal is gone
            pass
        finally:
            signal.set_wakeup_fd(self._wakeup)
            os.close(self._awake)
            os.close(self._wake)
            for number, handler in self._handlers.items():
                signal.signal(number, handler)

    def size(self) -> tuple[int, int]:
        """Return the columns and lines of the terminal."""
        with contextlib.suppress(OSError):
            columns, lines = os.get_terminal_size(self._out)
            if columns > 0 and lines > 0:
                return columns, lines
        return 80, 24

    @property
    def is_blank(self) -> bool:
        """Whether nothing is drawn: at the beginning, after a resize, and after the process was stopped."""
        return self._drawn is None

    def draw(self, lines: Sequence[str]) -> None:
        """Show lines from the top; only those are written that have changed."""
        before = self._drawn or []
        parts = ["\x1b[m\x1b[H\x1b[2J"] if self._drawn is None else []
        for place in range(max(len(lines), len(before))):
            line = lines[place] if place < len(lines) else ""
            if place >= len(before) or before[place] != line:
                # Cleared first: after a full line the cursor still stands on its last character.
                parts.append(f"\x1b[{place + 1};1H\x1b[m\x1b[K{line}")
        self._drawn = list(lines)
        if parts:
            self._write("".join(parts).encode("utf-8", "replace"))

    def wait(self, seconds: float) -> bytes | None:
        """Wait for keys, a signal or the end of the time; return the keys, ``None`` if the terminal is gone.

        Raises:
            Ended: one of the signals ``ENDING`` arrived.
        """
        ready = dict(self._poll.poll(max(0.0, seconds) * 1_000))
        if self._awake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._awake, 4_096)
        if self._is_stopping:
            self._stop_here()
        if self._keys not in ready:
            return b""
        try:
            keys = os.read(self._keys, 1_024)
        except OSError:
            return None
        if REDRAW in keys:
            self._drawn = None
        return keys or None

    # State

    def _take(self) -> None:
        """Take the terminal: keys arrive at once and are not shown; Ctrl-C and Ctrl-Z stay signals.

        Ctrl-S does not hold output back: a write that waits for Ctrl-Q would keep the program from ending.
        """
        self._drawn = None
        if self._keys is not None:
            self._attributes = termios.tcgetattr(self._keys)
            ours = termios.tcgetattr(self._keys)
            ours[0] &= ~termios.IXON
            ours[3] &= ~(termios.ICANON | termios.ECHO)
            ours[6][termios.VMIN], ours[6][termios.VTIME] = 1, 0
            termios.tcsetattr(self._keys, termios.TCSANOW, ours)
        self._write(_BEGIN)

    def _give_back(self) -> None:
        """Put the terminal back as it was."""
        if self._keys is not None and self._attributes is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._keys, termios.TCSANOW, self._attributes)
        self._write(_END)

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._out, data) :]

    # Signals

    def _handle(self, number: signal.Signals, handler: Any) -> None:
        before = signal.signal(number, handler)
        self._handlers.setdefault(number, before)

    def _end(self, number: int, frame: FrameType | None) -> None:
        del frame
        if not self._is_ending:  # a second one must not cut short what the first one began
            self._is_ending = True
            raise KeyboardInterrupt if number == signal.SIGINT else Ended(number)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._is_stopping = True

    def _blank(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._drawn = None

    def _stop_here(self) -> None:
        """Give the terminal back, stop as Ctrl-Z asks for, and take it again when the process continues."""
        self._is_stopping = False
        self._give_back()
        ours = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, ours)  # here the process continues
        self._take()
