"""What SQLite reports, as refusals."""

from __future__ import annotations

import sqlite3
from time import monotonic

from ..errors import Busy, Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn, TypeVar

    T = TypeVar("T")


def changed(path: str) -> Busy:
    """Return the refusal of a read without locks, during which another process changed the file."""
    return Busy(
        f"{path} changed while it was read",
        hint="Repeat the call. This user cannot write to the directory, so it cannot lock the board while reading.",
    )


def until_unchanged(read: Callable[[], T], seconds: float) -> T:
    """Repeat a read until no other process disturbs it.

    Raises:
        Busy: it was disturbed for ``seconds``.
    """
    deadline = monotonic() + seconds
    while True:
        try:
            return read()
        except Busy:
            if monotonic() >= deadline:
                raise


def refuse(error: sqlite3.Error, path: str) -> NoReturn:
    """Raise the refusal for a SQLite error; an error in a statement of this program is raised again as it is."""
    code = primary_code(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
        raise Busy(f"{path} is locked by another process") from error
    if code == 0 and isinstance(error, sqlite3.OperationalError):
        code = sqlite3.SQLITE_CORRUPT  # raised by the module itself: stored text that is not UTF-8
    known = UNUSABLE.get(code)
    if known is None:
        raise error
    what, hint = known
    raise Unusable(f"{path}: {what}", hint=hint, sqlite=str(error)) from error


def is_damage(error: sqlite3.Error) -> bool:
    """Say whether an error means that the file, or the full-text index in it, is damaged."""
    return primary_code(error) == sqlite3.SQLITE_CORRUPT


def primary_code(error: sqlite3.Error) -> int:
    """Return the number of an error of SQLite, without the part that tells variants apart."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


UNUSABLE: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: (
        "the disk is full",
        "Free some space, then repeat the call; nothing was changed.",
    ),
    sqlite3.SQLITE_NOTADB: (
        "this file is not a SQLite database",
        "Choose another data directory with --data-dir; this file was not changed.",
    ),
    sqlite3.SQLITE_CORRUPT: ("the file is damaged", "Stop all writers and restore the newest backup."),
    sqlite3.SQLITE_READONLY: (
        "the file or its directory cannot be written",
        "Check their owner and permissions, and that the disk is not mounted read-only.",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "the file cannot be opened",
        "Check that it is a file, and that this user can read and write it and its directory.",
    ),
    sqlite3.SQLITE_PERM: ("permission denied", "Check the owner and permissions of the file and its directory."),
    sqlite3.SQLITE_IOERR: (
        "the disk reports an error",
        "Check the disk and its free space; nothing was changed.",
    ),
    sqlite3.SQLITE_NOLFS: ("the file is too large for this file system", "Move the board to another disk."),
    sqlite3.SQLITE_INTERRUPT: (
        "a statement took too long and was ended",
        "Run `atb doctor`; nothing was changed.",
    ),
    sqlite3.SQLITE_TOOBIG: ("a value is too large for SQLite", "Send smaller values; nothing was changed."),
}
"""What is wrong and what to do, by error code of SQLite."""


def refuse_scratch(error: sqlite3.Error, path: str) -> NoReturn:
    """Raise the refusal for an error met while using temporary tables in a connection to the board at ``path``."""
    if primary_code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        raise Unusable(
            f"temporary files cannot be written: {error}",
            hint="Free some space on the temporary directory, or choose another one with SQLITE_TMPDIR.",
        ) from error
    refuse(error, path)
