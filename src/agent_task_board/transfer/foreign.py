"""The frame for the readers of other trackers: a row of a file becomes an ``Issue``, or is ``Ignored`` for a reason.

A tracker is a module with ``read``, which yields rows, and ``TABLE``, which says what becomes what, in Markdown. A
reader takes the fields that it knows out of a ``Fields``; what it did not take is kept in the ``params`` of the task,
under the name of the tracker. So nothing in a row is lost silently.
"""

from __future__ import annotations

import re
from unicodedata import normalize

from .. import inputs
from ..errors import InvalidInput
from ..printable import is_visible
from ..storage.fingerprint import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    Row = tuple[str, "Issue | Ignored"]
    """A place in the file, and what is there."""

HELD = "held"
"""The tag of a task that came in held."""
FAR = "9999-12-31T00:00:00.000+00:00"
"""When a held task may start that names no date: never, until somebody changes it."""

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_EMPTY: tuple[object, ...] = (None, "", [], {})
_OPTIONAL = ("created_by", "created_at", "updated_at", "finished_at")


class Ignored:
    """A row that is not work: the ``reason`` in one word, and the ``name`` of the row, if it has one."""

    __slots__ = ("name", "reason")

    def __init__(self, reason: str, name: str | None = None) -> None:
        self.reason = reason
        self.name = name


class Issue:
    """One issue: the ``task`` in JSON, its ``comments``, and ``warnings`` about differences from the file.

    ``name`` is what the tracker calls it, ``display`` what messages call it, ``waits_for`` the names of the issues that
    it depends on, and ``parent`` that of the issue whose dependencies and hold it shares. ``held`` is the reason why it
    must not start, such as its status; ``spreads`` says whether its children are held with it.
    """

    __slots__ = ("comments", "display", "held", "name", "parent", "spreads", "task", "tracker", "waits_for", "warnings")

    def __init__(self, tracker: str, name: str) -> None:
        self.tracker = tracker
        self.name = name
        self.display = name
        self.task: dict[str, Any] = {"id": id_of(tracker, name)}
        self.comments: list[dict[str, Any]] = []
        self.waits_for: list[str] = []
        self.parent: str | None = None
        self.held: str | None = None
        self.spreads = True
        self.warnings: list[str] = []

    def finish(self, kept: dict[str, Any]) -> Issue:
        """Complete the task: hold it if there is a reason, set its dependencies, and keep ``kept`` in ``params``."""
        task = self.task
        if task.get("status", "queued") != "queued":
            self.held = None
        if self.held is not None:
            task["tags"] = [*task.get("tags", [])[: inputs.TAGS - 1], HELD]
            date = task.get("not_before")
            if self.held != "deferred" or not date:  # the date of another hold says when its author looks again
                kept |= {"not_before": date}
                task["not_before"] = FAR
        self.waits_for = list(dict.fromkeys(name for name in self.waits_for if name))
        task["blocked_by"] = [id_of(self.tracker, name) for name in self.waits_for]
        task["params"] = {self.tracker: {key: value for key, value in kept.items() if value not in _EMPTY}}
        for key in _OPTIONAL:
            if task.get(key) in _EMPTY:
                task.pop(key, None)
        return self

    @property
    def names(self) -> dict[str, str]:
        """The tracker's name for each id in ``blocked_by``."""
        return {id_of(self.tracker, name): name for name in self.waits_for}

    @property
    def parent_id(self) -> str | None:
        """The id of the parent's task."""
        return None if self.parent is None else id_of(self.tracker, self.parent)

    def set_title(self, title: str, body: str) -> None:
        """Set the title and the body; a title that is too long is cut, and then the body begins with all of it."""
        if len(title) > inputs.TITLE:
            body = f"{title}\n\n{body}".rstrip()
            title = f"{title[: inputs.TITLE - 1].rstrip()}…"
            self.warnings.append(
                f"the title of {self.display[:60]} was cut to {inputs.TITLE} characters; its body has all of it"
            )
        self.task["title"] = title
        self.task["body"] = body.replace("\0", "")

    def set_tags(self, labels: Iterable[object], kept: dict[str, Any]) -> None:
        """Set the tags; if they differ from the labels, ``kept`` gets the labels as they were."""
        words = [label for label in labels if isinstance(label, str) and label.strip()]
        self.task["tags"] = found = tags(words)
        if len(found) < len(set(words)) or not {" ".join(word.split()) for word in words} >= set(found):
            kept.setdefault("labels", words)

    def set_people(self, names: Sequence[str], kept: dict[str, Any]) -> None:
        """Assign the first of several people; ``kept`` gets all of them unless it is one, with a name that fits."""
        self.task["assignee"] = name(names[0]) if names else None
        if len(names) > 1 or (names and self.task["assignee"] != names[0]):
            kept["assignees"] = list(names)

    def add_comment(self, body: object, author: object, at: object) -> None:
        """Add a comment; ignore it if it has no text, and cut it with a warning if it is too long."""
        if not isinstance(body, str) or not body.strip():
            return
        if len(body) > inputs.TEXT:
            body = f"{body[: inputs.TEXT - 1]}…"
            self.warnings.append(f"a comment on {self.display[:60]} was cut to {inputs.TEXT:,} characters")
        self.comments.append(
            {
                "task_id": self.task["id"],
                "actor": name(author) or "unknown",
                "actor_kind": "human",
                "at": at,
                "text": body.replace("\0", ""),
            }
        )


class Fields:
    """The fields of one row, at a place in the file; remembers which of them were taken."""

    def __init__(self, row: dict[str, Any], place: str) -> None:
        self._row = dict(row)
        self.place = place

    def rest(self) -> dict[str, Any]:
        """Return the fields that were not taken and are not empty."""
        return {key: value for key, value in self._row.items() if value not in _EMPTY}

    def peek(self, *keys: str) -> Any:
        """Return the first of these fields that is not empty, without taking it."""
        return next((self._row[key] for key in keys if self._row.get(key) not in _EMPTY), None)

    def take(self, *keys: str) -> Any:
        """Take the first of these fields that is not empty."""
        found = next((key for key in keys if self._row.get(key) not in _EMPTY), None)
        return None if found is None else self._row.pop(found)

    def text(self, *keys: str) -> str:
        """Take a text; an empty one if it is missing.

        Raises:
            InvalidInput: it is something else than text.
        """
        value = self.peek(*keys)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.refuse(keys[0], "must be text")
        self.take(*keys)
        return value

    def line(self, *keys: str) -> str:
        """Take a text as one line."""
        return one_line(self.text(*keys))

    def entries(self, *keys: str) -> list[Any]:
        """Take a list; an empty one if it is missing.

        Raises:
            InvalidInput: it is something else than a list.
        """
        value = self.peek(*keys)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.refuse(keys[0], "must be a list")
        self.take(*keys)
        return value

    def whole_number(self, key: str) -> int | None:
        """Take a whole number, if there is one.

        Raises:
            InvalidInput: it is something else than a whole number.
        """
        value = self.take(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise self.refuse(key, "must be a whole number")
        return value

    def refuse(self, field: str, what: str) -> InvalidInput:
        """Return the refusal of a field of this row."""
        return refuse(self.place, f"{field}: {what}", field=field)


def id_of(tracker: str, name: str) -> str:
    """Return the task id of an issue: the same on every board, so that a second import finds the issue again."""
    number = int(digest(f"{tracker}\n{name}")[:32], 16)
    return "".join(_LETTERS[number >> shift & 31] for shift in range(125, -5, -5))


def tags(labels: Iterable[object]) -> list[str]:
    """Return labels as tags that a board accepts, without repetitions."""
    found: dict[str, str] = {}
    for label in labels:
        tag = _visible(label)[: inputs.TAG].strip() if isinstance(label, str) else ""
        if tag:
            found.setdefault(inputs.name_key(tag), tag)
    return list(found.values())[: inputs.TAGS - 1]  # one place is left for `held`


def login(user: object, *keys: str) -> str | None:
    """Return the name of a person, which is an object or a string; ``None`` if there is none."""
    if isinstance(user, dict):
        user = next((user[key] for key in (*keys, "login", "name") if user.get(key)), None)
    return user if isinstance(user, str) and user.strip() else None


def name(value: object) -> str | None:
    """Return a name in a form that a board accepts; ``None`` if there is none."""
    if not isinstance(value, str):
        return None
    try:
        return inputs.agent_name(_visible(value)[: inputs.NAME].strip(), "name")
    except InvalidInput:
        return None


def _visible(text: str) -> str:
    return " ".join("".join(char if is_visible(char) else " " for char in normalize("NFC", text)).split())


def one_line(text: str) -> str:
    """Return a text on one line, without control characters."""
    return " ".join(_CONTROL.sub(" ", text).split())


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def sections(*parts: tuple[str | None, str]) -> str:
    """Return a body of several parts, each a heading (or none) and a text; parts without text are left out."""
    return "\n\n".join(text if head is None else f"## {head}\n\n{text}" for head, text in parts if text.strip())


def refuse(place: str, what: str, *, field: str | None = None) -> InvalidInput:
    """Return the refusal of an issue at a place in the file."""
    return InvalidInput(f"{place}: {what}", place=place, field=field)
