"""Board files that somebody else made: refused before anything in their schema runs, and nothing is changed."""

from __future__ import annotations

import io
import os
import sqlite3
import sys
from typing import TYPE_CHECKING

import pytest

from agent_task_board import Board
from agent_task_board.storage import db, fingerprint, schema
from tests.old_boards import turn_into_schema_1
from tests.processes import contents, raw
from tests.support import MARIA, open_board, refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
"""SQL that never ends, and needs no memory."""


def unlocked(connection: sqlite3.Connection, *statements: str) -> None:
    """Write into the schema itself, as nothing but an attacker does."""
    version = connection.execute("PRAGMA schema_version").fetchone()[0]
    connection.execute("PRAGMA writable_schema = ON")
    for statement in statements:
        connection.execute(statement)
    connection.execute(f"PRAGMA schema_version = {version + 1}")


def in_place_of(table: str, sql: str) -> str:
    return f"UPDATE sqlite_master SET sql = {sql} WHERE type = 'table' AND name = '{table}'"


def posing_as_the_schema(connection: sqlite3.Connection) -> None:
    """Add a trigger, and a view with the newer name of the schema table that shows what was there before."""
    rows = connection.execute("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master").fetchall()
    connection.execute("CREATE TABLE shown (type, name, tbl_name, rootpage, sql)")
    connection.executemany("INSERT INTO shown VALUES (?, ?, ?, ?, ?)", rows)
    connection.execute("CREATE TRIGGER planted AFTER UPDATE ON board BEGIN DELETE FROM request; END")
    unlocked(
        connection,
        """
        INSERT INTO sqlite_master VALUES
        ('view', 'sqlite_schema', 'sqlite_schema', 0, 'CREATE VIEW sqlite_schema AS SELECT * FROM shown')
        """,
    )


def many_tables(connection: sqlite3.Connection) -> None:
    unlocked(
        connection,
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
        INSERT INTO sqlite_master SELECT 'view', 'v' || i, 'v' || i, 0, 'CREATE VIEW v' || i || ' AS SELECT 1' FROM n
        """,
    )


PLANTED: dict[str, str | tuple[str, ...] | Callable[[sqlite3.Connection], None]] = {
    "a trigger": "CREATE TRIGGER planted AFTER INSERT ON event BEGIN DELETE FROM request; END",
    "a trigger that never ends": f"CREATE TRIGGER planted AFTER UPDATE ON board BEGIN {ENDLESS}; END",
    "a trigger with the name of ours": (
        "DROP TRIGGER event_is_never_deleted",
        "CREATE TRIGGER event_is_never_deleted BEFORE DELETE ON event BEGIN SELECT 1; END",
    ),
    "a trigger fewer": "DROP TRIGGER event_is_never_changed",
    "a view": f"CREATE VIEW planted AS {ENDLESS}",
    "a view in place of a table": (
        "ALTER TABLE agent RENAME TO hidden",
        f"CREATE VIEW agent AS SELECT *, ({ENDLESS}) AS more FROM hidden",
    ),
    "a table": "CREATE TABLE planted (a)",
    "an index on an expression": "CREATE INDEX planted ON task (hex(zeroblob(length(title))))",
    "a partial index": "CREATE INDEX planted ON task (title) WHERE length(title) > 3",
    "a unique index": "CREATE UNIQUE INDEX planted ON task (priority)",
    "a column": "ALTER TABLE task ADD COLUMN planted TEXT",
    "a generated column": "ALTER TABLE board ADD COLUMN planted TEXT AS (hex(zeroblob(100000000)))",
    "a check fewer": lambda one: unlocked(
        one, in_place_of("task", "replace(sql, 'length(title) BETWEEN 1 AND 500', 'length(title) < 1e9')")
    ),
    "a check more": lambda one: unlocked(
        one, in_place_of("board", "replace(sql, '(id = 1)', '(id = 1 AND length(hex(randomblob(400000000))) > 0)')")
    ),
    "a default": lambda one: unlocked(
        one, in_place_of("tally", "replace(sql, 'INTEGER NOT', 'INTEGER DEFAULT 7 NOT')")
    ),
    "a virtual table": "CREATE VIRTUAL TABLE planted USING fts5(a)",
    "the schema's own name": posing_as_the_schema,
    "very many views": many_tables,
    "a very long view": lambda one: unlocked(
        one,
        """
        INSERT INTO sqlite_master VALUES
        ('view', 'v', 'v', 0, 'CREATE VIEW v AS SELECT ''' || hex(zeroblob(20000000)) || '''')
        """,
    ),
}


def plant(directory: Path, what: str) -> None:
    given = PLANTED[what]
    with raw(directory) as connection:
        if callable(given):
            given(connection)
        else:
            for statement in (given,) if isinstance(given, str) else given:
                connection.execute(statement)
        connection.commit()


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """Return the data directory of a closed board, to plant something in."""
    board = open_board(tmp_path / "data")
    board.add("there before", request_id="call")
    board.claim("ada")
    board.close()
    with raw(tmp_path / "data") as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return tmp_path / "data"


CALLS: dict[str, Callable[[Board], object]] = {
    "list": lambda board: board.list_tasks(),
    "prime": lambda board: board.briefing(),
    "claim": lambda board: board.claim("ada"),
    "tick": lambda board: board.tick(),
    "import": lambda board: board.import_tasks([{"title": "new"}]),
    "dry run": lambda board: board.import_tasks([{"title": "new"}], dry_run=True),
    "export": lambda board: board.export(io.BytesIO()),
    "backup": lambda board: board.backup(),
    "snapshot": lambda board: board.snapshot(),
    "id": lambda board: board.board_id(),
}


@pytest.mark.parametrize("what", PLANTED)
def test_planted_board_is_unusable_and_nothing_in_it_runs(planted: Path, what: str) -> None:
    plant(planted, what)
    before = (planted / "tasks.db").read_bytes()
    board = open_board(planted)
    for call in CALLS.values():
        with refused("unusable"):
            call(board)
    board.close()
    assert (planted / "tasks.db").read_bytes() == before
    assert set(os.listdir(planted)) <= {".gitignore", "tasks.db", "turnstile.queue", "turnstile.turn"}


@pytest.mark.parametrize("what", PLANTED)
def test_doctor_says_what_is_planted_and_ends(planted: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent_task_board.upkeep import contents as inside

    monkeypatch.setattr(inside, "LIMIT", 20_000_000)
    plant(planted, what)
    before = (planted / "tasks.db").read_bytes()
    board = open_board(planted)
    found = board.doctor()
    board.close()
    assert any(one["level"] in ("warning", "error") and one["check"] in ("schema", "file") for one in found["findings"])
    assert (planted / "tasks.db").read_bytes() == before


@pytest.mark.parametrize("call", [name for name in CALLS if name != "backup"])
def test_schema_that_changes_while_a_board_is_open_counts_at_once(planted: Path, call: str) -> None:
    board = open_board(planted)
    CALLS[call](board)
    plant(planted, "a trigger")
    before = contents(planted)
    for _ in range(2):
        with refused("unusable"):
            CALLS[call](board)
    assert contents(planted) == before
    with raw(planted) as connection:
        connection.execute("DROP TRIGGER planted")
    CALLS[call](board)
    board.close()


def test_older_board_with_a_planted_trigger_is_not_migrated(planted: Path) -> None:
    turn_into_schema_1(planted)
    with raw(planted) as connection:
        connection.execute("CREATE TRIGGER planted AFTER UPDATE ON task BEGIN DELETE FROM request; END")
    before = contents(planted)
    board = open_board(planted)
    for call in (board.tick, board.create, lambda: board.import_tasks([{"title": "new"}])):
        with refused("unusable") as caught:
            call()
        assert "planted" in caught.value.message
    board.close()
    assert contents(planted) == before
    assert not (planted / "backups").exists()


@pytest.mark.parametrize(
    "statement",
    ["VACUUM", "ANALYZE", "CREATE INDEX mine ON task (title, priority DESC)", "PRAGMA auto_vacuum = FULL", "REINDEX"],
)
def test_what_somebody_does_to_care_for_a_board_leaves_it_usable(planted: Path, statement: str) -> None:
    with raw(planted) as connection:
        connection.execute(statement)
        connection.execute("VACUUM")
    board = open_board(planted)
    board.add("goes on")
    assert len(board.list_tasks().tasks) == 2
    assert board.doctor()["healthy"]
    board.close()


def test_text_of_another_encoding_is_the_same_schema(planted: Path, tmp_path: Path) -> None:
    with raw(planted) as connection:
        connection.execute("DROP TABLE search")  # a dump cannot create it again
        script = "\n".join(connection.iterdump())
    os.unlink(planted / "tasks.db")
    with raw(planted) as connection:
        connection.execute("PRAGMA encoding = 'UTF-16le'")
        connection.executescript(script)
        connection.execute(f"PRAGMA application_id = {db.APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {db.SCHEMA_VERSION}")
    board = open_board(planted)
    assert [task.title for task in board.list_tasks().tasks] == ["there before"]
    board.close()


def test_fingerprints_are_those_of_the_migrations() -> None:
    assert sorted(fingerprint.KNOWN) == schema.known(), "run `python -m agent_task_board.cli.reference`"
    assert len(fingerprint.KNOWN) >= db.SCHEMA_VERSION


ADDED_TABLE = [("table", "planted", "planted", "CREATE TABLE planted (a)")]


def test_option_of_a_schema_is_one_of_its_variants(planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(schema.OPTIONS, "planted", (db.SCHEMA_VERSION, ADDED_TABLE))
    assert len(schema.known()) == len(fingerprint.KNOWN) + 2
    with raw(planted) as connection:
        connection.execute("CREATE TABLE planted (a)")
    board = open_board(planted)
    board.add("goes on")
    monkeypatch.setattr(db, "KNOWN", frozenset(schema.known()))
    assert board.doctor()["healthy"]
    board.close()
    plant_more = open_board(planted)
    plant_more.add("by its fingerprint")
    plant_more.close()


def test_transaction_that_takes_too_long_is_ended(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db, "MAX_STEPS", 3 * db.METER_STEPS)
    board.add("there before")
    with refused("unusable") as caught, board.database.read() as tx:
        tx.execute(ENDLESS).fetchone()
    assert "too long" in caught.value.message
    assert len(board.list_tasks().tasks) == 1


# Files that are no databases


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def sparse_behind_a_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(1 << 40)


def link_to_another(path: Path) -> None:
    other = path.parent.parent / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    path.symlink_to(other)


FILES: dict[str, Callable[[Path], object]] = {
    "a terabyte of nothing": sparse,
    "text": lambda path: path.write_text("not a database" * 1_000),
    "a directory": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link in a circle": lambda path: path.symlink_to(path),
    "a link to another database": link_to_another,
}


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes with names")
@pytest.mark.parametrize("what", FILES)
def test_file_that_is_no_board_is_refused_at_once(tmp_path: Path, what: str) -> None:
    (tmp_path / "data").mkdir()
    FILES[what](tmp_path / "data" / "tasks.db")
    board = Board(tmp_path / "data", actor=MARIA)
    for call in CALLS.values():
        with refused("unusable"):
            call(board)
    assert not board.doctor()["healthy"]
    board.close()


def test_terabyte_behind_a_board_is_not_read(planted: Path) -> None:
    sparse_behind_a_header(planted / "tasks.db")
    board = open_board(planted)
    board.add("goes on")
    assert len(board.list_tasks().tasks) == 2
    board.close()
