"""One connection: it reads one request after the other, has the server answer each, and sends the answers."""

from __future__ import annotations

import contextlib
import socket
from http.server import BaseHTTPRequestHandler

from ..errors import BoardError
from . import security
from .messages import Response, gzip, refusal
from .wire import Gone, Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .messages import Head
    from .server import Server

PACKED = 4_096
"""Bytes from which on an answer is compressed."""


class Connection(BaseHTTPRequestHandler):
    """One connection, from its first byte to its last."""

    server: Server
    server_version = "atb"

    def setup(self) -> None:
        """Take the connection in."""
        self.is_waiting = True
        self.connection: socket.socket = self.request
        with contextlib.suppress(OSError):  # a server that stops has closed it; the first read will tell
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.wire = Wire(self.connection)

    def handle(self) -> None:
        """Answer one request after the other."""
        try:
            self.server.enter(self)
            while not self.server.stopping.is_set() and self._one():
                pass
        except (Gone, TimeoutError):
            pass
        except BoardError as error:
            self._try_to_send(refusal(error, close=True))

    def finish(self) -> None:
        """Let the connection go, with its connection to the board."""
        self.server.api.board.leave_thread()  # first: a server that stops waits for it
        self.server.leave(self)

    def hang_up(self) -> None:
        """End a connection from another thread; whoever reads from it wakes up."""
        with contextlib.suppress(OSError):  # it may be gone already
            self.connection.shutdown(socket.SHUT_RDWR)

    def _one(self) -> bool:
        """Answer one request; say whether the connection is good for another."""
        self.server.waits(self, True)
        self.wire.wait()
        head = None
        try:
            head = self.wire.read_head()
            response = self.server.respond(self, head)
            if isinstance(response, int):
                self.server.feed(self, response)
                return False
            response.close = not head.keep_alive
        except Gone:
            raise
        except BoardError as error:
            # What is left of the request is not worth reading: it may not be where it seems to end.
            close = head is None or not head.keep_alive or self.wire.is_in_doubt(head)
            response = refusal(error, close=close, headers=_allow(error))
        except Exception as error:
            self.server.handle_error()
            response = refusal(BoardError(f"{type(error).__name__}; the server's log has more"), close=True)
        if head is not None and (head.method not in ("GET", "HEAD") or response.status >= 400):
            self.server.log(f"{head.method} {head.path} {response.status}")
        elif head is None:
            self.server.log(f"a malformed request {response.status}")
        self.server.waits(self, False)
        try:
            self.send(response, head)
        finally:  # the client may have left: what it changed is told all the same
            if head is not None and head.method not in ("GET", "HEAD"):
                self.server.api.tell_hooks()
        if response.close:
            self.server.waits(self, True)
            self.wire.drain()
        return not response.close

    def _try_to_send(self, response: Response) -> None:
        with contextlib.suppress(Gone):
            self.send(response)
            self.wire.drain()

    def send(self, response: Response, head: Head | None = None, *, has_length: bool = True) -> None:
        """Send a response in one piece.

        Raises:
            Gone: the client left, or takes too long.
        """
        body, extra = response.body, list(response.headers)
        if (
            head is not None
            and len(body) >= PACKED
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


def _allow(error: BoardError) -> list[tuple[str, str]]:
    return [("Allow", error.details["allow"])] if error.http_status == 405 else []
