"""The settings that the core works with; ``config.py`` fills them from a file."""

from __future__ import annotations

from . import instants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


LEASE_LOW = instants.SECOND
LEASE_HIGH = 7 * instants.DAY
WAIT_HIGH = 366 * instants.DAY
"""Bounds of a lease, and of a wait before the next attempt."""


class Hooks:
    """What is told to whom: ``command`` is an argv, ``webhook`` an address; each may be missing."""

    __slots__ = ("command", "events", "secret", "webhook")

    def __init__(
        self,
        *,
        events: Sequence[str] = ("done",),
        command: Sequence[str] | None = None,
        webhook: str | None = None,
        secret: str | None = None,
    ) -> None:
        self.events = frozenset(events)
        self.command = list(command) if command else None
        self.webhook = webhook
        self.secret = secret

    def targets(self) -> list[str]:
        """Return the names of those who are told: ``command``, ``webhook``."""
        return [name for name, given in (("command", self.command), ("webhook", self.webhook)) if given]


class Settings:
    """Lengths of time in milliseconds. The values here are the defaults of ``docs/configuration.md``."""

    __slots__ = (
        "archive_after",
        "backoff_base",
        "backoff_cap",
        "busy_timeout",
        "catch_up",
        "hooks",
        "lease",
        "max_attempts",
        "timezone",
    )

    def __init__(
        self,
        *,
        timezone: str = "Asia/Shanghai",
        lease: int = 15 * instants.MINUTE,
        max_attempts: int = 3,
        backoff_base: int = 30 * instants.SECOND,
        backoff_cap: int = instants.DAY,
        busy_timeout: int = 10 * instants.SECOND,
        catch_up: int = 10,
        archive_after: int | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        self.timezone = timezone
        self.lease = lease
        self.max_attempts = max_attempts
        self.backoff_base = backoff_base
        self.backoff_cap = backoff_cap
        self.busy_timeout = busy_timeout
        self.catch_up = catch_up
        self.archive_after = archive_after
        self.hooks = hooks
