"""Write files whole or not at all, and refuse with the directory's name what the disk refuses."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager

from ..errors import Unusable
from ..folder import LeadsOut
from ..storage.db import Error
from ..storage.refusals import refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..folder import Folder

CHUNK = 1 << 20
"""The number of bytes that are read or written at once."""


@contextmanager
def refusing(directory: str) -> Iterator[None]:
    """Turn errors of the disk into refusals that name the directory."""
    try:
        yield
    except Error as error:
        refuse(error, directory)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "Free some space, then repeat the same call; nothing was changed."
            raise Unusable(f"{directory}: the disk is full", hint=hint) from error
        if isinstance(error, LeadsOut):
            hint = "Nothing was changed. Remove the link, or name the directory that it leads to."
            raise Unusable(f"{error.filename} is {error.strerror}", hint=hint, link=error.filename) from error
        hint = "Check its owner and permissions, or name another directory."
        raise Unusable(f"{error.filename or directory}: {error.strerror or error}", hint=hint) from error


def write_file(folder: Folder, name: str, chunks: Iterable[bytes]) -> None:
    """Write a new file that only this user can read, and sync it to disk."""
    with os.fdopen(folder.create(name), "wb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def free_space(directory: str) -> int | None:
    """Return the free bytes of the disk of a directory; ``None`` if the system does not tell."""
    try:
        found = os.statvfs(directory)
    except (AttributeError, OSError):
        return None
    return found.f_bavail * found.f_frsize
