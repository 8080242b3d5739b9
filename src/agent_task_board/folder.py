"""A directory that is opened once: what is below it is reached by its descriptor, never through a link that leads out.

A check of a path and its use are two moments, and others may replace a directory by a symbolic link between them. An
open directory stays the one that was opened. On systems without such calls (Windows), paths are used instead.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

HAS_DESCRIPTORS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
LINKS = 40
"""Symbolic links on one path, at most, as in the kernel."""

_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | _NO_LINK
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | _NO_LINK


class LeadsOut(OSError):
    """A symbolic link leads out of the directory that everything must stay in; ``filename`` is the link."""

    def __init__(self, link: str, top: str) -> None:
        super().__init__(errno.ELOOP, f"a symbolic link that leads out of {top}", link)


class Folder:
    """An open directory; ``path`` names it in messages. Close it, or use it as a context manager.

    Names are single parts of a path; a name that is a symbolic link is never followed.
    """

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: str) -> None:
        """Open a directory; links in ``path`` are followed: whoever names a directory means what it leads to.

        Raises:
            OSError: it does not exist, or is no directory.
        """
        self.path = path
        self._descriptor = os.open(path, _DIRECTORY) if HAS_DESCRIPTORS else -1
        if not HAS_DESCRIPTORS and not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)

    @classmethod
    def _opened(cls, path: str, descriptor: int) -> Folder:
        folder = cls.__new__(cls)
        folder.path, folder._descriptor = path, descriptor
        return folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def fileno(self) -> int:
        """Return the descriptor; -1 on a system that has none for directories."""
        return self._descriptor

    def stat(self, name: str | None = None) -> os.stat_result:
        """Return what the system says of an entry, not of what it leads to; without a name, of the directory."""
        if name is None:
            return os.fstat(self._descriptor) if HAS_DESCRIPTORS else os.stat(self.path)
        return os.stat(*self._at(name), follow_symlinks=False, **self._by())

    def find(self, name: str) -> os.stat_result | None:
        """Return what ``stat`` returns; ``None`` if there is no such entry."""
        try:
            return self.stat(name)
        except FileNotFoundError:
            return None

    def names(self) -> list[str]:
        """Return the names of all entries."""
        return os.listdir(self._descriptor if HAS_DESCRIPTORS else self.path)

    def make(self, name: str, *, mode: int = 0o700) -> Folder:
        """Create a directory in this one and open it.

        Raises:
            FileExistsError: something has that name.
        """
        os.mkdir(*self._at(name), mode, **self._by())
        return self.child(name)

    def child(self, name: str, *, create: bool = False, mode: int = 0o700) -> Folder:
        """Open a directory in this one; with ``create``, make it if there is nothing of that name.

        Raises:
            LeadsOut: it is a symbolic link.
            OSError: it does not exist, is no directory, or cannot be entered.
        """
        if create:
            with suppress(FileExistsError):
                return self.make(name, mode=mode)
        path = os.path.join(self.path, name)
        if not HAS_DESCRIPTORS:
            if os.path.islink(path):
                raise LeadsOut(path, self.path)
            return Folder(path)
        try:
            return Folder._opened(path, os.open(name, _DIRECTORY | _NO_LINK, dir_fd=self._descriptor))
        except OSError as error:
            if self.is_link(name):
                raise LeadsOut(path, self.path) from error
            raise _named(error, path) from error

    def is_link(self, name: str) -> bool:
        """Say whether an entry is a symbolic link."""
        found = self.find(name)
        return found is not None and stat.S_ISLNK(found.st_mode)

    def link_of(self, name: str) -> str:
        """Return the target that a symbolic link names."""
        target: str = os.readlink(*self._at(name), **self._by())
        return target

    def create(self, name: str, *, mode: int = 0o600) -> int:
        """Create a file and return its descriptor, open for writing; children do not inherit it.

        Raises:
            FileExistsError: something has that name; also a symbolic link that leads nowhere.
        """
        try:
            return os.open(*self._at(name), _NEW, mode, **self._by())
        except OSError as error:
            raise _named(error, os.path.join(self.path, name)) from error

    def open(self, name: str, flags: int = _READ, mode: int = 0o600) -> int:
        """Open an entry that is no symbolic link and return its descriptor; by default for reading, without waiting."""
        try:
            return os.open(*self._at(name), flags | _NO_LINK, mode, **self._by())
        except OSError as error:
            raise _named(error, os.path.join(self.path, name)) from error

    def read(self, name: str, limit: int = -1) -> bytes:
        """Return the content of a regular file, ``limit`` bytes of it at most.

        Raises:
            OSError: there is none, or it is no regular file (``EINVAL``); a pipe is not waited for.
        """
        with os.fdopen(self.open(name), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", os.path.join(self.path, name))
            return file.read(limit)

    def write(self, name: str, content: bytes, *, mode: int | None = 0o600) -> str:
        """Write a new file under a name that nothing has yet, in this directory and on disk; return that name.

        ``name`` is where it belongs: ``rename`` puts it there. ``mode`` counts as it is, whatever the umask; ``None``
        is what the umask leaves.
        """
        temporary = f".{name}.{os.urandom(6).hex()}.tmp"
        try:
            with os.fdopen(self.create(temporary, mode=0o666 if mode is None else 0o600), "wb") as file:
                if mode is not None and hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), mode)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                self.unlink(temporary)
            raise
        return temporary

    def replace(self, name: str, content: bytes, *, mode: int | None = 0o600) -> None:
        """Create or replace a file as a whole; a symbolic link of that name is replaced, not followed."""
        temporary = self.write(name, content, mode=mode)
        try:
            self.rename(temporary, name)
        except OSError:
            with suppress(OSError):
                self.unlink(temporary)
            raise

    def rename(self, old: str, new: str, other: Folder | None = None) -> None:
        """Rename an entry, over whatever has the new name; into ``other`` if it is given."""
        target = self if other is None else other
        if HAS_DESCRIPTORS:
            os.replace(old, new, src_dir_fd=self._descriptor, dst_dir_fd=target._descriptor)
        else:
            os.replace(os.path.join(self.path, old), os.path.join(target.path, new))

    def give_name(self, old: str, new: str, other: Folder) -> None:
        """Move a file into another directory; never replace anything.

        Raises:
            FileExistsError: something has that name.
        """
        try:
            if HAS_DESCRIPTORS:
                os.link(old, new, src_dir_fd=self._descriptor, dst_dir_fd=other._descriptor, follow_symlinks=False)
            else:
                os.link(os.path.join(self.path, old), os.path.join(other.path, new))
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if other.find(new) is not None:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.path.join(other.path, new)) from None
            self.rename(old, new, other)

    def unlink(self, name: str) -> None:
        """Remove a file or a link."""
        os.unlink(*self._at(name), **self._by())

    def rmdir(self, name: str) -> None:
        """Remove an empty directory."""
        os.rmdir(*self._at(name), **self._by())

    def chmod(self, name: str, mode: int) -> None:
        """Set the permissions of an entry that is no symbolic link, without opening it.

        An ordinary descriptor of the board's file must not be closed: that would drop SQLite's locks. One that only
        names the file (``O_PATH``) drops none.
        """
        if hasattr(os, "O_PATH") and os.path.isdir("/proc/self/fd"):
            named = os.open(name, os.O_PATH | _NO_LINK | os.O_CLOEXEC, dir_fd=self._descriptor)
            try:
                if stat.S_ISLNK(os.fstat(named).st_mode):
                    raise LeadsOut(os.path.join(self.path, name), self.path)
                os.chmod(f"/proc/self/fd/{named}", mode)
            finally:
                os.close(named)
        elif self.is_link(name):
            raise LeadsOut(os.path.join(self.path, name), self.path)
        elif os.chmod in os.supports_follow_symlinks:
            os.chmod(*self._at(name), mode, follow_symlinks=False, **self._by())
        else:
            os.chmod(*self._at(name), mode, **self._by())

    def restrict(self, mode: int = 0o700) -> None:
        """Set the permissions of the directory; by default, nobody but the owner can enter it."""
        if HAS_DESCRIPTORS:
            os.fchmod(self._descriptor, mode)

    def sync(self) -> None:
        """Sync the names in the directory to disk."""
        if HAS_DESCRIPTORS:
            os.fsync(self._descriptor)

    def _at(self, name: str) -> tuple[str]:
        if not name or name in (".", "..") or "/" in name or os.sep in name:
            raise ValueError(f"not a single name: {name!r}")
        return (name,) if HAS_DESCRIPTORS else (os.path.join(self.path, name),)

    def _by(self) -> dict[str, Any]:
        return {"dir_fd": self._descriptor} if HAS_DESCRIPTORS else {}


def _named(error: OSError, path: str) -> OSError:
    """Return an error with the whole path."""
    return OSError(error.errno, error.strerror, path)
