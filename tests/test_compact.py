"""Compact text has the same content as JSON: a reader that knows only the grammar reads everything back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent_task_board import Board, errors
from agent_task_board.board.queries import TaskPage
from agent_task_board.model import ACTOR_KINDS, STATUSES, Lease, Receipt, Task
from agent_task_board.text import compact
from tests import showcase
from tests.compact_reader import VERBS, Unreadable, parts, read
from tests.support import MARIA, Clock, bring_to, open_board, refused

if TYPE_CHECKING:
    from collections.abc import Sequence

DOCUMENT = Path(__file__).parent.parent / "docs" / "compact.md"

NASTY = (
    '"', "\\", "+", "=", ",", "|", "!", " ", "\n", "\r", "\t", "\v", "\x1b", "\x1c", "\x7f", "\x85", "\xa0", "\xad",
    "\u061c", "\u200b", "\u200d", "\u200f", "\u2028", "\u2029", "\u202e", "\u2067", "\u2069", "\u3000", "\ufeff",
    "\U000e0041", "\U0001f469", "é", "文", "none", "true", "p5", "40%", "approval", "id=", "atb1", "\n| x", "\n! none",
)  # fmt: skip
"""Text that looks like the grammar, breaks lines, or is invisible."""

SETTINGS = settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)

pieces = st.one_of(st.sampled_from(NASTY), st.text(st.characters(exclude_categories=["Cs"]), max_size=4))
texts = st.lists(pieces, max_size=6).map("".join)
words = texts.filter(bool)
instants = st.integers(0, 59).map(lambda second: f"2026-11-30T06:14:{second:02}.123+00:00")
ids = st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", min_size=5, max_size=5).map(
    lambda end: f"01KB{end * 5}"[:26].zfill(26)
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


def _flagged(row: dict[str, Any]) -> dict[str, Any]:
    flags = row.pop("flags") - ({"delayed"} if row["not_before"] is None else set())
    return {
        **row,
        **{flag: flag in flags for flag in ("ready", "blocked", "stuck", "delayed", "lease_expired", "overdue")},
    }


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


rows = st.fixed_dictionaries(
    {
        "id": ids, "title": words, "queue": st.just("default") | words, "status": st.sampled_from(STATUSES),
        "priority": st.sampled_from([0, 5, -1_000_000]), "assignee": maybe(words), "due_at": maybe(instants),
        "not_before": maybe(instants), "tags": st.lists(words, max_size=3), "blocked_by": st.lists(ids, max_size=2),
        "progress": maybe(st.integers(0, 100)), "needs_approval": st.booleans(), "attempts": st.integers(0, 5),
        "max_attempts": st.just(5), "claimed_by": maybe(words), "lease_expires_at": maybe(instants),
        "flags": st.sets(st.sampled_from(["blocked", "stuck", "delayed", "lease_expired", "overdue"])),
    }
).map(_flagged)  # fmt: skip
"""A task in a list."""

others = st.fixed_dictionaries(
    {
        "body": texts, "params": st.dictionaries(texts, json_values, max_size=2), "result": json_values,
        "dedupe_key": maybe(words), "artifacts": st.lists(words, max_size=2), "error": maybe(words),
        "fence": st.integers(0, 9), "version": st.integers(1, 99), "created_by": words, "schedule_id": maybe(ids),
        "occurrence_at": maybe(instants), "created_at": instants, "updated_at": instants, "claimed_at": maybe(instants),
        "finished_at": maybe(instants),
    }
)  # fmt: skip
tasks = st.builds(lambda row, more: row | more, rows, others)
"""A full task."""

links = st.fixed_dictionaries({"id": ids, "title": words, "status": st.sampled_from(STATUSES)})
comments = st.fixed_dictionaries(
    {
        "at": instants, "actor": words, "data": st.fixed_dictionaries({"text": words}), "task_id": ids,
        "actor_kind": st.sampled_from(ACTOR_KINDS),
    },
    optional={"imported": st.just(value=True)},
)  # fmt: skip
left_notes = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["handed_off", "rejected"]), "at": instants, "actor": words, "text": words,
        "actor_kind": st.sampled_from(ACTOR_KINDS),
    },
    optional={"imported": st.just(value=True)},
)  # fmt: skip
attempts = st.fixed_dictionaries(
    {
        "number": st.integers(1, 999), "agent": words, "claimed_at": instants, "ended_at": maybe(instants),
        "outcome": st.none() | st.sampled_from(["completed", "failed", "handed_off"]), "error": maybe(texts),
        "note": maybe(texts),
    }
)  # fmt: skip
details = st.fixed_dictionaries(
    {
        "task": tasks, "dependencies": st.lists(links, max_size=2), "dependents": st.lists(links, max_size=2),
        "comments": st.lists(comments, max_size=2), "attempts": st.lists(attempts, max_size=2),
    }
)  # fmt: skip
looks = st.lists(ids, max_size=5, unique=True).map(lambda found: {"count": len(found), "ids": found})
attentions = st.fixed_dictionaries({"review": looks, "expired": looks, "stuck": looks})

QUIET: Any = {kind: {"count": 0, "ids": []} for kind in ("review", "expired", "stuck")}


def task_of(fields: dict[str, Any]) -> Task:
    task = Task()
    for key, value in fields.items():
        setattr(task, key, value)
    return task


def paged(found: Sequence[dict[str, Any]]) -> Any:
    """Return a function that returns the first tasks of a list, as the service does."""

    def page(count: int) -> TaskPage:
        following = f"age~{count}~{count}" if count < len(found) else None
        return TaskPage([Listed(one) for one in found[:count]], following, more=max(0, len(found) - count))  # type: ignore[misc]

    return page


class Listed(dict[str, Any]):
    """The JSON of a task in place of the task."""

    def to_dict(self) -> dict[str, Any]:
        return self


def cut(value: str | None) -> str | None:
    return None if value is None else value[:19]


def said(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def as_read(task: dict[str, Any]) -> dict[str, Any]:
    """Return what the line of a task must say, except its name."""
    flags = [flag for flag in ("blocked", "stuck", "delayed", "lease_expired", "overdue") if task[flag]]
    return {
        "title": task["title"], "status": task["status"], "flags": flags, "priority": task["priority"],
        "progress": task["progress"], "approval": task["needs_approval"], "queue": task["queue"],
        "tags": task["tags"], "needs": len(task["blocked_by"]),
        "attempt": (task["attempts"], task["max_attempts"]) if task["attempts"] else None,
        **said(
            **{"for": task["assignee"]}, by=task["claimed_by"], lease=cut(task["lease_expires_at"]),
            due=cut(task["due_at"]), after=cut(task["not_before"]) if task["delayed"] else None,
        ),
    }  # fmt: skip


def without_name(told: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in told.items() if key != "name"}


def check_visible(text: str) -> None:
    """Check that only line ends break lines, and that no character steers a terminal or is hidden."""
    assert text.encode().decode().splitlines() == text.split("\n")[:-1]
    assert not set("\r\x1b\x7f\x85\u200b\u2028\u202e\u2067\ufeff\U000e0041") & set(text)


# Everything is read back


@SETTINGS
@given(found=st.lists(rows, max_size=4, unique_by=lambda task: task["id"]), attention=attentions, notes=st.lists(texts))
def test_a_list_reads_back(found: list[dict[str, Any]], attention: Any, notes: list[str]) -> None:
    text = compact.task_list(paged(found), 100, attention, warnings=notes)
    check_visible(text)
    told = read(text)
    assert told["kind"] == "list"
    assert [without_name(task) for task in told["tasks"]] == [as_read(task) for task in found]
    assert told["notes"] == notes
    assert told["more"] is None
    every = {*(task["id"] for task in found), *(one for kind in attention.values() for one in kind["ids"])}
    named = [*zip(told["tasks"], found, strict=True)]
    assert all(names_only(line["name"], task["id"], every) for line, task in named)
    for kind in ("review", "expired", "stuck"):
        seen = told["attention"].get(kind, {"count": 0, "names": []})
        assert seen["count"] == attention[kind]["count"]
        pairs = zip(seen["names"], attention[kind]["ids"], strict=True)
        assert all(names_only(name, one, every) for name, one in pairs)


def names_only(name: str, wanted: str, every: set[str]) -> bool:
    """Say whether a name is the shortest of at least 6 characters that fits only one task."""
    is_short = len(name) == 6 or sum(one.endswith(name[1:]) for one in every) > 1
    return is_short and [one for one in every if one.endswith(name)] == [wanted]


def test_names_are_longer_where_tasks_of_one_document_share_an_ending() -> None:
    shared = ["A" * 26, "A" * 19 + "BAAAAAA", "A" * 18 + "C" + "D" * 7, "A" * 18 + "E" + "D" * 7]
    wanted = ["AAAAAAA", "BAAAAAA", "CDDDDDDD", "EDDDDDDD", "XYZXYZ"]
    attention: Any = {
        "review": {"count": 1, "ids": ["0" * 20 + "XYZXYZ"]},
        "expired": {"count": 1, "ids": ["A" * 26]},
        "stuck": {"count": 0, "ids": []},
    }
    told = read(compact.task_list(paged([{**PLAIN, "id": one} for one in shared]), 9, attention))
    assert [task["name"] for task in told["tasks"]] == wanted[:4]
    assert told["attention"]["review"]["names"] == wanted[4:]
    assert told["attention"]["expired"]["names"] == wanted[:1]
    needed = {"id": shared[1], "title": "x", "status": "done"}
    found: Any = {**EMPTY, "task": {**WHOLE, "id": shared[0]}, "dependencies": [needed]}
    told = read(compact.details(found, QUIET))
    assert (told["tasks"][0]["name"], told["needs"][0]["name"]) == ("AAAAAAA", "BAAAAAA")


@SETTINGS
@given(found=details, attention=attentions, notes=st.lists(texts, max_size=2))
def test_a_task_reads_back_with_all_that_belongs_to_it(found: Any, attention: Any, notes: list[str]) -> None:
    text = compact.details(found, attention, warnings=notes)
    check_visible(text)
    told, task = read(text), found["task"]
    assert (told["kind"], told["notes"], told["cuts"]) == ("task", notes, {})
    assert [without_name(line) for line in told["tasks"]] == [as_read(task)]
    assert told["texts"] == {
        **({"body": task["body"]} if task["body"] else {}),
        **({"params": task["params"]} if task["params"] else {}),
        **said(error=task["error"], result=task["result"]),
    }
    assert told["facts"] == said(
        id=task["id"], version=task["version"], fence=task["fence"] or None, created=cut(task["created_at"]),
        creator=task["created_by"], updated=cut(task["updated_at"]), claimed=cut(task["claimed_at"]),
        not_before=None if task["delayed"] else cut(task["not_before"]), finished=cut(task["finished_at"]),
        dedupe_key=task["dedupe_key"], max_attempts=None if task["attempts"] else task["max_attempts"],
        schedule=task["schedule_id"], occurrence=cut(task["occurrence_at"]),
    )  # fmt: skip
    for kind, key in (("needs", "dependencies"), ("blocks", "dependents")):
        assert [without_name(link) for link in told[kind]] == [
            {"title": link["title"], "status": link["status"]} for link in found[key]
        ]
        assert all(link["id"].endswith(line["name"]) for line, link in zip(told[kind], found[key], strict=True))
    assert told["comments"] == [
        {
            "at": cut(event["at"]), "actor": event["actor"], "text": event["data"]["text"],
            "actor_kind": event["actor_kind"], **({"imported": True} if "imported" in event else {}),
        }
        for event in reversed(found["comments"])
    ]  # fmt: skip
    assert told["attempts"] == [
        {
            "number": attempt["number"], "agent": attempt["agent"], "outcome": attempt["outcome"] or "open",
            **said(
                **{"from": cut(attempt["claimed_at"])}, to=cut(attempt["ended_at"]), error=attempt["error"],
                note=attempt["note"],
            ),
        }
        for attempt in reversed(found["attempts"])
    ]  # fmt: skip
    assert told["artifacts"] == task["artifacts"]


@SETTINGS
@given(
    task=tasks, verb=st.sampled_from(VERBS), leased=st.booleans(), created=st.sampled_from([None, True, False]),
    replayed=st.booleans(), end=instants, notes=st.lists(texts, max_size=2), left=st.lists(left_notes, max_size=2),
)  # fmt: skip
def test_a_receipt_reads_back_with_what_the_next_call_needs(
    task: dict[str, Any], verb: str, leased: bool, created: bool | None, replayed: bool, end: str, notes: list[str],
    left: list[Any],
) -> None:  # fmt: skip
    lease = Lease("0f" * 16, 7, end) if leased else None
    answer = Receipt(task_of(task), lease=lease, created=created, replayed=replayed, warnings=notes, notes=left)
    text = compact.receipt(answer, verb)
    check_visible(text)
    told = read(text)
    assert told["kind"] == verb
    assert told["flags"] == [*(["replayed"] if replayed else []), *(["existing"] if created is False else [])]
    assert [without_name(line) for line in told["tasks"]] == [as_read(task)]
    granted = {"token": "0f" * 16, "fence": 7, "lease_end": cut(end)} if leased else {}
    assert told["facts"] == {"id": task["id"], "version": task["version"], **granted}
    assert told["notes"] == notes
    assert told["left"] == [{**note, "at": cut(note["at"])} for note in left]
    work = {
        **({"body": task["body"]} if task["body"] else {}),
        **({"params": task["params"]} if task["params"] else {}),
    }
    work |= said(error=task["error"])
    assert told["texts"] == (work if verb in ("claimed", "resumed") else {})


@SETTINGS
@given(
    kind=st.sampled_from(errors.REFUSALS), message=texts, hint=texts, more=st.dictionaries(texts, json_values),
    notes=st.lists(texts, max_size=2),
)  # fmt: skip
def test_a_refusal_reads_back(
    kind: type[errors.BoardError], message: str, hint: str, more: dict[str, Any], notes: list[str]
) -> None:
    error = kind(message, hint=hint)
    error.details = more
    text = compact.refusal(error, warnings=notes)
    check_visible(text)
    told = read(text)
    assert (told["kind"], told["flags"]) == ("error", [kind.code])
    expected = {"message": message, **({"hint": hint} if hint else {}), **({"details": more} if more else {})}
    assert told["texts"] == expected
    assert told["notes"] == notes


@SETTINGS
@given(reasons=st.lists(texts), task=ids, seq=st.integers(1, 2**62))
def test_the_short_receipts_read_back(reasons: list[str], task: str, seq: int) -> None:
    told = read(compact.nothing(reasons))
    assert (told["kind"], told["notes"]) == ("nothing", reasons)
    event: Any = {"task_id": task, "seq": seq}
    told = read(compact.commented(event, warnings=reasons))
    assert (told["kind"], told["notes"], told["facts"]) == ("commented", reasons, {"id": task, "seq": seq})


@SETTINGS
@given(
    found=st.lists(rows, max_size=4, unique_by=lambda task: task["id"]), revision=st.integers(0, 10**12),
    counts=st.fixed_dictionaries({status: st.integers(0, 20) for status in STATUSES}), attention=attentions,
)  # fmt: skip
def test_a_board_reads_back(found: list[dict[str, Any]], revision: int, counts: dict[str, int], attention: Any) -> None:
    counts["done"] += len(found)
    told = read(compact.board({"tasks": found, "counts": counts, "revision": revision}, attention))
    assert told["kind"] == "board"
    assert told["head"] == {"revision": revision, **{status: count for status, count in counts.items() if count}}
    assert [without_name(task) for task in told["tasks"]] == [as_read(task) for task in found]
    left = sum(counts.values()) - len(found)
    assert told["more"] == ({"count": left} if left else None)


def test_a_message_that_is_no_text_cannot_break_a_document() -> None:
    text = compact.refusal(errors.InvalidInput("what is \udcff?"), warnings=["\ud800"])
    text.encode()
    assert read(text)["texts"]["message"] == "what is \udcff?"


@pytest.mark.parametrize(
    "body", ["\n", "a\n", "\na", "a\n\n\nb\n\n", " ", "| x", "!", "+ cut body 1/2", "a\tb", "  a "]
)
def test_a_text_keeps_its_empty_lines_and_line_breaks(body: str, board: Board) -> None:
    board.add("a task", body=body)
    text = compact.details(board.show(only(board)), QUIET)
    assert "body\n" in text
    assert read(text)["texts"] == {"body": body}


def only(board: Board) -> str:
    (task,) = board.list_tasks().tasks
    return task.id


def test_reader_refuses_what_the_grammar_has_not() -> None:
    head = "atb1 list\n! none\n"
    for line in (
        '9F3K2A "x" odd',
        '9F3K2A "x"  queued',
        "9F3K2A x queued",
        '9F3 "x" queued',
        "| x",
        "?",
        '9F3K2A "x" ',
    ):
        with pytest.raises((Unreadable, ValueError)):
            read(f"{head}{line}\n")
    with pytest.raises(Unreadable):
        read("atb2 list\n")


def test_reader_may_pass_over_what_is_added_later() -> None:
    text = (
        "atb1 list\n! review=1:KGWX2P frozen=3\n"
        '9F3K2A "x" queued+frozen p1 eta=5m,"a b" starred\n'
        "mood\n| good\n| =\ncolour blue\n+ more after=age~1~1 count=4\n"
    )
    with pytest.raises(Unreadable):
        read(text)
    told = read(text, lenient=True)
    assert told["tasks"][0]["priority"] == 1
    assert told["more"]["after"] == "age~1~1"


# Size


def test_thirty_tasks_cost_little(tmp_path: Path) -> None:
    showcase.make(str(tmp_path / "data"))
    with open_board(tmp_path / "data") as board:
        for order in ("age", "priority", "updated", "due"):

            def pages(count: int, order: str = order) -> TaskPage:
                return board.list_tasks(limit=count, order=order)

            text = compact.task_list(pages, 30, board.attention())
            as_json = json.dumps(board.list_tasks(limit=30, order=order).to_dict(), indent=2, ensure_ascii=False)
            assert len(read(text)["tasks"]) == 30
            assert len(text) / 4 <= 1_100
            assert len(text) <= 0.12 * len(as_json)


@SETTINGS
@given(
    found=st.lists(rows, min_size=1, max_size=8, unique_by=lambda task: task["id"]), attention=attentions,
    tokens=st.integers(100, 400), limit=st.integers(1, 15),
)  # fmt: skip
def test_a_list_keeps_its_budget_and_shows_as_many_as_fit(
    found: list[dict[str, Any]], attention: Any, tokens: int, limit: int
) -> None:
    text = compact.task_list(paged(found), limit, attention, tokens=tokens)
    told = read(text)
    shown = len(told["tasks"])
    assert 1 <= shown <= min(limit, len(found))
    assert len(text) <= tokens * 4 or shown == 1
    whole = compact.task_list(paged(found), limit, attention)
    assert text == whole or len(whole) > tokens * 4
    if shown < len(found):
        assert told["more"] == {"count": len(found) - shown, "after": f"age~{shown}~{shown}"}
    if shown < min(limit, len(found)):
        one_more = compact.task_list(paged(found), shown + 1, attention)
        assert len(one_more) > tokens * 4 - compact.MORE


@SETTINGS
@given(found=st.lists(rows, max_size=8, unique_by=lambda task: task["id"]), tokens=st.integers(100, 400))
def test_a_board_keeps_its_budget(found: list[dict[str, Any]], tokens: int) -> None:
    counts = {**dict.fromkeys(STATUSES, 0), "done": len(found)}
    text = compact.board({"tasks": found, "counts": counts, "revision": 5}, QUIET, tokens=tokens)
    told = read(text)
    shown = len(told["tasks"])
    assert len(text) <= tokens * 4 or shown == 1
    assert told["more"] == ({"count": len(found) - shown} if shown < len(found) else None)


@SETTINGS
@given(found=details, body=st.text("ab\n\u202e", max_size=3_000), tokens=st.integers(100, 900))
def test_a_task_keeps_its_budget_and_tells_of_every_cut(found: Any, body: str, tokens: int) -> None:
    found["task"]["body"] += body
    text = compact.details(found, QUIET, tokens=tokens)
    told, whole = read(text), read(compact.details(found, QUIET))
    fixed = [line for line in text.split("\n")[:-1] if re.match("[!+0-9A-Z]|atb1|id=", line)]
    assert len(text) <= max(tokens * 4, sum(len(line) + 1 for line in fixed))
    assert told["tasks"] == whole["tasks"]
    assert told["facts"] == whole["facts"]
    for name in ("body", "error"):
        if name in told["cuts"]:
            shown, everything = told["cuts"][name]
            assert everything == len(whole["texts"][name])
            assert told["texts"].get(name, "") == whole["texts"][name][:shown]
            assert shown < everything
        else:
            assert told["texts"].get(name) == whole["texts"].get(name)
    for name in ("params", "result"):
        assert (name in told["cuts"]) == (name in whole["texts"] and name not in told["texts"])
        assert told["texts"].get(name) in (None, whole["texts"].get(name))
    for name in ("needs", "comments", "attempts", "artifacts", "blocks"):
        shown, everything = told["cuts"].get(name, (len(whole[name]), len(whole[name])))
        assert (shown, everything) == (len(told[name]), len(whole[name]))
        assert told[name] == whole[name][:shown]
    assert bool(told["cuts"]) == (text != compact.details(found, QUIET))


@pytest.mark.parametrize("length", range(100, 260))
def test_lines_that_tell_of_cuts_are_paid_for_too(length: int) -> None:
    links = [{"id": "B" * 26, "title": "x" * 60, "status": "done"}]
    task = {**WHOLE, "id": "A" * 26, "title": "x" * length, "error": "e", "body": "b" * 90}
    found: Any = {**EMPTY, "task": task, "dependencies": links}
    text = compact.details(found, QUIET, tokens=100)
    fixed = [line for line in text.split("\n")[:-1] if re.match("[!+0-9A-Z]|atb1|id=", line)]
    assert len(text) <= max(400, sum(len(line) + 1 for line in fixed))
    assert read(text)["cuts"]


def test_comments_do_not_drown_in_a_long_body(board: Board) -> None:
    task = board.add("a task", body="word " * 4_000).task.id
    board.comment(task, "Leave the colours alone.")
    told = read(compact.details(board.show(task), QUIET, tokens=200))
    assert [comment["text"] for comment in told["comments"]] == ["Leave the colours alone."]
    shown, whole = told["cuts"]["body"]
    assert 300 < shown < 800
    assert whole == 20_000


def test_receipt_of_a_claim_repeats_a_part_of_very_long_work(board: Board) -> None:
    board.add("a task", body="x" * 9_000, params={"x": "y" * 5_000})
    receipt = board.claim("ada")
    assert receipt is not None
    told = read(compact.receipt(receipt, "claimed"))
    assert told["cuts"] == {"body": (3_992, 9_000), "params": (0, 5_008)}
    assert told["texts"] == {"body": "x" * 3_992}


def test_what_went_wrong_before_is_told_to_whoever_claims_next(board: Board, clock: Clock) -> None:
    held = bring_to(board, "running")
    board.fail(held.id, held.token, "no network\nat all", retry_in=1)
    clock.advance(seconds=1)
    receipt = board.claim("bob")
    assert receipt is not None
    assert read(compact.receipt(receipt, "claimed"))["texts"] == {"error": "no network\nat all"}


@pytest.mark.parametrize("order", ["age", "priority", "updated", "due"])
def test_cursor_of_a_cut_list_goes_on_without_gap_or_repetition(board: Board, clock: Clock, order: str) -> None:
    for number in range(40):
        clock.advance(seconds=1)
        due = f"2026-12-{1 + number % 9:02}" if number % 3 else None
        board.add(f"Task {number} " + "of many " * (number % 7), priority=number % 4, due_at=due)
    wanted = [task.title for task in board.list_tasks(order=order).tasks]
    seen: list[str] = []
    after: str | None = ""
    turns = 0
    while after is not None:

        def pages(count: int, after: str = after) -> TaskPage:
            return board.list_tasks(limit=count, order=order, after=after)

        text = compact.task_list(pages, 11, QUIET, tokens=100)
        assert len(text) <= 400
        told = read(text)
        seen += [task["title"] for task in told["tasks"]]
        after = told["more"] and told["more"]["after"]
        turns += 1
    assert seen == wanted
    assert turns > 4


def test_a_task_longer_than_the_budget_is_shown_all_the_same() -> None:
    found = [{**PLAIN, "id": f"{number:026}", "title": "x" * 450} for number in range(3)]
    told = read(compact.task_list(paged(found), 3, QUIET, tokens=100))
    assert len(told["tasks"]) == 1
    assert told["more"] == {"count": 2, "after": "age~1~1"}
    snapshot = {"tasks": found, "counts": {"queued": 3}, "revision": 1}
    assert len(read(compact.board(snapshot, QUIET, tokens=100))["tasks"]) == 1


PLAIN: dict[str, Any] = {
    "title": "x", "queue": "default", "status": "queued", "priority": 0, "assignee": None, "due_at": None,
    "not_before": None, "tags": [], "blocked_by": [], "progress": None, "needs_approval": False, "attempts": 0,
    "max_attempts": 3, "claimed_by": None, "lease_expires_at": None, "blocked": False, "stuck": False, "delayed": False,
    "lease_expired": False, "overdue": False,
}  # fmt: skip


WHOLE: dict[str, Any] = {
    **PLAIN, "body": "", "params": {}, "result": None, "dedupe_key": None, "artifacts": [], "error": None, "fence": 0,
    "version": 1, "created_by": "maria", "schedule_id": None, "occurrence_at": None, "claimed_at": None,
    "created_at": "2026-11-30T06:14:05.123+00:00", "updated_at": "2026-11-30T06:14:05.123+00:00", "finished_at": None,
}  # fmt: skip
EMPTY: dict[str, Any] = {"dependencies": [], "dependents": [], "comments": [], "attempts": []}


def test_a_small_budget_reads_no_long_list() -> None:
    asked = []

    def pages(count: int) -> TaskPage:
        asked.append(count)
        tasks = [Listed({**PLAIN, "id": f"{number:026}"}) for number in range(count)]
        return TaskPage(tasks, "age~1~1", more=1)  # type: ignore[arg-type]

    compact.task_list(pages, 100_000, QUIET, tokens=100)
    assert max(asked) <= 400 / len('000000 "x" done\n')
    assert len(asked) <= 3


@pytest.mark.parametrize("tokens", [0, 99, -1, 1_000_001, True, "500", 200.0])
def test_a_budget_that_makes_no_sense_is_refused(tokens: Any) -> None:
    for write in (
        lambda: compact.task_list(paged([]), 1, QUIET, tokens=tokens),
        lambda: compact.board({"tasks": [], "counts": {}, "revision": 0}, QUIET, tokens=tokens),
        lambda: compact.budget(tokens),
    ):
        with refused("invalid_input") as caught:
            write()
        assert caught.value.details["field"] == "budget"


@pytest.mark.parametrize("limit", [0, 100_001, "3", None])
def test_a_limit_is_checked_before_a_budget_makes_it_smaller(limit: Any) -> None:
    with refused("invalid_input") as caught:
        compact.task_list(paged([]), limit, QUIET, tokens=100)
    assert caught.value.details["field"] == "limit"


def test_attention_line_tells_of_reviews_and_dead_leases(board: Board, clock: Clock) -> None:
    assert read(compact.board(json.loads(board.snapshot(None).text), board.attention()))["attention"] == {}
    reviews = [bring_to(board, "review").id for _ in range(7)]
    late = bring_to(board, "claimed").id
    clock.advance(days=1)
    told = read(compact.details(board.show(late), board.attention()))["attention"]
    assert told["expired"]["count"] == 1
    assert told["expired"]["names"] == [late[-6:]]
    assert told["review"]["count"] == 7
    assert [one[-6:] for one in reviews[:5]] == [name[-6:] for name in told["review"]["names"]]


def test_events_read_back(board: Board) -> None:
    held = bring_to(board, "claimed")
    board.heartbeat(held.id, held.token, progress=40, note='says "hi"')
    board.comment(held.id, "two\nlines = 1, 2")
    found = board.events()
    told = read(compact.events(found, warnings=["w"]))
    assert (told["kind"], told["head"], told["notes"]) == ("events", {"next": found["next"]}, ["w"])
    assert [(one["seq"], one["kind"], one["actor"]) for one in told["events"]] == [
        (one["seq"], one["kind"], one["actor"]) for one in found["events"]
    ]
    assert told["events"][2] | {"status": "running", "progress": "40", "note": 'says "hi"'} == told["events"][2]
    assert told["events"][3]["text"] == "two\nlines = 1, 2"
    assert {one["name"] for one in told["events"]} == {held.id[-6:]}


# The page in docs


def story(directory: Path) -> dict[str, str]:
    """Run what the examples of the page show, and return its documents by kind."""
    clock = Clock()
    told = {}
    with Board(
        str(directory), actor=MARIA, clock=clock, random=lambda _: bytes.fromhex("00112233445566778899aabbccddeeff")
    ) as board:
        parser, manual, colours, other = (f"01KB{name.zfill(22)}" for name in ("9F3K2A", "7QW2ZX", "KGWX2P", "5T8QRM"))
        board.import_tasks(
            [
                {
                    "id": parser, "title": "Write the parser", "priority": 5, "tags": ["core", "two words"],
                    "body": "Read the grammar first.\n\n- no recursion", "params": {"grammar": "docs/grammar.md"},
                },
                {"id": manual, "title": 'Say "hello" in the manual', "queue": "docs", "blocked_by": [parser, colours]},
                {"id": colours, "title": "Choose the colours", "needs_approval": True},
                {"id": other, "title": "Draw the icons"},
            ]
        )  # fmt: skip
        grant = board.claim("bob", task=colours)
        assert grant is not None
        board.complete(colours, grant.lease.token)
        grant = board.claim("ada", task=parser)
        assert grant is not None
        told["claimed"] = compact.receipt(grant, "claimed")
        board.heartbeat(parser, grant.lease.token, progress=40)
        board.comment(parser, "Mind the line breaks.")
        told["task"] = compact.details(board.show(parser), QUIET)
        board.claim("eve", task=other, lease=1)
        clock.advance(seconds=1)
        told["list"] = compact.task_list(
            lambda count: board.list_tasks(limit=count, hide_finished=True), 3, board.attention()
        )
        with refused("conflict") as caught:
            board.claim("bob", task=parser, if_status="queued")
        told["error"] = compact.refusal(caught.value)
    return told


def test_examples_of_the_page_are_what_the_board_writes(tmp_path: Path) -> None:
    shown = re.findall(r"^```text\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert {parts(text.split("\n")[0])[1]: text for text in shown} == story(tmp_path / "data")
    for text in shown:
        read(text)


def test_page_names_every_kind_and_every_part() -> None:
    page = re.sub(r"^```.*?^```", "", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    named = {found for block in re.findall(r"`([^`]+)`", page) for found in re.findall(r"[a-z_]+", block)}
    kinds = {"list", "board", "task", "commented", "nothing", "error", *VERBS}
    assert kinds <= named
    source = Path(compact.__file__).read_text(encoding="utf-8")
    keys = set(re.findall(r'\("([a-z_]+)", ', source)) | {"replayed", "existing", "attempt", "tags", "approval"}
    assert keys - {"expired", "review"} - named == set()
    assert {"review", "expired"} <= named
