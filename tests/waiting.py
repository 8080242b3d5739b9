"""How tests wait: for an event, never for a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    Found = TypeVar("Found")

LIMIT = 60.0
"""Seconds after which something that should have come is taken for lost; on a busy machine, too, only a fault is."""


def eventually(look: Callable[[], Found], what: str = "it") -> Found:
    """Look until there is something to be seen, and return it; an assertion fails when it never comes."""
    deadline = time.monotonic() + LIMIT
    while not (found := look()):
        assert time.monotonic() < deadline, f"{what} does not happen"
        time.sleep(0.005)
    return found
