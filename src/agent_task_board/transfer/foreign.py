"""Issues that other trackers export, as tasks: JSON Lines of beads, and what ``gh issue list --json`` prints.

The fields that have no place in a task are kept in its ``params``, under the name of the tracker. What these formats
gain in the future is left out and stops nothing.
"""

from __future__ import annotations

from .. import inputs
from ..board.core import digest
from ..errors import InvalidInput
from . import json_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, BinaryIO

    Row = tuple[str, "Issue | None"]

LINE = 32 * 1_048_576
"""Bytes of one line of JSON Lines, at most."""
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PRIORITIES = {0: 2, 1: 1, 2: 0, 3: -1, 4: -2}
_SECTIONS = (("design", "Design"), ("acceptance_criteria", "Acceptance criteria"), ("notes", "Notes"))


class Issue:
    """One issue: the ``task`` in JSON, its ``comments``, and ``warnings`` about what is not as in the file.

    ``names`` tells, for each id of the task's ``blocked_by``, what the tracker calls that issue.
    """

    __slots__ = ("comments", "names", "task", "warnings")

    def __init__(self) -> None:
        self.task: dict[str, Any] = {}
        self.comments: list[dict[str, Any]] = []
        self.names: dict[str, str] = {}
        self.warnings: list[str] = []


def id_of(tracker: str, name: str) -> str:
    """Return the id that an issue has on every board: always the same, so that a second import passes it over."""
    number = int(digest(f"{tracker}\n{name}")[:32], 16)
    return "".join(_LETTERS[number >> shift & 31] for shift in range(125, -5, -5))


def read_beads(file: BinaryIO) -> Iterator[Row]:
    """Yield place and issue of each line of ``.beads/issues.jsonl``; no issue where the line holds something else."""
    for number, line in enumerate(_lines(file), 1):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            issue = inputs.parse_object(line.decode(), place)
        except UnicodeDecodeError as error:
            raise _refuse(place, f"not UTF-8 at byte {error.start:,}") from None
        except InvalidInput as error:
            field = error.details["field"]
            raise InvalidInput(
                error.message if field == place else f"{place}: {error.message}",
                hint="Each line must be one issue, as `bd export` writes it.",
                place=place,
                field=None if field == place else field,
            ) from None
        is_one = issue.get("_type", "issue") == "issue" and issue.get("status") != "tombstone"
        yield place, _beads(issue, place) if is_one else None


def read_github(file: BinaryIO) -> Iterator[Row]:
    """Yield place and issue of each element of the array that ``gh issue list --json`` prints."""
    for name, place, issue in json_stream.read(file, ("issues",), bare="issues"):
        if name == "issues" and place is not None:
            where = f"issues[{place}]"
            if not isinstance(issue, dict):
                raise _refuse(where, "an issue must be a JSON object")
            yield where, _github(issue, where)
        elif name != "issues":
            raise InvalidInput("the file is not what `gh issue list --json` prints: an array of issues", field="file")


def _lines(file: BinaryIO) -> Iterator[bytes]:
    first = True
    while line := file.readline(LINE + 1):
        if len(line) > LINE:
            raise InvalidInput(f"file: a line is longer than {LINE:,} bytes", field="file")
        yield line.removeprefix(b"\xef\xbb\xbf") if first else line
        first = False


def _beads(issue: dict[str, Any], place: str) -> Issue:
    found = Issue()
    name = _text(issue, "id", place)
    if not name:
        raise _refuse(place, "id: an issue must have one", field="id")
    status = _text(issue, "status", place) or "open"
    closed = status == "closed"
    bodies = [_text(issue, "description", place)]
    bodies += [f"## {head}\n\n{text}" for key, head in _SECTIONS if (text := _text(issue, key, place))]
    kept = {key: issue[key] for key in ("issue_type", "external_ref", "estimated_minutes") if issue.get(key)}
    kept |= {} if status in ("open", "closed") else {"status": status}
    waits, others = _links_of_beads(issue, name, place)
    kept |= {"dependencies": others} if others else {}
    kind = _text(issue, "issue_type", place)
    found.task = {
        "id": id_of("beads", name),
        "title": _line(issue, "title", place),
        "body": "\n\n".join(filter(None, bodies)),
        "status": "done" if closed else "queued",
        "priority": _priority(issue.get("priority"), place),
        "assignee": _name(issue.get("assignee")),
        "due_at": issue.get("due_at") or None,
        "not_before": issue.get("defer_until") or None,
        "tags": _tags([*_list(issue, "labels", place), *([kind] if kind and kind != "task" else [])]),
        "params": {"beads": {"id": name, **kept}},
        "result": (_text(issue, "close_reason", place) or None) if closed else None,
        "created_by": _name(issue.get("created_by")),
        "created_at": issue.get("created_at"),
        "updated_at": issue.get("updated_at"),
        "finished_at": issue.get("closed_at") if closed else None,
    }
    found.names = {id_of("beads", other): other for other in waits}
    for comment in _list(issue, "comments", place):
        if isinstance(comment, dict):
            _remark(found, name, comment.get("text"), comment.get("author"), comment.get("created_at"))
    return _finish(found, ("created_by", "created_at", "updated_at", "finished_at"))


def _priority(value: object, place: str) -> int:
    """Return the priority here for that of an issue: 0 is the most urgent there, and 2 the usual one."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise _refuse(place, "priority: must be a whole number", field="priority")
    return _PRIORITIES.get(value, 0)


def _links_of_beads(issue: dict[str, Any], name: str, place: str) -> tuple[list[str], list[dict[str, str]]]:
    """Return the issues that this one waits for, and its other links."""
    waits: list[str] = []
    others: list[dict[str, str]] = []
    for link in _list(issue, "dependencies", place):
        target = link.get("depends_on_id") if isinstance(link, dict) else None
        if not isinstance(target, str) or link.get("issue_id", name) != name:
            raise _refuse(place, "dependencies: not as `bd export` writes them", field="dependencies")
        kind = str(link.get("type") or "blocks")
        if kind == "blocks":
            waits.append(target)
        else:
            others.append({"type": kind, "id": target})
    return waits, others


def _github(issue: dict[str, Any], place: str) -> Issue:
    found = Issue()
    number = issue.get("number")
    if isinstance(number, bool) or not isinstance(number, int):
        raise _refuse(place, "number: must be a whole number", field="number")
    url = _text(issue, "url", place)
    closed = _text(issue, "state", place).upper() == "CLOSED"
    reason = _text(issue, "stateReason", place).upper()
    given_up = reason in ("NOT_PLANNED", "DUPLICATE")
    logins = [login for one in _list(issue, "assignees", place) if (login := _login(one))]
    kept: dict[str, Any] = {"number": number, **({"url": url} if url else {})}
    kept |= {"assignees": logins} if len(logins) > 1 else {}
    kept |= {"state_reason": reason} if closed and reason else {}
    milestone = issue.get("milestone")
    if isinstance(milestone, dict) and milestone.get("title"):
        kept["milestone"] = milestone["title"]
    found.task = {
        "id": id_of("github", url or str(number)),
        "title": _line(issue, "title", place),
        "body": _text(issue, "body", place),
        "status": "queued" if not closed else "cancelled" if given_up else "done",
        "assignee": _name(logins[0]) if logins else None,
        "tags": _tags(one.get("name") if isinstance(one, dict) else one for one in _list(issue, "labels", place)),
        "params": {"github": kept},
        "created_by": _name(_login(issue.get("author"))),
        "created_at": issue.get("createdAt"),
        "updated_at": issue.get("updatedAt"),
        "finished_at": issue.get("closedAt") if closed else None,
    }
    blockers = issue.get("blockedBy")
    if isinstance(blockers, dict):
        blockers = blockers.get("nodes")
    for other in blockers if isinstance(blockers, list) else []:
        if isinstance(other, dict) and (other.get("url") or other.get("number")):
            # Without addresses the number is all that tells issues apart, for both ends alike.
            name = str(other.get("url") or other["number"]) if url else str(other.get("number"))
            found.names[id_of("github", name)] = name
    remarks = issue.get("comments")
    for comment in remarks if isinstance(remarks, list) else []:
        if isinstance(comment, dict):
            _remark(found, f"#{number}", comment.get("body"), _login(comment.get("author")), comment.get("createdAt"))
    return _finish(found, ("created_by", "created_at", "updated_at", "finished_at"))


def _finish(found: Issue, optional: Iterable[str]) -> Issue:
    found.task["blocked_by"] = list(found.names)
    for key in optional:
        if found.task[key] is None or found.task[key] == "":
            del found.task[key]
    return found


def _remark(found: Issue, name: str, text: object, author: object, at: object) -> None:
    if not isinstance(text, str) or not text.strip():
        return
    if len(text) > inputs.TEXT:
        text = f"{text[: inputs.TEXT - 1]}…"
        found.warnings.append(f"a comment on {name} is longer than {inputs.TEXT:,} characters; its end was left out")
    found.comments.append(
        {
            "task_id": found.task["id"],
            "actor": _name(author) or "unknown",
            "actor_kind": "human",
            "at": at,
            "text": text.replace("\0", ""),
        }
    )


def _tags(labels: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(tag for label in labels if isinstance(label, str) if (tag := " ".join(label.split()))))


def _login(user: object) -> str | None:
    login = user.get("login") if isinstance(user, dict) else user
    return login if isinstance(login, str) and login else None


def _name(value: object) -> str | None:
    """Return a name that a board takes, as near as possible; nothing for nobody."""
    if not isinstance(value, str):
        return None
    name = "".join(char if char.isprintable() else " " for char in value).strip()[: inputs.NAME].strip()
    return None if not name or name.casefold() in (inputs.NOBODY, inputs.BOARD) else name


def _line(issue: dict[str, Any], key: str, place: str) -> str:
    return " ".join(_text(issue, key, place).split())


def _text(issue: dict[str, Any], key: str, place: str) -> str:
    value = issue.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _refuse(place, f"{key}: must be text", field=key)
    return value


def _list(issue: dict[str, Any], key: str, place: str) -> list[Any]:
    value = issue.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _refuse(place, f"{key}: must be a list", field=key)
    return value


def _refuse(place: str, what: str, *, field: str | None = None) -> InvalidInput:
    return InvalidInput(f"{place}: {what}", place=place, field=field)
