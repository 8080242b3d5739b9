"""A worker in Python: claims one task after another until none is ready.

    python examples/worker.py data ada

Put your own work into ``work``. A thread renews the lease while it runs. Check ``lost`` regularly: once it is set,
another agent may hold the task.
"""

from __future__ import annotations

import sys
import threading

from agent_task_board import Board, BoardError

LEASE = 900
"""Seconds."""


class LostError(Exception):
    """The lease was lost, and the work was stopped."""


def work(task, lost):
    """Do the task and return its result. This example counts the words of its body, one by one."""
    words = 0
    for _ in task.body.split():
        if lost.is_set():
            raise LostError
        words += 1
    return {"words": words}


class Renewing:
    """Renews a lease while a block runs; ``lost`` is set once the lease is lost."""

    def __init__(self, board, claim, pause=LEASE / 3):
        self.lost = threading.Event()
        self._board, self._id, self._token, self._pause = board, claim.task.id, claim.lease.token, pause
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()

    def _run(self):
        try:
            while not self._done.wait(self._pause):
                try:
                    self._board.heartbeat(self._id, self._token)
                except BoardError as refusal:
                    if refusal.code != "busy":  # a busy board: try again later
                        self.lost.set()
                        return
        finally:
            self._board.leave_thread()


def run(board, agent, pause=LEASE / 3):
    """Work until nothing is ready."""
    while (claim := board.claim(agent, lease=LEASE)) is not None:
        task, token = claim.task, claim.lease.token
        try:
            with Renewing(board, claim, pause) as renewing:
                result = work(task, renewing.lost)
            board.complete(task.id, token, result=result)
        except LostError:
            print(f"{task.id}: the lease is lost; the work was stopped", file=sys.stderr)
        except BoardError as refusal:
            print(f"{task.id}: {refusal.code}: {refusal.message}", file=sys.stderr)
            if refusal.code != "lease_lost":
                raise
        except Exception as error:
            board.fail(task.id, token, f"{type(error).__name__}: {error}")


def main():
    """Work on the board, under the agent name, that the command line gives."""
    if len(sys.argv) != 3:
        print("usage: python examples/worker.py DATA_DIR AGENT", file=sys.stderr)
        return 2
    board = Board(sys.argv[1], create=False)
    try:
        if not board.exists():
            print(f"no board found at {board.path}; create one with `atb add`", file=sys.stderr)
            return 1
        run(board, sys.argv[2])
        return 0
    except BoardError as refusal:
        print(f"{refusal.code}: {refusal.message}\n{refusal.hint}", file=sys.stderr)
        return 1
    finally:
        board.close()


if __name__ == "__main__":
    sys.exit(main())
