"""The proof at the end of the demo: read from the board, and compared with what the agents say they did."""

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
    """The board of the demo shows something that must never happen."""


def prove(histories: Sequence[TaskDetails], events: Sequence[Event], reports: Sequence[Report]) -> list[str]:
    """Return what is proven, in sentences.

    Args:
        histories: every task of the board, as ``show`` gives it.
        events: every event of the board.
        reports: what the agents said.

    Raises:
        ProofFailed: one of the sentences would not be true.
    """
    attempts = sum(len(history["attempts"]) for history in histories)
    return [
        _each_done_once(histories, events),
        _one_holder_at_a_time(histories, attempts),
        _fences_grow(histories),
        _nothing_began_early(histories),
        _agents_agree(histories, reports),
        _stale_holders_refused(histories, reports),
    ]


def _each_done_once(histories: Sequence[TaskDetails], events: Sequence[Event]) -> str:
    """Check that each task is done by one completed attempt, and one more for each time a person sent it back."""
    sent_back = Counter(event["task_id"] for event in events if event["kind"] == "rejected")
    handed_in = Counter(event["task_id"] for event in events if event["kind"] == "completed")
    for history in histories:
        task = history["task"]
        outcomes = [attempt["outcome"] for attempt in history["attempts"]]
        expected = 1 + sent_back[task["id"]]
        _require(task["status"] == "done", task, f'is "{task["status"]}"')
        _require(outcomes.count("completed") == expected, task, f"was completed {outcomes.count('completed')} times")
        _require(handed_in[task["id"]] == expected, task, f"has {handed_in[task['id']]} events of completion")
        _require(outcomes[-1] == "completed", task, f'ended with an attempt that is "{outcomes[-1]}"')
    returned = sent_back.total()
    again = f"; {returned} sent back by a person, and completed once more" if returned else ""
    return f"{len(histories)} of {len(histories)} tasks are done, each completed exactly once{again}"


def _one_holder_at_a_time(histories: Sequence[TaskDetails], attempts: int) -> str:
    for history in histories:
        for attempt in history["attempts"]:
            ended = attempt["outcome"] is not None and attempt["ended_at"] is not None
            _require(ended, history["task"], f"has attempt {attempt['number']} without an outcome")
        for one, following in pairwise(history["attempts"]):
            apart = (one["ended_at"] or "") <= following["claimed_at"]  # text of fixed width: its order is time's
            _require(apart, history["task"], f"has attempts {one['number']} and {following['number']} that overlap")
    return f"{attempts} attempts, each with one outcome, and no two of one task overlap in time"


def _fences_grow(histories: Sequence[TaskDetails]) -> str:
    for history in histories:
        fences = [attempt["fence"] for attempt in history["attempts"]]
        grows = all(one < following for one, following in pairwise(fences))
        _require(grows and fences[-1] == history["task"]["fence"], history["task"], f"has fences {fences}")
    return "the fence number of each task grew with every claim"


def _nothing_began_early(histories: Sequence[TaskDetails]) -> str:
    finished = {history["task"]["id"]: history["task"]["finished_at"] for history in histories}
    links = 0
    for history in histories:
        for link in history["dependencies"]:
            late = history["attempts"][0]["claimed_at"] >= finished[link["id"]]
            _require(late, history["task"], f'was claimed before "{link["title"]}" was done')
            links += 1
    return f"no task was claimed before what it waits for was done ({links} dependencies)"


def _agents_agree(histories: Sequence[TaskDetails], reports: Sequence[Report]) -> str:
    """Check the board against the agents, so that the proof does not rest on the board's word alone."""
    said = Counter((report.task, report.agent, report.fence) for report in reports if report.kind == "completed")
    recorded = Counter(
        (history["task"]["id"], attempt["agent"], attempt["fence"])
        for history in histories
        for attempt in history["attempts"]
        if attempt["outcome"] == "completed"
    )
    for history in histories:
        id_ = history["task"]["id"]
        differ = [key for key in (said - recorded) + (recorded - said) if key[0] == id_]
        _require(not differ, history["task"], f"was completed by {differ}: the board and the agents do not agree")
    return f"the agents report the same {said.total()} completions as the board, by task, agent and fence"


def _stale_holders_refused(histories: Sequence[TaskDetails], reports: Sequence[Report]) -> str:
    """Check that whoever lost a lease was refused every verb, and that its attempt ended as expired."""
    tried: dict[tuple[str, str, int], list[str]] = {}
    tasks = {history["task"]["id"]: history for history in histories}
    for report in reports:
        if report.kind == "tried":
            answer = "accepted" if report.code is None else report.code
            told = f"answered a stale {report.verb} of {report.agent} with {answer}"
            _require(report.code == "lease_lost", tasks[report.task]["task"], told)
            tried.setdefault((report.task, report.agent, report.fence), []).append(report.verb or "")
    if not tried:
        raise ProofFailed("no agent lost its lease: the demo did not show what it is for")
    for (id_, agent, fence), verbs in tried.items():
        outcomes = [
            attempt["outcome"]
            for attempt in tasks[id_]["attempts"]
            if attempt["agent"] == agent and attempt["fence"] == fence
        ]
        _require(outcomes == ["expired"], tasks[id_]["task"], f"has a stale holder whose attempt is {outcomes}")
        _require(verbs == list(STALE_VERBS), tasks[id_]["task"], f"had a stale holder that tried {verbs} only")
    calls = sum(map(len, tried.values()))
    return f"stale holders were refused {calls} of {calls} times, whatever they tried ({', '.join(STALE_VERBS)})"


def _require(condition: bool, task: dict[str, object], what: str) -> None:
    if not condition:
        raise ProofFailed(f'the proof failed: task {task["id"]} "{task["title"]}" {what}')
