"""Too little memory, too few file descriptors: what each surface answers, and that servers go on."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
from typing import TYPE_CHECKING

import pytest

from agent_task_board import Board, errors
from agent_task_board.mcp_server.tools import Tools
from tests.command_line import Terminal
from tests.mcp_client import Client, Said, command, environment, greeted, said
from tests.serving import serving
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Memory


@pytest.fixture
def _no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `show` ask for more memory than there is."""
    monkeypatch.setattr(Board, "show", lambda *_, **__: bytearray(1 << 62))


def checked(message: str, hint: str) -> None:
    """Check that a refusal says what is missing and what to do."""
    assert "memory" in message
    assert hint != errors.Unusable.hint


@pytest.mark.usefixtures("_no_memory")
def test_command_without_enough_memory_is_unusable_and_says_what_to_do(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    error = terminal.refused("unusable", "show", terminal.add())
    checked(error["message"], error["hint"])
    assert terminal.atb("show", "abcd").err == ""


@pytest.mark.usefixtures("_no_memory")
def test_request_without_enough_memory_is_unusable_and_the_connection_is_closed(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server, server.wire() as client:
        answer = client.get("/api/tasks/abcd")
        assert (answer.status, answer.code) == (500, "unusable")
        checked(answer.envelope["error"]["message"], answer.envelope["error"]["hint"])
        assert client.is_closed()
        with server.wire() as other:
            assert other.get("/api/tasks").status == 200


@pytest.mark.usefixtures("_no_memory")
def test_tool_call_without_enough_memory_is_unusable_and_no_fault(board: Board) -> None:
    reported: list[Exception] = []
    answer = Tools(board, lambda: "mia", report=reported.append).call("get_task", {"task_id": "abcd"})
    refused = Said(answer.text, answer.is_refusal)
    assert refused.code == "unusable"
    checked(refused.line("message"), refused.line("hint"))
    assert reported == []


# File descriptors


@contextlib.contextmanager
def no_more_files() -> Iterator[None]:
    """Let no further file be opened in this process."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_request_that_finds_no_free_descriptor_is_told_to_come_again(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        with server.wire() as client:
            assert client.get("/api/tasks").status == 200  # all modules are imported now
        entered = server.server.entered
        with server.wire() as client:
            eventually(lambda: server.server.entered > entered, "the connection")
            with no_more_files():
                answer = client.get("/api/tasks")
            assert (answer.status, answer.code, answer.header("Retry-After")) == (503, "busy", "1")
            assert "too many open files" in answer.envelope["error"]["message"]
            assert client.get("/api/tasks").status == 200


def test_file_that_is_really_unusable_is_not_called_busy(tmp_path: Path) -> None:
    (tmp_path / "data" / "tasks.db").mkdir(parents=True)
    answer = Tools(Board(tmp_path / "data"), lambda: "mia").call("list_tasks", {})
    assert Said(answer.text, answer.is_refusal).code == "unusable"


@pytest.mark.parametrize("limit", [40, 100])
def test_mcp_answers_every_call_even_if_the_process_may_open_few_files(tmp_path: Path, limit: int) -> None:
    words = ["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", *command("--quiet")]
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env=environment(tmp_path),
    ) as process:
        client = Client(process)
        client.greet()
        calls = [client.begin("tools/call", {"name": "create_task", "arguments": {"title": "x"}}) for _ in range(100)]
        calls += [client.begin("tools/call", {"name": "list_tasks"}) for _ in range(100)]
        assert not any(said(client.reply(call)["result"]).refused for call in calls)
        assert process.stdin is not None
        process.stdin.close()


SHORT = """
import os, resource
from agent_task_board import Board, cli
add, limits = Board.add, resource.getrlimit(resource.RLIMIT_NOFILE)
def add_without_files(self, title, **more):
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    if title == "short":
        self.leave_thread()
        lowest = os.dup(2)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
        if more.get("body"):
            os.open(os.devnull, os.O_RDONLY)
    return add(self, title, **more)
Board.add = add_without_files
cli.run()
"""


@pytest.mark.parametrize("body", ["", "x"], ids=["in SQLite", "elsewhere"])
def test_mcp_call_that_finds_no_free_descriptor_is_told_to_come_again(tmp_path: Path, body: str) -> None:
    with greeted(tmp_path, "--quiet", code=SHORT) as client:
        assert client.call("create_task", title="first").head == ["created"]  # all modules are imported now
        refused = client.call("create_task", title="short", body=body)
        assert refused.code == "busy"
        assert "too many open files" in refused.line("message")
        assert ("tasks.db" in refused.line("message")) == (not body)
        assert client.call("create_task", title="last").head == ["created"]
