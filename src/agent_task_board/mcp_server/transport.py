"""Standard input and output as a stream of JSON-RPC messages that nothing else can get into.

The SDK's own transport keeps prints and children out of the stream, too. What it lacks is why this one is here: it
answers no line that it cannot read and reads endless ones, and it may end before its last answer is out, or not at all.
``docs/design.md`` has the list; what the session itself can do is left to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import re
import select
import signal
import sys
import threading

import anyio
import mcp_types as types
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from pydantic import ValidationError

from .. import inputs
from ..errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from typing import Any, NoReturn, TypeVar

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from pydantic import BaseModel

    Message = TypeVar("Message", bound=BaseModel)

LINE = 8 * 1024 * 1024
"""Bytes of a message, at most."""
EDGE = 1_024
"""Bytes at the beginning and at the end of a line that cannot be read, in which its id is looked for."""
PART = 65_536
"""Bytes that are read, and written, at once."""
GRACE = 0.7
"""Seconds that the end of input leaves to calls on their way, and to a stream that stands still."""
AHEAD = 16
"""Messages that are read ahead of the event loop."""
MOST = 1_024
"""Requests without an answer; while there are so many, no more are read."""
LAST_LINE = 0.2
"""Seconds that the end of the process leaves to a line on its way out."""
PARENT = 2.0
"""Seconds between two looks whether the client is still there."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_HANG_UP = getattr(select, "POLLRDHUP", 0)  # of a socket; that of a pipe is told unasked
_AN_ID = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")\s*'
_NO_ID = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]{0,200}"\s*'
_ID_FIRST = re.compile(rb"\s*\{\s*(?:" + _NO_ID + rb",\s*)*" + _AN_ID + rb"[,}]")
_ID_LAST = re.compile(rb",\s*" + _AN_ID + rb"(?:,\s*" + _NO_ID + rb")*\}\s*\Z")


class Overlong(bytes):
    """The beginning and the end of a line that has too many bytes, ``EDGE`` of each."""


class Channel:
    """The client's two pipes, kept where neither ``print`` nor a child process finds them."""

    def __init__(self) -> None:
        """Take standard input and output away from everybody else in this process.

        What anybody writes to standard output goes to standard error from here on, and standard input is empty.
        """
        self._in, self._out = os.dup(0), os.dup(1)  # not inherited by children
        self.moves = 0
        """How often something came in or went out."""
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

    def lines(self) -> Iterator[bytes]:
        """Yield each line of input, without its end; of one that is too long only what ``Overlong`` has."""
        pending, searched, head = bytearray(), 0, b""
        while chunk := self._chunk():
            pending += chunk
            while (end := pending.find(b"\n", searched)) >= 0:
                line, searched = bytes(pending[:end]), 0
                del pending[: end + 1]
                yield Overlong((head or line[:EDGE]) + line[-EDGE:]) if head or len(line) > LINE else line
                head = b""
            if len(pending) > LINE:
                head = head or bytes(pending[:EDGE])
            if head:
                del pending[:-EDGE]
            searched = len(pending)
        if pending:
            yield Overlong(head + pending) if head else bytes(pending)

    def _chunk(self) -> bytes:
        """Return some input; none at its end."""
        select.select([self._in], [], [])
        try:
            chunk = os.read(self._in, PART)
        except OSError:
            return b""
        self.moves += 1
        return chunk

    def write(self, line: bytes) -> None:
        """Write a whole line.

        Raises:
            OSError: nobody reads.
        """
        with self._writing:
            rest = memoryview(line)
            while rest:
                try:
                    rest = rest[os.write(self._out, rest[:PART]) :]
                except BlockingIOError:  # another program has set the pipe so
                    select.select([], [self._out], [])
                self.moves += 1

    def wait_for_the_end(self) -> bool:
        """Return once the client has closed its end of the input, read or not (``True``), or has died."""
        poll = select.poll()
        poll.register(self._in, _HANG_UP)
        while not poll.poll(PARENT * 1_000):
            if os.getppid() != self._parent:  # others may hold its pipe open
                return False
        return True

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
        on_end: is called at the end, when no call is under way.
        report: takes a fault of our own.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        on_end: Callable[[], object],
        report: Callable[[Exception], object],
    ) -> None:
        self._channel = channel
        self._on_end = on_end
        self._report = report
        self._is_ending = threading.Event()
        self._unanswered = 0
        self._changed = threading.Condition()

    @contextlib.asynccontextmanager
    async def streams(
        self,
    ) -> AsyncIterator[
        tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
    ]:
        """Give the streams of a session; they last until the process ends."""
        to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
        outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        loop = asyncio.get_running_loop()
        room = threading.BoundedSemaphore(AHEAD)

        def take(message: SessionMessage) -> None:
            room.release()
            to_session.send_nowait(message)

        def hand_over(message: SessionMessage) -> None:
            room.acquire()
            loop.call_soon_threadsafe(take, message)

        threading.Thread(target=self._read, args=(hand_over,), daemon=True, name="mcp-input").start()
        threading.Thread(target=self._watch, daemon=True, name="mcp-client").start()
        async with anyio.create_task_group() as group:
            group.start_soon(self._write, from_session)
            yield incoming, outgoing
            group.cancel_scope.cancel()

    def end(self, code: int, grace: float = 0) -> NoReturn:
        """End the process; calls on their way have ``grace`` seconds left."""
        self._is_ending.set()
        with self._changed:
            idle = self._changed.wait_for(lambda: not self._unanswered, grace)
        if idle:  # else it would wait for them
            self._on_end()
        self._channel.leave(code)

    # From the client

    def _read(self, hand_over: Callable[[SessionMessage], None]) -> NoReturn:
        try:
            for line in self._channel.lines():
                if isinstance(line, Overlong):
                    self._refuse(types.INVALID_REQUEST, f"a message has at most {LINE:,} bytes", _id_in(line))
                elif line.strip():
                    self._take(line, hand_over)
        except Exception as error:
            self._report(error)
            self.end(1)
        self.end(0, GRACE)

    def _watch(self) -> None:
        """End the process with its client, also when the reading thread stands behind answers that nobody takes."""
        if not self._channel.wait_for_the_end():
            self.end(0, GRACE)
        moves = -1
        while moves != self._channel.moves:  # what is still in the pipe is answered, as long as anything moves
            moves = self._channel.moves
            if self._is_ending.wait(GRACE):
                return
        self.end(0)

    def _take(self, line: bytes, hand_over: Callable[[SessionMessage], None]) -> None:
        """Pass a line on as a message, or refuse it."""
        try:
            message = _loads(line, twice=False)
        except _Twice as error:
            return self._refuse(types.INVALID_REQUEST, str(error), _id_of(_loads(line, twice=True)))
        except RecursionError:
            return self._refuse(types.PARSE_ERROR, "nested too deep", _id_in(line))
        except UnicodeDecodeError as error:
            return self._refuse(types.PARSE_ERROR, f"not UTF-8: {error.reason} at byte {error.start:,}", _id_in(line))
        except ValueError as error:
            return self._refuse(types.PARSE_ERROR, f"not JSON: {error}")
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
        params, metadata = message.get("params"), None
        if message.get("method") == "tools/call" and isinstance(params, dict):
            arguments = params.get("arguments", {})
            if isinstance(arguments, dict):
                # Past the SDK, which would stumble over a lone surrogate: the tools read them themselves.
                metadata = arguments
                message = {**message, "params": {**params, "arguments": {}}}
        try:
            inputs.json_text(message, "message")
            if id_ is None:
                return hand_over(SessionMessage(_checked(types.JSONRPCNotification, message)))
            request = _checked(types.JSONRPCRequest, message)
        except InvalidInput as error:
            wrong = isinstance(error, _Wrong) and error.message.startswith("params")
            return self._refuse(types.INVALID_PARAMS if wrong else types.INVALID_REQUEST, error.message, id_)
        with self._changed:
            self._changed.wait_for(lambda: self._unanswered < MOST)
            self._unanswered += 1
        return hand_over(
            SessionMessage(request, ServerMessageMetadata(request_context=metadata, on_request_unanswered=self._let_go))
        )

    def _refuse(self, code: int, what: str, id_: str | int | None = None) -> None:
        answer = {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": what}}
        self._send(_encoded(json.dumps(answer, ensure_ascii=False, separators=(",", ":"))))

    # To the client

    async def _write(self, answers: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async for answer in answers:
            message = answer.message
            self._send(message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            if isinstance(message, (types.JSONRPCResponse, types.JSONRPCError)):
                self._settle()

    async def _let_go(self) -> None:
        """Take note of a request that was cancelled, and gets no answer."""
        self._settle()

    def _settle(self) -> None:
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


class _Wrong(InvalidInput):
    """A message is not what the protocol says."""


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


def _id_in(line: bytes) -> str | int | None:
    """Return the id of a request that cannot be read, if it stands at the beginning or the end of its line."""
    found = _ID_FIRST.match(line[:EDGE]) or (_ID_LAST.search(line[-EDGE:]) if line.lstrip()[:1] == b"{" else None)
    try:
        return _id_of({"id": json.loads(found[1])}) if found else None
    except ValueError:
        return None


def _checked(model: type[Message], message: dict[str, Any]) -> Message:
    """Return a message as the SDK has it.

    Raises:
        InvalidInput: it is none; the text says in a line what is wrong, its field first.
    """
    try:
        return model.model_validate(message)
    except ValidationError as error:
        raise _Wrong(fault_of(error)) from None


def fault_of(error: ValidationError) -> str:
    """Return in a line what is wrong with a message, its field first."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(step) for step in first["loc"])
    return f"{where[:100]}: {first['msg'][:200]}"


def _encoded(text: str) -> bytes:
    return visible(text).encode() + b"\n"
