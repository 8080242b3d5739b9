"""Every command of the command line from end to end: what goes in, and the one envelope that comes out."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import termios
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board, __version__
from agent_task_board.cli import find, parsing
from tests.command_line import COMMANDS, LIMIT, LONG_KEYS, TASK_KEYS, Terminal
from tests.compact_reader import read
from tests.support import MARIA, moved
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE = Path(__file__).parent.parent / "examples" / "tasks.json"
TITLE = "Grüße, 文档 & «naïve» ✓"


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def length(start: str, end: str) -> timedelta:
    return datetime.fromisoformat(end) - datetime.fromisoformat(start)


def titles(data: Any) -> list[str]:
    return [task["title"] for task in data["tasks"]]


# The envelope


def test_one_envelope_with_and_without_json(terminal: Terminal) -> None:
    terminal.add()
    plain, wanted = terminal.process("list"), terminal.process("list", "--json")
    assert plain.envelope == wanted.envelope
    assert plain.err == wanted.err == ""


def test_refusal_is_one_envelope_on_standard_output_and_nothing_on_standard_error(terminal: Terminal) -> None:
    for words in (["show", "9F3K2A"], ["show", "9F3K2A", "--json"], ["nonsense"], ["list", "--nonsense"], []):
        answer = terminal.process(*words)
        assert not answer.envelope["ok"]
        assert answer.err == ""


@pytest.mark.parametrize(
    "environ",
    [
        {"LANG": "C"},
        {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"},
        {"LANG": "C", "PYTHONIOENCODING": "latin-1:strict"},
        {"LANG": "C.UTF-8"},
    ],
)
def test_output_is_utf_8_whatever_the_locale_says(terminal: Terminal, environ: dict[str, str]) -> None:
    assert terminal.process("add", TITLE, **environ).data["task"]["title"] == TITLE
    listed = terminal.process("list", **environ)
    assert TITLE.encode() in listed.out  # not as \u escapes: agents pay for each of them
    assert titles(listed.data) == [TITLE]
    assert TITLE in terminal.process("list", "--format", "table", **environ).text
    assert TITLE in terminal.process("show", TITLE, **environ).error["message"]


def test_body_in_utf_8_is_read_under_an_ascii_locale(terminal: Terminal) -> None:
    environ = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    added = terminal.process("add", "t", "--body-file", "-", stdin=TITLE.encode(), **environ)
    assert added.data["task"]["body"] == TITLE


def test_line_breaks_in_a_task_do_not_break_the_document(terminal: Terminal) -> None:
    body = "one\ntwo\r\nthree\u2028four"
    assert terminal.task("add", "t", "--body", body)["body"] == body


def test_envelope_can_be_read_by_a_strict_reader_even_when_the_call_had_bytes_that_are_no_text(
    terminal: Terminal,
) -> None:
    # `envelope` reads as strictly as `--params` is read: no lone surrogates
    terminal.add()
    for words in (["list", b"--fo\xffo"], [b"li\xffst"], ["show", b"\xff\xfe"], ["list", "--status", b"\xff"]):
        assert terminal.process(*words).error["code"] == "invalid_input"


# Where options stand


def test_global_options_stand_before_or_after_the_command(terminal: Terminal) -> None:
    board = str(terminal.directory / "else")
    config = terminal.write("other.toml", "max_attempts = 7\n")
    terminal.data("--data-dir", board, "--config", config, "--json", "--quiet", "add", "before")
    terminal.data(f"--data-dir={board}", f"--config={config}", "add", "with equals")
    terminal.data("add", "after", "--data-dir", board, "--config", config, "--json", "--quiet")
    terminal.data("add", "--data-dir", board, "between", "--config", config)
    listed = terminal.data("list", f"--data-dir={board}")
    assert titles(listed) == ["before", "with equals", "after", "between"]
    assert {task["max_attempts"] for task in listed["tasks"]} == {7}
    assert not (terminal.directory / "data").exists()


def test_format_stands_before_or_after_the_command(terminal: Terminal) -> None:
    terminal.add("a task")
    for words in (
        ["--format", "table", "list"],
        ["--format=table", "list"],
        ["list", "--format", "table"],
        ["list", "--format=table"],
    ):
        assert terminal.atb(*words).text.startswith("ID ")
    for words in (["--format", "json", "list"], ["list", "--format=json"]):
        assert titles(terminal.data(*words)) == ["a task"]


def test_value_that_is_a_commands_name_is_not_taken_for_the_command(terminal: Terminal) -> None:
    terminal.data("--data-dir", "list", "add", "show")
    assert titles(terminal.data("--data-dir", "list", "list")) == ["show"]


def test_two_dashes_end_the_options(terminal: Terminal) -> None:
    assert terminal.task("add", "--", "--priority")["title"] == "--priority"
    assert terminal.task("add", "--queue", "docs", "--", "-h")["queue"] == "docs"


def test_no_option_may_be_abbreviated(terminal: Terminal) -> None:
    terminal.add()
    for words in (
        ["list", "--stat", "queued"],
        ["list", "--js"],
        ["claim", "--agen", "ada"],
        ["add", "t", "--prio", "3"],
        ["--data", "x", "list"],
        ["list", "--data", "x"],
        ["list", "--ful"],
    ):
        terminal.refused("invalid_input", *words)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["clam"], "claim"),
        (["lst"], "list"),
        (["complet", "9F3K2A"], "complete"),
        (["heart-beat"], "heartbeat"),
        (["list", "--statsu", "queued"], "--status"),
        (["claim", "--agnet", "ada"], "--agent"),
        (["add", "t", "--depend-on=9F3K2A"], "--depends-on"),
        (["list", "--josn"], "--json"),
        (["--frmat", "table", "list"], "--format"),
        (["reassign", "9F3K2A", "--too", "ada"], "--to"),
        (["handoff", "9F3K2A", "--token", "x", "--tto", "ada"], "--to"),
    ],
)
def test_misspelt_word_is_told_what_was_meant(terminal: Terminal, words: list[str], meant: str) -> None:
    assert f"'{meant}'" in terminal.refused("invalid_input", *words)["hint"]


def test_word_like_no_other_still_gets_a_hint(terminal: Terminal) -> None:
    assert "--help" in terminal.refused("invalid_input", "xyzzy")["hint"]
    assert "--help" in terminal.refused("invalid_input", "list", "--xyzzy")["hint"]


@pytest.mark.parametrize(
    "words",
    [
        *([command] for command in "brief ask".split()),
        ["claim", "--agent", "ada", "--wait"],
        ["waiting"],
    ],
)
def test_what_is_not_there_yet_is_refused(terminal: Terminal, words: list[str]) -> None:
    terminal.refused("invalid_input", *words)
    assert terminal.files() == set()


@pytest.mark.parametrize("words", ["schedule list", "hooks list", "schedule preview nightly"])
def test_action_that_only_reads_creates_no_board(terminal: Terminal, words: str) -> None:
    terminal.refused("not_found", *words.split())
    assert terminal.data("config", "show") is not None
    assert terminal.files() == set()


def test_action_decides_whether_a_command_creates_a_board(terminal: Terminal) -> None:
    terminal.refused("not_found", "schedule", "pause", "nightly")
    assert terminal.files() == set()
    created = terminal.atb("schedule", "add", "nightly", "--cron", "0 2 * * *", "--task", '{"title": "t"}')
    assert created.warnings == [f"created a board at {terminal.directory / 'data' / 'tasks.db'}"]


@pytest.mark.parametrize("command", COMMANDS)
def test_command_declares_access_only_for_actions_that_it_has(command: str) -> None:
    declared = find(command)
    parser = parsing.parser_of(command, declared)
    actions = {str(choice) for option in parser._actions if option.dest == "action" for choice in option.choices or ()}
    listed = [access for access in (declared.creates, declared.reads) if isinstance(access, tuple)]
    assert all(actions.issuperset(access) for access in listed)
    assert len(set().union(*listed)) == sum(map(len, listed)), "no action can both create and only read"


# Help and version


def test_bare_atb_is_refused_and_points_to_the_help(terminal: Terminal) -> None:
    answer = terminal.process()
    assert answer.code == 2
    assert answer.error["code"] == "invalid_input"
    assert "--help" in answer.error["hint"]
    for words in (["--json"], ["--quiet"], ["--data-dir", "x"], ["--format"], ["--data-dir"]):
        terminal.refused("invalid_input", *words)


def test_version_is_an_envelope(terminal: Terminal) -> None:
    for words in (["--version"], ["--json", "--version"], ["--version", "--json"]):
        data = terminal.process(*words).data
        assert data["version"] == __version__
    assert __version__ in terminal.atb("--format", "table", "--version").text


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--json", "--help"]])
def test_help_names_every_command(terminal: Terminal, words: list[str]) -> None:
    answer = terminal.process(*words, PYTHONIOENCODING="ascii", LANG="C")
    assert (answer.code, answer.err) == (0, "")
    assert [command for command in COMMANDS if f"\n  {command} " not in answer.text] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_explains_it_and_has_lines_to_paste(terminal: Terminal, command: str) -> None:
    answer = terminal.atb(command, "--help")
    assert (answer.code, answer.err) == (0, "")
    text = answer.out.decode("ascii")
    about = find(command)
    assert text.startswith(f"usage: atb {command} ")
    for part in (about.summary, about.details, *about.examples):
        assert part in text
    assert {option for option in ("--data-dir", "--config", "--json", "--format", "--quiet") if option in text} == {
        "--data-dir", "--config", "--json", "--format", "--quiet",
    }  # fmt: skip
    assert terminal.atb("--help", command).out == terminal.atb(command, "-h").out == answer.out


@pytest.mark.parametrize(
    ("command", "transition"),
    [
        ("add", "-> queued"),
        ("claim", "queued -> claimed"),
        ("resume", "claimed, running -> same"),
        ("heartbeat", "claimed -> running"),
        ("complete", "claimed, running -> done, or review"),
        ("fail", "claimed, running -> queued"),
        ("release", "claimed, running -> queued"),
        ("handoff", "claimed, running -> queued"),
        ("approve", "review -> done"),
        ("reject", "review -> queued"),
        ("reassign", "queued, claimed, running -> queued"),
        ("retry", "failed, cancelled -> queued"),
        ("cancel", "queued, claimed, running, review -> cancelled"),
    ],
)
def test_help_tells_the_transition(terminal: Terminal, command: str, transition: str) -> None:
    assert transition in " ".join(terminal.atb(command, "--help").text.split())


@pytest.mark.parametrize(
    ("command", "line"), [(command, line) for command in COMMANDS for line in find(command).examples]
)
def test_example_of_a_help_page_can_be_pasted(command: str, line: str) -> None:
    words = shlex.split(line, comments=True)
    words = words[words.index("atb") + 1 :]
    words = words[: next((place for place, word in enumerate(words) if word in ("|", "||")), None)]
    place = parsing.place_of_command(words)
    assert place is not None
    name = words.pop(place)
    parsing.parser_of(name, find(name)).parse_args(words)


def test_help_is_shown_whatever_format_is_set(terminal: Terminal) -> None:
    for environ in ({"ATB_FORMAT": "table"}, {"ATB_FORMAT": "json"}, {"ATB_FORMAT": "nonsense"}):
        for words in (["--help"], ["list", "--help"]):
            answer = terminal.atb(*words, **environ)
            assert (answer.code, answer.text[:10]) == (0, "usage: atb")


# add


def test_add_takes_every_field(terminal: Terminal) -> None:
    first, second = terminal.add("first"), terminal.add("second")
    answer = terminal.atb(
        "add", TITLE, "--body", "what to do", "--queue", "docs", "--priority", "-5", "--assignee", "ada",
        "--due", "2126-12-24", "--not-before", "2126-12-01", "--tag", "core", "--tag", "urgent",
        "--depends-on", first.lower(), "--depends-on", second[-8:], "--params", '{"days": 7, "deep": [1.5, null]}',
        "--dedupe-key", "report", "--max-attempts", "9", "--needs-approval", "--request-id", "r1", "--actor", "bob",
    )  # fmt: skip
    task = answer.data["task"]
    assert list(answer.data) == ["task", "created"]
    assert answer.data["created"] is True
    assert list(task) == TASK_KEYS
    wanted = {
        "title": TITLE,
        "body": "what to do",
        "queue": "docs",
        "status": "queued",
        "priority": -5,
        "assignee": "ada",
        "due_at": "2126-12-24T15:59:59.999+00:00",
        "not_before": "2126-11-30T16:00:00.000+00:00",
        "tags": ["core", "urgent"],
        "dedupe_key": "report",
        "blocked_by": [first, second],
        "params": {"days": 7, "deep": [1.5, None]},
        "max_attempts": 9,
        "needs_approval": True,
        "created_by": "bob",
        "attempts": 0,
        "fence": 0,
        "version": 1,
        "ready": False,
        "blocked": True,
        "delayed": True,
        "lease_expired": False,
        "overdue": False,
        **dict.fromkeys(
            "result error progress claimed_by lease_expires_at schedule_id occurrence_at claimed_at".split()
        ),
    }
    assert {key: task[key] for key in wanted} == wanted
    assert sum("waits for" in warning for warning in answer.warnings) == 2


def test_instants_without_an_offset_are_in_the_configured_zone(terminal: Terminal) -> None:
    terminal.write("atb.toml", 'timezone = "UTC"\n')
    task = terminal.task("add", "t", "--due", "2126-01-01T10:00", "--not-before", "2126-01-01T10:00+02:00")
    assert task["due_at"] == "2126-01-01T10:00:00.000+00:00"
    assert task["not_before"] == "2126-01-01T08:00:00.000+00:00"


def test_add_with_a_claim_answers_the_lease_as_well(terminal: Terminal) -> None:
    data = terminal.data("add", "t", "--claim", "--agent", "ada", "--lease", "1h30m")
    assert list(data) == ["task", "created", "lease"]
    assert list(data["lease"]) == ["token", "fence", "expires_at"]
    task = data["task"]
    assert (task["status"], task["claimed_by"], task["attempts"], task["fence"]) == ("claimed", "ada", 1, 1)
    assert length(task["claimed_at"], data["lease"]["expires_at"]) == timedelta(minutes=90)
    terminal.data("complete", task["id"], "--token", data["lease"]["token"])


def test_add_answers_the_holder_of_a_dedupe_key(terminal: Terminal) -> None:
    first = terminal.add("t", "--dedupe-key", "k")
    answer = terminal.atb("add", "again", "--dedupe-key", "k")
    assert answer.data["created"] is False
    assert answer.data["task"]["id"] == first
    assert answer.warnings


def test_repeated_request_gets_its_answer_again(terminal: Terminal) -> None:
    words = ["add", "t", "--request-id", "r1"]
    first, again = terminal.data(*words), terminal.data(*words)
    assert "replayed" not in first
    assert list(again) == ["task", "created", "replayed"]
    assert (again["task"]["id"], again["created"], again["replayed"]) == (first["task"]["id"], True, True)


# claim


def test_claim_answers_task_and_lease(terminal: Terminal) -> None:
    id_ = terminal.add()
    data = terminal.data("claim", "--agent", "ada")
    assert list(data) == ["task", "lease"]
    assert list(data["task"]) == TASK_KEYS
    assert list(data["lease"]) == ["token", "fence", "expires_at"]
    assert (data["task"]["id"], data["task"]["status"], data["task"]["claimed_by"]) == (id_, "claimed", "ada")
    assert data["lease"]["fence"] == data["task"]["fence"] == 1
    assert data["lease"]["expires_at"] == data["task"]["lease_expires_at"]
    assert len(bytes.fromhex(data["lease"]["token"])) == 16
    assert length(data["task"]["claimed_at"], data["lease"]["expires_at"]) == timedelta(minutes=15)


def test_claim_chooses_by_queue_and_tag_and_priority(terminal: Terminal) -> None:
    terminal.add("elsewhere", "--priority", "9")
    terminal.add("untagged", "--queue", "docs", "--priority", "8")
    terminal.add("half", "--queue", "docs", "--tag", "a", "--priority", "7")
    low = terminal.add("low", "--queue", "code", "--tag", "a", "--tag", "b")
    high = terminal.add("high", "--queue", "docs", "--tag", "b", "--tag", "a", "--priority", "1")
    words = ["--queue", "docs", "--queue", "code", "--tag", "a", "--tag", "b"]
    assert [terminal.claim(*words)[0] for _ in range(2)] == [high, low]
    answer = terminal.atb("claim", "--agent", "ada", *words)
    assert answer.data is None
    assert answer.warnings


def test_claim_of_one_task_takes_lease_comment_and_expectation(terminal: Terminal) -> None:
    terminal.add("other")
    id_ = terminal.add()
    data = terminal.data(
        "claim", id_[-6:].lower(), "--agent", "ada", "--lease", "2d", "--if-status", "queued", "--comment", "mine"
    )
    assert data["task"]["id"] == id_
    assert length(data["task"]["claimed_at"], data["lease"]["expires_at"]) == timedelta(days=2)
    [comment] = terminal.data("show", id_)["comments"]
    assert (comment["data"]["text"], comment["actor"], comment["actor_kind"]) == ("mine", "ada", "agent")


def test_repeated_claim_gets_a_fresh_token(terminal: Terminal) -> None:
    terminal.add()
    words = ["claim", "--agent", "ada", "--request-id", "r1"]
    first, again = terminal.data(*words), terminal.data(*words)
    assert list(again) == ["task", "lease", "replayed"]
    assert again["task"]["id"] == first["task"]["id"]
    terminal.refused("lease_lost", "heartbeat", first["task"]["id"], "--token", first["lease"]["token"])
    terminal.data("heartbeat", first["task"]["id"], "--token", again["lease"]["token"])


def test_claim_that_finds_nothing_says_why_and_is_a_success(terminal: Terminal) -> None:
    blocker = terminal.add("held")
    terminal.add("waits", "--depends-on", blocker)
    terminal.add("later", "--not-before", "2126-01-01")
    terminal.add("hers", "--assignee", "eve")
    terminal.claim(blocker)
    for words in ([], ["--json"]):
        answer = terminal.process("claim", "--agent", "bob", *words)
        assert answer.data is None
        [reason] = answer.warnings
        assert re.findall(r"\b\d+(?= [a-z])", reason) == ["1"] * 4  # blocked, delayed, assigned elsewhere, leased
        assert reason.count("until ") == 2


def test_claim_that_may_not_be_empty_exits_with_9(terminal: Terminal) -> None:
    terminal.add("later", "--not-before", "2126-01-01")
    answer = terminal.process("claim", "--agent", "ada", "--fail-empty")
    assert answer.code == 9
    assert answer.error["code"] == "empty"
    assert answer.warnings
    terminal.add("now")
    assert terminal.process("claim", "--agent", "ada", "--fail-empty").data["task"]["title"] == "now"


# Under a lease


def test_resume_gives_the_holder_a_new_token(terminal: Terminal) -> None:
    terminal.add()
    id_, old = terminal.claim()
    data = terminal.data("resume", id_, "--agent", "ADA", "--lease", "3h", "--actor", "ada-2")
    assert list(data) == ["task", "lease"]
    assert (data["task"]["status"], data["lease"]["fence"], data["task"]["attempts"]) == ("claimed", 2, 1)
    terminal.refused("lease_lost", "heartbeat", id_, "--token", old)
    terminal.data("heartbeat", id_, "--token", data["lease"]["token"])
    same = terminal.data("resume", id_, ATB_AGENT="ada")
    assert length(data["lease"]["expires_at"], same["lease"]["expires_at"]) >= timedelta(0)
    assert same["lease"]["fence"] == 3


def test_heartbeat_takes_lease_progress_and_note(terminal: Terminal) -> None:
    terminal.add()
    id_, token = terminal.claim("--lease", "1s")
    data = terminal.data(
        "heartbeat", id_, "--token", token, "--lease", "5d", "--progress", "40", "--note", "@half", "--actor", "helper"
    )
    assert list(data) == ["task", "lease"]
    assert data["lease"]["token"] == token
    assert (data["task"]["status"], data["task"]["progress"]) == ("running", 40)
    assert length(data["task"]["updated_at"], data["lease"]["expires_at"]) == timedelta(days=5)
    event = terminal.data("events", "--task", id_)["events"][-1]
    assert (event["kind"], event["actor"], event["data"]["note"]) == ("started", "helper", "@half")


def test_complete_takes_result_artifacts_and_note(terminal: Terminal) -> None:
    terminal.add()
    id_, token = terminal.claim()
    words = ["complete", id_, "--token", token, "--result", '["any", 1]', "--artifact", "a.html", "--artifact", "b c"]
    data = terminal.data(*words, "--note", "fine", "--actor", "helper")
    task = data["task"]
    assert list(data) == ["task"]
    assert (task["status"], task["result"], task["artifacts"]) == ("done", ["any", 1], ["a.html", "b c"])
    assert task["claimed_by"] == "ada"
    assert task["lease_expires_at"] is None
    [attempt] = terminal.data("show", id_)["attempts"]
    assert (attempt["outcome"], attempt["note"], attempt["result"]) == ("completed", "fine", ["any", 1])
    again = terminal.data("complete", id_, "--token", token)
    assert (list(again), again["replayed"]) == (["task", "replayed"], True)
    assert again["task"] == task


def test_fail_takes_error_and_wait_or_none(terminal: Terminal) -> None:
    terminal.add()
    id_, token = terminal.claim()
    task = terminal.task("fail", id_, "--token", token, "--error", "@disk", "--retry-in", "2h", "--actor", "helper")
    assert (task["status"], task["error"], task["delayed"]) == ("queued", "@disk", True)
    assert length(task["updated_at"], task["not_before"]) == timedelta(hours=2)
    assert terminal.data("fail", id_, "--token", token, "--error", "@disk")["replayed"] is True
    other = terminal.add("other")
    _, token = terminal.claim(other)
    assert terminal.task("fail", other, "--token", token, "--error", "e", "--no-retry")["status"] == "failed"
    third = terminal.add("third")
    _, token = terminal.claim(third)
    task = terminal.task("fail", third, "--token", token, "--error", "e")
    assert length(task["updated_at"], task["not_before"]) == timedelta(seconds=30)


def test_release_takes_a_wait_and_a_note(terminal: Terminal) -> None:
    terminal.add()
    id_, token = terminal.claim()
    task = terminal.task("release", id_, "--token", token, "--after", "90", "--note", "n", "--actor", "helper")
    assert (task["status"], task["attempts"], task["claimed_by"]) == ("queued", 0, None)
    assert length(task["updated_at"], task["not_before"]) == timedelta(seconds=90)
    assert terminal.data("release", id_, "--token", token)["replayed"] is True


def test_handoff_takes_the_note_along(terminal: Terminal) -> None:
    terminal.add()
    id_, token = terminal.claim()
    task = terminal.task("handoff", id_, "--token", token, "--to", "bob", "--note", "half done", "--actor", "ada-2")
    assert (task["status"], task["assignee"], task["attempts"]) == ("queued", "bob", 0)
    assert terminal.data("handoff", id_, "--token", token, "--to", "bob")["replayed"] is True
    answer = terminal.atb("claim", "--agent", "bob")
    assert answer.data["task"]["id"] == id_
    assert answer.warnings == []
    assert [(note["kind"], note["actor"], note["text"]) for note in answer.data["notes"]] == [
        ("handed_off", "ada-2", "half done")
    ]


# People


def in_review(terminal: Terminal, result: str = '"r"') -> str:
    id_ = terminal.add("review me", "--needs-approval")
    _, token = terminal.claim(id_)
    assert terminal.task("complete", id_, "--token", token, "--result", result)["status"] == "review"
    return id_


def test_approve_and_reject(terminal: Terminal) -> None:
    id_ = in_review(terminal)
    task = terminal.task("reject", id_, "--note", "not yet", "--actor", "maria")
    assert (task["status"], task["attempts"], task["result"]) == ("queued", 0, "r")
    answer = terminal.atb("claim", id_, "--agent", "bob")
    assert [(note["kind"], note["actor"], note["actor_kind"]) for note in answer.data["notes"]] == [
        ("rejected", "maria", "human")
    ]
    terminal.data("complete", id_, "--token", answer.data["lease"]["token"])
    assert terminal.task("approve", id_, "--note", "well done", "--actor", "maria")["status"] == "done"
    event = terminal.data("events", "--task", id_)["events"][-1]
    assert (event["actor"], event["actor_kind"], event["data"]["note"]) == ("maria", "human", "well done")


def test_reassign_revokes_a_lease(terminal: Terminal) -> None:
    terminal.add()
    id_, token = terminal.claim()
    task = terminal.task("reassign", id_, "--to", "bob", "--note", "ada is gone", "--actor", "maria")
    assert (task["status"], task["assignee"], task["attempts"]) == ("queued", "bob", 0)
    terminal.refused("lease_lost", "complete", id_, "--token", token)
    assert terminal.task("reassign", id_, "--to", "none")["assignee"] is None


def test_cancel_and_retry(terminal: Terminal) -> None:
    id_ = terminal.add()
    assert terminal.task("cancel", id_, "--note", "no longer needed", "--actor", "maria")["status"] == "cancelled"
    assert terminal.task("retry", id_, "--actor", "maria")["status"] == "queued"
    kinds = [(event["kind"], event["actor"]) for event in terminal.data("events", "--task", id_)["events"]]
    assert kinds[1:] == [("cancelled", "maria"), ("retried", "maria")]


def test_comment_answers_the_event(terminal: Terminal) -> None:
    id_ = terminal.add()
    data = terminal.data("comment", id_, "@ada: see\nbelow", "--actor", "maria")
    assert list(data) == ["event"]
    assert list(data["event"]) == ["seq", "task_id", "kind", "actor", "actor_kind", "at", "data"]
    assert (data["event"]["task_id"], data["event"]["actor"]) == (id_, "maria")
    assert data["event"]["data"] == {"text": "@ada: see\nbelow"}
    assert terminal.data("show", id_)["comments"] == [data["event"]]


# update


def test_update_changes_every_field(terminal: Terminal) -> None:
    other, third = terminal.add("other"), terminal.add("third")
    id_ = terminal.add("t", "--tag", "a", "--tag", "b", "--depends-on", other)
    answer = terminal.atb(
        "update", id_, "--title", "new", "--body", "b", "--queue", "q", "--priority", "3", "--assignee", "bob",
        "--due", "2126-01-02", "--not-before", "2126-01-01", "--tag", "c", "--drop-tag", "a", "--depends-on", third,
        "--drop-depends-on", other, "--params", '{"x": 1}', "--dedupe-key", "k", "--max-attempts", "8",
        "--needs-approval", "--if-status", "queued", "--if-version", "1", "--actor", "maria",
    )  # fmt: skip
    task = answer.data["task"]
    wanted = {
        "title": "new",
        "body": "b",
        "queue": "q",
        "priority": 3,
        "assignee": "bob",
        "due_at": "2126-01-02T15:59:59.999+00:00",
        "not_before": "2125-12-31T16:00:00.000+00:00",
        "tags": ["b", "c"],
        "blocked_by": [third],
        "params": {"x": 1},
        "dedupe_key": "k",
        "max_attempts": 8,
        "needs_approval": True,
        "version": 2,
    }
    assert {key: task[key] for key in wanted} == wanted
    assert any("no longer waits for" in warning for warning in answer.warnings)
    assert any("(" in warning and "waits for" in warning for warning in answer.warnings)
    event = terminal.data("events", "--task", id_)["events"][-1]
    assert (event["kind"], event["actor"]) == ("updated", "maria")
    assert terminal.task("update", id_, "--no-needs-approval")["needs_approval"] is False


@pytest.mark.parametrize(
    ("option", "before", "field", "cleared"),
    [
        ("--body", "text", "body", ""),
        ("--queue", "docs", "queue", "default"),
        ("--priority", "5", "priority", 0),
        ("--assignee", "bob", "assignee", None),
        ("--due", "2126-01-01", "due_at", None),
        ("--not-before", "2126-01-01", "not_before", None),
        ("--tag", "core", "tags", []),
        ("--params", '{"a": 1}', "params", {}),
        ("--dedupe-key", "k", "dedupe_key", None),
        ("--max-attempts", "9", "max_attempts", 3),
    ],
)
def test_empty_value_clears_a_field(terminal: Terminal, option: str, before: str, field: str, cleared: object) -> None:
    task = terminal.task("add", "t", option, before)
    assert task[field] != cleared
    after = terminal.task("update", task["id"], option, "")
    assert after[field] == cleared
    assert after["version"] == 2


def test_empty_dependency_clears_them_all_and_an_empty_file_clears_the_body(terminal: Terminal) -> None:
    other, third = terminal.add("other"), terminal.add("third")
    id_ = terminal.add("t", "--depends-on", other, "--body", "text")
    assert terminal.task("update", id_, "--depends-on", "", "--depends-on", third)["blocked_by"] == [third]
    assert terminal.task("update", id_, "--depends-on", "")["blocked_by"] == []
    assert terminal.task("update", id_, "--body-file", terminal.write("empty", ""))["body"] == ""


def test_title_cannot_be_cleared(terminal: Terminal) -> None:
    terminal.refused("invalid_input", "update", terminal.add(), "--title", "")


# Looking


def test_list_answers_lean_tasks_unless_asked_for_full_ones(terminal: Terminal) -> None:
    terminal.add("t", "--body", "long")
    data = terminal.data("list")
    assert list(data) == ["tasks", "next"]
    assert data["next"] is None
    assert list(data["tasks"][0]) == [key for key in TASK_KEYS if key not in LONG_KEYS]
    assert list(terminal.data("list", "--full")["tasks"][0]) == TASK_KEYS


def test_list_filters(terminal: Terminal) -> None:
    plain = terminal.add("plain", "--tag", "a", "--tag", "b", "--body", "needle")
    terminal.add("waits", "--depends-on", plain, "--queue", "docs", "--tag", "a")
    terminal.add("late", "--due", "2020-01-01", "--assignee", "bob")
    held = terminal.add("held", "--queue", "code")
    terminal.claim(held)
    done = terminal.add("done", "--queue", "code")
    _, token = terminal.claim(done, agent="eve")
    terminal.data("complete", done, "--token", token)
    for words, expected in (
        ([], ["plain", "late", "waits", "held", "done"]),
        (["--order", "age"], ["plain", "waits", "late", "held", "done"]),
        (["--status", "claimed,done"], ["held", "done"]),
        (["--tail", "2"], ["held", "done"]),
        (["--assignee", "me", "--agent", "BOB"], ["late"]),
        (["--claimed-by", "me", "-a", "ada"], ["held"]),
        (["--status", "claimed"], ["held"]),
        (["--status", "claimed", "--status", "done"], ["held", "done"]),
        (["--queue", "code"], ["held", "done"]),
        (["--assignee", "BOB"], ["late"]),
        (["--assignee", "none", "--status", "queued"], ["plain", "waits"]),
        (["--claimed-by", "Ada"], ["held"]),
        (["--claimed-by", "eve"], ["done"]),
        (["--tag", "a"], ["plain", "waits"]),
        (["--tag", "a", "--tag", "b"], ["plain"]),
        (["--ready"], ["plain", "late"]),
        (["--blocked"], ["waits"]),
        (["--overdue"], ["late"]),
        (["--search", "NEEDLE"], ["plain"]),
        (["--search", held[-6:]], ["held"]),
        (["--search", "%"], []),
        (["--queue", "docs", "--ready"], []),
    ):
        assert titles(terminal.data("list", *words)) == expected, words


def test_list_orders_and_pages(terminal: Terminal) -> None:
    for title, priority, due in (("a", "1", "2126-03-01"), ("b", "3", "2126-01-01"), ("c", "2", "2126-02-01")):
        terminal.add(title, "--priority", priority, "--due", due)
    oldest = terminal.data("list", "--order", "age", "--limit", "1")["tasks"][0]["id"]
    terminal.data("update", oldest, "--body", "touched")
    expected_orders = {"age": "abc", "newest": "cba", "priority": "bca", "work": "bca", "updated": "acb", "due": "bca"}
    for order, expected in expected_orders.items():
        seen, cursor = "", ""
        for _ in range(3):
            page = terminal.data("list", "--order", order, "--limit", "1", *(["--after", cursor] if cursor else []))
            seen, cursor = seen + "".join(titles(page)), page["next"] or ""
        assert (seen, cursor) == (expected, ""), order
    assert titles(terminal.data("list", "--limit", "100000")) == ["b", "c", "a"]


def test_list_holds_a_hundred_tasks_unless_asked_for_more(terminal: Terminal) -> None:
    terminal.write_json("many.json", [{"title": f"t{number}"} for number in range(101)])
    terminal.data("import", "many.json")
    page = terminal.data("list")
    assert len(page["tasks"]) == 100
    assert titles(terminal.data("list", "--after", page["next"])) == ["t100"]


def test_show_answers_everything_about_a_task(terminal: Terminal) -> None:
    first = terminal.add("first")
    id_ = terminal.add("middle", "--depends-on", first)
    last = terminal.add("last", "--depends-on", id_)
    terminal.data("comment", id_, "hello")
    _, token = terminal.claim(first)
    terminal.data("complete", first, "--token", token)
    terminal.claim(id_)
    data = terminal.data("show", id_)
    assert list(data) == ["task", "attempts", "dependencies", "dependents", "comments"]
    assert list(data["task"]) == TASK_KEYS
    assert data["dependencies"] == [{"id": first, "title": "first", "status": "done"}]
    assert data["dependents"] == [{"id": last, "title": "last", "status": "queued"}]
    assert [comment["data"]["text"] for comment in data["comments"]] == ["hello"]
    assert [(attempt["number"], attempt["agent"], attempt["outcome"]) for attempt in data["attempts"]] == [
        (1, "ada", None)
    ]


def test_events_page_through_the_history(terminal: Terminal) -> None:
    first, second = terminal.add("first"), terminal.add("second")
    terminal.claim(first)
    data = terminal.data("events")
    assert list(data) == ["events", "next"]
    assert [event["kind"] for event in data["events"]] == ["created", "created", "claimed"]
    assert list(data["events"][0]) == ["seq", "task_id", "kind", "actor", "actor_kind", "at", "data"]
    assert data["next"] == data["events"][-1]["seq"]
    page = terminal.data("events", "--limit", "2")
    assert terminal.data("events", "--after", str(page["next"]))["events"] == data["events"][2:]
    assert [event["task_id"] for event in terminal.data("events", "--task", second)["events"]] == [second]
    assert terminal.data("events", "--after", "99") == {"events": [], "next": 99}


def test_agents_and_stats(terminal: Terminal) -> None:
    terminal.add("one")
    terminal.add("two", "--queue", "docs", "--assignee", "eve")
    id_, token = terminal.claim()
    [ada, eve] = terminal.data("agents")["agents"]
    assert (ada["name"], [held["id"] for held in ada["holds"]]) == ("ada", [id_])
    assert (eve["name"], eve["last_seen_at"], eve["holds"]) == ("eve", None, [])
    terminal.data("complete", id_, "--token", token)
    assert terminal.data("agents")["agents"][0]["completed"] == 1
    stats = terminal.data("stats", "--days", "3")
    assert stats["tasks"] == 2
    assert (stats["by_status"]["done"], stats["by_queue"]["docs"]["queued"]) == (1, 1)
    assert [day["done"] for day in stats["finished"]][-1] == stats["lead_time"]["tasks"] == 1
    assert (stats["days"], len(stats["finished"])) == (3, 3)
    assert len(terminal.data("stats")["finished"]) == 14


# Upkeep


def test_tick_takes_back_expired_leases(terminal: Terminal) -> None:
    id_ = terminal.add()
    terminal.claim_long_ago(id_)
    assert terminal.data("list")["tasks"][0]["lease_expired"] is True
    nothing = {"created": 0, "delivered": 0, "catchup_pending": False}
    assert terminal.data("tick") == {"expired": 1, **nothing}
    assert terminal.data("tick") == {"expired": 0, **nothing}
    assert terminal.data("show", id_)["task"]["status"] == "queued"


def test_import_counts_what_it_brought_and_what_it_passed_over(terminal: Terminal) -> None:
    answer = terminal.process("import", str(EXAMPLE), "--format", "json", "--actor", "maria")
    data = answer.data
    assert list(data) == ["imported", "updated", "skipped", "ignored", "details"]
    assert data["imported"] > 20
    assert moved(terminal.data("import", str(EXAMPLE))) == (0, data["imported"])
    assert terminal.data("events", "--limit", "1")["events"][0]["actor"] == "maria"


def test_import_takes_what_list_prints_from_standard_input(terminal: Terminal, tmp_path: Path) -> None:
    terminal.add("t", "--body", "text", "--params", '{"a": 1}')
    printed = terminal.atb("list", "--full")
    copied = terminal.atb("import", "-", "--data-dir", "copy", stdin=printed.out)
    assert moved(copied.data) == (1, 0)
    assert terminal.data("list", "--full", "--data-dir", "copy") == printed.data


def test_format_of_an_import_is_that_of_the_file(terminal: Terminal) -> None:
    file = terminal.write_json("tasks.json", {"tasks": [{"title": "t"}]})
    assert terminal.atb("import", file, ATB_FORMAT="table").data["imported"] == 1
    assert terminal.atb("import", file, "--format=json", ATB_FORMAT="nonsense").data["imported"] == 1
    terminal.refused("invalid_input", "import", file, "--format", "table")
    terminal.refused("invalid_input", "--format", "table", "import", file)


def test_config_show_and_init(terminal: Terminal) -> None:
    path = terminal.data("config", "init")["path"]
    assert path == str(terminal.directory / "atb.toml")
    terminal.refused("invalid_input", "config", "init")
    assert terminal.data("config", "init", "other.toml")["path"] == str(terminal.directory / "other.toml")
    terminal.write("atb.toml", 'lease = "5m"\n')
    data = terminal.data("config", "show")
    assert data["file"] == path
    assert data["values"]["lease"] == {"value": "5m", "source": f"file {path}"}
    assert data["values"]["max_attempts"] == {"value": 3, "source": "default"}
    assert terminal.data("config", "show", "--config", "other.toml")["values"]["lease"]["source"] == "default"
    assert not (terminal.directory / "data").exists()


def test_demo_tells_its_story_on_standard_error_and_its_proof_on_standard_output(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str | None, bool]] = []

    def play(directory: str | None, *, out: Any, quiet: bool) -> dict[str, Any]:
        calls.append((directory, quiet))
        out.write("" if quiet else "the story\n")
        return {"directory": "/somewhere", "tasks": 2, "seconds": 1.0, "proof": ["it is so"]}

    monkeypatch.setattr("agent_task_board.demo.run", play)
    answer = terminal.atb("demo", "--data-dir", "d")
    assert answer.data["proof"] == ["it is so"]
    assert answer.err == "the story\n"
    assert "/somewhere" in answer.warnings[0]
    assert terminal.atb("demo", "--quiet").err == ""
    assert calls == [("d", False), (None, True)]


def test_demo_leaves_a_board_that_is_there_alone(terminal: Terminal) -> None:
    terminal.add()
    before = terminal.snapshot()
    terminal.refused("invalid_input", "demo", "--data-dir", "data")
    assert terminal.snapshot() == before


# Naming a task


def test_task_is_named_by_its_ulid_in_any_case_or_by_an_ending_of_it(terminal: Terminal) -> None:
    terminal.write_json("tasks.json", [{"id": "01JDXAAAAAAAAAAAAAAAAA7Q2Z", "title": "t"}])
    terminal.data("import", "tasks.json")
    for name in ("01JDXAAAAAAAAAAAAAAAAA7Q2Z", "01jdxaaaaaaaaaaaaaaaaa7q2z", "7Q2Z", "a7q2z", "AAAA7Q2Z"):
        assert terminal.data("show", name)["task"]["title"] == "t"
        assert len(terminal.data("events", "--task", name)["events"]) == 1


def test_ending_that_names_several_tasks_is_refused_with_their_ids(terminal: Terminal) -> None:
    ids = ["01JDXAAAAAAAAAAAAAAAAA7Q2Z", "01JDXAAAAAAAAAAAAAAAAB7Q2Z"]
    terminal.write_json("tasks.json", [{"id": id_, "title": "t"} for id_ in ids])
    terminal.data("import", "tasks.json")
    for words in (["show", "7Q2Z"], ["claim", "7q2z", "--agent", "ada"], ["add", "t", "--depends-on", "7Q2Z"]):
        assert terminal.refused("invalid_input", *words)["details"]["candidates"] == ids
    assert terminal.data("show", "B7Q2Z")["task"]["id"] == ids[1]


@pytest.mark.parametrize("name", ["7Q2", "", "7Q2U", "no-id!", "8" * 26, "0" * 27, "Z" * 26, "%%%%", "____", "é7Q2"])
def test_malformed_id_is_not_merely_not_found(terminal: Terminal, name: str) -> None:
    terminal.add()
    terminal.refused("invalid_input", "show", name)
    terminal.refused("invalid_input", "claim", name, "--agent", "ada")


# Texts, files and standard input


def test_json_is_read_literally_from_a_file_or_from_standard_input(terminal: Terminal) -> None:
    file = terminal.write("params.json", b'\xef\xbb\xbf{"from": "file"}\n')
    assert terminal.task("add", "t", "--params", f"@{file}")["params"] == {"from": "file"}
    answer = terminal.process("add", "t", "--params", "-", stdin=b'{"from": "stdin"}')
    assert answer.data["task"]["params"] == {"from": "stdin"}
    for option, stdin in (("-", b"[1]"), ("@-", b"[1]"), (f"@{file}", b""), ("[1]", b"")):
        id_ = terminal.add("t")
        _, token = terminal.claim(id_)
        answer = terminal.atb("complete", id_, "--token", token, "--result", option, stdin=stdin)
        assert answer.data["task"]["result"] == ({"from": "file"} if file in option else [1])
    update = terminal.atb("update", terminal.add("t"), "--params", "-", stdin=b'{"a": 1}')
    assert update.data["task"]["params"] == {"a": 1}


def test_standard_input_is_read_for_one_option_only(terminal: Terminal) -> None:
    before = terminal.files()
    answer = terminal.atb("add", "t", "--params", "-", "--body-file", "-", stdin=b"{}")
    assert answer.error["code"] == "invalid_input"
    assert terminal.files() == before
    terminal.add()
    id_, token = terminal.claim()
    words = ["complete", id_, "--token-file", "-", "--result", "-"]
    assert terminal.atb(*words, stdin=token.encode()).error["code"] == "invalid_input"
    assert terminal.data("show", id_)["task"]["status"] == "claimed"


def test_plain_text_keeps_a_leading_at_sign_and_a_dash(terminal: Terminal) -> None:
    terminal.write("bob", "not this")
    task = terminal.task("add", "@bob", "--body", "@bob", "--tag", "@bob")
    assert (task["title"], task["body"], task["tags"]) == ("@bob", "@bob", ["@bob"])
    assert terminal.task("update", task["id"], "--body", "-")["body"] == "-"


def test_texts_come_from_files_too(terminal: Terminal) -> None:
    file = terminal.write("text.md", f"# {TITLE}\n\nline two\n")
    text = f"# {TITLE}\n\nline two\n"
    id_ = terminal.task("add", "t", "--needs-approval", "--body-file", file)["id"]
    assert terminal.data("show", id_)["task"]["body"] == text
    assert terminal.atb("update", id_, "--body-file", "-", stdin=b"new").data["task"]["body"] == "new"

    def latest() -> Any:
        return terminal.data("events", "--task", id_)["events"][-1]["data"]

    _, token = terminal.claim(id_)
    terminal.data("heartbeat", id_, "--token", token, "--note-file", file)
    assert latest()["note"] == text
    terminal.data("release", id_, "--token", token, "--note-file", file)
    assert latest()["note"] == text
    _, token = terminal.claim(id_)
    terminal.data("handoff", id_, "--token", token, "--to", "bob", "--note-file", file)
    assert latest()["note"] == text
    _, token = terminal.claim(id_, agent="bob")
    terminal.data("fail", id_, "--token", token, "--error-file", file, "--retry-in", "0")
    assert terminal.data("show", id_)["task"]["error"] == text
    _, token = terminal.claim(id_, agent="bob")
    terminal.data("complete", id_, "--token", token, "--note-file", file)
    assert latest()["note"] == text
    terminal.data("reject", id_, "--note-file", file)
    assert latest()["note"] == text
    terminal.data("reassign", id_, "--to", "none", "--note-file", file)
    assert latest()["note"] == text
    terminal.data("cancel", id_, "--note-file", file)
    assert latest()["note"] == text
    other = in_review(terminal)
    terminal.data("approve", other, "--note-file", file)
    assert terminal.data("events", "--task", other)["events"][-1]["data"]["note"] == text


def test_token_comes_from_option_file_or_environment_in_this_order(terminal: Terminal) -> None:
    terminal.add()
    id_, token = terminal.claim()
    file, wrong = terminal.write("token", f"{token}\n"), terminal.write("wrong", "0" * 32)
    terminal.data("heartbeat", id_, "--token-file", file)
    terminal.data("heartbeat", id_, ATB_TOKEN=token)
    terminal.data("heartbeat", id_, "--token-file", file, ATB_TOKEN="0" * 32)
    terminal.data("heartbeat", id_, "--token", token, "--token-file", wrong, ATB_TOKEN="0" * 32)
    assert terminal.atb("heartbeat", id_, "--token-file", "-", stdin=token.encode()).data["lease"]["token"] == token
    terminal.refused("lease_lost", "heartbeat", id_, "--token-file", wrong, ATB_TOKEN=token)
    assert terminal.refused("invalid_input", "heartbeat", id_)["details"]["field"] == "token"


# Who calls


def test_agent_comes_from_option_or_environment(terminal: Terminal) -> None:
    terminal.add("one")
    terminal.add("two")
    assert terminal.task("claim", ATB_AGENT="ada")["claimed_by"] == "ada"
    assert terminal.task("claim", "--agent", "bob", ATB_AGENT="ada")["claimed_by"] == "bob"
    assert terminal.refused("invalid_input", "claim")["details"]["field"] == "agent"
    assert terminal.refused("invalid_input", "claim", ATB_ACTOR="maria")["details"]["field"] == "agent"


def test_actor_comes_from_option_agent_actor_variable_or_login_name(terminal: Terminal) -> None:
    both = {"ATB_AGENT": "ada", "ATB_ACTOR": "maria"}
    assert terminal.task("add", "t", "--actor", "bob", **both)["created_by"] == "bob"
    assert terminal.task("add", "t", **both)["created_by"] == "ada"
    assert terminal.task("add", "t", ATB_ACTOR="maria")["created_by"] == "maria"
    assert terminal.task("add", "t")["created_by"] == "carla"
    kinds = [event["actor_kind"] for event in terminal.data("events")["events"]]
    assert kinds == ["agent", "agent", "human", "human"]


# Which format


def test_json_wins_over_every_other_wish(terminal: Terminal) -> None:
    terminal.add()
    for words in (["list", "--json"], ["--json", "list"]):
        for more in ([], ["--format", "table"], ["--format=table"]):
            for environ in ({}, {"ATB_FORMAT": "table"}, {"ATB_FORMAT": "nonsense"}):
                assert terminal.atb(*words, *more, **environ).data["tasks"]


def test_format_option_wins_over_the_environment(terminal: Terminal) -> None:
    terminal.add()
    assert terminal.atb("list", ATB_FORMAT="table").text.startswith("ID ")
    assert terminal.atb("list", "--format", "json", ATB_FORMAT="table").data["tasks"]
    assert terminal.atb("list", "--format", "table", ATB_FORMAT="json").text.startswith("ID ")
    assert terminal.atb("list", ATB_FORMAT="").data["tasks"]


def test_unknown_format_is_refused_in_json(terminal: Terminal) -> None:
    for words in (["list", "--format", "yaml"], ["--format=xml", "list"], ["list", "--format="]):
        terminal.refused("invalid_input", *words)
    terminal.refused("invalid_input", "list", ATB_FORMAT="yaml")


def in_brief(terminal: Terminal, *words: str, code: int = 0, **environ: str) -> dict[str, Any]:
    """Run a command that answers in compact text, and return what a reader makes of it."""
    answer = terminal.atb(*words, "--format", "compact", **environ)
    assert (answer.code, answer.err) == (code, "")
    return read(answer.text)


def test_every_verb_answers_in_compact_text(terminal: Terminal) -> None:
    made = in_brief(terminal, "add", TITLE, "--body", "two\nlines", "--needs-approval", "--dedupe-key", "k")
    assert (made["kind"], made["tasks"][0]["title"], made["flags"]) == ("created", TITLE, [])
    assert "created a board" in made["notes"][0]
    id_ = made["facts"]["id"]
    again = in_brief(terminal, "add", "other", "--dedupe-key", "k")
    assert (again["facts"]["id"], again["flags"], len(again["notes"])) == (id_, ["existing"], 1)

    claimed = in_brief(terminal, "claim", "--agent", "ada")
    assert (claimed["kind"], claimed["texts"]) == ("claimed", {"body": "two\nlines"})
    assert in_brief(terminal, "claim", "--agent", "bob")["kind"] == "nothing"
    resumed = in_brief(terminal, "resume", id_, "--agent", "ada")
    assert (resumed["kind"], resumed["facts"]["fence"]) == ("resumed", 2)
    holds = (id_, "--token", resumed["facts"]["token"])
    renewed = in_brief(terminal, "heartbeat", *holds, "--progress", "40")
    assert (renewed["kind"], renewed["tasks"][0]["progress"]) == ("renewed", 40)
    assert renewed["facts"]["lease_end"] == renewed["tasks"][0]["lease"]
    assert in_brief(terminal, "complete", *holds)["kind"] == "completed"
    assert in_brief(terminal, "complete", *holds)["flags"] == ["replayed"]
    assert in_brief(terminal, "comment", id_, "x")["kind"] == "commented"

    verbs = []
    for words in (
        ("reject", id_, "--note", "more"),
        ("update", id_, "--priority", "3"),
        ("reassign", id_, "--to", "bob"),
        ("cancel", id_),
        ("retry", id_),
    ):
        told = in_brief(terminal, *words)
        assert told["facts"]["id"] == id_
        verbs.append(told["kind"])
    assert verbs == ["rejected", "updated", "reassigned", "cancelled", "retried"]
    for verb, more in (("fail", ("--error", "x")), ("release", ()), ("handoff", ("--to", "bob")), ("complete", ())):
        other = terminal.add(verb, "--needs-approval")
        told = in_brief(terminal, verb, *held(terminal, other), *more)
        verbs.append(told["kind"])
    assert verbs[5:] == ["failed", "released", "handed_off", "completed"]
    assert in_brief(terminal, "approve", other)["kind"] == "approved"
    assert in_brief(terminal, "show", other)["tasks"][0]["status"] == "done"


def held(terminal: Terminal, task: str) -> tuple[str, ...]:
    return (task, "--token", terminal.data("claim", task, "--agent", "ada")["lease"]["token"])


def test_refusal_in_compact_text_goes_to_standard_output_and_keeps_its_exit_code(terminal: Terminal) -> None:
    task = terminal.add("t")
    terminal.data("claim", task, "--agent", "ada")
    for words, code, name in (
        (["claim", task, "--agent", "bob"], 4, "conflict"),
        (["complete", task, "--token", "0" * 32], 5, "lease_lost"),
        (["show", "9F3K2A"], 3, "not_found"),
        (["list", "--statsu"], 2, "invalid_input"),
        (["lst"], 2, "invalid_input"),
        (["claim", "--agent", "bob", "--fail-empty"], 9, "empty"),
    ):
        told = in_brief(terminal, *words, code=code)
        assert (told["kind"], told["flags"], len(told["notes"])) == ("error", [name], int(name == "empty"))


def test_compact_text_may_be_set_by_the_environment_and_json_wins(terminal: Terminal) -> None:
    terminal.add("t")
    assert read(terminal.atb("list", ATB_FORMAT="compact").text)["kind"] == "list"
    assert terminal.atb("list", "--json", ATB_FORMAT="compact").data["tasks"]
    assert terminal.atb("list", "--format", "json", ATB_FORMAT="compact").data["tasks"]
    assert terminal.atb("list", "--format", "table", ATB_FORMAT="compact").text.startswith("ID ")


def test_command_without_a_compact_form_prints_its_envelope(terminal: Terminal) -> None:
    terminal.add("t")
    for words in (
        ["agents"],
        ["stats"],
        ["tick"],
        ["config", "show"],
        ["import", str(EXAMPLE)],
        ["--version"],
    ):
        assert terminal.atb(*words, ATB_FORMAT="compact").data
    terminal.refused("invalid_input", "stats", "--days", "0", ATB_FORMAT="compact")


def test_budget_cuts_a_list_and_a_task_and_goes_with_compact_text_only(terminal: Terminal) -> None:
    for number in range(20):
        task = terminal.add(f"A task of many words, number {number}", "--body", "word " * 500)
    told = in_brief(terminal, "list", "--budget", "100")
    assert 3 < len(told["tasks"]) < 10
    shown = [task["title"] for task in told["tasks"]]
    after = told["more"]["after"]
    assert titles(terminal.data("list", "--after", after))[0] not in shown
    assert len(shown) + len(terminal.data("list", "--after", after)["tasks"]) == 20
    assert len(terminal.atb("show", task, "--budget", "100", "--format", "compact").text) <= 400
    for words in (["list", "--budget", "100"], ["show", task, "--budget", "100", "--format", "table"]):
        answer = terminal.atb(*words)
        assert answer.code == 2
    assert terminal.refused("invalid_input", "list", "--budget", "100")["details"]["field"] == "budget"
    for words in (["list", "--budget", "99"], ["list", "--full"], ["list", "--limit", "0", "--budget", "100"]):
        assert in_brief(terminal, *words, code=2)["flags"] == ["invalid_input"]


def test_missing_board_is_told_in_compact_text(terminal: Terminal) -> None:
    for words in (["list"], ["claim", "--agent", "ada"]):
        assert in_brief(terminal, *words, code=3)["flags"] == ["not_found"]
    assert terminal.files() == set()


def test_word_import_elsewhere_does_not_turn_a_page_into_json(terminal: Terminal) -> None:
    terminal.add("import", "--queue", "import")
    assert terminal.atb("list", "--queue", "import", "--format", "table").text.startswith("ID ")
    assert terminal.atb("list", "--search", "import", ATB_FORMAT="table").text.startswith("ID ")


# Boards that are not there


@pytest.mark.parametrize(
    "words",
    """
    list; events; events --follow; agents; stats; tick; doctor; prime; export; backup; archive --older-than 1d;
    claim --agent ada; claim --agent ada --fail-empty; serve --read-only --port 0; mcp --read-only; hooks list;
    schedule list; schedule remove nightly
    """.split(";"),
)
def test_command_that_creates_no_board_says_where_it_looked(terminal: Terminal, words: str) -> None:
    answer = terminal.process(*words.split())
    assert answer.error["code"] == "not_found"
    looked = [str(terminal.directory / name / "tasks.db") for name in (".atb", "data")]
    assert answer.error["details"] == {"path": looked[1], "looked": looked}
    assert all(path in answer.error["hint"] for path in looked)
    assert "atb init" in answer.error["hint"]
    assert terminal.files() == set()
    elsewhere = terminal.process(*words.split(), "--data-dir", "else/where").error
    assert elsewhere["details"] == {"path": str(terminal.directory / "else" / "where" / "tasks.db")}
    assert elsewhere["details"]["path"] in elsewhere["message"]
    assert terminal.files() == set()


@pytest.mark.parametrize(
    "words",
    [
        ["show", "9F3K2A"],
        ["events", "--task", "9F3K2A"],
        ["claim", "9F3K2A", "--agent", "ada"],
        ["resume", "9F3K2A", "--agent", "ada"],
        ["heartbeat", "9F3K2A", "--token", "x"],
        ["complete", "9F3K2A", "--token", "x"],
        ["fail", "9F3K2A", "--token", "x", "--error", "e"],
        ["release", "9F3K2A", "--token", "x"],
        ["handoff", "9F3K2A", "--token", "x", "--to", "bob"],
        ["approve", "9F3K2A"],
        ["reject", "9F3K2A", "--note", "n"],
        ["reassign", "9F3K2A", "--to", "none"],
        ["retry", "9F3K2A"],
        ["cancel", "9F3K2A"],
        ["update", "9F3K2A", "--title", "t"],
        ["comment", "9F3K2A", "text"],
    ],
)
def test_verb_on_an_id_where_no_board_is_finds_nothing_and_makes_nothing(terminal: Terminal, words: list[str]) -> None:
    assert "no board" in terminal.refused("not_found", *words)["message"]
    assert terminal.files() == set()


def test_add_and_import_make_a_board_and_say_where(terminal: Terminal) -> None:
    file = terminal.write_json("tasks.json", [{"title": "t"}])
    for words, place in ((["add", "t"], "one"), (["import", file], "two")):
        path = str(terminal.directory / place / "tasks.db")
        assert any(path in warning for warning in terminal.process(*words, "--data-dir", place).warnings)
        assert not any(path in warning for warning in terminal.atb(*words, "--data-dir", place).warnings)
        assert (terminal.directory / place / ".gitignore").read_text() == "*\n"


def test_malformed_import_makes_no_board(terminal: Terminal) -> None:
    file = terminal.write_json("tasks.json", [{"title": "t"}, {"title": "t", "nonsense": 1}])
    terminal.refused("invalid_input", "import", file)
    assert terminal.files() == {file}


def test_reading_leaves_an_existing_board_as_it_is(terminal: Terminal) -> None:
    id_ = terminal.add()
    terminal.claim_long_ago(id_)
    files, before = terminal.files(), terminal.snapshot()
    for words in (["list"], ["show", id_], ["events"], ["agents"], ["stats"], ["list", "--full", "--ready"]):
        terminal.data(*words)
    assert terminal.files() - files <= {"data/tasks.db-wal", "data/tasks.db-shm"}
    assert terminal.snapshot() == before


# Pipes, signals and the stream of events


@pytest.fixture
def crowd(terminal: Terminal) -> Terminal:
    """Return a terminal whose board prints far more than a pipe holds."""
    for _ in range(3):
        terminal.add("t", "--body", "x" * 100_000)
    return terminal


@pytest.mark.parametrize(
    "words", [["list", "--full"], ["list", "--full", "--format", "table"], ["events", "--follow"], ["list", "--help"]]
)
def test_closed_pipe_ends_a_command_without_a_word(crowd: Terminal, words: list[str]) -> None:
    if words[0] == "events":
        for _ in range(6):
            crowd.data("comment", crowd.data("list")["tasks"][0]["id"], "y" * 20_000)
    with crowd.started(*words) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(LIMIT) == 0


def test_refusal_into_a_closed_pipe_keeps_its_exit_code(terminal: Terminal) -> None:
    read, write = os.pipe()
    os.close(read)
    with subprocess.Popen(
        [sys.executable, "-m", "agent_task_board", "show", "9F3K2A"],
        cwd=terminal.directory,
        env=terminal.environ,
        stdout=write,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(write)
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(LIMIT) == 3


def test_ctrl_c_exits_with_130_and_changes_nothing(terminal: Terminal) -> None:
    pipe = terminal.directory / "pipe"
    os.mkfifo(pipe)
    with terminal.started("import", "pipe") as process:
        writer = reader_of(pipe, process)
        os.write(writer, b"[")
        wait_until_read(writer)  # the command is in the midst of reading now, and would wait for ever
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
        os.close(writer)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert terminal.files() == {"pipe"}


def reader_of(pipe: Path, process: subprocess.Popen[bytes]) -> int:
    """Open a pipe for writing as soon as the process has opened it for reading."""

    def opened() -> int | None:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            assert process.poll() is None
            return None

    return eventually(opened, "the reading") or 0


def wait_until_read(writer: int) -> None:
    """Wait until whoever reads a pipe has taken all that was written to it."""
    eventually(lambda: fcntl.ioctl(writer, termios.FIONREAD, bytes(4)) == bytes(4), "the reading")


@pytest.fixture
def followed(terminal: Terminal) -> Iterator[tuple[Terminal, subprocess.Popen[bytes]]]:
    """Yield a board with one event and a process that follows it and has printed that event."""
    terminal.add("first")
    with terminal.started("events", "--follow") as process:
        assert event_from(process)["kind"] == "created"
        yield terminal, process


def event_from(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Return the next event, waiting for it."""
    assert process.stdout is not None
    event: dict[str, Any] = json.loads(process.stdout.readline())
    assert list(event) == ["seq", "task_id", "kind", "actor", "actor_kind", "at", "data"]
    return event


def test_followed_events_of_other_processes_come_as_they_happen(
    followed: tuple[Terminal, subprocess.Popen[bytes]],
) -> None:
    terminal, process = followed
    board = Board(terminal.directory / "data", actor=MARIA)
    id_ = board.add("second").task.id
    assert event_from(process)["task_id"] == id_
    claim = board.claim("ada", task=id_)
    assert claim is not None
    event = event_from(process)
    assert (event["kind"], event["actor"], event["actor_kind"]) == ("claimed", "ada", "agent")
    board.close()


def test_ctrl_c_ends_following_with_130(followed: tuple[Terminal, subprocess.Popen[bytes]]) -> None:
    _, process = followed
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_following_ends_when_its_reader_goes_even_if_nothing_happens(
    followed: tuple[Terminal, subprocess.Popen[bytes]],
) -> None:
    _, process = followed
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(LIMIT) == 0
    assert process.stderr.read() == b""


def test_following_ends_at_its_limit_and_may_begin_later(terminal: Terminal) -> None:
    first, second = terminal.add("first"), terminal.add("second")
    terminal.data("comment", first, "hello")
    terminal.data("comment", second, "hello")
    answer = terminal.process("events", "--follow", "--after", "1", "--limit", "2")
    assert [json.loads(line)["seq"] for line in answer.text.splitlines()] == [2, 3]
    answer = terminal.process("events", "--follow", "--task", second, "--limit", "2", "--format", "table")
    assert [second[-6:] in line and line[0].isdigit() for line in answer.text.splitlines()] == [True, True]
    assert terminal.process("events", "--follow", "--task", "9F3K2A").error["code"] == "not_found"


def test_quiet_silences_what_is_said_to_people(terminal: Terminal) -> None:
    assert "created a board" in terminal.atb("add", "t", "--format", "table", "--data-dir", "one").err
    for number, words in enumerate((["add", "t", "--format", "table", "--quiet"], ["--quiet", "add", "t"])):
        answer = terminal.atb(*words, "--data-dir", f"new{number}", ATB_FORMAT="table")
        assert (answer.code, answer.err) == (0, "")
    terminal.data("init")
    with terminal.started("events", "--follow", "--quiet", "--limit", "1") as process:
        terminal.add()
        assert event_from(process)["kind"] == "created"
        assert process.stderr is not None
        assert process.stderr.read() == b""
