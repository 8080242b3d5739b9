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

    from ..folder import Folder

PREFIX = ".atb-unfinished-"
LOCKED = f"{PREFIX}locked-"
"""How the name of a folder begins once it is locked."""
GRACE = 60
"""Seconds for which a new folder may not be locked yet."""
LONG = 86_400
"""Seconds after which a folder counts as unused on a system without locks."""


@contextmanager
def workplace(parent: Folder) -> Iterator[Folder]:
    """Create a folder that only this user can access, and remove it and its contents at the end."""
    name = f"{os.getpid()}-{os.urandom(4).hex()}"
    new, locked = f"{PREFIX}{name}", f"{LOCKED}{name}"
    with parent.make(new) as made:
        lock = _lock(made)
        try:
            parent.rename(new, locked)
            with parent.child(locked) as place:
                yield place
        finally:
            _remove(parent, new)
            _remove(parent, locked)
            if lock is not None:
                os.close(lock)


def leftovers(parent: Folder) -> list[str]:
    """Return the paths of the folders that killed processes of this user left in a directory."""
    return [os.path.join(parent.path, name) for name in _left(parent)]


def sweep(parent: Folder) -> list[str]:
    """Remove the folders that killed processes of this user left in a directory; return those that were removed."""
    gone = []
    for name in _left(parent):
        _remove(parent, name)
        if parent.find(name) is None:
            gone.append(os.path.join(parent.path, name))
    return gone


def _left(parent: Folder) -> list[str]:
    try:
        names = parent.names()
    except OSError:
        return []
    return [name for name in sorted(names) if name.startswith(PREFIX) and _is_left(parent, name)]


def _remove(parent: Folder, name: str) -> None:
    if shutil.rmtree.avoids_symlink_attacks:
        shutil.rmtree(name, ignore_errors=True, dir_fd=parent.fileno())
    else:
        shutil.rmtree(os.path.join(parent.path, name), ignore_errors=True)


def _is_left(parent: Folder, name: str) -> bool:
    found = parent.find(name)
    if found is None or not stat.S_ISDIR(found.st_mode):
        return False
    if time.time() - found.st_mtime < GRACE and not name.startswith(LOCKED):
        return False
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        return False
    if fcntl is None:
        return time.time() - found.st_mtime > LONG
    try:
        with parent.child(name) as place:
            lock = _lock(place)
    except OSError:
        return False
    if lock is None:
        return False
    os.close(lock)
    return True


def _lock(place: Folder) -> int | None:
    """Lock a folder and return its descriptor; ``None`` if another process holds it or there are no locks."""
    if fcntl is None:
        return None
    try:
        opened = os.dup(place.fileno())
    except OSError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        return None
    return opened
