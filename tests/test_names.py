"""One name for each key: agents and people, and what a migration makes of names that older versions kept apart."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agent_task_board import Actor
from agent_task_board.inputs import name_key
from agent_task_board.storage.db import FILE
from tests.command_line import Terminal
from tests.history import fold
from tests.old_boards import turn_into_schema_1
from tests.support import Clock, hold, open_board

if TYPE_CHECKING:
    from pathlib import Path

    from agent_task_board import Board

COMPOSED, DECOMPOSED = "Zo\xeb", "Zoe\u0308"


@pytest.mark.parametrize(
    ("first", "other"), [("Maria", "MARIA"), (COMPOSED, DECOMPOSED), (DECOMPOSED, "ZO\xcb"), ("Straße", "STRASSE")]
)
def test_person_and_agent_have_the_name_that_was_written_first(board: Board, first: str, other: str) -> None:
    task = board.add("one", actor=Actor(first, "human")).task
    board.comment(task.id, "two", actor=Actor(other, "human"))
    assert hold(board, other, task=task.id).task.claimed_by == first
    assert {event["actor"] for event in board.events()["events"]} == {first}


def test_creator_is_the_same_in_another_spelling(board: Board) -> None:
    task = board.add("one", actor=Actor(COMPOSED, "agent")).task
    changed = board.update(task.id, title="two", own_only=True, actor=Actor(DECOMPOSED.upper(), "agent"))
    assert changed.task.title == "two"


def test_refused_call_registers_nobody(board: Board) -> None:
    task = board.add("one").task
    with pytest.raises(Exception, match="review"):
        board.approve(task.id, actor=Actor("Nina", "human"))
    board.comment(task.id, "x", actor=Actor("NINA", "human"))
    assert board.events()["events"][-1]["actor"] == "NINA"


def spell_anew(directory: Path, names: dict[str, str]) -> None:
    """Rewrite names in a closed board of schema 1, as an older version would have stored them."""
    with closing(sqlite3.connect(directory / FILE)) as old:
        triggers = old.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for trigger, _ in triggers:
            old.execute(f"DROP TRIGGER {trigger}")
        for name, new in names.items():
            old.execute("UPDATE agent SET name = ?, key = ? WHERE name = ?", (new, new.casefold(), name))
            for table, column in (("task", "assignee"), ("task", "claimed_by"), ("task", "created_by"),
                                  ("attempt", "agent"), ("event", "actor")):  # fmt: skip
                old.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (new, name))
            old.execute("UPDATE event SET data = replace(data, ?, ?)", (f'"{name}"', f'"{new}"'))
        for _, sql in triggers:
            old.execute(sql)
        old.commit()


def lay_out(directory: Path) -> dict[str, str]:
    """Make a board of schema 1 on which two spellings of one agent, and of one person, worked side by side."""
    clock = Clock()
    board = open_board(directory, clock)
    ids: dict[str, str] = {}
    for agent in ("composed", "decomposed"):
        clock.advance(minutes=1)
        done, held, given = (board.add(f"{agent} {what}").task.id for what in ("done", "held", "given"))
        board.complete(done, hold(board, agent, task=done).token)
        hold(board, agent, task=held, lease="7d")
        board.reassign(given, agent)
        ids |= {f"{agent} done": done, f"{agent} held": held, f"{agent} given": given}
    for person in ("person one", "person two"):
        board.comment(ids["composed done"], "seen", actor=Actor(person, "human"))
    board.close()
    turn_into_schema_1(directory)
    spell_anew(
        directory,
        {
            "composed": COMPOSED,
            "decomposed": DECOMPOSED,
            "person one": "Ad\u200ba \u202e",
            "person two": "AD\u200bA \u202e",
        },
    )
    return ids


def test_migration_merges_names_with_one_key_and_says_so(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    data = tmp_path / "data"
    ids = lay_out(data)
    migrated = terminal.atb("tick")
    merged = [warning for warning in migrated.warnings if "merged" in warning]
    assert len(merged) == 2
    assert '"Zoe\\u0308" into "Zo\\u00eb"' in merged[0]
    assert "\\u202e" in merged[1]
    assert terminal.atb("tick").warnings == []
    with open_board(data) as board:
        (agent,) = board.agents()
        assert (agent["name"], agent["completed"], len(agent["holds"])) == (COMPOSED, 2, 2)
        for name, id_ in ids.items():
            found = board.show(id_)
            task = found["task"]
            assert {task["assignee"], task["claimed_by"]} <= {None, COMPOSED}, name
            assert {attempt["agent"] for attempt in found["attempts"]} <= {COMPOSED}
            state = fold(board.events(task=id_)["events"])
            assert (state["assignee"], state["claimed_by"]) == (task["assignee"], task["claimed_by"])
        assert [one for one in board.doctor()["findings"] if one["level"] == "error"] == []
        held = ids["decomposed held"]
        assert board.resume(held, DECOMPOSED).task.claimed_by == COMPOSED
        assert {task.id for task in board.list_tasks(claimed_by=DECOMPOSED.upper()).tasks} >= {held}


def test_names_that_older_versions_allowed_stay_readable_after_the_migration(tmp_path: Path) -> None:
    data = tmp_path / "data"
    board = open_board(data)
    id_ = board.add("task").task.id
    hold(board, "odd", task=id_)
    board.close()
    turn_into_schema_1(data)
    spell_anew(data, {"odd": "a\u200bda \u202e(approved)"})
    terminal = Terminal(tmp_path)
    assert [warning for warning in terminal.atb("tick").warnings if "merged" in warning] == []
    for style in ("table", "compact"):
        text = terminal.process("show", id_, "--format", style).text
        assert r'"a\u200bda \u202e(approved)"' in text
    assert r'"claimed_by":"a\u200bda \u202e(approved)"' in terminal.process("show", id_).text
    assert terminal.data("list", "--claimed-by", "A\u200bDA \u202e(approved)")["tasks"][0]["id"] == id_
    terminal.refused("invalid_input", "claim", "--agent", "a\u200bda")


def test_keys_of_a_new_board_are_canonical(board: Board) -> None:
    hold(board, DECOMPOSED, task=board.add("one").task.id)
    with board.read() as tx:
        assert [row[0] for row in tx.execute("SELECT key FROM agent")] == [name_key(COMPOSED)]
