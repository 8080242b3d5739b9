"""The stream of ``atb mcp``, byte by byte: what may come in, what gets out, and how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.command_line import Terminal
from tests.mcp_client import HELLO, Client, command, environment, greeted, said, started
from tests.support import open_board

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GONE = 8.0
"""Seconds in which a process must be gone: more than a loaded machine needs, less than a call waits for the lock."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Return a client that has begun a session; tests leave it able to answer."""
    with greeted(tmp_path_factory.mktemp("wire")) as client:
        yield client


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the write lock of a board."""
    with contextlib.closing(sqlite3.connect(directory / "data" / "tasks.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def error_for(client: Client, line: bytes) -> dict[str, Any]:
    """Send a line that no request can be read from; return the error. The server goes on answering."""
    client.send(line)
    answer = client.reply(None)
    assert client.ask("ping") == {}
    error: dict[str, Any] = answer["error"]
    return error


# What comes in


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"{",
        b'{"jsonrpc": "2.0", "method": "ping", "id": 1} x',
        b"\xff\xfe",
        b'{"jsonrpc": "2.0", "id": 1, "method": "\xe4"}',
        b"[" * 200_000,
        b'{"a":' * 100_000,
    ],
    ids=["words", "cut", "more", "no UTF-8", "Latin-1", "deep list", "deep object"],
)
def test_line_that_cannot_be_read_is_answered_and_ends_nothing(client: Client, line: bytes) -> None:
    assert error_for(client, line)["code"] == -32700


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]',
        b"1",
        b"null",
        b'"text"',
        b"{}",
        b'{"jsonrpc": "2.0", "id": null, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": true, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}',
    ],
)
def test_message_that_is_no_request_is_answered_and_ends_nothing(client: Client, line: bytes) -> None:
    assert error_for(client, line)["code"] == -32600


@pytest.mark.parametrize(
    ("rest", "code"),
    [
        ('"method": "ping"', -32600),
        ('"jsonrpc": "2.0", "method": 5', -32600),
        ('"jsonrpc": "2.0", "method": "ping", "method": "ping"', -32600),
        ('"jsonrpc": "2.0", "method": "ping", "params": {"x": "\\ud800"}', -32600),
        ('"jsonrpc": "2.0", "method": "ping", "params": {"x": NaN}', -32600),
        ('"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "\\ud800"}', -32600),
        ('"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "x", "arguments": {"a": 1, "a": 2}}', -32600),
        ('"jsonrpc": "2.0", "method": "server/discover"', -32601),
        ('"jsonrpc": "2.0", "method": "tools/call", "params": {"name": 5}', -32602),
        ('"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "get_task", "arguments": [1]}', -32602),
    ],
)  # fmt: skip
def test_request_that_is_wrong_is_refused_under_its_id(client: Client, rest: str, code: int) -> None:
    client.send(f'{{"id": "wrong", {rest}}}'.encode())
    assert client.reply("wrong")["error"]["code"] == code
    assert client.ask("ping") == {}


def test_blank_lines_answers_and_unknown_notifications_are_passed_over(client: Client) -> None:
    for line in (b"", b"  \r", b'{"jsonrpc": "2.0", "id": 7, "result": {}}'):
        client.send(line)
    client.send({"jsonrpc": "2.0", "id": 8, "error": {"code": 1, "message": "x"}})
    client.send({"jsonrpc": "2.0", "method": "notifications/strange"})
    number = client.begin("ping")
    message = client.receive()
    assert message is not None
    assert message["id"] == number


def test_line_without_end_is_refused_without_being_kept(client: Client) -> None:
    assert client.process.stdin is not None
    before = peak(client)
    for _ in range(40):
        client.process.stdin.write(b"x" * 1_048_576)
    assert error_for(client, b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}')["code"] == -32600
    assert peak(client) - before < 25_000


def peak(client: Client) -> int:
    """Return how much memory a server has had at most, in kilobytes; 0 where the system does not tell."""
    try:
        with open(f"/proc/{client.process.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except FileNotFoundError:
        return 0


def test_long_line_below_the_limit_is_taken(client: Client) -> None:
    answer = client.call("create_task", title="Long", body="x" * 200_000, params={"x": "y" * 1_000_000})
    assert not answer.refused


def test_id_may_be_used_again_and_again(client: Client) -> None:
    for number in range(50):
        client.send(tool_call("same", "create_task", title=f"Task {number}"))
        assert not said(client.reply("same")["result"]).refused


def tool_call(number: Any, name: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ('"title": "\\ud800"', "title"),
        ('"title": "x", "body": "a\\udfffb"', "body"),
        ('"title": "x", "params": {"n": NaN}', "params"),
        ('"title": "x", "params": {"n": -Infinity}', "params"),
        ('"title": "x", "params": {"n": 9223372036854775808}', "params"),
        ('"title": "x", "params": {"n": ' + "9" * 5_000 + "}", "params"),
        ('"title": "x", "params": {"\\ud800": 1}', "params"),
        ('"title": "x", "params": ' + '{"a":' * 101 + "1" + "}" * 101, "params"),
        ('"title": "x", "priority": NaN', "priority"),
        ('"title": "x", "priority": ' + "9" * 5_000, "priority"),
        ('"title": "x", "\\ud800": 1', "\ufffd"),
    ],
)
def test_value_that_json_cannot_hold_is_refused_by_name(client: Client, value: str, field: str) -> None:
    client.send(
        f'{{"jsonrpc": "2.0", "id": "value", "method": "tools/call", '
        f'"params": {{"name": "create_task", "arguments": {{{value}}}}}}}'.encode()
    )
    answer = said(client.reply("value")["result"])
    assert answer.code == "invalid_input"
    assert answer.line("details")["field"].replace("\ud800", "\ufffd") == field
    assert client.ask("ping") == {}


def test_call_before_the_session_has_begun_is_refused(tmp_path: Path) -> None:
    with started(tmp_path) as client:
        assert client.refused("tools/list")["code"] == -32602
        assert client.ask("ping") == {}
        client.greet()
        assert client.ask("tools/list")["tools"]


# What gets out

NOISY = """
import os, subprocess, sys
from agent_task_board import Board, cli
add = Board.add
def noisy(self, *words, **more):
    print("noise from print", flush=True)
    os.write(1, b"noise from a descriptor\\n")
    subprocess.run(["sh", "-c", "echo noise from a child; cat"], check=True)
    return add(self, *words, **more)
Board.add = noisy
cli.run()
"""


def test_print_and_children_can_neither_write_into_the_stream_nor_read_from_it(tmp_path: Path) -> None:
    with greeted(tmp_path, "--quiet", code=NOISY) as client:
        first = client.begin("tools/call", {"name": "create_task", "arguments": {"title": "one"}})
        second = client.begin("ping")
        assert not said(client.reply(first)["result"]).refused
        assert client.reply(second)["result"] == {}
        code, err = client.end()
        assert client.rest() == []
    assert code == 0
    assert err.splitlines() == ["noise from print", "noise from a descriptor", "noise from a child"]


def test_texts_travel_byte_for_byte(client: Client) -> None:
    for text in ("null", "[1]", "123", "true", "{}", '"', "\\", "a\r\nb\tc\u2028d\x7fe", "😀 ü \u200b"):
        id_ = client.call("create_task", title="x", body=text).id
        shown = client.ask("resources/read", {"uri": f"atb://tasks/{id_}"})
        assert json.loads(shown["contents"][0]["text"])["task"]["body"] == text


# Long calls


def test_pings_are_answered_while_calls_wait_for_the_write_lock(tmp_path: Path) -> None:
    with greeted(tmp_path) as client:
        with locked(tmp_path):
            calls = [client.begin("tools/call", {"name": "create_task", "arguments": {"title": "x"}}) for _ in range(3)]
            assert client.ask("ping") == {}
            assert not client.call("list_tasks").refused
            assert not set(calls) & set(client._early), "they were answered without the lock"
        assert len({said(client.reply(call)["result"]).id for call in calls}) == 3


def test_cancelled_call_ends_and_its_late_answer_is_dropped(tmp_path: Path) -> None:
    with greeted(tmp_path) as client:
        with locked(tmp_path):
            call = client.begin("tools/call", {"name": "create_task", "arguments": {"title": "late"}})
            assert client.ask("ping") == {}
            client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}})
            assert "error" in client.reply(call)
        made = client.call("create_task", title="after")
        assert not made.refused
        assert client.call("list_tasks").text.count("late") <= 1
        assert client.end()[0] == 0
        assert client.rest() == [], "nobody waits for an answer"


# The end


def ended(client: Client, code: int) -> None:
    """Check that a process is gone, or goes now, with this exit code and without a word about it."""
    told, err = client.wait(limit=GONE)
    assert told == code, err
    assert "Traceback" not in err
    assert "Error" not in err


@pytest.mark.parametrize(
    ("number", "code", "busy"),
    [(signal.SIGTERM, 143, False), (signal.SIGTERM, 143, True), (signal.SIGINT, 130, True)],
    ids=["terminated", "terminated while a call waits", "interrupted while a call waits"],
)
def test_signal_ends_the_server(tmp_path: Path, number: signal.Signals, code: int, busy: bool) -> None:
    with greeted(tmp_path) as client:
        with locked(tmp_path) if busy else contextlib.nullcontext():
            if busy:
                client.begin("tools/call", {"name": "create_task", "arguments": {"title": "x"}})
                assert client.ask("ping") == {}
            client.process.send_signal(number)
            ended(client, code)
        assert client.rest() == []


def test_signal_ends_the_server_while_a_cancelled_call_still_waits(tmp_path: Path) -> None:
    with greeted(tmp_path) as client, locked(tmp_path):
        call = client.begin("tools/call", {"name": "create_task", "arguments": {"title": "x"}})
        assert client.ask("ping") == {}
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}})
        assert "error" in client.reply(call)
        client.process.send_signal(signal.SIGTERM)
        ended(client, 143)


def test_end_of_input_ends_the_server_while_a_call_waits(tmp_path: Path) -> None:
    with greeted(tmp_path) as client, locked(tmp_path):
        client.begin("tools/call", {"name": "create_task", "arguments": {"title": "x"}})
        assert client.ask("ping") == {}
        assert client.process.stdin is not None
        client.process.stdin.close()
        ended(client, 0)
        assert client.rest() == []


def test_requests_before_the_end_of_input_are_answered_and_the_board_is_closed(tmp_path: Path) -> None:
    lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}]
    lines += [{"jsonrpc": "2.0", "method": "notifications/initialized"}]
    lines += [tool_call(number, "create_task", title=f"Task {number}") for number in range(1, 6)]
    given = "\n".join(map(json.dumps, lines))  # the last line has no end
    ran = subprocess.run(
        command("--quiet"), input=given, capture_output=True, text=True, cwd=tmp_path, env=environment(tmp_path)
    )
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert sorted(answer["id"] for answer in answers) == [0, 1, 2, 3, 4, 5]
    assert (ran.returncode, ran.stderr) == (0, "")
    assert not (tmp_path / "data" / "tasks.db-wal").exists()


def test_server_ends_when_nobody_reads_its_answers(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with subprocess.Popen(
        command(),
        stdin=subprocess.PIPE,
        stdout=writing,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(tmp_path),
    ) as process:
        os.close(writing)
        os.close(reading)
        assert process.stdin is not None
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "nothing"}\n')
        process.stdin.flush()
        assert process.wait(GONE) == 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


PARENT = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"


def test_server_of_a_client_that_was_killed_ends_although_another_process_holds_its_input(tmp_path: Path) -> None:
    with subprocess.Popen(
        [command()[0], "-c", PARENT, *command("--quiet")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env=environment(tmp_path),
    ) as process:
        client = Client(process)
        client.greet()
        process.kill()
        assert client.rest() == []  # the output ends with the server, which alone held it


def test_server_that_cannot_start_says_so_in_an_envelope(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.write("bad.toml", "strange = 1\n")
    terminal.write("board", "")
    for words, environ, code in (
        (["--config", "bad.toml"], {}, "invalid_input"),
        ([], {"ATB_AGENT": "none"}, "invalid_input"),
        (["--strange"], {}, "invalid_input"),
        (["--data-dir", "board"], {}, "unusable"),
    ):
        terminal.refused(code, "mcp", *words, **environ)
    assert not (tmp_path / "data").exists()


def test_server_makes_a_board_and_says_so_but_not_when_it_only_reads(tmp_path: Path) -> None:
    with greeted(tmp_path, "--read-only") as client:
        assert "no board" in client.call("list_tasks").notes[0]
        code, err = client.end()
    assert code == 0
    assert "there is no board" in err
    assert not (tmp_path / "data").exists()
    with greeted(tmp_path) as client:
        code, err = client.end()
    assert "made a new board" in err
    with open_board(tmp_path / "data") as board:
        assert board.exists()
