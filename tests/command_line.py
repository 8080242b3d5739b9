"""Run `atb` in a directory of its own: as a process, or inside this one where the process itself is not the point."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import sqlite3
import struct
import subprocess
import sys
import termios
import threading
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from agent_task_board import Board
from agent_task_board.cli import main
from agent_task_board.inputs import parse_json
from agent_task_board.instants import now
from tests.support import MARIA

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMANDS = """
claim resume heartbeat complete fail release handoff add update comment approve reject reassign retry cancel
list show events agents stats watch completion prime setup serve mcp schedule hooks export import backup restore doctor
archive unarchive tick config demo init where trust
""".split()

EXIT_CODES = {
    "internal": 1,
    "invalid_input": 2,
    "not_found": 3,
    "conflict": 4,
    "lease_lost": 5,
    "not_permitted": 6,
    "busy": 7,
    "unusable": 8,
    "empty": 9,
}

TASK_KEYS = """
id title body queue status priority assignee due_at not_before tags dedupe_key blocked_by params result artifacts error
progress needs_approval attempts max_attempts fence version claimed_by lease_expires_at created_by schedule_id
occurrence_at created_at updated_at claimed_at finished_at max_runtime ready blocked stuck delayed lease_expired overdue
""".split()

LONG_KEYS = ("body", "params", "result", "error")

PASSED_ON = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
"""What a command needs to be found at all, and not to write among the sources."""

LIMIT = 60
"""Seconds after which a process that should have ended is taken for stuck."""


def read_envelope(text: str) -> dict[str, Any]:
    """Return an envelope, which has just the keys that it must have, in their order."""
    envelope: dict[str, Any] = parse_json(text, "envelope", depth=110)
    kept = [key for key in envelope if key != "data" or envelope["ok"]]  # of several tasks, some were refused
    assert kept == ["ok", "data" if envelope["ok"] else "error", "warnings"]
    assert all(isinstance(warning, str) for warning in envelope["warnings"])
    if not envelope["ok"]:
        assert list(envelope["error"]) == ["code", "message", "hint", "details"]
    return envelope


class Answer:
    """What one run left behind: its exit code, its standard output and its standard error."""

    def __init__(self, code: int, out: bytes, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def text(self) -> str:
        return self.out.decode("utf-8")

    @property
    def envelope(self) -> dict[str, Any]:
        """The one JSON document on standard output; an assertion fails if there is anything else."""
        assert self.out.endswith(b"\n"), self
        assert self.out.count(b"\n") == 1, self  # JSON writes a line break inside a text as \n
        envelope = read_envelope(self.text)
        if not envelope["ok"]:
            assert self.code == EXIT_CODES[envelope["error"]["code"]]
        else:
            results = envelope["data"].get("results", ()) if isinstance(envelope["data"], dict) else ()
            refused = [one["error"]["code"] for one in results if not one.get("ok", True)]
            assert self.code == (EXIT_CODES[refused[0]] if refused else 0)
        return envelope

    @property
    def data(self) -> Any:
        assert self.envelope["ok"], self
        return self.envelope["data"]

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.envelope["error"]
        return error

    @property
    def warnings(self) -> list[str]:
        warnings: list[str] = self.envelope["warnings"]
        return warnings

    def __repr__(self) -> str:
        return f"<Answer {self.code} {self.out[-2_000:]!r} {self.err[-2_000:]!r}>"


class Terminal:
    """A directory in which commands run, with an environment that holds nothing about boards."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environ = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(directory),
            "XDG_STATE_HOME": f"{directory}-state",
            "LOGNAME": "carla",
            **{name: value for name, value in os.environ.items() if name in PASSED_ON},
        }

    def atb(self, *words: str, stdin: str | bytes = b"", **environ: str) -> Answer:
        """Run a command inside this process; standard output claims to be ASCII, as a hostile one would."""
        written, err = io.BytesIO(), io.StringIO()
        out = io.TextIOWrapper(written, "ascii")
        with (
            contextlib.chdir(self.directory),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            patch.dict(os.environ, {**self.environ, **environ}, clear=True),
            patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(_bytes(stdin)), "ascii")),
        ):
            code = main(words)
        out.flush()
        return Answer(code, written.getvalue(), err.getvalue())

    def process(self, *words: str | bytes, stdin: str | bytes = b"", code: str | None = None, **environ: str) -> Answer:
        """Run a command as a process; ``code`` replaces the program that would call the command line."""
        ran = subprocess.run(
            [*program(code), *words],
            cwd=self.directory,
            env={**self.environ, **environ},
            input=_bytes(stdin),
            capture_output=True,
            timeout=LIMIT,
        )
        return Answer(ran.returncode, ran.stdout, ran.stderr.decode())

    @contextlib.contextmanager
    def started(self, *words: str, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start a command and go on; it is killed at the end of the block, or when it is stuck."""
        with subprocess.Popen(
            [*program(None), *words],
            cwd=self.directory,
            env={**self.environ, **environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            watchdog = threading.Timer(LIMIT, process.kill)
            watchdog.start()
            try:
                yield process
            finally:
                watchdog.cancel()
                process.kill()

    def data(self, *words: str, **environ: str) -> Any:
        """Run a command that works and return its ``data``."""
        return self.atb(*words, **environ).data

    def task(self, *words: str, **environ: str) -> dict[str, Any]:
        """Run a verb that works and return the task; its keys are those of every surface, in their order."""
        task: dict[str, Any] = self.data(*words, **environ)["task"]
        assert list(task) == TASK_KEYS
        return task

    def refused(self, code: str, *words: str, stdin: str | bytes = b"", **environ: str) -> dict[str, Any]:
        """Run a command that is refused with this code, and return the error."""
        answer = self.atb(*words, stdin=stdin, **environ)
        assert not answer.envelope["ok"], answer
        assert answer.error["code"] == code, answer
        return answer.error

    def add(self, title: str = "Write the parser", *options: str) -> str:
        """Add a task and return its id."""
        return str(self.task("add", title, *options)["id"])

    def claim(self, *options: str, agent: str = "ada") -> tuple[str, str]:
        """Claim a task and return its id and the lease's token."""
        data = self.data("claim", "--agent", agent, *options)
        return data["task"]["id"], data["lease"]["token"]

    def claim_long_ago(self, task: str, *, agent: str = "ada") -> str:
        """Claim a task an hour ago, so that its lease has run out by now; return the token."""
        board = Board(self.directory / "data", actor=MARIA, clock=lambda: now() - 3_600_000)
        receipt = board.claim(agent, task=task)
        board.close()
        assert receipt is not None
        assert receipt.lease is not None
        return receipt.lease.token

    def write(self, name: str, content: str | bytes) -> str:
        """Write a file and return its name, as seen from the directory."""
        (self.directory / name).write_bytes(_bytes(content))
        return name

    def write_json(self, name: str, value: object) -> str:
        return self.write(name, json.dumps(value))

    def files(self) -> set[str]:
        """Return every file and directory below the directory."""
        return {str(path.relative_to(self.directory)) for path in self.directory.rglob("*")}

    def snapshot(self) -> list[str]:
        """Return everything that the board holds."""
        connection = sqlite3.connect(f"file:{self.directory / 'data' / 'tasks.db'}?mode=ro", uri=True)
        try:
            return list(connection.iterdump())
        finally:
            connection.close()


def program(code: str | None) -> list[str]:
    return [sys.executable, "-m", "agent_task_board"] if code is None else [sys.executable, "-c", code]


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def at_terminal(terminal: Terminal, *words: str, width: int = 80, **environ: Any) -> tuple[str, str, int]:
    """Run a command whose standard output is a terminal; return what it wrote to it and to standard error, its code."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    environ = {**terminal.environ, "TERM": "xterm", **environ}
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "agent_task_board", *words],
            cwd=terminal.directory,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=subprocess.PIPE,
        ) as process:
            os.close(slave)
            seen = b""
            while True:
                try:
                    part = os.read(master, 65_536)
                except OSError:  # Linux says so when the last writer has gone
                    part = b""
                if not part:
                    break
                seen += part
            assert process.stderr is not None
            told = process.stderr.read()
            code = process.wait(LIMIT)
    finally:
        os.close(master)
    return seen.decode().replace("\r\n", "\n"), told.decode(), code


def on_a_terminal(terminal: Terminal, *words: str, **environ: Any) -> str:
    """Run a command that succeeds and whose standard output is a terminal; return what it wrote there."""
    text, told, code = at_terminal(terminal, *words, **environ)
    assert code == 0, told
    return text
