"""Reads are not for other sites, and bounded: the time of a search, the bytes of an answer, large answers at once."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from agent_task_board.board import snapshot
from agent_task_board.web import api, room
from tests.serving import InThread, serving
from tests.support import refused
from tests.waiting import LIMIT, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_task_board import Board
    from tests.support import Clock

LINK = [b"Sec-Fetch-Mode: navigate", b"Sec-Fetch-Dest: document"]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[InThread]:
    """Return a server for one test."""
    with serving(tmp_path / "data") as server:
        yield server


# Other sites


@pytest.mark.parametrize("path", ["/", "/static/js/main.js", "/api", "/api/openapi.json", "/healthz", "/api/board",
                                  "/api/tasks?search=x", "/api/events", "/api/stream", "/nothing"])  # fmt: skip
@pytest.mark.parametrize("site", [b"cross-site", b"same-site", b"", b"Cross-Site", b"same-origin, cross-site"])
def test_a_page_of_another_site_reads_nothing(own: InThread, path: str, site: bytes) -> None:
    for more in ([], [b"Sec-Fetch-Mode: no-cors"], [b"Sec-Fetch-Mode: navigate", b"Sec-Fetch-Dest: iframe"]):
        with own.wire() as client:
            answer = client.get(path, b"Sec-Fetch-Site: " + site, *more)
            assert (answer.status, answer.code) == (403, "not_permitted"), more


def test_a_link_of_another_site_opens_the_page_and_nothing_else(own: InThread) -> None:
    for site in (b"cross-site", b"same-site"):
        for path, status in (("/", 200), ("/?task=x", 200), ("/api/board", 403), ("/api", 403), ("/healthz", 403)):
            with own.wire() as client:
                assert client.get(path, b"Sec-Fetch-Site: " + site, *LINK).status == status, path


def test_the_page_itself_an_address_that_was_typed_and_programs_read(own: InThread) -> None:
    for lines in ([], [b"Sec-Fetch-Site: same-origin"], [b"Sec-Fetch-Site: none", *LINK]):
        for path in ("/", "/api/board", "/healthz", "/api", "/static/js/main.js"):
            with own.wire() as client:
                assert client.get(path, *lines).status == 200


# The time of a search


def test_a_search_that_takes_too_long_is_stopped(own: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    own.board.import_tasks([{"title": f"task {number}"} for number in range(2_000)])
    monkeypatch.setattr(api, "SEARCH_TIME", 0.0)
    monkeypatch.setattr(api, "LOOK_INTERVAL", 0.0)
    with own.wire() as client:
        answer = client.get("/api/tasks?search=task&queue=nowhere")
        assert (answer.status, answer.code) == (503, "busy")
        assert client.get("/api/tasks?search=task&queue=nowhere", b"Accept: text/plain").status == 503
        assert client.get("/api/tasks?limit=2000").status == 200, "only searches are"
        monkeypatch.setattr(api, "SEARCH_TIME", LIMIT)
        assert client.get("/api/tasks?search=task").status == 200, "the connection to the board is as before"


def test_a_search_ends_when_its_client_leaves(own: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    own.board.import_tasks([{"title": f"task {number}"} for number in range(2_000)])
    monkeypatch.setattr(api, "SEARCH_TIME", LIMIT)
    monkeypatch.setattr(api, "LOOK_INTERVAL", 0.0)
    begun, looks = threading.Event(), []
    real = api._stop

    def watched(call: api.Call) -> object:
        stop = real(call)
        has_left = call.has_left

        def left() -> bool:
            begun.set()
            looks.append(eventually(has_left, "the client's end"))
            return True

        call.has_left = left
        return stop

    monkeypatch.setattr(api, "_stop", watched)
    with own.wire() as client:
        client.send(b"GET /api/tasks?search=task&queue=nowhere HTTP/1.1\r\n" + client.host_field + b"\r\n")
        assert begun.wait(LIMIT)
        client.leave()
    for thread in own.server.threads:
        thread.join(LIMIT)
    assert looks == [True]


def test_a_service_without_a_server_searches_for_as_long_as_it_takes(board: Board) -> None:
    board.add("find me", body="in the body")
    assert [task.title for task in board.list_tasks(search="THE BODY").tasks] == ["find me"]
    with refused("busy"):
        board.import_tasks([{"title": f"task {number}"} for number in range(2_000)])
        board.list_tasks(search="task", queue="nowhere", stop=lambda: True)
    assert board.list_tasks(search="find").tasks, "what stopped one search stops no other"


def test_nothing_is_found_across_title_and_body(board: Board) -> None:
    board.add("end of title", body="start of body")
    for text in ("titlestart", '"title start"', '"body end"', "%", "_"):
        assert board.list_tasks(search=text).tasks == []
    for text in ('"END OF"', "start of B"):
        assert len(board.list_tasks(search=text).tasks) == 1


# The bytes of an answer


def test_a_page_ends_before_16_mebibytes_and_the_next_goes_on(own: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PAGE_TARGET", 30_000)
    body = 'quo"te\\ \n\u00ad\U000e0041é' * 500
    own.board.import_tasks([{"title": f"task {number}", "body": body} for number in range(12)])
    seen, after, pages = [], "", 0
    with own.client() as client:
        while after is not None:
            data = client.data("GET", f"/api/tasks?full=true&limit=100000&order=age&after={after}")
            seen += [task["title"] for task in data["tasks"]]
            after, pages = data["next"], pages + 1
        assert seen == [f"task {number}" for number in range(12)]
        assert pages > 3
        events, last, pages = [], 0, 0
        for task in own.board.list_tasks().tasks:
            own.board.comment(task.id, "x" * 15_000)
        while True:
            found = client.data("GET", f"/api/events?limit=10000&after={last}")
            if not found["events"]:
                break
            events += found["events"]
            last, pages = found["next"], pages + 1
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert pages > 3


def test_an_answer_whose_characters_grow_in_json_is_made_anew_with_fewer(
    own: InThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "ANSWER_LIMIT", 20_000)
    own.board.import_tasks([{"title": f"task {number}", "body": "x" * 4_000} for number in range(8)])
    with own.wire() as client:
        answer = client.get("/api/tasks?full=true")
        assert len(answer.content) <= 20_000
        assert len(answer.data["tasks"]) == 4
        assert answer.data["next"] is not None


def test_the_board_is_truncated_by_bytes(board: Board, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    board.import_tasks([{"title": "é" * 500} for _ in range(10)])
    monkeypatch.setattr(snapshot, "SIZE", 8_000)
    found = json.loads(board.snapshot(None).text)
    assert found["truncated"] is True
    assert len(found["tasks"]) == 5


# Large answers at the same time


def test_no_more_large_answers_than_allowed_are_made_at_once(own: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "LARGE", 5_000)
    monkeypatch.setattr(room, "PATIENCE", 0.0)
    task = own.board.add("large", body="x" * 20_000).task.id
    for _ in range(room.LARGE_AT_ONCE):
        own.server.large.enter()
    with own.wire() as client:
        for path in ("/api/tasks?full=true", f"/api/tasks/{task}"):
            answer = client.get(path)
            assert (answer.status, answer.code) == (503, "busy"), path
        for path in ("/api/tasks", "/healthz", "/", "/static/js/main.js"):
            assert client.get(path).status == 200, path
        own.server.large.leave()
        for _ in range(3):
            for path in ("/api/tasks?full=true", f"/api/tasks/{task}", "/api/tasks?full=true&order=due"):
                assert client.get(path).status == 200, f"{path}: the place is given back"


def test_a_large_answer_waits_for_its_turn(own: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "LARGE", 5_000)
    monkeypatch.setattr(room, "PATIENCE", LIMIT)
    own.board.add("large", body="x" * 20_000)
    for _ in range(room.LARGE_AT_ONCE):
        own.server.large.enter()
    with own.wire() as client:
        client.send(b"GET /api/tasks?full=true HTTP/1.1\r\n" + client.host_field + b"\r\n")
        eventually(lambda: own.server.idle() == 0, "the request")
        own.server.large.leave()
        assert client.read().status == 200


def test_a_client_that_leaves_gives_its_place_back(own: InThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "LARGE", 5_000)
    monkeypatch.setattr(room, "PATIENCE", LIMIT)
    own.board.add("large", body="x" * 150_000)
    for _ in range(room.LARGE_AT_ONCE * 3):
        with own.wire() as client:
            client.send(b"GET /api/tasks?full=true HTTP/1.1\r\n" + client.host_field + b"\r\n")
            client.leave()
    with own.wire() as client:
        assert client.get("/api/tasks?full=true").status == 200
