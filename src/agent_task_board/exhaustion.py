"""What a process answers when it runs out of memory or of file descriptors, and how servers get enough of these.

SQLite reports a failed ``open`` without its reason. So a file that cannot be opened while few descriptors are free
counts as a lack of descriptors: the same call can succeed in a moment.
"""

from __future__ import annotations

import errno
import os

from .errors import Busy, Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .errors import BoardError

FILES_PER_THREAD = 6
"""Open files of one thread of a server: a socket, the board, its log, its shared memory, two turnstile locks."""
FILES_APART = 64
"""Files that a server opens besides those of its threads; at most a quarter of what it may open."""
SPARE_FILES = 3 * FILES_PER_THREAD
"""If fewer descriptors than this are free, a file that cannot be opened counts as a lack of descriptors."""


def refusal(error: Exception) -> BoardError | None:
    """Return the refusal for an error that means a lack of memory or descriptors; ``None`` for any other error.

    The error's traceback is dropped, because its frames keep the memory in use.
    """
    if isinstance(error, MemoryError):
        error.__traceback__ = None
        return Unusable(
            "out of memory",
            hint="Ask for less, for example with a smaller limit, or free memory on this machine.",
        )
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return Busy("too many open files")
    if isinstance(error, Unusable) and _is_short_of_files():
        return Busy(f"too many open files: {error.message}")
    return None


def threads(most: int, least: int) -> int:
    """Raise the limit of open files, and return how many threads of a server it is enough for, at most ``most``.

    Raises:
        Unusable: it is enough for fewer than ``least``.
    """
    try:
        open_now = open_files()
    except OSError:  # Windows
        open_now = 0
    files = raise_file_limit(open_now + FILES_APART + most * FILES_PER_THREAD)
    found = (files - open_now - min(FILES_APART, files // 4)) // FILES_PER_THREAD
    if found < least:
        needed = -(-(open_now + least * FILES_PER_THREAD) * 4 // 3)
        raise Unusable(
            f"too few open files are allowed: {files} (at least {needed})",
            hint=f"Raise the limit before the start, for example with `ulimit -n {max(256, needed)}`.",
        )
    return min(most, found)


def raise_file_limit(wanted: int) -> int:
    """Raise this process's soft limit of open files, which is 256 or 1,024 on many systems.

    Returns:
        The limit, at most ``wanted``.
    """
    try:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < allowed:
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
            soft = allowed
    except (ImportError, OSError, ValueError):
        return wanted
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, soft)


def open_files() -> int:
    """Return how many files this process has open now."""
    return len(os.listdir("/dev/fd"))


def _is_short_of_files() -> bool:
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return limit != resource.RLIM_INFINITY and open_files() + SPARE_FILES > limit
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    except ImportError:  # Windows
        return False
