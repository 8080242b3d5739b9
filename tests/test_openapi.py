"""The server held against its own description: whatever schemathesis makes of it is answered as it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent_task_board.web.openapi import description
from agent_task_board.web.routes import ROUTES
from tests.serving import serving
from tests.support import STATUSES, Held, bring_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import requests
    from schemathesis import Case

    from agent_task_board import Board
    from agent_task_board.web.routes import Route

EXAMPLES = 20
"""Requests for each route in each mode."""

SENSIBLE: dict[str, Any] = {
    "actor": "maria", "after": "1h", "agent": "ada", "artifacts": ["report.md"], "assignee": "bob", "blocked_by": [],
    "comment": "x", "due_at": "2026-12-01", "error": "x", "if_status": "queued", "lease": "15m", "not_before": None,
    "note": "x", "queue": "default", "request_id": None, "retry_in": 60, "tags": ["x"], "text": "x", "title": "x",
    "to": "bob",
}  # fmt: skip
"""Values that mean something, for fields whose schema cannot say all that is asked of them."""

POSITIVE, NEGATIVE = "positive", "negative"
"""Modes of schemathesis, which is imported where it is used: it takes long, and every worker reads this file."""

TOO_LONG = 414
"""A refusal as well, which schemathesis does not count as one."""

CALLS = [
    pytest.param(route, mode, id=f"{route.method} {route.path} {mode}")
    for route in ROUTES
    if route.answer != "stream"  # that answer has no end
    for mode in (POSITIVE, NEGATIVE)
    if mode == POSITIVE or "{id}" in route.path or route.fields() or route.parameters()
]
"""Every route with what its schema wants, and with what it forbids if there is anything to get wrong."""


class Served(NamedTuple):
    """A server and its description."""

    board: Board
    url: str
    schema: Any
    session: requests.Session


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a server that all examples share."""
    import requests
    import schemathesis

    with serving(tmp_path_factory.mktemp("openapi") / "data") as server, requests.Session() as session:
        url = server.url.rstrip("/")
        yield Served(server.board, url, schemathesis.openapi.from_dict(description(url)), session)


def checks(mode: str, status: int) -> list[Callable[..., Any]]:
    """Return what holds for an answer with a status to a request of a mode."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        negative_data_rejection,
        response_headers_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    return [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_headers_conformance,
        response_schema_conformance,
        *([negative_data_rejection] if mode == NEGATIVE and status != TOO_LONG else []),
    ]


def requests_of(served: Served, route: Route, mode: str) -> st.SearchStrategy[Case[Any]]:
    """Return requests of a route, most of them for tasks that are there, and under leases that live."""
    from schemathesis import GenerationMode

    operation = served.schema[route.path][route.method]
    anything: st.SearchStrategy[Case[Any]] = operation.as_strategy(generation_mode=GenerationMode(mode))
    if mode == NEGATIVE:
        return anything
    anything = anything.map(_at_once)
    held = [bring_to(served.board, status) for status in STATUSES] if "{id}" in route.path else [None]
    sensible = st.builds(_sensible, anything, st.sampled_from(held), st.booleans())
    return st.one_of(sensible, sensible, anything)


def _at_once(case: Case[Any]) -> Case[Any]:
    if case.query and case.query.get("wait"):
        case.query["wait"] = 0
    return case


def _sensible(case: Case[Any], held: Held | None, in_all: bool) -> Case[Any]:
    if held is not None:
        case.path_parameters["id"] = held.id
    if isinstance(case.body, dict):
        if in_all:
            case.body = {name: SENSIBLE.get(name, value) for name, value in case.body.items()}
        if held is not None and "token" in case.body:
            case.body["token"] = held.token
    return case


@pytest.mark.parametrize(("route", "mode"), CALLS)
def test_answers_are_as_described(served: Served, route: Route, mode: str) -> None:
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=requests_of(served, route, mode))
    def conforms(case: Case[Any]) -> None:
        response = case.call(served.url, served.session, timeout=60)
        case.validate_response(response, checks=checks(mode, response.status_code))

    conforms()
