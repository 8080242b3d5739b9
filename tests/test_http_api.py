"""Every route of the HTTP API and every reply: statuses, envelopes, what each field means, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from agent_task_board import Actor
from agent_task_board.board import snapshot
from agent_task_board.model import STATUSES
from agent_task_board.web import documentation, fields, openapi, stream
from agent_task_board.web.routes import ANSWERS, ROUTES
from tests.command_line import LONG_KEYS, TASK_KEYS
from tests.compact_reader import read
from tests.processes import raw
from tests.serving import process, serving
from tests.support import MARIA, WRONG_TOKEN, bring_to, everything, hold, open_board

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_task_board.web.routes import Route
    from tests.serving import Answer, Client, InThread
    from tests.support import Clock

ROOT = Path(__file__).parent.parent

NOWHERE = "01J00000000000000000000000"
EVENT_KEYS = ["seq", "task_id", "kind", "actor", "actor_kind", "at", "data"]
ATTEMPT_KEYS = ["number", "agent", "fence", "claimed_at", "ended_at", "outcome", "error", "note", "result"]
LEASE_KEYS = ["token", "fence", "expires_at"]
LEAN_KEYS = [key for key in TASK_KEYS if key not in LONG_KEYS]
BOARD_KEYS = [key for key in TASK_KEYS if key not in ("body", "params", "result")]

READS = [route for route in ROUTES if not route.writes]
WRITES = [route for route in ROUTES if route.writes]

CONTRACT = """
GET /api
GET /api/openapi.json
GET /healthz
GET /api/board
GET /api/tasks
POST /api/tasks
GET /api/tasks/{id}
PATCH /api/tasks/{id}
GET /api/tasks/{id}/events
GET /api/tasks/{id}/why
POST /api/claim
POST /api/tasks/{id}/claim
POST /api/tasks/{id}/resume
POST /api/tasks/{id}/heartbeat
POST /api/tasks/{id}/complete
POST /api/tasks/{id}/done
POST /api/tasks/{id}/fail
POST /api/tasks/{id}/release
POST /api/tasks/{id}/handoff
POST /api/tasks/{id}/approve
POST /api/tasks/{id}/reject
POST /api/tasks/{id}/reassign
POST /api/tasks/{id}/retry
POST /api/tasks/{id}/cancel
POST /api/tasks/{id}/comments
GET /api/events
GET /api/stream
GET /api/why
GET /api/agents
GET /api/stats
GET /api/schedules
"""


@pytest.fixture
def server(tmp_path: Path, clock: Clock) -> Iterator[InThread]:
    """Return a server of an empty board, on the test's clock; the person at it is Maria."""
    with serving(tmp_path / "data", clock=clock) as running:
        yield running


@pytest.fixture
def api(server: InThread) -> Iterator[Client]:
    """Return a client of ``server``."""
    with server.client() as client:
        yield client


def name_of(route: Route) -> str:
    """Return how a route is called in the list of the contract."""
    return f"{route.method} {route.path}"


def add(api: Client, **given: Any) -> str:
    """Add a task and return its id."""
    return str(api.data("POST", "/api/tasks", {"title": "Task", **given})["task"]["id"])


def claim(api: Client, task: str, agent: str = "ada", **given: Any) -> str:
    """Claim a task and return the token."""
    return str(api.data("POST", f"/api/tasks/{task}/claim", {"agent": agent, **given})["lease"]["token"])


def history(api: Client, task: str) -> list[dict[str, Any]]:
    """Return all events of a task."""
    events: list[dict[str, Any]] = api.data("GET", f"/api/tasks/{task}/events")["events"]
    return events


# The shape of every answer


def test_the_routes_are_those_of_the_contract() -> None:
    assert sorted(map(name_of, ROUTES)) == sorted(CONTRACT.split("\n")[1:-1])


def test_answers_hold_what_the_contract_says(api: Client, clock: Clock) -> None:
    task = add(api, needs_approval=True)
    other = add(api, blocked_by=[task])

    def shape(method: str, path: str, body: object = None) -> list[str]:
        return list(api.data(method, path, body))

    assert shape("POST", "/api/tasks", {"title": "x"}) == ["task", "created"]
    assert shape("POST", "/api/tasks", {"title": "x", "claim": True, "agent": "eve"}) == ["task", "created", "lease"]
    assert shape("PATCH", f"/api/tasks/{task}", {"priority": 5}) == ["task"]
    assert shape("PATCH", f"/api/tasks/{task}", {"status": "claimed", "agent": "ada"}) == ["task", "lease"]
    assert shape("POST", f"/api/tasks/{task}/resume", {"agent": "ada"}) == ["task", "lease"]
    granted = api.data("POST", f"/api/tasks/{task}/resume", {"agent": "ada"})
    assert list(granted["task"]) == TASK_KEYS
    assert list(granted["lease"]) == LEASE_KEYS
    held = {"token": granted["lease"]["token"]}
    assert shape("POST", f"/api/tasks/{task}/heartbeat", held) == ["task", "lease"]
    assert shape("POST", f"/api/tasks/{task}/release", held) == ["task"]
    assert shape("POST", f"/api/tasks/{task}/release", held) == ["task", "replayed"]
    granted = api.data("POST", "/api/claim", {"agent": "ada"})
    assert list(granted) == ["task", "lease"]
    held = {"token": granted["lease"]["token"]}
    assert shape("POST", f"/api/tasks/{task}/handoff", {**held, "to": "bob"}) == ["task"]
    held = {"token": claim(api, task, "bob")}
    assert shape("POST", f"/api/tasks/{task}/fail", {**held, "error": "x", "retry_in": 0}) == ["task"]
    held = {"token": claim(api, task, "bob")}
    assert shape("POST", f"/api/tasks/{task}/complete", held) == ["task"]
    assert shape("POST", f"/api/tasks/{task}/reject", {"note": "x"}) == ["task"]
    held = {"token": claim(api, task, "bob")}
    assert shape("POST", f"/api/tasks/{task}/complete", held) == ["task"]
    assert shape("POST", f"/api/tasks/{task}/approve") == ["task"]
    assert shape("POST", f"/api/tasks/{other}/reassign", {"to": "bob"}) == ["task"]
    assert shape("POST", f"/api/tasks/{other}/cancel") == ["task"]
    assert shape("POST", f"/api/tasks/{other}/retry") == ["task"]
    comment = api.data("POST", f"/api/tasks/{task}/comments", {"text": "x"})
    assert list(comment) == ["event"]
    assert list(comment["event"]) == EVENT_KEYS
    details = api.data("GET", f"/api/tasks/{task}")
    assert list(details) == ["task", "attempts", "dependencies", "dependents", "comments"]
    assert list(details["task"]) == TASK_KEYS
    assert list(details["attempts"][0]) == ATTEMPT_KEYS
    assert list(details["dependents"][0]) == ["id", "title", "status"]
    assert list(details["comments"][0]) == EVENT_KEYS
    page = api.data("GET", "/api/tasks")
    assert list(page) == ["tasks", "next"]
    assert {tuple(task) for task in page["tasks"]} == {tuple(LEAN_KEYS)}
    assert list(api.data("GET", "/api/tasks?full=true")["tasks"][0]) == TASK_KEYS
    for path in ("/api/events", f"/api/tasks/{task}/events"):
        events = api.data("GET", path)
        assert list(events) == ["events", "next"]
        assert list(events["events"][0]) == EVENT_KEYS
    board = api.data("GET", "/api/board")
    assert list(board) == ["tasks", "counts", "truncated", "revision", "timezone"]
    assert {tuple(task) for task in board["tasks"]} == {tuple(BOARD_KEYS)}
    assert list(board["counts"]) == list(STATUSES)
    assert shape("GET", "/api/agents") == ["agents"]
    assert shape("GET", "/api/stats") == re.findall(r"\w+", ANSWERS["stats"][0])
    assert api.data("GET", "/api/schedules") == {"schedules": []}
    assert shape("GET", "/healthz") == ["status", "version", "read_only", "data_dir"]


def test_a_list_and_the_board_show_the_same_task_as_show_does(api: Client) -> None:
    first = add(api, tags=["x", "ü"], params={"a": [1, None]}, due_at="2026-11-01", needs_approval=True, priority=-3)
    task = add(api, blocked_by=[first], not_before="2027-01-01", dedupe_key="k", assignee="ada")
    token = claim(api, first)
    api.data("POST", f"/api/tasks/{first}/heartbeat", {"token": token, "progress": 0})

    for number, id_ in enumerate((first, task)):
        shown = api.data("GET", f"/api/tasks/{id_}")["task"]
        assert api.data("GET", "/api/tasks?full=1&order=age")["tasks"][number] == shown
        on_board = api.data("GET", "/api/board")["tasks"][number]
        assert on_board == {key: value for key, value in shown.items() if key in BOARD_KEYS}
        assert [type(value) for value in on_board.values()] == [type(shown[key]) for key in on_board]


def test_no_answer_but_a_grant_tells_a_token(api: Client, server: InThread) -> None:
    task = add(api)
    token = claim(api, task)
    api.data("POST", f"/api/tasks/{task}/heartbeat", {"token": token, "note": "on it"})
    api.refused("lease_lost", "POST", f"/api/tasks/{task}/heartbeat", {"token": "f" * 32})
    paths = ["/api/board", "/api/tasks?full=1", f"/api/tasks/{task}", "/api/events", "/api/agents", "/api/stats"]

    assert not [path for path in paths if token in api.fetch("GET", path).content.decode()]
    assert token not in "\n".join(server.log)
    completed = api.fetch("POST", f"/api/tasks/{task}/complete", {"token": token})
    assert token not in completed.content.decode()


def test_unknown_routes_and_wrong_methods_are_refused(api: Client) -> None:
    for path in ("/api/nothing", "/api/tasks/", f"/api/tasks/{NOWHERE}/eat", f"/api/tasks/{NOWHERE}/claim/x", "/API"):
        assert api.fetch("GET", path).status == 404, path
        assert api.refused("not_found", "GET", path)["details"] == {}
    for route in ROUTES:
        path = route.path.replace("{id}", NOWHERE)
        methods = {other.method for other in ROUTES if other.path == route.path}
        allowed = methods | ({"HEAD"} if "GET" in methods else set())
        for method in {"GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"} - methods:
            answer = api.fetch(method, path)
            assert answer.status == 405, (method, path)
            assert answer.code == "invalid_input"
            assert set((answer.header("Allow") or "").split(", ")) == allowed


@pytest.mark.parametrize("route", [route for route in READS if route.answer != "stream"], ids=name_of)
def test_head_answers_as_get_does_without_a_body(api: Client, route: Route) -> None:
    path = route.path.replace("{id}", add(api))
    got, headed = api.fetch("GET", path), api.fetch("HEAD", path)

    assert (got.status, headed.status, headed.body) == (200, 200, b"")
    assert {name: value for name, value in got.headers if name != "Date"} == {
        name: value for name, value in headed.headers if name != "Date"
    }


def test_health_reads_the_board(api: Client) -> None:
    assert api.data("GET", "/healthz")["status"] == "ok"
    assert api.data("GET", "/healthz")["read_only"] is False


# What comes in


def body_of(route: Route) -> dict[str, Any]:
    """Return a body with everything that a route needs, and nothing else."""
    usual = {"title": "Task", "agent": "ada", "token": WRONG_TOKEN, "error": "x", "to": "bob", "note": "x", "text": "x"}
    return {name: usual[name] for name in route.required} or ({"title": "New"} if route.method == "PATCH" else {})


@pytest.mark.parametrize("route", WRITES, ids=name_of)
def test_a_field_that_a_route_does_not_know_is_refused_by_name(api: Client, route: Route) -> None:
    path = route.path.replace("{id}", add(api))
    for name in ["colour", "id", "depends_on", "x" * 500, "", "ä", *fields.BODY]:
        if name not in route.fields():
            error = api.refused("invalid_input", "POST" if route.method == "POST" else "PATCH", path, {name: "x"})
            assert error["details"]["field"] == name[:60]
    assert len(api.data("GET", "/api/tasks")["tasks"]) == 1


@pytest.mark.parametrize("route", READS, ids=name_of)
def test_a_parameter_that_a_route_does_not_know_is_refused_by_name(api: Client, route: Route) -> None:
    path = route.path.replace("{id}", add(api))
    for name in ["colour", "", "Limit", "agent", *fields.QUERY]:
        if name not in route.parameters():
            answer = api.fetch("GET", f"{path}?{name}=1")
            assert (answer.status, answer.code) == (400, "invalid_input"), name
            assert answer.envelope["error"]["details"]["field"] == name


@pytest.mark.parametrize("route", WRITES, ids=name_of)
def test_a_write_takes_no_parameters(api: Client, route: Route) -> None:
    path = route.path.replace("{id}", add(api))
    error = api.refused("invalid_input", route.method, f"{path}?agent=ada", body_of(route))
    assert error["details"]["field"] == "agent"


@pytest.mark.parametrize("route", [route for route in WRITES if route.required], ids=name_of)
def test_a_required_field_is_asked_for_by_name(api: Client, route: Route) -> None:
    path = route.path.replace("{id}", add(api))
    for name in route.required:
        body = body_of(route)
        for given in ({key: value for key, value in body.items() if key != name}, {**body, name: None}):
            if name == "to" and route.path.endswith("reassign") and "to" in given:
                continue  # there null means anybody
            assert api.refused("invalid_input", route.method, path, given)["details"]["field"] == name


SAMPLES = {
    "null": None,
    "boolean": True,
    "integer": 3,
    "number": 1.5,
    "string": "?",
    "array": ["?"],
    "object": {"?": 1},
}

EMPTY = {"boolean": False, "integer": 0, "number": 0.0, "string": "", "array": [], "object": {}}


def bad_values(schema: dict[str, Any], *, limits: bool) -> Iterator[Any]:
    """Yield values that a schema forbids: other types, and just beyond each limit."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    for kind, value in SAMPLES.items():
        fits = kind in kinds or (kind == "integer" and "number" in kinds)
        if kinds and not fits and kind != "null":  # what null means has tests of its own
            yield value
            yield EMPTY[kind]  # what Python takes for false is no less wrong
    if "enum" in schema or "const" in schema:
        yield from ("open", "", 5, ["queued"])
    if not limits:
        return
    if "maximum" in schema:
        yield from (schema["minimum"] - 1, schema["maximum"] + 1)
    if "string" in kinds and "maxLength" in schema:
        yield "x" * (schema["maxLength"] + 1)
        yield "nul\0"
        yield from [""] if schema.get("minLength") else []
    if "array" in kinds:
        item = schema["items"]
        yield from ([value] for value in ("", None, 5, ["x"], "x" * (item["maxLength"] + 1)))
        yield [f"{number:026}" for number in range(schema["maxItems"] + 1)]


FIRST = {(name, id(schema)): route for route in reversed(WRITES) for name, (schema, _) in route.fields().items()}
"""The first route of each field of a body: its limits are tried there alone, what is of another type everywhere."""


@pytest.mark.parametrize("route", WRITES, ids=name_of)
def test_a_value_that_the_schema_forbids_is_refused_by_name(api: Client, server: InThread, route: Route) -> None:
    path = route.path.replace("{id}", add(api))
    before = everything(server.board)
    for name, (schema, _) in route.fields().items():
        for value in bad_values(schema, limits=FIRST[name, id(schema)] == route):
            body = {**body_of(route), name: value}
            if name == "lease" and route.path == "/api/tasks":
                body |= {"claim": True, "agent": "ada"}
            error = api.refused("invalid_input", route.method, path, body)
            assert error["details"].get("field") == name, (name, str(value)[:80], error)
    assert everything(server.board) == before


@pytest.mark.parametrize("route", READS, ids=name_of)
def test_a_parameter_of_the_wrong_kind_is_refused_by_name(api: Client, route: Route) -> None:
    path = route.path.replace("{id}", add(api))
    for name, (schema, _) in route.parameters().items():
        kind = schema.get("type", "string")
        inner = schema["items"] if kind == "array" else schema
        values = {"integer": ["x", "1.5", "", "1e3", "+1", "٣", "9" * 19], "boolean": ["maybe", "TRUE", "2"]}.get(
            kind, []
        )
        values += [str(schema[limit] + by) for limit, by in (("minimum", -1), ("maximum", 1)) if limit in schema]
        values += ["open"] if "enum" in inner else []
        values += ["x" * (inner["maxLength"] + 1)] if "maxLength" in inner else []
        for value in values:
            error = api.refused("invalid_input", "GET", f"{path}?{name}={quote(value)}")
            assert error["details"]["field"] == ("id" if name == "task" else name), (name, value)
        if kind != "array":
            once = {"integer": "1", "boolean": "true"}.get(kind, inner.get("enum", ["x"])[0])
            error = api.refused("invalid_input", "GET", f"{path}?{name}={once}&{name}={once}")
            assert error["details"]["field"] == name


def test_a_query_may_repeat_lists_and_leave_out_what_a_flag_says(api: Client) -> None:
    add(api, title="Task A", tags=["x", "y"])
    cancelled = add(api, title="Task B", tags=["x"])
    api.data("POST", f"/api/tasks/{cancelled}/cancel")

    def titles(query: str) -> list[str]:
        return [task["title"] for task in api.data("GET", f"/api/tasks?{query}")["tasks"]]

    assert titles("") == titles("status=queued&status=cancelled") == titles("ready=false") == ["Task A", "Task B"]
    assert titles("tags=x&tags=y") == titles("tag=x&tag=y") == titles("tag=y&tags=x") == ["Task A"]
    assert titles("ready") == titles("ready=") == titles("ready=true") == titles("ready=1") == ["Task A"]
    assert (
        titles("search=task+a") == titles("search=task%20a") == titles("search=TASK A".replace(" ", "+")) == ["Task A"]
    )
    assert titles("limit=1") == ["Task A"]
    for bad in ("tag=%ff", "tag=%00", "&".join(["tag=x"] * 201)):
        api.refused("invalid_input", "GET", f"/api/tasks?{bad}")


@pytest.mark.parametrize(
    "content",
    [
        b"{", b"[]", b"null", b"1", b'"text"', b"{} {}", b"\xff", b"\xef\xbb\xbf{}", b'{"title": "a", "title": "b"}',
        b"{'title': 1}", b'{"title": "\xed\xa0\x80"}', b"[" * 5_000, b'{"title": ' + b"[" * 50_000,
    ],
)  # fmt: skip
def test_a_body_that_is_no_json_object_is_refused(api: Client, content: bytes) -> None:
    answer = api.fetch("POST", "/api/tasks", content)
    assert (answer.status, answer.code) == (400, "invalid_input")
    assert api.data("GET", "/api/tasks")["tasks"] == []


@pytest.mark.parametrize("field", ["params", "result"])
def test_json_that_the_board_cannot_hold_is_refused_by_the_name_of_its_field(api: Client, field: str) -> None:
    task = add(api)
    path = "/api/tasks" if field == "params" else f"/api/tasks/{task}/complete"
    needs = b'"title": "x"' if field == "params" else f'"token": "{claim(api, task)}"'.encode()
    for value in (b"NaN", b'{"a": 1, "a": 2}', rb'"\ud800"', b"9" * 5_000, b"[" * 101 + b"]" * 101):
        answer = api.fetch("POST", path, b'{%s, %s: {"deep": %s}}' % (needs, json.dumps(field).encode(), value))
        assert (answer.status, answer.code) == (400, "invalid_input"), value[:80]
        assert answer.envelope["error"]["details"]["field"] == field, value[:80]
    assert len(api.data("GET", "/api/tasks")["tasks"]) == 1


def test_json_of_a_hundred_levels_and_64_bits_is_kept(api: Client) -> None:
    deep = json.loads("[" * 99 + "]" * 99)
    params = {"deep": deep, "numbers": [2**63 - 1, -(2**63), 1.5, -0.0], "text": "\u2028 ü 😀"}
    task = add(api, params=params)
    assert api.data("GET", f"/api/tasks/{task}")["task"]["params"] == params


def test_an_empty_body_counts_as_an_object_without_fields(api: Client) -> None:
    task = add(api)
    assert api.fetch("POST", f"/api/tasks/{task}/cancel", b"").status == 200
    assert api.fetch("POST", "/api/tasks", b"").envelope["error"]["details"]["field"] == "title"


def test_null_means_not_given_where_it_clears_nothing(api: Client) -> None:
    everything_null = {name: None for route in ROUTES if name_of(route) == "POST /api/tasks" for name in route.optional}
    task = api.data("POST", "/api/tasks", {"title": "Task", **everything_null})["task"]
    plain = api.data("POST", "/api/tasks", {"title": "Task"})["task"]
    assert {**task, "id": plain["id"]} == plain

    def nothing(verb: str) -> dict[str, None]:
        route = next(route for route in ROUTES if route.path.endswith(f"/{verb}") and route.writes)
        return dict.fromkeys(route.optional)

    id_ = task["id"]
    token = api.data("POST", f"/api/tasks/{id_}/claim", {**nothing("{id}/claim"), "agent": "ada"})["lease"]["token"]
    api.data("POST", f"/api/tasks/{id_}/heartbeat", {**nothing("heartbeat"), "token": token})
    token = api.data("POST", f"/api/tasks/{id_}/resume", {**nothing("resume"), "agent": "ada"})["lease"]["token"]
    api.data("POST", f"/api/tasks/{id_}/release", {**nothing("release"), "token": token})
    token = api.data("POST", "/api/claim", {**nothing("api/claim"), "agent": "bob"})["lease"]["token"]
    api.data("POST", f"/api/tasks/{id_}/fail", {**nothing("fail"), "token": token, "error": "x", "retry_in": 0})
    token = claim(api, id_)
    api.data("POST", f"/api/tasks/{id_}/complete", {**nothing("complete"), "token": token})
    assert api.data("GET", f"/api/tasks/{id_}")["task"]["status"] == "done"
    for verb in ("cancel", "retry", "cancel"):
        api.data("POST", f"/api/tasks/{plain['id']}/{verb}", nothing(verb))
    assert {event["actor"] for event in history(api, plain["id"])} == {"maria"}


def test_null_and_arrays_in_a_patch_replace_the_whole_value(api: Client) -> None:
    other = add(api)
    task = add(
        api, body="x", queue="core", priority=3, assignee="ada", due_at="2026-12-01", not_before="2026-12-01",
        tags=["x", "y"], blocked_by=[other], params={"a": {"b": 1}}, dedupe_key="k", max_attempts=9,
    )  # fmt: skip
    plain = api.data("GET", f"/api/tasks/{other}")["task"]
    path = f"/api/tasks/{task}"

    changed = api.data("PATCH", path, {"tags": ["z"], "params": {"c": 1}, "blocked_by": []})["task"]
    assert (changed["tags"], changed["params"], changed["blocked_by"]) == (["z"], {"c": 1}, [])
    for name in (
        "body", "queue", "priority", "assignee", "due_at", "not_before", "tags", "blocked_by", "params", "dedupe_key",
        "max_attempts",
    ):  # fmt: skip
        cleared = api.data("PATCH", path, {name: None})["task"]
        assert cleared[name] == plain[name], name
    before = cleared
    assert api.refused("invalid_input", "PATCH", path, {"title": None})["details"]["field"] == "title"
    assert api.refused("invalid_input", "PATCH", path, {})["details"] == {}
    assert api.refused("invalid_input", "PATCH", path, {"comment": "only this"})["details"] == {}
    assert api.data("GET", path)["task"] == before
    assert api.data("PATCH", path, {"priority": 1, **dict.fromkeys(("if_status", "if_version", "comment"))})


def test_a_patch_that_clears_the_approval_is_for_people(api: Client) -> None:
    path = f"/api/tasks/{add(api, needs_approval=True)}"
    api.refused("not_permitted", "PATCH", path, {"needs_approval": False, "agent": "ada"})
    assert api.data("PATCH", path, {"needs_approval": False})["task"]["needs_approval"] is False


# Ids


def test_a_task_is_known_by_any_unambiguous_ending_in_any_case(api: Client, server: InThread) -> None:
    ids = ["01J0000000000000000000AB12", "01J00000000000000000C0AB12"]
    server.board.import_tasks([{"id": id_, "title": id_} for id_ in ids])

    for name in (ids[0], ids[0].lower(), "0000ab12", "%30%30AB12", "C0AB12", "c0ab12"):
        assert api.fetch("GET", f"/api/tasks/{name}").status == 200, name
    answer = api.fetch("POST", "/api/tasks/ab12/cancel", {})
    assert (answer.status, answer.code) == (400, "invalid_input")
    assert answer.envelope["error"]["details"] == {"field": "id", "candidates": ids}
    assert api.data("POST", "/api/tasks", {"title": "x", "blocked_by": ["c0ab12"]})["task"]["blocked_by"] == [ids[1]]
    assert api.data("GET", "/api/events?task=c0ab12")["events"][0]["task_id"] == ids[1]
    for name in ("12", "a%20b", "%C3%A4%C3%A4%C3%A4%C3%A4", "8" * 26, "x" * 300, "a%2Fb", "..%2F..", "%00%00%00%00"):
        assert api.fetch("GET", f"/api/tasks/{name}").status in (400, 404), name


@pytest.mark.parametrize("route", [route for route in ROUTES if "{id}" in route.path], ids=name_of)
def test_a_task_that_is_not_there_is_not_found(api: Client, route: Route) -> None:
    answer = api.fetch(route.method, route.path.replace("{id}", NOWHERE), body_of(route) if route.writes else None)
    assert (answer.status, answer.code) == (404, "not_found")
    assert answer.envelope["error"]["details"] == {"field": "id"}


# Compare-and-set


def test_a_patch_claims_a_task_that_is_still_queued(api: Client) -> None:
    task = add(api)
    answer = api.fetch(
        "PATCH",
        f"/api/tasks/{task}",
        {"if_status": "queued", "status": "claimed", "assignee": "agent-7", "comment": "Picking this up."},
    )

    assert answer.status == 200
    claimed = answer.data["task"]
    assert (claimed["status"], claimed["claimed_by"], claimed["assignee"]) == ("claimed", "agent-7", None)
    assert api.data("POST", f"/api/tasks/{task}/heartbeat", {"token": answer.data["lease"]["token"]})
    events = history(api, task)
    assert [(event["kind"], event["actor"], event["actor_kind"]) for event in events] == [
        ("created", "maria", "human"),
        ("claimed", "agent-7", "agent"),
        ("commented", "agent-7", "agent"),
        ("started", "agent-7", "agent"),
    ]
    assert events[2]["data"] == {"text": "Picking this up."}
    assert events[1]["at"] == events[2]["at"]


def test_a_wrong_expectation_writes_nothing_and_names_the_actual_state(
    api: Client, server: InThread, clock: Clock
) -> None:
    task = add(api)
    claim(api, task, "ada", lease="1h")
    clock.advance(minutes=5)
    before = everything(server.board)

    answer = api.fetch(
        "PATCH", f"/api/tasks/{task}", {"if_status": "queued", "status": "claimed", "agent": "bob", "comment": "Mine."}
    )

    assert (answer.status, answer.code) == (409, "conflict")
    error = answer.envelope["error"]
    assert error["message"].startswith(f'task {task} is "claimed", not "queued"')
    assert error["details"] == {
        "reason": "status",
        "actual": {
            "status": "claimed",
            "version": 2,
            "claimed_by": "ada",
            "claimed_at": "2026-11-30T00:53:20.000+00:00",
            "lease_expires_at": "2026-11-30T01:53:20.000+00:00",
        },
    }
    assert everything(server.board) == before


@pytest.mark.parametrize("status", [status for status in STATUSES if status != "queued"])
def test_a_claim_by_patch_is_refused_from_every_other_status(api: Client, server: InThread, status: str) -> None:
    task = bring_to(server.board, status).id
    for expected in ({}, {"if_status": "queued"}, {"if_status": status}):
        error = api.refused(
            "conflict", "PATCH", f"/api/tasks/{task}", {"status": "claimed", "agent": "bob", **expected}
        )
        assert error["details"]["reason"] == "status"
        assert error["details"]["actual"]["status"] == status
        assert error["message"].startswith(f'task {task} is "{status}", not "queued"')


def test_a_patch_may_expect_a_version(api: Client) -> None:
    path = f"/api/tasks/{add(api)}"
    assert api.data("PATCH", path, {"priority": 1, "if_version": 1})["task"]["version"] == 2
    for change in ({"priority": 2}, {"status": "claimed", "agent": "ada"}):
        error = api.refused("conflict", "PATCH", path, {**change, "if_version": 1})
        assert error["details"]["reason"] == "version"
        assert error["details"]["actual"]["version"] == 2
    assert api.data("PATCH", path, {"status": "claimed", "agent": "ada", "if_version": 2})["task"]["version"] == 3


@pytest.mark.parametrize(
    ("status", "route"),
    [
        ("queued", "release"), ("running", "heartbeat"), ("review", "complete"), ("done", "complete"),
        ("failed", "fail"), ("cancelled", "cancel"), ("open", "GET /api"), ("", "GET /api"), (None, "GET /api"),
        (5, "GET /api"), ([], "GET /api"), ("Claimed", "GET /api"),
    ],
)  # fmt: skip
def test_a_patch_to_another_status_names_the_route_to_use(api: Client, status: Any, route: str) -> None:
    path = f"/api/tasks/{add(api)}"
    error = api.refused("invalid_input", "PATCH", path, {"status": status, "agent": "ada"})
    assert error["details"]["field"] == "status"
    assert route in error["hint"]
    assert api.data("GET", path)["task"]["version"] == 1


def test_a_claim_by_patch_takes_the_fields_of_a_claim_only(api: Client) -> None:
    path = f"/api/tasks/{add(api)}"
    status = {"status": "claimed", "agent": "ada"}
    for name, value in {"title": "New", "priority": 1, "tags": [], "needs_approval": True, "blocked_by": []}.items():
        error = api.refused("invalid_input", "PATCH", path, {**status, name: value})
        assert error["details"]["field"] == name
    for name, value in {"lease": "1h", "request_id": "r"}.items():
        assert api.refused("invalid_input", "PATCH", path, {"priority": 1, name: value})["details"]["field"] == name
    assert api.refused("invalid_input", "PATCH", path, {"status": "claimed"})["details"]["field"] == "agent"
    assert api.data("GET", path)["task"]["version"] == 1

    granted = api.data("PATCH", path, {**status, "assignee": "bob", "lease": 60, "request_id": "r"})
    assert granted["task"]["claimed_by"] == "ada"
    assert granted["lease"]["expires_at"] == "2026-11-30T00:54:20.000+00:00"
    again = api.data("PATCH", path, {**status, "assignee": "bob", "lease": 60, "request_id": "r"})
    assert again["replayed"] is True
    assert again["lease"]["token"] != granted["lease"]["token"]


def test_a_comment_is_written_with_the_edit_or_not_at_all(api: Client, server: InThread) -> None:
    task = add(api)
    path = f"/api/tasks/{task}"
    api.data("PATCH", path, {"priority": 1, "if_status": "queued", "comment": "urgent"})
    before = everything(server.board)
    api.refused("conflict", "PATCH", path, {"priority": 2, "if_status": "running", "comment": "more"})
    api.refused("invalid_input", "PATCH", path, {"priority": 2, "comment": "x" * 20_001})
    api.refused("invalid_input", "PATCH", path, {"status": "claimed", "agent": "ada", "comment": "x" * 20_001})

    assert everything(server.board) == before
    assert [event["kind"] for event in history(api, task)] == ["created", "updated", "commented"]


# Adding and claiming


def test_a_new_task_answers_201_and_where_it_is(api: Client) -> None:
    answer = api.fetch("POST", "/api/tasks", {"title": "Task", "dedupe_key": "k"})
    task = answer.data["task"]
    assert (answer.status, answer.data["created"]) == (201, True)
    assert answer.header("Location") == f"/api/tasks/{task['id']}"
    assert api.data("GET", f"/api/tasks/{task['id']}")["task"] == task

    again = api.fetch("POST", "/api/tasks", {"title": "Other", "dedupe_key": "k"})
    assert (again.status, again.data["created"], again.data["task"]) == (200, False, task)
    assert again.header("Location") == answer.header("Location")
    assert task["id"] in again.envelope["warnings"][0]


def test_every_field_of_a_task_can_be_given_at_its_making(api: Client) -> None:
    other = add(api)
    given = {
        "title": "Task", "body": "# Head\n\ntext", "queue": "core", "priority": -5, "assignee": "ada",
        "due_at": "2026-12-01T10:00:00+08:00", "not_before": "2026-12-01T09:00:00+08:00", "tags": ["a", "b"],
        "blocked_by": [other], "params": {"x": {"y": []}}, "dedupe_key": "k", "max_attempts": 9, "max_runtime": 60,
        "needs_approval": True,
    }  # fmt: skip
    assert set(given) | {"claim", "lease", "request_id", "agent", "actor"} == set(
        next(route for route in ROUTES if name_of(route) == "POST /api/tasks").fields()
    )
    task = api.data("POST", "/api/tasks", given)["task"]
    kept = {**given, "due_at": "2026-12-01T02:00:00.000+00:00", "not_before": "2026-12-01T01:00:00.000+00:00"}
    assert {key: task[key] for key in kept} == kept


def test_a_task_is_made_and_claimed_in_one_transaction(api: Client, server: InThread) -> None:
    answer = api.fetch("POST", "/api/tasks", {"title": "Task", "claim": True, "agent": "ada", "lease": "1h"})
    task = answer.data["task"]
    assert (answer.status, task["status"], task["claimed_by"]) == (201, "claimed", "ada")
    assert answer.data["lease"]["expires_at"] == "2026-11-30T01:53:20.000+00:00"
    assert [(event["kind"], event["actor"]) for event in history(api, task["id"])] == [
        ("created", "ada"),
        ("claimed", "ada"),
    ]
    assert api.data("POST", f"/api/tasks/{task['id']}/complete", {"token": answer.data["lease"]["token"]})
    assert (
        api.data("POST", "/api/tasks", {"title": "x", "claim": True, "assignee": "Eve"})["task"]["claimed_by"] == "Eve"
    )

    before = everything(server.board)
    blocker = add(api)
    reasons: dict[str, dict[str, Any]] = {
        "blocked": {"blocked_by": [blocker]},
        "delayed": {"not_before": "2027-01-01"},
        "assigned": {"assignee": "bob"},
    }
    for reason, given in reasons.items():
        error = api.refused("conflict", "POST", "/api/tasks", {"title": "x", "claim": True, "agent": "ada", **given})
        assert error["details"]["reason"] == reason
    error = api.refused("invalid_input", "POST", "/api/tasks", {"title": "x", "claim": True})
    assert error["details"]["field"] == "agent"
    assert len(everything(server.board)["task"]) == len(before["task"]) + 1


def test_a_claim_with_nothing_ready_is_no_error(api: Client) -> None:
    status, envelope = api.call("POST", "/api/claim", {"agent": "ada"})
    assert (status, envelope["ok"], envelope["data"]) == (200, True, None)
    blocker = add(api, assignee="bob")
    add(api, blocked_by=[blocker])
    add(api, not_before="2027-01-01")
    _, envelope = api.call("POST", "/api/claim", {"agent": "ada", "queue": "default"})
    assert envelope["data"] is None
    (said,) = envelope["warnings"]
    for what in ("1 waiting for other tasks", "1 delayed", "1 assigned to other agents", "default"):
        assert what in said


def test_a_claim_of_any_chooses_by_one_queue_or_several(api: Client) -> None:
    add(api, title="Task A", queue="a", tags=["x"])
    add(api, title="Task B", queue="b", priority=9)
    add(api, title="Task C", queue="c", priority=5)

    def title(**chosen: Any) -> str:
        return str(api.data("POST", "/api/claim", {"agent": "ada", **chosen})["task"]["title"])

    assert title(queue=["a", "c"]) == "Task C"
    assert title(queue="a", tags=["x"]) == "Task A"
    assert title(queue=[], tags=[], if_status="queued", comment="Mine.") == "Task B"


def test_a_repeated_request_is_answered_again(api: Client, clock: Clock) -> None:
    body = {"title": "Task", "request_id": "r1"}
    first, second = api.fetch("POST", "/api/tasks", body), api.fetch("POST", "/api/tasks", body)
    assert (first.status, second.status) == (201, 201)
    assert second.data == {**first.data, "replayed": True}
    error = api.refused("conflict", "POST", "/api/tasks", {**body, "title": "Other"})
    assert error["details"]["reason"] == "request_id"

    granted = api.data("POST", "/api/claim", {"agent": "ada", "request_id": "r2"})
    again = api.data("POST", "/api/claim", {"agent": "ada", "request_id": "r2"})
    assert again["replayed"] is True
    assert again["task"]["attempts"] == granted["task"]["attempts"] == 1
    task = f"/api/tasks/{granted['task']['id']}"
    api.refused("lease_lost", "POST", f"{task}/heartbeat", {"token": granted["lease"]["token"]})
    api.data("POST", f"{task}/complete", {"token": again["lease"]["token"]})
    assert api.data("POST", f"{task}/complete", {"token": again["lease"]["token"]})["replayed"] is True
    answer = api.fetch("POST", "/api/claim", {"agent": "ada", "request_id": "r2"})
    assert (answer.status, answer.code) == (409, "lease_lost")
    clock.advance(days=1)
    assert api.fetch("POST", "/api/tasks", body).data["task"]["id"] != first.data["task"]["id"]


def test_a_lost_lease_answers_409_with_the_actual_holder(api: Client, clock: Clock) -> None:
    task = add(api)
    token = claim(api, task, "ada", lease="1m")
    clock.advance(minutes=1)
    claim(api, task, "bob")
    for verb, needs in {
        "heartbeat": {},
        "complete": {},
        "release": {},
        "fail": {"error": "x"},
        "handoff": {"to": "eve"},
    }.items():
        answer = api.fetch("POST", f"/api/tasks/{task}/{verb}", {"token": token, **needs})
        assert (answer.status, answer.code) == (409, "lease_lost")
        assert answer.envelope["error"]["details"]["actual"] == {
            "status": "claimed", "version": 4, "claimed_by": "bob", "claimed_at": "2026-11-30T00:54:20.000+00:00",
            "lease_expires_at": "2026-11-30T01:09:20.000+00:00",
        }  # fmt: skip


# Who acts


def test_the_history_tells_agents_from_people(api: Client) -> None:
    def who(method: str, path: str, **body: Any) -> tuple[str, str]:
        api.data(method, path, body)
        last = api.data("GET", "/api/events?before=0&limit=1")["events"][0]
        return last["actor"], last["actor_kind"]

    assert who("POST", "/api/tasks", title="x") == ("maria", "human")
    assert who("POST", "/api/tasks", title="x", actor="otto") == ("otto", "human")
    assert who("POST", "/api/tasks", title="x", agent="ada") == ("ada", "agent")
    assert who("POST", "/api/tasks", title="x", agent="ada", actor="helper") == ("helper", "agent")
    task = f"/api/tasks/{add(api)}"
    assert who("PATCH", task, priority=1) == ("maria", "human")
    assert who("PATCH", task, priority=2, agent="ada") == ("ada", "agent")
    assert who("POST", f"{task}/comments", text="x", actor="otto") == ("otto", "human")
    assert who("POST", f"{task}/comments", text="x", agent="ada") == ("ada", "agent")
    assert who("POST", f"{task}/reassign", to=None, actor="otto") == ("otto", "human")
    assert who("POST", f"{task}/cancel", agent="ada") == ("ada", "agent")
    assert who("POST", f"{task}/retry") == ("maria", "human")
    assert who("PATCH", task, status="claimed", agent="ada") == ("ada", "agent")
    token = api.data("POST", f"{task}/resume", {"agent": "ada"})["lease"]["token"]
    assert who("POST", f"{task}/heartbeat", token=token, note="x") == ("ada", "agent")
    assert who("POST", f"{task}/heartbeat", token=token, note="x", actor="helper") == ("helper", "agent")
    assert who("POST", f"{task}/release", token=token) == ("ada", "agent")
    assert who("POST", f"{task}/claim", agent="ada", actor="helper") == ("helper", "agent")


def test_an_agent_keeps_the_name_under_which_it_came_first(api: Client) -> None:
    task = add(api, assignee="Ada")
    token = claim(api, task, "ADA", comment="Mine.")
    api.data("POST", f"/api/tasks/{task}/heartbeat", {"token": token, "note": "x", "agent": "ada"})
    api.data("POST", f"/api/tasks/{task}/comments", {"text": "x", "agent": "aDa"})
    assert {event["actor"] for event in history(api, task)[1:]} == {"Ada"}


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_what_is_for_people_is_refused_to_agents(api: Client, server: InThread, verb: str) -> None:
    held = bring_to(server.board, "review", agent="ada")
    path = f"/api/tasks/{held.id}/{verb}"
    before = everything(server.board)
    for who in ({"agent": "bob"}, {"agent": "bob", "actor": "maria"}, {"actor": "ada"}, {"actor": "ADA"}):
        answer = api.fetch("POST", path, {"note": "x", **who})
        assert (answer.status, answer.code) == (403, "not_permitted")
        assert "a person" in answer.envelope["error"]["hint"]
    assert everything(server.board) == before
    api.data("POST", path, {"note": "x"})
    assert history(api, held.id)[-1]["actor_kind"] == "human"


def test_a_server_that_an_agent_started_lets_people_approve(tmp_path: Path) -> None:
    with open_board(tmp_path / "data") as board:
        task = bring_to(board, "review", agent="ada").id
    with process(tmp_path / "data", ATB_AGENT="ada") as server, server.client() as api:
        api.refused("not_permitted", "POST", f"/api/tasks/{task}/approve", {"agent": "eve"})
        assert api.data("POST", f"/api/tasks/{task}/approve")["task"]["status"] == "done"
        last = history(api, task)[-1]
        assert (last["actor"], last["actor_kind"]) == ("carla", "human")
        other = add(api)
        assert api.data("POST", "/api/tasks", {"title": "x", "agent": "eve"})["task"]["created_by"] == "eve"
        api.refused("invalid_input", "POST", "/api/tasks", {"title": "x", "claim": True})
        assert api.data("GET", f"/api/tasks/{other}")["task"]["created_by"] == "carla"


# The board and its tag


def tag_of(api: Client) -> str:
    """Return the entity tag of the board."""
    tag = api.fetch("GET", "/api/board").header("ETag")
    assert tag is not None
    return tag


def seen(api: Client, tag: str) -> Answer:
    """Ask for the board as a client does that has seen a tag."""
    return api.fetch("GET", "/api/board", headers={"If-None-Match": tag})


def test_a_board_that_was_seen_is_not_sent_again(api: Client) -> None:
    add(api)
    tag = tag_of(api)
    for given in (tag, tag.removeprefix("W/"), f'"x", {tag}', "*"):
        answer = seen(api, given)
        assert (answer.status, answer.body, answer.header("ETag")) == (304, b"", tag)
        assert answer.header("Content-Length") is None
    for given in ('"x"', "", tag.strip('W/"'), tag.replace("-", "")):
        assert seen(api, given).status == 200


def test_the_tag_changes_with_every_write(api: Client) -> None:
    tags = [tag_of(api)]

    def step(method: str, path: str, **body: Any) -> Any:
        data = api.data(method, path, body)
        tags.append(tag_of(api))
        assert seen(api, tags[-2]).status == 200
        assert seen(api, tags[-1]).status == 304
        return data

    task = f"/api/tasks/{step('POST', '/api/tasks', title='x', needs_approval=True)['task']['id']}"
    step("PATCH", task, priority=1)
    step("POST", f"{task}/comments", text="x")
    token = step("POST", f"{task}/claim", agent="ada")["lease"]["token"]
    step("POST", f"{task}/heartbeat", token=token)
    step("POST", f"{task}/heartbeat", token=token, progress=5)
    step("POST", f"{task}/complete", token=token)
    step("POST", f"{task}/reject", note="x")
    step("POST", f"{task}/reassign", to="bob")
    step("POST", f"{task}/cancel")
    step("POST", f"{task}/retry")
    assert len(set(tags)) == len(tags)


def test_a_bare_renewal_is_seen_on_the_board(api: Client, clock: Clock) -> None:
    task = add(api)
    token = claim(api, task)
    api.data("POST", f"/api/tasks/{task}/heartbeat", {"token": token})
    tag = tag_of(api)
    clock.advance(seconds=1)
    assert seen(api, tag).status == 304
    api.data("POST", f"/api/tasks/{task}/heartbeat", {"token": token})
    answer = seen(api, tag)
    assert answer.status == 200
    assert answer.data["tasks"][0]["lease_expires_at"] == "2026-11-30T01:08:21.000+00:00"


def test_a_refused_call_leaves_the_tag_alone(api: Client) -> None:
    task = add(api)
    claim(api, task)
    tag = tag_of(api)
    api.refused("conflict", "POST", f"/api/tasks/{task}/claim", {"agent": "bob"})
    api.refused("lease_lost", "POST", f"/api/tasks/{task}/complete", {"token": WRONG_TOKEN})
    assert api.data("POST", "/api/claim", {"agent": "bob"}) is None
    assert seen(api, tag).status == 304


@pytest.mark.parametrize("what", ["lease_expired", "ready", "overdue"])
def test_the_tag_changes_when_time_alone_changes_the_board(api: Client, clock: Clock, what: str) -> None:
    given: dict[str, dict[str, Any]] = {
        "lease_expired": {"claim": True, "agent": "ada", "lease": "10m"},
        "ready": {"not_before": "2026-11-30T01:03:20+00:00"},
        "overdue": {"due_at": "2026-11-30T01:03:19.999+00:00"},
    }
    add(api, **given[what])
    tag = tag_of(api)
    clock.advance(minutes=10, seconds=-0.001)
    answer = seen(api, tag)
    assert answer.status == 304
    assert api.data("GET", "/api/board")["tasks"][0][what] is False
    clock.advance(seconds=0.001)
    answer = seen(api, tag)
    assert answer.status == 200
    (task,) = answer.data["tasks"]
    assert task[what] is True
    assert api.data("GET", f"/api/tasks/{task['id']}")["task"][what] is True
    assert task["delayed"] is False
    tag = tag_of(api)
    clock.advance(days=1)
    assert seen(api, tag).status == 304


def test_the_tag_goes_back_with_a_clock_that_is_set_back(api: Client, clock: Clock) -> None:
    add(api, due_at="2026-11-30T01:00:00+00:00")
    early = tag_of(api)
    clock.advance(minutes=10)
    late = tag_of(api)
    assert late != early
    clock.advance(minutes=-10)
    assert seen(api, late).status == 200
    assert seen(api, early).status == 304
    assert api.data("GET", "/api/board")["tasks"][0]["overdue"] is False


def test_two_servers_of_one_board_give_the_same_tag(
    api: Client, server: InThread, tmp_path: Path, clock: Clock
) -> None:
    with serving(tmp_path / "data", clock=clock) as other, other.client() as there:
        for _ in range(2):
            task = add(api, not_before="2026-11-30T01:00:00+00:00")
            assert tag_of(api) == tag_of(there)
            token = claim(there, add(there))
            assert tag_of(api) == tag_of(there)
            clock.advance(minutes=10)
            assert seen(there, tag_of(api)).status == 304
            api.data("POST", f"/api/tasks/{task}/cancel")
            assert api.fetch("GET", "/api/board").content == there.fetch("GET", "/api/board").content
            assert token


def test_a_board_whose_file_was_replaced_is_sent_again(api: Client, tmp_path: Path, clock: Clock) -> None:
    add(api, title="Old")
    tag, old = tag_of(api), api.data("GET", "/api/board")
    (tmp_path / "data").rename(tmp_path / "gone")
    with open_board(tmp_path / "data", clock) as board:
        board.add("New")

    answer = api.fetch("GET", "/api/board")
    assert [task["title"] for task in answer.data["tasks"]] == ["New"]
    assert answer.data["revision"] == old["revision"]
    assert answer.header("ETag") != tag, "a page that has seen the old file would go on showing it"
    assert seen(api, tag).status == 200


# Compression


def test_large_answers_are_compressed_for_those_who_take_it(api: Client, server: InThread) -> None:
    server.board.import_tasks([{"title": f"Task {number}"} for number in range(60)])
    tag = tag_of(api)
    for path in ("/api/board", "/api/tasks", "/api/events", "/api", "/api/openapi.json"):
        whole = api.fetch("GET", path)
        assert whole.header("Content-Encoding") is None
        for taken in ("gzip", "br, gzip;q=0.5, *", "GZIP", "deflate, gzip ; q=1.0"):
            packed = api.fetch("GET", path, headers={"Accept-Encoding": taken})
            assert packed.header("Content-Encoding") == "gzip", (path, taken)
            assert "Accept-Encoding" in (packed.header("Vary") or "")
            assert packed.content == whole.content
            assert int(packed.header("Content-Length") or 0) == len(packed.body) < len(whole.body) / 2
        for taken in ("", "identity", "gzip;q=0", "gzip; q=0.000", "br"):
            assert api.fetch("GET", path, headers={"Accept-Encoding": taken}).header("Content-Encoding") is None
    assert seen(api, tag).status == 304
    assert api.fetch("GET", "/api/board", headers={"Accept-Encoding": "gzip", "If-None-Match": tag}).status == 304


def test_small_answers_are_sent_as_they_are(api: Client) -> None:
    assert api.fetch("GET", "/healthz", headers={"Accept-Encoding": "gzip"}).header("Content-Encoding") is None


# Compact text


def in_brief(api: Client, path: str, accept: str = "text/plain", **headers: str) -> dict[str, Any]:
    """Ask for compact text, and return what a reader makes of it."""
    answer = api.fetch("GET", path, headers={"Accept": accept, **headers})
    assert answer.status == 200, answer
    assert answer.header("Content-Type") == "text/plain; charset=utf-8"
    assert "Accept" in (answer.header("Vary") or "").split(", ")
    return read(answer.content.decode())


def test_lists_tasks_and_the_board_answer_in_compact_text(api: Client) -> None:
    first = add(api, title='Say "hello"', body="two\nlines", tags=["a b"])
    add(api, title="Second", blocked_by=[first])
    claim(api, first)
    listed = in_brief(api, "/api/tasks?status=claimed")
    assert [(task["title"], task["by"], task["tags"]) for task in listed["tasks"]] == [('Say "hello"', "ada", ["a b"])]
    shown = in_brief(api, f"/api/tasks/{first[-6:]}")
    assert (shown["facts"]["id"], shown["texts"], len(shown["blocks"])) == (first, {"body": "two\nlines"}, 1)
    board = in_brief(api, "/api/board")
    assert board["head"] == {"revision": api.data("GET", "/api/board")["revision"], "queued": 1, "claimed": 1}
    assert [task["title"] for task in board["tasks"]] == ['Say "hello"', "Second"]


@pytest.mark.parametrize("path", ["/api/tasks", "/api/tasks/ID", "/api/board"])
@pytest.mark.parametrize(
    ("accept", "is_text"),
    [
        (None, False),
        ("*/*", False),
        ("application/json", False),
        ("application/json, text/plain, */*", False),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", False),
        ("text/plain, */*", False),
        ("text/*", False),
        ("text/plain;q=0", False),
        ("text/plain;q=0.5, application/*;q=0.5", False),
        ("text/plain;q=nonsense", False),
        ("text/plain;q=2", False),
        ("text/plain", True),
        ("TEXT/Plain; charset=utf-8", True),
        ("text/plain, */*;q=0.1", True),
        ("application/json;q=0.5, text/plain ; q=0.6", True),
        ("text/plain;q=1.000, application/json;q=0.999", True),
        ("text/html, text/plain", True),
    ],
)
def test_text_comes_only_to_those_who_prefer_it(server: InThread, path: str, accept: str | None, is_text: bool) -> None:
    path = path.replace("ID", server.board.add("Task").task.id)
    with server.wire() as wire:
        answer = wire.get(path, *([] if accept is None else [f"Accept: {accept}".encode()]))
        assert (answer.header("Content-Type") or "").startswith("text/plain" if is_text else "application/json")
        assert "Accept" in (answer.header("Vary") or "").split(", ")
        assert answer.content.startswith(b"atb1 " if is_text else b'{"ok":true')


def test_wishes_in_several_header_fields_count_together(server: InThread) -> None:
    with server.wire() as wire:
        answer = wire.get("/api/tasks", b"Accept: text/plain;q=0.9", b"Accept: application/json;q=0.1")
        assert answer.content.startswith(b"atb1 list\n")


def test_text_of_the_board_has_a_tag_of_its_own(api: Client, server: InThread, clock: Clock) -> None:
    add(api, claim=True, agent="ada", lease="10m")
    wish = {"Accept": "text/plain"}

    def asked(tag: str, path: str = "/api/board") -> Answer:
        return api.fetch("GET", path, headers={**wish, "If-None-Match": tag})

    answer = api.fetch("GET", "/api/board", headers=wish)
    tag = answer.header("ETag") or ""
    assert tag.startswith('W/"')
    assert tag != tag_of(api)
    assert (asked(tag).status, asked(tag).body, asked(tag).header("ETag")) == (304, b"", tag)
    assert asked(tag).header("Vary") == "Accept, Accept-Encoding"
    assert seen(api, tag).status == 200
    assert asked(tag_of(api)).status == 200
    clock.advance(minutes=10)
    answer = asked(tag)
    assert (answer.status, read(answer.content.decode())["attention"]["expired"]["count"]) == (200, 1)
    for number in range(100):
        add(api, title=f"A task of many words, number {number}")
    whole, cut = in_brief(api, "/api/board"), in_brief(api, "/api/board?budget=200")
    assert (len(whole["tasks"]), len(cut["tasks"]) + cut["more"]["count"]) == (101, 101)
    assert len(in_brief(api, "/api/board?budget=100")["tasks"]) < len(cut["tasks"]) < 101
    packed = api.fetch("GET", "/api/board", headers={**wish, "Accept-Encoding": "gzip"})
    assert (packed.header("Content-Encoding"), packed.header("Vary")) == ("gzip", "Accept, Accept-Encoding")
    assert read(packed.content.decode()) == whole
    packed = api.fetch("GET", "/api/tasks", headers={**wish, "Accept-Encoding": "gzip"})
    assert (packed.header("Content-Encoding"), packed.header("Vary")) == ("gzip", "Accept, Accept-Encoding")


def test_a_budget_cuts_text_and_nothing_else(api: Client) -> None:
    tasks = [add(api, title=f"A task of many words, number {number}", body="word " * 500) for number in range(20)]
    listed = in_brief(api, "/api/tasks?budget=100")
    rest = api.data("GET", f"/api/tasks?after={quote(listed['more']['after'])}")
    assert len(listed["tasks"]) + len(rest["tasks"]) == 20
    assert 3 < len(listed["tasks"]) < 10
    assert in_brief(api, f"/api/tasks/{tasks[0]}?budget=100")["cuts"].keys() == {"body"}
    assert len(in_brief(api, "/api/tasks?limit=2&budget=1000000")["tasks"]) == 2
    for path in ("/api/tasks", f"/api/tasks/{tasks[0]}", "/api/board"):
        assert api.refused("invalid_input", "GET", f"{path}?budget=100")["details"]["field"] == "budget"
        for bad in ("99", "1000001", "x", ""):
            answer = api.fetch("GET", f"{path}?budget={bad}", headers={"Accept": "text/plain"})
            assert (answer.code, answer.envelope["error"]["details"]["field"]) == ("invalid_input", "budget")
    answer = api.fetch("GET", "/api/tasks?full=true", headers={"Accept": "text/plain"})
    assert (answer.code, answer.envelope["error"]["details"]["field"]) == ("invalid_input", "full")


def test_refusals_stay_envelopes_whatever_is_accepted(api: Client) -> None:
    answer = api.fetch("GET", f"/api/tasks/{NOWHERE}", headers={"Accept": "text/plain"})
    assert (answer.status, answer.code) == (404, "not_found")
    answer = api.fetch("POST", "/api/tasks", {"title": "x"}, headers={"Accept": "text/plain"})
    assert answer.data["created"] is True


def test_text_tells_that_there_is_no_board(tmp_path: Path, clock: Clock) -> None:
    with serving(tmp_path / "data", clock=clock, read_only=True) as server, server.client() as api:
        for path in ("/api/board", "/api/tasks"):
            (note,) = in_brief(api, path)["notes"]
            assert str(tmp_path / "data" / "tasks.db") in note


# Large boards


def test_a_large_board_shows_unfinished_tasks_first_then_the_newest_finished(api: Client, server: InThread) -> None:
    shown = 10_000

    def finished(number: int) -> str:
        return f"2026-11-{1 + number // 600:02}T{number // 60 % 10:02}:{number % 60:02}:00+00:00"

    done = [{"title": f"done {number}", "status": "done", "finished_at": finished(number)} for number in range(shown)]
    server.board.import_tasks(done)
    server.board.import_tasks([{"title": f"open {number}", "priority": number % 3} for number in range(50)])
    claim(api, api.data("GET", "/api/tasks?search=open 49".replace(" ", "%20"))["tasks"][0]["id"])

    board = api.data("GET", "/api/board")
    titles = [task["title"] for task in board["tasks"]]
    assert (len(titles), board["truncated"]) == (shown, True)
    assert titles[:50] == [f"open {number}" for number in range(50)]
    assert titles[50:] == [f"done {number}" for number in range(shown - 1, 49, -1)]
    assert board["counts"] == {**dict.fromkeys(STATUSES, 0), "queued": 49, "claimed": 1, "done": shown}
    assert board["revision"] == server.board.revision()


def test_a_board_with_too_many_unfinished_tasks_shows_those_at_work_and_the_largest_priorities(
    api: Client, server: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "SHOWN", 100)
    titles = ["urgent", *(f"open {number}" for number in range(100)), "last", "very last"]
    priorities = {"urgent": 1, "last": -1}
    server.board.import_tasks([{"title": title, "priority": priorities.get(title, 0)} for title in titles])
    hold(server.board, "ada", task=server.board.list_tasks(search="last", order="age").tasks[0].id)

    board = api.data("GET", "/api/board")
    shown = [task["title"] for task in board["tasks"]]
    assert sorted(shown) == sorted(["last", "urgent", *(f"open {number}" for number in range(98))])
    assert (board["truncated"], sum(board["counts"].values())) == (True, 103)


# Boards that cannot be used


def test_a_missing_board_reads_as_an_empty_one_with_a_warning(tmp_path: Path, clock: Clock) -> None:
    directory = tmp_path / "data"
    with serving(directory, clock=clock, read_only=True) as server, server.client() as api:
        for path, key in (
            ("/api/board", "tasks"), ("/api/tasks", "tasks"), ("/api/events", "events"), ("/api/agents", "agents"),
            ("/api/stats", "finished"), ("/healthz", "status"), ("/api/schedules", "schedules"),
        ):  # fmt: skip
            status, envelope = api.call("GET", path)
            assert status == 200
            assert key in envelope["data"]
            if path != "/api/schedules":
                (said,) = envelope["warnings"]
                assert str(directory / "tasks.db") in said
        tag = tag_of(api)
        assert seen(api, tag).status == 304
        answer = api.fetch("GET", f"/api/tasks/{NOWHERE}")
        assert (answer.status, answer.code) == (404, "not_found")
        assert not directory.exists()
        with open_board(directory, clock) as board:
            board.add("Task")
        answer = seen(api, tag)
        assert [task["title"] for task in answer.data["tasks"]] == ["Task"]
        assert answer.envelope["warnings"] == []


def test_a_server_for_reading_only_refuses_every_write(tmp_path: Path, clock: Clock) -> None:
    with open_board(tmp_path, clock) as board:
        task = board.add("Task").task.id
        before = everything(board)
        with serving(tmp_path, clock=clock, read_only=True) as server, server.client() as api:
            for route in WRITES:
                answer = api.fetch(route.method, route.path.replace("{id}", task), body_of(route))
                assert (answer.status, answer.code) == (403, "not_permitted"), name_of(route)
            assert api.data("GET", "/healthz")["read_only"] is True
            assert api.data("GET", f"/api/tasks/{task}")["task"]["title"] == "Task"
        assert everything(board) == before


def test_a_locked_board_is_busy_and_asks_to_come_again(api: Client, server: InThread, tmp_path: Path) -> None:
    task = add(api)
    server.board.database.busy_timeout = 0.05
    with raw(tmp_path / "data") as connection, server.client() as other:
        connection.execute("BEGIN IMMEDIATE")
        for method, path, body in (
            ("POST", "/api/tasks", {"title": "x"}),
            ("POST", "/api/claim", {"agent": "ada"}),
            ("PATCH", f"/api/tasks/{task}", {"priority": 1}),
        ):
            answer = other.fetch(method, path, body)
            assert (answer.status, answer.code) == (503, "busy")
            assert answer.header("Retry-After") == "1"
        assert other.data("GET", "/api/tasks")["tasks"][0]["id"] == task
        connection.execute("ROLLBACK")
        assert other.data("POST", "/api/claim", {"agent": "ada"})["task"]["version"] == 2


def test_a_file_that_is_no_board_is_unusable(api: Client, server: InThread, tmp_path: Path) -> None:
    add(api)
    (tmp_path / "data").rename(tmp_path / "gone")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tasks.db").write_bytes(b"no database at all, " * 1_000)
    for method, path, body in (
        ("GET", "/healthz", None), ("GET", "/api/board", None), ("GET", "/api/tasks", None),
        ("GET", "/api/stats", None), ("POST", "/api/tasks", {"title": "x"}), ("POST", "/api/claim", {"agent": "ada"}),
    ):  # fmt: skip
        answer = api.fetch(method, path, body)
        assert (answer.status, answer.code) == (500, "unusable"), path
        assert answer.header("Retry-After") is None
    (tmp_path / "data").rename(tmp_path / "rubbish")
    (tmp_path / "gone").rename(tmp_path / "data")
    assert len(api.data("GET", "/api/board")["tasks"]) == 1


def test_a_bug_answers_500_and_tells_nothing_of_the_program(
    api: Client, server: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_: object) -> None:
        raise RuntimeError("secret")

    server.may_fail = True
    monkeypatch.setattr(server.board, "stats", broken)
    answer = api.fetch("GET", "/api/stats")
    assert (answer.status, answer.code) == (500, "internal")
    for word in (b"secret", b"Traceback", b".py"):
        assert word not in answer.content
    assert any("secret" in line for line in server.log)
    assert api.data("GET", "/healthz")["status"] == "ok"


# The history, agents, figures


def test_events_are_read_forwards_and_backwards(api: Client) -> None:
    task = add(api)
    for number in range(9):
        api.data("POST", f"/api/tasks/{task}/comments", {"text": str(number)})
        add(api)

    for base in ("/api/events?", f"/api/tasks/{task}/events?", f"/api/events?task={task[-6:]}&"):
        whole = api.data("GET", base)["events"]
        seqs = [event["seq"] for event in whole]
        assert seqs == sorted(seqs)
        forwards: list[Any] = []
        after = 0
        while page := api.data("GET", f"{base}after={after}&limit=4")["events"]:
            forwards += page
            after = page[-1]["seq"]
        backwards: list[Any] = []
        before, pages = 0, 0
        while before or not pages:
            data = api.data("GET", f"{base}before={before}&limit=4")
            backwards += data["events"]
            before, pages = data["next"], pages + 1
        assert forwards == whole == backwards[::-1]
    end = api.data("GET", "/api/events")["next"]
    assert api.data("GET", f"/api/events?after={end}") == {"events": [], "next": end}
    assert api.data("GET", "/api/events?before=1") == {"events": [], "next": 0}
    assert api.data("GET", "/api/events?after=0&before=3")["events"][0]["seq"] == 2
    assert api.refused("invalid_input", "GET", "/api/events?after=1&before=3")["details"]["field"] == "before"
    api.refused("not_found", "GET", f"/api/events?task={NOWHERE}")
    assert {event["task_id"] for event in history(api, task)} == {task}


def test_agents_show_what_they_hold_and_what_they_said_last(api: Client, clock: Clock) -> None:
    first = add(api, title="First")
    token = claim(api, first, lease="10m")
    clock.advance(minutes=2)
    api.data("POST", f"/api/tasks/{first}/heartbeat", {"token": token, "progress": 30, "note": "half way"})
    clock.advance(minutes=1)
    api.data("POST", f"/api/tasks/{first}/heartbeat", {"token": token, "progress": 40})
    second = add(api, title="Second")
    claim(api, second, "bob", lease="1m")
    add(api, title="Third", assignee="cleo")
    clock.advance(minutes=1)

    ada, bob, cleo = api.data("GET", "/api/agents")["agents"]
    assert (ada["name"], bob["name"], cleo["name"]) == ("ada", "bob", "cleo")
    assert ada["holds"] == [
        {
            "id": first, "title": "First", "status": "running", "progress": 40,
            "claimed_at": "2026-11-30T00:53:20.000+00:00", "lease_expires_at": "2026-11-30T01:06:20.000+00:00",
            "lease_expired": False, "renewed_at": "2026-11-30T00:56:20.000+00:00", "silent": False,
            "silent_at": "2026-11-30T01:03:00.000+00:00", "note": "half way",
        }
    ]  # fmt: skip
    (held,) = bob["holds"]
    assert (held["lease_expired"], held["note"], held["renewed_at"]) == (True, None, held["claimed_at"])
    assert (cleo["holds"], cleo["last_seen_at"]) == ([], None)
    api.data("POST", f"/api/tasks/{first}/complete", {"token": token})
    ada = next(agent for agent in api.data("GET", "/api/agents")["agents"] if agent["name"] == "ada")
    assert (ada["completed"], ada["holds"]) == (1, [])


def test_a_note_of_an_earlier_holder_is_not_shown_as_that_of_the_present_one(api: Client, clock: Clock) -> None:
    task = add(api)
    token = claim(api, task)
    api.data("POST", f"/api/tasks/{task}/heartbeat", {"token": token, "note": "mine"})
    api.data("POST", f"/api/tasks/{task}/release", {"token": token})
    clock.advance(seconds=1)
    claim(api, task, "bob")
    agents = {agent["name"]: agent for agent in api.data("GET", "/api/agents")["agents"]}
    assert agents["bob"]["holds"][0]["note"] is None


def test_stats_tell_how_work_flows(api: Client, clock: Clock) -> None:
    def work(agent: str, minutes: int, ending: str = "complete", **needs: Any) -> None:
        task = add(api, queue="core")
        clock.advance(minutes=1)
        token = claim(api, task, agent, lease="2h")
        clock.advance(minutes=minutes)
        api.data("POST", f"/api/tasks/{task}/{ending}", {"token": token, **needs})

    for minutes in (10, 20, 60):
        work("ada", minutes)
    work("bob", 5, "fail", error="x", no_retry=True)
    clock.advance(days=1)
    work("bob", 30)
    api.data("POST", f"/api/tasks/{add(api)}/cancel")
    held = add(api, title="At work")
    claim(api, held, lease="10m")
    clock.advance(minutes=10)
    add(api, blocked_by=[held])

    stats = api.data("GET", "/api/stats?days=3")
    assert (stats["tasks"], stats["ready"], stats["blocked"], stats["lease_expired"]) == (8, 0, 1, 1)
    assert stats["by_status"] == {
        "queued": 1, "claimed": 1, "running": 0, "review": 0, "done": 4, "failed": 1, "cancelled": 1,
    }  # fmt: skip
    assert stats["by_queue"]["core"]["done"] == 4
    assert stats["days"] == len(stats["finished"]) == 3
    assert [list(day) for day in stats["finished"]] == [
        ["day", "done", "failed", "cancelled", "lead_time", "cycle_time"]
    ] * 3
    nothing, yesterday, today = stats["finished"]
    assert nothing == {
        "day": "2026-11-29",
        "done": 0,
        "failed": 0,
        "cancelled": 0,
        "lead_time": None,
        "cycle_time": None,
    }
    assert (yesterday["done"], yesterday["failed"], yesterday["cycle_time"], yesterday["lead_time"]) == (
        3,
        1,
        1200,
        1260,
    )
    assert (today["done"], today["cancelled"], today["cycle_time"]) == (1, 1, 1800)
    assert stats["cycle_time"] == {"tasks": 4, "median": 1200, "p90": 1800}
    assert stats["running"] == [
        {
            "id": held, "title": "At work", "claimed_by": "ada", "claimed_at": "2026-12-01T03:03:20.000+00:00",
            "age": 600,
        }
    ]  # fmt: skip
    assert [
        (agent["agent"], agent["done"], agent["failed"], agent["cycle_time"]["median"]) for agent in stats["by_agent"]
    ] == [
        ("ada", 3, 0, 1200),
        ("bob", 1, 1, 1800),
    ]
    assert len(api.data("GET", "/api/stats")["finished"]) == 14


def test_a_stream_goes_on_where_the_client_left_off(api: Client, server: InThread) -> None:
    for number in range(3):
        add(api, title=f"Task {number}")

    def ids(*fields_: bytes, path: str = "/api/stream", count: int) -> list[int]:
        with server.wire() as wire:
            answer = wire.get(path, *fields_)
            assert (answer.status, answer.header("Content-Type")) == (200, "text/event-stream")
            assert wire.until(b"\n\n") == f"retry: {stream.RETRY_DELAY}\n\n".encode()
            found: list[int] = []
            while len(found) < count:
                id_, data = wire.until(b"\n\n").decode().strip().split("\n")
                event = json.loads(data.removeprefix("data: "))
                assert list(event) == EVENT_KEYS
                assert id_ == f"id: {event['seq']}"
                found.append(event["seq"])
            return found

    assert ids(b"Last-Event-ID: 1", count=2) == [2, 3]
    assert ids(path="/api/stream?after=2", count=1) == [3]
    assert ids(b"Last-Event-ID: 2", path="/api/stream?after=0", count=1) == [3]
    with server.wire() as wire:
        wire.get("/api/stream")
        wire.until(b"\n\n")
        add(api, title="New")
        assert b"id: 4\n" in wire.until(b"\n\n")
    for bad in (b"-1", b"x", b"1.5", b"9" * 30):
        with server.wire() as wire:
            assert wire.get("/api/stream", b"Last-Event-ID: " + bad).status == 400


# The documentation


def test_the_page_in_docs_is_what_a_server_says() -> None:
    page = (ROOT / "docs" / "http.md").read_text()
    assert re.sub(r"<!--.*?-->\n\n", "", page) == documentation.markdown()


def test_the_documentation_names_every_route_and_every_field(api: Client, server: InThread) -> None:
    answer = api.fetch("GET", "/api")
    assert answer.header("Content-Type") == "text/markdown; charset=utf-8"
    page = answer.content.decode()
    assert f"http://{server.host}:{server.port}" in page
    assert documentation.DEFAULT_HOST not in page
    sections = {part.split("\n")[0]: part for part in page.split("\n### ")}
    for route in ROUTES:
        section = sections[name_of(route).replace("{id}", "ID")]
        for name in (*route.fields(), *route.parameters()):
            assert f"\n| `{name}` |" in section, (name_of(route), name)
        for code in route.refusals:
            assert f"`{code}`" in section
        assert ANSWERS[route.answer][0] in section
    for key in TASK_KEYS:
        assert re.search(rf"[`\s]{key}[`\s]", page), key


def lines_of_shell() -> list[str]:
    """Return every line that the documentation asks to be typed."""
    blocks = re.findall(r"```sh\n(.*?)```", documentation.markdown(), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("curl")]


def run_curl(line: str) -> dict[str, Any] | str:
    """Run a line in a shell and return the envelope, or the text of an answer that has none; it must succeed."""
    ran = subprocess.run(
        ["bash", "-euc", f'curl() {{ command curl -sS --fail-with-body "$@"; }}; {line}'],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, (line, ran.stdout, ran.stderr)
    return ran.stdout if "markdown" in line or not ran.stdout.startswith('{"ok"') else json.loads(ran.stdout)


def test_there_is_a_line_of_shell_for_every_route() -> None:
    lines = lines_of_shell()
    assert not re.search(r"^\w+=|\$\w", documentation.markdown(), re.M), "fish does not take it"
    for route in ROUTES:
        path = re.escape(f'"http://{documentation.DEFAULT_HOST}{route.path.replace("{id}", "ID")}') + r'(\?[^"]*)?"'
        method = route.method if route.method == "PATCH" else None
        found = [
            line
            for line in lines
            if re.search(path, line)
            and ("-d " in line) == route.writes
            and ("-X PATCH" in line) == (method is not None)
        ]
        assert found, name_of(route)


@pytest.mark.parametrize("line", lines_of_shell())
def test_every_line_of_shell_in_the_documentation_works(line: str, tmp_path: Path) -> None:
    verb = re.search(r"/ID/(\w+)", line)
    status = {
        "resume": "claimed", "heartbeat": "claimed", "complete": "claimed", "fail": "running", "release": "running",
        "handoff": "running", "approve": "review", "reject": "review", "retry": "failed",
    }.get(verb[1] if verb else "", "queued")  # fmt: skip
    with serving(tmp_path / "data") as server:
        held = bring_to(server.board, status)
        line = line.replace(documentation.DEFAULT_HOST, f"{server.host}:{server.port}")
        line = line.replace("ID", held.id).replace("TOKEN", held.token)
        if "/api/stream" in line:
            command = f"exec {line.replace('curl', 'curl -sS', 1)}"
            with subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE) as ran:
                assert ran.stdout is not None
                assert ran.stdout.readline().startswith(b"retry: ")
                ran.kill()
            return
        before = everything(server.board)
        answer = run_curl(line)
        if isinstance(answer, dict):
            assert answer["ok"]
        elif answer.startswith("atb1 "):
            read(answer)
        else:
            assert "HTTP API" in answer or json.loads(answer)["openapi"]
        assert (everything(server.board) != before) == ("-d " in line), "it says that it worked, but nothing changed"


def test_openapi_is_valid_and_made_from_the_routes(api: Client, server: InThread) -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator

    served = json.loads(api.fetch("GET", "/api/openapi.json").content)
    OpenAPIV31SpecValidator(served).validate()
    assert served == openapi.description(server.url.rstrip("/"))

    described = {
        (method.upper(), path): operation
        for path, item in served["paths"].items()
        for method, operation in item.items()
    }
    assert set(described) == {(route.method, route.path) for route in ROUTES}
    for route in ROUTES:
        operation = described[route.method, route.path]
        names = [parameter["name"] for parameter in operation["parameters"]]
        assert names == [*(["id"] if "{id}" in route.path else []), *route.parameters()]
        if route.writes:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            assert list(schema["properties"]) == list(route.fields())
            assert tuple(schema.get("required", ())) == route.required
            assert schema["additionalProperties"] is False
        else:
            assert "requestBody" not in operation
        assert ("text/plain" in operation["responses"]["200"]["content"]) == ("budget" in names)
    assert sorted(served["components"]["schemas"]["Task"]["properties"]) == sorted(TASK_KEYS)


def test_the_person_at_the_server_is_who_was_given(tmp_path: Path) -> None:
    with serving(tmp_path, person=Actor("otto", "human")) as server, server.client() as api:
        assert api.data("POST", "/api/tasks", {"title": "x"})["task"]["created_by"] == "otto"
    assert MARIA.name != "otto"
