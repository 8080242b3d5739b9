"""Paste the blocks of a document into an interactive shell, through a pseudo-terminal, as a reader does.

The programs that documents call are small scripts here, which record each call. What a shell passes on is then compared
with what the block says; the prompts and the echo of a terminal need no parsing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING, NamedTuple

from tests.test_documents import read

if TYPE_CHECKING:
    from pathlib import Path

SHELLS = {
    "bash": ("bash", "--noprofile", "--norc", "-i"),
    "zsh": ("zsh", "-f", "-i"),
    "dash": ("dash", "-i"),
    "fish": ("fish", "--no-config", "-i"),
}
"""The shells as their users have them, but for their own configuration: zsh without `interactive_comments`, and so on."""

PROGRAMS = """
atb claude curl gh git make mktemp pipx pytest python python3 sed sleep ssh uv xargs
.venv/bin/atb .venv/bin/mypy .venv/bin/pip .venv/bin/pytest .venv/bin/python .venv/bin/ruff lint/bin/pip lint/bin/tdqs
""".split()
"""What documents call. Another program is an error in the document, or belongs here."""

PRINTED = "printed"
"""What the recorder prints for `--print`, so that what a block does with it is seen."""

LIMIT = 60
"""Seconds after which a shell that should have finished a block is taken for stuck, in an open quote for example."""

LINE = 4_000
"""Bytes that a terminal takes at once from somebody who pastes."""


class Block(NamedTuple):
    """A block for pasting: its text, and the exit codes of its calls of `atb` (by default each is 0)."""

    text: str
    codes: list[int]

    @property
    def sets(self) -> set[str]:
        """Return the variables that the block sets as bash, zsh and dash do, and fish does not."""
        return set(re.findall(r"^(\w+)=", self.text, re.MULTILINE))


def blocks_to_paste(path: str) -> list[Block]:
    """Return the blocks of a document that are marked `sh`."""
    found = re.findall(r"(?:^<!-- exit: ([\d ]+) -->\n)?^```sh\n(.*?)^```", read(path), re.MULTILINE | re.DOTALL)
    return [Block(text, [int(code) for code in codes.split()]) for codes, text in found]


def for_fish(blocks: list[Block]) -> list[Block]:
    """Return the blocks that set no variable, and use none that another block sets."""
    names = {name for block in blocks for name in block.sets}
    return [block for block in blocks if not block.sets and not names & set(re.findall(r"\$(\w+)", block.text))]


class Call(NamedTuple):
    """One call of a program: where, as which agent, its name and arguments, its exit code."""

    directory: str
    agent: str
    words: tuple[str, ...]
    code: int


class Desk:
    """An empty directory, and a PATH of programs that record their calls. With ``real``, `atb` is the one under test."""

    def __init__(self, place: Path, *, real: bool = False) -> None:
        self.directory = place / "empty"
        self.records = place / "records"
        self.programs = place / "programs"
        for made in (self.directory, self.records, self.programs, place / "home"):
            made.mkdir(parents=True)
        self.environ = {
            "HOME": str(place / "home"),
            "PATH": str(self.programs),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "USER": "maria",
            "LOGNAME": "maria",
            "RECORDS": str(self.records),
            **{name: os.environ[name] for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE") if name in os.environ},
        }
        for name in PROGRAMS:
            self._program(self.directory / name if "/" in name else self.programs / name, name, real=real)
        self._program(self.programs / "sentinel", "sentinel", real=False)
        os.symlink(shutil.which("env") or "env", self.programs / "env")
        if real:
            os.unlink(self.programs / "sleep")
            os.symlink(shutil.which("sleep") or "sleep", self.programs / "sleep")
            shutil.rmtree(self.directory)
            self.directory.mkdir()

    def _program(self, path: Path, name: str, *, real: bool) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        run = {"atb": f'case " $* " in *" --print "*) echo {PRINTED} ;; esac', "mktemp": "echo ."}.get(name, ":")
        if real and name == "atb":
            run = f'"{sys.executable}" -m agent_task_board "$@"'
        record = f'printf "%s\\037" "$PWD" "$ATB_AGENT" $code {name} "$@" >"$RECORDS/$$.part"'
        visible = 'done=$(: >"$RECORDS/$$")'  # a program of its own for this would be the slowest part
        path.write_text(f"#!/bin/sh\n{run}\ncode=$?\n{record}\n{visible}\nexit $code\n", encoding="utf-8")
        path.chmod(0o755)

    def calls(self) -> list[Call]:
        """Return what was called since the last time, in the order in which it ended."""
        done = []
        for part in self.records.glob("*.part"):
            directory, agent, code, *words = part.read_text(encoding="utf-8").split("\037")[:-1]
            done.append((part.stat().st_mtime_ns, Call(directory, agent, tuple(words), int(code))))
            part.unlink()
            part.with_suffix("").unlink(missing_ok=True)
        return [call for _, call in sorted(done)]

    def passed_on(self, block: Block) -> tuple[list[Call], str]:
        """Run a block as a script; return what it called, in no order, and what the shell complained of."""
        done = subprocess.run(
            ["bash", "-c", block.text],
            cwd=self.directory,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        return sorted(self.calls()), done.stderr


class InteractiveShell:
    """A shell at a terminal of its own."""

    def __init__(self, shell: str, desk: Desk) -> None:
        self._desk = desk
        self.transcript = ""
        program = shutil.which(SHELLS[shell][0])
        assert program is not None
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:  # pragma: no cover (another process)
            os.chdir(desk.directory)
            os.execve(program, SHELLS[shell], {**desk.environ, "SHELL": program})  # noqa: S606
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 400, 0, 0))

    def paste(self, block: Block) -> list[Call]:
        """Paste a block; return its calls once the shell has come back for more."""
        text = block.text.encode()
        assert len(text) < LINE
        calls = []
        for part in (text, b"sentinel\n"):
            os.write(self._terminal, part)
        deadline = time.monotonic() + LIMIT
        while not calls or calls[-1].words != ("sentinel",):
            assert time.monotonic() < deadline, f"stuck after:\n{block.text}\n{self.transcript[-2_000:]}"
            if select.select([self._terminal], [], [], 0.02)[0]:
                self._read()
            if any(self._is_sentinel(part) for part in self._desk.records.glob("*.part")):
                calls += self._desk.calls()
        return calls[:-1]

    def _is_sentinel(self, part: Path) -> bool:
        return part.with_suffix("").exists() and part.read_text(encoding="utf-8").endswith("\037sentinel\037")

    def _read(self) -> None:
        try:
            self.transcript += os.read(self._terminal, 65_536).decode("utf-8", "replace")
        except OSError as gone:
            assert gone.errno == errno.EIO  # the shell has ended: the block closed the reader's terminal
            raise AssertionError(f"the shell is gone:\n{self.transcript[-2_000:]}") from gone

    def close(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)
