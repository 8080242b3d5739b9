"""The settings of a board; ``config.py`` reads them from a file."""

from __future__ import annotations

from . import instants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


LEASE_LOW = instants.SECOND
LEASE_HIGH = 7 * instants.DAY
WAIT_HIGH = 366 * instants.DAY
AGE_HIGH = 36_600 * instants.DAY
"""Limits of a lease, of the wait before the next attempt, and of the age at which tasks are archived."""


class Hooks:
    """Which events are sent to which targets: ``command`` is an argv, ``webhook`` a URL, ``None`` no target."""

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
        """Return the names of the targets: ``command``, ``webhook``, or both."""
        return [name for name, given in (("command", self.command), ("webhook", self.webhook)) if given]


class Settings:
    """All durations are in milliseconds; ``docs/configuration.md`` explains each setting."""

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
