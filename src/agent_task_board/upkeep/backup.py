"""Backups: the board as one ZIP file that needs no other file.

SQLite copies one view of the board, and the copy is packed. The live file is never opened, hashed or zipped by other
means (``storage/db.py`` says why). The ZIP has ``tasks.db`` and ``metadata.json`` and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import stat
import zipfile
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from itertools import count

from .. import inputs, instants
from .._version import __version__
from ..board.core import is_board_id
from ..errors import Unusable, no_board
from ..folder import Folder
from ..ownership import keeps_names
from ..reach import limits_of_directory, reach_folder
from ..storage import copies, schema
from ..storage.db import FILE, SCHEMA_VERSION, Error
from ..storage.refusals import refuse
from ..storage.workdir import sweep, workplace
from .disk import CHUNK, refusing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ..board.core import Core
    from ..storage.db import Connection, Database

FOLDER = "backups"
METADATA = "metadata.json"
_PACKED = "packed.zip"
FORMAT = 1
KEEP_HIGH = 1_000_000

_NAME = re.compile(r"backup-(\d{8}T\d{6}Z)-([0-9a-f]{16})(?:-(\d{1,9}))?\.zip", re.ASCII)
"""The name of a backup: when it was created, of which board, and a number within the second."""


def backup(core: Core, *, output: str | os.PathLike[str] | None = None, keep: int | None = None) -> dict[str, Any]:
    """Do what ``Board.backup`` promises."""
    if keep is not None:
        inputs.integer(keep, "keep", 1, KEEP_HIGH)
    database = core.database
    if output is None:
        directory: str
        within: str | None
        directory, within = _own_directory(database)
    else:  # checked first: an empty name would be the working directory
        directory = os.path.abspath(inputs.line(os.fspath(output), "output", inputs.PATH))
        within = limits_of_directory(directory)
    if not database.exists():
        raise no_board(database.path)
    with refusing(directory), suppress(FileNotFoundError), reach_folder(directory, within):
        pass  # refused: a link leads out; nothing is created before the board was found readable
    with core.read() as tx:
        stored = tx.execute("SELECT board_id FROM board").fetchone()
    # A board that lost its id is backed up before it is repaired.
    board_id = stored[0] if stored is not None and is_board_id(stored[0]) else ""

    def fill(copy: Connection) -> None:
        with database.read() as tx:
            copies.copy_board(tx, copy, database.path, directory)

    with refusing(directory), reach_folder(directory, within, create=True) as folder:
        path, about = _store(database.path, folder, ("backup", board_id), fill, core.clock())
        answer = {"path": path, "tasks": about["tasks"], "events": about["events"], "sha256": about["sha256"]}
        return answer if keep is None else {**answer, "removed": _remove_old(folder, path, board_id, keep)}


def before_migration(database: Database) -> None:
    """Back up a board whose schema is about to change; the caller holds the write lock and has written nothing.

    Raises:
        Unusable: the backup failed, so the board must not be changed.
    """
    directory, within = _own_directory(database)

    def fill(copy: Connection) -> None:
        # A separate connection: the caller's is in a write transaction.
        with closing(copies.open_source(database.path)) as source:
            copies.copy_board(source, copy, database.path, directory)

    try:
        with refusing(directory), reach_folder(directory, within, create=True) as folder:
            _store(database.path, folder, (f"before-schema-{SCHEMA_VERSION}", ""), fill, instants.now())
    except Unusable as error:
        raise Unusable(
            f"cannot migrate the older schema: the backup before it failed: {error.message}",
            hint=error.hint,
        ) from error


# Create a backup


def _own_directory(database: Database) -> tuple[str, str]:
    """Return where the backups of a board are by default, and the directory that no link may lead out of."""
    above = os.path.abspath(database.directory)
    return os.path.join(above, FOLDER), above


def _store(
    board: str, folder: Folder, name: tuple[str, str], fill: Callable[[Connection], None], now: int
) -> tuple[str, dict[str, Any]]:
    """Fill a copy of the board, check it, and put it into a directory as a ZIP; return its path and metadata.

    ``name`` is what the file's name has before and after the instant.
    """
    sweep(folder)
    with workplace(folder) as place, _staging(board, folder, place) as staging:
        os.close(staging.create(FILE))
        with closing(copies.open_copy(os.path.join(staging.path, FILE))) as copy:
            fill(copy)
            about = _about(copy, board)
        metadata = {"format": FORMAT, "schema": about["schema"], "created_at": instants.to_text(now)}
        metadata |= {"version": __version__, **about, "board": name[1] or None}
        _pack(place, staging, metadata, now)
        stamp = re.sub(r"[-:]|\..*", "", instants.to_text(now)) + "Z"
        path = _publish(place, folder, "-".join(filter(None, (name[0], stamp, name[1]))))
    folder.sync()
    return path, metadata


@contextmanager
def _staging(board: str, folder: Folder, place: Folder) -> Iterator[Folder]:
    """Yield the folder in which SQLite fills the copy.

    SQLite takes a path. In a directory where other users can rename what is in it, that path could lead to another
    board a moment later; the copy is then made beside the board, or in the directory for temporary files.
    """
    import tempfile

    if keeps_names(folder.path):
        yield place
        return
    for directory in (os.path.dirname(os.path.abspath(board)), tempfile.gettempdir()):
        if keeps_names(directory) and os.access(directory, os.W_OK):
            with Folder(directory) as parent, workplace(parent) as staging:
                yield staging
            return
    raise Unusable(
        f"{folder.path}: other users can replace what is in it",
        hint="Name a directory that only you can write, with --output.",
    )


def _about(copy: Connection, board: str) -> dict[str, Any]:
    """Check a copy; return its schema and counts.

    Raises:
        Unusable: the board is damaged, or its backup could not be restored.
    """
    try:
        copies.close_log(copy)
        return _checked(copy, board)
    except Error as error:
        if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            refuse(error, board)  # what is damaged in the copy is damaged in the board
        raise


def _checked(copy: Connection, board: str) -> dict[str, Any]:
    version = copies.schema_of(copy)
    for kind, type_, name in schema.faults(copy, version):
        if kind != schema.TOLERATED:
            raise Unusable(
                f"{board}: cannot be backed up: {schema.in_words(kind, type_, name)}",
                hint="Its backup could not be restored. `atb doctor` lists every fault and its remedy.",
            )
    copies.refuse_damaged(copy, board)
    tasks = copy.execute("SELECT count(*) FROM task").fetchone()[0]
    events, newest = copy.execute("SELECT count(*), max(at) FROM event").fetchone()
    schedules = copy.execute("SELECT count(*) FROM schedule").fetchone()[0] if version > 1 else 0
    return {"schema": version, "tasks": tasks, "events": events, "schedules": schedules, "newest_event": newest}


def _pack(place: Folder, staging: Folder, metadata: dict[str, Any], now: int) -> None:
    """Zip a copy and its metadata; adds ``size`` and ``sha256`` to the metadata."""
    metadata["size"] = staging.stat(FILE).st_size
    hashing = sha256()
    with os.fdopen(place.create(_PACKED), "wb") as target:
        with zipfile.ZipFile(target, "w") as packed:
            copy = os.fdopen(staging.open(FILE), "rb")
            with copy as source, packed.open(_member(FILE, metadata["size"], now), "w") as member:
                while chunk := source.read(CHUNK):
                    hashing.update(chunk)
                    member.write(chunk)
            metadata["sha256"] = hashing.hexdigest()
            text = json.dumps(metadata, indent=2) + "\n"
            packed.writestr(_member(METADATA, len(text), now), text)
        target.flush()
        os.fsync(target.fileno())


def _member(name: str, size: int, now: int) -> zipfile.ZipInfo:
    from datetime import UTC, datetime

    moment = datetime.fromtimestamp(max(now // 1000, 315_532_800), UTC)  # a ZIP has no earlier time
    member = zipfile.ZipInfo(name, moment.timetuple()[:6])
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o600 << 16
    member.file_size = size  # a large file needs the ZIP64 format
    return member


def _publish(place: Folder, folder: Folder, stem: str) -> str:
    """Give a ZIP its name; if the name is taken, with a number.

    The number is above all existing ones, even if lower ones are free again: it shows the order.
    """
    taken = re.compile(rf"{re.escape(stem)}(?:-(\d{{1,9}}))?\.zip", re.ASCII)
    numbers = [int(found[1] or 1) for found in map(taken.fullmatch, folder.names()) if found]
    for number in count(max(numbers, default=0) + 1):
        name = f"{stem}.zip" if number == 1 else f"{stem}-{number}.zip"
        try:
            place.give_name(_PACKED, name, folder)
        except FileExistsError:
            continue
        return os.path.join(folder.path, name)
    raise AssertionError


def _remove_old(folder: Folder, newest: str, board_id: str, keep: int) -> int:
    """Remove the oldest backups of a board until ``keep`` are left, including the newest; return how many were removed.

    Only a name with the board's id counts: other boards may have their backups in the same directory.
    """
    found = []
    for name in folder.names():
        ours = _NAME.fullmatch(name)
        if ours and ours[2] == board_id and name != os.path.basename(newest) and _is_file(folder, name):
            found.append((ours[1], int(ours[3] or 1), name))
    removed = 0
    for _, _, name in sorted(found)[: max(0, len(found) + 1 - keep)]:
        with suppress(FileNotFoundError):  # another process removed it first
            folder.unlink(name)
            removed += 1
    return removed


def _is_file(folder: Folder, name: str) -> bool:
    found = folder.find(name)
    return found is not None and stat.S_ISREG(found.st_mode)
