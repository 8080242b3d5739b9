"""`atb prime`: the briefing of an agent, and what the hooks of clients answer."""

from __future__ import annotations

import json
import os
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_task_board import Board
from agent_task_board.setup import hooks
from agent_task_board.text import briefing
from agent_task_board.text.briefing import text
from tests.command_line import TASK_KEYS, Terminal
from tests.support import Clock, bring_to, everything, hold, open_board

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SESSION = "1f0c22d9-2b0a-4a3e-9a53-6a1c2f9e5d77"
CLIENTS = list(hooks.EVENTS)


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


# The briefing


def test_briefing_of_a_missing_board_says_so_and_makes_none(tmp_path: Path) -> None:
    board = Board(tmp_path / "none", create=False)
    found = board.briefing(agent="ada")
    assert not found["exists"]
    assert found["ready"] == {"count": 0, "tasks": []}
    assert "no board there yet" in text(found)
    assert str(tmp_path / "none") in text(found)
    assert list(tmp_path.iterdir()) == []


def test_briefing_tells_what_the_agent_holds_and_nothing_of_others(board: Board) -> None:
    for title in ("Write the parser", "Write the printer"):
        board.add(title)
    mine, other = hold(board, "Ada"), hold(board, "bob")
    board.heartbeat(mine.id, mine.token, progress=40)
    found = board.briefing(agent="ada")
    assert found["agent"] == "Ada"
    assert [task["id"] for task in found["holds"]["tasks"]] == [mine.id]
    told = text(found)
    assert f'- {mine.id[-6:]} "Write the parser" running 40% lease=2026-11-30T01:08:20Z' in told
    assert "`atb resume ID --save` (resume_task)" in told
    assert other.id[-6:] not in told
    assert mine.token not in json.dumps(found)


def test_tasks_are_the_json_that_lists_have(board: Board) -> None:
    board.add("Write the parser")
    board.add("Write the printer")
    hold(board)
    found = board.briefing(agent="ada")
    listed = {task["id"]: task for task in board.list_tasks().to_dict()["tasks"]}
    for task in (*found["holds"]["tasks"], *found["ready"]["tasks"]):
        assert task == listed[task["id"]]


def test_briefing_tells_of_leases_that_ran_out(board: Board, clock: Clock) -> None:
    board.add("Write the parser")
    lost = hold(board)
    clock.advance(minutes=15)
    found = board.briefing(agent="ada")
    assert found["holds"] == {"count": 0, "tasks": []}
    assert found["lost"] == {"count": 1, "ids": [lost.id]}
    assert "your lease expired on 1" in text(found)
    assert board.briefing(agent="bob")["lost"]["count"] == 0
    assert found["attention"]["expired"]["count"] == 1


def test_best_of_what_is_ready_is_what_a_claim_takes(board: Board, clock: Clock) -> None:
    board.add("low")
    board.add("for bob", priority=9, assignee="bob")
    first = board.add("blocked", priority=8, depends_on=[board.add("dull", priority=-1).task.id]).task
    board.add("later", priority=7, not_before="2026-11-30T02:00:00Z")
    board.add("for ada", priority=5, assignee="ada")
    board.add("high", priority=6)
    assert [task["title"] for task in board.briefing(agent="ada")["ready"]["tasks"]] == ["high", "for ada", "low"]
    clock.advance(days=1)
    for agent in ("ada", "bob", "eve"):
        found = board.briefing(agent=agent)
        listed = board.list_tasks(ready=True, order="priority").tasks
        wanted = [task for task in listed if task.assignee in (None, agent)]
        assert found["ready"]["count"] == len(wanted)
        assert [task["id"] for task in found["ready"]["tasks"]] == [task.id for task in wanted[:3]]
    best = board.briefing(agent="ada")["ready"]["tasks"][0]
    assert hold(board, "ada").id == best["id"]
    assert first.id not in {task["id"] for task in board.briefing(agent="ada")["ready"]["tasks"]}


def test_briefing_without_a_name_tells_how_to_get_one(board: Board) -> None:
    board.add("for bob", assignee="bob")
    board.add("for all")
    found = board.briefing()
    assert found["agent"] is None
    assert [task["title"] for task in found["ready"]["tasks"]] == ["for all"]
    assert "no name yet; the commands below give you one" in text(found)


def test_briefing_counts_what_waits_for_the_agent_and_for_a_person(board: Board) -> None:
    review = bring_to(board, "review")
    base = board.add("base", assignee="bob").task
    board.add("blocked", assignee="ada", depends_on=[base.id])
    board.add("blocked", assignee="bob", depends_on=[base.id])
    board.add("later", assignee="ada", not_before="2027-01-01T00:00:00Z")
    found = board.briefing(agent="ada")
    assert found["assigned"] == {"blocked": 1, "delayed": 1}
    assert found["attention"]["review"] == {"count": 1, "ids": [review.id]}
    told = text(found)
    assert "1 blocked, 1 delayed" in told
    assert f"waiting for a person: 1 in review, {review.id[-6:]}" in told


def test_beat_is_a_third_of_the_lease_that_is_set() -> None:
    assert briefing.protocol(900_000, "atb")[1].startswith("Every 5m: `atb heartbeat ID ")
    assert briefing.protocol(1_000, "atb")[1].startswith("Every 1s: ")
    assert len(briefing.protocol(900_000, "atb")) == 7


def test_briefing_writes_nothing(board: Board) -> None:
    board.add("Write the parser")
    hold(board)
    before = everything(board)
    board.briefing(agent="ada")
    board.briefing(agent="somebody new")
    assert everything(board) == before


def test_briefing_costs_the_same_on_a_larger_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(briefing, "COUNTED", 20)
    monkeypatch.setattr(briefing, "LOOKED_AT", 20)
    monkeypatch.setattr(Board, "attention", lambda _: {})  # it has its own query
    steps = [steps_of_a_briefing(tmp_path / str(size), size) for size in (40, 160)]
    assert steps[1] < steps[0] * 1.3, steps


def steps_of_a_briefing(directory: Path, size: int) -> int:
    """Return how many hundreds of instructions SQLite runs for a briefing of a board with tasks of every kind."""
    board = open_board(directory, Clock())
    base = "01KAAAAAAAAAAAAAAAAAAAAAAA"
    kinds: list[dict[str, Any]] = [
        {},
        {"assignee": "ada"},
        {"assignee": "bob", "priority": 9},
        {"blocked_by": [base]},
        {"not_before": "2026-01-01T00:00:00Z"},
        {"not_before": "2027-01-01T00:00:00Z"},
        {"status": "done"},
        {"status": "review"},
    ]
    tasks = [{"title": "a task", **kind} for kind in kinds for _ in range(size)]
    board.import_tasks([{"id": base, "title": "base"}, *tasks])
    hold(board)
    counted = [0]

    def count() -> int:
        counted[0] += 1
        return 0

    board.briefing(agent="ada")
    board.database.session().connection.set_progress_handler(count, 100)
    board.briefing(agent="ada")
    board.close()
    return counted[0]


# The text

words = st.text(max_size=600)
counts = st.integers(0, 1_000)


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    board = open_board(tmp_path_factory.mktemp("board"))
    made = board.add("Write the parser").task.to_dict()
    board.close()
    return made


@given(
    st.none() | st.text(min_size=1, max_size=100),
    words,
    st.lists(st.tuples(words, st.text(min_size=1, max_size=100), st.integers(-(10**6), 10**6)), max_size=8),
    counts,
    st.booleans(),
    st.integers(3, 600),
)
def test_text_never_has_more_than_2000_characters(
    task: Mapping[str, Any],
    agent: str | None,
    path: str,
    told: list[tuple[str, str, int]],
    count: int,
    exists: bool,
    length: int,
) -> None:
    tasks = [
        {
            **task,
            "id": f"{number:026}",
            "title": title,
            "queue": name,
            "assignee": name,
            "claimed_by": name,
            "priority": priority,
            "tags": [name] * 50,
            "due_at": task["created_at"],
            "lease_expires_at": task["created_at"],
        }
        for number, (title, name, priority) in enumerate(told)
    ]
    ids = [task["id"] for task in tasks[:5]]
    found: Any = {
        "agent": agent,
        "board": path,
        "exists": exists,
        "holds": {"count": count, "tasks": tasks[:5]},
        "lost": {"count": count, "ids": ids},
        "ready": {"count": count, "tasks": tasks[5:]},
        "assigned": {"blocked": count, "delayed": count},
        "attention": {
            "review": {"count": count, "ids": ids},
            "expired": {"count": count, "ids": ids},
            "stuck": {"count": count, "ids": ids},
        },
        "command": "x" * length,
        "protocol": briefing.protocol(7 * 86_400_000 - 1, "x" * length),
    }
    shown = text(found)
    assert len(shown) <= briefing.LIMIT == 2_000
    lines = shown.split("\n")
    assert [line[:2] for line in lines[-7:]] == ["2.", "3.", "4.", "5.", "6.", "7.", ""]
    assert any(line.startswith(f"ready for you: {count:,}") for line in lines)


def test_long_titles_and_paths_are_cut_where_it_matters_least() -> None:
    assert briefing._path("/srv/" + "long/" * 40 + "board").endswith('long/board"')
    assert briefing._cut("x" * 500, 10, str) == "x" * 9 + "…"
    assert briefing._cut("short", 10, str) == "short"


# The command


def test_prime_prints_text_unless_json_is_asked_for(terminal: Terminal) -> None:
    terminal.add()
    shown = terminal.process("prime", "--agent", "ada", ATB_SESSION="s")
    assert (shown.code, shown.err) == (0, "")
    assert "ready for you: 1" in shown.text
    assert "`ATB_AGENT=ada " in shown.text or "{ ATB_AGENT=ada " in shown.text
    for words in (["--json"], ["--format", "json"]):
        data = terminal.process("prime", *words, "--agent", "ada", ATB_SESSION="s").data
        assert text(data) == shown.text
        assert list(data["ready"]["tasks"][0]) == [
            key for key in TASK_KEYS if key not in ("body", "params", "result", "error")
        ]


def test_prime_makes_nothing_where_no_board_is(terminal: Terminal) -> None:
    for words in ([], ["--json"], ["--agent", "ada"]):
        terminal.refused("not_found", "prime", *words)
    assert terminal.files() == set()


@pytest.mark.parametrize("name", ["session-start", "stop"])
def test_hook_is_silent_where_no_board_is(terminal: Terminal, name: str) -> None:
    for words in ([], ["--data-dir", "nowhere"], ["--client", "cursor"]):
        answer = terminal.atb("prime", "--hook", name, *words, stdin=json.dumps({"session_id": SESSION}))
        assert (answer.code, answer.out, answer.err) == (0, b"", "")
    assert terminal.files() == set()


def test_wrong_name_is_refused_as_everywhere(terminal: Terminal) -> None:
    terminal.data("init")
    terminal.refused("invalid_input", "prime", "--agent", "none")
    terminal.refused("invalid_input", "prime", "--client", "emacs")
    terminal.refused("invalid_input", "add", "prime", "--hook", "stop")


# Hooks


def hook(terminal: Terminal, name: str, client: str, asked: object, **environ: str) -> Any:
    """Run a hook, which must succeed; return its answer, or ``None``."""
    given = asked if isinstance(asked, (bytes, str)) else json.dumps(asked)
    answer = terminal.atb("prime", "--hook", name, "--client", client, stdin=given, **environ)
    assert answer.code == 0, answer
    return json.loads(answer.text) if answer.out else None


def context(client: str, answer: Any) -> str:
    told: str
    if client == "cursor":
        assert list(answer) == ["additional_context"]
        return str(answer["additional_context"])
    assert list(answer) == ["hookSpecificOutput"]
    assert answer["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    told = answer["hookSpecificOutput"]["additionalContext"]
    return told


@pytest.mark.parametrize("client", CLIENTS)
def test_session_start_tells_the_briefing_and_a_name_that_stays(terminal: Terminal, client: str) -> None:
    terminal.add()
    key = "conversation_id" if client == "cursor" else "session_id"
    first = context(client, hook(terminal, "session-start", client, {key: SESSION, "source": "startup"}))
    again = context(client, hook(terminal, "session-start", client, {key: SESSION, "source": "compact"}))
    assert first == again
    assert f"you: {client}-1f0c22d9;" in first
    assert "ready for you: 1" in first
    assert len(first) <= briefing.LIMIT


@pytest.mark.parametrize(
    "ids",
    [
        ("1f0c22d9-2b0a-4a3e-9a53-6a1c2f9e5d77", "2f0c22d9-2b0a-4a3e-9a53-6a1c2f9e5d77"),
        ("0199a213-81c0-7800-8aa1-bbab2a035a53", "0199a213-9b7e-7a10-9c4f-1f2e3d4c5b6a"),  # started within one minute
    ],
)
def test_two_sessions_have_two_names(ids: tuple[str, str]) -> None:
    assert len({hooks.agent_of("codex", {"session_id": one}) for one in ids}) == 2


def test_name_that_is_given_goes_before_that_of_the_session(terminal: Terminal) -> None:
    terminal.data("init")
    asked = {"session_id": SESSION}
    assert "you: ada;" in context("claude", hook(terminal, "session-start", "claude", asked, ATB_AGENT="ada"))
    answer = terminal.atb("prime", "--hook", "session-start", "--agent", "bob", stdin="{}", ATB_AGENT="ada")
    assert "you: bob;" in context("claude", json.loads(answer.text))


@pytest.mark.parametrize(
    "asked", ["", "{", "[]", "null", b"\xff", '{"session_id": 5}', '{"session_id": "../../../x"}', "[" * 100_000]
)
def test_odd_input_of_a_client_is_as_none(terminal: Terminal, asked: str | bytes) -> None:
    terminal.data("init")
    told = context("claude", hook(terminal, "session-start", "claude", asked))
    assert "no name yet" in told
    assert hook(terminal, "stop", "claude", asked, ATB_AGENT="ada") is None


def test_input_is_read_for_a_bounded_time_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "INPUT_SECONDS", 0.01)
    reader, writer = os.pipe()
    with open(reader, "rb") as stream, open(writer, "wb", buffering=0) as there:
        assert hooks.read_input(stream) == {}  # nothing is written, and the pipe stays open
        there.write(b'{"session_id": "x"}')
        assert hooks.read_input(stream) == {"session_id": "x"}
        monkeypatch.setattr(hooks, "INPUT_BYTES", 4)
        there.write(b'{"a": ' + b" " * 100 + b"1}")
        assert hooks.read_input(stream) == {}
    assert hooks.read_input(None) == {}


def test_shells_of_a_session_learn_the_name_and_the_board_once(terminal: Terminal) -> None:
    file = terminal.directory / "env file"
    file.write_text("export X=1")
    asked = {"session_id": SESSION}
    board = str(terminal.directory / "it's a board")
    terminal.data("init", "--data-dir", board)
    environ = {"CLAUDE_ENV_FILE": str(file), "ATB_DATA_DIR": ""}
    terminal.data("--data-dir", board, "add", "Write the parser")
    for _ in range(2):
        terminal.atb("--data-dir", board, "prime", "--hook", "session-start", stdin=json.dumps(asked), **environ)
    assert file.read_text().splitlines() == [
        "export X=1",
        "export ATB_AGENT=claude-1f0c22d9",
        "export ATB_SESSION=1f0c22d9",
        f"export ATB_DATA_DIR={shlex.quote(board)}",
    ]
    before = file.read_text()
    hook(terminal, "session-start", "claude", asked, CLAUDE_ENV_FILE=str(file), ATB_AGENT="ada", ATB_DATA_DIR=board)
    hook(terminal, "session-start", "codex", asked, CLAUDE_ENV_FILE=str(file), ATB_DATA_DIR=board)
    hook(terminal, "stop", "claude", asked, CLAUDE_ENV_FILE=str(file), ATB_DATA_DIR=board)
    assert file.read_text() == before
    missing = str(terminal.directory / "missing" / "file")
    assert hook(terminal, "session-start", "claude", asked, CLAUDE_ENV_FILE=missing, ATB_DATA_DIR=board) is not None


@pytest.mark.parametrize("client", CLIENTS)
def test_agent_that_stops_with_a_lease_is_reminded_once(terminal: Terminal, client: str) -> None:
    terminal.add()
    asked = {"session_id": SESSION, "stop_hook_active": False, "loop_count": 0}
    assert hook(terminal, "stop", client, asked) is None
    task, token = terminal.claim(agent=f"{client}-1f0c22d9")
    answer = hook(terminal, "stop", client, asked)
    if client == "cursor":
        assert list(answer) == ["followup_message"]
    else:
        assert answer["decision"] == ("deny" if client == "gemini" else "block")
    reason = answer.get("reason") or answer["followup_message"]
    assert task[-6:] in reason
    assert token not in reason
    again = {"loop_count": 1} if client == "cursor" else {"stop_hook_active": True}
    assert hook(terminal, "stop", client, {**asked, **again}) is None
    assert hook(terminal, "stop", client, {**asked, "session_id": SESSION[::-1]}) is None
    terminal.task("complete", task, "--token", token)
    assert hook(terminal, "stop", client, asked) is None


def test_agent_whose_lease_ran_out_may_stop(terminal: Terminal) -> None:
    task = terminal.add()
    terminal.claim_long_ago(task, agent="claude-1f0c22d9")
    assert hook(terminal, "stop", "claude", {"session_id": SESSION}) is None


def test_agent_that_was_interrupted_may_stop(terminal: Terminal) -> None:
    terminal.add()
    terminal.claim(agent="cursor-1f0c22d9")
    assert hook(terminal, "stop", "cursor", {"session_id": SESSION, "status": "aborted"}) is None
    assert hook(terminal, "stop", "cursor", {"session_id": SESSION, "status": "completed"}) is not None


@pytest.mark.parametrize("name", ["session-start", "stop"])
def test_hook_that_cannot_work_says_nothing_and_fails_nobody(terminal: Terminal, name: str) -> None:
    asked = {"session_id": SESSION}
    terminal.write("atb.toml", "lease = ")
    assert hook(terminal, name, "claude", asked) is None
    (terminal.directory / "atb.toml").unlink()
    (terminal.directory / "data").mkdir()
    terminal.write("data/tasks.db", "this is no board, but long enough to be looked at" * 100)
    assert hook(terminal, name, "claude", asked) is None
    assert hook(terminal, name, "claude", asked, ATB_AGENT="none") is None
    quiet = terminal.atb("prime", "--hook", name, "--quiet", stdin=json.dumps(asked))
    assert (quiet.code, quiet.out, quiet.err) == (0, b"", "")


@pytest.mark.parametrize(
    "words",
    [
        ["prime", "--hook", "never"],
        ["prime", "--hook=stop", "--client", "emacs"],
        ["prime", "--hook", "stop", "--bogus"],
        ["prime", "--hook", "stop", "--format", "zzz"],
        ["--format", "zzz", "prime", "--hook", "stop"],
        ["--bogus", "prime", "--hook", "stop"],
        ["prime", "--hook", "stop", "--config", "missing.toml"],
        ["prime", "--hook", "session-start", "--data-dir", "/dev/null/x"],
        ["prime", "--hook"],
    ],
)
def test_hook_that_is_called_wrongly_tells_only_standard_error(terminal: Terminal, words: list[str]) -> None:
    asked = json.dumps({"session_id": SESSION})
    answer = terminal.atb(*words, stdin=asked)
    assert (answer.code, answer.out) == (0, b"")
    assert answer.err
    quiet = terminal.atb(*words, "--quiet", stdin=asked)
    assert (quiet.code, quiet.out, quiet.err) == (0, b"", "")


@pytest.mark.parametrize("variables", [{"ATB_FORMAT": "zzz"}, {"ATB_FORMAT": "table"}, {"ATB_FORMAT": "compact"}])
def test_format_that_the_environment_asks_for_is_nothing_to_a_hook(
    terminal: Terminal, variables: dict[str, str]
) -> None:
    terminal.data("init")
    asked = {"session_id": SESSION}
    assert hook(terminal, "stop", "claude", asked, **variables) is None
    assert "you: claude-1f0c22d9" in context("claude", hook(terminal, "session-start", "claude", asked, **variables))


@pytest.mark.parametrize(
    "variables", [{"ATB_DATA_DIR": "/dev/null/x"}, {"ATB_DATA_DIR": "a\nb"}, {"ATB_CONFIG": "missing.toml"}]
)
@pytest.mark.parametrize("name", ["session-start", "stop"])
def test_hook_of_a_board_that_cannot_be_says_nothing(terminal: Terminal, name: str, variables: dict[str, str]) -> None:
    assert hook(terminal, name, "claude", {"session_id": SESSION}, **variables) is None


def test_name_is_told_as_one_for_every_call(terminal: Terminal) -> None:
    terminal.add()
    terminal.claim(agent="codex-1f0c22d9")
    asked = {"session_id": SESSION}
    started = context("codex", hook(terminal, "session-start", "codex", asked))
    assert re.search(r"you: codex-1f0c22d9; .*`agent` in EVERY MCP call", started)
    assert "agent=codex-1f0c22d9 in EVERY MCP call" in hook(terminal, "stop", "codex", asked)["reason"]


def test_stop_without_a_board_makes_none(terminal: Terminal) -> None:
    assert hook(terminal, "stop", "claude", {"session_id": SESSION}) is None
    assert terminal.files() == set()
