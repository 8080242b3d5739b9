"""Why a task is not being worked on: the leading reason of many boards, and where it is said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board.board.why import REASONS
from tests.support import MARIA, STATUSES, bring_to, hold, lease_of, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_task_board import Board
    from tests.support import Clock

    Built = Callable[[Board, Clock], str]

NOW = "2026-11-30T00:53:20"


def added(board: Board, **fields: Any) -> str:
    return board.add("it", **fields).task.id


def behind(board: Board, *ids: str, **fields: Any) -> str:
    return added(board, depends_on=ids, **fields)


def ended(board: Board, status: str) -> str:
    return bring_to(board, status).id


def held(board: Board, clock: Clock, *, minutes: int = 0, agent: str = "bob", **lease: Any) -> str:
    task = added(board)
    hold(board, agent, **lease)
    clock.advance(minutes=minutes)
    return task


def chain(board: Board, root: str, steps: int) -> str:
    for _ in range(steps):
        root = behind(board, root)
    return root


def seen_then(board: Board, clock: Clock, agent: str, task: Callable[[], str]) -> str:
    other = added(board)
    lease = hold(board, agent)
    board.complete(other, lease.token)
    clock.advance(minutes=5)
    return task()


def returned(board: Board, clock: Clock) -> str:
    task = ended(board, "review")
    clock.advance(minutes=1)
    board.reject(task, note="more", actor=MARIA)
    return task


def later(clock: Clock, task: str, minutes: int) -> str:
    clock.advance(minutes=minutes)
    return task


def after(board: Board, clock: Clock, end: Callable[[str, str], object]) -> str:
    """Return a task whose holder has ended its attempt."""
    task = held(board, clock)
    end(task, lease_of(board.resume(task, "bob")).token)
    return task


CASES: dict[str, tuple[Built, str, str]] = {
    "new": (lambda b, _: added(b), "ready", f"ready since {NOW}"),
    "new, nobody here": (lambda b, _: added(b), "ready", "no agent has been seen since"),
    "seen before": (lambda b, c: seen_then(b, c, "bob", lambda: added(b)), "ready", "no agent has been seen since"),
    "delay over": (lambda b, c: later(c, added(b, not_before="+1m"), 2), "ready", "ready since 2026-11-30T00:54:20"),
    "dependency done": (lambda b, _: behind(b, ended(b, "done")), "ready", "ready since"),
    "returned": (returned, "ready", "ready since 2026-11-30T00:54:20"),
    "retried": (lambda b, _: b.retry(ended(b, "failed")).task.id, "ready", "ready since"),
    "promised to nobody": (lambda b, _: added(b, assignee="none"), "ready", "ready since"),
    "assigned": (lambda b, _: added(b, assignee="ada"), "assigned", "assigned to ada, never seen so far"),
    "assigned to one who was here": (
        lambda b, c: seen_then(b, c, "ada", lambda: added(b, assignee="ada")), "assigned", f"last seen at {NOW}",
    ),
    "assigned to an odd name": (lambda b, _: added(b, assignee="the boss"), "assigned", 'assigned to "the boss"'),
    "handed on": (
        lambda b, c: after(b, c, lambda task, token: b.handoff(task, token, "carl")), "assigned", "assigned to carl",
    ),
    "delayed": (lambda b, _: added(b, not_before="+1d"), "delayed", "delayed until 2026-12-01"),
    "delayed and assigned": (lambda b, _: added(b, not_before="+1d", assignee="ada"), "delayed", "delayed until"),
    "failed once": (
        lambda b, c: after(b, c, lambda task, token: b.fail(task, token, "no")), "delayed", "delayed until",
    ),
    "released for later": (
        lambda b, c: after(b, c, lambda task, token: b.release(task, token, after="1h")), "delayed", "delayed until",
    ),
    "one dependency": (lambda b, _: behind(b, added(b)), "blocked", 'waits for "it"'),
    "two dependencies": (lambda b, _: behind(b, added(b), added(b)), "blocked", "and 1 more"),
    "dependency held": (lambda b, c: behind(b, held(b, c)), "blocked", "held by bob until"),
    "dependency in review": (lambda b, _: behind(b, ended(b, "review")), "blocked", "in review since"),
    "dependency delayed": (lambda b, _: behind(b, added(b, not_before="+1d")), "blocked", "delayed until"),
    "dependency assigned": (lambda b, _: behind(b, added(b, assignee="ada")), "blocked", "assigned to ada"),
    "dependency silent": (lambda b, c: later(c, behind(b, held(b, c)), 11), "blocked", "silent since"),
    "chain of three": (lambda b, _: chain(b, added(b), 3), "blocked", "at the end of the chain"),
    "long chain": (lambda b, _: chain(b, added(b), 14), "blocked", "waits for others"),
    "blocked and delayed": (lambda b, _: behind(b, added(b), not_before="+1d"), "blocked", "waits for"),
    "blocked and assigned": (lambda b, _: behind(b, added(b), assignee="ada"), "blocked", "waits for"),
    "one done, one open": (lambda b, _: behind(b, ended(b, "done"), added(b)), "blocked", "waits for"),
    "behind a cancelled one": (lambda b, _: behind(b, ended(b, "cancelled")), "stuck", "was cancelled"),
    "behind a failed one": (lambda b, _: behind(b, ended(b, "failed")), "stuck", "failed"),
    "far behind": (lambda b, _: chain(b, ended(b, "cancelled"), 3), "stuck", "3 tasks away"),
    "very far behind": (lambda b, _: chain(b, ended(b, "cancelled"), 14), "stuck", "stuck behind"),
    "stuck and open": (lambda b, _: behind(b, added(b), ended(b, "failed")), "stuck", "failed"),
    "stuck and delayed": (lambda b, _: behind(b, ended(b, "failed"), not_before="+1d"), "stuck", "failed"),
    "held": (held, "held", "held by bob until 2026-11-30T01:08:20"),
    "held for long": (lambda b, c: held(b, c, minutes=9), "held", "held by bob"),
    "silent": (lambda b, c: held(b, c, minutes=11), "held", "silent since 2026-11-30T01:03:20"),
    "running": (lambda b, _: ended(b, "running"), "held", "held by ada"),
    "lease over": (lambda b, c: held(b, c, minutes=15), "expired", "the lease of bob expired at 2026-11-30T01:08:20"),
    "in review": (lambda b, _: ended(b, "review"), "review", f"in review since {NOW}"),
    "failed": (lambda b, _: ended(b, "failed"), "failed", "failed at"),
    "cancelled": (lambda b, _: ended(b, "cancelled"), "cancelled", "cancelled at"),
    "done": (lambda b, _: ended(b, "done"), "done", "done since"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_leading_reason(board: Board, clock: Clock, case: str) -> None:
    build, reason, text = CASES[case]
    found = board.why(build(board, clock))["why"]
    assert found["reason"] == reason
    assert text in found["text"]
    assert found["change"]
    assert len(found["chain"]) <= 10


def test_every_reason_is_among_the_cases() -> None:
    assert {reason for _, reason, _ in CASES.values()} == set(REASONS)
    assert len(CASES) >= 40


def test_groups_count_each_unfinished_task_once(board: Board, clock: Clock) -> None:
    for case in ("new", "assigned", "delayed", "one dependency", "behind a failed one", "silent", "in review"):
        CASES[case][0](board, clock)
    for status in STATUSES:
        bring_to(board, status)
    found = board.why_nothing()
    counts = {one["reason"]: one["count"] for one in found["reasons"]}
    unfinished = board.list_tasks(limit=100, status=["queued", "claimed", "running", "review"]).tasks
    assert sum(counts.values()) == len(unfinished)
    for one in found["reasons"]:
        assert board.why(one["first"]["id"])["why"]["reason"] == one["reason"]


def test_show_says_why_until_the_task_is_finished(board: Board) -> None:
    task = added(board, assignee="ada")
    assert board.show(task, why=True)["why"].startswith("assigned to ada")
    board.cancel(task)
    assert "why" not in board.show(task, why=True)


def test_unknown_task_is_refused(board: Board) -> None:
    added(board)
    with refused("not_found"):
        board.why("QQQQ")


def test_empty_board_says_so(board: Board) -> None:
    board.create()
    assert dict(board.why_nothing()) == {"text": "no task is unfinished: add one", "reasons": []}
