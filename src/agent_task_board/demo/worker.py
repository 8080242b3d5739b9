"""One agent of the demo. It knows the board and its own name, and nothing of the other agents' work."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from ..errors import BoardError, LeaseLost
from ..service import Board
from .script import ACCIDENTS, LEASE, LIMIT, PARTNER, PAUSE, STALE_VERBS, STEP, WAIT, Accident, Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..model import Lease, Receipt, Task


def main(data_dir: str, agent: str, *queues: str) -> None:
    """Work until no task is left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of us; the parent ends its agents
    board = Board(data_dir, create=False)
    try:
        Worker(board, agent, queues).run()
    finally:
        board.close()


class Worker:
    """An agent that takes one task after the other."""

    def __init__(self, board: Board, agent: str, queues: tuple[str, ...]) -> None:
        self.board = board
        self.agent = agent
        self.queues = queues

    def run(self) -> None:
        """Claim and work while there is anything unfinished, at most as long as the demo may take."""
        end = time.monotonic() + LIMIT
        unfinished = ["queued", "claimed", "running", "review", "failed"]
        while time.monotonic() < end and self.board.list_tasks(status=unfinished, limit=1).tasks:
            receipt = self.board.claim(self.agent, queues=self.queues, lease=LEASE)
            if receipt is None or receipt.lease is None:
                time.sleep(PAUSE)
                continue
            try:
                self._work(receipt, receipt.task, receipt.lease)
            except LeaseLost:
                self._insist(receipt.task, receipt.lease)

    def _work(self, receipt: Receipt, task: Task, lease: Lease) -> None:
        accident = ACCIDENTS.get(task.title) if lease.fence == 1 else None
        steps = 3 + len(task.title) % 2
        heard = receipt.warnings[0] if receipt.warnings else None  # what the one before, or a person, left as a note
        for step in range(steps):
            self.board.heartbeat(task.id, lease.token, progress=100 * step // steps, note=heard)
            heard = None
            time.sleep(STEP)
            if accident is not None and step == 1 and self._met_with(accident, task, lease):
                return
        output = task.params.get("output")
        result = {"summary": f"{task.title}: as ordered", "fence": lease.fence}
        self.board.complete(task.id, lease.token, result=result, artifacts=[output] if output else [])
        self._report("completed", task, lease)

    def _met_with(self, accident: Accident, task: Task, lease: Lease) -> bool:
        """Let an accident happen; return whether it ended the work on the task."""
        kind, words = accident
        if kind == "fails":
            self.board.fail(task.id, lease.token, words, retry_in=WAIT)
        elif kind == "gives up":
            self.board.fail(task.id, lease.token, words, no_retry=True)
        elif kind == "releases":
            self.board.release(task.id, lease.token, after=WAIT, note=words)
        elif kind == "hands off":
            self.board.handoff(task.id, lease.token, PARTNER[self.agent], note=words)
        elif kind == "is frozen":
            self._freeze(task, lease)
            return False  # awake again, it goes on as if no time had passed
        elif kind == "is killed":
            self._work_until_killed(task, lease)
        return True

    def _freeze(self, task: Task, lease: Lease) -> None:
        """Stand still until somebody sends SIGCONT, as in a virtual machine that is paused.

        An agent stops itself, between two calls: a signal from outside might hit it while it holds the write lock,
        and then nobody could write until it wakes.
        """
        self._report("froze", task, lease)
        os.kill(os.getpid(), signal.SIGSTOP)

    def _work_until_killed(self, task: Task, lease: Lease) -> None:
        for progress in range(51, 100):  # ten seconds, in which the parent has long noticed
            self.board.heartbeat(task.id, lease.token, progress=progress)
            time.sleep(STEP)

    def _insist(self, task: Task, lease: Lease) -> None:
        """Try every verb under a lease that is gone, as a broken agent might, and report the answers."""
        board, id_, token = self.board, task.id, lease.token
        calls: dict[str, Callable[[], Receipt]] = {
            "heartbeat": lambda: board.heartbeat(id_, token),
            "complete": lambda: board.complete(id_, token, result="the same work, a second time"),
            "fail": lambda: board.fail(id_, token, "too late"),
            "release": lambda: board.release(id_, token),
            "handoff": lambda: board.handoff(id_, token, "operator-1"),
        }
        for verb in STALE_VERBS:
            code = None
            try:
                calls[verb]()
            except BoardError as refusal:
                code = refusal.code
            self._report("tried", task, lease, verb, code)

    def _report(self, kind: str, task: Task, lease: Lease, verb: str | None = None, code: str | None = None) -> None:
        print(Report(self.agent, kind, task.id, lease.fence, verb, code).to_line(), flush=True)
