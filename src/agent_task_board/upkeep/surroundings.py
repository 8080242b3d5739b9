"""The doctor's checks around the file: SQLite, the disk, permissions, leftovers, configuration files."""

from __future__ import annotations

import os
import stat

from .. import places
from ..reach import reach_folder
from ..storage.db import FILE, SQLITE_VERSION
from ..storage.filesystem import shared_type
from ..storage.workdir import leftovers
from .backup import FOLDER
from .disk import free_space
from .finding import ERROR, NOTE, OK, WARNING, Checkup, finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..folder import Folder
    from .finding import Finding

LARGE_LOG = 256 << 20
"""The size of a write-ahead log, in bytes, from which it is worth a note."""
LITTLE_SPACE = 100 << 20
"""Free bytes below which the disk is nearly full."""
BACKUP_SPACE = 2
"""A backup needs this many times the size of the board: for the copy and for the ZIP."""

SQLITE_REMEDY = (
    "Use a Python with SQLite 3.51.3 or newer (or 3.50.7, 3.44.6), for example from uv or conda-forge; docs/doctor.md "
    "explains how. Until then, make regular backups: the bug is rare, but it can damage the file or lose changes."
)


def check(checkup: Checkup) -> Iterator[Finding]:
    """Yield the findings around the file; none of these checks opens the board."""
    yield from check_sqlite(SQLITE_VERSION)
    for one in (_file_system, _disk, _permissions, _log, _unfinished, _config, _trust):
        yield from one(checkup)


def check_sqlite(numbers: tuple[int, ...]) -> Iterator[Finding]:
    """Yield the finding about a version of SQLite."""
    version = ".".join(map(str, numbers))
    if _has_reset_bug(numbers):
        text = f"SQLite {version} has a bug that can damage a board when several processes checkpoint at once"
        yield finding("sqlite", WARNING, text, SQLITE_REMEDY)
    else:
        yield finding("sqlite", OK, f"SQLite {version}")


def _has_reset_bug(version: tuple[int, ...]) -> bool:
    """Say whether a version has the WAL-reset bug: 3.7.0 to 3.51.2, except for two fixed lines.

    https://www.sqlite.org/wal.html#the_wal_reset_bug
    """
    is_fixed = (3, 44, 6) <= version < (3, 45) or (3, 50, 7) <= version < (3, 51)
    return (3, 7, 0) <= version < (3, 51, 3) and not is_fixed


def _file_system(checkup: Checkup) -> Iterator[Finding]:
    kind = shared_type(checkup.directory)
    if kind is None:
        yield finding("filesystem", OK, "the data directory is on no network or shared file system that is known")
    else:
        text = f"{checkup.directory} is on a network or shared file system ({kind}), where a board loses changes"
        yield finding("filesystem", ERROR, text, "Move the data directory to a local disk.")


def _disk(checkup: Checkup) -> Iterator[Finding]:
    """Compare the free space with what the next backup needs."""
    directory = checkup.directory
    while not os.path.isdir(directory):
        directory = os.path.dirname(directory)
    free = free_space(directory)
    if free is None:
        yield finding("disk", NOTE, "the free space of the disk is unknown", "Check it with the tools of this system.")
        return
    size = sum(_size_of(path) or 0 for path in (checkup.path, f"{checkup.path}-wal"))
    needed = max(LITTLE_SPACE, BACKUP_SPACE * size)
    if free < needed:
        text = f"the disk of {directory} is nearly full: {_mebibytes(free)} free (needed: {_mebibytes(needed)})"
        yield finding("disk", WARNING, text, "Free some space: a full disk stops all writes, and backups fail earlier.")
    else:
        yield finding("disk", OK, f"{_mebibytes(free)} free")


def _mebibytes(size: int) -> str:
    return f"{size >> 20:,} MiB"


def _permissions(checkup: Checkup) -> Iterator[Finding]:
    fine = True
    for path in own_files(checkup):
        try:
            found = os.stat(path)
        except OSError:
            continue
        if leads_out(checkup, path):
            fine = False
            text = f"{path} is a symbolic link that leads out of {checkup.directory}"
            yield finding("permissions", WARNING, text, "Remove the link; nothing is written through it.")
            continue
        what, unwanted = ("write to", 0o022) if stat.S_ISDIR(found.st_mode) else ("read or write", 0o077)
        if found.st_mode & unwanted:
            fine = False
            text = f"other users can {what} {path} ({stat.filemode(found.st_mode)})"
            yield finding("permissions", WARNING, text, "`atb doctor --fix permissions`", "permissions")
        if not os.access(path, os.R_OK | os.W_OK):
            fine = False
            text = f"this user cannot read and write {path}"
            yield finding("permissions", WARNING, text, "Work as the user who owns it, or change its owner.")
        elif hasattr(os, "getuid") and found.st_uid not in (os.getuid(), 0) and places.why_untrusted(path, above=False):
            fine = False
            remedy = "Change its owner; or, if you trust that user, `atb trust DIR`."
            yield finding("permissions", WARNING, f"another user owns {path}", remedy)
    if fine:
        yield finding("permissions", OK, "only this user can read and write the board")


def leads_out(checkup: Checkup, path: str) -> bool:
    """Say whether a path below the data directory leads out of it."""
    above = os.path.realpath(checkup.directory)
    return path != checkup.directory and not places.is_in(os.path.realpath(path), above)


def own_files(checkup: Checkup) -> list[str]:
    """Return the paths of the data directory and of the board's files in it; some may not exist."""
    names = (FILE, f"{FILE}-wal", f"{FILE}-shm", "turnstile.queue", "turnstile.turn", FOLDER)
    return [checkup.directory, *(os.path.join(checkup.directory, name) for name in names)]


def _log(checkup: Checkup) -> Iterator[Finding]:
    size = _size_of(f"{checkup.path}-wal")  # without opening it: that would drop SQLite's locks
    if size is not None and _size_of(checkup.path) is None:
        text = f"{checkup.path} is missing, but its write-ahead log is present and has the latest changes"
        yield finding("log", ERROR, text, "Put the matching tasks.db back into the directory, or restore a backup.")
    elif size is not None and size > LARGE_LOG:
        text = f"the write-ahead log is large: {_mebibytes(size)}, from a large import or a long read"
        yield finding("log", NOTE, text, "If it keeps growing, stop all servers and readers: the last one empties it.")
    elif _size_of(f"{checkup.path}-journal") is not None:
        text = "there is a rollback journal: a process was killed, or is writing now"
        yield finding("log", NOTE, text, "The next command that writes removes it.")
    else:
        yield finding("log", OK, f"{size or 0:,} bytes of write-ahead log")


def _size_of(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _unfinished(checkup: Checkup) -> Iterator[Finding]:
    left = [path for place in workplaces(checkup) for path in leftovers(place)]
    for path in left:
        text = f"{path} was left behind by a killed backup or restore"
        yield finding("unfinished", NOTE, text, "`atb doctor --fix leftovers`", "leftovers")
    if not left:
        yield finding("unfinished", OK, "no killed backup or restore left anything behind")


def workplaces(checkup: Checkup) -> Iterator[Folder]:
    """Open the directories in which a backup or restore can leave a folder behind, as far as they exist."""
    above = os.path.abspath(checkup.directory)
    for path in (above, os.path.join(above, FOLDER)):
        try:
            folder = reach_folder(path, above)
        except OSError:  # missing, or a link that leads out: a check of its own says so
            continue
        with folder:
            yield folder


def _config(checkup: Checkup) -> Iterator[Finding]:
    found = exposed_configs(checkup)
    for path in found:
        text = f"{path} has a webhook_secret, and other users can read it"
        remedy = "`atb doctor --fix permissions`; then choose a new secret."
        yield finding("config", WARNING, text, remedy, "permissions")
    if not found:
        yield finding("config", OK, "no configuration file shows a secret to other users")


def _trust(checkup: Checkup) -> Iterator[Finding]:
    """Name what was found and does not count: files that others control, settings that nobody trusted."""
    for sentence in checkup.ignored:
        remedy = "Look at it; then take write access from other users, or make it count with `atb trust`."
        yield finding("trust", WARNING, sentence, remedy)
    if not checkup.ignored:
        yield finding("trust", OK, "nothing that was found is ignored")


def exposed_configs(checkup: Checkup) -> list[str]:
    """Return the configuration files with a secret that other users can read."""
    return [path for path in sorted(checkup.configs) if _shows_secret(path)]


def _shows_secret(path: str) -> bool:
    import tomllib

    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            hooks = tomllib.load(file).get("hooks")
    except (OSError, ValueError):
        return False
    secret = isinstance(hooks, dict) and hooks.get("webhook_secret")
    return bool(secret) and mode & 0o077 != 0
