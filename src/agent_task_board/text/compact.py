"""Tasks, lists, the board and receipts in few tokens, for agents; ``docs/compact.md`` has the grammar.

A document is lines: the head, the attention line, and one line per task; a single task also has its details. Every
function takes the service's answer as JSON and returns text that ends in a line break.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise

from .. import inputs, printable
from ..board.queries import LIST_LIMIT
from ..model import HUMAN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from ..board.queries import TaskPage
    from ..errors import BoardError
    from ..model import Attention, Event, EventPage, Note, Receipt, Returned, Task, TaskDetails

VERSION = "atb1"
TOKEN = 4
"""The characters that count as one token."""
BUDGET_LOW, BUDGET_HIGH = 100, 1_000_000
"""The limits of a budget, in tokens."""
SHORT = 6
"""The last characters of an id that name a task, unless more are needed to distinguish the tasks of a document."""
RECEIPT = 4_000
"""The most characters of body, params and error in the receipt of a claim; ``show`` has the rest."""
LEAST = 16
"""The length of the shortest task line."""
MORE = 60
"""The characters reserved for the line after a list, before it is known."""

_BARE = re.compile(r"""[^\s"=,\\]+""")
_CHANGES = ("status", "assignee", "priority", "progress", "queue", "due_at", "not_before")
"""Changes that the line of an event shows."""
_FLAGS = ("blocked", "stuck", "delayed", "lease_expired", "overdue")


# Parts of a line


def quoted(value: Any) -> str:
    """Return a value as JSON on one line, with hidden characters escaped."""
    return printable.escape_line(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def word(value: Any) -> str:
    """Return a value as it follows ``key=``: bare if possible, else as a JSON string."""
    text = str(value)
    return text if _BARE.fullmatch(text) and printable.is_visible(text) else quoted(text)


def instant(value: str) -> str:
    """Return an instant cut to the second: ``2026-11-30T06:14:05Z``."""
    return f"{value[:19]}Z"


def _pairs(pairs: Iterable[tuple[str, Any]]) -> str:
    return " ".join(f"{key}={word(value)}" for key, value in pairs if value is not None)


def _at(value: str | None) -> str | None:
    return None if value is None else instant(value)


def endings(ids: Iterable[str]) -> dict[str, str]:
    """Return for each id its shortest ending of at least ``SHORT`` characters that no other id has."""
    backwards = sorted({one[::-1] for one in ids})  # sorted so that ids with similar endings are neighbours
    shared = [0, *(_alike(*pair) for pair in pairwise(backwards)), 0]
    return {one[::-1]: one[: max(SHORT, shared[at] + 1, shared[at + 1] + 1)][::-1] for at, one in enumerate(backwards)}


def _alike(one: str, other: str) -> int:
    """Return the length of the common beginning of two texts."""
    unlike = (at for at, (mine, yours) in enumerate(zip(one, other, strict=False)) if mine != yours)
    return next(unlike, min(len(one), len(other)))


def line(task: Mapping[str, Any], name: str) -> str:
    """Return the line of a task with this name; parts that say nothing are omitted."""
    state = "+".join([task["status"], *(flag for flag in _FLAGS if task[flag])])
    parts = [name, quoted(task["title"]), state]
    if task["priority"]:
        parts.append(f"p{task['priority']}")
    if task["progress"] is not None:
        parts.append(f"{task['progress']}%")
    pairs = [
        ("queue", None if task["queue"] == "default" else task["queue"]),
        ("for", task["assignee"]),
        ("by", task["claimed_by"]),
        ("lease", _at(task["lease_expires_at"])),
        ("due", _at(task["due_at"])),
        ("after", _at(task["not_before"]) if task["delayed"] else None),
    ]
    parts += [f"{key}={word(value)}" for key, value in pairs if value is not None]
    if task["tags"]:
        parts.append(f"tags={','.join(map(word, task['tags']))}")
    if task["blocked_by"]:
        parts.append(f"needs={len(task['blocked_by'])}")
    if task["attempts"]:
        parts.append(f"attempt={task['attempts']}/{task['max_attempts']}")
    if task["needs_approval"]:
        parts.append("approval")
    if task.get("snippet", task["title"]) != task["title"]:
        parts.append(f"match={quoted(task['snippet'])}")
    return " ".join(parts)


def notes(sentences: Iterable[str]) -> list[str]:
    """Return the lines of warnings: what the board says, never text of a task."""
    return [f"note {quoted(sentence)}" for sentence in sentences]


def block(name: str, text: str) -> list[str]:
    """Return long text: each line after a bar, or as JSON if it has hidden characters."""
    if not printable.is_visible(text):
        return [f"{name} {quoted(text)}"]
    return [name, *(f"| {part}" if part else "|" for part in text.split("\n"))]


def _opening(
    head: str, attention: Attention, warnings: Iterable[str], ids: Iterable[str]
) -> tuple[list[str], dict[str, str]]:
    """Return the first lines of a document, and the name of each task in it.

    The attention line has the tasks in review, which wait for a person, the expired leases, and the stuck tasks.
    """
    groups = {"review": attention["review"], "expired": attention["expired"], "stuck": attention["stuck"]}
    names = endings([*ids, *(one for found in groups.values() for one in found["ids"])])
    parts = []
    for kind, found in groups.items():
        if found["count"]:
            parts.append(f"{kind}={found['count']}:{','.join(names[one] for one in found['ids'])}")
    return [f"{VERSION} {head}", " ".join(["!", *(parts or ["none"])]), *notes(warnings)], names


# Documents


def budget(value: int | None) -> int | None:
    """Return the characters of a budget in tokens.

    Raises:
        InvalidInput: the budget is out of range.
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
    """Return a list. ``pages`` returns the given number of tasks from its beginning, and the cursor of the next page.

    With ``tokens``, as many tasks as fit are shown, at least one. The last lines have the number of tasks that follow,
    with the cursor for them, and that of the finished tasks that were left out. ``pages`` is called until its tasks
    fit, so that the cursor is that of the last task shown.

    Raises:
        InvalidInput: ``limit`` or ``tokens`` is out of range.
    """

    def page(count: int) -> tuple[Sequence[Mapping[str, Any]], list[str]]:
        found = pages(count)
        said[:] = [*warnings, *found.said]
        tail = [f"+ more count={found.more} after={word(found.next)}"] if found.next else []
        if found.hidden:
            tail.append(f"+ finished count={found.hidden}")
        return found.entries(), tail

    said: list[str] = []
    inputs.integer(limit, "limit", 1, LIST_LIMIT)
    return _tasks("list", page, limit, attention, budget(tokens), said)


def reasons(head: Sequence[str], found: Sequence[Mapping[str, Any]], *, warnings: Sequence[str] = ()) -> str:
    """Return why tasks wait: for each reason its first task, the sentence, and what would change it."""
    lines = [f"{VERSION} why", *notes(warnings), *map(quoted, head)]
    for one in found:
        pairs = [("count", one.get("count")), ("task", one["first"]["id"][-SHORT:])]
        lines += [f"{one['reason']} {_pairs(pairs)} {quoted(one['text'])}", f"change {quoted(one['change'])}"]
    return _document(lines)


def tasks(head: str, found: Sequence[Task], attention: Attention, *, warnings: Sequence[str] = ()) -> str:
    """Return some tasks, one per line, under a head."""

    def page(count: int) -> tuple[Sequence[Mapping[str, Any]], list[str]]:
        return [task.to_dict() for task in found[:count]], []

    return _tasks(head, page, max(1, len(found)), attention, None, warnings)


def board(
    snapshot: Mapping[str, Any], attention: Attention, *, tokens: int | None = None, warnings: Sequence[str] = ()
) -> str:
    """Return the board: the number of tasks by status, and the tasks, unfinished ones first."""

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
    """Return a document with one line per task; ``page`` returns the first tasks, and the lines about the rest."""
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
    """Return a task with its details; with ``tokens``, the most important ones, and a line for each cut.

    The lines above the body and the lines about cuts are shown even if the budget is too small for them.
    """
    task = found["task"]
    links = [*found["dependencies"], *found["dependents"]]
    warnings = list(warnings)
    if "stuck_by" in found:
        from ..board.stuck import why

        warnings.append(why(task, found["stuck_by"]))
    elif "why" in found:
        warnings.append(f"why: {found['why']}")
    lines, names = _opening("task", attention, warnings, [task["id"], *(link["id"] for link in links)])
    lines += [line(task, names[task["id"]]), _facts(task)]
    if "returned" in found:
        lines.append(_sent_back(found["returned"]))
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
    """Return what a verb did, and what the next call needs: the full id, and a lease's token, fence and end.

    Receipts of ``claimed`` and ``resumed`` also have body, params and the error of the previous attempt, so that work
    can start. ``warnings`` replace those of the receipt.
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
    lines += [_left(note) for note in answer.notes]
    tail: list[str] = []
    if verb in ("claimed", "resumed"):
        for part in _work(task):
            shown, cut = part.within(RECEIPT)
            lines += shown
            tail += cut
    return _document([*lines, *tail])


def several(texts: Iterable[str], warnings: Iterable[str]) -> str:
    """Return the answers of several verbs in one call, each a document, then the warnings of all."""
    return "".join([*texts, *(f"{line}\n" for line in notes(warnings))])


def unchanged(task: Mapping[str, Any], *, warnings: Sequence[str] = ()) -> str:
    """Return the receipt of a call that had nothing to change."""
    pairs = _pairs([("id", task["id"]), ("version", task["version"])])
    return _document([f"{VERSION} unchanged", line(task, task["id"][-SHORT:]), pairs, *notes(warnings)])


def nothing(reasons: Sequence[str]) -> str:
    """Return the answer of a claim that found no ready task."""
    return _document([f"{VERSION} nothing", *notes(reasons)])


def commented(event: Event, *, warnings: Sequence[str] = ()) -> str:
    """Return the receipt of a comment."""
    pairs = _pairs([("id", event["task_id"]), ("seq", event["seq"])])
    return _document([f"{VERSION} commented", pairs, *notes(warnings)])


def events(found: EventPage, *, warnings: Sequence[str] = ()) -> str:
    """Return events, one line each: number, instant, task, kind, actor, what changed, and whether it was imported."""
    names = endings(event["task_id"] for event in found["events"])
    lines = [f"{VERSION} events {_pairs([('next', found['next'])])}", *notes(warnings)]
    for event in found["events"]:
        data = event["data"]
        told = [f"event {event['seq']} {instant(event['at'])} {names[event['task_id']]}"]
        told.append(f"{event['kind']} {word(event['actor'])}")
        changed = (data.get("changes") or {}).items() if event["kind"] not in ("created", "imported") else ()
        told += [f"{field}={word(change['to'])}" for field, change in changed if field in _CHANGES]
        told += [f"{key}={quoted(data[key])}" for key in ("note", "text", "error") if data.get(key)]
        told += ["imported"] if event.get("imported") else []
        lines.append(" ".join(told))
    return _document(lines)


def refusal(error: BoardError, *, warnings: Sequence[str] = ()) -> str:
    """Return a refusal: code, message, hint and details."""
    found = error.to_dict()
    lines = [f"{VERSION} error {found['code']}", f"message {quoted(found['message'])}"]
    if found["hint"]:
        lines.append(f"hint {quoted(found['hint'])}")
    if found["details"]:
        lines.append(f"details {quoted(found['details'])}")
    return _document([*lines, *notes(warnings)])


# Details of a task


class _Part:
    """Lines of one kind; if not all fit, the first ones are shown, with the total."""

    unit = ""
    may_take_all = True
    """Whether the part may use all the remaining room, and leave none for later parts."""

    def __init__(self, name: str, lines: list[str], total: int | None = None) -> None:
        self.name = name
        self.lines = lines
        self.total = len(lines) if total is None else total
        self.size = _size(lines)

    def cut(self, shown: int) -> str:
        """Return the line about a cut."""
        return f"+ cut {self.name} {shown}/{self.total}{self.unit}"

    def within(self, room: int) -> tuple[list[str], list[str]]:
        """Return the lines that fit, and the line about the cut, if there is one."""
        if self.size <= room:
            return self.lines, []
        fits, lines = self.beginning(room)
        return lines, [self.cut(fits)]

    def beginning(self, room: int) -> tuple[int, list[str]]:
        """Return how much fits, and the lines of it."""
        fits = _fitting(self.lines, room)
        return fits, self.lines[:fits]


class _Text(_Part):
    """The lines of a text; it can be cut within a line, and is counted in characters."""

    unit = " characters"
    may_take_all = False

    def __init__(self, name: str, text: str) -> None:
        super().__init__(name, block(name, text) if text else [], len(text))
        self.text = text

    def beginning(self, room: int) -> tuple[int, list[str]]:
        low, high = 0, min(len(self.text), max(0, room))
        while low < high:  # with escapes and bars, lines are longer than the text
            middle = (low + high + 1) // 2
            if _size(block(self.name, self.text[:middle])) <= room:
                low = middle
            else:
                high = middle - 1
        return low, block(self.name, self.text[:low]) if low else []


class _Value(_Part):
    """A JSON value, shown in full or not at all, since half a value is not JSON."""

    unit = " characters"

    def __init__(self, name: str, value: Any) -> None:
        text = quoted(value)
        super().__init__(name, [f"{name} {text}"], len(text))


def _within(parts: Iterable[_Part], room: int | None) -> list[str]:
    """Return as many lines of the parts as fit, followed by a line for each cut.

    A long text leaves half of the remaining room to the later parts, if they need that much: a long body must not
    displace the comments.
    """
    parts = [part for part in parts if part.lines]
    later = sum(part.size for part in parts)
    if room is None or later <= room:
        return [one for part in parts for one in part.lines]
    kept = [len(part.cut(part.total)) + 1 for part in parts]
    left = room - sum(kept)
    lines: list[str] = []
    tail: list[str] = []
    for part, own in zip(parts, kept, strict=True):
        later -= part.size
        most = left if part.may_take_all or left < 0 else max(left // 2, left - later)
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
    """Return the parts that describe the work: body, params and the latest error."""
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
    return f"comment {instant(event['at'])} {word(event['actor'])} {quoted(event['data']['text'])} {_source(event)}"


def _left(note: Note) -> str:
    return f"left {note['kind']} {instant(note['at'])} {word(note['actor'])} {quoted(note['text'])} {_source(note)}"


def _sent_back(back: Returned) -> str:
    note: Note = {
        "kind": "rejected",
        "actor": back["by"],
        "actor_kind": HUMAN,
        "at": back["at"],
        "text": back["note"] or "",
    }
    if "imported" in back:
        note["imported"] = True
    return _left(note)


def _source(told: Event | Note) -> str:
    """Return what kind of actor said something, and whether an import says so."""
    return f"{told['actor_kind']} imported" if told.get("imported") else told["actor_kind"]


def _attempt(attempt: Mapping[str, Any]) -> str:
    outcome = "returned" if attempt.get("returned") else attempt["outcome"] or "open"
    parts = [
        f"attempt {attempt['number']} {word(attempt['agent'])} {outcome}",
        _pairs([("from", instant(attempt["claimed_at"])), ("to", _at(attempt["ended_at"]))]),
        *(f"{key}={quoted(attempt[key])}" for key in ("error", "note") if attempt[key] is not None),
    ]
    return " ".join(parts)


# Room


def _size(lines: Iterable[str]) -> int:
    return sum(len(one) + 1 for one in lines)


def _fitting(lines: Sequence[str], room: int) -> int:
    """Return how many of the first lines fit into ``room`` characters."""
    for count, one in enumerate(lines):
        room -= len(one) + 1
        if room < 0:
            return count
    return len(lines)


def _document(lines: Iterable[str]) -> str:
    return "".join(f"{one}\n" for one in lines)
