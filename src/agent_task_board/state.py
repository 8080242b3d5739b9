"""The user's state directory: what `atb` keeps for this user and for no board, such as decisions and secrets.

It is ``agent-task-board`` in ``XDG_STATE_HOME`` (``~/.local/state`` where that is not set or not absolute). Only this
user can enter it, and each file in it is replaced as a whole, mode 0600.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from . import ownership
from .errors import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .folder import Folder

NAME = "agent-task-board"
_LOCK = "lock"


def directory(environ: Mapping[str, str] = os.environ) -> str:
    """Return the path of the state directory; it may not exist."""
    base = environ.get("XDG_STATE_HOME") or ""
    if not os.path.isabs(base):
        home = environ.get("HOME") or ""
        base = os.path.join(home if os.path.isabs(home) else os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, NAME)


def read(name: str, environ: Mapping[str, str] = os.environ, *, below: str | None = None) -> bytes | None:
    """Return the content of a file of the state directory, or of its subdirectory ``below``.

    ``None`` if there is none, or other users control the directory: what they may have written decides nothing.
    """
    from .folder import Folder

    path = directory(environ)
    if ownership.why_untrusted(path, above=False) is not None:
        return None
    try:
        with Folder(path) as top:
            if below is None:
                return _read(top, name)
            with top.child(below) as inner:
                return _read(inner, name)
    except OSError:
        return None


@contextmanager
def opened(environ: Mapping[str, str] = os.environ, *, below: str | None = None) -> Iterator[Folder]:
    """Open the state directory, or its subdirectory ``below``, for a change; create it if it is missing.

    One process at a time is inside, so that what a block read is still true when it writes.

    Raises:
        Unusable: it cannot be created or written, or other users control it.
    """
    from .folder import Folder

    path = directory(environ)
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with Folder(os.path.dirname(path)) as base, base.child(NAME, create=True) as top:
            _refuse_foreign(top)
            with _locked(top):
                if below is None:
                    yield top
                else:
                    with top.child(below, create=True) as inner:
                        _refuse_foreign(inner)
                        yield inner
    except OSError as error:
        raise Unusable(
            f"{error.filename or path}: {error.strerror or error}",
            hint="Check the owner and the permissions of the directory, or set XDG_STATE_HOME to one of your own.",
        ) from error


def _read(folder: Folder, name: str) -> bytes | None:
    """Return the content of a file that this user, or root, owns and nobody else may write."""
    import stat

    with os.fdopen(folder.open(name), "rb") as file:
        found = os.fstat(file.fileno())
        is_own = not hasattr(os, "getuid") or (found.st_uid in (os.getuid(), 0) and not found.st_mode & ownership.WRITE)
        return file.read() if stat.S_ISREG(found.st_mode) and is_own else None


def _refuse_foreign(folder: Folder) -> None:
    """Refuse a directory of another user; take other users' access from one of this user's."""
    if not hasattr(os, "getuid"):
        return
    found = folder.stat()
    if found.st_uid != os.getuid():
        raise Unusable(
            f"another user owns {folder.path}",
            hint="Set XDG_STATE_HOME to a directory of your own, or HOME to your home directory.",
        )
    if found.st_mode & 0o077:
        folder.restrict()


@contextmanager
def _locked(top: Folder) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    lock = top.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
