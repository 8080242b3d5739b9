"""The board as plain Python: what the table of transitions promises, with neither SQL nor a file.

It is written from the contract, to be compared with the service step by step. A verb first collects every ground on
which it may be refused, then changes the task and records the event. Instants and lengths are milliseconds; as in the
service's own methods, the arguments ``lease``, ``retry_in`` and ``after`` are seconds.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tests.support import MARIA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from agent_task_board import Actor

SECOND = 1_000
DAY = 24 * 60 * 60 * SECOND
USUAL_LEASE = 15 * 60 * SECOND
FINAL = ("done", "failed", "cancelled")
LEASED = ("claimed", "running")
EXPIRED = "the lease ran out"
"""Stands for an error text that the board words itself."""


@functools.cache
def text(instant: int | None) -> str | None:
    """Return an instant as it goes out: UTC, fixed width."""
    if instant is None:
        return None
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=instant)).isoformat(timespec="milliseconds")


class Refused(Exception):
    """The contract forbids the call: on any one of these grounds, each a code or ``conflict/reason``."""

    def __init__(self, grounds: Iterable[str]) -> None:
        self.grounds = set(grounds)
        super().__init__(", ".join(sorted(self.grounds)))


def refuse_on(grounds: dict[str, bool]) -> None:
    """Refuse on every ground that is true."""
    if any(grounds.values()):
        raise Refused(ground for ground, holds in grounds.items() if holds)


class Brief:
    """Is shown in one line where Hypothesis prints how a test failed."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


@dataclass(eq=False, repr=False)
class Task(Brief):
    """One task; ``place`` is its position in the order of insertion."""

    place: int
    title: str
    queue: str
    priority: int
    assignee: str | None
    due_at: int | None
    not_before: int | None
    tags: list[str]
    blocked_by: list[Task]
    dedupe_key: str | None
    max_attempts: int
    needs_approval: bool
    created_by: str
    created_at: int
    id: str = ""
    body: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    max_runtime: int | None = None
    status: str = "queued"
    result: Any = None
    artifacts: list[str] = field(default_factory=list)
    error: str | None = None
    progress: int | None = None
    attempts: int = 0
    fence: int = 0
    version: int = 0
    claimed_by: str | None = None
    claimed_at: int | None = None
    finished_at: int | None = None
    updated_at: int = 0
    lease: Lease | None = None
    lease_expires_at: int | None = None
    lease_length: int = 0
    history: list[Attempt] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    note_left: str | None = None
    released: dict[str, int] = field(default_factory=dict)
    """Agents that have released it lately, and until when that counts."""

    def __repr__(self) -> str:
        return f"<task {self.place} {self.status}>"

    @property
    def is_blocked(self) -> bool:
        return any(other.status != "done" for other in self.blocked_by)

    @property
    def is_stuck(self) -> bool:
        return self.status == "queued" and any(
            other.status in ("failed", "cancelled") or other.is_stuck for other in self.blocked_by
        )

    def waits_for(self, other: Task) -> bool:
        """Say whether this task waits for another, directly or along a chain, or is it."""
        return self is other or any(nearer.waits_for(other) for nearer in self.blocked_by)


@dataclass(eq=False)
class Attempt:
    """One claim up to its ending; ``ended_by`` is the lease under which its holder ended it."""

    number: int
    agent: str
    fence: int
    claimed_at: int
    ended_at: int | None = None
    outcome: str | None = None
    ended_by: Lease | None = None
    result: Any = None
    error: str | None = None
    note: str | None = None


@dataclass(eq=False, repr=False)
class Lease(Brief):
    """A lease as it was granted once; its token comes from the board. It is never forgotten here."""

    task: Task
    fence: int
    token: str = ""

    def __repr__(self) -> str:
        return f"<lease {self.fence} of task {self.task.place}>"


@dataclass
class Agent:
    """A name that claimed work or was given it, as first written."""

    name: str
    last_seen_at: int | None = None


@dataclass
class Request:
    """A call that carried a request id."""

    call: tuple[Any, ...]
    at: int
    task: Task
    attempt: int | None
    created: bool | None


@dataclass
class Answer:
    """What a call answers; ``told`` are sentences among its warnings, as words that come in this order."""

    task: Task | None
    lease: Lease | None = None
    created: bool | None = None
    replayed: bool = False
    told: list[tuple[Task | str, ...]] = field(default_factory=list)


class Model:
    """Every verb of the service by the same name; where that takes an id and a token, these take a ``Lease``."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self.tasks: list[Task] = []
        self.agents: dict[str, Agent] = {}
        self.actors: dict[str, str] = {}
        self.requests: dict[str, Request] = {}
        self.events: list[tuple[Task, str, str, str, str | None]] = []
        """Task, kind, actor, kind of actor, instant."""
        self.sweeps = 0
        """How many calls took back dead leases on their way, or would have."""

    @property
    def now(self) -> int:
        return self._clock()

    # Making tasks

    def add(
        self,
        title: str,
        *,
        queue: str = "default",
        priority: int = 0,
        assignee: str | None = None,
        due_at: int | None = None,
        not_before: int | None = None,
        tags: Sequence[str] = (),
        depends_on: Sequence[Task] = (),
        dedupe_key: str | None = None,
        max_attempts: int = 3,
        needs_approval: bool = False,
        claim: bool = False,
        agent: str | None = None,
        lease: int | None = None,
        request_id: str | None = None,
        actor: Actor = MARIA,
    ) -> Answer:
        call = (
            "add", title, queue, priority, assignee, due_at, not_before, tuple(tags), tuple(depends_on), dedupe_key,
            max_attempts, needs_approval, claim and agent and (agent.casefold(), _length(lease)),
        )  # fmt: skip
        earlier = self._earlier(request_id, call)
        if earlier is not None:
            if earlier.attempt is not None:
                return replace(self._claim_again(earlier, lease), created=earlier.created)
            return Answer(earlier.task, created=earlier.created, replayed=True)
        holder = self._key_holder(dedupe_key)
        if holder is not None:
            refuse_on({"conflict/dedupe": claim})
            self._remember(request_id, call, holder, created=False)
            return Answer(holder, created=False, told=[(holder,)])
        by_name, by_kind = (agent, "agent") if agent else (actor.name, actor.kind)
        task = Task(
            place=len(self.tasks), title=title, queue=queue, priority=priority, assignee=self._known_as(assignee),
            due_at=due_at, not_before=not_before, tags=list(tags), blocked_by=list(depends_on), dedupe_key=dedupe_key,
            max_attempts=max_attempts, needs_approval=needs_approval, created_by=self._known_as(by_name, also=assignee),
            created_at=self.now,
        )  # fmt: skip
        if claim and agent:
            refuse_on(self._against_claim(task, self._known_as(agent, also=assignee)))
        self._meet(assignee)
        self.tasks.append(task)
        self._record(task, "created", by_name, by_kind)
        answer = self._take(task, agent, lease) if claim and agent else Answer(task)
        self._remember(request_id, call, task, attempt=len(task.history) or None, created=True)
        return replace(answer, created=True, told=[(task, "waits for", other) for other in depends_on])

    # Taking and keeping a lease

    def claim(
        self,
        agent: str,
        *,
        task: Task | None = None,
        queues: Sequence[str] = (),
        tags: Sequence[str] = (),
        lease: int | None = None,
        if_status: str | None = None,
        comment: str | None = None,
        request_id: str | None = None,
    ) -> Answer:
        wanted = (tuple(dict.fromkeys(queues)), tuple(dict.fromkeys(tags)))
        call = ("claim", agent.casefold(), task, *wanted, _length(lease), if_status, comment)
        earlier = self._earlier(request_id, call)
        if earlier is not None:
            return self._claim_again(earlier, lease)
        self._expire_the_dead()
        name = self._known_as(agent)
        if task is None:
            task = self._best(name, queues, tags)
            if task is None:
                return Answer(None)
        else:
            expects_another = if_status not in (None, "queued")
            against = self._against_claim(task, name)
            refuse_on({**against, "conflict/status": against["conflict/status"] or expects_another})
        answer = self._take(task, agent, lease)
        self._remember(request_id, call, task, attempt=len(task.history))
        if comment is not None:
            self._comment(task, comment, name, "agent")
        if len(task.history) > 1 and task.history[-2].outcome == "handed_off" and task.note_left:
            answer.told.append((task.note_left,))
        return answer

    def _best(self, agent: str, queues: Sequence[str], tags: Sequence[str]) -> Task | None:
        """Return the ready task of largest priority, the oldest of those, over all the queues.

        What the agent has released lately comes after its equals, the one released first before the others.
        """
        candidates = [
            task
            for task in self.tasks
            if not any(self._against_claim(task, agent).values())
            and (not queues or task.queue in queues)
            and set(tags) <= set(task.tags)
        ]

        def rank(task: Task) -> tuple[int, int, int]:
            until = task.released.get(agent, 0)
            return -task.priority, until if until > self.now else 0, task.place

        return min(candidates, key=rank, default=None)

    def _forget_releases(self, agent: str | None = None) -> None:
        """Forget releases whose time has passed, of one agent or of all."""
        for task in self.tasks:
            task.released = {
                name: until for name, until in task.released.items() if until > self.now or agent not in (None, name)
            }

    def _against_claim(self, task: Task, agent: str) -> dict[str, bool]:
        return {
            "conflict/status": task.status != "queued",
            "conflict/blocked": task.status == "queued" and task.is_blocked,
            "conflict/delayed": task.status == "queued" and self._is_early(task),
            "conflict/assigned": task.status == "queued" and task.assignee not in (None, agent),
        }

    def _take(self, task: Task, agent: str, lease: int | None) -> Answer:
        name = self._meet(agent)
        task.status = "claimed"
        task.claimed_by, task.claimed_at = name, self.now
        task.attempts += 1
        task.history.append(Attempt(len(task.history) + 1, name, 0, self.now))
        self._record(task, "claimed", name, "agent")
        return self._grant(task, _length(lease))

    def _grant(self, task: Task, length: int | None) -> Answer:
        """Give out a new token, which kills the old one; without a length the lease ends when it did."""
        task.fence += 1
        task.history[-1].fence = task.fence
        task.lease = Lease(task, task.fence)
        if length is not None:
            task.lease_length = length
            task.lease_expires_at = self.now + length
        self._seen(task.claimed_by)
        return Answer(task, lease=task.lease)

    def resume(self, task: Task, agent: str, *, lease: int | None = None) -> Answer:
        name = self._known_as(agent)
        held = task.status in LEASED
        mine = held and task.claimed_by == name
        refuse_on(
            {
                "conflict/status": not held,
                "conflict/assigned": held and not mine,
                "lease_lost": mine and not self._is_live(task),
            }
        )
        self._record(task, "resumed", name, "agent")
        return self._grant(task, None if lease is None else lease * SECOND)

    def _claim_again(self, earlier: Request, lease: int | None) -> Answer:
        """Answer a repeated claim: the same attempt under a new token, for as long as was asked for, if it was."""
        task = earlier.task
        refuse_on({"lease_lost": len(task.history) != earlier.attempt or not self._is_live(task)})
        self._record(task, "resumed", task.claimed_by, "agent")
        return replace(self._grant(task, None if lease is None else _length(lease)), replayed=True)

    def heartbeat(
        self, held: Lease, *, lease: int | None = None, progress: int | None = None, note: str | None = None
    ) -> Answer:
        refuse_on({"lease_lost": not self.holds(held)})
        task = held.task
        if lease is not None:
            task.lease_length = lease * SECOND
        task.lease_expires_at = self.now + task.lease_length
        moved = progress not in (None, task.progress)
        task.progress = progress if moved else task.progress
        self._seen(task.claimed_by)
        if task.status == "claimed":
            task.status = "running"
            self._record(task, "started", task.claimed_by, "agent")
        elif moved or note:
            self._record(task, "progressed", task.claimed_by, "agent")
        return Answer(task, lease=held)

    # Ending a lease as its holder

    def complete(
        self, held: Lease, *, result: Any = None, artifacts: Sequence[str] = (), note: str | None = None
    ) -> Answer:
        if not self.holds(held):
            return self._replay(held, "completed")
        task = held.task
        task.result, task.artifacts, task.error = result, list(artifacts), None
        task.progress = None if task.progress is None else 100
        task.status = "review" if task.needs_approval else "done"
        task.finished_at = None if task.needs_approval else self.now
        self._ended_by_holder(held, "completed", note=note, result=result)
        return Answer(task)

    def fail(self, held: Lease, error: str, *, retry_in: int | None = None, no_retry: bool = False) -> Answer:
        refuse_on({"invalid_input": no_retry and retry_in is not None})
        if not self.holds(held):
            return self._replay(held, "failed")
        task = held.task
        task.error = error
        self._ended_by_holder(held, "failed", error=error)
        if no_retry or task.attempts == task.max_attempts:
            self._finish(task, "failed")
        else:
            backoff = min(30 * SECOND * 2 ** (task.attempts - 1), DAY)
            task.not_before = self.now + (backoff if retry_in is None else retry_in * SECOND)
            self._requeue(task)
        return Answer(task)

    def release(self, held: Lease, *, after: int | None = None, note: str | None = None) -> Answer:
        if not self.holds(held):
            return self._replay(held, "released")
        task = held.task
        if after is not None:
            task.not_before = self.now + after * SECOND
        if not after:
            assert task.claimed_by is not None
            self._forget_releases(task.claimed_by)
            task.released[task.claimed_by] = self.now + 30 * SECOND
        self._ended_by_holder(held, "released", note=note)
        task.attempts -= 1
        self._requeue(task)
        return Answer(task)

    def handoff(self, held: Lease, to: str, *, note: str | None = None) -> Answer:
        if not self.holds(held):
            return self._replay(held, "handed_off")
        task = held.task
        refuse_on({"invalid_input": self._known_as(to) == task.claimed_by})
        self._ended_by_holder(held, "handed_off", note=note)
        task.assignee = self._meet(to)
        task.attempts -= 1
        self._requeue(task)
        return Answer(task)

    def _replay(self, held: Lease, outcome: str) -> Answer:
        """Answer a verb again under the token with which it succeeded; any other spent token is refused."""
        same = any(attempt.ended_by is held and attempt.outcome == outcome for attempt in held.task.history)
        refuse_on({"lease_lost": not same})
        return Answer(held.task, replayed=True)

    def done(
        self,
        task: Task,
        *,
        result: Any = None,
        artifacts: Sequence[str] = (),
        note: str | None = None,
        agent: str | None = None,
        actor: Actor | None = None,
    ) -> Answer:
        """Take a queued task and hand it in at once: as an agent what it could claim, as a person any, as no holder."""
        self._expire_the_dead()
        caller = actor or MARIA
        by_name = caller.name if actor or agent is None else agent
        if agent is None and not self._is_person(caller, task):
            agent = caller.name
        told: list[tuple[Task | str, ...]] = []
        if agent is not None:
            refuse_on(self._against_claim(task, self._known_as(agent)))
        else:
            refuse_on({"conflict/status": task.status != "queued"})
            told += [("still waited for",)] if task.is_blocked else []
            told += [("not to be started before", str(text(task.not_before)))] if self._is_early(task) else []
            told += [("assigned to", task.assignee)] if task.assignee else []
        who = self._meet(agent or by_name)
        task.attempts += 1
        task.fence += 1
        task.history.append(
            Attempt(
                len(task.history) + 1, who, task.fence, self.now, self.now, "completed", result=result, note=note
            )
        )  # fmt: skip
        for kind in ("claimed", "completed"):
            self._record(task, kind, by_name, "human" if agent is None else "agent")
        task.version -= 1  # two events, one change
        self._seen(who)
        task.claimed_by, task.claimed_at = (who, self.now) if agent else (None, None)
        task.result, task.artifacts, task.error = result, list(artifacts), None
        if task.needs_approval and agent:
            task.status = "review"
        else:
            self._finish(task, "done")
        return Answer(task, told=told)

    # What time brings

    def tick(self) -> int:
        self._forget_releases()
        return self._expire_the_dead()

    def _expire_the_dead(self) -> int:
        self.sweeps += 1
        dead = [task for task in self.tasks if task.status in LEASED and not self._is_live(task)]
        for task in dead:
            task.error = EXPIRED
            self._end_attempt(task, "expired", error=EXPIRED)
            self._record(task, "expired", "system", "system")
            if task.attempts == task.max_attempts:
                self._finish(task, "failed")
            else:
                self._requeue(task)
        return len(dead)

    # Judging, moving, ending as somebody else

    def approve(self, task: Task, *, note: str | None = None, actor: Actor = MARIA) -> Answer:
        refuse_on({"conflict/status": task.status != "review", "not_permitted": not self._is_person(actor, task)})
        self._finish(task, "done")
        self._record(task, "approved", actor.name, actor.kind)
        return Answer(task)

    def reject(self, task: Task, *, note: str, actor: Actor = MARIA) -> Answer:
        refuse_on({"conflict/status": task.status != "review", "not_permitted": not self._is_person(actor, task)})
        task.attempts = 0
        task.note_left = note
        self._requeue(task)
        self._record(task, "rejected", actor.name, actor.kind)
        return Answer(task)

    def reassign(self, task: Task, to: str | None, *, note: str | None = None, actor: Actor = MARIA) -> Answer:
        refuse_on({"conflict/status": task.status not in ("queued", *LEASED)})
        if task.status in LEASED:
            live = self._is_live(task)
            if live or task.attempts == task.max_attempts:  # a queued task always has an attempt left
                task.attempts -= 1
            if live:
                self._end_attempt(task, "revoked", note=note)
            else:
                task.error = EXPIRED
                self._end_attempt(task, "expired", note=note, error=EXPIRED)
        task.note_left = note or task.note_left
        task.assignee = self._meet(to)
        self._requeue(task)
        self._record(task, "reassigned", actor.name, actor.kind)
        return Answer(task)

    def retry(self, task: Task, *, actor: Actor = MARIA) -> Answer:
        over = task.status in ("failed", "cancelled")
        refuse_on({"conflict/status": not over, "conflict/dedupe": over and bool(self._key_holder(task.dedupe_key))})
        task.attempts = 0
        self._requeue(task)
        self._record(task, "retried", actor.name, actor.kind)
        return Answer(task)

    def cancel(self, task: Task, *, note: str | None = None, actor: Actor = MARIA) -> Answer:
        theirs = task.status == "review" and not self._is_person(actor, task)
        refuse_on({"conflict/status": task.status in FINAL, "not_permitted": theirs})
        if task.status in LEASED:
            self._end_attempt(task, "cancelled", note=note)
        self._finish(task, "cancelled")
        self._record(task, "cancelled", actor.name, actor.kind)
        return Answer(task)

    # Editing

    def update(
        self,
        task: Task,
        *,
        depends_on: Sequence[Task] | None = None,
        add_depends_on: Sequence[Task] = (),
        drop_depends_on: Sequence[Task] = (),
        tags: Sequence[str] | None = None,
        add_tags: Sequence[str] = (),
        drop_tags: Sequence[str] = (),
        if_status: str | None = None,
        if_version: int | None = None,
        comment: str | None = None,
        actor: Actor = MARIA,
        **fields: Any,
    ) -> Answer:
        """Change fields; what a call both adds and drops is dropped."""
        wanted = dict.fromkeys([*(task.blocked_by if depends_on is None else depends_on), *add_depends_on])
        waits = [other for other in wanted if other not in drop_depends_on]
        new = [other for other in waits if other not in task.blocked_by]
        gone = [other for other in task.blocked_by if other not in waits]
        tagged = dict.fromkeys([*(task.tags if tags is None else tags), *add_tags])
        wish = {
            **fields,
            "tags": [tag for tag in tagged if tag not in drop_tags],
            "blocked_by": [*(other for other in task.blocked_by if other in waits), *new],
        }
        if "assignee" in wish:
            wish["assignee"] = self._known_as(wish["assignee"])
        changes = {name: value for name, value in wish.items() if value != getattr(task, name)}
        asked = fields or depends_on is not None or tags is not None
        asked = asked or any((add_depends_on, drop_depends_on, add_tags, drop_tags))
        least = task.attempts + (task.status == "queued")
        refuse_on(
            {
                "invalid_input": not asked or changes.get("max_attempts", least) < least,
                "conflict/status": task.status in FINAL
                or if_status not in (None, task.status)
                or ("assignee" in fields and task.status != "queued"),
                "conflict/version": if_version not in (None, task.version),
                "conflict/dedupe": "dedupe_key" in changes and bool(self._key_holder(changes["dedupe_key"])),
                "conflict/cycle": any(other.waits_for(task) for other in new),
                "not_permitted": changes.get("needs_approval") is False and not self._is_person(actor, task),
            }
        )
        self._meet(fields.get("assignee"))
        for name, value in changes.items():
            setattr(task, name, value)
        if changes:
            self._record(task, "updated", actor.name, actor.kind)
        if comment is not None:
            self._comment(task, comment, actor.name, actor.kind)
        told: list[tuple[Task | str, ...]] = [(task, "waits for", other) for other in new]
        return Answer(task, told=told + [(task, "no longer waits for", other) for other in gone])

    def comment(self, task: Task, said: str, *, actor: Actor = MARIA) -> None:
        self._comment(task, said, actor.name, actor.kind)

    # What the verbs share

    def holds(self, lease: Lease) -> bool:
        return lease.task.lease is lease and self._is_live(lease.task)

    def _is_live(self, task: Task) -> bool:
        return task.lease_expires_at is not None and task.lease_expires_at > self.now

    def _is_early(self, task: Task) -> bool:
        return task.not_before is not None and task.not_before > self.now

    def _is_person(self, actor: Actor, task: Task) -> bool:
        by_hand = task.fence if task.status == "done" and task.claimed_by is None else None
        worked = {attempt.agent.casefold() for attempt in task.history if attempt.fence != by_hand}
        return actor.kind != "agent" and actor.name.casefold() not in worked

    def _key_holder(self, key: str | None) -> Task | None:
        holders = (task for task in self.tasks if task.dedupe_key == key and task.status not in FINAL)
        return None if key is None else next(holders, None)

    def _ended_by_holder(self, held: Lease, outcome: str, *, note: str | None = None, **left: Any) -> None:
        task = held.task
        self._record(task, outcome, task.claimed_by, "agent")
        self._seen(task.claimed_by)
        task.note_left = note or task.note_left
        self._end_attempt(task, outcome, ended_by=held, note=note, **left)

    def _end_attempt(self, task: Task, outcome: str, **left: Any) -> None:
        attempt = task.history[-1]
        task.history[-1] = replace(attempt, outcome=outcome, ended_at=self.now, **left)
        task.lease = task.lease_expires_at = None

    def _requeue(self, task: Task) -> None:
        task.status = "queued"
        task.claimed_by = task.claimed_at = task.progress = task.finished_at = None

    def _finish(self, task: Task, status: str) -> None:
        task.status, task.finished_at = status, self.now

    def _record(self, task: Task, kind: str, actor: str | None, actor_kind: str) -> None:
        """Note an event; every one is a change of the task, but for comments, and progress raises no version."""
        assert actor is not None
        self.events.append((task, kind, self._known_as(actor), actor_kind, text(self.now)))
        if actor_kind == "human":
            self.actors.setdefault(actor.casefold(), self._known_as(actor))
        if kind != "commented":
            task.updated_at = self.now
            task.version += kind != "progressed"

    def _comment(self, task: Task, said: str, actor: str, actor_kind: str) -> None:
        self._record(task, "commented", actor, actor_kind)
        task.comments.append(said)

    # Names and requests

    def _known_as(self, name: Any, *, also: str | None = None) -> Any:
        """Return a name as it was first written; ``also`` is one that this very call writes."""
        if name is None:
            return None
        known = self.agents.get(name.casefold())
        if known is not None:
            return known.name
        if name.casefold() in self.actors:
            return self.actors[name.casefold()]
        return also if also is not None and also.casefold() == name.casefold() else name

    def _meet(self, name: Any) -> Any:
        """Return a name as it was first written, which may be now."""
        return name and self.agents.setdefault(name.casefold(), Agent(self._known_as(name))).name

    def _seen(self, name: str | None) -> None:
        assert name is not None
        self.agents[name.casefold()].last_seen_at = self.now

    def _earlier(self, request_id: str | None, call: tuple[Any, ...]) -> Request | None:
        earlier = self.requests.get(request_id or "")
        if earlier is None or self.now - earlier.at >= DAY:
            return None
        refuse_on({"conflict/request_id": earlier.call != call})
        return earlier

    def _remember(
        self,
        request_id: str | None,
        call: tuple[Any, ...],
        task: Task,
        *,
        attempt: int | None = None,
        created: bool | None = None,
    ) -> None:
        """Keep a call; those of more than a day ago are gone then, even if the clock is set back."""
        if request_id is not None:
            self.requests = {key: old for key, old in self.requests.items() if self.now - old.at < DAY}
            self.requests[request_id] = Request(call, self.now, task, attempt, created)

    # What is to be seen from outside

    def as_json(self, task: Task) -> dict[str, Any]:
        """Return a task as every surface shows it, with the derived fields by their definitions."""
        queued = task.status == "queued"
        blocked = queued and task.is_blocked
        delayed = queued and self._is_early(task)
        return {
            **{name: getattr(task, name) for name in _SHOWN_AS_THEY_ARE},
            **{name: text(getattr(task, name)) for name in _INSTANTS},
            "blocked_by": [other.id for other in task.blocked_by],
            "schedule_id": None,
            "occurrence_at": None,
            "ready": queued and not blocked and not delayed,
            "blocked": blocked,
            "stuck": task.is_stuck,
            "delayed": delayed,
            "lease_expired": task.status in LEASED and not self._is_live(task),
            "overdue": task.due_at is not None and task.due_at < self.now and task.status not in FINAL,
        }

    def edges(self) -> list[int]:
        """Return the instants at which something changes by time alone."""
        ends = [
            at
            for task in self.tasks
            for at in (task.lease_expires_at, task.not_before, task.due_at, *task.released.values())
        ]
        return [at for at in ends if at is not None] + [request.at + DAY for request in self.requests.values()]


_SHOWN_AS_THEY_ARE = """
    id title body queue status priority assignee tags dedupe_key params result artifacts error progress needs_approval
    attempts max_attempts max_runtime fence version claimed_by created_by
""".split()
_INSTANTS = "due_at not_before lease_expires_at created_at updated_at claimed_at finished_at".split()


def _length(lease: int | None) -> int:
    return USUAL_LEASE if lease is None else lease * SECOND
