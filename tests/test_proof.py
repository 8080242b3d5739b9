"""The proof by trial: a short run, what its checks find in histories that are wrong, and a run of any length.

``ATB_PROOF_SECONDS=600 ATB_PROOF_SEED=7 pytest -m soak tests/test_proof.py -n0`` is the long one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.proof import run
from tests.proof.checker import linearizable
from tests.proof.journal import Entry, Journal, read
from tests.proof.ledger import Ledger
from tests.proof.lifecycle import FOREVER, Call
from tests.proof.sabotage import SABOTAGES, Sabotage, sabotaged

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = float(os.environ.get("ATB_PROOF_SECONDS", "3600"))
SEED = int(os.environ.get("ATB_PROOF_SEED", "1"))
"""Read here, before the fixtures take all variables of the board away."""


# Runs


def test_callers_of_every_surface_under_kills_and_freezes_are_told_nothing_that_the_contract_forbids(
    tmp_path: Path,
) -> None:
    report = run.prove(tmp_path, seconds=10, seed=1)
    assert report["violations"] == []
    for surface in ("cli", "http", "mcp", "python"):
        assert any(work.startswith(f"{surface} ") for work in report["worked"]), report
    assert report["counts"]["restarts"] > 0, report


@pytest.mark.parametrize("name", SABOTAGES)
def test_a_sabotaged_board_is_found(tmp_path: Path, name: str) -> None:
    source = sabotaged(SABOTAGES[name], tmp_path / "source")
    for seed in range(12):  # the fault must meet a call that suffers from it; mostly the first run is enough
        place = tmp_path / f"board {seed}"
        place.mkdir()
        report = run.prove(
            place, seconds=4, seed=seed, source=source, callers={"python": 3}, servers=0, chores=(),
            kill_every=60, freeze_every=60,
        )  # fmt: skip
        if any("no order of the calls" in violation for violation in report["violations"]):
            return
    pytest.fail(f"{name}: twelve runs found nothing")


def test_a_sabotage_whose_fragment_is_gone_is_no_sabotage(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="stands 0 times"):
        sabotaged(Sabotage("a fragment that nobody wrote", ""), tmp_path / "source")


@pytest.mark.soak
def test_a_run_of_any_length_finds_nothing(tmp_path: Path) -> None:
    report = run.prove(tmp_path, seconds=SECONDS, seed=SEED)
    print(run.as_text(report))
    assert report["violations"] == []


# The search, on histories of one task written by hand: each call with its begin and end, and what was told

ADA, BOB = "token of ada", "token of bob"


def call(
    text: str, answer: dict[str, Any] | None, *, optional: bool = False, person: str | None = None, **args: Any
) -> Call:
    """Write a call as ``BEGIN-END AGENT VERB``; an end that is missing means that no answer arrived."""
    times, agent, verb = text.split(" ")
    begun, _, ended = times.partition("-")
    if verb in ("add", "claim"):
        args = {"request_id": text, "lease": 1_000, "max_attempts": 3, **args}
    end = int(ended) if ended else FOREVER
    return Call(text, verb, None if person else agent, person, args, int(begun), end, answer, optional)


def ok(status: str, version: int, **more: Any) -> dict[str, Any]:
    """Tell that a call worked, and how the task is now."""
    answer: dict[str, Any] = {"code": "ok", "task": {"status": status, "version": version, **more}}
    for name in ("replayed", "created"):
        if name in answer["task"]:
            answer[name] = answer["task"].pop(name)
    if "token" in answer["task"]:
        answer["lease"] = {"token": answer["task"].pop("token"), "fence": more.get("fence")}
    return answer


def lost(status: str, version: int) -> dict[str, Any]:
    return {"code": "lease_lost", "actual": {"status": status, "version": version}}


def conflict(status: str, version: int, reason: str = "status") -> dict[str, Any]:
    return {"code": f"conflict/{reason}", "actual": {"status": status, "version": version}}


ADDED = call("0-5 ada add", ok("queued", 1), max_attempts=2)
CLAIMED = call("10-15 ada claim", ok("claimed", 2, fence=1, attempts=1, claimed_by="ada", token=ADA))
EXPIRED = call("1100-1105 bob claim", ok("claimed", 4, fence=2, attempts=2, claimed_by="bob", token=BOB))
DONE = call("100-105 ada complete", ok("done", 3), token=ADA)

RIGHT: dict[str, list[Call]] = {
    "one agent, from add to complete": [
        ADDED,
        CLAIMED,
        call("20-25 ada heartbeat", ok("running", 3), token=ADA),
        call("30-35 ada complete", ok("done", 4), token=ADA),
        call("40-45 bob show", ok("done", 4, claimed_by="ada", fence=1)),
    ],
    "of two claims at once one wins, in whatever order they ended": [
        ADDED,
        call("10-90 ada claim", ok("claimed", 2, fence=1, token=ADA)),
        call("11-20 bob claim", conflict("claimed", 2)),
    ],
    "a look may be older than a write that has begun": [
        ADDED,
        call("10-90 ada claim", ok("claimed", 2, fence=1, token=ADA)),
        call("11-20 bob show", ok("queued", 1)),
    ],
    "an expired lease is lost to its holder": [
        ADDED,
        CLAIMED,
        EXPIRED,
        call("1110-1115 ada complete", lost("claimed", 4), token=ADA),
        call("1120-1125 bob complete", ok("done", 5), token=BOB),
    ],
    "a dead lease is lost before anybody takes the task": [
        ADDED,
        CLAIMED,
        call("1100-1105 ada complete", lost("claimed", 2), token=ADA),
    ],
    "a call without an answer was done": [
        ADDED,
        CLAIMED,
        call("100- ada complete", None, optional=True, token=ADA),
        call("200-205 ada complete", ok("done", 3, replayed=True), token=ADA),
    ],
    "a call without an answer was not done": [
        ADDED,
        CLAIMED,
        call("100- ada complete", None, optional=True, token=ADA),
        call("200-205 bob show", ok("claimed", 2)),
        EXPIRED,
    ],
    "a call without an answer was done after its caller was gone": [
        ADDED,
        CLAIMED,
        call("100- ada complete", None, optional=True, token=ADA),
        call("200-205 bob show", ok("claimed", 2)),
        call("300-305 bob show", ok("done", 3)),
    ],
    "the same claim again gets the same attempt under a new token": [
        ADDED,
        call("10- ada claim", None, optional=True, request_id="once"),
        call("20-25 ada claim", ok("claimed", 3, fence=2, attempts=1, token=ADA, replayed=True), request_id="once"),
        DONE._replace(answer=ok("done", 4)),
    ],
    "the same add with claim again gets the same attempt under a new token": [
        call("0-5 ada add", ok("claimed", 2, fence=1, token="first", created=True), claim=True, request_id="once"),
        call(
            "10-15 ada add",
            ok("claimed", 3, fence=2, token=ADA, created=True, replayed=True),
            claim=True,
            request_id="once",
        ),
        DONE._replace(answer=ok("done", 4)),
    ],
    "the last attempt expires into failed, and the archive takes it": [
        ADDED._replace(args={**ADDED.args, "max_attempts": 1}),
        CLAIMED,
        call("1100-1105 bob show", ok("failed", 3, attempts=1, claimed_by="ada")),
        call("1200-1205 bob show", ok("failed", 4)),
        call("1210-1215 - retry", ok("queued", 5, attempts=0, claimed_by=None), person="maria"),
    ],
    "a claim takes back a dead lease, and a look still sees the task as it was before": [
        ADDED,
        CLAIMED,
        EXPIRED._replace(ended=1_120, clock=1_101),
        call("1110-1115 eve show", ok("claimed", 2)),
    ],
    "a heartbeat moves the end of the lease": [
        ADDED,
        CLAIMED,
        call("900-905 ada heartbeat", ok("running", 3), token=ADA),
        call("1500-1505 ada complete", ok("done", 4), token=ADA),
    ],
}

WRONG: dict[str, list[Call]] = {
    "two winners": [
        ADDED,
        call("10-90 ada claim", ok("claimed", 2, fence=1, token=ADA)),
        call("11-20 bob claim", ok("claimed", 2, fence=1, token=BOB)),
    ],
    "complete after the end of the lease": [
        ADDED,
        CLAIMED,
        call("1100-1105 ada complete", ok("done", 3), token=ADA),
    ],
    "complete in time by the caller's clock, too late by the board's": [
        ADDED,
        CLAIMED._replace(clock=10),
        call("1000-1105 ada complete", ok("done", 3), token=ADA)._replace(clock=1_010),
    ],
    "complete with another token": [
        ADDED,
        CLAIMED,
        call("20-25 bob complete", ok("done", 3), token=BOB),
    ],
    "complete with a token that was replaced": [
        ADDED,
        CLAIMED,
        call("20-25 ada resume", ok("claimed", 3, fence=2, token="new")),
        call("30-35 ada complete", ok("done", 4), token=ADA),
    ],
    "an acknowledged completion is gone": [
        ADDED,
        CLAIMED,
        DONE,
        call("200-205 bob show", ok("claimed", 2)),
    ],
    "an acknowledged completion is gone, and the task is done by another": [
        ADDED,
        CLAIMED,
        DONE,
        EXPIRED,
    ],
    "refused though the lease lives": [
        ADDED,
        CLAIMED,
        call("20-25 ada complete", lost("claimed", 2), token=ADA),
    ],
    "expired before its end": [
        ADDED,
        CLAIMED,
        call("500-505 bob claim", ok("claimed", 4, fence=2, token=BOB)),
    ],
    "a claim by name that leaves a dead lease where it is": [
        ADDED,
        CLAIMED,
        call("1100-1105 bob claim", conflict("claimed", 2)),
    ],
    "a look that is older than an answer": [
        ADDED,
        CLAIMED,
        call("20-25 bob show", ok("queued", 1)),
    ],
    "done twice": [
        ADDED,
        CLAIMED,
        DONE,
        call("110-115 ada complete", ok("done", 3), token=ADA),
    ],
    "another verb with a token that is spent": [
        ADDED,
        CLAIMED,
        DONE,
        call("110-115 ada release", ok("done", 3, replayed=True), token=ADA),
    ],
    "a fence that was given out before": [
        ADDED,
        CLAIMED,
        EXPIRED._replace(answer={**ok("claimed", 4), "lease": {"token": BOB, "fence": 1}}),
    ],
    "a write whose clock is behind that of the write before it": [
        ADDED,
        call("10-90 ada claim", ok("claimed", 2, fence=1, token=ADA))._replace(clock=80),
        call("60-95 ada complete", ok("done", 3), token=ADA)._replace(clock=70),
    ],
    "an attempt that is not given back": [
        ADDED,
        CLAIMED,
        call("20-25 ada release", ok("queued", 3, attempts=1), token=ADA),
    ],
    "an agent approves": [
        ADDED._replace(args={**ADDED.args, "needs_approval": True}),
        CLAIMED,
        call("20-25 ada complete", ok("review", 3), token=ADA),
        call("30-35 bob approve", ok("done", 4)),
    ],
    "done without the approval that it needs": [
        ADDED._replace(args={**ADDED.args, "needs_approval": True}),
        CLAIMED,
        call("20-25 ada complete", ok("done", 3), token=ADA),
    ],
    "the same claim again gets another attempt": [
        ADDED,
        CLAIMED,
        CLAIMED._replace(begun=1_100, ended=1_105, answer=ok("claimed", 4, fence=2, attempts=2, token=BOB)),
    ],
    "claimed by somebody else than it was passed to": [
        ADDED,
        CLAIMED,
        call("20-25 ada handoff", ok("queued", 3, assignee="eve"), token=ADA, to="eve"),
        call("30-35 bob claim", ok("claimed", 4, fence=2, token=BOB)),
    ],
    "claimed before its wait is over": [
        ADDED,
        CLAIMED,
        call("20-25 ada fail", ok("queued", 3), token=ADA, retry_in=500),
        call("300-305 bob claim", ok("claimed", 4, fence=2, token=BOB)),
    ],
    "failed with attempts left": [
        ADDED,
        CLAIMED,
        call("20-25 ada fail", ok("failed", 3), token=ADA, retry_in=0),
    ],
    "a call without an answer was done before it began": [
        ADDED,
        CLAIMED,
        call("200-205 bob show", ok("done", 3)),
        call("300- ada complete", None, optional=True, token=ADA),
    ],
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_history_that_the_contract_allows_has_an_order(name: str) -> None:
    verdict = linearizable(RIGHT[name], archives=True)
    assert verdict.holds, verdict.why


@pytest.mark.parametrize("name", WRONG)
def test_a_history_that_the_contract_forbids_has_none(name: str) -> None:
    verdict = linearizable(WRONG[name], archives=True)
    assert not verdict.holds
    assert "no order of the calls" in verdict.why


def test_an_archive_that_nobody_asked_for_is_found() -> None:
    assert not linearizable(RIGHT["the last attempt expires into failed, and the archive takes it"]).holds


# The board's history against the journals

AT = "2026-12-01T06:00:00.{:03}+00:00"
START = 1_796_104_800_000


def entry(number: str, verb: str, at: int, answer: dict[str, Any] | None, **more: Any) -> Entry:
    found = Entry({
        "id": number, "mark": f"<{number}>", "surface": "python", "agent": "ada", "verb": verb, "task": "T",
        "begun": START + at - 5, **more,
    })  # fmt: skip
    if answer is not None:
        found.answer, found.ended = answer, START + at + 5
    return found


def event(seq: int, kind: str, at: int, task: str = "T", **data: Any) -> dict[str, Any]:
    changes = {name: {"from": change[0], "to": change[1]} for name, change in data.pop("changes", {}).items()}
    return {"seq": seq, "task_id": task, "kind": kind, "at": AT.format(at), "data": {**data, "changes": changes}}


def history() -> tuple[list[Entry], list[dict[str, Any]]]:
    """Return journals and a history that agree: added, claimed, completed."""
    told = {"code": "ok", "task": {"id": "T"}}
    entries = [
        entry("a.1", "add", 10, told, task=None),
        entry("a.2", "claim", 20, {**told, "lease": {"token": ADA, "fence": 1}}, task=None),
        entry("a.3", "complete", 30, told, args={"token": ADA}),
        entry("a.4", "complete", 40, {"code": "lease_lost"}, args={"token": BOB}),
    ]
    events = [
        event(1, "created", 10, changes={"title": (None, "<a.1>"), "status": (None, "queued")}),
        event(
            2, "claimed", 20, lease_expires_at=AT.format(900),
            changes={"status": ("queued", "claimed"), "fence": (0, 1)},
        ),
        event(3, "commented", 20, text="<a.2>"),
        event(4, "completed", 30, note="<a.3>", changes={"status": ("claimed", "done")}),
    ]  # fmt: skip
    return entries, events


def found(entries: list[Entry], events: list[dict[str, Any]]) -> str:
    return "\n".join(Ledger(entries, events).violations())


def test_journals_and_history_that_agree_are_let_pass() -> None:
    assert found(*history()) == ""


def test_an_acknowledged_call_without_an_event_is_found() -> None:
    entries, events = history()
    assert "acknowledged, but the history has no event" in found(entries, events[:3])


def test_a_call_that_was_done_twice_is_found() -> None:
    entries, events = history()
    assert "done 2 times" in found(entries, [*events, event(5, "completed", 31, note="<a.3>")])


def test_a_refused_call_with_an_event_is_found() -> None:
    entries, events = history()
    assert "refused, but the history has an event" in found(entries, [*events, event(5, "completed", 40, note="<a.4>")])


def test_a_call_without_an_answer_may_have_an_event_or_none() -> None:
    entries, events = history()
    assert found([*entries, entry("a.5", "comment", 50, None)], events) == ""
    assert (
        found([*entries, entry("a.5", "comment", 50, None)], [*events, event(5, "commented", 60, text="<a.5>")]) == ""
    )


def test_the_history_says_when_a_call_without_an_answer_was_done() -> None:
    entries, events = history()
    entries += [
        entry("a.5", "comment", 50, None),
        entry("a.6", "comment", 60, None),
        entry("a.7", "resume", 70, None),
        entry("a.8", "cancel", 80, {"code": "busy"}),
        entry("a.9", "claim", 90, {"code": "ok", "nothing": True}, task=None),
    ]
    ledger = Ledger(entries, [*events, event(5, "commented", 53, text="<a.5>")])
    done, perhaps = ledger.calls_by_task()["T"][4:]  # a.6 left no mark; a.8 and a.9 did nothing
    assert (done.id, done.clock, done.optional) == ("a.5", START + 53, False)
    assert (perhaps.id, perhaps.ended, perhaps.optional) == ("a.7", FOREVER, True)


def test_whoever_holds_a_dedupe_key_was_seen_by_the_call_that_was_refused_for_it() -> None:
    entries, events = history()
    answer = {"code": "conflict/dedupe", "other": {"id": "U", "status": "queued", "version": 7}}
    calls = Ledger([*entries, entry("a.5", "retry", 50, answer)], events).calls_by_task()
    assert [call.verb for call in calls["T"]] == ["add", "claim", "complete", "complete", "retry"]
    (seen,) = calls["U"]
    assert seen.verb == "meet"
    assert seen.answer == {"code": "ok", "task": answer["other"]}


def test_an_event_that_nobody_caused_is_found() -> None:
    entries, events = history()
    assert "nobody made" in found(entries, [*events, event(5, "commented", 60, text="<b.1>")])


def test_an_event_outside_its_call_is_found() -> None:
    entries, events = history()
    assert "outside the call" in found(entries, [*events[:3], {**events[3], "at": AT.format(300)}])


def test_a_backup_must_hold_what_was_told_before_it_and_no_more() -> None:
    entries, events = history()
    assert Ledger(entries, events).told_before(START + 36, events[2:]) == events[2:]
    assert Ledger(entries, events).told_before(START + 35, events[2:]) == events[2:3]


def test_an_event_of_another_kind_or_on_another_task_than_told_is_found() -> None:
    entries, events = history()
    assert "another event than that of the verb" in found(entries, [*events[:3], {**events[3], "kind": "approved"}])
    elsewhere = event(4, "completed", 30, "U", note="<a.3>")
    assert "done to another task than told" in found(entries, [*events[:3], elsewhere])


def test_a_fence_that_no_event_has_is_found() -> None:
    entries, events = history()
    fence = {"code": "ok", "task": {"id": "T"}, "lease": {"token": BOB, "fence": 2}}
    assert "no event has the fence" in found([*entries, entry("a.5", "resume", 25, fence)], events)


def test_a_lease_that_was_lost_before_it_was_given_is_found() -> None:
    entries, events = history()
    assert "nobody was given" in found([*entries, entry("a.5", "claim", 50, {"code": "lease_lost"}, task=None)], events)


def test_a_gap_in_the_history_is_found() -> None:
    entries, events = history()
    assert "event 5 stands where 4 should" in found(entries, [*events[:3], {**events[3], "seq": 5}])


def test_an_answer_that_tells_of_a_bug_is_found() -> None:
    entries, events = history()
    assert "nothing explains" in found([*entries, entry("a.5", "show", 50, {"code": "internal"})], events)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (event(4, "claimed", 30, lease_expires_at=AT.format(990), changes={"status": ("claimed", "claimed")}),
         "claimed while leased"),
        (event(4, "expired", 30, changes={"status": ("claimed", "queued")}), "870 ms before its end"),
        (event(4, "completed", 950, note="<a.3>", changes={"status": ("claimed", "done")}), "50 ms after its lease"),
        (event(4, "resumed", 30, changes={"fence": (1, 1)}), "fence 1 before"),
        (event(4, "completed", 15, note="<a.3>", changes={"status": ("claimed", "done")}), "time runs back"),
        (event(4, "completed", 30, note="<a.3>", changes={"status": ("running", "done")}), "claimed before"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_history_that_breaks_a_rule_of_leases_is_found(changed: dict[str, Any], why: str) -> None:
    entries, events = history()
    assert why in found(entries, [*events[:3], changed])


def test_a_change_after_done_is_found() -> None:
    entries, events = history()
    after = event(5, "retried", 50, changes={"status": ("done", "queued")})
    assert "done is final" in found(entries, [*events, after])


def test_a_fence_that_was_given_out_twice_is_found() -> None:
    entries, events = history()
    again = entry("a.5", "resume", 25, {"code": "ok", "task": {"id": "T"}, "lease": {"token": BOB, "fence": 1}})
    assert "was given out to" in found([*entries, again], events)


def test_a_claim_of_a_blocked_task_is_found() -> None:
    entries, events = history()
    events[0]["data"]["changes"]["blocked_by"] = {"from": [], "to": ["U"]}
    assert "claimed while blocked" in found(entries, events)


def test_two_unfinished_tasks_with_one_key_are_found() -> None:
    entries, events = history()
    key = {"dedupe_key": (None, "red"), "status": (None, "queued")}
    more = [event(5, "created", 50, "U", changes=key), event(6, "created", 60, "V", changes=key)]
    assert "two unfinished tasks with one key" in found(entries, [*events, *more])


def test_a_journal_tells_what_was_asked_though_its_writer_died(tmp_path: Path) -> None:
    path = tmp_path / "ada.journal"
    journal = Journal(path)
    for number in ("ada.1", "ada.2"):
        journal.begin({"id": number, "verb": "claim", "mark": f"<{number}>", "surface": "cli", "agent": "ada"})
        if number == "ada.1":
            journal.end(number, {"code": "ok", "nothing": True})
    with path.open("ab") as file:
        file.write(b'{"id": "ada.2", "ended": 17')
    answered, unanswered = read(path)
    assert answered.accepted
    assert answered.begun <= answered.ended < FOREVER
    assert (unanswered.answer, unanswered.ended) == (None, FOREVER)
