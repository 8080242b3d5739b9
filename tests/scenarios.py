"""What must behave alike on every surface, written once: calls, and what must come of each.

Fields have their names of the HTTP API; the task that a verb is about is ``task``. Text that begins with ``@`` stands
for something that an earlier answer held: ``@a`` is the id of the task in the answer named ``a``, ``@a:token`` the
token of its lease, ``@a:ending`` the last six characters of its id, ``@a:next`` its cursor.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tests.support import STATUSES, WRONG_TOKEN

if TYPE_CHECKING:
    from collections.abc import Mapping

NOWHERE = "01J00000000000000000000000"
"""A well-formed id that no task has."""


@dataclasses.dataclass(frozen=True)
class Step:
    """One call.

    ``code`` is the refusal that it must meet, empty where it must work; ``facts`` are what its ``data`` (or the
    ``details`` of its refusal) must hold, by path. The answer is kept under ``name``.
    """

    verb: str
    arguments: Mapping[str, Any]
    name: str = ""
    code: str = ""
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def gives(self, facts: Mapping[str, Any]) -> Step:
        """Expect these facts in the answer, such as ``{"task.status": "done"}``."""
        return dataclasses.replace(self, facts=facts)

    def refused(self, code: str, **details: Any) -> Step:
        """Expect a refusal with these details."""
        return dataclasses.replace(self, code=code, facts=details)


def do(verb: str, **arguments: Any) -> Step:
    """Return a call; ``"add as a"`` keeps its answer under the name ``a``."""
    verb, _, name = verb.partition(" as ")
    return Step(verb, arguments, name)


def wait(**length: float) -> Step:
    """Return a step that moves the clock."""
    return Step("wait", length)


def at(path: str, value: Any) -> Any:
    """Return what lies at a path such as ``tasks.0.title`` in a JSON value."""
    for key in path.split("."):
        value = value[int(key) if isinstance(value, list) else key]
    return value


# Short words for what many scenarios begin with

ADD_A = do("add as a", title="Task A")
ADD_B = do("add as b", title="Task B")
HOLD_A = do("claim as held", task="@a", agent="ada")
TOKEN = "@held:token"


def _in_review() -> tuple[Step, ...]:
    return (
        do("add as a", title="Task A", needs_approval=True),
        HOLD_A,
        do("complete", task="@a", token=TOKEN, result={"pages": 3}).gives({"task.status": "review"}),
    )


def _brought_to(status: str) -> tuple[Step, ...]:
    """Return the steps that lead task A to a status."""
    if status == "review":
        return _in_review()
    ends = {
        "queued": (),
        "claimed": (HOLD_A,),
        "running": (HOLD_A, do("heartbeat", task="@a", token=TOKEN)),
        "done": (HOLD_A, do("complete", task="@a", token=TOKEN)),
        "failed": (HOLD_A, do("fail", task="@a", token=TOKEN, error="broken", no_retry=True)),
        "cancelled": (do("cancel", task="@a"),),
    }
    return (ADD_A, *ends[status], do("show", task="@a").gives({"task.status": status}))


def _only_from(allowed: str, verb: str, **arguments: Any) -> dict[str, tuple[Step, ...]]:
    """Return a scenario in which a verb is refused to tasks of every other status, which the answers name."""
    return {
        f"{verb} takes only what is {allowed}": tuple(
            step
            for status in STATUSES
            if status not in allowed.split()
            for step in (
                *_brought_to(status),
                do(verb, task="@a", **arguments).refused("conflict", **{"reason": "status", "actual.status": status}),
                do("cancel", task="@a") if status == "queued" else do("show", task="@a"),
            )
        )
    }


UNDER_LEASE: dict[str, dict[str, Any]] = {
    "heartbeat": {},
    "complete": {},
    "fail": {"error": "broken"},
    "release": {},
    "handoff": {"to": "bob"},
}
"""The verbs of a holder, and what each needs beside the token."""

WITH_TASK: dict[str, dict[str, Any]] = {
    "claim": {"agent": "ada"},
    "resume": {"agent": "ada"},
    **{verb: {"token": WRONG_TOKEN, **needs} for verb, needs in UNDER_LEASE.items()},
    "done": {},
    "approve": {},
    "reject": {"note": "more"},
    "reassign": {"to": "bob"},
    "retry": {},
    "cancel": {},
    "update": {"priority": 1},
    "comment": {"text": "hello"},
    "show": {},
    "why": {},
    "events": {},
}
"""Every verb that takes a task, and what it needs beside."""

ANY_VALUES: tuple[Any, ...] = (0, False, "text", [], {}, [[1]], 1.5, -(2**63), "")

_BAD_FIELDS: dict[str, Any] = {
    "title": "two\nlines",
    "body": "x" * 200_001,
    "queue": "x" * 101,
    "priority": 1_000_001,
    "assignee": "two\nlines",
    "due_at": "someday",
    "not_before": "2026-12-01T25:00:00",
    "tags": ["x" * 65],
    "params": [1, 2],
    "dedupe_key": "x" * 201,
    "max_attempts": 0,
}
"""A value of each field that neither add nor update takes: the limits themselves are held by ``test_inputs.py``."""

SCENARIOS: dict[str, tuple[Step, ...]] = {
    # What waits for a task that ended otherwise
    "a task that waits for a cancelled one is stuck": (
        ADD_A,
        do("add as b", title="Task B", blocked_by=["@a"]).gives({"task.blocked": True, "task.stuck": False}),
        do("add as c", title="Task C", blocked_by=["@b"]),
        do("cancel", task="@a"),
        do("show", task="@b").gives({"task.stuck": True}),
        do("show", task="@c").gives({"task.stuck": True, "task.ready": False, "task.blocked": True}),
        do("add as d", title="Task D", blocked_by=["@c"]).gives({"task.stuck": True}),
        do("claim", task="@d", agent="ada").refused("conflict", reason="blocked"),
        do("claim", agent="ada").gives({"": None}),
        do("add as e", title="Task E"),
        do("claim as held", task="@e", agent="ada"),
        do("add", title="Task F", blocked_by=["@e"]),
        do("fail", task="@e", token=TOKEN, error="broken", no_retry=True).gives({"task.status": "failed"}),
    ),
    # The way of a task
    "a task goes from its making to its end": (
        ADD_B,
        do(
            "add as a", title="  Write the parser ", body="# Grammar\n\nas *agreed*: äöü ✓", queue="core", priority=7,
            assignee="Ada", due_at="2026-12-24", not_before="2026-11-01T08:00:00+02:00",
            tags=["parser", "now", "parser"],
            params={"files": ["a.py"], "deep": {"n": 1.5, "none": None}}, dedupe_key="parser-1", max_attempts=5,
            needs_approval=True, actor="maria",
        ).gives({
            "created": True, "task.title": "Write the parser", "task.status": "queued", "task.tags": ["parser", "now"],
            "task.due_at": "2026-12-24T15:59:59.999+00:00", "task.not_before": "2026-11-01T06:00:00.000+00:00",
            "task.created_by": "maria", "task.ready": True, "task.version": 1,
        }),
        do("claim as held", task="@a", agent="ada", lease="30m", if_status="queued", comment="Picking this up.").gives(
            {"task.status": "claimed", "task.claimed_by": "Ada", "lease.fence": 1, "task.attempts": 1}
        ),
        wait(minutes=3),
        do("heartbeat", task="@a", token=TOKEN, progress=40, note="grammar written").gives(
            {"task.status": "running", "task.progress": 40, "task.lease_expires_at": "2026-11-30T01:26:20.000+00:00"}
        ),
        do("heartbeat", task="@a", token=TOKEN),
        do("heartbeat", task="@a", token=TOKEN, lease=3600, progress=100),
        wait(minutes=1),
        do(
            "complete", task="@a", token=TOKEN, result={"tests": 12, "ok": [True, None, "ü"]},
            artifacts=["build/report.html", "a b.txt", "build/report.html"], note="all green",
        ).gives({
            "task.status": "review", "task.artifacts": ["build/report.html", "a b.txt"], "task.finished_at": None,
        }),
        wait(minutes=1),
        do("approve", task="@a", note="well done", actor="maria").gives(
            {"task.status": "done", "task.claimed_by": "Ada", "task.result.tests": 12}
        ),
        do("comment", task="@a", text="Thanks!\nAll of you.").gives(
            {"event.kind": "commented", "event.data": {"text": "Thanks!\nAll of you."}, "event.actor": "carla"}
        ),
        do("show", task="@a").gives({
            "attempts.0.outcome": "completed", "attempts.0.note": "all green",
            "comments.0.data.text": "Picking this up.", "comments.0.actor_kind": "agent",
            "comments.1.actor_kind": "human",
        }),
        do("events", task="@a"),
    ),
    "a result may be any JSON value": tuple(
        step
        for value in ANY_VALUES
        for step in (
            ADD_A, HOLD_A,
            do("complete", task="@a", token=TOKEN, result=value).gives({"task.result": value, "task.status": "done"}),
        )
    ),
    "a result stays until the next one": (
        *_in_review(),
        do("reject", task="@a", note="more"),
        do("claim as held", task="@a", agent="ada").gives({"task.result": {"pages": 3}}),
        do("complete", task="@a", token=TOKEN).gives({"task.result": None}),
    ),
    # Claims
    "a claim takes the largest priority, then the oldest": (
        ADD_A,
        do("add as b", title="Task B", priority=-1),
        do("add as c", title="Task C", priority=9),
        do("add as d", title="Task D"),
        *(
            do("claim", agent="ada").gives({"task.title": f"Task {letter}"})
            for letter in "CADB"
        ),
        do("claim", agent="ada").gives({"": None}),
    ),
    "a claim chooses by queues and tags": (
        do("add", title="Task A", queue="docs", tags=["x"]),
        do("add", title="Task B", queue="core", tags=["x", "y"]),
        do("add", title="Task C", queue="core", tags=["y"], priority=5),
        do("claim", agent="ada", queue=["nothing"]).gives({"": None}),
        do("claim", agent="ada", queue=["core", "docs"], tags=["x", "y"]).gives({"task.title": "Task B"}),
        do("claim", agent="ada", queue=["docs"]).gives({"task.title": "Task A"}),
        do("claim", agent="ada", tags=["x"]).gives({"": None}),
        do("claim", agent="ada", if_status="queued").gives({"task.title": "Task C"}),
    ),
    "a claim that finds nothing says what there is": (
        do("claim", agent="ada").gives({"": None}),
        ADD_A,
        do("add", title="Task B", blocked_by=["@a"]),
        do("add", title="Task C", not_before="2027-01-01T00:00:00+00:00"),
        do("add", title="Task D", assignee="bob"),
        HOLD_A,
        do("claim", agent="cleo").gives({"": None}),
    ),
    "a task for one agent is claimed by it only, however it writes its name": (
        do("add as a", title="Task A", assignee="Ada"),
        do("claim", agent="bob").gives({"": None}),
        do("claim", task="@a", agent="bob").refused("conflict", reason="assigned"),
        do("claim", task="@a", agent="ADA").gives({"task.claimed_by": "Ada", "task.assignee": "Ada"}),
    ),
    "a claimed task is not claimed again": (
        ADD_A,
        do("claim", task="@a", agent="ada"),
        wait(minutes=1),
        do("claim", task="@a", agent="bob").refused(
            "conflict",
            reason="status",
            actual={
                "status": "claimed", "version": 2, "claimed_by": "ada",
                "claimed_at": "2026-11-30T00:53:20.000+00:00", "lease_expires_at": "2026-11-30T01:08:20.000+00:00",
            },
        ),
        do("claim", task="@a", agent="ada").refused("conflict", reason="status"),
        do("claim", agent="bob").gives({"": None}),
    ),
    **_only_from("queued", "claim", agent="bob"),
    "a claim of a task that is not ready says why": (
        ADD_A,
        do("add as b", title="Task B", blocked_by=["@a"]).gives({"task.blocked": True, "task.ready": False}),
        do("add as c", title="Task C", not_before="2026-11-30T01:00:00+00:00").gives({"task.delayed": True}),
        do("claim", task="@b", agent="ada").refused("conflict", **{"reason": "blocked", "actual.status": "queued"}),
        do("claim", task="@c", agent="ada").refused("conflict", reason="delayed"),
        wait(minutes=10),
        do("claim", task="@c", agent="ada").gives({"task.status": "claimed"}),
        HOLD_A,
        do("complete", task="@a", token=TOKEN),
        do("claim", task="@b", agent="ada").gives({"task.status": "claimed"}),
    ),
    "a claim may expect a status": (
        ADD_A,
        do("claim", task="@a", agent="ada", if_status="failed").refused("conflict", reason="status"),
        do("claim", task="@a", agent="ada", if_status="queued"),
        do("claim", task="@a", agent="ada", if_status="claimed").refused("conflict", reason="status"),
    ),
    "an expired lease is taken back by the next claim": (
        ADD_A,
        do("claim as first", task="@a", agent="ada", lease="1m"),
        wait(minutes=1),
        do("show", task="@a").gives({"task.status": "claimed", "task.lease_expired": True}),
        do("claim as second", agent="bob").gives({"task.claimed_by": "bob", "lease.fence": 2, "task.attempts": 2}),
        do("complete", task="@a", token="@first:token").refused(
            "lease_lost", **{"actual.claimed_by": "bob", "actual.status": "claimed"}
        ),
        do("complete", task="@a", token="@second:token").gives({"task.status": "done"}),
        do("events", task="@a"),
    ),
    "a task whose last attempt expires has failed": (
        do("add as a", title="Task A", max_attempts=1),
        HOLD_A,
        wait(minutes=15),
        do("claim", agent="bob").gives({"": None}),
        do("show", task="@a").gives({"task.status": "failed", "attempts.0.outcome": "expired"}),
    ),
    # Resume
    "a holder that lost its token gets another": (
        ADD_A,
        HOLD_A,
        do("heartbeat", task="@a", token=TOKEN),
        wait(minutes=5),
        do("resume as again", task="@a", agent="ADA").gives(
            {"task.status": "running", "lease.fence": 2, "lease.expires_at": "2026-11-30T01:08:20.000+00:00"}
        ),
        do("heartbeat", task="@a", token=TOKEN).refused("lease_lost"),
        do("resume as more", task="@a", agent="ada", lease="1h").gives(
            {"lease.fence": 3, "lease.expires_at": "2026-11-30T01:58:20.000+00:00", "task.attempts": 1}
        ),
        do("complete", task="@a", token="@again:token").refused("lease_lost"),
        do("complete", task="@a", token="@more:token").gives({"task.status": "done"}),
    ),
    "nobody else resumes": (
        ADD_A,
        HOLD_A,
        do("resume", task="@a", agent="bob").refused(
            "conflict", **{"reason": "assigned", "actual.claimed_by": "ada"}
        ),
        wait(minutes=15),
        do("resume", task="@a", agent="ada").refused("lease_lost", **{"actual.status": "claimed"}),
    ),
    **_only_from("claimed running", "resume", agent="ada"),
    # Verbs under a lease
    **{
        f"{verb} needs the token of a live lease": (
            ADD_A,
            do(verb, task="@a", token=WRONG_TOKEN, **needs).refused("lease_lost", **{"actual.status": "queued"}),
            HOLD_A,
            do(verb, task="@a", token=WRONG_TOKEN, **needs).refused(
                "lease_lost", **{"actual.status": "claimed", "actual.claimed_by": "ada", "actual.version": 2}
            ),
            do(verb, task="@a", **needs).refused("invalid_input", field="token"),
            do(verb, task="@a", token="x" * 201, **needs).refused("invalid_input", field="token"),
            wait(minutes=15),
            do(verb, task="@a", token=TOKEN, **needs).refused("lease_lost", **{"actual.claimed_by": "ada"}),
            do("show", task="@a").gives({"task.status": "claimed", "task.version": 2}),
        )
        for verb, needs in UNDER_LEASE.items()
    },
    **{
        f"{verb} is answered again after a lost reply": (
            ADD_A,
            HOLD_A,
            do(verb, task="@a", token=TOKEN, **UNDER_LEASE[verb]),
            do(verb, task="@a", token=TOKEN, **UNDER_LEASE[verb]).gives({"replayed": True}),
            do("events", task="@a"),
            *(
                do(other, task="@a", token=TOKEN, **needs).refused("lease_lost")
                for other, needs in UNDER_LEASE.items()
                if other != verb
            ),
        )
        for verb in ("complete", "fail", "release", "handoff")
    },
    "failing waits longer each time, until no attempt is left": (
        do("add as a", title="Task A"),
        HOLD_A,
        do("fail", task="@a", token=TOKEN, error="no network").gives(
            {
                "task.status": "queued", "task.delayed": True, "task.error": "no network",
                "task.not_before": "2026-11-30T00:53:50.000+00:00",
            }
        ),
        wait(seconds=30),
        HOLD_A,
        do("fail", task="@a", token=TOKEN, error="no\nnetwork").gives(
            {"task.not_before": "2026-11-30T00:54:50.000+00:00"}
        ),
        wait(seconds=60),
        HOLD_A,
        do("fail", task="@a", token=TOKEN, error="never").gives({"task.status": "failed", "task.attempts": 3}),
        do("show", task="@a"),
    ),
    "a failure may say when to try again, or never": (
        ADD_A,
        HOLD_A,
        do("fail", task="@a", token=TOKEN, error="later", retry_in="1h30m").gives(
            {"task.not_before": "2026-11-30T02:23:20.000+00:00"}
        ),
        wait(minutes=90),
        HOLD_A,
        do("fail", task="@a", token=TOKEN, error="later", retry_in=0).gives({"task.ready": True}),
        HOLD_A,
        do("fail", task="@a", token=TOKEN, error="x", retry_in="1h", no_retry=True).refused(
            "invalid_input", field="retry_in"
        ),
        do("fail", task="@a", token=TOKEN, error="never", no_retry=True).gives({"task.status": "failed"}),
    ),
    "a released task keeps its attempt, and may wait": (
        ADD_A,
        HOLD_A,
        do("heartbeat", task="@a", token=TOKEN, progress=10),
        do("release", task="@a", token=TOKEN, after="1h", note="the build is red").gives(
            {"task.status": "queued", "task.attempts": 0, "task.delayed": True, "task.progress": None}
        ),
        wait(minutes=60),
        do("claim", task="@a", agent="bob"),
        do("show", task="@a").gives({"attempts.0.outcome": "released", "attempts.0.note": "the build is red"}),
    ),
    "a task handed off waits for the other agent, with a note": (
        ADD_A,
        HOLD_A,
        do("handoff", task="@a", token=TOKEN, to="ada").refused("invalid_input", field="to"),
        do("handoff", task="@a", token=TOKEN, to="none").refused("invalid_input", field="to"),
        do("handoff", task="@a", token=TOKEN, to="Bob", note="colours missing").gives(
            {"task.status": "queued", "task.assignee": "Bob", "task.attempts": 0}
        ),
        do("claim", agent="ada").gives({"": None}),
        do("claim", agent="bob").gives({"task.claimed_by": "Bob"}),
    ),
    "a holder may say who acted for it": (
        ADD_A,
        HOLD_A,
        do("heartbeat", task="@a", token=TOKEN, note="on it", actor="ada-helper", agent="ada"),
        do("complete", task="@a", token=TOKEN, actor="ada-helper", agent="ada"),
        do("events", task="@a").gives({"events.2.actor": "ada-helper", "events.2.actor_kind": "agent"}),
    ),
    "a small task is done in one call, by an agent where it could claim it": (
        do("add as a", title="Task A"),
        do("done", task="@a", agent="Ada", result={"pages": 3}, artifacts=["a.txt"], note="was easy").gives(
            {
                "task.status": "done", "task.claimed_by": "Ada", "task.attempts": 1, "task.fence": 1,
                "task.version": 2, "task.result": {"pages": 3}, "task.artifacts": ["a.txt"],
            }
        ),
        do("show", task="@a").gives(
            {"attempts.0.agent": "Ada", "attempts.0.outcome": "completed", "attempts.0.note": "was easy"}
        ),
        do("events", task="@a").gives(
            {"events.1.kind": "claimed", "events.2.kind": "completed", "events.2.actor_kind": "agent"}
        ),
        do("add as b", title="Task B", needs_approval=True),
        do("done", task="@b", agent="ada", actor="helper").gives({"task.status": "review", "task.claimed_by": "Ada"}),
        do("events", task="@b").gives({"events.2.actor": "helper", "events.2.actor_kind": "agent"}),
        do("approve", task="@b", actor="ada").refused("not_permitted"),
        do("add as c", title="Task C", blocked_by=["@b"]),
        do("done", task="@c", agent="ada").refused("conflict", reason="blocked"),
        do("add as d", title="Task D", not_before="2027-01-01"),
        do("done", task="@d", agent="ada").refused("conflict", reason="delayed"),
        do("add as e", title="Task E", assignee="bob"),
        do("done", task="@e", agent="ada").refused("conflict", reason="assigned"),
        do("done", task="@e", agent="none").refused("invalid_input", field="agent"),
        do("done", task="@e", agent="bob").gives({"task.status": "done"}),
    ),
    "a person may finish whatever is queued, and is told what stood against it": (
        ADD_A,
        do(
            "add as b", title="Task B", blocked_by=["@a"], not_before="2027-01-01", assignee="bob", needs_approval=True
        ),
        do("done", task="@b", note="by hand").gives(
            {"task.status": "done", "task.claimed_by": None, "task.claimed_at": None, "task.attempts": 1}
        ),
        do("show", task="@b").gives({"attempts.0.agent": "carla", "attempts.0.outcome": "completed"}),
        do("events", task="@b").gives({"events.2.kind": "completed", "events.2.actor_kind": "human"}),
        do("done", task="@b").refused("conflict", **{"reason": "status", "actual.status": "done"}),
    ),
    "whoever held a task finishes it as an agent, whatever it says it is": (
        do("add as a", title="Task A", needs_approval=True),
        HOLD_A,
        do("release", task="@a", token=TOKEN),
        do("done", task="@a", actor="ADA").gives({"task.status": "review", "task.claimed_by": "ada"}),
    ),
    "a lease that has ended does not keep a task from being done": (
        ADD_A,
        HOLD_A,
        do("done", task="@a", agent="bob").refused("conflict", **{"reason": "status", "actual.claimed_by": "ada"}),
        wait(minutes=15),
        do("done", task="@a", agent="bob").gives({"task.status": "done", "task.attempts": 2, "task.fence": 2}),
    ),
    **_only_from("queued", "done"),
    **_only_from("queued", "done", agent="bob"),
    "instants may count from now": (
        do("add as a", title="Task A", due_at="tomorrow", not_before="+2d").gives(
            {"task.due_at": "2026-12-01T15:59:59.999+00:00", "task.not_before": "2026-12-02T00:53:20.000+00:00"}
        ),
        do("update", task="@a", due_at="Friday", not_before="today").gives(
            {"task.due_at": "2026-12-04T15:59:59.999+00:00", "task.not_before": "2026-11-29T16:00:00.000+00:00"}
        ),
        do("update", task="@a", due_at="+2").gives({"task.due_at": "2026-11-30T00:53:22.000+00:00"}),
        do("add as b", title="Task B", due_at="+1h", request_id="r1"),
        wait(minutes=5),
        do("add", title="Task B", due_at="+1h", request_id="r1").gives({"replayed": True, "task.id": "@b"}),
        do("add", title="Task B", due_at="+2h", request_id="r1").refused("conflict", reason="request_id"),
    ),
    # People
    "a person sends work back": (
        *_in_review(),
        do("reject", task="@a").refused("invalid_input", field="note"),
        do("reject", task="@a", note="").refused("invalid_input", field="note"),
        do("reject", task="@a", note="the colours are missing").gives(
            {"task.status": "queued", "task.attempts": 0, "task.result": {"pages": 3}, "task.claimed_by": None}
        ),
        do("claim", task="@a", agent="ada"),
        do("events", task="@a").gives({"events.3.kind": "rejected", "events.3.actor_kind": "human"}),
    ),
    **{
        f"{verb} is for people": (
            *_in_review(),
            do(verb, task="@a", note="x", agent="bob").refused("not_permitted"),
            do(verb, task="@a", note="x", agent="bob", actor="maria").refused("not_permitted"),
            do(verb, task="@a", note="x", actor="ada").refused("not_permitted"),
            do(verb, task="@a", note="x", actor="ADA").refused("not_permitted"),
            do("show", task="@a").gives({"task.status": "review", "task.version": 3}),
            do(verb, task="@a", note="x"),
        )
        for verb in ("approve", "reject")
    },
    "a task in review is cancelled by people": (
        *_in_review(),
        do("cancel", task="@a", agent="bob").refused("not_permitted"),
        do("cancel", task="@a", actor="ADA").refused("not_permitted"),
        do("show", task="@a").gives({"task.status": "review", "task.version": 3}),
        do("cancel", task="@a").gives({"task.status": "cancelled"}),
        do("cancel", task="@a", agent="bob").refused("conflict", reason="status"),
    ),
    **_only_from("review", "approve"),
    **_only_from("review", "reject", note="more"),
    "an approval cannot be waived by an agent": (
        do("add as a", title="Task A", needs_approval=True),
        do("update", task="@a", needs_approval=False, agent="bob").refused("not_permitted"),
        do("update", task="@a", needs_approval=True, priority=1, agent="bob").gives({"task.priority": 1}),
        do("update", task="@a", needs_approval=False).gives({"task.needs_approval": False}),
        do("update", task="@a", needs_approval=True, agent="bob").gives({"task.needs_approval": True}),
    ),
    # Steering
    "a task is taken from its holder": (
        ADD_A,
        HOLD_A,
        do("reassign", task="@a", to="Bob", note="ada is ill", actor="maria").gives(
            {"task.status": "queued", "task.assignee": "Bob", "task.attempts": 0}
        ),
        do("heartbeat", task="@a", token=TOKEN).refused("lease_lost", **{"actual.status": "queued"}),
        do("reassign", task="@a", to="none").gives({"task.assignee": None}),
        do("claim", agent="cleo").gives({"task.claimed_by": "cleo"}),
        wait(minutes=20),
        do("reassign", task="@a", to="ada").gives({"task.attempts": 1}),
        do("show", task="@a").gives({"attempts.0.outcome": "revoked", "attempts.1.outcome": "expired"}),
    ),
    **_only_from("queued claimed running", "reassign", to="bob"),
    "an ended task is tried again": (
        ADD_A,
        HOLD_A,
        do("fail", task="@a", token=TOKEN, error="x", no_retry=True),
        do("retry", task="@a").gives({"task.status": "queued", "task.attempts": 0, "task.finished_at": None}),
        do("cancel", task="@a", note="no longer wanted").gives({"task.status": "cancelled"}),
        do("retry", task="@a", agent="bob").gives({"task.status": "queued"}),
        do("events", task="@a"),
    ),
    **_only_from("failed cancelled", "retry"),
    "a task whose key was taken meanwhile is not tried again": (
        do("add as a", title="Task A", dedupe_key="k"),
        do("cancel", task="@a"),
        do("add as b", title="Task B", dedupe_key="k"),
        do("retry", task="@a").refused("conflict", **{"reason": "dedupe", "actual.status": "queued"}),
    ),
    "a task that is not finished can be cancelled": tuple(
        step
        for status in ("queued", "claimed", "running", "review")
        for step in (
            *_brought_to(status),
            do("cancel", task="@a", note="enough").gives({"task.status": "cancelled", "task.lease_expires_at": None}),
            do("show", task="@a"),
        )
    ),
    **_only_from("queued claimed running review", "cancel"),
    "a comment goes with any task": (
        *(
            step
            for status in STATUSES
            for step in (
                *_brought_to(status),
                do("comment", task="@a", text="seen", agent="bob").gives(
                    {"event.actor": "bob", "event.actor_kind": "agent"}
                ),
            )
        ),
        do("comment", task="@a", text="").refused("invalid_input", field="text"),
        do("comment", task="@a", text="x" * 20_001).refused("invalid_input", field="text"),
    ),
    # Changes
    "fields are changed and cleared": (
        ADD_B,
        ADD_A,
        do(
            "update", task="@a", title="New", body="text", queue="core", priority=3, assignee="Ada",
            due_at="2026-12-01", not_before="2026-11-01", tags=["x", "y"], blocked_by=["@b"], params={"a": 1},
            dedupe_key="k", max_attempts=7, needs_approval=True, actor="maria",
        ).gives({
            "task.title": "New", "task.version": 2, "task.blocked": True, "task.tags": ["x", "y"],
            "task.due_at": "2026-12-01T15:59:59.999+00:00", "task.not_before": "2026-10-31T16:00:00.000+00:00",
        }),
        do("update", task="@a", tags=["z"]).gives({"task.tags": ["z"], "task.version": 3}),
        do("update", task="@a", tags=["z"]).gives({"task.version": 3}),
        do(
            "update", task="@a", body=None, queue=None, priority=None, assignee=None, due_at=None, not_before=None,
            tags=None, blocked_by=None, params=None, dedupe_key=None, max_attempts=None,
        ).gives({
            "task.body": "", "task.queue": "default", "task.priority": 0, "task.assignee": None, "task.due_at": None,
            "task.not_before": None, "task.tags": [], "task.blocked_by": [], "task.params": {},
            "task.dedupe_key": None, "task.max_attempts": 3, "task.ready": True, "task.title": "New",
        }),
        do("update", task="@a").refused("invalid_input"),
        do("events", task="@a"),
    ),
    "its creator and its holder change the words of a task": (
        do("add as a", title="Task A", body="old", tags=["x"]),
        do("update", task="@a", title="  New  ", body="# Text\n\nas *agreed*: äöü", priority=-3, tags=["z", "z"]).gives(
            {"task.title": "New", "task.tags": ["z"], "task.priority": -3, "task.version": 2}
        ),
        do("update", task="@a:ending", title="New").gives({"task.version": 2}),
        HOLD_A,
        do("update", task="@a", body="What is left.", agent="ada").gives({"task.version": 4, "task.status": "claimed"}),
        do("update", task="@a", title="x" * 501, agent="ada").refused("invalid_input", field="title"),
        do("update", task=NOWHERE, title="New", agent="ada").refused("not_found"),
        do("events", task="@a"),
    ),
    "an edit may expect a status and a version": (
        ADD_A,
        do("update", task="@a", priority=1, if_status="queued", if_version=1).gives({"task.version": 2}),
        do("update", task="@a", priority=2, if_version=1).refused(
            "conflict", **{"reason": "version", "actual.version": 2, "actual.status": "queued"}
        ),
        do("update", task="@a", priority=2, if_status="claimed").refused(
            "conflict", **{"reason": "status", "actual.status": "queued"}
        ),
        do("update", task="@a", priority=2, if_status="open").refused("invalid_input", field="if_status"),
        do("update", task="@a", priority=2, if_version=-1).refused("invalid_input", field="if_version"),
        do("show", task="@a").gives({"task.priority": 1, "task.version": 2}),
    ),
    **_only_from("queued claimed running review", "update", priority=1),
    "a task that somebody holds is not reassigned by an edit": (
        ADD_A,
        HOLD_A,
        do("update", task="@a", assignee="bob").refused("conflict", **{"reason": "status", "actual.claimed_by": "ada"}),
        do("update", task="@a", priority=4).gives({"task.status": "claimed", "task.priority": 4}),
    ),
    "an edit takes no attempt away that was used": (
        ADD_A,
        HOLD_A,
        do("fail", task="@a", token=TOKEN, error="x", retry_in=0),
        do("update", task="@a", max_attempts=1).refused("invalid_input", field="max_attempts"),
        do("update", task="@a", max_attempts=2).gives({"task.max_attempts": 2}),
    ),
    # Dependencies
    "who waits for whom is said, and circles are refused": (
        ADD_A,
        do("add as b", title="Task B", blocked_by=["@a:ending"]).gives({"task.blocked_by": ["@a"]}),
        do("add as c", title="Task C", blocked_by=["@b", "@a", "@b"]).gives({"task.blocked_by": ["@b", "@a"]}),
        do("update", task="@a", blocked_by=["@c"]).refused(
            "conflict", reason="cycle", cycle=["@a", "@c", "@a"]
        ),
        do("update", task="@a", blocked_by=["@a"]).refused("conflict", reason="cycle", cycle=["@a", "@a"]),
        do("update", task="@c", blocked_by=["@a"]).gives({"task.blocked_by": ["@a"]}),
        do("add", title="Task D", blocked_by=[NOWHERE]).refused("not_found"),
        do("add", title="Task D", blocked_by=["?"]).refused("invalid_input"),
        do("update", task="@a", blocked_by=[NOWHERE]).refused("not_found"),
        do("show", task="@a").gives({"dependents.0.id": "@b", "dependents.1.id": "@c", "dependencies": []}),
        do("cancel", task="@a"),
        do("show", task="@b").gives({"task.blocked": True, "dependencies.0.status": "cancelled"}),
    ),
    # Keys
    "a dedupe key is held by one unfinished task": (
        do("add as a", title="Task A", dedupe_key="k"),
        do("add", title="Task B", dedupe_key="k", priority=5).gives(
            {"created": False, "task.id": "@a", "task.priority": 0}
        ),
        do("add", title="Task B", dedupe_key="k", claim=True, agent="ada").refused(
            "conflict", **{"reason": "dedupe", "task_id": "@a", "actual.status": "queued"}
        ),
        ADD_B,
        do("update", task="@b", dedupe_key="k").refused("conflict", reason="dedupe", task_id="@a"),
        HOLD_A,
        do("complete", task="@a", token=TOKEN),
        do("add", title="Task B", dedupe_key="k").gives({"created": True}),
        do("list").gives({"next": None}),
    ),
    "a task is added and claimed in one": (
        do("add as a", title="Task A", claim=True, agent="ada", lease="1h", tags=["x"]).gives(
            {
                "created": True, "task.status": "claimed", "task.claimed_by": "ada", "task.attempts": 1,
                "lease.fence": 1, "lease.expires_at": "2026-11-30T01:53:20.000+00:00",
            }
        ),
        do("complete", task="@a", token="@a:token").gives({"task.status": "done"}),
        do("add as b", title="Task B"),
        do("add", title="Task C", claim=True, agent="ada", blocked_by=["@b"]).refused("conflict", reason="blocked"),
        do("add", title="Task C", claim=True, agent="ada", not_before="2027-01-01").refused(
            "conflict", reason="delayed"
        ),
        do("add", title="Task C", claim=True, agent="ada", assignee="bob").refused("conflict", reason="assigned"),
        do("add", title="Task C", claim=True).refused("invalid_input", field="agent"),
        do("add", title="Task C", claim=True, agent="none").refused("invalid_input", field="agent"),
        do("add", title="Task C", lease="1h").refused("invalid_input", field="lease"),
        do("list"),
    ),
    "a repeated add is answered again": (
        do("add as a", title="Task A", request_id="r1", tags=["x"]),
        wait(minutes=5),
        do("add", title="Task A", request_id="r1", tags=["x"]).gives(
            {"created": True, "replayed": True, "task.id": "@a"}
        ),
        do("add", title="Task A", request_id="r1", tags=["y"]).refused("conflict", reason="request_id"),
        do("claim", agent="ada", request_id="r1").refused("conflict", reason="request_id"),
        wait(days=1),
        do("add", title="Task A", request_id="r1", tags=["x"]).gives({"created": True}),
        do("list"),
    ),
    "a repeated claim is answered again under a fresh token": (
        ADD_A,
        ADD_B,
        do("claim as first", agent="ada", request_id="r1"),
        do("claim as second", agent="ada", request_id="r1").gives(
            {"replayed": True, "task.id": "@a", "lease.fence": 2, "task.attempts": 1}
        ),
        do("heartbeat", task="@a", token="@first:token").refused("lease_lost"),
        do("claim", agent="ada", request_id="r1", queue=["core"]).refused("conflict", reason="request_id"),
        do("complete", task="@a", token="@second:token"),
        do("claim", agent="ada", request_id="r1").refused("lease_lost", **{"actual.status": "done"}),
        do("claim as third", task="@b", agent="bob", request_id="r2"),
        do("claim", task="@b", agent="bob", request_id="r2").gives({"replayed": True}),
    ),
    "a repeated add with a claim is answered again": (
        do("add as a", title="Task A", claim=True, agent="ada", request_id="r1"),
        do("add as again", title="Task A", claim=True, agent="ada", request_id="r1").gives(
            {"created": True, "replayed": True, "lease.fence": 2, "task.id": "@a"}
        ),
        do("heartbeat", task="@a", token="@a:token").refused("lease_lost"),
        do("heartbeat", task="@a", token="@again:token"),
        wait(minutes=15),
        do("add", title="Task A", claim=True, agent="ada", request_id="r1").refused("lease_lost"),
    ),
    # Names of tasks
    "no verb finds a task that is not there": tuple(
        step
        for verb, needs in WITH_TASK.items()
        for step in (
            *(do(verb, task=task, **needs).refused("not_found", field="id") for task in (NOWHERE, "ZZZZ")),
            *(
                do(verb, task=task, **needs).refused("invalid_input", field="id")
                for task in ("abc", "8" * 26, "x" * 101)
            ),
        )
    ),
    "a task is known by the ending of its id": (
        do(
            "import",
            tasks=[{"id": f"01J0000000000000000000{ending}", "title": f"Task {ending}"} for ending in ("AB12", "CB12")],
        ),
        do("show", task="ab12").gives({"task.title": "Task AB12"}),
        do("show", task="01j0000000000000000000ab12").gives({"task.title": "Task AB12"}),
        do("import", tasks=[{"id": "01J00000000000000000C0AB12", "title": "Task twin"}]),
        do("show", task="AB12").refused(
            "invalid_input", field="id", candidates=["01J0000000000000000000AB12", "01J00000000000000000C0AB12"]
        ),
        do("cancel", task="AB12").refused("invalid_input", field="id"),
        do("show", task="c0ab12").gives({"task.title": "Task twin"}),
        do("add", title="Task D", blocked_by=["ab12"]).refused("invalid_input"),
    ),
    # Values
    "a new task is refused by the name of a bad field": (
        *(
            do("add", **{"title": "Task A", field: value}).refused("invalid_input", field=field)
            for field, value in _BAD_FIELDS.items()
        ),
        do("list").gives({"tasks": []}),
    ),
    "an edit is refused by the name of a bad field": (
        ADD_A,
        *(
            do("update", **{"task": "@a", field: value}).refused("invalid_input", field=field)
            for field, value in _BAD_FIELDS.items()
        ),
        do("show", task="@a").gives({"task.version": 1}),
    ),
    "lengths of time are refused by name": (
        ADD_A,
        *(
            do("claim", task="@a", agent="ada", lease=lease).refused("invalid_input", field="lease")
            for lease in ("8d", "soon", "")
        ),
        HOLD_A,
        do("heartbeat", task="@a", token=TOKEN, lease="999d").refused("invalid_input", field="lease"),
        do("heartbeat", task="@a", token=TOKEN, progress=101).refused("invalid_input", field="progress"),
        do("heartbeat", task="@a", token=TOKEN, progress=-1).refused("invalid_input", field="progress"),
        do("resume", task="@a", agent="ada", lease="x").refused("invalid_input", field="lease"),
        do("release", task="@a", token=TOKEN, after="400d").refused("invalid_input", field="after"),
        do("fail", task="@a", token=TOKEN, error="x", retry_in="soon").refused("invalid_input", field="retry_in"),
        do("show", task="@a").gives({"task.version": 2}),
    ),
    "texts and names are refused by name": (
        ADD_A,
        do("claim", task="@a", agent="none").refused("invalid_input", field="agent"),
        do("claim", task="@a", agent="x" * 101).refused("invalid_input", field="agent"),
        do("claim", task="@a", agent="two\nlines").refused("invalid_input", field="agent"),
        do("claim", task="@a", agent="ada", comment="").refused("invalid_input", field="comment"),
        do("claim", task="@a", agent="ada", comment="x" * 20_001).refused("invalid_input", field="comment"),
        do("claim", task="@a", agent="ada", if_status="open").refused("invalid_input", field="if_status"),
        do("claim", task="@a", agent="ada", request_id="x" * 201).refused("invalid_input", field="request_id"),
        do("claim", agent="ada", if_status="claimed").refused("invalid_input", field="if_status"),
        do("claim", agent="ada", queue=["x" * 101]).refused("invalid_input", field="queue"),
        do("claim", agent="ada", queue=[""]).refused("invalid_input", field="queue"),
        do("claim", agent="ada", tags=["x" * 65]).refused("invalid_input", field="tags"),
        do("claim", task="@a").refused("invalid_input", field="agent"),
        do("claim").refused("invalid_input", field="agent"),
        do("resume", task="@a").refused("invalid_input", field="agent"),
        do("add", title="Task B", request_id="x" * 201).refused("invalid_input", field="request_id"),
        do("add", title="Task B", actor="system").refused("invalid_input", field="actor"),
        do("add", title="Task B", actor="none").refused("invalid_input", field="actor"),
        do("cancel", task="@a", actor="x" * 101).refused("invalid_input", field="actor"),
        do("cancel", task="@a", note="x" * 20_001).refused("invalid_input", field="note"),
        do("reassign", task="@a", to="x" * 101).refused("invalid_input", field="to"),
        HOLD_A,
        do("fail", task="@a", token=TOKEN, error="").refused("invalid_input", field="error"),
        do("fail", task="@a", token=TOKEN, error="  ").refused("invalid_input", field="error"),
        do("fail", task="@a", token=TOKEN).refused("invalid_input", field="error"),
        do("fail", task="@a", token=TOKEN, error="x" * 20_001).refused("invalid_input", field="error"),
        do("complete", task="@a", token=TOKEN, artifacts=["x" * 4_097]).refused("invalid_input", field="artifacts"),
        do("complete", task="@a", token=TOKEN, artifacts=[""]).refused("invalid_input", field="artifacts"),
        do("complete", task="@a", token=TOKEN, result=2**63).refused("invalid_input", field="result"),
        do("complete", task="@a", token=TOKEN, note="x" * 20_001).refused("invalid_input", field="note"),
        do("show", task="@a").gives({"task.version": 2}),
    ),
    # Reads
    "a list meets every condition": (
        do("add as a", title="Task A", queue="core", tags=["x", "y"], assignee="ada", priority=1, due_at="2026-11-29"),
        do("add as b", title="Task B", queue="core", tags=["x"], blocked_by=["@a"], due_at="2026-12-05"),
        do("add as c", title="Task C", body="100% of_it", priority=5, params={"a": 1}),
        do("add as d", title="Task D", not_before="2027-01-01"),
        HOLD_A,
        do("cancel", task="@d"),
        do("list").gives(
            {"next": None, **{f"tasks.{at}.title": f"Task {letter}" for at, letter in enumerate("CBAD")}}
        ),
        do("list", order="age").gives({"next": None, "tasks.0.title": "Task A", "tasks.3.title": "Task D"}),
        do("list", order="newest").gives({"tasks.0.title": "Task D", "tasks.3.title": "Task A"}),
        do("list", status=["queued", "cancelled"]).gives({"tasks.0.title": "Task C", "tasks.2.title": "Task D"}),
        do("list", status=["queued,cancelled"]).gives({"tasks.0.title": "Task C", "tasks.2.title": "Task D"}),
        do("list", queue="core", tags=["x", "y"]).gives({"tasks.0.title": "Task A"}),
        do("list", assignee="ADA").gives({"tasks.0.title": "Task A"}),
        do("list", assignee="none", queue="core").gives({"tasks.0.title": "Task B"}),
        do("list", claimed_by="Ada").gives({"tasks.0.title": "Task A"}),
        do("list", ready=True).gives({"tasks.0.title": "Task C"}),
        do("list", blocked=True).gives({"tasks.0.title": "Task B"}),
        do("list", overdue=True).gives({"tasks.0.title": "Task A"}),
        do("list", search="100% of_").gives({"tasks.0.title": "Task C", "tasks.0.snippet": "100% of_it"}),
        do("list", search='"task c"').gives({"tasks.0.title": "Task C", "tasks.0.snippet": "Task C"}),
        do("list", search="c TASK").gives({"tasks.0.title": "Task C"}),
        do("list", search="no such").gives({"tasks": []}),
        do("list", search="@b:ending").gives({"tasks.0.title": "Task B"}),
        do("list", search="Task C", full=True).gives({"tasks.0.body": "100% of_it", "tasks.0.params": {"a": 1}}),
        do("list", order="priority").gives({"tasks.0.title": "Task C"}),
        do("list", order="due").gives({"tasks.0.title": "Task A", "tasks.1.title": "Task B"}),
        do("list", order="updated"),
        do("agents").gives({"agents.0.name": "ada", "agents.0.holds.0.title": "Task A"}),
        do("stats").gives({"tasks": 4, "ready": 1, "blocked": 1, "by_status.cancelled": 1, "days": 14}),
        do("stats", days=2).gives({"finished.1.cancelled": 1}),
    ),
    "a list is read page by page": (
        *(do("add", title=f"Task {number}", priority=number % 3) for number in range(7)),
        *(
            step
            for order in ("age", "priority", "updated", "due")
            for step in (
                do("list as first", order=order, limit=3),
                do("list as second", order=order, limit=3, after="@first:next"),
                do("list", order=order, limit=3, after="@second:next").gives({"next": None}),
            )
        ),
        do("list", order="due", after="@second:next"),
        do("list", order="age", after="@second:next").refused("invalid_input", field="after"),
        *(
            do("list", **{field: value}).refused("invalid_input", field=field)
            for field, value in (
                ("status", ["open"]), ("order", "size"), ("limit", 0), ("limit", 100_001), ("after", "x"),
                ("search", "x" * 501), ("queue", ""), ("claimed_by", "none"), ("assignee", "x" * 101), ("tags", [""]),
            )
        ),
        do("events as first", limit=2).gives({"next": 2}),
        do("events", after=2, limit=2).gives({"next": 4, "events.0.seq": 3}),
        do("events", after=99).gives({"next": 99, "events": []}),
        do("events", limit=0).refused("invalid_input", field="limit"),
        do("events", limit=10_001).refused("invalid_input", field="limit"),
        do("events", after=-1).refused("invalid_input", field="after"),
        do("stats", days=0).refused("invalid_input", field="days"),
        do("stats", days=367).refused("invalid_input", field="days"),
    ),
    "an empty board is read": (
        do("list").gives({"tasks": [], "next": None}),
        do("events").gives({"events": [], "next": 0}),
        do("agents").gives({"agents": []}),
        do("stats").gives({"tasks": 0, "lead_time.median": None}),
    ),
}  # fmt: skip
