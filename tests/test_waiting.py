"""Waits: for a task that is ready, for a status, for what needs a person; and that a waiter costs nobody anything."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board.board import waiting
from tests.command_line import Terminal
from tests.serving import serving
from tests.support import MARIA, bring_to, hold, open_board, refused
from tests.waiting import LIMIT, eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_task_board import Board, Grant
    from tests.serving import InThread, Wire
    from tests.support import Clock


class Steps:
    """A pause in which a test acts instead of sleeping: one step a pause, and the wait ends after the last one."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._steps = list(steps)
        self.paused = 0

    def __call__(self, _: float) -> bool:
        self.paused += 1
        if not self._steps:
            return True
        self._steps.pop(0)()
        return False


def claim(board: Board, *steps: Callable[[], object], agent: str = "ada", **options: Any) -> Grant | None:
    options = {"until_idle": False, **options}
    return waiting.claim(board, agent, seconds=None, pause=Steps(*steps), **options)


def nothing() -> None:
    """Let a pause pass."""


@pytest.fixture
def other(tmp_path: Path, board: Board, clock: Clock) -> Board:
    """Return the same board as another process would have it."""
    board.add("so that the file exists", queue="elsewhere", assignee="nobody here")
    return open_board(tmp_path / "data", clock)


# A claim that waits


def test_claim_gets_a_task_that_is_added_while_it_waits(board: Board, other: Board) -> None:
    grant = claim(board, nothing, lambda: other.add("the one"))
    assert grant is not None
    assert grant.task.title == "the one"
    assert grant.task.claimed_by == "ada"


def test_claim_that_waits_does_not_write_for_what_is_not_for_it(
    board: Board, other: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []
    plain = type(board).claim

    def counted(self: Board, agent: str, **options: Any) -> Any:
        tries.append(agent)
        return plain(self, agent, **options)

    monkeypatch.setattr(type(board), "claim", counted)
    steps = [
        lambda: other.add("for bob", assignee="bob"),
        lambda: other.add("in another queue", queue="docs"),
        lambda: other.add("without the tag"),
    ]
    assert claim(board, *steps, nothing, queues=["default"], tags=["ui"]) is None
    assert tries == ["ada"]


def test_waiter_has_no_transaction_open_while_it_pauses(board: Board, other: Board) -> None:
    found: list[bool] = []
    claim(board, *[lambda: found.append(board.database.session().connection.in_transaction)] * 3)
    waiting.wait(
        board,
        [other.add("a task").task.id],
        (),
        pause=Steps(*[lambda: found.append(board.database.session().connection.in_transaction)] * 3),
    )
    assert found == [False] * 6


def test_lease_that_runs_out_wakes_a_claim_though_nobody_writes(board: Board, clock: Clock) -> None:
    board.add("abandoned")
    hold(board, "bob", lease="10m")
    grant = claim(board, nothing, lambda: clock.advance(minutes=9), lambda: clock.advance(minutes=1))
    assert grant is not None
    assert grant.task.title == "abandoned"
    assert grant.task.attempts == 2


def test_delay_that_ends_wakes_a_claim_though_nobody_writes(board: Board, clock: Clock) -> None:
    board.add("later", not_before="+1d")
    grant = claim(board, nothing, lambda: clock.advance(days=2))
    assert grant is not None
    assert grant.task.title == "later"


def test_claim_of_one_task_waits_until_its_dependency_is_done(board: Board, other: Board) -> None:
    first = other.add("first").task.id
    second = other.add("second", depends_on=[first]).task.id
    grant = claim(board, lambda: other.add("not this"), lambda: other.done(first, actor=MARIA), task=second)
    assert grant is not None
    assert grant.task.id == second


def test_claim_of_one_task_waits_while_somebody_has_it(board: Board, other: Board) -> None:
    other.add("wanted")
    held = hold(other, "bob", queues=["default"])
    grant = claim(board, nothing, lambda: other.release(held.id, held.token), task=held.id)
    assert grant is not None
    assert grant.task.claimed_by == "ada"


def test_claim_of_a_task_that_ends_meanwhile_is_refused(board: Board, other: Board) -> None:
    other.add("wanted")
    held = hold(other, "bob", queues=["default"])
    with refused("conflict", "status"):
        claim(board, lambda: other.complete(held.id, held.token), task=held.id)


@pytest.mark.parametrize("options", [{"task": "QQQQ"}, {"lease": "0s"}, {"wait": "8d"}, {"wait": "soon"}])
def test_bad_argument_is_refused_at_once(board: Board, options: dict[str, Any]) -> None:
    board.add("a task", assignee="bob")
    with refused("not_found" if "task" in options else "invalid_input"):
        board.claim("ada", **{"wait": "1d", **options})


# Until nothing can change


def test_claim_until_idle_ends_where_nothing_can_become_ready(board: Board) -> None:
    first = board.add("first", assignee="bob").task.id
    board.add("second", depends_on=[first])
    bring_to(board, "review", assignee="carl", agent="carl")
    assert claim(board, until_idle=True) is None


@pytest.mark.parametrize("what", ["held", "delayed"])
def test_claim_until_idle_waits_for_what_may_become_ready(board: Board, clock: Clock, what: str) -> None:
    board.add("a task", not_before="+1d" if what == "delayed" else None)
    if what == "held":
        hold(board, "bob")
    grant = claim(board, nothing, nothing, lambda: clock.advance(days=2), until_idle=True)
    assert grant is not None


def test_claim_until_idle_ends_when_the_last_holder_has_finished(board: Board, other: Board) -> None:
    other.add("the last one")
    held = hold(other, "bob", queues=["default"])
    ended = Steps(nothing, lambda: other.complete(held.id, held.token), *[nothing] * 5)
    assert waiting.claim(board, "ada", seconds=None, until_idle=True, pause=ended) is None
    assert ended.paused == 2


# For tasks


def test_wait_for_all_tasks_ends_with_the_last_one(board: Board, other: Board) -> None:
    ids = [other.add(title).task.id for title in ("one", "two")]
    steps = Steps(lambda: other.done(ids[1], actor=MARIA), nothing, lambda: other.done(ids[0], actor=MARIA), nothing)
    found = waiting.wait(board, [ids[0], ids[1][-6:], ids[0]], ["done"], pause=steps)
    assert found.met
    assert [task.id for task in found.tasks] == ids
    assert steps.paused == 3


def test_wait_for_any_task_ends_with_the_first_one(board: Board, other: Board) -> None:
    ids = [other.add(title).task.id for title in ("one", "two")]
    steps = Steps(nothing, lambda: other.cancel(ids[1], actor=MARIA), nothing)
    found = waiting.wait(board, ids, (), every=False, pause=steps)
    assert found.met
    assert [task.status for task in found.tasks] == ["queued", "cancelled"]
    assert steps.paused == 2


def test_wait_ends_early_when_a_task_can_no_longer_get_there(board: Board, other: Board) -> None:
    ids = [other.add(title).task.id for title in ("one", "two")]
    steps = Steps(lambda: other.cancel(ids[0], actor=MARIA), *[nothing] * 5)
    found = waiting.wait(board, ids, ["done", "review"], pause=steps)
    assert not found.met
    assert found.reason is not None
    assert ids[0] in found.reason
    assert steps.paused == 1
    assert waiting.wait(board, ids, ["done"], every=False, pause=Steps(nothing, nothing)).reason is None


def test_wait_sees_a_lease_that_ran_out_though_nobody_else_looks(board: Board, clock: Clock) -> None:
    task = board.add("once only", max_attempts=1).task.id
    hold(board, "bob")
    found = waiting.wait(board, [task], ["failed"], pause=Steps(nothing, lambda: clock.advance(minutes=16)))
    assert found.met


def test_time_that_is_over_ends_a_wait(board: Board) -> None:
    task = board.add("a task").task.id
    assert not board.wait([task], wait=0).met
    assert board.claim("bob", queues=["empty"], wait=0) is None
    assert board.wait_for_person(wait=0) is None


@pytest.mark.parametrize("statuses", [["finished"], ["done", ""]])
def test_status_that_is_none_is_refused(board: Board, statuses: list[str]) -> None:
    with refused("invalid_input"):
        board.wait([board.add("a task").task.id], statuses)


def test_wait_for_a_person_ends_with_the_first_review(board: Board, other: Board) -> None:
    found = waiting.wait_for_person(board, pause=Steps(nothing, lambda: bring_to(other, "review"), nothing))
    assert found is not None
    assert found["review"]["count"] == 1


# Many waiters


def test_each_of_many_waiters_gets_one_of_as_many_tasks(tmp_path: Path) -> None:
    adder = open_board(tmp_path / "data")
    adder.create()
    won: list[str] = []

    def wait(number: int) -> None:
        with open_board(tmp_path / "data") as own:
            grant = own.claim(f"agent-{number}", wait=LIMIT)
            assert grant is not None
            won.append(grant.task.id)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    added = [adder.add(f"task {number}").task.id for number in range(10)]
    for thread in threads:
        thread.join(LIMIT)
    assert sorted(won) == sorted(added)
    adder.close()


# On the command line


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def test_command_waits_for_a_task_and_claims_it(terminal: Terminal) -> None:
    first = terminal.add("first")
    terminal.claim()
    with terminal.started("claim", "--agent", "bob", "--wait", "1m", "--json") as process:
        eventually(lambda: terminal.data("agents")["agents"])
        second = terminal.add("second")
        out, _ = process.communicate(timeout=LIMIT)
    assert f'"id":"{second}"'.encode() in out
    assert process.returncode == 0
    terminal.refused("empty", "claim", "--agent", "carl", "--wait", "0s")
    terminal.refused("empty", "wait", first, "--timeout", "0s")
    assert terminal.data("wait", first, second, "--for", "claimed,running")["met"] is True


def test_waits_that_contradict_themselves_are_refused(terminal: Terminal) -> None:
    task = terminal.add("a task")
    terminal.refused("invalid_input", "wait", task, "--any", "--all")
    terminal.refused("invalid_input", "wait", task, "--for", "needs-you")
    terminal.refused("invalid_input", "wait", "--timeout", "1s")
    terminal.refused("invalid_input", "wait", task, "--timeout", "8d")


def test_wait_that_cannot_succeed_names_the_states(terminal: Terminal) -> None:
    task = terminal.add("a task")
    terminal.task("cancel", task)
    error = terminal.refused("empty", "wait", task, "--for", "done")
    assert error["details"]["tasks"] == [{"id": task, "status": "cancelled"}]


def test_needs_you_has_the_reasons(terminal: Terminal) -> None:
    task = terminal.add("a task", "--needs-approval")
    terminal.task("complete", task, "--token", terminal.claim()[1])
    assert terminal.data("wait", "--for", "needs-you")["needs_you"]["review"] == {"count": 1, "ids": [task]}


@pytest.mark.parametrize(("signalled", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_signal_ends_a_wait_at_once(terminal: Terminal, signalled: int, code: int) -> None:
    terminal.add("a task", "--assignee", "nobody here")
    with terminal.started("claim", "--agent", "bob", "--wait", "7d", "--json") as process:
        # It waits once it has looked: its connection to the board is open.
        eventually(lambda: _has_open(process.pid, "tasks.db-wal"), "the first look")
        process.send_signal(signalled)
        process.communicate(timeout=LIMIT)
    assert process.returncode == code


def _has_open(pid: int, name: str) -> bool:
    try:
        return any(str(link.readlink()).endswith(name) for link in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


# Over HTTP


@pytest.fixture
def server(tmp_path: Path) -> Iterator[InThread]:
    with serving(tmp_path / "data") as found:
        found.board.create()
        yield found


def begin(server: InThread, data: bytes, wire: Wire) -> None:
    """Send a request and return once the server waits for what it asks for."""
    wire.send(data)
    free = server.server.waiting_limit
    eventually(lambda: server.server._waiting._value < free, "the wait")


def getting(path: str, wire: Wire) -> bytes:
    return b"GET " + path.encode() + b" HTTP/1.1\r\n" + wire.host_field + b"\r\n"


def test_request_gets_the_task_that_comes_while_it_waits(server: InThread) -> None:
    with server.wire() as wire:
        begin(server, wire.posting("/api/claim?wait=60", {"agent": "ada"}), wire)
        task = server.board.add("the one").task.id
        assert wire.read("POST").data["task"]["id"] == task
        begin(server, getting(f"/api/tasks/{task}?wait=60&for=done", wire), wire)
        server.board.cancel(task)
        assert wire.read().data["task"]["status"] == "cancelled"
        newest = server.board.events(before=0, limit=1)["events"][0]["seq"]
        begin(server, getting(f"/api/events?after={newest}&wait=60", wire), wire)
        server.board.comment(task, "a word")
        assert [event["kind"] for event in wire.read().data["events"]] == ["commented"]
    assert server.server._waiting._value == server.server.waiting_limit


def test_wait_of_a_client_that_left_ends_and_claims_nothing(server: InThread) -> None:
    with server.wire() as wire:
        begin(server, wire.posting("/api/claim?wait=240", {"agent": "ada"}), wire)
    eventually(lambda: server.server._waiting._value == server.server.waiting_limit, "the end of the wait")
    assert server.board.add("free").task.status == "queued"
    assert not server.board.agents()


def test_request_behind_one_that_waits_is_answered_after_it(server: InThread) -> None:
    with server.wire() as wire:
        begin(server, wire.posting("/api/claim?wait=60", {"agent": "ada"}), wire)
        wire.send(getting("/healthz", wire))
        server.board.add("the one")
        assert wire.read("POST").data["task"]["title"] == "the one"
        assert wire.read().data["status"] == "ok"


def test_waits_that_are_over_answer_with_what_is_there(server: InThread) -> None:
    with server.client() as client:
        assert client.call("POST", "/api/claim?wait=0", {"agent": "ada"})[1]["data"] is None
        task = client.data("POST", "/api/tasks", {"title": "x", "assignee": "bob"})["task"]["id"]
        client.refused("conflict", "POST", f"/api/tasks/{task}/claim?wait=1", {"agent": "ada"})
        assert client.data("GET", f"/api/tasks/{task}?wait=1&for=done,review")["task"]["status"] == "queued"
        client.refused("invalid_input", "GET", f"/api/tasks/{task}?wait=1&for=finished")
        client.refused("invalid_input", "GET", f"/api/tasks/{task}?for=done")
        client.refused("invalid_input", "GET", "/api/events?wait=1&before=0")
        client.refused("invalid_input", "POST", "/api/claim?wait=241", {"agent": "ada"})


def test_waits_are_limited_and_leave_room_for_other_requests(server: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.server, "_waiting", threading.Semaphore(1))
    monkeypatch.setattr(server.server, "waiting_limit", 1)
    with server.wire() as first, server.client() as second:
        begin(server, first.posting("/api/claim?wait=60", {"agent": "ada"}), first)
        second.refused("busy", "POST", "/api/claim?wait=60", {"agent": "bob"})
        assert second.data("POST", "/api/claim", {"agent": "bob"}) is None


def test_server_that_stops_ends_its_waits(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server, server.wire() as wire:
        begin(server, wire.posting("/api/claim?wait=240", {"agent": "ada"}), wire)
        server.server.shutdown()
        wire.rest()
