"""Issues of GitHub: the array that ``gh issue list --json`` prints, or that of its REST interface."""

from __future__ import annotations

import re

from ..errors import InvalidInput
from . import foreign, json_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

TABLE = (
    (
        "`number` `url` (REST: `html_url`)",
        "`params.github`; the task id is derived from the address, or from `number` without one",
    ),
    ("`title` `body`", "the same"),
    ("`state` `open`", "`queued`"),
    ("`state` `closed`", "`done`; `cancelled` if closed as not planned or duplicate"),
    ("pull requests", "ignored"),
    ("`labels`", "`tags`"),
    ("`assignees`", "the first becomes `assignee`; if there are several, `params.github.assignees` has all of them"),
    (
        "`author` `createdAt` `updatedAt` `closedAt` (REST: `user` `created_at` `updated_at` `closed_at`)",
        "`created_by`, `created_at`, `updated_at`, `finished_at`",
    ),
    ("`milestone`", "`params.github.milestone` (the title)"),
    ("`blockedBy` (REST: `blocked_by`): a list, or an object with `nodes`", "`blocked_by`"),
    (
        "`comments`",
        "`commented` events with their author and time; cut at 20,000 characters. A mere count is kept in `params`",
    ),
)
_WEB = re.compile(r"https?://[^/\s]+/[^/\s]+/[^/\s]+/(issues|pull)/\d+", re.IGNORECASE)
_API = re.compile(r"https?://(?P<host>[^/\s]+)(?:/api/v3)?/repos/(?P<rest>[^/\s]+/[^/\s]+/issues/\d+)", re.IGNORECASE)
_LINKS = re.compile(r".*_url|node_id|url")


def read(file: BinaryIO) -> Iterator[foreign.Row]:
    """Yield the place and the issue of each element of the array, or why it is ignored."""
    for name, place, issue in json_stream.read(file, ("issues",), bare="issues"):
        if name == "issues" and place is not None:
            pages = issue if isinstance(issue, list) else [issue]  # `gh api --paginate --slurp`: a list of pages
            for index, one in enumerate(pages):
                where = f"issues[{place}][{index}]" if isinstance(issue, list) else f"issues[{place}]"
                if not isinstance(one, dict):
                    raise foreign.refuse(where, "must be a JSON object")
                yield where, _read(one, where)
        elif name != "issues":
            raise InvalidInput("file: must be an array of issues, the output of `gh issue list --json`", field="file")


def _read(issue: dict[str, Any], place: str) -> foreign.Issue | foreign.Ignored:
    address = str(issue.get("html_url") or issue.get("url") or "")
    if issue.get("pull_request") or issue.get("isPullRequest") or "/pull/" in address:
        return foreign.Ignored("pull_request", f"#{issue.get('number')}"[:60])
    return _issue(foreign.Fields(issue, place))


def address_of(url: str) -> str:
    """Return the address of an issue on the web, in the same form whichever interface named it."""
    found = _API.fullmatch(url)
    if found is not None:
        host = "github.com" if found["host"] == "api.github.com" else found["host"]
        url = f"https://{host}/{found['rest']}"
    return url


def _issue(fields: foreign.Fields) -> foreign.Issue:
    number = fields.whole_number("number")
    if number is None:
        raise fields.refuse("number", "must be a whole number")
    url = address_of(fields.text("html_url", "url"))
    if _API.fullmatch(str(fields.peek("url") or "")):
        fields.take("url")
    if isinstance(fields.peek("repository_url"), str):  # only of REST; the other addresses follow from it
        for key in list(fields.rest()):
            if _LINKS.fullmatch(key):
                fields.take(key)
    found = foreign.Issue("github", url or str(number))
    state = fields.text("state").upper()
    closed = state == "CLOSED"
    reason = fields.text("stateReason", "state_reason").upper()
    kept: dict[str, Any] = {"number": number, "url": url}
    kept |= {"state_reason": reason} if reason else {}
    found.set_title(fields.line("title"), fields.text("body"))
    found.set_tags((one.get("name") if isinstance(one, dict) else one for one in fields.entries("labels")), kept)
    single = foreign.login(fields.take("assignee"))
    people = [login for one in fields.entries("assignees") if (login := foreign.login(one))]
    found.set_people(people or ([single] if single else []), kept)
    milestone = fields.take("milestone")
    kept["milestone"] = milestone.get("title") if isinstance(milestone, dict) else milestone
    author = foreign.login(fields.take("author", "user"))
    found.task |= {
        "status": "queued" if not closed else "cancelled" if reason in ("NOT_PLANNED", "DUPLICATE") else "done",
        "created_by": foreign.name(author),
        "created_at": fields.take("createdAt", "created_at"),
        "updated_at": fields.take("updatedAt", "updated_at"),
        "finished_at": fields.take("closedAt", "closed_at") if closed else None,
    }
    if author != found.task["created_by"]:
        kept["author"] = author
    if state not in ("OPEN", "CLOSED", ""):
        found.held = state.lower()
        kept["state"] = state.lower()
    blockers = fields.take("blockedBy", "blocked_by")
    if isinstance(blockers, dict):
        blockers = blockers.get("nodes")
    for other in blockers if isinstance(blockers, list) else []:
        name = _name(other, url)
        if name is not None:
            found.waits_for.append(name)
    comments = fields.peek("comments")
    if isinstance(comments, dict):
        comments = comments.get("nodes")
    if isinstance(comments, list):
        fields.take("comments")
        for comment in comments:
            if isinstance(comment, dict):
                at = comment.get("createdAt") or comment.get("created_at")
                found.add_comment(comment.get("body"), foreign.login(comment.get("author") or comment.get("user")), at)
    return found.finish(kept | fields.rest())


def _name(other: object, url: str) -> str | None:
    """Return the name of another issue, derived as its own is: from its address only if this file has addresses."""
    if isinstance(other, dict):
        address, number = other.get("html_url") or other.get("url"), other.get("number")
    else:
        address, number = (other, None) if isinstance(other, str) else (None, other)
    if not url:
        return None if number is None else str(number)
    if isinstance(address, str):
        return address_of(address)
    return None if number is None else f"{url.rsplit('/', 1)[0]}/{number}"
