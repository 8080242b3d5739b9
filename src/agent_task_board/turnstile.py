"""A fair queue in front of SQLite's write lock.

SQLite's busy handler polls, so with ten writers the lock goes to whoever happens to ask at the right moment: one
process may wait hundreds of milliseconds while another takes task after task. Two `flock` files make a turnstile
instead. A writer takes ``queue``, then ``turn``, then gives up ``queue``, and keeps ``turn`` for its transaction. A
writer that comes straight back must pass ``queue`` again, where the others already stand.

The turnstile is a courtesy, never a guard: the write lock alone keeps writers apart. Where there is no `flock`, or
when a stopped process stands in the way for more than two seconds, the writer simply goes on without it.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread
from time import monotonic

try:
    import fcntl

    HAS_FLOCK = True
except ImportError:  # Windows
    HAS_FLOCK = False

PATIENCE = 2.0
"""Seconds that a writer stands in line before it goes on without the turnstile."""


class Turnstile:
    """The line of writers of one board, as seen by one connection."""

    def __init__(self, directory: str) -> None:
        self._queue = _Lock(os.path.join(directory, "turnstile.queue"))
        self._turn = _Lock(os.path.join(directory, "turnstile.turn"))

    def enter(self) -> None:
        """Stand in line; returns when it is this writer's turn, or when its patience ends."""
        deadline = monotonic() + PATIENCE
        queued = self._queue.take(deadline)
        try:
            self._turn.take(deadline)
        finally:
            if queued:
                self._queue.give_up()

    def leave(self) -> None:
        """Let the next writer have its turn."""
        self._turn.give_up()

    def close(self) -> None:
        """Close the files."""
        self._queue.close()
        self._turn.close()


class _Lock:
    """One `flock` file with a time limit, which `flock` itself does not have."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1
        self._held = False

    def take(self, deadline: float) -> bool:
        """Take the lock; False when the deadline (of the monotonic clock) came first or there is no lock to take."""
        if not self._try() and self._file >= 0:
            self._held = self._wait(deadline)
        return self._held

    def give_up(self) -> None:
        if self._held:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._held = False

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)  # which gives the lock up, too
            self._file, self._held = -1, False

    def _try(self) -> bool:
        if not self._open():
            return False
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without flock
            self.close()
            return False
        self._held = True
        return True

    def _open(self) -> bool:
        if self._file < 0 and HAS_FLOCK:
            try:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError:
                return False
        return self._file >= 0

    def _wait(self, deadline: float) -> bool:
        """Let a thread of its own wait for the lock, so that the wait can be given up."""
        waiting = _Wait(self._file)
        try:
            if waiting.ended_before(deadline):
                return True
        except BaseException:
            self._file = -1
            waiting.abandon()
            raise
        if waiting.abandon():
            self._file = -1  # the thread still waits on this file, and closes it when its turn has come
            return False
        return True


class _Wait:
    """A thread that blocks in `flock`, and the agreement about who closes a file that nobody waits for any more."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._granted = allocate_lock()
        self._granted.acquire()
        self._agreement = allocate_lock()
        self._ended = self._abandoned = False
        start_new_thread(self._block, ())

    def ended_before(self, deadline: float) -> bool:
        return self._granted.acquire(timeout=max(0.0, deadline - monotonic()))

    def abandon(self) -> bool:
        """Leave the file to the thread; False if the lock was granted at the last moment after all."""
        with self._agreement:
            if self._ended:
                return False
            self._abandoned = True
            return True

    def _block(self) -> None:
        try:  # noqa: SIM105 - contextlib would be one more import
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except OSError:
            pass
        with self._agreement:
            self._ended = True
            if self._abandoned:
                os.close(self._file)
        self._granted.release()
