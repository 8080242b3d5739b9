"""Standard output that cannot be written: each command says so on standard error, and what it did is not in doubt."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.command_line import Terminal, program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no file that is always full")
UNKNOWN = "01JDXAAAAAAAAAAAAAAAAA7Q2Z"


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    terminal = Terminal(tmp_path)
    terminal.atb("add", "a task")
    return terminal


def run(terminal: Terminal, *words: str, out: str = "/dev/full", err: str | None = None) -> tuple[int, str]:
    """Run a command with a full standard output; return its exit code and standard error."""
    with open(out, "wb") as full, open(err or os.devnull, "wb") as other:
        done = subprocess.run(
            [*program(None), *words],
            cwd=terminal.directory,
            env=terminal.environ,
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=other if err else subprocess.PIPE,
            check=False,
            timeout=60,
        )
    return done.returncode, (done.stderr or b"").decode()


def statuses(terminal: Terminal) -> list[str]:
    return sorted(task["status"] for task in terminal.atb("list").data["tasks"])


@pytest.mark.parametrize(
    "line",
    [
        *("--help", "help claim", "claim --help", "--version", "completion bash", "completion zsh --json"),
        *("prime", "prime --json", "setup codex --print", "where", "config show", "doctor"),
        *("list", "list --format table", "list --format compact", "list --print data", "stats"),
        *("export", "export --format csv", "events", "events --follow", "watch", "serve --port 0"),
    ],
)
def test_command_whose_output_cannot_be_written_says_so_and_ends_with_8(terminal: Terminal, line: str) -> None:
    code, err = run(terminal, *line.split())
    assert code == 8
    assert err.startswith("unusable: standard output cannot be written: ")
    assert err.count("\n") == 2, "the message and its hint, and no traceback"


def test_change_whose_answer_cannot_be_written_is_made_and_the_hint_says_so(terminal: Terminal) -> None:
    for words in (["add", "another task"], ["claim", "--agent", "ada"], ["add", "one more", "--print", "data.task.id"]):
        code, err = run(terminal, *words)
        assert (code, "The command itself succeeded." in err) == (8, True)
    assert statuses(terminal) == ["claimed", "queued", "queued"]


def test_refusal_that_cannot_be_written_goes_to_standard_error_and_keeps_its_exit_code(terminal: Terminal) -> None:
    for style in ("json", "compact"):
        code, err = run(terminal, "show", UNKNOWN, "--format", style)
        assert code == 3
        assert "standard output cannot be written" in err
        assert "\nnot_found: " in err


def test_hook_and_completion_never_fail_their_caller(terminal: Terminal) -> None:
    assert run(terminal, "prime", "--hook", "session-start")[0] == 0
    assert run(terminal, "__complete", "zsh", "atb", "cl") == (0, "")


def test_work_goes_on_when_its_lines_cannot_be_written(terminal: Terminal) -> None:
    code, err = run(terminal, "run", "--drain", "--agent", "ada", "--", "true")
    assert code == 0
    assert err.count("standard output cannot be written") == 1
    assert statuses(terminal) == ["done"]


def test_standard_error_that_cannot_be_written_changes_no_exit_code(terminal: Terminal) -> None:
    for out in (os.devnull, "/dev/full"):
        for style in ("json", "table"):
            assert run(terminal, "show", UNKNOWN, "--format", style, out=out, err="/dev/full")[0] == 3


def test_closed_standard_error_changes_no_exit_code(terminal: Terminal) -> None:
    ran = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *program(None), "show", UNKNOWN, "--format", "table"],
        cwd=terminal.directory,
        env=terminal.environ,
        stdout=subprocess.PIPE,
        check=False,
    )
    assert ran.returncode == 3
