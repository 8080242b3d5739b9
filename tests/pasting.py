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
import struct
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING, NamedTuple

from tests.test_documents import read

if TYPE_CHECKING:
    from pathlib import Path

SHELLS: dict[str, tuple[str, ...]] = {
    "bash": ("--noprofile", "--norc", "-i"),
    "zsh": ("-f", "-i"),
    "dash": ("-i",),
    "fish": ("--no-config", "-i", "-C", "function fish_prompt; echo '> '; end"),  # the usual prompt calls git
}
"""The shells without a configuration of their user: zsh has no `interactive_comments` then, for example."""

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


def make_programs(place: Path) -> Path:
    """Make the recorders, which desks share, and return their directory; those of a `.venv` lie in its own."""
    for name in (*PROGRAMS, "sentinel"):
        run = {"atb": f'case " $* " in *" --print data."*) echo {PRINTED} ;; esac', "mktemp": "echo ."}.get(name, ":")
        make_recorder(place / name, name, run)
    os.symlink(shutil.which("env") or "env", place / "env")
    return place


def make_recorder(path: Path, name: str, run: str) -> None:
    """Make a program that runs a line of shell and records the call, under its name in documents."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = f'printf "%s\\037" "$PWD" "$ATB_AGENT" $code {name} "$@" >"$RECORDS/$$"'
    path.write_text(f"#!/bin/sh\n{run}\ncode=$?\n{record}\nexit $code\n", encoding="utf-8")
    path.chmod(0o755)


class Desk:
    """An empty directory, and a PATH of programs that record their calls; with ``real``, `atb` also does its work."""

    def __init__(self, place: Path, programs: Path, *, real: bool = False) -> None:
        self.directory = place / "empty"
        self.records = place / "records"
        for made in (self.directory, self.records, place / "home"):
            made.mkdir(parents=True)
        path = str(programs)
        if real:
            make_recorder(place / "atb", "atb", f'"{sys.executable}" -m agent_task_board "$@"')
            os.symlink(shutil.which("sleep") or "sleep", place / "sleep")
            path = f"{place}:{path}"
        else:
            for link in (".venv", "lint"):
                os.symlink(programs / link, self.directory / link)
        self.environ = {
            "HOME": str(place / "home"),
            "PATH": path,
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "USER": "maria",
            "LOGNAME": "maria",
            "RECORDS": str(self.records),
            **{name: os.environ[name] for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE") if name in os.environ},
        }

    def take(self) -> list[Call] | None:
        """Return the calls up to the sentinel, in the order in which they ended; None if it has not been called yet."""
        records = [(record.stat().st_mtime_ns, record) for record in self.records.iterdir()]
        texts = [record.read_text(encoding="utf-8") for _, record in sorted(records)]
        if not any(text.endswith("\037sentinel\037") for text in texts):
            return None
        for _, record in records:
            record.unlink()
        found = [text.replace(self.environ["HOME"], "~").split("\037")[:-1] for text in texts]
        calls = [Call(directory, agent, tuple(words), int(code)) for directory, agent, code, *words in found]
        return [call for call in calls if call.words != ("sentinel",)]


class Shell:
    """A shell that is given one block after the other: at a terminal of its own, or as a script."""

    def __init__(self, shell: str, desk: Desk, *, interactive: bool = True) -> None:
        self._desk = desk
        self.transcript = ""
        program = shutil.which(shell)
        assert program is not None
        words: tuple[str, ...] = (program, *SHELLS[shell]) if interactive else (program,)
        self._input, terminal = pty.openpty()
        if interactive:
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 400, 0, 0))
            words = (sys.executable, "-I", "-S", "-c", AT_ITS_TERMINAL, *words)
            self._process = subprocess.Popen(
                words, cwd=desk.directory, env=desk.environ, stdin=terminal, stdout=terminal, stderr=terminal,
                start_new_session=True,
            )  # fmt: skip
            self._output = self._input
        else:
            reading, self._script = os.pipe()
            self._process = subprocess.Popen(
                words, cwd=desk.directory, env=desk.environ, stdin=reading, stdout=subprocess.DEVNULL, stderr=terminal
            )
            os.close(reading)
            self._output, self._input = self._input, self._script
        os.close(terminal)

    def paste(self, block: Block) -> list[Call]:
        """Give the shell a block; return its calls once the shell has come back for more."""
        text = block.text.encode() + b"sentinel\n"
        assert len(text) < LINE
        os.write(self._input, text)
        deadline = time.monotonic() + LIMIT
        while (calls := self._desk.take()) is None:
            assert time.monotonic() < deadline, f"stuck after:\n{block.text}\n{self.transcript[-2_000:]}"
            if select.select([self._output], [], [], 0.01)[0]:
                self._read()
        while select.select([self._output], [], [], 0)[0]:
            self._read()
        return calls

    def _read(self) -> None:
        try:
            read = os.read(self._output, 65_536)
        except OSError as gone:
            if gone.errno != errno.EIO:
                raise
            read = b""
        if not read:
            raise ClosedError(f"the shell has ended:\n{self.transcript[-2_000:]}")
        self.transcript += read.decode("utf-8", "replace")

    def close(self) -> None:
        """End the shell."""
        self._process.kill()
        self._process.wait()
        for descriptor in {self._input, self._output}:
            os.close(descriptor)


class ClosedError(AssertionError):
    """A block has closed the reader's terminal."""


AT_ITS_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
