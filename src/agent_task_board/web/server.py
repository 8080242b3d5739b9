"""The server: accepts connections, one thread each, and handles requests.

``http.server`` provides the listening socket and the threads. Its parser is too lenient for a server that browsers can
reach, so ``wire.py`` parses requests.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import socket
import sys
import threading
import time
from http.server import ThreadingHTTPServer

from .. import exhaustion, inputs
from ..errors import Busy, InvalidInput, NotFound, NotPermitted, Unusable
from ..printable import escape_line
from . import addresses, documentation, fields, openapi, pages, routes, security, stream
from .access import Access
from .api import Api, Call
from .connection import Connection
from .messages import JSON, BadRequest, Response
from .room import LargeAnswers
from .wire import Disconnected, Wire, body_length

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ..service import Board
    from .messages import Head
    from .routes import Route

CONNECTION_LIMIT = 256
"""Maximum number of open connections, if the process may open enough files."""
LEAST_CONNECTIONS = 3
"""Connections without which the server does not start: a stream, a request that waits, and any other request."""
WAITING_LIMIT = 64
"""Maximum number of requests that wait for something to happen, and at most a quarter of the connections."""
PLACE_TIMEOUT = 0.5
"""Seconds that a connection waits for a place: an answered request keeps its own for a moment."""
ARRIVING_LIMIT = 16
"""Most connections that wait for a place."""
REFUSALS_AT_ONCE = 16
"""Most connections of other users that are answered at the same time."""
GRACE = 2.0
"""Seconds that a stopping server gives running requests to finish."""


class Server(ThreadingHTTPServer):
    """A board that listens on one address.

    Args:
        board: the board; its actor is that of requests that name none. The caller closes it.
        host: the address to listen on; of a name, the first address that it resolves to.
        port: the port; 0 selects a free one.
        read_only: refuse every write.
        allow_remote: allow an address that other machines can reach.
        allow_hosts: further accepted hosts, ``HOST`` or ``HOST:PORT``.
        allow_users: further users of this machine whose processes may connect, by name or number.
        auth: ask for a key or a session; always so for an address that other machines can reach.
        log: receives a line for every write and every refusal; by default, lines are discarded.

    Raises:
        NotPermitted: the address is not a loopback address, and ``allow_remote`` is false.
        Unusable: the server cannot listen on the address, or may open too few files.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 512
    allow_reuse_address = True

    def __init__(
        self,
        board: Board,
        *,
        host: str,
        port: int,
        read_only: bool = False,
        allow_remote: bool = False,
        allow_hosts: Iterable[str] = (),
        allow_users: Iterable[str] = (),
        auth: bool = False,
        log: Callable[[str], object] | None = None,
    ) -> None:
        self.api = Api(board, read_only=read_only)
        self._log = log
        self.pages = pages.load()
        self.routes = routes.table()
        self.stopping = threading.Event()
        self.connection_limit = exhaustion.threads(CONNECTION_LIMIT, LEAST_CONNECTIONS)
        self.stream_limit = min(stream.STREAM_LIMIT, self.connection_limit // 2)  # the rest is for other requests
        self._streams = threading.Semaphore(self.stream_limit)
        self.large = LargeAnswers()
        """The places of answers that are large."""
        self.turning_away = threading.BoundedSemaphore(REFUSALS_AT_ONCE)
        """Taken while a connection of another user is told why; beyond that, such connections are closed."""
        self.waiting_limit = min(WAITING_LIMIT, max(1, self.connection_limit // 4))
        self._waiting = threading.Semaphore(self.waiting_limit)
        self._open: dict[Connection, float] = {}
        self._changed = threading.Condition(threading.Lock())
        """Guards ``_open``; notified when a connection leaves it or becomes idle."""
        self._arriving = 0
        """Connections that wait for a place."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, _, _, _, address = found[0]
            self.is_remote = not security.is_loopback(str(address[0]))
            if self.is_remote and not allow_remote:
                raise NotPermitted(
                    f"not a loopback address: {host}",
                    hint="Listen on 127.0.0.1, or add --allow-remote: other machines can then reach the server, and "
                    "every request needs a key or a session.",
                )
            self.access = Access(board, allow_users=allow_users, asks=auth or self.is_remote)
            self.address_family = family
            super().__init__(address[:2], Connection)  # type: ignore[arg-type]
        except (OSError, UnicodeError) as error:
            raise Unusable(
                f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}",
                hint="If another program uses the port, choose another --port, or 0 for any free one.",
            ) from error
        try:
            self.hosts = security.Hosts(self.server_address[1], str(address[0]), allow_hosts)
        except InvalidInput:
            self.server_close()
            raise

    def log(self, line: str) -> None:
        """Write a line to the log, if there is one."""
        if self._log is not None:
            self._log(line)

    @property
    def urls(self) -> list[str]:
        """The addresses of the page that answer, the best one first."""
        host, port = str(self.server_address[0]), self.server_address[1]
        found = addresses.reachable(self.address_family) if self.hosts.is_any else [host]
        return [f"http://{security.bracketed(address)}:{port}/" for address in found]

    @property
    def url(self) -> str:
        """The best of these addresses."""
        return self.urls[0]

    def server_bind(self) -> None:
        """Bind the socket, without the DNS lookup of the standard library."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()[:2]

    def server_close(self) -> None:
        """Close the listening socket."""
        self.access.close()
        super().server_close()

    def run(self, *, pause: float = 0.5) -> None:
        """Serve until a signal handler raises an exception or another thread calls ``shutdown()``.

        ``shutdown()`` takes effect within ``pause`` seconds.
        """
        self.api.deliver_hooks()  # notifications left over from an earlier server or a killed command
        try:
            self.serve_forever(poll_interval=pause)
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop accepting connections, end the streams, and wait up to ``GRACE`` seconds for running requests.

        A request that waits for the write lock may still be running afterwards; it has changed nothing.
        """
        self.stopping.set()
        self.server_close()
        deadline = time.monotonic() + GRACE
        while self._open and time.monotonic() < deadline:
            with self._changed:
                for connection in self._open:
                    if connection.is_waiting:
                        connection.hang_up()
            time.sleep(0.02)

    # Connections

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection. If no file descriptor is free, close an idle connection to avoid a busy loop."""
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                with self._changed:
                    self._make_room()
                self.stopping.wait(0.05)
            raise

    def _make_room(self) -> bool:
        waiting = [connection for connection in self._open if connection.is_waiting]
        oldest = min(waiting, key=self._open.__getitem__, default=None)
        if oldest is None:
            return False
        del self._open[oldest]
        oldest.hang_up()
        return True

    def register(self, connection: Connection) -> None:
        """Register a connection. At the limit, close the connection that has been idle longest.

        Raises:
            Busy: no connection is idle for a while, or many wait for that already.
        """
        with self._changed:
            if not (self._has_room() or self._waits_for_room()):
                raise Busy(f"too many connections (limit {self.connection_limit})")
            self._open[connection] = time.monotonic()

    def _has_room(self) -> bool:
        return len(self._open) < self.connection_limit or self._make_room()

    def _waits_for_room(self) -> bool:
        """Wait for a place, unless many do; return whether there is one."""
        if self._arriving >= min(ARRIVING_LIMIT, self.connection_limit):
            return False
        self._arriving += 1
        try:
            return self._changed.wait_for(self._has_room, PLACE_TIMEOUT)
        finally:
            self._arriving -= 1

    def set_waiting(self, connection: Connection, is_waiting: bool) -> None:
        """Record whether a connection is waiting for a request or handling one.

        Raises:
            Disconnected: the connection was closed to make room for another.
        """
        with self._changed:
            if connection not in self._open:
                raise Disconnected
            connection.is_waiting = is_waiting
            if is_waiting:
                self._open[connection] = time.monotonic()
                self._changed.notify()

    def unregister(self, connection: Connection) -> None:
        """Remove a connection."""
        with self._changed:
            self._open.pop(connection, None)
            self._changed.notify()

    def handle_error(self, *_: object) -> None:
        """Log the current exception; no detail of it is sent to the client."""
        import traceback

        self.log(f"internal error: {traceback.format_exc()}")

    # Requests

    def respond(self, connection: Connection, head: Head) -> Response | int:
        """Return the response to a request; for a stream, the sequence number after which it starts.

        Raises:
            BoardError: a refusal. The body may be unread.
            Disconnected: the client disconnected.
        """
        self.hosts.check(head, connection.connection)
        self.hosts.check_site(head)
        page = self.pages.get(head.path)
        if page is not None and head.method in ("GET", "HEAD"):
            _refuse_body(head)
            return page.answer(head)
        if page is not None:
            raise BadRequest(
                405, f"method not allowed: {head.method[:20]}", hint="Allowed: GET, HEAD.", allow="GET, HEAD"
            )
        route, task = routes.find(self.routes, head.method, head.path)
        body: dict[str, Any] = {}
        if route.writes:
            self.hosts.check_origin(head)
        caller = connection.caller = self.access.recognize(head, connection.peer, is_public=route.is_public)
        if route.writes:
            if self.api.read_only and not route.is_public:
                raise NotPermitted(
                    "this server is read-only", hint="Use a server without --read-only, or the `atb` command."
                )
            security.check_type(head)
            body = self._read_body(head, connection.wire, route)
            caller.speak(route.fields(), body)
        else:
            _refuse_body(head)
        self.set_waiting(connection, False)
        query = fields.read_query(head.query, route.parameters())
        make = functools.partial(
            Call, self.api, head, task, query, body, access=self.access, caller=caller, room=connection.room,
            has_left=connection.wire.has_left,
        )  # fmt: skip
        if not inputs.integer(query.get("wait", 0), "wait", 0, fields.WAIT_LIMIT):
            return self._call(route, make())
        if not self._waiting.acquire(blocking=False):
            raise Busy(f"too many requests wait (limit {self.waiting_limit})")
        try:
            return self._call(route, make(functools.partial(self._pause, connection)))
        finally:
            self._waiting.release()

    def _pause(self, connection: Connection, seconds: float) -> bool:
        """Wait some seconds; return whether the server stops or the client has left.

        Raises:
            Unauthorized: the client's key or session has ended.
        """
        if self.stopping.wait(seconds) or connection.wire.has_left():
            return True
        self.access.require_still_known(connection.caller)
        return False

    def _read_body(self, head: Head, wire: Wire, route: Route) -> dict[str, Any]:
        length = body_length(head)
        if length is None:
            raise BadRequest(411, "Content-Length is missing (required even for an empty body)")
        if "100-continue" in [value.lower() for value in head.headers.get("expect", ())]:
            wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        return fields.read_body(wire.read_body(length), route)

    def _call(self, route: Route, call: Call) -> Response | int:
        if route.handler is not None:
            try:
                return route.handler(call)
            except (InvalidInput, NotFound) as error:
                raise fields.with_body_names(error) from error.__cause__
        if route.answer == "stream":
            if call.head.method == "HEAD":
                return Response(200, b"", [("Content-Type", "text/event-stream")])
            return stream.start(call.head, call.board, call.query.get("after"))
        host = call.head.headers["host"][0]
        if route.answer == "openapi":
            return Response(200, json.dumps(openapi.description(f"http://{host}")).encode(), [("Content-Type", JSON)])
        return Response(200, documentation.markdown(host).encode(), [("Content-Type", "text/markdown; charset=utf-8")])

    def send_events(self, connection: Connection, after: int) -> None:
        """Send events to a client until it disconnects.

        Raises:
            Busy: too many streams.
        """
        if not self._streams.acquire(blocking=False):
            raise Busy(f"too many streams (limit {self.stream_limit})")
        try:
            # No proxy may hold events back, or compress them into blocks.
            headers = [
                ("Content-Type", "text/event-stream"),
                ("Cache-Control", "no-store, no-transform"),
                ("X-Accel-Buffering", "no"),
            ]
            connection.send(Response(200, b"", headers, close=True), has_length=False)
            for message in stream.messages(self.api.board, after, self.stopping):
                if connection.wire.is_disconnected() or not self.access.is_still_known(connection.caller):
                    break
                connection.wire.send(message)
        except Disconnected:
            raise
        except Exception:  # too late for a refusal: the client would parse it as an event
            self.handle_error()
        finally:
            self._streams.release()


def _refuse_body(head: Head) -> None:
    if body_length(head):
        raise BadRequest(400, f"{head.method} does not accept a body")


def to_standard_error(line: str) -> None:
    """Write a log line to standard error."""
    with contextlib.suppress(OSError, ValueError):  # a closed standard error must not fail the request
        sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {escape_line(line)}\n")
