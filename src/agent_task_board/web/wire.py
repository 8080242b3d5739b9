"""HTTP/1.1 as it comes over a socket: read strictly, with a deadline for each part.

What is not plainly well formed is refused and the connection closed: a request that two programs could read in two
ways is how one request is smuggled inside another (RFC 9112, section 11.2).
"""

from __future__ import annotations

import re
import socket
import time
from urllib.parse import unquote_to_bytes

from .messages import BadRequest, Head

LINE = 8_192
"""Bytes of a request line, at most."""
HEADER = 16_384
"""Bytes of request line and header fields together, at most."""
FIELDS = 100
BODY = 2 * 1_048_576
SEND_TIME = 15.0
"""Seconds that a client may take to receive an answer, or a part of a stream."""
LINGER = 0.5
"""Seconds that are left to a client to stop sending what nobody reads."""
IDLE = 60.0
"""Seconds that a connection may wait between two requests."""
HEADER_TIME = 5.0
BODY_TIME = 15.0

_END = re.compile(rb"\r?\n\r?\n")
_REQUEST = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) HTTP/([0-9])\.([0-9])")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)")  # one way to match: no backtracking


class Gone(Exception):
    """The client has left, or was silent for too long; there is nobody to answer."""


class Wire:
    """The reading side of one connection; it remembers what came after the end of a request."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._pending = b""
        self._body_was_read = False

    def wait(self) -> None:
        """Wait for the first bytes of a request.

        Raises:
            Gone: none came.
        """
        if not self._pending:
            self._pending = self._receive(time.monotonic() + IDLE)

    def read_head(self) -> Head:
        """Read a request line and its header fields.

        Raises:
            BadRequest: 400, 408, 414 or 431.
            Gone: the client left in the middle.
        """
        self._body_was_read = False
        deadline = time.monotonic() + HEADER_TIME
        while True:
            while self._pending.startswith(b"\r\n"):
                self._pending = self._pending[2:]
            end = _END.search(self._pending)
            if end is not None and end.end() <= HEADER:
                head, self._pending = self._pending[: end.start()], self._pending[end.end() :]
                if end.group() != b"\r\n\r\n":
                    raise BadRequest(400, "a line of the header does not end in CR LF")
                return parse_head(head)
            if len(self._pending) > LINE and b"\n" not in self._pending[:LINE]:
                raise BadRequest(414, f"the request line is longer than {LINE:,} bytes")
            if len(self._pending) > HEADER or end is not None:
                raise BadRequest(431, f"the header is larger than {HEADER:,} bytes")
            try:
                self._pending += self._receive(deadline)
            except TimeoutError:
                raise BadRequest(408, f"the header did not arrive within {HEADER_TIME:g} seconds") from None

    def read_body(self, length: int) -> bytes:
        """Read a body of a known length.

        Raises:
            BadRequest: 408.
            Gone: the client left in the middle.
        """
        deadline = time.monotonic() + BODY_TIME
        parts, missing = [self._pending[:length]], length - len(self._pending)
        self._pending = self._pending[length:]
        while missing > 0:
            try:
                part = self._receive(deadline, missing)
            except TimeoutError:
                raise BadRequest(408, f"the body did not arrive within {BODY_TIME:g} seconds") from None
            parts.append(part)
            missing -= len(part)
        self._body_was_read = True
        return b"".join(parts)

    def send(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            Gone: the client left, or takes too long.
        """
        try:
            self._connection.settimeout(SEND_TIME)
            self._connection.sendall(data)
        except OSError as error:  # a timeout is one, too
            raise Gone from error

    def is_in_doubt(self, head: Head) -> bool:
        """Say whether a body that was announced may still be on its way, so that no other request can be read."""
        lengths = head.headers.get("content-length")
        announced = head.method not in ("GET", "HEAD") if lengths is None else lengths != ["0"]
        return not self._body_was_read and (announced or "transfer-encoding" in head.headers)

    def has_left(self) -> bool:
        """Say whether the client has hung up; whatever else it sends is dropped."""
        self._connection.settimeout(0)
        try:
            return not self._connection.recv(65_536)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def drain(self) -> None:
        """Let the client read the last answer: closing a socket with unread input would take it away again."""
        try:
            self._connection.shutdown(socket.SHUT_WR)
            deadline = time.monotonic() + LINGER
            while True:
                self._receive(deadline)
        except (OSError, Gone):
            pass

    def _receive(self, deadline: float, size: int = 65_536) -> bytes:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        try:
            self._connection.settimeout(left)
            data = self._connection.recv(min(size, 65_536))
        except TimeoutError:
            raise
        except OSError as error:
            raise Gone from error
        if not data:
            raise Gone
        return data


def parse_head(head: bytes) -> Head:
    """Return the request line and header fields of a request, without its final empty line.

    Raises:
        BadRequest: 400, 414 or 431.
    """
    line, *lines = head.split(b"\r\n")
    if len(line) > LINE:
        raise BadRequest(414, f"the request line is longer than {LINE:,} bytes")
    found = _REQUEST.fullmatch(line)
    if found is None or found[3] != b"1":
        raise BadRequest(400, "the request line is not METHOD PATH HTTP/1.1")
    if len(lines) > FIELDS:
        raise BadRequest(431, f"there are more than {FIELDS} header fields")
    headers: dict[str, list[str]] = {}
    for text in lines:
        field = _FIELD.fullmatch(text)
        if field is None:  # also a continuation line, or a space before the colon
            raise BadRequest(400, "a header field is not NAME: VALUE")
        headers.setdefault(field[1].decode("ascii").lower(), []).append(field[2].decode("latin-1").strip(" \t"))
    authority, path, query = _target(found[2])
    options = {option.strip().lower() for option in ",".join(headers.get("connection", ())).split(",")}
    is_old = found[4] == b"0"
    if is_old:
        headers.pop("expect", None)  # HTTP/1.0 knows no 100 (RFC 9110, section 10.1.1)
    return Head(
        found[1].decode("ascii"),
        path,
        query,
        headers,
        authority=authority,
        keep_alive="close" not in options and not is_old,
    )


def _target(target: bytes) -> tuple[str | None, str, str]:
    """Return the authority (of an absolute address only), the decoded path and the raw query of a request's target."""
    text = target.decode("ascii")
    authority = None
    if text[:7].lower() == "http://":
        authority, slash, rest = text[7:].partition("/")
        text = slash + rest
    if not text.startswith("/") or "#" in text:
        raise BadRequest(400, "the target of the request is not a path")
    path, _, query = text.partition("?")
    if re.search(r"%(?![0-9A-Fa-f]{2})", path):
        raise BadRequest(400, "the path has a % that no two hexadecimal digits follow")
    if "%2f" in path.lower():
        raise BadRequest(400, "the path has an encoded slash")
    try:
        decoded = unquote_to_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest(400, "the path is not UTF-8") from None
    return authority, decoded, query


def body_length(head: Head) -> int | None:
    """Return the length of the body that a header announces; ``None``: it announces none.

    Raises:
        BadRequest: 400, 411 or 413. The connection cannot be used any more.
    """
    lengths = head.headers.get("content-length", [])
    if "transfer-encoding" in head.headers:
        status = 400 if lengths else 411
        raise BadRequest(status, "a body in chunks is not taken", hint="Send the body with a Content-Length.")
    if not lengths:
        return None
    if len(lengths) > 1:
        raise BadRequest(400, f"Content-Length is given {len(lengths)} times")
    digits = lengths[0]
    if not (digits.isascii() and digits.isdigit()):
        raise BadRequest(400, "Content-Length is not a number of plain digits")
    if len(digits) > 18 or int(digits) > BODY:
        raise BadRequest(413, f"the body is larger than {BODY:,} bytes")
    return int(digits)
