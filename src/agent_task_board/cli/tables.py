"""Pages for people: aligned columns, local times, colour on a terminal only."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import unicodedata
from datetime import datetime

from .. import instants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from .command import Reply

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
NAME = 16
"""Columns that a list gives to a name."""

_COLOURS = {
    "queued": "36",
    "claimed": "34",
    "running": "34;1",
    "review": "33;1",
    "waiting": "35",
    "done": "32",
    "failed": "31;1",
    "cancelled": "90",
}


def page(reply: Reply) -> str:
    """Return the page of a reply, ending in a line break."""
    if reply.data is None:
        return "nothing\n"
    lines = _PAGES[reply.page](reply.data, reply.zone)
    return clean("".join(f"{line}\n" for line in lines), keep_colours=True)


def clean(text: str, *, keep_colours: bool = False) -> str:
    """Return text without control characters: a body or an error message must not steer the terminal."""
    if keep_colours:
        parts = re.split(r"(\x1b\[[0-9;]*m)", text)
        return "".join(part if place % 2 else _CONTROL.sub("\ufffd", part) for place, part in enumerate(parts))
    return _CONTROL.sub("\ufffd", text)


def width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def cut(text: str, columns: int) -> str:
    """Return a text of at most so many columns, with an ellipsis where it was cut."""
    if width(text) <= columns:
        return text
    kept = ""
    for char in text:
        if width(kept + char) > columns - 1:
            break
        kept += char
    return kept + "\u2026"


def _colour(text: str, code: str) -> str:
    if not code or os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]], *, colour: str | None = None) -> list[str]:
    """Return aligned columns; the last one is cut to the terminal's width, that of ``colour`` shows a status."""
    cells = [[_one_line(cell) for cell in row] for row in rows]
    widths = [max(width(row[place]) for row in [list(heads), *cells]) for place in range(len(heads))]
    room = shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 10_000
    last = max(20, room - sum(widths[:-1]) - 2 * (len(heads) - 1))
    lines = []
    for number, row in enumerate([list(heads), *cells]):
        shown = []
        for place, cell in enumerate(row):
            text = cut(cell, last) if place == len(heads) - 1 else cell + " " * (widths[place] - width(cell))
            if number == 0:
                text = _colour(text, "1")
            elif heads[place] == colour:
                text = _colour(text, _COLOURS.get(cell, ""))
            shown.append(text)
        lines.append("  ".join(shown).rstrip())
    return lines


def _one_line(value: Any) -> str:
    if value is None:
        return "-"
    return re.sub(r"\s+", " ", clean(str(value)))


def _local(text: str | None, zone: str) -> str:
    """Return an instant in the board's zone, to the second."""
    if text is None:
        return "-"
    return datetime.fromisoformat(text).astimezone(instants.load_zone(zone)).strftime("%Y-%m-%d %H:%M:%S")


def _until(text: str | None) -> str:
    """Return how long it is until an instant, or ``expired``."""
    if text is None:
        return "-"
    left = instants.from_text(text) - instants.now()
    return instants.format_length(left // instants.SECOND * instants.SECOND) if left > 0 else "expired"


def _state(task: dict[str, Any]) -> str:
    """Return what a person must know beside the status."""
    words = [word for word in ("blocked", "delayed", "lease_expired", "overdue") if task[word]]
    return ", ".join(words).replace("_", " ")


def _tasks(data: dict[str, Any], zone: str) -> list[str]:
    del zone
    if not data["tasks"]:
        return ["no tasks"]
    rows = [
        (
            task["id"][-6:],
            task["status"],
            _state(task) or "-",
            task["priority"],
            cut(task["queue"], NAME),
            cut(task["claimed_by"] or (f"for {task['assignee']}" if task["assignee"] else "-"), NAME),
            _until(task["lease_expires_at"]),
            f"{task['attempts']}/{task['max_attempts']}",
            task["title"],
        )
        for task in data["tasks"]
    ]
    heads = ("ID", "STATUS", "STATE", "PRIO", "QUEUE", "AGENT", "LEASE", "TRIES", "TITLE")
    lines = _table(heads, rows, colour="STATUS")
    if data["next"]:
        lines.append(f"more: --after {data['next']}")
    return lines


def _facts_of(task: dict[str, Any], zone: str) -> list[tuple[str, str]]:
    facts = [
        ("id", task["id"]),
        ("status", ", ".join(filter(None, [task["status"], _state(task)]))),
        ("queue", f"{task['queue']}, priority {task['priority']}"),
        ("attempts", f"{task['attempts']} of {task['max_attempts']}, fence {task['fence']}"),
        ("made", f"{_local(task['created_at'], zone)} by {task['created_by']}"),
    ]
    by = f" by {task['claimed_by']}"
    instants_told = (
        ("claimed_at", "claimed", by),
        ("lease_expires_at", "lease until", ""),
        ("finished_at", "finished", ""),
        ("due_at", "due", ""),
        ("not_before", "not before", ""),
    )
    facts += [(label, _local(task[key], zone) + more) for key, label, more in instants_told if task[key]]
    facts += [(key.replace("_", " "), task[key]) for key in ("assignee", "dedupe_key", "error") if task[key]]
    if task["progress"] is not None:
        facts.append(("progress", f"{task['progress']} %"))
    facts += [(key, ", ".join(task[key])) for key in ("tags", "artifacts") if task[key]]
    if task["needs_approval"]:
        facts.append(("approval", "needed"))
    facts += [(key, json.dumps(task[key], ensure_ascii=False)) for key in ("params", "result") if task[key]]
    return facts


def _labelled(facts: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{label:<12} {_one_line(value)}" for label, value in facts]


def _receipt(data: dict[str, Any], zone: str) -> list[str]:
    task = data["task"]
    lines = [_colour(_one_line(task["title"]), "1"), *_labelled(_facts_of(task, zone))]
    if "lease" in data:
        lines += _labelled([("token", data["lease"]["token"])])
    if data.get("created") is False:
        lines.append("nothing was added: the task was there already")
    if data.get("replayed"):
        lines.append("this call was made before; nothing was changed")
    return lines


def _task(data: dict[str, Any], zone: str) -> list[str]:
    task = data["task"]
    lines = _receipt({"task": task}, zone)
    if task["body"]:
        lines += ["", *clean(task["body"]).splitlines()]
    for key, label in (("dependencies", "waits for"), ("dependents", "is waited for by")):
        if data[key]:
            lines += ["", f"{label}:"]
            lines += _table(
                ("ID", "STATUS", "TITLE"),
                [(other["id"][-6:], other["status"], other["title"]) for other in data[key]],
                colour="STATUS",
            )
    if data["attempts"]:
        lines += ["", "attempts:"]
        lines += _table(
            ("NO", "AGENT", "FENCE", "CLAIMED", "ENDED", "OUTCOME", "ERROR OR NOTE"),
            [
                (
                    attempt["number"],
                    attempt["agent"],
                    attempt["fence"],
                    _local(attempt["claimed_at"], zone),
                    _local(attempt["ended_at"], zone),
                    attempt["outcome"],
                    attempt["error"] or attempt["note"],
                )
                for attempt in data["attempts"]
            ],
        )
    for comment in data["comments"]:
        lines += [
            "",
            f"{comment['actor']}, {_local(comment['at'], zone)}:",
            *clean(comment["data"]["text"]).splitlines(),
        ]
    return lines


def _events(data: dict[str, Any], zone: str) -> list[str]:
    if not data["events"]:
        return ["no events"]
    rows = [
        (event["seq"], _local(event["at"], zone), event["task_id"][-6:], event["actor"], event["kind"], _told(event))
        for event in data["events"]
    ]
    return _table(("SEQ", "AT", "TASK", "ACTOR", "KIND", "WHAT"), rows)


def _told(event: dict[str, Any]) -> str:
    data = event["data"]
    said = [
        f"{field}: {change['from']} -> {change['to']}"
        for field, change in data.get("changes", {}).items()
        if field in ("status", "assignee", "priority", "progress", "queue", "due_at", "not_before")
        and event["kind"] not in ("created", "imported")
    ]
    said += [str(data[key]) for key in ("note", "text", "error") if data.get(key)]
    return "; ".join(said) or "-"


def _agents(data: dict[str, Any], zone: str) -> list[str]:
    if not data["agents"]:
        return ["no agents"]
    rows = [
        (
            agent["name"],
            _local(agent["last_seen_at"], zone),
            agent["completed"],
            agent["failed"],
            agent["expired"],
            ", ".join(f"{held['id'][-6:]} ({_until(held['lease_expires_at'])})" for held in agent["holds"]) or "-",
        )
        for agent in data["agents"]
    ]
    return _table(("AGENT", "LAST SEEN", "COMPLETED", "FAILED", "EXPIRED", "HOLDS"), rows)


def _stats(data: dict[str, Any], zone: str) -> list[str]:
    del zone
    statuses = list(data["by_status"])
    rows = [(queue, *(counts[status] for status in statuses)) for queue, counts in data["by_queue"].items()]
    rows.append(("all", *data["by_status"].values()))
    lines = _table(("QUEUE", *(status.upper() for status in statuses)), rows)
    lines += ["", f"ready {data['ready']}, blocked {data['blocked']}, leases expired {data['lease_expired']}"]
    if data["archived"]:
        lines.append(f"archived {data['archived']}")
    done = sum(day["done"] for day in data["finished"])
    lines.append(f"done in {data['days']} days: {done}")
    for key, label in (("lead_time", "made to finished"), ("cycle_time", "claimed to finished")):
        if data[key]["tasks"]:
            median, p90 = (instants.format_length(int(data[key][part] * instants.SECOND)) for part in ("median", "p90"))
            lines.append(f"{label}: median {median}, nine of ten within {p90}")
    return lines


def _schedules(data: dict[str, Any], zone: str) -> list[str]:
    schedules = data.get("schedules", [data.get("schedule")])
    if not schedules:
        return ["no schedules"]
    rows = [
        (
            schedule["name"],
            schedule["cron"],
            schedule["zone"],
            "paused" if schedule["paused"] else _local(schedule["next_at"], zone),
            _local(schedule["last_at"], zone),
            schedule["made"],
            schedule["task"]["title"] if isinstance(schedule["task"], dict) else schedule["task"],
        )
        for schedule in schedules
    ]
    lines = _table(("NAME", "RULE", "ZONE", "NEXT", "LAST", "MADE", "TITLE"), rows)
    coming = [f"  {occurrence['local']}" for occurrence in data.get("occurrences", ())]
    return [*lines, *(["", "coming:", *coming] if coming else [])]


def _setup(data: dict[str, Any], zone: str) -> list[str]:
    del zone
    lines = []
    for file in data["files"]:
        lines.append(f"{file['action']:<10}{file['path']}")
        lines += [f"    {line}" for line in (file.get("content") or "").splitlines()]
    return [*lines, *([data["next"]] if "next" in data else [])]


def _config(data: dict[str, Any], zone: str) -> list[str]:
    del zone
    rows = [
        (key, json.dumps(entry["value"], ensure_ascii=False), entry["source"]) for key, entry in data["values"].items()
    ]
    return [f"file: {clean(data['file'] or 'none')}", *_table(("KEY", "VALUE", "SOURCE"), rows)]


def _doctor(data: dict[str, Any], zone: str) -> list[str]:
    del zone
    rows = [(finding["check"], finding["level"], finding["message"]) for finding in data["findings"]]
    remedies = dict.fromkeys(finding["remedy"] for finding in data["findings"] if finding["remedy"])
    lines = _table(("CHECK", "LEVEL", "FOUND"), rows)
    lines += ["", "what to do:", *(f"  {remedy}" for remedy in remedies)] if remedies else []
    fixed = data.get("fixed", {"did": []})
    return [*lines, *(["", "done:", *(f"  {did}" for did in fixed["did"])] if fixed["did"] else [])]


def _demo(data: dict[str, Any], zone: str) -> list[str]:
    del zone
    return [
        f"{data['tasks']} tasks in {data['seconds']:.0f} seconds",
        *data["proof"],
        f"board: {clean(data['directory'])}",
    ]


def _comment(data: dict[str, Any], zone: str) -> list[str]:
    event = data["event"]
    return [f"comment {event['seq']} on {event['task_id']} by {event['actor']}, {_local(event['at'], zone)}"]


def _hooks(data: dict[str, Any], zone: str) -> list[str]:
    if "results" in data:
        found = [
            (one["target"], "delivered" if one["delivered"] else "failed", one.get("error") or one.get("output"))
            for one in data["results"]
        ]
        return _table(("target", "outcome", "told"), found)
    lines = [f"tells {one['target']}: {one['to']}" for one in data["targets"]] or ["tells nobody"]
    rows = [
        (one["id"], one["task_id"][-6:], one["told"], one["target"], one["status"], one["attempts"],
         _local(one["due_at"], zone), one["error"])
        for one in data["deliveries"]
    ]  # fmt: skip
    heads = ("delivery", "task", "told", "target", "status", "attempts", "next attempt", "error")
    return [*lines, "", *_table(heads, rows)]


def _facts(data: dict[str, Any], zone: str) -> list[str]:
    del zone
    return _labelled((key.replace("_", " "), json.dumps(value, ensure_ascii=False)) for key, value in data.items())


_PAGES: dict[str, Callable[[Any, str], list[str]]] = {
    "agents": _agents,
    "comment": _comment,
    "config": _config,
    "demo": _demo,
    "doctor": _doctor,
    "events": _events,
    "facts": _facts,
    "hooks": _hooks,
    "receipt": _receipt,
    "schedules": _schedules,
    "setup": _setup,
    "stats": _stats,
    "task": _task,
    "tasks": _tasks,
}
