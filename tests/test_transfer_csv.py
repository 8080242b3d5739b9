"""Tasks as CSV, there and back: every text as it was, and none that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent_task_board.transfer import csv as transfer_csv
from agent_task_board.transfer.csv import COLUMNS, SPECIAL
from tests.support import bring_to, everything, open_board, refused

if TYPE_CHECKING:
    from pathlib import Path

    from agent_task_board import Board
    from tests.support import Clock

ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
FORMULAS = [
    "\n=1",
    "\uff1d1",
    "\uff0b1",
    "\uff0d1",
    "\uff201",
    "a;=1",
    "a;'=1",
    ";",
    ";;=",
    'a; "=1"',
    "a;\u3000@x",
    "a\t=1",
]
FORMULAS += [
    "a\n-1",
    "a\r\n+1",
    "'\n'=1",
    "a;b",
    "- a\n- b",
    " =1",
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "'quoted",
    "''twice",
    "'",
    "\t=1",
    "\r=1",
    "=",
    "'=1",
    "-",
    "a=1",
    '"=1"',
]


def exported(board: Board, **options: Any) -> bytes:
    out = io.BytesIO()
    board.export(out, file_format="csv", **options)
    return out.getvalue()


def cells(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def import_table(board: Board, content: str | bytes) -> Any:
    return board.import_tasks(io.BytesIO(content.encode() if isinstance(content, str) else content), file_format="csv")


TEXTS = st.sampled_from(FORMULAS) | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)


@settings(max_examples=300)
@given(TEXTS)
@example("")
@example("a;' =1")
@example("\t\t=1")
def test_a_text_goes_there_and_back_and_never_starts_a_formula(text: str) -> None:
    out = io.StringIO(newline="")
    row = dict.fromkeys(COLUMNS) | {"title": "t", "body": text, "error": text}
    csv.writer(out, lineterminator="\r\n").writerows([COLUMNS, transfer_csv.write_row(row)])
    (written,) = csv.DictReader(io.StringIO(out.getvalue(), newline=""))
    assert written["body"][:1] not in tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
    for cell in re.split(r"[;\t\r\n]", out.getvalue()):  # as a spreadsheet of another country splits it
        assert cell.lstrip(' "\xa0\u3000')[:1] not in tuple("=+-@\uff1d\uff0b\uff0d\uff20")
    if text[:1] not in tuple(SPECIAL) and not re.search(r"[;\t\r\n]", text):
        assert written["body"] == text
    ((place, task),) = transfer_csv.read_rows(io.BytesIO(out.getvalue().encode()), str)
    assert (place, task.get("body", "")) == ("line 2", text)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "title": st.sampled_from([text for text in FORMULAS if text.isprintable()]),
                "body": TEXTS,
                "priority": st.integers(-1_000_000, 1_000_000),
                "tags": st.lists(st.sampled_from(["=1", "a,b", '"', "-x"]), max_size=3, unique=True),
                "params": st.dictionaries(TEXTS, TEXTS | st.integers(-5, 5) | st.none(), max_size=3),
                "needs_approval": st.booleans(),
            }
        ),
        min_size=1,
        max_size=4,
    )
)
def test_tasks_go_there_and_back(tmp_path_factory: pytest.TempPathFactory, tasks: list[dict[str, Any]]) -> None:
    place = tmp_path_factory.mktemp("csv")
    with open_board(place / "one") as one, open_board(place / "two") as two:
        one.import_tasks(tasks)
        import_table(two, exported(one))
        assert [task.to_dict() for task in two.list_tasks(full=True).tasks] == [
            task.to_dict() for task in one.list_tasks(full=True).tasks
        ]
        assert exported(two) == exported(one)


@pytest.mark.parametrize("status", ["queued", "review", "done", "failed", "cancelled"])
def test_every_field_goes_there_and_back(board: Board, tmp_path: Path, clock: Clock, status: str) -> None:
    other = board.add("first").task.id
    held = bring_to(
        board, status, body="=1\r\n\"two\"", params={"a": [1, None]}, tags=["x"], due_at="2026-12-01", dedupe_key="-k",
        queue="@q", depends_on=[other] if status in ("queued", "cancelled") else [],
    )  # fmt: skip
    copy = open_board(tmp_path / "copy", clock)
    import_table(copy, exported(board))
    assert copy.show(held.id)["task"] == board.show(held.id)["task"]
    copy.close()


def test_table_has_a_header_crlf_and_by_default_a_byte_order_mark(board: Board) -> None:
    board.add("ü", body="two\nlines")
    content = exported(board)
    assert content.startswith(b"\xef\xbb\xbfid,title,body,queue,status,")
    assert content.endswith(b"\r\n")
    assert exported(board, bom=False) == content[3:]
    assert exported(board).count(b"\r\n") == 2
    (row,) = cells(content)
    assert list(row) == list(COLUMNS)
    assert not {"ready", "blocked", "delayed", "lease_expired", "overdue"} & set(row)
    assert (row["title"], row["body"], row["tags"], row["assignee"]) == ("ü", "two\nlines", "[]", "")


def test_numbers_are_numbers(board: Board) -> None:
    board.add("t", priority=-5, needs_approval=True)
    (row,) = cells(exported(board))
    assert (row["priority"], row["needs_approval"], row["progress"]) == ("-5", "true", "")


def test_only_a_title_is_needed_and_the_rest_is_as_in_add(board: Board) -> None:
    done = import_table(board, 'title,priority,tags,needs_approval\r\none,5,"[""a""]",TRUE\r\n\r\ntwo,,,\r\n')
    assert (done.imported, done.updated, done.skipped, done.ignored) == (2, 0, 0, 0)
    one, two = (task.to_dict() for task in board.list_tasks(full=True).tasks)
    assert (one["title"], one["priority"], one["tags"], one["needs_approval"]) == ("one", 5, ["a"], True)
    added = board.add("two").task.to_dict()
    assert {**two, "id": ""} == {**added, "id": ""}


def test_long_cells_are_read(board: Board) -> None:
    import_table(board, "title,body\nt," + "b" * 200_000 + "\n")
    assert len(board.list_tasks(full=True).tasks[0].body) == 200_000


@pytest.mark.parametrize(
    ("content", "place", "field"),
    [
        ("", "line 1", "title"),
        ("id\n", "line 1", "title"),
        ("name;body\nx;y\n", "line 1", "title"),
        ("title,,body\nx,y,z\n", "line 2", None),
        ("title,colour\n", "line 1", "colour"),
        ("title,title\n", "line 1", "title"),
        ("title\nx\n\n\na,b\n", "line 5", None),
        ("title,body\nx\n", "line 2", None),
        ('title,body\na,"two\nlines"\n,x\n', "line 4", "title"),
        ("title,priority\nx,1.5\n", "line 2", "priority"),
        ("title,priority\nx,.0\n", "line 2", "priority"),
        ("title,priority\nx,-\n", "line 2", "priority"),
        ("title,priority\nx,\u0661\n", "line 2", "priority"),
        ("title,priority\nx," + "9" * 30 + "\n", "line 2", "priority"),
        ("title,priority\nx,2000000\n", "line 2", "priority"),
        ("title,needs_approval\nx,1\n", "line 2", "needs_approval"),
        ('title,tags\nx,"[core"\n', "line 2", "tags"),
        ('title,params\nx,"{""a"":NaN}"\n', "line 2", "params"),
        ('title,params\nx,"[]"\n', "line 2", "params"),
        ("title,status\nx,open\n", "line 2", "status"),
        ("title,id\nx,short\n", "line 2", "id"),
        (f'title,blocked_by\nx,"[""{ID}""]"\n', "line 2", "blocked_by"),
        ('title\n"a"b\n', "line 2", None),
        ('title\n"a\n', "line 2", None),
    ],
)
def test_a_bad_cell_is_named_by_line_and_column(board: Board, content: str, place: str, field: str | None) -> None:
    board.add("there already")
    before = everything(board)
    with refused("invalid_input") as caught:
        import_table(board, content)
    assert caught.value.details["place"] == place
    assert caught.value.details["field"] == field
    assert caught.value.message.startswith(f"{place}: ")
    assert everything(board) == before


def test_bytes_that_are_no_utf_8_are_refused(board: Board) -> None:
    for content in (b"title\n\xff\n", b"\xff", "title\nx\n".encode("utf-16-le"), "title\nx".encode("utf-16") + b"x"):
        with refused("invalid_input"):
            import_table(board, content)


def test_history_is_no_part_of_a_table(board: Board, tmp_path: Path) -> None:
    held = bring_to(board, "running")
    assert held.token.encode() not in exported(board)
    copy = open_board(tmp_path / "copy")
    import_table(copy, exported(board))
    details = copy.show(held.id)
    assert (details["task"]["status"], details["attempts"]) == ("queued", [])
    assert json.dumps(copy.events()).count('"imported"') == 1
    copy.close()


def test_semicolon_in_a_json_cell_begins_no_formula(board: Board, tmp_path: Path) -> None:
    task = board.add("t", params={"a": "x;=cmd|' /C calc'!A0", "b;=1": ["y; +1", "z;a"]}, tags=["p;-1"]).task
    content = exported(board)
    for cell in re.split(r"[;\t\r\n]", content.decode("utf-8-sig")):
        assert cell.lstrip(' "')[:1] not in tuple("=+-@")
    copy = open_board(tmp_path / "copy")
    import_table(copy, content)
    assert (copy.show(task.id)["task"]["params"], copy.show(task.id)["task"]["tags"]) == (task.params, task.tags)
    copy.close()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("mark", [False, True])
def test_tables_of_spreadsheets_are_read(board: Board, encoding: str, end: str, delimiter: str, mark: bool) -> None:
    lines = [
        *([f"sep={delimiter}"] if mark else []),
        delimiter * 4,
        delimiter.join(("Title", " PRIORITY ", "Due at", "Tags", "")),
        delimiter.join(("Tür streichen", "3.0", "2026-12-24", "ui; docs" if delimiter == "," else "ui, docs", "")),
        delimiter * 6,
        delimiter.join(("Öl", "-1", "", "", "")),
    ]
    text = end.join(lines) + end
    content = b"\xfe\xff" + text.encode("utf-16-be") if encoding == "utf-16-be-sig" else text.encode(encoding)
    done = import_table(board, content)
    assert (done.imported, done.ignored, done.details) == (
        2,
        1,
        {"empty_row": {"count": 1, "ids": [f"line {5 if mark else 4}"]}},
    )
    one, two = (task.to_dict() for task in board.list_tasks(full=True).tasks)
    assert (one["title"], one["priority"], one["tags"]) == ("Tür streichen", 3, ["ui", "docs"])
    assert one["due_at"] is not None
    assert (two["title"], two["priority"], two["tags"]) == ("Öl", -1, [])
