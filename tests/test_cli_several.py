"""Several tasks in one command: done with several ids, add with several lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.command_line import Terminal

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


# done


def test_done_by_a_person_and_by_an_agent(terminal: Terminal) -> None:
    one, other, third = terminal.add("one"), terminal.add("other", "--needs-approval"), terminal.add("third")
    terminal.write("note", "was easy")
    task = terminal.task("done", one, "--result", "[1]", "--artifact", "a.txt", "--note-file", "note")
    assert (task["status"], task["result"], task["artifacts"], task["claimed_by"]) == ("done", [1], ["a.txt"], None)
    assert terminal.data("show", one)["attempts"][0]["agent"] == "carla"
    assert terminal.task("done", other, "--agent", "ada")["status"] == "review"
    task = terminal.task("close", third, "--actor", "helper", ATB_AGENT="ada")
    assert task["claimed_by"] == "ada"
    assert terminal.data("events", "--task", third)["events"][-1]["actor"] == "helper"


def test_several_ids_are_changed_each_on_its_own(terminal: Terminal) -> None:
    ids = [terminal.add(f"task {number}") for number in range(2)]
    ids.append(terminal.add("for bob", "--assignee", "bob"))
    terminal.data("cancel", ids[1])
    answer = terminal.atb("done", *ids, "0000", "--note", "all of them")
    assert answer.code == 4
    results = answer.envelope["data"]["results"]
    assert answer.error == results[1]["error"]
    assert [one["id"] for one in results] == [*ids, "0000"]
    assert [one["ok"] for one in results] == [True, False, True, False]
    assert [one["task"]["status"] for one in results if one["ok"]] == ["done", "done"]
    assert [one["error"]["code"] for one in results if not one["ok"]] == ["conflict", "not_found"]
    assert answer.warnings == [f"{ids[2]}: the task was assigned to bob"]
    page = terminal.atb("done", *ids, "--format", "table")
    assert page.code == 4
    assert page.text.count("conflict") == 3


def test_several_ids_that_all_work_exit_with_0(terminal: Terminal) -> None:
    ids = [terminal.add(title) for title in ("one", "two", "three", "four")]
    answer = terminal.atb("done", *ids[:2], "--agent", "ada")
    assert (answer.code, len(answer.data["results"])) == (0, 2)
    brief = terminal.atb("done", *ids[2:], "--agent", "ada", ATB_FORMAT="compact")
    assert (brief.code, brief.text.count("atb1 completed\n")) == (0, 2)


def test_one_id_is_refused_as_by_every_verb(terminal: Terminal) -> None:
    task = terminal.add()
    terminal.data("done", task)
    assert terminal.refused("conflict", "done", task)["details"]["reason"] == "status"
    terminal.refused("invalid_input", "done")


# add


def test_each_line_is_a_task_in_one_transaction(terminal: Terminal) -> None:
    first = terminal.add("first")
    text = "\ufeffWrite the parser\r\n\n  # not this one\n\tWrite the printer  \nNo. 3: äöü ✓"
    answer = terminal.atb("add", "-", "--queue", "docs", "--tag", "x", "--depends-on", first, stdin=text)
    assert answer.data["created"] == 3
    tasks = answer.data["tasks"]
    assert [task["title"] for task in tasks] == ["Write the parser", "Write the printer", "No. 3: äöü ✓"]
    assert all((task["queue"], task["tags"], task["blocked_by"]) == ("docs", ["x"], [first]) for task in tasks)
    assert len(answer.warnings) == 3
    events = terminal.data("events")["events"]
    assert [event["kind"] for event in events] == ["created"] * 4
    assert len({event["at"] for event in events[1:]}) == 1


def test_lines_come_from_a_file_too_and_a_new_board_is_made(terminal: Terminal) -> None:
    answer = terminal.atb("add", "--lines", terminal.write("plan", "one\ntwo\n"), "--agent", "ada")
    assert [task["created_by"] for task in answer.data["tasks"]] == ["ada", "ada"]
    assert "created a board" in answer.warnings[0]
    assert "one" in terminal.atb("add", "--lines", "plan", "--format", "table").text


@pytest.mark.parametrize(
    ("text", "told"),
    [("one\n\n" + "x" * 501, "line 3"), ("one\ntwo\x07", "line 2"), ("\n# x\n", "lines"), ("x\n" * 1_001, "lines")],
)
def test_refused_line_refuses_all_and_is_named(terminal: Terminal, text: str, told: str) -> None:
    terminal.add("first")
    before = terminal.snapshot()
    error = terminal.refused("invalid_input", "add", "-", stdin=text)
    assert error["message"].startswith(f"{told}:")
    assert terminal.snapshot() == before


def test_dependency_that_is_not_there_refuses_all_lines(terminal: Terminal) -> None:
    terminal.add("first")
    before = terminal.snapshot()
    terminal.refused("not_found", "add", "-", "--depends-on", "0000", stdin="one\ntwo\n")
    assert terminal.snapshot() == before


@pytest.mark.parametrize(
    "words",
    [
        ["-", "--claim", "--agent", "ada"], ["-", "--dedupe-key", "k"], ["-", "--request-id", "r"],
        ["-", "--lease", "1h"], ["title", "--lines", "plan"], ["--lines", "no-such-file"], ["-", "--body-file", "-"],
        [],
    ],
)  # fmt: skip
def test_what_does_not_go_with_lines_is_refused(terminal: Terminal, words: list[str]) -> None:
    terminal.write("plan", "one\n")
    terminal.refused("invalid_input", "add", *words, stdin="one\n")
    assert terminal.files() == {"plan"}


def test_title_without_quotes_is_told_how_to_quote_it(terminal: Terminal) -> None:
    error = terminal.refused("invalid_input", "add", "Fix", "the", "bug")
    assert 'atb add "Fix the bug"' in error["hint"]
    error = terminal.refused("invalid_input", "add", "Fix", "--queue", "docs", "the", "bug")
    assert "Quote" in error["hint"]


def test_due_dates_may_be_words(terminal: Terminal) -> None:
    task = terminal.task("add", "Write the parser", "--due", "friday", "--not-before", "+2d")
    assert task["due_at"].endswith("T15:59:59.999+00:00")
    assert task["delayed"]
    assert "tomorrow" in terminal.refused("invalid_input", "add", "x", "--due", "someday")["hint"]


def test_add_with_several_lines_and_an_edit_without_changes_answer_in_compact_text(terminal: Terminal) -> None:
    first = terminal.add("first")
    compact = ("--format", "compact")
    added = terminal.atb("add", "-", "--depends-on", first, *compact, stdin="one\ntwo\n")
    lines = added.text.splitlines()
    assert [line for line in lines if line.startswith("atb1")] == ["atb1 created"] * 2
    assert [title in added.text for title in ('"one" queued+blocked', '"two" queued+blocked')] == [True, True]
    assert sum(line.startswith("note ") for line in lines) == 2
    terminal.write("lines", "three\n")
    assert terminal.atb("add", "--lines", "lines", *compact).text.startswith("atb1 created\n")
    same = terminal.atb("edit", first, *compact, EDITOR="true")
    assert same.text.startswith(f'atb1 unchanged\n{first[-6:]} "first" queued\nid={first} version=1\n')
