"""The archive: lists leave archived tasks out, nothing is deleted, and every task can be returned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board, BoardError, Settings, instants
from agent_task_board.board import archive
from tests.command_line import Terminal
from tests.dying import kill_at_every_step
from tests.processes import SPAWN, Stage, assert_sound, contents, meet, run_together
from tests.support import MARIA, bring_to, everything, hold, kinds, last_event, open_board, refused, revision
from tests.test_store import Disk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

    from tests.support import Clock

FINAL = ("done", "failed", "cancelled")


def listed(board: Board, **conditions: Any) -> set[str]:
    return {task.id for task in board.list_tasks(limit=1_000, **conditions).tasks}


def healthy(board: Board) -> bool:
    """Say whether counters and histories are right."""
    return bool(board.doctor()["healthy"])


# What is archived


def test_finished_tasks_of_that_age_are_archived_and_no_others(board: Board, clock: Clock) -> None:
    old = [bring_to(board, status).id for status in FINAL]
    others = [bring_to(board, status).id for status in ("queued", "claimed", "running", "review")]
    clock.advance(days=30)
    young = bring_to(board, "done").id
    assert board.archive("30d") == {"archived": 3}
    assert listed(board) == {*others, young}
    assert listed(board, archived=True) == set(old)
    assert board.archive("30d") == {"archived": 0}
    assert board.archive(0) == {"archived": 1}
    assert healthy(board)


def test_age_counts_from_the_end_of_the_task_to_the_millisecond(board: Board, clock: Clock) -> None:
    bring_to(board, "done")
    clock.advance(seconds=9.999)
    assert board.archive(10) == {"archived": 0}
    clock.advance(seconds=0.001)
    assert board.archive(10) == {"archived": 1}


def test_only_the_statuses_named_are_archived(board: Board) -> None:
    ids = {status: bring_to(board, status).id for status in FINAL}
    assert board.archive(0, status=["failed", "cancelled"]) == {"archived": 2}
    assert listed(board) == {ids["done"]}


def test_dry_run_counts_and_writes_nothing(board: Board, clock: Clock) -> None:
    for status in FINAL:
        bring_to(board, status)
    clock.advance(days=1)
    before = everything(board)
    assert board.archive("1d", status=["done"], dry_run=True) == {"archived": 1, "dry_run": True}
    assert board.archive("1d", dry_run=True) == {"archived": 3, "dry_run": True}
    assert everything(board) == before


@pytest.mark.parametrize(
    "arguments",
    [
        {"older_than": "soon"},
        {"older_than": -1},
        {"older_than": "40000d"},
        {"older_than": 0, "status": ["queued"]},
        {"older_than": 0, "status": ["archived"]},
        {"older_than": 0, "status": "done"},
        {"older_than": 0, "dry_run": "yes"},
    ],
)
def test_malformed_archive_is_invalid_input(board: Board, arguments: dict[str, Any]) -> None:
    bring_to(board, "done")
    before = everything(board)
    with refused("invalid_input"):
        board.archive(**arguments)
    assert everything(board) == before


def test_archiving_is_an_event_of_whoever_did_it_and_counts_as_a_change(board: Board) -> None:
    task = bring_to(board, "done")
    version, before = board.show(task.id)["task"]["version"], revision(board)
    board.archive(0)
    event = last_event(board, task.id)
    assert (event["kind"], event["actor"], event["actor_kind"]) == ("archived", "maria", "human")
    assert event["data"] == {"changes": {"archived_at": {"from": None, "to": event["at"]}}}
    assert board.show(task.id)["archived_at"] == event["at"]
    assert board.show(task.id)["task"]["version"] == version + 1
    assert revision(board) > before


def test_more_than_a_batch_is_archived_in_several_transactions(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [board.cancel(board.add(f"task {number}").task.id).task.id for number in range(7)]
    kept = bring_to(board, "done").id
    monkeypatch.setattr(archive, "BATCH", 2)
    begun: list[str] = []
    board.database.session().connection.set_trace_callback(begun.append)
    assert board.archive(0, status=["cancelled"]) == {"archived": 7}
    board.database.session().connection.set_trace_callback(None)
    assert begun.count("BEGIN IMMEDIATE") == 4
    assert (listed(board), listed(board, archived=True)) == ({kept}, set(ids))


def test_where_no_board_is_nothing_is_archived_and_none_is_made(tmp_path: Path) -> None:
    board = Board(tmp_path / "data", create=False, actor=MARIA)
    assert board.archive(0) == {"archived": 0}
    assert board.archive(0, dry_run=True) == {"archived": 0, "dry_run": True}
    assert board.is_missing
    with refused("not_found"):
        board.unarchive("01M6CYVR4GHDBEVDSVEQ65Y4BX")
    assert list(tmp_path.iterdir()) == []


# Left out of lists, but not deleted


def test_archived_task_is_left_out_of_lists_and_board(board: Board) -> None:
    gone, there = bring_to(board, "done").id, bring_to(board, "failed").id
    board.archive(0, status=["done"])
    assert listed(board) == listed(board, order="updated") == {there}
    assert listed(board, status=["done"]) == set()
    snapshot = board.snapshot()
    assert gone not in snapshot.text
    assert there in snapshot.text


def test_archived_task_is_found_by_show_events_search_and_the_list_of_the_archive(board: Board) -> None:
    id_ = bring_to(board, "done", body="a needle in the hay").id
    board.archive(0)
    assert board.show(id_)["task"]["status"] == "done"
    assert board.show(id_[-6:])["task"]["id"] == id_
    assert kinds(board, id_) == ["created", "claimed", "completed", "archived"]
    assert listed(board, search="needle") == listed(board, archived=True) == {id_}
    assert listed(board, archived=True, status=["failed"]) == set()
    assert board.comment(id_, "still of use")


def test_archived_tasks_are_counted_apart(board: Board) -> None:
    for status in FINAL:
        bring_to(board, status)
    before = board.stats()
    board.archive(0, status=["done", "failed"])
    after = board.stats()
    assert (before["archived"], after["archived"]) == (0, 2)
    assert after["tasks"] == before["tasks"] - 2 == 1
    assert {status: count for status, count in after["by_status"].items() if count} == {"cancelled": 1}
    assert after["finished"] == before["finished"], "what was done in the last days was done"
    assert after["by_agent"] == before["by_agent"]


def test_dependency_on_an_archived_task_still_counts(board: Board) -> None:
    done, failed = bring_to(board, "done").id, bring_to(board, "failed").id
    board.archive(0)
    free = board.add("its dependency is done", depends_on=[done]).task
    stuck = board.add("its dependency failed", depends_on=[failed]).task
    assert (free.ready, stuck.blocked) == (True, True)
    assert [link["id"] for link in board.show(stuck.id)["dependencies"]] == [failed]
    board.retry(failed)
    held = hold(board, task=failed)
    board.complete(held.id, held.token)
    board.archive(0)
    assert hold(board, task=stuck.id).id == stuck.id


def test_dedupe_key_of_an_archived_task_is_free(board: Board) -> None:
    bring_to(board, "failed", dedupe_key="nightly")
    board.archive(0)
    assert board.add("again", dedupe_key="nightly").created


def test_replay_under_the_token_of_an_archived_task_still_answers(board: Board) -> None:
    task = bring_to(board, "done")
    board.archive(0)
    assert board.complete(task.id, task.token).replayed


# Returned from the archive


def test_unarchived_task_is_as_it_was(board: Board) -> None:
    id_ = bring_to(board, "done").id
    before = board.show(id_)["task"]
    board.archive(0)
    receipt = board.unarchive(id_[-6:])
    assert listed(board) == {id_}
    after = board.show(id_)["task"]
    assert receipt.task.to_dict() == after
    changed = {key for key in after if after[key] != before[key]}
    assert changed <= {"version", "updated_at"}
    assert after["version"] == before["version"] + 2
    assert kinds(board, id_)[-2:] == ["archived", "unarchived"]
    assert "archived_at" not in board.show(id_)
    assert healthy(board)


@pytest.mark.parametrize("status", ["queued", "done"])
def test_unarchiving_what_is_not_archived_is_a_conflict(board: Board, status: str) -> None:
    task = bring_to(board, status)
    before = everything(board)
    with refused("conflict", "status"):
        board.unarchive(task.id)
    assert everything(board) == before


def test_age_of_an_unarchived_task_counts_anew(board: Board, clock: Clock) -> None:
    id_ = bring_to(board, "done").id
    clock.advance(days=100)
    board.archive("30d")
    board.unarchive(id_)
    assert board.archive("30d") == {"archived": 0}
    clock.advance(days=30)
    assert board.archive("30d") == {"archived": 1}


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_retry_brings_an_archived_task_back_to_its_queue(board: Board, status: str) -> None:
    id_ = bring_to(board, status).id
    board.archive(0)
    board.retry(id_)
    assert listed(board) == {id_}
    assert last_event(board, id_)["data"]["changes"]["archived_at"]["to"] is None
    assert hold(board, task=id_).id == id_
    assert healthy(board)


# By age


def test_tick_archives_by_the_age_in_the_settings(tmp_path: Path, clock: Clock) -> None:
    board = Board(tmp_path, actor=MARIA, clock=clock, settings=Settings(archive_after=30 * instants.DAY))
    old = bring_to(board, "done").id
    clock.advance(days=30)
    young = bring_to(board, "failed").id
    assert set(board.tick()) == {"expired", "created", "delivered", "catchup_pending"}
    assert (listed(board), listed(board, archived=True)) == ({young}, {old})
    event = last_event(board, old)
    assert (event["kind"], event["actor_kind"]) == ("archived", "system")
    board.unarchive(old)
    board.tick()
    assert listed(board) == {old, young}, "the next tick must not undo what somebody did"
    board.close()


def test_tick_archives_nothing_unless_it_is_told_to(board: Board, clock: Clock) -> None:
    id_ = bring_to(board, "done").id
    clock.advance(days=9_999)
    board.tick()
    assert listed(board) == {id_}


def test_tick_archives_so_many_at_once_and_the_next_one_the_rest(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "BATCH", 3)
    monkeypatch.setattr(archive, "PER_TICK", 4)
    board = Board(tmp_path, actor=MARIA, clock=clock, settings=Settings(archive_after=0))
    for number in range(9):
        board.cancel(board.add(f"task {number}").task.id)
    left = []
    for _ in range(3):
        board.tick()
        left.append(len(listed(board)))
    assert left == [5, 1, 0]
    board.close()


def test_tick_with_nothing_to_archive_writes_nothing_for_it(tmp_path: Path, clock: Clock) -> None:
    board = Board(tmp_path, actor=MARIA, clock=clock, settings=Settings(archive_after=instants.DAY))
    bring_to(board, "done")
    before = revision(board)
    assert archive.archive_by_age(board) == 0
    assert revision(board) == before
    board.close()


# Concurrency, kills, a full disk


def archive_all(directory: str, barrier: Barrier) -> int:
    board = open_board(directory)
    meet(barrier)
    archived: int = board.archive(0)["archived"]
    board.close()
    return archived


def test_each_task_is_archived_once_however_many_do_it(tmp_path: Path) -> None:
    board = open_board(tmp_path)
    board.import_tasks([{"title": f"task {number}", "status": "done"} for number in range(900)])
    assert sum(run_together(archive_all, [(str(tmp_path), SPAWN.Barrier(3))] * 3)) == 900
    assert sum(event["kind"] == "archived" for event in board.events(limit=10_000)["events"]) == 900
    assert healthy(board)
    board.close()


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def archive_in_twos(directory: str) -> None:
    archive.BATCH = 2  # only in this process, which is about to end
    board = open_board(directory)
    board.archive(0)
    board.close()


def test_archiving_killed_at_any_step_leaves_each_task_in_or_out(stage: Stage, tmp_path: Path) -> None:
    base, places = tmp_path / "base", tmp_path / "places"
    places.mkdir()
    board = open_board(base)
    for number in range(4):
        board.cancel(board.add(f"task {number}").task.id)
    board.close()
    runs = stage.call(kill_at_every_step, str(base), str(places), archive_in_twos)
    for number, done in enumerate(runs):
        board = open_board(places / str(number))
        assert len(listed(board, archived=True)) == 2 * done.count("COMMIT")
        assert healthy(board)
        board.archive(0)
        assert len(listed(board, archived=True)) == 4
        board.close()
    assert {done.count("COMMIT") for done in runs} == {0, 1, 2}


def test_archiving_on_a_full_disk_is_unusable_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    path.mkdir()
    disk = Disk(path)
    try:
        board = open_board(path)
        board.import_tasks([{"title": f"task {number}", "status": "done"} for number in range(50)])
        disk.fill()
        outcome = ""
        while not outcome:  # first, the free space within the log is used
            before = contents(path)
            try:
                board.archive(0)
                before = contents(path)
                for task in board.list_tasks(archived=True).tasks:
                    before = contents(path)
                    board.unarchive(task.id)
            except BoardError as error:
                outcome = error.code
        assert outcome == "unusable"
        assert contents(path) == before
        disk.free()
        board.archive(0)
        assert listed(board) == set()
        assert healthy(board)
        board.close()
        assert_sound(path)
    finally:
        disk.unmount()


# The command line


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def test_archive_from_the_shell(terminal: Terminal) -> None:
    ids = [terminal.add(f"task {number}") for number in range(3)]
    for id_ in ids[:2]:
        terminal.data("cancel", id_)
    assert terminal.data("archive", "--older-than", "30d") == {"archived": 0}
    assert terminal.data("archive", "--older-than", "0", "--dry-run") == {"archived": 2, "dry_run": True}
    assert terminal.data("archive", "--older-than", "0", "--status", "done", "--status", "failed") == {"archived": 0}
    assert terminal.data("archive", "--older-than", "0s", "--actor", "zoe") == {"archived": 2}
    assert [task["id"] for task in terminal.data("list")["tasks"]] == ids[2:]
    assert terminal.data("events", "--task", ids[0])["events"][-1]["actor"] == "zoe"
    assert terminal.data("unarchive", ids[0][-6:])["task"]["id"] == ids[0]
    terminal.refused("conflict", "unarchive", ids[0])
    for words in (["archive"], ["archive", "--older-than", "soon"], ["archive", "--older-than", "1d", "--status", "x"]):
        terminal.refused("invalid_input", *words)
    assert "archived" in terminal.atb("archive", "--older-than", "0", "--format", "table").text


def test_age_of_the_archive_comes_from_the_configuration(terminal: Terminal) -> None:
    id_ = terminal.add("task")
    terminal.data("cancel", id_)
    terminal.write("atb.toml", 'archive_after = "0s"\n')
    terminal.data("tick")
    assert terminal.data("list")["tasks"] == []
    assert terminal.data("show", id_)["task"]["status"] == "cancelled"
