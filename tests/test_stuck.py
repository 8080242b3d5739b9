"""Stuck tasks: what waits for a task that failed or was cancelled is marked, said, counted and listed apart."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board.board.stuck import REMEDY
from agent_task_board.text.briefing import text
from tests.command_line import Terminal
from tests.serving import serving
from tests.support import bring_to, hold, refused
from tests.test_doctor import findings, spoil

if TYPE_CHECKING:
    from pathlib import Path

    from agent_task_board import Board
    from tests.support import Clock


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def stuck(board: Board) -> list[str]:
    return [task.title for task in board.list_tasks(stuck=True, order="age").tasks]


def chain(board: Board, *titles: str, **fields: Any) -> list[str]:
    """Add tasks that each wait for the one before; return their ids."""
    ids: list[str] = []
    for title in titles:
        ids.append(board.add(title, depends_on=ids[-1:], **fields).task.id)
    return ids


@pytest.mark.parametrize("verb", ["cancel", "fail", "tick", "claim"])
def test_verb_that_ends_a_task_says_which_tasks_are_stuck_now(verb: str, board: Board, clock: Clock) -> None:
    first, second, third = chain(board, "A", "B", "C", max_attempts=1)
    if verb != "cancel":
        held = hold(board)
    if verb == "cancel":
        said = board.cancel(first).warnings
    elif verb == "fail":
        said = board.fail(first, held.token, "broken").warnings
    else:
        clock.advance(minutes=16)
        said = []
        if verb == "tick":
            board.tick(warnings=said)
        else:
            board.add("something else")
            said = hold_and_say(board)
    ended = "was cancelled" if verb == "cancel" else "failed"
    waiting = f'"B" ({second[-6:]}), "C" ({third[-6:]}) wait for "A" ({first[-6:]}), which {ended}, and cannot start'
    assert said == [f"{waiting}; {REMEDY}"]
    assert stuck(board) == ["B", "C"]


def hold_and_say(board: Board) -> list[str]:
    receipt = board.claim("bob")
    assert receipt is not None
    return receipt.warnings


def test_failure_with_attempts_left_makes_nothing_stuck(board: Board) -> None:
    chain(board, "A", "B")
    held = hold(board)
    assert board.fail(held.id, held.token, "broken").warnings == []
    assert stuck(board) == []


@pytest.mark.parametrize("verb", ["add", "update"])
def test_adding_a_dependency_on_what_ended_is_said(verb: str, board: Board) -> None:
    gone = board.cancel(board.add("A").task.id).task.id
    if verb == "add":
        receipt = board.add("B", depends_on=[gone])
    else:
        receipt = board.update(board.add("B").task.id, depends_on=[gone])
    name = f'"B" ({receipt.task.id[-6:]})'
    assert receipt.task.stuck
    assert receipt.warnings == [
        f'{name} waits for "A" ({gone[-6:]}), which was cancelled',
        f'{name} is stuck: it waits for "A" ({gone[-6:]}), which was cancelled; {REMEDY}',
    ]
    behind = board.add("C", depends_on=[receipt.task.id])
    assert "is stuck: it waits for" in behind.warnings[-1]
    assert behind.task.stuck


def test_edit_that_makes_a_task_stuck_says_what_else_is(board: Board) -> None:
    gone = board.cancel(board.add("A").task.id).task.id
    second, third = chain(board, "B", "C")
    said = board.update(second, depends_on=[gone]).warnings
    assert said[-1] == f'"C" ({third[-6:]}) waits for "B" ({second[-6:]}) and is stuck, too'


def test_held_task_is_stuck_only_once_it_is_queued_again(board: Board) -> None:
    gone = board.cancel(board.add("A").task.id).task.id
    board.add("B")
    held = hold(board)
    behind = board.add("C", depends_on=[held.id]).task.id
    said = board.update(held.id, add_depends_on=[gone])
    assert not said.task.stuck
    assert said.warnings == [f'"B" ({held.id[-6:]}) waits for "A" ({gone[-6:]}), which was cancelled']
    back = board.release(held.id, held.token)
    assert back.task.stuck
    assert any("is stuck" in warning for warning in back.warnings)
    assert stuck(board) == ["B", "C"]
    assert board.show(behind)["stuck_by"]["id"] == gone


@pytest.mark.parametrize("way", ["retry", "drop", "cancel", "done"])
def test_every_remedy_that_is_named_helps(way: str, board: Board) -> None:
    first, second, _ = chain(board, "A", "B", "C")
    board.cancel(first)
    assert stuck(board) == ["B", "C"]
    if way == "retry":
        board.retry(first)
    elif way == "drop":
        board.update(second, drop_depends_on=[first])
    elif way == "done":
        board.done(second)
    else:
        board.cancel(second)
    assert stuck(board) == (["C"] if way == "cancel" else [])


def test_task_stays_stuck_while_another_dependency_keeps_it_so(board: Board) -> None:
    first, other = (bring_to(board, "failed").id for _ in range(2))
    both = board.add("both", depends_on=[first, other]).task.id
    board.add("behind", depends_on=[both, first])
    board.retry(first)
    assert stuck(board) == ["both", "behind"]
    board.retry(other)
    assert stuck(board) == []


def test_any_order_of_changes_leaves_the_marks_of_the_definition(board: Board) -> None:
    draw = random.Random(12)
    ids = [board.add(str(number)).task.id for number in range(14)]
    for later in range(1, len(ids)):
        board.update(ids[later], depends_on=draw.sample(ids[:later], min(later, draw.randrange(3))))
    for _ in range(150):
        rows = {task.id: task for task in board.list_tasks(order="age").tasks}
        one = rows[draw.choice(ids)]
        if one.status == "queued":
            board.cancel(one.id) if draw.random() < 0.5 else board.done(one.id)
        elif one.status == "cancelled":
            board.retry(one.id)
        wrong = {}
        rows = {task.id: task for task in board.list_tasks(order="age").tasks}
        marked: dict[str, bool] = {}
        for id_ in ids:  # dependencies come first
            others = [rows[other] for other in rows[id_].blocked_by]
            marked[id_] = rows[id_].status == "queued" and any(
                other.status in ("failed", "cancelled") or marked[other.id] for other in others
            )
            if rows[id_].stuck != marked[id_]:
                wrong[rows[id_].title] = rows[id_].stuck
        assert not wrong
        if all(row.status == "done" for row in rows.values()):
            break


def test_a_long_chain_is_no_trouble(board: Board) -> None:
    ids = [f"01ARZ3NDEKTSV4RRFFQ69{number:05d}" for number in range(3_000)]
    board.import_tasks([{"id": id_, "title": "x", "blocked_by": ids[at - 1 : at]} for at, id_ in enumerate(ids)])
    said = board.cancel(ids[0]).warnings
    assert "2,996 more" in said[0]
    assert board.stats()["stuck"] == 2_999
    assert board.show(ids[-1])["stuck_by"]["id"] == ids[0]
    board.retry(ids[0])
    assert board.stats()["stuck"] == 0


def test_empty_claim_counts_stuck_tasks_apart(board: Board) -> None:
    chain(board, "A", "B", "C")
    board.cancel(chain(board, "D", "E")[0])
    hold(board)
    (reason,) = board.nothing_ready("bob")
    assert "2 waiting for other tasks" in reason
    assert "1 stuck behind a failed or cancelled task" in reason


def test_stuck_tasks_are_told_wherever_somebody_looks(board: Board) -> None:
    first, second, third = chain(board, "A", "B", "C")
    board.cancel(first)
    assert board.attention()["stuck"] == {"count": 2, "ids": [second, third]}
    assert "stuck behind failed or cancelled tasks: 2" in text(board.briefing(agent="ada"))
    assert board.stats()["stuck"] == 2
    found = findings(board)["stuck"]
    assert (found["level"], second in found["message"]) == ("warning", True)
    link = {"id": first, "title": "A", "status": "cancelled"}
    assert board.show(third)["stuck_by"] == link
    assert json.loads(board.snapshot().text)["stuck"] == {second: link, third: link}
    with refused("conflict", "blocked") as caught:
        board.claim("ada", task=third)
    assert "stuck" in caught.value.message


def test_stuck_tasks_are_told_on_the_command_line(terminal: Terminal) -> None:
    first = terminal.add("A")
    second = terminal.add("B", "--depends-on", first)
    (said,) = terminal.atb("cancel", first).envelope["warnings"]
    assert "cannot start" in said
    assert [task["id"] for task in terminal.data("list", "--stuck")["tasks"]] == [second]
    assert "stuck" in terminal.atb("list", "--format", "table").text
    assert "which was cancelled; retry that task" in terminal.atb("show", second, "--format", "table").text
    compact = terminal.atb("show", second, "--format", "compact").text
    assert f"stuck=1:{second[-6:]}" in compact
    assert "which was cancelled; retry that task" in compact
    assert "1 stuck behind" in terminal.atb("claim", "--agent", "ada").envelope["warnings"][0]


def test_stuck_tasks_are_told_over_http(tmp_path: Path) -> None:
    with serving(tmp_path) as server, server.client() as client:
        first, second = chain(server.board, "A", "B")
        _, envelope = client.call("POST", f"/api/tasks/{first}/cancel", {})
        assert "cannot start" in envelope["warnings"][0]
        assert [task["id"] for task in client.data("GET", "/api/tasks?stuck=true")["tasks"]] == [second]
        assert client.data("GET", f"/api/tasks/{second}")["stuck_by"]["id"] == first


def test_import_says_which_tasks_wait_and_which_are_stuck(board: Board) -> None:
    ids = [f"01ARZ3NDEKTSV4RRFFQ69{number:05d}" for number in range(3)]
    found = board.import_tasks(
        [
            {"id": ids[0], "title": "A", "status": "cancelled"},
            {"id": ids[1], "title": "B", "blocked_by": [ids[0]]},
            {"id": ids[2], "title": "C", "blocked_by": [ids[1]]},
        ]
    )
    assert found.warnings[0] == f'"B" ({ids[1][-6:]}) waits for "A" ({ids[0][-6:]})'
    assert [warning.split(":")[0] for warning in found.warnings[2:]] == [
        f'"B" ({ids[1][-6:]}) is stuck',
        f'"C" ({ids[2][-6:]}) is stuck',
    ]
    assert stuck(board) == ["B", "C"]


def test_wrong_marks_are_found_and_mended(board: Board) -> None:
    board.cancel(chain(board, "A", "B", "C")[0])
    bring_to(board, "queued", depends_on=[bring_to(board, "queued").id])
    spoil(board, "UPDATE task SET stuck = 1 - stuck WHERE open_dependencies > 0")
    assert findings(board, "error")["counters"]["fix"] == "counters"
    assert board.doctor(fix="counters")["healthy"]
    assert stuck(board) == ["B", "C"]
