"""Both eras of the protocol: requests without a session, byte by byte, and the SDK's client of the line before this."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_task_board.mcp_server import definitions
from agent_task_board.mcp_server.definitions import TOOLS
from tests.mcp_client import (
    HELLO,
    STATELESS,
    Client,
    command,
    connected,
    envelope,
    environment,
    locked,
    said,
    started,
)
from tests.support import open_board

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REQUIRED = os.environ.get("ATB_REQUIRE_BROWSER") == "1"
"""Whether a client that cannot be installed is a failure, as a missing browser is."""

FIRST_LINE = "mcp>=1.28.1,<2"
"""The line of the SDK that clients may still be on."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Return a client without a session; tests leave it able to ask."""
    with started(tmp_path_factory.mktemp("eras")) as client:
        client.discover()
        yield client


# Requests that stand each for itself


def test_server_is_asked_what_it_is_and_tells_how_to_work(tmp_path: Path) -> None:
    with started(tmp_path) as client:
        found = client.discover("codex")
        assert found["supportedVersions"] == [STATELESS]
        assert {"tools", "resources", "prompts"} <= set(found["capabilities"])
        assert client.name.startswith("codex-")
        assert found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "agent-task-board"
        assert client.end()[0] == 0


def test_request_needs_none_before_it(tmp_path: Path) -> None:
    with started(tmp_path) as client:
        client.envelope = envelope("codex")
        assert client.call("create_task", title="First of all").head == ["created"]
    with connected(tmp_path, mode=STATELESS) as sdk:
        assert "First of all" in sdk.call("list_tasks").text


def test_tools_are_listed_and_called(client: Client) -> None:
    listed = client.ask("tools/list")
    assert listed["tools"] == json.loads(definitions.page())["tools"]
    made = client.call("create_task", title="Work", claim=True)
    assert made.head == ["created"]
    assert client.call("complete_task", task_id=made.id, token="0" * 32).code == "lease_lost"
    assert client.call("complete_task", task_id=made.id, token=made.token).head == ["completed"]
    assert client.call("clam_task").code == "invalid_input"


def test_resources_and_the_prompt_are_there(client: Client) -> None:
    task = client.call("create_task", title="On show").id
    assert client.ask("resources/list")["resources"][0]["uri"] == "atb://board"
    assert client.ask("resources/templates/list")["resourceTemplates"][0]["uriTemplate"] == "atb://tasks/{id}"
    (board,) = client.ask("resources/read", {"uri": "atb://board"})["contents"]
    assert '"On show" queued' in board["text"]
    (whole,) = client.ask("resources/read", {"uri": f"atb://tasks/{task}"})["contents"]
    assert json.loads(whole["text"])["task"]["id"] == task
    missing = client.refused("resources/read", {"uri": "atb://tasks/01J00000000000000000000000"})
    assert (missing["code"], missing["data"]["code"]) == (-32602, "not_found")  # the protocol has no other code
    assert client.ask("prompts/list")["prompts"][0]["name"] == "work-the-board"
    (message,) = client.ask("prompts/get", {"name": "work-the-board", "arguments": {"queue": "core"}})["messages"]
    assert '["core"]' in message["content"]["text"]


@pytest.mark.parametrize(
    ("method", "params", "code", "begins"),
    [
        ("tools/call", {}, -32602, "params.name: "),
        ("tools/call", {"name": "get_task", "arguments": "x" * 9_000}, -32602, "params.arguments: "),
        ("tools/list", {"cursor": 5}, -32602, "params.cursor: "),
        ("resources/read", {"uri": "no address"}, -32602, "params.uri: "),
        ("tools/list", {"_meta": {**envelope("x"), "io.modelcontextprotocol/clientInfo": 5}}, -32602, "params._meta."),
        ("tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": STATELESS}}, -32602, "params._meta is "),
        ("tools/list", {"_meta": {**envelope("x"), "io.modelcontextprotocol/protocolVersion": "2031-01-01"}}, -32022,
         "Unsupported"),
        ("tools/list", {"_meta": {}}, -32602, "params._meta is missing"),
        ("x" * 9_000, {}, -32601, "there is no method"),
        ("ping", {}, -32601, "there is no method 'ping'"),
        ("initialize", HELLO, -32022, "connection is serving"),
    ],
)  # fmt: skip
def test_request_that_is_wrong_is_told_what_is(
    client: Client, method: str, params: dict[str, Any], code: int, begins: str
) -> None:
    error = client.refused(method, params)
    assert error["code"] == code
    assert error["message"].startswith(begins)
    assert len(error["message"]) <= 400
    assert client.ask("tools/list")["tools"]


def test_request_without_a_session_is_refused_in_one(tmp_path: Path) -> None:
    with started(tmp_path) as client:
        client.greet()
        client.envelope = envelope("codex")
        assert client.refused("tools/list")["code"] == -32600
        client.envelope = None
        assert client.ask("tools/list")["tools"]


def test_line_that_cannot_be_read_ends_nothing_and_decides_nothing(tmp_path: Path) -> None:
    with started(tmp_path) as client:
        for line in (b"nonsense", b"[1]", b'{"jsonrpc": "2.0", "method": "notifications/strange"}', b"\xff"):
            client.send(line)
        client.discover()
        assert client.call("create_task", title="x", body="y" * 150_000).head == ["created"]
        client.send(b'{"jsonrpc": "2.0", "id": "wrong", "method": "tools/list", "params": {"x": "\\ud800"}}')
        assert client.reply("wrong")["error"]["code"] == -32600
        for value in ('"title": "\\ud800"', '"title": "x", "priority": NaN'):
            meta = json.dumps(envelope("probe"))
            client.send(
                f'{{"jsonrpc": "2.0", "id": "value", "method": "tools/call", "params": {{"name": "create_task", '
                f'"_meta": {meta}, "arguments": {{{value}}}}}}}'.encode()
            )
            assert said(client.reply("value")["result"]).code == "invalid_input"


# Who the client is


def test_each_request_is_by_whom_it_says_and_a_name_stays_as_long_as_the_process(tmp_path: Path) -> None:
    holders: dict[str | None, set[str]] = {}
    with started(tmp_path) as client, open_board(tmp_path / "data") as board:
        for name in ("codex", "claude-code", None, "codex", "claude-code", None):
            client.envelope = envelope(name)
            made = client.call("create_task", title="x", claim=True)
            task = board.show(made.id)["task"]
            holders.setdefault(name, set()).add(task["claimed_by"])
            assert task["claimed_by"] == task["created_by"]
            assert client.call("resume_task", task_id=made.id).head == ["resumed"]
            client.discover(name)
            assert client.name == task["claimed_by"]
        codex, claude, nameless = (holder for (holder,) in holders.values())
        assert client.call("create_task", title="x", claim=True, agent="ada").head == ["created"]
        assert board.list_tasks(search="x").tasks[-1].claimed_by == "ada"
    suffix = codex.removeprefix("codex-")
    assert (claude, nameless) == (f"claude-code-{suffix}", f"mcp-{suffix}")


def test_requests_of_two_clients_at_once_are_not_mixed_up(tmp_path: Path) -> None:
    with started(tmp_path) as client, open_board(tmp_path / "data") as board:
        board.create()
        calls = {}
        with locked(tmp_path):
            for number in range(12):
                name = ("codex", "gemini")[number % 2]
                client.envelope = envelope(name)
                create = {"name": "create_task", "arguments": {"title": name}}
                calls[client.begin("tools/call", create)] = name
        for call, name in calls.items():
            made = said(client.reply(call)["result"])
            assert board.show(made.id)["task"]["created_by"].startswith(f"{name}-")


# Long calls, and the end


def test_reads_are_answered_while_calls_wait_and_a_cancelled_one_is_not(tmp_path: Path) -> None:
    with started(tmp_path) as client:
        client.discover()
        create = {"name": "create_task", "arguments": {"title": "x"}}
        with locked(tmp_path):
            kept, dropped = client.begin("tools/call", create), client.begin("tools/call", create)
            assert not client.call("list_tasks").refused
            client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": dropped}})
            assert client.ask("tools/list")["tools"]
            assert kept not in client._early, "it was answered without the lock"
        assert not said(client.reply(kept)["result"]).refused
        assert client.end()[0] == 0
        assert dropped not in [*client._early, *(message["id"] for message in client.rest())]
    assert not (tmp_path / "data" / "tasks.db-wal").exists(), "the end waited for an answer that never came"


def test_requests_before_the_end_of_input_are_answered(tmp_path: Path) -> None:
    lines = [
        {
            "jsonrpc": "2.0",
            "id": number,
            "method": "tools/call",
            "params": {"name": "create_task", "arguments": {"title": "x"}, "_meta": envelope("probe")},
        }
        for number in range(5)
    ]
    ran = subprocess.run(
        command("--quiet"),
        input="\n".join(map(json.dumps, lines)),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(tmp_path),
    )
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert sorted(answer["id"] for answer in answers) == list(range(5))
    assert not any(answer["result"]["isError"] for answer in answers)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert not (tmp_path / "data" / "tasks.db-wal").exists()


# A client on the line before


@pytest.fixture(scope="module")
def first_line(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the SDK's line 1: only the client that is tested imports from there."""
    place = tmp_path_factory.mktemp("line-1")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile"]
    ran = subprocess.run([*pip, "--target", str(place), FIRST_LINE], capture_output=True, text=True)
    if ran.returncode:
        why = f"{FIRST_LINE} cannot be installed here: {ran.stderr.strip()[-300:]}"
        pytest.fail(why) if REQUIRED else pytest.skip(why)
    return place


CONVERSATION = """
import importlib.metadata, json, sys
import anyio
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client

assert importlib.metadata.version("mcp").startswith("1."), "this is another line of the SDK"
program, *rest = json.loads(sys.argv[1])
server = StdioServerParameters(command=program, args=rest, env=json.loads(sys.argv[2]))

async def main():
    me = types.Implementation(name="line-1", version="1")
    async with stdio_client(server) as streams, ClientSession(*streams, client_info=me) as session:
        hello = await session.initialize()
        async def call(tool, **arguments):
            (content,) = (result := await session.call_tool(tool, arguments)).content
            assert result.structuredContent is None
            return [result.isError, content.text]
        made = await call("create_task", title="null", body="[1]", tags='["a"]')
        claimed = await call("claim_task")
        words = dict(word.split("=", 1) for word in claimed[1].split() if "=" in word)
        held = {"task_id": words["id"], "token": words["token"]}
        told = {
            "protocol": hello.protocolVersion,
            "instructions": hello.instructions,
            "tools": [tool.model_dump(mode="json", exclude_none=True) for tool in (await session.list_tools()).tools],
            "made": made,
            "claimed": claimed,
            "lost": await call("complete_task", task_id=words["id"], token="0" * 32),
            "unknown": await call("get_task", id="x"),
            "done": await call("complete_task", result={"a": 1}, **held),
            "board": (await session.read_resource("atb://board")).contents[0].text,
            "templates": [one.uriTemplate for one in (await session.list_resource_templates()).resourceTemplates],
            "prompts": [prompt.name for prompt in (await session.list_prompts()).prompts],
            "prompt": (await session.get_prompt("work-the-board", {})).messages[0].content.text,
        }
        try:
            await session.read_resource("atb://tasks/01J00000000000000000000000")
        except McpError as refused:
            told["missing"] = [refused.error.code, refused.error.data["code"]]
        await session.send_ping()
    print(json.dumps(told))

anyio.run(main)
"""


def test_client_of_the_line_before_has_a_whole_conversation(first_line: Path, tmp_path: Path) -> None:
    given = [json.dumps(command("--quiet")), json.dumps(environment(tmp_path))]
    ran = subprocess.run(
        [sys.executable, "-c", CONVERSATION, *given],
        cwd=tmp_path,
        env={**environment(tmp_path), "PYTHONPATH": str(first_line)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["protocol"] == "2025-11-25"
    assert 'You are "line-1-' in told["instructions"]
    assert told["tools"] == json.loads(definitions.page())["tools"]
    assert [tool["name"] for tool in told["tools"]] == list(TOOLS)
    assert [told[call][0] for call in ("made", "claimed", "lost", "unknown", "done")] == [
        False,
        False,
        True,
        True,
        False,
    ]
    assert "| [1]" in told["claimed"][1]
    assert "lease_lost" in told["lost"][1]
    assert "'task_id'" in told["unknown"][1]
    assert '"null" done' in told["board"]
    assert told["templates"] == ["atb://tasks/{id}"]
    assert told["prompts"] == ["work-the-board"]
    assert "claim_task" in told["prompt"]
    assert told["missing"] == [-32002, "not_found"]
