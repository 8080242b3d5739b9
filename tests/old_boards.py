"""Boards as earlier versions made them."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from importlib import resources
from typing import TYPE_CHECKING

from agent_task_board.storage.db import APPLICATION_ID, FILE, split_statements

if TYPE_CHECKING:
    from pathlib import Path


def turn_into_schema_1(directory: Path) -> None:
    """Rewrite a closed board of the newest schema as the first version would have left it."""
    path, new = str(directory / FILE), str(directory / "old.db")
    script = (
        resources.files("agent_task_board").joinpath("storage/migrations/0001_initial.sql").read_text(encoding="utf-8")
    )
    statements = split_statements(script)
    with closing(sqlite3.connect(new, isolation_level=None)) as old:
        for statement in statements:
            if "CREATE TRIGGER" not in statement:
                old.execute(statement)
        old.execute("ATTACH ? AS newest", (path,))
        old.execute("DELETE FROM board")
        for (table,) in old.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'").fetchall():
            columns = ", ".join(row[1] for row in old.execute(f"PRAGMA main.table_info({table})"))
            old.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newest.{table}")
        old.execute("DETACH newest")
        for statement in statements:
            if "CREATE TRIGGER" in statement:
                old.execute(statement)
        old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        old.execute("PRAGMA user_version = 1")
        old.execute("PRAGMA journal_mode = WAL")
    os.replace(new, path)
