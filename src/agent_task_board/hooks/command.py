"""Run the configured command for one notification, within limits that it cannot escape."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time

from .message import OUTPUT, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .message import Message

LIMIT = 10.0
"""Seconds that a command has."""
GRACE = 1.0
"""Seconds between the request to end and the end."""
_ROUND = 16
"""Reads between two looks at the clock: output without end must not hide that time is up."""


def run(argv: Sequence[str], message: Message, directory: str) -> Outcome:
    """Run a command with the task on its standard input; it has ``LIMIT`` seconds.

    Only the command itself is waited for: a process that it leaves behind keeps running, and its output is not read.
    At the limit its whole process group is ended.
    """
    try:
        process = _start(argv, message, directory)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        what = directory if getattr(error, "filename", None) == directory else argv[0]
        return Outcome(f"cannot be started: {what}: {reason}")
    in_time = False
    try:
        output, in_time = _attend(process)
    finally:
        if not in_time:  # or Ctrl-C
            _end(process)
        process.stdout.close()  # type: ignore[union-attr]
    if not in_time:
        return Outcome(f"took longer than {LIMIT:g} seconds and was ended", output=output)
    if process.returncode < 0:  # set, since it ended in time
        return Outcome(f"ended by signal {-process.returncode}", code=process.returncode, output=output)
    failure = f"exit code {process.returncode}" if process.returncode else None
    return Outcome(failure, code=process.returncode, output=output)


def _start(argv: Sequence[str], message: Message, directory: str) -> subprocess.Popen[bytes]:
    with tempfile.TemporaryFile() as task:  # a pipe would block us if the command does not read
        task.write(json.dumps(message.task, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        task.seek(0)
        return subprocess.Popen(
            argv,
            stdin=task,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=environment(message, directory),
            start_new_session=True,
        )


def environment(message: Message, directory: str) -> dict[str, str]:
    """Return the environment of a command: ours without the lease token, and the notification."""
    found = {name: value for name, value in os.environ.items() if name != "ATB_TOKEN"}
    if found.get("ATB_CONFIG"):  # the command works in another directory
        found["ATB_CONFIG"] = os.path.abspath(os.path.expanduser(found["ATB_CONFIG"]))
    return {
        **found,
        "ATB_DELIVERY": message.delivery,
        "ATB_EVENT": message.notification,
        "ATB_EVENT_SEQ": str(message.event["seq"]),
        "ATB_TASK_ID": message.task["id"],
        "ATB_DATA_DIR": directory,
    }


def _attend(process: subprocess.Popen[bytes]) -> tuple[bytes, bool]:
    """Read the output of a process until it ends; return the last of it, and whether it ended in time."""
    pipe = process.stdout.fileno()  # type: ignore[union-attr]
    os.set_blocking(pipe, False)
    poll = select.poll()  # select() knows no descriptor beyond 1,023, and a server may have so many
    poll.register(pipe, select.POLLIN)
    deadline = time.monotonic() + LIMIT
    output, is_open, pause = b"", True, 0.001
    while True:
        has_ended = process.poll() is not None  # before reading: its last output is then in the pipe
        if is_open:
            chunk, is_open = _read(pipe)
            output = (output + chunk)[-OUTPUT:]
            if not is_open:
                poll.unregister(pipe)
        left = deadline - time.monotonic()
        if has_ended or left <= 0:
            return output, has_ended
        poll.poll(1_000 * min(pause, left))
        pause = min(2 * pause, 0.05)


def _read(pipe: int) -> tuple[bytes, bool]:
    """Return some of what is in a pipe, and whether more may come."""
    found = b""
    for _ in range(_ROUND):
        try:
            part = os.read(pipe, OUTPUT)
        except BlockingIOError:
            return found, True
        if not part:
            return found, False
        found += part
    return found, True


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and every process of its group: SIGTERM first, then SIGKILL."""
    _signal(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline:
        process.poll()  # a zombie would count as a member of the group
        if not _signal(process.pid, 0):
            return
        time.sleep(0.02)
    _signal(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # a process of another user may not be killed
        process.wait(GRACE)


def _signal(group: int, number: int) -> bool:
    """Send a signal to a process group; say whether there still is one."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # there is one that is no longer ours: sudo
        pass
    return True
