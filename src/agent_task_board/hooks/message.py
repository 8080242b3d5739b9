"""The message that a hook receives, and the outcome of one delivery attempt."""

from __future__ import annotations

from ..printable import escape_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OUTPUT = 65_536
"""The most bytes of output that are kept, of a command or a webhook."""
RECORDED = 2_000
"""The number of last characters of the output that an event records."""


class Message:
    """One notification: the delivery's id, its name (``done``, ``expired`` …), the event, and the current task."""

    __slots__ = ("delivery", "event", "notification", "task")

    def __init__(self, delivery: str, notification: str, event: dict[str, Any], task: dict[str, Any]) -> None:
        self.delivery = delivery
        self.notification = notification
        self.event = event
        self.task = task


class Outcome:
    """The outcome of one delivery attempt; without ``error``, the message is delivered.

    ``exit`` is a command's exit code, ``status`` a webhook's HTTP status, ``output`` the end of the output or of
    the HTTP answer.
    """

    __slots__ = ("error", "exit", "output", "status")

    def __init__(
        self, error: str | None = None, *, code: int | None = None, status: int | None = None, output: bytes = b""
    ) -> None:
        self.error = error
        self.exit = code
        self.status = status
        self.output = escape_text(output.decode("utf-8", "replace"))[-RECORDED:]

    def to_dict(self) -> dict[str, Any]:
        """Return ``exit``, ``status``, ``error`` and ``output``, without those that are ``None`` or empty."""
        found = {"exit": self.exit, "status": self.status, "error": self.error, "output": self.output or None}
        return {key: value for key, value in found.items() if value is not None}
