"""Backups: the board as one ZIP that opens alone, and a new board made of one."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .db import Database


def before_migration(database: Database, version: int) -> None:
    """Back up a board whose schema is about to change; the caller holds the write lock."""
