"""The lifecycle of one task as a plain model, written from docs/lifecycle.md: what may each call be told?

``outcomes`` lists every answer that the contract allows to a call on a task in a given state. A call happens at one
instant between its begin and its end. The board reads its clock before that, once nobody else can write, so not before
the latest write happened; a look needs no clock, and may still see the task as it was after the clock was read. Where
nobody was told the clock, it is a window. All instants and lengths are milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

FOREVER = 1 << 60
LEASED = ("claimed", "running")
FINAL = ("done", "failed", "cancelled")

Window = tuple[int, int]

_UNKNOWN = "known to"
"""How a token begins in a state that only the caller has seen, or nobody."""


class Call(NamedTuple):
    """One call as its caller saw it, or as far as its caller saw it."""

    id: str
    verb: str
    agent: str | None
    person: str | None
    args: dict[str, Any]
    begun: int
    ended: int
    """``FOREVER`` where no answer arrived: the call may still take effect, or never."""
    answer: dict[str, Any] | None
    """What the caller was told; ``None`` where no answer arrived."""
    optional: bool = False
    """Whether the call may have had no effect at all."""
    clock: int | None = None
    """What the board's clock said, where that is known."""

    @property
    def latest(self) -> int:
        """The latest instant at which the board can have read its clock."""
        return self.ended if self.clock is None else self.clock


class State(NamedTuple):
    """All that decides what a call on this task may be told."""

    status: str
    holder: str | None
    token: str | None
    ends: Window
    length: int
    fence: int
    version: int
    attempts: int
    budget: int
    assignee: str | None
    waits: Window
    approval: bool
    waits_for_others: bool
    archived: bool
    number: int
    spent: frozenset[tuple[str, str]]
    requests: frozenset[tuple[str, int]]
    now: int
    """The earliest instant at which the next call can happen; to a verb below, what the clock says."""
    clock: int
    """The earliest instant that the board's clock can say to the next one that writes."""


class Outcome(NamedTuple):
    """One allowed answer, and the state after it."""

    code: str
    after: State
    replayed: bool = False


def first(call: Call) -> Iterator[Outcome]:
    """List what an ``add`` may be told that makes the task."""
    if call.verb != "add":
        return
    args, now = call.args, call.begun if call.clock is None else call.clock
    state = State(
        status="queued",
        holder=None,
        token=None,
        ends=(0, 0),
        length=0,
        fence=0,
        version=1,
        attempts=0,
        budget=args["max_attempts"],
        assignee=None,
        waits=(0, 0),
        approval=args.get("needs_approval", False),
        waits_for_others=bool(args.get("depends_on")),
        archived=False,
        number=0,
        spent=frozenset(),
        requests=frozenset({(args["request_id"], 0)}),
        now=now,
        clock=now,
    )
    if args.get("claim"):
        state = _claimed(state, call, now)
    yield Outcome("ok", state)


def outcomes(state: State, call: Call) -> Iterator[Outcome]:
    """List every answer that the contract allows to a call on this task, none earlier than ``state.now``."""
    if call.verb == "show":
        now = max(state.now, call.begun)
        if now <= call.ended:
            yield Outcome("ok", state._replace(now=now))
        return
    clock = max(state.clock, call.begun)
    if call.clock is not None:
        if call.clock < clock:
            return
        clock = call.clock
    for code, after, replayed in _VERBS[call.verb](state._replace(now=clock), call):
        now = max(state.now, after.now)
        if after.now <= call.latest and now <= call.ended:
            yield Outcome(code, after._replace(now=now, clock=now), replayed)


def by_itself(state: State, *, archives: bool) -> Iterator[State]:
    """List what may happen to a task without any call on it: expiry, and the archive where somebody archives.

    An expiry can be part of the transaction of the claim that follows it. So it reads the clock no earlier than any
    write, but a look may come between that and the claim.
    """
    if state.status in LEASED:
        over, clock = state.attempts >= state.budget, max(state.clock, state.ends[0])
        yield state._replace(
            status="failed" if over else "queued",
            holder=state.holder if over else None,
            token=None,
            version=state.version + 1,
            now=max(state.now, clock),
            clock=clock,
        )
    if archives and state.status in FINAL and not state.archived:
        yield state._replace(archived=True, version=state.version + 1)


def fitting(outcome: Outcome, call: Call) -> State | None:
    """Return the state after an outcome if it is what the caller was told, with windows narrowed to that."""
    answer, state = call.answer, outcome.after
    if answer is None:
        return state if outcome.code == "ok" else None
    if answer["code"] != outcome.code or bool(answer.get("replayed")) != outcome.replayed:
        return None
    told = answer.get("task") or answer.get("actual") or {}
    for field, known in (
        ("status", state.status),
        ("version", state.version),
        ("fence", state.fence),
        ("attempts", state.attempts),
        ("claimed_by", state.holder),
        ("assignee", state.assignee),
    ):
        if field in told and told[field] != known:
            return None
    if "ends" in told:
        if (told["ends"] is None) != (state.status not in LEASED):
            return None
        if told["ends"] is not None:
            ends = max(state.ends[0], told["ends"][0]), min(state.ends[1], told["ends"][1])
            if ends[0] > ends[1]:
                return None
            state = state._replace(ends=ends)
    granted = answer.get("lease")
    if granted is not None:
        if granted["fence"] not in (None, state.fence):
            return None
        if state.token is None or (granted["token"] != state.token and not state.token.startswith(_UNKNOWN)):
            return None
        state = state._replace(token=granted["token"])
    return state


def _alive(state: State, *, token: str | None = None) -> State | None:
    """Return the state if the lease can be live now (and has this token), with its end no earlier than that."""
    if state.status not in LEASED or token not in (None, state.token) or state.now >= state.ends[1]:
        return None
    return state._replace(ends=(max(state.ends[0], state.now + 1), state.ends[1]))


def _dead(state: State, call: Call) -> State | None:
    """Return the state at the earliest instant of the call at which the lease has run out."""
    now = max(state.now, state.ends[0])
    if now > call.latest:
        return None
    return state._replace(now=now, ends=(state.ends[0], min(state.ends[1], call.latest)))


def _lease(state: State, call: Call, length: int) -> dict[str, Any]:
    return {"ends": (state.now + length, min(FOREVER, call.latest + length)), "length": length}


def _claimed(state: State, call: Call, now: int) -> State:
    state = state._replace(now=now)
    number = state.number + 1
    return state._replace(
        status="claimed",
        holder=call.agent,
        token=f"{_UNKNOWN} {call.id}",
        fence=state.fence + 1,
        version=state.version + 1,
        attempts=state.attempts + 1,
        number=number,
        requests=state.requests | {(call.args["request_id"], number)},
        **_lease(state, call, call.args["lease"]),
    )


def _renewed(state: State, call: Call, length: int | None) -> State:
    given = {} if length is None else _lease(state, call, length)
    return state._replace(token=f"{_UNKNOWN} {call.id}", fence=state.fence + 1, version=state.version + 1, **given)


def _queued(state: State, **changes: Any) -> State:
    changes = {"version": state.version + 1, **changes}
    return state._replace(status="queued", holder=None, token=None, **changes)


def _add(state: State, call: Call) -> Iterator[Outcome]:
    numbers = [number for request, number in state.requests if request == call.args["request_id"]]
    if numbers and not call.args.get("claim"):
        yield Outcome("ok", state, replayed=True)
    elif numbers:
        yield from _claim_again(state, call, max(numbers))


def _meet(state: State, call: Call) -> Iterator[Outcome]:
    """An ``add`` whose dedupe key this task holds."""
    if state.status not in FINAL:
        yield Outcome("ok", state)
    yield Outcome("ok", state, replayed=True)


def _claim(state: State, call: Call) -> Iterator[Outcome]:
    numbers = [number for request, number in state.requests if request == call.args["request_id"]]
    if numbers:
        yield from _claim_again(state, call, max(numbers))
        return
    if state.status == "queued":
        ready = max(state.now, state.waits[0])
        if state.assignee in (None, call.agent):
            yield Outcome("ok", _claimed(state, call, ready))
        else:
            yield Outcome("conflict/assigned", state)
        if state.now < state.waits[1]:
            yield Outcome("conflict/delayed", state)
        if state.waits_for_others:
            yield Outcome("conflict/blocked", state)
    elif state.status in LEASED:
        alive = _alive(state)  # a lease that has run out would have been taken back by this very claim
        if alive is not None:
            yield Outcome("conflict/status", alive)
    else:
        yield Outcome("conflict/status", state)


def _claim_again(state: State, call: Call, number: int) -> Iterator[Outcome]:
    if state.status in LEASED and state.number == number and state.holder == call.agent:
        alive = _alive(state)
        if alive is not None:
            yield Outcome("ok", _renewed(alive, call, call.args["lease"]), replayed=True)
        dead = _dead(state, call)
        if dead is not None:
            yield Outcome("lease_lost", dead)
    else:
        yield Outcome("lease_lost", state)


def _resume(state: State, call: Call) -> Iterator[Outcome]:
    if state.status not in LEASED:
        yield Outcome("conflict/status", state)
    elif state.holder != call.agent:
        yield Outcome("conflict/assigned", state)
    else:
        alive, dead = _alive(state), _dead(state, call)
        if alive is not None:
            yield Outcome("ok", _renewed(alive, call, call.args.get("lease")))
        if dead is not None:
            yield Outcome("lease_lost", dead)


def _under_lease(state: State, call: Call) -> Iterator[Outcome]:
    """Every verb that presents a token."""
    token, verb = call.args["token"], call.verb
    if (token, verb) in state.spent:
        yield Outcome("ok", state, replayed=True)
        return
    alive = _alive(state, token=token)
    if alive is not None:
        yield Outcome("ok", _ended(alive, call))
    if state.status in LEASED and token == state.token:
        dead = _dead(state, call)
        if dead is not None:
            yield Outcome("lease_lost", dead)
    else:
        yield Outcome("lease_lost", state)


def _ended(state: State, call: Call) -> State:
    """Return the state after the holder's verb."""
    args = call.args
    if call.verb == "heartbeat":
        return state._replace(
            status="running",
            version=state.version + (state.status == "claimed"),
            **_lease(state, call, args.get("lease") or state.length),
        )
    state = state._replace(spent=state.spent | {(args["token"], call.verb)})
    if call.verb == "complete":
        status = "review" if state.approval else "done"
        return state._replace(status=status, token=None, version=state.version + 1)
    if call.verb == "fail":
        if args.get("no_retry") or state.attempts >= state.budget:
            return state._replace(status="failed", token=None, version=state.version + 1)
        return _queued(state, waits=_wait(state, call, args["retry_in"]))
    given_back = {"attempts": state.attempts - 1}
    if call.verb == "handoff":
        return _queued(state, assignee=args["to"], **given_back)
    waits = state.waits if args.get("after") is None else _wait(state, call, args["after"])
    return _queued(state, waits=waits, **given_back)


def _wait(state: State, call: Call, length: int) -> Window:
    return state.now + length, min(FOREVER, call.latest + length)


def _done(state: State, call: Call) -> Iterator[Outcome]:
    """A claim and a complete in one: by an agent of what it could claim, by a person of anything queued."""
    if state.status in LEASED:
        alive = _alive(state)  # a lease that has run out would have been taken back by this very call
        if alive is not None:
            yield Outcome("conflict/status", alive)
        return
    if state.status != "queued":
        yield Outcome("conflict/status", state)
        return
    after = state._replace(
        status="review" if state.approval and call.person is None else "done",
        holder=call.agent,
        fence=state.fence + 1,
        version=state.version + 1,
        attempts=state.attempts + 1,
        number=state.number + 1,
    )
    if call.person is not None:
        yield Outcome("ok", after)
        return
    if state.assignee in (None, call.agent):
        yield Outcome("ok", after._replace(now=max(state.now, state.waits[0])))
    else:
        yield Outcome("conflict/assigned", state)
    if state.now < state.waits[1]:
        yield Outcome("conflict/delayed", state)
    if state.waits_for_others:
        yield Outcome("conflict/blocked", state)


def _approve(state: State, call: Call) -> Iterator[Outcome]:
    if call.person is None:
        yield Outcome("not_permitted", state)
    elif state.status != "review":
        yield Outcome("conflict/status", state)
    elif call.verb == "approve":
        yield Outcome("ok", state._replace(status="done", version=state.version + 1))
    else:
        yield Outcome("ok", _queued(state, attempts=0))


def _reassign(state: State, call: Call) -> Iterator[Outcome]:
    to = call.args["to"]
    if state.status == "queued":
        yield Outcome("ok", _queued(state, assignee=to))
    elif state.status not in LEASED:
        yield Outcome("conflict/status", state)
    else:
        alive, dead = _alive(state), _dead(state, call)
        if alive is not None:
            yield Outcome("ok", _queued(alive, assignee=to, attempts=alive.attempts - 1))
        if dead is not None:
            left = dead.attempts - (dead.attempts == dead.budget)
            yield Outcome("ok", _queued(dead, assignee=to, attempts=left))


def _retry(state: State, call: Call) -> Iterator[Outcome]:
    if state.status in ("failed", "cancelled"):
        yield Outcome("ok", _queued(state, attempts=0, archived=False))
        yield Outcome("conflict/dedupe", state)  # whether the key is free is a question to all tasks: see ledger.py
    else:
        yield Outcome("conflict/status", state)


def _cancel(state: State, call: Call) -> Iterator[Outcome]:
    if state.status in FINAL:
        yield Outcome("conflict/status", state)
    elif state.status == "review" and call.person is None:
        yield Outcome("not_permitted", state)
    else:
        yield Outcome("ok", state._replace(status="cancelled", token=None, version=state.version + 1))


def _update(state: State, call: Call) -> Iterator[Outcome]:
    wanted = call.args.get("if_version")
    if state.status in FINAL:
        yield Outcome("conflict/status", state)
    if wanted not in (None, state.version):
        yield Outcome("conflict/version", state)
    elif state.status not in FINAL:
        yield Outcome("ok", state._replace(version=state.version + 1))


def _comment(state: State, call: Call) -> Iterator[Outcome]:
    yield Outcome("ok", state)


_VERBS = {
    "add": _add,
    "meet": _meet,
    "claim": _claim,
    "resume": _resume,
    "done": _done,
    "approve": _approve,
    "reject": _approve,
    "reassign": _reassign,
    "retry": _retry,
    "cancel": _cancel,
    "update": _update,
    "comment": _comment,
    **dict.fromkeys(("heartbeat", "complete", "fail", "release", "handoff"), _under_lease),
}
