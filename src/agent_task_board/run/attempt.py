"""One attempt: start the command under a guardian, read what it writes, and end the attempt with what it says."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import tempfile
import threading
import time

from .. import instants
from ..board.output import LIMIT
from ..errors import BoardError, LeaseLost
from ..inputs import TEXT
from . import guardian
from .handover import Handover
from .keeper import Keeper
from .output import Lines, Tail
from .worktree import GitFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..model import Grant, Lease, Receipt
    from ..service import Board
    from .output import Message
    from .worktree import Repository, Worktree

    Report = Callable[..., None]

GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL."""
TEMPORARY_FAILURE = 75
"""The exit code by which a command asks to be tried again later (``EX_TEMPFAIL`` of ``sysexits.h``)."""
POLL_SECONDS = 0.2
CHUNK = 65_536


class Attempt:
    """The work on one claimed task.

    Args:
        board: the board.
        grant: the claim.
        agent: who holds it.
        command: the words of the command, with places for the task.
        report: is called with what happens, for whoever watches.
        repository: where to make a worktree for the command; ``None`` for none.
        grace: seconds between SIGTERM and SIGKILL.
    """

    def __init__(
        self,
        board: Board,
        grant: Grant,
        agent: str,
        command: Sequence[str],
        report: Report,
        *,
        repository: Repository | None = None,
        grace: float = GRACE,
    ) -> None:
        self.grant = grant
        self._board = board
        self._agent = agent
        self._command = command
        self._tell = report
        self._repository = repository
        self._grace = grace
        self._tail = Tail(grant.lease.token)
        self._errors = Tail(grant.lease.token)
        self._orders: int | None = None
        self._order_lock = threading.Lock()
        self._kept = 0
        self._reason = ""
        self._is_stopped = False
        self._worktree: Worktree | None = None

    def run(self) -> bool:
        """Work until nothing of the command is left, and end the attempt; return whether it was completed."""
        self._report("started")
        with tempfile.TemporaryDirectory(prefix="atb-run-", ignore_cleanup_errors=True) as directory:
            try:
                handover = self._hand_over(directory)
            except (GitFailed, OSError) as error:
                return self._end("failed", error=f"cannot be started: {error}")
            keeper = Keeper(self._board, self.grant, self._send_lease, lambda: self._order("stop"))
            try:
                code = self._work(handover, keeper)
            finally:
                keeper.stop()
                self._close_orders()
            return self._conclude(handover, keeper, code)

    def stop(self, *, at_once: bool = False) -> None:
        """End the command: SIGTERM, and SIGKILL after the grace or ``at_once``."""
        self._is_stopped = True
        self._order("kill" if at_once else "stop")

    # The command

    def _hand_over(self, directory: str) -> Handover:
        if self._repository is not None:
            name = f"{self.grant.task.id[-6:].lower()}-{self.grant.lease.fence}"
            self._worktree = self._repository.worktree(name)
        found = self._board.show(self.grant.task.id)
        return Handover(directory, self.grant, found, self._board.attention())

    def _work(self, handover: Handover, keeper: Keeper) -> int | None:
        """Run the command; return its exit code, or ``None`` if it is not known."""
        process, reports = self._start(handover)
        self._send_lease(self.grant.lease)
        keeper.start()
        if self._is_stopped:
            self._order("stop")
        try:
            return self._read(process, reports, keeper)
        finally:
            os.close(reports)
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def _start(self, handover: Handover) -> tuple[subprocess.Popen[bytes], int]:
        """Start the guardian, which starts the command; return it and the descriptor of its reports."""
        reports, report = os.pipe()
        orders, self._orders = os.pipe()
        try:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", guardian.__file__),
                    *(str(report), str(self._grace), handover.task_file),
                    *handover.words(self._command),
                ],
                stdin=orders,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=None if self._worktree is None else self._worktree.directory,
                env=handover.environment(os.environ, self._agent, self._board.database.directory),
                pass_fds=[report],
                start_new_session=True,
            )
        except BaseException:
            os.close(reports)
            raise
        finally:
            os.close(orders)
            os.close(report)
        return process, reports

    def _read(self, process: subprocess.Popen[bytes], reports: int, keeper: Keeper) -> int | None:
        """Read output and reports until the guardian has ended."""
        out, err = process.stdout.fileno(), process.stderr.fileno()  # type: ignore[union-attr]
        lines = {out: Lines(), err: Lines()}
        poll = select.poll()
        for descriptor in (out, err, reports):
            poll.register(descriptor, select.POLLIN)
        unread = {out, err, reports}
        limit = self.grant.task.max_runtime
        deadline = float("inf") if limit is None else time.monotonic() + limit
        said = b""
        while unread:
            if time.monotonic() >= deadline and not self._reason:
                self._reason = f"max_runtime is over ({limit} seconds)"
                self._order("stop")
            for descriptor, _ in poll.poll(1_000 * POLL_SECONDS):
                chunk = os.read(descriptor, CHUNK)
                if not chunk:
                    poll.unregister(descriptor)
                    unread.discard(descriptor)
                elif descriptor == reports:
                    said += chunk
                else:
                    self._take(chunk, lines[descriptor], keeper, is_error=descriptor == err)
        process.wait()
        return self._understand(said.decode("utf-8", "replace"))

    def _take(self, chunk: bytes, lines: Lines, keeper: Keeper, *, is_error: bool) -> None:
        self._tail.add(chunk)
        if is_error:
            self._errors.add(chunk)
        for found in lines.messages(chunk):
            keeper.tell(found)
            self._report_message(found)

    def _understand(self, said: str) -> int | None:
        """Return the exit code that the guardian reported; remember why it ended the command."""
        for line in said.splitlines():
            word, _, rest = line.partition(" ")
            if word == "failed":
                self._reason = f"cannot be started: {self._command[0]}: {rest}"
                return None
            if word == "ended":
                code, _, why = rest.partition(" ")
                if why not in ("exit", "stop"):
                    self._reason = f"ended by its guardian ({why})"
                return int(code)
        self._reason = "its guardian was killed"
        return None

    # Orders to the guardian

    def _send_lease(self, lease: Lease) -> None:
        """Tell the guardian when the lease ends; keep the output so far, in case that the lease is lost later."""
        end = instants.from_text(lease.expires_at)
        self._order(f"lease {(end - self._board.clock()) / instants.SECOND:.3f} {end / instants.SECOND:.3f}")
        if self._tail.written != self._kept:
            self._keep_output()

    def _order(self, text: str) -> None:
        with self._order_lock, contextlib.suppress(OSError):  # the guardian may have ended
            if self._orders is not None:
                os.write(self._orders, text.encode() + b"\n")

    def _close_orders(self) -> None:
        with self._order_lock:
            if self._orders is not None:
                os.close(self._orders)
                self._orders = None

    # The end

    def _conclude(self, handover: Handover, keeper: Keeper, code: int | None) -> bool:
        """End the attempt with what the command left behind."""
        self._keep_output()
        artifacts = self._leave_worktree()
        if keeper.outcome is None:
            with contextlib.suppress(BoardError):
                keeper.look()
        if keeper.outcome is not None:
            self._report(keeper.outcome if keeper.has_ended_itself else "lost", reason=keeper.reason)
            return keeper.outcome == "completed"
        if code == 0:
            try:
                result, paths = handover.result(), [*handover.artifacts(), *artifacts]
            except BoardError as error:
                return self._end("failed", error=str(error))
            return self._end("completed", result=result, artifacts=paths)
        if self._is_stopped:
            return self._end("released", note="`atb run` was stopped")
        if code == TEMPORARY_FAILURE:
            after = self._board.settings.backoff_base / instants.SECOND
            return self._end("released", note=self._errors.last_lines(TEXT) or None, after=after)
        return self._end("failed", error=self._error(code))

    def _error(self, code: int | None) -> str:
        what = self._reason or (f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}")
        lines = self._errors.last_lines(TEXT - len(what) - 2)
        return f"{what}: {lines}" if lines.strip() else what

    def _end(self, outcome: str, **arguments: Any) -> bool:
        """End the attempt by the verb of an outcome, and report it; the lease may be lost meanwhile."""
        verbs: dict[str, Callable[..., Receipt]] = {
            "completed": self._board.complete,
            "failed": self._board.fail,
            "released": self._board.release,
        }
        try:
            receipt = verbs[outcome](self.grant.task.id, self.grant.lease.token, **arguments)
        except LeaseLost as lost:
            self._report("lost", reason=str(lost))
            return False
        except BoardError as error:  # the task is free again when its lease ends
            self._report("lost", reason=f"{outcome}, but the board refused it: {error}")
            return False
        self._report(outcome, status=receipt.task.status, error=arguments.get("error"))
        return outcome == "completed"

    def _keep_output(self) -> None:
        if self._tail.written:
            self._kept = self._tail.written
            with contextlib.suppress(BoardError):  # a lost lease keeps nothing
                self._board.keep_output(self.grant.task.id, self.grant.lease.token, self._tail.text()[-LIMIT:])

    def _leave_worktree(self) -> list[str]:
        if self._worktree is None:
            return []
        try:
            return self._worktree.leave()
        except GitFailed as error:
            self._report("worktree", reason=str(error))
            return [self._worktree.path]

    # Reports

    def _report(self, event: str, **facts: Any) -> None:
        self._tell(event, self.grant.task, **{name: value for name, value in facts.items() if value is not None})

    def _report_message(self, found: Message) -> None:
        if found.progress is not None:
            self._report("progress", progress=found.progress, note=found.note)
        else:
            self._report("note", note=found.note)
