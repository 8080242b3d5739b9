"""A task, a list, a board, a receipt in few tokens, for agents that pay for each; ``docs/compact.md`` has the grammar.

A document is lines: its head, the attention line, one line a task, and under a single task what belongs to it. Every
function takes what the service answers as JSON, and returns text that ends in a line break.
"""

from __future__ import annotations

import json
import re

from . import inputs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from .errors import BoardError
    from .model import Attention, Event, Receipt, TaskDetails

VERSION = "atb1"
TOKEN = 4
"""Characters that count as one token."""
BUDGET_LOW, BUDGET_HIGH = 100, 1_000_000
"""Tokens."""
SHORT = 6
"""Characters of an id that are shown, where no longer ending is needed to tell the tasks of a document apart."""
RECEIPT = 4_000
"""Characters of body, and of params, that the receipt of a claim repeats; what is longer is for ``get_task``."""

_PLAIN = re.compile(r"""[^\s"=,\\+]+""")
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What JSON would leave as it is, though it breaks lines or turns them around."""
_BLOCK = re.compile("[^\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]*")
_FLAGS = ("blocked", "delayed", "lease_expired", "overdue")


# The parts of a line


def quoted(value: Any) -> str:
    """Return a value as JSON on one line of visible characters."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def word(value: Any) -> str:
    """Return a value as it stands after ``key=``: bare where it can be, else as a JSON string."""
    text = str(value)
    return text if _PLAIN.fullmatch(text) and not _UNSEEN.search(text) else quoted(text)


def instant(value: str) -> str:
    """Return an instant to the second: ``2026-11-30T06:14:05Z``."""
    return f"{value[:19]}Z"


def _pairs(pairs: Iterable[tuple[str, Any]]) -> str:
    return " ".join(f"{key}={word(value)}" for key, value in pairs if value is not None)


def _at(value: str | None) -> str | None:
    return None if value is None else instant(value)


def endings(ids: Iterable[str]) -> dict[str, str]:
    """Return for each id the shortest ending, of ``SHORT`` characters or more, that none of the others has."""
    distinct = list(dict.fromkeys(ids))
    for length in range(SHORT, inputs.ULID + 1):
        shown = {one: one[-length:] for one in distinct}
        if len(set(shown.values())) == len(distinct):
            return shown
    return {one: one for one in distinct}


def line(task: Mapping[str, Any], name: str) -> str:
    """Return the line of a task, under the name given; each part stands only where it says something."""
    state = "+".join([task["status"], *(flag for flag in _FLAGS if task[flag])])
    parts = [name, quoted(task["title"]), state]
    if task["priority"]:
        parts.append(f"p{task['priority']}")
    if task["progress"] is not None:
        parts.append(f"{task['progress']}%")
    told = [
        ("queue", None if task["queue"] == "default" else task["queue"]),
        ("for", task["assignee"]),
        ("by", task["claimed_by"]),
        ("lease", _at(task["lease_expires_at"])),
        ("due", _at(task["due_at"])),
        ("after", _at(task["not_before"]) if task["delayed"] else None),
    ]
    parts += [f"{key}={word(value)}" for key, value in told if value is not None]
    if task["tags"]:
        parts.append(f"tags={','.join(map(word, task['tags']))}")
    if task["blocked_by"]:
        parts.append(f"needs={len(task['blocked_by'])}")
    if task["attempts"]:
        parts.append(f"try={task['attempts']}/{task['max_attempts']}")
    if task["needs_approval"]:
        parts.append("approval")
    return " ".join(parts)


def notice(attention: Attention) -> str:
    """Return the line of what somebody should look at: reviews that wait for a person, and leases that ran out."""
    parts = []
    for kind in ("review", "expired"):
        found = attention[kind]
        if found["count"]:
            ids = endings(found["ids"])
            parts.append(f"{kind}={found['count']}:{','.join(ids.values())}")
    return " ".join(["!", *(parts or ["none"])])


def notes(sentences: Iterable[str]) -> list[str]:
    """Return the lines of what the caller must know beside."""
    return [f"note {quoted(sentence)}" for sentence in sentences]


def block(name: str, text: str) -> list[str]:
    """Return long text: its lines behind bars, or as JSON where it has characters that nobody sees."""
    if _BLOCK.fullmatch(text):
        return [name, *(f"| {part}" for part in text.split("\n"))]
    return [f"{name} {quoted(text)}"]


# Documents


def budget(value: int | None) -> int | None:
    """Return how many characters a number of tokens allows.

    Raises:
        InvalidInput: it is no number of tokens that makes sense.
    """
    return None if value is None else inputs.integer(value, "budget", BUDGET_LOW, BUDGET_HIGH) * TOKEN


def task_list(
    pages: Callable[[int], Mapping[str, Any]],
    limit: int,
    attention: Attention,
    *,
    tokens: int | None = None,
    warnings: Sequence[str] = (),
) -> str:
    """Return a list; ``pages`` answers the first tasks of it, as many as it is told, with the cursor of the rest.

    Within ``tokens`` as many as fit, but never fewer than one; the last line tells the cursor to go on after.
    """
    room = budget(tokens)
    while True:
        page = pages(limit)
        names = endings(task["id"] for task in page["tasks"])
        lines = [f"{VERSION} list", notice(attention), *notes(warnings)]
        tail = [f"+ more after={page['next']}"] if page["next"] else []
        rows = [line(task, names[task["id"]]) for task in page["tasks"]]
        fits = len(rows) if room is None else _fitting(rows, room - _size(lines) - (_size(tail) or 60))
        if fits >= len(rows) or len(rows) <= 1:
            return _document([*lines, *rows, *tail])
        limit = max(1, fits)


def board(snapshot: Mapping[str, Any], attention: Attention, *, tokens: int | None = None) -> str:
    """Return the board: how many tasks there are of each status, and those that it shows, unfinished ones first."""
    room = budget(tokens)
    head = " ".join([f"{VERSION} board", _pairs([("revision", snapshot["revision"]), *snapshot["counts"].items()])])
    names = endings(task["id"] for task in snapshot["tasks"])
    rows = [line(task, names[task["id"]]) for task in snapshot["tasks"]]
    lines = [head, notice(attention)]
    fits = len(rows) if room is None else _fitting(rows, room - _size(lines) - 60)
    left = sum(snapshot["counts"].values()) - min(fits, len(rows))
    return _document([*lines, *rows[:fits], *([f"+ more {left}"] if left > 0 else [])])


def details(
    found: TaskDetails, attention: Attention, *, tokens: int | None = None, warnings: Sequence[str] = ()
) -> str:
    """Return a task with all that belongs to it; within ``tokens`` what matters most, and a line a cut."""
    task = found["task"]
    links = [*found["dependencies"], *found["dependents"]]
    names = endings([task["id"], *(link["id"] for link in links)])
    lines = [f"{VERSION} task", notice(attention), *notes(warnings), line(task, names[task["id"]]), _facts(task)]
    parts = [
        *_work(task),
        *(_Value(name, task[name]) for name in ("error", "result") if task[name] is not None),
        _Part("needs", [_link("needs", link, names) for link in found["dependencies"]]),
        _Part("comments", [_comment(event) for event in reversed(found["comments"])]),
        _Part("attempts", [_attempt(attempt) for attempt in reversed(found["attempts"])]),
        _Part("artifacts", [f"artifact {quoted(path)}" for path in task["artifacts"]]),
        _Part("blocks", [_link("blocks", link, names) for link in found["dependents"]]),
    ]
    room = budget(tokens)
    left = None if room is None else room - _size(lines) - sum(40 for part in parts if part.lines)
    tail: list[str] = []
    for part in parts:
        shown, cut = part.within(left)
        lines += shown
        tail += cut
        if left is not None:
            left -= _size(shown)
    return _document([*lines, *tail])


def receipt(answer: Receipt, verb: str) -> str:
    """Return what a verb did, and what the next call needs: the whole id, and of a lease its token, fence and end.

    That of a claim repeats body and params, so that the work can begin.
    """
    task = answer.task.to_dict()
    head = [VERSION, verb, *(["replayed"] if answer.replayed else [])]
    if answer.created is False:
        head.append("existing")
    pairs: list[tuple[str, Any]] = [("id", task["id"]), ("version", task["version"])]
    if answer.lease is not None:
        lease = answer.lease
        pairs += [("token", lease.token), ("fence", lease.fence), ("lease_end", instant(lease.expires_at))]
    lines = [" ".join(head), line(task, task["id"][-SHORT:]), _pairs(pairs), *notes(answer.warnings)]
    if verb == "claimed":
        for part in _work(task):
            shown, cut = part.within(RECEIPT)
            lines += [*shown, *cut]
    return _document(lines)


def nothing(reasons: Sequence[str]) -> str:
    """Return the answer of a claim that found nothing ready."""
    return _document([f"{VERSION} nothing", *notes(reasons)])


def commented(event: Event) -> str:
    """Return the receipt of a comment."""
    pairs = _pairs([("id", event["task_id"]), ("seq", event["seq"])])
    return _document([f"{VERSION} commented", pairs])


def refusal(error: BoardError) -> str:
    """Return a refusal: its code, what happened, what to do, and the details."""
    told = error.to_dict()
    lines = [f"{VERSION} error {told['code']}", f"message {quoted(told['message'])}"]
    if told["hint"]:
        lines.append(f"hint {quoted(told['hint'])}")
    if told["details"]:
        lines.append(f"details {quoted(told['details'])}")
    return _document(lines)


# What belongs to a task


class _Part:
    """Lines of one kind; where not all fit, the first of them are shown, and how many there are."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self.name = name
        self.lines = lines

    def within(self, room: int | None) -> tuple[list[str], list[str]]:
        """Return the lines that fit, and those that tell what was cut."""
        fits = len(self.lines) if room is None else _fitting(self.lines, room)
        if fits == len(self.lines):
            return self.lines, []
        return self.lines[:fits], [f"+ cut {self.name} {fits}/{len(self.lines)}"]


class _Text(_Part):
    """The lines of a text; cut within a line, where need be, and counted in characters."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(name, block(name, text) if text else [])
        self.text = text

    def within(self, room: int | None) -> tuple[list[str], list[str]]:
        if room is None or _size(self.lines) <= room:
            return self.lines, []
        low, high = 0, min(len(self.text), max(0, room))
        while low < high:  # the longest beginning that fits: escapes and bars make lines longer than their text
            middle = (low + high + 1) // 2
            if _size(block(self.name, self.text[:middle])) <= room:
                low = middle
            else:
                high = middle - 1
        shown = block(self.name, self.text[:low]) if low else []
        return shown, [f"+ cut {self.name} {low}/{len(self.text)} characters"]


class _Value(_Part):
    """A JSON value: all of it or nothing, since half a value is none."""

    def __init__(self, name: str, value: Any) -> None:
        self.text = quoted(value)
        super().__init__(name, [f"{name} {self.text}"])

    def within(self, room: int | None) -> tuple[list[str], list[str]]:
        if room is None or _size(self.lines) <= room:
            return self.lines, []
        return [], [f"+ cut {self.name} 0/{len(self.text)} characters"]


def _work(task: Mapping[str, Any]) -> list[_Part]:
    """Return what is to be done."""
    return [_Text("body", task["body"]), *([_Value("params", task["params"])] if task["params"] else [])]


def _facts(task: Mapping[str, Any]) -> str:
    return _pairs(
        [
            ("id", task["id"]),
            ("version", task["version"]),
            ("fence", task["fence"]),
            ("created", instant(task["created_at"])),
            ("creator", task["created_by"]),
            ("updated", instant(task["updated_at"])),
            ("not_before", None if task["delayed"] else _at(task["not_before"])),
            ("claimed", _at(task["claimed_at"])),
            ("finished", _at(task["finished_at"])),
            ("dedupe_key", task["dedupe_key"]),
            ("max_attempts", None if task["attempts"] else task["max_attempts"]),
            ("schedule", task["schedule_id"]),
            ("occurrence", _at(task["occurrence_at"])),
        ]
    )


def _link(kind: str, link: Mapping[str, Any], names: Mapping[str, str]) -> str:
    return f"{kind} {names[link['id']]} {quoted(link['title'])} {link['status']}"


def _comment(event: Event) -> str:
    return f"comment {instant(event['at'])} {word(event['actor'])} {quoted(event['data']['text'])}"


def _attempt(attempt: Mapping[str, Any]) -> str:
    told = [
        f"attempt {attempt['number']} {word(attempt['agent'])} {attempt['outcome'] or 'open'}",
        _pairs([("from", instant(attempt["claimed_at"])), ("to", _at(attempt["ended_at"]))]),
        *(f"{key}={quoted(attempt[key])}" for key in ("error", "note") if attempt[key] is not None),
    ]
    return " ".join(told)


# Room


def _size(lines: Iterable[str]) -> int:
    return sum(len(one) + 1 for one in lines)


def _fitting(lines: Sequence[str], room: int) -> int:
    """Return how many of the lines fit into as many characters."""
    for count, one in enumerate(lines):
        room -= len(one) + 1
        if room < 0:
            return count
    return len(lines)


def _document(lines: Iterable[str]) -> str:
    return "".join(f"{one}\n" for one in lines)
