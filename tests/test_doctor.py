"""What the doctor finds on boards that were damaged on purpose, what it repairs, and that it writes nothing else."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board, Settings
from agent_task_board.board import history as fold
from agent_task_board.settings import Hooks
from agent_task_board.storage import copies
from agent_task_board.storage.workdir import LOCKED, PREFIX
from agent_task_board.upkeep import contents as inside
from agent_task_board.upkeep import disk, repairs, surroundings
from tests.command_line import Terminal
from tests.old_boards import turn_into_schema_1
from tests.processes import contents, kill_after
from tests.support import MARIA, bring_to, hold, open_board, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Clock

CHECKS = ("sqlite", "filesystem", "disk", "permissions", "log", "unfinished", "config", "trust", "file", *inside.FINE)

LIFE = ("queued", "claimed", "running", "review", "done", "failed", "cancelled")


def fill(board: Board) -> None:
    """Add a bit of everything to a board."""
    for status in LIFE:
        bring_to(board, status, body="x" * 500, tags=["a"])
    first = board.add("what another waits for", not_before="2030-01-01").task.id
    board.add("waits", depends_on=[first])
    held = hold(board, "bob", task=bring_to(board, "queued").id)
    board.release(held.id, held.token, note="later")
    board.update(held.id, title="renamed", params={"a": 1}, due_at="2030-01-01")
    held = hold(board, "bob", task=held.id)
    board.handoff(held.id, held.token, "zoe")
    board.archive(0, status=["cancelled"])


@pytest.fixture
def life(board: Board) -> Board:
    """Return a board with a bit of everything."""
    fill(board)
    return board


def findings(board: Board, level: str | None = None) -> dict[str, dict[str, Any]]:
    """Return the findings by check, of one level or of all; the last of each check."""
    found = board.doctor()["findings"]
    return {one["check"]: one for one in found if level in (None, one["level"])}


def spoil(board: Board, *statements: str) -> None:
    """Change the file directly, with its triggers disabled."""
    with closing(sqlite3.connect(board.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for _, sql in triggers:
            connection.execute(sql)


# An undamaged board


def test_sound_board_is_healthy_and_every_check_says_so(life: Board) -> None:
    found = life.doctor()
    assert list(found) == ["findings", "healthy"]
    assert found["healthy"] is True
    assert [one["check"] for one in found["findings"]] == list(CHECKS)
    for one in found["findings"]:
        assert list(one) == ["check", "level", "message", "remedy", "fix"]
        assert one["level"] == "ok" or one["check"] == "sqlite", one
        assert one["level"] == "ok" or one["remedy"], one


def test_looking_writes_nothing(life: Board) -> None:
    directory = Path(life.path).parent
    before, files = contents(directory), sorted(directory.rglob("*"))
    life.doctor()
    with refused("invalid_input"):
        life.doctor(fix="everything")
    assert contents(directory) == before
    assert sorted(directory.rglob("*")) == files


def test_board_whose_clock_was_set_back_is_healthy(life: Board, clock: Clock) -> None:
    held = hold(life, "bob", task=bring_to(life, "queued").id)
    clock.advance(minutes=-60)
    life.release(held.id, held.token)
    clock.advance(minutes=-60)
    hold(life, "bob", task=held.id)
    found = life.doctor()
    assert found["healthy"]
    assert {one["check"] for one in found["findings"] if one["level"] in ("note", "warning")} >= {"attempts", "clock"}
    clock.advance(minutes=180)
    assert findings(life)["clock"]["level"] == "ok"


def test_where_no_board_is_there_is_nothing_wrong_with_it(tmp_path: Path) -> None:
    board = open_board(tmp_path / "data")
    found = board.doctor()
    assert found["healthy"]
    assert board.path in found["findings"][-1]["message"]
    assert found["findings"][-1]["level"] == "note"
    assert board.doctor(fix="counters")["fixed"] == {"name": "counters", "backup": None, "did": []}
    assert list(tmp_path.iterdir()) == []


# A damaged board

UNDONE = "UPDATE task SET status = 'queued', finished_at = NULL, claimed_by = NULL, claimed_at = NULL, attempts = 0"
GHOST = """
    INSERT INTO task (id, title, max_attempts, created_by, created_at, updated_at)
    VALUES ('01M6CYVR4GHDBEVDSVEQ65Y4BX', 'ghost', 3, 'x', 'now', 'now')"""
OTHER_PAGE = """
    UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'event_note')
     WHERE name = 'request_age'"""

SPOILS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "an event is lost": ("events", "error", ("DELETE FROM event WHERE seq = 3",)),
    "the first event is lost": ("events", "error", ("DELETE FROM event WHERE seq = 1",)),
    "an event is altered": (
        "folds",
        "error",
        ('UPDATE event SET data = replace(data, \'"to":"claimed"\', \'"to":"running"\') WHERE kind = \'claimed\'',),
    ),
    "a priority without an event": ("folds", "error", ("UPDATE task SET priority = 7 WHERE seq = 1",)),
    "a status without an event": ("folds", "error", (f"{UNDONE} WHERE status = 'failed'",)),
    "a body without an event": ("folds", "error", ("UPDATE task SET body = 'other' WHERE seq = 1",)),
    "an assignee without an event": ("folds", "error", ("UPDATE task SET assignee = 'eve' WHERE seq = 1",)),
    "a fence without an event": ("folds", "error", ("UPDATE task SET fence = 9 WHERE seq = 1",)),
    "a task that left the archive": ("folds", "error", ("UPDATE task SET archived_at = NULL",)),
    "a dependency without an event": ("folds", "error", ("DELETE FROM dependency",)),
    "a task without history": (
        "folds",
        "error",
        (GHOST,),
    ),
    "an event that is no JSON": ("folds", "error", ("UPDATE event SET data = '{' WHERE seq = 2",)),
    "events out of their order": (
        "folds",
        "error",
        tuple(f"UPDATE event SET seq = {new} WHERE seq = {old}" for old, new in ((2, 9001), (3, 2), (9001, 3))),
    ),
    "an attempt that is open though nobody holds the task": (
        "attempts",
        "error",
        ("UPDATE attempt SET outcome = NULL, ended_at = NULL WHERE outcome = 'completed'",),
    ),
    "a task that is held without an attempt": (
        "attempts",
        "error",
        ("UPDATE attempt SET outcome = 'failed', ended_at = claimed_at WHERE outcome IS NULL",),
    ),
    "two leases at one time": (
        "attempts",
        "error",
        ("UPDATE attempt SET ended_at = '2030-01-01T00:00:00.000+00:00' WHERE outcome = 'released'",),
    ),
    "two leases under one fence": ("attempts", "error", ("UPDATE attempt SET fence = 1",)),
    "an attempt ahead of its task": ("attempts", "error", ("UPDATE attempt SET fence = fence + 10",)),
    "tasks that wait for each other": (
        "dependencies",
        "error",
        ("INSERT INTO dependency SELECT depends_on_seq, task_seq, 1 FROM dependency",),
    ),
    "a dependency on nothing": ("foreign_keys", "error", ("UPDATE dependency SET depends_on_seq = 7000",)),
    "an event of no task": ("foreign_keys", "error", ("UPDATE event SET task_seq = 7000 WHERE seq = 1",)),
    "a wrong tally": ("counters", "error", ("UPDATE tally SET tasks = tasks + 1 WHERE status = 'done'",)),
    "a tally of nothing": ("counters", "error", ("INSERT INTO tally VALUES ('ghost', 'done', 2)",)),
    "no tally": ("counters", "error", ("DELETE FROM tally WHERE status = 'archived'",)),
    "wrong open dependencies": ("counters", "error", ("UPDATE task SET open_dependencies = 2 WHERE seq = 1",)),
    "no open dependencies": ("counters", "error", ("UPDATE task SET open_dependencies = 0",)),
    "an agent who did more": ("counters", "error", ("UPDATE agent SET completed = completed + 1 WHERE name = 'zoe'",)),
    "an agent who did less": ("counters", "error", ("UPDATE agent SET failed = 0",)),
    "no revision": ("counters", "error", ("DELETE FROM board",)),
    "a revision of a board without writes": ("counters", "error", ("UPDATE board SET revision = 0",)),
    "a revision below the number of writes": (
        "counters",
        "error",
        ("UPDATE board SET revision = (SELECT count(*) - 1 FROM event)",),
    ),
    "no index": ("schema", "error", ("DROP INDEX task_ready",)),
    "somebody's trigger": ("schema", "error", ("CREATE TRIGGER t AFTER INSERT ON task BEGIN SELECT 1; END",)),
    "somebody's plain index": ("schema", "note", ("CREATE INDEX mine ON task (title)",)),
    "an older schema than it has": ("schema", "error", ("PRAGMA user_version = 1",)),
    "no schema that it says": ("file", "error", ("PRAGMA user_version = 0",)),
    "a schema below nothing": ("file", "error", ("PRAGMA user_version = -1",)),
    "somebody's table": ("schema", "warning", ("CREATE TABLE mine (x)",)),
    "another index of that name": (
        "schema",
        "error",
        ("DROP INDEX task_ready", "CREATE INDEX task_ready ON task (seq)"),
    ),
    "a clock that is behind": (
        "clock",
        "warning",
        (
            "UPDATE event SET at = '2030-01-01T00:00:00.000+00:00' WHERE seq = (SELECT max(seq) FROM event)",
            """
            UPDATE task SET updated_at = (SELECT max(at) FROM event)
             WHERE seq = (SELECT task_seq FROM event ORDER BY seq DESC LIMIT 1)""",
        ),
    ),
    "a newer schema": ("file", "error", ("PRAGMA user_version = 99",)),
    "somebody else's file": ("file", "error", ("PRAGMA application_id = 5",)),
    "an index that is out of step": (
        "integrity",
        "error",
        ("PRAGMA writable_schema = ON", OTHER_PAGE),
    ),
}


@pytest.mark.parametrize("what", SPOILS)
def test_doctor_finds_what_was_spoiled(what: str, life: Board) -> None:
    check, level, statements = SPOILS[what]
    life.close()
    spoil(life, *statements)
    before = contents(os.path.dirname(life.path)) if check != "integrity" else None
    found = life.doctor()
    assert level in [one["level"] for one in found["findings"] if one["check"] == check], found
    assert found["healthy"] is (level != "error")
    assert all(one["remedy"] for one in found["findings"] if one["level"] != "ok")
    if before is not None:
        assert contents(os.path.dirname(life.path)) == before


def test_board_with_a_view_in_place_of_a_table_is_looked_over_to_an_end(life: Board) -> None:
    life.close()
    with closing(sqlite3.connect(life.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DROP TABLE event")
        endless = "WITH RECURSIVE n (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n) SELECT seq FROM n"
        connection.execute(f"CREATE VIEW event AS {endless}")
    said = [one["message"] for one in life.doctor()["findings"] if one["check"] == "schema"]
    assert any("table event is missing" in one for one in said), said
    assert any("view event is not one of ours" in one for one in said), said


def test_remedy_for_a_table_of_any_name_is_one_command_that_takes_it_away(life: Board) -> None:
    name = 'it\'s; ""touch"" here'
    spoil(life, f'CREATE TABLE "{name}" (x)')
    remedy = findings(life)["schema"]["remedy"]
    words = shlex.split(remedy.partition("`")[2].partition("`")[0])
    assert words[:2] == ["sqlite3", life.path]
    spoil(life, words[2])
    assert life.doctor()["healthy"]


def test_newest_event_that_is_lost_is_missed_where_the_task_tells_of_it(board: Board, clock: Clock) -> None:
    board.add("first")
    held = hold(board, "bob", task=bring_to(board, "queued").id)
    board.heartbeat(held.id, held.token)
    clock.advance(seconds=1)
    board.heartbeat(held.id, held.token, note="changes nothing but the time of the latest change")
    board.comment(held.id, "changes nothing")
    clock.advance(seconds=1)
    board.heartbeat(held.id, held.token)
    assert board.doctor()["healthy"]
    spoil(board, "DELETE FROM event WHERE seq > (SELECT max(seq) - 2 FROM event)")
    assert held.id in findings(board, "error")["events"]["message"]


def test_imported_history_is_no_trace_of_lost_writes(life: Board, tmp_path: Path) -> None:
    for task in life.list_tasks(status=["done"]).tasks:
        for number in range(5):
            life.comment(task.id, f"remark {number}")
    target = open_board(tmp_path / "other")
    out = io.BytesIO()
    life.export(out)
    out.seek(0)
    target.import_tasks(out)
    assert target.doctor()["healthy"]
    target.comment(target.list_tasks().tasks[0].id, "seen")
    assert target.doctor()["healthy"]
    spoil(target, "UPDATE board SET revision = (SELECT count(*) FROM task)")
    assert findings(target, "error")["counters"]["fix"] == "counters"
    target.close()


WRONG_SCHEDULES = {
    "a rule that is none": "cron = '61 * * * *'",
    "a zone that is none": "zone = 'No/Where'",
    "a template that is no JSON": "task = '{'",
    "a template that is no object": "task = '[]'",
    "a template with a field that is none": """task = '{"title": "a", "colour": "red"}'""",
    "a template without a title": "task = '{}'",
    "an instant that is none": "next_at = 'soon'",
    "a next occurrence before the latest": "last_at = '2999-01-01T00:00:00.000+00:00'",
}


@pytest.mark.parametrize("what", WRONG_SCHEDULES)
def test_schedule_that_cannot_go_on_is_named(what: str, life: Board) -> None:
    life.add_schedule("sound", cron="0 9 * * *", task={"title": "a"})
    life.add_schedule("it's wrong", cron="0 9 * * *", task={"title": "a {date}"})
    assert life.doctor()["healthy"]
    wrong = f"UPDATE schedule SET {WRONG_SCHEDULES[what]} WHERE name <> 'sound'"
    spoil(life, "PRAGMA ignore_check_constraints = ON", wrong)
    [found] = [one for one in life.doctor()["findings"] if one["check"] == "schedules"]
    assert found["level"] == "error"
    assert "it's wrong" in found["message"]
    assert found["remedy"].startswith("`atb schedule remove 'it'\"'\"'s wrong'`")


def test_finding_names_a_few_tasks_and_counts_the_others(board: Board) -> None:
    ids = [board.add(f"task {number}").task.id for number in range(8)]
    spoil(board, "UPDATE task SET priority = 5")
    message = findings(board, "error")["folds"]["message"]
    assert [id_ for id_ in ids if id_ in message] == ids[:5]
    assert "3 more" in message
    assert "priority" in message


def test_circle_is_named(board: Board) -> None:
    first = board.add("first").task.id
    second = board.add("second", depends_on=[first]).task.id
    spoil(board, "INSERT INTO dependency VALUES (1, 2, 1)")
    message = findings(board, "error")["dependencies"]["message"]
    assert f"{first} waits for {second} waits for {first}" in message or f"{second} waits for {first}" in message


def test_dependency_on_a_later_task_is_no_circle(board: Board) -> None:
    first = board.add("first").task.id
    later = board.add("later").task.id
    board.update(first, add_depends_on=[later])
    assert findings(board)["dependencies"]["level"] == "ok"


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "half of it": lambda content: content[: len(content) // 2],
    "a few bytes of it": lambda content: content[:50],
    "no SQLite file": lambda content: b"x" * len(content),
    "text": lambda content: b"not a board\n",
    "garbage from the second page on": lambda content: content[:4_096] + b"\xa5" * (len(content) - 4_096),
    "a first page of garbage": lambda content: content[:100] + b"\xff" * 3_996 + content[4_096:],
    "zeros in the middle": lambda content: content[:40_960] + bytes(20_480) + content[61_440:],
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_file_gives_findings(what: str, life: Board) -> None:
    life.close()
    path = Path(life.path)
    path.write_bytes(BROKEN[what](path.read_bytes()))
    content = path.read_bytes()
    found = life.doctor()
    assert not found["healthy"]
    assert {one["check"] for one in found["findings"] if one["level"] == "error"} & {"file", "integrity"}
    assert path.read_bytes() == content
    with refused("unusable") as caught:
        life.backup()
    assert life.path in caught.value.message


def test_garbage_on_any_page_gives_findings(life: Board) -> None:
    life.close()
    path = Path(life.path)
    content = path.read_bytes()
    seen = set()
    for page in range(len(content) // 4_096):
        path.write_bytes(content[: page * 4_096] + os.urandom(4_096) + content[(page + 1) * 4_096 :])
        seen.add(life.doctor()["healthy"])
    assert seen == {False}


def test_what_is_no_file_gives_a_finding(tmp_path: Path) -> None:
    (tmp_path / "tasks.db").mkdir()
    assert findings(open_board(tmp_path), "error").keys() == {"file"}
    (tmp_path / "file").write_text("")
    assert findings(open_board(tmp_path / "file"), "error").keys() == {"file"}


def test_empty_file_is_no_board_yet(tmp_path: Path) -> None:
    (tmp_path / "tasks.db").touch(mode=0o600)
    assert open_board(tmp_path).doctor()["healthy"]
    with closing(sqlite3.connect(tmp_path / "tasks.db")) as connection:
        connection.execute("VACUUM")  # a file without any table
    found = open_board(tmp_path).doctor()
    assert (found["healthy"], found["findings"][-1]["level"]) == (True, "note")


def test_older_board_is_looked_over_as_far_as_can_be(life: Board) -> None:
    life.unarchive(life.list_tasks(archived=True).tasks[0].id)
    life.close()
    turn_into_schema_1(Path(life.path).parent)
    found = life.doctor()
    assert found["healthy"]
    assert [one["remedy"] for one in found["findings"] if one["check"] == "file"] == [
        "Run `atb tick` once: it migrates the board."
    ]
    spoil(life, "DELETE FROM event WHERE seq = 3")
    assert findings(life, "error").keys() == {"events"}


# Around the file


@pytest.mark.parametrize(
    ("version", "has_fault"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 53, 0), False),
    ],
)
def test_versions_of_sqlite_with_a_fault_are_warned_of(version: tuple[int, ...], *, has_fault: bool) -> None:
    [finding] = surroundings.check_sqlite(version)
    assert finding["level"] == ("warning" if has_fault else "ok")
    assert ".".join(map(str, version)) in finding["message"]


def test_shared_file_system_is_an_error(life: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "shared_type", lambda _: "nfs4")
    assert "nfs4" in findings(life, "error")["filesystem"]["message"]


def test_log_without_its_board_is_an_error(tmp_path: Path) -> None:
    kill_after(add_one, str(tmp_path))
    (tmp_path / "tasks.db").unlink()
    assert "log" in findings(open_board(tmp_path), "error")


def add_one(directory: str) -> None:
    open_board(directory).add("from a process that was killed")


def test_large_log_and_a_journal_are_noted(life: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "LARGE_LOG", 10)
    assert "log" in findings(life, "note")
    life.close()
    Path(f"{life.path}-journal").touch()
    assert "journal" in findings(life, "note")["log"]["message"]


def test_locked_board_is_busy_and_not_broken(life: Board) -> None:
    impatient = Board(Path(life.path).parent, actor=MARIA, settings=Settings(busy_timeout=0))
    life.close()
    with closing(sqlite3.connect(life.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        for fix in (None, "counters"):
            with refused("busy") as caught:
                impatient.doctor(fix=fix)
            assert life.path in caught.value.message
        connection.execute("ROLLBACK")
        assert impatient.doctor()["healthy"]
    impatient.close()


@pytest.mark.parametrize("step", ["faults", "broken_references"])
def test_board_that_is_locked_during_the_checks_is_busy(
    life: Board, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    impatient = Board(Path(life.path).parent, actor=MARIA, settings=Settings(busy_timeout=0))
    life.close()
    original = getattr(copies, step)
    with closing(sqlite3.connect(life.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")

        def lock_first(tx: sqlite3.Connection, *arguments: object) -> object:
            tx.commit()  # ends the read transaction, if it has begun
            connection.execute("BEGIN EXCLUSIVE")
            return original(tx, *arguments)

        monkeypatch.setattr(copies, step, lock_first)
        with refused("busy"):
            impatient.doctor()
    impatient.close()


MIB = 1 << 20


@pytest.mark.parametrize(
    ("size", "free", "level"),
    [(MIB, 99, "warning"), (MIB, 100, "ok"), (200 * MIB, 399, "warning"), (200 * MIB, 402, "ok"), (MIB, None, "note")],
)
def test_disk_without_room_for_a_backup_is_warned_of(
    life: Board, monkeypatch: pytest.MonkeyPatch, size: int, free: int | None, level: str
) -> None:
    life.close()
    os.truncate(life.path, size)  # sparse: it costs no space
    monkeypatch.setattr(surroundings, "free_space", lambda _: None if free is None else free * MIB)
    finding = findings(life)["disk"]
    assert finding["level"] == level
    assert (finding["remedy"] is None) is (level == "ok")


def test_free_space_is_that_of_the_disk_that_the_board_will_be_on(tmp_path: Path) -> None:
    found = os.statvfs(tmp_path)
    assert 0 < (disk.free_space(str(tmp_path)) or 0) <= found.f_blocks * found.f_frsize
    assert disk.free_space(str(tmp_path / "not" / "yet")) is None
    assert findings(open_board(tmp_path / "not" / "yet"))["disk"]["level"] in ("ok", "warning")


def test_deliveries_that_are_stuck_are_told(tmp_path: Path, clock: Clock) -> None:
    settings = Settings(hooks=Hooks(command=["true"], events=["done"]))
    board = Board(tmp_path, actor=MARIA, clock=clock, settings=settings)
    bring_to(board, "done")
    assert findings(board)["outbox"]["level"] == "ok"
    clock.advance(minutes=61)
    assert findings(board)["outbox"]["level"] == "warning"
    spoil(board, "UPDATE outbox SET status = 'failed', due_at = NULL, ended_at = 'now'")
    assert findings(board)["outbox"]["level"] == "note"
    board.close()


# Repairs


@pytest.mark.parametrize("what", [what for what, (check, _, _) in SPOILS.items() if check == "counters"])
def test_counters_are_counted_anew_after_a_backup(what: str, life: Board, tmp_path: Path) -> None:
    before = contents(os.path.dirname(life.path))
    spoil(life, *SPOILS[what][2])
    spoilt = contents(os.path.dirname(life.path))
    assert findings(life, "error")["counters"]["fix"] == "counters"
    found = life.doctor(fix="counters")
    assert found["healthy"]
    assert found["fixed"]["name"] == "counters"
    assert found["fixed"]["did"]
    shutil.unpack_archive(found["fixed"]["backup"], tmp_path / "alone")
    assert contents(tmp_path / "alone") == spoilt
    after = contents(os.path.dirname(life.path))
    for table in ("task", "agent", "event", "attempt", "dependency"):
        assert after[table] == before[table], table
    kept = [row for row in before["tally"] if row[2]]
    assert after["tally"] == kept


@pytest.mark.parametrize("statement", ["DELETE FROM board", "UPDATE board SET revision = 3"])
def test_revision_that_was_lost_goes_on_above_any_that_was_given_out(statement: str, life: Board) -> None:
    given_out = life.revision()
    spoil(life, statement)
    assert "revision" in " ".join(life.doctor(fix="counters")["fixed"]["did"])
    assert life.revision() > given_out + 1_000_000
    now = life.revision()
    life.add("goes on")
    assert life.revision() > now
    assert "revision" not in " ".join(life.doctor(fix="counters")["fixed"]["did"])


@pytest.mark.parametrize("fix", repairs.FIXES)
def test_repair_that_nothing_asks_for_changes_nothing(fix: str, life: Board) -> None:
    before = contents(os.path.dirname(life.path))
    found = life.doctor(fix=fix)
    assert found["fixed"] == {"name": fix, "backup": None, "did": []}
    assert contents(os.path.dirname(life.path)) == before
    assert not (Path(life.path).parent / "backups").exists()


def test_repair_of_a_damaged_board_is_refused(life: Board) -> None:
    life.close()
    spoil(life, *SPOILS["a wrong tally"][2], *SPOILS["an index that is out of step"][2])
    before = Path(life.path).read_bytes()
    with refused("unusable"):
        life.doctor(fix="counters")
    life.close()
    assert Path(life.path).read_bytes() == before


def test_leftovers_of_killed_backups_are_removed(life: Board) -> None:
    directory = Path(life.path).parent
    life.backup()
    left = [place / f"{PREFIX}1-abc" for place in (directory, directory / "backups")]
    for path in left:
        path.mkdir()
        (path / "tasks.db").write_text("half")
        os.utime(path, (time.time() - 3_600,) * 2)
    assert findings(life, "note")["unfinished"]["fix"] == "leftovers"
    found = life.doctor(fix="leftovers")
    assert found["healthy"]
    assert not any(path.exists() for path in left)
    assert str(left[0]) in " ".join(found["fixed"]["did"])


def test_loss_of_the_newest_comment_is_found(life: Board) -> None:
    task = life.add("one more").task.id
    life.comment(task, "lost")
    spoil(life, "DELETE FROM event WHERE seq = (SELECT max(seq) FROM event)")
    assert "newest events are missing" in findings(life, "error")["events"]["message"]


def test_revision_below_that_of_the_newest_event_is_found_and_mended(life: Board) -> None:
    held = hold(life, task=life.add("one more").task.id)
    for _ in range(5):
        life.heartbeat(held.id, held.token)
    life.comment(held.id, "the newest event")
    spoil(life, "UPDATE board SET revision = revision - 1")
    assert findings(life, "error")["counters"]["fix"] == "counters"
    assert life.doctor(fix="counters")["healthy"]


def test_folder_of_a_killed_backup_is_removed_by_the_next_one_at_once(life: Board) -> None:
    folder = Path(life.path).parent / "backups"
    life.backup()
    left, new = (folder / f"{prefix}1-abc" for prefix in (LOCKED, PREFIX))
    for path in (left, new):
        path.mkdir()
    life.backup()
    assert (left.exists(), new.exists()) == (False, True), "a new folder may not be locked yet"


def test_files_that_others_can_read_are_taken_back(life: Board) -> None:
    directory = Path(life.path).parent
    life.backup()
    spread = [directory, directory / "tasks.db", directory / "backups"]
    for path in spread:
        path.chmod(0o777)
    found = life.doctor()
    assert found["healthy"]
    assert [one["fix"] for one in found["findings"] if one["level"] == "warning" and one["check"] != "sqlite"] == [
        "permissions"
    ] * 3
    life.doctor(fix="permissions")
    assert [path.stat().st_mode & 0o777 for path in spread] == [0o755, 0o700, 0o755]
    assert findings(life)["permissions"]["level"] == "ok"


def test_configuration_that_shows_a_secret_is_taken_back(life: Board, tmp_path: Path) -> None:
    inside, named = Path(life.path).parent / "config.toml", tmp_path / "named.toml"
    for path in (inside, named):
        path.write_text('[hooks]\nwebhook_secret = "s3cret"\n')
        path.chmod(0o644)
    found = life.doctor(config=named)
    assert [one["level"] for one in found["findings"] if one["check"] == "config"] == ["warning"] * 2
    assert "s3cret" not in str(found)
    life.doctor(fix="permissions", config=named)
    assert [path.stat().st_mode & 0o777 for path in (inside, named)] == [0o600, 0o600]
    inside.write_text('[hooks]\nwebhook_secret = ""\n')
    inside.chmod(0o644)
    named.write_text("no TOML")
    named.chmod(0o644)
    found = life.doctor(config=named)
    assert [one["level"] for one in found["findings"] if one["check"] == "config"] == ["ok"]


# The fold


def test_fold_of_every_task_is_the_task(life: Board) -> None:
    assert findings(life)["folds"]["level"] == "ok"
    for details in map(life.show, (task.id for task in life.list_tasks().tasks)):
        events = life.events(task=details["task"]["id"])["events"]
        state, wrong = fold.fold((event["seq"], event["kind"], json.dumps(event["data"])) for event in events)
        assert wrong is None
        for field in fold.NEW_TASK.keys() & details["task"].keys() - {"body", "params", "result"}:
            assert state[field] == details["task"][field], field
    assert set(fold.NEW_TASK) >= {"status", "assignee", "claimed_by", "attempts", "fence", "blocked_by", "archived_at"}


def test_imported_event_settles_what_came_before_it() -> None:
    events = [
        (1, "created", '{"changes":{"priority":{"from":0,"to":5}}}'),
        (2, "updated", '{"changes":{"priority":{"from":7,"to":8}}}'),
    ]
    state, wrong = fold.fold(events)
    assert (state["priority"], wrong is None) == (8, False)
    state, wrong = fold.fold([*events, (3, "imported", '{"changes":{"priority":{"from":0,"to":9}}}')])
    assert (state["priority"], wrong) == (9, None)


# The command line


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def test_doctor_from_the_shell(terminal: Terminal) -> None:
    terminal.refused("not_found", "doctor")
    assert terminal.files() == set()
    terminal.add("Write the parser")
    assert terminal.data("doctor")["healthy"] is True
    page = terminal.atb("doctor", "--format", "table").text
    assert all(f"\n{check} " in f"\n{page}" for check in CHECKS)
    terminal.refused("invalid_input", "doctor", "--fix", "everything")

    spoil(open_board(terminal.directory / "data"), "UPDATE tally SET tasks = 7")
    error = terminal.refused("unusable", "doctor")
    assert "counters" in error["message"]
    assert "--fix counters" in error["hint"]
    assert error["details"]["healthy"] is False
    assert [one["check"] for one in error["details"]["findings"]] == list(CHECKS)
    assert terminal.process("doctor").code == 8
    unwell = terminal.atb("doctor", "--format", "table")
    assert "counters" in unwell.err
    assert all(f"\n{check} " in f"\n{unwell.err}" for check in CHECKS)

    done = terminal.data("doctor", "--fix", "counters")
    assert done["healthy"] is True
    assert Path(done["fixed"]["backup"]).is_file()
    assert terminal.data("doctor")["healthy"] is True
    assert "done:" not in terminal.atb("doctor", "--format", "table").text
