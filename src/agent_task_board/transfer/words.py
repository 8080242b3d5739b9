"""Words for statuses and priorities that trackers share, and the dates that they write."""

from __future__ import annotations

import re
from datetime import UTC, datetime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .foreign import Fields, Issue

READY = frozenset(
    """
    open|reopened|new|to do|todo|to-do|pending|ready|ready for dev|ready for development|selected for development|
    not started|unstarted|next|incomplete
    """.replace("\n", "")
    .replace("    ", "")
    .split("|")
)
"""Statuses of work that somebody can start."""
STARTED = frozenset("in progress|doing|started|in development|wip".split("|"))
"""Statuses of work that somebody has started elsewhere."""
DONE = frozenset("done|closed|complete|completed|resolved|released|shipped|merged|fixed|finished".split("|"))
CANCELLED = frozenset(
    """
    cancelled|canceled|won't do|wont do|won't fix|wontfix|duplicate|rejected|declined|abandoned|obsolete|not planned|
    cannot reproduce|invalid|not doing
    """.replace("\n", "")
    .replace("    ", "")
    .split("|")
)
PRIORITIES = {
    **dict.fromkeys(("blocker", "critical", "highest", "urgent"), 2),
    "high": 1,
    **dict.fromkeys(("medium", "normal", "major", "none", "no priority"), 0),
    **dict.fromkeys(("low", "minor"), -1),
    **dict.fromkeys(("lowest", "trivial"), -2),
}
_OTHER_DATES = (
    "%d/%b/%y %I:%M %p",  # Jira
    "%d/%b/%Y %I:%M %p",
    "%d/%b/%y",
    "%a %b %d %Y %H:%M:%S GMT%z",  # JavaScript, as older exports of Linear have it
    "%b %d, %Y",
)


def set_status(found: Issue, word: str) -> None:
    """Set the status of an issue by a word; one that is not known to be ready, started or finished holds it."""
    status = normal(word)
    found.task["status"] = "done" if status in DONE else "cancelled" if status in CANCELLED else "queued"
    if status and found.task["status"] == "queued" and status not in READY and status not in STARTED:
        found.held = status[:60]


def normal(word: str) -> str:
    """Return a status in small letters, with spaces for other separators."""
    return " ".join(re.sub(r"[_\-]+", " ", word.replace("\u2019", "'")).lower().split())


def set_priority(found: Issue, fields: Fields, key: str = "priority") -> None:
    """Set the priority by a word; another value stays among the fields that are kept."""
    word = fields.peek(key)
    known = PRIORITIES.get(normal(word)) if isinstance(word, str) else None
    if known is not None:
        fields.take(key)
    found.task["priority"] = known or 0


def set_dates(found: Issue, fields: Fields, **keys: str | tuple[str, ...]) -> None:
    """Set fields of the task from dates; one that cannot be read for sure stays among the fields that are kept."""
    for target, given in keys.items():
        names = (given,) if isinstance(given, str) else given
        value = fields.peek(*names)
        if value is None:
            continue
        date = instant(value)
        if date is None:
            found.warnings.append(
                f"{found.name}: {names[0]} is kept in `params` only, since it is not a clear date: {str(value)[:40]!r}"
            )
        else:
            found.task[target] = date
            fields.take(*names)


def instant(value: object) -> str | None:
    """Return a date in ISO 8601; ``None`` if it is not one that can be read in one way only."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        return text
    text = re.sub(r" \([^)]*\)$", "", text)
    for form in _OTHER_DATES:
        try:
            return datetime.strptime(text, form).isoformat()  # noqa: DTZ007 -- the zone is that of the board, or in the text
        except ValueError:
            continue
    return None


def from_seconds(seconds: int) -> str:
    """Return an instant given in seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()
