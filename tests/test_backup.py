"""Backups during writes, on failing disks and under SIGKILL; and restoring them, however malformed the file."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import sqlite3
import sys
import time
import tracemalloc
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board, BoardError
from agent_task_board.folder import Folder
from agent_task_board.storage import schema
from agent_task_board.storage.db import APPLICATION_ID, SCHEMA_VERSION
from agent_task_board.storage.workdir import PREFIX, sweep, workplace
from agent_task_board.upkeep.restore import restore
from tests.command_line import Terminal
from tests.dying import kill_at_every_step
from tests.processes import SPAWN, Stage, assert_sound, contents, meet, raw, run_together
from tests.support import MARIA, bring_to, open_board, refused
from tests.test_store import Disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from multiprocessing.synchronize import Barrier, Event

    from tests.support import Clock


def fill(directory: Path) -> None:
    board = open_board(directory)
    for status in ("queued", "claimed", "running", "review", "done", "failed", "cancelled"):
        bring_to(board, status, body="x" * 1_000)
    board.add("waits", depends_on=[board.add("first").task.id])
    board.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory with a board, not to be changed."""
    directory = tmp_path_factory.mktemp("backup") / "data"
    fill(directory)
    return directory


@pytest.fixture(scope="module")
def packed(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a backup of it, not to be changed."""
    board = open_board(filled)
    path = board.backup(output=tmp_path_factory.mktemp("packed"))["path"]
    board.close()
    return Path(path)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def read(path: Path) -> tuple[bytes, dict[str, Any]]:
    """Return the board and the metadata of a backup."""
    with zipfile.ZipFile(path) as packed:
        assert sorted(packed.namelist()) == ["metadata.json", "tasks.db"]
        return packed.read("tasks.db"), json.loads(packed.read("metadata.json"))


def unpack(path: object, directory: Path) -> Path:
    """Extract the board from a backup by hand, as a user would."""
    with zipfile.ZipFile(str(path)) as packed:
        packed.extract("tasks.db", directory)
    return directory


def content_but_id(directory: object) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of a board, without its id: a restored board has one of its own."""
    found = contents(directory)
    return {**found, "board": [row[:2] + row[3:] for row in found["board"]]}


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir()) if directory.exists() else []


# Creating a backup


def test_backup_holds_the_board_and_what_is_to_be_known_of_it(filled: Path, packed: Path, tmp_path: Path) -> None:
    content, about = read(packed)
    with raw(filled) as connection:
        tasks = connection.execute("SELECT count(*) FROM task").fetchone()[0]
        events, newest = connection.execute("SELECT count(*), max(at) FROM event").fetchone()
    assert list(about) == [
        *("format", "schema", "created_at", "version", "tasks", "events", "schedules", "newest_event"),
        *("board", "size", "sha256"),
    ]
    assert (about["tasks"], about["events"], about["schedules"], about["newest_event"]) == (tasks, events, 0, newest)
    assert (about["format"], about["schema"]) == (1, SCHEMA_VERSION)
    assert (about["size"], about["sha256"]) == (len(content), sha256(content).hexdigest())
    assert content[18:20] == b"\1\1", "a board in WAL mode cannot be read where nothing can be written"
    assert contents(unpack(packed, tmp_path)) == contents(filled)


def test_board_taken_out_of_a_backup_opens_alone_and_goes_on(packed: Path, tmp_path: Path) -> None:
    board = open_board(unpack(packed, tmp_path))
    count = len(board.list_tasks().tasks)
    assert board.add("goes on").created
    assert len(board.list_tasks().tasks) == count + 1
    board.close()
    assert_sound(tmp_path)
    assert names(tmp_path) == ["tasks.db", "turnstile.queue", "turnstile.turn"]


def test_answer_names_the_file_what_is_in_it_and_its_digest(board: Board) -> None:
    board.add("first")
    answer = board.backup()
    assert list(answer) == ["path", "tasks", "events", "sha256"]
    assert Path(answer["path"]).parent == Path(board.path).parent / "backups"
    content, about = read(Path(answer["path"]))
    assert answer == {"path": answer["path"], "tasks": 1, "events": 1, "sha256": sha256(content).hexdigest()}
    assert about["created_at"] == "2026-11-30T00:53:20.000+00:00"
    assert Path(answer["path"]).name == f"backup-20261130T005320Z-{board.board_id()}.zip"
    assert about["board"] == board.board_id()


def test_backup_is_for_this_user_alone(board: Board, tmp_path: Path) -> None:
    board.add("first")
    mask = os.umask(0)
    try:
        path = Path(board.backup(output=tmp_path / "a" / "b")["path"])
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.stat().st_mode & 0o777 for one in (tmp_path / "a", tmp_path / "a" / "b")] == [0o700, 0o700]
    assert names(tmp_path / "a" / "b") == [path.name]


def test_backups_of_one_second_have_names_of_their_own(board: Board) -> None:
    board.add("first")
    made = [Path(board.backup()["path"]).name for _ in range(3)]
    stem = f"backup-20261130T005320Z-{board.board_id()}"
    assert made == [f"{stem}.zip", f"{stem}-2.zip", f"{stem}-3.zip"]


def test_backup_never_replaces_a_file(board: Board, tmp_path: Path) -> None:
    board.add("first")
    stem = f"backup-20261130T005320Z-{board.board_id()}"
    taken = tmp_path / f"{stem}.zip"
    taken.write_text("somebody's")
    (tmp_path / f"{stem}-2.zip").symlink_to(tmp_path / "nowhere")
    assert Path(board.backup(output=tmp_path)["path"]).name == f"{stem}-3.zip"
    assert taken.read_text() == "somebody's"


def test_keep_removes_the_oldest_of_our_backups_and_nothing_else(board: Board, clock: Clock, tmp_path: Path) -> None:
    board.add("first")
    place = tmp_path / "kept"
    place.mkdir()
    ours = f"backup-20200101T000000Z-{board.board_id()}"
    others = {
        *(f"{ours}-x.zip", f"{ours}.zip.part", f"my-{ours}.zip", "backup-20200101T000000Z.zip"),
        *("notes.txt", "backup-2026.zip", "my-backup-20200101T000000Z.zip", "backup-20200101T000000Z.zip.part"),
        *("before-schema-2-20200101T000000Z.zip", "backup-20200101T000000Z-x.zip"),
    }
    for name in others:
        (place / name).write_text("not ours")
    (place / f"{ours}.zip").mkdir()
    (place / f"{ours}-2.zip").symlink_to(place / "notes.txt")
    before = set(names(place))
    # The tenth of a second comes after the ninth.
    made = [Path(board.backup(output=place, keep=20)["path"]).name for _ in range(12)]
    clock.advance(seconds=1)
    answer = board.backup(output=place, keep=3)
    assert answer["removed"] == 10
    assert set(names(place)) == before | {made[10], made[11], Path(answer["path"]).name}


def test_keep_removes_no_backup_of_another_board_in_the_same_directory(
    board: Board, clock: Clock, tmp_path: Path
) -> None:
    board.add("first")
    first = Path(board.backup(output=tmp_path / "shared", keep=1)["path"])
    restore(first, tmp_path / "copy")
    others = [open_board(tmp_path / "other", clock), open_board(tmp_path / "copy", clock)]
    others[0].add("of the other board")
    paths = {first}
    for other in others:
        clock.advance(seconds=1)
        answer = other.backup(output=tmp_path / "shared", keep=1)
        assert answer["removed"] == 0
        paths.add(Path(answer["path"]))
        other.close()
    assert {*(tmp_path / "shared").iterdir()} == paths
    clock.advance(seconds=1)
    assert board.backup(output=tmp_path / "shared", keep=1)["removed"] == 1
    assert not first.exists()


def test_board_without_an_id_is_backed_up_and_gets_one_by_a_repair(board: Board) -> None:
    board.add("first")
    with raw(Path(board.path).parent) as connection:
        connection.execute("UPDATE board SET board_id = NULL")
    with refused("unusable"):
        board.board_id()
    assert Path(board.backup(keep=1)["path"]).name == "backup-20261130T005320Z.zip"
    assert not board.doctor()["healthy"]
    assert "id" in " ".join(board.doctor(fix="counters")["fixed"]["did"])
    assert board.doctor()["healthy"]
    assert len(board.board_id() or "") == 16


@pytest.mark.parametrize("id_", ["../../../etc/pass", "0123456789ABCDEF", "0123", "0123456789abcde\n"])
def test_id_that_is_none_never_becomes_part_of_a_name(board: Board, id_: str) -> None:
    board.add("first")
    with raw(Path(board.path).parent) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("UPDATE board SET board_id = ?", (id_,))
    with refused("unusable"):
        board.board_id()
    assert Path(board.database.directory, "backups").exists() is False
    with refused("unusable"):  # a value that the schema does not allow makes it damaged
        board.backup()


def test_id_of_a_board_that_is_not_there_yet_is_none_and_creates_nothing(tmp_path: Path) -> None:
    board = open_board(tmp_path / "data")
    assert board.board_id() is None
    assert names(tmp_path) == []
    board.add("first")
    created = board.board_id()
    board.close()
    assert created is not None
    assert open_board(tmp_path / "data").board_id() == created


def test_newest_backup_is_kept_though_the_clock_was_set_back(board: Board, clock: Clock) -> None:
    board.add("first")
    board.backup()
    clock.advance(days=-400)
    answer = board.backup(keep=1)
    assert names(Path(answer["path"]).parent) == [Path(answer["path"]).name]


def test_backups_of_one_second_are_numbered_on_though_the_first_was_removed(board: Board) -> None:
    board.add("first")
    made = [Path(board.backup(keep=1)["path"]).name for _ in range(3)]
    assert len(set(made)) == 3
    assert names(Path(board.path).parent / "backups") == made[2:]


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_directory_without_a_name_is_not_the_working_directory(
    board: Board, name: str, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.add("first")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with refused("invalid_input") as caught:
        board.backup(output=name)
    assert caught.value.details["field"] == "output"
    with refused("invalid_input") as caught:
        restore(packed, name)
    assert caught.value.details["field"] == "data-dir"
    assert names(tmp_path / "here") == []


@pytest.mark.parametrize("keep", [0, -1, "3", True, 2.5])
def test_keep_that_is_no_number_of_files_is_refused_before_anything_is_made(board: Board, keep: Any) -> None:
    board.add("first")
    with refused("invalid_input"):
        board.backup(keep=keep)
    assert not (Path(board.path).parent / "backups").exists()


def test_without_a_board_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    board = open_board(tmp_path / "data")
    with refused("not_found"):
        board.backup(output=tmp_path / "out")
    assert names(tmp_path) == []


def test_live_file_is_opened_by_nothing_but_sqlite(board: Board) -> None:
    """Closing any descriptor of it would drop SQLite's locks (https://www.sqlite.org/howtocorrupt.html, 2.2)."""
    board.add("first")
    opened: list[str] = []
    listening = True
    sys.addaudithook(lambda event, given: opened.append(str(given[0])) if listening and event == "open" else None)
    board.backup()
    board.doctor()
    listening = False
    live = {board.path, f"{board.path}-wal", f"{board.path}-shm"}
    assert len(opened) > 3
    assert live.isdisjoint(opened)


def test_damaged_board_is_unusable_and_leaves_no_backup(filled: Path, tmp_path: Path) -> None:
    shutil.copytree(filled, tmp_path / "data")
    path = tmp_path / "data" / "tasks.db"
    content = bytearray(path.read_bytes())
    content[8_192 * 5 : 8_192 * 6] = b"\xa5" * 8_192
    path.write_bytes(content)
    board = open_board(tmp_path / "data")
    with refused("unusable"):
        board.backup()
    board.close()
    assert names(tmp_path / "data" / "backups") == []


def test_directory_that_cannot_be_made_is_unusable(filled: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    board = open_board(filled)
    for output in (tmp_path / "file", tmp_path / "file" / "below"):
        with refused("unusable"):
            board.backup(output=output)
    board.close()
    assert names(tmp_path) == ["file"]


# During writes


def write_on(directory: str, number: int, answered: Any, stop: Event, barrier: Barrier) -> int:
    """Add tasks until stopped; after each answer, report how many there are."""
    board = open_board(directory)
    meet(barrier)
    while not stop.is_set():
        board.add(f"{number}")
        answered[number] += 1
    return int(answered[number])


def back_up(directory: str, place: str, answered: Any, stop: Event, barrier: Barrier) -> int:
    """Create backups in a loop, and compare each with what was acknowledged before it began."""
    board = open_board(directory)
    meet(barrier)
    try:
        for number in range(8):
            before = list(answered)
            path = board.backup()["path"]
            alone = unpack(path, Path(place) / str(number))
            assert_sound(alone)
            with raw(alone) as connection:
                rows = connection.execute("SELECT title, count(*) FROM task GROUP BY title")
                held = {int(title): count for title, count in rows}
            assert all(held.get(writer, 0) >= count for writer, count in enumerate(before)), (held, before)
    finally:
        stop.set()
    return sum(held.values())


def run_one(directory: str, role: int, place: str, answered: Any, stop: Event, barrier: Barrier) -> int:
    if role < 0:
        return back_up(directory, place, answered, stop, barrier)
    return write_on(directory, role, answered, stop, barrier)


def test_backup_beside_ten_writers_holds_whatever_was_answered_before_it(tmp_path: Path) -> None:
    writers = 10
    data = str(tmp_path / "data")
    open_board(data).add("0")
    answered, stop, barrier = SPAWN.Array("q", writers), SPAWN.Event(), SPAWN.Barrier(writers + 1)
    shared = (str(tmp_path), answered, stop, barrier)
    *written, held = run_together(run_one, [(data, role, *shared) for role in [*range(writers), -1]])
    assert 0 < held <= sum(written) + 1
    assert min(written) > 0
    assert len(names(tmp_path / "data" / "backups")) == 8
    assert_sound(data)


def back_up_once(directory: str, barrier: Barrier) -> str:
    board = open_board(directory)
    meet(barrier)
    path: str = board.backup(keep=2)["path"]
    board.close()
    return path


def test_backups_at_once_do_not_get_in_each_others_way(filled: Path, tmp_path: Path) -> None:
    shutil.copytree(filled, tmp_path / "data")
    paths = run_together(back_up_once, [(str(tmp_path / "data"), SPAWN.Barrier(4))] * 4)
    assert len(set(paths)) == 4
    left = list((tmp_path / "data" / "backups").iterdir())
    assert left
    for path in left:
        read(path)


# Failing disks, and SIGKILL


@pytest.mark.parametrize("free", [0, 60_000, 300_000])
def test_backup_on_a_full_disk_is_unusable_and_leaves_nothing(filled: Path, tmp_path: Path, free: int) -> None:
    path = tmp_path / "disk"
    path.mkdir()
    disk = Disk(path)
    try:
        disk.fill()
        with (path / "filler").open("rb+") as filler:
            filler.truncate(max(0, filler.seek(0, 2) - free))
        board = Board(filled, actor=MARIA)
        if free < 300_000:
            with refused("unusable") as caught:
                board.backup(output=path / "out")
            assert "space" in caught.value.hint
            assert names(path / "out") == []
        else:
            read(Path(board.backup(output=path / "out")["path"]))
        board.close()
    finally:
        disk.unmount()


@pytest.mark.parametrize("free", [0, 60_000])
def test_restore_on_a_full_disk_is_unusable_and_leaves_nothing(packed: Path, tmp_path: Path, free: int) -> None:
    path = tmp_path / "disk"
    path.mkdir()
    disk = Disk(path)
    try:
        disk.fill()
        with (path / "filler").open("rb+") as filler:
            filler.truncate(max(0, filler.seek(0, 2) - free))
        with refused("unusable"):
            restore(packed, path / "new")
        assert names(path) == ["filler"]
        disk.free()
        restore(packed, path / "new")
        assert_sound(path / "new")
    finally:
        disk.unmount()


def test_disk_that_fills_up_while_the_board_is_unpacked_leaves_nothing(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "disk"
    path.mkdir()
    disk = Disk(path)
    try:
        disk.fill()
        monkeypatch.setattr("agent_task_board.upkeep.restore.free_space", lambda _: None)
        with refused("unusable") as caught:
            restore(packed, path / "new")
        assert "space" in caught.value.hint
        assert names(path) == ["filler"]
    finally:
        disk.unmount()


def test_board_on_a_disk_for_reading_only_is_backed_up_elsewhere(tmp_path: Path, filled: Path) -> None:
    path = tmp_path / "disk"
    path.mkdir()
    disk = Disk(path)
    try:
        shutil.copy(filled / "tasks.db", path)
        disk.make_read_only()
        board = open_board(path)
        with refused("unusable"):
            board.backup()
        answer = board.backup(output=tmp_path / "out")
        board.close()
        assert contents(unpack(answer["path"], tmp_path / "alone")) == contents(filled)
    finally:
        disk.unmount()


def test_file_system_without_links_will_do(board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(source: str, path: str, **options: object) -> None:
        raise PermissionError(1, "no links here", source, None, path)

    board.add("first")
    monkeypatch.setattr("os.link", no_links)
    first, second = (Path(board.backup()["path"]) for _ in range(2))
    assert first.name != second.name
    assert restore(second, tmp_path / "new")["tasks"] == 1
    with refused("invalid_input"):
        restore(second, tmp_path / "new")


def back_up_and_close(directory: str) -> None:
    board = open_board(directory)
    board.backup(keep=1)
    board.close()


def grow_old(directory: Path) -> None:
    """Make the folders of a killed process look older."""
    for path in directory.rglob(f"{PREFIX}*"):
        os.utime(path, (time.time() - 3_600,) * 2)


def test_backup_killed_at_any_step_leaves_a_whole_one_or_none(filled: Path, stage: Stage, tmp_path: Path) -> None:
    base, places = tmp_path / "base", tmp_path / "places"
    places.mkdir()
    shutil.copytree(filled, base)
    back_up_and_close(str(base))
    before = contents(base)
    runs = stage.call(kill_at_every_step, str(base), str(places), back_up_and_close)
    assert {step.split()[0] for step in runs[-1]} >= {"os.link", "os.mkdir", "open", "os.remove"}
    left = 0
    for number in range(len(runs)):
        place = places / str(number)
        assert contents(place) == before
        found = sorted((place / "backups").glob("*.zip"))
        assert found, "the old one goes when the new one is there"
        for path in found:
            read(path)
        left += len(list((place / "backups").glob(f"{PREFIX}*")))
        grow_old(place)
        back_up_and_close(str(place))
        assert len(names(place / "backups")) == 1, "the next backup did not clean up"
    assert left > 5


def restore_into(place: str, packed: str) -> None:
    restore(packed, os.path.join(place, "new", "data"))


def test_restore_killed_at_any_step_leaves_a_whole_board_or_none(
    filled: Path, packed: Path, stage: Stage, tmp_path: Path
) -> None:
    runs = stage.call(kill_at_every_step, None, str(tmp_path), restore_into, str(packed))
    assert sum(step == "os.link tasks.db" for step in runs[-1]) == 1
    due = content_but_id(filled)
    whole = 0
    for number in range(len(runs)):
        place = tmp_path / str(number)
        data = place / "new" / "data"
        if (data / "tasks.db").exists():
            whole += 1
        else:
            restore_into(str(place), str(packed))  # at once: the leftovers do not prevent it
        assert content_but_id(data) == due
        grow_old(place)
        board = open_board(data)
        board.doctor(fix="leftovers")
        assert board.doctor()["healthy"]
        board.close()
        assert set(names(data)) <= {".gitignore", "tasks.db", "turnstile.queue", "turnstile.turn", "backups"}
    assert 1 < whole < len(runs)


def test_folder_that_somebody_works_in_is_not_swept(tmp_path: Path) -> None:
    top = Folder(str(tmp_path))
    with workplace(top) as place:
        (Path(place.path) / "tasks.db").write_text("half")
        os.utime(place.path, (time.time() - 3_600,) * 2)
        assert sweep(top) == []
    assert names(tmp_path) == []
    left = tmp_path / f"{PREFIX}1-abc"
    left.mkdir()
    assert sweep(top) == [], "it may have been made this very moment"
    os.utime(left, (time.time() - 3_600,) * 2)
    (tmp_path / f"{PREFIX}link").symlink_to(left)
    assert sweep(top) == [str(left)]
    assert names(tmp_path) == [f"{PREFIX}link"]


# Restoring


def test_restored_board_is_the_one_that_was_backed_up(filled: Path, packed: Path, tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        made = restore(packed, tmp_path / "a" / "new")
    finally:
        os.umask(mask)
    new = tmp_path / "a" / "new"
    tasks, events = (len(contents(filled)[table]) for table in ("task", "event"))
    assert made == {"path": str(new), "tasks": tasks, "events": events, "schema": SCHEMA_VERSION}
    assert content_but_id(new) == content_but_id(filled)
    assert names(new) == [".gitignore", "tasks.db"]
    assert new.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in new.iterdir()} == {0o600}
    board = open_board(new)
    assert board.add("goes on").created
    board.close()


def test_empty_directory_that_was_there_stays_as_it_was(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir(mode=0o750)
    restore(packed, tmp_path / "new")
    assert names(tmp_path / "new") == ["tasks.db"]
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o750


def test_restore_never_touches_a_directory_with_anything_in_it(filled: Path, packed: Path, tmp_path: Path) -> None:
    live = tmp_path / "live"
    shutil.copytree(filled, live)
    for place in (live, tmp_path):
        before = names(place)
        with refused("invalid_input") as caught:
            restore(packed, place)
        assert "--data-dir" in caught.value.hint
        assert names(place) == before
    assert contents(live) == contents(filled)


def test_board_that_appears_while_another_is_restored_there_is_left_alone(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_name = Folder.give_name

    def late(self: Folder, old: str, new: str, other: Folder) -> None:
        (Path(other.path) / new).write_text("somebody was quicker")
        give_name(self, old, new, other)

    monkeypatch.setattr(Folder, "give_name", late)
    with refused("invalid_input"):
        restore(packed, tmp_path / "new")
    assert (tmp_path / "new" / "tasks.db").read_text() == "somebody was quicker"


@pytest.mark.parametrize("what", ["nothing", "directory", "pipe"])
def test_what_is_no_file_is_invalid_input(tmp_path: Path, what: str) -> None:
    path = tmp_path / what
    if what == "directory":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    with refused("invalid_input"):
        restore(path, tmp_path / "new")
    assert not (tmp_path / "new").exists()


Parts = dict[str, bytes]


def board_with(packed: Path, *statements: str) -> bytes:
    """Return the board of a backup after some statements."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.deserialize(read(packed)[0])
        for statement in statements:
            connection.execute(statement)
        return bytes(connection.serialize())
    finally:
        connection.close()


def said(packed: Path, content: bytes, **other: Any) -> Parts:
    """Return the members of a backup with matching metadata, except for the given values."""
    about = read(packed)[1] | {"size": len(content), "sha256": sha256(content).hexdigest()} | other
    return {"tasks.db": content, "metadata.json": json.dumps(about).encode()}


def sound(packed: Path) -> bytes:
    return read(packed)[0]


BAD: dict[str, Callable[[Path], Parts]] = {
    "no metadata": lambda packed: {"tasks.db": sound(packed)},
    "no board": lambda packed: {"metadata.json": said(packed, sound(packed))["metadata.json"]},
    "a third member": lambda packed: {**said(packed, sound(packed)), "tasks.db-wal": b"x"},
    "a path that leads out": lambda packed: {**said(packed, sound(packed)), "../tasks.db": b"x"},
    "a board in a folder": lambda packed: {
        "data/tasks.db": sound(packed),
        "metadata.json": said(packed, sound(packed))["metadata.json"],
    },
    "an absolute path": lambda packed: {**said(packed, sound(packed)), "/tasks.db": b"x"},
    "metadata that is no JSON": lambda packed: {**said(packed, sound(packed)), "metadata.json": b"{"},
    "metadata that is no object": lambda packed: {**said(packed, sound(packed)), "metadata.json": b"[]"},
    "metadata that is not UTF-8": lambda packed: {**said(packed, sound(packed)), "metadata.json": b'"\xff"'},
    "metadata as deep as can be": lambda packed: {**said(packed, sound(packed)), "metadata.json": b"[" * 50_000},
    "metadata without end": lambda packed: {**said(packed, sound(packed)), "metadata.json": b" " * 100_000_000},
    "no size": lambda packed: said(packed, sound(packed), size=None),
    "a size that is text": lambda packed: said(packed, sound(packed), size="many"),
    "a size below nothing": lambda packed: said(packed, sound(packed), size=-1),
    "another size": lambda packed: said(packed, sound(packed), size=len(sound(packed)) + 1),
    "a size beyond any disk": lambda packed: said(packed, sound(packed), size=2**62),
    "another digest": lambda packed: said(packed, sound(packed), sha256="0" * 64),
    "no digest": lambda packed: said(packed, sound(packed), sha256=None),
    "another format": lambda packed: said(packed, sound(packed), format=2),
    "another number of tasks": lambda packed: said(packed, sound(packed), tasks=0),
    "another number of events": lambda packed: said(packed, sound(packed), events=0),
    "a format that is true": lambda packed: said(packed, sound(packed), format=True),
    "a format that is a fraction": lambda packed: said(packed, sound(packed), format=1.0),
    "another schema than said": lambda packed: said(packed, sound(packed), schema=1),
    "a newer schema": lambda packed: said(packed, board_with(packed, "PRAGMA user_version = 99"), schema=99),
    "no schema": lambda packed: said(packed, board_with(packed, "PRAGMA user_version = 0"), schema=0),
    "somebody else's database": lambda packed: said(packed, board_with(packed, "PRAGMA application_id = 5")),
    "no database": lambda packed: said(packed, b"x" * 10_000),
    "an empty board": lambda packed: said(packed, b""),
    "half a board": lambda packed: said(packed, sound(packed)[: len(sound(packed)) // 2]),
    "a board without tasks": lambda packed: said(
        packed, board_with(packed, "DROP TRIGGER task_is_never_deleted", "PRAGMA foreign_keys = OFF", "DROP TABLE task")
    ),
    "a page of garbage": lambda packed: said(packed, sound(packed)[:20_480] + b"\xa5" * 4_096 + sound(packed)[24_576:]),
    "a reference to nothing": lambda packed: said(
        packed,
        board_with(packed, "PRAGMA foreign_keys = OFF", "UPDATE dependency SET task_seq = 7000 WHERE task_seq > 1"),
    ),
}

NO_TASKS = ("PRAGMA foreign_keys = OFF", "DROP TRIGGER task_is_never_deleted", "DROP TABLE task")
OTHER_SCHEMAS: dict[str, tuple[str, ...]] = {
    "a view without end for a table": (
        *NO_TASKS,
        "CREATE VIEW task AS WITH RECURSIVE n (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n) SELECT seq FROM n",
    ),
    "a table of other columns": (*NO_TASKS, "CREATE TABLE task (x)"),
    "a column more": ("ALTER TABLE task ADD COLUMN x TEXT",),
    "a rule less": (
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = replace(sql, 'AND max_attempts BETWEEN 1 AND 1000', '') WHERE name = 'task'",
    ),
    "a table less": ("DROP TABLE tally",),
    "an index less": ("DROP INDEX task_dedupe",),
    "a trigger less": ("DROP TRIGGER event_is_never_changed",),
    "an index on other columns": ("DROP INDEX task_dedupe", "CREATE INDEX task_dedupe ON task (seq)"),
    "somebody's trigger": ("CREATE TRIGGER t AFTER INSERT ON task BEGIN DELETE FROM request; END",),
    "a trigger called as a table": ("CREATE TRIGGER task AFTER INSERT ON task BEGIN DELETE FROM request; END",),
    "somebody's table": ("CREATE TABLE mine (x)",),
    "a view called as statistics": (
        *("ANALYZE", "PRAGMA writable_schema = ON"),
        """
        UPDATE sqlite_schema SET sql = 'CREATE VIEW sqlite_stat1 AS SELECT 1 AS tbl, 2 AS idx, 3 AS stat', rootpage = 0
         WHERE name = 'sqlite_stat1'""",
    ),
    "somebody's view": ("CREATE VIEW mine AS SELECT 1",),
    "an index that is unique": ("CREATE UNIQUE INDEX mine ON task (seq)",),
    "an index on an expression": ("CREATE INDEX mine ON task (lower(title))",),
    "an index on some rows": ("CREATE INDEX mine ON task (title) WHERE title LIKE 'x%'",),
    "the number of another schema": ("PRAGMA user_version = 1",),
}


def put_together(parts: Parts, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as made:
        for name, content in parts.items():
            made.writestr(name, content)
    return target.getvalue()


def assert_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "given.zip"
    path.write_bytes(content)
    with refused("unusable"):
        restore(path, tmp_path / "new")
    assert names(tmp_path) == ["given.zip"]


@pytest.mark.parametrize("what", BAD)
def test_zip_that_is_not_a_sound_backup_is_unusable_and_leaves_nothing(what: str, packed: Path, tmp_path: Path) -> None:
    assert_refused(put_together(BAD[what](packed)), tmp_path)


@pytest.mark.parametrize("what", OTHER_SCHEMAS)
def test_board_of_another_schema_is_not_restored_and_none_of_it_is_run(
    what: str, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: object) -> None:
        pytest.fail("this reads tables, which may be views")

    monkeypatch.setattr("agent_task_board.storage.copies.refuse_damaged", late)
    schema = 1 if "PRAGMA user_version = 1" in OTHER_SCHEMAS[what] else SCHEMA_VERSION
    content = board_with(packed, *OTHER_SCHEMAS[what])
    assert_refused(put_together(said(packed, content, schema=schema)), tmp_path)


@pytest.mark.parametrize("what", OTHER_SCHEMAS)
def test_board_of_another_schema_is_not_backed_up(what: str, packed: Path, tmp_path: Path) -> None:
    (tmp_path / "tasks.db").write_bytes(board_with(packed, *OTHER_SCHEMAS[what]))
    board = open_board(tmp_path)
    with refused("unusable"):
        board.backup(output=tmp_path / "out")
    board.close()
    assert not (tmp_path / "out").exists() or names(tmp_path / "out") == []


def test_plain_index_of_a_user_and_statistics_go_with_a_backup(packed: Path, tmp_path: Path) -> None:
    content = board_with(packed, "CREATE INDEX mine ON task (title DESC, body)", "ANALYZE")
    (tmp_path / "tasks.db").write_bytes(content)
    board = open_board(tmp_path)
    made = board.backup(output=tmp_path / "out")
    board.close()
    restore(made["path"], tmp_path / "new")
    assert content_but_id(tmp_path / "new") == content_but_id(tmp_path)


def test_schemas_of_the_same_words_are_the_same() -> None:
    due = "CREATE TABLE a (\n  x TEXT  -- why\n) STRICT"
    endless = "CREATE TABLE a (x TEXT) STRICT /* to the end"
    for same in (due, "CREATE TABLE a(x TEXT) STRICT", "CREATE TABLE a (/* it's */ x TEXT)--\tSTRICT\nSTRICT", endless):
        assert schema.same_words(same, due), same
    others: tuple[object, ...] = (
        "CREATE TABLE a (x TEXT)",
        "CREATE TABLE a (x TEXT) -- STRICT",
        "CREATE TABLE a (\xa0x TEXT) STRICT",
        "CREATE TABLE a (\vx TEXT) STRICT",
        "CREATE TABLE a (xTEXT) STRICT",
        'CREATE TABLE a ("x" TEXT) STRICT',
        "CREATE TABLE a (x TEXT) STRICT\0",
        due.encode(),
        None,
    )
    for other in others:
        assert not schema.same_words(other, due), other
    assert not schema.same_words("CHECK (a IN ('b c'))", "CHECK (a IN ('b  c'))")
    assert not schema.same_words("CHECK (a IN ('b' 'c'))", "CHECK (a IN ('b''c'))")
    assert not schema.same_words("CHECK (a = '--' b)", "CHECK (a = '--' c)")


@pytest.mark.parametrize("what", ["before", "behind"])
def test_zip_with_anything_around_it_is_refused(what: str, packed: Path, tmp_path: Path) -> None:
    content = packed.read_bytes()
    assert_refused(b"#!/bin/sh\n" + content if what == "before" else content + b"more", tmp_path)


def head_of(packed: Path, *, size: int | None = None) -> bytes:
    """Return the first page of a board, which says how large the board is."""
    first = sound(packed)[:4_096]
    return first if size is None else first[:28] + (size // 4_096).to_bytes(4, "big") + first[32:]


LARGE = 64 << 20
LARGE_ONES: dict[str, Callable[[Path], bytes]] = {
    "nothing but zeros": lambda packed: bytes(LARGE),
    "zeros behind a board": lambda packed: head_of(packed).ljust(LARGE, b"\0"),
    "somebody else's database": lambda packed: (
        head_of(packed, size=LARGE)[:68] + b"GPKG" + head_of(packed)[72:].ljust(LARGE - 72, b"\0")
    ),
    "a newer schema": lambda packed: (
        head_of(packed, size=LARGE)[:60] + b"\0\0\0\x63" + head_of(packed)[64:].ljust(LARGE - 64, b"\0")
    ),
}


@pytest.mark.parametrize("what", LARGE_ONES)
def test_nothing_is_written_of_a_file_whose_beginning_is_no_board(
    what: str, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def note(folder: Folder, name: str, chunks: Iterable[bytes]) -> None:
        written.append(name)

    monkeypatch.setattr("agent_task_board.upkeep.restore.write_file", note)
    assert_refused(put_together(said(packed, LARGE_ONES[what](packed))), tmp_path)
    assert written == []


def test_bad_zips_are_bad_in_one_way_only(packed: Path, tmp_path: Path) -> None:
    path = tmp_path / "given.zip"
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        path.write_bytes(put_together(said(packed, board_with(packed)), compression))
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
        restore(path, tmp_path / "new")


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compression_is_refused(compression: int, packed: Path, tmp_path: Path) -> None:
    assert_refused(put_together(said(packed, sound(packed)), compression), tmp_path)


def test_member_given_twice_is_refused(packed: Path, tmp_path: Path) -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as made:
        for name, content in said(packed, sound(packed)).items():
            made.writestr(name, content)
        with pytest.warns(UserWarning, match="Duplicate"):
            made.writestr("tasks.db", sound(packed))
    assert_refused(target.getvalue(), tmp_path)


def test_encrypted_member_is_refused(packed: Path, tmp_path: Path) -> None:
    content = bytearray(put_together(said(packed, sound(packed))))
    for signature, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(signature) + place] |= 1
    assert_refused(bytes(content), tmp_path)


def test_member_that_is_larger_or_smaller_than_it_says_is_refused(packed: Path, tmp_path: Path) -> None:
    content = sound(packed)
    for size in (len(content) - 4_096, len(content) + 4_096):
        made = bytearray(put_together(said(packed, content, size=size)))
        place = made.rindex(b"PK\1\2", 0, made.rindex(b"PK\1\2"))
        assert made[place + 24 : place + 28] == len(content).to_bytes(4, "little")
        made[place + 24 : place + 28] = size.to_bytes(4, "little")
        assert_refused(bytes(made), tmp_path)


def test_directory_of_a_zip_is_not_read_beyond_any_measure(packed: Path, tmp_path: Path) -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as made:
        for number in range(20_000):
            made.writestr(f"{number:0200}", b"")
    content = target.getvalue()
    tracemalloc.start()
    try:
        assert_refused(content, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


def test_zip_cut_short_or_altered_anywhere_is_refused_or_gives_the_very_board(
    filled: Path, packed: Path, tmp_path: Path
) -> None:
    chance = random.Random(7)
    content, due = packed.read_bytes(), content_but_id(filled)
    path, new = tmp_path / "given.zip", tmp_path / "new"
    given = [content[: chance.randrange(len(content))] for _ in range(40)]
    ends = [*range(100), *range(len(content) - 300, len(content))]
    given += [
        content[:place] + bytes([content[place] ^ chance.randrange(1, 256)]) + content[place + 1 :]
        for place in [*chance.sample(ends, 150), *(chance.randrange(len(content)) for _ in range(60))]
    ]
    outcomes = set()
    for one in given:
        path.write_bytes(one)
        try:
            restore(path, new)
        except BoardError as error:
            outcomes.add(error.code)
        else:
            assert content_but_id(new) == due
            shutil.rmtree(new)
            outcomes.add("the very board")
        assert names(tmp_path) == ["given.zip"]
    assert outcomes == {"unusable", "the very board"}


# The command line


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def test_backup_and_restore_from_the_shell(terminal: Terminal) -> None:
    id_ = terminal.add("Write the parser")
    made = terminal.data("backup")
    assert made["tasks"] == 1
    answer = terminal.atb("restore", made["path"], "--data-dir", "copy")
    assert answer.data == {"path": str(terminal.directory / "copy"), "tasks": 1, "events": made["events"]}
    assert [str(terminal.directory / "copy") in warning for warning in answer.warnings] == [True]
    assert terminal.data("show", id_, "--data-dir", "copy") == terminal.data("show", id_)
    terminal.refused("invalid_input", "restore", made["path"])
    terminal.refused("invalid_input", "restore", made["path"], "--data-dir", "copy")
    terminal.refused("invalid_input", "restore", "nowhere.zip", "--data-dir", "other")
    assert terminal.data("backup", "--output", "out", "--keep", "1")["removed"] == 0
    terminal.refused("invalid_input", "backup", "--keep", "0")
    assert terminal.refused("invalid_input", "backup", "--output", "")["details"]["field"] == "output"
    assert "backup-" in terminal.atb("backup", "--format", "table").text


def test_restore_of_an_older_board_says_how_to_bring_it_up_to_date(terminal: Terminal) -> None:
    from tests.old_boards import turn_into_schema_1

    terminal.add("Write the parser")
    turn_into_schema_1(terminal.directory / "data")
    terminal.data("tick")
    [packed] = (terminal.directory / "data" / "backups").iterdir()
    answer = terminal.atb("restore", str(packed), "--data-dir", "old")
    assert "atb tick" in answer.warnings[1]
    terminal.refused("unusable", "list", "--data-dir", "old")
    terminal.data("tick", "--data-dir", "old")
    assert len(terminal.data("list", "--data-dir", "old")["tasks"]) == 1


def test_backup_without_a_board_is_not_found(terminal: Terminal) -> None:
    terminal.refused("not_found", "backup")
    assert terminal.files() == set()


def test_application_id_is_what_the_file_says(packed: Path) -> None:
    assert read(packed)[0][68:72] == APPLICATION_ID.to_bytes(4, "big")
