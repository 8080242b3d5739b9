"""Create files for this user alone."""

from __future__ import annotations

import os


def create_file(path: str, *, mode: int = 0o600) -> int:
    """Create a file and return its descriptor, open for writing; children do not inherit it.

    Raises:
        FileExistsError: something is at ``path``; also a symbolic link that leads nowhere.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    return os.open(path, flags, mode)
