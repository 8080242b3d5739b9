"""One finding of the doctor, and what a checkup looks at."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..board.core import Core
    from ..storage.db import Row

    Finding = dict[str, Any]

OK, NOTE, WARNING, ERROR = "ok", "note", "warning", "error"
"""The level of a finding; a board with an ``error`` is not healthy."""


class Checkup:
    """The board that a checkup looks at, the instant, the configuration files to check, and what was ignored.

    ``check_schedule`` refuses a stored schedule that cannot create tasks.
    """

    def __init__(
        self, core: Core, config: str | None, ignored: Sequence[str], check_schedule: Callable[[Core, Row], None]
    ) -> None:
        self.core = core
        self.ignored = ignored
        self.check_schedule = check_schedule
        self.directory = core.database.directory
        self.path = core.database.path
        self.now = core.clock()
        self.configs = {os.path.join(self.directory, "config.toml"), *([os.path.abspath(config)] if config else [])}


def finding(check: str, level: str, message: str, remedy: str | None = None, fix: str | None = None) -> Finding:
    """Return a finding as JSON: ``{"check", "level", "message", "remedy", "fix"}``."""
    return {"check": check, "level": level, "message": message, "remedy": remedy, "fix": fix}
