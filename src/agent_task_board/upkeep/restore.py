"""Restore a backup into a new directory; the ZIP may be malicious."""

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
from ..ownership import keeps_names
from ..reach import limits_of_directory, reach_folder
from ..storage import copies, schema
from ..storage.db import APPLICATION_ID, FILE, SCHEMA_VERSION, Error
from ..storage.workdir import PREFIX, sweep, workplace
from . import values
from .backup import FORMAT, METADATA
from .disk import CHUNK, free_space, refusing, write_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO, Any

    from ..folder import Folder

_METADATA_BYTES = 1 << 16
_FREELY = 64 << 20
"""Bytes to which any member may expand."""
_MOST_TIMES = 200
"""How many times larger than its compressed form a larger member may be: boards compress to a tenth or so."""
_MALFORMED = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError),
    *(ValueError, OverflowError, LookupError),
)
"""The exceptions of ``zipfile`` for a file that is not a ZIP, or a malicious one."""
_COUNTS = ("size", "schema", "tasks", "events")

_HEADER = struct.Struct(">16sH10xI28xI4xI28x")
"""The first bytes of a SQLite file: magic, page size, pages, user_version, application_id
(https://www.sqlite.org/fileformat.html, section 1.3)."""
_END_OF_ZIP = 22


def restore(path: str | os.PathLike[str], data_dir: str | os.PathLike[str]) -> dict[str, Any]:
    """Restore a backup into a new or empty directory; all of it or nothing.

    The sizes that the ZIP states are checked before it is read, and again during reading.

    Returns:
        ``{"path", "tasks", "events", "schema"}``; ``path`` is the data directory.

    Raises:
        InvalidInput: no such file, or the directory is not empty.
        Unusable: the file is not a complete and undamaged backup, or has a newer schema; or the disk is full.
    """
    source = os.fspath(path)
    directory = os.path.abspath(inputs.line(os.fspath(data_dir), "data-dir", inputs.PATH))
    if not os.path.isfile(source):  # opening a pipe would wait
        raise InvalidInput(f"zip: no such file: {source[:200]}", field="zip")
    _refuse_unless_empty(directory)
    with refusing(directory):
        created = _missing_from(directory)
        try:
            with reach_folder(directory, limits_of_directory(directory), create=True) as folder:
                about = _restore(source, folder, is_new=bool(created))
        except BaseException:
            _remove_created(directory, created)
            raise
    return {"path": directory, "tasks": about["tasks"], "events": about["events"], "schema": about["schema"]}


def _restore(source: str, folder: Folder, *, is_new: bool) -> dict[str, Any]:
    """Unpack a backup beside its place, check it, and put it there; return its metadata."""
    if not keeps_names(folder.path):  # SQLite takes a path, which would lead elsewhere a moment later
        raise Unusable(
            f"{folder.path}: other users can replace what is in it",
            hint="Name a directory that only you can write.",
        )
    sweep(folder)
    with workplace(folder) as place:
        about = _unpack(source, place)
        file = os.path.join(place.path, FILE)
        _check(file, about, source)
        copies.give_new_id(file, about["schema"])
        if is_new:
            with suppress(FileExistsError):
                write_file(folder, ".gitignore", [b"*\n"])
        _refuse_unless_empty(folder.path)
        try:
            place.give_name(FILE, FILE, folder)
        except FileExistsError:
            _refuse_unless_empty(folder.path)
            raise
    folder.sync()
    return about


def _unpack(source: str, place: Folder) -> dict[str, Any]:
    """Write the board of a ZIP into a folder; return the metadata.

    Raises:
        Unusable: the ZIP holds anything else, or differs from its metadata.
    """
    try:
        with open(source, "rb") as opened, zipfile.ZipFile(_BoundedReader(opened)) as packed:
            board, stated = _members(packed, source)
            opened.seek(-_END_OF_ZIP, os.SEEK_END)
            if min(board.header_offset, stated.header_offset) or opened.read(4) != b"PK\5\6":
                raise _invalid(source, "extra data before or after the ZIP")
            about = _metadata(packed, stated, source)
            if board.file_size != about["size"]:
                raise _invalid(source, f"{FILE} size differs from {METADATA}")
            free = free_space(place.path)
            if free is not None and about["size"] > free:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), place.path)
            hashing = sha256()
            with packed.open(board) as member:
                chunks = _limited(member, about["size"], hashing.update, source)
                first = next(chunks, b"")
                _identify(first, about, source)  # before anything is written: the rest may be very large
                write_file(place, FILE, chain([first], chunks))
    except _MALFORMED as error:
        raise _invalid(source, str(error)[:200] or type(error).__name__) from error
    if hashing.hexdigest() != about.get("sha256"):
        raise _invalid(source, f"{FILE} SHA-256 differs from {METADATA}")
    return about


class _BoundedReader:
    """A file that refuses to read much at once, whatever sizes the ZIP states."""

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
    """Return the two members of a backup; refuse any others."""
    members = {member.filename: member for member in packed.infolist()}
    if sorted(members) != [METADATA, FILE] or len(packed.infolist()) != len(members):
        raise _invalid(source, f"it must have {FILE} and {METADATA} and nothing else")
    for member in members.values():
        if member.flag_bits & 0x1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _invalid(source, f"{member.filename} is encrypted or has another compression")
        if member.file_size > max(_FREELY, _MOST_TIMES * member.compress_size):
            raise _invalid(
                source,
                f"{member.filename} expands too much: to {member.file_size:,} bytes "
                f"(limit {_MOST_TIMES} times its {member.compress_size:,})",
            )
    return [members[FILE], members[METADATA]]


def _metadata(packed: zipfile.ZipFile, member: zipfile.ZipInfo, source: str) -> dict[str, Any]:
    if member.file_size > _METADATA_BYTES:
        raise _invalid(source, f"{METADATA} is too large")
    with packed.open(member) as opened:
        text = b"".join(_limited(opened, member.file_size, len, source))
    try:
        about: dict[str, Any] = inputs.parse_object(text.decode(), METADATA)
        if type(about.get("format")) is not int or about["format"] != FORMAT:  # True and 1.0 are equal to 1
            raise _invalid(source, f"{METADATA} format is not {FORMAT}; a newer program may have created it")
        for key in _COUNTS:
            inputs.integer(about.get(key), key, 0, 2**62)
    except InvalidInput as error:
        raise _invalid(source, error.message) from error
    return about


def _limited(member: IO[bytes], size: int, on_chunk: Callable[[bytes], object], source: str) -> Iterator[bytes]:
    """Yield the content of a member; refuse one whose size differs from the stated one."""
    left = size
    while chunk := member.read(CHUNK):
        left -= len(chunk)
        if left < 0:
            break
        on_chunk(chunk)
        yield chunk
    if left:
        raise _invalid(source, "the size of a part differs from the stated one")


def _identify(first: bytes, about: dict[str, Any], source: str) -> None:
    """Check that these first bytes of a file can be those of the board that the metadata describes.

    Raises:
        Unusable: it is not.
    """
    magic, page, pages, version, application_id = _HEADER.unpack(first[: _HEADER.size].ljust(_HEADER.size, b"\0"))
    if magic != b"SQLite format 3\0" or application_id != APPLICATION_ID:
        raise _invalid(source, f"{FILE} is not a task board")
    if pages * (65_536 if page == 1 else page) != about["size"]:
        raise _invalid(source, f"the size of {FILE} differs from its header")
    if version < 1 or version >= 1 << 31:
        raise _invalid(source, f"{FILE} has no schema")
    if version > SCHEMA_VERSION:
        raise Unusable(
            f"{source}: newer schema: {version} (this program supports {SCHEMA_VERSION})",
            hint="Install the newest atb-board, then restore again.",
        )


def _check(file: str, about: dict[str, Any], source: str) -> None:
    """Check that an unpacked file is undamaged, and the board that the metadata describes.

    The schema comes first: reading a view might never end, and a trigger could run anything.

    Raises:
        Unusable: it is not.
    """
    try:
        with closing(copies.open_untrusted(file)) as copy:
            version = copies.schema_of(copy)
            for kind, type_, name in schema.faults(copy, version):
                if kind != schema.TOLERATED:
                    raise _invalid(source, schema.in_words(kind, type_, name))
            copies.trust(copy)
            copies.refuse_damaged(copy, source)
            if copies.broken_references(copy):
                raise _invalid(source, "rows refer to rows that do not exist")
            for fault in values.faults(copy):
                raise _invalid(source, fault)
            found = (
                version,
                copy.execute("SELECT count(*) FROM task").fetchone()[0],
                copy.execute("SELECT count(*) FROM event").fetchone()[0],
            )
    except Error as error:
        raise _invalid(source, f"{FILE}: {error}") from error
    if found != (about["schema"], about["tasks"], about["events"]):
        raise _invalid(source, f"the content of {FILE} differs from {METADATA}")


def _invalid(source: str, why: str) -> Unusable:
    return Unusable(
        f"{source}: not a valid backup: {why}",
        hint="Use another backup; nothing was changed.",
    )


def _refuse_unless_empty(directory: str) -> None:
    """Refuse a directory that has anything but leftovers of a killed restore."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        raise Unusable(f"{directory}: {error.strerror}") from error
    for name in names:
        if name != ".gitignore" and not name.startswith(PREFIX):
            raise InvalidInput(
                f"data-dir: not empty: {directory}",
                hint="Name a new directory with --data-dir. Restoring never replaces a board.",
                field="data-dir",
            )


def _missing_from(directory: str) -> list[str]:
    """Return the directory and its parents that do not exist, the lowest first."""
    missing = []
    while not os.path.lexists(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    return missing


def _remove_created(directory: str, created: list[str]) -> None:
    """Remove the directories that a failed restore created."""
    with suppress(OSError):
        if created and sorted(os.listdir(directory)) == [".gitignore"]:
            os.unlink(os.path.join(directory, ".gitignore"))
        for path in created:
            os.rmdir(path)
