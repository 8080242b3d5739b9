"""Issues of GitHub: the array that ``gh issue list --json`` prints."""

from __future__ import annotations

from ..errors import InvalidInput
from . import foreign, json_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO


def read(file: BinaryIO) -> Iterator[foreign.Row]:
    """Yield the place and the issue of each element of the array."""
    for name, place, issue in json_stream.read(file, ("issues",), bare="issues"):
        if name == "issues" and place is not None:
            where = f"issues[{place}]"
            if not isinstance(issue, dict):
                raise foreign.refuse(where, "must be a JSON object")
            yield where, _issue(issue, where)
        elif name != "issues":
            raise InvalidInput("file: must be an array of issues, the output of `gh issue list --json`", field="file")


def _issue(issue: dict[str, Any], place: str) -> foreign.Issue:
    found = foreign.Issue()
    number = issue.get("number")
    if isinstance(number, bool) or not isinstance(number, int):
        raise foreign.refuse(place, "number: must be a whole number", field="number")
    url = foreign.text(issue, "url", place)
    closed = foreign.text(issue, "state", place).upper() == "CLOSED"
    reason = foreign.text(issue, "stateReason", place).upper()
    is_abandoned = reason in ("NOT_PLANNED", "DUPLICATE")
    logins = [login for one in foreign.entries(issue, "assignees", place) if (login := foreign.login(one))]
    kept: dict[str, Any] = {"number": number, **({"url": url} if url else {})}
    kept |= {"assignees": logins} if len(logins) > 1 else {}
    kept |= {"state_reason": reason} if closed and reason else {}
    milestone = issue.get("milestone")
    if isinstance(milestone, dict) and milestone.get("title"):
        kept["milestone"] = milestone["title"]
    found.task = {
        "id": foreign.id_of("github", url or str(number)),
        "title": foreign.line(issue, "title", place),
        "body": foreign.text(issue, "body", place),
        "status": "queued" if not closed else "cancelled" if is_abandoned else "done",
        "assignee": foreign.name(logins[0]) if logins else None,
        "tags": foreign.tags(
            one.get("name") if isinstance(one, dict) else one for one in foreign.entries(issue, "labels", place)
        ),
        "params": {"github": kept},
        "created_by": foreign.name(foreign.login(issue.get("author"))),
        "created_at": issue.get("createdAt"),
        "updated_at": issue.get("updatedAt"),
        "finished_at": issue.get("closedAt") if closed else None,
    }
    blockers = issue.get("blockedBy")
    if isinstance(blockers, dict):
        blockers = blockers.get("nodes")
    for other in blockers if isinstance(blockers, list) else []:
        if isinstance(other, dict) and (other.get("url") or other.get("number")):
            # The id of the other issue is derived as its own is: from its URL only if this file has URLs.
            name = str(other.get("url") or other["number"]) if url else str(other.get("number"))
            found.names[foreign.id_of("github", name)] = name
    comments = issue.get("comments")
    for comment in comments if isinstance(comments, list) else []:
        if isinstance(comment, dict):
            foreign.add_comment(
                found, f"#{number}", comment.get("body"), foreign.login(comment.get("author")), comment.get("createdAt")
            )
    return foreign.finish(found, ("created_by", "created_at", "updated_at", "finished_at"))
