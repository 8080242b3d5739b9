"""A limit on guessing secrets: each source may present a few wrong ones, then nothing of it is tried for a while."""

from __future__ import annotations

import hashlib
import threading
import time

from ..errors import Busy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ALLOWED = 20
"""Different wrong secrets that one source may present within ``WINDOW``."""
WINDOW = 60.0
"""Seconds."""
SOURCES = 1_000
"""The most sources that are remembered; the one that was quiet longest makes room."""
KNOWN = 1_000
"""The most secrets that are remembered as right."""


class Guesses:
    """Counts wrong secrets by source.

    The same wrong secret counts once: a client with an old key that repeats its call guesses nothing. A secret that was
    right before is still tried, so that whoever shares the source of a guesser is not locked out.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._wrong: dict[str, dict[bytes, float]] = {}
        self._right: dict[bytes, None] = {}

    def allow(self, source: str, secret: str) -> None:
        """Let a secret be tried.

        Raises:
            Busy: its source has presented too many wrong ones.
        """
        if not self.may_try(source, secret):
            raise too_many()

    def may_try(self, source: str, secret: str) -> bool:
        """Say whether a secret may be tried."""
        with self._lock:
            return _mark(secret) in self._right or len(self._recent(source)) < ALLOWED

    def wrong(self, source: str, secret: str) -> None:
        """Count a secret that was wrong."""
        with self._lock:
            mark = _mark(secret)
            wrong = self._recent(source)
            wrong[mark] = self._clock()
            self._right.pop(mark, None)
            self._wrong.pop(source, None)
            self._wrong[source] = wrong
            while len(self._wrong) > SOURCES:
                del self._wrong[next(iter(self._wrong))]

    def right(self, secret: str) -> None:
        """Remember a secret that was right."""
        mark = _mark(secret)
        with self._lock:
            self._right.pop(mark, None)
            self._right[mark] = None
            while len(self._right) > KNOWN:
                del self._right[next(iter(self._right))]

    def _recent(self, source: str) -> dict[bytes, float]:
        since = self._clock() - WINDOW
        found = {mark: at for mark, at in self._wrong.get(source, {}).items() if at > since}
        if not found:
            self._wrong.pop(source, None)
        return found


def too_many() -> Busy:
    """Return the refusal of a secret that is not tried."""
    return Busy(
        f"too many wrong keys, codes or sessions (limit {ALLOWED} in {WINDOW:g} s)",
        hint="Wait a minute, then use a valid one.",
    )


def _mark(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
