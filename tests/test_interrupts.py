"""Ctrl-C while a command starts: exit code 130, no traceback, and a whole envelope or none."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.command_line import LIMIT, Terminal, program, read_envelope
from tests.mcp_client import locked

if TYPE_CHECKING:
    from pathlib import Path

INTERRUPT = """
import signal, sys
from agent_task_board.__main__ import run
left = int(sys.argv.pop(1))
def count(event, _):
    global left
    left -= 1
    if not left:
        signal.raise_signal(signal.SIGINT)
sys.addaudithook(count)
run()
"""
"""Interrupts itself at one of its steps that Python audits: each import, each file opened, each connection."""


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        (["claim", "--agent", "ada"], range(1, 240, 8)),
        (["list"], range(1, 240, 24)),
        (["serve", "--port", "0"], range(2, 560, 40)),
        (["mcp"], [*range(3, 300, 40), *range(300, 8_000, 700)]),
    ],
    ids=lambda value: value[0] if isinstance(value[0], str) else "",
)
def test_interrupt_at_any_step_of_the_start_exits_with_130_and_without_a_traceback(
    tmp_path: Path, words: list[str], steps: list[int]
) -> None:
    terminal = Terminal(tmp_path)
    terminal.add()
    interrupted = 0
    for step in steps:
        answer = terminal.process(str(step), *words, code=INTERRUPT)
        interrupted += answer.code == 130
        assert answer.code in (0, 130), (step, answer)
        assert answer.err == "", (step, answer)
        if answer.out or answer.code == 0:
            assert read_envelope(answer.text)["ok"], (step, answer)
    assert interrupted


IGNORED = """
import signal
from agent_task_board.__main__ import run
class Interrupted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
from agent_task_board import cli
cli.main = lambda: [Interrupted(), 0][1]
run()
"""


def test_interrupt_that_python_would_ignore_ends_the_program_too(tmp_path: Path) -> None:
    answer = Terminal(tmp_path).process(code=IGNORED)
    assert (answer.code, answer.out, answer.err) == (130, b"", "")


WAITING = """
import sys
from agent_task_board.storage.turnstile import Turnstile
from agent_task_board.__main__ import run
enter = Turnstile.enter
def tell(self, *given):
    enter(self, *given)
    sys.stderr.write("next is the lock")
    sys.stderr.flush()
Turnstile.enter = tell
run()
"""


def test_interrupt_while_a_command_waits_for_the_write_lock_changes_nothing(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.write("atb.toml", 'busy_timeout = "1s"\n')
    terminal.add()
    before = terminal.snapshot()
    with (
        locked(tmp_path),
        subprocess.Popen(
            [*program(WAITING), "claim", "--agent", "ada"],
            cwd=tmp_path,
            env=terminal.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        assert process.stderr is not None
        assert process.stderr.read(16) == b"next is the lock"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert terminal.snapshot() == before
