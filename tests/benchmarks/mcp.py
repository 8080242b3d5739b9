"""The MCP server: its start and its calls, over a bare server of the SDK with one tool that echoes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from agent_task_board import Board
from tests.benchmarks.measuring import Measured, in_turn, row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

FLOOR = """
import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}

async def list_tools(context, params):
    return types.ListToolsResult(tools=[types.Tool(name="echo", input_schema=SCHEMA)])

async def call_tool(context, params):
    return types.CallToolResult(content=[types.TextContent(type="text", text=params.arguments["text"])])

server = Server("floor", on_list_tools=list_tools, on_call_tool=call_tool)

async def main():
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())

anyio.run(main)
"""
"""The least that a server on the SDK can be."""

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Server:
    """A server process and the plainest client there is: a line out, a line in."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.ask("initialize", HELLO)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: Any = None) -> Any:
        """Send a request and return its result."""
        assert self.process.stdout is not None
        self._send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}})
        return json.loads(self.process.stdout.readline())["result"]

    def call(self, name: str, **arguments: Any) -> Callable[[], None]:
        """Return a call of a tool that must work."""

        def call() -> None:
            assert not self.ask("tools/call", {"name": name, "arguments": arguments})["isError"]

        return call

    def end(self) -> None:
        """Close the server's input and wait for its end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def measure(directory: Path, runs: int) -> list[str]:
    """Return the rows of the table."""
    place = directory / "mcp"
    ours = [sys.executable, "-m", "agent_task_board", "mcp", "--data-dir", str(place)]
    floor = [sys.executable, "-c", FLOOR]
    with Board(place) as board:
        board.import_tasks([{"title": f"Task {number}", "body": "x" * 300, "tags": ["a"]} for number in range(29)])
        held = board.add("Held", claim=True, agent="bench").to_dict()
        id_, token = held["task"]["id"], held["lease"]["token"]
    start = _started({"ours": ours, "floor": floor}, max(3, runs // 20))
    server, bare, direct = Server(ours), Server(floor), Board(place)
    try:
        took = in_turn(
            {
                "echo": bare.call("echo", text="x" * 500),
                "get": server.call("get_task", task_id=id_),
                "list": server.call("list_tasks"),
                "heartbeat": server.call("heartbeat", task_id=id_, token=token),
                "direct": lambda: direct.heartbeat(id_, token),
            },
            runs,
            warmup=20,
        )
    finally:
        server.end()
        bare.end()
        direct.close()
    against = "the SDK's own server, a tool that echoes"
    rows = [
        row(
            "`atb mcp`, from its start until it has answered `initialize`",
            "the SDK's own server",
            start["ours"].milliseconds,
            start["floor"].milliseconds,
            start["ours"].over(start["floor"]),
        )
    ]
    both = Measured([took["echo"].median + took["direct"].median])
    for name, what, other, floor_of in (
        ("get", "MCP `get_task`", against, took["echo"]),
        ("list", "MCP `list_tasks`, 30 tasks", against, took["echo"]),
        ("heartbeat", "MCP `heartbeat`: a write that is on disk", against, took["echo"]),
        ("heartbeat", "the same", f"{against}, and `Board.heartbeat` beside it", both),
    ):
        rows.append(row(what, other, took[name].milliseconds, floor_of.milliseconds, took[name].over(floor_of)))
    return rows


def _started(commands: Mapping[str, list[str]], runs: int) -> dict[str, Measured]:
    """Return the seconds that servers need to start, in turn; their ends do not count."""
    took: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            begin = time.perf_counter()
            server = Server(command)
            took[name].append(time.perf_counter() - begin)
            server.end()
    return {name: Measured(seconds) for name, seconds in took.items()}
