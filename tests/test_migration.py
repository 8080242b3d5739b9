"""A board that an earlier version made: backed up, then brought up to date, whatever happens on the way."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board
from agent_task_board.storage.db import SCHEMA_VERSION
from agent_task_board.upkeep.restore import restore
from tests.dying import kill_at_every_step
from tests.old_boards import turn_into_schema_1
from tests.processes import SPAWN, Stage, assert_sound, contents, meet, raw, run_together
from tests.support import bring_to, open_board, refused
from tests.test_store import Disk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.synchronize import Barrier

LIFE = ("queued", "claimed", "running", "review", "done", "failed", "cancelled")
MADE_LATER = {"actor", "schedule", "outbox", "attempt_output", "awaited_dependency", "released", "unindexed"}
ADDED_LATER = {"archived_at", "board_id", "imported", "max_runtime", "stuck", "last_event", "last_event_revision"}
"""Columns of tables that the first schema had."""


def lay_out(directory: Path) -> None:
    """Make a board of the first schema with a task in every status."""
    board = open_board(directory)
    first = board.add("what others wait for", tags=["a"], params={"x": 1}).task.id
    for status in LIFE:
        board.comment(bring_to(board, status).id, "seen")
    board.add("waits", depends_on=[first], dedupe_key="one", request_id="call")
    board.close()
    turn_into_schema_1(directory)


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("migration") / "data"
    lay_out(directory)
    return directory


@pytest.fixture
def old(laid_out: Path, tmp_path: Path) -> Path:
    """Return the data directory of a board of schema 1."""
    return Path(shutil.copytree(laid_out, tmp_path / "data"))


def schema_of(directory: object) -> int:
    with raw(directory) as connection:
        number: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return number


def columns(directory: object) -> dict[str, list[str]]:
    with raw(directory) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in tables}


def told(directory: object) -> dict[str, Any]:
    """Return all that a board of any schema holds in the columns of the first."""
    names = columns(directory)
    with raw(directory) as connection:
        return {
            table: connection.execute(
                f"SELECT {', '.join(name for name in columns if name not in ADDED_LATER)} FROM {table} ORDER BY 1, 2"
                if len(columns) > 1
                else f"SELECT * FROM {table}"
            ).fetchall()
            for table, columns in names.items()
            if table not in MADE_LATER and not table.startswith("search")
        }


def tick(directory: str) -> None:
    board = open_board(directory)
    board.tick()
    board.close()


def make(directory: str) -> None:
    """Bring a board up to date and do nothing else."""
    board = open_board(directory)
    board.create()
    board.close()


def test_reading_an_older_board_is_unusable_and_says_which_command_helps(old: Path) -> None:
    before = contents(old)
    for board in (open_board(old), Board(old, read_only=True)):
        with refused("unusable") as caught:
            board.list_tasks()
        assert "`atb tick`" in caught.value.hint
        with refused("unusable"):
            board.backup()
        board.close()
    assert schema_of(old) == 1
    assert contents(old) == before


def test_first_write_brings_an_older_board_up_to_date_and_keeps_everything(old: Path) -> None:
    before = told(old)
    make(str(old))
    assert schema_of(old) == SCHEMA_VERSION
    assert told(old) == before
    assert_sound(old)
    board = open_board(old)
    found = board.doctor()
    assert [one for one in found["findings"] if one["level"] == "error"] == []
    assert "schema" in {one["check"] for one in found["findings"] if one["level"] == "ok"}
    assert sum(board.stats()["by_status"].values()) == len(LIFE) + 2
    board.close()


def test_backup_before_a_migration_is_the_old_board_and_opens_alone(old: Path, tmp_path: Path) -> None:
    before = contents(old)
    make(str(old))
    [backup] = (old / "backups").iterdir()
    assert backup.name.startswith(f"before-schema-{SCHEMA_VERSION}-")
    assert backup.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(backup) as packed:
        assert sorted(packed.namelist()) == ["metadata.json", "tasks.db"]
        assert json.loads(packed.read("metadata.json"))["schema"] == 1
        packed.extract("tasks.db", tmp_path / "alone")
    assert contents(tmp_path / "alone") == before
    assert schema_of(tmp_path / "alone") == 1

    made = restore(backup, tmp_path / "restored")
    assert made["schema"] == 1
    assert contents(tmp_path / "restored") == before
    make(str(tmp_path / "restored"))
    assert told(tmp_path / "restored") == told(old)


def test_an_older_board_taken_out_of_a_backup_is_brought_up_to_date(old: Path) -> None:
    with raw(old) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    before = told(old)
    make(str(old))
    assert (schema_of(old), told(old)) == (SCHEMA_VERSION, before)
    assert len(list((old / "backups").iterdir())) == 1


def test_a_board_that_is_up_to_date_is_not_backed_up_by_itself(old: Path) -> None:
    make(str(old))
    tick(str(old))
    tick(str(old))
    assert len(list((old / "backups").iterdir())) == 1
    board = open_board(old / "new")
    board.add("first")
    board.close()
    assert not (old / "new" / "backups").exists()


def test_where_no_backup_can_be_made_nothing_is_migrated(old: Path) -> None:
    (old / "backups").write_text("in the way")
    before = contents(old)
    board = open_board(old)
    for act in (board.tick, board.create):
        with refused("unusable") as caught:
            act()
        assert "older schema" in caught.value.message
    board.close()
    assert schema_of(old) == 1
    assert contents(old) == before
    (old / "backups").unlink()
    make(str(old))
    assert schema_of(old) == SCHEMA_VERSION


def test_a_damaged_older_board_is_not_migrated(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_: object) -> None:
        raise sqlite3.DatabaseError("malformed")

    from agent_task_board.storage import copies

    monkeypatch.setattr(copies, "refuse_damaged", damaged)
    board = open_board(old)
    with pytest.raises(sqlite3.DatabaseError):
        board.create()
    board.close()
    assert schema_of(old) == 1
    assert [path.name for path in (old / "backups").iterdir()] == []


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def test_a_migration_killed_at_any_step_leaves_the_old_board_or_the_new_one(
    old: Path, stage: Stage, tmp_path: Path
) -> None:
    places = tmp_path / "places"
    places.mkdir()
    before = told(old)
    runs = stage.call(kill_at_every_step, str(old), str(places), make)
    steps = runs[-1]
    assert sum("CREATE" in step for step in steps) > 8
    assert sum(step.startswith("os.link before-schema") for step in steps) == 1
    seen = set()
    for number, done in enumerate(runs):
        place = places / str(number)
        version = schema_of(place)
        assert version == (SCHEMA_VERSION if "COMMIT" in done else 1), done
        seen.add(version)
        assert told(place) == before
        assert_sound(place)
        make(str(place))
        assert (schema_of(place), told(place)) == (SCHEMA_VERSION, before)
        for backup in (place / "backups").glob("*.zip"):
            with zipfile.ZipFile(backup) as packed:
                assert packed.testzip() is None
    assert seen == {1, SCHEMA_VERSION}


def make_together(directory: str, barrier: Barrier) -> bool:
    board = open_board(directory)
    meet(barrier)
    created = board.add("after the migration").created
    board.close()
    return bool(created)


def test_processes_that_migrate_at_once_do_it_once(old: Path) -> None:
    before = told(old)
    barrier = SPAWN.Barrier(3)
    assert run_together(make_together, [(str(old), barrier)] * 3) == [True] * 3
    assert schema_of(old) == SCHEMA_VERSION
    assert len(told(old)["task"]) == len(before["task"]) + 3
    assert len(list((old / "backups").iterdir())) == 1
    assert_sound(old)


@pytest.mark.parametrize("free", [0, 100_000])
def test_a_migration_on_a_full_disk_changes_nothing_and_works_once_there_is_space(
    laid_out: Path, tmp_path: Path, free: int
) -> None:
    path = tmp_path / "disk"
    path.mkdir()
    disk = Disk(path)
    try:
        shutil.copytree(laid_out, path / "data")
        before = told(path / "data")
        disk.fill()
        with (path / "filler").open("rb+") as filler:
            filler.truncate(max(0, filler.seek(0, 2) - free))
        board = open_board(path / "data")
        with refused("unusable"):
            board.create()
        board.close()
        assert list((path / "data").glob("backups/*")) == []
        disk.free()
        assert (schema_of(path / "data"), told(path / "data")) == (1, before)
        make(str(path / "data"))
        assert (schema_of(path / "data"), told(path / "data")) == (SCHEMA_VERSION, before)
    finally:
        disk.unmount()
