"""JSON-RPC messages over standard input and output, which no other code can read from or write to.

The SDK's own transport also keeps prints and child processes out of the stream. But it does not answer a line that it
cannot read, has no limit for a line, and may exit before its last answer is written, or not at all. ``docs/design.md``
has the list. This module leaves everything else to the SDK's session.
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

from .. import exhaustion, inputs
from ..errors import InvalidInput
from ..printable import escape_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from typing import Any, NoReturn, TypeVar

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from pydantic import BaseModel

    Message = TypeVar("Message", bound=BaseModel)

LINE_LIMIT = 8 * 1024 * 1024
"""Maximum number of bytes of a message."""
EDGE = 1_024
"""Number of bytes at the beginning and at the end of an unreadable line in which its id is searched."""
CHUNK = 65_536
"""Maximum number of bytes of one read or write."""
GRACE = 0.7
"""Seconds after the end of input for running calls, and for a stream in which nothing moves."""
READ_AHEAD = 16
"""Maximum number of messages that are read before the event loop takes them."""
UNANSWERED_LIMIT = 1_024
"""Maximum number of unanswered requests; the next one is not read before one of them is answered."""
LAST_LINE_TIMEOUT = 0.2
"""Seconds that an exiting process waits for a line that is being written."""
PARENT_INTERVAL = 2.0
"""Seconds between two checks whether the client's process still exists."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_HANG_UP = getattr(select, "POLLRDHUP", 0)  # for sockets; a pipe reports it without being asked
_AN_ID = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")\s*'
_NO_ID = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]{0,200}"\s*'
_ID_FIRST = re.compile(rb"\s*\{\s*(?:" + _NO_ID + rb",\s*)*" + _AN_ID + rb"[,}]")
_ID_LAST = re.compile(rb",\s*" + _AN_ID + rb"(?:,\s*" + _NO_ID + rb")*\}\s*\Z")


class OverlongLine(bytes):
    """The first and the last ``EDGE`` bytes of a line that exceeds the limit."""


class Channel:
    """The pipes to and from the client, which neither ``print`` nor a child process can reach."""

    def __init__(self) -> None:
        """Take over standard input and output.

        From here on, output of all other code goes to standard error, and its standard input is empty.
        """
        self._in, self._out = os.dup(0), os.dup(1)  # not inherited by child processes
        self.transfers = 0
        """The number of reads and writes so far."""
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
        """Yield each line of input without its line end; a line that is too long as an ``OverlongLine``."""
        pending, searched, head = bytearray(), 0, b""
        while chunk := self._chunk():
            pending += chunk
            while (end := pending.find(b"\n", searched)) >= 0:
                line, searched = bytes(pending[:end]), 0
                del pending[: end + 1]
                yield OverlongLine((head or line[:EDGE]) + line[-EDGE:]) if head or len(line) > LINE_LIMIT else line
                head = b""
            if len(pending) > LINE_LIMIT:
                head = head or bytes(pending[:EDGE])
            if head:
                del pending[:-EDGE]
            searched = len(pending)
        if pending:
            yield OverlongLine(head + pending) if head else bytes(pending)

    def _chunk(self) -> bytes:
        """Return the next bytes of input; empty at its end."""
        select.select([self._in], [], [])
        try:
            chunk = os.read(self._in, CHUNK)
        except OSError:
            return b""
        self.transfers += 1
        return chunk

    def write(self, line: bytes) -> None:
        """Write a whole line.

        Raises:
            OSError: the client has closed its end.
        """
        with self._writing:
            rest = memoryview(line)
            while rest:
                try:
                    rest = rest[os.write(self._out, rest[:CHUNK]) :]
                except BlockingIOError:  # another program has made the pipe non-blocking
                    select.select([], [self._out], [])
                self.transfers += 1

    def wait_for_end(self) -> bool:
        """Wait until the client has closed the input (``True``; unread input may be left) or its process has ended."""
        poll = select.poll()
        poll.register(self._in, _HANG_UP)
        while not poll.poll(PARENT_INTERVAL * 1_000):
            if os.getppid() != self._parent:  # another process may keep its pipe open
                return False
        return True

    def exit(self, code: int) -> NoReturn:
        """End the process, even if its threads are still waiting for something."""
        self._writing.acquire(timeout=LAST_LINE_TIMEOUT)  # do not cut a line in two, unless the client does not read it
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed or missing
            sys.stderr.flush()
        os._exit(code)


class Transport:
    """Passes messages to the SDK's session, and its answers to the client.

    Args:
        channel: the pipes to and from the client.
        on_end: called before the process ends, unless a call is still running.
        report: receives each unexpected exception.
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
        """Return a context manager: the streams of a session, which last until the process ends."""
        to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
        outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        loop = asyncio.get_running_loop()
        free = threading.BoundedSemaphore(READ_AHEAD)

        def receive(message: SessionMessage) -> None:
            free.release()
            to_session.send_nowait(message)

        def deliver(message: SessionMessage) -> None:
            free.acquire()
            loop.call_soon_threadsafe(receive, message)

        threading.Thread(target=self._read, args=(deliver,), daemon=True, name="mcp-input").start()
        threading.Thread(target=self._watch, daemon=True, name="mcp-client").start()
        async with anyio.create_task_group() as group:
            group.start_soon(self._write, from_session)
            yield incoming, outgoing
            group.cancel_scope.cancel()

    def end(self, code: int, grace: float = 0) -> NoReturn:
        """End the process; running calls have ``grace`` seconds to finish."""
        self._is_ending.set()
        with self._changed:
            idle = self._changed.wait_for(lambda: not self._unanswered, grace)
        if idle:  # otherwise, closing the board would wait for the calls
            self._on_end()
        self._channel.exit(code)

    # From the client

    def _read(self, deliver: Callable[[SessionMessage], None]) -> NoReturn:
        try:
            for line in self._channel.lines():
                if isinstance(line, OverlongLine):
                    self._refuse(
                        types.INVALID_REQUEST, f"message is too long (limit {LINE_LIMIT:,} bytes)", _id_in(line)
                    )
                elif line.strip():
                    self._handle(line, deliver)
        except Exception as error:
            self._report(error)
            self.end(1)
        self.end(0, GRACE)

    def _watch(self) -> None:
        """End the process when the client ends, even if the reading thread is blocked by answers that nobody reads."""
        if not self._channel.wait_for_end():
            self.end(0, GRACE)
        transfers = -1
        while transfers != self._channel.transfers:  # requests left in the pipe are answered while anything moves
            transfers = self._channel.transfers
            if self._is_ending.wait(GRACE):
                return
        self.end(0)

    def _handle(self, line: bytes, deliver: Callable[[SessionMessage], None]) -> None:
        """Deliver the message in a line, or refuse it."""
        try:
            message = _loads(line)
        except inputs.RepeatedKey as error:
            return self._refuse(types.INVALID_REQUEST, str(error), _id_of(_loads(line, allow_duplicates=True)))
        except RecursionError:
            return self._refuse(types.PARSE_ERROR, "nested too deeply", _id_in(line))
        except MemoryError as error:
            return self._refuse(types.INTERNAL_ERROR, str(exhaustion.refusal(error)), _id_in(line))
        except UnicodeDecodeError as error:
            return self._refuse(types.PARSE_ERROR, f"not UTF-8: {error.reason} at byte {error.start:,}", _id_in(line))
        except ValueError as error:
            return self._refuse(types.PARSE_ERROR, f"not JSON: {error}")
        if not isinstance(message, dict):
            reason = "batches are not supported" if isinstance(message, list) else "message is not an object"
            return self._refuse(types.INVALID_REQUEST, reason)
        if "method" in message or not (
            "result" in message or "error" in message
        ):  # an answer is ignored: the server asks the client nothing
            self._deliver_or_refuse(message, deliver)
        return None

    def _deliver_or_refuse(self, message: dict[str, Any], deliver: Callable[[SessionMessage], None]) -> None:
        id_ = _id_of(message)
        if "id" in message and id_ is None:
            return self._refuse(types.INVALID_REQUEST, "id: must be a string or an integer")
        params, metadata = message.get("params"), None
        if message.get("method") == "tools/call" and isinstance(params, dict):
            arguments = params.get("arguments", {})
            if isinstance(arguments, dict):
                # Not through the SDK, which fails on a lone surrogate: the tools validate the arguments themselves.
                metadata = arguments
                message = {**message, "params": {**params, "arguments": {}}}
        try:
            inputs.json_text(message, "message")
            if id_ is None:
                return deliver(SessionMessage(_checked(types.JSONRPCNotification, message)))
            request = _checked(types.JSONRPCRequest, message)
        except InvalidInput as error:
            in_params = isinstance(error, _InvalidMessage) and error.message.startswith("params")
            return self._refuse(types.INVALID_PARAMS if in_params else types.INVALID_REQUEST, error.message, id_)
        with self._changed:
            self._changed.wait_for(lambda: self._unanswered < UNANSWERED_LIMIT)
            self._unanswered += 1
        return deliver(
            SessionMessage(
                request,
                ServerMessageMetadata(request_context=metadata, on_request_unanswered=self._on_request_unanswered),
            )
        )

    def _refuse(self, code: int, message: str, id_: str | int | None = None) -> None:
        answer = {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}
        self._send(_encoded(escape_json(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))))

    # To the client

    async def _write(self, answers: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async for answer in answers:
            message = answer.message
            self._send(escape_json(message.model_dump_json(by_alias=True, exclude_unset=True)).encode() + b"\n")
            if isinstance(message, (types.JSONRPCResponse, types.JSONRPCError)):
                self._settle()

    async def _on_request_unanswered(self) -> None:
        """Count a cancelled request as settled; it gets no answer."""
        self._settle()

    def _settle(self) -> None:
        with self._changed:
            self._unanswered -= 1
            self._changed.notify_all()

    def _send(self, line: bytes) -> None:
        try:
            self._channel.write(line)
        except OSError:  # the client has gone
            self._channel.exit(0)


class _InvalidMessage(InvalidInput):
    """A message violates the protocol."""


def without_surrogates(text: str) -> str:
    """Return a text that can be written as UTF-8, with lone surrogates replaced."""
    return _SURROGATE.sub("\ufffd", text)


def end_on_signals(end: Callable[[int], object]) -> None:
    """Call ``end`` with the conventional exit code on SIGTERM and SIGINT, in a separate thread.

    A signal handler interrupts the main thread anywhere: it could wait for a lock that the main thread itself holds.
    """

    def handle(number: int, _: object) -> None:
        threading.Thread(target=end, args=(128 + number,), daemon=True).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def _loads(line: bytes, *, allow_duplicates: bool = False) -> Any:
    """Parse JSON; numbers out of range stay out of range, so that a later check can refuse the field by name."""
    to_object = dict if allow_duplicates else inputs.json_object
    # int() raises a different error for thousands of digits; 25 digits already exceed 64 bits.
    return json.loads(line.decode(), object_pairs_hook=to_object, parse_int=lambda digits: int(digits[:25]))


def _id_of(message: Any) -> str | int | None:
    """Return the id of a message, or ``None`` if an answer cannot carry it."""
    id_ = message.get("id") if isinstance(message, dict) else None
    if isinstance(id_, bool) or not isinstance(id_, (str, int)):
        return None
    return None if isinstance(id_, str) and _SURROGATE.search(id_) else id_


def _id_in(line: bytes) -> str | int | None:
    """Return the id of an unreadable request, if it is at the beginning or the end of the line."""
    found = _ID_FIRST.match(line[:EDGE]) or (_ID_LAST.search(line[-EDGE:]) if line.lstrip()[:1] == b"{" else None)
    try:
        return _id_of({"id": json.loads(found[1])}) if found else None
    except ValueError:
        return None


def _checked(model: type[Message], message: dict[str, Any]) -> Message:
    """Return a message as a model of the SDK.

    Raises:
        InvalidInput: the message is invalid; the text is one line that begins with the field.
    """
    try:
        return model.model_validate(message)
    except ValidationError as error:
        raise _InvalidMessage(first_error(error)) from None


def first_error(error: ValidationError) -> str:
    """Return the first error of a message in one line that begins with the field."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(step) for step in first["loc"])
    return f"{where[:100]}: {first['msg'][:200]}"


def _encoded(text: str) -> bytes:
    return without_surrogates(text).encode() + b"\n"
