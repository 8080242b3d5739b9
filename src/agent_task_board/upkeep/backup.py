"""Backups: the board as one ZIP that opens alone, and a new board made of one.

A backup is made from a copy that SQLite itself makes of one view of the board; the live file is never opened, hashed
or zipped by other means (``db.py`` says why). A ZIP holds ``tasks.db`` and ``metadata.json`` and nothing else.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sqlite3
import struct
import zipfile
import zlib
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from itertools import chain, count

from .. import inputs, instants
from .._version import __version__
from ..errors import InvalidInput, NotFound, Unusable
from ..storage.db import APPLICATION_ID, FILE, SCHEMA_VERSION, _quote, migrate, refuse
from ..storage.workdir import PREFIX, make_directory, sweep, sync_directory, workplace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import IO, Any

    from ..service import Board
    from ..storage.db import Database

    Fault = tuple[str, str, str]

FOLDER = "backups"
METADATA = "metadata.json"
FORMAT = 1
KEEP_HIGH = 1_000_000

_CHUNK = 1 << 20
_METADATA_BYTES = 1 << 16
_NAME = re.compile(r"backup-(\d{8}T\d{6}Z)(?:-(\d+))?\.zip", re.ASCII)
_MALFORMED = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError),
    *(ValueError, OverflowError, LookupError),
)
"""What the library raises at a ZIP that is none, or was made to do harm."""
_COUNTS = ("size", "schema", "tasks", "events")

_HEADER = struct.Struct(">16sH10xI28xI4xI28x")
"""The first bytes of a SQLite file: magic, page size, pages, user_version, application_id
(https://www.sqlite.org/fileformat.html, section 1.3)."""
_END_OF_ZIP = 22
_STEPS = 1_000_000
"""Steps of SQLite within which the schema of any board is read."""

MISSING, ALTERED, ADDED, TOLERATED = "missing", "altered", "added", "tolerated"
_WORDS = re.compile(
    r"""(?:'[^']*')+|(?:"[^"]*")+|(?:`[^`]*`)+|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|\Z)|[ \t\n\f\r]+|\w+|.""",
    re.ASCII | re.DOTALL,
)
_PLAIN_INDEX = re.compile(
    r"CREATE INDEX \w+ ON \w+ \( \w+(?: (?:ASC|DESC))?(?: , \w+(?: (?:ASC|DESC))?)* \)", re.ASCII | re.IGNORECASE
)
_STATISTICS = {  # what ANALYZE makes
    "sqlite_stat1": "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "sqlite_stat4": "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
}


def backup(board: Board, *, output: str | os.PathLike[str] | None = None, keep: int | None = None) -> dict[str, Any]:
    """Do what ``Board.backup`` promises."""
    if keep is not None:
        inputs.integer(keep, "keep", 1, KEEP_HIGH)
    database = board._db
    if output is None:
        directory = os.path.join(database.directory, FOLDER)
    else:  # an empty name would be the working directory
        directory = os.path.abspath(inputs.line(os.fspath(output), "output", inputs.PATH))
    if not database.exists():
        raise NotFound(f"there is no board at {database.path}")

    def fill(copy: sqlite3.Connection) -> None:
        with database.read() as tx:
            _copy(tx, copy, database.path, directory)

    path, about = _store(directory, "backup", fill, board._clock())
    answer = {"path": path, "tasks": about["tasks"], "events": about["events"], "sha256": about["sha256"]}
    return answer if keep is None else {**answer, "removed": _remove_old(directory, path, keep)}


def before_migration(database: Database, version: int) -> None:
    """Back up a board whose schema is about to change; the caller holds the write lock and has written nothing.

    Raises:
        Unusable: no backup can be made, so the board must not be changed.
    """
    directory = os.path.join(database.directory, FOLDER)
    del version

    def fill(copy: sqlite3.Connection) -> None:
        # A connection of its own: that of the caller is within a write transaction.
        with closing(sqlite3.connect(f"file://{_quote(database.path)}?mode=ro", uri=True)) as source:
            _copy(source, copy, database.path, directory)

    try:
        _store(directory, f"before-schema-{SCHEMA_VERSION}", fill, instants.now())
    except Unusable as error:
        raise Unusable(
            f"the board has an older schema, and is backed up before it is changed; that failed: {error.message}",
            hint=error.hint,
        ) from error


def restore(path: str | os.PathLike[str], data_dir: str | os.PathLike[str]) -> dict[str, Any]:
    """Make a new board of a backup, in a directory that is empty or not there; all of it or nothing.

    The ZIP may come from anywhere: what it says of itself is checked before anything is read, and again while it is.

    Returns:
        ``{"path", "tasks", "events", "schema"}``; ``path`` is the data directory.

    Raises:
        InvalidInput: no such file, or the directory is not empty.
        Unusable: the file is not a whole and sound backup, or of a newer schema; or the disk is full.
    """
    source = os.fspath(path)
    directory = os.path.abspath(inputs.line(os.fspath(data_dir), "data-dir", inputs.PATH))
    if not os.path.isfile(source):  # a pipe would be waited for
        raise InvalidInput(f"zip: {source[:200]}: no such file", field="zip")
    _refuse_unless_empty(directory)
    with _refusing(directory):
        made = _missing_from(directory)
        make_directory(directory)
        try:
            sweep(directory)
            with workplace(directory) as place:
                file = os.path.join(place, FILE)
                about = _unpack(source, file, directory)
                _check(file, about, source)
                if made:
                    with suppress(FileExistsError):
                        _write(os.path.join(directory, ".gitignore"), [b"*\n"])
                _refuse_unless_empty(directory)
                try:
                    _give_name(file, os.path.join(directory, FILE))
                except FileExistsError:
                    _refuse_unless_empty(directory)
                    raise
            sync_directory(directory)
        except BaseException:
            _take_away(directory, made)
            raise
    return {"path": directory, "tasks": about["tasks"], "events": about["events"], "schema": about["schema"]}


# Making one


def _copy(source: sqlite3.Connection, copy: sqlite3.Connection, path: str, directory: str) -> None:
    """Copy a board in one step: a copy in several begins anew whenever somebody writes in between, without end."""
    try:
        source.backup(copy, pages=-1)
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        ours = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        refuse(error, path if ours else directory)


def _store(
    directory: str, prefix: str, fill: Callable[[sqlite3.Connection], None], now: int
) -> tuple[str, dict[str, Any]]:
    """Fill a copy, check it, and put it into a directory as a ZIP; return its path and metadata."""
    with _refusing(directory):
        make_directory(directory)
        sweep(directory)
        with workplace(directory) as place:
            file, packed = os.path.join(place, FILE), os.path.join(place, "packed.zip")
            _write(file, ())
            with closing(sqlite3.connect(file, isolation_level=None)) as copy:
                copy.execute("PRAGMA synchronous = OFF")  # the ZIP is what is brought to disk
                copy.execute("PRAGMA locking_mode = EXCLUSIVE")  # without it the copy would need shared memory
                copy.execute("PRAGMA trusted_schema = OFF")
                fill(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
                about = _about(copy, file)
            metadata = {"format": FORMAT, "schema": about["schema"], "created_at": instants.to_text(now)}
            metadata |= {"version": __version__, **about}
            _pack(packed, file, metadata, now)
            stamp = re.sub(r"[-:]|\..*", "", instants.to_text(now)) + "Z"
            path = _publish(packed, directory, f"{prefix}-{stamp}")
        sync_directory(directory)
    return path, metadata


def _about(copy: sqlite3.Connection, path: str) -> dict[str, Any]:
    """Check a copy and say what is in it.

    Raises:
        Unusable: it is damaged, or no backup that could be restored, and so is the board.
    """
    schema = copy.execute("PRAGMA user_version").fetchone()[0]
    for kind, type_, name in schema_faults(copy, schema):
        if kind != TOLERATED:
            raise Unusable(
                f"the board cannot be backed up: {in_words(kind, type_, name)}",
                hint="Such a backup would not be restored. `atb doctor` names all that is wrong, and what to do.",
            )
    _refuse_damaged(copy, path)
    tasks = copy.execute("SELECT count(*) FROM task").fetchone()[0]
    events, newest = copy.execute("SELECT count(*), max(at) FROM event").fetchone()
    schedules = copy.execute("SELECT count(*) FROM schedule").fetchone()[0] if schema > 1 else 0
    return {"schema": schema, "tasks": tasks, "events": events, "schedules": schedules, "newest_event": newest}


def _pack(path: str, file: str, metadata: dict[str, Any], now: int) -> None:
    """Zip a copy and what is to be said of it; adds ``size`` and ``sha256`` to the metadata."""
    metadata["size"] = os.stat(file).st_size
    hashing = sha256()
    with os.fdopen(_new(path), "wb") as target:
        with zipfile.ZipFile(target, "w") as packed:
            with open(file, "rb") as source, packed.open(_member(FILE, metadata["size"], now), "w") as member:
                while chunk := source.read(_CHUNK):
                    hashing.update(chunk)
                    member.write(chunk)
            metadata["sha256"] = hashing.hexdigest()
            text = json.dumps(metadata, indent=2) + "\n"
            packed.writestr(_member(METADATA, len(text), now), text)
        target.flush()
        os.fsync(target.fileno())


def _member(name: str, size: int, now: int) -> zipfile.ZipInfo:
    from datetime import UTC, datetime

    moment = datetime.fromtimestamp(max(now // 1000, 315_532_800), UTC)  # a ZIP knows no time before 1980
    member = zipfile.ZipInfo(name, moment.timetuple()[:6])
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o600 << 16
    member.file_size = size  # so that a large one is written in the form for large ones
    return member


def _publish(packed: str, directory: str, stem: str) -> str:
    """Give a ZIP its name, with a number behind it where the name is taken.

    The number is above all that are there, also where lower ones have been removed: it tells the order.
    """
    taken = re.compile(rf"{re.escape(stem)}(?:-(\d{{1,9}}))?\.zip", re.ASCII)
    numbers = [int(found[1] or 1) for found in map(taken.fullmatch, os.listdir(directory)) if found]
    for number in count(max(numbers, default=0) + 1):
        path = os.path.join(directory, f"{stem}.zip" if number == 1 else f"{stem}-{number}.zip")
        try:
            _give_name(packed, path)
        except FileExistsError:
            continue
        return path
    raise AssertionError


def _give_name(file: str, path: str) -> None:
    """Let a file appear under another name, never in place of another file."""
    try:
        os.link(file, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from None
        os.rename(file, path)


def _remove_old(directory: str, newest: str, keep: int) -> int:
    """Remove our oldest backups until ``keep`` are left, the newest counted; return how many."""
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            ours = _NAME.fullmatch(entry.name)
            if ours and entry.path != newest and entry.is_file(follow_symlinks=False):
                found.append((ours[1], int(ours[2] or 1), entry.path))
    removed = 0
    for _, _, path in sorted(found)[: max(0, len(found) + 1 - keep)]:
        with suppress(FileNotFoundError):  # another backup was quicker
            os.unlink(path)
            removed += 1
    return removed


# Reading one


def _unpack(source: str, file: str, directory: str) -> dict[str, Any]:
    """Write the board of a ZIP to a file; return the metadata.

    Raises:
        Unusable: the ZIP holds anything else, or not what it says.
    """
    try:
        with open(source, "rb") as opened, zipfile.ZipFile(_Careful(opened)) as packed:
            board, said = _members(packed, source)
            opened.seek(-_END_OF_ZIP, os.SEEK_END)
            if min(board.header_offset, said.header_offset) or opened.read(4) != b"PK\5\6":
                raise _not_one(source, "there is something before or behind the ZIP")
            about = _metadata(packed, said, source)
            if board.file_size != about["size"]:
                raise _not_one(source, f"{FILE} has another size than {METADATA} says")
            free = _free(directory)
            if free is not None and about["size"] > free:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), directory)
            hashing = sha256()
            with packed.open(board) as member:
                chunks = _limited(member, about["size"], hashing.update, source)
                first = next(chunks, b"")
                _identify(first, about, source)  # before anything is written: it may be very large
                _write(file, chain([first], chunks))
    except _MALFORMED as error:
        raise _not_one(source, str(error)[:200] or type(error).__name__) from error
    if hashing.hexdigest() != about.get("sha256"):
        raise _not_one(source, f"{FILE} has another SHA-256 than {METADATA} says")
    return about


class _Careful:
    """A file that never reads much at once, whatever sizes a ZIP says its parts have."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable
        self._size = os.fstat(file.fileno()).st_size

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._file.tell())
        size = left if size < 0 else min(size, left)
        if size > 4 * _CHUNK:
            raise zipfile.BadZipFile("a part of it is too large")
        return self._file.read(size)


def _members(packed: zipfile.ZipFile, source: str) -> list[zipfile.ZipInfo]:
    """Return the two members of a backup, which has just those."""
    members = {member.filename: member for member in packed.infolist()}
    if sorted(members) != [METADATA, FILE] or len(packed.infolist()) != len(members):
        raise _not_one(source, f"it must hold {FILE} and {METADATA} and nothing else")
    for member in members.values():
        if member.flag_bits & 0x1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _not_one(source, f"{member.filename} is encrypted or packed in another way than ours")
    return [members[FILE], members[METADATA]]


def _metadata(packed: zipfile.ZipFile, member: zipfile.ZipInfo, source: str) -> dict[str, Any]:
    if member.file_size > _METADATA_BYTES:
        raise _not_one(source, f"{METADATA} is too large")
    with packed.open(member) as opened:
        text = b"".join(_limited(opened, member.file_size, len, source))
    try:
        about: dict[str, Any] = inputs.parse_object(text.decode(), METADATA)
        if type(about.get("format")) is not int or about["format"] != FORMAT:  # True and 1.0 are equal to 1
            raise _not_one(source, f"{METADATA} has another format than {FORMAT}; a newer program may have made it")
        for key in _COUNTS:
            inputs.integer(about.get(key), key, 0, 2**62)
    except InvalidInput as error:
        raise _not_one(source, error.message) from error
    return about


def _limited(member: IO[bytes], size: int, seen: Callable[[bytes], object], source: str) -> Iterator[bytes]:
    """Yield what a member holds, and stop where it holds more or less than it says."""
    left = size
    while chunk := member.read(_CHUNK):
        left -= len(chunk)
        if left < 0:
            break
        seen(chunk)
        yield chunk
    if left:
        raise _not_one(source, "a part of it has another size than it says")


def _identify(first: bytes, about: dict[str, Any], source: str) -> None:
    """Look whether a file that begins with these bytes may be the board that the metadata speaks of.

    Raises:
        Unusable: it is not.
    """
    magic, page, pages, schema, application_id = _HEADER.unpack(first[: _HEADER.size].ljust(_HEADER.size, b"\0"))
    if magic != b"SQLite format 3\0" or application_id != APPLICATION_ID:
        raise _not_one(source, f"{FILE} is not a task board")
    if pages * (65_536 if page == 1 else page) != about["size"]:
        raise _not_one(source, f"{FILE} has another size than it says itself")
    if schema < 1 or schema >= 1 << 31:
        raise _not_one(source, f"{FILE} has no schema")
    if schema > SCHEMA_VERSION:
        raise Unusable(
            f"{source} has schema {schema}, and this program knows {SCHEMA_VERSION}",
            hint="Install the newest agent-task-board, then restore again.",
        )


def _check(file: str, about: dict[str, Any], source: str) -> None:
    """Look whether an unpacked file is the board that the metadata speaks of, and sound.

    The schema comes first: a table may be a view without end, and a trigger somebody's program.

    Raises:
        Unusable: it is not.
    """
    try:
        with closing(sqlite3.connect(f"file://{_quote(file)}?mode=ro", uri=True, isolation_level=None)) as copy:
            copy.execute("PRAGMA trusted_schema = OFF")
            copy.execute("PRAGMA cell_size_check = ON")
            copy.set_progress_handler(lambda: 1, _STEPS)
            schema = copy.execute("PRAGMA user_version").fetchone()[0]
            for kind, type_, name in schema_faults(copy, schema):
                if kind != TOLERATED:
                    raise _not_one(source, in_words(kind, type_, name))
            copy.set_progress_handler(None, 0)
            _refuse_damaged(copy, source)
            if copy.execute("PRAGMA foreign_key_check").fetchone() is not None:
                raise _not_one(source, "a reference in it leads nowhere")
            found = (
                schema,
                copy.execute("SELECT count(*) FROM task").fetchone()[0],
                copy.execute("SELECT count(*) FROM event").fetchone()[0],
            )
    except sqlite3.Error as error:
        raise _not_one(source, f"{FILE}: {error}") from error
    if found != (about["schema"], about["tasks"], about["events"]):
        raise _not_one(source, f"{FILE} holds something else than {METADATA} says")


def _not_one(source: str, why: str) -> Unusable:
    return Unusable(
        f"{source} is not a backup of a board: {why}",
        hint="Take another backup; nothing was changed.",
    )


def _refuse_unless_empty(directory: str) -> None:
    """Refuse a directory with anything in it but what a restore that was killed may have left."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        raise Unusable(f"{directory}: {error.strerror}") from error
    for name in names:
        if name != ".gitignore" and not name.startswith(PREFIX):
            raise InvalidInput(
                f"data-dir: {directory} is not empty",
                hint="Name a new directory with --data-dir; a backup never replaces a board.",
                field="data-dir",
            )


# Schemas


def schema_faults(connection: sqlite3.Connection, version: int) -> list[Fault]:
    """Hold the schema of a file against the one that this program makes, of that number; nothing in it is run.

    Words are compared, so that a migration may get another comment. One thing more is tolerated, since it runs
    nothing: a plain index on columns. What ANALYZE makes is no fault at all.

    Returns:
        ``(kind, type, name)`` of each fault; ``kind`` is ``missing``, ``altered``, ``added`` or ``tolerated``.
    """
    asked = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        migrate(fresh, 0, version)
        due = {(row[0], row[1]): (row[2], row[3]) for row in fresh.execute(asked)}
    faults, seen = [], set()
    for type_, name, table, sql in connection.execute(asked):
        key = (type_, name)
        if key in due and key not in seen:
            seen.add(key)
            if table != due[key][0] or not _same_words(sql, due[key][1]):
                faults.append((ALTERED, type_, name))
        elif type_ == "index" and _PLAIN_INDEX.fullmatch(" ".join(_words(sql))):
            faults.append((TOLERATED, type_, str(name)))
        elif type_ != "table" or sql is None or _STATISTICS.get(name) != sql:
            faults.append((ADDED, str(type_), str(name)))
    return sorted([(MISSING, *key) for key in due.keys() - seen] + faults)


def in_words(kind: str, type_: str, name: str) -> str:
    """Say what a fault of a schema is."""
    said = {
        MISSING: "is missing",
        ALTERED: "is not as this program makes it",
        ADDED: "is not one of ours",
        TOLERATED: "is not one of ours",
    }
    return f"the {type_[:20]} {name[:60]} {said[kind]}"


def _same_words(sql: object, due: str | None) -> bool:
    return sql == due or (due is not None and _words(sql) == _words(due))


def _words(sql: object) -> list[str]:
    """Split SQL as SQLite does, comments and spaces left out; what is no text, or too long to be ours, has no words."""
    if not isinstance(sql, str) or len(sql) > 65_536:
        return []
    return [word for word in _WORDS.findall(sql) if word[0] not in " \t\n\f\r" and word[:2] not in ("--", "/*")]


# Files


def _refuse_damaged(connection: sqlite3.Connection, path: str) -> None:
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        raise Unusable(
            f"{path}: the file is damaged: {found}",
            hint="Stop all writers and restore the newest backup that is whole.",
        )


@contextmanager
def _refusing(directory: str) -> Iterator[None]:
    """Turn what the disk says into refusals."""
    try:
        yield
    except sqlite3.Error as error:
        refuse(error, directory)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "Free some space, then make the same call again; nothing was changed."
            raise Unusable(f"{directory}: the disk is full", hint=hint) from error
        hint = "Check who owns it, and that it can be written, or name another directory."
        raise Unusable(f"{error.filename or directory}: {error.strerror or error}", hint=hint) from error


def _new(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)


def _write(path: str, chunks: Iterable[bytes]) -> None:
    """Write a new file that only this user can read, and bring it to disk."""
    with os.fdopen(_new(path), "wb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def _free(directory: str) -> int | None:
    """Return the free bytes of the disk that a directory is on."""
    try:
        found = os.statvfs(directory)
    except (AttributeError, OSError):
        return None
    return found.f_bavail * found.f_frsize


def _missing_from(directory: str) -> list[str]:
    """Return the directory and those above it that are not there, the lowest first."""
    missing = []
    while not os.path.lexists(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    return missing


def _take_away(directory: str, made: list[str]) -> None:
    """Remove the directories that were made for a board that did not come to be."""
    with suppress(OSError):
        if made and sorted(os.listdir(directory)) == [".gitignore"]:
            os.unlink(os.path.join(directory, ".gitignore"))
        for path in made:
            os.rmdir(path)
