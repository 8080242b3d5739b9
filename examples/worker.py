"""One agent at work, in Python: claims one task after the other until none is ready.

    python examples/worker.py data ada

Put your own work into ``work``. It runs beside a thread that renews the lease, and must look at ``lost`` now and then:
once that is set, somebody else may have the task.
"""

from __future__ import annotations

import sys
import threading

from agent_task_board import Board, BoardError

LEASE = 900
"""Seconds."""


class LostError(Exception):
    """The lease was lost, and the work was left where it was."""


def work(task, lost):
    """Do what a task asks for, and return its result; here: count the words of its body, one by one."""
    words = 0
    for _ in task.body.split():
        if lost.is_set():
            raise LostError
        words += 1
    return {"words": words}


class Renewing:
    """Renews a lease while a block runs; ``lost`` is set once the lease is not ours any more."""

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
                    if refusal.code != "busy":  # that one may be tried again
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
            print(f"{task.id}: the lease is lost, the work was stopped", file=sys.stderr)
        except BoardError as refusal:
            print(f"{task.id}: {refusal.code}: {refusal.message}", file=sys.stderr)
            if refusal.code != "lease_lost":
                raise
        except Exception as error:
            board.fail(task.id, token, f"{type(error).__name__}: {error}")


def main():
    """Work on the board and under the name that the command line gives."""
    if len(sys.argv) != 3:
        print("usage: python examples/worker.py DATA_DIR AGENT", file=sys.stderr)
        return 2
    board = Board(sys.argv[1], create=False)
    try:
        if not board.exists():
            print(f"there is no board at {board.path}; `atb add` makes one", file=sys.stderr)
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
