"""Requests and responses as plain values, and the refusals that only HTTP knows."""

from __future__ import annotations

import json
import re
import zlib

from ..errors import InvalidInput, NotPermitted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..errors import BoardError

JSON = "application/json; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
QUICKLY = 1
"""The level of compression: at 6 it would take longer than what it saves on one machine."""


class BadRequest(InvalidInput):
    """The request is malformed as HTTP; ``http_status`` says how."""

    def __init__(self, status: int, message: str, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(message, hint=hint, **details)
        self.http_status = status


class Misdirected(NotPermitted):
    """The request names a host that this server does not answer for."""

    http_status = 421


class Head:
    """The request line and the header fields of a request.

    ``headers`` holds every field by its name in lower case, with all its values: some may be given once only.
    ``keep_alive`` says whether the client wants to go on with this connection.
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

    def one(self, name: str) -> str | None:
        """Return the only value of a header field, or ``None``.

        Raises:
            BadRequest: it is given more than once.
        """
        values = self.headers.get(name, ())
        if len(values) > 1:
            raise BadRequest(400, f"the header {name} is given {len(values)} times")
        return values[0] if values else None

    def accepts_gzip(self) -> bool:
        """Say whether the client takes compressed answers."""
        for item in ",".join(self.headers.get("accept-encoding", ())).split(","):
            coding, _, quality = item.partition(";")
            if coding.strip().lower() == "gzip":
                return quality.replace(" ", "").lower() not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
        return False

    def prefers_text(self) -> bool:
        """Say whether the client would rather have plain text than JSON.

        It must name ``text/plain``, and value it more than JSON and than anything at all: many programs list it beside
        others only to be polite.
        """
        wishes: dict[str, float] = {}
        for item in ",".join(self.headers.get("accept", ())).split(","):
            kind, *parameters = (part.strip().lower() for part in item.split(";"))
            wishes[kind] = max(wishes.get(kind, 0), _quality(parameters))
        others = max(wishes.get(kind, 0) for kind in ("application/json", "application/*", "*/*"))
        return wishes.get("text/plain", 0) > others

    def has_seen(self, tag: str) -> bool:
        """Say whether ``If-None-Match`` names an entity tag; strong and weak ones count alike."""
        seen = [item.strip().removeprefix("W/") for item in ",".join(self.headers.get("if-none-match", ())).split(",")]
        return tag.removeprefix("W/") in seen or seen == ["*"]


def _quality(parameters: Iterable[str]) -> float:
    """Return the weight that a media range has by its parameters (RFC 9110, section 12.4.2); nonsense has none."""
    for name, _, value in (parameter.partition("=") for parameter in parameters):
        if name == "q":
            return float(value) if re.fullmatch(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?", value) else 0
    return 1


class Response:
    """What goes back: status, header fields and body."""

    __slots__ = ("body", "close", "headers", "status")

    def __init__(
        self, status: int, body: bytes = b"", headers: Iterable[tuple[str, str]] = (), *, close: bool = False
    ) -> None:
        self.status = status
        self.body = body
        self.headers = list(headers)
        self.close = close


def envelope(data: Any, warnings: list[str], status: int = 200, headers: Iterable[tuple[str, str]] = ()) -> Response:
    """Return the answer of a call that worked."""
    return Response(
        status, _encode({"ok": True, "data": data, "warnings": warnings}), [("Content-Type", JSON), *headers]
    )


def refusal(error: BoardError, *, close: bool = False, headers: Iterable[tuple[str, str]] = ()) -> Response:
    """Return a refusal in the envelope, under its HTTP status."""
    status = error.http_status or 500
    fields = [("Content-Type", JSON), *headers]
    if status == 503:
        fields.append(("Retry-After", "1"))
    return Response(status, _encode({"ok": False, "error": error.to_dict(), "warnings": []}), fields, close=close)


def _encode(value: Any) -> bytes:
    # A message may quote bytes of a request that are no text.
    return (
        json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace") + b"\n"
    )


def gzip(data: bytes, level: int = QUICKLY) -> bytes:
    """Return data as gzip has it, without a time stamp."""
    packer = zlib.compressobj(level, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()
