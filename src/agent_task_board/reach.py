"""Find the directory and the name behind a path, step by step, and refuse symbolic links that lead out.

A checkout may hold ``AGENTS.md -> ~/.bashrc`` or ``.claude -> ~/.claude``. Whatever writes below a project or a data
directory comes here first: a link that stays inside counts (``AGENTS.md -> CLAUDE.md``), any other is refused. Each
step is taken from a directory that is already open, so that nobody can change the way between check and use.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from . import places
from .folder import LINKS, Folder, LeadsOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class Spot:
    """An open directory and a name in it that is no symbolic link; there may be nothing of that name yet.

    ``is_linked`` says whether the last part of the path was a link. Close it, or use it as a context manager.
    """

    __slots__ = ("folder", "is_linked", "name")

    def __init__(self, folder: Folder, name: str, *, is_linked: bool) -> None:
        self.folder = folder
        self.name = name
        self.is_linked = is_linked

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory."""
        self.folder.close()

    @property
    def path(self) -> str:
        """The path of the spot, for messages and for programs that take nothing else."""
        return os.path.join(self.folder.path, self.name)

    def find(self) -> os.stat_result | None:
        """Return what is there; ``None`` if nothing is."""
        return self.folder.find(self.name)


def reach(
    path: str, within: str | None = None, *, create: bool = False, mode: int = 0o700, created: list[str] | None = None
) -> Spot:
    """Return the spot that a path leads to.

    Args:
        path: an absolute path.
        within: the directory that no link may lead out of; without it, links may lead anywhere.
        create: whether missing directories on the way are created.
        mode: their permissions.
        created: gets the paths of the directories that were.

    Raises:
        LeadsOut: a link leads out of ``within``, or the path does.
        OSError: a directory on the way is missing or cannot be entered, or there are too many links.
    """
    if within is None:
        path = os.path.realpath(path)
        within = _existing(os.path.dirname(path))
    walk = _Walk(within, path)
    try:
        return walk.run(create, mode, created)
    finally:
        walk.close()


def reach_folder(path: str, within: str | None = None, *, create: bool = False, mode: int = 0o700) -> Folder:
    """Return the open directory that a path leads to; arguments and refusals are those of ``reach``."""
    if within is not None and os.path.abspath(path) == os.path.abspath(within):
        return Folder(path)
    with reach(path, within, create=create, mode=mode) as spot:
        return spot.folder.child(spot.name, create=create, mode=mode)


def limits_of(path: str) -> str:
    """Return the directory that links of a path that somebody named must not lead out of.

    It is the repository around the working directory if the path is in it, else the one around the path; outside of a
    repository it is the directory that the path names: links on the way there are the choice of whoever named it.
    """
    with suppress(OSError):
        here = places.project_of(os.getcwd())
        if here is not None and places.is_in(path, here.top):
            return here.top
    above = _existing(os.path.dirname(path))
    project = places.project_of(above)
    return above if project is None else project.top


def limits_of_directory(path: str) -> str | None:
    """Return what ``limits_of`` does for a directory that somebody named; ``None``: its links may lead anywhere.

    Outside of a repository, a link of this user's own, such as ``~/backups``, is a choice and no trap.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return limits_of(path)
    is_own_link = stat.S_ISLNK(found.st_mode) and (not hasattr(os, "getuid") or found.st_uid in (os.getuid(), 0))
    return None if is_own_link and places.project_of(os.path.dirname(path)) is None else limits_of(path)


class _Walk:
    """The open directories from the top to where the walk is, and the parts of the path that are left."""

    def __init__(self, within: str, path: str) -> None:
        self._within = within
        self._tops = {os.path.abspath(within), os.path.realpath(within)}
        self._left = os.path.relpath(os.path.abspath(path), os.path.abspath(within)).split(os.sep)[::-1]
        self._open = [Folder(os.path.abspath(within))]
        self._links = 0
        self._link = path
        self._is_linked = False

    def close(self) -> None:
        for folder in self._open:
            folder.close()

    def run(self, create: bool, mode: int, created: list[str] | None) -> Spot:
        while self._left:
            name = self._left.pop()
            folder = self._open[-1]
            if name in ("", "."):
                continue
            if name == "..":
                self._leave()
                continue
            found = folder.find(name)
            if found is not None and stat.S_ISLNK(found.st_mode):
                self._follow(folder, name)
            elif not any(part not in ("", ".") for part in self._left):
                return Spot(self._open.pop(), name, is_linked=self._is_linked)
            else:
                if create and found is None and created is not None:
                    created.append(os.path.join(folder.path, name))
                self._open.append(folder.child(name, create=create, mode=mode))
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self._within)

    def _leave(self) -> None:
        if len(self._open) == 1:
            raise LeadsOut(self._link, self._within)
        self._open.pop().close()

    def _follow(self, folder: Folder, name: str) -> None:
        self._links += 1
        link = os.path.join(folder.path, name)
        if self._links > LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), link)
        target = folder.link_of(name)
        if os.path.isabs(target):
            top = next((top for top in self._tops if places.is_in(os.path.normpath(target), top)), None)
            if top is None:
                raise LeadsOut(link, self._within)
            target = os.path.relpath(target, top)
            while len(self._open) > 1:
                self._open.pop().close()
        self._link = link
        self._is_linked = self._is_linked or not any(part not in ("", ".") for part in self._left)
        self._left += target.split(os.sep)[::-1]


def _existing(path: str) -> str:
    """Return the nearest directory above a path, or itself, that exists."""
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path
