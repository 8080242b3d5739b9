"""Values that SQLite accepts and a board cannot use: a restore refuses them, and the doctor names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_task_board.upkeep import restore as restoring
from agent_task_board.upkeep.restore import restore
from tests.processes import raw
from tests.support import bring_to, open_board, refused

if TYPE_CHECKING:
    from pathlib import Path

VALUES = {
    "an id with a line break": "UPDATE task SET id = '01KB8K5NQX00000000000' || char(10) || 'DONE'",
    "an id in small letters": "UPDATE task SET id = lower(id)",
    "tags that are no JSON": "UPDATE task SET tags = 'x'",
    "tags that are no list": "UPDATE task SET tags = '{}'",
    "a tag with a line break": """UPDATE task SET tags = '["a\\nb"]'""",
    "params that are no object": "UPDATE task SET params = '[]'",
    "a result that is no JSON": "UPDATE task SET result = '{'",
    "a result that is too deep": "UPDATE task SET result = replace(hex(zeroblob(200)), '00', '[')",
    "an artifact that is a number": "UPDATE task SET artifacts = '[1]'",
    "a title with a line break": "UPDATE task SET title = 'a' || char(10) || 'b'",
    "a name with an escape": "UPDATE task SET created_by = 'ada' || char(27) || '[2J'",
    "an instant that is none": "UPDATE task SET created_at = 'yesterday'",
    "a day that does not exist": "UPDATE task SET due_at = '2026-02-30T00:00:00.000+00:00'",
    "a queue without a name": "UPDATE task SET queue = ''",
    "an event of no kind": "DROP TRIGGER event_is_never_changed; UPDATE event SET kind = 'approved by maria'",
    "an event without data": "DROP TRIGGER event_is_never_changed; UPDATE event SET data = '7'",
    "an actor with a line break": "DROP TRIGGER event_is_never_changed; UPDATE event SET actor = 'a' || char(13)",
    "a text with a NUL": "UPDATE task SET body = 'a' || char(0) || 'b'",
}


@pytest.mark.parametrize("what", VALUES)
def test_value_that_a_board_cannot_use_is_not_restored_and_found_by_the_doctor(tmp_path: Path, what: str) -> None:
    board = open_board(tmp_path / "data")
    bring_to(board, "review")
    board.close()
    with raw(tmp_path / "data") as connection:
        trigger = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'event_is_never_changed'").fetchone()
        for statement in VALUES[what].split("; "):
            connection.execute(statement)
        if "DROP TRIGGER" in VALUES[what]:
            connection.execute(trigger[0])
        connection.commit()
    board = open_board(tmp_path / "data")
    assert "values" in {one["check"] for one in board.doctor()["findings"] if one["level"] == "error"}
    backup = board.backup()["path"]
    board.close()
    with refused("unusable") as caught:
        restore(backup, tmp_path / "new")
    assert "not a valid backup" in caught.value.message
    assert "\n" not in caught.value.message
    assert not (tmp_path / "new").exists()


def test_every_value_of_a_board_is_one_that_it_can_use(tmp_path: Path) -> None:
    board = open_board(tmp_path / "data")
    for status in ("queued", "claimed", "running", "review", "done", "failed", "cancelled"):
        board.comment(
            bring_to(board, status, tags=["a", "\u00e4"], params={"a": [1]}, dedupe_key=status).id, "two\nlines"
        )
    board.add_schedule("daily", cron="0 9 * * *", task={"title": "report"})
    restored = restore(board.backup()["path"], tmp_path / "new")
    assert restored["tasks"] == 7
    assert board.doctor()["healthy"]
    board.close()


def test_zip_that_expands_too_much_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = open_board(tmp_path / "data")
    board.add("long", body="x" * 100_000)
    backup = board.backup()["path"]
    board.close()
    monkeypatch.setattr(restoring, "_FREELY", 1_000)
    monkeypatch.setattr(restoring, "_MOST_TIMES", 2)
    with refused("unusable") as caught:
        restore(backup, tmp_path / "new")
    assert "expands too much" in caught.value.message
    assert not (tmp_path / "new").exists()
