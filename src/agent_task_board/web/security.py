"""Security checks: the host that a request names, the origin of a write, and the headers sent to browsers.

A page of another site can send requests to a server on this machine. With DNS rebinding it can even read the responses.
So a request must name a known host, and a write must come from the board's own page or from a program that is not a
browser.
"""

from __future__ import annotations

import ipaddress
import re

from ..errors import InvalidInput, NotPermitted
from .messages import BadRequest, Misdirected

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
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
"""Sent with every response. There are no CORS headers, so other origins cannot read responses."""

_DEFAULT_PORTS = ("", ":80", ":443")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\.?|\[[0-9A-Fa-f:.]+\]")


class Hosts:
    """The hosts that a server accepts.

    Args:
        port: the server's port; loopback names are accepted only with this port.
        address: the server's address; it is accepted with this port.
        allowed: further hosts: ``HOST`` (with this port or a default port) or ``HOST:PORT``.
    """

    def __init__(self, port: int, address: str, allowed: Iterable[str] = ()) -> None:
        self._port = port
        self.is_any = ipaddress.ip_address(address.partition("%")[0]).is_unspecified
        """Whether the server listens on every address of the machine."""
        names = ["127.0.0.1", "localhost", "[::1]", *([] if self.is_any else [bracketed(address)])]
        local_suffixes = ("", f":{port}") if port == 80 else (f":{port}",)
        self._local = {f"{name.lower()}{suffix}" for name in names for suffix in local_suffixes}
        self._allowed: set[str] = set()
        for host in allowed:
            name, digits = split_host(host)
            suffixes = (f":{digits}",) if digits else (*_DEFAULT_PORTS, f":{port}")
            self._allowed.update(f"{name.lower()}{suffix}" for suffix in suffixes)

    def check(self, head: Head, connection: socket.socket) -> None:
        """Check that a request names exactly one host, and an accepted one.

        A server that listens on every address of the machine accepts the one that the connection came to, too.

        Raises:
            Misdirected: no host, several, or an unknown one. The connection must then be closed.
            BadRequest: the target of the request names another one.
        """
        named = head.headers.get("host", [])
        if len(named) != 1:
            raise Misdirected(
                f"wrong number of Host headers: {len(named)} (expected 1)",
                hint="Send one Host header: the address that `atb serve` printed, or a name given by --allow-host.",
            )
        for host in (named[0], head.authority):
            if host is not None and not (self._is_accepted(host) or self._is_reached(host, connection)):
                raise Misdirected(
                    f"unknown host: {host[:200]!r}",
                    hint="Use the address that `atb serve` printed. Behind a reverse proxy or port forwarding, start "
                    "`atb serve` with --allow-host HOST[:PORT].",
                )
        if head.authority is not None and head.authority.lower() != named[0].lower():
            raise BadRequest(400, "request target and Host header differ")

    @staticmethod
    def check_site(head: Head) -> None:
        """Check that a browser does not ask for a page of another site, as far as it tells.

        Such a page cannot read the answer, but it can measure how long it takes. Only the page itself may be opened by
        a link from elsewhere: it is the same for all boards.

        Raises:
            NotPermitted: another site asks.
        """
        site = head.single("sec-fetch-site")
        if site in (None, "same-origin", "none"):
            return
        is_link = head.path == "/" and head.method in ("GET", "HEAD") and head.single("sec-fetch-mode") == "navigate"
        if not (is_link and head.single("sec-fetch-dest") == "document"):
            raise _cross_origin(f"Sec-Fetch-Site: {str(site)[:40]!r}")

    def check_origin(self, head: Head) -> None:
        """Check that a write comes from the board's own page, or from a program that is not a browser.

        Another port of this machine is the same *site*, but another origin: it is refused.

        Raises:
            NotPermitted: the write comes from another origin.
        """
        origin, site = head.single("origin"), head.single("sec-fetch-site")
        if origin is not None:
            scheme, separator, host = origin.partition("://")
            host = host.lower()
            is_own_page = scheme == "http" and host == head.headers["host"][0].lower()
            if not separator or not (is_own_page or (scheme in ("http", "https") and host in self._allowed)):
                raise _cross_origin(f"Origin: {origin[:200]!r}")
        if site is not None and site != "same-origin":
            raise _cross_origin(f"Sec-Fetch-Site: {site[:40]!r}")

    def _is_reached(self, host: str, connection: socket.socket) -> bool:
        """Say whether a host is the address that a connection came to; no name can lead there by rebinding."""
        if not self.is_any:
            return False
        try:
            address = str(connection.getsockname()[0]).partition("%")[0]
        except OSError:
            return False
        return host.lower() == f"{bracketed(address)}:{self._port}"

    def _is_accepted(self, host: str) -> bool:
        return host.lower() in self._local or host.lower() in self._allowed


def _cross_origin(header: str) -> NotPermitted:
    return NotPermitted(
        f"request from another origin: {header}",
        hint="Open the board at its own address. Behind a reverse proxy, start `atb serve` with --allow-host "
        "HOST[:PORT].",
    )


def split_host(text: str) -> tuple[str, str]:
    """Return the name and the port (or the empty string) of ``HOST[:PORT]``.

    Raises:
        InvalidInput: the text has another form.
    """
    name, colon, digits = text.rpartition(":")
    if not colon or text.endswith("]"):
        name, digits = text, ""
    is_port = digits.isascii() and digits.isdigit() and len(digits) <= 5 and 0 < int(digits) < 65_536
    if _NAME.fullmatch(name) is None or (colon and not text.endswith("]") and not is_port):
        raise InvalidInput(
            f"allow_host: not HOST or HOST:PORT: {text[:200]!r}",
            hint="Leave out scheme and path, for example board.example or localhost:9000. Put IPv6 addresses in "
            "brackets.",
            field="allow_host",
        )
    return name, digits


def bracketed(address: str) -> str:
    """Return an address in the form used in URLs."""
    return f"[{address}]" if ":" in address else address


def is_loopback(address: str) -> bool:
    """Return whether a numeric address is reachable only from this machine."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def check_type(head: Head) -> None:
    """Check that a write declares its body as JSON; an HTML form of another site cannot.

    Raises:
        BadRequest: 415.
    """
    given = head.headers.get("content-type", [])
    kind, _, parameters = (given[0] if len(given) == 1 else "").lower().replace(" ", "").replace('"', "").partition(";")
    if head.headers.get("content-encoding", ["identity"]) != ["identity"]:
        raise BadRequest(415, "compressed bodies are not supported")
    if kind != "application/json" or parameters not in ("", "charset=utf-8"):
        raise BadRequest(
            415,
            "Content-Type is not application/json",
            hint="With curl, add -H 'Content-Type: application/json'.",
        )
