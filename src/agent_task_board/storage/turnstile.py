"""A fair queue in front of SQLite's write lock.

SQLite's busy handler polls, so with ten writers the lock goes to the process that happens to ask at the right moment:
one may wait hundreds of milliseconds while another takes task after task. Two `flock` files form a turnstile instead.
A writer locks ``queue``, then ``turn``, then unlocks ``queue``, and keeps ``turn`` for its transaction. A writer that
returns at once must pass ``queue`` again, behind those who already wait there.

The turnstile makes writing fair; it does not make it safe. SQLite's write lock alone keeps writers apart. Where there
is no `flock`, or when a stopped process keeps a lock for two seconds, the writer continues without the turnstile.

A forked child shares its parent's locks, and would keep them locked after the parent's death. So it closes the
descriptors that it inherits.
"""

from __future__ import annotations

import os
from _thread import RLock, allocate_lock, start_new_thread
from time import monotonic

try:
    import fcntl

    HAS_FLOCK = True
except ImportError:  # Windows
    HAS_FLOCK = False

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
"""A symbolic link is not followed: the file that it leads to is not ours to create."""

PATIENCE = 2.0
"""Seconds that a writer waits in the queue before it continues without the turnstile."""

_opening = RLock()
"""Held while a descriptor is opened or closed, and during a fork, so that a child knows those that it inherits."""
_descriptors: dict[int, _Lock | None] = {}
"""Open descriptors, with the lock that each belongs to; ``None``: a thread closes it at the end of its wait."""


class Turnstile:
    """The queue of writers of one board, as used by one connection."""

    def __init__(self, directory: str) -> None:
        self._queue = _Lock(os.path.join(directory, "turnstile.queue"))
        self._turn = _Lock(os.path.join(directory, "turnstile.turn"))

    def enter(self, deadline: float | None = None) -> bool:
        """Wait for this writer's turn: until it comes, ``PATIENCE`` ends, or ``deadline`` of the monotonic clock.

        Returns:
            Whether another writer was in front.
        """
        end = monotonic() + PATIENCE
        if deadline is not None and deadline < end:
            end = deadline
        try:
            self._queue.take(end)
            self._turn.take(end)
        finally:
            self._queue.give_up()
        return self._queue.was_taken or self._turn.was_taken

    def leave(self) -> None:
        """Let the next writer in."""
        self._turn.give_up()

    def close(self) -> None:
        """Close the files."""
        self._queue.close()
        self._turn.close()


class _Lock:
    """A `flock` file whose locking has a time limit, which `flock` itself lacks."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1
        self._held = False
        self.was_taken = False
        """Whether another process had the lock when this one last asked for it."""
        self._abandoned: _Wait | None = None
        """A wait that ran out of time; the next one continues it, because each wait costs a thread."""

    def take(self, deadline: float) -> bool:
        """Take the lock; return False if ``deadline`` (of the monotonic clock) comes first or locking is impossible."""
        self.was_taken = False
        wait, self._abandoned = self._abandoned, None
        if wait is None or not wait.resume():
            if self._try() or self._file < 0:
                return self._held
            self.was_taken = True
            if deadline <= monotonic():
                return False
            try:
                wait = _Wait(self._file)
            except RuntimeError:  # no thread can be started, for example while the interpreter ends
                return False
        self.was_taken = True
        try:
            self._held = wait.ended_before(deadline)
        finally:
            if not self._held:
                if wait.abandon():
                    self._abandoned = wait
                else:
                    self._held = True
        return self._held

    def give_up(self) -> None:
        """Release the lock if it is held."""
        if self._held:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._held = False

    def close(self) -> None:
        """Close the file, which releases the lock."""
        wait, self._abandoned = self._abandoned, None
        file, self._file, self._held = self._file, -1, False
        if file < 0:
            return
        if wait is None or not wait.take_over_file():
            _close(file)

    def forget(self) -> None:
        """Start again without the file, which a fork has closed."""
        self._file, self._held, self._abandoned = -1, False, None

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
                with _opening:
                    self._file = os.open(self._path, _FLAGS, 0o600)
                    _descriptors[self._file] = self
            except OSError:
                return False
        return self._file >= 0


class _Wait:
    """A thread that blocks in `flock`: a blocked call cannot be interrupted, but a wait for a thread can end.

    If the lock is granted when nobody waits for it any more, the thread releases it at once.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._granted = allocate_lock()
        self._granted.acquire()
        self._agreement = allocate_lock()
        self._ended = False
        self._wanted = True
        self._closes_file = False
        start_new_thread(self._block, ())

    def ended_before(self, deadline: float) -> bool:
        """Wait until the lock is granted; return False if ``deadline`` comes first."""
        return self._granted.acquire(timeout=max(0.0, deadline - monotonic()))

    def abandon(self) -> bool:
        """Stop waiting for now; return False if the lock was granted at the last moment."""
        with self._agreement:
            self._wanted = self._ended
            return not self._ended

    def resume(self) -> bool:
        """Wait again; return False if the thread has ended in the meantime."""
        with self._agreement:
            self._wanted = not self._ended
            return self._wanted

    def take_over_file(self) -> bool:
        """Let the thread close the file at its end; return False if it has ended."""
        with self._agreement:
            self._closes_file = not self._ended
            if self._closes_file:
                _descriptors[self._file] = None
            return self._closes_file

    def _block(self) -> None:
        try:  # noqa: SIM105 - contextlib would be one more import
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except OSError:
            pass
        with self._agreement:
            self._ended = True
            if self._closes_file:
                _close(self._file)
            elif not self._wanted:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        self._granted.release()


def _close(file: int) -> None:
    with _opening:
        _descriptors.pop(file, None)
        os.close(file)


def at_fork(before: Callable[[], None], in_parent: Callable[[], None], in_child: Callable[[], None]) -> None:
    """Register functions to run at a fork, where the system has it."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)


def _before_fork() -> None:
    _opening.acquire()


def _after_fork_in_parent() -> None:
    _opening.release()


def _after_fork_in_child() -> None:
    for file, lock in _descriptors.items():
        try:  # noqa: SIM105 - contextlib would be one more import
            os.close(file)
        except OSError:
            pass
        if lock is not None:
            lock.forget()
    _descriptors.clear()
    _opening.release()


at_fork(_before_fork, _after_fork_in_parent, _after_fork_in_child)
