"""The board's file: how it is created, opened, checked, migrated and closed.

Only this package opens SQLite and sets pragmas.

In a process that has a connection, never open, copy or hash ``tasks.db``, ``tasks.db-wal`` or ``tasks.db-shm`` by
other means: closing any descriptor of a file drops all POSIX locks that the process holds on it
(https://www.sqlite.org/howtocorrupt.html, section 2.2).

A connection must not be used after ``fork`` either (section 2.6): SQLite's own table of the process's locks is
inherited, and the kernel's locks are not. A child process refuses every board file that its parent had open, and
never closes an inherited connection: closing one could remove the write-ahead log under the parent.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from _thread import get_ident
from time import monotonic, sleep
from time import time as now

from ..errors import Unusable
from . import fulltext
from .fingerprint import KNOWN, fingerprint
from .process import AFTER_FORK, OpenFile, process, refuse_missing_log, stat_or_none
from .refusals import UNUSABLE, changed, primary_code, refuse
from .transactions import Read, Write
from .turnstile import Turnstile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .process import FileId

Connection = sqlite3.Connection
Cursor = sqlite3.Cursor
Row = sqlite3.Row
Error = sqlite3.Error
IntegrityError = sqlite3.IntegrityError
"""The types of ``sqlite3`` for modules that run statements: only this package imports ``sqlite3``."""

SQLITE_VERSION = sqlite3.sqlite_version_info

FILE = "tasks.db"
APPLICATION_ID = 0x41544231  # "ATB1"
SCHEMA_VERSION = 3
"""The newest schema version; equals the number of files in ``migrations``."""
OLDEST_SQLITE = (3, 38, 0)
"""The first SQLite with the operator ``->>``; STRICT tables came with 3.37."""

CLOCK_TICK = 0.05
"""Seconds after a change within which another change may get the same file times; kernels count in up to 10 ms."""
_EXACT = 0.1
"""Seconds by which a wait for a lock may be longer than the busy timeout; changing it costs a statement."""
_SETTLED = 0.1
"""Seconds after which an unchanged log that cannot be opened counts as left behind by a process that died."""

UNKNOWN_STEPS = 100_000
"""Steps of SQLite's virtual machine that suffice to read any schema of ours."""
UNKNOWN_LENGTH = 16 * 1_048_576
"""The longest value in bytes while the schema is unknown; rows of ours are shorter."""
METER_STEPS = 10_000_000
"""Steps after which SQLite asks whether a transaction may go on."""
MAX_STEPS = 5_000 * METER_STEPS
"""The most steps of one transaction: some ten minutes of computing. The longest are imports and the doctor's."""
MAX_LENGTH = 1_000_000_000
"""SQLite's own limit of a value in bytes."""

_NEEDS_LOG_FILES = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
"""Error codes of SQLite where it would have to create the files of the log and cannot."""

_NO_WAL = "Put the data directory on a local disk: WAL needs shared memory, which network and shared folders lack."
_ONE_NAME = (
    "Two names give one board two write-ahead logs, and changes are lost. Remove the other name "
    "(`find DIR -samefile` lists them); to copy a board, use `atb backup` and `atb restore`."
)


STEPS_BETWEEN_QUESTIONS = 1_000
"""Steps of SQLite's virtual machine after which a running statement is asked about; some 20 microseconds."""


class Database:
    """One board file. Safe to share between threads: each gets a connection of its own.

    After ``fork``, a child process can use a board only if its parent did not have the file open.

    Args:
        directory: the data directory.
        create: create the board at the first write if it does not exist. Without it, a missing board behaves as an
            empty one that cannot be changed.
        read_only: never write, not even to migrate.
        busy_timeout: seconds that a transaction waits for other processes, in total.
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
        self._sessions: dict[int, Session] = {}  # by thread; first, since __del__ needs it
        self.directory = os.path.abspath(directory)  # a later chdir must not lead to another board
        self.path = os.path.join(self.directory, FILE)
        self.created = False
        """Whether this object created the board."""
        self.migration_notes: list[str] = []
        """What a migration by this object changed beside the schema, in sentences."""
        self.is_missing = False
        """Whether the latest transaction found no board and used an empty one instead."""
        self._create = create and not read_only
        self._read_only = read_only
        self.busy_timeout = busy_timeout
        self.before_migration = before_migration

    @property
    def is_read_only(self) -> bool:
        """Whether this object never writes."""
        return self._read_only

    def exists(self) -> bool:
        """Return whether there is a board file; an empty file does not count."""
        found = self.stat()
        return found is not None and found.st_size > 0

    def stat(self) -> os.stat_result | None:
        """Return the ``os.stat`` result of the board's file; ``None`` if it does not exist.

        Raises:
            Unusable: it is not a regular file, or this user cannot access it.
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

    def file_id(self) -> FileId | None:
        """Return device and inode, which change when the file is replaced; ``None`` if there is no file."""
        found = self.stat()
        return None if found is None else (found.st_dev, found.st_ino)

    def hard_links(self) -> Unusable | None:
        """Return the refusal of writes to a file with several names (hard links); ``None`` if it has only one."""
        found = self.stat()
        if found is None or found.st_nlink < 2:
            return None
        return Unusable(f"{self.path} has {found.st_nlink} names (hard links)", hint=_ONE_NAME)

    def change_mark(self) -> tuple[int, ...] | None:
        """Return what changes when another connection writes or another file takes the place; ``None``: no board.

        It costs a look at the file and one at SQLite's shared memory, takes no lock that outlasts the call, and is
        meaningful only to the thread that asks. It may change without cause, never the other way round.
        """
        session = self.session()
        if session.is_absent:
            return None
        found = self.stat()
        if found is None:
            return None
        if session.is_momentary:  # its connection is not the next call's, and the file has no log
            return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
        try:
            rows = session.connection.execute("PRAGMA data_version").fetchall()  # all: an open cursor would pin the log
        except sqlite3.Error as error:
            refuse(error, self.path)
        return found.st_dev, found.st_ino, rows[0][0]

    def owns(self, path: str) -> bool:
        """Return whether a path is a file of this board; opening it by other means would drop SQLite's locks on it."""
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

    def read(self, stop: Callable[[], bool] | None = None) -> Read:
        """Return a context manager: one read transaction, which sees the board at a single moment.

        ``stop`` is asked again and again while statements run; when it says so, the transaction ends as ``Busy``.
        """
        return Read(self, stop)

    def write(self) -> Write:
        """Return a context manager: one write transaction, committed at its end, rolled back after an exception."""
        return Write(self)

    def close(self) -> None:
        """Close every connection of this object that this process opened."""
        process.notice_fork()
        for thread, session in list(self._sessions.items()):
            session.close()
            self._sessions.pop(thread, None)

    def leave_thread(self) -> None:
        """Close the connection of this thread, which is about to end."""
        process.notice_fork()
        session = self._sessions.get(get_ident())
        if session is not None:
            session.close()
            self._sessions.pop(get_ident(), None)

    def deadline(self) -> float:
        """Return the instant of the monotonic clock at which a transaction that begins now stops waiting."""
        return monotonic() + self.busy_timeout

    def session(self, *, to_write: bool = False, deadline: float | None = None) -> Session:
        """Return the connection of this thread, opened on first use; only a write creates a board.

        Raises:
            Unusable: the board cannot be opened, was open in a parent process, or has a second name and is written to.
            Busy: another process changes or locks the file until ``deadline``.
        """
        process.refuse_lost_threads(self.path)
        thread = get_ident()
        session = self._sessions.get(thread)
        found = self.stat()
        if found is None or found.st_size == 0:
            missing = not (to_write and self._create)
        else:
            missing = False
            if to_write and found.st_nlink > 1 and (refusal := self.hard_links()):
                raise refusal
        if session is None or session.is_absent != missing or session.is_momentary or not session.has_open(found):
            self.leave_thread()
            session = self._open(missing=missing, deadline=self.deadline() if deadline is None else deadline)
            self.is_missing = missing
        elif not to_write:  # a write checks at its end
            session.refuse_deleted_log()
        return session

    def _open(self, *, missing: bool, deadline: float) -> Session:
        try:
            if missing:
                return self._start(Session(self, None), ":memory:", deadline)
            if not self.exists():
                self._create_file()
            if self._read_only or not os.access(self.directory, os.W_OK):
                return self._open_read_only(deadline)
            return self._open_session("?mode=rw", deadline)
        except sqlite3.Error as error:
            refuse(error, self.path)

    def _open_session(
        self, parameters: str, deadline: float, *, is_read_only: bool = False, seen: _State | None = None
    ) -> Session:
        """Open the file that is there now, and be sure of which file that is."""
        uri = f"file://{uri_path(self.path)}{parameters}"
        while True:
            file_id = self.file_id()
            if file_id in process.inherited_ids:
                raise Unusable(f"{self.path} was already open when this process was forked", hint=AFTER_FORK)
            if seen is None and file_id is not None:
                refuse_missing_log(self.resolved_path(), file_id, deadline)
            session = self._start(Session(self, file_id, is_read_only=is_read_only, seen=seen), uri, deadline)
            if self.file_id() == file_id:
                if not session.is_momentary:
                    session.open_log()
                return session
            self.leave_thread()  # the file was replaced before or after it was opened

    def _start(self, session: Session, uri: str, deadline: float) -> Session:
        """Open a session as that of this thread; after Ctrl-C there is a complete one or none."""
        try:
            self._sessions[get_ident()] = session
            session.open(uri, max(0.0, deadline - monotonic()))
        except BaseException:
            self.leave_thread()
            raise
        return session

    def refuse_shared_file_system(self) -> None:
        """Refuse a file system where WAL seems to work but loses what two machines write."""
        from .filesystem import shared_type

        kind = shared_type(self.directory)
        if kind is not None:
            raise Unusable(f"{self.path} is on a shared file system ({kind})", hint=_NO_WAL)

    def _open_read_only(self, deadline: float) -> Session:
        """Open for reading, also in a directory that this user cannot write to.

        There, SQLite can read a board beside a process that has it open. It cannot when no process does: it would have
        to create the files of the log. A board without a log can then be read with ``immutable``, which takes no lock
        and ignores the log. A writer may open the board at any moment, and the reading is then worth nothing. So it
        counts only if the file is the same before and after it.
        """
        previous: _State | None = None
        while True:
            try:
                return self._open_session("?mode=ro", deadline, is_read_only=True)
            except BaseException as error:
                is_open = get_ident() in self._sessions  # else it may not even be opened for reading
                self.leave_thread()
                lacks_log = isinstance(error, sqlite3.OperationalError) and primary_code(error) in _NEEDS_LOG_FILES
                if not (is_open and lacks_log):
                    raise
            state = self.state()
            if state.has_log:
                if previous is not None and state.parts == previous.parts:
                    # Beside a process that has the board open, the first try would have succeeded.
                    raise Unusable(
                        f"{self.path}: the directory cannot be written, and the board was not closed cleanly",
                        hint="Run `atb tick` once as the user who owns the directory, then read again.",
                    )
                sleep(_SETTLED)
            elif state.is_certain:
                return self._open_session("?mode=ro&immutable=1", deadline, is_read_only=True, seen=state)
            if monotonic() >= deadline:
                raise changed(self.path)
            previous = state
            sleep(0.005)

    def state(self) -> _State:
        """Return what shows whether another process has changed the file."""
        real = self.resolved_path()
        files = [stat_or_none(f"{real}{ending}") for ending in ("", "-wal", "-journal")]
        return _State(*files)

    def resolved_path(self) -> str:
        """Return the path beside which SQLite creates its log: that of the file that a symbolic link leads to."""
        return os.path.realpath(self.path) if os.path.islink(self.path) else self.path

    def _create_file(self) -> None:
        """Create the data directory and an empty board file, for this user only; a refusal creates nothing."""
        refuse_old_sqlite(SQLITE_VERSION)
        self.refuse_shared_file_system()
        if os.path.islink(self.path):  # what it leads to, or to nothing yet, is not ours to create or to fill
            raise Unusable(
                f"{self.path} is a symbolic link, and no board is behind it",
                hint="Remove the link, or name the directory that the board belongs in with --data-dir.",
            )
        try:
            with process.opening:  # closing the new file would drop the locks of another thread's connection to it
                if not os.path.isdir(self.directory):
                    os.makedirs(self.directory, mode=0o700, exist_ok=True)
                    _write_new(os.path.join(self.directory, ".gitignore"), b"*\n")
                _write_new(self.path, b"")
        except OSError as error:
            raise Unusable(f"{error.filename or self.directory}: {error.strerror}") from error


class _State:
    """Identity, size and times of a board's file and its logs at one moment."""

    def __init__(self, file: os.stat_result | None, log: os.stat_result | None, journal: os.stat_result | None) -> None:
        self.parts = tuple(
            None if found is None else (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            for found in (file, log, journal)
        )
        self.has_log = any(found is not None and found.st_size > 0 for found in (log, journal))
        """Whether there are changes that are not in the file."""
        self.is_certain = file is not None and not 0 <= now() - max(file.st_mtime, file.st_ctime) < CLOCK_TICK
        """Whether the times of the file would show a later change; they cannot until the clock has moved on."""


class Meter:
    """Counts the steps of a transaction, in units of ``METER_STEPS``, and ends it after too many."""

    def __init__(self) -> None:
        self.used = 0

    def stop_after(self, steps: int) -> Callable[[], bool]:
        """Return a progress handler of SQLite."""
        most = max(1, steps // METER_STEPS)

        def stop() -> bool:
            self.used += 1
            return self.used >= most

        return stop


class Session:
    """One connection to a board and its place in the queue of writers."""

    def __init__(
        self,
        database: Database,
        file_id: FileId | None,
        *,
        is_read_only: bool = False,
        seen: _State | None = None,
    ) -> None:
        self.database = database
        self.connection: Connection
        self.is_absent = file_id is None
        """Whether there is no board; the connection is then to an empty one in memory."""
        self._file = OpenFile(file_id)
        self._is_read_only = is_read_only
        self._seen = seen
        self.is_momentary = seen is not None
        """Whether it takes no lock and does not see what others write: good for one transaction."""
        self.turnstile = Turnstile(database.directory)
        self._schema: int | None = None
        """SQLite's number of the schema that was compared with ours; it changes with every change of the schema."""
        self._meter = Meter()
        self._is_ready_to_write = False
        self._wait = 0.0
        """Seconds that SQLite waits for a lock."""

    def open(self, uri: str, timeout: float) -> None:
        """Open the connection; the caller closes the session if this fails."""
        refuse_old_sqlite(SQLITE_VERSION)
        self._file.open(uri, timeout)
        connection = self.connection = self._file.connection
        self._wait = timeout
        connection.execute("PRAGMA foreign_keys = ON")
        if not self.is_absent:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            self.restrict(UNKNOWN_STEPS)
        if self.is_absent:
            connection.execute("BEGIN IMMEDIATE")
            migrate(connection, 0)
            connection.execute("COMMIT")
        self._file.is_open = True

    @property
    def is_inherited(self) -> bool:
        """Whether a parent process opened it."""
        return self._file.is_inherited

    def has_open(self, found: os.stat_result | None) -> bool:
        """Return whether this session is on the file that is there now: not inherited, removed or replaced."""
        file = self._file
        if not file.is_open:
            return False
        return self.is_absent or (found is not None and (found.st_dev, found.st_ino) == file.file_id)

    def open_log(self) -> None:
        """Read from the file, so that SQLite opens its log, and remember that log."""
        self.connection.execute("SELECT 1 FROM main.sqlite_master").fetchone()
        path = self.database.resolved_path()
        if os.path.exists(f"{path}-wal") and os.path.exists(f"{path}-shm"):
            self._file.use_log(path)

    def refuse_deleted_log(self) -> None:
        """Refuse a connection whose log was deleted.

        Raises:
            Unusable: a file of the log is not the one that this process uses.
        """
        if self._file.log is not None:
            self._file.log.refuse_deleted()

    def refuse_unreadable(self) -> None:
        """Refuse what is not a board of the current schema, inside a transaction.

        Raises:
            Unusable: it is something else, or its schema is older, newer or not ours.
        """
        if not self.is_absent and self.check_identity() < SCHEMA_VERSION:
            raise Unusable(
                f"{self.database.path} has an older schema than this program",
                hint="Run `atb tick` once: it migrates the board.",
            )
        self.refuse_foreign_schema(SCHEMA_VERSION)

    def refuse_foreign_schema(self, version: int) -> None:
        """Refuse a schema that is not ours before a statement uses any of it, inside a transaction.

        It is compared whenever it has changed since this connection compared it.

        Raises:
            Unusable: the schema is not the one that this program creates for ``version``.
        """
        number = self.connection.execute("PRAGMA schema_version").fetchone()[0]
        self._meter.used = 0
        if number == self._schema or self.is_absent:
            return
        self.restrict(UNKNOWN_STEPS)
        if fingerprint(self.connection, version) not in KNOWN:
            from .schema import refuse_faults  # word by word: statistics and plain indexes are tolerated

            refuse_faults(self.connection, version, self.database.path)
        self._schema = number
        self.trust()

    def restrict(self, steps: int) -> None:
        """Limit what statements on an unknown schema can take: ``steps`` of SQLite's virtual machine, and short values.

        Such a schema can hold expressions that never end or that fill the memory.
        """
        self._meter.used = 0
        self.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, UNKNOWN_LENGTH)
        self.connection.set_progress_handler(self._meter.stop_after(steps), min(steps, METER_STEPS))

    def trust(self) -> None:
        """Set the limits for a schema of ours: no transaction of this program takes as many steps."""
        self.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_LENGTH)
        self.connection.set_progress_handler(self._meter.stop_after(MAX_STEPS), METER_STEPS)

    def has_changed(self) -> bool:
        """Return whether another process changed the file under a session that takes no lock."""
        return self._seen is not None and self._seen.parts != self.database.state().parts

    def refuse_changed(self) -> None:
        """Refuse what was read without locks while another process changed the file.

        Raises:
            Busy: the file has changed.
        """
        if self.has_changed():
            raise changed(self.database.path)

    def waits_other_than(self, seconds: float) -> bool:
        """Return whether SQLite waits for a lock for another time, for example after a transaction that was late."""
        return not -_EXACT < self._wait - seconds < _EXACT

    def wait_until(self, deadline: float) -> None:
        """Let SQLite wait for a lock until ``deadline`` of the monotonic clock, and no longer."""
        left = max(0.0, deadline - monotonic())
        if not -_EXACT < left - self._wait < _EXACT:
            self.connection.execute(f"PRAGMA busy_timeout = {int(left * 1_000)}")
            self._wait = left

    def ask_while_running(self, stop: Callable[[], bool] | None) -> None:
        """Ask, while a statement runs, whether to stop it; ``None`` goes back to the limit of every transaction."""
        if stop is None:
            self.trust()
        else:
            self.connection.set_progress_handler(stop, STEPS_BETWEEN_QUESTIONS)

    def begin_write(self, deadline: float) -> None:
        """Begin a write transaction, and create or migrate the schema in it."""
        connection = self.connection
        if self._is_read_only:
            what, hint = UNUSABLE[sqlite3.SQLITE_READONLY]
            raise Unusable(f"{self.database.path}: {what}", hint=hint)
        if not (self._is_ready_to_write or self.is_absent):
            self._make_ready(deadline)
        connection.execute("BEGIN IMMEDIATE")
        self._bring_up_to_date()
        if self._file.log is None and not self.is_absent:
            self._file.use_log(self.database.resolved_path())

    def commit(self) -> None:
        """Commit the write transaction, unless the commit would go into a log that was deleted.

        Afterwards only the log matters: others that find it can rebuild the index from it, with this commit.

        Raises:
            Unusable: a file of the log was deleted. Nothing was committed, or it was deleted during the commit.
        """
        log = self._file.log
        if log is not None:
            log.refuse_deleted()
        self.connection.execute("COMMIT")
        if log is not None:
            log.refuse_deleted("It is not certain that this call was saved.", log_only=True)

    def _make_ready(self, deadline: float) -> None:
        """Choose the durable settings, and switch a board in another journal mode to WAL.

        The schema comes before the switch: if the switch came first, some of many processes that open a new board at
        once would fail.
        """
        connection = self.connection
        self.database.refuse_shared_file_system()
        connection.execute("PRAGMA synchronous = FULL")
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            self.wait_until(deadline)
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._bring_up_to_date()
                connection.execute("COMMIT")
            finally:
                self.roll_back()
            self.wait_until(deadline)
            if connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
                raise Unusable(f"{self.database.path}: this file system cannot hold a board", hint=_NO_WAL)
            self.wait_until(deadline)
        self._is_ready_to_write = True

    def _bring_up_to_date(self) -> None:
        """Check that the file is a board, and create or migrate its schema, inside a write transaction."""
        version = self.check_identity()
        if version > 0:
            self.refuse_foreign_schema(version)
        elif not self.is_absent:
            self.trust()  # there is no schema yet
        if 0 < version < SCHEMA_VERSION and self.database.before_migration is not None:
            self.database.before_migration()
        if version < SCHEMA_VERSION:
            self.database.migration_notes += migrate(self.connection, version)
            if not self.is_absent:
                fulltext.create(self.connection)
            self.database.created |= version == 0

    def check_identity(self) -> int:
        """Return the schema version of the open file; 0 for a file without any table.

        Raises:
            Unusable: the file is not a board, has no schema version, or has one that this program does not know.
        """
        connection, path = self.connection, self.database.path
        application_id = connection.execute("PRAGMA application_id").fetchone()[0]
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        if application_id != APPLICATION_ID:
            unclaimed = application_id == 0 and version == 0
            if unclaimed and not connection.execute("SELECT 1 FROM main.sqlite_master").fetchone():
                return 0
            raise Unusable(
                f"{path} is a SQLite file, but not a task board",
                hint="Choose another data directory with --data-dir; this file was not changed.",
            )
        if version > SCHEMA_VERSION:
            raise Unusable(
                f"{path} has schema {version}; this program supports up to {SCHEMA_VERSION}",
                hint="Install the newest atb-board; this file was not changed.",
            )
        if version < 1:  # its tables must not be created a second time
            if connection.execute("SELECT 1 FROM main.sqlite_master").fetchone():
                raise Unusable(
                    f"{path} is a task board, but has no schema version",
                    hint="Stop all writers and restore the newest backup; this file was not changed.",
                )
            return 0
        return version

    def roll_back(self) -> None:
        """Roll back the open transaction, if there is one and this process began it."""
        if self.is_inherited:
            return
        if self.connection.in_transaction:  # after a full disk SQLite has already rolled back
            self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection and the files of the turnstile; in a forked child do nothing."""
        if self.is_inherited:
            return
        try:
            self._file.close()
        finally:
            self.turnstile.close()


def open_scratch() -> Connection:
    """Open an empty database in memory."""
    process.refuse_lost_threads(":memory:")
    refuse_old_sqlite(SQLITE_VERSION)
    return sqlite3.connect(":memory:", isolation_level=None)


def migrate(connection: sqlite3.Connection, version: int, until: int = SCHEMA_VERSION) -> list[str]:
    """Migrate the schema from ``version`` to ``until``, inside the caller's write transaction.

    Returns sentences about what the migration changed beside the schema.
    """
    folder = os.path.join(os.path.dirname(__file__), "migrations")
    for file in sorted(os.listdir(folder)):
        if file.endswith(".sql") and version < int(file[:4]) <= until:
            with open(os.path.join(folder, file), encoding="utf-8") as source:
                for statement in split_statements(source.read()):
                    connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {until}")
    if version < 3 <= until:
        from .names import settle_names

        return settle_names(connection)
    return []


def split_statements(script: str) -> list[str]:
    """Split a script into statements; ``executescript()`` would commit the open transaction."""
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
            hint="Use a Python with a newer SQLite, such as one from python.org, uv or conda.",
        )


def uri_path(path: str) -> str:
    """Return a path, escaped for a ``file:`` URI."""
    return os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _write_new(path: str, content: bytes) -> None:
    """Create a file that only this user can access, unless it exists."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    try:
        os.write(file, content)
    finally:
        os.close(file)
