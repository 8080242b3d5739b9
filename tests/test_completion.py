"""Completion in real shells: what `atb completion SHELL` prints, run by the shell's own machinery."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from agent_task_board.board import candidates
from agent_task_board.board.core import Core
from agent_task_board.cli import completion, find
from agent_task_board.cli.registry import MODULES
from agent_task_board.cli.terminal import SHELLS
from agent_task_board.model import FINAL, STATUSES
from tests.command_line import LIMIT, Terminal
from tests.shells import console, program_on_path, shell
from tests.support import bring_to

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_task_board import Board
    from tests.shells import Console
    from tests.support import Clock

NASTY = "$(touch pwned) `touch pwned` \"q\" 'it' a:b \\ ; touch pwned"
"""A title, a tag or a name that a shell must not execute."""


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    found = Terminal(tmp_path)
    found.environ["PATH"] = program_on_path(tmp_path / "bin")
    return found


def ask(terminal: Terminal, *words: str, **environ: str) -> list[str]:
    """Return what a script is told about a line whose last word is typed up to the cursor."""
    answer = terminal.process("__complete", "fish", "atb", *words, **environ)
    assert (answer.code, answer.err) == (0, "")
    return answer.text.splitlines()


def names(lines: list[str]) -> list[str]:
    assert lines[0] == "words"
    return [line.partition("\t")[0] for line in lines[1:]]


# At the prompt of a shell

SETUP = {
    "bash": "bind 'set bell-style none'; bind 'set completion-query-items 0'; source <(atb completion bash)",
    "zsh": "autoload -Uz compinit; compinit -D -u; unsetopt list_beep; LISTMAX=1000; source <(atb completion zsh)",
    "fish": "set -g fish_greeting; set -g fish_autosuggestion_enabled 0; atb completion fish | source",
}
OPTIONS = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"], "fish": ["--no-config", "-i"]}


@contextlib.contextmanager
def prompt(terminal: Terminal, name: str) -> Iterator[Console]:
    """Start an interactive shell that has read its script."""
    environ = {**terminal.environ, "TERM": "xterm", "LANG": "C.UTF-8"}
    with console(shell(name), *OPTIONS[name], cwd=terminal.directory, environ=environ, size=(200, 60)) as found:
        found.type(f"{SETUP[name]}; echo REA''DY\r")
        found.until("READY")
        found.forget()
        yield found


@pytest.mark.parametrize("name", SHELLS)
def test_command_option_and_value_are_completed_at_the_prompt(terminal: Terminal, name: str) -> None:
    id_ = terminal.add("Read it", "--needs-approval")
    terminal.task("complete", id_, "--token", terminal.claim()[1])
    terminal.add("Not this one")
    with prompt(terminal, name) as found:
        found.type("atb lis\t--js\t--stat\trev\t\r")
        found.until('"title":"Read it"')
        assert "Not this one" not in found.text


@pytest.mark.parametrize("name", SHELLS)
@pytest.mark.parametrize("form", ["--tag z\t", "--tag=z\t"])
def test_name_that_a_shell_would_execute_is_inserted_as_text(terminal: Terminal, name: str, form: str) -> None:
    terminal.add("The one", "--tag", f"z{NASTY}")
    terminal.add("Another one")
    with prompt(terminal, name) as found:
        found.type(f"atb list --json {form}; echo EN''D\r")
        found.until("END")
        assert '"title":"The one"' in found.text
        assert "Another one" not in found.text
    assert not (terminal.directory / "pwned").exists()


@pytest.mark.parametrize("name", SHELLS)
def test_tasks_are_listed_with_their_titles_and_none_is_executed(terminal: Terminal, name: str) -> None:
    ids = [terminal.add(f"{NASTY} {number}") for number in range(2)]
    with prompt(terminal, name) as found:
        found.type("atb show \t\t\t")  # the first may only insert what the two endings begin with
        for number, id_ in enumerate(ids):
            found.until(id_[-6:])
            found.until(f"queued: {NASTY} {number}")
    assert not (terminal.directory / "pwned").exists()


@pytest.mark.parametrize("name", SHELLS)
def test_task_is_completed_by_its_ending_in_the_case_that_is_typed(terminal: Terminal, name: str) -> None:
    id_ = terminal.add("Only this")
    with prompt(terminal, name) as found:
        found.type(f"atb show --json {id_[-6:-3].lower()}\t\r")
        found.until(f'"id":"{id_}"')


@pytest.mark.parametrize("name", SHELLS)
def test_files_are_completed_where_a_file_is_meant(terminal: Terminal, name: str) -> None:
    terminal.write_json("some tasks.json", [{"title": "From the file"}])
    with prompt(terminal, name) as found:
        found.type("atb import --json some\t; echo EN''D\r")
        found.until("END")
        assert '"imported":1' in found.text


@pytest.mark.parametrize("name", SHELLS)
def test_shell_shows_no_error_whatever_is_wrong(terminal: Terminal, name: str) -> None:
    terminal.write("atb.toml", "this is not TOML")
    with prompt(terminal, name) as found:
        found.type("atb show \t\t")
        found.type("\x15atb nonsense \t\t\x15atb list --data-dir /dev/null --queue \t\t\x15echo EN''D\r")
        found.until("END")
        for word in ("TOML", "error", "invalid", "Traceback", "usage"):
            assert word not in found.text
    assert terminal.files() == {"atb.toml", "bin", "bin/atb", *history(terminal)}


def history(terminal: Terminal) -> set[str]:
    """Return what the shells themselves keep."""
    return {name for name in terminal.files() if name.startswith((".", "fish"))}


INSTALLED = {
    "zsh": (".zfunc/_atb", "fpath=(~/.zfunc $fpath); autoload -Uz compinit; compinit -D -u"),
    "fish": (".config/fish/completions/atb.fish", "set -p fish_complete_path ~/.config/fish/completions"),
}


@pytest.mark.parametrize("name", INSTALLED)
def test_script_works_as_a_file_that_the_shell_loads_itself(
    terminal: Terminal, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, setup = INSTALLED[name]
    (terminal.directory / file).parent.mkdir(parents=True)
    terminal.write(file, terminal.atb("completion", name).out)
    monkeypatch.setitem(SETUP, name, setup)
    terminal.add("Read it")
    with prompt(terminal, name) as found:
        found.type("atb lis\t--js\t--stat\tque\t\r")
        found.until('"title":"Read it"')


# The function of bash, and the command of fish


def in_bash(terminal: Terminal, line: str, how: int = 9) -> list[str]:
    """Call the function that `complete -p` names, with the variables that bash sets."""
    code = f"""
        source <(atb completion bash)
        function=$(complete -p atb); function=${{function#*-F }}; function=${{function%% *}}
        COMP_LINE=$LINE; COMP_POINT=${{#LINE}}; COMP_TYPE={how}; COMP_KEY=9
        "$function" atb "" "" || exit 9
        [ ${{#COMPREPLY[@]}} = 0 ] || printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    return run(terminal, [shell("bash"), "--norc", "-c", code], line)


def in_fish(terminal: Terminal, line: str) -> list[str]:
    return run(
        terminal, [shell("fish"), "--no-config", "-c", 'atb completion fish | source; complete -C "$LINE"'], line
    )


def run(terminal: Terminal, words: list[str], line: str) -> list[str]:
    ran = subprocess.run(
        words,
        cwd=terminal.directory,
        env={**terminal.environ, "LINE": line, "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT,
        encoding="utf-8",
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return [found for found in ran.stdout.split("\n") if found]


def test_bash_is_given_what_it_inserts(terminal: Terminal) -> None:
    terminal.add("One", "--queue", "team:docs", "--tag", NASTY)
    terminal.add("Two", "--queue", "my queue")
    assert in_bash(terminal, "atb sh") == ["show"]
    assert in_bash(terminal, "atb list --queue ") == ["my\\ queue", "team:docs"]
    assert in_bash(terminal, "atb list --queue my\\ q") == ["my\\ queue"]
    assert in_bash(terminal, "atb list --queue team:d") == ["docs"], "bash replaces only what follows the colon"
    assert in_bash(terminal, "atb list --queue=team:d") == ["docs"]
    assert in_bash(terminal, "atb list --status=rev") == ["review"]
    assert in_bash(terminal, "atb list --queue 'te") == [], "the word is quoted"
    plain = in_bash(terminal, "atb show ")
    assert all(re.fullmatch("[0-9A-Z]{6}", word) for word in plain), "bash may insert one of several"
    assert sorted(word.partition("  ")[2] for word in in_bash(terminal, "atb show ", 63)) == [
        "(queued: One)", "(queued: Two)",
    ]  # fmt: skip
    (tag,) = in_bash(terminal, "atb list --tag ")
    echoed = subprocess.run([shell("bash"), "-c", f"printf %s {tag}"], capture_output=True, text=True, cwd="/")
    assert echoed.stdout == NASTY


def test_fish_is_given_words_and_what_they_mean(terminal: Terminal) -> None:
    id_ = terminal.add('Write: the "parser"')
    assert in_fish(terminal, "atb sh") == ["show\tShow one task with its attempts, dependencies and comments."]
    assert in_fish(terminal, "atb show ") == [f'{id_[-6:]}\tqueued: Write: the "parser"']
    assert in_fish(terminal, "atb list --status=f") == ["--status=failed"]
    (terminal.directory / "folder").mkdir()
    assert [word.partition("\t")[0] for word in in_fish(terminal, "atb list --data-dir fo")] == ["folder/"]
    assert [word.partition("\t")[0] for word in in_fish(terminal, "atb list --data-dir=fo")] == ["--data-dir=folder/"]


# What the scripts are told


def test_every_command_has_candidates_or_nothing_but_never_an_error(terminal: Terminal) -> None:
    terminal.add("One")
    assert names(ask(terminal, "")) == list(MODULES)
    for name in MODULES:
        kind, _, _ = asked(terminal, name, "")
        assert kind in ("words", "files", "directories")
        options = [word for word, _ in asked(terminal, name, "--")[1]]
        assert "--data-dir" in options
        for option in options:
            asked(terminal, name, option, "")


def asked(terminal: Terminal, *words: str) -> tuple[str, list[tuple[str, str]], str]:
    """Ask inside this process, where a fault is not hidden."""
    with contextlib.chdir(terminal.directory), patch.dict(os.environ, terminal.environ, clear=True):
        return completion.complete(words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("list", "--status", ""), list(STATUSES)),
        (("archive", "--status", ""), list(FINAL)),
        (("hooks", "list", "--status", ""), ["pending", "delivered", "failed"]),
        (("list", "--order", "p"), ["priority"]),
        (("--format", ""), ["json", "table", "compact"]),
        (("--format=c",), ["c"]),
        (("completion", ""), list(SHELLS)),
        (("schedule", ""), ["add", "list", "show", "pause", "resume", "remove", "preview"]),
        (("schedule", "show", ""), ["nightly"]),
        (("list", "--queue", ""), ["docs"]),
        (("list", "--assignee", ""), ["ada", "none"]),
        (("list", "--claimed-by", ""), ["ada"]),
        (("list", "--tag", ""), ["bug"]),
        (("list", "--search", ""), []),
        (("add", ""), []),
        (("add", "Title", "--request-id", ""), []),
        (("--vers",), ["--version"]),
        (("nonsense", ""), []),
        (("list", "--nonsense", ""), []),
        (("list", "--ready", "--read"), []),
        (("list", "--tag", "bug", "--ta"), ["--tag", "--tail"]),
        (("add", "--", "--tag", ""), []),
    ],
)
def test_words_come_from_the_parsers_and_the_board(
    terminal: Terminal, words: tuple[str, ...], expected: list[str]
) -> None:
    terminal.add("One", "--queue", "docs", "--tag", "bug")
    terminal.claim()
    terminal.data("schedule", "add", "nightly", "--cron", "0 2 * * *", "--task", '{"title": "t"}')
    lines = ask(terminal, *words)
    if words == ("--format=c",):
        expected = ["--format=compact"]
    assert (names(lines) if lines else []) == expected


@pytest.mark.parametrize("status", ["queued", "claimed", "running", "review", "done", "failed", "cancelled"])
def test_command_is_offered_the_tasks_that_it_is_for(board: Board, terminal: Terminal, status: str) -> None:
    held = bring_to(board, status)
    offered = {name for name in MODULES if held.id[-6:] in {word for word, _ in asked(terminal, name, "")[1]}}
    everywhere = {"show", "comment", "wait", "why"}
    expected = {
        "queued": {"claim", "done", "update", "edit", "reassign", "cancel"},
        "claimed": {*"resume heartbeat complete fail release handoff update edit reassign cancel".split()},
        "running": {*"resume heartbeat complete fail release handoff update edit reassign cancel".split()},
        "review": {"approve", "reject", "update", "edit", "reassign", "cancel"},
        "done": {"archive"},
        "failed": {"retry", "archive"},
        "cancelled": {"retry", "archive"},
    }[status]
    assert offered - {"reassign"} == (everywhere | expected) - {"reassign"}


def test_agent_is_offered_what_it_holds(board: Board, terminal: Terminal) -> None:
    mine, other = bring_to(board, "claimed", agent="ada").id, bring_to(board, "claimed", agent="bob").id
    assert set(names(ask(terminal, "complete", ""))) == {mine[-6:], other[-6:]}
    assert names(ask(terminal, "complete", "", ATB_AGENT="ADA")) == [mine[-6:]]
    assert names(ask(terminal, "resume", "--agent", "bob", "")) == [other[-6:]]


def test_archived_tasks_are_offered_to_bring_them_back(board: Board, terminal: Terminal, clock: Clock) -> None:
    done = bring_to(board, "done").id
    clock.advance(days=100)
    board.archive("1d")
    assert names(ask(terminal, "show", "")) == []
    assert names(ask(terminal, "unarchive", "")) == [done[-6:]]


def test_task_is_offered_under_a_name_that_means_no_other(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    board.create()
    ids = iter(["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01BRZ3NDEKTSV4RRFFQ69G5FAV", "01CRZ3NDEKTSV4RRFFQ69G7FAV"])
    monkeypatch.setattr(Core, "new_id", staticmethod(lambda: next(ids)))
    first, second, third = (board.add(title).task.id for title in ("one", "two", "three"))
    assert {one.name for one in candidates.tasks(board, "")} == {first, second, "9G7FAV"}
    assert [one.name for one in candidates.tasks(board, "9g7")] == ["9G7FAV"]
    assert [one.name for one in candidates.tasks(board, "01c")] == [third]
    assert [one.name for one in candidates.tasks(board, "9g5")] == []
    for one in candidates.tasks(board, ""):
        assert board.show(one.name)["task"]["title"] == one.title


def test_board_that_the_line_names_is_asked(terminal: Terminal) -> None:
    terminal.data("add", "There", "--queue", "there", "--data-dir", "elsewhere")
    assert names(ask(terminal, "--data-dir", "elsewhere", "list", "--queue", "")) == ["there"]
    assert names(ask(terminal, "list", "--data-dir=elsewhere", "--queue", "")) == ["there"]
    assert names(ask(terminal, "list", "--queue", "")) == []


def test_asking_creates_nothing_and_says_nothing(terminal: Terminal) -> None:
    before = terminal.files()
    for words in (
        ["show", ""],
        ["list", "--queue", ""],
        [],
        ["--data-dir"],
        ["show", "\udcff"],
        ["list", "--", "", ""],
    ):
        answer = terminal.process("__complete", "fish", "atb", *words, ATB_FORMAT="nonsense", ATB_DATA_DIR="\n")
        assert (answer.code, answer.err) == (0, "")
    for words in ([], ["bash"], ["bash", "9"], ["tcsh", "x"], ["fish"]):
        answer = terminal.process("__complete", *words)
        assert (answer.code, answer.err) == (0, "")
    assert terminal.files() == before


def test_title_takes_one_line_and_has_no_control_characters(
    board: Board, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.add("plain")
    odd = candidates.Candidate("ABCDEF", "a\tb\nc\x1b[31m\u202e" + "long " * 100, "queued")
    monkeypatch.setattr(candidates, "tasks", lambda *_, **__: [odd])
    ((word, text),) = asked(terminal, "show", "")[1]
    assert word == "ABCDEF"
    assert text.startswith("queued: a b c\\u001b[31m\\u202elong")
    assert text.endswith("\u2026")
    assert "\n" not in text + word


@pytest.mark.parametrize(
    ("line", "words", "raw"),
    [
        ("atb ", ["atb", ""], ""),
        ("atb list --queue my\\ q", ["atb", "list", "--queue", "my q"], "my\\ q"),
        ("atb list --queue 'my q' --tag \"a b\" x", ["atb", "list", "--queue", "my q", "--tag", "a b", "x"], "x"),
        ("atb add 'it is", ["atb", "add", "it is"], None),
        ("atb list ''", ["atb", "list", ""], None),
        ("atb x\\", ["atb", "x"], None),
    ],
)
def test_line_of_bash_is_split_as_bash_does(line: str, words: list[str], raw: str | None) -> None:
    assert completion.split(line) == (words, raw)


def test_script_can_be_had_as_json(terminal: Terminal) -> None:
    for name in SHELLS:
        script = terminal.atb("completion", name)
        assert script.text == completion.script(name)
        assert terminal.data("completion", name, "--json") == {"shell": name, "script": script.text}
    terminal.refused("invalid_input", "completion", "tcsh")
    assert terminal.files() == {"bin", "bin/atb"}


def test_commands_named_for_tasks_exist() -> None:
    assert set(completion.MEANT) <= set(MODULES)
    assert find("completion").reads
