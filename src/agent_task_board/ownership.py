"""Who controls a file: whether only this user, or root, may have written what it holds.

Everything that was found rather than named is asked about here: a board, a configuration file, a directory.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Admits = Callable[[str, os.stat_result, int], bool]
    """Takes a path, what ``stat`` says of it, and the write permissions of others that matter."""

WRITE = 0o022
"""The bits with which the group and all others may write."""


def why_untrusted(path: str, *, above: bool = True, admits: Admits | None = None) -> str | None:
    """Return why a file or directory that was found must not count; ``None`` if this user or root controls it.

    Only its owner, or that of its directory, may be able to change it; the group that belongs to this user alone does
    not matter. A symbolic link is judged with everything that it leads through: whoever may change the link, or the
    directory of its target, decides what is read.

    Args:
        path: the absolute path.
        above: whether the directory that it is in matters, too.
        admits: says whether what was found to be controlled by others counts all the same.
    """
    if not hasattr(os, "getuid"):
        return None
    for one in _controlling(path, above=above):
        reason = _reason(one, admits)
        if reason is not None:
            return reason
    return None


def keeps_names(directory: str) -> bool:
    """Say whether nobody but this user and root can rename or remove what this user creates in a directory.

    Where others can, a path in it may lead elsewhere at any moment.
    """
    if not hasattr(os, "getuid"):
        return True
    found = os.stat(directory)
    return why_untrusted(directory, above=False) is None or (
        found.st_uid in (os.getuid(), 0) and bool(found.st_mode & stat.S_ISVTX)
    )


def _controlling(path: str, *, above: bool) -> list[str]:
    """Return the paths whose owner or permissions decide what is read from a path."""
    paths = [path, os.path.dirname(path)] if above else [path]
    for _ in range(_LINKS):
        try:
            path = os.path.join(os.path.dirname(path), os.readlink(path))
        except (OSError, ValueError):  # no link
            break
        paths += [path, os.path.dirname(path)]
    return paths


_LINKS = 40
"""Links that are followed, as the kernel does; ``stat`` refuses more."""


def _reason(path: str, admits: Admits | None) -> str | None:
    try:
        found = os.stat(path)
    except OSError as error:
        return f"{path}: {error.strerror}"
    is_foreign = found.st_uid not in (os.getuid(), 0)
    others = found.st_mode & WRITE
    if others & 0o020 and _is_private_group(found.st_gid) and not _has_list(path):
        others &= ~0o020
    if not (is_foreign or others) or (admits is not None and admits(path, found, others)):
        return None
    return f"another user owns {path}" if is_foreign else f"other users can write {path}"


def _is_private_group(gid: int) -> bool:
    """Say whether a group is the one that many systems create for each user, with no other member."""
    try:
        import grp
        import pwd

        user = pwd.getpwuid(os.getuid())
        group = grp.getgrgid(gid)
        if gid != user.pw_gid or group.gr_name != user.pw_name or set(group.gr_mem) - {user.pw_name}:
            return False
        return all(other.pw_name == user.pw_name for other in pwd.getpwall() if other.pw_gid == gid)
    except (ImportError, KeyError):
        return False


def _has_list(path: str) -> bool:
    """Say whether a path has an access control list: its group bits then stand for users that are named there."""
    try:
        return "system.posix_acl_access" in os.listxattr(path)
    except (AttributeError, OSError):  # a system or a file system without such lists
        return False
