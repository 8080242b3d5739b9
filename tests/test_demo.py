"""The demo, played once for real, and the example that it plays."""

from __future__ import annotations

import copy
import io
import json
import re
import signal
import subprocess
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board
from agent_task_board.demo import proof, run, script, stage
from agent_task_board.demo.screen import LiveScreen, Row, Screen, sentence
from agent_task_board.model import EVENT_KINDS, OUTCOMES
from tests.support import refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_task_board.model import Event, TaskDetails

EXAMPLE = Path(__file__).parent.parent / "examples" / "tasks.json"
PARSER = "Parse station files and reject broken ones"
FROZEN = next(title for title, incident in script.INCIDENTS.items() if incident.kind == "is frozen")
KILLED = next(title for title, incident in script.INCIDENTS.items() if incident.kind == "is killed")


class Played:
    """What is left of one performance."""

    def __init__(self, directory: Path) -> None:
        out = io.StringIO()
        self.started: list[subprocess.Popen[str]] = []
        with pytest.MonkeyPatch.context() as patch:
            remember_processes(patch, self.started)
            self.answer = run(str(directory), out=out, quiet=False)
        self.directory = directory
        self.text = out.getvalue()
        self.board = Board(directory, create=False)
        tasks = self.board.list_tasks(limit=1_000).tasks
        self.histories = {task.title: self.board.show(task.id) for task in tasks}
        self.events = self.board.events(limit=10_000)["events"]

    def outcomes(self, title: str) -> list[str | None]:
        return [attempt["outcome"] for attempt in self.histories[title]["attempts"]]

    def of_kind(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["kind"] == kind]


def remember_processes(patch: pytest.MonkeyPatch, started: list[subprocess.Popen[str]]) -> None:
    """Let a test see the processes that the demo starts."""

    def start(*args: Any, **options: Any) -> subprocess.Popen[str]:
        process: subprocess.Popen[str] = subprocess.Popen(*args, **options)
        started.append(process)
        return process

    seen = SimpleNamespace(**{**vars(subprocess), "Popen": start})
    patch.setattr(stage, "subprocess", seen)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    played = Played(tmp_path_factory.mktemp("demo") / "board")
    yield played
    played.board.close()


# The performance, as the board shows it


def test_every_task_is_done_by_one_completed_attempt_per_review_round(played: Played) -> None:
    returned = Counter(event["task_id"] for event in played.of_kind("rejected"))
    for history in played.histories.values():
        assert history["task"]["status"] == "done"
        completed = [attempt for attempt in history["attempts"] if attempt["outcome"] == "completed"]
        assert len(completed) == 1 + returned[history["task"]["id"]]
    assert len(played.histories) == played.answer["tasks"] == 25


def test_no_task_ever_had_two_holders(played: Played) -> None:
    for history in played.histories.values():
        for one, following in pairwise(history["attempts"]):
            assert one["ended_at"] is not None
            assert one["claimed_at"] <= one["ended_at"] <= following["claimed_at"]
            assert one["fence"] < following["fence"]


def test_several_agents_shared_the_work(played: Played) -> None:
    workers = {event["actor"] for event in played.of_kind("completed")}
    assert len(workers) >= 4
    assert {event["actor_kind"] for event in played.of_kind("completed")} == {"agent"}
    assert {agent["name"] for agent in played.answer["agents"]} == set(script.AGENTS)


def test_failed_work_got_another_attempt(played: Played) -> None:
    failing = [title for title, incident in script.INCIDENTS.items() if incident.kind in ("fails", "gives up")]
    assert len(failing) >= 2
    for title in failing:
        assert "failed" in played.outcomes(title)
        assert played.outcomes(title)[-1] == "completed"
    retried = [event["task_id"] for event in played.of_kind("retried")]
    assert played.histories["Set up staging"]["task"]["id"] in retried


def test_handed_over_work_was_completed_by_the_agent_it_was_for(played: Played) -> None:
    for title, incident in script.INCIDENTS.items():
        if incident.kind == "hands off":
            attempts = played.histories[title]["attempts"]
            giver = next(attempt for attempt in attempts if attempt["outcome"] == "handed_off")
            assert giver["note"] == incident.text
            assert attempts[-1]["agent"] == script.PARTNER[giver["agent"]]


def test_released_work_was_taken_up_again(played: Played) -> None:
    (title,) = [title for title, incident in script.INCIDENTS.items() if incident.kind == "releases"]
    assert "released" in played.outcomes(title)


def test_killed_agent_never_came_back_and_its_task_was_taken_over(played: Played) -> None:
    killed = [process for process in played.started if process.returncode == -signal.SIGKILL]
    assert len(killed) == 1
    first, last = played.histories[KILLED]["attempts"][0], played.histories[KILLED]["attempts"][-1]
    assert first["outcome"] == "expired"
    assert last["agent"] != first["agent"]
    end = max(attempt["claimed_at"] for attempt in attempts_of(played, first["agent"]))
    assert end == first["claimed_at"]


def attempts_of(played: Played, agent: str) -> list[Any]:
    return [
        attempt for history in played.histories.values() for attempt in history["attempts"] if attempt["agent"] == agent
    ]


def test_frozen_agent_was_refused_every_verb_after_the_takeover(played: Played) -> None:
    history = played.histories[FROZEN]
    stale, last = history["attempts"][0], history["attempts"][-1]
    assert stale["outcome"] == "expired"
    assert last["agent"] != stale["agent"]
    refusals = [one for one in played.answer["refusals"] if one["task"] == history["task"]["id"]]
    assert [one["verb"] for one in refusals] == ["heartbeat", "complete", "fail", "release", "handoff"]
    assert {one["agent"] for one in refusals} == {stale["agent"]}
    assert {one["code"] for one in refusals} == {"lease_lost"}


def test_person_approved_reviewed_work_and_returned_one_with_a_note(played: Played) -> None:
    by_person = [*played.of_kind("approved"), *played.of_kind("rejected"), *played.of_kind("retried")]
    assert {(event["actor"], event["actor_kind"]) for event in by_person} == {("reviewer", "human")}
    needing = {history["task"]["id"] for history in played.histories.values() if history["task"]["needs_approval"]}
    assert {event["task_id"] for event in played.of_kind("approved")} == needing
    (rejection,) = played.of_kind("rejected")
    heard = [
        event["data"]["note"]
        for event in played.of_kind("started")
        if event["task_id"] == rejection["task_id"] and "note" in event["data"]
    ]
    assert heard
    assert rejection["data"]["note"] in heard[0]


def test_answer_counts_the_attempts_of_the_board(played: Played) -> None:
    counted = Counter(str(outcome) for title in played.histories for outcome in played.outcomes(title))
    assert played.answer["attempts"] == {outcome: counted[outcome] for outcome in OUTCOMES}
    assert played.answer["directory"] == str(played.directory)
    assert set(played.answer) == {
        *("directory", "tasks", "agents", "attempts", "refusals", "seconds", "proof"),
    }
    json.dumps(played.answer)


def test_no_agent_outlives_the_demo(played: Played) -> None:
    assert len(played.started) == len(script.AGENTS)
    assert all(process.returncode is not None for process in played.started)


def test_every_event_is_reported_as_a_plain_line(played: Played) -> None:
    told = [event for event in played.events if event["kind"] != "imported"]
    titles = {history["task"]["id"]: title for title, history in played.histories.items()}
    lines = Counter(line.partition("s  ")[2] for line in played.text.splitlines())
    expected = Counter(sentence(event, titles[event["task_id"]]) for event in told)
    assert not expected - lines
    assert "\x1b" not in played.text


def test_output_ends_with_proof_refusals_and_how_to_look(played: Played) -> None:
    lines = played.text.splitlines()
    assert [line for line in lines if line.startswith("  - ")][: len(played.answer["proof"])] == [
        f"  - {one}" for one in played.answer["proof"]
    ]
    for one in played.answer["refusals"]:
        assert any(line.startswith(f"  - {one['agent']}, {one['verb']} ") for line in lines)
    assert lines[-1] == f"View the board: atb --data-dir {played.directory} list --format table"


# How it ends otherwise


def test_demo_refuses_a_directory_that_holds_a_board(board: Board, tmp_path: Path) -> None:
    board.add("somebody's own task")
    out = io.StringIO()
    with refused("invalid_input") as caught:
        run(str(tmp_path / "data"), out=out, quiet=False)
    assert "--data-dir" in caught.value.hint
    assert len(board.events()["events"]) == 1


def test_demo_gives_up_loudly_and_ends_its_agents_when_time_runs_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[str]] = []
    remember_processes(monkeypatch, started)
    monkeypatch.setattr(script, "LIMIT", 0.0)
    out = io.StringIO()
    with refused("internal"):
        run(str(tmp_path / "demo"), out=out, quiet=True)
    assert out.getvalue() == ""
    assert len(started) == len(script.AGENTS)
    assert all(process.returncode == -signal.SIGKILL for process in started)


def test_ctrl_c_ends_the_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(io.StringIO):
        def write(self, text: str) -> int:
            if "claims" in text:
                raise KeyboardInterrupt
            return super().write(text)

    started: list[subprocess.Popen[str]] = []
    remember_processes(monkeypatch, started)
    with pytest.raises(KeyboardInterrupt):
        run(str(tmp_path / "demo"), out=Interrupted(), quiet=False)
    assert all(process.returncode == -signal.SIGKILL for process in started)


def test_crash_of_an_agent_ends_the_demo_with_its_last_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[str]] = []
    remember_processes(monkeypatch, started)
    monkeypatch.setitem(script.AGENTS, "coder-2", ["x" * 101])  # no queue has so long a name
    with refused("internal") as caught:
        run(str(tmp_path / "demo"), out=io.StringIO(), quiet=True)
    assert "coder-2" in caught.value.message
    assert "InvalidInput" in caught.value.message
    assert all(process.returncode is not None for process in started)


# The proof can fail


@pytest.fixture
def evidence(played: Played) -> tuple[dict[str, TaskDetails], list[Event], list[script.Report]]:
    """Return a copy of the real evidence, the agents' reports rebuilt from it, for a test to tamper with."""
    ids = {history["task"]["id"]: history for history in played.histories.values()}
    reports = [
        script.Report(attempt["agent"], "completed", id_, attempt["fence"])
        for id_, history in ids.items()
        for attempt in history["attempts"]
        if attempt["outcome"] == "completed"
    ]
    for one in played.answer["refusals"]:
        fence = next(
            attempt["fence"]
            for attempt in ids[one["task"]]["attempts"]
            if (attempt["agent"], attempt["outcome"]) == (one["agent"], "expired")
        )
        reports.append(script.Report(one["agent"], "stale_call", one["task"], fence, one["verb"], one["code"]))
    return copy.deepcopy(played.histories), list(played.events), reports


Evidence = tuple[dict[str, Any], list[Any], list[script.Report]]


def leave_unfinished(evidence: Evidence) -> None:
    evidence[0][PARSER]["task"]["status"] = "queued"


def complete_twice(evidence: Evidence) -> None:
    evidence[0][PARSER]["attempts"][0]["outcome"] = "completed"


def forget_an_event(evidence: Evidence) -> None:
    evidence[1].remove(next(event for event in evidence[1] if event["kind"] == "completed"))


def leave_an_attempt_open(evidence: Evidence) -> None:
    evidence[0][PARSER]["attempts"][0].update(outcome=None, ended_at=None)


def overlap(evidence: Evidence) -> None:
    first, second = evidence[0][PARSER]["attempts"][:2]
    second["claimed_at"] = first["claimed_at"]


def repeat_a_fence(evidence: Evidence) -> None:
    first, second = evidence[0][PARSER]["attempts"][:2]
    first["fence"] = second["fence"]


def begin_early(evidence: Evidence) -> None:
    evidence[0][PARSER]["attempts"][0]["claimed_at"] = "2000-01-01T00:00:00.000+00:00"


def hide_a_completion(evidence: Evidence) -> None:
    evidence[2].remove(next(report for report in evidence[2] if report.kind == "completed"))


def accept_a_stale_holder(evidence: Evidence) -> None:
    place = next(place for place, report in enumerate(evidence[2]) if report.verb == "complete")
    evidence[2][place] = evidence[2][place]._replace(code=None)


def call_fewer_verbs(evidence: Evidence) -> None:
    evidence[2].remove(next(report for report in evidence[2] if report.verb == "handoff"))


def let_the_stale_attempt_count(evidence: Evidence) -> None:
    evidence[0][FROZEN]["attempts"][0]["outcome"] = "released"


def lose_no_lease(evidence: Evidence) -> None:
    evidence[2][:] = [report for report in evidence[2] if report.kind != "stale_call"]


def test_proof_holds_for_the_evidence_as_it_is(evidence: Evidence, played: Played) -> None:
    histories, events, reports = evidence
    assert proof.prove(list(histories.values()), events, reports) == played.answer["proof"]


@pytest.mark.parametrize(
    "tamper",
    [
        leave_unfinished,
        complete_twice,
        forget_an_event,
        leave_an_attempt_open,
        overlap,
        repeat_a_fence,
        begin_early,
        hide_a_completion,
        accept_a_stale_holder,
        call_fewer_verbs,
        let_the_stale_attempt_count,
        lose_no_lease,
    ],
    ids=lambda tamper: tamper.__name__,
)
def test_proof_fails_for_tampered_evidence(evidence: Evidence, tamper: Any) -> None:
    tamper(evidence)
    histories, events, reports = evidence
    with pytest.raises(proof.ProofFailed):
        proof.prove(list(histories.values()), events, reports)


# What is seen


class Terminal(io.StringIO):
    """A terminal of 80 by 24, as far as the screen can tell."""

    def isatty(self) -> bool:
        return True


COUNTS = dict.fromkeys(("queued", "claimed", "running", "review", "failed", "done"), 1)
ROWS = [Row("coder-1", "working", 40, "a title " * 20), Row("coder-2", "frozen")]


def test_table_is_redrawn_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    screen = LiveScreen(out)
    screen.show(ROWS, COUNTS)
    first = out.getvalue()
    screen.report("coder-2 is frozen")
    screen.show(ROWS, COUNTS)
    height = first.count("\n")
    second = out.getvalue()[len(first) :]
    assert second.startswith(f"\x1b[{height}F")
    assert second.count("\n") == height < 24
    assert "coder-2 is frozen" in second


def test_lines_of_the_table_fit_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    screen = LiveScreen(out)
    screen.report("long " * 40)
    screen.show(ROWS, COUNTS)
    lines = [re.sub(r"\x1b\[\d*[A-Z]", "", line) for line in out.getvalue().splitlines()]
    assert max(map(len, lines)) < 80


def test_no_color_leaves_only_the_redrawing(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured, plain = Terminal(), Terminal()
    LiveScreen(coloured).show(ROWS, COUNTS)
    monkeypatch.setenv("NO_COLOR", "1")
    LiveScreen(plain).show(ROWS, COUNTS)
    assert re.search(r"\x1b\[\d+m", coloured.getvalue())
    assert not re.search(r"\x1b\[\d*m", plain.getvalue())


def test_only_a_capable_terminal_gets_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[type[Screen]] = []

    def play(self: stage.Stage) -> dict[str, Any]:
        chosen.append(type(self.screen))
        return {}

    monkeypatch.setattr(stage.Stage, "play", play)
    for out, term in ((Terminal(), "xterm"), (Terminal(), "dumb"), (io.StringIO(), "xterm")):
        monkeypatch.setenv("TERM", term)
        run(str(tmp_path), out=out, quiet=False)
    assert chosen == [LiveScreen, Screen, Screen]


def test_every_kind_of_event_has_a_sentence() -> None:
    for kind in EVENT_KINDS:
        event: Event = {
            "seq": 1,
            "task_id": "01M6CY1AE0SH7Q41644HHJFCSY",
            "kind": kind,
            "actor": "coder-1",
            "actor_kind": "agent",
            "at": "2026-11-30T06:14:05.123+00:00",
            "data": {"changes": {"claimed_by": {"from": "coder-1", "to": None}}},
        }
        assert '"the title"' in sentence(event, "the title")


# The example


def example() -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = json.loads(EXAMPLE.read_text(encoding="utf-8"))["tasks"]
    return tasks


def test_example_imports_once_and_is_skipped_the_second_time(board: Board) -> None:
    first = board.import_tasks(script.example_tasks())
    assert (first.imported, first.skipped) == (25, 0)
    assert all(" waits for " in said or "dependencies" in said for said in first.warnings), first.warnings
    second = board.import_tasks(script.example_tasks())
    assert (second.imported, second.skipped, second.warnings) == (0, 25, [])


def test_demo_plays_the_example_of_the_project() -> None:
    assert script.example_tasks() == {"tasks": example()}


def test_example_has_several_levels_and_no_cycle() -> None:
    waits = {task["id"]: task.get("blocked_by", []) for task in example()}
    levels: dict[str, int] = {}
    while len(levels) < len(waits):
        level = [id_ for id_, others in waits.items() if id_ not in levels and levels.keys() >= set(others)]
        assert level, "what is left waits for itself"
        levels |= dict.fromkeys(level, max(levels.values(), default=0) + 1)
    assert max(levels.values()) >= 5


def test_example_uses_what_a_task_can_have() -> None:
    tasks = example()
    assert len({task["queue"] for task in tasks}) == 3
    assert len({task["priority"] for task in tasks}) > 5
    for field, least in (("needs_approval", 3), ("params", 5), ("dedupe_key", 2), ("max_attempts", 2), ("assignee", 1)):
        assert sum(field in task for task in tasks) >= least, field
    for task in tasks:
        assert len(task["body"]) > 100
        due = datetime.fromisoformat(task["due_at"])
        assert due.tzinfo is not None
        assert due.year >= 2027


def test_every_incident_and_rejection_names_a_task_of_the_example() -> None:
    tasks = {task["title"]: task for task in example()}
    assert script.INCIDENTS.keys() <= tasks.keys()
    assert {title for title in script.REJECTIONS if tasks[title]["needs_approval"]} == script.REJECTIONS.keys()
    served = {queue for queues in script.AGENTS.values() for queue in queues}
    assert {task["queue"] for task in tasks.values()} == served
    assert {task["assignee"] for task in tasks.values() if "assignee" in task} <= script.AGENTS.keys()
    for title, incident in script.INCIDENTS.items():
        serving = {agent for agent, queues in script.AGENTS.items() if tasks[title]["queue"] in queues}
        if incident.kind == "hands off":
            assert serving <= script.PARTNER.keys()
        if incident.kind in ("is killed", "is frozen"):
            assert len(serving) >= 3, "one killed and one frozen agent would leave nobody"
