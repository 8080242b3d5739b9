"""Issues of beads: the JSON Lines that ``bd export`` writes."""

from __future__ import annotations

from .. import inputs
from ..errors import InvalidInput
from . import foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

LINE = 32 * 1_048_576
"""Maximum number of bytes of one line."""
_PRIORITIES = {0: 2, 1: 1, 2: 0, 3: -1, 4: -2}
_SECTIONS = (("design", "Design"), ("acceptance_criteria", "Acceptance criteria"), ("notes", "Notes"))


def read(file: BinaryIO) -> Iterator[foreign.Row]:
    """Yield the place and the issue of each line of ``.beads/issues.jsonl``; ``None`` if the line is not an issue."""
    for number, line in enumerate(_lines(file), 1):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            issue = inputs.parse_object(line.decode(), place)
        except UnicodeDecodeError as error:
            raise foreign.refuse(place, f"not UTF-8 at byte {error.start:,}") from None
        except InvalidInput as error:
            field = error.details["field"]
            raise InvalidInput(
                error.message if field == place else f"{place}: {error.message}",
                hint="Each line must be one issue in the format of `bd export`.",
                place=place,
                field=None if field == place else field,
            ) from None
        is_issue = issue.get("_type", "issue") == "issue" and issue.get("status") != "tombstone"
        yield place, _issue(issue, place) if is_issue else None


def _lines(file: BinaryIO) -> Iterator[bytes]:
    first = True
    while line := file.readline(LINE + 1):
        if len(line) > LINE:
            raise InvalidInput(f"file: a line is too long (limit {LINE:,} bytes)", field="file")
        yield line.removeprefix(b"\xef\xbb\xbf") if first else line
        first = False


def _issue(issue: dict[str, Any], place: str) -> foreign.Issue:
    found = foreign.Issue()
    name = foreign.text(issue, "id", place)
    if not name:
        raise foreign.refuse(place, "id: missing", field="id")
    status = foreign.text(issue, "status", place) or "open"
    closed = status == "closed"
    bodies = [foreign.text(issue, "description", place)]
    bodies += [f"## {head}\n\n{text}" for key, head in _SECTIONS if (text := foreign.text(issue, key, place))]
    kept = {key: issue[key] for key in ("issue_type", "external_ref", "estimated_minutes") if issue.get(key)}
    kept |= {} if status in ("open", "closed") else {"status": status}
    blockers, others = _links(issue, name, place)
    kept |= {"dependencies": others} if others else {}
    kind = foreign.text(issue, "issue_type", place)
    found.task = {
        "id": foreign.id_of("beads", name),
        "title": foreign.line(issue, "title", place),
        "body": "\n\n".join(filter(None, bodies)),
        "status": "done" if closed else "queued",
        "priority": _priority(issue.get("priority"), place),
        "assignee": foreign.name(issue.get("assignee")),
        "due_at": issue.get("due_at") or None,
        "not_before": issue.get("defer_until") or None,
        "tags": foreign.tags([*foreign.entries(issue, "labels", place), *([kind] if kind and kind != "task" else [])]),
        "params": {"beads": {"id": name, **kept}},
        "result": (foreign.text(issue, "close_reason", place) or None) if closed else None,
        "created_by": foreign.name(issue.get("created_by")),
        "created_at": issue.get("created_at"),
        "updated_at": issue.get("updated_at"),
        "finished_at": issue.get("closed_at") if closed else None,
    }
    found.names = {foreign.id_of("beads", other): other for other in blockers}
    for comment in foreign.entries(issue, "comments", place):
        if isinstance(comment, dict):
            foreign.add_comment(found, name, comment.get("text"), comment.get("author"), comment.get("created_at"))
    return foreign.finish(found, ("created_by", "created_at", "updated_at", "finished_at"))


def _priority(value: object, place: str) -> int:
    """Return the task priority for the priority of an issue, where 0 is the most urgent and 2 the default."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise foreign.refuse(place, "priority: must be a whole number", field="priority")
    return _PRIORITIES.get(value, 0)


def _links(issue: dict[str, Any], name: str, place: str) -> tuple[list[str], list[dict[str, str]]]:
    """Return the issues that this one depends on, and its other links."""
    blockers: list[str] = []
    others: list[dict[str, str]] = []
    for link in foreign.entries(issue, "dependencies", place):
        target = link.get("depends_on_id") if isinstance(link, dict) else None
        if not isinstance(target, str) or link.get("issue_id", name) != name:
            raise foreign.refuse(place, "dependencies: not in the format of `bd export`", field="dependencies")
        kind = str(link.get("type") or "blocks")
        if kind == "blocks":
            blockers.append(target)
        else:
            others.append({"type": kind, "id": target})
    return blockers, others
