"""Issues of other trackers: what becomes of each field, and of what they wait for."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board.board.core import is_ulid
from agent_task_board.transfer.foreign import id_of
from tests.support import everything, kinds, refused

if TYPE_CHECKING:
    from agent_task_board import Board

AT = "2026-11-01T10:00:00Z"
STORED = "2026-11-01T10:00:00.000+00:00"


def beads(board: Board, *issues: Any, **options: Any) -> Any:
    lines = "".join(f"{json.dumps(issue) if isinstance(issue, dict) else issue}\n" for issue in issues)
    return board.import_tasks(io.BytesIO(lines.encode()), file_format="beads", **options)


def github(board: Board, *issues: Any) -> Any:
    return board.import_tasks(io.BytesIO(json.dumps(issues).encode()), file_format="github")


def issue(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": name,
        "title": name,
        "status": "open",
        "priority": 2,
        "issue_type": "task",
        "created_at": AT,
        **fields,
    }


def blocks(name: str, on: str, kind: str = "blocks") -> dict[str, Any]:
    return {"issue_id": name, "depends_on_id": on, "type": kind, "created_at": AT, "created_by": "ada"}


def counts(outcome: Any) -> tuple[int, int, int, int]:
    return outcome.imported, outcome.updated, outcome.skipped, outcome.ignored


def shown(board: Board, tracker: str, name: str) -> dict[str, Any]:
    task: dict[str, Any] = board.show(id_of(tracker, name))["task"]
    return task


def test_issue_of_beads_comes_over_with_every_field_in_its_place(board: Board) -> None:
    done = beads(
        board,
        issue(
            "bd-1", title="Write\nthe parser", description="What.", design="How.", acceptance_criteria="When.",
            notes="And.", priority=0, issue_type="bug", assignee="Ada", labels=["core", "ui"], created_by="maria",
            updated_at="2026-11-02T10:00:00+08:00", due_at="2026-12-24T00:00:00Z", defer_until="2026-12-01T00:00:00Z",
            external_ref="gh-9", estimated_minutes=90, some_new_field=1,
        ),
    )  # fmt: skip
    assert done.to_dict() == {"imported": 1, "updated": 0, "skipped": 0, "ignored": 0, "details": {}}
    task = shown(board, "beads", "bd-1")
    assert is_ulid(task["id"])
    assert (task["title"], task["status"], task["priority"], task["assignee"]) == (
        "Write the parser",
        "queued",
        2,
        "Ada",
    )
    assert task["body"] == "What.\n\n## Design\n\nHow.\n\n## Acceptance criteria\n\nWhen.\n\n## Notes\n\nAnd."
    assert task["tags"] == ["core", "ui", "bug"]
    assert (task["created_by"], task["created_at"], task["updated_at"]) == (
        "maria",
        STORED,
        "2026-11-02T02:00:00.000+00:00",
    )
    assert (task["due_at"], task["not_before"]) == ("2026-12-24T00:00:00.000+00:00", "2026-12-01T00:00:00.000+00:00")
    assert task["params"] == {
        "beads": {
            "id": "bd-1",
            "issue_type": "bug",
            "external_ref": "gh-9",
            "estimated_minutes": 90,
            "some_new_field": 1,
        }
    }


@pytest.mark.parametrize(
    ("status", "expected", "kept"),
    [
        ("open", "queued", None),
        ("in_progress", "queued", "in_progress"),
        ("blocked", "queued", "blocked"),
        ("deferred", "queued", "deferred"),
        ("of our own", "queued", "of our own"),
        ("closed", "done", None),
    ],
)
def test_status_of_beads(board: Board, status: str, expected: str, kept: str | None) -> None:
    beads(board, issue("bd-1", status=status, closed_at=AT, close_reason="merged"))
    task = shown(board, "beads", "bd-1")
    assert task["status"] == expected
    assert task["params"]["beads"].get("status") == kept
    assert (task["finished_at"], task["result"]) == ((STORED, "merged") if status == "closed" else (None, None))


def test_smaller_priorities_of_beads_are_claimed_first(board: Board) -> None:
    beads(board, *(issue(f"bd-{priority}", priority=priority) for priority in (4, 0, 2, 3, 1)))
    assert [task.title for task in board.list_tasks(order="priority").tasks] == [f"bd-{n}" for n in range(5)]


def test_blocking_issues_of_beads_are_waited_for_and_other_links_kept(board: Board) -> None:
    done = beads(
        board,
        issue("bd-2", dependencies=[blocks("bd-2", "bd-1"), blocks("bd-2", "bd-9", "parent-child")]),
        issue("bd-1"),
        issue("bd-3", dependencies=[blocks("bd-3", "bd-2"), blocks("bd-3", "bd-1", "related")]),
    )
    one, two, three = (id_of("beads", f"bd-{number}")[-6:] for number in (1, 2, 3))
    assert done.warnings == [
        f'"bd-2" ({two}) waits for "bd-1" ({one})',
        f'"bd-3" ({three}) waits for "bd-2" ({two})',
    ]
    assert shown(board, "beads", "bd-2")["blocked_by"] == [id_of("beads", "bd-1")]
    assert shown(board, "beads", "bd-2")["params"]["beads"]["dependencies"] == [{"type": "parent-child", "id": "bd-9"}]
    assert shown(board, "beads", "bd-3")["blocked_by"] == [id_of("beads", "bd-2")]
    assert shown(board, "beads", "bd-1")["ready"]


def test_an_issue_that_was_not_exported_is_not_waited_for_and_that_is_said(board: Board) -> None:
    done = beads(board, issue("bd-2", dependencies=[blocks("bd-2", "bd-1"), blocks("bd-2", "bd-2")]))
    assert [("bd-1" in said, "bd-2" in said) for said in done.warnings] == [(True, False), (False, True)]
    assert shown(board, "beads", "bd-2")["ready"]
    assert board.events()["events"][-1]["data"]["changes"].get("blocked_by") is None


def test_an_issue_that_is_on_the_board_already_is_waited_for(board: Board) -> None:
    beads(board, issue("bd-1"))
    (said,) = beads(board, issue("bd-2", dependencies=[blocks("bd-2", "bd-1")])).warnings
    assert " waits for " in said
    assert shown(board, "beads", "bd-2")["blocked"]


def test_importing_again_passes_over_what_is_there(board: Board) -> None:
    issues = [issue("bd-1", comments=[{"author": "ada", "text": "hi", "created_at": AT}]), issue("bd-2")]
    beads(board, *issues)
    before = everything(board)
    again = beads(board, *issues)
    assert counts(again) == (0, 0, 2, 0)
    assert again.details == {"exists": {"count": 2, "ids": ["bd-1", "bd-2"]}}
    assert everything(board)["event"] == before["event"]
    assert counts(beads(board, *issues, issue("bd-3"))) == (1, 0, 2, 0)


def test_remarks_become_events_with_their_author_and_time(board: Board) -> None:
    remarks = [
        {"id": 1, "issue_id": "bd-1", "author": "ada", "text": "first", "created_at": AT},
        {"id": 2, "issue_id": "bd-1", "author": "none", "text": "x" * 20_001, "created_at": AT},
        {"id": 3, "issue_id": "bd-1", "author": "ada", "text": " ", "created_at": AT},
    ]
    done = beads(board, issue("bd-1", comments=remarks))
    comments = board.show(id_of("beads", "bd-1"))["comments"]
    assert [(one["actor"], one["actor_kind"], one["at"], one["data"]["text"][:5]) for one in comments] == [
        ("ada", "human", STORED, "first"),
        ("unknown", "human", STORED, "xxxxx"),
    ]
    assert len(comments[1]["data"]["text"]) == 20_000
    assert len(done.warnings) == 1
    assert kinds(board, id_of("beads", "bd-1")) == ["commented", "commented", "imported"]


def test_lines_that_are_no_issues_and_deleted_issues_are_left_out_and_counted(board: Board) -> None:
    done = beads(board, "", issue("bd-1"), {"_type": "memory", "key": "x"}, issue("bd-2", status="tombstone"))
    assert counts(done) == (1, 0, 0, 2)
    assert done.details == {"memory": {"count": 1, "ids": ["line 3"]}, "tombstone": {"count": 1, "ids": ["bd-2"]}}


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("{", None),
        ("[]", None),
        ('{"id": "bd-2", "id": "bd-3"}', None),
        ('{"title": "no id"}', "id"),
        ('{"id": 5, "title": "t"}', "id"),
        ('{"id": "bd-2"}', "title"),
        ('{"id": "bd-2", "title": "t", "priority": NaN}', "priority"),
        ('{"id": "bd-2", "title": "t", "priority": [1]}', "priority"),
        ('{"id": "bd-2", "title": "t", "priority": true}', "priority"),
        ('{"id": "bd-2", "title": "t", "priority": "1"}', "priority"),
        ('{"id": "bd-2", "title": "t", "description": 5}', "description"),
        ('{"id": "bd-2", "title": "t", "labels": "core"}', "labels"),
        ('{"id": "bd-2", "title": "t", "dependencies": ["bd-1"]}', "dependencies"),
        (
            '{"id": "bd-2", "title": "t", "dependencies": [{"issue_id": "bd-7", "depends_on_id": "bd-1"}]}',
            "dependencies",
        ),
        ('{"id": "bd-2", "title": "t", "created_at": "yesterday"}', "created_at"),
        ('{"id": "bd-2", "title": "t", "comments": [{"text": "t", "created_at": 5}]}', "at"),
    ],
)
def test_a_bad_line_is_named_and_nothing_comes_in(board: Board, line: str, field: str | None) -> None:
    board.add("there already")
    before = everything(board)
    with refused("invalid_input") as caught:
        beads(board, issue("bd-1"), "", line)
    assert (caught.value.details["place"], caught.value.details["field"]) == ("line 3", field)
    assert everything(board) == before


def test_line_that_is_no_utf_8_is_named(board: Board) -> None:
    with refused("invalid_input") as caught:
        board.import_tasks(io.BytesIO(b'{"id":"bd-1","title":"t"}\n{"id":"\xff"}\n'), file_format="beads")
    assert caught.value.details["place"] == "line 2"


def test_issues_that_block_each_other_are_refused(board: Board) -> None:
    with refused("invalid_input"):
        beads(
            board,
            issue("bd-1", dependencies=[blocks("bd-1", "bd-2")]),
            issue("bd-2", dependencies=[blocks("bd-2", "bd-1")]),
        )


URL = "https://github.com/example/board/issues/"


def gh(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "number": number, "title": f"Issue {number}", "body": "Text", "state": "OPEN", "stateReason": "",
        "url": f"{URL}{number}", "labels": [], "assignees": [], "milestone": None, "author": {"login": "mona"},
        "comments": [],
        "createdAt": AT, "updatedAt": AT, "closedAt": None, **fields,
    }  # fmt: skip


def test_issue_of_github_comes_over_with_every_field_in_its_place(board: Board) -> None:
    github(
        board,
        gh(
            7,
            labels=[{"id": "x", "name": "good first issue", "color": "fff"}],
            assignees=[{"login": "ada"}, {"login": "bob"}],
            milestone={"number": 1, "title": "1.0", "dueOn": AT},
            comments=[
                {"author": {"login": "bob"}, "body": "Me too", "createdAt": AT},
                {"author": None, "body": "?", "createdAt": AT},
            ],
            isPinned=False,
        ),
    )  # fmt: skip
    details = board.show(id_of("github", f"{URL}7"))
    task = details["task"]
    assert (task["title"], task["body"], task["status"], task["assignee"]) == ("Issue 7", "Text", "queued", "ada")
    assert (task["tags"], task["created_by"], task["created_at"]) == (["good first issue"], "mona", STORED)
    assert task["params"] == {
        "github": {"number": 7, "url": f"{URL}7", "assignees": ["ada", "bob"], "milestone": "1.0", "isPinned": False}
    }
    assert [(one["actor"], one["data"]["text"]) for one in details["comments"]] == [("bob", "Me too"), ("unknown", "?")]


@pytest.mark.parametrize(
    ("reason", "status"),
    [("COMPLETED", "done"), ("", "done"), ("NOT_PLANNED", "cancelled"), ("DUPLICATE", "cancelled")],
)
def test_closed_issues_of_github_are_done_or_given_up(board: Board, reason: str, status: str) -> None:
    github(board, gh(7, state="CLOSED", stateReason=reason, closedAt=AT))
    task = shown(board, "github", f"{URL}7")
    assert (task["status"], task["finished_at"]) == (status, STORED)


def test_a_few_fields_of_github_are_enough(board: Board) -> None:
    github(board, {"number": 7, "title": "t"})
    assert shown(board, "github", "7")["params"] == {"github": {"number": 7}}


def test_blocking_issues_of_github_are_waited_for(board: Board) -> None:
    done = github(
        board,
        gh(2, blockedBy={"nodes": [{"number": 1, "url": f"{URL}1"}], "totalCount": 1}),
        gh(1),
        gh(3, blockedBy=[{"number": 99, "url": f"{URL}99"}]),
    )
    assert shown(board, "github", f"{URL}2")["blocked_by"] == [id_of("github", f"{URL}1")]
    assert shown(board, "github", f"{URL}3")["ready"]
    assert len(done.warnings) == 2
    assert " waits for " in done.warnings[1]


@pytest.mark.parametrize(
    ("bad", "field"),
    [(5, None), ({"title": "t"}, "number"), ({"number": True, "title": "t"}, "number"), ({"number": 1}, "title")],
)
def test_a_bad_issue_of_github_is_named(board: Board, bad: Any, field: str | None) -> None:
    with refused("invalid_input") as caught:
        github(board, gh(1), bad)
    assert (caught.value.details["place"], caught.value.details["field"]) == ("issues[1]", field)


@pytest.mark.parametrize("host", ["https://api.github.com/repos", "https://ghe.example/api/v3/repos"])
def test_the_address_of_the_rest_interface_names_the_same_issue(board: Board, host: str) -> None:
    web = "https://github.com" if "api.github.com" in host else "https://ghe.example"
    github(board, gh(7, url=f"{web}/example/board/issues/7"))
    again = github(board, gh(7, url=f"{host}/example/board/issues/7"))
    assert counts(again) == (0, 0, 1, 0)


def test_another_document_is_no_list_of_issues(board: Board) -> None:
    for content in (b'{"items": []}', b'"x"', b""):
        with refused("invalid_input"):
            board.import_tasks(io.BytesIO(content), file_format="github")
