"""Terminals for tests: a program at a pseudo-terminal, and whether a shell is there to test with."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import shutil
import signal
import struct
import sys
import termios
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.waiting import LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

REQUIRED = os.environ.get("ATB_REQUIRE_BROWSER") == "1"
"""Whether a shell that is missing is a failure, as a missing browser is."""

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def shell(name: str) -> str:
    """Return the path of a shell; where it is missing, skip the test, or fail it if nothing may be missing."""
    path = shutil.which(name)
    if path is None:
        reason = f"tests of completion left out: {name} is not installed"
        if REQUIRED:
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def program_on_path(directory: Path) -> str:
    """Make a program ``atb`` in a directory, and return a search path that begins with it."""
    directory.mkdir(exist_ok=True)
    file = directory / "atb"
    file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agent_task_board "$@"\n', encoding="utf-8")
    file.chmod(0o755)
    return f"{directory}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


class Console:
    """A program at a pseudo-terminal of its own, as its controlling terminal."""

    def __init__(self, words: Sequence[str], cwd: Path, environ: Mapping[str, str], size: tuple[int, int]) -> None:
        self.written = ""
        self._code: int | None = None
        main, self._other = os.openpty()  # kept open: the terminal's state is looked at after the program has ended
        self.main = main
        self.resize(*size, tell=False)
        self.before = termios.tcgetattr(self._other)
        self.pid = os.fork()
        if self.pid == 0:  # pragma: no cover
            try:
                os.setsid()
                fcntl.ioctl(self._other, termios.TIOCSCTTY, 0)
                for descriptor in (0, 1, 2):
                    os.dup2(self._other, descriptor)
                os.closerange(3, 256)
                os.chdir(cwd)
                os.execve(words[0], list(words), dict(environ))
            finally:
                os._exit(127)

    def resize(self, columns: int, lines: int, *, tell: bool = True) -> None:
        """Change the size of the terminal; the kernel tells the program."""
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        if tell:
            os.kill(self.pid, signal.SIGWINCH)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.main, keys.encode())

    def state(self) -> list[Any]:
        """Return the terminal's attributes now."""
        return termios.tcgetattr(self._other)

    @property
    def text(self) -> str:
        """What was written, without escape sequences."""
        return ESCAPE.sub("", self.written)

    def forget(self) -> None:
        """Forget what was written so far."""
        self.written = ""

    def read(self, seconds: float) -> bool:
        """Read what is written within some time; say whether there was anything."""
        if not select.select([self.main], [], [], seconds)[0]:
            return False
        self.written += os.read(self.main, 65_536).decode("utf-8", "replace")
        return True

    def until(self, text: str) -> None:
        """Wait until a text was written."""
        deadline = time.monotonic() + LIMIT
        while text not in self.text:
            assert time.monotonic() < deadline, f"{text!r} is not written: {self.text[-2_000:]!r}"
            self.read(0.05)

    def ended(self) -> int:
        """Wait until the program has ended and return its exit code, negative for a signal."""
        deadline = time.monotonic() + LIMIT
        while self._code is None:
            assert time.monotonic() < deadline, f"the program does not end: {self.text[-2_000:]!r}"
            self.read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        while self.read(0):
            pass
        return self._code

    def close(self) -> None:
        """Kill the program, if it still runs, and close the terminal."""
        if self._code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.main)
        os.close(self._other)


@contextlib.contextmanager
def console(*words: str, cwd: Path, environ: Mapping[str, str], size: tuple[int, int] = (80, 24)) -> Iterator[Console]:
    """Start a program at a pseudo-terminal; it is killed at the end of the block."""
    found = Console(words, cwd, {"TERM": "xterm-256color", **environ}, size)
    try:
        yield found
    finally:
        found.close()
