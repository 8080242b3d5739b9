"""Shared parts of the readers that turn issues of other trackers into tasks.

Fields that a task does not have are kept in its ``params``, under the name of the tracker. Unknown fields are ignored.
"""

from __future__ import annotations

from unicodedata import normalize

from .. import inputs
from ..errors import InvalidInput
from ..printable import is_visible
from ..storage.fingerprint import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Row = tuple[str, "Issue | None"]

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Issue:
    """One issue: the ``task`` in JSON, its ``comments``, and ``warnings`` about differences from the file.

    ``names`` has the tracker's name for each id of the task's ``blocked_by``.
    """

    __slots__ = ("comments", "names", "task", "warnings")

    def __init__(self) -> None:
        self.task: dict[str, Any] = {}
        self.comments: list[dict[str, Any]] = []
        self.names: dict[str, str] = {}
        self.warnings: list[str] = []


def id_of(tracker: str, name: str) -> str:
    """Return the task id of an issue: the same on every board, so that a second import skips the issue."""
    number = int(digest(f"{tracker}\n{name}")[:32], 16)
    return "".join(_LETTERS[number >> shift & 31] for shift in range(125, -5, -5))


def finish(found: Issue, optional: Iterable[str]) -> Issue:
    """Set the dependencies of an issue, and remove the ``optional`` keys that are empty."""
    found.task["blocked_by"] = list(found.names)
    for key in optional:
        if found.task[key] is None or found.task[key] == "":
            del found.task[key]
    return found


def add_comment(found: Issue, name_: str, body: object, author: object, at: object) -> None:
    """Add a comment to an issue; ignore it if it has no text, and cut it with a warning if it is too long."""
    if not isinstance(body, str) or not body.strip():
        return
    if len(body) > inputs.TEXT:
        body = f"{body[: inputs.TEXT - 1]}…"
        found.warnings.append(f"a comment on {name_} was cut to {inputs.TEXT:,} characters")
    found.comments.append(
        {
            "task_id": found.task["id"],
            "actor": name(author) or "unknown",
            "actor_kind": "human",
            "at": at,
            "text": body.replace("\0", ""),
        }
    )


def tags(labels: Iterable[object]) -> list[str]:
    """Return labels as tags, without repetitions."""
    return list(dict.fromkeys(tag for label in labels if isinstance(label, str) if (tag := " ".join(label.split()))))


def login(user: object) -> str | None:
    """Return the login of a user, which is an object or a string; ``None`` if there is none."""
    login = user.get("login") if isinstance(user, dict) else user
    return login if isinstance(login, str) and login else None


def name(value: object) -> str | None:
    """Return a name in a form that a board accepts; ``None`` if there is none."""
    if not isinstance(value, str):
        return None
    found = "".join(char if is_visible(char) else " " for char in normalize("NFC", value))
    found = " ".join(found.split())[: inputs.NAME].strip()
    try:
        return inputs.agent_name(found, "name")
    except InvalidInput:
        return None


def line(issue: dict[str, Any], key: str, place: str) -> str:
    """Return a text field as one line."""
    return " ".join(text(issue, key, place).split())


def text(issue: dict[str, Any], key: str, place: str) -> str:
    """Return a text field; an empty string if it is missing."""
    value = issue.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise refuse(place, f"{key}: must be text", field=key)
    return value


def entries(issue: dict[str, Any], key: str, place: str) -> list[Any]:
    """Return a list field; an empty list if it is missing."""
    value = issue.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise refuse(place, f"{key}: must be a list", field=key)
    return value


def refuse(place: str, what: str, *, field: str | None = None) -> InvalidInput:
    """Return the refusal of an issue at a place in the file."""
    return InvalidInput(f"{place}: {what}", place=place, field=field)
