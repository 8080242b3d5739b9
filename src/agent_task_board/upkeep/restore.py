"""Restore: a new board from a backup that may come from anywhere."""

from __future__ import annotations

import errno
import os
import struct
import zipfile
import zlib
from contextlib import closing, suppress
from hashlib import sha256
from itertools import chain

from .. import inputs
from ..errors import InvalidInput, Unusable
from ..storage import copies, schema
from ..storage.db import APPLICATION_ID, FILE, SCHEMA_VERSION, Error
from ..storage.workdir import PREFIX, make_directory, sweep, sync_directory, workplace
from .backup import CHUNK, FORMAT, METADATA, give_name, refusing, write_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO, Any

_METADATA_BYTES = 1 << 16
_MALFORMED = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError),
    *(ValueError, OverflowError, LookupError),
)
"""What the library raises for a file that is not a ZIP, or a malicious one."""
_COUNTS = ("size", "schema", "tasks", "events")

_HEADER = struct.Struct(">16sH10xI28xI4xI28x")
"""The first bytes of a SQLite file: magic, page size, pages, user_version, application_id
(https://www.sqlite.org/fileformat.html, section 1.3)."""
_END_OF_ZIP = 22


def restore(path: str | os.PathLike[str], data_dir: str | os.PathLike[str]) -> dict[str, Any]:
    """Restore a backup into a new or empty directory; all of it or nothing.

    The ZIP may come from anywhere: what it states of itself is checked before it is read, and again while it is.

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
    with refusing(directory):
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
                        write_file(os.path.join(directory, ".gitignore"), [b"*\n"])
                _refuse_unless_empty(directory)
                try:
                    give_name(file, os.path.join(directory, FILE))
                except FileExistsError:
                    _refuse_unless_empty(directory)
                    raise
            sync_directory(directory)
        except BaseException:
            _take_away(directory, made)
            raise
    return {"path": directory, "tasks": about["tasks"], "events": about["events"], "schema": about["schema"]}


def _unpack(source: str, file: str, directory: str) -> dict[str, Any]:
    """Write the board of a ZIP to a file; return the metadata.

    Raises:
        Unusable: the ZIP holds anything else, or differs from its metadata.
    """
    try:
        with open(source, "rb") as opened, zipfile.ZipFile(_BoundedReader(opened)) as packed:
            board, said = _members(packed, source)
            opened.seek(-_END_OF_ZIP, os.SEEK_END)
            if min(board.header_offset, said.header_offset) or opened.read(4) != b"PK\5\6":
                raise _not_one(source, "extra data before or after the ZIP")
            about = _metadata(packed, said, source)
            if board.file_size != about["size"]:
                raise _not_one(source, f"{FILE} size differs from {METADATA}")
            free = _free(directory)
            if free is not None and about["size"] > free:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), directory)
            hashing = sha256()
            with packed.open(board) as member:
                chunks = _limited(member, about["size"], hashing.update, source)
                first = next(chunks, b"")
                _identify(first, about, source)  # before anything is written: it may be very large
                write_file(file, chain([first], chunks))
    except _MALFORMED as error:
        raise _not_one(source, str(error)[:200] or type(error).__name__) from error
    if hashing.hexdigest() != about.get("sha256"):
        raise _not_one(source, f"{FILE} SHA-256 differs from {METADATA}")
    return about


class _BoundedReader:
    """A file that never reads much at once, whatever sizes a ZIP states."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable
        self._size = os.fstat(file.fileno()).st_size

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._file.tell())
        size = left if size < 0 else min(size, left)
        if size > 4 * CHUNK:
            raise zipfile.BadZipFile("a part is too large")
        return self._file.read(size)


def _members(packed: zipfile.ZipFile, source: str) -> list[zipfile.ZipInfo]:
    """Return the two members of a backup; it has no others."""
    members = {member.filename: member for member in packed.infolist()}
    if sorted(members) != [METADATA, FILE] or len(packed.infolist()) != len(members):
        raise _not_one(source, f"it must hold {FILE} and {METADATA} and nothing else")
    for member in members.values():
        if member.flag_bits & 0x1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _not_one(source, f"{member.filename} is encrypted or has another compression")
    return [members[FILE], members[METADATA]]


def _metadata(packed: zipfile.ZipFile, member: zipfile.ZipInfo, source: str) -> dict[str, Any]:
    if member.file_size > _METADATA_BYTES:
        raise _not_one(source, f"{METADATA} is too large")
    with packed.open(member) as opened:
        text = b"".join(_limited(opened, member.file_size, len, source))
    try:
        about: dict[str, Any] = inputs.parse_object(text.decode(), METADATA)
        if type(about.get("format")) is not int or about["format"] != FORMAT:  # True and 1.0 are equal to 1
            raise _not_one(source, f"{METADATA} format is not {FORMAT}; a newer program may have created it")
        for key in _COUNTS:
            inputs.integer(about.get(key), key, 0, 2**62)
    except InvalidInput as error:
        raise _not_one(source, error.message) from error
    return about


def _limited(member: IO[bytes], size: int, seen: Callable[[bytes], object], source: str) -> Iterator[bytes]:
    """Yield the content of a member; refuse one whose size differs from the stated one."""
    left = size
    while chunk := member.read(CHUNK):
        left -= len(chunk)
        if left < 0:
            break
        seen(chunk)
        yield chunk
    if left:
        raise _not_one(source, "the size of a part differs from the stated one")


def _identify(first: bytes, about: dict[str, Any], source: str) -> None:
    """Check that a file that begins with these bytes may be the board that the metadata describes.

    Raises:
        Unusable: it is not.
    """
    magic, page, pages, version, application_id = _HEADER.unpack(first[: _HEADER.size].ljust(_HEADER.size, b"\0"))
    if magic != b"SQLite format 3\0" or application_id != APPLICATION_ID:
        raise _not_one(source, f"{FILE} is not a task board")
    if pages * (65_536 if page == 1 else page) != about["size"]:
        raise _not_one(source, f"the size of {FILE} differs from its header")
    if version < 1 or version >= 1 << 31:
        raise _not_one(source, f"{FILE} has no schema")
    if version > SCHEMA_VERSION:
        raise Unusable(
            f"{source} has schema {version}, and this program knows {SCHEMA_VERSION}",
            hint="Install the newest atb-board, then restore again.",
        )


def _check(file: str, about: dict[str, Any], source: str) -> None:
    """Check that an unpacked file is the board that the metadata describes, and undamaged.

    The schema comes first: a view may never end, and a trigger may run anything.

    Raises:
        Unusable: it is not.
    """
    try:
        with closing(copies.open_untrusted(file)) as copy:
            version = copies.schema_of(copy)
            for kind, type_, name in schema.faults(copy, version):
                if kind != schema.TOLERATED:
                    raise _not_one(source, schema.in_words(kind, type_, name))
            copies.trust(copy)
            copies.refuse_damaged(copy, source)
            if copies.broken_references(copy):
                raise _not_one(source, "it refers to rows that do not exist")
            found = (
                version,
                copy.execute("SELECT count(*) FROM task").fetchone()[0],
                copy.execute("SELECT count(*) FROM event").fetchone()[0],
            )
    except Error as error:
        raise _not_one(source, f"{FILE}: {error}") from error
    if found != (about["schema"], about["tasks"], about["events"]):
        raise _not_one(source, f"the content of {FILE} differs from {METADATA}")


def _not_one(source: str, why: str) -> Unusable:
    return Unusable(
        f"{source} is not a backup of a board: {why}",
        hint="Use another backup; nothing was changed.",
    )


def _refuse_unless_empty(directory: str) -> None:
    """Refuse a directory with anything in it but the remains of a killed restore."""
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


def _free(directory: str) -> int | None:
    """Return the free bytes of the disk that a directory is on."""
    try:
        found = os.statvfs(directory)
    except (AttributeError, OSError):
        return None
    return found.f_bavail * found.f_frsize


def _missing_from(directory: str) -> list[str]:
    """Return the directory and those above it that do not exist, the lowest first."""
    missing = []
    while not os.path.lexists(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    return missing


def _take_away(directory: str, made: list[str]) -> None:
    """Remove the directories that were created for a restore that failed."""
    with suppress(OSError):
        if made and sorted(os.listdir(directory)) == [".gitignore"]:
            os.unlink(os.path.join(directory, ".gitignore"))
        for path in made:
            os.rmdir(path)
