"""HTTP/1.1 over a socket: strict parsing, with a deadline for each part.

Ambiguous input is refused and the connection closed: if two programs read a request differently, an attacker can
smuggle one request inside another (RFC 9112, section 11.2).
"""

from __future__ import annotations

import re
import socket
import time
from urllib.parse import unquote_to_bytes

from .messages import BadRequest, Head

LINE_LIMIT = 8_192
"""Maximum number of bytes of a request line."""
HEADER_LIMIT = 16_384
"""Maximum number of bytes of the request line and header fields together."""
FIELD_LIMIT = 100
"""Maximum number of header fields of a request."""
BODY_LIMIT = 2 * 1_048_576
"""Maximum number of bytes of a body."""
SEND_TIMEOUT = 15.0
"""Seconds that a client may take to receive a response, or one part of a stream."""
DRAIN_TIMEOUT = 0.5
"""Seconds to keep reading and discarding input before a connection closes."""
IDLE_TIMEOUT = 60.0
"""Seconds that a connection may be idle between two requests."""
HEADER_TIMEOUT = 5.0
"""Seconds that the request line and header fields may take to arrive."""
BODY_TIMEOUT = 15.0
"""Seconds that a body may take to arrive."""

_END = re.compile(rb"\r?\n\r?\n")
_REQUEST = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) HTTP/([0-9])\.([0-9])")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)")  # no backtracking


class Disconnected(Exception):
    """The client has disconnected or timed out, so no response can reach it."""


class Wire:
    """The socket of one connection; it buffers input that arrives after the end of a request."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._pending = b""
        self._body_was_read = False

    def wait(self) -> None:
        """Wait for the first bytes of a request.

        Raises:
            Disconnected: none arrived in time.
        """
        if not self._pending:
            self._pending = self._receive(time.monotonic() + IDLE_TIMEOUT)

    def read_head(self) -> Head:
        """Read a request line and its header fields.

        Raises:
            BadRequest: 400, 408, 414 or 431.
            Disconnected: the client disconnected.
        """
        self._body_was_read = False
        deadline = time.monotonic() + HEADER_TIMEOUT
        while True:
            while self._pending.startswith(b"\r\n"):
                self._pending = self._pending[2:]
            end = _END.search(self._pending)
            if end is not None and end.end() <= HEADER_LIMIT:
                head, self._pending = self._pending[: end.start()], self._pending[end.end() :]
                if end.group() != b"\r\n\r\n":
                    raise BadRequest(400, "header line does not end in CR LF")
                return parse_head(head)
            if len(self._pending) > LINE_LIMIT and b"\n" not in self._pending[:LINE_LIMIT]:
                raise BadRequest(414, f"request line is too long (limit {LINE_LIMIT:,} bytes)")
            if len(self._pending) > HEADER_LIMIT or end is not None:
                raise BadRequest(431, f"header is too large (limit {HEADER_LIMIT:,} bytes)")
            try:
                self._pending += self._receive(deadline)
            except TimeoutError:
                raise BadRequest(408, f"header did not arrive in time (limit {HEADER_TIMEOUT:g} s)") from None

    def read_body(self, length: int) -> bytes:
        """Read a body of a given length.

        Raises:
            BadRequest: 408.
            Disconnected: the client disconnected.
        """
        deadline = time.monotonic() + BODY_TIMEOUT
        parts, missing = [self._pending[:length]], length - len(self._pending)
        self._pending = self._pending[length:]
        while missing > 0:
            try:
                part = self._receive(deadline, missing)
            except TimeoutError:
                raise BadRequest(408, f"body did not arrive in time (limit {BODY_TIMEOUT:g} s)") from None
            parts.append(part)
            missing -= len(part)
        self._body_was_read = True
        return b"".join(parts)

    def send(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            Disconnected: the client disconnected or is too slow.
        """
        try:
            self._connection.settimeout(SEND_TIMEOUT)
            self._connection.sendall(data)
        except OSError as error:  # includes timeouts
            raise Disconnected from error

    def has_unread_body(self, head: Head) -> bool:
        """Return whether a declared body may be unread, so that the next bytes may not start a request."""
        lengths = head.headers.get("content-length")
        has_body = head.method not in ("GET", "HEAD") if lengths is None else lengths != ["0"]
        return not self._body_was_read and (has_body or "transfer-encoding" in head.headers)

    def is_disconnected(self) -> bool:
        """Return whether the client has disconnected; other input is discarded."""
        self._connection.settimeout(0)
        try:
            return not self._connection.recv(65_536)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def has_left(self) -> bool:
        """Return whether the client has disconnected; a request that it has already sent stays unread."""
        self._connection.settimeout(0)
        try:
            return not self._connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def drain(self) -> None:
        """Read and discard remaining input, so that closing the socket does not destroy the last response."""
        try:
            self._connection.shutdown(socket.SHUT_WR)
            deadline = time.monotonic() + DRAIN_TIMEOUT
            while True:
                self._receive(deadline)
        except (OSError, Disconnected):
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
            raise Disconnected from error
        if not data:
            raise Disconnected
        return data


def parse_head(head: bytes) -> Head:
    """Parse the request line and header fields of a request, without the final empty line.

    Raises:
        BadRequest: 400, 414 or 431.
    """
    line, *lines = head.split(b"\r\n")
    if len(line) > LINE_LIMIT:
        raise BadRequest(414, f"request line is too long: {len(line):,} bytes (limit {LINE_LIMIT:,})")
    found = _REQUEST.fullmatch(line)
    if found is None or found[3] != b"1":
        raise BadRequest(400, "request line is not METHOD PATH HTTP/1.1")
    if len(lines) > FIELD_LIMIT:
        raise BadRequest(431, f"too many header fields: {len(lines):,} (limit {FIELD_LIMIT})")
    headers: dict[str, list[str]] = {}
    for text in lines:
        field = _FIELD.fullmatch(text)
        if field is None:  # includes continuation lines and a space before the colon
            raise BadRequest(400, "header field is not NAME: VALUE")
        headers.setdefault(field[1].decode("ascii").lower(), []).append(field[2].decode("latin-1").strip(" \t"))
    authority, path, query = _target(found[2])
    options = {option.strip().lower() for option in ",".join(headers.get("connection", ())).split(",")}
    is_http_1_0 = found[4] == b"0"
    if is_http_1_0:
        headers.pop("expect", None)  # HTTP/1.0 has no 100 Continue (RFC 9110, section 10.1.1)
    return Head(
        found[1].decode("ascii"),
        path,
        query,
        headers,
        authority=authority,
        keep_alive="close" not in options and not is_http_1_0,
    )


def _target(target: bytes) -> tuple[str | None, str, str]:
    """Return the authority (``None`` unless the target is an absolute URL), the decoded path and the raw query."""
    text = target.decode("ascii")
    authority = None
    if text[:7].lower() == "http://":
        authority, slash, rest = text[7:].partition("/")
        text = slash + rest
    if not text.startswith("/") or "#" in text:
        raise BadRequest(400, "request target is not a path")
    path, _, query = text.partition("?")
    if re.search(r"%(?![0-9A-Fa-f]{2})", path):
        raise BadRequest(400, "path has an invalid escape: % without two hexadecimal digits")
    if "%2f" in path.lower():
        raise BadRequest(400, "path has an encoded slash: %2F")
    try:
        decoded = unquote_to_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest(400, "path is not UTF-8") from None
    return authority, decoded, query


def body_length(head: Head) -> int | None:
    """Return the declared length of the body, or ``None`` if the header declares no body.

    Raises:
        BadRequest: 400, 411 or 413. The connection must then be closed.
    """
    lengths = head.headers.get("content-length", [])
    if "transfer-encoding" in head.headers:
        status = 400 if lengths else 411
        raise BadRequest(status, "chunked bodies are not supported", hint="Send the body with a Content-Length.")
    if not lengths:
        return None
    if len(lengths) > 1:
        raise BadRequest(400, f"header Content-Length is repeated: {len(lengths)} times (limit 1)")
    digits = lengths[0]
    if not (digits.isascii() and digits.isdigit()):
        raise BadRequest(400, f"Content-Length is not a number: {digits[:60]!r}")
    if len(digits) > 18 or int(digits) > BODY_LIMIT:
        size = digits if len(digits) <= 18 else f"{digits[:18]}…"
        raise BadRequest(413, f"body is too large: {size} bytes (limit {BODY_LIMIT:,})")
    return int(digits)
