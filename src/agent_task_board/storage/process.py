"""What this process knows about the board files that it has open: connections, forks, and the log that it uses.

A connection must not be used after ``fork`` (https://www.sqlite.org/howtocorrupt.html, section 2.6): SQLite's own
table of the process's locks is inherited, and the kernel's locks are not. A child process refuses every board file
that its parent had open, and never closes an inherited connection: closing one could remove the write-ahead log under
the parent.

The files of the log, ``tasks.db-wal`` and ``tasks.db-shm``, must be the same for all processes (section 1.4). If one
of them is deleted by hand, a process that has it open goes on with a file that nobody else can see, and two processes
write without knowing of each other. So each process compares what it has open with what is there, and opens no board
whose log is missing while another process uses one.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from _operator import _compare_digest as compare_digest  # the function of hmac, without hmac's imports
from _thread import RLock, get_ident
from time import monotonic, sleep

from ..errors import Unusable
from .turnstile import HAS_FLOCK, at_fork

FileId = tuple[int, int]
"""Device and inode: identify a file whatever path leads to it."""

LOG_PATIENCE = 2.0
"""Seconds that the log of a board in use may be missing: another process may be about to create or remove it."""

AFTER_FORK = (
    "Open the board in a program started by exec, use the spawn or forkserver start method of multiprocessing, "
    "or fork before the first call on the board."
)
_LOG_DELETED = (
    "Stop every process that uses the board: the last one to close it saves what the deleted log holds. "
    "Then run `atb doctor`."
)

_SHARED_FIRST, _SHARED_SIZE = 0x40000002, 510
"""The bytes that SQLite locks in a database file: shared for as long as a connection uses the log."""
_WAL_HEADER = b"\x02\x02"
"""Bytes 18 and 19 of a database file that has a write-ahead log."""


class _Process:
    """The files that this process has open, and those that it must leave alone because its parent had them open."""

    def __init__(self) -> None:
        self.id = os.getpid()
        self.opening = RLock()
        """Held while a file is opened, and during a fork, so that a child knows every connection that it inherits."""
        self.open_files: set[OpenFile] = set()
        self.logs: dict[FileId, LogFiles] = {}
        """The log that this process uses, by board file."""
        self.inherited_ids: set[FileId] = set()
        self.lost_threads = False
        """Whether another thread may have been inside SQLite at the fork: it holds locks in memory for ever."""
        self._never_released: list[OpenFile] = []

    def before_fork(self) -> None:
        """Wait until no other thread is opening a file."""
        self.opening.acquire()

    def after_fork_in_parent(self) -> None:
        """Continue."""
        self.opening.release()

    def after_fork_in_child(self) -> None:
        """Give up every open file."""
        self._inherit()
        self.opening.release()

    def notice_fork(self) -> None:
        """Notice a fork that ran no hooks of Python, such as one by a C library."""
        if os.getpid() != self.id:
            self._inherit()

    def refuse_lost_threads(self, path: str) -> None:
        """Refuse to use SQLite where a call of it could wait for ever for a thread that the fork left behind.

        Raises:
            Unusable: another thread had a connection when this process was forked.
        """
        self.notice_fork()
        if self.lost_threads:
            raise Unusable(f"{path}: this process was forked while another thread used a board", hint=AFTER_FORK)

    def has_open(self, file_id: FileId) -> bool:
        """Return whether a connection of this process has a file open, also one that was given up."""
        return any(file.file_id == file_id for file in self.open_files)

    def log_of(self, file_id: FileId) -> LogFiles | None:
        """Return the log that a connection of this process uses for a file; ``None`` if there is none."""
        log = self.logs.get(file_id)
        return log if log is not None and log.users else None  # Ctrl-C may leave one without a user

    def _inherit(self) -> None:
        self.id = os.getpid()
        for file in self.open_files:
            self.lost_threads |= file.thread != get_ident()
            file.is_inherited, file.is_open = True, False
            if file.file_id is not None:
                self.inherited_ids.add(file.file_id)
        self._never_released.extend(self.open_files)
        self.open_files.clear()
        self.logs.clear()


process = _Process()
at_fork(process.before_fork, process.after_fork_in_parent, process.after_fork_in_child)


class LogFiles:
    """The two files of a write-ahead log that the connections of this process have open for one board file."""

    def __init__(self, path: str) -> None:
        self.paths = (f"{path}-wal", f"{path}-shm")
        self.ids = tuple(id_of(one) for one in self.paths)
        self.users: set[OpenFile] = set()

    def missing(self, *, log_only: bool = False) -> list[str]:
        """Return the files that are no longer those that this process has open; ``log_only`` leaves the index out."""
        files = list(zip(self.paths, self.ids, strict=True))
        return [path for path, id_ in (files[:1] if log_only else files) if id_ is None or id_of(path) != id_]

    def refuse_deleted(self, effect: str = "Nothing of this call was saved.", *, log_only: bool = False) -> None:
        """Refuse a log that other processes cannot see.

        SQLite never removes or replaces it while a connection is open.

        Raises:
            Unusable: a file of the log was deleted or replaced; the hint begins with ``effect``.
        """
        missing = self.missing(log_only=log_only)
        if missing:
            raise Unusable(f"{_were_deleted(missing)} while the board was in use", hint=f"{effect} {_LOG_DELETED}")

    def is_replaced(self) -> bool:
        """Return whether others may write to another log.

        Closing the last connection would then copy the old log over what they wrote, and remove theirs. An empty log
        beside the same index is no other log: SQLite creates one before it finds out that the index does not match.
        """
        log, index = (stat_or_none(path) for path in self.paths)
        if index is not None and (index.st_dev, index.st_ino) != self.ids[1]:
            return True
        return log is not None and log.st_size > 0 and (log.st_dev, log.st_ino) != self.ids[0]


class OpenFile:
    """A connection and the file that it has open.

    The SQL function is a method on purpose: SQLite then holds a reference that Python's garbage collector cannot see,
    so a connection that is not closed explicitly is never finalized, not even when the interpreter ends. A forked
    child relies on that. ``close`` drops the reference.
    """

    def __init__(self, file_id: FileId | None) -> None:
        self.file_id = file_id
        self.thread = get_ident()
        self.is_open = False
        self.is_inherited = False
        """Whether a parent process opened it; then it must be neither used nor closed."""
        self.connection: sqlite3.Connection
        self.log: LogFiles | None = None
        """The log that it uses; ``None`` before its first read, and for a file without one."""

    def open(self, uri: str, timeout: float) -> None:
        """Open a connection with the transactions, row type and SQL functions that this package expects."""
        with process.opening:
            self.connection = sqlite3.connect(
                uri,
                uri=True,
                timeout=timeout,
                isolation_level=None,  # this package begins and ends every transaction
                check_same_thread=False,  # each thread has its own; close() may be called from another one
            )
            process.open_files.add(self)
            self.connection.create_function("same_secret", 2, self._same_secret)
        self.connection.row_factory = sqlite3.Row

    def use_log(self, path: str) -> LogFiles:
        """Remember the log of the database at ``path``, which the connection has read from.

        Raises:
            Unusable: another connection of this process uses another one.
        """
        if self.file_id is None:
            raise AssertionError("a database in memory has no log")
        with process.opening:
            log = self.log = process.log_of(self.file_id) or LogFiles(path)
            log.users.add(self)
            process.logs[self.file_id] = log
        log.refuse_deleted()
        return log

    def close(self) -> None:
        """Close the connection, unless a parent process opened it or others use another log by now.

        In that case it is given up: it stays open, and this process refuses the file.
        """
        self.is_open = False
        if self.is_inherited or not hasattr(self, "connection"):
            return
        if self.log is not None and self.log.is_replaced():
            return
        with process.opening:  # first: after Ctrl-C in between, a connection without a record can be closed again
            if self.log is not None and self.file_id is not None:
                self.log.users.discard(self)
                if not self.log.users:
                    process.logs.pop(self.file_id, None)
        try:
            self.connection.close()
        finally:
            process.open_files.discard(self)

    def _same_secret(self, stored: str | None, given: str) -> bool:
        """Compare two hashes in constant time."""
        return stored is not None and compare_digest(stored, given)


def refuse_missing_log(path: str, file_id: FileId, deadline: float) -> None:
    """Refuse to open a database whose log is missing while another process uses it, before a new log is created.

    Wait while another process is creating or removing its log.

    Raises:
        Unusable: its log was deleted.
    """
    end = min(deadline, monotonic() + LOG_PATIENCE)
    while True:
        with process.opening:
            log = process.log_of(file_id)
            if log is not None:
                log.refuse_deleted()
                return
            missing = [one for one in (f"{path}-wal", f"{path}-shm") if not os.path.exists(one)]
            if not missing or process.has_open(file_id):
                return
            user = _user_of_log(path)
        if user is None:
            return
        if monotonic() >= end:
            if user < 0:
                return  # SQLite says that it is locked
            named = f" (process {user})" if user else ""
            raise Unusable(f"{_were_deleted(missing)} while another process{named} uses the board", hint=_LOG_DELETED)
        sleep(0.005)


def _user_of_log(path: str) -> int | None:
    """Return the process that uses the log of a database; 0 if its id is not known, -1 if it is locking the file.

    Only for a file that this process has not open: closing a descriptor drops the locks of the whole process.
    """
    if not HAS_FLOCK or sys.maxsize < 1 << 32:  # Windows, where a file that is open cannot be deleted; other layouts
        return None
    import fcntl  # the turnstile has imported it; the module struct would be one more import

    order, is_linux = sys.byteorder, sys.platform == "linux"
    start, size = _SHARED_FIRST.to_bytes(8, order), _SHARED_SIZE.to_bytes(8, order)
    kind = fcntl.F_WRLCK.to_bytes(2, order)  # beside SEEK_SET and the id of a process, which are zero
    linux, macos = kind.ljust(8, b"\0") + start + size + bytes(8), start + size + bytes(4) + kind + bytes(2)
    try:
        with open(path, "rb", buffering=0) as file:
            if os.pread(file.fileno(), 2, 18) != _WAL_HEADER:
                return None
            told = fcntl.fcntl(file, fcntl.F_GETLK, linux if is_linux else macos)
    except OSError:  # unreadable, of which SQLite says why, or on a file system without locks
        return None
    pid, found = (told[24:28], told[0:2]) if is_linux else (told[16:20], told[20:22])
    found_kind = int.from_bytes(found, order)
    if found_kind == fcntl.F_UNLCK:
        return None
    return max(int.from_bytes(pid, order, signed=True), 0) if found_kind == fcntl.F_RDLCK else -1


def _were_deleted(paths: list[str]) -> str:
    return f"{' and '.join(paths)} {'was' if len(paths) == 1 else 'were'} deleted"


def id_of(path: str) -> FileId | None:
    """Return device and inode of a file; ``None`` if there is none.

    Raises:
        Unusable: this user cannot access it.
    """
    found = stat_or_none(path)
    return None if found is None else (found.st_dev, found.st_ino)


def stat_or_none(path: str) -> os.stat_result | None:
    """Return the ``os.stat`` result of a file; ``None`` if there is none.

    Raises:
        Unusable: this user cannot access it.
    """
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from error
