"""The server: the tools, two resources and a prompt, on the SDK's low-level server.

It serves clients of both eras of the protocol: those that begin a session with ``initialize``, and those of 2026-07-28,
whose every request names its protocol version and its client. The SDK recognizes the era by the first request.
"""

from __future__ import annotations

import contextvars
import functools
import itertools
import json
import logging
import os
import sys
import threading
import traceback

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from .. import exhaustion, inputs
from .._version import __version__
from ..errors import BoardError, Busy, InvalidInput
from ..instants import SECOND
from ..printable import escape_json, is_visible
from ..text import compact
from . import definitions
from .tools import Answer, Tools, refusal
from .transport import Channel, Transport, end_on_signals, first_error, without_surrogates

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
"""The error code for a missing resource in protocols with ``initialize``; later protocols have none."""

READERS, WRITERS, WAITERS = 8, 16, 16
"""Maximum numbers of threads: for calls that only read, for calls that may wait for the write lock, and for calls that
wait for something to happen."""
LEAST_THREADS = 3
"""Threads without which the server does not start: one of each kind."""
PROGRESS_INTERVAL = 15
"""Seconds between the progress notifications of a call that waits."""
PENDING_LIMIT = 256
"""Maximum number of unfinished calls that write, including those in threads; further ones are refused as busy."""
LOG_LIMIT = 300
"""Maximum number of characters of a log line of the SDK, which would quote whole messages."""

_log = logging.getLogger(__name__)


class Identity:
    """The agent name of a client: the configured one, else the client's own name with a random suffix."""

    def __init__(self, given: str | None) -> None:
        self._given = given
        self._suffix = os.urandom(2).hex()
        self._generated = functools.lru_cache(maxsize=64)(self._generate)

    def name(self, client: object) -> str:
        """Return the agent name of a client, given its own name; it stays the same while the process runs."""
        return self._given or self._generated(client if isinstance(client, str) else "")

    def _generate(self, client: str) -> str:
        plain = "".join(char for char in client if is_visible(char) and char not in "\n\t")
        plain = plain[: inputs.NAME - len(self._suffix) - 1].strip()
        try:
            return inputs.agent_name(f"{plain or 'mcp'}-{self._suffix}", "client")
        except InvalidInput:
            return f"mcp-{self._suffix}"


class WorkerThreads:
    """Threads for calls: the server answers pings during a call, and reads while writes wait for the write lock.

    Args:
        patience: seconds that a write waits for a thread before it is refused as busy.
        threads: how many there can be; with few, each kind of call gets fewer.
    """

    def __init__(self, patience: float, threads: int) -> None:
        self._pending = 0
        self._patience = patience
        self.readers = max(1, min(READERS, threads // 4))
        self.waiters = max(1, min(WAITERS, threads // 4))
        self.writers = max(1, min(WRITERS, threads - self.readers - self.waiters))

    @functools.cached_property
    def _readers(self) -> anyio.CapacityLimiter:  # must be created in the event loop, like the next three
        return anyio.CapacityLimiter(self.readers)

    @functools.cached_property
    def _writers(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(self.writers)

    @functools.cached_property
    def _waiters(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(self.waiters)

    @functools.cached_property
    def _turns(self) -> anyio.Semaphore:
        return anyio.Semaphore(self.writers)

    async def read(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function that only reads in a thread; a cancelled call ends when the function has returned."""
        return await anyio.to_thread.run_sync(function, *arguments, limiter=self._readers)

    def refuse_wait(self) -> None:
        """Refuse one more call that waits for something to happen, if no thread is free for it.

        Raises:
            Busy: none is free.
        """
        if self._waiters.borrowed_tokens >= self.waiters:
            raise Busy(f"too many calls wait (limit {self.waiters})")

    async def wait(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function that waits for something to happen; if the call is cancelled, it goes on alone."""
        return await anyio.to_thread.run_sync(function, *arguments, limiter=self._waiters, abandon_on_cancel=True)

    async def write(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function that may wait for the write lock in a thread.

        Raises:
            Busy: too many calls are waiting, or this one has waited too long; it has not started.
        """
        if self._pending >= PENDING_LIMIT:
            raise Busy(f"too many calls are waiting for the write lock (limit {PENDING_LIMIT})")
        self._pending += 1
        try:
            with anyio.move_on_after(self._patience) as scope:
                await self._turns.acquire()
            if scope.cancelled_caught:
                raise Busy("earlier calls are still waiting for the write lock")
            try:
                return await anyio.to_thread.run_sync(function, *arguments, limiter=self._writers)
            finally:
                self._turns.release()
        finally:
            self._pending -= 1


class ShortLines(logging.Formatter):
    """A formatter that shortens the SDK's log messages to one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, followed by the traceback if there is one."""
        record.msg, record.args = " ".join(record.getMessage()[:LOG_LIMIT].split()), None
        return without_surrogates(super().format(record))


def serve(board: Board, *, agent: str | None = None, read_only: bool = False, quiet: bool = False) -> NoReturn:
    """Serve one client over standard input and output, and end the process when it disconnects.

    Args:
        board: the board.
        agent: who acts if a call names no agent; by default, the client's name with a random suffix.
        read_only: offer only read-only tools.
        quiet: write nothing to standard error.

    Raises:
        Unusable: the process may open too few files.
    """
    threads = exhaustion.threads(READERS + WRITERS + WAITERS, LEAST_THREADS)  # before standard output is taken over
    if quiet:
        logging.disable(logging.CRITICAL)
    handler = logging.StreamHandler()
    handler.setFormatter(ShortLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    channel = Channel()
    report: Callable[[Exception], object] = repr if quiet else traceback.print_exception
    tools = Tools(
        board, _caller.get, pause=lambda seconds: _end_of_call.get().wait(seconds), read_only=read_only, report=report
    )
    workers = WorkerThreads(board.settings.busy_timeout / SECOND, threads)
    server = _server(tools, Identity(agent), workers, read_only=read_only)
    transport = Transport(channel, on_end=board.close, report=report)
    end_on_signals(transport.end)

    async def run() -> None:
        async with transport.streams() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    try:
        anyio.run(run)
    except Exception as error:
        known = exhaustion.refusal(error)
        if known is not None:
            if not quiet:
                sys.stderr.write(f"{known.code}: {known.message}\n{known.hint}\n")
            channel.exit(known.exit_code)
        report(error)
    channel.exit(BoardError.exit_code)


_caller: contextvars.ContextVar[str] = contextvars.ContextVar("caller")
"""The agent name of the client that sent the current request."""
_end_of_call: contextvars.ContextVar[threading.Event] = contextvars.ContextVar("end_of_call")
"""Set when the current request is over, also for a thread that still waits for it."""


def _server(tools: Tools, identity: Identity, workers: WorkerThreads, *, read_only: bool) -> Server[Any]:
    offered = [types.Tool.model_validate(tool.to_dict()) for tool in tools.offered()]
    resources, templates, prompts = _resources(), _templates(), [] if read_only else [_prompt()]

    def caller(context: Context) -> str:
        client = context.session.client_params  # from `initialize`, or from this request
        return identity.name(client and client.client_info.name)

    async def list_tools(_: Context, __: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=offered)

    async def call_tool(context: Context, call: types.CallToolRequestParams) -> types.CallToolResult:
        _caller.set(caller(context))
        tool = definitions.TOOLS.get(call.name)
        given = context.request or {}
        start = workers.read if tool is None or tool.reads else workers.write
        if tools.waits(call.name, given):
            start = functools.partial(_start_waiting, workers, context)
        try:
            answer = await start(tools.call, call.name, given)
        except Busy as error:
            answer = refusal(error)
        text = types.TextContent(type="text", text=without_surrogates(answer.text))
        return types.CallToolResult(content=[text], is_error=answer.is_refusal)

    async def list_resources(_: Context, __: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=resources)

    async def list_resource_templates(_: Context, __: object) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(context: Context, wanted: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        try:
            return types.ReadResourceResult(contents=[await workers.read(_resource, tools, wanted.uri)])
        except Exception as fault:
            error = exhaustion.refusal(fault) or fault
            if not isinstance(error, BoardError):
                raise
            codes = {"not_found": NOT_FOUND, "invalid_input": types.INVALID_PARAMS}
            if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                codes["not_found"] = types.INVALID_PARAMS
            code = codes.get(error.code, types.INTERNAL_ERROR)
            raise MCPError(code, error.message, error.to_dict()) from None

    # A read-only server has no prompt: there is nothing to work on.
    async def list_prompts(_: Context, __: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(_: Context, wanted: types.GetPromptRequestParams) -> types.GetPromptResult:
        given = wanted.arguments or {}
        if read_only or wanted.name != definitions.PROMPT:
            known = "" if read_only else f" (known: {definitions.PROMPT})"
            raise _invalid_params(f"there is no prompt {wanted.name[:60]!r}{known}")
        if given.keys() - {"queue"}:
            raise _invalid_params(f"{definitions.PROMPT}: the only argument is queue")
        try:
            queue = inputs.name(given["queue"], "queue") if given.get("queue") else None
        except InvalidInput as error:
            raise _invalid_params(error.message) from None
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
        """Add the instructions for this client to the answer to ``initialize``."""
        result = await call_next(ctx)
        if ctx.method != "initialize" or not isinstance(result, dict):
            return result
        client = identity.name((ctx.params or {})["clientInfo"]["name"])  # already validated
        return {**result, "instructions": definitions.instructions(client, read_only=read_only)}

    server.add_request_handler("server/discover", types.RequestParams, discover)
    server.middleware[:] = [_explain, initialize]  # without the SDK's telemetry, which nothing here collects
    return server


async def _start_waiting(
    workers: WorkerThreads, context: Context, function: Callable[..., Answer], *arguments: Any
) -> Answer:
    """Run a call that waits in a thread of its own kind, report progress, and end it when the client cancels it.

    Raises:
        Busy: too many calls wait.
    """
    workers.refuse_wait()
    ended = threading.Event()
    _end_of_call.set(ended)

    async def report() -> None:
        for beat in itertools.count(1):
            await anyio.sleep(PROGRESS_INTERVAL)
            await context.session.report_progress(beat * PROGRESS_INTERVAL, message="waiting")

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(report)
            answer: Answer = await workers.wait(function, *arguments)
            group.cancel_scope.cancel()
    finally:
        ended.set()
    return answer


async def _explain(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Name the error of a request or notification in one line; the SDK says only that it is invalid."""
    method = ctx.method
    if ctx.request_id is None:
        try:
            methods.validate_client_notification(method, ctx.protocol_version, ctx.params)
        except KeyError:
            return None
        except ValidationError as error:
            _log.warning("%s ignored: %s", method, first_error(error))
            return None
        return await call_next(ctx)
    try:
        return await call_next(ctx)
    except ValidationError as error:
        raise _invalid_params(first_error(error)) from None
    except MCPError as error:
        if error.code == types.METHOD_NOT_FOUND:
            raise MCPError(error.code, f"there is no method {method[:60]!r}") from None
        if error.code == types.INVALID_PARAMS and error.data == "":  # the SDK refuses requests before `initialize`
            raise _invalid_params(f"{method}: a session must begin with initialize") from None
        raise


def _resources() -> list[types.Resource]:
    text = "Counts, what needs attention, and one line per task, unfinished tasks first."
    return [types.Resource(uri=BOARD, name="board", title="The board", description=text, mime_type="text/plain")]


def _templates() -> list[types.ResourceTemplate]:
    text = "One task in full, as JSON: {task, attempts, dependencies, dependents, comments}."
    return [
        types.ResourceTemplate(
            uri_template=f"{TASK}{{id}}", name="task", title="A task", description=text, mime_type="application/json"
        )
    ]


def _prompt() -> types.Prompt:
    queue = types.PromptArgument(name="queue", description=definitions.PROMPT_QUEUE, required=False)
    return types.Prompt(
        name=definitions.PROMPT,
        title="Work on the board",
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
            f"params.uri: there is no resource {uri[:200]!r}", hint=f"Known resources: {BOARD}, {TASK}ID.", field="uri"
        )
    details = board.show(uri.removeprefix(TASK))
    return types.TextResourceContents(
        uri=uri, text=escape_json(json.dumps(details, ensure_ascii=False)), mime_type="application/json"
    )


def _invalid_params(message: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, message)
