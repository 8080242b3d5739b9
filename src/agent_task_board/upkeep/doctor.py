"""Check a board and everything around it, and repair it on request.

A check writes nothing. A repair runs only if it is asked for by name, and after a backup.
"""

from __future__ import annotations

import os

from .. import inputs
from ..errors import Unusable
from . import contents, surroundings
from .backup import backup
from .finding import ERROR, Checkup
from .repairs import FIXES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..board.core import Core
    from ..storage.db import Row


def doctor(
    core: Core,
    fix: str | None,
    config: str | os.PathLike[str] | None,
    ignored: Sequence[str],
    *,
    check_schedule: Callable[[Core, Row], None],
) -> dict[str, Any]:
    """Do what ``Board.doctor`` promises; ``check_schedule`` refuses a stored schedule that cannot create tasks."""
    if fix is not None:
        inputs.one_of(fix, "fix", FIXES)
    checkup = Checkup(core, None if config is None else os.fspath(config), ignored, check_schedule)
    found = _run(checkup)
    if fix is None:
        return found
    fixed: dict[str, Any] = {"name": fix, "backup": None, "did": []}
    if any(finding["fix"] == fix for finding in found["findings"]):
        if core.exists():
            fixed["backup"] = backup(core)["path"]
        fixed["did"] = FIXES[fix](checkup)
    return {**_run(checkup), "fixed": fixed}


def refuse_unhealthy(found: dict[str, Any]) -> None:
    """Refuse the answer of ``doctor`` if it has an error; ``details`` has the whole answer.

    Raises:
        Unusable: the board is not healthy.
    """
    errors = [finding for finding in found["findings"] if finding["level"] == ERROR]
    if errors:
        message = "; ".join(f"{error['check']}: {error['message']}" for error in errors)
        raise Unusable(f"the board is not healthy: {message}", hint=errors[0]["remedy"], **found)


def _run(checkup: Checkup) -> dict[str, Any]:
    """Run all checks; return ``{"findings", "healthy"}``."""
    findings = [*surroundings.check(checkup), *contents.check(checkup)]
    return {"findings": findings, "healthy": all(finding["level"] != ERROR for finding in findings)}
