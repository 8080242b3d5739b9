"""Hold the board's own history against the callers' journals, and sort the calls by task.

Every call leaves its mark in the event that it causes, as title, note, error or comment. So an accepted call must have
one event with its mark, a refused one none, and a call without an answer at most one; and that tells when, and to
which task, a call without an answer was done.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.proof.journal import Entry, instant
from tests.proof.lifecycle import FINAL, LEASED, Call

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SLACK = 1
"""Milliseconds by which the board's clock and a caller's may seem to differ, since both are cut to whole ones."""

KINDS = {
    "add": "created",
    "claim": "commented",
    "complete": "completed",
    "fail": "failed",
    "release": "released",
    "handoff": "handed_off",
    "done": "completed",
    "approve": "approved",
    "reject": "rejected",
    "reassign": "reassigned",
    "cancel": "cancelled",
    "update": "updated",
    "comment": "commented",
}
"""The event that bears the mark of a verb; of a claim it is the remark that comes with it."""

UNTOUCHED = ("busy",)
"""Answers that say that nothing was done."""

EXPECTED = ("ok", "lease_lost", "not_permitted", "busy", "conflict")


class Ledger:
    """All events by mark and by task, and all calls by mark."""

    def __init__(self, entries: Iterable[Entry], events: Sequence[dict[str, Any]]) -> None:
        self.entries = list(entries)
        self.events = events
        self.by_task: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.by_mark: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.groups: dict[str, list[Entry]] = defaultdict(list)
        for event in events:
            self.by_task[event["task_id"]].append(event)
            mark = mark_of(event)
            if mark is not None:
                self.by_mark[mark].append(event)
        for entry in self.entries:
            self.groups[entry.mark].append(entry)
        self._effects = {mark: self._effect(mark) for mark in self.groups}

    def _effect(self, mark: str) -> tuple[Entry, dict[str, Any]] | None:
        """Return the call that caused the event with a mark: the one that was told so, else one without an answer."""
        events = self.by_mark.get(mark)
        if not events:
            return None
        event, at = events[0], instant(events[0]["at"])
        calls = [entry for entry in self.groups[mark] if entry.accepted and not entry.replayed]
        calls += [entry for entry in self.groups[mark] if entry.answer is None and entry.begun <= at + SLACK]
        return (calls[0], event) if calls else None

    def calls_by_task(self) -> dict[str, list[Call]]:
        """Return the calls of each task, for the search of ``checker.py``."""
        calls: dict[str, list[Call]] = defaultdict(list)
        for entry in self.entries:
            task = self._task(entry)
            call = None if task is None else self._call(entry)
            if task is not None and call is not None:
                calls[task].append(call)
            other = (entry.answer or {}).get("other")
            if call is not None and other is not None:  # whoever holds the dedupe key was seen on the way
                calls[other["id"]].append(call._replace(verb="meet", answer={"code": "ok", "task": other}))
        return calls

    def _task(self, entry: Entry) -> str | None:
        told = (entry.answer or {}).get("task")
        if told is not None:
            return str(told["id"])
        if entry.task is not None:
            return entry.task
        events = self.by_mark.get(entry.mark)
        return str(events[0]["task_id"]) if events else None

    def _call(self, entry: Entry) -> Call | None:
        answer, verb = entry.answer, entry.verb
        begun, ended, optional, clock = entry.begun - SLACK, entry.ended, False, None
        if answer is None:
            effect = self._effects[entry.mark]
            if effect is not None and effect[0] is entry:
                begun = clock = instant(effect[1]["at"])
            elif effect is None and self._bears_mark(entry):
                return None  # the history has no trace of it, so it was not done
            else:
                optional = True
        elif answer["code"] in UNTOUCHED or answer.get("nothing"):
            return None
        else:
            ended += SLACK
            if entry.accepted and not entry.replayed and self._is_clock_read(entry):
                clock = answer.get("task", {}).get("at")
        if verb == "add" and answer is not None and answer.get("created") is False:
            verb = "meet"
        return Call(entry.id, verb, entry.agent, entry.person, entry.args, begun, ended, answer, optional, clock)

    @staticmethod
    def _bears_mark(entry: Entry) -> bool:
        return entry.verb in KINDS or entry.args.get("noted", False)

    @staticmethod
    def _is_clock_read(entry: Entry) -> bool:
        """Say whether ``updated_at`` of the answer is the instant of this very call."""
        if entry.verb == "heartbeat":
            return bool(entry.args.get("noted"))
        return entry.verb not in ("show", "comment") and (entry.answer or {}).get("created") is not False

    def told_before(self, begun: int, events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return those of some events of which a caller had been told before an instant.

        What an event says of the time is no measure: it was read before the transaction ended, which may take long.
        """
        return [
            event
            for event in events
            if any(entry.accepted and entry.ended < begun for entry in self.groups.get(mark_of(event) or "", ()))
        ]

    # What must be true of the history itself

    def violations(self) -> Iterator[str]:
        """Yield what is wrong with the history, or between it and the journals."""
        yield from self._numbers()
        yield from self._answers()
        yield from self._marks()
        yield from self._fences_told()
        for task, events in self.by_task.items():
            yield from _attempts(task, events)
        yield from self._dependencies()
        yield from self._keys()

    def _numbers(self) -> Iterator[str]:
        for expected, event in enumerate(self.events, 1):
            if event["seq"] != expected:
                yield f"event {event['seq']} stands where {expected} should"
                return

    def _answers(self) -> Iterator[str]:
        for entry in self.entries:
            if entry.answer is not None and entry.answer["code"].partition("/")[0] not in EXPECTED:
                yield f"an answer that nothing explains: {entry}"
            elif entry.answer is not None and entry.answer["code"] == "lease_lost" and self._task(entry) is None:
                yield f"a lease was lost that nobody was given: {entry}"

    def _marks(self) -> Iterator[str]:
        for mark, calls in self.groups.items():
            events = self.by_mark.get(mark, [])
            done = [entry for entry in calls if entry.accepted and not entry.replayed and self._leaves_event(entry)]
            unknown = [entry for entry in calls if entry.answer is None]
            if len(events) > 1 or len(done) > 1:
                yield f"done {max(len(events), len(done))} times: {calls}: {events}"
            elif done and not events:
                yield f"acknowledged, but the history has no event of it: {done[0]}"
            elif events and not done and not unknown:
                yield f"refused, but the history has an event of it: {calls}: {events}"
            elif events and done:
                entry, at = done[0], instant(events[0]["at"])
                if not entry.begun - SLACK <= at <= entry.ended + SLACK:
                    yield f"done at {at}, outside the call: {entry}"
                told = entry.task or (entry.answer or {}).get("task", {}).get("id")
                if told != events[0]["task_id"]:
                    yield f"done to another task than told: {entry}: {events[0]}"
                if events[0]["kind"] != KINDS.get(entry.verb, events[0]["kind"]):
                    yield f"another event than that of the verb: {entry}: {events[0]}"
        for mark in self.by_mark.keys() - self.groups.keys():
            yield f"an event of a call that nobody made: {self.by_mark[mark]}"

    def _leaves_event(self, entry: Entry) -> bool:
        answer = entry.answer or {}
        return self._bears_mark(entry) and answer.get("created") is not False and not answer.get("nothing")

    def _fences_told(self) -> Iterator[str]:
        """Yield fences that were given out twice, or that no event has."""
        given: dict[tuple[str, int], str] = {}
        written = {
            (event["task_id"], event["data"]["changes"]["fence"]["to"])
            for event in self.events
            if "fence" in event["data"].get("changes", {})
        }
        for entry in self.entries:
            answer = entry.answer or {}
            if entry.verb == "heartbeat" or "lease" not in answer or answer["lease"]["fence"] is None:
                continue
            fence = answer["task"]["id"], answer["lease"]["fence"]
            if fence in given:
                yield f"fence {fence} was given out to {given[fence]} and to {entry}"
            if fence not in written:
                yield f"no event has the fence that was given out: {entry}"
            given[fence] = repr(entry)

    def _dependencies(self) -> Iterator[str]:
        """Yield claims of tasks whose dependencies were not all done; a person may finish such a task."""
        waits: dict[str, list[str]] = {}
        done: set[str] = set()
        for event in self.events:
            changes = event["data"].get("changes", {})
            if "blocked_by" in changes:
                waits[event["task_id"]] = changes["blocked_by"]["to"]
            if changes.get("status", {}).get("to") == "done":
                done.add(event["task_id"])
            if (
                event["kind"] == "claimed"
                and event.get("actor_kind") != "human"
                and not done.issuperset(waits.get(event["task_id"], ()))
            ):
                yield f"claimed while blocked: {event}"

    def _keys(self) -> Iterator[str]:
        """Yield dedupe keys that two unfinished tasks held at once."""
        keys: dict[str, str] = {}
        holders: dict[str, set[str]] = defaultdict(set)
        for event in self.events:
            task, changes = event["task_id"], event["data"].get("changes", {})
            if "dedupe_key" in changes and changes["dedupe_key"]["to"] is not None:
                keys[task] = changes["dedupe_key"]["to"]
            if task in keys and "status" in changes:
                held = holders[keys[task]]
                held.discard(task) if changes["status"]["to"] in FINAL else held.add(task)
                if len(held) > 1:
                    yield f"two unfinished tasks with one key: {sorted(held)}, at {event}"


def mark_of(event: dict[str, Any]) -> str | None:
    """Return the mark that a call left in an event."""
    data = event["data"]
    title = data.get("changes", {}).get("title", {}).get("to")
    mark = title or data.get("text") or data.get("note") or (data.get("error") if event["kind"] == "failed" else None)
    return str(mark) if mark and str(mark).startswith("<") else None


def _attempts(task: str, events: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield where leases overlap, fences do not grow, time runs back, or something follows ``done``."""
    status: str | None = None
    fence, latest, ends, moved = 0, 0, 0, False
    for event in events:
        kind, at, changes = event["kind"], instant(event["at"]), event["data"].get("changes", {})
        if at < latest:
            yield f"task {task}: time runs back at {event}"
        latest = at
        if "status" in changes:
            if changes["status"]["from"] != status:
                yield f"task {task}: {status} before {event}"
            if status == "done":
                yield f"task {task}: done is final, but {event}"
            if kind == "claimed" and status in LEASED:
                yield f"task {task}: claimed while leased: {event}"
            status = changes["status"]["to"]
        if "fence" in changes:
            if (changes["fence"]["from"], changes["fence"]["to"]) != (fence, fence + 1):
                yield f"task {task}: fence {fence} before {event}"
            fence = changes["fence"]["to"]
        if kind == "claimed":
            lease = event["data"].get("lease_expires_at")  # none: done at once, without a lease
            ends, moved = (at + 1, False) if lease is None else (instant(lease), False)
        elif kind in ("resumed", "started", "progressed"):
            moved = True  # renewed, so that it may end later, or earlier where that was asked for
        if kind == "expired" and not moved and at < ends:
            yield f"task {task}: expired {ends - at} ms before its end: {event}"
        if kind in ("completed", "failed", "released", "handed_off") and not moved and at >= ends:
            yield f"task {task}: ended by its holder {at - ends} ms after its lease: {event}"
