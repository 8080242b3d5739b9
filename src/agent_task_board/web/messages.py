"""Requests and responses as plain values, and the refusals that exist only in HTTP."""

from __future__ import annotations

import json
import re
import zlib

from ..errors import InvalidInput, NotPermitted
from ..printable import escape_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..errors import BoardError

JSON = "application/json; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
FAST_COMPRESSION = 1
"""The compression level. On one machine, level 6 takes more time than it saves."""


class BadRequest(InvalidInput):
    """The request is malformed HTTP; ``http_status`` says why."""

    def __init__(self, status: int, message: str, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(message, hint=hint, **details)
        self.http_status = status


class Misdirected(NotPermitted):
    """The request names no host, several, or one that this server does not serve."""

    http_status = 421


class Unauthorized(NotPermitted):
    """The request needs a key or a session, and has none or a wrong one."""

    http_status = 401


class Head:
    """The request line and the header fields of a request.

    ``headers`` maps each lower-case field name to all its values, because some fields must not be repeated.
    ``keep_alive`` tells whether the client wants to reuse this connection.
    """

    __slots__ = ("authority", "headers", "keep_alive", "method", "path", "query")

    def __init__(
        self,
        method: str,
        path: str,
        query: str,
        headers: Mapping[str, list[str]],
        *,
        authority: str | None,
        keep_alive: bool,
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.authority = authority
        self.keep_alive = keep_alive

    def single(self, name: str) -> str | None:
        """Return the only value of a header field, or ``None`` if the field is absent.

        Raises:
            BadRequest: the field is repeated.
        """
        values = self.headers.get(name, ())
        if len(values) > 1:
            raise BadRequest(400, f"header {name} is repeated: {len(values)} times (limit 1)")
        return values[0] if values else None

    def accepts_gzip(self) -> bool:
        """Return whether the client accepts gzip."""
        for item in ",".join(self.headers.get("accept-encoding", ())).split(","):
            coding, _, quality = item.partition(";")
            if coding.strip().lower() == "gzip":
                return quality.replace(" ", "").lower() not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
        return False

    def prefers_text(self) -> bool:
        """Return whether the client prefers plain text to JSON.

        ``Accept`` must name ``text/plain`` with a higher weight than JSON and ``*/*``: many programs list it with the
        same weight although they expect JSON.
        """
        weights: dict[str, float] = {}
        for item in ",".join(self.headers.get("accept", ())).split(","):
            kind, *parameters = (part.strip().lower() for part in item.split(";"))
            weights[kind] = max(weights.get(kind, 0), _quality(parameters))
        others = max(weights.get(kind, 0) for kind in ("application/json", "application/*", "*/*"))
        return weights.get("text/plain", 0) > others

    def has_seen(self, tag: str) -> bool:
        """Return whether ``If-None-Match`` contains an entity tag; strong and weak tags are equal."""
        seen = [item.strip().removeprefix("W/") for item in ",".join(self.headers.get("if-none-match", ())).split(",")]
        return tag.removeprefix("W/") in seen or seen == ["*"]


def _quality(parameters: Iterable[str]) -> float:
    """Return the weight of a media range (RFC 9110, section 12.4.2): 1 by default, 0 if malformed."""
    for name, _, value in (parameter.partition("=") for parameter in parameters):
        if name == "q":
            return float(value) if re.fullmatch(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?", value) else 0
    return 1


class Response:
    """A response: status, header fields and body; one ``is_shared`` with other requests takes no memory of its own."""

    __slots__ = ("body", "close", "headers", "is_shared", "status")

    def __init__(
        self,
        status: int,
        body: bytes = b"",
        headers: Iterable[tuple[str, str]] = (),
        *,
        close: bool = False,
        is_shared: bool = False,
    ) -> None:
        self.status = status
        self.body = body
        self.headers = list(headers)
        self.close = close
        self.is_shared = is_shared


def envelope(data: Any, warnings: list[str], status: int = 200, headers: Iterable[tuple[str, str]] = ()) -> Response:
    """Return the response to a successful call."""
    return Response(
        status, encode({"ok": True, "data": data, "warnings": warnings}), [("Content-Type", JSON), *headers]
    )


def refusal(error: BoardError, *, close: bool = False, headers: Iterable[tuple[str, str]] = ()) -> Response:
    """Return a refusal in the envelope, with its HTTP status."""
    status = error.http_status or 500
    fields = [("Content-Type", JSON), *headers]
    if status == 401:
        fields.append(("WWW-Authenticate", 'Bearer realm="atb"'))
    if status == 503:
        fields.append(("Retry-After", "1"))
    return Response(status, encode({"ok": False, "error": error.to_dict(), "warnings": []}), fields, close=close)


def encode(value: Any) -> bytes:
    """Return a value as a line of JSON, with invisible characters escaped."""
    # A message may quote bytes of a request that are not valid text.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return escape_json(text).encode("utf-8", "replace") + b"\n"


def gzip(data: bytes, level: int = FAST_COMPRESSION) -> bytes:
    """Return the data in gzip format, without a timestamp."""
    packer = zlib.compressobj(level, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()
