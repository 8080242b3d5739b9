"""The server: it takes connections, each in a thread of its own, and says what becomes of a request.

``http.server`` brings the listening and the threads. It reads requests too leniently for a server that a browser can
reach, so ``wire.py`` reads them.
"""

from __future__ import annotations

import contextlib
import errno
import json
import socket
import sys
import threading
import time
from http.server import ThreadingHTTPServer

from ..errors import Busy, InvalidInput, NotFound, NotPermitted, Unusable
from . import documentation, fields, openapi, pages, routes, security, stream
from .api import Api, Call
from .connection import Connection
from .messages import JSON, BadRequest, Response
from .wire import Gone, Wire, body_length

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ..identity import Actor
    from ..service import Board
    from .messages import Head
    from .routes import Route

CONNECTIONS = 256
"""Connections at once."""
FILES = 2_048
"""Files that they may have open: each a socket, the board, its log, and the two locks of its turnstile."""
GRACE = 2.0
"""Seconds that a stopping server leaves to requests on their way."""


class Server(ThreadingHTTPServer):
    """A board that listens on one address.

    Args:
        board: the board; closed by whoever opened it.
        host: the address to listen on; a name counts as the first address that it stands for.
        port: the port; 0 takes a free one.
        person: who acts where a request does not say.
        read_only: refuse every write.
        allow_remote: listen on addresses that other machines reach.
        allow_hosts: further hosts to answer for, ``HOST`` or ``HOST:PORT``.
        log: takes a line for every write and every refusal; by default nobody does.

    Raises:
        NotPermitted: the address is not a loopback one, and ``allow_remote`` is false.
        Unusable: the address cannot be had.
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
        person: Actor,
        read_only: bool = False,
        allow_remote: bool = False,
        allow_hosts: Iterable[str] = (),
        log: Callable[[str], object] | None = None,
    ) -> None:
        self.api = Api(board, person=person, read_only=read_only)
        self._log = log
        self.pages = pages.load()
        self.routes = routes.table()
        self.stopping = threading.Event()
        self._streams = threading.BoundedSemaphore(stream.STREAMS)
        self._open: dict[Connection, float] = {}
        self._lock = threading.Lock()
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, _, _, _, address = found[0]
            self.is_remote = not security.is_loopback(str(address[0]))
            if self.is_remote and not allow_remote:
                raise NotPermitted(
                    f"{host} can be reached from other machines, and this server knows no accounts",
                    hint="Listen on 127.0.0.1, or add --allow-remote if everybody who can reach it may do everything.",
                )
            self.address_family = family
            super().__init__(address[:2], Connection)  # type: ignore[arg-type]
        except (OSError, UnicodeError) as error:
            raise Unusable(
                f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}",
                hint="Another program may listen there: choose another --port, or 0 for any free one.",
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
    def url(self) -> str:
        """The address of the page."""
        return f"http://{security.bracketed(str(self.server_address[0]))}:{self.server_address[1]}/"

    def server_bind(self) -> None:
        """Bind, without asking a name server who we are, as the standard library would."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()[:2]

    def run(self, *, pause: float = 0.5) -> None:
        """Serve until an exception that a signal raises ends it, or ``shutdown()`` in another thread.

        The latter is noticed after at most ``pause`` seconds.
        """
        _allow_files()
        self.api.tell_hooks()  # what was left by an earlier server, or by a command that was killed
        try:
            self.serve_forever(poll_interval=pause)
        finally:
            self.stop()

    def stop(self) -> None:
        """Take no more connections, end the streams, and leave requests on their way a moment to finish.

        One that waits for the write lock may still be there afterwards; it has changed nothing.
        """
        self.stopping.set()
        self.server_close()
        deadline = time.monotonic() + GRACE
        while self._open and time.monotonic() < deadline:
            with self._lock:
                for connection in self._open:
                    if connection.is_waiting:
                        connection.hang_up()
            time.sleep(0.02)

    # Connections

    def get_request(self) -> tuple[socket.socket, Any]:
        """Take a connection; where no file is left for it, make room first, or this would be tried without end."""
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                with self._lock:
                    self._make_room()
                self.stopping.wait(0.05)
            raise

    def _make_room(self) -> bool:
        waiting = [known for known in self._open if known.is_waiting]
        oldest = min(waiting, key=self._open.__getitem__, default=None)
        if oldest is None:
            return False
        del self._open[oldest]
        oldest.hang_up()
        return True

    def enter(self, connection: Connection) -> None:
        """Register a connection; where there are too many, hang up on the one that has waited longest."""
        with self._lock:
            if len(self._open) >= CONNECTIONS and not self._make_room():
                raise Busy("the server has too many connections")
            self._open[connection] = time.monotonic()

    def waits(self, connection: Connection, is_waiting: bool) -> None:
        """Note whether a connection waits for a request, or works on one.

        Raises:
            Gone: it had to make room for another.
        """
        with self._lock:
            if connection not in self._open:
                raise Gone
            connection.is_waiting = is_waiting
            if is_waiting:
                self._open[connection] = time.monotonic()

    def leave(self, connection: Connection) -> None:
        """Forget a connection."""
        with self._lock:
            self._open.pop(connection, None)

    def handle_error(self, *_: object) -> None:
        """Log what a request died of; nothing of it leaves the process."""
        import traceback

        self.log(f"internal error: {traceback.format_exc()}")

    # Requests

    def respond(self, connection: Connection, head: Head) -> Response | int:
        """Return the answer to a request; for a stream, the sequence number from which on it is to be fed.

        Raises:
            BoardError: a refusal. The body may not have been read.
            Gone: the client left.
        """
        self.hosts.check(head)
        page = self.pages.get(head.path)
        if page is not None and head.method in ("GET", "HEAD"):
            _no_body(head)
            return page.answer(head)
        if page is not None:
            raise BadRequest(
                405, f"{head.method[:20]} is not for a file", hint="It takes GET, HEAD.", allow="GET, HEAD"
            )
        route, task = routes.find(self.routes, head.method, head.path)
        body: dict[str, Any] = {}
        if route.writes:
            if self.api.read_only:
                raise NotPermitted(
                    "this server is for reading only", hint="Use a server without --read-only, or `atb`."
                )
            self.hosts.check_origin(head)
            security.check_type(head)
            body = self._body(head, connection.wire, route)
        else:
            _no_body(head)
        self.waits(connection, False)
        query = fields.read_query(head.query, route.parameters())
        return self._answer(route, Call(self.api, head, task, query, body))

    def _body(self, head: Head, wire: Wire, route: Route) -> dict[str, Any]:
        length = body_length(head)
        if length is None:
            raise BadRequest(411, "a write needs a Content-Length, even where its body is empty")
        if "100-continue" in [value.lower() for value in head.headers.get("expect", ())]:
            wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        return fields.read_body(wire.read_body(length), route)

    def _answer(self, route: Route, call: Call) -> Response | int:
        if route.handler is not None:
            try:
                return route.handler(call)
            except (InvalidInput, NotFound) as error:
                raise fields.as_sent(error) from error.__cause__
        if route.answer == "stream":
            if call.head.method == "HEAD":
                return Response(200, b"", [("Content-Type", "text/event-stream")])
            return stream.start(call.head, call.board, call.query.get("after"))
        host = call.head.headers["host"][0]
        if route.answer == "openapi":
            return Response(200, json.dumps(openapi.description(f"http://{host}")).encode(), [("Content-Type", JSON)])
        return Response(200, documentation.markdown(host).encode(), [("Content-Type", "text/markdown; charset=utf-8")])

    def feed(self, connection: Connection, after: int) -> None:
        """Send events to a client until it leaves.

        Raises:
            Busy: there are too many streams.
        """
        if not self._streams.acquire(blocking=False):
            raise Busy(f"the server feeds {stream.STREAMS} streams already")
        try:
            headers = [("Content-Type", "text/event-stream"), ("Cache-Control", "no-store")]
            connection.send(Response(200, b"", headers, close=True), has_length=False)
            for message in stream.messages(self.api.board, after, self.stopping):
                if connection.wire.has_left():
                    break
                connection.wire.send(message)
        except Gone:
            raise
        except Exception:  # too late for a refusal: the client would read it as an event
            self.handle_error()
        finally:
            self._streams.release()


def _no_body(head: Head) -> None:
    if body_length(head):
        raise BadRequest(400, f"{head.method} takes no body")


def _allow_files() -> None:
    """Raise this process's own limit of open files, which is 256 or 1,024 on many systems."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def printable(line: str) -> str:
    """Return a line for a log or a terminal, whatever a request put into it."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)


def to_standard_error(line: str) -> None:
    """Write a line of the log."""
    with contextlib.suppress(OSError, ValueError):  # nobody reads it: no reason to withhold an answer
        sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {printable(line)}\n")
