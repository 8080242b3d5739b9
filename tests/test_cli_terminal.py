"""What a person at a terminal gets, and what an agent in a pseudo-terminal gets instead."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board.cli.output import AGENT_VARIABLES
from tests.command_line import Terminal, at_terminal, on_a_terminal

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else not unicodedata.combining(char) for char in line)


# Who gets a table


def test_terminal_gets_a_table_and_a_pipe_gets_json(terminal: Terminal) -> None:
    terminal.add("the title")
    assert on_a_terminal(terminal, "list", NO_COLOR="1").startswith("ID ")
    assert terminal.process("list").data["tasks"][0]["title"] == "the title"


@pytest.mark.parametrize("variable", ["ATB_AGENT", *AGENT_VARIABLES])
def test_agent_in_a_pseudo_terminal_gets_json(terminal: Terminal, variable: str) -> None:
    terminal.add()
    assert json.loads(on_a_terminal(terminal, "list", **{variable: "1"}))["ok"]


@pytest.mark.parametrize("words", [["--json"], ["--format", "json"], ["--format=compact"]])
def test_option_decides_at_a_terminal(terminal: Terminal, words: list[str]) -> None:
    terminal.add()
    assert not on_a_terminal(terminal, "list", *words).startswith("ID ")
    assert on_a_terminal(terminal, "list", ATB_FORMAT="compact").startswith("atb1 list\n")
    assert on_a_terminal(terminal, "list", "--format", "table", ATB_AGENT="ada", NO_COLOR="1").startswith("ID ")


@pytest.mark.parametrize("words", [["--version"], ["-V"]])
def test_version_is_json_everywhere(terminal: Terminal, words: list[str]) -> None:
    assert set(json.loads(on_a_terminal(terminal, *words))["data"]) == {"version", "python", "sqlite"}
    assert terminal.atb(*words).data["python"]


def test_refusal_at_a_terminal_is_message_and_hint_on_standard_error(terminal: Terminal) -> None:
    terminal.add()
    for words in (["show", "9F3K2A"], ["lst"], ["list", "--limit", "0"], ["claim"]):
        text, told, code = at_terminal(terminal, *words)
        assert (text, code > 1) == ("", True), words
        assert re.match(r"(not_found|invalid_input): .+\n.+\n$", told), told


def test_every_instant_at_a_terminal_has_its_offset(terminal: Terminal) -> None:
    terminal.data("add", "a", "--due", "2126-01-01", "--not-before", "2125-01-01")
    terminal.data("comment", terminal.data("list")["tasks"][0]["id"], "hello")
    terminal.data("schedule", "add", "s", "--cron", "0 9 * * *", "--task", '{"title": "t"}')
    shown = (
        ["show", terminal.data("list")["tasks"][0]["id"]],
        ["events"],
        ["list", "--fields", "due_at,title"],
        ["schedule", "preview", "s"],
    )
    for words in shown:
        text = on_a_terminal(terminal, *words, width=200, NO_COLOR="1")
        instants = re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\s:]*(?::00)?", text)
        assert instants
        assert all(instant.endswith("+08:00") for instant in instants), text


def test_schedule_is_shown_in_its_own_zone(terminal: Terminal) -> None:
    task = json.dumps({"title": "t", "dedupe_key": "k"})
    answer = terminal.atb("schedule", "add", "s", "--cron", "0 9 * * *", "--zone", "Asia/Kolkata", "--task", task)
    assert any("dedupe_key" in warning for warning in answer.warnings)
    shown = on_a_terminal(terminal, "schedule", "list", width=200, NO_COLOR="1")
    assert re.search(r"Asia/Kolkata +\d{4}-\d\d-\d\d 09:00:00\+05:30", shown)
    assert terminal.data("schedule", "show", "s")["schedule"]["next_at"]
    assert terminal.data("schedule", "pause", "s")["schedule"]["next_at"] is None
    assert any("paused" in warning for warning in terminal.atb("schedule", "preview", "s").warnings)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_tables_fit_the_terminal_and_nothing_is_cut_without_an_ellipsis(terminal: Terminal, width: int) -> None:
    id_ = terminal.add(
        "a title of some length that goes on", "--queue", "documentation-and-examples", "--assignee", "somebody-long",
        "--due", "2020-01-01",
    )  # fmt: skip
    terminal.add("文" * 60)
    token = terminal.claim(id_, agent="somebody-long")[1]
    terminal.data("fail", id_, "--token", token, "--error", "an error message of some length, to be cut")
    for words in (["list"], ["events"], ["agents"], ["stats"], ["list", "--fields", "id,title,queue,created_at"]):
        text = on_a_terminal(terminal, *words, width=width, NO_COLOR="1")
        assert all(columns(line) <= width for line in text.splitlines()), text
    shown = on_a_terminal(terminal, "list", width=width, NO_COLOR="1")
    assert "a title of some length that goes on" in shown or "…" in shown
    assert ("documentation-a…" in shown) == (width == 200)


@pytest.mark.parametrize("width", [40, 60])
def test_narrow_terminal_spares_columns_so_that_titles_stay_legible(terminal: Terminal, width: int) -> None:
    terminal.add("0123456789 title", "--queue", "documentation", "--assignee", "somebody-long", "--due", "2020-01-01")
    terminal.add("second", "--queue", "documentation")
    heads, *rows = on_a_terminal(terminal, "list", width=width, NO_COLOR="1").splitlines()
    assert (heads.split()[0], heads.split()[-2:]) == ("ID", ["…", "TITLE"])
    assert any(row.endswith("0123456789 title") for row in rows)
    events = on_a_terminal(terminal, "events", width=width, NO_COLOR="1").splitlines()
    assert "…" in events[0].split()
    assert events[1].split()[-2:] == ["created", "-"]


def test_columns_without_content_are_left_out_without_an_ellipsis(terminal: Terminal) -> None:
    terminal.add("t")
    text = on_a_terminal(terminal, "list", width=60, NO_COLOR="1")
    assert "LEASE" not in text
    assert "…" not in text


def test_long_title_is_cut_before_the_instant_behind_it(terminal: Terminal) -> None:
    terminal.add("a title that goes on and on " * 6, "--due", "2126-01-01")
    shown = on_a_terminal(terminal, "list", "--fields", "id,title,due_at", width=90, NO_COLOR="1")
    assert shown.splitlines()[1].endswith("…  2126-01-01 23:59:59+08:00")


def test_findings_and_refusals_are_broken_into_lines_and_never_cut(terminal: Terminal) -> None:
    id_ = terminal.add()
    text = on_a_terminal(terminal, "doctor", width=60, NO_COLOR="1")
    assert "…" not in text
    assert all(columns(line) <= 60 for line in text.partition("what to do:")[0].splitlines())
    refused = at_terminal(terminal, "approve", id_, id_, width=60, NO_COLOR="1")[0]
    assert "…" not in refused
    assert len(refused.splitlines()) > 3
    token = terminal.claim(id_)[1]
    error = "word " * 40 + "end"
    terminal.data("fail", id_, "--token", token, "--error", error)
    assert "end" in on_a_terminal(terminal, "show", id_, width=60, NO_COLOR="1").split("attempts:")[1]


def test_facts_are_words_and_no_json(terminal: Terminal) -> None:
    terminal.add()
    for words in (["where"], ["tick"], ["archive", "--older-than", "1d", "--dry-run"], ["config", "show"]):
        text = on_a_terminal(terminal, *words, width=200, NO_COLOR="1")
        assert not re.search(r"\b(null|None|False|True)\b", text), text
    assert '["' not in on_a_terminal(terminal, "where", width=200)
    assert re.search(r"^catchup pending +no$", on_a_terminal(terminal, "tick"), re.M)


def test_page_that_is_not_the_last_one_says_how_to_go_on(terminal: Terminal) -> None:
    for number in range(3):
        terminal.add(f"t{number}")
    text, told, _ = at_terminal(terminal, "list", "-n", "1")
    assert told == "warning: 2 more tasks follow\n"
    options = text.splitlines()[-1].removeprefix("continue with ").split()
    assert "t1" in on_a_terminal(terminal, "list", "-n", "1", *options)
    assert at_terminal(terminal, "events", "-n", "1")[1] == "warning: 2 more events follow; continue with --after 1\n"


def test_setup_says_which_board_the_files_name(terminal: Terminal) -> None:
    board = terminal.data("init")["data_dir"]
    for words in (["setup", "claude", "--print"], ["setup", "claude"], ["setup", "claude"]):
        assert re.search(rf"^board +{re.escape(board)}$", on_a_terminal(terminal, *words, width=300), re.M)


# atb alone, help, other names


def test_atb_alone_shows_the_board_in_a_dozen_lines(terminal: Terminal) -> None:
    empty = on_a_terminal(terminal)
    assert "no board at" in empty
    assert "atb add" in empty
    assert not (terminal.directory / "data").exists()
    ids = [terminal.add(f"task {number}", "--needs-approval") for number in range(6)]
    for id_ in ids:
        terminal.data("complete", id_, "--token", terminal.claim(id_)[1])
    terminal.add("open")
    text = on_a_terminal(terminal, NO_COLOR="1")
    assert len(text.splitlines()) <= 12
    for part in (str(terminal.directory), "1 ready", "6 review", ids[0][-6:], "atb approve"):
        assert part in text
    assert text.count("  atb ") == 3
    assert terminal.process().error["code"] == "invalid_input"
    assert json.loads(on_a_terminal_refused(terminal, CLAUDECODE="1"))["error"]["code"] == "invalid_input"


def on_a_terminal_refused(terminal: Terminal, *words: str, **environ: Any) -> str:
    text, _, code = at_terminal(terminal, *words, **environ)
    assert code == 2
    return text


def test_help_is_text_and_exits_with_zero(terminal: Terminal) -> None:
    assert terminal.process("help").text == terminal.process("--help").text
    assert terminal.process("help", "claim").text == terminal.process("claim", "--help").text
    assert terminal.process("help", "ls").text.startswith("usage: atb list")
    assert terminal.process("help", "claims").error["code"] == "invalid_input"


def test_commands_have_other_names_and_options_short_forms(terminal: Terminal) -> None:
    made = terminal.data("new", "t", "-q", "docs", "-p", "7", "-t", "x", "-t", "y", "-a", "ada")["task"]
    assert (made["queue"], made["priority"], made["tags"], made["created_by"]) == ("docs", 7, ["x", "y"], "ada")
    terminal.add("u", "-p", "-3")
    assert [task["priority"] for task in terminal.data("ls", "-n", "1")["tasks"]] == [7]
    assert [task["priority"] for task in terminal.data("ls", "-q", "default")["tasks"]] == [-3]
    assert terminal.atb("list", "-n", "1").warnings == ["1 more task follows; pass `next` as `after`"]


def test_agent_is_accepted_by_every_command_and_makes_the_caller_an_agent(terminal: Terminal) -> None:
    id_ = terminal.add("t", "--needs-approval")
    terminal.data("complete", id_, "--token", terminal.claim(id_, agent="bob")[1])
    assert terminal.atb("approve", id_, "--agent", "ada").error["code"] == "not_permitted"
    event = terminal.data("comment", id_, "hello", "-a", "ada")["event"]
    assert (event["actor"], event["actor_kind"]) == ("ada", "agent")
    for words in (["stats"], ["tick"], ["doctor"], ["config", "show"], ["hooks", "list"], ["schedule", "list"]):
        assert terminal.atb(*words, "--agent", "ada").code == 0, words


def test_me_is_the_caller_and_nobody_is_called_so(terminal: Terminal) -> None:
    assert terminal.data("add", "t", "--assignee", "me", "--agent", "Ada")["task"]["assignee"] == "Ada"
    id_ = terminal.add("u")
    assert terminal.data("update", id_, "--assignee", "ME", "--agent", "bob")["task"]["assignee"] == "bob"
    assert terminal.data("reassign", id_, "--to", "me", "--agent", "ada")["task"]["assignee"] == "Ada"
    assert len(terminal.data("list", "--assignee", "me", "--agent", "ada")["tasks"]) == 2
    assert terminal.data("list", "--assignee", "me", "--agent", "bob")["tasks"] == []
    for words in (["claim", "--agent", "me"], ["add", "x", "--actor", "Me"]):
        assert terminal.atb(*words).error["code"] == "invalid_input"
    claimed = terminal.data("add", "v", "--claim", "--assignee", "eve")
    assert claimed["task"]["claimed_by"] == "eve"


# Several ids, and beginnings of ids


def test_several_tasks_are_each_their_own_transaction(terminal: Terminal) -> None:
    one, two, three = (terminal.add(title) for title in ("one", "two", "three"))
    terminal.data("cancel", two)
    answer = terminal.atb("cancel", one, two, "9F3K2A", three, "--note", "no")
    assert answer.code == 4
    assert [result["ok"] for result in json.loads(answer.text)["data"]["results"]] == [True, False, False, True]
    assert json.loads(answer.text)["data"]["results"][2]["error"]["code"] == "not_found"
    assert answer.error == json.loads(answer.text)["data"]["results"][1]["error"]
    assert [task["status"] for task in terminal.data("list")["tasks"]] == ["cancelled"] * 3
    both = terminal.atb("retry", one, two)
    assert (both.code, [result["task"]["status"] for result in both.data["results"]]) == (0, ["queued", "queued"])
    assert set(terminal.data("reassign", one, "--to", "ada")) == {"task"}
    text = terminal.atb("reassign", one, two, "--to", "bob", "--format", "compact").text
    assert text.count("atb1 reassigned\n") == 2
    told = terminal.atb("approve", one, two, "--format", "table")
    assert (told.code, told.text.count("conflict")) == (4, 2)


def test_archive_takes_ids(terminal: Terminal) -> None:
    one, two, open_ = (terminal.add(title) for title in ("one", "two", "open"))
    terminal.data("cancel", one, two)
    assert terminal.data("archive", one)["task"]["id"] == one
    answer = terminal.atb("archive", two, one, open_)
    assert answer.code == 4
    assert [result["ok"] for result in json.loads(answer.text)["data"]["results"]] == [True, False, False]
    assert [task["id"] for task in terminal.data("list")["tasks"]] == [open_]
    for words in ([], [one, "--older-than", "1d"], [one, "--dry-run"]):
        assert terminal.atb("archive", *words).error["code"] == "invalid_input"


def test_task_is_named_by_the_beginning_of_its_id_if_no_other_begins_so(terminal: Terminal) -> None:
    ids = ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW", "01BRZ3NDEKTSV4RRFFQ69G01AR"]
    terminal.write_json("tasks.json", [{"id": id_, "title": id_} for id_ in ids])
    terminal.data("import", "tasks.json")
    assert terminal.data("show", "01brz")["task"]["id"] == ids[2]
    assert terminal.data("show", ids[1][: -0 or None])["task"]["id"] == ids[1]
    assert terminal.data("show", "01AR")["task"]["id"] == ids[2]  # an ending counts first
    error = terminal.atb("show", "01ARZ").error
    assert (error["code"], error["details"]["candidates"]) == ("invalid_input", ids[:2])
    assert terminal.atb("show", "01C000").error["code"] == "not_found"


# --print, --fields, --tail, what is left out


def test_print_prints_one_raw_value(terminal: Terminal) -> None:
    id_ = terminal.atb("add", "a title", "-t", "x", "--print", "data.task.id").text
    assert re.fullmatch(r"[0-9A-Z]{26}\n", id_)
    for path, text in (
        ("data.task.title", "a title\n"), ("data.task.tags", '["x"]\n'), ("data.task.tags.0", "x\n"),
        ("data.task.ready", "true\n"), ("data.task.assignee", ""), ("ok", "true\n"),
    ):  # fmt: skip
        assert terminal.atb("show", id_.strip(), "--print", path).text == text
        assert terminal.atb(f"--print={path}", "show", id_.strip()).text == text
    terminal.claim()
    assert terminal.atb("claim", "--agent", "ada", "--print", "data.task.id").text == ""


def test_print_refuses_on_standard_error_and_keeps_the_answer(terminal: Terminal) -> None:
    answer = terminal.process("show", "9F3K2A", "--print", "data.task.id")
    assert (answer.text, answer.code, json.loads(answer.err)["error"]["code"]) == ("", 3, "not_found")
    terminal.add()
    answer = terminal.process("claim", "--agent", "ada", "--print", "data.lease.tokn")
    assert (answer.text, answer.code) == ("", 2)
    refusal = json.loads(answer.err.splitlines()[-1])["error"]
    assert refusal["details"]["data"]["lease"]["token"]
    assert "token" in refusal["hint"]


def test_fields_choose_keys_and_columns(terminal: Terminal) -> None:
    terminal.add("t", "--body", "long text")
    assert list(terminal.data("list", "--fields", "title, id,body")["tasks"][0]) == ["title", "id", "body"]
    table = terminal.atb("list", "--fields", "title,status", "--format", "table").text
    assert [line.split() for line in table.splitlines()] == [["TITLE", "STATUS"], ["t", "queued"]]
    error = terminal.atb("list", "--fields", "titel").error
    assert (error["code"], error["hint"]) == ("invalid_input", "Did you mean 'title'?")
    assert terminal.atb("list", "--fields", "id", "--format", "compact").code == 2


def test_tables_and_compact_text_leave_finished_tasks_out_and_say_how_many(terminal: Terminal) -> None:
    one, two = terminal.add("one"), terminal.add("two")
    terminal.add("three")
    terminal.data("cancel", one, two)
    shown = terminal.process("list", "--format", "table")
    assert ("three" in shown.text, "one" in shown.text) == (True, False)
    assert "2 finished tasks not shown" in shown.err
    assert "+ finished count=2\n" in terminal.atb("list", "--format", "compact").text
    for words in (["--all"], ["--status", "queued,cancelled"], ["--search", "o"]):
        answer = terminal.process("list", "--format", "table", *words)
        assert ("one" in answer.text, answer.err) == (True, ""), words
        assert "finished" not in terminal.atb("list", "--format", "compact", *words).text
    assert [task["title"] for task in terminal.data("list")["tasks"]] == ["three", "two", "one"]


def test_tail_shows_the_newest(terminal: Terminal) -> None:
    for number in range(5):
        terminal.add(f"t{number}")
    page = terminal.data("list", "--tail", "2")
    assert ([task["title"] for task in page["tasks"]], page["next"]) == (["t3", "t4"], None)
    events = terminal.data("events", "--tail", "2")
    assert ([event["seq"] for event in events["events"]], events["next"]) == ([4, 5], 5)
    answer = terminal.atb("events", "--limit", "2")
    assert answer.warnings == ["3 more events follow; pass `next` as `after`"]
    assert terminal.atb("events", "--limit", "5").warnings == []
    for words in (["list", "--tail", "1", "--limit", "3"], ["events", "--tail", "1", "--after", "3"]):
        assert terminal.atb(*words).error["code"] == "invalid_input"


# Small things


def test_formats_of_imported_files_are_told_by_their_beginning(terminal: Terminal) -> None:
    bead = {"id": "bd-1", "title": "a bead", "status": "open", "issue_type": "task", "priority": 2}
    text = json.dumps(bead) + "\n" + json.dumps({**bead, "id": "bd-2", "title": "another"}) + "\n"
    (terminal.directory / "issues.jsonl").write_text(text)
    assert terminal.data("import", "issues.jsonl")["imported"] == 2
    assert json.loads(terminal.process("import", "-", stdin=text).text)["data"]["skipped"] == 2
    terminal.write_json("gh.json", [{"number": 1, "title": "an issue", "state": "OPEN", "url": "u"}])
    assert terminal.data("import", "gh.json")["imported"] == 1
    assert "beads" in terminal.atb("import", "x", "--format").error["hint"]


def test_hooks_test_fails_if_every_target_failed(terminal: Terminal) -> None:
    terminal.add()
    for command, code in (("false", 8), ("true", 0)):
        file = terminal.directory / f"{command}.toml"
        file.write_text(f'[hooks]\nenabled = true\ncommand = ["{command}"]\n')
        answer = terminal.atb("hooks", "test", "--config", str(file))
        assert answer.code == code
        assert json.loads(answer.text)["data"]["results"][0]["delivered"] == (code == 0)


def test_output_of_a_backup_is_no_file(terminal: Terminal) -> None:
    terminal.add()
    error = terminal.atb("backup", "--output", "x.zip").error
    assert (error["code"], error["details"]["field"]) == ("invalid_input", "output")
    assert not (terminal.directory / "x.zip").exists()


def test_doctor_of_a_wrong_path_is_refused(terminal: Terminal) -> None:
    assert terminal.atb("doctor", "--data-dir", "nowhere").error["code"] == "not_found"


def test_length_with_a_fraction_is_refused_by_what_is_wrong(terminal: Terminal) -> None:
    (terminal.directory / "atb.toml").write_text("lease = 1.5\n")
    assert "whole number of seconds: 1.5" in terminal.atb("list").error["message"]


def test_reject_without_a_note_names_the_option(terminal: Terminal) -> None:
    task = terminal.add("Check me", "--needs-approval")
    terminal.task("complete", task, "--token", terminal.claim()[1])
    error = terminal.refused("invalid_input", "reject", task)
    assert "--note" in error["hint"]
    assert error["details"]["field"] == "note"
