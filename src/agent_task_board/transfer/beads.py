"""Issues of beads: the JSON Lines that ``bd export`` writes."""

from __future__ import annotations

from .. import inputs
from ..errors import InvalidInput
from . import foreign
from .lines import read_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

TABLE = (
    (
        "`id`",
        "`params.beads.id`; the task id is derived from it. Import two projects with the same prefix into two boards",
    ),
    ("`title`", "`title`"),
    ("`description` `design` `acceptance_criteria` `notes`", "`body`, with a heading for each of the last three"),
    ("`status` `open`, `in_progress`", "`queued`"),
    ("`status` `closed`", "`done`"),
    (
        "any other `status`, such as `blocked`, `deferred`, `hooked`, `pinned`; and `pinned: true`",
        "`queued`, [held](import.md#held-tasks)",
    ),
    ("`status` `tombstone`; lines with `_type` other than `issue`, headers, comments", "ignored"),
    ("`priority`", "0, 1, 2, 3, 4 become 2, 1, 0, -1, -2"),
    ("`issue_type`", "a tag, unless it is `task`; `molecule`, `agent` and others that are not work come in held"),
    ("`labels`", "`tags`"),
    ("`assignee` `created_by` `created_at` `updated_at` `due_at`", "the same"),
    ("`defer_until`", "`not_before`"),
    ("`closed_at` `close_reason`", "`finished_at`, `result`"),
    ("`dependencies` of type `blocks`, and `depends_on` (names)", "`blocked_by`"),
    ("`dependencies` of type `parent-child`", "the task also waits for what its parent waits for, and is held with it"),
    ("other `dependencies`, such as `relates-to`", "only `params.beads.dependencies`"),
    ("`comments`", "`commented` events with their author and time"),
)
NOT_WORK = frozenset("agent convoy event gate merge-request message molecule queue rig role slot wisp".split())
"""Values of ``issue_type`` that are records of the tracker, not work."""
_READY = frozenset(("open", "in_progress", "closed"))
_PRIORITIES = {0: 2, 1: 1, 2: 0, 3: -1, 4: -2}
_HEADERS = ("_schema", "_sort", "_meta", "_header", "_comment")
_LINK = ("issue_id", "depends_on_id", "type", "created_at", "created_by")
_COUNTS = ("dependency_count", "dependent_count", "comment_count")


def read(file: BinaryIO) -> Iterator[foreign.Row]:
    """Yield the place and the issue of each line of ``.beads/issues.jsonl``, or why the line is ignored."""
    for place, line in read_lines(file):
        if line.lstrip().startswith(("#", "//")):
            yield place, foreign.Ignored("comment", place)
            continue
        try:
            issue = inputs.parse_object(line, place)
        except InvalidInput as error:
            field = error.details["field"]
            raise InvalidInput(
                error.message if field == place else f"{place}: {error.message}",
                hint="Each line must be one issue in the format of `bd export`.",
                place=place,
                field=None if field == place else field,
            ) from None
        yield place, _read(issue, place)


def _read(issue: dict[str, Any], place: str) -> foreign.Issue | foreign.Ignored:
    kind = issue.get("_type", "issue")
    if kind != "issue":
        return foreign.Ignored(str(kind)[:60] or "no type", place)
    if "id" not in issue and any(key in issue for key in _HEADERS):
        return foreign.Ignored("header", place)
    if issue.get("status") == "tombstone":
        return foreign.Ignored("tombstone", str(issue.get("id"))[:60])
    return _issue(foreign.Fields(issue, place))


def _issue(fields: foreign.Fields) -> foreign.Issue:
    name = fields.text("id")
    if not name:
        raise fields.refuse("id", "missing")
    found = foreign.Issue("beads", name)
    fields.take("_type")
    for count in _COUNTS:  # say nothing that the issues themselves do not say
        fields.take(count)
    status = fields.text("status") or "open"
    kind = fields.text("issue_type")
    closed = status == "closed"
    kept: dict[str, Any] = {"id": name, "issue_type": kind}
    kept |= {} if status in ("open", "closed") else {"status": status}
    found.set_title(
        fields.line("title"),
        foreign.sections(
            (None, fields.text("description")),
            ("Design", fields.text("design")),
            ("Acceptance criteria", fields.text("acceptance_criteria")),
            ("Notes", fields.text("notes")),
        ),
    )
    priority = fields.whole_number("priority")
    kept |= {} if priority is None or priority in _PRIORITIES else {"priority": priority}
    found.set_tags([*fields.entries("labels"), *([kind] if kind and kind != "task" else [])], kept)
    assignee = fields.text("assignee")
    found.set_people([assignee] if assignee else [], kept)
    found.task |= {
        "status": "done" if closed else "queued",
        "priority": 0 if priority is None else _PRIORITIES.get(priority, 0),
        "due_at": fields.take("due_at"),
        "not_before": fields.take("defer_until"),
        "result": (fields.text("close_reason") or None) if closed else None,
        "created_at": fields.take("created_at"),
        "updated_at": fields.take("updated_at"),
        "finished_at": fields.take("closed_at") if closed else None,
    }
    author = fields.peek("created_by")
    found.task["created_by"] = foreign.name(author)
    if author == found.task["created_by"]:
        fields.take("created_by")
    if status not in _READY:
        found.held = status
    elif kind in NOT_WORK or kind.removeprefix("gt:") in NOT_WORK:
        found.held = kind
        found.spreads = False
    elif fields.peek("pinned") is True:
        found.held = "pinned"
    if links := _link(found, fields):
        kept["dependencies"] = links
    for comment in fields.entries("comments"):
        if isinstance(comment, dict):
            found.add_comment(comment.get("text"), comment.get("author"), comment.get("created_at"))
    return found.finish(kept | fields.rest())


def _link(found: foreign.Issue, fields: foreign.Fields) -> list[dict[str, Any]]:
    """Set what an issue waits for, and its parents; return the other links, and what else a link says."""
    others: list[dict[str, Any]] = []
    for link in fields.entries("dependencies"):
        target = link.get("depends_on_id") if isinstance(link, dict) else None
        if not isinstance(target, str) or link.get("issue_id", found.name) != found.name:
            raise fields.refuse("dependencies", "not in the format of `bd export`")
        kind = str(link.get("type") or "blocks")
        more = {key: value for key, value in link.items() if key not in _LINK and value not in (None, "", "{}", {})}
        if kind == "blocks":
            found.waits_for.append(target)
        elif kind == "parent-child":
            found.parent = found.parent or target
        if kind != "blocks" or more:
            others.append({"type": kind, "id": target, **more})
    for target in fields.entries("depends_on"):
        if not isinstance(target, str):
            raise fields.refuse("depends_on", "must be a list of ids")
        found.waits_for.append(target)
    parent = fields.peek("parent", "parent_id")
    if isinstance(parent, str):
        found.parent = found.parent or parent
    return others
