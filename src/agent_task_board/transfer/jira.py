"""Issues of Jira: the CSV export of a search, or the JSON of its REST search."""

from __future__ import annotations

import re

from . import foreign, json_stream, words
from .sources import is_json, read_table, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

TABLE = (
    ("`key` (CSV: `Issue key`)", "`params.jira.key`; the task id is derived from it"),
    ("`summary` `description`", "`title`, `body` (a document of the newer editor as plain text)"),
    ("`status` such as To Do, Open, In Progress", "`queued`"),
    (
        "`status` such as Done, Closed; or of the category done",
        "`done`; `cancelled` by a resolution such as Won't Do, Duplicate",
    ),
    ("any other `status`, such as In Review, Blocked, Backlog", "`queued`, [held](import.md#held-tasks)"),
    (
        "`priority`",
        "Highest, High, Medium, Low, Lowest become 2, 1, 0, -1, -2 (Blocker, Critical: 2; Minor, Trivial: -1, -2)",
    ),
    ("`issuetype`", "a tag, unless it is Task"),
    ("`labels` `components`", "`tags`"),
    ("`assignee` `reporter` (else `creator`)", "`assignee`, `created_by`"),
    ("`created` `updated` `resolutiondate` `duedate`", "`created_at`, `updated_at`, `finished_at`, `due_at`"),
    ("links of type Blocks, inward", "`blocked_by`"),
    ("other links", "`params.jira`"),
    ("`parent`", "the task also waits for what its parent waits for, and is held with it"),
    ("comments", "`commented` events with their author and time"),
)
_COMMENT = re.compile(r"\s*([^;]+);([^;]*);(.*)", re.DOTALL)


def read(file: BinaryIO) -> Iterator[foreign.Row]:
    """Yield the place and the issue of each row or element."""
    found, file = is_json(file)
    if not found:
        ignored: list[tuple[str, foreign.Ignored]] = []
        for place, row in read_table(file, ignored, ("issue key", "summary")):
            yield place, _of_row(foreign.Fields(row, place))
            yield from ignored
            ignored.clear()
        yield from ignored
        return
    for name, number, value in json_stream.read(file, ("issues",), bare="issues"):
        if name == "issues" and number is not None:
            where = f"issues[{number}]"
            if not isinstance(value, dict):
                raise foreign.refuse(where, "must be a JSON object")
            yield where, _of_element(value, where)


def _of_element(issue: dict[str, Any], place: str) -> foreign.Issue:
    outer = foreign.Fields(issue, place)
    key = outer.text("key")
    if not key:
        raise outer.refuse("key", "missing")
    for link in ("self", "expand"):
        outer.take(link)
    inner = outer.take("fields")
    if not isinstance(inner, dict):
        raise outer.refuse("fields", "must be an object")
    fields = foreign.Fields(inner, place)
    found = foreign.Issue("jira", key)
    kept: dict[str, Any] = {"key": key}
    found.set_title(fields.line("summary"), plain_text(fields.take("description")))
    status = fields.take("status")
    resolution = fields.take("resolution")
    category = status.get("statusCategory") if isinstance(status, dict) else None
    category_key = str(category.get("key")) if isinstance(category, dict) else ""
    _set_status(found, kept, _name(status), _name(resolution), category_key)
    _set_priority(found, kept, _name(fields.take("priority")))
    kept["issuetype"] = kind = _name(fields.take("issuetype"))
    parts = [_name(one) for one in fields.entries("components")]
    found.set_tags([*fields.entries("labels"), *parts, *_kind(kind)], kept)
    assignee, reporter = _person(fields.take("assignee")), _person(fields.take("reporter", "creator"))
    _set_people(found, kept, assignee, reporter)
    _set_dates(found, fields, "created", "updated", "resolutiondate", "duedate")
    others = []
    for link in fields.entries("issuelinks"):
        kind_of_link = link.get("type") if isinstance(link, dict) else None
        if not isinstance(kind_of_link, dict):
            continue
        inward, outward = link.get("inwardIssue"), link.get("outwardIssue")
        if isinstance(inward, dict) and "is blocked by" in str(kind_of_link.get("inward", "")).lower():
            found.waits_for.append(str(inward.get("key")))
        else:
            way, other = ("inward", inward) if inward else ("outward", outward)
            others.append({"type": kind_of_link.get(way), "key": other.get("key") if isinstance(other, dict) else None})
    kept["issuelinks"] = others
    parent = fields.take("parent")
    if isinstance(parent, dict) and isinstance(parent.get("key"), str):
        found.parent = kept["parent"] = parent["key"]
    comment = fields.take("comment")
    for one in (comment.get("comments") or []) if isinstance(comment, dict) else []:
        if isinstance(one, dict):
            at = words.instant(one.get("created"))
            found.add_comment(plain_text(one.get("body")), _person(one.get("author")), at)
    return found.finish(kept | outer.rest() | fields.rest())


def _of_row(fields: foreign.Fields) -> foreign.Issue:
    key = str(fields.take("issue key") or "")
    if not key:
        raise fields.refuse("issue key", "missing")
    found = foreign.Issue("jira", key)
    kept: dict[str, Any] = {"key": key}
    found.set_title(fields.line("summary"), fields.text("description"))
    _set_status(
        found,
        kept,
        fields.text("status"),
        fields.text("resolution"),
        "done" if fields.text("status category").lower() == "done" else "",
    )
    _set_priority(found, kept, fields.text("priority"))
    kept["issuetype"] = kind = fields.text("issue type")
    labels = fields.take("labels")
    parts = words_of(fields.take("components", "component/s"))
    found.set_tags([*(word for part in words_of(labels) for word in part.split()), *parts, *_kind(kind)], kept)
    _set_people(found, kept, fields.text("assignee"), fields.text("reporter", "creator"))
    _set_dates(found, fields, "created", "updated", "resolved", "due date")
    found.waits_for += words_of(fields.take("inward issue link (blocks)"))
    parent = fields.peek("parent key")
    if isinstance(parent, str):
        found.parent = kept["parent"] = parent
        fields.take("parent key")
    comments = fields.take("comment")
    for one in comments if isinstance(comments, list) else [comments]:
        parts_of = _COMMENT.fullmatch(one) if isinstance(one, str) else None
        at = words.instant(parts_of[1]) if parts_of else None
        if parts_of and at:
            found.add_comment(parts_of[3], parts_of[2], at)
        elif one:
            kept.setdefault("comments", []).append(one)
    return found.finish(kept | fields.rest())


def _set_status(found: foreign.Issue, kept: dict[str, Any], status: str, resolution: str, category: str) -> None:
    words.set_status(found, status)
    if category == "done" or words.normal(status) in words.DONE:
        found.held = None
        abandoned = words.normal(resolution) in words.CANCELLED or words.normal(status) in words.CANCELLED
        found.task["status"] = "cancelled" if abandoned else "done"
    kept |= {"status": status, "resolution": resolution}


def _set_priority(found: foreign.Issue, kept: dict[str, Any], priority: str) -> None:
    known = words.PRIORITIES.get(words.normal(priority))
    found.task["priority"] = known or 0
    kept["priority"] = priority


def _set_people(found: foreign.Issue, kept: dict[str, Any], assignee: str, reporter: str) -> None:
    found.set_people([assignee] if assignee else [], kept)
    found.task["created_by"] = foreign.name(reporter)
    if reporter != found.task["created_by"]:
        kept["reporter"] = reporter


def _set_dates(
    found: foreign.Issue, fields: foreign.Fields, created: str, updated: str, resolved: str, due: str
) -> None:
    words.set_dates(found, fields, created_at=created, updated_at=updated, due_at=due)
    if found.task["status"] != "queued":
        words.set_dates(found, fields, finished_at=resolved)


def _kind(kind: str) -> list[str]:
    return [kind] if kind and kind.lower() != "task" else []


def _name(value: object) -> str:
    if isinstance(value, dict):
        value = value.get("name") or value.get("value")
    return value if isinstance(value, str) else ""


def _person(value: object) -> str:
    return foreign.login(value, "displayName", "name", "emailAddress", "accountId") or ""


def plain_text(value: object, depth: int = 0) -> str:
    """Return the text of a document of Jira's newer editor, or a text as it is."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict) or depth > 90:
        return ""
    given = value.get("attrs")
    attributes: dict[str, Any] = given if isinstance(given, dict) else {}
    kind = value.get("type")
    if kind == "text":
        return str(value.get("text") or "")
    if kind == "hardBreak":
        return "\n"
    if kind in ("mention", "emoji", "inlineCard", "status", "date"):
        return str(
            next((attributes[key] for key in ("text", "url", "shortName", "timestamp") if attributes.get(key)), "")
        )
    content = value.get("content")
    inner = [plain_text(one, depth + 1) for one in content] if isinstance(content, list) else []
    if kind in ("paragraph", "heading", "codeBlock"):
        prefix = "#" * int(attributes.get("level") or 1) + " " if kind == "heading" else ""
        text = prefix + "".join(inner)
        return f"```\n{text}\n```" if kind == "codeBlock" else text
    if kind == "listItem":
        return "- " + "\n  ".join("\n".join(inner).split("\n"))
    return ("\n" if kind in ("bulletList", "orderedList", "tableRow", "table") else "\n\n").join(filter(None, inner))
