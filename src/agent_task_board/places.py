"""Find the board of a project: the nearest one from the working directory upwards.

Only files are read; no program is started. A linked worktree of git leads to the main checkout, so that all worktrees
of a repository share one board.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    class HasDataDir(Protocol):
        """What an ``atb.toml`` says, as far as it matters here."""

        @property
        def data_dir(self) -> str | None:
            """The absolute data directory that it names, if any."""


FILE = "tasks.db"
HIDDEN = ".atb"
PLAIN = "data"
"""The two directories that a project's board may be in; ``.atb`` comes first."""
DEFAULT = "default"
"""Why a data directory is the one where a board would be created: nothing was found."""
SETTINGS = "atb.toml"
"""The file that may name another data directory, for the directory that it is in and all below."""

_OURS = (".gitignore", "config.toml", "backups", "hooks.lock")
_POINTER = 4_096
"""Bytes of a ``.git`` file that are read."""


class Place:
    """Where the board is, or would be created.

    ``data_dir`` is absolute, ``why`` says what led there, ``root`` is the project's root (``None`` outside of a
    repository), ``exists`` whether a board is there, and ``looked`` names every path that was looked at, in order.
    """

    __slots__ = ("data_dir", "exists", "looked", "root", "settings", "why")

    def __init__(
        self, data_dir: str, why: str, *, exists: bool, root: str | None, looked: list[str], settings: str | None
    ) -> None:
        self.data_dir = data_dir
        self.why = why
        self.exists = exists
        self.root = root
        self.looked = looked
        self.settings = settings
        """The ``atb.toml`` nearest to the working directory that counts."""


def find(start: str, home: str, read: Callable[[str], HasDataDir | None]) -> Place:
    """Return the nearest board upwards from a directory, or where a board would be created if there is none.

    Args:
        start: the working directory, absolute.
        home: where a walk outside of a repository ends, if it comes by.
        read: returns what an existing ``atb.toml`` says; ``None`` if it must not count.
    """
    looked: list[str] = []
    settings = None
    root = project_root(start)
    for directory in _upwards(start, home, root):
        file = os.path.join(directory, SETTINGS)
        if os.path.isfile(file):
            looked.append(file)
            found = read(file)
            if found is not None:
                settings = settings or file
            if found is not None and found.data_dir is not None:
                named = found.data_dir
                looked.append(os.path.join(named, FILE))
                why = f"file {file}"
                return Place(named, why, exists=_has_board(named), root=root, looked=looked, settings=settings)
        for name in (HIDDEN, PLAIN):
            candidate = os.path.join(directory, name)
            looked.append(os.path.join(candidate, FILE))
            if _has_board(candidate):
                why = "the nearest board upwards"
                return Place(candidate, why, exists=True, root=root, looked=looked, settings=settings)
    where = start if root is None else root
    data_dir = os.path.join(where, PLAIN)
    if _holds_other_things(data_dir):
        data_dir = os.path.join(where, HIDDEN)
    return Place(data_dir, DEFAULT, exists=False, root=root, looked=looked, settings=settings)


def project_root(start: str) -> str | None:
    """Return the root of the git repository that a directory is in, that of the main checkout for a linked worktree.

    A worktree of a bare repository has no main checkout; its root is the bare repository itself. ``None`` outside of
    a repository.
    """
    for directory in _parents(start):
        marker = os.path.join(directory, ".git")
        if os.path.isdir(marker):
            return directory
        if os.path.isfile(marker):
            return _main_checkout(directory, marker)
    return None


def _main_checkout(directory: str, marker: str) -> str:
    """Return where the main checkout of a linked worktree is; for a submodule, its own directory."""
    git_dir = _pointer(marker, "gitdir:")
    if git_dir is None:
        return directory
    git_dir = os.path.normpath(os.path.join(directory, git_dir))
    common = _pointer(os.path.join(git_dir, "commondir"), "")
    if common is None:  # a submodule, or a repository whose files lie elsewhere
        return directory
    common = os.path.normpath(os.path.join(git_dir, common))
    if not os.path.isdir(common):
        return directory
    return os.path.dirname(common) if os.path.basename(common) == ".git" else common


def _pointer(path: str, prefix: str) -> str | None:
    """Return the path that a small file of git holds behind a prefix; ``None`` if it holds none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(_POINTER)
    except (OSError, ValueError):
        return None
    if not text.startswith(prefix):
        return None
    return text.removeprefix(prefix).strip() or None


def _upwards(start: str, home: str, root: str | None) -> Iterator[str]:
    """Yield the directories of a walk, the nearest first: up to the repository's root, else to home or the root."""
    for directory in _parents(start):
        yield directory
        if root is not None and os.path.lexists(os.path.join(directory, ".git")):
            if directory != root:
                yield root
            return
        if root is None and directory == home:
            return


def _parents(start: str) -> Iterator[str]:
    directory = start
    while True:
        yield directory
        above = os.path.dirname(directory)
        if above == directory:
            return
        directory = above


def _has_board(directory: str) -> bool:
    """Say whether a board's file is in a directory; an empty one is no board yet."""
    try:
        return os.stat(os.path.join(directory, FILE)).st_size > 0
    except (OSError, ValueError):
        return False


def _holds_other_things(directory: str) -> bool:
    """Say whether a directory exists that is not ours: there is something in it beside what a board leaves."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return not all(name in _OURS or name.startswith((FILE, "turnstile.", ".atb-unfinished-")) for name in names)


def why_untrusted(path: str) -> str | None:
    """Return why a file that was found must not count; ``None`` if this user or root controls it.

    Only its owner, or that of its directory, may be able to change it; the group that belongs to this user alone does
    not matter.
    """
    if not hasattr(os, "getuid"):
        return None
    for one in (path, os.path.dirname(path)):
        try:
            found = os.stat(one)
        except OSError as error:
            return f"{one}: {error.strerror}"
        if found.st_uid not in (os.getuid(), 0):
            return f"another user owns {one}"
        others = found.st_mode & 0o022
        if others & 0o020 and _is_private_group(found.st_gid):
            others &= ~0o020
        if others:
            return f"other users can write {one}"
    return None


def _is_private_group(gid: int) -> bool:
    """Say whether a group is the one that many systems create for each user, with no other member."""
    try:
        import grp
        import pwd

        user = pwd.getpwuid(os.getuid())
        group = grp.getgrgid(gid)
    except (ImportError, KeyError):
        return False
    return gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
