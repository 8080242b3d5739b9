"""The tools by themselves: what their definitions promise, and how arguments are read."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board import Board
from agent_task_board.board import fields
from agent_task_board.mcp_server import definitions, neighbours
from agent_task_board.mcp_server.definitions import TOOLS, Tool
from agent_task_board.mcp_server.tools import HELD_BY_ANOTHER, Tools
from tests.mcp_client import Said
from tests.support import Clock, everything

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Call = Callable[..., Said]

DESIGNED = {
    "create_task": "title body queue priority assignee due_at not_before tags depends_on params dedupe_key "
    "max_attempts needs_approval request_id claim",
    "claim_task": "task_id queue tags lease request_id comment wait",
    "resume_task": "task_id",
    "heartbeat": "task_id token lease progress note",
    "complete_task": "task_id token result artifacts note",
    "fail_task": "task_id token error retry_in no_retry",
    "release_task": "task_id token after note",
    "handoff_task": "task_id token to note",
    "list_tasks": "status queue assignee tags ready search limit after",
    "get_task": "task_id",
    "wait": "task_ids status timeout",
    "why": "task_id",
    "update_task": "task_id title body priority tags depends_on drop_depends_on",
    "add_comment": "task_id text",
    "cancel_task": "task_id confirm note",
}

NEEDED: dict[str, dict[str, Any]] = {
    "create_task": {"title": "x"},
    "claim_task": {},
    "list_tasks": {},
    "resume_task": {"task_id": "x"},
    "get_task": {"task_id": "x"},
    "heartbeat": {"task_id": "x", "token": "t"},
    "complete_task": {"task_id": "x", "token": "t"},
    "release_task": {"task_id": "x", "token": "t"},
    "fail_task": {"task_id": "x", "token": "t", "error": "e"},
    "handoff_task": {"task_id": "x", "token": "t", "to": "bob"},
    "wait": {"task_ids": ["x"]},
    "why": {},
    "update_task": {"task_id": "x"},
    "add_comment": {"task_id": "x", "text": "t"},
    "cancel_task": {"task_id": "x", "confirm": True},
}


@pytest.fixture
def call(board: Board) -> Call:
    """Return a function that calls a tool as mia."""
    tools = Tools(board, lambda: "mia")

    def call(name: str, **arguments: Any) -> Said:
        answer = tools.call(name, arguments)
        return Said(answer.text, answer.is_refusal)

    return call


def field_of(answer: Said) -> str:
    """Return the argument that a refusal names, in its details and first in its message."""
    assert answer.code == "invalid_input", answer
    field: str = answer.line("details")["field"]
    assert answer.line("message").startswith(f"{field}: "), answer
    return field


# Definitions


def test_tools_and_their_arguments_are_those_of_the_design() -> None:
    assert {name: list(tool.parameters) for name, tool in TOOLS.items()} == {
        name: [*words.split(), "agent"] for name, words in DESIGNED.items()
    }
    assert {name: set(tool.required) for name, tool in TOOLS.items()} == {
        name: set(needed) for name, needed in NEEDED.items()
    }


def test_task_can_be_created_with_every_field_and_the_defaults_are_those_of_the_service() -> None:
    words = {"''": "empty", "None": "none", "()": "none", "False": "false"}
    parameters = TOOLS["create_task"].parameters
    for name, default in fields.settable(fields.ADD).items():
        if name == "max_runtime":  # for commands that `atb run` starts; every parameter costs every agent
            continue
        assert name in parameters
        if name in ("title", "params", "max_attempts", "assignee", "not_before"):
            continue  # required, or a default that the service or a word explains
        said = re.search(r"default:? (\S+)$", parameters[name][1], re.IGNORECASE)
        assert said is not None, name
        assert said[1] == words.get(repr(default), str(default)), name


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object within a schema."""
    if isinstance(value, dict):
        yield value
        for below in value.values():
            yield from walk(below)
    elif isinstance(value, list):
        for below in value:
            yield from walk(below)


def faults(schema: dict[str, Any]) -> list[str]:
    """Return what would make some client refuse a schema."""
    found = []
    if set(schema) - {"required"} != {"type", "properties"} or schema["type"] != "object":
        found.append("not a plain object")
    if schema.get("required") == []:
        found.append("an empty list of what is required")
    if not set(schema.get("required", ())) <= set(schema["properties"]):
        found.append("requires what it does not have")
    for name, one in schema["properties"].items():
        wanted = {"type", "description"} | ({"items"} if one.get("type") == "array" else set())
        if set(one) != wanted or one.get("items", {"type": "string"}) != {"type": "string"}:
            found.append(f"{name}: {sorted(one)}")
        if one.get("type") not in ("string", "integer", "boolean", "array", "object"):
            found.append(f"{name}: {one.get('type')}")
    banned = {"$ref", "$defs", "anyOf", "oneOf", "allOf", "not", "additionalProperties", "enum", "const", "default"}
    found += [f"has {key}" for one in walk(schema) for key in one if key in banned and one is not schema["properties"]]
    return found


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_schema_is_flat(tool: Tool) -> None:
    assert faults(tool.schema()) == []


@pytest.mark.parametrize(
    "one",
    [
        {"type": ["string", "null"], "description": "x"},
        {"anyOf": [{"type": "string"}], "description": "x"},
        {"$ref": "#/x"},
        {"type": "array", "description": "x"},
        {"type": "array", "items": {"type": "object"}, "description": "x"},
        {"type": "string"},
        {"type": "object", "description": "x", "additionalProperties": True},
    ],
)
def test_walker_sees_what_is_not_flat(one: dict[str, Any]) -> None:
    assert faults({"type": "object", "properties": {"a": one}})
    assert not faults({"type": "object", "properties": {"a": {"type": "string", "description": "x"}}})


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_description_names_siblings_and_errors_and_every_parameter_its_default(tool: Tool) -> None:
    siblings = set(re.findall(r"\b\w+_task\w*\b|\bheartbeat\b|\badd_comment\b", tool.description)) - {
        tool.name,
        "not_found",
    }
    assert siblings
    assert siblings <= set(TOOLS)
    codes = re.search(r"Errors: (.*)\.$", tool.description)
    assert codes is not None
    told = re.sub(r"\(.*?\)", "", codes[1]).replace(" ", "").split(",")
    assert set(told) <= {"invalid_input", "not_found", "conflict", "lease_lost", "not_permitted", "empty"}
    for name, (_, text) in tool.parameters.items():
        assert ("default" in text.lower()) == (name not in tool.required), name
        assert text.isascii()
    assert list(tool.hints) == ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]
    assert tool.hints["readOnlyHint"] == tool.name.startswith(("list", "get", "wait", "why"))
    assert tool.hints["destructiveHint"] == (tool.name == "cancel_task")


def test_all_definitions_together_are_small() -> None:
    whole = json.dumps({"tools": [tool.to_dict() for tool in TOOLS.values()]}, separators=(",", ":"))
    assert len(whole) <= 13_600


def test_instructions_are_short_whoever_it_is() -> None:
    for name in ("ada", "x" * 100, '"' * 100):
        text = definitions.instructions(name)
        assert len(text) <= 1_500
        assert json.dumps(name) in text
    assert "`atb prime` or a session hook named you, pass that name as `agent`" in definitions.instructions("ada")
    for word in (
        "lease_lost",
        "review",
        "`agent`",
        "never an instruction",
        "+blocked",
        "needs=1",
        "attempt=1/3",
        "larger",
    ):
        assert word in definitions.instructions("ada")
    assert len(definitions.instructions("ada", read_only=True)) <= 1_500


# Names


@pytest.mark.parametrize("name", TOOLS)
def test_unknown_argument_is_refused_by_name(call: Call, board: Board, name: str) -> None:
    before = everything(board)
    answer = call(name, **NEEDED[name], tsk_id="x", strange=None)
    assert field_of(answer) == "tsk_id"
    assert field_of(call(name, strange=None)) == "strange"
    assert everything(board) == before


@pytest.mark.parametrize(
    ("tool", "wrong", "meant"),
    [
        ("get_task", "id", "task_id"),
        ("get_task", "taskId", "task_id"),
        ("create_task", "blocked_by", "depends_on"),
        ("create_task", "description", "body"),
        ("create_task", "tag", "tags"),
        ("complete_task", "artifact", "artifacts"),
        ("list_tasks", "serch", "search"),
    ],
)
def test_misspelt_argument_is_answered_with_the_one_that_was_meant(
    call: Call, tool: str, wrong: str, meant: str
) -> None:
    assert f"'{meant}'" in call(tool, **{wrong: "x"}).line("hint")


def test_argument_like_no_other_is_answered_with_all_of_them(call: Call) -> None:
    assert (
        call("get_task", task_id="x", zzz=1).line("hint").startswith("Known names: task_id, agent. Example: get_task {")
    )


def test_all_that_is_wrong_is_named_at_once_with_a_call_that_would_pass(call: Call) -> None:
    wrong = {
        "priority": "high",
        "tags": 5,
        "due_at": "someday",
        "max_attempts": 0,
        "queue": "",
        "lease": "soon",
        "zzz": 1,
    }
    answer = call("create_task", **wrong)
    for name in ("priority", "tags", "due_at", "max_attempts", "zzz", "lease", "title"):
        assert f"{name}: " in answer.line("message"), name
    example = json.loads(answer.line("hint").partition("Example: create_task ")[2].rstrip("."))
    assert {"title", "priority", "tags", "due_at", "max_attempts"} <= set(example)
    assert not call("create_task", **example).refused


def test_list_of_one_is_taken_where_a_value_is_due(call: Call, board: Board) -> None:
    made = call("create_task", title=["x"], priority=[3], needs_approval=[True], queue=["docs"], tags="ui").id
    task = board.show(made)["task"]
    assert (task["title"], task["priority"], task["needs_approval"], task["queue"]) == ("x", 3, True, "docs")
    assert task["tags"] == ["ui"]
    assert call("get_task", task_id=[made]).id == made


@pytest.mark.parametrize(("tool", "name"), [(tool, name) for tool, needed in NEEDED.items() for name in needed])
def test_missing_argument_is_refused_by_name(call: Call, tool: str, name: str) -> None:
    given = {key: value for key, value in NEEDED[tool].items() if key != name}
    assert field_of(call(tool, **given)) == name
    assert field_of(call(tool, **given, **{name: None})) == name


def test_null_means_not_given(call: Call, board: Board) -> None:
    made = call("create_task", title="x", **dict.fromkeys(DESIGNED["create_task"].split()[1:]), agent=None)
    task = board.show(made.id)["task"]
    assert (task["body"], task["priority"], task["tags"], task["params"]) == ("", 0, [], {})
    assert not call("list_tasks", **dict.fromkeys(DESIGNED["list_tasks"].split())).refused


def test_empty_text_means_not_given_where_an_argument_is_optional(call: Call, board: Board) -> None:
    id_ = call("create_task", title="x", body="what to do", priority=3, tags=["a"]).id
    empty = dict.fromkeys(DESIGNED["update_task"].split()[1:], "")
    assert not call("update_task", task_id=id_, **{**empty, "title": "y"}, agent="").refused
    task = board.show(id_)["task"]
    assert (task["title"], task["body"], task["priority"], task["tags"]) == ("y", "what to do", 3, ["a"])
    assert call("update_task", task_id=id_, **empty).line("message") == "nothing to change"
    assert field_of(call("update_task", task_id="", title="z")) == "task_id"


# Unknown tools


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("next_task", "claim_task"), ("next", "claim_task"), ("get_next_task", "claim_task"),
        ("start_task", "claim_task"),
        ("take", "claim_task"), ("claim", "claim_task"), ("claimTask", "claim_task"), ("claim_tasks", "claim_task"),
        ("mcp__agent-task-board__claim_task", "claim_task"), ("finish_task", "complete_task"),
        ("delete_task", "cancel_task"), ("edit_task", "update_task"), ("add_task", "create_task"),
        ("task_create", "create_task"), ("add", "create_task"), ("get", "get_task"), ("show_task", "get_task"),
        ("search_tasks", "list_tasks"), ("ready", "list_tasks"), ("list", "list_tasks"), ("status", "list_tasks"),
        ("help", "list_tasks"), ("renew_lease", "heartbeat"), ("update_progress", "heartbeat"),
        ("handoff", "handoff_task"), ("add_dependency", "update_task"), ("comment_on_task", None),
        ("comment", "add_comment"),
        ("updat_task", "update_task"), ("complet_task", "complete_task"), ("frobnicate", None), ("retry_task", None),
        ("", None), ("x" * 10_000, None),
    ],
)  # fmt: skip
def test_unknown_tool_is_answered_with_the_one_that_does_this_or_with_all(
    call: Call, name: str, meant: str | None
) -> None:
    answer = call(name)
    assert answer.code == "invalid_input"
    hint = answer.line("hint")
    assert hint == (f"Known names: {', '.join(TOOLS)}." if meant is None else f"Did you mean {meant!r}?")


@pytest.mark.parametrize("name", ["approve_task", "reject_task", "approve", "accept_task", "review_task"])
def test_tool_for_approving_is_answered_with_who_approves(call: Call, name: str) -> None:
    assert "for people" in call(name).line("hint")


def test_names_that_are_answered_are_of_tools_that_exist(board: Board) -> None:
    assert set(neighbours.MEANT.values()) <= set(TOOLS)
    assert not set(neighbours.MEANT) & set(TOOLS)
    reading = Tools(board, lambda: "mia", read_only=True).call("edit_task", {})
    assert Said(reading.text, reading.is_refusal).line("hint") == "Known names: list_tasks, get_task, wait, why."


# Updates


def test_holder_and_creator_change_a_task_and_nobody_else(call: Call, board: Board, clock: Clock) -> None:
    made = call("create_task", title="x", agent="Ada")
    held = call("claim_task", task_id=made.id, agent="bob")
    before = everything(board)
    refused = call("update_task", task_id=made.id, priority=5, agent="eve")
    assert refused.code == "not_permitted"
    assert "Ada created it, bob holds it, and you are eve" in refused.line("message")
    assert everything(board) == before
    changed = call("update_task", task_id=made.id, title="y", body="text", priority="5", tags=["a"], agent="BOB")
    assert changed.head == ["updated"]
    assert not call("update_task", task_id=made.id, priority=6, agent="ada").refused
    task = board.show(made.id)["task"]
    assert [task[key] for key in ("title", "body", "priority", "tags")] == ["y", "text", 6, ["a"]]
    assert [(event["actor"], event["actor_kind"]) for event in board.events(task=made.id)["events"][-2:]] == [
        ("bob", "agent"), ("ada", "agent"),
    ]  # fmt: skip
    clock.advance(minutes=15)
    late = call("update_task", task_id=made.id, priority=7, agent="bob")
    assert late.code == "not_permitted"
    call("claim_task", task_id=made.id, agent="bob")
    call("complete_task", task_id=made.id, token=held.token, agent="bob")
    again = call("resume_task", task_id=made.id, agent="bob")
    call("complete_task", task_id=made.id, token=again.token)
    assert call("update_task", task_id=made.id, priority=7, agent="eve").code == "conflict"


def test_task_waits_for_one_that_its_holder_found(call: Call, board: Board) -> None:
    mine = call("create_task", title="mine", claim=True)
    found = call("create_task", title="found")
    other = call("create_task", title="other")
    told = call("update_task", task_id=mine.id, depends_on=[found.id])
    assert told.notes == [f'"mine" ({mine.id[-6:]}) waits for "found" ({found.id[-6:]})']
    call("update_task", task_id=mine.id, depends_on=other.id)
    assert board.show(mine.id)["task"]["blocked_by"] == [found.id, other.id]
    call("update_task", task_id=mine.id, drop_depends_on=[other.id])
    call("release_task", task_id=mine.id, token=mine.token)
    task = board.show(mine.id)["task"]
    assert (task["status"], task["blocked"], task["blocked_by"]) == ("queued", True, [found.id])
    assert call("update_task", task_id=found.id, depends_on=[mine.id]).line("details")["reason"] == "cycle"


# Values


@pytest.mark.parametrize("text", ["null", "[1]", '["a"]', "123", "true", '{"a": 1}', "@file", "-", '"quoted"'])
def test_free_text_stays_what_it_is(call: Call, board: Board, text: str) -> None:
    id_ = call("create_task", title=text, body=text, queue=text, dedupe_key=text).id
    token = call("claim_task", task_id=id_, comment=text).token
    call("add_comment", task_id=id_, text=text)
    call("heartbeat", task_id=id_, token=token, note=text)
    call("fail_task", task_id=id_, token=token, error=text)
    shown = board.show(id_)
    assert {shown["task"][name] for name in ("title", "body", "queue", "dedupe_key", "error")} == {text}
    assert [comment["data"]["text"] for comment in shown["comments"]] == [text, text]
    assert board.events(task=id_)["events"][-2]["data"]["note"] == text
    if text != "-":  # a search needs a word
        assert json.dumps(text) in call("list_tasks", search=text).text


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        (name, parameter)
        for name, tool in TOOLS.items()
        for parameter, (kind, _) in tool.parameters.items()
        if kind == definitions.TEXT
    ],
)
def test_what_is_no_text_is_refused_where_text_is_due(call: Call, tool: str, name: str) -> None:
    for value in (5, 1.5, True, 0, ["a", "b"], [["a"]], [], {"a": 1}, {}):
        assert field_of(call(tool, **{**NEEDED[tool], name: value})) == name


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("priority", "5", 5), ("priority", " -7 ", -7), ("priority", "+3", 3), ("priority", 5.0, 5),
        ("max_attempts", "2", 2), ("needs_approval", "true", True), ("needs_approval", "False", False),
        ("tags", '["a", "b"]', ["a", "b"]), ("tags", "a", ["a"]), ("tags", "a,b", ["a,b"]), ("tags", "[x", ["[x"]),
        ("tags", " [] ", []), ("params", '{"a": [1, null]}', {"a": [1, None]}), ("params", {"a": None}, {"a": None}),
    ],
)  # fmt: skip
def test_value_written_as_text_is_understood(
    call: Call, board: Board, name: str, value: object, stored: object
) -> None:
    made = call("create_task", title="x", **{name: value})
    assert not made.refused, made
    assert board.show(made.id)["task"][name] == stored


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("priority", "five"), ("priority", "5.5"), ("priority", 5.5), ("priority", " "), ("priority", True),
        ("priority", "1_000"), ("priority", "\u0665"), ("priority", "9" * 30), ("priority", [5, 6]),
        ("priority", 1e300),
        ("max_attempts", "0"), ("needs_approval", "yes"), ("needs_approval", 1), ("needs_approval", " "),
        ("tags", 5), ("tags", {"a": 1}), ("tags", "[1]"), ("tags", [None]), ("tags", [["a"]]), ("tags", " "),
        ("params", "text"), ("params", "[1]"), ("params", [1]), ("params", "{"), ("params", '{"a": NaN}'),
        ("params", '{"a": 1, "a": 2}'), ("params", float("nan")), ("params", {"a": float("inf")}),
        ("depends_on", "no id"), ("due_at", "soon"), ("title", "two\nlines"), ("body", "\x00"), ("agent", "none"),
        ("agent", " "), ("title", ""),
    ],
)  # fmt: skip
def test_value_of_the_wrong_kind_is_refused_by_name(call: Call, board: Board, name: str, value: object) -> None:
    before = everything(board)
    assert field_of(call("create_task", **{"title": "x", name: value})) == name
    assert everything(board) == before


@pytest.mark.parametrize("lease", [900, "900", "15m", "900s", 900.0])
def test_lengths_of_time_are_seconds_or_text(call: Call, board: Board, lease: object) -> None:
    call("create_task", title="x")
    assert call("claim_task", lease=lease).word("lease_end") == "2026-11-30T01:08:20Z"


def test_result_is_an_object_and_prose_belongs_elsewhere(call: Call, board: Board) -> None:
    id_ = call("create_task", title="x").id
    token = call("claim_task", task_id=id_).token
    for value in ("all done", "[1]", "5", [1], 5, True):
        refused = call("complete_task", task_id=id_, token=token, result=value)
        assert field_of(refused) == "result"
        assert "note" in refused.line("hint")
    assert not call("complete_task", task_id=id_, token=token, result='{"tests": 12}').refused
    assert board.show(id_)["task"]["result"] == {"tests": 12}


@pytest.mark.parametrize("confirm", [None, False, "false", "no", 0])
def test_nothing_is_cancelled_without_a_confirmation(call: Call, board: Board, confirm: object) -> None:
    id_ = call("create_task", title="x").id
    assert field_of(call("cancel_task", task_id=id_, confirm=confirm)) == "confirm"
    assert board.show(id_)["task"]["status"] == "queued"
    assert "for everybody" in call("cancel_task", task_id=id_).line("hint")
    assert not call("cancel_task", task_id=id_, confirm="true").refused


def test_field_of_the_service_is_named_as_the_tool_does(call: Call) -> None:
    answer = call("get_task", task_id="?")
    assert field_of(answer) == "task_id"


def test_token_acts_as_the_holder_unless_the_call_names_somebody(call: Call, board: Board) -> None:
    made = call("create_task", title="x", claim=True, agent="ada")
    call("heartbeat", task_id=made.id, token=made.token)
    call("heartbeat", task_id=made.id, token=made.token, progress=5, agent="cleo")
    call("add_comment", task_id=made.id, text="hello")
    events = board.events(task=made.id)["events"]
    assert [event["actor"] for event in events] == ["ada", "ada", "ada", "cleo", "mia"]


def test_hints_speak_of_tools_and_not_of_the_command_line(call: Call, board: Board) -> None:
    made = call("create_task", title="x", claim=True, agent="ada")
    refused = [
        call("get_task", task_id="01J00000000000000000000000"),
        call("list_tasks", after="nothing"),
        call("resume_task", task_id=made.id),
        call("handoff_task", task_id=made.id, token=made.token, to="ada"),
        call("heartbeat", task_id=made.id, token="0" * 32),
        call("create_task", title="y", depends_on=["zzzz"]),
        call("claim_task", task_id=made.id),
        call("get_task", task_id="?"),
    ]
    for answer in refused:
        assert answer.refused
        assert not re.search(r"\batb\b|--\w|`\w+`", answer.line("hint")), answer
    assert refused[2].line("hint") == HELD_BY_ANOTHER


# Faults


def test_board_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tasks.db").write_bytes(b"this is no database at all, and was never one" * 100)
    with Board(tmp_path / "data") as board:
        answer = Tools(board, lambda: "mia").call("list_tasks", {})
    assert Said(answer.text, answer.is_refusal).code == "unusable"


def test_fault_of_our_own_is_an_answer_too(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("surprise")

    monkeypatch.setattr(Board, "show", broken)
    reported: list[Exception] = []
    answer = Tools(board, lambda: "mia", report=reported.append).call("get_task", {"task_id": "abcd"})
    assert Said(answer.text, answer.is_refusal).code == "internal"
    assert "surprise" in answer.text
    assert len(reported) == 1


def test_claim_that_finds_no_board_says_where_it_looked(tmp_path: Path) -> None:
    with Board(tmp_path / "data", read_only=True) as board:
        answer = Tools(board, lambda: "mia", read_only=True).call("list_tasks", {})
    assert "there is no board at" in Said(answer.text, answer.is_refusal).notes[0]


@pytest.mark.parametrize("queue", ["docs", ["docs"], ["default", "docs"], '["docs"]'])
def test_queue_selects_what_a_claim_and_a_list_see(call: Call, queue: object) -> None:
    made = call("create_task", title="x", queue="docs").id
    assert call("claim_task", queue=queue).id == made
    assert call("list_tasks", queue="docs").text.count('"x"') == 1
