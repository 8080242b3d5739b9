"""Server-sent events: the history as it grows, for programs that wait for something."""

from __future__ import annotations

import json
import time

from .. import inputs
from ..errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from ..service import Board
    from .messages import Head

STREAMS = 32
"""Streams that one server feeds at once."""
PAUSE = 0.25
"""Seconds between two looks at the board."""
SILENCE = 15.0
"""Seconds without an event after which a comment tells that the stream lives."""
BATCH = 500
RETRY = 2_000
"""Milliseconds after which a client that lost the stream comes back."""


def start(head: Head, board: Board, after: int | None) -> int:
    """Return the sequence number that a stream goes on after: the last one that the client saw, else the latest.

    Raises:
        InvalidInput: ``Last-Event-ID``, or ``after``, is not such a number.
    """
    last = head.one("last-event-id")
    if last:
        if not (last.isascii() and last.isdigit() and len(last) <= 18):
            raise InvalidInput(f"Last-Event-ID: {last[:60]!r} is not the number of an event", field="Last-Event-ID")
        return int(last)
    if after is not None:
        return inputs.integer(after, "after", 0, 2**62)  # once the stream has begun, nothing can be refused
    newest = board.events(before=0, limit=1)["events"]
    return newest[0]["seq"] if newest else 0


def messages(board: Board, after: int, stopping: threading.Event) -> Iterator[bytes]:
    """Yield the events after a sequence number, in the form of the standard, until the server stops.

    Memory is bounded: a client that reads slowly holds up its own stream only, and no transaction is open meanwhile.
    """
    yield f"retry: {RETRY}\n\n".encode()
    told = time.monotonic()
    while not stopping.wait(PAUSE):
        found = board.events(after=after, limit=BATCH)
        after = found["next"]
        if found["events"]:
            yield b"".join(
                f"id: {event['seq']}\ndata: {json.dumps(event, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
                for event in found["events"]
            )
            told = time.monotonic()
        elif time.monotonic() - told > SILENCE:
            yield b": nothing new\n\n"
            told = time.monotonic()
        else:
            yield b""
