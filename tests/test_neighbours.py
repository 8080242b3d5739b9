"""Unknown commands are answered with the command that does this, or with none."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from agent_task_board.cli import find, neighbours, parsing
from agent_task_board.cli.registry import MODULES
from tests.command_line import Terminal

if TYPE_CHECKING:
    from pathlib import Path

VALUES = {"ID": "7Q2Z", "TOKEN": "0" * 32, "AGENT": "bob", "TEXT": "text"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("next", "claim"),
        ("start", "claim"),
        ("take", "claim"),
        ("claim_task", "claim"),
        ("ready", "list --ready"),
        ("delete", "cancel ID"),
        ("rm", "cancel ID"),
        ("finish", "complete ID --token TOKEN"),
        ("complete_task", "complete"),
        ("status", "list"),
        ("search", "list"),
        ("list-tasks", "list"),
        ("get", "show ID"),
        ("get_task", "show ID"),
        ("create_task", "add"),
        ("update_task", "update"),
        ("approve_task", "approve"),
        ("assign", "reassign ID --to AGENT"),
        ("Claim", "claim"),
    ],
)
def test_unknown_command_is_answered_with_the_one_that_does_this(tmp_path: Path, name: str, meant: str) -> None:
    error = Terminal(tmp_path).refused("invalid_input", name)
    assert error["hint"] == f"Did you mean `atb {meant}`?"


@pytest.mark.parametrize(("name", "meant"), [("clam", "claim"), ("heartbeet", "heartbeat"), ("updat", "update")])
def test_misspelt_command_is_answered_with_the_right_spelling(tmp_path: Path, name: str, meant: str) -> None:
    error = Terminal(tmp_path).refused("invalid_input", name)
    assert error["hint"] == f"Did you mean {meant!r}?"


@pytest.mark.parametrize("name", ["frobnicate", "bestow", "x" * 10_000, "task-task", "_", "é"])
def test_command_like_no_other_is_answered_with_the_overview(tmp_path: Path, name: str) -> None:
    error = Terminal(tmp_path).refused("invalid_input", name)
    assert error["hint"] == "See `atb --help`."


def test_every_command_that_is_named_exists_and_takes_its_arguments() -> None:
    for meant in set(neighbours.MEANT.values()):
        name, *words = [VALUES.get(word, word) for word in shlex.split(meant)]
        needs = {"add": ["a title"]}.get(name, [])
        parsing.parser_of(name, find(name)).parse_args([*words, *needs])
    assert not set(neighbours.MEANT) & set(MODULES)
