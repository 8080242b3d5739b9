"""The settings that the core works with; ``config.py`` fills them from a file."""

from __future__ import annotations

from . import instants


class Settings:
    """Lengths of time in milliseconds. The values here are the defaults of ``docs/configuration.md``."""

    __slots__ = ("backoff_base", "backoff_cap", "busy_timeout", "lease", "max_attempts", "timezone")

    def __init__(
        self,
        *,
        timezone: str = "Asia/Shanghai",
        lease: int = 15 * instants.MINUTE,
        max_attempts: int = 3,
        backoff_base: int = 30 * instants.SECOND,
        backoff_cap: int = instants.DAY,
        busy_timeout: int = 10 * instants.SECOND,
    ) -> None:
        self.timezone = timezone
        self.lease = lease
        self.max_attempts = max_attempts
        self.backoff_base = backoff_base
        self.backoff_cap = backoff_cap
        self.busy_timeout = busy_timeout
