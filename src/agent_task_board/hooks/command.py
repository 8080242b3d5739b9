"""Run one command hook: a program of the configuration, told of a task, with limits that it cannot get out of."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

LIMIT = 10.0
"""Seconds that a command has."""
GRACE = 1.0
"""Seconds between the request to end and the end."""
OUTPUT = 65_536
"""Bytes of output that are kept, of a command as of an address."""
TOLD = 2_000
"""Characters of it that an event tells: the last ones."""

_ROUND = 16
"""Reads between two looks at the clock: output without end must not hide that time is up."""


class Message:
    """What a hook is told: of which event, and the task as it is now."""

    __slots__ = ("delivery", "event", "task", "told")

    def __init__(self, delivery: str, told: str, event: dict[str, Any], task: dict[str, Any]) -> None:
        self.delivery = delivery
        self.told = told
        self.event = event
        self.task = task


class Outcome:
    """What came of one attempt; without ``error`` the message is delivered.

    ``exit`` is a command's exit code, ``status`` an address's HTTP status, ``output`` the end of what either said.
    """

    __slots__ = ("error", "exit", "output", "status")

    def __init__(
        self, error: str | None = None, *, code: int | None = None, status: int | None = None, output: bytes = b""
    ) -> None:
        self.error = error
        self.exit = code
        self.status = status
        self.output = readable(output.decode("utf-8", "replace"))[-TOLD:]

    def to_dict(self) -> dict[str, Any]:
        """Return what there is of ``exit``, ``status``, ``error`` and ``output``."""
        found = {"exit": self.exit, "status": self.status, "error": self.error, "output": self.output or None}
        return {key: value for key, value in found.items() if value is not None}


def run(argv: Sequence[str], message: Message, directory: str) -> Outcome:
    """Run a command with the task on its standard input; it has ``LIMIT`` seconds.

    Only the command itself is waited for: a process that it leaves behind goes on, and nobody reads what that
    says. At the limit its whole process group is ended.
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
    with tempfile.TemporaryFile() as task:  # a pipe would hold us up where the command does not read
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
    """Return the environment of a command: ours without a lease's token, and what it is told of."""
    found = {name: value for name, value in os.environ.items() if name != "ATB_TOKEN"}
    if found.get("ATB_CONFIG"):  # the command works in another directory
        found["ATB_CONFIG"] = os.path.abspath(os.path.expanduser(found["ATB_CONFIG"]))
    return {
        **found,
        "ATB_DELIVERY": message.delivery,
        "ATB_EVENT": message.told,
        "ATB_EVENT_SEQ": str(message.event["seq"]),
        "ATB_TASK_ID": message.task["id"],
        "ATB_DATA_DIR": directory,
    }


def readable(text: str) -> str:
    """Return text whose control characters, but for line breaks and tabs, are replaced."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text)


def _attend(process: subprocess.Popen[bytes]) -> tuple[bytes, bool]:
    """Read what a process says until it ends; return the last of it, and whether it ended in time."""
    pipe = process.stdout.fileno()  # type: ignore[union-attr]
    os.set_blocking(pipe, False)
    poll = select.poll()  # select() knows no descriptor beyond 1,023, and a server may have so many
    poll.register(pipe, select.POLLIN)
    deadline = time.monotonic() + LIMIT
    output, is_open, pause = b"", True, 0.001
    while True:
        has_ended = process.poll() is not None  # before the reading: what it said last is then in the pipe
        if is_open:
            said, is_open = _read(pipe)
            output = (output + said)[-OUTPUT:]
            if not is_open:
                poll.unregister(pipe)
        left = deadline - time.monotonic()
        if has_ended or left <= 0:
            return output, has_ended
        poll.poll(1_000 * min(pause, left))
        pause = min(2 * pause, 0.05)


def _read(pipe: int) -> tuple[bytes, bool]:
    """Return what is in a pipe, some of it, and whether more may come."""
    said = b""
    for _ in range(_ROUND):
        try:
            part = os.read(pipe, OUTPUT)
        except BlockingIOError:
            return said, True
        if not part:
            return said, False
        said += part
    return said, True


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and every process of its group, politely first."""
    _signal(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline:
        process.poll()  # a zombie would count as a member of the group
        if not _signal(process.pid, 0):
            return
        time.sleep(0.02)
    _signal(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # that of another user, say, which may not be killed
        process.wait(GRACE)


def _signal(group: int, number: int) -> bool:
    """Send a signal to a process group; say whether there still is one."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # there is one, and it is not ours any more: sudo
        pass
    return True
