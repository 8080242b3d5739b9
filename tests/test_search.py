"""A search: which words find which task, on a board with a full-text index, without one, and in between."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_task_board.board import indexing
from agent_task_board.storage import fulltext
from tests.dying import kill_at_every_step
from tests.processes import Stage
from tests.support import Clock, open_board, refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_task_board import Board


def titles(board: Board, search: str, **filters: Any) -> list[str]:
    return [task.title for task in board.list_tasks(search=search, **filters).tasks]


def marked(board: Board) -> int:
    with board.read() as tx:
        number: int = tx.execute("SELECT count(*) FROM unindexed").fetchone()[0]
    return number


@pytest.fixture
def without_fts5(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Let SQLite seem to have no FTS5 until the test undoes it."""
    with monkeypatch.context() as patch:
        patch.setattr(fulltext, "is_available", lambda connection: False)
        yield patch


CASES = [
    ("ärzte", "Ärzte Über Wien"),
    (unicodedata.normalize("NFD", "ärzte"), "Ärzte Über Wien"),
    ("ÄRZTE", "Ärzte Über Wien"),
    ("wien ärzte", "Ärzte Über Wien"),
    ("βορράς", "ΒΟΡΡΆΣ"),
    (unicodedata.normalize("NFD", "βορράς"), "ΒΟΡΡΆΣ"),
    ("strasse", "Hauptstraße, Straße"),
    ("arzte", None),
    ("文档", "中文文档"),
    ("文中", None),
    ("검색", "전체검색을 고친다"),
    ("ค้นหา", "การค้นหาข้อความ"),
    ("हिन्दी", "हिन्दी में"),
    ("🎉", "done🎉done"),
    ("needle_body", "body"),
    ("needle-tag", "tags"),
    ('"needle error"', "error"),
    ("needle result", "result"),
    ("needle key", "result"),
    ("needle 42", "result"),
    ("needle comment", "comments"),
    ("needle com", "comments"),
    ("nee comment", None),
    ('"comment needle"', None),
    ('"one two"', "phrase"),
    ('"two one"', None),
    ('"one tw', "phrase"),
    ('"one tw"', None),
    ("two one", "phrase"),
    ("AND", None),
    ("NOT one", None),
    ("one OR two", None),
    ("title:one", None),
    ("one*", "phrase"),
    ("(one", "phrase"),
    ("'; DROP TABLE task; --", None),
    ("one^2", None),
    ("{title}", None),
]


def fill(board: Board) -> None:
    for title in ("Ärzte Über Wien", "ΒΟΡΡΆΣ", "Hauptstraße, Straße", "中文文档", "전체검색을 고친다"):
        board.add(title)
    for title in ("การค้นหาข้อความ", "हिन्दी में", "done🎉done"):
        board.add(title)
    board.add("body", body="a needle_body")
    board.add("tags", tags=["needle-tag", "other"])
    board.add("phrase", body="zero one two three")
    board.comment(board.add("comments").task.id, "a needle\nin a comment")
    for title in ("error", "result"):
        grant = board.claim("ada", task=board.add(title).task.id)
        assert grant is not None
        if title == "error":
            board.fail(grant.task.id, grant.lease.token, "the needle, error 7")
        else:
            board.complete(grant.task.id, grant.lease.token, result={"key": ["a needle", 42]})


@pytest.mark.parametrize("has_index", [True, False], ids=["indexed", "scanned"])
def test_words_are_found_in_every_text_of_a_task_in_any_spelling(
    board: Board, without_fts5: pytest.MonkeyPatch, has_index: bool
) -> None:
    if has_index:
        without_fts5.undo()
    fill(board)
    assert marked(board) == (0 if has_index else 14)
    for search, title in CASES:
        assert titles(board, search) == ([title] if title else []), search


def test_search_finds_a_task_by_the_beginning_and_the_end_of_its_id(board: Board) -> None:
    one = board.add("one").task
    two = board.add("two").task
    assert titles(board, one.id) == titles(board, one.id[-6:].lower()) == ["one"]
    assert titles(board, f"two {two.id[-4:]}") == ["two"]
    assert titles(board, one.id[:6]) == ["one", "two"]
    assert titles(board, one.id[-3:] + " one") == []
    assert titles(board, f'"{one.id[-6:]}"') == []
    assert titles(board, one.id[3:9]) == []


def test_best_match_comes_first_and_the_oldest_of_equals(board: Board) -> None:
    board.add("none here", body="red fox")
    board.add("a fox", body="red")
    board.add("fox, red")
    board.add("red fox")
    assert titles(board, "red fox") == ["fox, red", "red fox", "a fox", "none here"]
    assert titles(board, "fox") == ["a fox", "fox, red", "red fox", "none here"]
    assert titles(board, "red fox", order="newest") == ["red fox", "fox, red", "a fox", "none here"]


def test_search_is_read_page_by_page_while_the_board_changes(board: Board) -> None:
    for number in range(7):
        board.add(f"fox {number}" if number % 2 else f"other {number}", body="fox")
    expected = titles(board, "fox")
    seen: list[str] = []
    after = None
    while True:
        page = board.list_tasks(search="fox", limit=2, after=after)
        assert page.more == max(0, 7 - len(seen) - 2)
        seen += [task.title for task in page.tasks]
        after = page.next
        if after is None:
            break
        board.comment(page.tasks[0].id, "fox again")
    assert seen == expected == ["fox 1", "fox 3", "fox 5", "other 0", "other 2", "other 4", "other 6"]
    with refused("invalid_input"):
        board.list_tasks(search="fox", after="age~1~1")


def test_filters_hold_in_a_search_and_archived_tasks_are_found_on_demand(board: Board) -> None:
    board.add("fox one", tags=["x"])
    two = board.add("fox two", queue="docs").task
    board.cancel(two.id)
    board.archive_task(two.id)
    assert titles(board, "fox") == ["fox one", "fox two"]
    assert titles(board, "fox", queue="docs") == titles(board, "fox", archived=True) == ["fox two"]
    assert titles(board, "fox", tags=["x"]) == titles(board, "fox", ready=True) == ["fox one"]
    assert titles(board, "fox", queue="nowhere") == []


def test_snippet_shows_the_text_that_matches_and_the_title_if_no_other_does(board: Board) -> None:
    words = " ".join(f"word{number}" for number in range(200))
    board.add("long", body=f"{words} \n needle {words}")
    board.add("needle")
    board.add("commented")
    board.comment(board.list_tasks(order="newest", limit=1).tasks[0].id, "the Needle in a comment")
    found = {task["title"]: task["snippet"] for task in board.list_tasks(search="needle").to_dict()["tasks"]}
    assert found["needle"] == "needle"
    assert found["commented"] == "the Needle in a comment"
    assert found["long"].startswith("… ")
    assert found["long"].endswith(" …")
    assert " needle word0 " in found["long"]
    assert len(found["long"]) < 140
    assert "snippet" not in board.list_tasks().to_dict()["tasks"][0]


def test_search_without_any_word_finds_nothing_and_says_so(board: Board) -> None:
    board.add("50 %")
    for search in ("%", '"', "...", " - "):
        page = board.list_tasks(search=search)
        assert page.tasks == []
        assert page.warnings() == ["nothing to search for: no letters, digits or symbols"], search
    assert titles(board, "") == ["50 %"]


def test_changed_text_is_found_and_the_old_one_is_not(board: Board) -> None:
    id_ = board.add("first", body="old").task.id
    board.update(id_, title="second", body="new")
    assert titles(board, "first") == titles(board, "old") == []
    assert titles(board, "second") == titles(board, "new") == ["second"]
    assert marked(board) == 0


def test_claim_heartbeat_and_release_leave_the_index_alone(board: Board) -> None:
    board.add("one")
    with board.write() as tx:
        tx.execute("DROP TABLE search")
        tx.execute("INSERT INTO unindexed (task_seq) SELECT seq FROM task")
        tx.execute(fulltext.CREATE)
    grant = board.claim("ada")
    assert grant is not None
    board.heartbeat(grant.task.id, grant.lease.token)
    board.release(grant.task.id, grant.lease.token)
    assert marked(board) == 1


def test_writer_without_fts5_marks_what_it_changes_and_the_next_with_it_catches_up(
    tmp_path: Path, clock: Clock, without_fts5: pytest.MonkeyPatch
) -> None:
    with open_board(tmp_path, clock) as board:
        board.add("fox one")
        board.add("fox two")
        assert marked(board) == 2
        without_fts5.undo()
        assert titles(board, "fox") == ["fox one", "fox two"]
        board.tick()
        assert marked(board) == 0
        assert titles(board, "fox") == ["fox one", "fox two"]
        with board.write() as tx:  # as a writer without FTS5 would
            tx.execute("UPDATE task SET title = 'hare one' WHERE title = 'fox one'")
        assert marked(board) == 1
        assert titles(board, "fox") == ["fox two"]
        assert titles(board, "hare") == ["hare one"]
        board.add("badger")
        assert marked(board) == 0
        assert titles(board, "hare") == ["hare one"]


def test_board_with_an_index_works_where_sqlite_has_no_fts5(board: Board, without_fts5: pytest.MonkeyPatch) -> None:
    without_fts5.undo()
    board.add("fox one")
    without_fts5.setattr(fulltext, "is_available", lambda connection: False)

    def refuse_index(action: int, table: str | None, *_: object) -> int:
        return 1 if (table or "").startswith("search") else 0  # SQLITE_DENY: no such module

    board.database.session().connection.set_authorizer(refuse_index)
    board.add("fox two")
    assert titles(board, "fox") == ["fox one", "fox two"]
    assert marked(board) == 1
    assert not [finding for finding in board.doctor()["findings"] if finding["level"] == "error"]


def test_long_text_is_found_before_and_after_a_tick_indexes_it(board: Board) -> None:
    id_ = board.add("long", body="needle " * 20_000).task.id
    board.comment(id_, "haystack")
    assert marked(board) == 1
    assert titles(board, "needle haystack") == ["long"]
    board.tick()
    assert marked(board) == 0
    assert titles(board, "needle haystack") == ["long"]


def test_search_that_has_too_much_to_read_is_refused_in_time(board: Board, without_fts5: pytest.MonkeyPatch) -> None:
    board.add("one")
    with refused("busy"):
        board.list_tasks(search="one", stop=lambda: True)
    assert len(board.list_tasks().tasks) == 1


def run_update(place: str) -> None:
    with open_board(place, Clock()) as board:
        board.update(board.list_tasks().tasks[0].id, body="new")


def test_change_and_its_words_are_stored_together_or_not_at_all(tmp_path: Path, clock: Clock) -> None:
    base, places = tmp_path / "base", tmp_path / "places"
    places.mkdir()
    with open_board(base, clock) as board:
        board.add("fox", body="old")
    with Stage() as stage:
        runs = stage.call(kill_at_every_step, str(base), str(places), run_update)
    assert any("INSERT OR REPLACE INTO search" in step for step in runs[-1])
    for number in range(len(runs)):
        with open_board(places / str(number), clock) as board:
            assert marked(board) == 0
            is_new = board.list_tasks(full=True).tasks[0].body == "new"
            assert (titles(board, "old"), titles(board, "new")) == (([], ["fox"]) if is_new else (["fox"], []))


def damage(board: Board, which: str) -> None:
    with board.write() as tx:
        tx.execute(f"UPDATE search_data SET block = x'00ff00ff' WHERE {which}")
    board.close()


def test_damaged_index_stops_no_search_and_is_repaired(board: Board) -> None:
    board.add("fox one")
    damage(board, "id > 10")
    board.add("fox two")
    assert titles(board, "fox") == ["fox one", "fox two"]
    found = board.doctor()
    assert [finding["fix"] for finding in found["findings"] if finding["check"] == "search"] == ["search"]
    assert not found["healthy"]
    assert board.doctor(fix="search")["healthy"]
    assert marked(board) == 0
    assert titles(board, "fox") == ["fox one", "fox two"]


def test_damaged_index_stops_no_write(board: Board) -> None:
    board.add("fox one")
    damage(board, "id = 10")  # what FTS5 then writes collides with what is there
    board.add("fox two")
    board.comment(board.add("fox three").task.id, "red")
    assert board.tick()["expired"] == 0
    assert marked(board) == 2
    assert board.doctor(fix="search")["healthy"]
    assert marked(board) == 0
    assert titles(board, "fox") == ["fox one", "fox two", "fox three"]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM search WHERE rowid = 1",
        "UPDATE search SET text = 'lies' WHERE rowid = 1",
        "INSERT INTO search (rowid, title, text) VALUES (99, 'x', 'y')",
    ],
)
def test_doctor_finds_and_repairs_an_index_that_differs_from_the_texts(board: Board, statement: str) -> None:
    board.add("fox", body="truth")
    with board.write() as tx:
        tx.execute(statement)
    assert not board.doctor()["healthy"]
    assert board.doctor(fix="search")["fixed"]["did"] == ["created the full-text index again: 1 tasks"]
    assert board.doctor()["healthy"]
    assert titles(board, "truth") == ["fox"]


def test_index_adds_to_the_schema_what_the_program_expects(board: Board) -> None:
    board.add("one")
    with board.read() as tx:
        found = tx.execute("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name LIKE 'search%'").fetchall()
    assert sorted(map(tuple, found)) == sorted(fulltext.SCHEMA)


TEXT = st.text(st.sampled_from("aAbB äÄéß中文ς\u0308_-.\"'*()🎉1"), max_size=12)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tasks=st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=5), searches=st.lists(TEXT, max_size=6))
def test_index_and_scan_find_the_same(
    tmp_path_factory: pytest.TempPathFactory, tasks: list[tuple[str, str, str]], searches: list[str]
) -> None:
    with open_board(tmp_path_factory.mktemp("search"), Clock()) as board:
        for title, body, comment in tasks:
            id_ = board.add(f"x{title}".strip(), body=body).task.id
            if comment.strip():
                board.comment(id_, comment)
        assert marked(board) == 0
        wanted = [search for search in [*searches, *(title for title, *_ in tasks)] if search.strip()]
        indexed = [board.list_tasks(search=search).to_dict() for search in wanted]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fulltext, "is_available", lambda connection: False)
            assert [board.list_tasks(search=search).to_dict() for search in wanted] == indexed
        with board.write() as tx:  # half of them, as after a migration
            tx.execute("INSERT INTO unindexed (task_seq) SELECT seq FROM task WHERE seq % 2")
        assert [board.list_tasks(search=search).to_dict() for search in wanted] == indexed


def test_catching_up_goes_in_small_transactions(board: Board, without_fts5: pytest.MonkeyPatch) -> None:
    for number in range(7):
        board.add(f"fox {number}")
    without_fts5.undo()
    assert indexing.catch_up(board, limit=3) == 3
    assert marked(board) == 4
    assert len(titles(board, "fox")) == 7
    assert indexing.catch_up(board) == 4
    assert indexing.catch_up(board) == 0
