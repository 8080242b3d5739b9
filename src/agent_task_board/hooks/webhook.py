"""Call the one address of the configuration, with limits that it cannot get out of."""

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
from .message import OUTPUT, Outcome, readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .message import Message

LIMIT = 5.0
"""Seconds for everything: the name, the connection, redirects, the answer."""
REDIRECTS = 3
_REPEATED = (301, 302, 307, 308)
"""Redirects after which the same message is sent to the new place; 303 would ask for something else."""


def call(url: str, secret: str | None, message: Message, now: int) -> Outcome:
    """Send a message to an address; ``now`` is in milliseconds. Whatever goes wrong is in the outcome.

    A name server cannot be hurried, so that a thread does the work, and is left alone when time is up.
    """
    body = json.dumps(
        {"delivery": message.delivery, "told": message.notification, "event": message.event, "task": message.task},
        ensure_ascii=False,
    ).encode("utf-8", "replace")
    exchange = _Exchange(url, body, {**_HEADERS, **headers(message, body, secret, now)})
    thread = threading.Thread(target=exchange.run, name="webhook", daemon=True)
    thread.start()
    thread.join(LIMIT)
    outcome = exchange.outcome
    if outcome is None:
        exchange.abandon()
        return _late()
    return outcome


def _late() -> Outcome:
    return Outcome(f"no answer within {LIMIT:g} seconds")


def headers(message: Message, body: bytes, secret: str | None, now: int) -> dict[str, str]:
    """Return the headers that tell of a message and, where there is a secret, prove where it comes from."""
    stamp = str(now // 1_000)
    found = {"X-ATB-Delivery": message.delivery, "X-ATB-Event": message.notification, "X-ATB-Timestamp": stamp}
    if secret is not None:
        signature = hmac.new(secret.encode(), f"{stamp}.".encode() + body, "sha256").hexdigest()
        found["X-ATB-Signature"] = f"sha256={signature}"
    return found


_HEADERS = {"Content-Type": "application/json", "User-Agent": f"agent-task-board/{__version__}", "Connection": "close"}


class _Exchange:
    """One message on its way to one address, with the redirects that it may meet."""

    def __init__(self, url: str, body: bytes, fields: dict[str, str]) -> None:
        self.url = url
        self.body = body
        self.fields = fields
        self.outcome: Outcome | None = None
        self._connection: http.client.HTTPConnection | None = None

    def run(self) -> None:
        """Send the message, and note what came of it."""
        try:
            self.outcome = self._follow()
        except TimeoutError:
            self.outcome = _late()
        except OSError as error:  # names that do not resolve, refusals, certificates
            self.outcome = Outcome(readable(error.strerror or str(error) or type(error).__name__)[:500])
        except http.client.InvalidURL:
            self.outcome = Outcome("the address cannot be used")
        except http.client.HTTPException as error:
            self.outcome = Outcome(f"the answer is not HTTP: {readable(repr(error))[:200]}")
        except ValueError:  # the message would tell the address, which may hold a secret
            self.outcome = Outcome("the address cannot be used")

    def abandon(self) -> None:
        """Wake the thread that waits for the other side."""
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _follow(self) -> Outcome:
        url = self.url
        for _ in range(1 + REDIRECTS):
            status, place, said = self._post(url)
            if 200 <= status < 300:
                return Outcome(status=status)
            if status not in _REPEATED or not place:
                return Outcome(f"HTTP status {status}", status=status, output=said)
            url = urljoin(url, place)
            if _origin(url) != _origin(self.url):
                return Outcome("redirected to another host, port or scheme", status=status)
        return Outcome(f"redirected more than {REDIRECTS} times", status=status)

    def _post(self, url: str) -> tuple[int, str | None, bytes]:
        """Send the message to one place; return the status, where it redirects to, and the end of what it said."""
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
            said = response.read(OUTPUT)
            return response.status, response.getheader("Location"), said


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "", "", 0  # no origin that any address has
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
