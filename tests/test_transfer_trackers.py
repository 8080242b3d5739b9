# ruff: noqa: E501 -- one sample file a line
"""Exports of other trackers in the shapes that their versions write: nothing in them is lost silently."""

from __future__ import annotations

import io
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board.transfer.detection import SAMPLE, detect
from agent_task_board.transfer.formats import FORMATS, TRACKERS, table_of
from tests.support import everything, refused

if TYPE_CHECKING:
    from pathlib import Path

    from agent_task_board import Board

AT = "2026-04-01T10:00:00Z"
LATER = "2026-05-01T10:00:00Z"


def lines(*rows: Any) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def text(*paragraphs: str) -> dict[str, Any]:
    """Return a document of Jira's newer editor."""
    content = [{"type": "paragraph", "content": [{"type": "text", "text": one}]} for one in paragraphs]
    return {"type": "doc", "version": 1, "content": content}


def jira(key: str, **fields: Any) -> dict[str, Any]:
    named = {
        "status": {"name": "To Do", "statusCategory": {"key": "new"}},
        "summary": f"S-{key}",
        "created": "2026-04-01T10:00:00.000+0000",
    }
    return {"expand": "x", "id": "1", "self": "https://jira.invalid/1", "key": key, "fields": named | fields}


CARD = {
    "id": "66f000000000000000000001",
    "name": "Card-1",
    "desc": "Desc-1",
    "idList": "l1",
    "closed": False,
    "pos": 65535.5,
}
LISTS = [{"id": "l1", "name": "To Do", "closed": False}, {"id": "l2", "name": "Ideas"}, {"id": "l3", "name": "Done"}]
BOARD = {"id": "b", "name": "B", "shortLink": "s", "labelNames": {}, "lists": LISTS}

# Each: the format, the content, how many come in, and words of the file that must be somewhere afterwards.
SHAPES: list[tuple[str, str, int, list[str]]] = [
    ("beads", lines({"id": "a-1", "title": "T-1", "status": "open", "issue_type": "task", "owner": "O-1"}), 1, ["O-1"]),
    ("beads", lines({"_type": "issue", "id": "a-1", "title": "T-1", "spec_id": "S-1", "metadata": {"k": "V-1"}}), 1, ["S-1", "V-1"]),
    ("beads", lines({"id": "a-1", "title": "T-1", "issue_type": "bug", "depends_on": ["a-9"], "started_at": AT}, {"id": "a-2", "title": "T-2"}), 2, ["a-9", AT]),
    ("beads", "# exported\n" + lines({"_meta": {"version": 2}}, {"id": "a-1", "title": "T-1", "issue_type": "gate", "await_id": "W-1"}), 1, ["W-1", "gate"]),
    ("beads", lines({"id": "a-1", "title": "T-1", "issue_type": "task", "priority": 9, "labels": ["L\ufe0f-1"], "dependencies": [{"depends_on_id": "a-2", "type": "relates-to", "metadata": "M-1"}]}), 1, ["M-1", "relates-to", "9"]),
    ("github", json.dumps([{"number": 1, "title": "T-1", "closed": False, "projectItems": [{"title": "P-1"}]}]), 1, ["P-1"]),
    ("github", json.dumps([[{"number": 1, "title": "T-1", "html_url": "https://github.com/a/b/issues/1", "user": {"login": "U-1"}, "state": "open", "locked": True, "active_lock_reason": "R-1"}], [{"number": 2, "title": "T-2", "state": "open"}]]), 2, ["U-1", "R-1"]),
    ("github", json.dumps({"issues": [{"number": 1, "title": "T-1", "milestone": {"title": "M-1"}, "state": "OPEN"}]}), 1, ["M-1"]),
    ("github", json.dumps([{"number": 1, "title": "T-1", "url": "https://github.com/a/b/issues/1", "state": "TRANSFERRED", "blockedBy": [{"number": 2}]}]), 1, ["transferred", "issues/2"]),
    ("github", json.dumps([{"number": 1, "title": "T-1", "comments": 4, "reactions": {"total_count": 77}, "state": "closed", "closed_at": AT}]), 1, ["77"]),
    ("task-master", json.dumps({"tasks": [{"id": 1, "title": "T-1", "details": "D-1", "dependencies": [], "complexityScore": 7}]}), 1, ["D-1", "7"]),
    ("task-master", json.dumps({"tasks": [{"id": "1", "title": "T-1", "dependencies": ["2"], "status": "review"}, {"id": 2, "title": "T-2", "testStrategy": "S-1", "dependencies": []}], "metadata": {"version": "1"}}), 2, ["S-1", "review"]),
    ("task-master", json.dumps({"master": {"tasks": [{"id": 1, "title": "T-1", "subtasks": [{"id": 1, "title": "T-2", "details": "D-2", "dependencies": []}, {"id": 2, "title": "T-3", "dependencies": [1]}]}]}}), 3, ["D-2"]),
    ("task-master", json.dumps({"feature-x": {"tasks": [{"id": 1, "title": "T-1", "dependencies": [], "status": "deferred"}]}, "master": {"tasks": []}}), 1, ["feature-x", "deferred"]),
    ("task-master", json.dumps({"master": {"tasks": [{"id": 1, "title": "T-1", "dependencies": [], "status": "in-progress", "assignee": "A-1", "updatedAt": AT, "relevantFiles": [{"path": "F-1"}]}]}}), 1, ["A-1", "F-1", "in-progress"]),
    ("checklist", "- [ ] T-1\n- [x] T-2\n", 2, []),
    ("checklist", "# H-1\n\nProse.\n\n* [ ] T-1\n  more M-1\n\n## H-2\n\n1. [X] T-2\n", 2, ["H-1", "M-1", "H-2"]),
    ("checklist", "- [?] T-1\n\t- [-] T-2\n\t\t- [ ] T-3\n", 3, ["[?]"]),
    ("checklist", "- [ ] T-1\n  ```\n  - [ ] not a task N-1\n  ```\n- [ ] T-1\n", 2, ["N-1"]),
    ("checklist", "+ [ ] T-1\r\n  - a note N-1\r\n", 1, ["N-1"]),
    ("todo", "(A) 2026-04-01 T-1 +P-1 @C-1 due:2026-06-01\nx 2026-05-02 2026-05-01 T-2 pri:B\n", 2, ["P-1", "C-1", "2026-06-01"]),
    ("todo", "T-1 @home rec:+1w\n\nT-2 +garden h:1\n", 2, ["+1w", "hidden"]),
    ("todo", "x T-1 +a\n(Z) T-2 t:2099-01-01\n", 2, ["2099-01-01"]),
    ("todo", "(B) T-1 id:I-1\n(C) T-2 p:I-1\n", 2, ["I-1"]),
    ("todo", "(a) T-1 +x due:tomorrow https://e.invalid/U-1\nx (A) 2026-05-02 T-2 @y\n", 2, ["tomorrow", "U-1"]),
    ("jira", json.dumps({"expand": "x", "total": 1, "issues": [jira("K-1", description="D-1", customfield_10016=3.5)]}), 1, ["D-1", "3.5"]),
    ("jira", json.dumps({"issues": [jira("K-1", description=text("D-1", "D-2"), labels=["L-1"], priority={"name": "Highest"}, parent={"key": "K-9"})], "isLast": True}), 1, ["D-1", "D-2", "L-1", "K-9"]),
    ("jira", json.dumps([jira("K-1", status={"name": "In Review", "statusCategory": {"key": "indeterminate"}}, comment={"comments": [{"author": {"displayName": "A-1"}, "body": "C-1", "created": "2026-04-02T10:00:00.000+0000"}]})]), 1, ["A-1", "C-1", "In Review"]),
    ("jira", "Summary,Issue key,Issue id,Issue Type,Status,Priority,Labels,Labels,Created,Inward issue link (Blocks),Comment\nT-1,K-1,1,Bug,Blocked,High,L-1,L-2,01/Apr/26 10:00 AM,K-2,01/Apr/26 11:00 AM;A-1;C-1\n", 1, ["L-1", "L-2", "K-2", "C-1", "Blocked"]),
    ("jira", "\ufeffIssue key;Summary;Status;Resolution;Custom field (Team);Due date\r\nK-1;T-1;Closed;Won't Do;F-1;04/05/06\r\n", 1, ["F-1", "04/05/06", "Won't Do"]),
    ("linear", "ID,Team,Title,Description,Status,Estimate,Priority,Labels,Created\nE-1,Team-1,T-1,D-1,Todo,5,Urgent,\"L-1, L-2\",2026-04-01T10:00:00.000Z\n", 1, ["Team-1", "D-1", "L-1", "L-2"]),
    ("linear", "ID,Team,Title,Status,Completed,Cycle Name\nE-1,X,T-1,Shipped it,2026-04-01T10:00:00.000Z,Y-1\n", 1, ["Y-1", "Shipped it"]),
    ("linear", '"ID","Team","Title","Status","Parent issue","Blocked by"\n"E-1","X","T-1","Backlog","E-7","E-8, E-9"\n', 1, ["E-7", "E-8", "E-9", "backlog"]),
    ("linear", "ID;Team;Title;Status;Created\nE-1;X;T-1;Canceled;Wed Apr 01 2026 10:00:00 GMT+0000 (GMT)\n", 1, ["2026-04-01T10:00"]),
    ("linear", "ID\tTeam\tTitle\tStatus\tAssignee\tUUID\nE-1\tX\tT-1\tIn Progress\tada@example.org\tU-1\n", 1, ["ada@example.org", "U-1"]),
    ("trello", json.dumps({**BOARD, "cards": [CARD]}), 1, ["Desc-1", "65535.5"]),
    ("trello", json.dumps({**BOARD, "cards": [{**CARD, "idList": "l2", "labels": [{"name": "", "color": "green"}], "due": AT}]}), 1, ["green", "Ideas"]),
    ("trello", json.dumps({**BOARD, "cards": [{**CARD, "idMembers": ["m1", "m2"]}], "members": [{"id": "m1", "username": "ada"}], "checklists": [{"idCard": CARD["id"], "name": "N-1", "checkItems": [{"name": "I-1", "state": "complete"}]}]}), 1, ["ada", "m2", "N-1", "I-1"]),
    ("trello", json.dumps({**BOARD, "actions": [{"type": "commentCard", "date": AT, "data": {"text": "C-1", "card": {"id": CARD["id"]}}, "memberCreator": {"username": "A-1"}}, {"type": "updateCard"}], "cards": [CARD]}), 1, ["C-1", "A-1"]),
    ("trello", json.dumps({**BOARD, "cards": [{**CARD, "closed": True, "badges": {"votes": 3}, "customFieldItems": [{"value": {"text": "F-1"}}]}]}), 1, ["F-1"]),
    ("asana", json.dumps({"data": [{"gid": "1", "name": "T-1", "notes": "N-1", "completed": False, "custom_fields": [{"name": "F-1"}]}]}), 1, ["N-1", "F-1"]),
    ("asana", json.dumps({"data": [{"gid": "1", "name": "T-1", "subtasks": [{"gid": "2", "name": "T-2", "notes": "N-2"}], "memberships": [{"section": {"name": "Blocked"}}]}]}), 2, ["N-2", "blocked"]),
    ("asana", json.dumps([{"gid": "1", "name": "T-1", "resource_subtype": "approval", "dependencies": [{"gid": "9"}], "due_on": "2026-06-01"}]), 1, ["approval", "9", "2026-06-01"]),
    ("asana", "Task ID,Created At,Completed At,Last Modified,Name,Section/Column,Assignee,Tags,Notes,Projects,Parent task,Blocked By (Dependencies)\n1,2026-04-01,,2026-04-02,T-1,Doing,ada,\"G-1,G-2\",N-1,P-1,,\"T-2, with comma\"\n2,2026-04-01,2026-04-03,2026-04-03,\"T-2, with comma\",Done,,,,P-1,,\n", 2, ["G-1", "G-2", "N-1", "P-1"]),
    ("asana", "\ufeffTask ID,Name,Section/Column,Parent task,Due Date\r\n1,T-1,Waiting,Nobody knows N-1,2026-06-01\r\n", 1, ["N-1", "waiting", "2026-06-01"]),
]  # fmt: skip


def bring(board: Board, form: str, content: str, **options: Any) -> Any:
    return board.import_tasks(io.BytesIO(content.encode()), file_format=form, **options)


def whole(board: Board, outcome: Any) -> str:
    """Return everything that is known after an import, as one text."""
    stored = json.dumps(everything(board), ensure_ascii=False, default=str)
    return stored.replace('\\"', '"').replace("\\\\", "\\") + json.dumps(outcome.to_dict()) + str(outcome.warnings)


@pytest.mark.parametrize(
    ("form", "content", "count", "words"),
    SHAPES,
    ids=[f"{shape[0]}-{number % 5}" for number, shape in enumerate(SHAPES)],
)
def test_exports_of_trackers_come_in_and_nothing_is_lost(
    board: Board, form: str, content: str, count: int, words: list[str]
) -> None:
    assert detect(content.encode()[:SAMPLE]) == form
    before = everything(board)
    trial = bring(board, form, content, dry_run=True)
    assert everything(board) == before
    done = bring(board, form, content)
    assert (trial.imported, done.imported) == (count, count)
    found = whole(board, done)
    titles = {title for title in ("T-1", "T-2", "T-3", "S-K-1", "Card-1") if title in content}
    assert [word for word in (*words, *titles) if word not in found] == []
    once = everything(board)
    again = bring(board, form, content)
    assert (again.imported, again.updated, again.skipped) == (0, 0, count)
    assert everything(board) == once


@pytest.mark.parametrize("form", [form for form in TRACKERS if form != "backlog"])
def test_each_unknown_field_is_kept(board: Board, form: str) -> None:
    extra = {"zz_text": "Z-1", "zz_list": ["Z-2"], "zz_object": {"k": "Z-3"}, "zz_number": 1234567, "zz_flag": False}
    rows: dict[str, Any] = {
        "beads": {"id": "a-1", "title": "T", **extra},
        "github": [{"number": 1, "title": "T", **extra}],
        "task-master": {"tasks": [{"id": 1, "title": "T", "subtasks": [{"id": 1, "title": "U", **extra}]}]},
        "jira": {"issues": [jira("K-1", **extra)]},
        "trello": {**BOARD, "cards": [{**CARD, **extra}]},
        "asana": {"data": [{"gid": "1", "name": "T", **extra}]},
    }
    tables = {
        "linear": "ID,Title,zz_text,zz_list,zz_object,zz_number,zz_flag\nE-1,T,Z-1,Z-2,Z-3,1234567,false\n",
        "todo": "T zz_text:Z-1 zz_list:Z-2 zz_object:Z-3 zz_number:1234567 zz_flag:false\n",
        "checklist": "- [ ] T\n  zz_text Z-1 Z-2 Z-3 1234567 zz_flag\n",
    }
    done = bring(board, form, tables.get(form) or json.dumps(rows[form]))
    found = whole(board, done)
    assert [word for word in ("Z-1", "Z-2", "Z-3", "1234567", "zz_flag") if word not in found] == []


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("jira", json.dumps({"issues": [jira("K-1", status={"name": name}) for name in ("In Review",)]})),
        ("linear", "ID,Title,Status\nE-1,T,Triage\n"),
        ("trello", json.dumps({**BOARD, "cards": [{**CARD, "idList": "l2"}]})),
        ("asana", json.dumps([{"gid": "1", "name": "T", "memberships": [{"section": {"name": "On hold"}}]}])),
        ("task-master", json.dumps({"tasks": [{"id": 1, "title": "T", "status": "deferred"}]})),
        ("checklist", "- [>] T\n"),
        ("todo", "T h:1\n"),
        ("github", json.dumps([{"number": 1, "title": "T", "state": "DRAFT"}])),
        ("beads", lines({"id": "a-1", "title": "T", "status": "of our own"})),
    ],
)
def test_what_is_not_known_to_be_ready_is_held_and_that_is_said(board: Board, form: str, content: str) -> None:
    done = bring(board, form, content)
    assert done.details["held"]["count"] == 1
    assert any("held" in warning and ": 1 " in warning for warning in done.warnings)
    assert board.claim("ada") is None
    (task,) = board.list_tasks().tasks
    assert (task.tags[-1], task.status) == ("held", "queued")
    board.update(task.id, not_before="", drop_tags=["held"])
    assert board.claim("ada") is not None


# One tracker's file again


def bead(name: str, *, at: str = AT, **fields: Any) -> dict[str, Any]:
    return {"id": name, "title": f"T {name}", "status": "open", "created_at": AT, "updated_at": at, **fields}


def blocked_by(*names: str, kind: str = "blocks") -> list[dict[str, Any]]:
    return [{"depends_on_id": name, "type": kind} for name in names]


def state(board: Board) -> dict[str, Any]:
    tasks = [task.to_dict() for task in board.list_tasks(full=True).tasks]
    titles = {task["id"]: task["title"] for task in tasks}
    return {
        task["title"]: {**task, "version": 0, "blocked_by": [titles[id_] for id_ in task["blocked_by"]]}
        for task in tasks
    }


def test_a_newer_row_updates_a_task_that_nobody_touched(board: Board) -> None:
    bring(board, "beads", lines(bead("a-1"), bead("a-2", dependencies=blocked_by("a-1"))))
    board.comment(next(iter(board.list_tasks().tasks)).id, "noted")
    newer = [
        bead("a-1", at=LATER, status="closed", closed_at=LATER),
        bead("a-2", at=LATER, title="Renamed", priority=0, assignee="ada", comments=[{"author": "bob", "text": "hi", "created_at": LATER}]),
    ]  # fmt: skip
    done = bring(board, "beads", lines(*newer))
    assert (done.imported, done.updated, done.skipped) == (0, 2, 0)
    assert done.details == {"updated": {"count": 2, "ids": ["a-1", "a-2"]}}
    found = state(board)
    assert found["T a-1"]["status"] == "done"
    assert (found["Renamed"]["assignee"], found["Renamed"]["priority"], found["Renamed"]["ready"]) == ("ada", 2, True)
    assert found["Renamed"]["blocked_by"] == []
    assert [one["data"]["text"] for one in board.show(found["Renamed"]["id"])["comments"]] == ["hi"]
    again = bring(board, "beads", lines(*newer))
    assert (again.updated, again.skipped) == (0, 2)
    assert [one for one in board.doctor()["findings"] if one["level"] == "error"] == []


@pytest.mark.parametrize("touch", ["claim", "update", "cancel"])
def test_a_newer_row_leaves_a_task_that_somebody_touched(board: Board, touch: str) -> None:
    bring(board, "beads", lines(bead("a-1")))
    (task,) = board.list_tasks().tasks
    if touch == "claim":
        assert board.claim("ada") is not None
    elif touch == "update":
        board.update(task.id, priority=7)
    else:
        board.cancel(task.id)
    before = everything(board)
    done = bring(board, "beads", lines(bead("a-1", at=LATER, title="Renamed")))
    assert (done.updated, done.skipped, done.details["changed_here"]["ids"]) == (0, 1, ["a-1"])
    assert everything(board)["task"] == before["task"]


def test_a_done_task_stays_done_if_its_issue_was_reopened(board: Board) -> None:
    bring(board, "beads", lines(bead("a-1", status="closed", closed_at=AT)))
    done = bring(board, "beads", lines(bead("a-1", at=LATER)))
    assert done.details == {"done_here": {"count": 1, "ids": ["a-1"]}}
    assert state(board)["T a-1"]["status"] == "done"


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_parts_of_a_file_end_the_same_in_any_order(board: Board, order: tuple[int, ...]) -> None:
    rows = [
        bead("a-1", status="closed", closed_at=AT),
        bead("a-2", dependencies=blocked_by("a-1", "a-3")),
        bead("a-3", dependencies=blocked_by("a-1")),
    ]
    for part in order:
        bring(board, "beads", lines(rows[part]))
    found = state(board)
    assert {title: sorted(task["blocked_by"]) for title, task in found.items()} == {
        "T a-1": [],
        "T a-2": ["T a-1", "T a-3"],
        "T a-3": ["T a-1"],
    }
    assert [title for title, task in found.items() if task["ready"]] == ["T a-3"]
    assert everything(board)["awaited_dependency"] == []
    assert [one for one in board.doctor()["findings"] if one["level"] == "error"] == []
    # A joined dependency is no change of somebody on the board.
    assert bring(board, "beads", lines({**rows[1], "updated_at": LATER})).updated == 1


def test_a_cycle_over_several_parts_is_refused_in_the_names_of_the_tracker(board: Board) -> None:
    bring(
        board, "beads", lines(bead("a-1", dependencies=blocked_by("a-3")), bead("a-2", dependencies=blocked_by("a-1")))
    )
    for dry_run in (True, False):
        with refused("invalid_input") as caught:
            bring(board, "beads", lines(bead("a-3", dependencies=blocked_by("a-2"))), dry_run=dry_run)
        assert all(name in caught.value.message for name in ("a-1", "a-2", "a-3"))
    assert len(board.list_tasks().tasks) == 2


def test_children_wait_for_what_their_epic_waits_for(board: Board) -> None:
    rows = [
        bead("a-1.1", dependencies=blocked_by("a-1", kind="parent-child")),
        bead("a-1", issue_type="epic", dependencies=blocked_by("a-2", "a-1.1")),
        bead("a-2"),
        bead("a-3", issue_type="epic", status="blocked"),
        bead("a-3.1", dependencies=blocked_by("a-3", kind="parent-child")),
        bead("a-3.2", status="closed", closed_at=AT, dependencies=blocked_by("a-3", kind="parent-child")),
    ]
    bring(board, "beads", lines(*rows))
    found = state(board)
    assert found["T a-1.1"]["blocked_by"] == ["T a-2"]
    assert found["T a-1"]["blocked_by"] == ["T a-2", "T a-1.1"]
    assert (found["T a-3.1"]["tags"], found["T a-3.2"]["tags"]) == (["held"], [])
    assert [title for title, task in found.items() if task["ready"]] == ["T a-2"]


def test_links_that_are_no_dependencies_block_nothing(board: Board) -> None:
    kinds = ("relates-to", "related", "discovered-from", "duplicates", "replies-to")
    links = [{"depends_on_id": "a-2", "type": kind} for kind in kinds]
    bring(board, "beads", lines(bead("a-1", dependencies=links), bead("a-2")))
    found = state(board)["T a-1"]
    assert (found["ready"], [one["type"] for one in found["params"]["beads"]["dependencies"]]) == (True, list(kinds))


# Backlog.md


def note(folder: Path, name: str, front: str, body: str = "Body\n") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\n{front}---\n\n{body}", encoding="utf-8")


def test_a_directory_of_backlog_md_comes_in(board: Board, tmp_path: Path) -> None:
    root = tmp_path / "backlog"
    note(
        root, "tasks/task-1 - One.md",
        "id: task-1\ntitle: 'It''s: one'\nstatus: To Do\nassignee:\n  - '@ada'\n  - '@bob'\nreporter: '@mara'\n"
        "created_date: '2026-04-01 10:00'\nlabels: [ui, \"a, b\"]\ndependencies:\n  - task-2\npriority: high\nordinal: 1000\n",
        "## Description\n\nWhat.\n",
    )  # fmt: skip
    note(
        root,
        "tasks/task-2 - Two.md",
        "id: TASK-2\ntitle: >-\n  A folded\n  title\nstatus: In Review\nlabels: []\nassignee: []\n",
    )
    note(root, "completed/task-3 - Three.md", "id: task-3\ntitle: Three\nstatus: Done\n")
    note(root, "drafts/draft-4 - Four.md", "id: draft-4\ntitle: Four\nstatus: Draft\n")
    note(root, "archive/tasks/task-5 - Five.md", "id: task-5\ntitle: Five\nstatus: To Do\nmilestone: m-1\n")
    (root / "tasks/notes.txt").write_text("x")
    (root / "tasks/outside.md").symlink_to(tmp_path / "secret.md")
    note(tmp_path, "secret.md", "id: secret\ntitle: Secret\n")
    os.mkfifo(root / "tasks/pipe.md")
    done = board.import_tasks(str(root), file_format="backlog")
    assert (done.imported, done.ignored) == (5, 3)
    assert set(done.details) == {"held", "link", "not_a_task_file"}
    found = state(board)
    one = found["It's: one"]
    assert (one["priority"], one["assignee"], one["tags"], one["created_by"]) == (1, "ada", ["ui", "a, b"], "mara")
    assert (one["blocked_by"], one["body"]) == (["A folded title"], "## Description\n\nWhat.")
    assert one["params"]["backlog"]["assignees"] == ["ada", "bob"]
    assert one["params"]["backlog"]["ordinal"] == "1000"
    assert (found["Three"]["status"], found["Five"]["status"]) == ("done", "cancelled")
    assert found["Five"]["params"]["backlog"]["milestone"] == "m-1"
    assert {title for title, task in found.items() if "held" in task["tags"]} == {"A folded title", "Four"}
    again = board.import_tasks(str(tmp_path), file_format="backlog")  # the project's root
    assert (again.imported, again.skipped) == (0, 5)


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("id: task-1\ntitle: {a: b}\n", "line 3"),
        ("id: task-1\ntitle: &x y\n", "line 3"),
        ("id: task-1\ntitle: T\nlabels:\n  a: b\n", "line 5"),
        ("id: task-1\ntitle: T\nid: task-2\n", "line 4"),
        ('id: task-1\ntitle: "T\\x"\n', "line 3"),
        ("id: task-1\ntitle: T\nlabels: [a, [b]]\n", "line 4"),
        ("- a\n", "line 2"),
        ("title: T\n", "id"),
    ],
)
def test_front_matter_that_is_not_understood_is_refused_with_its_line(
    board: Board, tmp_path: Path, front: str, said: str
) -> None:
    note(tmp_path, "tasks/task-1.md", front)
    with refused("invalid_input") as caught:
        board.import_tasks(str(tmp_path), file_format="backlog")
    assert said in caught.value.message
    assert caught.value.details["place"] == os.path.join("tasks", "task-1.md")


# Hostile files


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "backlog"])
@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe\xfd", b"title\n\0", b"- [ ] a\n- [ ] b\0\n", b"[" * 20_000, b'{"a":' * 20_000, b"- [ ] a\n\xc3(\n"],
    ids=["bytes", "nul", "nul-item", "arrays", "objects", "utf-8"],
)
def test_hostile_files_are_refused_or_are_text(board: Board, form: str, content: bytes) -> None:
    before = everything(board)
    is_text = form in ("todo", "checklist") and content[:1] in b"[{"  # a line like any other
    if is_text and form == "checklist":
        assert board.import_tasks(io.BytesIO(content), file_format=form).ignored == 1
    elif is_text:
        assert board.import_tasks(io.BytesIO(content), file_format=form).imported == 1
    else:
        with refused("invalid_input"):
            board.import_tasks(io.BytesIO(content), file_format=form)
        assert everything(board) == before


def test_lines_that_are_too_long_are_refused_with_their_number(board: Board) -> None:
    with refused("invalid_input") as caught:
        bring(board, "todo", "short\n" + "x" * 1_100_000)
    assert caught.value.details["place"] == "line 2"
    with refused("invalid_input") as caught:
        bring(board, "checklist", "".join(f"{' ' * number}- [ ] {number}\n" for number in range(102)))
    assert caught.value.details["place"] == "line 101"


def test_every_format_says_what_becomes_what() -> None:
    for tracker in TRACKERS:
        assert len(table_of(tracker)) >= 8


@pytest.mark.parametrize(
    ("content", "form"),
    [
        ("id,title,body\n1,a,b\n", "csv"),
        ("sep=;\nTitle;Queue\na;b\n", "csv"),
        ('{"format": "agent-task-board", "tasks": []}', "json"),
        ('{"tasks": [{"title": "a"}]}', "json"),
        ('[{"title": "a", "number": 1, "body": "number"}]', "github"),
        ('[{"title": "number"}]', "json"),
        ("a text\nof two lines\n", "json"),
        ("", "json"),
        ("---\nid: task-1\n---\n", "backlog"),
    ],
)
def test_the_format_is_told_by_the_content(content: str, form: str) -> None:
    assert detect(content.encode()) == form
    if form == "csv":
        assert detect(content.encode("utf-16"), "x.txt") == form
