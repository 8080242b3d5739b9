"""Hold a task for as long as a block of code runs: a thread renews the lease, the end of the block ends the attempt."""

from __future__ import annotations

import threading

from .. import instants
from ..errors import BoardError, LeaseLost
from ..inputs import TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Any, Self

    from ..model import Grant, Lease, Receipt, Task
    from .claiming import Claiming

BEATS = 3
"""Renewals in the length of a lease."""
RETRY_SECONDS = 1.0
"""The wait after a renewal that was refused as busy or could not be stored, at most."""


class Held:
    """A task under a lease that a thread renews; ``Board.claim(…, keep=True)`` returns one.

    As a context manager, plain or asynchronous, it ends the attempt together with the block. The end of the block
    completes the task with ``result``, ``artifacts`` and ``note``. An exception fails it with the exception as its
    error, and goes on; one that asks the program to stop (``KeyboardInterrupt``, a cancelled coroutine) releases it.
    ``complete``, ``fail``, ``release`` and ``handoff`` end the attempt earlier; the end of the block does nothing then.

    A block without an exception raises ``LeaseLost`` at its end if the lease was lost, and ``check`` raises it at any
    moment: what the block still does then, another agent may be doing, too.
    """

    def __init__(self, board: Claiming, grant: Grant) -> None:
        self.task: Task = grant.task
        self.lease: Lease = grant.lease
        """The lease as it was granted or last renewed."""
        self.warnings = grant.warnings
        self.result: Any = None
        """The result to complete with: any JSON value."""
        self.artifacts: Sequence[str] = ()
        """Paths of what the work produced."""
        self.note: str | None = None
        self.has_ended = False
        """Whether the attempt was ended by this object."""
        self._board = board
        self._actor = None
        self._lost: LeaseLost | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"lease of {self.id}", daemon=True)
        self._thread.start()

    @property
    def id(self) -> str:
        """The id of the task."""
        return self.task.id

    @property
    def token(self) -> str:
        """The token of the lease."""
        return self.lease.token

    def check(self) -> None:
        """Raise if the lease is lost.

        Raises:
            LeaseLost: the task was cancelled, reassigned or finished by another call, or the lease could not be renewed
                before its end.
        """
        if self._lost is None and not self.has_ended and instants.to_text(self._board.clock()) >= self.lease.expires_at:
            self._lost = LeaseLost(f"the lease of task {self.id} ended at {self.lease.expires_at}")
        if self._lost is not None:
            raise self._lost

    def heartbeat(self, *, progress: int | None = None, note: str | None = None) -> None:
        """Renew the lease now, and report progress in percent.

        Raises:
            LeaseLost: the lease is lost.
        """
        self.check()
        self._beat(progress=progress, note=note)

    def complete(self) -> Receipt:
        """Complete the task with ``result``, ``artifacts`` and ``note``.

        Raises:
            LeaseLost: the lease is lost.
        """
        return self._ended(
            self._board.complete(self.id, self.token, result=self.result, artifacts=self.artifacts, note=self.note)
        )

    def fail(self, error: str, *, retry_in: str | float | None = None, no_retry: bool = False) -> Receipt:
        """Report that the attempt failed, as ``Board.fail`` does.

        Raises:
            LeaseLost: the lease is lost.
        """
        return self._ended(self._board.fail(self.id, self.token, error, retry_in=retry_in, no_retry=no_retry))

    def release(self, *, after: str | float | None = None, note: str | None = None) -> Receipt:
        """Return the task to its queue, as ``Board.release`` does.

        Raises:
            LeaseLost: the lease is lost.
        """
        return self._ended(self._board.release(self.id, self.token, after=after, note=note))

    def handoff(self, to: str, *, note: str | None = None) -> Receipt:
        """Return the task to its queue for another agent, as ``Board.handoff`` does.

        Raises:
            LeaseLost: the lease is lost.
        """
        return self._ended(self._board.handoff(self.id, self.token, to, note=note))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self.has_ended:
            return
        if error is None:
            self.check()
            self.complete()
            return
        try:
            if isinstance(error, Exception):
                self.fail(f"{type(error).__name__}: {error}"[:TEXT])
            else:
                self.release(note=f"stopped by {type(error).__name__}")
        except BoardError as refusal:  # the exception of the block is the one to see
            error.add_note(f"task {self.id} was not returned: {refusal}")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import asyncio

        # Shielded: a cancelled coroutine still returns its task.
        await asyncio.shield(asyncio.to_thread(self._leave, kind, error, trace))

    def _leave(self, *error: Any) -> None:
        try:
            self.__exit__(*error)
        finally:
            self._board.leave_thread()

    def _ended(self, receipt: Receipt) -> Receipt:
        self.has_ended = True
        self.task = receipt.task
        self._stop.set()
        return receipt

    def _beat(self, *, progress: int | None = None, note: str | None = None) -> None:
        grant = self._board.heartbeat(self.id, self.token, progress=progress, note=note)
        self.task, self.lease = grant.task, grant.lease

    def _renew(self) -> None:
        """Renew the lease until the block ends or the lease is lost."""
        length = self._seconds_left()
        pause = length / BEATS
        try:
            while not self._stop.wait(pause):
                try:
                    self._beat()
                    pause = length / BEATS
                except LeaseLost as lost:
                    self._lost = lost
                    return
                except BoardError:  # busy, or the disk is full: again until the lease has ended
                    pause = min(RETRY_SECONDS, length / BEATS)
                    if self._seconds_left() <= 0:
                        return
        finally:
            self._board.leave_thread()

    def _seconds_left(self) -> float:
        return (instants.from_text(self.lease.expires_at) - self._board.clock()) / instants.SECOND
