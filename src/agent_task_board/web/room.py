"""The room that answers take: a limit for each, and few large ones at the same time.

Without these, forty readers of long lists would need gigabytes.
"""

from __future__ import annotations

import threading

from ..errors import Busy
from .messages import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..storage.db import Row

ANSWER_LIMIT = 16 * 1_048_576
"""Bytes of an answer that has pages, at most."""
PAGE_TARGET = 12 * 1_048_576
"""Bytes of the entries of a page after which it ends; the rest of the limit is for its last entry."""
LARGE = 1_048_576
"""Bytes from which an answer is large."""
LARGE_AT_ONCE = 4
"""Large answers that are made or sent at the same time; each takes a few times its bytes."""
PATIENCE = 10.0
"""Seconds that a large answer waits for others to be sent."""
_KEYS = 800
"""Bytes of the names, numbers and instants of a task."""


class LargeAnswers:
    """The places of large answers of one server."""

    def __init__(self) -> None:
        self._places = threading.BoundedSemaphore(LARGE_AT_ONCE)

    def enter(self) -> None:
        """Take a place.

        Raises:
            Busy: none became free in time.
        """
        if not self._places.acquire(timeout=PATIENCE):
            raise Busy(
                f"too many large answers at the same time (limit {LARGE_AT_ONCE})",
                hint="Ask again in a moment, or for fewer entries with a smaller limit.",
            )

    def leave(self) -> None:
        """Give a place back."""
        self._places.release()


class Room:
    """The room of one answer, counted while it is made. Release it when the answer was sent."""

    def __init__(self, large: LargeAnswers) -> None:
        self._large = large
        self._size = 0
        self._has_place = False

    @property
    def is_full(self) -> bool:
        """Whether a page ends with the rows so far."""
        return self._size >= PAGE_TARGET

    def take(self, row: Row) -> None:
        """Count a row of a page.

        Raises:
            Busy: the answer is large, and so are too many others.
        """
        self._size += _KEYS + sum(_bytes_of(value) for value in row if isinstance(value, str))
        self.need(self._size)

    def need(self, size: int) -> None:
        """Make sure of a place for an answer of this many bytes, if it needs one.

        Raises:
            Busy: it does, and none became free in time.
        """
        if size > LARGE and not self._has_place:
            self._large.enter()
            self._has_place = True

    def begin_again(self) -> None:
        """Count from the beginning, for a page that is made anew."""
        self._size = 0

    def release(self) -> None:
        """Give the place back."""
        if self._has_place:
            self._has_place = False
            self._large.leave()


def _bytes_of(value: str) -> int:
    return len(value) if value.isascii() and value.isprintable() else len(encode(value))
