"""The server: the SDK's low-level one over the tools, with an identity, two resources and a prompt.

It speaks to clients of both eras of the protocol: those that ``initialize``, and those of 2026-07-28, whose every
request says which protocol it is in and who sends it. Which era a client is of shows in its first request, and the SDK
tells them apart.
"""

from __future__ import annotations

import contextvars
import functools
import json
import logging
import os
import traceback

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from .. import inputs
from .._version import __version__
from ..errors import BoardError, Busy, InvalidInput
from ..instants import SECOND
from ..text import compact
from . import definitions
from .tools import Tools, refused
from .transport import Channel, Transport, fault_of, leave_on_signals, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from ..service import Board

    Context = ServerRequestContext[Any, Any]

NAME = "agent-task-board"
BOARD, TASK = "atb://board", "atb://tasks/"
NOT_FOUND = -32002
"""The code for a resource that is not there, in the protocols that ``initialize``; later ones have none of its own."""

READERS, WRITERS = 8, 16
"""Threads, at most: for calls that only read, and for those that may wait for the write lock."""
PENDING = 256
"""Calls that write, at most, those in their threads included; one more is told that the board is busy."""
LOGGED = 300
"""Characters of a line that the SDK logs; it would quote whole messages."""

_log = logging.getLogger(__name__)


class Identity:
    """Who a client is: the name that was given, else what the client calls itself, made unique for this process."""

    def __init__(self, given: str | None) -> None:
        self._given = given
        self._suffix = os.urandom(2).hex()
        self._name = functools.lru_cache(maxsize=64)(self._made)

    def name(self, client: object) -> str:
        """Return the name of the agent behind a client that calls itself so; the same for each of its requests."""
        return self._given or self._name(client if isinstance(client, str) else "")

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
        return await anyio.to_thread.run_sync(function, *arguments, limiter=self._readers)

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
                return await anyio.to_thread.run_sync(function, *arguments, limiter=self._writers)
            finally:
                self._turns.release()
        finally:
            self._pending -= 1


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
    report: Callable[[Exception], object] = repr if quiet else traceback.print_exception
    tools = Tools(board, _caller.get, read_only=read_only, report=report)
    server = _server(tools, Identity(agent), Aside(board.settings.busy_timeout / SECOND), read_only=read_only)
    transport = Transport(channel, on_end=board.close, report=report)
    leave_on_signals(transport.end)

    async def converse() -> None:
        async with transport.streams() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    try:
        anyio.run(converse)
    except Exception as error:
        report(error)
    channel.leave(BoardError.exit_code)


_caller: contextvars.ContextVar[str] = contextvars.ContextVar("caller")
"""Who sent the request that this task, or its thread, is about."""


def _server(tools: Tools, identity: Identity, aside: Aside, *, read_only: bool) -> Server[Any]:
    offered = [types.Tool.model_validate(tool.to_dict()) for tool in tools.offered()]
    resources, templates, prompts = _resources(), _templates(), [] if read_only else [_prompt()]

    def caller(context: Context) -> str:
        client = context.session.client_params  # of `initialize`, or of this request
        return identity.name(client and client.client_info.name)

    async def list_tools(_: Context, __: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=offered)

    async def call_tool(context: Context, call: types.CallToolRequestParams) -> types.CallToolResult:
        _caller.set(caller(context))
        tool = definitions.TOOLS.get(call.name)
        lane = aside.read if tool is None or tool.reads else aside.write
        try:
            answer = await lane(tools.call, call.name, context.request or {})
        except Busy as error:
            answer = refused(error)
        text = types.TextContent(type="text", text=visible(answer.text))
        return types.CallToolResult(content=[text], is_error=answer.refused)

    async def list_resources(_: Context, __: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=resources)

    async def list_resource_templates(_: Context, __: object) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(context: Context, wanted: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        try:
            return types.ReadResourceResult(contents=[await aside.read(_resource, tools, wanted.uri)])
        except BoardError as error:
            codes = {"not_found": NOT_FOUND, "invalid_input": types.INVALID_PARAMS}
            if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                codes["not_found"] = types.INVALID_PARAMS
            code = codes.get(error.code, types.INTERNAL_ERROR)
            raise MCPError(code, error.message, error.to_dict()) from None

    # A server that only reads offers no way of working.
    async def list_prompts(_: Context, __: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(_: Context, wanted: types.GetPromptRequestParams) -> types.GetPromptResult:
        given = wanted.arguments or {}
        if read_only or wanted.name != definitions.PROMPT:
            others = "" if read_only else f"; there is {definitions.PROMPT}"
            raise _bad_call(f"there is no prompt {wanted.name[:60]!r}{others}")
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

    server: Server[Any] = Server(
        NAME,
        version=__version__,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_resource_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )

    async def discover(context: Context, _: types.RequestParams) -> types.DiscoverResult:
        return types.DiscoverResult(
            supported_versions=list(MODERN_PROTOCOL_VERSIONS),
            capabilities=server.get_capabilities(protocol_version=context.protocol_version),
            instructions=definitions.instructions(caller(context), read_only=read_only),
        )

    async def initialize(ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer ``initialize`` with instructions for this client; all else goes its way."""
        result = await call_next(ctx)
        if ctx.method != "initialize" or not isinstance(result, dict):
            return result
        client = identity.name((ctx.params or {})["clientInfo"]["name"])  # it was found to be well formed
        return {**result, "instructions": definitions.instructions(client, read_only=read_only)}

    server.add_request_handler("server/discover", types.RequestParams, discover)
    server.middleware[:] = [_plainly, initialize]  # and no telemetry: nobody here collects it
    return server


async def _plainly(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Say in a line what is wrong with a request or a notification; the SDK says only that something is."""
    method = ctx.method
    if ctx.request_id is None:
        try:
            methods.validate_client_notification(method, ctx.protocol_version, ctx.params)
        except KeyError:
            return None
        except ValidationError as error:
            _log.warning("%s passed over: %s", method, fault_of(error))
            return None
        return await call_next(ctx)
    try:
        return await call_next(ctx)
    except ValidationError as error:
        raise _bad_call(fault_of(error)) from None
    except MCPError as error:
        if error.code == types.METHOD_NOT_FOUND:
            raise MCPError(error.code, f"there is no method {method[:60]!r}") from None
        if error.code == types.INVALID_PARAMS and error.data == "":  # the SDK's refusal of what comes too early
            raise _bad_call(f"{method}: a session begins with initialize") from None
        raise


def _resources() -> list[types.Resource]:
    said = "Counts, what waits for somebody, and a line a task, unfinished ones first."
    return [types.Resource(uri=BOARD, name="board", title="The board", description=said, mime_type="text/plain")]


def _templates() -> list[types.ResourceTemplate]:
    said = "All of one task as JSON: {task, attempts, dependencies, dependents, comments}."
    return [
        types.ResourceTemplate(
            uri_template=f"{TASK}{{id}}", name="task", title="A task", description=said, mime_type="application/json"
        )
    ]


def _prompt() -> types.Prompt:
    queue = types.PromptArgument(name="queue", description=definitions.PROMPT_QUEUE, required=False)
    return types.Prompt(
        name=definitions.PROMPT,
        title="Work the board",
        description=definitions.PROMPT_DESCRIPTION,
        arguments=[queue],
    )


def _resource(tools: Tools, uri: str) -> types.TextResourceContents:
    board = tools.board
    if uri.rstrip("/") == BOARD:
        snapshot = json.loads(board.snapshot().text)
        text = compact.board(snapshot, board.attention(), tokens=definitions.BOARD_TOKENS, warnings=tools.missing())
        return types.TextResourceContents(uri=uri, text=text, mime_type="text/plain")
    if not uri.startswith(TASK):
        raise InvalidInput(
            f"params.uri: there is no resource {uri[:200]!r}", hint=f"There are {BOARD} and {TASK}ID.", field="uri"
        )
    details = board.show(uri.removeprefix(TASK))
    return types.TextResourceContents(
        uri=uri, text=json.dumps(details, ensure_ascii=False), mime_type="application/json"
    )


def _bad_call(what: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, what)
