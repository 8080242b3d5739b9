"""Which servers of a board run, so that ``atb open`` finds them.

Each server keeps a file in the user's state directory and holds a lock on it: the lock ends with the process, however
it ends, and no other user can pretend to be a server of this one.
"""

from __future__ import annotations

import contextlib
import json
import os

from .. import state
from ..errors import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..folder import Folder

_FOLDER = "servers"


@contextlib.contextmanager
def announced(board_id: str | None, url: str, *, auth: bool) -> Iterator[None]:
    """Announce a server while a block runs; without a board or a usable state directory, do nothing."""
    if board_id is None:
        yield
        return
    name = f"{board_id}-{os.getpid()}.json"
    held: int | None = None
    with contextlib.suppress(Unusable, OSError), state.opened(below=_FOLDER) as folder:
        folder.replace(name, json.dumps({"url": url, "auth": auth}).encode())
        held = folder.open(name, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
        _try_lock(held)
    try:
        yield
    finally:
        if held is not None:
            os.close(held)
            with contextlib.suppress(Unusable, OSError), state.opened(below=_FOLDER) as folder:
                folder.unlink(name)


def find(board_id: str) -> list[dict[str, Any]]:
    """Return ``{"url", "auth"}`` of each server of a board that runs, the one that started last first.

    What servers left behind that were killed is removed.

    Raises:
        Unusable: the state directory cannot be used.
    """
    found: list[tuple[float, dict[str, Any]]] = []
    with state.opened(below=_FOLDER) as folder:
        for name in folder.names():
            if name.startswith(f"{board_id}-") and name.endswith(".json"):
                entry = _entry(folder, name)
                if entry is None:
                    folder.unlink(name)
                else:
                    found.append((folder.stat(name).st_mtime, entry))
    return [entry for _, entry in sorted(found, key=lambda one: -one[0])]


def _entry(folder: Folder, name: str) -> dict[str, Any] | None:
    """Return what a server wrote; ``None`` if it has ended."""
    descriptor = folder.open(name, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as file:
        if _try_lock(descriptor):
            return None
        try:
            document = json.loads(file.read())
            return {"url": str(document["url"]), "auth": bool(document["auth"])}
        except (ValueError, KeyError, TypeError):
            return None


def _try_lock(descriptor: int) -> bool:
    """Take the lock of a file; say whether it was free. Where there are no such locks, none is ever free."""
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
