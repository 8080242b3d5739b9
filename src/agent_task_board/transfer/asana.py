"""Tasks of Asana: the CSV or the JSON export of a project."""

from __future__ import annotations

from . import foreign, words
from .sources import is_json, read_document, read_table, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

TABLE = (
    ("`gid` (CSV: `Task ID`)", "`params.asana.id`; the task id is derived from it"),
    ("`name` `notes`", "`title`, `body`"),
    ("completed", "`done`, `finished_at`"),
    (
        "the section, such as Backlog, Blocked, Waiting, On hold, In review; `resource_subtype` approval",
        "`queued`, [held](import.md#held-tasks)",
    ),
    ("any other section", "`queued`, and `params.asana.section`"),
    ("`assignee` `tags`", "`assignee`, `tags`"),
    (
        "`created_at` `modified_at` `completed_at` `due_on` `start_on`",
        "`created_at`, `updated_at`, `finished_at`, `due_at`, `not_before`",
    ),
    (
        "`dependencies` (CSV: `Blocked By (Dependencies)`, by name)",
        "`blocked_by`; a name that is not unique is kept in `params.asana`",
    ),
    ("`subtasks` (CSV: `Parent task`, by name)", "a task each; the parent waits for it"),
    ("every other field", "`params.asana`"),
)
HOLDS = frozenset(
    (
        *("backlog", "blocked", "deferred", "icebox", "in review", "later", "on hold", "paused", "ready for review"),
        *("review", "someday", "waiting", "waiting for", "waiting on"),
    )
)
"""Sections whose tasks are not ready; other sections say nothing about that."""


def read(file: BinaryIO) -> Iterator[foreign.Row]:
    """Yield the place and the issue of each task."""
    found, file = is_json(file)
    yield from _of_document(read_document(file)) if found else _of_table(file)


def _of_document(document: Any) -> Iterator[foreign.Row]:
    tasks = document.get("data") if isinstance(document, dict) else document
    if not isinstance(tasks, list):
        raise foreign.refuse("file", "must be the JSON export of a project, with `data`", field="file")
    pending: list[tuple[str, Any, str | None]] = [(f"data[{number}]", task, None) for number, task in enumerate(tasks)]
    pending.reverse()
    while pending:
        place, task, parent = pending.pop()
        if not isinstance(task, dict):
            raise foreign.refuse(place, "must be a JSON object")
        fields = foreign.Fields(task, place)
        name = _id(fields.take("gid", "id"))
        if not name:
            raise fields.refuse("gid", "missing")
        if fields.peek("resource_subtype") == "section":
            yield place, foreign.Ignored("section", name)
            continue
        issue = foreign.Issue("asana", name)
        issue.parent = parent
        subtasks = [one for one in fields.entries("subtasks") if isinstance(one, dict)]
        issue.waits_for += [_id(one.get("gid") or one.get("id")) for one in subtasks]
        issue.waits_for += [
            _id(one.get("gid") if isinstance(one, dict) else one) for one in fields.entries("dependencies")
        ]
        if parent is not None:
            fields.take("parent")
        kept: dict[str, Any] = {"id": name, "parent": parent}
        issue.set_title(fields.line("name"), fields.text("notes"))
        sections = [
            str(one["section"].get("name") or "")
            for one in fields.peek("memberships") or []
            if isinstance(one, dict) and isinstance(one.get("section"), dict)
        ]
        done = fields.take("completed") is True
        kind = str(fields.peek("resource_subtype") or "")
        _set_status(issue, kept, done, sections[0] if sections else "", kind)
        issue.set_tags([foreign.login(one) for one in fields.entries("tags")], kept)
        person = foreign.login(fields.take("assignee"))
        issue.set_people([person] if person else [], kept)
        _set_dates(
            issue,
            fields,
            ("created_at",),
            ("modified_at",),
            ("completed_at",),
            ("due_at", "due_on"),
            ("start_at", "start_on"),
        )
        pending += [(f"{place}.subtasks[{number}]", one, name) for number, one in reversed(list(enumerate(subtasks)))]
        yield place, issue.finish(kept | fields.rest())


def _of_table(file: BinaryIO) -> Iterator[foreign.Row]:
    ignored: list[tuple[str, foreign.Ignored]] = []
    rows = [(place, foreign.Fields(row, place)) for place, row in read_table(file, ignored, ("task id", "name"))]
    yield from ignored
    names: dict[str, list[str]] = {}
    children: dict[str, list[str]] = {}
    for _, fields in rows:
        title, name = str(fields.peek("name") or "").strip(), str(fields.peek("task id") or "").strip()
        names.setdefault(title, []).append(name)
        parent = str(fields.peek("parent task") or "").strip()
        if parent:
            children.setdefault(parent, []).append(name)
    for place, fields in rows:
        name = str(fields.take("task id") or "").strip()
        if not name:
            raise fields.refuse("task id", "missing")
        title = fields.line("name")
        issue = foreign.Issue("asana", name)
        kept: dict[str, Any] = {"id": name}
        issue.set_title(title, fields.text("notes"))
        section = fields.text("section/column")
        _set_status(issue, kept, bool(fields.peek("completed at")), section, "")
        issue.set_tags(words_of(fields.take("tags")), kept)
        person = fields.text("assignee")
        issue.set_people([person] if person else [], kept)
        _set_dates(
            issue, fields, ("created at",), ("last modified",), ("completed at",), ("due date",), ("start date",)
        )
        if len(names.get(title, ())) == 1:
            issue.waits_for += children.get(title, [])
        parent = str(fields.peek("parent task") or "").strip()
        if parent:
            if len(names.get(parent, ())) == 1:
                issue.parent = names[parent][0]
            else:
                issue.warnings.append(
                    f"{name}: its parent is kept in `params` only: not one task of the file: {parent[:60]!r}"
                )
        blockers = fields.peek("blocked by (dependencies)")
        if isinstance(blockers, str):
            ids = _resolve(blockers, names)
            if ids is None:
                issue.warnings.append(
                    f"{name}: kept in `params` only: not names of tasks of the file: {blockers[:60]!r}"
                )
            else:
                issue.waits_for += ids
                fields.take("blocked by (dependencies)")
        yield place, issue.finish(kept | fields.rest())


def _resolve(cell: str, names: dict[str, list[str]]) -> list[str] | None:
    """Return the ids of the tasks that a cell names, with commas between them; names may have commas, too."""
    found: list[str] = []
    parts = cell.split(",")
    at = 0
    while at < len(parts):
        for end in range(min(len(parts), at + 20), at, -1):
            ids = names.get(",".join(parts[at:end]).strip(), [])
            if len(ids) == 1:
                found += ids
                at = end
                break
        else:
            return None
    return found


def _set_status(issue: foreign.Issue, kept: dict[str, Any], done: bool, section: str, kind: str) -> None:
    issue.task["status"] = "done" if done else "queued"
    word = words.normal(section)
    if word in HOLDS:
        issue.held = word
    elif kind == "approval":
        issue.held = kind
    kept["section"] = section


def _set_dates(
    issue: foreign.Issue,
    fields: foreign.Fields,
    created: tuple[str, ...],
    updated: tuple[str, ...],
    completed: tuple[str, ...],
    due: tuple[str, ...],
    start: tuple[str, ...],
) -> None:
    words.set_dates(issue, fields, created_at=created, updated_at=updated, due_at=due, not_before=start)
    if issue.task["status"] != "queued":
        words.set_dates(issue, fields, finished_at=completed)


def _id(value: object) -> str:
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
