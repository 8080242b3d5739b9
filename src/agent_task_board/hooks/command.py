"""Run the configured command for one notification, within strict limits."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time

from ..printable import escape_json
from .message import OUTPUT, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .message import Message

LIMIT = 10.0
"""How many seconds a command has."""
GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL."""
_READS = 16
"""The most reads before the clock is checked again: endless output must not delay the time limit."""


def run(
    argv: Sequence[str], message: Message, directory: str, started: Callable[[int], object] = lambda _: None
) -> Outcome:
    """Run a command with the task on its standard input, for at most ``LIMIT`` seconds.

    Only the command itself is waited for: a process that it leaves in the background keeps running, and its output
    is not read. After the time limit, all processes in its group are ended. ``started`` is called with its process id.
    """
    try:
        process = _start(argv, message, directory)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        what = directory if getattr(error, "filename", None) == directory else argv[0]
        return Outcome(f"cannot be started: {what}: {reason}")
    in_time = False
    try:
        started(process.pid)
        output, in_time = _read_until_end(process)
    finally:
        if not in_time:  # or after Ctrl-C
            _end(process)
        process.stdout.close()  # type: ignore[union-attr]
    if not in_time:
        return Outcome(f"timed out: ended after {LIMIT:g} seconds", output=output)
    if process.returncode < 0:  # it is set, because the process has ended
        return Outcome(f"ended by signal {-process.returncode}", code=process.returncode, output=output)
    failure = f"exit code {process.returncode}" if process.returncode else None
    return Outcome(failure, code=process.returncode, output=output)


def _start(argv: Sequence[str], message: Message, directory: str) -> subprocess.Popen[bytes]:
    with tempfile.TemporaryFile() as task:  # a pipe would block if the command does not read it
        task.write(escape_json(json.dumps(message.task, ensure_ascii=False)).encode("utf-8", "replace") + b"\n")
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
    """Return the environment of a command: that of this process without the lease token, plus the notification."""
    found = {name: value for name, value in os.environ.items() if name != "ATB_TOKEN"}
    if found.get("ATB_CONFIG"):  # the command runs in another directory
        found["ATB_CONFIG"] = os.path.abspath(os.path.expanduser(found["ATB_CONFIG"]))
    return {
        **found,
        "ATB_DELIVERY": message.delivery,
        "ATB_EVENT": message.notification,
        "ATB_EVENT_SEQ": str(message.event["seq"]),
        "ATB_TASK_ID": message.task["id"],
        "ATB_DATA_DIR": directory,
    }


def _read_until_end(process: subprocess.Popen[bytes]) -> tuple[bytes, bool]:
    """Read the output of a process until it ends; return the last bytes, and whether it ended in time."""
    pipe = process.stdout.fileno()  # type: ignore[union-attr]
    os.set_blocking(pipe, False)
    poll = select.poll()  # select() fails for descriptors above 1,023, which a server can have
    poll.register(pipe, select.POLLIN)
    deadline = time.monotonic() + LIMIT
    output, is_open, pause = b"", True, 0.001
    while True:
        has_ended = process.poll() is not None  # checked before reading: then its last output is in the pipe
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
    """Return some bytes from a pipe, and whether more can follow."""
    found = b""
    for _ in range(_READS):
        try:
            part = os.read(pipe, OUTPUT)
        except BlockingIOError:
            return found, True
        if not part:
            return found, False
        found += part
    return found, True


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and every process of its group."""
    if end_group(process.pid, process.poll):  # poll reaps a zombie, which would count as a member of the group
        return
    with contextlib.suppress(subprocess.TimeoutExpired):  # a process of another user cannot be killed
        process.wait(GRACE)


def end_group(group: int, between: Callable[[], object] = lambda: None) -> bool:
    """End every process of a group: SIGTERM first, then SIGKILL; return whether SIGTERM was enough.

    ``between`` is called again and again while the group is waited for.
    """
    _signal(group, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline:
        between()
        if not _signal(group, 0):
            return True
        time.sleep(0.02)
    _signal(group, signal.SIGKILL)
    return False


def _signal(group: int, number: int) -> bool:
    """Send a signal to a process group; return whether the group still exists."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # it exists, but belongs to another user (sudo)
        pass
    return True
