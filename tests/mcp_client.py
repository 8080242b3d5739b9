"""Clients of ``atb mcp``: the SDK's, and one that sees every byte; and a parser for the tools' answers."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import sqlite3
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import mcp_types as types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client as SdkClient
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.command_line import PASSED_ON, program

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

LIMIT = 60.0
"""Seconds after which something that should have come is taken for lost."""

STATELESS = "2026-07-28"
"""The version of the protocol whose requests stand each for itself."""

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}


class Said(NamedTuple):
    """What a tool answered."""

    text: str
    refused: bool

    @property
    def head(self) -> list[str]:
        """The words of its first line, but for the version of the grammar."""
        version, *words = self.text.partition("\n")[0].split(" ")
        assert version == "atb1", self
        return words

    @property
    def code(self) -> str:
        """The ``code`` of a refusal."""
        assert self.refused, self
        word, code = self.head
        assert word == "error", self
        return code

    def line(self, name: str) -> Any:
        """Return the JSON behind a name such as ``message``; ``None`` where there is none."""
        found = re.search(rf"^{name} (.+)$", self.text, re.MULTILINE)
        return json.loads(found[1]) if found else None

    @property
    def notes(self) -> list[str]:
        """What the caller must know beside."""
        return [json.loads(note) for note in re.findall(r"^note (.+)$", self.text, re.MULTILINE)]

    @property
    def left(self) -> list[tuple[str, str, str, str]]:
        """Return kind, author, text and source of what others left for the holder."""
        found = re.findall(r'^left (\S+) \S+ (\S+) (".*") (.+)$', self.text, re.MULTILINE)
        return [(kind, actor, json.loads(text), source) for kind, actor, text, source in found]

    def word(self, name: str) -> str:
        """Return what stands behind ``name=`` in a receipt."""
        assert not self.refused, self
        found = re.search(rf"^id=.*|^.* {name}=.*$", self.text, re.MULTILINE)
        assert found is not None, self
        pair = re.search(rf"(?:^| ){name}=(\S+)", found[0])
        assert pair is not None, (name, self)
        return pair[1]

    @property
    def id(self) -> str:
        """The task's whole id."""
        return self.word("id")

    @property
    def token(self) -> str:
        """The lease's token."""
        return self.word("token")


class Client:
    """One ``atb mcp`` process, spoken to line by line; each line of its output must be a JSON-RPC message."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.instructions = ""
        self.envelope: dict[str, Any] | None = None
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._numbers = iter(range(1, 1_000_000))
        self._early: dict[Any, dict[str, Any]] = {}
        threading.Thread(target=self._pump, daemon=True).start()

    def _pump(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def send(self, message: dict[str, Any] | bytes) -> None:
        """Send a message, or a line as it is."""
        assert self.process.stdin is not None
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any] | None:
        """Return the next message; ``None`` at the end of the output."""
        line = self._lines.get(timeout=LIMIT)
        if not line:
            return None
        assert line.endswith(b"\n"), line
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def rest(self) -> list[dict[str, Any]]:
        """Return everything that is still to come until the end of the output."""
        return list(iter(self.receive, None))

    def begin(self, method: str, params: Any = None) -> int:
        """Send a request; return its id."""
        number = next(self._numbers)
        if self.envelope is not None:
            params = {"_meta": self.envelope, **(params or {})}
        self.send({"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params})})
        return number

    def reply(self, number: int | str | None) -> dict[str, Any]:
        """Return the answer to a request, whatever comes before it."""
        while number not in self._early:
            message = self.receive()
            assert message is not None, self.end()
            self._early[message["id"]] = message
        return self._early.pop(number)

    def ask(self, method: str, params: Any = None) -> Any:
        """Send a request and return its result."""
        answer = self.reply(self.begin(method, params))
        assert "result" in answer, answer
        return answer["result"]

    def refused(self, method: str, params: Any = None) -> dict[str, Any]:
        """Send a request that is refused by the protocol; return the error."""
        error: dict[str, Any] = self.reply(self.begin(method, params))["error"]
        return error

    def greet(self, **params: Any) -> dict[str, Any]:
        """Begin the session."""
        result: dict[str, Any] = self.ask("initialize", {**HELLO, **params})
        self.instructions = result["instructions"]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def discover(self, client: str | None = "probe") -> dict[str, Any]:
        """Go on without a session, each request by itself; ask who the server is."""
        self.envelope = envelope(client)
        result: dict[str, Any] = self.ask("server/discover")
        self.instructions = result["instructions"]
        return result

    @property
    def name(self) -> str:
        """Who this client is, as the instructions say."""
        found = re.search(r'^You are ("(?:[^"\\]|\\.)*") here', self.instructions, re.MULTILINE)
        assert found is not None, self.instructions
        return str(json.loads(found[1]))

    def call(self, tool: str, **arguments: Any) -> Said:
        """Call a tool."""
        return said(self.ask("tools/call", {"name": tool, "arguments": arguments}))

    def end(self, *, limit: float = LIMIT) -> tuple[int, str]:
        """Close the input; return the exit code and what was written to standard error."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        return self.wait(limit=limit)

    def wait(self, *, limit: float = LIMIT) -> tuple[int, str]:
        """Wait for the end of the process; return the exit code and what was written to standard error."""
        assert self.process.stderr is not None
        code = self.process.wait(limit)
        return code, self.process.stderr.read().decode()


def envelope(client: str | None) -> dict[str, Any]:
    """Return what each request without a session says about itself."""
    about = {"protocolVersion": STATELESS, "clientCapabilities": {}}
    if client is not None:
        about["clientInfo"] = {"name": client, "version": "1"}
    return {f"io.modelcontextprotocol/{key}": value for key, value in about.items()}


def said(result: dict[str, Any]) -> Said:
    """Return what a tool answered, which is one text and nothing else, but for what the later protocol wants."""
    assert set(result) in ({"content", "isError"}, {"content", "isError", "resultType", "_meta"}), result
    (content,) = result["content"]
    assert set(content) == {"type", "text"}, content
    assert content["type"] == "text"
    return Said(content["text"], result["isError"])


@contextlib.contextmanager
def started(directory: Path, *words: str, code: str | None = None, **environ: str) -> Iterator[Client]:
    """Start ``atb mcp``; it is killed at the end of the block, if it still runs."""
    with subprocess.Popen(
        [*program(code), "mcp", *words],
        cwd=directory,
        env=environment(directory, **environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield Client(process)
        finally:
            process.kill()
            with contextlib.suppress(BrokenPipeError):
                assert process.stdin is not None
                process.stdin.close()


@contextlib.contextmanager
def greeted(directory: Path, *words: str, code: str | None = None, **environ: str) -> Iterator[Client]:
    """Start ``atb mcp`` and begin a session."""
    with started(directory, *words, code=code, **environ) as client:
        client.greet()
        yield client


def environment(directory: Path, **environ: str) -> dict[str, str]:
    """Return an environment that holds nothing about boards."""
    known = {name: value for name, value in os.environ.items() if name in PASSED_ON}
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(directory), **known, **environ}


def command(*words: str) -> list[str]:
    """Return the command line of a server."""
    return [sys.executable, "-m", "agent_task_board", "mcp", *words]


def until(condition: Any, what: str) -> None:
    """Look for an event until it is there."""
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, f"never seen: {what}"
        time.sleep(0.01)


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[sqlite3.Connection]:
    """Hold the write lock of a board."""
    with contextlib.closing(sqlite3.connect(directory / "data" / "tasks.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        if connection.in_transaction:
            connection.execute("ROLLBACK")


class Sdk:
    """The SDK's client, called from a test that is not asynchronous."""

    def __init__(self, portal: BlockingPortal, client: SdkClient) -> None:
        self.portal = portal
        self.client = client

    @property
    def instructions(self) -> str:
        """What the server tells the client about itself and the way of working."""
        assert self.client.instructions is not None
        return self.client.instructions

    def call(self, tool: str, **arguments: Any) -> Said:
        """Call a tool."""
        return answered(self.portal.call(self.client.call_tool, tool, arguments))

    def refused(self, code: str, tool: str, **arguments: Any) -> Said:
        """Call a tool that refuses."""
        answer = self.call(tool, **arguments)
        assert answer.code == code, answer
        return answer

    def read(self, uri: str) -> types.TextResourceContents:
        """Read a resource."""
        (content,) = self.portal.call(self.client.read_resource, uri).contents
        assert isinstance(content, types.TextResourceContents)
        return content


def answered(result: types.CallToolResult) -> Said:
    """Return what a tool answered; the rest of a result is of the protocol."""
    return said(result.model_dump(by_alias=True, exclude_none=True, exclude={"result_type", "meta"}))


@contextlib.asynccontextmanager
async def connection(
    directory: Path, words: tuple[str, ...], environ: dict[str, str], client: str, mode: str
) -> AsyncIterator[SdkClient]:
    """Start a server and connect the SDK's client to it, for as long as the block lasts."""
    program, *rest = command("--quiet", *words)
    parameters = StdioServerParameters(
        command=program, args=rest, env=environment(directory, **environ), cwd=str(directory)
    )
    info = types.Implementation(name=client, version="1")
    with open(os.devnull, "w") as nowhere:
        transport = stdio_client(parameters, errlog=nowhere)
        async with SdkClient(transport, client_info=info, mode=mode, cache=None) as client_:
            yield client_


@contextlib.contextmanager
def connected(directory: Path, *words: str, client: str = "probe", mode: str = "auto", **environ: str) -> Iterator[Sdk]:
    """Start a server, connect the SDK's client to it, and end both."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(connection(directory, words, environ, client, mode)) as opened,
    ):
        yield Sdk(portal, opened)
