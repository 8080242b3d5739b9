"""The server: the SDK's low-level one over the tools, with an identity, two resources and a prompt."""

from __future__ import annotations

import functools
import json
import logging
import os
import traceback

import anyio
import anyio.lowlevel
import anyio.to_thread
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.shared.exceptions import McpError

from .. import inputs
from .._version import __version__
from ..errors import BoardError, Busy, InvalidInput
from ..instants import SECOND
from ..text import compact
from . import definitions
from .tools import Tools, refused
from .transport import Channel, Transport, leave_on_signals, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, NoReturn

    from pydantic import AnyUrl, BaseModel

    from ..service import Board

NAME = "agent-task-board"
BOARD, TASK = "atb://board", "atb://tasks/"
NOT_FOUND = -32002
"""The protocol's code for a resource that is not there."""

REQUESTS: Mapping[str, type[BaseModel]] = {
    "initialize": types.InitializeRequest,
    "ping": types.PingRequest,
    "tools/list": types.ListToolsRequest,
    "tools/call": types.CallToolRequest,
    "resources/list": types.ListResourcesRequest,
    "resources/templates/list": types.ListResourceTemplatesRequest,
    "resources/read": types.ReadResourceRequest,
    "prompts/list": types.ListPromptsRequest,
    "prompts/get": types.GetPromptRequest,
}
"""What a client may ask for."""

READERS, WRITERS = 8, 16
"""Threads, at most: for calls that only read, and for those that may wait for the write lock."""
PENDING = 256
"""Calls that write, at most, those in their threads included; one more is told that the board is busy."""
LOGGED = 300
"""Characters of a line that the SDK logs; it would quote whole messages."""


class Identity:
    """Who the client is: the name that it was given, else what it calls itself, made unique for this process."""

    def __init__(self, given: str | None) -> None:
        self._given = given
        self._suffix = os.urandom(2).hex()
        self.name = given or self._made("")

    def meet(self, client: object) -> None:
        """Take on the name of the client."""
        if self._given is None:
            self.name = self._made(client if isinstance(client, str) else "")

    def _made(self, client: str) -> str:
        plain = "".join(char for char in client if char.isprintable())[: inputs.NAME - len(self._suffix) - 1].strip()
        try:
            return inputs.agent_name(f"{plain or 'mcp'}-{self._suffix}", "client")
        except InvalidInput:
            return f"mcp-{self._suffix}"


class Aside:
    """Threads for calls, so that pings are answered meanwhile, and reads are while writes wait for the write lock.

    Args:
        patience: seconds that a write waits for a thread, before it is told that the board is busy.
    """

    def __init__(self, patience: float) -> None:
        self.running = 0
        self._pending = 0
        self._patience = patience

    @functools.cached_property
    def _readers(self) -> anyio.CapacityLimiter:  # made in the event loop, as the others
        return anyio.CapacityLimiter(READERS)

    @functools.cached_property
    def _writers(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(WRITERS)

    @functools.cached_property
    def _turns(self) -> anyio.Semaphore:
        return anyio.Semaphore(WRITERS)

    async def read(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function that only reads in a thread; a call that is cancelled ends once the function has."""
        return await self._run(self._readers, function, arguments)

    async def write(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function that may wait for the write lock, as ``read`` does.

        Raises:
            Busy: too many wait, or this one has waited too long, and has not begun.
        """
        if self._pending >= PENDING:
            raise Busy(f"{PENDING} calls wait for the write lock already")
        self._pending += 1
        try:
            with anyio.move_on_after(self._patience) as scope:
                await self._turns.acquire()
            if scope.cancelled_caught:
                raise Busy("the calls before this one still wait for the write lock")
            try:
                return await self._run(self._writers, function, arguments)
            finally:
                self._turns.release()
        finally:
            self._pending -= 1

    async def _run(self, limiter: anyio.CapacityLimiter, function: Callable[..., Any], arguments: Any) -> Any:
        self.running += 1
        try:
            answer = await anyio.to_thread.run_sync(function, *arguments, limiter=limiter)
        finally:
            self.running -= 1
        await anyio.lowlevel.checkpoint()  # cancelled calls must stop here: answering one breaks the SDK
        return answer


class Short(logging.Formatter):
    """What the SDK logs, in one line that is not long."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and below it the traceback, if there is one."""
        record.msg, record.args = " ".join(record.getMessage()[:LOGGED].split()), None
        return visible(super().format(record))


def serve(board: Board, *, agent: str | None = None, read_only: bool = False, quiet: bool = False) -> NoReturn:
    """Answer one client over standard input and output, and end the process with it.

    Args:
        board: the board.
        agent: who acts where a call names nobody; else the client's name with a random suffix.
        read_only: offer only what reads.
        quiet: say nothing on standard error.
    """
    if quiet:
        logging.disable(logging.CRITICAL)
    talk = logging.StreamHandler()
    talk.setFormatter(Short())
    logging.basicConfig(handlers=[talk], level=logging.WARNING)
    channel = Channel()
    identity = Identity(agent)
    report: Callable[[Exception], object] = repr if quiet else traceback.print_exception
    tools = Tools(board, lambda: identity.name, read_only=read_only, report=report)
    aside = Aside(board.settings.busy_timeout / SECOND)
    server = _server(tools, aside, read_only=read_only)
    options = server.create_initialization_options()

    def on_request(method: str, params: dict[str, Any]) -> None:
        if method == "initialize":  # the session copies the instructions while it answers this
            client = params.get("clientInfo")
            identity.meet(client.get("name") if isinstance(client, dict) else None)
            options.instructions = definitions.instructions(identity.name, read_only=read_only)

    def on_end() -> None:
        if not aside.running:  # a cancelled call may still wait for the write lock, and closing would wait for it
            board.close()

    transport = Transport(channel, REQUESTS, on_request=on_request, on_end=on_end, report=report)
    leave_on_signals(transport.end)

    async def converse() -> None:
        async with transport.streams() as (incoming, outgoing):
            await server.run(incoming, outgoing, options)

    try:
        anyio.run(converse)
    except Exception as error:
        report(error)
    channel.leave(BoardError.exit_code)


def _server(tools: Tools, aside: Aside, *, read_only: bool) -> Server[Any, Any]:
    server: Server[Any, Any] = Server(NAME, version=__version__)
    offered = [types.Tool.model_validate(tool.to_dict()) for tool in tools.offered()]

    # The SDK's decorators have no types.
    @server.list_tools()  # type: ignore[no-untyped-call, untyped-decorator]
    async def list_tools() -> list[types.Tool]:
        return offered

    @server.call_tool(validate_input=False)  # type: ignore[untyped-decorator]
    async def call_tool(name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        given = server.request_context.request
        tool = definitions.TOOLS.get(name)
        lane = aside.read if tool is None or tool.reads else aside.write
        try:
            answer = await lane(tools.call, name, arguments if given is None else given)
        except Busy as error:
            answer = refused(error)
        text = types.TextContent(type="text", text=visible(answer.text))
        return types.CallToolResult(content=[text], isError=answer.refused)

    @server.list_resources()  # type: ignore[no-untyped-call, untyped-decorator]
    async def list_resources() -> list[types.Resource]:
        said = "Counts, what waits for somebody, and a line a task, unfinished ones first."
        return [
            types.Resource.model_validate(
                {"uri": BOARD, "name": "board", "title": "The board", "description": said, "mimeType": "text/plain"}
            )
        ]

    @server.list_resource_templates()  # type: ignore[no-untyped-call, untyped-decorator]
    async def list_resource_templates() -> list[types.ResourceTemplate]:
        said = "All of one task as JSON: {task, attempts, dependencies, dependents, comments}."
        return [
            types.ResourceTemplate(
                uriTemplate=f"{TASK}{{id}}", name="task", title="A task", description=said, mimeType="application/json"
            )
        ]

    @server.read_resource()  # type: ignore[no-untyped-call, untyped-decorator]
    async def read_resource(uri: AnyUrl) -> Iterable[ReadResourceContents]:
        try:
            return [await aside.read(_resource, tools, str(uri))]
        except BoardError as error:
            code = {"not_found": NOT_FOUND, "invalid_input": types.INVALID_PARAMS}.get(error.code, types.INTERNAL_ERROR)
            raise McpError(types.ErrorData(code=code, message=error.message, data=error.to_dict())) from None

    # A server that only reads offers no way of working.
    @server.list_prompts()  # type: ignore[no-untyped-call, untyped-decorator]
    async def list_prompts() -> list[types.Prompt]:
        queue = types.PromptArgument(name="queue", description=definitions.PROMPT_QUEUE, required=False)
        prompt = types.Prompt(
            name=definitions.PROMPT,
            title="Work the board",
            description=definitions.PROMPT_DESCRIPTION,
            arguments=[queue],
        )
        return [] if read_only else [prompt]

    @server.get_prompt()  # type: ignore[no-untyped-call, untyped-decorator]
    async def get_prompt(name: str, arguments: dict[str, str] | None) -> types.GetPromptResult:
        given = arguments or {}
        if read_only or name != definitions.PROMPT:
            others = "" if read_only else f"; there is {definitions.PROMPT}"
            raise _bad_call(f"there is no prompt {name[:60]!r}{others}")
        if given.keys() - {"queue"}:
            raise _bad_call(f"{definitions.PROMPT} takes only: queue")
        try:
            queue = inputs.name(given["queue"], "queue") if given.get("queue") else None
        except InvalidInput as error:
            raise _bad_call(error.message) from None
        text = types.TextContent(type="text", text=definitions.prompt(queue))
        return types.GetPromptResult(
            description=definitions.PROMPT_DESCRIPTION, messages=[types.PromptMessage(role="user", content=text)]
        )

    return server


def _resource(tools: Tools, uri: str) -> ReadResourceContents:
    board = tools.board
    if uri.rstrip("/") == BOARD:
        snapshot = json.loads(board.snapshot().text)
        text = compact.board(snapshot, board.attention(), tokens=definitions.BOARD_TOKENS, warnings=tools.missing())
        return ReadResourceContents(content=text, mime_type="text/plain")
    if not uri.startswith(TASK):
        raise InvalidInput(f"there is no resource {uri[:200]!r}", hint=f"There are {BOARD} and {TASK}ID.", field="uri")
    details = board.show(uri.removeprefix(TASK))
    return ReadResourceContents(content=json.dumps(details, ensure_ascii=False), mime_type="application/json")


def _bad_call(what: str) -> McpError:
    return McpError(types.ErrorData(code=types.INVALID_PARAMS, message=what))
