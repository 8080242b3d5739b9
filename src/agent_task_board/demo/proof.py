"""The proof at the end of the demo: checks the history of the board, and compares it with the agents' reports."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from ..errors import BoardError
from .script import STALE_VERBS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model import Event, TaskDetails
    from .script import Report


class ProofFailed(BoardError):
    """The history of the demo breaks a guarantee of the board."""


def prove(histories: Sequence[TaskDetails], events: Sequence[Event], reports: Sequence[Report]) -> list[str]:
    """Check every guarantee; return one sentence for each.

    Args:
        histories: every task of the board, as ``show`` returns it.
        events: every event of the board.
        reports: every report of the agents.

    Raises:
        ProofFailed: one of the sentences is not true.
    """
    attempts = sum(len(history["attempts"]) for history in histories)
    return [
        _each_completed_once(histories, events),
        _one_holder_at_a_time(histories, attempts),
        _fences_increase(histories),
        _dependencies_came_first(histories),
        _agents_agree(histories, reports),
        _stale_holders_refused(histories, reports),
    ]


def _each_completed_once(histories: Sequence[TaskDetails], events: Sequence[Event]) -> str:
    """Check that each task is done, with one completed attempt and one more for each rejection."""
    rejections = Counter(event["task_id"] for event in events if event["kind"] == "rejected")
    completions = Counter(event["task_id"] for event in events if event["kind"] == "completed")
    for history in histories:
        task = history["task"]
        outcomes = [attempt["outcome"] for attempt in history["attempts"]]
        expected = 1 + rejections[task["id"]]
        _require(task["status"] == "done", task, f'is "{task["status"]}"')
        _require(outcomes.count("completed") == expected, task, f"was completed {outcomes.count('completed')} times")
        count = completions[task["id"]]
        _require(count == expected, task, f"has {count} completed events")
        _require(outcomes[-1] == "completed", task, f'has a last attempt that is "{outcomes[-1]}"')
    rejected = rejections.total()
    again = f", plus once after each rejection ({rejected})" if rejected else ""
    return f"{len(histories)} of {len(histories)} tasks are done: each was completed exactly once{again}"


def _one_holder_at_a_time(histories: Sequence[TaskDetails], attempts: int) -> str:
    for history in histories:
        for attempt in history["attempts"]:
            ended = attempt["outcome"] is not None and attempt["ended_at"] is not None
            _require(ended, history["task"], f"has attempt {attempt['number']} without an outcome")
        for one, following in pairwise(history["attempts"]):
            apart = (one["ended_at"] or "") <= following["claimed_at"]  # text of fixed width sorts by time
            _require(apart, history["task"], f"has overlapping attempts {one['number']} and {following['number']}")
    return f"{attempts} attempts have one outcome each, and no two attempts of a task overlap in time"


def _fences_increase(histories: Sequence[TaskDetails]) -> str:
    for history in histories:
        fences = [attempt["fence"] for attempt in history["attempts"]]
        increases = all(one < following for one, following in pairwise(fences))
        _require(increases and fences[-1] == history["task"]["fence"], history["task"], f"has fences {fences}")
    return "the fence of each task increased with every claim"


def _dependencies_came_first(histories: Sequence[TaskDetails]) -> str:
    finished = {history["task"]["id"]: history["task"]["finished_at"] for history in histories}
    links = 0
    for history in histories:
        for link in history["dependencies"]:
            in_order = history["attempts"][0]["claimed_at"] >= finished[link["id"]]
            _require(in_order, history["task"], f'was claimed before "{link["title"]}" was done')
            links += 1
    return f"no task was claimed before its dependencies were done ({links} dependencies)"


def _agents_agree(histories: Sequence[TaskDetails], reports: Sequence[Report]) -> str:
    """Compare the board with the reports of the agents, so that the proof does not depend on the board alone."""
    reported = Counter((report.task, report.agent, report.fence) for report in reports if report.kind == "completed")
    recorded = Counter(
        (history["task"]["id"], attempt["agent"], attempt["fence"])
        for history in histories
        for attempt in history["attempts"]
        if attempt["outcome"] == "completed"
    )
    for history in histories:
        id_ = history["task"]["id"]
        differ = [key for key in (reported - recorded) + (recorded - reported) if key[0] == id_]
        _require(not differ, history["task"], f"was completed by {differ}: the board and the agents disagree")
    return f"the agents and the board report the same {reported.total()} completions (task, agent and fence)"


def _stale_holders_refused(histories: Sequence[TaskDetails], reports: Sequence[Report]) -> str:
    """Check that every call of an agent that lost its lease was refused, and that its attempt ended as expired."""
    calls: dict[tuple[str, str, int], list[str]] = {}
    tasks = {history["task"]["id"]: history for history in histories}
    for report in reports:
        if report.kind == "stale_call":
            answer = "accepted" if report.code is None else report.code
            _require(
                report.code == "lease_lost",
                tasks[report.task]["task"],
                f"answered a stale {report.verb} of {report.agent} with {answer}",
            )
            calls.setdefault((report.task, report.agent, report.fence), []).append(report.verb or "")
    if not calls:
        raise ProofFailed("the proof failed: no agent lost its lease")
    for (id_, agent, fence), verbs in calls.items():
        outcomes = [
            attempt["outcome"]
            for attempt in tasks[id_]["attempts"]
            if attempt["agent"] == agent and attempt["fence"] == fence
        ]
        _require(outcomes == ["expired"], tasks[id_]["task"], f"has a stale holder whose attempt is {outcomes}")
        _require(verbs == list(STALE_VERBS), tasks[id_]["task"], f"has a stale holder that called only {verbs}")
    count = sum(map(len, calls.values()))
    return f"{count} of {count} calls by stale holders were refused with lease_lost ({', '.join(STALE_VERBS)})"


def _require(condition: bool, task: dict[str, object], what: str) -> None:
    if not condition:
        raise ProofFailed(f'the proof failed: task {task["id"]} "{task["title"]}" {what}')
