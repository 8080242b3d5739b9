"""Copies of the package with one fault each, to see that the checks find it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

from tests.proof.run import SOURCE

if TYPE_CHECKING:
    from pathlib import Path


class Sabotage(NamedTuple):
    """A fault: a fragment of the sources, and what stands there instead."""

    fragment: str
    instead: str


SABOTAGES = {
    "no token check": Sabotage("same_secret(lease_token_hash, :token_hash)", "1"),
    "no expiry check": Sabotage(':token_hash) AND lease_expires_at > :now"', ':token_hash)"'),
    "lost commits": Sabotage(
        'self.connection.execute("COMMIT")',
        'self.connection.execute("COMMIT" if __import__("random").random() > 0.05 else "ROLLBACK")',
    ),
}


def sabotaged(sabotage: Sabotage, place: Path) -> Path:
    """Copy the package to a new directory with the fault in it; return the directory to put on ``PYTHONPATH``.

    Raises:
        LookupError: the fragment is not in the sources, or more than once.
    """
    shutil.copytree(SOURCE / "agent_task_board", place / "agent_task_board")
    changed = 0
    for path in place.rglob("*.py"):
        text = path.read_text()
        if sabotage.fragment in text:
            changed += text.count(sabotage.fragment)
            path.write_text(text.replace(sabotage.fragment, sabotage.instead))
    if changed != 1:
        raise LookupError(f"{sabotage.fragment!r} stands {changed} times in the sources")
    return place
