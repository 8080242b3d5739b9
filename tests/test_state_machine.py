"""Every verb of the board in any order, on a clock that runs both ways, against the plain model of ``model.py``.

The model says what each call answers, on which grounds it may be refused, and what is then to be seen. After each step
the board is compared with it from outside, and its file through a second connection. No lease token is ever thrown
away, so the stale ones are tried again and again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agent_task_board import Actor, BoardError, Receipt
from agent_task_board.board.stuck import NAMED
from agent_task_board.model import STATUSES
from tests.history import UNBORN, fold
from tests.model import EXPIRED, FINAL, LEASED, SECOND, Answer, Lease, Model, Refused, Task, text
from tests.support import MARIA, Clock, open_board, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_task_board import Board
    from agent_task_board.model import Event

DATES = ("due_at", "not_before")

# Few of everything, so that calls get in each other's way.

agents = st.sampled_from(["ada", "Ada", "bob"])
actors = st.sampled_from([MARIA, Actor("ada", "human"), Actor("bob", "agent")])
queues = st.sampled_from(["default", "docs", "web"])
tags = st.lists(st.sampled_from(["red", "blue"]), max_size=2, unique=True)
priorities = st.sampled_from([-1, 0, 5])
budgets = st.sampled_from([1, 2, 3])
keys = st.sampled_from(["key-1", "key-2"])
request_ids = st.sampled_from([None, None, None, "request-1", "request-2", "request-3"])
notes = st.sampled_from([None, "look at the log"])
lengths = st.sampled_from([None, 1, 60, 3_600])
pauses = st.sampled_from([None, 0, 1, 3_600])
steps = st.sampled_from([0.001, 1, 31, 61, 901, 86_401, -1, -61, -901, -86_401])
soon = st.sampled_from([None, None, None, -60, 0, 1, 61, 3_600])
"""Seconds from now, for an instant that is given."""


def among(some: Callable[[Any], Sequence[Any]]) -> st.SearchStrategy[Any]:
    """Draw from what the machine has at this step."""
    return st.runner().flatmap(lambda machine: st.sampled_from(some(machine)))


def mostly(*statuses: str) -> st.SearchStrategy[Any]:
    """Draw a task in one of these statuses, if there is any, two times out of three; else any task."""
    return st.sampled_from([statuses, statuses, STATUSES]).flatmap(
        lambda wanted: among(lambda machine: machine.tasks_in(*wanted) or machine.model.tasks)
    )


def there_is(*statuses: str) -> Callable[[Any], Any]:
    """Return the precondition that some task is in one of these statuses."""
    return lambda machine: machine.tasks_in(*statuses)


any_task = among(lambda machine: machine.model.tasks)
any_lease = st.sampled_from(["live", "live", "latest", "any"]).flatmap(
    lambda wanted: among(lambda machine: machine.leases_that_are(wanted) or machine.leases)
)
"""Two times out of four one that still holds, else perhaps one that ran out, or was replaced or ended long ago."""
some_tasks = st.lists(any_task, max_size=2, unique=True)


def new_task(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw the arguments of an add, most of them left out."""
    return st.fixed_dictionaries(
        {"title": st.just("a task"), "priority": priorities, "needs_approval": st.booleans()},
        optional={"queue": queues, "assignee": agents, "tags": tags, "max_attempts": budgets, **more},
    )


def one_edit(field: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return values.map(lambda value: {field: value})


edits = st.lists(
    st.one_of(
        one_edit("title", st.sampled_from(["a task", "another"])),
        one_edit("body", st.sampled_from(["", "why and how"])),
        one_edit("params", st.sampled_from([{}, {"depth": 3}])),
        one_edit("queue", queues),
        one_edit("priority", priorities),
        one_edit("assignee", st.none() | agents),
        one_edit("due_at", soon),
        one_edit("not_before", soon),
        one_edit("dedupe_key", st.none() | keys),
        one_edit("max_attempts", budgets),
        one_edit("max_runtime", st.sampled_from([None, 60])),
        one_edit("needs_approval", st.booleans()),
        one_edit("tags", tags),
        one_edit("add_tags", tags),
        one_edit("drop_tags", tags),
        one_edit("depends_on", some_tasks),
        one_edit("add_depends_on", some_tasks),
        one_edit("drop_depends_on", some_tasks),
    ),
    max_size=3,
).map(lambda few: {field: value for edit in few for field, value in edit.items()})


class BoardBesideModel(RuleBasedStateMachine):
    """One board in a directory of its own, and the model that says what it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.latest = self.clock.now
        self.directory = tempfile.mkdtemp(prefix="board-")
        self.board = open_board(self.directory, self.clock)
        self.board.tick()
        self.file = sqlite3.connect(f"file:{self.board.path}?mode=ro", uri=True, isolation_level=None)
        self.model = Model(self.clock)
        self.leases: list[Lease] = []
        self.secrets: list[str] = []
        self.asked: dict[str, tuple[str, dict[str, Any]]] = {}
        self.touched: Task | None = None
        self.expected: dict[str, dict[str, Any]] = {}
        self.revision = 0
        self.rows: list[tuple[Any, ...]] = []
        self.histories: dict[str, list[Event]] = {}
        self.last_event = 0

    def teardown(self) -> None:
        try:
            self.no_token_was_ever_stored()
        finally:
            self.file.close()
            self.board.close()
            shutil.rmtree(self.directory)

    def tasks_in(self, *statuses: str) -> list[Task]:
        return [task for task in self.model.tasks if task.status in statuses]

    def leases_that_are(self, wanted: str) -> list[Lease]:
        return [
            lease
            for lease in self.leases
            if wanted == "any"
            or (wanted == "latest" and lease.task.lease is lease)
            or (wanted == "live" and self.model.holds(lease))
        ]

    # Adding

    @initialize(
        tasks=st.lists(
            st.tuples(new_task(), st.none() | agents, st.sampled_from([None, "heartbeat", "complete", "fail"])),
            min_size=2,
            max_size=6,
        )
    )
    def there_are_tasks_in_several_statuses(self, tasks: list[tuple[dict[str, Any], str | None, str | None]]) -> None:
        for task, agent, verb in tasks:
            if agent is None:
                self.call("add", **task)
                continue
            self.call("add", **{**task, "assignee": agent}, claim=True, agent=agent)
            if verb == "fail":
                self.call("fail", self.leases[-1], "it broke", no_retry=True)
            elif verb is not None:
                self.call(verb, self.leases[-1])

    @precondition(lambda self: len(self.model.tasks) < 10)
    @rule(
        task=new_task(depends_on=some_tasks, dedupe_key=keys, actor=actors),
        due_at=soon,
        not_before=soon,
        request_id=request_ids,
    )
    def add(self, task: dict[str, Any], due_at: float | None, not_before: float | None, request_id: str | None) -> None:
        self.call(
            "add", **task, due_at=self.at(due_at), not_before=self.at(not_before), request_id=request_id
        )  # fmt: skip

    @precondition(lambda self: len(self.model.tasks) < 10)
    @rule(
        task=new_task(depends_on=some_tasks, dedupe_key=keys),
        not_before=soon,
        agent=agents,
        lease=lengths,
        request_id=request_ids,
    )
    def add_and_claim(
        self,
        task: dict[str, Any],
        not_before: float | None,
        agent: str,
        lease: int | None,
        request_id: str | None,
    ) -> None:
        self.call(
            "add", **task, not_before=self.at(not_before), claim=True, agent=agent, lease=lease, request_id=request_id
        )

    # Taking and keeping a lease

    @rule(agent=agents, lease=lengths, request_id=request_ids)
    def claim_next(self, agent: str, lease: int | None, request_id: str | None) -> None:
        self.call("claim", agent=agent, lease=lease, request_id=request_id)

    @rule(agent=agents, queues=st.lists(queues, max_size=3), tags=st.just([]) | tags)
    def claim_next_of_some_queues(self, agent: str, queues: list[str], tags: list[str]) -> None:
        self.call("claim", agent=agent, queues=queues, tags=tags)

    @rule(
        agent=agents,
        task=mostly("queued"),
        lease=lengths,
        if_status=st.sampled_from([None, "queued", "claimed"]),
        comment=notes,
        request_id=request_ids,
    )
    def claim_that_one(
        self,
        agent: str,
        task: Task,
        lease: int | None,
        if_status: str | None,
        comment: str | None,
        request_id: str | None,
    ) -> None:
        self.call(
            "claim", agent=agent, task=task, lease=lease, if_status=if_status, comment=comment, request_id=request_id
        )  # fmt: skip

    @precondition(lambda self: self.asked)
    @rule(request_id=among(lambda machine: sorted(machine.asked)))
    def repeat_a_call(self, request_id: str) -> None:
        verb, arguments = self.asked[request_id]
        self.call(verb, **arguments)

    @precondition(there_is(*LEASED))
    @rule(task=mostly(*LEASED), agent=agents, lease=lengths)
    def resume(self, task: Task, agent: str, lease: int | None) -> None:
        self.call("resume", task, agent, lease=lease)

    @precondition(lambda self: self.leases)
    @rule(lease=any_lease, length=lengths)
    def heartbeat(self, lease: Lease, length: int | None) -> None:
        self.call("heartbeat", lease, lease=length)

    @precondition(lambda self: self.leases)
    @rule(lease=any_lease, progress=st.sampled_from([None, 0, 50]), note=notes)
    def heartbeat_with_progress(self, lease: Lease, progress: int | None, note: str | None) -> None:
        self.call("heartbeat", lease, progress=progress, note=note)

    # Ending a lease as its holder

    @precondition(lambda self: self.leases)
    @rule(
        lease=any_lease,
        result=st.sampled_from([None, {"lines": 12}]),
        artifacts=st.sampled_from([[], ["report.md"]]),
        note=notes,
    )
    def complete(self, lease: Lease, result: Any, artifacts: list[str], note: str | None) -> None:
        self.call("complete", lease, result=result, artifacts=artifacts, note=note)

    @precondition(lambda self: self.leases)
    @rule(lease=any_lease, retry_in=pauses, no_retry=st.booleans())
    def fail(self, lease: Lease, retry_in: int | None, no_retry: bool) -> None:
        self.call("fail", lease, "it broke", retry_in=retry_in, no_retry=no_retry)

    @precondition(lambda self: self.leases)
    @rule(lease=any_lease, after=pauses, note=notes)
    def release(self, lease: Lease, after: int | None, note: str | None) -> None:
        self.call("release", lease, after=after, note=note)

    @precondition(lambda self: self.leases)
    @rule(lease=any_lease, to=agents, note=notes)
    def handoff(self, lease: Lease, to: str, note: str | None) -> None:
        self.call("handoff", lease, to, note=note)

    @precondition(there_is("queued"))
    @rule(
        task=mostly("queued"),
        who=st.sampled_from([{"agent"}, {"actor"}, {"actor"}, {"agent", "actor"}]),
        agent=agents,
        actor=actors,
        result=st.sampled_from([None, {"lines": 12}]),
        artifacts=st.sampled_from([[], ["report.md"]]),
        note=notes,
    )
    def done(
        self, task: Task, who: set[str], agent: str, actor: Actor, result: Any, artifacts: list[str], note: str | None
    ) -> None:
        given = {name: value for name, value in (("agent", agent), ("actor", actor)) if name in who}
        self.call("done", task, result=result, artifacts=artifacts, note=note, **given)

    # Judging, moving, ending as somebody else

    @precondition(there_is("review"))
    @rule(task=mostly("review"), actor=actors)
    def approve(self, task: Task, actor: Actor) -> None:
        self.call("approve", task, actor=actor)

    @precondition(there_is("review"))
    @rule(task=mostly("review"), actor=actors)
    def reject(self, task: Task, actor: Actor) -> None:
        self.call("reject", task, note="not yet", actor=actor)

    @precondition(there_is(*LEASED))
    @rule(task=mostly(*LEASED), to=st.none() | agents, note=notes, actor=actors)
    def reassign(self, task: Task, to: str | None, note: str | None, actor: Actor) -> None:
        self.call("reassign", task, to, note=note, actor=actor)

    @precondition(there_is(*FINAL))
    @rule(task=mostly("failed", "cancelled"), actor=actors)
    def retry(self, task: Task, actor: Actor) -> None:
        self.call("retry", task, actor=actor)

    @rule(task=any_task, note=notes, actor=actors)
    def cancel(self, task: Task, note: str | None, actor: Actor) -> None:
        self.call("cancel", task, note=note, actor=actor)

    # Editing

    @rule(task=any_task, edits=edits, comment=notes, actor=actors)
    def update(self, task: Task, edits: dict[str, Any], comment: str | None, actor: Actor) -> None:
        self.call("update", task, **self.to_be_written(edits), comment=comment, actor=actor)

    @rule(
        task=any_task,
        edits=edits,
        if_status=st.sampled_from([None, "queued", "claimed", "review"]),
        off=st.sampled_from([None, 0, 0, -1, 1]),
    )
    def update_as_compare_and_set(
        self, task: Task, edits: dict[str, Any], if_status: str | None, off: int | None
    ) -> None:
        if_version = None if off is None else task.version + off
        self.call("update", task, **self.to_be_written(edits), if_status=if_status, if_version=if_version)

    def to_be_written(self, edits: dict[str, Any]) -> dict[str, Any]:
        """Return edits as they are given to an update, dates as instants."""
        return {field: self.at(value) if field in DATES else value for field, value in edits.items()}

    @rule(task=any_task, others=st.lists(any_task, min_size=1, max_size=2, unique=True))
    def update_to_wait_for_others(self, task: Task, others: list[Task]) -> None:
        self.call("update", task, add_depends_on=others)

    @precondition(lambda self: any(task.blocked_by for task in self.model.tasks))
    @rule(
        pair=among(lambda machine: [(task, other) for task in machine.model.tasks for other in task.blocked_by]),
        actor=actors,
    )
    def update_to_wait_no_longer(self, pair: tuple[Task, Task], actor: Actor) -> None:
        task, other = pair
        self.call("update", task, drop_depends_on=[other], actor=actor)

    @rule(task=any_task, actor=actors)
    def comment(self, task: Task, actor: Actor) -> None:
        self.call("comment", task, "a remark", actor=actor)

    # Time

    @rule(seconds=steps)
    def the_clock_is_moved(self, seconds: float) -> None:
        self.clock.advance(seconds=seconds)

    @precondition(lambda self: self.model.edges())
    @rule(edge=among(lambda machine: machine.model.edges()), off=st.sampled_from([-1, 0, 1]))
    def the_clock_shows_an_instant_that_matters(self, edge: int, off: int) -> None:
        self.clock.now = edge + off

    @precondition(lambda self: self.model.edges())
    @rule(edge=among(lambda machine: machine.model.edges()))
    def somebody_ticks_while_the_clock_is_wrong(self, edge: int) -> None:
        right = self.clock.now
        self.clock.now = edge
        self.tick()
        self.clock.now = right

    @precondition(lambda self: any(edge <= self.clock.now for edge in self.model.edges()))
    @rule()
    def time_brings_what_it_brings(self) -> None:
        self.tick()

    def tick(self) -> None:
        expired, answer = self.call("tick")
        assert answer == {"expired": expired, "created": 0, "delivered": 0, "catchup_pending": False}

    # One call, made to both

    def at(self, seconds: float | None) -> int | None:
        return None if seconds is None else self.clock.now + int(seconds * SECOND)

    def call(self, verb: str, *given: Any, **named: Any) -> tuple[Any, Any]:
        """Make a call to the model and to the board, compare what they say, and return both answers."""
        self.latest = max(self.latest, self.clock.now)
        file_before, sweeps_before = self.file_version(), self.model.sweeps
        stuck_before = [task for task in self.model.tasks if task.is_stuck]
        expected = _outcome(getattr(self.model, verb), given, named)
        said = _outcome(getattr(self.board, verb), *_for_board(given, named))
        if isinstance(expected, Refused) or isinstance(said, BoardError):
            self.compare_refusals(expected, said)
        elif isinstance(expected, Answer):
            self.compare_answers(expected, said)
        newly_stuck = [task for task in self.model.tasks if task.is_stuck and task not in stuck_before]
        if isinstance(said, Receipt) and not said.replayed:
            self.it_is_said_what_is_stuck(said, newly_stuck)
        is_replay = isinstance(expected, Answer) and expected.replayed and expected.lease is None
        if self.model.sweeps > sweeps_before:
            self.nothing_due_is_left_flagged_as_delayed()
        elif is_replay or isinstance(expected, Refused):
            assert self.file_version() == file_before, "neither a refusal nor a replay writes anything"
        if named.get("request_id") and not isinstance(expected, Refused):
            self.asked[named["request_id"]] = (verb, named)
        return expected, said

    def compare_refusals(self, expected: Any, said: Any) -> None:
        assert isinstance(expected, Refused), f"the board refuses what it should do: {said!r}"
        assert isinstance(said, BoardError), f"the board does what it should refuse: {expected}"
        reason = said.details.get("reason")
        assert (f"{said.code}/{reason}" if said.code == "conflict" else said.code) in expected.grounds, said
        self.has_no_secret(said.to_dict())

    def compare_answers(self, expected: Answer, said: Receipt | None) -> None:
        if said is None or expected.task is None:
            assert said is None, f"nothing is ready, yet {said} was claimed"
            assert expected.task is None, f"{expected.task} is ready, yet nothing was claimed"
            return
        task = self.touched = expected.task
        task.id = task.id or said.task.id
        _same(self.model.as_json(task), said.task.to_dict())
        assert (said.created, said.replayed) == (expected.created, expected.replayed)
        assert (said.lease is None) == (expected.lease is None)
        if said.lease is not None and expected.lease is not None:
            assert (said.lease.fence, said.lease.expires_at) == (task.fence, text(task.lease_expires_at))
            if expected.lease not in self.leases:
                self.remember_lease(expected.lease, said.lease.token)
            assert said.lease.token == expected.lease.token
        texts = [*said.warnings, *(note["text"] for note in said.notes)]
        for words in expected.told:
            assert any(_says(warning, words) for warning in texts), (words, said.warnings)
        self.has_no_secret(said.warnings)

    def it_is_said_what_is_stuck(self, said: Receipt, newly_stuck: Sequence[Task]) -> None:
        """Check that a call says which tasks it made stuck, and nothing like it if there are none."""
        told = [warning for warning in said.warnings if " stuck" in warning or " cannot start" in warning]
        assert bool(told) == bool(newly_stuck), (newly_stuck, said.warnings)
        for task in newly_stuck:
            if task is self.touched:
                assert any(_says(warning, [task, "is stuck"]) for warning in told), (task, told)
            elif len(newly_stuck) <= NAMED:
                assert any(task.id[-6:] in warning for warning in told), (task, told)

    def remember_lease(self, lease: Lease, token: str) -> None:
        assert token not in self.secrets, "every grant has a fresh token"
        lease.token = token
        self.leases.append(lease)
        self.secrets += [token, hashlib.sha256(token.encode()).hexdigest()]

    # What is to be seen after each step

    @invariant()
    def board_and_model_agree(self) -> None:
        self.expected = {task.id: self.model.as_json(task) for task in self.model.tasks}
        self.every_task_equals_the_model()
        self.every_history_leads_to_the_present()
        self.every_attempt_equals_the_model()
        self.stored_readiness_equals_its_definition()
        self.lists_and_counts_equal_their_definitions()
        self.agents_are_credited_with_their_attempts()
        self.every_write_to_a_task_raises_the_revision()
        self.show_tells_all_about_the_task_touched_last()

    def every_task_equals_the_model(self) -> None:
        listed = [task.to_dict() for task in self.board.list_tasks(full=True, order="age").tasks]
        assert [row["id"] for row in listed] == [task.id for task in self.model.tasks]
        for task, row in zip(self.model.tasks, listed, strict=True):
            _same(self.expected[task.id], row)
            assert 0 <= row["attempts"] <= row["max_attempts"] - (row["status"] == "queued")
        self.has_no_secret(listed)

    def every_history_leads_to_the_present(self) -> None:
        fresh = self.board.events(after=self.last_event, limit=1_000)["events"]
        assert [event["seq"] for event in fresh] == [self.last_event + 1 + place for place in range(len(fresh))]
        self.last_event += len(fresh)
        self.has_no_secret(fresh)
        for event in fresh:
            self.histories.setdefault(event["task_id"], []).append(event)
        # By casefold, as names are compared: a call may name a new agent twice, in two spellings.
        predicted: dict[str, list[tuple[str | None, ...]]] = {}
        for task, kind, actor, actor_kind, at in self.model.events:
            predicted.setdefault(task.id, []).append((kind, actor.casefold(), actor_kind, at))
        for task in self.model.tasks:
            history = self.histories[task.id]
            told = [(event["kind"], event["actor"].casefold(), event["actor_kind"], event["at"]) for event in history]
            assert told == predicted[task.id]
            assert fold(history) == {field: self.expected[task.id][field] for field in UNBORN}

    def every_attempt_equals_the_model(self) -> None:
        rows = self.of_file(
            """
            SELECT id, number, agent, attempt.fence, attempt.claimed_at, ended_at, outcome,
                   attempt.result, attempt.error, note
              FROM attempt JOIN task ON task.seq = task_seq ORDER BY task_seq, number
            """
        )
        attempts = [(task, attempt) for task in self.model.tasks for attempt in task.history]
        for (task, attempt), row in zip(attempts, rows, strict=True):
            result, error = row[7] and json.loads(row[7]), EXPIRED if row[8] and attempt.error == EXPIRED else row[8]
            assert (*row[:7], result, error, row[9]) == (
                *(task.id, attempt.number, attempt.agent, attempt.fence, text(attempt.claimed_at)),
                *(text(attempt.ended_at), attempt.outcome, attempt.result, attempt.error, attempt.note),
            )
        for task in self.model.tasks:
            is_open = [row[6] is None for row in rows if row[0] == task.id]
            assert sum(is_open) == (task.status in LEASED), "a held task has one open attempt, any other none"

    def stored_readiness_equals_its_definition(self) -> None:
        stored = self.of_file("SELECT open_dependencies, delayed FROM task ORDER BY seq")
        for task, (open_dependencies, delayed) in zip(self.model.tasks, stored, strict=True):
            assert open_dependencies == sum(other.status != "done" for other in task.blocked_by)
            if task.status == "queued" and task.not_before is None:
                assert not delayed
            if task.status == "queued" and task.not_before is not None and task.not_before > self.latest:
                assert delayed, "the flag falls only once the instant was seen to pass"

    def lists_and_counts_equal_their_definitions(self) -> None:
        shown = self.expected.values()
        for word in ("ready", "blocked", "stuck", "overdue"):
            listed = self.board.list_tasks(order="age", **{word: True}).tasks  # type: ignore[arg-type]
            assert [task.id for task in listed] == [row["id"] for row in shown if row[word]]
        stats = self.board.stats()
        for word in ("ready", "blocked", "stuck", "lease_expired"):
            assert stats[word] == sum(row[word] for row in shown)  # type: ignore[literal-required]
        tally = {(queue, status): tasks for queue, status, tasks in self.of_file("SELECT * FROM tally") if tasks}
        assert tally == Counter((task.queue, task.status) for task in self.model.tasks)

    def agents_are_credited_with_their_attempts(self) -> None:
        outcomes = Counter((attempt.agent, attempt.outcome) for task in self.model.tasks for attempt in task.history)
        stored = self.of_file("SELECT key, name, last_seen_at, completed, failed, expired FROM agent")
        assert {row[0]: row[1:] for row in stored} == {
            key: (
                *(agent.name, text(agent.last_seen_at)),
                *(outcomes[agent.name, outcome] for outcome in ("completed", "failed", "expired")),
            )
            for key, agent in self.model.agents.items()
        }

    def every_write_to_a_task_raises_the_revision(self) -> None:
        rows = self.of_file("SELECT * FROM task")
        revision = self.of_file("SELECT revision FROM board")[0][0]
        assert revision > self.revision or (revision == self.revision and rows == self.rows)
        self.revision, self.rows = revision, rows

    def show_tells_all_about_the_task_touched_last(self) -> None:
        task = self.touched
        if task is None:
            return
        details = self.board.show(task.id)
        self.has_no_secret(details)
        _same(self.expected[task.id], details["task"])
        assert [attempt["number"] for attempt in details["attempts"]] == [one.number for one in task.history]
        assert [link["id"] for link in details["dependencies"]] == [other.id for other in task.blocked_by]
        dependents = [other.id for other in self.model.tasks if task in other.blocked_by]
        assert [link["id"] for link in details["dependents"]] == dependents
        assert [comment["data"]["text"] for comment in details["comments"]] == task.comments

    def nothing_due_is_left_flagged_as_delayed(self) -> None:
        due = "SELECT count(*) FROM task WHERE status = 'queued' AND delayed = 1 AND not_before <= ?"
        assert self.of_file(due, text(self.clock.now)) == [(0,)]

    def has_no_secret(self, shown: Any) -> None:
        """Check that what anybody may see has neither a token nor what is stored of one."""
        everything = json.dumps(shown)
        assert not [secret for secret in self.secrets if secret in everything]

    def no_token_was_ever_stored(self) -> None:
        everything = "".join(self.file.iterdump())
        assert not [lease for lease in self.leases if lease.token in everything]

    def of_file(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Ask the board's file through the second connection."""
        return self.file.execute(sql, values).fetchall()

    def file_version(self) -> Any:
        """Return a number that changes whenever another connection has written to the file."""
        return self.of_file("PRAGMA data_version")


def _outcome(verb: Callable[..., Any], given: Sequence[Any], named: dict[str, Any]) -> Any:
    """Return what a verb answers, or its refusal."""
    try:
        return verb(*given, **named)
    except (Refused, BoardError) as refusal:
        return refusal


def _for_board(given: Sequence[Any], named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments as the board takes them: ids for tasks, an id and a token for a lease, text for instants."""
    by_position: list[Any] = []
    for value in given:
        by_position += [value.task.id, value.token] if isinstance(value, Lease) else [_reference(value)]
    by_name = {name: text(value) if name in DATES else _reference(value) for name, value in named.items()}
    return by_position, by_name


def _reference(value: Any) -> Any:
    if isinstance(value, list):
        return [_reference(one) for one in value]
    return value.id if isinstance(value, Task) else value


def _same(expected: dict[str, Any], shown: dict[str, Any]) -> None:
    """Compare a task of the model with one as it is shown; how an expiry is worded is the board's affair."""
    if expected["error"] == EXPIRED and shown["error"]:
        shown = {**shown, "error": EXPIRED}
    differing = {key for key in expected.keys() | shown.keys() if expected.get(key, ...) != shown.get(key, ...)}
    assert not differing, {key: (expected.get(key, "?"), shown.get(key, "?")) for key in sorted(differing)}


def _says(sentence: str, words: Sequence[Task | str]) -> bool:
    """Say whether a sentence has these words in this order; a task goes by the last six characters of its id."""
    for word in words:
        _, found, sentence = sentence.partition(word.id[-6:] if isinstance(word, Task) else word)
        if not found:
            return False
    return True


ORDINARY = settings(
    max_examples=60,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


def test_every_verb_in_any_order_on_any_clock_does_what_the_model_says() -> None:
    run_state_machine_as_test(BoardBesideModel, settings=ORDINARY)


@pytest.mark.soak
def test_long_histories_do_what_the_model_says() -> None:
    run_state_machine_as_test(
        BoardBesideModel, settings=settings(ORDINARY, max_examples=2_000, stateful_step_count=120)
    )


def test_failing_with_the_token_of_a_released_first_attempt_is_lease_lost(board: Board) -> None:
    """The machine found this one: no attempt is counted any more when the backoff is worked out."""
    task = board.add("a task", claim=True, agent="ada")
    assert task.lease is not None
    board.release(task.task.id, task.lease.token)
    with refused("lease_lost"):
        board.fail(task.task.id, task.lease.token, "it broke")


def test_fold_notices_a_missing_event() -> None:
    born: dict[str, Any] = {
        "seq": 1,
        "kind": "created",
        "data": {"changes": {"status": {"from": None, "to": "queued"}}},
    }
    approved = {"seq": 3, "kind": "approved", "data": {"changes": {"status": {"from": "review", "to": "done"}}}}
    with pytest.raises(ValueError, match="event 3"):
        fold([born, approved])  # type: ignore[list-item]
