"""One agent of the demo. It knows the board and its own name, but not the other agents."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from ..errors import BoardError, LeaseLost
from ..service import Board
from .script import INCIDENTS, LEASE, LIMIT, PARTNER, PAUSE, STALE_VERBS, STEP, WAIT, Incident, Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..model import Lease, Receipt, Task


def main(data_dir: str, agent: str, *queues: str) -> None:
    """Work until all tasks are finished."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent ends its agents
    board = Board(data_dir, create=False)
    try:
        Worker(board, agent, queues).run()
    finally:
        board.close()


class Worker:
    """An agent that works on one task after another."""

    def __init__(self, board: Board, agent: str, queues: tuple[str, ...]) -> None:
        self.board = board
        self.agent = agent
        self.queues = queues

    def run(self) -> None:
        """Claim tasks and work on them until all are finished or the time limit of the demo is reached."""
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
                self._call_with_stale_token(receipt.task, receipt.lease)

    def _work(self, receipt: Receipt, task: Task, lease: Lease) -> None:
        incident = INCIDENTS.get(task.title) if lease.fence == 1 else None
        steps = 3 + len(task.title) % 2
        note = receipt.notes[0]["text"] if receipt.notes else None  # of the previous holder or of a person
        for step in range(steps):
            self.board.heartbeat(task.id, lease.token, progress=100 * step // steps, note=note)
            note = None
            time.sleep(STEP)
            if incident is not None and step == 1 and self._ends_in(incident, task, lease):
                return
        output = task.params.get("output")
        result = {"summary": f"{task.title}: completed", "fence": lease.fence}
        self.board.complete(task.id, lease.token, result=result, artifacts=[output] if output else [])
        self._report("completed", task, lease)

    def _ends_in(self, incident: Incident, task: Task, lease: Lease) -> bool:
        """Let an incident happen; return whether it ended the work on the task."""
        kind, text = incident
        if kind == "fails":
            self.board.fail(task.id, lease.token, text, retry_in=WAIT)
        elif kind == "gives up":
            self.board.fail(task.id, lease.token, text, no_retry=True)
        elif kind == "releases":
            self.board.release(task.id, lease.token, after=WAIT, note=text)
        elif kind == "hands off":
            self.board.handoff(task.id, lease.token, PARTNER[self.agent], note=text)
        elif kind == "is frozen":
            self._freeze(task, lease)
            return False  # after SIGCONT it continues as if no time had passed
        elif kind == "is killed":
            self._work_until_killed(task, lease)
        return True

    def _freeze(self, task: Task, lease: Lease) -> None:
        """Stop until SIGCONT, like a process in a paused virtual machine.

        The agent stops itself between two calls. A signal from outside could stop it while it holds the write lock, and
        nobody else could write until it continues.
        """
        self._report("froze", task, lease)
        os.kill(os.getpid(), signal.SIGSTOP)

    def _work_until_killed(self, task: Task, lease: Lease) -> None:
        for progress in range(51, 100):  # for up to ten seconds; the parent kills it before
            self.board.heartbeat(task.id, lease.token, progress=progress)
            time.sleep(STEP)

    def _call_with_stale_token(self, task: Task, lease: Lease) -> None:
        """Call every verb under a lost lease, as a faulty agent might, and report the answers."""
        board, id_, token = self.board, task.id, lease.token
        calls: dict[str, Callable[[], Receipt]] = {
            "heartbeat": lambda: board.heartbeat(id_, token),
            "complete": lambda: board.complete(id_, token, result="the same work again"),
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
            self._report("stale_call", task, lease, verb, code)

    def _report(self, kind: str, task: Task, lease: Lease, verb: str | None = None, code: str | None = None) -> None:
        print(Report(self.agent, kind, task.id, lease.fence, verb, code).to_line(), flush=True)
