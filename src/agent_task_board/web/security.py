"""Who may come in: the host that a request names, where a write comes from, and what browsers are told.

A page of another site can send requests to a server on this machine, and by rebinding its own name it can even read
the answers. So a request must name a host of ours, and a write must come from our own page or from no browser at all.
"""

from __future__ import annotations

import ipaddress
import re

from ..errors import InvalidInput, NotPermitted
from .messages import BadRequest, Misdirected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .messages import Head

HEADERS = (
    (
        "Content-Security-Policy",
        (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
            "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
"""Sent with every response. There is no CORS header: no other origin may read anything."""

_DEFAULT_PORTS = ("", ":80", ":443")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\.?|\[[0-9A-Fa-f:.]+\]")


class Hosts:
    """The hosts that a server answers for.

    Args:
        port: the port that it listens on; loopback names count with this one only.
        address: the address that it listens on; counts by itself if it is not a loopback one.
        allowed: further ones, ``HOST`` (with this port, or as a browser sends it for a default port) or ``HOST:PORT``.
    """

    def __init__(self, port: int, address: str, allowed: Iterable[str] = ()) -> None:
        names = ["127.0.0.1", "localhost", "[::1]", bracketed(address)]
        here = ("", f":{port}") if port == 80 else (f":{port}",)
        self._known = {f"{name.lower()}{suffix}" for name in names for suffix in here}
        self._given: set[str] = set()
        for host in allowed:
            name, digits = split_host(host)
            suffixes = (f":{digits}",) if digits else (*_DEFAULT_PORTS, f":{port}")
            self._given.update(f"{name.lower()}{suffix}" for suffix in suffixes)

    def check(self, head: Head) -> None:
        """Let a request in that names exactly one host, and one of ours.

        Raises:
            BadRequest: it names none, or several.
            Misdirected: it names another.
        """
        named = head.headers.get("host", [])
        if len(named) != 1:
            raise BadRequest(400, f"a request needs one Host, and this one has {len(named)}")
        for host in (named[0], head.authority):
            if host is not None and not self._is_ours(host):
                raise Misdirected(
                    f"this server does not answer for the host {host[:200]!r}",
                    hint="Use the address that `atb serve` printed; for a reverse proxy or a forwarded port start it "
                    "with --allow-host HOST[:PORT].",
                )
        if head.authority is not None and head.authority.lower() != named[0].lower():
            raise BadRequest(400, "the target and the Host of the request differ")

    def check_origin(self, head: Head) -> None:
        """Let a write in that comes from our own page, or from a program that is no browser.

        Another port of this machine is the same *site*, and still a stranger.

        Raises:
            NotPermitted: it comes from somewhere else.
        """
        origin, site = head.one("origin"), head.one("sec-fetch-site")
        if origin is not None:
            scheme, separator, host = origin.partition("://")
            host = host.lower()
            is_itself = scheme == "http" and host == head.headers["host"][0].lower()
            if not separator or not (is_itself or (scheme in ("http", "https") and host in self._given)):
                raise _stranger(f"a page of {origin[:200]!r}")
        if site is not None and site != "same-origin":
            raise _stranger(f"a page that the browser calls {site[:40]!r}")

    def _is_ours(self, host: str) -> bool:
        return host.lower() in self._known or host.lower() in self._given


def _stranger(who: str) -> NotPermitted:
    return NotPermitted(
        f"{who} may not change this board",
        hint="Open the board under its own address; behind a reverse proxy start it with --allow-host HOST[:PORT].",
    )


def split_host(text: str) -> tuple[str, str]:
    """Return name and port (or the empty text) of ``HOST[:PORT]``.

    Raises:
        InvalidInput: it is neither.
    """
    name, colon, digits = text.rpartition(":")
    if not colon or text.endswith("]"):
        name, digits = text, ""
    is_port = digits.isascii() and digits.isdigit() and len(digits) <= 5 and 0 < int(digits) < 65_536
    if _NAME.fullmatch(name) is None or (colon and not text.endswith("]") and not is_port):
        raise InvalidInput(
            f"allow_host: {text[:200]!r} is not HOST or HOST:PORT",
            hint="Write no scheme and no path, such as board.example or localhost:9000; an IPv6 address in brackets.",
            field="allow_host",
        )
    return name, digits


def bracketed(address: str) -> str:
    """Return an address as it stands in a URL."""
    return f"[{address}]" if ":" in address else address


def is_loopback(address: str) -> bool:
    """Say whether a numeric address can be reached from this machine only."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def check_type(head: Head) -> None:
    """Let a write in that says once that its body is JSON; a form of another site could not.

    Raises:
        BadRequest: 415.
    """
    given = head.headers.get("content-type", [])
    kind, _, parameters = (given[0] if len(given) == 1 else "").lower().replace(" ", "").replace('"', "").partition(";")
    if head.headers.get("content-encoding", ["identity"]) != ["identity"]:
        raise BadRequest(415, "a body must not be compressed")
    if kind != "application/json" or parameters not in ("", "charset=utf-8"):
        raise BadRequest(
            415,
            "a write needs one header Content-Type: application/json",
            hint="curl: -H 'Content-Type: application/json'",
        )
