"""One connection: reads requests one after another, has the server handle each, and sends the responses."""

from __future__ import annotations

import contextlib
import socket
from http.server import BaseHTTPRequestHandler

from .. import exhaustion
from ..errors import BoardError
from . import security
from .access import Caller
from .messages import Misdirected, Response, gzip, refusal
from .room import Room
from .wire import Disconnected, Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .messages import Head
    from .server import Server

COMPRESSION_THRESHOLD = 4_096
"""Bytes from which a response is compressed."""


class Connection(BaseHTTPRequestHandler):
    """One connection, from its first byte to its last."""

    server: Server
    server_version = "atb"

    def setup(self) -> None:
        """Prepare the connection."""
        self.is_waiting = True
        self.connection: socket.socket = self.request
        with contextlib.suppress(OSError):  # a stopping server may have closed it; the first read then fails
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.wire = Wire(self.connection)

    def handle(self) -> None:
        """Handle requests until the connection closes."""
        if not self._is_admitted():
            return
        try:
            self.server.register(self)
            while not self.server.stopping.is_set() and self._handle_request():
                pass
        except (Disconnected, TimeoutError):
            pass
        except BoardError as error:
            self._send_last(refusal(error, close=True))

    def _is_admitted(self) -> bool:
        """Find out who is at the other end; tell those who may not come in.

        They take no place among the connections: many of them would push out those of others.
        """
        try:
            self.peer = self.server.access.meet(self.connection)
        except Disconnected:
            return False
        except BoardError as error:
            if error.details.get("user"):  # a client that has left, which the system knows no more, is not worth a line
                self.server.log(f"connection refused {error.http_status}: {error.message}")
            if self.server.turning_away.acquire(blocking=False):
                try:
                    self._send_last(refusal(error, close=True))
                finally:
                    self.server.turning_away.release()
            return False
        return True

    def finish(self) -> None:
        """Release the connection and this thread's connection to the board."""
        self.server.api.board.leave_thread()  # first, because a stopping server waits for `unregister`
        self.server.unregister(self)

    def hang_up(self) -> None:
        """Close the connection from another thread; a blocked read wakes up."""
        with contextlib.suppress(OSError):  # it may be closed already
            self.connection.shutdown(socket.SHUT_RDWR)

    def _handle_request(self) -> bool:
        """Handle one request; return whether the connection can serve another."""
        self.server.set_waiting(self, True)
        self.wire.wait()
        self.caller = Caller(self.peer, is_known=False)
        self.room = Room(self.server.large)
        try:
            return self._answer()
        finally:
            self.room.release()

    def _answer(self) -> bool:
        head = None
        try:
            head = self.wire.read_head()
            response = self.server.respond(self, head)
            if isinstance(response, int):
                self.server.send_events(self, response)
                return False
            if not response.is_shared:
                self.room.need(len(response.body))
            response.close = not head.keep_alive
        except Disconnected:
            raise
        except BoardError as error:
            # Do not read the rest of the request: where it ends may be uncertain.
            close = head is None or not head.keep_alive or self.wire.has_unread_body(head)
            close = close or isinstance(error, Misdirected)
            response = refusal(exhaustion.refusal(error) or error, close=close, headers=_allow_header(error))
        except Exception as error:
            known = exhaustion.refusal(error)
            if known is None:
                self.server.handle_error()
                known = BoardError(f"internal error: {type(error).__name__} (see the server's log)")
            response = refusal(known, close=True)
        if head is not None and (head.method not in ("GET", "HEAD") or response.status >= 400):
            self.server.log(f"{head.method} {head.path} {response.status} ({self.caller})")
        elif head is None:
            self.server.log(f"malformed request {response.status} ({self.peer})")
        self.server.set_waiting(self, False)
        try:
            self.send(response, head)
        finally:  # deliver even if the client has disconnected: its change is committed
            if head is not None and head.method not in ("GET", "HEAD"):
                self.server.api.deliver_hooks()
        if response.close:
            self.server.set_waiting(self, True)
            self.wire.drain()
        return not response.close

    def _send_last(self, response: Response) -> None:
        with contextlib.suppress(Disconnected):
            self.send(response)
            self.wire.drain()

    def send(self, response: Response, head: Head | None = None, *, has_length: bool = True) -> None:
        """Send a response, compressed if that helps.

        Raises:
            Disconnected: the client disconnected or is too slow.
        """
        body, extra = response.body, list(response.headers)
        if (
            head is not None
            and len(body) >= COMPRESSION_THRESHOLD
            and head.accepts_gzip()
            and "Content-Encoding" not in dict(response.headers)
        ):
            body = gzip(body)
            varies = dict.fromkeys([*dict(extra).get("Vary", "").split(", "), "Accept-Encoding"])
            extra = [field for field in extra if field[0] != "Vary"]
            extra += [("Content-Encoding", "gzip"), ("Vary", ", ".join(filter(None, varies)))]
        if has_length and response.status != 304:
            extra.append(("Content-Length", str(len(body))))
        if "Cache-Control" not in dict(extra):
            extra.append(("Cache-Control", "no-store"))
        extra.append(("Connection", "close" if response.close else "keep-alive"))
        reason = self.responses[response.status][0]
        lines = [f"HTTP/1.1 {response.status} {reason}", f"Date: {self.date_time_string()}"]
        lines += [f"{name}: {value}" for name, value in (*extra, *security.HEADERS)]
        start = "\r\n".join(lines).encode("ascii", "replace") + b"\r\n\r\n"
        self.wire.send(start if head is not None and head.method == "HEAD" else start + body)


def _allow_header(error: BoardError) -> list[tuple[str, str]]:
    return [("Allow", error.details["allow"])] if error.http_status == 405 else []
