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
        try:
            self._queue.take(deadline)
            self._turn.take(deadline)
        finally:
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
        self._given_up: _Wait | None = None
        """A wait that nobody waits for any more; the next one joins it, since each costs a thread."""

    def take(self, deadline: float) -> bool:
        """Take the lock; False when the deadline (of the monotonic clock) came first or there is no lock to take."""
        wait, self._given_up = self._given_up, None
        if wait is None or not wait.resume():
            if self._try() or self._file < 0:
                return self._held
            try:
                wait = _Wait(self._file)
            except RuntimeError:  # no thread can be started any more, as at the end of the interpreter
                return False
        try:
            self._held = wait.ended_before(deadline)
        finally:
            if not self._held:
                if wait.give_up():
                    self._given_up = wait
                else:
                    self._held = True
        return self._held

    def give_up(self) -> None:
        if self._held:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._held = False

    def close(self) -> None:
        wait, self._given_up = self._given_up, None
        if self._file >= 0 and not (wait and wait.leave_file()):
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


class _Wait:
    """A thread that blocks in `flock`, since a wait that can be given up must be somebody else's.

    When its turn comes while nobody waits for it, it gives the lock straight up.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._granted = allocate_lock()
        self._granted.acquire()
        self._agreement = allocate_lock()
        self._ended = False
        self._wanted = True
        self._owns_file = False
        start_new_thread(self._block, ())

    def ended_before(self, deadline: float) -> bool:
        return self._granted.acquire(timeout=max(0.0, deadline - monotonic()))

    def give_up(self) -> bool:
        """Go away for now; False if the lock was granted at the last moment after all."""
        with self._agreement:
            self._wanted = self._ended
            return not self._ended

    def resume(self) -> bool:
        """Come back; False if the wait has ended in the meantime."""
        with self._agreement:
            self._wanted = not self._ended
            return self._wanted

    def leave_file(self) -> bool:
        """Let the thread close the file at the end of its wait; False if that has ended."""
        with self._agreement:
            self._owns_file = not self._ended
            return self._owns_file

    def _block(self) -> None:
        try:  # noqa: SIM105 - contextlib would be one more import
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except OSError:
            pass
        with self._agreement:
            self._ended = True
            if self._owns_file:
                os.close(self._file)
            elif not self._wanted:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        self._granted.release()
