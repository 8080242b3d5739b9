"""Call the configured webhook, within strict limits."""

from __future__ import annotations

import contextlib
import hmac
import http.client
import json
import socket
import ssl
import threading
from urllib.parse import urljoin, urlsplit

from .._version import __version__
from ..printable import escape_json, escape_line
from .message import OUTPUT, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .message import Message

LIMIT = 5.0
"""Seconds for everything: name lookup, connection, redirects and answer."""
REDIRECTS = 3
_REPEATED = (301, 302, 307, 308)
"""Redirects after which the same message is sent to the new URL; 303 would ask for a GET."""


def call(url: str, secret: str | None, message: Message, now: int) -> Outcome:
    """Send a message to a URL; ``now`` is in milliseconds. The outcome has every error.

    Name lookup has no time limit of its own, so a thread does the work. It is abandoned when the time is up.
    """
    content = {
        "delivery": message.delivery,
        "told": message.notification,
        "event": message.event,
        "task": message.task,
    }
    body = escape_json(json.dumps(content, ensure_ascii=False)).encode("utf-8", "replace")
    exchange = _Exchange(url, body, {**_HEADERS, **headers(message, body, secret, now)})
    thread = threading.Thread(target=exchange.run, name="webhook", daemon=True)
    thread.start()
    thread.join(LIMIT)
    outcome = exchange.outcome
    if outcome is None:
        exchange.abandon()
        return _timed_out()
    return outcome


def _timed_out() -> Outcome:
    return Outcome(f"no answer within {LIMIT:g} seconds")


def headers(message: Message, body: bytes, secret: str | None, now: int) -> dict[str, str]:
    """Return the headers that describe a message and, if there is a secret, sign it."""
    stamp = str(now // 1_000)
    found = {"X-ATB-Delivery": message.delivery, "X-ATB-Event": message.notification, "X-ATB-Timestamp": stamp}
    if secret is not None:
        signature = hmac.new(secret.encode(), f"{stamp}.".encode() + body, "sha256").hexdigest()
        found["X-ATB-Signature"] = f"sha256={signature}"
    return found


_HEADERS = {"Content-Type": "application/json", "User-Agent": f"agent-task-board/{__version__}", "Connection": "close"}


class _Exchange:
    """Sends one message to one URL, and follows redirects."""

    def __init__(self, url: str, body: bytes, fields: dict[str, str]) -> None:
        self.url = url
        self.body = body
        self.fields = fields
        self.outcome: Outcome | None = None
        self._connection: http.client.HTTPConnection | None = None

    def run(self) -> None:
        """Send the message and set ``outcome``."""
        try:
            self.outcome = self._follow()
        except TimeoutError:
            self.outcome = _timed_out()
        except OSError as error:  # unknown name, connection refused, invalid certificate
            self.outcome = Outcome(escape_line(error.strerror or str(error) or type(error).__name__)[:500])
        except http.client.InvalidURL:
            self.outcome = Outcome("the URL cannot be used")
        except http.client.HTTPException as error:
            self.outcome = Outcome(f"the answer is not HTTP: {escape_line(repr(error))[:200]}")
        except ValueError:  # its message has the URL, which can include a secret
            self.outcome = Outcome("the URL cannot be used")

    def abandon(self) -> None:
        """Close the connection, so that the waiting thread ends."""
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _follow(self) -> Outcome:
        url = self.url
        for _ in range(1 + REDIRECTS):
            status, location, answer = self._post(url)
            if 200 <= status < 300:
                return Outcome(status=status)
            if status not in _REPEATED or not location:
                return Outcome(f"HTTP status {status}", status=status, output=answer)
            url = urljoin(url, location)
            if _origin(url) != _origin(self.url):
                return Outcome("redirected to another host, port or scheme", status=status)
        return Outcome(f"redirected more than {REDIRECTS} times", status=status)

    def _post(self, url: str) -> tuple[int, str | None, bytes]:
        """Send the message to one URL; return the status, the redirect's location, and the beginning of the answer."""
        scheme, host, port = _origin(url)
        if not host:
            raise ValueError("no host")
        parts = urlsplit(url)
        if scheme == "https":
            context = ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(host, port, timeout=LIMIT, context=context)
        else:
            self._connection = http.client.HTTPConnection(host, port, timeout=LIMIT)
        with contextlib.closing(self._connection) as connection:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("POST", target, self.body, self.fields)
            response = connection.getresponse()
            answer = response.read(OUTPUT)
            return response.status, response.getheader("Location"), answer


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "", "", 0  # equal to the origin of no usable URL
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
