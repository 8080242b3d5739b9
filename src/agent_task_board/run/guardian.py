"""A program between `atb run` and one command: start the command, and let nothing of it outlive its lease.

The guardian is a process of the standard library alone, started by path. It adopts whatever the command leaves behind
(on Linux it is the subreaper), so that every descendant can be found. It ends them all

* when the command has ended: what it left in the background goes too;
* when its standard input ends: `atb run` was killed;
* when it is told to stop, or shortly before the lease is over by its own clock: `atb run` may be frozen, and its
  command must not work on in its successor's lease.

Its arguments are the descriptor for its reports, the seconds between SIGTERM and SIGKILL, the file for the standard
input of the command, and the command. It reads lines ``lease SECONDS EPOCH`` (what is left, and the instant of the end
in seconds since 1970), ``stop`` and ``kill``, and reports ``started PID``, ``failed MESSAGE`` and ``ended CODE REASON``
(``exit``, ``stop``, ``lease`` or ``left``).
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import subprocess
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SET_CHILD_SUBREAPER = 36
"""The option of Linux's ``prctl`` that makes a process adopt its orphaned descendants."""
POLL = 0.02
"""Seconds between two looks at processes that were told to end."""


class Guardian:
    """One command, from its start until nothing of it is left.

    Args:
        report: the descriptor to report to.
        grace: seconds between SIGTERM and SIGKILL.
    """

    def __init__(self, report: int, grace: float) -> None:
        self._report = report
        self._grace = grace
        self._input = b""
        self._until = float("inf")
        self._until_epoch = float("inf")
        self._margin = 0.0
        self._kill_at = float("inf")
        self._reason = ""
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, task: str, words: list[str]) -> None:
        """Run the command and end all that belongs to it."""
        woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else _pipe()
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        # A handler that does nothing, since the command would inherit a signal that is ignored; `atb run` decides.
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _pass)
        os.set_blocking(0, False)
        if not self._take_lease():
            return
        try:
            with open(task, "rb") as file:
                self._process = subprocess.Popen(words, stdin=file, start_new_session=True)
        except (OSError, ValueError) as error:
            self._say(f"failed {getattr(error, 'strerror', None) or error}")
            return
        self._say(f"started {self._process.pid}")
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (1, 2):  # the readers of the command's output see its end when nobody has it open
            os.dup2(null, descriptor)
        poll = select.poll()
        poll.register(0, select.POLLIN | select.POLLHUP)
        poll.register(woken, select.POLLIN)
        code: int | None = None
        while code is None and not self._reason:
            poll.poll(min(60_000, max(0, 1_000 * (self._seconds_left() - self._margin))))
            with contextlib.suppress(BlockingIOError):
                os.read(woken, 4_096)
            self._read_orders()
            if self._seconds_left() <= self._margin and not self._reason:
                self._reason = "lease"
            code = self._reap()
        # A little before the end of the lease: at that instant the task may already be somebody else's.
        self._kill_at = min(self._kill_at, _now() + min(self._grace, max(0.0, self._seconds_left() - self._margin / 2)))
        code = self._end(code)
        self._say(f"ended {code} {self._reason or 'exit'}")

    # Orders

    def _take_lease(self) -> bool:
        """Wait for the first lease; return whether there is one."""
        poll = select.poll()
        poll.register(0, select.POLLIN | select.POLLHUP)
        while self._until == float("inf") and not self._reason:
            poll.poll()
            self._read_orders()
        return not self._reason

    def _read_orders(self) -> None:
        try:
            chunk = os.read(0, 4_096)
        except BlockingIOError:
            return
        if not chunk:
            self._reason = self._reason or "left"
            return
        *lines, self._input = (self._input + chunk).split(b"\n")
        for line in lines:
            match line.split():
                case [b"lease", seconds, epoch]:
                    self._until, self._until_epoch = _now() + float(seconds), float(epoch)
                    self._margin = min(self._grace, float(seconds) / 4)  # it is renewed long before
                case [b"stop"]:
                    self._reason = self._reason or "stop"
                case [b"kill"]:
                    self._reason, self._kill_at = self._reason or "stop", 0.0

    def _seconds_left(self) -> float:
        """Return the seconds of the lease, by the clock that runs on in sleep and by the wall clock: the fewer."""
        return min(self._until - _now(), self._until_epoch - time.time())

    def _say(self, text: str) -> None:
        with contextlib.suppress(OSError):  # nobody listens any more
            os.write(self._report, text.encode("utf-8", "replace").replace(b"\n", b" ") + b"\n")

    # Processes

    def _reap(self) -> int | None:
        """Reap ended children; return the exit code of the command, once it has ended."""
        process = self._process
        code = None if process is None else process.poll()
        while True:
            try:
                info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return code
            if info is None:
                return code
            if process is not None and info.si_pid == process.pid:
                code = process.poll()
            else:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(info.si_pid, os.WNOHANG)

    def _end(self, code: int | None) -> int:
        """End every descendant: SIGTERM, then SIGKILL until none is left; return the exit code of the command."""
        signalled: set[int] = set()
        while True:
            code = self._reap() if code is None else code
            self._reap()
            left = list(_descendants(os.getpid()))
            group = self._process.pid if self._process is not None and _group_exists(self._process.pid) else None
            if not left and (code is not None or group is None):
                return -signal.SIGKILL if code is None else code
            number = signal.SIGKILL if _now() >= self._kill_at else signal.SIGTERM
            for pid in left:
                if number == signal.SIGKILL or pid not in signalled:
                    _send(pid, number)
            if group is not None and (number == signal.SIGKILL or not signalled):
                with contextlib.suppress(OSError):
                    os.killpg(group, number)
            signalled.update(left)
            time.sleep(POLL)
            self._read_orders()


def _pass(*_: object) -> None:
    """Do nothing about a signal but wake up."""


def _pipe() -> tuple[int, int]:
    """Return a pipe that never blocks, where the system has no call for it."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def _now() -> float:
    """Return the seconds of a clock that nobody sets and that runs on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _descendants(root: int) -> Iterator[int]:
    """Yield the processes below one, its children first; none where there is no ``/proc``."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdigit() and (parent := _parent(int(name))) is not None:
            children.setdefault(parent, []).append(int(name))
    below = list(children.get(root, ()))
    while below:
        pid = below.pop(0)
        yield pid
        below.extend(children.get(pid, ()))


def _parent(pid: int) -> int | None:
    """Return the parent of a process that has not ended; ``None`` if it has."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent = file.read().rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):
        return None
    return None if state in (b"Z", b"X") else int(parent)


def _send(pid: int, number: int) -> None:
    """Send a signal to a descendant; a process that got its number in the meantime does not receive it."""
    try:
        if not hasattr(os, "pidfd_open"):
            os.kill(pid, number)
            return
        handle = os.pidfd_open(pid)
    except OSError:  # it has ended, or has changed its user
        return
    try:
        if pid in _descendants(os.getpid()):
            signal.pidfd_send_signal(handle, number)
    except OSError as error:
        if error.errno not in (errno.ESRCH, errno.EPERM):
            raise
    finally:
        os.close(handle)


def _become_subreaper() -> None:
    """Adopt orphaned descendants; on systems without it, only the command's process group can be ended."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main() -> None:
    """Run the command of the arguments."""
    report, grace, task, *words = sys.argv[1:]
    os.set_inheritable(int(report), False)
    _become_subreaper()
    Guardian(int(report), float(grace)).run(task, words)


if __name__ == "__main__":
    main()
