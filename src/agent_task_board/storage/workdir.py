"""Temporary folders in which a file is prepared, next to its final place.

A finished file is moved to its place in one step, so that it appears there completely or not at all. A process that is
killed leaves its folder behind. The folder is recognized by its name, and known to be unused by its lock, which ends
with the process.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from contextlib import contextmanager

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = ".atb-unfinished-"
GRACE = 60
"""Seconds for which a new folder may not be locked yet."""
LONG = 86_400
"""Seconds after which a folder counts as unused on a system without locks."""


@contextmanager
def workplace(directory: str) -> Iterator[str]:
    """Create a folder that only this user can access, and remove it and its contents at the end."""
    path = os.path.join(directory, f"{PREFIX}{os.getpid()}-{os.urandom(4).hex()}")
    os.mkdir(path, 0o700)
    lock = _lock(path)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def leftovers(directory: str) -> list[str]:
    """Return the folders that killed processes left in a directory."""
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    paths = (os.path.join(directory, name) for name in sorted(names) if name.startswith(PREFIX))
    return [path for path in paths if _is_left(path)]


def sweep(directory: str) -> list[str]:
    """Remove the folders that killed processes left in a directory; return those that were removed."""
    gone = []
    for path in leftovers(directory):
        shutil.rmtree(path, ignore_errors=True)
        if not os.path.lexists(path):
            gone.append(path)
    return gone


def sync_directory(directory: str) -> None:
    """Sync the names in a directory to disk."""
    if os.name == "nt":
        return
    opened = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def make_directory(directory: str) -> bool:
    """Create a directory and its parents, accessible only by this user; return whether it was created."""
    if os.path.isdir(directory):
        return False
    above = os.path.dirname(directory)
    if above != directory:
        make_directory(above)
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        if not os.path.isdir(directory):
            raise
        return False
    return True


def _is_left(path: str) -> bool:
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    age = time.time() - found.st_mtime
    if not stat.S_ISDIR(found.st_mode) or age < GRACE:
        return False
    if fcntl is None:
        return age > LONG
    lock = _lock(path)
    if lock is None:
        return False
    os.close(lock)
    return True


def _lock(path: str) -> int | None:
    """Lock a folder and return its descriptor; ``None`` if another process holds it or there are no locks."""
    if fcntl is None:
        return None
    try:
        opened = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        return None
    return opened
