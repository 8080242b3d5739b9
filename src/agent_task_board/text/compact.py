"""A task, a list, a board, a receipt in few tokens, for agents that pay for each; ``docs/compact.md`` has the grammar.

A document is lines: its head, the attention line, one line a task, and under a single task what belongs to it. Every
function takes what the service answers as JSON, and returns text that ends in a line break.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise

from .. import inputs
from ..board.queries import LIST_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from ..board.queries import TaskPage
    from ..errors import BoardError
    from ..model import Attention, Event, EventPage, Receipt, TaskDetails

VERSION = "atb1"
TOKEN = 4
"""Characters that count as one token."""
BUDGET_LOW, BUDGET_HIGH = 100, 1_000_000
"""Tokens."""
SHORT = 6
"""Characters of an id that are shown, where no longer ending is needed to tell the tasks of a document apart."""
RECEIPT = 4_000
"""Characters of body, of params and of error that the receipt of a claim repeats; ``show`` has the rest."""
LEAST = 16
"""Characters of the shortest line of a task."""
MORE = 60
"""Characters that the line after a list may need, where it is not known yet."""

_SEEN_BY_NOBODY = (
    "\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
"""What JSON would leave as it is, though it breaks lines, turns them around, hides words, or is no text at all."""
_UNSEEN = re.compile(f"[{_SEEN_BY_NOBODY}]")
_STEERING = re.compile(f"[\x00-\x08\x0b-\x1f{_SEEN_BY_NOBODY}]")
"""What may stand in a JSON string only, as an escape."""
_PLAIN = re.compile(r"""[^\s"=,\\]+""")
_CHANGES = ("status", "assignee", "priority", "progress", "queue", "due_at", "not_before")
"""Changes that the line of an event tells."""
_FLAGS = ("blocked", "delayed", "lease_expired", "overdue")


# The parts of a line


def quoted(value: Any) -> str:
    """Return a value as JSON on one line of visible characters."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def word(value: Any) -> str:
    """Return a value as it stands after ``key=``: bare where it can be, else as a JSON string."""
    text = str(value)
    return text if _PLAIN.fullmatch(text) and not _STEERING.search(text) else quoted(text)


def instant(value: str) -> str:
    """Return an instant cut to the second: ``2026-11-30T06:14:05Z``."""
    return f"{value[:19]}Z"


def _pairs(pairs: Iterable[tuple[str, Any]]) -> str:
    return " ".join(f"{key}={word(value)}" for key, value in pairs if value is not None)


def _at(value: str | None) -> str | None:
    return None if value is None else instant(value)


def endings(ids: Iterable[str]) -> dict[str, str]:
    """Return for each id its shortest ending, of ``SHORT`` characters or more, that none of the others has."""
    backwards = sorted({one[::-1] for one in ids})  # whichever shares most with one stands beside it
    shared = [0, *(_alike(*pair) for pair in pairwise(backwards)), 0]
    return {one[::-1]: one[: max(SHORT, shared[at] + 1, shared[at + 1] + 1)][::-1] for at, one in enumerate(backwards)}


def _alike(one: str, other: str) -> int:
    """Return with how many characters two texts begin alike."""
    unlike = (at for at, (mine, yours) in enumerate(zip(one, other, strict=False)) if mine != yours)
    return next(unlike, min(len(one), len(other)))


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


def notes(sentences: Iterable[str]) -> list[str]:
    """Return the lines of what the caller must know beside."""
    return [f"note {quoted(sentence)}" for sentence in sentences]


def block(name: str, text: str) -> list[str]:
    """Return long text: its lines behind bars, or as JSON where it has characters that nobody sees."""
    if _STEERING.search(text):
        return [f"{name} {quoted(text)}"]
    return [name, *(f"| {part}" if part else "|" for part in text.split("\n"))]


def _opening(
    head: str, attention: Attention, warnings: Iterable[str], ids: Iterable[str]
) -> tuple[list[str], dict[str, str]]:
    """Return the lines that a document begins with, and the name that each of its tasks has in it.

    The attention line tells of reviews, which wait for a person, and of leases that ran out.
    """
    names = endings([*ids, *attention["review"]["ids"], *attention["expired"]["ids"]])
    parts = []
    for kind in ("review", "expired"):
        found = attention[kind]
        if found["count"]:
            parts.append(f"{kind}={found['count']}:{','.join(names[one] for one in found['ids'])}")
    return [f"{VERSION} {head}", " ".join(["!", *(parts or ["none"])]), *notes(warnings)], names


# Documents


def budget(value: int | None) -> int | None:
    """Return how many characters a number of tokens allows.

    Raises:
        InvalidInput: it is no number of tokens that makes sense.
    """
    return None if value is None else inputs.integer(value, "budget", BUDGET_LOW, BUDGET_HIGH) * TOKEN


def task_list(
    pages: Callable[[int], TaskPage],
    limit: int,
    attention: Attention,
    *,
    tokens: int | None = None,
    warnings: Sequence[str] = (),
) -> str:
    """Return a list; ``pages`` answers the first tasks of it, as many as it is told, with the cursor of the rest.

    Within ``tokens`` as many as fit, but never fewer than one. The last lines tell how many more there are, with the
    cursor to go on after, and how many finished tasks were left out.
    ``pages`` is called until its tasks fit, so that the cursor is always that of the last task shown.

    Raises:
        InvalidInput: ``limit`` or ``tokens`` is out of range.
    """

    def page(count: int) -> tuple[Sequence[Mapping[str, Any]], list[str]]:
        found = pages(count)
        tail = [f"+ more count={found.more} after={word(found.next)}"] if found.next else []
        if found.hidden:
            tail.append(f"+ finished count={found.hidden}")
        return [task.to_dict() for task in found.tasks], tail

    inputs.integer(limit, "limit", 1, LIST_LIMIT)
    return _tasks("list", page, limit, attention, budget(tokens), warnings)


def board(
    snapshot: Mapping[str, Any], attention: Attention, *, tokens: int | None = None, warnings: Sequence[str] = ()
) -> str:
    """Return the board: how many tasks there are of each status, and those that it shows, unfinished ones first."""

    def page(count: int) -> tuple[Sequence[Mapping[str, Any]], list[str]]:
        shown = snapshot["tasks"][:count]
        left = sum(snapshot["counts"].values()) - len(shown)
        return shown, [f"+ more count={left}"] if left else []

    counts = [(status, count or None) for status, count in snapshot["counts"].items()]
    head = f"board {_pairs([('revision', snapshot['revision']), *counts])}"
    return _tasks(head, page, max(1, len(snapshot["tasks"])), attention, budget(tokens), warnings)


def _tasks(
    head: str,
    page: Callable[[int], tuple[Sequence[Mapping[str, Any]], list[str]]],
    count: int,
    attention: Attention,
    room: int | None,
    warnings: Sequence[str],
) -> str:
    """Return a document of one line a task; ``page`` gives the first tasks, and the lines that tell of the others."""
    if room is not None:
        count = min(count, room // LEAST)
    while True:
        tasks, tail = page(count)
        lines, names = _opening(head, attention, warnings, [task["id"] for task in tasks])
        rows = [line(task, names[task["id"]]) for task in tasks]
        if room is None or len(rows) <= 1 or _size([*lines, *rows, *tail]) <= room:
            return _document([*lines, *rows, *tail])
        count = max(1, _fitting(rows, room - _size(lines) - max(_size(tail), MORE)))


def details(
    found: TaskDetails, attention: Attention, *, tokens: int | None = None, warnings: Sequence[str] = ()
) -> str:
    """Return a task with all that belongs to it; within ``tokens`` what matters most, and a line for each cut.

    What stands above the body, and the lines that tell of cuts, are there however small the budget.
    """
    task = found["task"]
    links = [*found["dependencies"], *found["dependents"]]
    lines, names = _opening("task", attention, warnings, [task["id"], *(link["id"] for link in links)])
    lines += [line(task, names[task["id"]]), _facts(task)]
    parts = [
        *_work(task),
        *([_Value("result", task["result"])] if task["result"] is not None else []),
        _Part("needs", [_link("needs", link, names) for link in found["dependencies"]]),
        _Part("comments", [_comment(event) for event in reversed(found["comments"])]),
        _Part("attempts", [_attempt(attempt) for attempt in reversed(found["attempts"])]),
        _Part("artifacts", [f"artifact {quoted(path)}" for path in task["artifacts"]]),
        _Part("blocks", [_link("blocks", link, names) for link in found["dependents"]]),
    ]
    room = budget(tokens)
    return _document([*lines, *_within(parts, None if room is None else room - _size(lines))])


def receipt(answer: Receipt, verb: str, *, warnings: Sequence[str] | None = None) -> str:
    """Return what a verb did, and what the next call needs: the whole id, and of a lease its token, fence and end.

    Those of ``claimed`` and ``resumed`` repeat body, params and the error of the attempt before, so that the work can
    begin. ``warnings`` stand in place of the receipt's own.
    """
    task = answer.task.to_dict()
    head = [VERSION, verb, *(["replayed"] if answer.replayed else [])]
    if answer.created is False:
        head.append("existing")
    pairs: list[tuple[str, Any]] = [("id", task["id"]), ("version", task["version"])]
    if answer.lease is not None:
        lease = answer.lease
        pairs += [("token", lease.token), ("fence", lease.fence), ("lease_end", instant(lease.expires_at))]
    lines = [" ".join(head), line(task, task["id"][-SHORT:]), _pairs(pairs)]
    lines += notes(answer.warnings if warnings is None else warnings)
    tail: list[str] = []
    if verb in ("claimed", "resumed"):
        for part in _work(task):
            shown, cut = part.within(RECEIPT)
            lines += shown
            tail += cut
    return _document([*lines, *tail])


def nothing(reasons: Sequence[str]) -> str:
    """Return the answer of a claim that found nothing ready."""
    return _document([f"{VERSION} nothing", *notes(reasons)])


def commented(event: Event, *, warnings: Sequence[str] = ()) -> str:
    """Return the receipt of a comment."""
    pairs = _pairs([("id", event["task_id"]), ("seq", event["seq"])])
    return _document([f"{VERSION} commented", pairs, *notes(warnings)])


def events(found: EventPage, *, warnings: Sequence[str] = ()) -> str:
    """Return events, one line each: number, instant, task, kind, actor, and what changed."""
    names = endings(event["task_id"] for event in found["events"])
    lines = [f"{VERSION} events {_pairs([('next', found['next'])])}", *notes(warnings)]
    for event in found["events"]:
        data = event["data"]
        told = [f"event {event['seq']} {instant(event['at'])} {names[event['task_id']]}"]
        told.append(f"{event['kind']} {word(event['actor'])}")
        changed = (data.get("changes") or {}).items() if event["kind"] not in ("created", "imported") else ()
        told += [f"{field}={word(change['to'])}" for field, change in changed if field in _CHANGES]
        told += [f"{key}={quoted(data[key])}" for key in ("note", "text", "error") if data.get(key)]
        lines.append(" ".join(told))
    return _document(lines)


def refusal(error: BoardError, *, warnings: Sequence[str] = ()) -> str:
    """Return a refusal: its code, what happened, what to do, and the details."""
    told = error.to_dict()
    lines = [f"{VERSION} error {told['code']}", f"message {quoted(told['message'])}"]
    if told["hint"]:
        lines.append(f"hint {quoted(told['hint'])}")
    if told["details"]:
        lines.append(f"details {quoted(told['details'])}")
    return _document([*lines, *notes(warnings)])


# What belongs to a task


class _Part:
    """Lines of one kind; where not all fit, the first of them are shown, and how many there are."""

    unit = ""
    may_take_all = True
    """Whether it may use up the room that it finds, so that nothing is left for the parts behind it."""

    def __init__(self, name: str, lines: list[str], total: int | None = None) -> None:
        self.name = name
        self.lines = lines
        self.total = len(lines) if total is None else total
        self.size = _size(lines)

    def cut(self, shown: int) -> str:
        """Return the line that tells of a cut."""
        return f"+ cut {self.name} {shown}/{self.total}{self.unit}"

    def within(self, room: int) -> tuple[list[str], list[str]]:
        """Return the lines that fit, and the one that tells of the cut if there is one."""
        if self.size <= room:
            return self.lines, []
        fits, lines = self.beginning(room)
        return lines, [self.cut(fits)]

    def beginning(self, room: int) -> tuple[int, list[str]]:
        """Return how much fits, and its lines."""
        fits = _fitting(self.lines, room)
        return fits, self.lines[:fits]


class _Text(_Part):
    """The lines of a text; cut within a line, where need be, and counted in characters."""

    unit = " characters"
    may_take_all = False

    def __init__(self, name: str, text: str) -> None:
        super().__init__(name, block(name, text) if text else [], len(text))
        self.text = text

    def beginning(self, room: int) -> tuple[int, list[str]]:
        low, high = 0, min(len(self.text), max(0, room))
        while low < high:  # escapes and bars make lines longer than their text
            middle = (low + high + 1) // 2
            if _size(block(self.name, self.text[:middle])) <= room:
                low = middle
            else:
                high = middle - 1
        return low, block(self.name, self.text[:low]) if low else []


class _Value(_Part):
    """A JSON value: all of it or nothing, since half a value is none."""

    unit = " characters"

    def __init__(self, name: str, value: Any) -> None:
        text = quoted(value)
        super().__init__(name, [f"{name} {text}"], len(text))


def _within(parts: Iterable[_Part], room: int | None) -> list[str]:
    """Return the lines of the parts, as many as fit, and behind them a line for each cut.

    A long text leaves half of what it finds to the parts behind it, if they need as much: comments must not drown in
    a body.
    """
    parts = [part for part in parts if part.lines]
    behind = sum(part.size for part in parts)
    if room is None or behind <= room:
        return [one for part in parts for one in part.lines]
    kept = [len(part.cut(part.total)) + 1 for part in parts]
    left = room - sum(kept)
    lines: list[str] = []
    tail: list[str] = []
    for part, own in zip(parts, kept, strict=True):
        behind -= part.size
        most = left if part.may_take_all or left < 0 else max(left // 2, left - behind)
        if part.size <= most + own:
            lines += part.lines
            left += own - part.size
            continue
        shown, cut = part.within(most)
        lines += shown
        tail += cut
        left -= _size(shown)
    return [*lines, *tail]


def _work(task: Mapping[str, Any]) -> list[_Part]:
    """Return what is to be done, and what went wrong before."""
    return [
        _Text("body", task["body"]),
        *([_Value("params", task["params"])] if task["params"] else []),
        _Text("error", task["error"] or ""),
    ]


def _facts(task: Mapping[str, Any]) -> str:
    return _pairs(
        [
            ("id", task["id"]),
            ("version", task["version"]),
            ("fence", task["fence"] or None),
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
