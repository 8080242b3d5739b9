"""Run a command for one task after another, several at once, until nothing is left or somebody stops it."""

from __future__ import annotations

import signal
import threading

from ..board import waiting
from ..errors import Busy
from .attempt import GRACE, Attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..service import Board
    from .worktree import Repository

ONCE, DRAIN, FOREVER = "once", "drain", "forever"
"""How long to go on: for one task, while there is work, or until it is stopped."""
FAILURES, FIRST_WAIT, LAST_WAIT = 5, 10.0, 300.0
"""After so many failures in a row it waits: seconds of the first wait, which doubles, and of the longest."""
BUSY_WAIT = 1.0
"""Seconds until the next claim after one that was refused."""
JOBS = 64
"""The most jobs."""


class Runner:
    """Jobs that claim tasks and run a command for each.

    Args:
        board: the board.
        agent: who claims.
        command: the words of the command.
        report: is called with what happens: an event, its task or ``None``, and facts.
        mode: ``ONCE``, ``DRAIN`` or ``FOREVER``.
        jobs: how many tasks at once.
        filters: the arguments ``queues``, ``tags`` and ``lease`` of a claim.
        repository: where to make a worktree for each attempt; ``None`` for none.
        grace: seconds between SIGTERM and SIGKILL.
    """

    def __init__(
        self,
        board: Board,
        agent: str,
        command: Sequence[str],
        report: Callable[..., None],
        *,
        mode: str = FOREVER,
        jobs: int = 1,
        filters: dict[str, Any] | None = None,
        repository: Repository | None = None,
        grace: float = GRACE,
    ) -> None:
        self._board = board
        self._agent = agent
        self._command = command
        self._tell = report
        self._mode = mode
        self._jobs = jobs
        self._filters = filters or {}
        self._repository = repository
        self._grace = grace
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._working: set[Attempt] = set()
        self._failed_in_a_row = 0
        self._error: Exception | None = None
        self.worked = 0
        """Attempts that were begun."""

    def run(self) -> int | None:
        """Work; return the signal that ended it, or ``None`` if it came to its own end.

        The first SIGINT, SIGTERM or SIGHUP stops claims and asks the commands to end; another one kills them.

        Raises:
            BoardError: the board cannot be used.
        """
        received: list[int] = []

        def on_signal(number: int, _: object) -> None:
            received.append(number)
            self.stop(at_once=len(received) > 1)

        before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        threads = [threading.Thread(target=self._job, name=f"job {number}") for number in range(self._jobs)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)  # a join without an end would not let a signal in
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if self._error is not None:
            raise self._error
        return received[0] if received else None

    def stop(self, *, at_once: bool = False) -> None:
        """Claim nothing more and end the commands: what they finish within the grace counts, the rest is released."""
        self._stop.set()
        for attempt in list(self._working):
            attempt.stop(at_once=at_once)

    def _job(self) -> None:
        """Claim and work until there is a reason to end."""
        try:
            while not self._stop.is_set() and self._pause_after_failures():
                try:
                    grant = waiting.claim(
                        self._board,
                        self._agent,
                        seconds=0 if self._mode == ONCE else None,
                        until_idle=self._mode == DRAIN,
                        pause=self._stop.wait,
                        **self._filters,
                    )
                except Busy as error:
                    self._tell("busy", None, reason=str(error))
                    self._stop.wait(BUSY_WAIT)
                    continue
                if grant is None:
                    return
                attempt = Attempt(
                    self._board, grant, self._agent, self._command, self._tell,
                    repository=self._repository, grace=self._grace,
                )  # fmt: skip
                self._work(attempt)
                if self._mode == ONCE:
                    return
        except Exception as error:  # for `run`, in the main thread
            self._error = self._error or error
            self.stop()
        finally:
            self._board.leave_thread()

    def _work(self, attempt: Attempt) -> None:
        with self._lock:
            self._working.add(attempt)
            self.worked += 1
        if self._stop.is_set():
            attempt.stop()
        try:
            has_completed = attempt.run()
        finally:
            with self._lock:
                self._working.discard(attempt)
        with self._lock:
            self._failed_in_a_row = 0 if has_completed else self._failed_in_a_row + 1

    def _pause_after_failures(self) -> bool:
        """Wait if everything fails; return whether to go on."""
        with self._lock:
            failures = self._failed_in_a_row
        if failures < FAILURES:
            return True
        seconds = min(FIRST_WAIT * 2 ** (failures - FAILURES), LAST_WAIT)
        self._tell("waits", None, reason=f"{failures} attempts in a row have not been completed", seconds=seconds)
        return not self._stop.wait(seconds)
