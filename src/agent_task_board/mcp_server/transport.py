"""Standard input and output as a stream of JSON-RPC messages that nothing else can get into.

Not the SDK's own: there a call of ``print``, or a child process, writes into the stream, one byte that is not UTF-8 or
one lone surrogate ends the server, and an interrupt waits for the next line of input.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import select
import signal
import sys
import threading

import anyio
from mcp import types
from mcp.shared.message import ServerMessageMetadata, SessionMessage

from .. import inputs
from ..errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from typing import Any, NoReturn

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

LINE = 8 * 1024 * 1024
"""Bytes of a message, at most."""
GRACE = 0.7
"""Seconds that the end of input leaves to calls on their way."""
LAST_LINE = 0.2
"""Seconds that the end of the process leaves to a line on its way out."""
PARENT = 2.0
"""Seconds between two looks whether the client is still there."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class Channel:
    """The client's two pipes, kept where neither ``print`` nor a child process finds them."""

    def __init__(self) -> None:
        """Take standard input and output away from everybody else in this process.

        What anybody writes to standard output goes to standard error from here on, and standard input is empty.
        """
        self._in, self._out = os.dup(0), os.dup(1)  # not inherited by children
        self._parent = os.getppid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # started without standard error
            os.dup2(nowhere, 1)
        os.close(nowhere)
        sys.stdout = sys.stderr
        self._writing = threading.Lock()

    def lines(self) -> Iterator[bytes | None]:
        """Yield each line of input; ``None`` stands for one that was too long. Ends when the client does."""
        pending, searched, skipping = bytearray(), 0, False
        while chunk := self._chunk():
            pending += chunk
            while (end := pending.find(b"\n", searched)) >= 0:
                line, searched = bytes(pending[:end]), 0
                del pending[: end + 1]
                if not skipping:
                    yield line if len(line) <= LINE else None
                skipping = False
            searched = len(pending)
            if searched > LINE:
                if not skipping:
                    yield None
                skipping, searched = True, 0
                pending.clear()
        if pending and not skipping:
            yield bytes(pending)

    def _chunk(self) -> bytes:
        """Return some input; none at its end, or when the client has died and only others hold its pipe open."""
        while not select.select([self._in], [], [], PARENT)[0]:
            if os.getppid() != self._parent:
                return b""
        try:
            return os.read(self._in, 65_536)
        except OSError:
            return b""

    def write(self, line: bytes) -> None:
        """Write a whole line.

        Raises:
            OSError: nobody reads.
        """
        with self._writing:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._out, rest) :]

    def leave(self, code: int) -> NoReturn:
        """End the process, whatever its threads still wait for."""
        self._writing.acquire(timeout=LAST_LINE)  # a line is not cut in two, unless nobody takes it
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or not there at all
            sys.stderr.flush()
        os._exit(code)


class Transport:
    """Messages for the SDK's session, and its answers.

    Args:
        channel: the client's pipes.
        methods: the requests that the server knows.
        on_request: is told each of them before the session is.
        on_end: is called at the end, when no call is under way.
        report: takes a fault of our own.
    """

    def __init__(
        self,
        channel: Channel,
        methods: frozenset[str],
        *,
        on_request: Callable[[str, dict[str, Any]], object],
        on_end: Callable[[], object],
        report: Callable[[Exception], object],
    ) -> None:
        self._channel = channel
        self._methods = methods
        self._on_request = on_request
        self._on_end = on_end
        self._report = report
        self._unanswered = 0
        self._changed = threading.Condition()

    @contextlib.asynccontextmanager
    async def streams(
        self,
    ) -> AsyncIterator[
        tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
    ]:
        """Give the streams of a session; they last until the process ends."""
        to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](16)
        outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        loop = asyncio.get_running_loop()

        def hand_over(message: SessionMessage) -> None:
            asyncio.run_coroutine_threadsafe(to_session.send(message), loop).result()

        threading.Thread(target=self._read, args=(hand_over,), daemon=True, name="mcp-input").start()
        async with anyio.create_task_group() as group:
            group.start_soon(self._write, from_session)
            yield incoming, outgoing
            group.cancel_scope.cancel()

    def end(self, code: int, grace: float = 0) -> NoReturn:
        """End the process; calls on their way have ``grace`` seconds left."""
        with self._changed:
            idle = self._changed.wait_for(lambda: not self._unanswered, grace)
        if idle:  # else it would wait for them
            self._on_end()
        self._channel.leave(code)

    # From the client

    def _read(self, hand_over: Callable[[SessionMessage], None]) -> NoReturn:
        try:
            for line in self._channel.lines():
                if line is None:
                    self._refuse(types.INVALID_REQUEST, f"a message has at most {LINE:,} bytes")
                elif line.strip():
                    self._take(line, hand_over)
        except Exception as error:
            self._report(error)
            self.end(1)
        self.end(0, GRACE)

    def _take(self, line: bytes, hand_over: Callable[[SessionMessage], None]) -> None:
        """Pass a line on as a message, or refuse it."""
        try:
            message = _loads(line, twice=False)
        except _Twice as error:
            return self._refuse(types.INVALID_REQUEST, str(error), _id_of(_loads(line, twice=True)))
        except RecursionError:
            return self._refuse(types.PARSE_ERROR, "nested too deep")
        except ValueError as error:  # not UTF-8, or not JSON
            return self._refuse(types.PARSE_ERROR, f"not JSON in UTF-8: {error}")
        if not isinstance(message, dict):
            what = "a batch of messages is not supported" if isinstance(message, list) else "a message is an object"
            return self._refuse(types.INVALID_REQUEST, what)
        if "method" in message or not ("result" in message or "error" in message):  # nothing was asked of the client
            self._pass_on(message, hand_over)
        return None

    def _pass_on(self, message: dict[str, Any], hand_over: Callable[[SessionMessage], None]) -> None:
        """Give a message to the session, or refuse it."""
        id_ = _id_of(message)
        if "id" in message and id_ is None:
            return self._refuse(types.INVALID_REQUEST, "id: must be text or a whole number")
        method, params = message.get("method"), message.get("params", {})
        metadata = None
        if method == "tools/call" and isinstance(params, dict) and isinstance(params.get("arguments"), dict):
            # Past the SDK, which would stumble over a lone surrogate: the tools read them themselves.
            metadata = ServerMessageMetadata(request_context=params["arguments"])
            message = {**message, "params": {**params, "arguments": {}}}
        try:
            inputs.json_text(message, "message")
            known = types.JSONRPCMessage.model_validate(message)
        except InvalidInput as error:
            return self._refuse(types.INVALID_REQUEST, error.message, id_)
        except ValueError:
            return self._refuse(types.INVALID_REQUEST, "not a JSON-RPC 2.0 message", id_)
        if id_ is not None:
            if method not in self._methods:
                return self._refuse(types.METHOD_NOT_FOUND, f"there is no method {str(method)[:60]!r}", id_)
            self._on_request(str(method), params if isinstance(params, dict) else {})
            with self._changed:
                self._unanswered += 1
        return hand_over(SessionMessage(known, metadata))

    def _refuse(self, code: int, what: str, id_: str | int | None = None) -> None:
        answer = {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": what}}
        self._send(_encoded(json.dumps(answer, ensure_ascii=False, separators=(",", ":"))))

    # To the client

    async def _write(self, answers: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async for answer in answers:
            message = answer.message
            self._send(message.model_dump_json(by_alias=True, exclude_none=True).encode() + b"\n")
            if isinstance(message.root, (types.JSONRPCResponse, types.JSONRPCError)):
                with self._changed:
                    self._unanswered -= 1
                    self._changed.notify_all()

    def _send(self, line: bytes) -> None:
        try:
            self._channel.write(line)
        except OSError:  # the client has gone
            self._channel.leave(0)


class _Twice(ValueError):
    """An object has a key twice."""


def visible(text: str) -> str:
    """Return a text that can be written as UTF-8: without lone surrogates."""
    return _SURROGATE.sub("\ufffd", text)


def leave_on_signals(leave: Callable[[int], object]) -> None:
    """Call ``leave`` with the conventional exit code on SIGTERM and SIGINT, in a thread of its own.

    A handler runs in the main thread, between any two steps of it: there it could wait for a lock of that very thread.
    """

    def handle(number: int, _: object) -> None:
        threading.Thread(target=leave, args=(128 + number,), daemon=True).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def _loads(line: bytes, *, twice: bool) -> Any:
    """Read JSON; numbers beyond what JSON may hold stay so, for whoever checks the value to refuse by name."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs) and not twice:
            raise _Twice("an object has a key twice")
        return found

    # int() refuses thousands of digits with an error of its own; twenty-five are beyond 64 bits already.
    return json.loads(line.decode(), object_pairs_hook=once, parse_int=lambda digits: int(digits[:25]))


def _id_of(message: Any) -> str | int | None:
    """Return the id of a request that can be answered by it."""
    id_ = message.get("id") if isinstance(message, dict) else None
    if isinstance(id_, bool) or not isinstance(id_, (str, int)):
        return None
    return None if isinstance(id_, str) and _SURROGATE.search(id_) else id_


def _encoded(text: str) -> bytes:
    return visible(text).encode() + b"\n"
