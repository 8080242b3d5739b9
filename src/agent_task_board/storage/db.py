"""The board's file: connections, the two kinds of transaction, and migrations.

This module alone opens SQLite and holds every pragma. A write transaction begins with ``BEGIN IMMEDIATE``: a
transaction that read first would fail at once when another writer got in between, whatever its timeout.

Never open, copy or hash ``tasks.db``, ``tasks.db-wal`` or ``tasks.db-shm`` by other means in a process that has a
connection: closing any descriptor of the file drops the process's POSIX locks on it
(https://www.sqlite.org/howtocorrupt.html, section 2.2).
"""

from __future__ import annotations

import os
import sqlite3
import stat
from _operator import _compare_digest as compare_digest  # as hmac has it, without its imports
from _thread import allocate_lock, get_ident

from ..errors import Busy, Unusable, no_board
from .turnstile import Turnstile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import NoReturn

Connection = sqlite3.Connection
Cursor = sqlite3.Cursor
Row = sqlite3.Row
Error = sqlite3.Error
IntegrityError = sqlite3.IntegrityError
"""The library's types, for those who work inside a transaction: ``sqlite3`` is imported in this package only."""

SQLITE_VERSION = sqlite3.sqlite_version_info

FILE = "tasks.db"
APPLICATION_ID = 0x41544231  # "ATB1"
SCHEMA_VERSION = 2
"""The newest schema; the number of files in ``migrations``."""
OLDEST_SQLITE = (3, 38, 0)
"""The first SQLite with the operator ``->>``; STRICT tables came with 3.37."""

_creating = allocate_lock()
_NO_WAL = "Put the data directory on a local disk: WAL needs shared memory, which network and shared folders lack."


class Database:
    """One board file. Safe to share between threads and across ``fork``: each gets a connection of its own.

    Args:
        directory: the data directory.
        create: make the board at the first write where there is none. Without it, a missing board behaves as an
            empty one that cannot be changed.
        read_only: never write, not even to migrate.
        busy_timeout: seconds that a writer waits for the write lock.
        before_migration: called under the write lock before the schema of an older board is changed.
    """

    def __init__(
        self,
        directory: str,
        *,
        create: bool = False,
        read_only: bool = False,
        busy_timeout: float = 10.0,
        before_migration: Callable[[], object] | None = None,
    ) -> None:
        self._sessions: dict[tuple[int, int], Session] = {}  # first, since __del__ needs it
        self.directory = os.path.abspath(directory)  # a later chdir must not lead to another board
        self.path = os.path.join(self.directory, FILE)
        self.created = False
        """Whether this object made the board."""
        self.is_missing = False
        """Whether the latest transaction found no board, and ran on an empty one instead."""
        self._create = create and not read_only
        self._read_only = read_only
        self._busy_timeout = busy_timeout
        self.before_migration = before_migration

    def exists(self) -> bool:
        """Say whether there is a board file; an empty file is none yet."""
        found = self.stat()
        return found is not None and found.st_size > 0

    def stat(self) -> os.stat_result | None:
        """Return what the file system tells of the board's file; ``None`` if it does not exist.

        Raises:
            Unusable: it is not a file, or may not be looked at.
        """
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unusable(f"{self.path}: {error.strerror}") from error
        if not stat.S_ISREG(found.st_mode):
            raise Unusable(f"{self.path} is not a file", hint="Name another data directory with --data-dir.")
        return found

    def file_id(self) -> tuple[int, int] | None:
        """Return what tells this file from any other that lay, or will lie, under its path; ``None``: there is none."""
        found = self.stat()
        return None if found is None else (found.st_dev, found.st_ino)

    def owns(self, path: str) -> bool:
        """Say whether a path is a file of this board; to open one by other means would drop SQLite's locks on it."""
        names = (FILE, f"{FILE}-wal", f"{FILE}-shm")
        folder = os.path.dirname(os.path.realpath(path))
        if os.path.basename(path) in names and os.path.realpath(self.directory) == folder:
            return True
        for name in names:
            try:
                if os.path.samefile(path, os.path.join(self.directory, name)):
                    return True
            except (OSError, ValueError):
                continue
        return False

    def __del__(self) -> None:
        self.close()

    def read(self) -> _Read:
        """Return a context manager: one read transaction, a single view of the board from first to last query."""
        return _Read(self)

    def write(self) -> _Write:
        """Return a context manager: one write transaction, committed at the end or rolled back by an exception."""
        return _Write(self)

    def close(self) -> None:
        """Close every connection of this process."""
        pid = os.getpid()
        for key in list(self._sessions):
            session = self._sessions.pop(key, None) if key[0] == pid else None
            if session is not None:  # else its thread has just left
                session.close()

    def leave_thread(self) -> None:
        """Close the connection of this thread, which is about to end."""
        session = self._sessions.pop((os.getpid(), get_ident()), None)
        if session is not None:
            session.close()

    def session(self, *, to_write: bool = False) -> Session:
        """Return the connection of this thread, opened on first use; only a write makes a board."""
        key = (os.getpid(), get_ident())  # a connection must not cross a fork
        session = self._sessions.get(key)
        found = self.stat()
        missing = (found is None or found.st_size == 0) and not (to_write and self._create)
        if session is None or session.is_absent != missing or session.is_momentary or not session.has_open(found):
            if session is not None:
                session.close()
            session = self._sessions[key] = self._open(missing=missing)
            self.is_missing = missing
        return session

    def _open(self, *, missing: bool) -> Session:
        try:
            if missing:
                return Session.absent(self)
            if not self.exists():
                self._make_directory()
            if self._read_only or not os.access(self.directory, os.W_OK):
                return self._open_read_only()
            return Session(self, self.connect(f"file://{uri_path(self.path)}?mode=rw"))
        except sqlite3.Error as error:
            refuse(error, self.path)

    def connect(self, uri: str) -> sqlite3.Connection:
        """Open a connection in the way of this package: our transactions, our row type, our functions."""
        refuse_old_sqlite(SQLITE_VERSION)
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=self._busy_timeout,
            isolation_level=None,  # transactions are ours alone
            check_same_thread=False,  # session() keeps them apart; close() may come from another thread
        )
        connection.row_factory = sqlite3.Row
        connection.create_function("same_secret", 2, _same_secret)
        return connection

    def _open_read_only(self) -> Session:
        """Open for reading, also in a directory that cannot be written.

        There SQLite cannot make its shared-memory file. A board without a write-ahead log was closed cleanly and
        can be read as it lies; one with a log cannot, since ``immutable`` would silently ignore the log.
        """
        uri = f"file://{uri_path(self.path)}"
        connection = self.connect(f"{uri}?mode=ro")
        try:
            connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            if _primary(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            try:
                pending = os.stat(f"{self.path}-wal").st_size > 0
            except FileNotFoundError:
                pending = False
            if pending:
                raise Unusable(
                    f"{self.path}: the directory cannot be written, and the board was not closed cleanly",
                    hint="Run `atb tick` once as the user who owns the directory, then read again.",
                ) from error
            immutable = self.connect(f"{uri}?mode=ro&immutable=1")
            return Session(self, immutable, is_read_only=True, is_momentary=True)
        except BaseException:
            connection.close()
            raise
        return Session(self, connection, is_read_only=True)

    def refuse_shared_file_system(self) -> None:
        """Refuse a board where WAL would seem to work, and lose what two machines write."""
        from .filesystem import shared_type

        kind = shared_type(self.directory)
        if kind is not None:
            raise Unusable(f"{self.path} lies on a shared file system ({kind})", hint=_NO_WAL)

    def _make_directory(self) -> None:
        """Make the data directory and an empty board file, readable by this user alone; a refusal makes nothing."""
        refuse_old_sqlite(SQLITE_VERSION)
        self.refuse_shared_file_system()
        try:
            with _creating:  # else closing the new file could drop the locks of another thread's connection to it
                if not os.path.isdir(self.directory):
                    os.makedirs(self.directory, mode=0o700, exist_ok=True)
                    _write_new(os.path.join(self.directory, ".gitignore"), b"*\n")
                _write_new(self.path, b"")
        except OSError as error:
            raise Unusable(f"{error.filename or self.directory}: {error.strerror}") from error


class Session:
    """One connection with its place in the line of writers."""

    def __init__(
        self,
        database: Database,
        connection: sqlite3.Connection,
        *,
        is_absent: bool = False,
        is_read_only: bool = False,
        is_momentary: bool = False,
    ) -> None:
        self.database = database
        self.connection = connection
        self.is_absent = is_absent
        self._is_read_only = is_read_only
        self.is_momentary = is_momentary
        """Whether it would never see what others write: good for one transaction."""
        self._file = None if is_absent else database.stat()
        self.turnstile = Turnstile(database.directory)
        self._ready_to_write = False
        connection.execute("PRAGMA foreign_keys = ON")

    @classmethod
    def absent(cls, database: Database) -> Session:
        """Stand in for a board that is not there: an empty one in memory."""
        session = cls(database, database.connect(":memory:"), is_absent=True)
        session.connection.execute("BEGIN IMMEDIATE")
        migrate(session.connection, 0)
        session.connection.execute("COMMIT")
        return session

    def has_open(self, found: os.stat_result | None) -> bool:
        """Say whether this is the file that is there now; it may have been removed, or replaced from a backup."""
        return self.is_absent or (found is not None and self._file is not None and os.path.samestat(found, self._file))

    def begin_write(self) -> None:
        """Begin a write transaction, and create or migrate the schema in it."""
        connection = self.connection
        if self._is_read_only:
            what, hint = _UNUSABLE[sqlite3.SQLITE_READONLY]
            raise Unusable(f"{self.database.path}: {what}", hint=hint)
        if not (self._ready_to_write or self.is_absent):
            self._make_ready()
        connection.execute("BEGIN IMMEDIATE")
        self._bring_up_to_date()

    def _make_ready(self) -> None:
        """Choose the durable settings, and switch a board that lies in another journal mode to WAL.

        The schema comes before the switch: of sixteen processes that open a new board at once, a few fail when
        the switch comes first.
        """
        connection = self.connection
        self.database.refuse_shared_file_system()
        connection.execute("PRAGMA synchronous = FULL")
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._bring_up_to_date()
                connection.execute("COMMIT")
            finally:
                self.roll_back()
            if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
                raise Unusable(f"{self.database.path}: this file system cannot hold a board", hint=_NO_WAL)
        self._ready_to_write = True

    def _bring_up_to_date(self) -> None:
        """Check what the file is, and make or migrate its schema, inside a write transaction."""
        version = self.check_identity()
        if 0 < version < SCHEMA_VERSION and self.database.before_migration is not None:
            self.database.before_migration()
        if version < SCHEMA_VERSION:
            migrate(self.connection, version)
            self.database.created |= version == 0

    def check_identity(self) -> int:
        """Return the schema version of the open file; 0 for a file without any table.

        Raises:
            Unusable: the file is not a board, or says not of which schema, or a newer program made it.
        """
        connection, path = self.connection, self.database.path
        application_id = connection.execute("PRAGMA application_id").fetchone()[0]
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        if application_id != APPLICATION_ID:
            unclaimed = application_id == 0 and version == 0
            if unclaimed and not connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
                return 0
            raise Unusable(
                f"{path} is a SQLite file, but not a task board",
                hint="Name another data directory with --data-dir; this file was left as it is.",
            )
        if version > SCHEMA_VERSION:
            raise Unusable(
                f"{path} has schema {version}, and this program knows {SCHEMA_VERSION}",
                hint="Install the newest atb-board; this file was left as it is.",
            )
        if version < 1:  # else its tables would be made once more
            if connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
                raise Unusable(
                    f"{path} is a task board, and does not say of which schema",
                    hint="Stop all writers and restore the newest backup; this file was left as it is.",
                )
            return 0
        return version

    def roll_back(self) -> None:
        """Roll back the open transaction, if there is one."""
        if self.connection.in_transaction:  # SQLite itself has already rolled back after a full disk
            self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection and leave the line of writers."""
        self.connection.close()
        self.turnstile.close()


class _Read:
    """One read transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> sqlite3.Connection:
        session = self._session = self._database.session(to_write=False)
        connection = session.connection
        try:
            connection.execute("BEGIN")
            if not session.is_absent and session.check_identity() < SCHEMA_VERSION:
                raise Unusable(
                    f"{self._database.path} has an older schema than this program",
                    hint="Run `atb tick` once: it brings the board up to date.",
                )
        except BaseException as error:
            session.roll_back()
            if isinstance(error, sqlite3.Error):
                refuse(error, self._database.path)
            raise
        return connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.roll_back()
        if isinstance(error, sqlite3.Error):
            refuse(error, self._database.path)


class _Write:
    """One write transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> sqlite3.Connection:
        session = self._session = self._database.session(to_write=True)
        self._changes = session.connection.total_changes
        try:
            if not session.is_absent:
                session.turnstile.enter()
            session.begin_write()
        except BaseException as error:
            self._abort(error)
            raise
        return session.connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            try:
                if self._session.is_absent and self._session.connection.total_changes > self._changes:
                    raise no_board(self._database.path)
                self._session.connection.execute("COMMIT")
            except BaseException as failure:
                self._abort(failure)
                raise
            self._session.turnstile.leave()
        else:
            self._abort(error)

    def _abort(self, error: BaseException) -> None:
        try:
            self._session.roll_back()
        finally:
            self._session.turnstile.leave()
        if isinstance(error, sqlite3.Error):
            refuse(error, self._database.path)


def _same_secret(stored: str | None, given: str) -> bool:
    """Compare two hashes in a time that does not tell how much of them agrees."""
    return stored is not None and compare_digest(stored, given)


def open_scratch() -> Connection:
    """Open an empty database in memory."""
    return sqlite3.connect(":memory:", isolation_level=None)


def refuse_scratch(error: sqlite3.Error, path: str) -> NoReturn:
    """Raise the refusal that a failure of temporary tables stands for, in a connection to the board at ``path``."""
    if _primary(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        raise Unusable(
            f"there is no room for temporary files: {error}",
            hint="Free some space where temporary files go, or name another directory with SQLITE_TMPDIR.",
        ) from error
    refuse(error, path)


def migrate(connection: sqlite3.Connection, version: int, until: int = SCHEMA_VERSION) -> None:
    """Bring the schema from ``version`` to ``until``, inside the caller's write transaction."""
    folder = os.path.join(os.path.dirname(__file__), "migrations")
    for file in sorted(os.listdir(folder)):
        if file.endswith(".sql") and version < int(file[:4]) <= until:
            with open(os.path.join(folder, file), encoding="utf-8") as source:
                for statement in split_statements(source.read()):
                    connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {until}")


def split_statements(script: str) -> list[str]:
    """Split a script; ``executescript()`` would commit the transaction that it runs in."""
    statements, pending = [], ""
    for part in script.split(";"):
        pending += part + ";"
        if sqlite3.complete_statement(pending):
            statements.append(pending.strip())
            pending = ""
    return statements


def refuse_old_sqlite(version: tuple[int, ...]) -> None:
    """Refuse a SQLite library that cannot run the statements of this program.

    Raises:
        Unusable: it is older than ``OLDEST_SQLITE``.
    """
    if version < OLDEST_SQLITE:
        needed, found = (".".join(map(str, numbers)) for numbers in (OLDEST_SQLITE, version))
        raise Unusable(
            f"SQLite is too old: {found} (needs {needed})",
            hint="Use a Python that is linked with a newer SQLite, such as one from python.org, uv or conda.",
        )


def refuse(error: sqlite3.Error, path: str) -> NoReturn:
    """Raise the refusal that a SQLite error stands for; a fault of our own statements stays what it is."""
    code = _primary(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        raise Busy(f"{path} is locked by another writer") from error
    if code == 0 and isinstance(error, sqlite3.OperationalError):
        code = sqlite3.SQLITE_CORRUPT  # the module's own error: stored text that is not UTF-8
    known = _UNUSABLE.get(code)
    if known is None:
        raise error
    what, hint = known
    raise Unusable(f"{path}: {what}", hint=hint, sqlite=str(error)) from error


def _primary(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


_UNUSABLE: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: (
        "the disk is full",
        "Free some space, then make the same call again; nothing is half done.",
    ),
    sqlite3.SQLITE_NOTADB: (
        "this file is not a SQLite database",
        "Name another data directory with --data-dir; this file was left as it is.",
    ),
    sqlite3.SQLITE_CORRUPT: ("the file is damaged", "Stop all writers and restore the newest backup."),
    sqlite3.SQLITE_READONLY: (
        "the file or its directory cannot be written",
        "Check who owns them, and that the disk is not mounted read-only.",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "the file cannot be opened",
        "Check that it is a file, and that this user may read and write it and its directory.",
    ),
    sqlite3.SQLITE_PERM: ("permission denied", "Check who owns the file and its directory."),
    sqlite3.SQLITE_IOERR: (
        "the disk reports an error",
        "Check the disk and its free space; nothing was changed.",
    ),
    sqlite3.SQLITE_PROTOCOL: ("the locks of this file system do not work", _NO_WAL),
    sqlite3.SQLITE_NOLFS: ("the file is too large for this file system", "Move the board to another disk."),
    sqlite3.SQLITE_TOOBIG: ("a value is too large for SQLite", "Send less; nothing was changed."),
}


def uri_path(path: str) -> str:
    """Return a path as it stands in a ``file:`` URI."""
    return os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _write_new(path: str, content: bytes) -> None:
    """Write a file that only this user can read, unless it is there."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    try:
        os.write(file, content)
    finally:
        os.close(file)
