"""What a hook receives, and what became of one attempt to deliver it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OUTPUT = 65_536
"""Bytes of output that are kept, of a command as of a webhook."""
RECORDED = 2_000
"""Characters of the output that an event records: the last ones."""


class Message:
    """One notification: its id, what happened (``done``, ``expired`` …), the event, and the task as it is now."""

    __slots__ = ("delivery", "event", "notification", "task")

    def __init__(self, delivery: str, notification: str, event: dict[str, Any], task: dict[str, Any]) -> None:
        self.delivery = delivery
        self.notification = notification
        self.event = event
        self.task = task


class Outcome:
    """The outcome of one attempt; without ``error`` the message is delivered.

    ``exit`` is a command's exit code, ``status`` a webhook's HTTP status, ``output`` the end of what either printed.
    """

    __slots__ = ("error", "exit", "output", "status")

    def __init__(
        self, error: str | None = None, *, code: int | None = None, status: int | None = None, output: bytes = b""
    ) -> None:
        self.error = error
        self.exit = code
        self.status = status
        self.output = readable(output.decode("utf-8", "replace"))[-RECORDED:]

    def to_dict(self) -> dict[str, Any]:
        """Return ``exit``, ``status``, ``error`` and ``output``, those that there are."""
        found = {"exit": self.exit, "status": self.status, "error": self.error, "output": self.output or None}
        return {key: value for key, value in found.items() if value is not None}


def readable(text: str) -> str:
    """Return text whose control characters, but for line breaks and tabs, are replaced."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text)
