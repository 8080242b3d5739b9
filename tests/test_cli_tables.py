"""The pages for people: aligned, coloured on a terminal alone, and harmless whatever a task contains."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

import pytest

from agent_task_board.cli import tables
from tests.command_line import Terminal, on_a_terminal

if TYPE_CHECKING:
    from pathlib import Path

EVIL = "a\x1b[31mred\x1b[8mhidden\x1b]0;title\x07 \x9b2J \rover\x08 end"
FULL = "\uff46\uff55\uff4c\uff4c"
"""Latin letters, each two columns wide."""

TABLE = ("--format", "table")


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else not unicodedata.combining(char) for char in text)


def starts(line: str, *cells: str) -> list[int]:
    """Return the columns in which cells begin, looked for from left to right."""
    found, place = [], 0
    for cell in cells:
        place = line.index(cell, place)
        found.append(columns(line[:place]))
        place += len(cell)
    return found


def test_list_is_aligned(terminal: Terminal) -> None:
    terminal.add("short", "--queue", "q")
    terminal.add("a longer title", "--queue", "documentation", "--priority", "-1000000")
    terminal.add("third", "--assignee", "somebody-with-a-long-name")
    terminal.claim("--queue", "q")
    lines = terminal.atb("list", "--order", "age", *TABLE).text.splitlines()
    heads = starts(lines[0], "ID", "STATUS", "STATE", "PRIO", "QUEUE", "AGENT", "LEASE", "ATTEMPTS", "TITLE")
    assert starts(lines[1], "claimed")[0] == heads[1]
    assert starts(lines[1], "q", "ada", "1/3", "short") == [heads[place] for place in (4, 5, 7, 8)]
    assert starts(lines[2], "queued", "-1000000", "documentation", "0/3", "a longer title") == [
        heads[place] for place in (1, 3, 4, 7, 8)
    ]
    assert starts(lines[3], "for somebody-wi…", "0/3", "third") == [heads[place] for place in (5, 7, 8)]
    assert len(lines) == 4


def test_wide_and_combining_characters_keep_the_columns_straight(terminal: Terminal) -> None:
    terminal.add("计划", "--queue", "文档与示例")
    terminal.add("plain", "--queue", "docs")
    terminal.add("cafe\u0301", "--queue", "cafe\u0301s")
    terminal.add(FULL, "--queue", FULL, "--assignee", "小林")
    lines = terminal.atb("list", *TABLE).text.splitlines()
    titles = ("TITLE", "计划", "plain", "cafe\u0301", FULL)
    queues = ("QUEUE", "文档与示例", "docs", "cafe\u0301s", FULL)
    places = {tuple(starts(line, queue, title)) for line, queue, title in zip(lines, queues, titles, strict=True)}
    assert len(places) == 1


def test_text_is_cut_by_columns_not_by_characters() -> None:
    assert tables.cut("abcdef", 6) == "abcdef"
    assert tables.cut("abcdefg", 6) == "abcde…"
    assert tables.cut("计划文档", 8) == "计划文档"
    assert tables.cut("计划文档示", 8) == "计划文…"


def test_long_title_is_whole_in_a_pipe_and_cut_on_a_terminal(terminal: Terminal) -> None:
    title = "文" * 250
    terminal.add(title)
    assert title in terminal.atb("list", *TABLE).text
    shown = on_a_terminal(terminal, "list", *TABLE, NO_COLOR="1")
    assert title not in shown
    assert all(columns(line) <= 80 for line in shown.splitlines())
    assert shown.splitlines()[1].endswith("…")


def test_colours_are_for_terminals_that_want_them(terminal: Terminal) -> None:
    id_ = terminal.add()
    for words in (["list"], ["show", id_], ["stats"], ["claim", id_, "--agent", "ada"]):
        assert re.search(r"\x1b\[[0-9;]+m", on_a_terminal(terminal, *words, *TABLE))
    for words in (["list"], ["show", id_], ["events"], ["agents"], ["stats"]):
        assert "\x1b" not in on_a_terminal(terminal, *words, *TABLE, NO_COLOR="1")
        assert "\x1b" not in terminal.process(*words, *TABLE).text
        assert "\x1b" not in terminal.process(*words, *TABLE, TERM="xterm-256color").text


def test_empty_no_color_does_not_count(terminal: Terminal) -> None:
    terminal.add()
    assert "\x1b[36mqueued" in on_a_terminal(terminal, "list", *TABLE, NO_COLOR="")


def test_colours_do_not_move_the_columns(terminal: Terminal) -> None:
    terminal.add("one")
    terminal.add("two")
    terminal.claim("--lease", "7d")
    colourful = on_a_terminal(terminal, "list", *TABLE)
    plain = on_a_terminal(terminal, "list", *TABLE, NO_COLOR="1")
    assert colourful != plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", colourful) == plain


def test_json_on_a_terminal_is_never_coloured(terminal: Terminal) -> None:
    terminal.add()
    assert "\x1b" not in on_a_terminal(terminal, "list", "--json")


def evil_task(terminal: Terminal) -> str:
    """Return a task whose every free text tries to steer the terminal."""
    file = terminal.write("evil", EVIL)
    id_ = terminal.add("harmless title", "--body-file", file)
    terminal.data("comment", id_, EVIL)
    _, token = terminal.claim(id_)
    terminal.data("heartbeat", id_, "--token", token, "--note-file", file)
    terminal.data("fail", id_, "--token", token, "--error-file", file, "--retry-in", "0")
    _, token = terminal.claim(id_)
    terminal.data("complete", id_, "--token", token, "--note-file", file, "--result", '"\\u001b[31m \\u009b2J"')
    return id_


def controls(text: str) -> set[str]:
    return {char for char in text if unicodedata.category(char) == "Cc"} - {"\n"}


def test_control_characters_of_a_task_are_shown_harmless(terminal: Terminal) -> None:
    id_ = evil_task(terminal)
    for words in (["show", id_], ["list"], ["events"], ["events", "--task", id_], ["agents"]):
        answer = terminal.process(*words, *TABLE)
        assert controls(answer.text) == set(), words
    shown = terminal.process("show", id_, *TABLE).text
    assert "hidden" in shown  # harmless, not swallowed
    assert "end" in shown


def test_control_characters_of_a_task_are_harmless_on_a_terminal_too(terminal: Terminal) -> None:
    id_ = evil_task(terminal)
    for words in (["show", id_], ["events"]):
        assert controls(on_a_terminal(terminal, *words, *TABLE, NO_COLOR="1")) == set()
        coloured = on_a_terminal(terminal, *words, *TABLE)
        assert "\x1b[8m" not in coloured
        assert "\x1b[31mred" not in coloured
        assert "\x1b]" not in coloured


def test_body_keeps_its_lines_and_its_indentation(terminal: Terminal) -> None:
    id_ = terminal.add("t", "--body", "# Plan\n\n    code\n\ttab")
    assert "\n| # Plan\n|\n|     code\n| \ttab\n" in terminal.atb("show", id_, *TABLE).text


def test_control_characters_of_a_refusal_are_shown_harmless(terminal: Terminal) -> None:
    terminal.add()
    for words in (
        ["show", "\x1b[31mred\x07"],
        ["\x1b[31mred\x07"],
        ["list", "--status", "\x1b[2J"],
        ["list", "--\x1b[2J"],
        ["add", "t", "--body-file", "\x1b[2J"],
    ):
        answer = terminal.process(*words, *TABLE)
        assert answer.code == 2
        assert answer.out == b""
        assert controls(answer.err) == set()
        assert answer.err.startswith("invalid_input: ")


def test_control_characters_of_a_path_are_shown_harmless(terminal: Terminal) -> None:
    folder = terminal.directory / "a\x1b[31mb"
    folder.mkdir()
    (folder / "atb.toml").write_text('lease = "5m"\n')
    inside = Terminal(folder)
    answer = inside.process("config", "show", *TABLE)
    assert answer.code == 0
    assert controls(answer.text) == set()
    assert controls(inside.process("list", *TABLE).err) == set()


def test_refusal_in_table_format_leaves_standard_output_empty_and_keeps_its_exit_code(terminal: Terminal) -> None:
    id_ = terminal.add()
    for words, code, name in (
        (["show", "7Q2Z"], 3, "not_found"),
        (["approve", id_], 4, "conflict"),
        (["complete", id_, "--token", "x"], 5, "lease_lost"),
        (["claim", "--agent", "ada", "--queue", "empty", "--fail-empty"], 9, "empty"),
        (["nonsense"], 2, "invalid_input"),
    ):
        answer = terminal.process(*words, ATB_FORMAT="table")
        assert (answer.code, answer.out) == (code, b"")
        assert answer.err.startswith(f"{name}: ") or f"\n{name}: " in answer.err


def test_warnings_go_to_standard_error_and_quiet_silences_them(terminal: Terminal) -> None:
    terminal.add("t", "--not-before", "2126-01-01")
    answer = terminal.process("claim", "--agent", "ada", *TABLE)
    assert (answer.code, answer.text) == (0, "nothing\n")
    assert answer.err.startswith("warning: ")
    assert terminal.process("claim", "--agent", "ada", *TABLE, "--quiet").err == ""


def test_every_command_has_a_page(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    played = {"directory": "/somewhere", "tasks": 2, "seconds": 1.0, "proof": ["it is so"]}
    monkeypatch.setattr("agent_task_board.demo.run", lambda *_, **__: played)

    def page(*words: str) -> str:
        answer = terminal.atb(*words, *TABLE)
        assert answer.code == 0, answer
        assert answer.text.endswith("\n")
        assert not answer.text.startswith("{")
        return answer.text

    added = page("add", "the title", "--needs-approval", "--tag", "core", "--priority", "4", "--due", "2126-01-01")
    for part in ("the title", "queued", "priority 4", "core", "2126-01-01 23:59:59"):
        assert part in added
    id_ = terminal.data("list")["tasks"][0]["id"]
    token = re.search(r"^token +([0-9a-f]{32})$", page("claim", id_, "--agent", "ada"), re.MULTILINE)
    assert token is not None
    assert "40 %" in page("heartbeat", id_, "--token", token[1], "--progress", "40")
    token = re.search(r"^token +([0-9a-f]{32})$", page("resume", id_, "--agent", "ada"), re.MULTILINE)
    assert token is not None
    assert token[1] not in page("show", id_)
    assert id_[-6:] in page("agents")
    assert "running" in page("list", "--full")
    assert "review" in page("complete", id_, "--token", token[1], "--result", '{"a": 1}')
    assert "repeated call" in page("complete", id_, "--token", token[1])
    assert "queued" in page("reject", id_, "--note", "again")
    page("comment", id_, "a remark")
    assert "a remark" in page("show", id_)
    assert "bob" in page("reassign", id_, "--to", "bob")
    assert "new title" in page("update", id_, "--title", "new title")
    assert "cancelled" in page("cancel", id_)
    assert "queued" in page("retry", id_)
    events = page("events")
    for kind in ("created", "claimed", "started", "resumed", "completed", "rejected", "reassigned", "retried"):
        assert kind in events
    other = terminal.add("other", "--depends-on", id_, "--dedupe-key", "k")
    assert "depends on:" in page("show", other)
    assert "required by:" in page("show", id_)
    assert "no task added" in page("add", "t", "--dedupe-key", "k")
    assert "QUEUE" in page("stats")
    assert "expired" in page("tick")
    assert "max_attempts" in page("config", "show")
    assert "it is so" in page("demo")
    terminal.add("third")
    assert "continue with --after work~" in page("list", "--limit", "1")
    for verb in ("fail", "release", "handoff"):
        held, secret = terminal.claim(terminal.add(verb))
        more = {"fail": ["--error", "e"], "handoff": ["--to", "eve"]}.get(verb, [])
        assert verb in page(verb, held, "--token", secret, *more)
    terminal.data("update", id_, "--assignee", "")
    _, secret = terminal.claim(id_)
    terminal.data("complete", id_, "--token", secret)
    assert "done" in page("approve", id_)
    assert "median" in page("stats")


def test_empty_lists_say_so(terminal: Terminal) -> None:
    terminal.data("init")
    for command, said in (("list", "no tasks"), ("events", "no events"), ("agents", "no agents")):
        assert terminal.atb(command, *TABLE).text == f"{said}\n"
