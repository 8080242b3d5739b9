"""The limits of every field, and the one strict reader of JSON."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_task_board import Actor, inputs
from tests.support import bring_to, everything, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_task_board import Board

DEEP = "[" * 5_000 + "]" * 5_000


def nested(levels: int) -> list[Any]:
    """Return lists nested this many levels deep."""
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


# Text


def test_free_text_may_have_line_breaks_and_any_script() -> None:
    for text in ("", "two\nlines\ttabbed\r\n", "😀 é 汉字", "\x1b[31m"):
        assert inputs.text(text, "body", 100) is text


@pytest.mark.parametrize("value", ["a\x00b", "\ud800", "a\udfff", "abcdef", None, 5, True, b"abc", ["a"], {}])
def test_text_is_valid_unicode_within_its_limit(value: Any) -> None:
    with refused("invalid_input") as caught:
        inputs.text(value, "body", 5)
    assert caught.value.details["field"] == "body"
    assert caught.value.message.startswith("body: ")


@pytest.mark.parametrize(
    "value", ["", " ", "\n", "a\nb", "a\tb", "\x7f", "\x85", "a\x1b[0m", "\ud800", "a" * 501, None]
)
def test_one_line_has_no_control_characters_and_is_not_empty(value: Any) -> None:
    with refused("invalid_input") as caught:
        inputs.line(value, "title", 500)
    assert caught.value.details["field"] == "title"


def test_characters_are_counted_not_bytes() -> None:
    assert inputs.line("汉" * 500, "title", 500) == "汉" * 500
    assert inputs.line("😀" * 500, "title", 500) == "😀" * 500


def test_names_lose_the_spaces_around_them() -> None:
    assert inputs.name("  ada lovelace ", "agent") == "ada lovelace"
    assert inputs.name(f" {'a' * 100} ", "agent") == "a" * 100


INVISIBLE = ["\xad", "\u034f", "\u061c", "\u115f", "\u180e", "\u200b", "\u200d", "\u202e", "\u2060", "\u2065", "\u3164"]
INVISIBLE += ["\ufe0f", "\ufeff", "\uffa0", "\ufff9", "\U0001d173", "\U000e0041", "\U000e0fff"]


@pytest.mark.parametrize("hidden", INVISIBLE)
@pytest.mark.parametrize(
    "check",
    [
        lambda name: inputs.agent_name(name, "x"),
        lambda name: inputs.actor_name(name, "x"),
        lambda name: inputs.assignee(name, "x"),
        lambda name: inputs.queue_name(name, "x"),
        lambda name: inputs.new_tags([name], "x"),
    ],
)
def test_new_names_hold_nothing_invisible(check: Callable[[str], Any], hidden: str) -> None:
    with refused("invalid_input") as caught:
        check(f"a{hidden}da")
    assert caught.value.details["field"] == "x"
    assert f"U+{ord(hidden):04X}" in caught.value.message
    check("Zoë 文 😀")


@pytest.mark.parametrize("space", ["\xa0", "\u2003", "\u2028", "\u3000", "\u2800"])
def test_new_names_hold_no_space_but_the_plain_one(space: str) -> None:
    for check in (inputs.agent_name, inputs.actor_name, inputs.queue_name):
        assert check("ada b", "x") == "ada b"
        with refused("invalid_input") as caught:
            check(f"ada{space}b", "x")
        assert f"U+{ord(space):04X}" in caught.value.message


NOTHING_TO_SEE = ["\u200b", "\u3164\u3164", "\u2800", "\u0301", "\ufe0f \u200d", "\U000e0041", "\xad"]


@pytest.mark.parametrize("text", NOTHING_TO_SEE)
def test_titles_names_tags_and_paths_have_a_visible_character(text: str) -> None:
    for check in (
        inputs.title, inputs.agent_name, inputs.actor_name, inputs.queue_name,
        lambda value, field: inputs.new_tags([value], field), lambda value, field: inputs.artifacts([value], field),
    ):  # fmt: skip
        with refused("invalid_input") as caught:
            check(text, "x")
        assert caught.value.details["field"] == "x"
    assert inputs.title(f"a{text}", "x") == f"a{text}".strip()


@pytest.mark.parametrize(
    "name", ["system", "SYSTEM", "Human", "none", "me", " me ", "\uff53\uff59\uff53\uff54\uff45\uff4d"]
)
def test_reserved_names_are_nobodys(name: str) -> None:
    for check in (inputs.agent_name, inputs.actor_name):
        with refused("invalid_input") as caught:
            check(name, "x")
        assert "reserved" in caught.value.message


def test_names_are_compared_without_case_and_in_one_normal_form() -> None:
    assert inputs.name_key("Ada") == inputs.name_key("ADA") == "ada"
    assert inputs.name_key("Zoe\u0308") == inputs.name_key("ZO\xcb") == "zo\xeb"
    assert inputs.name_key("Straße") == inputs.name_key("STRASSE")
    assert inputs.name_key("\u212b") == inputs.name_key("a\u030a")


def test_what_an_older_version_named_is_still_found_kept_and_imported(board: Board) -> None:
    old: dict[str, Any] = {"title": "old", "queue": "do\u200bcs", "tags": ["r\xaded"], "assignee": "a\u200bda"}
    board.import_tasks([old])
    (task,) = board.list_tasks(queue="do\u200bcs", tags=["r\xaded"], assignee="a\u200bda").tasks
    assert (task.queue, task.tags, task.assignee) == ("do\u200bcs", ["r\xaded"], "a\u200bda")
    assert board.update(task.id, add_tags=["blue"]).task.tags == ["r\xaded", "blue"]
    assert board.update(task.id, drop_tags=["r\xaded"]).task.tags == ["blue"]
    board.reassign(task.id, None)
    assert board.claim("ada", queues=["do\u200bcs"]) is not None
    for field in ("queue", "assignee"):
        with refused("invalid_input") as caught:
            board.add("new", **{field: old[field]})
        assert caught.value.details["field"] == field
    for field in ("tags", "add_tags"):
        with refused("invalid_input"):
            board.update(task.id, **{field: old["tags"]})


@pytest.mark.parametrize("value", [None, "", "none", "NONE", " None "])
def test_nobody_may_be_said_in_several_ways(value: str | None) -> None:
    assert inputs.assignee(value, "assignee") is None


def test_names_that_only_contain_none_are_names() -> None:
    assert inputs.assignee("none-such", "assignee") == "none-such"


@pytest.mark.parametrize("value", [None, ""])
def test_empty_key_is_no_key(value: str | None) -> None:
    assert inputs.key(value, "dedupe_key") is None


# Lists


def test_tags_keep_their_order_and_lose_repetitions() -> None:
    assert inputs.tags(["b", "a", "b"]) == ["b", "a"]
    assert inputs.tags(("x",)) == ["x"]
    assert len(inputs.tags([str(number) for number in range(50)])) == 50
    assert inputs.tags(["a"] * 1_000) == ["a"]


@pytest.mark.parametrize(
    "values", ["abc", None, 5, {"a": 1}, [1], [None], [""], ["a\n"], ["t" * 65], list(map(str, range(51)))]
)
def test_malformed_tags_are_refused(values: Any) -> None:
    with refused("invalid_input") as caught:
        inputs.tags(values, "add_tags")
    assert caught.value.details["field"] == "add_tags"


# Numbers, booleans, words


@pytest.mark.parametrize("value", [True, False, 1.0, "1", None, [], -1, 11, 10**30, float("nan")])
def test_whole_number_is_nothing_else_and_within_its_bounds(value: Any) -> None:
    with refused("invalid_input") as caught:
        inputs.integer(value, "priority", 0, 10)
    assert caught.value.details["field"] == "priority"
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("value", [0, 1, "true", "", None, []])
def test_boolean_is_nothing_else(value: Any) -> None:
    with refused("invalid_input") as caught:
        inputs.boolean(value, "needs_approval")
    assert caught.value.details["field"] == "needs_approval"


@pytest.mark.parametrize("value", ["", "Done", "done ", None, 5, ["done"], {}])
def test_word_is_one_of_those_allowed(value: Any) -> None:
    with refused("invalid_input") as caught:
        inputs.one_of(value, "status", ("done", "failed"))
    assert caught.value.details["field"] == "status"
    assert "done, failed" in caught.value.message


# JSON


@pytest.mark.parametrize(
    "source",
    [
        *("NaN", "Infinity", "-Infinity", "[NaN]", "1e400", "-1e400"),
        *('{"a": 1, "a": 1}', '{"x": [{"b": 1, "c": 2, "b": 3}]}', '{"\\u0061": 1, "a": 2}'),
        *('"\\ud800"', '{"\\udc00": 1}', '["\\ud83d"]', '"\ud800"'),
        *("9223372036854775808", "-9223372036854775809", "1" + "0" * 30, "[" + "1" * 5_000 + "]"),
        *(DEEP, '{"a":' * 5_000 + "1" + "}" * 5_000, json.dumps(nested(101))),
        *("", " ", "{", "[1,]", "{'a': 1}", "nul", "1 2", "\ufeff1", "01", '"a\nb"', "// x"),
    ],
)
def test_json_beyond_the_standard_or_the_limits_is_refused_by_field(source: str) -> None:
    with refused("invalid_input") as caught:
        inputs.parse_json(source, "params")
    assert caught.value.details["field"] == "params"
    assert caught.value.message.startswith("params: ")


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("null", None),
        (' [1, -2.5e3, "\\ud83d\\ude00", {"a": {}}] ', [1, -2500.0, "😀", {"a": {}}]),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        (json.dumps(nested(100)), nested(100)),
        ('{"a": {"a": 1}, "b": {"a": 1}}', {"a": {"a": 1}, "b": {"a": 1}}),
    ],
)
def test_json_within_the_standard_is_read(source: str, value: Any) -> None:
    assert inputs.parse_json(source, "params") == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)  # fmt: skip


@given(JSON)
def test_any_json_value_is_stored_and_read_back_as_it_was(value: Any) -> None:
    assert inputs.parse_json(inputs.json_text(value, "result"), "result") == value


@given(st.text(max_size=200))
def test_reader_of_json_answers_or_refuses_whatever_comes(source: str) -> None:
    try:
        expected = json.loads(source)
    except ValueError:
        with refused("invalid_input"):
            inputs.parse_json(source, "params")
        return
    if expected == expected and abs(expected if isinstance(expected, (int, float)) else 0) < 2**63:
        assert inputs.parse_json(source, "params") == expected


@pytest.mark.parametrize(
    "value", ["NaN", "1e999", '{"a": 1, "a": 2}', r'"\ud800"', "9" * 5_000, json.dumps(nested(101))]
)
def test_what_is_wrong_in_an_object_is_refused_by_the_name_that_it_has_there(value: str) -> None:
    with refused("invalid_input") as caught:
        inputs.parse_object(f'{{"title": "good", "params": {{"deep": {value}}}}}', "request")
    assert caught.value.details["field"] == "params"
    assert caught.value.message.startswith("params: ")


@pytest.mark.parametrize("source", ["", "[]", "null", "1", "{", '{"a": 1, "a": 2}', r'{"\ud800": 1}', "[" * 5_000])
def test_what_is_no_object_is_refused_by_the_name_of_the_whole(source: str) -> None:
    with refused("invalid_input") as caught:
        inputs.parse_object(source, "request")
    assert caught.value.details["field"] == "request"


def test_json_that_contains_itself_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with refused("invalid_input"):
        inputs.json_text(circle, "result")


def test_size_of_json_is_counted_in_bytes() -> None:
    assert len(inputs.json_text("é" * 524_287, "result").encode()) == 1_048_576
    with refused("invalid_input"):
        inputs.json_text("é" * 524_288, "result")


@pytest.mark.parametrize("value", [None, [], "{}", 5])
def test_params_are_an_object(value: Any) -> None:
    with refused("invalid_input") as caught:
        inputs.parameters(value)
    assert caught.value.details["field"] == "params"


# The verbs refuse by field and leave the board unchanged

BAD_VALUES: dict[str, list[Any]] = {
    "title": ["", "   ", "t" * 501, "a\x00b", "a\nb", "\ud800", None, 5],
    "body": ["b" * 200_001, "a\x00", "\udfff", 5],
    "queue": ["", "q" * 101, "a\tb", None],
    "priority": [1_000_001, -1_000_001, 10**30, 1.5, True, "high", None],
    "assignee": ["a" * 101, "a\x00", "\ud800", 5],
    "due_at": ["someday", "2026-02-30", 1_796_000_000, ["2026-12-01"]],
    "not_before": ["soon", "2026-11-30T25:00:00+00:00", {"at": 1}],
    "tags": ["web", [""], ["t" * 65], ["a\nb"], [5], [str(number) for number in range(51)], 5],
    "params": [
        [],
        "text",
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": 10**30},
        {"a": "\ud800"},
        {5: "a"},
        {"a": object()},
        {"a": nested(100)},
        {"a": nested(5_000)},
        {"a": "x" * 1_048_576},
    ],
    "dedupe_key": ["k" * 201, "a\nb", "  ", 5],
    "max_attempts": [0, 1_001, -1, True, "3"],
    "needs_approval": [1, "yes", None],
    "depends_on": ["01ARZ3NDEKTSV4RRFFQ69G5FAV", ["nope"], [5], [""], 5],
}
"""Every limit of every field, and every kind of value that is none. Here they are tried one by one; other surfaces
need to show only that they pass a refusal on, under their own name of the field."""

CLEARABLE = ("body", "queue", "priority")
"""Fields that an update can clear with null, but that a new task cannot have as null."""


@pytest.mark.parametrize("field", BAD_VALUES)
def test_malformed_field_is_refused_by_add_update_and_import(board: Board, field: str) -> None:
    task = board.add("there already").task
    before = everything(board)

    def expect_refusal(call: Callable[[], object], value: Any, **details: str) -> None:
        with refused("invalid_input") as caught:
            call()
        named = {key: caught.value.details.get(key) for key in ("field", *details)}
        assert named == {"field": field, **details}, repr(value)[:80]

    for value in BAD_VALUES[field]:
        given: dict[str, Any] = {"title": "task", field: value}
        expect_refusal(partial(board.add, **given), value)
        if not (field in CLEARABLE and value is None):
            expect_refusal(partial(board.update, task.id, **{field: value}), value)
        if field != "depends_on":  # a file calls it blocked_by, and may name tasks that come later
            expect_refusal(partial(board.import_tasks, [{"title": "good"}, given]), value, place="tasks[1]")
    assert everything(board) == before


@pytest.mark.parametrize("field", CLEARABLE)
def test_null_clears_a_field_that_a_new_task_cannot_be_made_with(board: Board, field: str) -> None:
    task = board.add("there already").task
    something: dict[str, Any] = {field: 5 if field == "priority" else "something"}
    nothing: dict[str, Any] = {field: None}
    board.update(task.id, **something)
    assert getattr(board.update(task.id, **nothing).task, field) == getattr(task, field)


def test_fields_at_their_limits_are_accepted_by_add_and_update(board: Board) -> None:
    fields: dict[str, Any] = {
        "title": "汉" * 500,
        "body": "b" * 200_000,
        "queue": "q" * 100,
        "priority": -1_000_000,
        "assignee": "a" * 100,
        "tags": [str(number).rjust(64, "t") for number in range(50)],
        "params": {"a": nested(99)},
        "dedupe_key": "k" * 200,
        "max_attempts": 1_000,
    }
    task = board.add(**fields).task
    assert {field: getattr(task, field) for field in fields} == fields
    fields |= {"priority": 1_000_000, "max_attempts": 1, "params": {"a": "x" * (1_048_576 - 8)}}
    task = board.update(task.id, **fields).task
    assert {field: getattr(task, field) for field in fields} == fields


@pytest.mark.parametrize("actor", ["", "a" * 101, "a\nb", "\ud800"])
def test_malformed_actor_is_refused_by_every_verb(board: Board, actor: str) -> None:
    held = bring_to(board, "claimed")
    by = Actor(actor, "human")
    before = everything(board)
    calls: list[Callable[[], object]] = [
        lambda: board.add("x", actor=by),
        lambda: board.update(held.id, title="x", actor=by),
        lambda: board.comment(held.id, "x", actor=by),
        lambda: board.cancel(held.id, actor=by),
        lambda: board.complete(held.id, held.token, actor=by),
        lambda: board.import_tasks([], actor=by),
    ]
    for call in calls:
        with refused("invalid_input") as caught:
            call()
        assert caught.value.details["field"] == "actor"
    assert everything(board) == before


def test_actor_of_an_unknown_kind_is_refused(board: Board) -> None:
    board.add("there already")
    before = everything(board)
    with refused("invalid_input"):
        board.add("x", actor=Actor("maria", "robot"))
    assert everything(board) == before


@pytest.mark.parametrize("name", ["system", "System", "none", " NONE "])
def test_names_that_stand_for_the_board_or_for_nobody_are_no_actors(board: Board, name: str) -> None:
    task = board.add("task").task
    before = everything(board)
    with refused("invalid_input") as caught:
        board.comment(task.id, "lease expired", actor=Actor(name, "human"))
    assert caught.value.details["field"] == "actor"
    assert everything(board) == before


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("-5", -5), ("007", 7), ("9" * 18, 10**18 - 1)])
def test_text_of_ascii_digits_is_a_whole_number(text: str, number: int) -> None:
    assert inputs.whole_number(text, "limit") == number


@pytest.mark.parametrize(
    "text", ["", "-", "--5", "+5", " 5", "5 ", "1_000", "5.0", "1e3", "\u0665", "\u00b2", "9" * 19]
)
def test_other_text_is_no_whole_number(text: str) -> None:
    with refused("invalid_input") as caught:
        inputs.whole_number(text, "limit")
    assert caught.value.message == f"limit: not a whole number: {text!r}"
    assert caught.value.details == {"field": "limit"}


def test_hint_names_the_most_similar_word() -> None:
    assert inputs.did_you_mean("clam", ("claim", "complete")) == "Did you mean 'claim'?"
    assert inputs.did_you_mean("xyz", ("claim", "complete")) == ""
    assert inputs.did_you_mean("claim" + "m" * 100_000, ("claim",)) == ""  # cut: comparing is quadratic


def test_json_object_refuses_a_repeated_key_by_name() -> None:
    assert inputs.json_object([("a", 1), ("b", 2)]) == {"a": 1, "b": 2}
    with pytest.raises(inputs.RepeatedKey) as caught:
        inputs.json_object([("a", 1), ("b", 2), ("b", 3), ("a", 4)])
    assert caught.value.key == "b"
