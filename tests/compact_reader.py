"""A reader of compact text, written from ``docs/compact.md`` alone: it knows nothing of the program that writes it."""

from __future__ import annotations

import json
import re
from typing import Any

STATUSES = ("queued", "claimed", "running", "review", "done", "failed", "cancelled")
FLAGS = ("blocked", "stuck", "delayed", "lease_expired", "overdue")
OUTCOMES = ("open", "returned", "completed", "failed", "expired", "released", "handed_off", "revoked", "cancelled")
VERBS = """
created claimed resumed renewed completed failed released handed_off approved rejected reassigned retried cancelled
updated unchanged archived unarchived
""".split()
CHANGES = "status assignee priority progress queue due_at not_before note text error".split()
TASK_KEYS = ("queue", "for", "by", "lease", "due", "after", "tags", "needs", "attempt")
FACTS = """
id version fence created creator updated not_before claimed finished dedupe_key max_attempts schedule occurrence
token lease_end seq
""".split()
NUMBERS = ("version", "fence", "max_attempts", "seq", "needs", "count")
INSTANTS = ("lease", "due", "created", "updated", "not_before", "claimed", "finished", "occurrence", "lease_end")

_NAME = re.compile("[0-9A-Z]{6,26}")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_JSON = json.JSONDecoder()


class Unreadable(ValueError):
    """The text is not as the grammar has it."""


def read(text: str, *, lenient: bool = False) -> dict[str, Any]:
    """Return a document as a dict; ``lenient`` passes over what the grammar may have more of one day."""
    return _Reader(lenient).document(text)


class _Reader:
    def __init__(self, lenient: bool) -> None:
        self.lenient = lenient

    def document(self, text: str) -> dict[str, Any]:
        _need(text.endswith("\n"), "the last line has no end", text)
        first, *lines = text[:-1].split("\n")
        version, kind, *rest = parts(first)
        _need(version == "atb1", "another version", first)
        found: dict[str, Any] = {
            "kind": kind, "head": {}, "flags": [], "attention": None, "notes": [], "tasks": [], "facts": {},
            "texts": {}, "needs": [], "blocks": [], "comments": [], "left": [], "attempts": [], "artifacts": [],
            "more": None, "cuts": {}, "finished": 0, "events": [],
        }  # fmt: skip
        for part in rest:
            key, value = pair(part)
            if value is None:
                found["flags"].append(key)
            else:
                found["head"][key] = int(item(value))
        while lines:
            line = lines.pop(0)
            mark = line[:1]
            if mark == "!":
                _need(found["attention"] is None, "attention twice", line)
                found["attention"] = self.attention(line)
            elif mark == "+":
                self.more(line, found)
            elif mark.isdigit() or "A" <= mark <= "Z":
                found["tasks"].append(self.task(line))
            elif re.match("[a-z_]+=", line):
                found["facts"] |= self.pairs(parts(line), FACTS)
            elif re.match("[a-z_]+( |$)", line):
                bars = []
                while lines and lines[0].startswith("|"):
                    bars.append(lines.pop(0))
                self.entry(line, bars, found)
            else:
                raise Unreadable(f"no such line: {line!r}")
        return found

    def attention(self, line: str) -> dict[str, Any]:
        mark, *rest = parts(line)
        _need(mark == "!" and len(rest) > 0, "attention without parts", line)
        if rest == ["none"]:
            return {}
        found = {}
        for part in rest:
            key, value = pair(part)
            if key in ("review", "expired", "stuck"):
                count, _, names = (value or "").partition(":")
                found[key] = {"count": int(count), "names": [name(one) for one in names.split(",")]}
            else:
                self.unknown(part)
        return found

    def more(self, line: str, found: dict[str, Any]) -> None:
        mark, what, *rest = parts(line)
        _need(mark == "+", "a mark without a space", line)
        if what == "more":
            found["more"] = self.pairs(rest, ["after", "count"])
        elif what == "finished":
            found["finished"] = int(self.pairs(rest, ["count"])["count"])
        elif what == "cut":
            part, amount, *unit = rest
            _need(unit in ([], ["characters"]), "another unit", line)
            shown, _, whole = amount.partition("/")
            found["cuts"][part] = (int(shown), int(whole))
        else:
            self.unknown(line)

    def task(self, line: str) -> dict[str, Any]:
        first, title, state, *rest = parts(line)
        status, *flags = state.split("+")
        _need(status in STATUSES, "no such status", line)
        told: dict[str, Any] = {
            "name": name(first), "title": string(title), "status": status, "flags": [], "priority": 0,
            "progress": None, "approval": False, "queue": "default", "tags": [], "needs": 0, "attempt": None,
        }  # fmt: skip
        for flag in flags:
            if flag in FLAGS:
                told["flags"].append(flag)
            else:
                self.unknown(flag)
        for part in rest:
            key, value = pair(part)
            if value is None:
                self.bare(part, told)
            elif key == "tags":
                told["tags"] = [item(one) for one in items(value)]
            elif key == "match":
                told["match"] = string(value)
            elif key == "attempt":
                used, _, allowed = value.partition("/")
                told["attempt"] = (int(used), int(allowed))
            elif key in TASK_KEYS:
                told[key] = self.typed(key, value)
            else:
                self.unknown(part)
        return told

    def bare(self, part: str, told: dict[str, Any]) -> None:
        if part == "approval":
            told["approval"] = True
        elif re.fullmatch(r"p-?\d+", part):
            told["priority"] = int(part[1:])
        elif re.fullmatch(r"\d+%", part):
            told["progress"] = int(part[:-1])
        else:
            self.unknown(part)

    def entry(self, line: str, bars: list[str], found: dict[str, Any]) -> None:
        key, _, rest = line.partition(" ")
        if key in ("body", "error", "params", "result", "message", "hint", "details"):
            if bars:
                _need(rest == "" and key in ("body", "error"), "bars and more", line)
                _need(all(bar == "|" or bar.startswith("| ") for bar in bars), "a bar without a space", line)
                rest = json.dumps("\n".join(bar[2:] for bar in bars))
            _need(key not in found["texts"], "twice", line)
            found["texts"][key] = json.loads(rest)
            return
        _need(self.lenient or not bars, "bars under another line", line)
        if key in ("note", "artifact"):
            found[f"{key}s"].append(string(rest))
        elif key in ("needs", "blocks"):
            first, title, status = parts(rest)
            _need(status in STATUSES, "no such status", line)
            found[key].append({"name": name(first), "title": string(title), "status": status})
        elif key == "comment":
            at, actor, said, *source = parts(rest)
            told = {"at": instant(at), "actor": item(actor), "text": string(said), **self.source(source)}
            found["comments"].append(told)
        elif key == "left":
            kind, at, actor, said, *source = parts(rest)
            told = {"kind": kind, "at": instant(at), "actor": item(actor), "text": string(said)}
            found["left"].append({**told, **self.source(source)})
        elif key == "event":
            seq, at, task, kind, actor, *more = parts(rest)
            entry = {"seq": int(seq), "at": instant(at), "name": name(task), "kind": kind, "actor": item(actor)}
            if more[-1:] == ["imported"]:
                entry["imported"] = more.pop() == "imported"
            for change, value in map(pair, more):
                _need(change in CHANGES, "no such change", line)
                entry[change] = item(value or "")
            found["events"].append(entry)
        elif key == "attempt":
            number, agent, outcome, *more = parts(rest)
            _need(outcome in OUTCOMES, "no such outcome", line)
            told = self.pairs(more, ["from", "to", "error", "note"])
            found["attempts"].append({"number": int(number), "agent": item(agent), "outcome": outcome, **told})
        else:
            self.unknown(line)

    @staticmethod
    def source(given: list[str]) -> dict[str, Any]:
        kind, *more = given
        _need(kind in ("agent", "human", "system") and more in ([], ["imported"]), "no such source", kind)
        return {"actor_kind": kind, **({"imported": True} if more else {})}

    def pairs(self, given: list[str], known: list[str]) -> dict[str, Any]:
        told = {}
        for part in given:
            key, value = pair(part)
            if value is None or key not in known:
                self.unknown(part)
            else:
                told[key] = self.typed(key, value)
        return told

    @staticmethod
    def typed(key: str, value: str) -> Any:
        text = item(value)
        if key in NUMBERS:
            return int(text)
        if key in INSTANTS or (key in ("after", "from", "to") and _INSTANT.fullmatch(text)):
            return instant(text)
        return text

    def unknown(self, what: str) -> None:
        if not self.lenient:
            raise Unreadable(f"unknown: {what!r}")


def parts(line: str) -> list[str]:
    """Split a line at its spaces; those inside a JSON string are none."""
    found, start, at = [], 0, 0
    while at < len(line):
        if line[at] == '"':
            _, at = _JSON.raw_decode(line, at)
        elif line[at] == " ":
            found.append(line[start:at])
            at = start = at + 1
        else:
            at += 1
    found.append(line[start:])
    _need(all(found), "two spaces, or one at an end", line)
    return found


def pair(part: str) -> tuple[str, str | None]:
    """Return key and value of a part; a bare one has no value."""
    found = re.match("([a-z_]+)=", part)
    return (part, None) if found is None else (found[1], part[found.end() :])


def items(value: str) -> list[str]:
    """Split a value at its commas; those inside a JSON string are none."""
    found, start, at = [], 0, 0
    while at < len(value):
        if value[at] == '"':
            _, at = _JSON.raw_decode(value, at)
        elif value[at] == ",":
            found.append(value[start:at])
            at = start = at + 1
        else:
            at += 1
    return [*found, value[start:]]


def item(text: str) -> str:
    """Return what a bare word or a JSON string says."""
    if text.startswith('"'):
        return string(text)
    _need(re.fullmatch(r'[^\s"=,\\]+', text) is not None, "not a bare word", text)
    return text


def string(text: str) -> str:
    """Return what a JSON string says."""
    value = json.loads(text)
    _need(isinstance(value, str), "no string", text)
    return str(value)


def name(text: str) -> str:
    """Return the name of a task."""
    _need(_NAME.fullmatch(text) is not None, "no name", text)
    return text


def instant(text: str) -> str:
    """Return an instant as JSON has it, but for what was cut off."""
    _need(_INSTANT.fullmatch(text) is not None, "no instant", text)
    return text[:-1]


def _need(holds: bool, what: str, where: str) -> None:
    if not holds:
        raise Unreadable(f"{what}: {where!r}")
