"""What a command writes: its end is kept, and lines that begin with ``::`` are messages to the board."""

from __future__ import annotations

from ..printable import escape_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

KEPT = 65_536
"""Bytes of output that are kept: the last ones."""
LINE = 20_000
"""Characters of a line that can be a message, at most."""
ERROR_LINES = 20
"""Lines of standard error that become the error of a failed attempt: the last ones."""
MASK = "[lease token]"


class Tail:
    """The last bytes of a stream, without the lease token and with hidden characters escaped."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self._bytes = b""
        self.written = 0
        """Bytes that were written so far."""

    def add(self, chunk: bytes) -> None:
        """Take what was written."""
        self.written += len(chunk)
        # More than is shown: a token at the cut would otherwise be shown in part.
        self._bytes = (self._bytes + chunk)[-(KEPT + len(self._token)) :]

    def text(self) -> str:
        """Return the last ``KEPT`` bytes as text."""
        masked = self._bytes.replace(self._token, MASK.encode())
        return escape_text(masked[-KEPT:].decode("utf-8", "replace").replace("\r\n", "\n"))

    def last_lines(self, limit: int) -> str:
        """Return the last lines, of at most ``limit`` characters."""
        return "\n".join(self.text().rstrip().splitlines()[-ERROR_LINES:])[-limit:]


class Message:
    """A message of a command: its progress in percent, a note, or both."""

    __slots__ = ("note", "progress")

    def __init__(self, progress: int | None, note: str | None) -> None:
        self.progress = progress
        self.note = note


class Lines:
    """Cuts a stream into lines, and finds the messages among them."""

    def __init__(self) -> None:
        self._rest = b""

    def messages(self, chunk: bytes) -> Iterator[Message]:
        """Take what was written; yield the messages that are complete."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[: 4 * LINE]
        for line in lines:
            if line.startswith(b"::") and (found := message(line.decode("utf-8", "replace")[:LINE].rstrip())):
                yield found


def message(line: str) -> Message | None:
    """Return the message of a line: ``::progress PERCENT [NOTE]`` or ``::note TEXT``; ``None`` if it has none."""
    word, _, rest = line.partition(" ")
    rest = rest.strip()
    if word == "::note" and rest:
        return Message(None, rest)
    if word == "::progress":
        percent, _, note = rest.partition(" ")
        if percent.rstrip("%").isdecimal() and len(percent) <= 4 and int(percent.rstrip("%")) <= 100:
            return Message(int(percent.rstrip("%")), note.strip() or None)
    return None
