"""What the commands of an agent at work load: every module more is a delay of every single claim."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.command_line import Terminal

if TYPE_CHECKING:
    from pathlib import Path

TELL = "import sys; sys.stderr.write(' '.join(sys.modules))"
FLOOR = f"import sqlite3, json, argparse; {TELL}"
RUN = f"from agent_task_board import cli; code = cli.main(); {TELL}; raise SystemExit(code)"

OURS = {
    "agent_task_board",
    *(
        f"agent_task_board.{name}"
        for name in """
        backoff board board.claiming board.core board.expiry board.history board.predicates board.queries
        board.refusals board.rows cli cli.command cli.output cli.parsing cli.registry config errors identity inputs
        instants model ownership places service settings storage storage.db storage.filesystem storage.fulltext
        storage.fingerprint storage.process storage.refusals storage.transactions
        storage.turnstile
        """.split()
    ),
}

THEIRS = {
    "__future__",
    "errno",
    "fcntl",
    "gc",
    "_sha256" if sys.version_info < (3, 12) else "_sha2",
}
"""Built in or tiny."""

HEAVY = {
    *"asyncio concurrent contextlib croniter dataclasses hashlib _hashlib http.server importlib.metadata".split(),
    *"importlib.resources inspect logging mcp pathlib secrets shutil subprocess tempfile threading tomllib".split(),
    *"traceback typing ulid unicodedata uuid zoneinfo".split(),
}


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    terminal = Terminal(tmp_path_factory.mktemp("startup"))
    for title in ("one", "two", "three", "four"):
        terminal.add(title)
    return terminal


@pytest.fixture(scope="module")
def floor(terminal: Terminal) -> set[str]:
    """Return what is loaded by a program that could do nothing with less."""
    return set(terminal.process(code=FLOOR).err.split())


def loaded_by(terminal: Terminal, command: str, floor: set[str]) -> set[str]:
    """Run a command that works, and return the modules that it loaded beyond the floor."""
    words = [command]
    if command == "claim":
        words += ["--agent", "ada", "--json"]
    elif command != "list":
        words += terminal.claim()
        words.insert(2, "--token")
    if command == "fail":
        words += ["--error", "no network"]
    answer = terminal.process(*words, code=RUN)
    assert answer.data is not None
    return set(answer.err.split()) - floor


@pytest.mark.parametrize("command", ["claim", "heartbeat", "complete", "fail", "list"])
def test_command_loads_only_what_it_needs(terminal: Terminal, floor: set[str], command: str) -> None:
    own = {"agent_task_board.cli.reads" if command == "list" else "agent_task_board.cli.leases"}
    if command in ("complete", "fail"):  # what they store can be searched for
        own |= {"agent_task_board.board.indexing", "agent_task_board.board.words"}
    loaded = loaded_by(terminal, command, floor)
    assert loaded & HEAVY == set()
    assert loaded - OURS - own - THEIRS == set()


def test_compact_text_is_loaded_only_for_those_who_ask_for_it(terminal: Terminal, floor: set[str]) -> None:
    asked = terminal.process("list", code=RUN, ATB_FORMAT="compact")
    loaded = set(asked.err.split()) - floor
    assert loaded - OURS - THEIRS == {
        *("agent_task_board.board.attention", "agent_task_board.cli.reads"),
        *("agent_task_board.printable", "agent_task_board.text", "agent_task_board.text.compact"),
        "agent_task_board.characters",
    }
    assert asked.text.startswith("atb1 list\n")


def test_heavy_module_on_the_path_of_a_claim_is_seen(terminal: Terminal, floor: set[str]) -> None:
    terminal.add("five")
    answer = terminal.process("claim", "--agent", "ada", code=f"import dataclasses, agent_task_board.demo; {RUN}")
    assert {"dataclasses", "subprocess", "agent_task_board.demo"} <= set(answer.err.split()) - floor


@pytest.mark.parametrize("command", ["add", "show", "agents", "stats", "tick"])
def test_other_commands_do_not_load_each_other(terminal: Terminal, floor: set[str], command: str) -> None:
    words = {"add": ["six"], "show": [terminal.add("seven")]}.get(command, [])
    loaded = set(terminal.process(command, *words, code=RUN).err.split()) - floor
    homes = {"reads", "tasks", "upkeep"}
    expected = {"add": {"tasks"}, "tick": {"reads", "upkeep"}}.get(command, {"reads"})
    assert {home for home in homes if f"agent_task_board.cli.{home}" in loaded} == expected
    assert not {"agent_task_board.demo", "agent_task_board.cli.tables", "tomllib", "tomli_w"} & loaded


def test_no_configuration_file_means_no_parser_of_one(terminal: Terminal, floor: set[str], tmp_path: Path) -> None:
    elsewhere = Terminal(tmp_path)
    elsewhere.add()
    assert "tomllib" not in loaded_by(elsewhere, "list", floor)
    elsewhere.write("atb.toml", 'lease = "5m"\n')
    assert "tomllib" in loaded_by(elsewhere, "list", floor)
