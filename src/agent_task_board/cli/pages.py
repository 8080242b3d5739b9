"""Pages for people: the ``data`` of an answer as text, with times in the configured zone."""

from __future__ import annotations

import json
from datetime import datetime

from .. import instants
from ..printable import name
from .tables import BOLD, clean, colour, cut, facts, labelled, one_line, quoted_lines, table, table_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..model import Event
    from .command import Reply

NAME_COLUMNS = 16
"""The maximum width of a name in a list."""


def page(reply: Reply) -> str:
    """Return the page of a reply, ending in a line break."""
    if reply.data is None:
        return "nothing\n"
    if reply.page in _PAGES_WITH_TIMES:
        lines = _PAGES_WITH_TIMES[reply.page](reply.data, reply.zone)
    else:
        lines = _PAGES[reply.page](reply.data)
    return clean("".join(f"{line}\n" for line in lines), keep_colours=True)


def _local(text: str | None, zone: str) -> str:
    """Return an instant in a time zone, to the second, with its offset."""
    if text is None:
        return "-"
    return datetime.fromisoformat(text).astimezone(instants.load_zone(zone)).isoformat(" ", "seconds")


def _time_left(text: str | None) -> str:
    """Return the time until an instant, or ``expired``."""
    if text is None:
        return "-"
    left = instants.from_text(text) - instants.now()
    return instants.format_length(left // instants.SECOND * instants.SECOND) if left > 0 else "expired"


# Tasks


def _state(task: dict[str, Any]) -> str:
    """Return what a person needs to know in addition to the status."""
    words = [word for word in ("blocked", "stuck", "delayed", "lease_expired", "overdue") if task[word]]
    return ", ".join(words).replace("_", " ")


def _whose(task: dict[str, Any]) -> str:
    """Return who holds a task, else for whom it is."""
    if task["claimed_by"]:
        return name(task["claimed_by"])
    return f"for {name(task['assignee'])}" if task["assignee"] else "-"


def _columns(data: dict[str, Any], zone: str) -> list[str]:
    """Return the columns that ``list --fields`` chose."""
    if not data["tasks"]:
        return ["no tasks"]
    names = list(data["tasks"][0])
    rows = [[_cell(name, task[name], zone) for name in names] for task in data["tasks"]]
    lines = table([name.upper() for name in names], rows, status="STATUS")
    return [*lines, *_more(data)]


def _more(data: dict[str, Any]) -> list[str]:
    """Return the line under a page that is not the last one."""
    return [f"continue with --after {data['next']}"] if data.get("next") else []


def _cell(name: str, value: Any, zone: str) -> Any:
    if value is None or isinstance(value, str):
        return _local(value, zone) if value and (name.endswith("_at") or name == "not_before") else value
    return json.dumps(value, ensure_ascii=False)


def _tasks(data: dict[str, Any]) -> list[str]:
    if not data["tasks"]:
        return ["no tasks"]
    rows = [
        (
            task["id"][-6:],
            task["status"],
            _state(task) or "-",
            task["priority"],
            cut(name(task["queue"]), NAME_COLUMNS),
            cut(_whose(task), NAME_COLUMNS),
            _time_left(task["lease_expires_at"]),
            f"{task['attempts']}/{task['max_attempts']}",
            task["title"],
        )
        for task in data["tasks"]
    ]
    heads = ("ID", "STATUS", "STATE", "PRIO", "QUEUE", "AGENT", "LEASE", "ATTEMPTS", "TITLE")
    spare = ("ATTEMPTS", "QUEUE", "PRIO", "LEASE", "AGENT", "STATE")
    head, *lines = table(heads, rows, status="STATUS", spare=spare)
    return [head, *_with_snippets(lines, data["tasks"]), *_more(data)]


def _with_snippets(lines: list[str], tasks: list[dict[str, Any]]) -> list[str]:
    """Return the lines of tasks, each of a search followed by the part of a text that matches, after a bar."""
    found = []
    for line, task in zip(lines, tasks, strict=True):
        found.append(line)
        if task.get("snippet", task["title"]) != task["title"]:
            found.append(f"        | {one_line(task['snippet'])}")
    return found


def _needs(data: dict[str, Any]) -> list[str]:
    rows = [
        (reason, found["count"], ", ".join(one[-6:] for one in found["ids"]))
        for reason, found in data["needs_you"].items()
        if found["count"]
    ]
    return table(("NEEDS YOU", "TASKS", "FIRST"), rows)


def _why(data: dict[str, Any]) -> list[str]:
    task, found = data["task"], data["why"]
    lines = [f"{task['id'][-6:]} {colour(one_line(task['title']), BOLD)}", one_line(found["text"])]
    if len(found["chain"]) > 1:
        rows = [(one["id"][-6:], one["status"], one["title"]) for one in found["chain"]]
        lines += ["", "one behind the other:", *table(("ID", "STATUS", "TITLE"), rows, status="STATUS")]
    return [*lines, f"what would change it: {one_line(found['change'])}"]


def _why_nothing(data: dict[str, Any]) -> list[str]:
    found = data["why"]
    rows = [
        (one["count"], one["reason"], one["first"]["id"][-6:], one["text"], one["change"]) for one in found["reasons"]
    ]
    heads = ("TASKS", "REASON", "FIRST", "WHY IT WAITS", "WHAT WOULD CHANGE IT")
    return [found["text"], *(["", *table(heads, rows, wrap=True)] if rows else [])]


def _facts_of(task: dict[str, Any], zone: str) -> list[tuple[str, str]]:
    facts = [
        ("id", task["id"]),
        ("status", ", ".join(filter(None, [task["status"], _state(task)]))),
        ("queue", f"{name(task['queue'])}, priority {task['priority']}"),
        ("attempts", f"{task['attempts']} of {task['max_attempts']}, fence {task['fence']}"),
        ("created", f"{_local(task['created_at'], zone)} by {name(task['created_by'])}"),
    ]
    times = (
        ("claimed_at", "claimed", f" by {name(task['claimed_by'] or '')}"),
        ("lease_expires_at", "lease until", ""),
        ("finished_at", "finished", ""),
        ("due_at", "due", ""),
        ("not_before", "not before", ""),
    )
    facts += [(label, _local(task[key], zone) + more) for key, label, more in times if task[key]]
    if task["assignee"]:
        facts.append(("assignee", name(task["assignee"])))
    facts += [(key.replace("_", " "), task[key]) for key in ("dedupe_key", "error") if task[key]]
    if task["max_runtime"] is not None:
        facts.append(("runtime", f"at most {instants.format_length(task['max_runtime'] * instants.SECOND)}"))
    if task["progress"] is not None:
        facts.append(("progress", f"{task['progress']} %"))
    facts += [(key, ", ".join(map(name, task[key]))) for key in ("tags", "artifacts") if task[key]]
    if task["needs_approval"]:
        facts.append(("approval", "required"))
    facts += [(key, json.dumps(task[key], ensure_ascii=False)) for key in ("params", "result") if task[key]]
    return facts


def _receipt(data: dict[str, Any], zone: str) -> list[str]:
    task = data["task"]
    lines = [colour(one_line(task["title"]), BOLD), *labelled(_facts_of(task, zone))]
    if "lease" in data:
        lines += labelled([("token", data["lease"]["token"])])
    for note in data.get("notes", ()):
        lines += ["", f"{note['kind'].replace('_', ' ')} by {_author(note)}, {_local(note['at'], zone)}:"]
        lines += quoted_lines(note["text"])
    if data.get("created") is False:
        lines.append("no task added: an unfinished task has this dedupe key")
    if data.get("replayed"):
        lines.append("repeated call: nothing changed")
    return lines


def _task(data: dict[str, Any], zone: str) -> list[str]:
    task = data["task"]
    lines = _receipt({"task": task}, zone)
    if "returned" in data:
        back = data["returned"]
        head = f"returned by {_author({'actor': back['by'], **back})}, {_local(back['at'], zone)}:"
        lines[1:1] = [colour(one_line(head), BOLD), *quoted_lines(back["note"] or ""), ""]
    if "stuck_by" in data:
        from ..board.stuck import why

        lines += ["", one_line(why(task, data["stuck_by"]))]
    elif "why" in data:
        lines += labelled([("why", one_line(data["why"]))])
    if task["body"]:
        lines += ["", *quoted_lines(task["body"])]
    for key, label in (("dependencies", "depends on"), ("dependents", "required by")):
        if data[key]:
            lines += ["", f"{label}:"]
            lines += table(
                ("ID", "STATUS", "TITLE"),
                [(other["id"][-6:], other["status"], other["title"]) for other in data[key]],
                status="STATUS",
            )
    if data["attempts"]:
        lines += ["", "attempts:"]
        lines += table(
            ("NO", "AGENT", "FENCE", "CLAIMED", "ENDED", "OUTCOME", "ERROR OR NOTE"),
            [
                (
                    attempt["number"],
                    name(attempt["agent"]),
                    attempt["fence"],
                    _local(attempt["claimed_at"], zone),
                    _local(attempt["ended_at"], zone),
                    "returned" if attempt.get("returned") else attempt["outcome"],
                    attempt["error"] or attempt["note"],
                )
                for attempt in data["attempts"]
            ],
            spare=("FENCE", "CLAIMED"),
            wrap=True,
        )
    for attempt in data["attempts"]:
        if attempt.get("output"):
            lines += ["", f"output of attempt {attempt['number']}:", *quoted_lines(attempt["output"].rstrip())]
    for comment in data["comments"]:
        lines += [
            "",
            f"comment by {_author(comment)}, {_local(comment['at'], zone)}:",
            *quoted_lines(comment["data"]["text"]),
        ]
    return lines


def _results(data: dict[str, Any]) -> list[str]:
    """Return what became of each of several tasks."""
    rows = [
        (one["task"]["id"][-6:], one["task"]["status"], "-", one["task"]["title"])
        if one["ok"]
        else (one["id"], "-", one["error"]["code"], one["error"]["message"])
        for one in data["results"]
    ]
    return table(("ID", "STATUS", "REFUSED", "TITLE OR MESSAGE"), rows, status="STATUS", wrap=True)


def _home(data: dict[str, Any]) -> list[str]:
    if not data["exists"]:
        return [
            f"no board at {one_line(data['path'])}",
            "go on with:",
            '  atb add "Title"   add the first task and create the board here',
            "  atb demo          watch several agents at work",
            "  atb --help        all commands",
        ]
    counts = data["by_status"]
    at_work = counts["claimed"] + counts["running"]
    words = [f"{data['ready']} ready", f"{data['blocked']} blocked", f"{at_work} in progress"]
    words[2:2] = [f"{data['stuck']} stuck"] if data["stuck"] else []
    words += [f"{counts[status]} {status}" for status in ("review", "done", "failed", "cancelled") if counts[status]]
    lines = [f"board {one_line(data['path'])}", ", ".join(words)]
    if data["lease_expired"]:
        lines.append(f"{data['lease_expired']} with an expired lease: the next claim or `atb tick` requeues them")
    needing = data["needs_you"]
    lines.append("needs you:" if needing else "nothing needs you")
    rows = [(f"  {task['id'][-6:]}", "stuck" if task["stuck"] else task["status"], task["title"]) for task in needing]
    lines += table_rows(rows, status=1)
    example = needing[0]["id"][-6:] if needing else "ID"
    return [
        *lines,
        "go on with:",
        f"  atb approve {example}   or: atb reject {example} --note TEXT"
        if needing and needing[0]["status"] == "review"
        else "  atb list         the work that is left",
        f"  atb show {example:<7} one task" if needing else '  atb add "Title"  add a task',
        "  atb serve        the board in a browser",
    ]


def _served(data: dict[str, Any]) -> list[str]:
    lines = [one_line(url) for url in data["urls"]]
    return lines if data["link"] is None else [*lines, f"sign in once, within 10 minutes: {one_line(data['link'])}"]


def _opened(data: dict[str, Any]) -> list[str]:
    return [one_line(data["link"])]


def _keys(data: dict[str, Any], zone: str) -> list[str]:
    if "key" in data:
        return [f"key of {name(data['name'])}, shown only now:", data["key"]]
    if "revoked" in data:
        keys = ", ".join(f"{one['id']} of {name(one['name'])}" for one in data["revoked"]) or "no keys"
        return [f"revoked: {keys}; sessions ended: {data['sessions']}"]
    rows = [(one["id"], one["name"], _local(one["created_at"], zone)) for one in data["keys"]]
    sessions = [f"session since {_local(one['created_at'], zone)}" for one in data["sessions"]]
    return [*(table(("ID", "AGENT", "CREATED"), rows) if rows else ["no keys"]), *sessions]


def _added(data: dict[str, Any]) -> list[str]:
    return table(("ID", "TITLE"), [(task["id"][-6:], task["title"]) for task in data["tasks"]])


def _comment(data: dict[str, Any], zone: str) -> list[str]:
    event = data["event"]
    return [f"comment {event['seq']} on {event['task_id']} by {name(event['actor'])}, {_local(event['at'], zone)}"]


# Queries


def _events(data: dict[str, Any], zone: str) -> list[str]:
    if not data["events"]:
        return ["no events"]
    rows = [
        (event["seq"], _local(event["at"], zone), event["task_id"][-6:], _author(event), event["kind"], _changes(event))
        for event in data["events"]
    ]
    return table(("SEQ", "AT", "TASK", "ACTOR", "KIND", "CHANGES"), rows, spare=("SEQ", "ACTOR", "AT"))


def event_line(event: Event, zone: str) -> str:
    """Return an event on a line of its own, ending in a line break."""
    parts = (str(event["seq"]), _local(event["at"], zone), event["task_id"][-6:], _author(event), event["kind"])
    return "  ".join(one_line(part) for part in (*parts, _changes(event))) + "\n"


def _author(event: Event | dict[str, Any]) -> str:
    """Return the actor of an event; of an imported one, nobody on this board saw who it was."""
    return f"{name(event['actor'])} (imported)" if event.get("imported") else name(event["actor"])


def _changes(event: Event | dict[str, Any]) -> str:
    data = event["data"]
    changes = [
        f"{field}: {one_line(change['from'])} -> {one_line(change['to'])}"
        for field, change in data.get("changes", {}).items()
        if field in ("status", "assignee", "priority", "progress", "queue", "due_at", "not_before")
        and event["kind"] not in ("created", "imported")
    ]
    changes += [f"{key}: {data[key]}" for key in ("note", "error") if data.get(key)]
    changes += [str(data["text"])] if data.get("text") else []
    return "; ".join(changes) or "-"


def _agents(data: dict[str, Any], zone: str) -> list[str]:
    if not data["agents"]:
        return ["no agents"]
    rows = [
        (
            name(agent["name"]),
            _local(agent["last_seen_at"], zone),
            agent["completed"],
            agent["failed"],
            agent["expired"],
            ", ".join(f"{held['id'][-6:]} ({_time_left(held['lease_expires_at'])})" for held in agent["holds"]) or "-",
        )
        for agent in data["agents"]
    ]
    return table(
        ("AGENT", "LAST SEEN", "COMPLETED", "FAILED", "EXPIRED", "HOLDS"),
        rows,
        spare=("EXPIRED", "FAILED", "COMPLETED"),
    )


def _stats(data: dict[str, Any]) -> list[str]:
    statuses = list(data["by_status"])
    rows = [(name(queue), *(counts[status] for status in statuses)) for queue, counts in data["by_queue"].items()]
    rows.append(("all", *data["by_status"].values()))
    lines = table(("QUEUE", *(status.upper() for status in statuses)), rows)
    lines += ["", f"ready {data['ready']}, blocked {data['blocked']}, leases expired {data['lease_expired']}"]
    if data["stuck"]:
        lines.append(f"stuck {data['stuck']}: see `atb list --stuck`")
    if data["archived"]:
        lines.append(f"archived {data['archived']}")
    done = sum(day["done"] for day in data["finished"])
    lines.append(f"done in {data['days']} days: {done}")
    for key, label in (("lead_time", "created to finished"), ("cycle_time", "claimed to finished")):
        if data[key]["tasks"]:
            median, p90 = (instants.format_length(int(data[key][part] * instants.SECOND)) for part in ("median", "p90"))
            lines.append(f"{label}: median {median}, 90th percentile {p90}")
    return lines


# Features and maintenance


def _schedules(data: dict[str, Any]) -> list[str]:
    schedules = data.get("schedules", [data.get("schedule")])
    if not schedules:
        return ["no schedules"]
    rows = [
        (
            name(schedule["name"]),
            schedule["cron"],
            schedule["zone"],
            "paused" if schedule["paused"] else _local(schedule["next_at"], schedule["zone"]),
            _local(schedule["last_at"], schedule["zone"]),
            schedule["made"],
            schedule["task"]["title"] if isinstance(schedule["task"], dict) else schedule["task"],
        )
        for schedule in schedules
    ]
    lines = table(("NAME", "RULE", "ZONE", "NEXT", "LAST", "CREATED", "TITLE"), rows, spare=("CREATED", "LAST", "RULE"))
    occurrences = [f"  {_local(one['at'], data['schedule']['zone'])}" for one in data.get("occurrences", ())]
    return [*lines, *(["", "next occurrences:", *occurrences] if occurrences else [])]


def _hooks(data: dict[str, Any], zone: str) -> list[str]:
    if "results" in data:
        results = [
            (one["target"], "delivered" if one["delivered"] else "failed", one.get("error") or one.get("output"))
            for one in data["results"]
        ]
        return table(("TARGET", "RESULT", "ERROR OR OUTPUT"), results, wrap=True)
    lines = [f"{one['target']}: {one_line(one['to'])}" for one in data["targets"]] or ["no targets configured"]
    rows = [
        (one["id"], one["task_id"][-6:], one["told"], one["target"], one["status"], one["attempts"],
         _local(one["due_at"], zone), one["error"])
        for one in data["deliveries"]
    ]  # fmt: skip
    heads = ("DELIVERY", "TASK", "EVENT", "TARGET", "STATUS", "ATTEMPTS", "NEXT ATTEMPT", "ERROR")
    return [*lines, "", *table(heads, rows)]


def _setup(data: dict[str, Any]) -> list[str]:
    lines = []
    for file in data["files"]:
        lines.append(f"{file['action']:<10}{one_line(file['path'])}")
        lines += [f"    {line}" for line in clean(file.get("content") or "").splitlines()]
    return [*lines, *([f"board     {one_line(data['data_dir'])}", clean(data["next"])] if "next" in data else [])]


def _config(data: dict[str, Any]) -> list[str]:
    rows = [
        (key, None if entry["value"] is None else json.dumps(entry["value"], ensure_ascii=False), entry["source"])
        for key, entry in data["values"].items()
    ]
    return [f"file: {one_line(data['file'] or 'none')}", *table(("KEY", "VALUE", "SOURCE"), rows)]


def _doctor(data: dict[str, Any]) -> list[str]:
    rows = [(finding["check"], finding["level"], finding["message"]) for finding in data["findings"]]
    remedies = dict.fromkeys(finding["remedy"] for finding in data["findings"] if finding["remedy"])
    lines = table(("CHECK", "LEVEL", "FINDING"), rows, wrap=True)
    lines += ["", "what to do:", *(f"  {one_line(remedy)}" for remedy in remedies)] if remedies else []
    fixed = data.get("fixed", {"did": []})
    return [*lines, *(["", "done:", *(f"  {one_line(did)}" for did in fixed["did"])] if fixed["did"] else [])]


def _demo(data: dict[str, Any]) -> list[str]:
    return [
        f"{data['tasks']} tasks in {data['seconds']:.0f} seconds",
        f"board: {one_line(data['directory'])}",
        *map(clean, data["proof"]),
    ]


_PAGES: dict[str, Callable[[Any], list[str]]] = {
    "added": _added,
    "config": _config,
    "home": _home,
    "results": _results,
    "schedules": _schedules,
    "opened": _opened,
    "served": _served,
    "demo": _demo,
    "doctor": _doctor,
    "facts": facts,
    "needs": _needs,
    "setup": _setup,
    "stats": _stats,
    "tasks": _tasks,
    "why": _why,
    "why_nothing": _why_nothing,
}
_PAGES_WITH_TIMES: dict[str, Callable[[Any, str], list[str]]] = {
    "agents": _agents,
    "comment": _comment,
    "events": _events,
    "hooks": _hooks,
    "keys": _keys,
    "receipt": _receipt,
    "columns": _columns,
    "task": _task,
}
"""Pages that show instants, and therefore take the time zone."""
