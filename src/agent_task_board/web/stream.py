"""Server-sent events: new events of the history, for programs that wait for something."""

from __future__ import annotations

import json
import time

from .. import inputs
from ..errors import InvalidInput
from ..printable import escape_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from ..model import Event
    from ..service import Board
    from .messages import Head

STREAM_LIMIT = 32
"""Maximum number of open streams of one server."""
POLL_INTERVAL = 0.25
"""Seconds between two reads of the board."""
KEEP_ALIVE_INTERVAL = 15.0
"""Seconds without an event after which a comment keeps the stream alive."""
BATCH = 500
"""Maximum number of events of one read."""
RETRY_DELAY = 2_000
"""Milliseconds that a client should wait before it reconnects."""
RESET = b"event: reset\nid:\ndata: {}\n\n"
"""The last message of a stream whose board was replaced; the empty id clears the client's ``Last-Event-ID``."""


def start(head: Head, board: Board, after: int | None) -> int:
    """Return the sequence number after which a stream starts.

    ``Last-Event-ID`` takes precedence over ``after``; without both, it is the latest one.

    Raises:
        InvalidInput: ``Last-Event-ID`` or ``after`` is not a sequence number.
    """
    last = head.single("last-event-id")
    if last:
        if not (last.isascii() and last.isdigit() and len(last) <= 18):
            raise InvalidInput(f"Last-Event-ID: not a sequence number: {last[:60]!r}", field="Last-Event-ID")
        return int(last)
    if after is not None:
        return inputs.integer(after, "after", 0, 2**62)  # check now: a started stream cannot be refused
    newest = board.events(before=0, limit=1)["events"]
    return newest[0]["seq"] if newest else 0


def messages(board: Board, after: int, stopping: threading.Event) -> Iterator[bytes]:
    """Yield the events after a sequence number as server-sent events, until the server stops.

    The stream ends with a ``reset`` event when another board takes the place of this one, as after a restore: its
    sequence numbers mean something else. The client must read the board anew and start without ``after``.

    Memory is bounded: a slow client delays only its own stream, and no transaction is open meanwhile. Empty chunks let
    the caller check whether the client is still connected.
    """
    yield f"retry: {RETRY_DELAY}\n\n".encode()
    last_sent = time.monotonic()
    file = board.database.file_id()
    while not stopping.wait(POLL_INTERVAL):
        if board.database.file_id() != file:
            yield RESET
            return
        found = board.events(after=after, limit=BATCH)
        after = found["next"]
        if found["events"]:
            yield b"".join(f"id: {event['seq']}\ndata: {_as_json(event)}\n\n".encode() for event in found["events"])
            last_sent = time.monotonic()
        elif time.monotonic() - last_sent > KEEP_ALIVE_INTERVAL:
            yield b": no new events\n\n"
            last_sent = time.monotonic()
        else:
            yield b""


def _as_json(event: Event) -> str:
    return escape_json(json.dumps(event, ensure_ascii=False, separators=(",", ":")))
