"""The stream of ``atb mcp``, byte by byte: what may come in, what gets out, and how it ends."""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import termios
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

from agent_task_board.mcp_server.server import PENDING_LIMIT, WAITERS, WRITERS
from agent_task_board.mcp_server.transport import LINE_LIMIT, UNANSWERED_LIMIT
from tests.command_line import Terminal
from tests.mcp_client import HELLO, LIMIT, Client, command, environment, greeted, locked, said, started, until
from tests.old_boards import turn_into_schema_1
from tests.support import open_board

if TYPE_CHECKING:
    from collections.abc import Iterator

GONE = 8.0
"""Seconds in which a process must be gone: more than a loaded machine needs, less than a call waits for the lock."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Return a client that has begun a session; tests leave it able to answer."""
    with greeted(tmp_path_factory.mktemp("wire")) as client:
        yield client


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
        b'{"jsonrpc": "2.0", "method": "\xe4"}',
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


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"method": "tools/call"}, "params: "),
    ({"method": "tools/call", "params": {}}, "params.name: "),
    ({"method": "tools/call", "params": [1]}, "params: "),
    ({"method": "tools/call", "params": {"name": 5}}, "params.name: "),
    ({"method": "tools/call", "params": {"name": "get_task", "arguments": "x" * 9_000}}, "params.arguments: "),
    ({"method": "resources/read", "params": {"uri": "no address"}}, "params.uri: "),
    ({"method": "prompts/get", "params": {"name": "x", "arguments": {"\n" * 500: 1}}}, "params.arguments."),
    ({"method": "tools/list", "params": {"cursor": 5}}, "params.cursor: "),
    ({"method": "initialize", "params": {**HELLO, "protocolVersion": None}}, "params.protocolVersion: "),
    ({"method": "initialize", "params": {**HELLO, "clientInfo": "x"}}, "params.clientInfo: "),
]


@pytest.mark.parametrize(("request_", "field"), WRONG, ids=[f"{one['method']} {field}" for one, field in WRONG])
def test_request_that_is_wrong_is_told_in_short_which_field_is(
    client: Client, request_: dict[str, Any], field: str
) -> None:
    error = client.refused(request_["method"], request_.get("params"))
    assert error["code"] == -32602
    assert error["message"].startswith(field)
    assert len(error["message"]) <= 400


@pytest.mark.parametrize(
    ("rest", "field"), [('"method": "ping"', "jsonrpc: "), ('"jsonrpc": "2.0", "method": 5', "method: ")]
)
def test_message_that_is_no_request_names_the_field(client: Client, rest: str, field: str) -> None:
    client.send(f'{{"id": "wrong", {rest}}}'.encode())
    assert client.reply("wrong")["error"]["message"].startswith(field)


def test_nothing_that_is_wrong_is_quoted_at_length_on_standard_error(tmp_path: Path) -> None:
    with started(tmp_path) as client:
        client.send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"early": "x" * 9_000}})
        client.greet()
        for request, _ in WRONG:
            client.refused(request["method"], request.get("params"))
        for method, params in (
            ("notifications/cancelled", {"reason": "x" * 9_000}),
            ("notifications/progress", {"progressToken": ["x" * 9_000]}),
            ("notifications/strange", {"x": "y" * 9_000}),
        ):
            client.send({"jsonrpc": "2.0", "method": method, "params": params})
        assert client.call("x" * 20_000).refused
        _, err = client.end()
    lines = err.splitlines()
    assert any("notifications/progress ignored: params." in line for line in lines), err
    assert len(lines) < 8, err
    assert max(map(len, lines)) < 500, err


DEEP = '"params": ' + "[" * 200_000 + "]" * 200_000
LONG = '"params": {"x": "' + "x" * LINE_LIMIT + '"}'


@pytest.mark.parametrize("much", [DEEP, LONG], ids=["deep", "long"])
@pytest.mark.parametrize(
    ("line", "id_"),
    [
        ('{{"jsonrpc": "2.0", "id": "a\\"b", "method": "ping", {much}}}', 'a"b'),
        ('{{"method":"ping",{much},"jsonrpc":"2.0","id":77}}\r', 77),
        ('{{"method":"ping",{much},"id":-77,"jsonrpc":"2.0"}}', -77),
        ('{{"method": "ping", {much}, "id": 77, "more": {{"id": 1}}}}', None),
        ('{{"jsonrpc": "2.0", "method": "ping", "id": 1.5, {much}}}', None),
        ('["id", {{{much}, "id": 77}}', None),
    ],
)
def test_line_that_is_too_long_or_too_deep_is_answered_under_its_id(
    client: Client, much: str, line: str, id_: str | int | None
) -> None:
    client.send(line.format(much=much).encode())
    answer = client.reply(id_)
    assert answer["error"]["code"] in (-32700, -32600)
    assert client.ask("ping") == {}


def test_line_that_is_not_utf_8_is_answered_under_its_id(client: Client) -> None:
    client.send('{"jsonrpc": "2.0", "id": 5001, "method": "ping", "params": {"x": "\xe4"}}'.encode("latin-1"))
    assert client.reply(5001)["error"]["code"] == -32700


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
        refused = client.refused("tools/list")
        assert refused["code"] == -32602
        assert "initialize" in refused["message"]
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
            assert client.ask("ping") == {}
        made = client.call("create_task", title="after")
        assert not made.refused
        assert client.call("list_tasks").text.count("late") <= 1
        assert client.end()[0] == 0
        assert [*client._early, *client.rest()] == [], "nobody waits for an answer"


def test_reads_are_answered_while_more_writes_wait_than_have_threads(tmp_path: Path) -> None:
    with greeted(tmp_path) as client:
        with locked(tmp_path):
            create = {"name": "create_task", "arguments": {"title": "x"}}
            calls = [client.begin("tools/call", create) for _ in range(PENDING_LIMIT)]
            assert not client.call("list_tasks").refused
            assert client.ask("resources/read", {"uri": "atb://board"})["contents"]
            assert not set(calls) & set(client._early), "they were answered without the lock"
            assert client.call("create_task", title="one too many").code == "busy"
        assert len({said(client.reply(call)["result"]).id for call in calls}) == PENDING_LIMIT


UNREAD = """
import json, os, sys, threading
import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from agent_task_board.mcp_server.transport import UNANSWERED_LIMIT, Transport
from tests.waiting import eventually

seen = []

class Channel:
    transfers = 0
    def lines(self):
        for number in range(UNANSWERED_LIMIT + 1):
            yield json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}).encode()
        seen.append("the last request was taken")
        threading.Event().wait()
    def write(self, line):
        seen.append(f"answer {json.loads(line)['id']}")
    def wait_for_end(self):
        threading.Event().wait()

async def main():
    transport = Transport(Channel(), on_end=print, report=print)
    async with transport.streams() as (incoming, outgoing):
        for _ in range(UNANSWERED_LIMIT):
            await incoming.receive()
        eventually(lambda: seen or transport._changed._waiters, "the end of reading")
        await outgoing.send(SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=5, result={})))
        seen.append(f"request {(await incoming.receive()).message.id}")
        eventually(lambda: len(seen) == 3, "the rest")
        print(json.dumps(seen), flush=True)
        os._exit(0)

anyio.run(main)
"""


def test_request_beyond_the_limit_waits_until_another_one_is_answered() -> None:
    answer = Terminal(Path(__file__).parent.parent).process(code=UNREAD, PYTHONPATH=os.pathsep.join(sys.path))
    assert answer.code == 0, answer
    first, *rest = json.loads(answer.text)
    assert first == "answer 5"
    assert sorted(rest) == [f"request {UNANSWERED_LIMIT}", "the last request was taken"]


def test_write_that_never_gets_its_turn_is_told_to_come_again(tmp_path: Path) -> None:
    (tmp_path / "atb.toml").write_text('busy_timeout = "1s"\n')
    with greeted(tmp_path) as client:
        with locked(tmp_path):
            create = {"name": "create_task", "arguments": {"title": "x"}}
            calls = [client.begin("tools/call", create) for _ in range(WRITERS * 2)]
            answers = [said(client.reply(call)["result"]) for call in calls]
        assert {answer.code for answer in answers} == {"busy"}
        assert any("earlier calls" in answer.text for answer in answers)
        assert not client.call("create_task", title="now").refused


# The board


def test_server_starts_while_another_process_holds_the_write_lock(tmp_path: Path) -> None:
    with open_board(tmp_path / "data") as board:
        board.add("There")
    with locked(tmp_path), greeted(tmp_path) as client:  # it would have ended with `busy`
        assert "There" in client.call("list_tasks").text
        assert client.end()[1] == ""


def test_board_that_is_busy_at_the_start_is_made_by_the_first_write_which_says_so(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tasks.db").touch()
    with locked(tmp_path) as lock, greeted(tmp_path) as client:
        assert "no board" in client.call("list_tasks").notes[0]
        call = client.begin("tools/call", {"name": "create_task", "arguments": {"title": "First"}})
        lock.execute("ROLLBACK")
        assert "created a board at" in said(client.reply(call)["result"]).notes[0]
        assert client.call("create_task", title="Second").notes == []
        assert "board busy" in client.end()[1]


def test_older_board_that_is_busy_at_the_start_is_brought_up_to_date_by_the_first_write(tmp_path: Path) -> None:
    with open_board(tmp_path / "data") as board:
        board.create()
    turn_into_schema_1(tmp_path / "data")
    with locked(tmp_path) as lock, greeted(tmp_path) as client:
        assert client.call("list_tasks").code == "unusable"
        lock.execute("ROLLBACK")
        assert not client.call("claim_task").refused
        assert not client.call("list_tasks").refused


def test_board_that_vanishes_is_missed_and_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    with greeted(tmp_path) as client:
        made = client.call("create_task", title="Precious")
        (tmp_path / "data").rename(tmp_path / "gone")
        for tool, arguments in (
            ("create_task", {"title": "x"}),
            ("create_task", {"title": "x", "claim": True}),
            ("add_comment", {"task_id": made.id, "text": "x"}),
            ("get_task", {"task_id": made.id}),
        ):
            refused = client.call(tool, **arguments)
            assert refused.code == "not_found"
            assert "no board" in refused.line("message")
            assert "any more" in refused.line("message")
        for tool in ("list_tasks", "claim_task"):
            assert "any more" in client.call(tool).notes[-1]
        assert not (tmp_path / "data").exists()
        (tmp_path / "data").mkdir()
        assert client.call("create_task", title="x").code == "not_found"
        assert os.listdir(tmp_path / "data") == []
        (tmp_path / "data").rmdir()
        (tmp_path / "gone").rename(tmp_path / "data")
        assert not client.call("create_task", title="y").refused
        assert "Precious" in client.call("list_tasks").text


def test_board_that_vanishes_is_not_replaced_by_the_web_server_either(tmp_path: Path) -> None:
    with running([sys.executable, "-m", "agent_task_board", "serve", "--port", "0"], tmp_path) as serving:
        assert serving.stdout is not None
        url = json.loads(serving.stdout.readline())["data"]["url"]
        (tmp_path / "data").rename(tmp_path / "gone")
        post = urllib.request.Request(
            f"{url.rstrip('/')}/api/tasks", b'{"title": "x"}', {"Content-Type": "application/json"}
        )
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(post)
        with caught.value:
            assert caught.value.code == 404
        assert not (tmp_path / "data").exists()


def test_web_server_starts_while_another_process_holds_the_write_lock(tmp_path: Path) -> None:
    with open_board(tmp_path / "data") as board:
        board.create()
    with (
        locked(tmp_path),
        running([sys.executable, "-m", "agent_task_board", "serve", "--port", "0"], tmp_path) as serving,
    ):
        assert serving.stdout is not None
        assert json.loads(serving.stdout.readline())["ok"]


@contextlib.contextmanager
def running(words: list[str], directory: Path, given: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program as long as the block lasts."""
    with subprocess.Popen(
        words,
        stdin=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=directory,
        env=environment(directory),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


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
        assert client.ask("ping") == {}
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


_FOLLOWED = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:])
open("pid", "w").write(str(child.pid))
sys.exit(child.wait())
"""
PARENT = [sys.executable, "-c", _FOLLOWED]
"""The beginning of a command line: a parent that can be killed."""


@contextlib.contextmanager
def orphan(directory: Path) -> Iterator[None]:
    """Kill the child of ``PARENT``, if it has not ended as it should."""
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int((directory / "pid").read_text()), signal.SIGKILL)


def stuffed(directory: Path, given: int, *before: str) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    """Start a server with this standard input, to be asked for more than fits into its output, which nobody reads."""
    return running([*before, *command("--quiet")], directory, given)


MANY = [
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    *({"jsonrpc": "2.0", "id": number, "method": "tools/list"} for number in range(1, 201)),
]
LINES = b"".join(json.dumps(message).encode() + b"\n" for message in MANY)


def wait_until_full(output: IO[bytes] | None) -> None:
    """Wait until the output of a process holds all that fits into it."""
    assert output is not None
    held = array.array("i", [0])

    def full() -> bool:
        fcntl.ioctl(output, termios.FIONREAD, held)
        return held[0] > 50_000  # pages hold one answer each, so not all of 65,536 bytes

    until(full, "answers that nobody takes")


def test_end_of_input_ends_the_server_although_nobody_takes_its_answers(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with stuffed(tmp_path, reading) as process:
        os.close(reading)
        os.write(writing, LINES)
        wait_until_full(process.stdout)
        os.close(writing)
        assert process.wait(GONE) == 0


def test_end_of_half_a_socket_ends_the_server_although_nobody_takes_its_answers(tmp_path: Path) -> None:
    mine, theirs = socket.socketpair()  # what clients on Node have in place of a pipe
    with mine, stuffed(tmp_path, theirs.fileno()) as process:
        theirs.close()
        mine.sendall(LINES)
        wait_until_full(process.stdout)
        mine.shutdown(socket.SHUT_WR)
        assert process.wait(GONE) == 0


def test_all_requests_are_answered_to_a_slow_reader_after_the_end_of_input(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with stuffed(tmp_path, reading) as process:
        os.close(reading)
        os.write(writing, LINES)
        wait_until_full(process.stdout)
        os.close(writing)
        assert process.stdout is not None
        answers = [json.loads(line) for line in process.stdout]
        assert sorted(answer["id"] for answer in answers) == list(range(201))
        assert process.wait(GONE) == 0


def test_server_of_a_client_that_was_killed_ends_although_nobody_takes_its_answers(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with stuffed(tmp_path, reading, *PARENT) as process, orphan(tmp_path):
        os.close(reading)
        os.write(writing, LINES)
        wait_until_full(process.stdout)
        process.kill()
        process.wait()
        until(lambda: broken(writing), "the end of the server, which alone could read this")
        os.close(writing)


def broken(pipe: int) -> bool:
    """Say whether nobody can read any more what is written into a pipe."""
    poll = select.poll()
    poll.register(pipe, 0)
    return bool(poll.poll(0))


def test_output_that_was_set_not_to_block_loses_nothing(tmp_path: Path) -> None:
    given, writing = os.pipe()
    reading, taken = os.pipe()
    os.set_blocking(taken, False)
    with subprocess.Popen(
        command("--quiet"), stdin=given, stdout=taken, cwd=tmp_path, env=environment(tmp_path)
    ) as process:
        os.close(given)
        os.close(taken)
        os.write(writing, LINES)
        with open(reading, "rb") as answers:
            wait_until_full(answers)
            assert len([next(answers) for _ in range(201)]) == 201
            os.close(writing)
            assert answers.read() == b""
        assert process.wait(GONE) == 0


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
        assert process.wait(LIMIT) == 0  # it has only just been started
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


def test_server_of_a_client_that_was_killed_ends_although_another_process_holds_its_input(tmp_path: Path) -> None:
    with (
        subprocess.Popen(
            [*PARENT, *command("--quiet")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=tmp_path,
            env=environment(tmp_path),
        ) as process,
        orphan(tmp_path),
    ):
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
    Terminal(tmp_path).refused("not_found", "mcp", "--read-only")
    assert not (tmp_path / "data").exists()
    with greeted(tmp_path) as client:
        _, err = client.end()
    assert "created a board" in err
    with open_board(tmp_path / "data") as board:
        assert board.exists()


# Waiting


def begin_wait(client: Client, tool: str, **arguments: Any) -> int:
    """Begin a call that waits; it does when the server answers what came after it."""
    number = client.begin("tools/call", {"name": tool, "arguments": arguments})
    assert client.ask("ping") == {}
    return number


def test_call_waits_for_work_and_another_one_for_its_end(tmp_path: Path) -> None:
    with greeted(tmp_path) as client, open_board(tmp_path / "data") as board:
        claim = begin_wait(client, "claim_task", wait="240s")
        task = board.add("the one").task.id
        granted = said(client.reply(claim)["result"])
        assert granted.head == ["claimed"]
        wait = begin_wait(client, "wait", task_ids=[task])
        assert client.call("list_tasks").head  # other calls are answered meanwhile
        client.call("complete_task", task_id=task, token=granted.token)
        assert "done" in said(client.reply(wait)["result"]).text
        late = client.call("wait", task_ids=task, status="failed", timeout="1s")
        assert late.code == "empty"
        assert client.call("claim_task", wait="1s").head == ["nothing"]
        assert client.call("claim_task", wait="241s").code == "invalid_input"
        client.end()


def test_cancelled_wait_ends_and_claims_nothing(tmp_path: Path) -> None:
    with greeted(tmp_path) as client, open_board(tmp_path / "data") as board:
        # More than there are threads for waits: they would never start if cancelled ones went on.
        for _ in range(WAITERS + 2):
            claim = begin_wait(client, "claim_task", wait="240s")
            client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": claim}})
        assert client.ask("ping") == {}  # the last one has been cancelled, too
        task = board.add("free").task.id
        wait = begin_wait(client, "wait", task_ids=[task])
        assert board.cancel(task).task.claimed_by is None
        assert "cancelled" in said(client.reply(wait)["result"]).text
        client.end()


def test_more_waits_than_threads_are_refused_as_busy(tmp_path: Path) -> None:
    with greeted(tmp_path) as client:
        for _ in range(WAITERS):
            begin_wait(client, "claim_task", wait="240s")
        assert client.call("claim_task", wait="240s").code == "busy"
        assert client.call("claim_task").head == ["nothing"]
        assert client.process.stdin is not None
        client.process.stdin.close()
        ended(client, 0)
