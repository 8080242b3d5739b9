"""Hooks: what they receive, when and how often, and that neither a hook nor a kill does damage."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from agent_task_board import Board, Settings, config, instants
from agent_task_board.hooks import command as hooks
from agent_task_board.hooks import delivery, message, outbox, strays, webhook
from agent_task_board.settings import Hooks
from agent_task_board.storage import turnstile
from tests.command_line import Terminal
from tests.processes import Stage, exit_code, in_fork, kill_after, run_together
from tests.serving import process, serving
from tests.support import MARIA, Clock, bring_to, everything, hold, kinds, open_board, refused
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parent.parent
SECRET = "hush"

NOTE = """
import json, os, sys
told = {name: value for name, value in os.environ.items() if name.startswith("ATB_")}
line = json.dumps({"task": json.load(sys.stdin), "cwd": os.getcwd(), "environ": told})
with open(sys.argv[1], "a") as file:
    file.write(line + "\\n")
"""
"""A hook that appends what it received to a file."""


def noting(file: Path) -> list[str]:
    return [sys.executable, "-S", "-E", "-c", NOTE, str(file)]


def shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


def noted(file: Path) -> list[dict[str, Any]]:
    """Return what the hook has received so far."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def telling(directory: object, clock: Clock | None = None, **given: Any) -> Board:
    """Open a board with hooks."""
    board = open_board(directory, clock)
    board.settings.hooks = Hooks(**given)
    return board


def rows(board: Board, status: str | None = None) -> list[dict[str, Any]]:
    """Return the deliveries, the oldest first."""
    return outbox.deliveries(board, status=status)[::-1]


def results(board: Board, task: str) -> list[dict[str, Any]]:
    """Return the events of a task about delivery attempts, each with its kind."""
    events = board.events(task=task)["events"]
    return [{"kind": event["kind"], **event["data"]} for event in events if event["kind"].startswith("hook_")]


def is_alive(pid: int) -> bool:
    """Say whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.fixture
def told(tmp_path: Path) -> Path:
    return tmp_path / "told.jsonl"


@pytest.fixture
def board(tmp_path: Path, clock: Clock, told: Path) -> Iterator[Board]:
    """Return a board whose hook writes what it receives to ``told``."""
    with telling(tmp_path / "data", clock, command=noting(told)) as board:
        yield board


# What is queued


def test_without_hooks_nothing_is_written_down(tmp_path: Path) -> None:
    with open_board(tmp_path) as board:
        bring_to(board, "done")
        assert not board.has_pending_hooks
        assert rows(board) == []


def expire(board: Board, clock: Clock, **fields: Any) -> str:
    task = board.add("x", claim=True, agent="eve", lease="1m", **fields).task.id
    clock.advance(minutes=2)
    board.claim("ada", tags=["no such tag"])  # a sweep that delivers nothing
    return task


EVENTS: dict[str, Callable[[Board, Clock], str]] = {
    "done": lambda board, clock: bring_to(board, "done").id,
    "review": lambda board, clock: bring_to(board, "review").id,
    "failed": lambda board, clock: bring_to(board, "failed").id,
    "cancelled": lambda board, clock: bring_to(board, "cancelled").id,
    "expired": expire,
    "commented": lambda board, clock: board.comment(board.add("x").task.id, "a remark")["task_id"],
}


@pytest.mark.parametrize("event", config.HOOK_EVENTS)
def test_each_event_is_told_to_those_who_asked_for_it_and_to_nobody_else(
    event: str, tmp_path: Path, clock: Clock
) -> None:
    targets: dict[str, Any] = {"command": ["true"], "webhook": "http://127.0.0.1:1/"}
    with telling(tmp_path / "asked", clock, events=[event], **targets) as board:
        for name, bring in EVENTS.items():
            task = bring(board, clock)
            if name == event:
                asked = task
        found = rows(board)
        assert sorted((row["task_id"], row["told"], row["target"], row["status"]) for row in found) == [
            (asked, event, target, "pending") for target in sorted(targets)
        ]
        assert len({row["id"] for row in found}) == len(found)
        assert all(re.fullmatch("[0-9a-f]{32}", row["id"]) for row in found)
        assert board.has_pending_hooks


def test_lease_that_ran_out_for_the_last_time_is_told_as_expired_and_as_failed(tmp_path: Path, clock: Clock) -> None:
    # Without randomness: the ids still differ.
    board = Board(tmp_path, actor=MARIA, clock=clock, random=lambda length: b"\x01" * length)
    board.settings.hooks = Hooks(command=["true"], webhook="http://127.0.0.1:1/", events=["expired", "failed"])
    with board:
        expire(board, clock, max_attempts=1)
        assert sorted((row["told"], row["target"]) for row in rows(board)) == [
            ("expired", "command"), ("expired", "webhook"), ("failed", "command"), ("failed", "webhook"),
        ]  # fmt: skip


def test_making_importing_archiving_and_moving_on_tell_nothing(tmp_path: Path, clock: Clock) -> None:
    with telling(tmp_path, clock, command=["true"], events=config.HOOK_EVENTS) as board:
        board.import_tasks([{"title": "old", "status": "done"}, {"title": "new"}])
        held = hold(board)
        board.heartbeat(held.id, held.token, progress=5)
        board.release(held.id, held.token)
        board.archive(0)
        assert rows(board) == []


def test_refused_call_owes_nothing(board: Board) -> None:
    task = bring_to(board, "running")
    before = everything(board)
    with refused("lease_lost"):
        board.complete(task.id, "0" * 32)
    assert everything(board) == before


# A command


def test_command_gets_the_task_as_it_is_now_and_what_happened(
    board: Board, told: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ATB_TOKEN", "0123")
    monkeypatch.setenv("ATB_AGENT", "ada")
    monkeypatch.setenv("ATB_CONFIG", "board.toml")
    monkeypatch.chdir(tmp_path)
    task = bring_to(board, "done", body="zwölf")
    board.comment(task.id, "later")
    clock.advance(minutes=5)
    assert board.tick()["delivered"] == 1

    [row] = rows(board)
    [heard] = noted(told)
    assert heard["task"] == board.show(task.id)["task"]
    assert heard["cwd"] == str(tmp_path / "data")
    assert heard["environ"] == {
        "ATB_AGENT": "ada",
        "ATB_CONFIG": str(tmp_path / "board.toml"),
        "ATB_DATA_DIR": str(tmp_path / "data"),
        "ATB_DELIVERY": row["id"],
        "ATB_EVENT": "done",
        "ATB_EVENT_SEQ": str(row["event_seq"]),
        "ATB_TASK_ID": task.id,
    }
    assert (row["status"], row["attempts"], row["due_at"], row["error"]) == ("delivered", 1, None, None)
    [event] = [event for event in board.events(task=task.id)["events"] if event["kind"] == "hook_delivered"]
    assert (event["actor"], event["actor_kind"], event["at"]) == ("system", "system", instants.to_text(clock.now))
    assert event["data"] == {
        "delivery": row["id"], "target": "command", "told": "done", "attempt": 1, "exit": 0, "ended": True,
    }  # fmt: skip
    assert board.tick()["delivered"] == 0


def test_what_came_of_a_delivery_is_told_to_no_hook(tmp_path: Path, clock: Clock) -> None:
    with telling(tmp_path, clock, command=["true"], events=config.HOOK_EVENTS) as board:
        task = bring_to(board, "done")
        assert board.tick()["delivered"] == 1
        assert kinds(board, task.id)[-1] == "hook_delivered"
        assert len(rows(board)) == 1


@pytest.mark.parametrize(
    ("argv", "error", "exit_code"),
    [
        (["/nowhere/hook"], "cannot be started: /nowhere/hook: No such file", None),
        (["./plain.txt"], "cannot be started: ./plain.txt: Permission denied", None),
        (["./empty"], "cannot be started: ./empty: Exec format error", None),
        (shell("echo of no use; exit 3"), "exit code 3", 3),
        (shell("kill -USR1 $$"), f"ended by signal {int(signal.SIGUSR1)}", -int(signal.SIGUSR1)),
    ],
    ids=["missing", "not executable", "no program", "exit code", "signal"],
)
def test_command_that_fails_is_tried_again_and_undoes_nothing(
    argv: list[str], error: str, exit_code: int | None, tmp_path: Path, clock: Clock
) -> None:
    with telling(tmp_path, clock, command=argv) as board:
        (tmp_path / "plain.txt").write_text("echo\n", encoding="utf-8")
        (tmp_path / "empty").write_bytes(b"\x01\x02")
        (tmp_path / "empty").chmod(0o700)
        task = bring_to(board, "done")
        assert board.tick()["delivered"] == 0

        assert board.show(task.id)["task"]["status"] == "done"
        [row] = rows(board)
        assert (row["status"], row["attempts"]) == ("pending", 1)
        assert row["due_at"] == instants.to_text(clock.now + 30_000)
        assert row["error"].startswith(error)
        [result] = results(board, task.id)
        assert (result["kind"], result["error"], result.get("exit")) == ("hook_failed", row["error"], exit_code)
        assert (result["attempt"], result["ended"]) == (1, False)
        assert result.get("output") == ("of no use\n" if exit_code == 3 else None)


def test_argument_is_never_read_by_a_shell(tmp_path: Path, told: Path) -> None:
    with telling(tmp_path / "data", command=[*noting(told), "$(touch hacked); *"]) as board:
        bring_to(board, "done")
        assert board.tick()["delivered"] == 1
    assert not (tmp_path / "data" / "hacked").exists()


def test_hook_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "LIMIT", 0.5)
    monkeypatch.setattr(hooks, "GRACE", 0.2)
    stubborn = "trap '' TERM; sleep 600 & echo $! >> pids; echo $$ >> pids; wait; sleep 600"
    with telling(tmp_path, clock, command=shell(f"({stubborn}) & echo $$ >> pids; echo waiting; wait")) as board:
        task = bring_to(board, "done")
        assert board.tick()["delivered"] == 0
        [result] = results(board, task.id)
    assert (result["kind"], result["output"]) == ("hook_failed", "waiting\n")
    assert "timed out" in result["error"]
    pids = [int(pid) for pid in (tmp_path / "pids").read_text(encoding="utf-8").split()]
    assert len(pids) == 3
    eventually(lambda: not any(map(is_alive, pids)), "the end of the hook and its children")


class Stray(NamedTuple):
    """A command whose deliverer is gone, and the delivery that started it."""

    process: subprocess.Popen[bytes]
    delivery: str


@pytest.fixture
def stray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Board, Stray]]:
    """Return a board with a delivery whose command runs on: what SIGKILL leaves of its deliverer."""
    monkeypatch.setattr(hooks, "LIMIT", 0.0)
    monkeypatch.setattr(hooks, "GRACE", 0.1)
    with telling(tmp_path, command=["true"]) as board:
        bring_to(board, "done")
        assert board.settings.hooks is not None
        delivery = outbox.reserve(board, board.settings.hooks)
        assert delivery is not None
        environ = {**os.environ, "ATB_DELIVERY": delivery.id}
        process = subprocess.Popen(["sleep", "600"], env=environ, start_new_session=True)
        strays.remember(board, delivery.id, process.pid)
        yield board, Stray(process, delivery.id)
        process.kill()
        process.wait()


def test_command_of_a_killed_deliverer_is_ended_by_the_next_tick(stray: tuple[Board, Stray]) -> None:
    board, (process, _) = stray

    def has_ended() -> bool:
        board.tick()
        return process.poll() is not None

    eventually(has_ended, "the end of the command that runs on")
    board.tick()
    assert all(row[-1] is None for row in everything(board)["outbox"])


@pytest.mark.parametrize("what", ["start", "boot", "delivery", "nonsense"])
def test_process_that_only_has_the_same_id_is_not_touched(what: str, stray: tuple[Board, Stray]) -> None:
    board, (process, _) = stray
    boot, pid, start = everything(board)["outbox"][0][-1].split()
    other = {
        "start": f"{boot} {pid} {int(start) + 1}",
        "boot": f"{boot[::-1]} {pid} {start}",
        "delivery": f"{boot} {pid} {start}",
        "nonsense": "x",
    }[what]
    with board.database.write() as tx:
        tx.execute("UPDATE outbox SET process = ?", (other,))
        if what == "delivery":
            tx.execute("UPDATE outbox SET id = 'another'")
    eventually(lambda: board.tick() and everything(board)["outbox"][0][-1] is None, "a look at the process")
    assert process.poll() is None


def test_delivery_to_a_target_that_is_gone_is_given_up_after_a_day(tmp_path: Path, clock: Clock) -> None:
    with telling(tmp_path, clock, webhook="http://127.0.0.1:1/", events=["done"]) as board:
        task = bring_to(board, "done")
        board.settings.hooks = Hooks(command=["true"], events=["done"])
        clock.advance(days=1, seconds=-1)
        said: list[str] = []
        board.tick(warnings=said)
        assert (said, results(board, task.id)) == ([], [])
        clock.advance(seconds=1)
        board.tick(warnings=said)
        assert ["1 hook notification given up" in sentence for sentence in said] == [True]
        [result] = results(board, task.id)
        assert (result["kind"], result["ended"]) == ("hook_failed", True)
        assert [one["status"] for one in outbox.deliveries(board)] == ["failed"]
        board.tick(warnings=said)
        assert len(said) == 1


def test_hook_that_ends_on_request_has_time_to_tidy_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "LIMIT", 0.5)
    monkeypatch.setattr(hooks, "GRACE", 60.0)
    with telling(tmp_path, command=shell("trap 'touch tidy; exit 0' TERM; sleep 600 & wait")) as board:
        bring_to(board, "done")
        assert board.tick()["delivered"] == 0  # it succeeded, but too late
    assert (tmp_path / "tidy").exists()


def test_child_left_behind_with_the_pipe_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "LIMIT", 60.0)
    with telling(tmp_path, command=shell("sleep 600 & echo $! > pid; echo said")) as board:
        task = bring_to(board, "done")
        assert board.tick()["delivered"] == 1
        assert results(board, task.id)[0]["output"] == "said\n"
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)


def test_flood_of_output_is_bounded_and_its_end_is_told(tmp_path: Path) -> None:
    script = "import sys; sys.stdout.write('x' * 3_000_000 + '\\033[31m\\0' + 'y' * 1_990); sys.exit(1)"
    with telling(tmp_path, command=[sys.executable, "-S", "-c", script]) as board:
        task = bring_to(board, "done")
        board.tick()
        [result] = results(board, task.id)
    assert result["exit"] == 1
    assert result["output"] == r"[31m\u0000" + "y" * 1_990


def test_endless_flood_is_ended_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "LIMIT", 0.5)
    kept: list[int] = []
    make = message.Outcome.__init__

    def noting_size(self: message.Outcome, error: str | None = None, *, output: bytes = b"", **more: Any) -> None:
        kept.append(len(output))
        make(self, error, output=output, **more)

    monkeypatch.setattr(message.Outcome, "__init__", noting_size)
    with telling(tmp_path, command=["yes"]) as board:
        bring_to(board, "done")
        assert board.tick()["delivered"] == 0
    assert kept == [message.OUTPUT]


def test_hook_that_does_not_read_a_large_task_is_delivered(tmp_path: Path) -> None:
    with telling(tmp_path, command=["true"]) as board:
        bring_to(board, "done", params={"x": "y" * 1_000_000})
        assert board.tick()["delivered"] == 1


# Attempts


def test_attempts_wait_longer_each_time_and_come_to_an_end(tmp_path: Path, clock: Clock) -> None:
    with telling(tmp_path, clock, command=["false"]) as board:
        task = bring_to(board, "done")
        waits = []
        while row := next(iter(rows(board, "pending")), None):
            waits.append((instants.from_text(row["due_at"]) - clock.now) // 1_000)
            clock.now = instants.from_text(row["due_at"])
            assert board.tick()["delivered"] == 0
        assert waits == [0, 30, 60, 120, 240, 480, 960, 1_920]
        [row] = rows(board)
        assert (row["status"], row["attempts"], row["due_at"]) == ("failed", 8, None)
        found = results(board, task.id)
        assert [one["attempt"] for one in found] == list(range(1, 9))
        assert [one["ended"] for one in found] == [False] * 7 + [True]
        assert {one["kind"] for one in found} == {"hook_failed"}
        clock.advance(days=1)
        board.tick()
        assert len(results(board, task.id)) == 8


def test_tick_makes_some_attempts_and_leaves_the_rest_to_the_next(
    board: Board, told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        bring_to(board, "done")
    monkeypatch.setattr(delivery, "PER_TICK", 2)
    assert [board.tick()["delivered"] for _ in range(4)] == [2, 2, 1, 0]
    assert len(noted(told)) == 5


def test_tick_begins_no_attempt_when_its_time_is_up(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    bring_to(board, "done")
    monkeypatch.setattr(delivery, "SECONDS", 0.0)
    assert board.tick()["delivered"] == 0
    assert rows(board)[0]["attempts"] == 0


def test_target_that_is_not_configured_any_more_is_left_waiting(tmp_path: Path, clock: Clock) -> None:
    with telling(tmp_path, clock, command=["true"], webhook="http://127.0.0.1:1/") as board:
        bring_to(board, "done")
        board.settings.hooks = Hooks(command=["true"])
        assert board.tick()["delivered"] == 1
        assert [(row["target"], row["attempts"]) for row in rows(board, "pending")] == [("webhook", 0)]
        board.settings.hooks = None
        assert board.tick()["delivered"] == 0


def test_idle_tick_does_not_search_what_was_delivered(board: Board) -> None:
    seen: list[str] = []
    bring_to(board, "done")
    board.tick()
    with board.database.read() as tx:
        connection = tx
    connection.set_trace_callback(seen.append)
    assert delivery.deliver_due(board) == 0
    connection.set_trace_callback(None)
    asked = [statement for statement in seen if "outbox" in statement]
    assert len(asked) == 4
    for statement in asked:
        plan = " ".join(row["detail"] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}"))
        assert "SEARCH outbox USING" in plan or "outbox_process" in plan, plan
        assert re.search(r"outbox_(due|ended|process)", plan), plan


def test_deliveries_are_forgotten_a_week_after_their_end(board: Board, clock: Clock, tmp_path: Path) -> None:
    bring_to(board, "done")
    board.tick()
    board.settings.hooks = Hooks(webhook="http://127.0.0.1:1/")
    bring_to(board, "done")
    clock.advance(days=6)
    board.settings.hooks = None
    board.tick()
    assert [row["status"] for row in rows(board)] == ["delivered", "failed"]
    clock.advance(days=1)
    board.tick()
    assert [row["status"] for row in rows(board)] == ["failed"]


# Kills and concurrency


def complete_and_die(directory: str, file: str) -> None:
    with telling(directory, command=noting(Path(file))) as board:
        bring_to(board, "done")


def test_kill_between_the_change_and_its_delivery_loses_nothing(tmp_path: Path, told: Path) -> None:
    kill_after(complete_and_die, str(tmp_path / "data"), str(told))
    assert noted(told) == []
    with telling(tmp_path / "data", command=noting(told)) as board:
        assert board.tick()["delivered"] == 1
        assert [one["environ"]["ATB_DELIVERY"] for one in noted(told)] == [rows(board)[0]["id"]]


def deliver_and_be_killed(directory: str) -> int:
    """Let a hook kill the process that runs it; return how that ended."""

    def deliver() -> None:
        with telling(directory, command=shell('echo "$ATB_DELIVERY" >> told; kill -9 $PPID')) as board:
            board.tick()

    return exit_code(in_fork(deliver))


def test_kill_during_a_delivery_has_it_made_again_once_its_time_is_over(tmp_path: Path, clock: Clock) -> None:
    with telling(tmp_path, command=["true"]) as board:
        task = bring_to(board, "done")
    with Stage() as stage:
        assert stage.call(deliver_and_be_killed, str(tmp_path)) == -signal.SIGKILL
    clock.now = instants.now()
    with telling(tmp_path, clock, command=shell('echo "$ATB_DELIVERY" >> told')) as board:
        [row] = rows(board)
        assert (row["status"], row["attempts"]) == ("pending", 1)
        assert board.tick()["delivered"] == 0  # another process may be delivering it
        with refused("conflict", "status"):
            outbox.retry(board, row["id"])
        assert outbox.retry(board) == 0
        clock.advance(minutes=2)
        assert board.tick()["delivered"] == 1
        assert (tmp_path / "told").read_text(encoding="utf-8").split() == [row["id"]] * 2
        assert [(one["kind"], one["attempt"]) for one in results(board, task.id)] == [("hook_delivered", 2)]


def test_delivery_whose_last_attempt_was_killed_is_given_up(tmp_path: Path, clock: Clock) -> None:
    with telling(tmp_path, clock, command=["false"]) as board:
        task = bring_to(board, "done")
        with board.database.write() as tx:
            tx.execute("UPDATE outbox SET attempts = 8")
        assert board.tick()["delivered"] == 0
        [row] = rows(board)
        assert (row["status"], row["attempts"], row["due_at"]) == ("failed", 8, None)
        [result] = results(board, task.id)
        assert (result["kind"], result["attempt"], result["ended"]) == ("hook_failed", 8, True)


def test_late_failure_does_not_disturb_who_has_the_row_now(tmp_path: Path, clock: Clock) -> None:
    with telling(tmp_path, clock, command=["true"]) as board:
        task = bring_to(board, "done")
        assert board.settings.hooks is not None
        first = outbox.reserve(board, board.settings.hooks)
        clock.advance(minutes=2)
        second = outbox.reserve(board, board.settings.hooks)
        assert first is not None
        assert second is not None
        outbox.record_outcome(board, first, message.Outcome("exit code 1", code=1))
        [row] = rows(board)
        assert (row["status"], row["attempts"], row["error"]) == ("pending", 2, None)
        assert outbox.reserve(board, board.settings.hooks) is None
        outbox.record_outcome(board, second, message.Outcome(code=0))
        assert rows(board)[0]["status"] == "delivered"
        assert [one["attempt"] for one in results(board, task.id)] == [1, 2]


def tick_until_idle(directory: str, file: str) -> int:
    with telling(directory, command=noting(Path(file))) as board:
        delivered = 0
        while made := board.tick()["delivered"]:
            delivered += made
        return delivered


def test_ticks_at_once_make_each_delivery_once(tmp_path: Path, told: Path) -> None:
    with telling(tmp_path / "data", command=noting(told)) as board:
        for _ in range(12):
            bring_to(board, "done")
        wanted = {row["id"] for row in rows(board)}
    counts = run_together(tick_until_idle, [(str(tmp_path / "data"), str(told))] * 3)
    assert sum(counts) == 12
    heard = [one["environ"]["ATB_DELIVERY"] for one in noted(told)]
    assert len(heard) == 12
    assert set(heard) == wanted


def hold_all_places(directory: str) -> None:
    """Deliver from as many processes as may, each in a hook that waits for a file."""
    waiting = shell("touch running.$ATB_DELIVERY; until test -e go; do sleep 0.01; done")
    with telling(directory, command=waiting) as board:
        assert delivery.deliver_all(board) > 0


def test_only_a_few_processes_deliver_at_once_and_none_is_forgotten(tmp_path: Path) -> None:
    with telling(tmp_path, command=["true"]) as board:
        for _ in range(delivery.AT_ONCE):
            bring_to(board, "done")
        failed: list[BaseException] = []

        def hold_on() -> None:
            try:
                run_together(hold_all_places, [(str(tmp_path),)] * delivery.AT_ONCE)
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=hold_on)
        thread.start()
        try:
            eventually(
                lambda: failed or len(list(tmp_path.glob("running.*"))) == delivery.AT_ONCE, "four hooks at once"
            )
            bring_to(board, "done")
            assert delivery.deliver_all(board) == 0  # no free slot: others deliver it
            assert rows(board)[-1]["attempts"] == 0
        finally:
            (tmp_path / "go").touch()
            thread.join()
        assert failed == []
        assert {row["status"] for row in rows(board)} == {"delivered"}
        assert len(rows(board)) == delivery.AT_ONCE + 1


# The command line


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def configure(terminal: Terminal, text: str) -> None:
    terminal.environ["ATB_CONFIG"] = str(terminal.directory / terminal.write("board.toml", f"[hooks]\n{text}"))


def of_command(argv: list[str]) -> str:
    return f"enabled = true\ncommand = {json.dumps(argv)}\n"


def pipe_to_wait_on(directory: Path) -> str:
    """Create a named pipe: a hook that reads from it hangs until something is written."""
    path = directory / "gate"
    os.mkfifo(path)
    return str(path)


def let_through(gate: str) -> None:
    """Write to a named pipe once a hook reads from it."""

    def write() -> bool:
        try:
            file = os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # no reader yet
            return False
        os.write(file, b"let through\n")
        os.close(file)
        return True

    eventually(write, "a hook that waits")


def test_caller_has_its_answer_and_every_pipe_closed_while_the_hook_still_runs(
    terminal: Terminal, tmp_path: Path
) -> None:
    gate = pipe_to_wait_on(tmp_path)
    configure(terminal, of_command(shell(f"read line < {gate}; echo $line > {tmp_path}/told; exit 0")))
    task = terminal.add()
    task, token = terminal.claim()
    ours, theirs = os.pipe()
    done = subprocess.run(
        [sys.executable, "-m", "agent_task_board", "complete", task, "--token", token],
        cwd=tmp_path,
        env=terminal.environ,
        capture_output=True,  # returns when the last writer of these pipes has closed them
        stdin=subprocess.PIPE,
        pass_fds=[theirs],
        timeout=60,
    )
    os.close(theirs)
    assert os.read(ours, 1) == b""  # a descriptor that only the caller knows is not kept open either
    os.close(ours)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["data"]["task"]["status"] == "done"
    assert not (tmp_path / "told").exists()
    let_through(gate)
    eventually(lambda: terminal.data("hooks", "list", "--status", "delivered")["deliveries"], "the delivery")
    assert (tmp_path / "told").read_text(encoding="utf-8") == "let through\n"
    assert terminal.data("events", "--task", task)["events"][-1]["kind"] == "hook_delivered"


def test_detached_process_has_no_terminal_no_token_and_leads_no_session_of_ours(
    terminal: Terminal, tmp_path: Path
) -> None:
    script = f"ps -o sid= -p $PPID > {tmp_path}/sid.new; env > {tmp_path}/env.new; mv sid.new sid; mv env.new env"
    configure(terminal, of_command(shell(f"cd {tmp_path}; {script}")))
    task = terminal.add()
    task, token = terminal.claim()
    answer = terminal.process("complete", task, ATB_TOKEN=token)
    assert answer.data["task"]["status"] == "done"
    eventually((tmp_path / "env").exists, "the hook")
    assert token not in (tmp_path / "env").read_text(encoding="utf-8")
    assert int((tmp_path / "sid").read_text(encoding="utf-8")) != os.getsid(0)
    eventually(lambda: terminal.data("hooks", "list", "--status", "delivered")["deliveries"], "the delivery")


def test_module_of_the_working_directory_is_not_run_by_the_detached_process(terminal: Terminal, tmp_path: Path) -> None:
    configure(terminal, of_command(["true"]))
    terminal.write("tempfile.py", f"open({str(tmp_path / 'hacked')!r}, 'w')\n")
    task = terminal.add()
    task, token = terminal.claim()
    program = "import sys; sys.path.pop(0); from agent_task_board.cli import run; run()"
    answer = terminal.process("complete", task, "--token", token, code=program)
    assert answer.data["task"]["status"] == "done"
    eventually(lambda: terminal.data("hooks", "list", "--status", "delivered")["deliveries"], "the delivery")
    assert not (tmp_path / "hacked").exists()


def test_command_that_owes_nothing_starts_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent_task_board.cli import detached

    started: list[str] = []
    monkeypatch.setattr(detached, "deliver", lambda found: started.append(found.data_dir))
    configure(terminal, of_command(["true"]))
    task = terminal.add()
    task, token = terminal.claim()
    terminal.data("heartbeat", task, "--token", token)
    terminal.data("list")
    assert started == []
    terminal.data("complete", task, "--token", token)
    assert started == [str(terminal.directory / "data")]
    terminal.data("tick")  # a tick delivers, too
    assert len(started) == 1


def test_sweep_of_a_claim_that_found_nothing_is_told_all_the_same(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_task_board.cli import detached

    started: list[str] = []
    monkeypatch.setattr(detached, "deliver", lambda found: started.append(found.data_dir))
    configure(terminal, of_command(["true"]) + 'events = ["expired"]\n')
    terminal.claim_long_ago(terminal.add("Write the parser", "--assignee", "eve"), agent="eve")
    terminal.refused("empty", "claim", "--agent", "ada", "--fail-empty")
    assert len(started) == 1


def test_hook_that_calls_the_board_is_not_told_of_its_own_calls(terminal: Terminal, tmp_path: Path) -> None:
    call = f"{sys.executable} -m agent_task_board comment $ATB_TASK_ID 'told' --config {tmp_path}/board.toml"
    events = f"""events = {json.dumps(["done", "commented"])}\n"""
    configure(terminal, of_command(shell(call)) + events)
    task = terminal.add()
    task, token = terminal.claim()
    terminal.process("complete", task, "--token", token)
    eventually(lambda: terminal.data("hooks", "list", "--status", "delivered")["deliveries"], "the delivery")
    kinds = [event["kind"] for event in terminal.data("events", "--task", task)["events"]]
    assert kinds == ["created", "claimed", "completed", "commented", "hook_delivered"]
    assert len(terminal.data("hooks", "list")["deliveries"]) == 1
    assert terminal.atb("hooks", "list", ATB_DELIVERY="0").data["targets"] == []
    assert len(terminal.atb("hooks", "list", ATB_DELIVERY="0").warnings) == 1


def failing(terminal: Terminal) -> dict[str, Any]:
    """Leave a delivery that failed once, and return it."""
    configure(terminal, of_command(["false"]))
    terminal.add()
    task, token = terminal.claim()
    with patched_start():
        terminal.data("complete", task, "--token", token)
    assert terminal.data("tick")["delivered"] == 0
    [row] = terminal.data("hooks", "list")["deliveries"]
    return dict(row)


@contextlib.contextmanager
def patched_start() -> Iterator[list[str]]:
    """Start no detached processes inside the block; yield the calls that would have started one."""
    from unittest.mock import patch

    from agent_task_board.cli import detached

    started: list[str] = []
    with patch.object(detached, "deliver", lambda found: started.append(found.data_dir)):
        yield started


def test_list_tells_who_is_told_and_what_was_without_secrets(terminal: Terminal) -> None:
    configure(
        terminal,
        f'enabled = true\ncommand = ["false", "s3cret"]\nwebhook_url = "http://127.0.0.1:1/s3cret?key=s3cret"\n'
        f'webhook_secret = "{SECRET}"\nallow_network = true\n',
    )
    terminal.add()
    task, token = terminal.claim()
    with patched_start():
        terminal.data("complete", task, "--token", token)
    terminal.data("tick")
    answer = terminal.atb("hooks", "list")
    assert answer.data["targets"] == [
        {"target": "command", "to": "false"},
        {"target": "webhook", "to": "http://127.0.0.1:1"},
    ]
    assert {row["task_id"] for row in answer.data["deliveries"]} == {task}
    assert [sorted(row) for row in answer.data["deliveries"]] == [
        sorted("id task_id event_seq told target status attempts due_at error created_at ended_at".split())
    ] * 2
    everything_said = [answer.text, terminal.atb("hooks", "list", "--format", "table").text, *terminal.snapshot()]
    for text in everything_said:
        assert "s3cret" not in text
        assert SECRET not in text
    assert len(terminal.data("hooks", "list", "--limit", "1")["deliveries"]) == 1
    assert terminal.data("hooks", "list", "--status", "delivered")["deliveries"] == []


def test_retry_makes_a_delivery_due_with_all_its_attempts(terminal: Terminal) -> None:
    row = failing(terminal)
    assert (row["attempts"], row["status"]) == (1, "pending")
    with patched_start() as started:
        assert terminal.data("hooks", "retry", row["id"].upper()) == {"retried": 1}
    assert len(started) == 1
    [again] = terminal.data("hooks", "list")["deliveries"]
    assert (again["attempts"], again["status"], again["error"]) == (0, "pending", None)
    configure(terminal, of_command(["true"]))
    assert terminal.data("hooks", "deliver") == {"delivered": 1}
    with patched_start() as started:
        assert terminal.data("hooks", "retry", "--all") == {"retried": 0}
    assert started == []
    terminal.refused("conflict", "hooks", "retry", row["id"])
    terminal.refused("not_found", "hooks", "retry", "0" * 32)


def test_test_tells_each_target_at_once_and_writes_nothing_down(terminal: Terminal, told: Path) -> None:
    configure(
        terminal,
        of_command(noting(told)) + 'webhook_url = "http://127.0.0.1:1/"\nallow_network = true\n',
    )
    task = terminal.add()
    before = terminal.snapshot()
    for words in ([], ["--task", task]):
        found = terminal.data("hooks", "test", *words)
        command, address = found["results"]
        assert (command["target"], command["delivered"], command["exit"]) == ("command", True, 0)
        assert (address["target"], address["delivered"]) == ("webhook", False)
        assert address["error"] == "Connection refused"
        heard = noted(told)[-1]
        assert heard["environ"]["ATB_DELIVERY"] == found["delivery"]
        assert heard["environ"]["ATB_EVENT"] == "test"
        assert heard["task"]["id"] == (task if words else "0" * 26)
        assert list(heard["task"]) == list(terminal.data("show", task)["task"])
    assert terminal.snapshot() == before
    terminal.refused("not_found", "hooks", "test", "--task", "0" * 26)
    assert "delivered" in terminal.atb("hooks", "test", "--format", "table").text


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("", 1),
        ('command = ["true"]', 1),
        ("enabled = true", 1),
        ('enabled = true\nwebhook_url = "http://127.0.0.1:1/"', 1),
    ],
)
def test_hooks_that_cannot_work_are_told_in_list_and_refused_by_test(
    terminal: Terminal, text: str, warnings: int
) -> None:
    configure(terminal, text)
    terminal.add()
    answer = terminal.atb("hooks", "list")
    assert (answer.data, len(answer.warnings)) == ({"targets": [], "deliveries": []}, warnings)
    answer = terminal.atb("hooks", "test")
    assert (answer.error["code"], len(answer.warnings)) == ("invalid_input", warnings)


def test_address_without_permission_for_the_network_is_never_called(terminal: Terminal) -> None:
    terminal.data("init")
    with receiver() as (url, heard):
        configure(terminal, f'enabled = true\ncommand = ["true"]\nwebhook_url = "{url}"\n')
        assert [one["target"] for one in terminal.data("hooks", "test")["results"]] == ["command"]
        assert "allow_network" in terminal.atb("hooks", "list").warnings[0]
        terminal.add()
        task, token = terminal.claim()
        with patched_start():
            terminal.data("complete", task, "--token", token)
        assert terminal.data("tick")["delivered"] == 1
    assert heard == []


@pytest.mark.parametrize(
    "words",
    [
        ["retry"],
        ["retry", "0" * 32, "--all"],
        ["list", "0" * 32],
        ["list", "--all"],
        ["list", "--status", "lost"],
        ["list", "--limit", "0"],
        ["test", "--status", "failed"],
        ["retry", "--all", "--limit", "1"],
        ["deliver", "--task", "0" * 26],
        ["send"],
        [],
    ],
    ids=" ".join,
)
def test_words_that_do_not_go_together_are_refused(terminal: Terminal, words: list[str]) -> None:
    terminal.data("init")
    configure(terminal, of_command(["true"]))
    terminal.refused("invalid_input", "hooks", *words)


def test_where_no_board_is_nothing_is_made_and_the_answer_says_so(terminal: Terminal) -> None:
    configure(terminal, of_command(["true"]))
    for words in (["list"], ["deliver"], ["retry", "--all"], ["retry", "0" * 32], ["test"]):
        assert "no board" in terminal.refused("not_found", "hooks", *words)["message"]
    assert terminal.files() == {"board.toml"}


def test_board_that_cannot_be_written_is_listed_and_nothing_else(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = failing(terminal)
    before = terminal.snapshot()
    monkeypatch.setattr(os, "access", lambda *_: False)  # root can write everywhere
    assert terminal.data("hooks", "list")["deliveries"][0]["id"] == row["id"]
    terminal.refused("unusable", "hooks", "retry", "--all")
    assert terminal.snapshot() == before


# Servers


def test_server_delivers_in_a_thread_after_its_answer(tmp_path: Path, told: Path) -> None:
    gate = pipe_to_wait_on(tmp_path)
    with serving(tmp_path / "data") as server, server.client() as client:
        server.board.settings.hooks = Hooks(command=shell(f"read line < {gate}; cat > {told}"))
        made = client.data("POST", "/api/tasks", {"title": "x", "claim": True, "agent": "ada"})
        route = f"/api/tasks/{made['task']['id']}"
        done = client.data("POST", f"{route}/complete", {"token": made["lease"]["token"]})
        assert done["task"]["status"] == "done"  # answered, and the next one too, while the hook hangs
        assert client.data("POST", f"{route}/comments", {"text": "thanks"})
        assert not told.exists()
        let_through(gate)
        eventually(lambda: rows(server.board, "delivered"), "the delivery")
        eventually(lambda: not delivery._threads, "the end of the thread")
    assert json.loads(told.read_text(encoding="utf-8"))["status"] == "done"


def test_server_that_starts_delivers_what_was_left(tmp_path: Path, told: Path) -> None:
    with telling(tmp_path / "data", command=noting(told)) as board:
        bring_to(board, "done")
    text = f"[hooks]\n{of_command(noting(told))}"
    (tmp_path / "board.toml").write_text(text, encoding="utf-8")
    with process(tmp_path / "data", "--config", str(tmp_path / "board.toml")):
        eventually(lambda: noted(told), "the hook")
        with open_board(tmp_path / "data") as board:
            eventually(lambda: rows(board, "delivered"), "the delivery")


def test_read_only_server_delivers_nothing(tmp_path: Path, told: Path) -> None:
    with telling(tmp_path / "data", command=noting(told)) as board:
        bring_to(board, "done")
    with serving(tmp_path / "data", read_only=True) as server, server.client() as client:
        server.board.settings.hooks = Hooks(command=noting(told))
        client.refused("not_permitted", "POST", "/api/tasks", {"title": "x"})
        assert delivery._threads == {}
    assert noted(told) == []


def test_thread_tries_again_when_an_attempt_comes_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "BACKOFF", 50)
    with telling(tmp_path, command=shell("test -e second || { touch second; exit 1; }")) as board:
        task = bring_to(board, "done")
        delivery.deliver_soon(board)
        delivery.deliver_soon(board)
        eventually(lambda: rows(board, "delivered"), "the second attempt")
        eventually(lambda: not delivery._threads, "the end of the thread")
        assert [one["kind"] for one in results(board, task.id)] == ["hook_failed", "hook_delivered"]


def test_thread_that_finds_the_board_busy_does_no_harm(
    tmp_path: Path, told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turnstile, "PATIENCE", 0.1)
    board = Board(tmp_path / "data", actor=MARIA, settings=Settings(busy_timeout=0))
    with board:
        board.settings.hooks = Hooks(command=noting(told))
        bring_to(board, "done")
        with open_board(tmp_path / "data").database.write():
            delivery.deliver_soon(board)
            eventually(lambda: not delivery._threads, "the end of the thread")
        delivery.deliver_soon(board)
        eventually(lambda: rows(board, "delivered"), "the delivery")
        eventually(lambda: not delivery._threads, "the end of the thread")


# Webhooks


Reply = tuple[int, dict[str, str], bytes]


@contextlib.contextmanager
def receiver(*replies: Reply) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve replies in order and repeat the last one; yield the URL and the requests received."""
    heard: list[dict[str, Any]] = []
    left = list(replies) or [(204, {}, b"")]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.append({"path": self.path, "headers": dict(self.headers), "body": body})
            status, fields, said = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status)
            for name, value in {"Content-Length": str(len(said)), **fields}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/hook", heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_address_gets_a_signed_message(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1/")  # it is not used
    with receiver() as (url, heard), telling(tmp_path, clock, webhook=f"{url}?a=b", secret=SECRET) as board:
        task = bring_to(board, "done", body="zwölf")
        assert board.tick()["delivered"] == 1
        [row] = rows(board)
        [one] = heard
        sent = json.loads(one["body"])
        assert one["path"] == "/hook?a=b"
        assert sent["delivery"] == row["id"]
        assert sent["told"] == "done"
        assert sent["event"] == next(
            event for event in board.events(task=task.id)["events"] if event["seq"] == row["event_seq"]
        )
        assert sent["task"] == board.show(task.id)["task"]
        stamp = str(clock.now // 1_000)
        signature = hmac.new(SECRET.encode(), stamp.encode() + b"." + one["body"], hashlib.sha256).hexdigest()
        told = {name: value for name, value in one["headers"].items() if name.startswith(("X-", "Content-T", "Host"))}
        assert told == {
            "Host": url.split("/")[2],
            "Content-Type": "application/json",
            "X-ATB-Delivery": row["id"],
            "X-ATB-Event": "done",
            "X-ATB-Timestamp": stamp,
            "X-ATB-Signature": f"sha256={signature}",
        }
        [result] = results(board, task.id)
        assert result == {
            "kind": "hook_delivered", "delivery": row["id"], "target": "webhook", "told": "done", "attempt": 1,
            "status": 204, "ended": True,
        }  # fmt: skip


def test_without_a_secret_nothing_is_signed(tmp_path: Path) -> None:
    with receiver() as (url, heard), telling(tmp_path, webhook=url) as board:
        bring_to(board, "done")
        assert board.tick()["delivered"] == 1
    assert "X-ATB-Signature" not in heard[0]["headers"]


def test_answer_500_is_tried_again_under_the_same_delivery(tmp_path: Path, clock: Clock) -> None:
    with (
        receiver((500, {}, b"out of paper"), (200, {}, b"thanks")) as (url, heard),
        telling(tmp_path, clock, webhook=url) as board,
    ):
        task = bring_to(board, "done")
        assert board.tick()["delivered"] == 0
        clock.advance(seconds=29)
        assert board.tick()["delivered"] == 0
        assert len(heard) == 1
        clock.advance(seconds=1)
        assert board.tick()["delivered"] == 1
        assert len({one["headers"]["X-ATB-Delivery"] for one in heard}) == 1
        first, second = results(board, task.id)
    assert (first["kind"], first["status"], first["output"]) == ("hook_failed", 500, "out of paper")
    assert (second["kind"], second["status"], second["attempt"]) == ("hook_delivered", 200, 2)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirect_on_the_same_host_gets_the_same_message(tmp_path: Path, status: int) -> None:
    with (
        receiver((status, {"Location": "/elsewhere"}, b""), (200, {}, b"")) as (url, heard),
        telling(tmp_path, webhook=url) as board,
    ):
        bring_to(board, "done")
        assert board.tick()["delivered"] == 1
    assert [one["path"] for one in heard] == ["/hook", "/elsewhere"]
    assert heard[0]["body"] == heard[1]["body"]


@pytest.mark.parametrize(
    "place", ["http://localhost:{port}/", "//127.0.0.1:1/", "https://127.0.0.1:{port}/", "file:///x"]
)
def test_redirect_to_another_host_port_or_scheme_is_refused(tmp_path: Path, place: str) -> None:
    with receiver() as (other, never):
        place = place.format(port=other.split(":")[2].split("/")[0])
        with receiver((302, {"Location": place}, b"")) as (url, heard), telling(tmp_path, webhook=url) as board:
            task = bring_to(board, "done")
            assert board.tick()["delivered"] == 0
            [result] = results(board, task.id)
    assert "redirected to another host" in result["error"]
    assert (len(heard), never) == (1, [])


def test_redirects_without_end_are_given_up(tmp_path: Path) -> None:
    with receiver((302, {"Location": "/hook"}, b"")) as (url, heard), telling(tmp_path, webhook=url) as board:
        task = bring_to(board, "done")
        assert board.tick()["delivered"] == 0
        assert "redirected more than" in results(board, task.id)[0]["error"]
    assert len(heard) == 1 + webhook.REDIRECTS


@pytest.mark.parametrize(
    ("said", "again"),
    [(b"", b""), (b"HTTP/1.1 200 OK\r\n", b""), (b"HTTP/1.1 200 OK\r\nX: y", b"y")],
    ids=["nothing", "half an answer", "a drop at a time"],
)
def test_server_that_does_not_answer_is_given_up(
    tmp_path: Path, said: bytes, again: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "LIMIT", 0.3)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        telling(tmp_path, webhook=f"http://127.0.0.1:{server.getsockname()[1]}/") as board,
    ):
        task = bring_to(board, "done")
        thread = threading.Thread(target=answer_slowly, args=(server, said, again), daemon=True)
        thread.start()
        assert board.tick()["delivered"] == 0
        thread.join()
        assert "no answer within" in results(board, task.id)[0]["error"]
    eventually(lambda: not [one for one in threading.enumerate() if one.name == "webhook"], "the end of the thread")


def answer_slowly(server: socket.socket, said: bytes, again: bytes) -> None:
    """Send something, then more again and again, until the other side closes the connection."""
    connection, _ = server.accept()
    with connection, contextlib.suppress(ConnectionError):
        connection.sendall(said)
        connection.settimeout(0.05)
        while True:
            with contextlib.suppress(TimeoutError):
                if not connection.recv(65_536):
                    return
            connection.sendall(again)


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"SSH-2.0-OpenSSH\r\n", "the answer is not HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500, "the answer is not HTTP"),
        (b"", "closed connection"),
    ],
    ids=["another protocol", "headers", "hung up"],
)
def test_answer_that_is_none_is_a_failed_attempt(tmp_path: Path, said: bytes, error: str) -> None:
    def answer(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(said)
            connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                while connection.recv(65_536):
                    pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer, args=(server,), daemon=True)
        thread.start()
        with telling(tmp_path, webhook=f"http://127.0.0.1:{server.getsockname()[1]}/") as board:
            task = bring_to(board, "done")
            assert board.tick()["delivered"] == 0
            [result] = results(board, task.id)
        thread.join()
    assert error in result["error"]


def test_large_answer_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (
        receiver((500, {"Content-Length": "1000000000"}, b"x" * 200_000)) as (url, _),
        telling(tmp_path, webhook=url) as board,
    ):
        task = bring_to(board, "done")
        assert board.tick()["delivered"] == 0
        assert results(board, task.id)[0]["output"] == "x" * message.RECORDED


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:99999/", "http://[::1/s3cret", "http://no host/s3cret", "http:///s3cret"]
)
def test_address_that_cannot_be_used_is_a_failed_attempt_that_does_not_tell_it(tmp_path: Path, url: str) -> None:
    with telling(tmp_path, webhook=url) as board:
        task = bring_to(board, "done")
        assert board.tick()["delivered"] == 0
        assert "s3cret" not in json.dumps(results(board, task.id))


def test_certificate_of_a_stranger_is_refused(tmp_path: Path) -> None:
    openssl = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem"]
    try:
        subprocess.run(
            [*openssl, "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
    except FileNotFoundError:
        pytest.skip("needs openssl")
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")

    def answer(server: socket.socket) -> None:
        for _ in range(2):
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as secure:
                heard = b""
                while not heard.endswith(b"}}") and (part := secure.recv(65_536)):
                    heard += part
                secure.sendall(b"HTTP/1.1 204 OK\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer, args=(server,), daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{server.getsockname()[1]}/"
        with telling(tmp_path / "data", webhook=url) as board:
            task = bring_to(board, "done")
            assert board.tick()["delivered"] == 0
            assert "certificate" in results(board, task.id)[0]["error"].lower()
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))  # the same server, once it is trusted
                outbox.retry(board)
                assert board.tick()["delivered"] == 1
        thread.join()


# The page


def test_snippet_of_the_page_accepts_what_is_sent_and_nothing_else(tmp_path: Path, clock: Clock) -> None:
    page = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")
    [snippet] = [
        code for code in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL) if "hmac" in code
    ]
    names: dict[str, Any] = {}
    exec(snippet, names)
    is_genuine = names["is_genuine"]
    with receiver() as (url, heard), telling(tmp_path, clock, webhook=url, secret=SECRET) as board:
        bring_to(board, "done")
        board.tick()
    fields, body = heard[0]["headers"], heard[0]["body"]
    now = clock.now / 1_000
    assert is_genuine(SECRET, fields, body, now)
    assert not is_genuine("other", fields, body, now)
    assert not is_genuine(SECRET, fields, body + b" ", now)
    assert not is_genuine(SECRET, {**fields, "X-ATB-Timestamp": str(int(now) + 1)}, body, now)
    assert not is_genuine(SECRET, fields, body, now + 3_600)
    assert not is_genuine(SECRET, {"X-ATB-Timestamp": fields["X-ATB-Timestamp"]}, body, now)


def test_page_tells_every_event_variable_and_number() -> None:
    page = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")
    sample = message.Message("d", "done", {"seq": 1}, {"id": "x"})
    for word in (*config.HOOK_EVENTS, *(name for name in hooks.environment(sample, "/") if name.startswith("ATB_"))):
        assert f"`{word}`" in page, word
    for name in webhook.headers(sample, b"", SECRET, 0):
        assert f"`{name}`" in page, name
    for number in (
        f"{outbox.ATTEMPTS} attempts",
        f"{hooks.LIMIT:g} seconds",
        f"{webhook.LIMIT:g} seconds",
        f"{outbox.KEPT // instants.DAY} days",
        f"{message.RECORDED:,} characters",
    ):
        assert number in page, number


def test_clock_that_was_set_back_holds_up_no_delivery(board: Board, clock: Clock) -> None:
    bring_to(board, "done")
    with board.database.write() as tx:  # the process that reserved it was killed
        tx.execute("UPDATE outbox SET attempts = 1, due_at = ?", (instants.to_text(clock.now + outbox.RESERVED),))
    clock.advance(days=-2)
    assert outbox.retry(board) == 1
    with board.database.write() as tx:
        tx.execute("UPDATE outbox SET attempts = 1, due_at = ?", (instants.to_text(clock.now + 2 * instants.DAY),))
    assert board.tick()["delivered"] == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # that it still runs is the point
def test_command_of_another_user_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only root can end what sudo has started."""
    monkeypatch.setattr(hooks, "LIMIT", 0.1)
    monkeypatch.setattr(hooks, "GRACE", 0.1)
    ended: list[int] = []

    def forbidden(group: int, number: int) -> None:
        if number == signal.SIGKILL:
            ended.append(group)
        raise PermissionError

    monkeypatch.setattr(os, "killpg", forbidden)
    sample = message.Message("d", "done", {"seq": 1}, {"id": "x"})
    outcome = hooks.run([sys.executable, "-c", "import signal; signal.pause()"], sample, str(tmp_path))
    assert outcome.error is not None
    os.kill(ended[0], signal.SIGKILL)
    os.waitpid(ended[0], 0)
