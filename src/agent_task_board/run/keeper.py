"""Keep the lease of an attempt in a thread of its own, which no command can starve, and notice when it is lost."""

from __future__ import annotations

import threading
import time

from .. import instants
from ..errors import BoardError, Busy, LeaseLost
from ..inputs import TEXT
from ..model import LEASED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..model import Grant, Lease
    from ..service import Board
    from .output import Message

BEATS = 3
"""Renewals in the length of a lease."""
LOOK_SECONDS = 0.5
"""Seconds between two looks for a change by others, and between two messages to the board, at least."""
OWN_ENDINGS = ("completed", "failed", "released", "handed_off", "asked")
"""Outcomes by which the holder itself ends an attempt."""


class Keeper(threading.Thread):
    """Renews one lease until it is stopped or the lease is over.

    Args:
        board: the board.
        grant: the claim.
        renewed: is called with each renewed lease.
        over: is called once if the attempt has ended without this object.
    """

    def __init__(
        self, board: Board, grant: Grant, renewed: Callable[[Lease], object], over: Callable[[], object]
    ) -> None:
        super().__init__(name=f"lease of {grant.task.id}", daemon=True)
        self.outcome: str | None = None
        """How the attempt has ended without this object; ``lost`` if its end is not known."""
        self.reason = ""
        """A sentence about it."""
        self._board = board
        self._grant = grant
        self._lease = grant.lease
        self._renewed = renewed
        self._over = over
        self._length = max(0.0, (instants.from_text(grant.lease.expires_at) - board.clock()) / instants.SECOND)
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._progress: int | None = None
        self._notes: list[str] = []

    @property
    def has_ended_itself(self) -> bool:
        """Whether the command ended the attempt by a call of its own."""
        return self.outcome in OWN_ENDINGS

    def tell(self, message: Message) -> None:
        """Pass a message of the command on to the board, soon; of several percentages only the last one counts."""
        with self._lock:
            if message.progress is not None:
                self._progress = message.progress
            if message.note is not None and len(self._notes) < 100:
                self._notes.append(message.note)

    def stop(self) -> None:
        """Stop renewing, after the messages so far have been passed on."""
        self._stopping.set()
        self.join()

    def look(self) -> None:
        """Find out how the attempt has ended, if it has."""
        with self._board.read() as tx:
            row = tx.find(self._grant.task.id)
            attempt = tx.execute(
                "SELECT outcome FROM attempt WHERE task_seq = ? AND fence = ?", (row["seq"], self._lease.fence)
            ).fetchone()
            note = tx.execute(
                """
                SELECT kind, actor, data ->> 'note' AS note FROM event
                 WHERE task_seq = ? AND kind IN ('cancelled', 'reassigned', 'expired') ORDER BY seq DESC LIMIT 1
                """,
                (row["seq"],),
            ).fetchone()
            is_expired = row["status"] in LEASED and row["lease_expires_at"] <= tx.now
        if attempt is not None and attempt["outcome"] is None and row["status"] in LEASED and not is_expired:
            return
        self.outcome = "lost" if attempt is None else attempt["outcome"] or "expired"
        if self.outcome in OWN_ENDINGS:
            self.reason = f"{self.outcome.replace('_', ' ')} by the command itself"
        elif note is not None and self.outcome in ("revoked", "cancelled"):
            self.reason = f"{note['kind']} by {note['actor']}" + (f": {note['note']}" if note["note"] else "")
        else:
            self.reason = "the lease was lost"

    def run(self) -> None:
        """Renew until it is stopped."""
        beat = self._length / BEATS
        next_beat = time.monotonic() + beat
        mark: tuple[int, ...] | None = None
        try:
            while True:
                is_last = self._stopping.wait(min(LOOK_SECONDS, beat))
                try:
                    now = self._board.database.change_mark()
                    if now != mark:
                        mark = now
                        self.look()
                    if self.outcome is None and (time.monotonic() >= next_beat or self._has_news()):
                        next_beat = time.monotonic() + beat
                        self._beat()
                except LeaseLost:
                    self.look()
                    self.outcome = self.outcome or "lost"
                except Busy:
                    pass
                except BoardError as error:  # the disk is full, or the board is gone: again until the lease is over
                    next_beat = time.monotonic() + min(1.0, beat)
                    if instants.to_text(self._board.clock()) >= self._lease.expires_at:
                        self.outcome, self.reason = "lost", str(error)
                if self.outcome is not None:
                    self._over()
                    return
                if is_last:
                    return
        finally:
            self._board.leave_thread()

    def _has_news(self) -> bool:
        with self._lock:
            return self._progress is not None or bool(self._notes)

    def _beat(self) -> None:
        """Renew the lease with what the command has said since the last time."""
        with self._lock:
            progress, notes = self._progress, self._notes
            self._progress, self._notes = None, []
        note = "\n".join(notes)[:TEXT] or None
        self._lease = self._board.heartbeat(self._grant.task.id, self._lease.token, progress=progress, note=note).lease
        self._renewed(self._lease)
