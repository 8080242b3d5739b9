"""Find the board of a project: the nearest one from the working directory upwards.

Only files are read; no program is started. A linked worktree of git leads to the main checkout, so that all worktrees
of a repository share one board.
"""

from __future__ import annotations

import os

from . import ownership

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Protocol

    class Named(Protocol):
        """What an ``atb.toml`` says, as far as it matters here."""

        def data_dir_from(self, directory: str) -> str | None:
            """Return the absolute data directory that it names, if any; a relative one starts at ``directory``."""


FILE = "tasks.db"
HIDDEN = ".atb"
PLAIN = "data"
"""The two directories that a project's board may be in; ``.atb`` comes first."""
DEFAULT = "default"
"""Why a data directory is the one where a board would be created: nothing was found."""
SETTINGS = "atb.toml"
"""The file that may name another data directory, for the directory that it is in and all below."""

_LIMIT = 16_384
"""Characters that are read of a file of git."""


class Project:
    """The git repository that a directory is in.

    ``top`` is the root of the checkout around the directory, ``root`` that of the main checkout: the same, unless the
    checkout is a linked worktree. A bare repository has no main checkout; ``root`` is then the directory of the
    repository, and ``is_bare`` is true.
    """

    __slots__ = ("is_bare", "root", "top")

    def __init__(self, top: str, root: str, *, is_bare: bool = False) -> None:
        self.top = top
        self.root = root
        self.is_bare = is_bare


class Place:
    """Where the board is, or would be created.

    ``data_dir`` is absolute, ``why`` says what led there, ``project`` is the repository (``None`` outside of one),
    ``exists`` whether a board is there, ``settings`` the nearest ``atb.toml`` that counts, and ``looked`` names every
    path that was looked at, in order. ``refused`` is why no board may be created in ``data_dir``.
    """

    __slots__ = ("data_dir", "exists", "looked", "project", "refused", "settings", "why")

    def __init__(
        self,
        data_dir: str,
        why: str,
        *,
        exists: bool,
        project: Project | None,
        looked: list[str],
        settings: str | None,
        refused: str | None = None,
    ) -> None:
        self.data_dir = data_dir
        self.why = why
        self.exists = exists
        self.project = project
        self.looked = looked
        self.settings = settings
        self.refused = refused

    @property
    def is_default(self) -> bool:
        """Whether nothing was found, neither a board nor a file that names a data directory."""
        return self.why == DEFAULT


def find(start: str, home: str, read: Callable[[str], Named | None], pass_over: Callable[[str], bool]) -> Place:
    """Return the nearest board upwards from a directory, or where a board would be created if there is none.

    Args:
        start: the working directory, absolute and without symbolic links.
        home: where a walk outside of a repository ends, if it comes by.
        read: returns what an existing ``atb.toml`` says; ``None`` if it must not count.
        pass_over: says whether an existing board must not count.
    """
    looked: list[str] = []
    settings = None
    project = project_of(start)
    for directory in _upwards(start, home, project):
        file = os.path.join(directory, SETTINGS)
        if os.path.isfile(file):
            looked.append(file)
            found = read(file)
            if found is not None:
                settings = settings or file
                named = found.data_dir_from(_in_main_checkout(directory, project))
                if named is not None:
                    looked.append(os.path.join(named, FILE))
                    why, exists = f"file {file}", has_board(named)
                    return Place(named, why, exists=exists, project=project, looked=looked, settings=settings)
        for name in (HIDDEN, PLAIN):
            candidate = os.path.join(directory, name)
            board = os.path.join(candidate, FILE)
            looked.append(board)
            is_one = has_board(candidate) or (name == HIDDEN and _is_closed(candidate))
            if is_one and not pass_over(board):
                is_above = os.path.join(start, "").startswith(os.path.join(directory, ""))
                why = "the nearest board upwards" if is_above else "the board of this worktree's main checkout"
                return Place(candidate, why, exists=True, project=project, looked=looked, settings=settings)
    data_dir, refused = _new(start if project is None else project.root)
    return Place(data_dir, DEFAULT, exists=False, project=project, looked=looked, settings=settings, refused=refused)


def hidden_in(root: str) -> tuple[str, str | None]:
    """Return the ``.atb`` of a directory, and why no board may be created in it."""
    data_dir = os.path.join(root, HIDDEN)
    return data_dir, why_not_in(data_dir)


def why_untrusted(path: str, *, above: bool = True, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return why a file or directory that was found must not count; ``None`` if it may.

    It may if this user or root controls it (``ownership.why_untrusted``), or this user decided to trust it.
    """
    if os.path.basename(path) == FILE and leads_out(path):  # settings beside the link would rule the board behind it
        return f"{path} is a symbolic link that leads out of {os.path.dirname(path)}"
    reason = ownership.why_untrusted(path, above=above)
    if reason is not None:
        from .trust import Trust

        reason = ownership.why_untrusted(path, above=above, admits=Trust(environ).admits)
    return reason


def why_not_in(data_dir: str) -> str | None:
    """Return why no board may be created in a directory that was found: other users control it, or a file in it."""
    board = os.path.join(data_dir, FILE)
    if os.path.lexists(board):
        return why_untrusted(board)
    if leads_out(data_dir):
        return f"{data_dir} is a symbolic link that leads out of {os.path.dirname(data_dir)}"
    return why_untrusted(data_dir, above=False) if os.path.lexists(data_dir) else None


def _new(root: str) -> tuple[str, str | None]:
    """Return where a board is created in a directory, and why it may not be: ``.atb`` beside a ``data`` of others."""
    data_dir = os.path.join(root, PLAIN)
    if os.path.lexists(data_dir) and (_holds_other_things(data_dir) or why_not_in(data_dir)):
        return hidden_in(root)
    return data_dir, None


def project_of(start: str) -> Project | None:
    """Return the git repository that a directory is in; ``None`` outside of one."""
    for directory in _parents(start):
        marker = os.path.join(directory, ".git")
        if os.path.lexists(os.path.join(marker, "HEAD")):
            return Project(directory, directory)
        if os.path.isfile(marker):
            return _linked(directory, marker)
    return None


def _linked(directory: str, marker: str) -> Project:
    """Return the project of a checkout whose ``.git`` is a file.

    Only a linked worktree has a ``commondir``. A submodule does not, nor a repository whose files are elsewhere: each
    is a project of its own.
    """
    git_dir = _pointer(marker, "gitdir: ")
    common = None if git_dir is None else _pointer(os.path.join(directory, git_dir, "commondir"), "")
    if git_dir is None or common is None:
        return Project(directory, directory)
    common = os.path.realpath(os.path.join(directory, git_dir, common))
    if not os.path.isdir(common):
        return Project(directory, directory)
    above = os.path.dirname(common)
    is_bare, checkout = _core_of(common)
    if not is_bare and checkout is not None:  # of a submodule
        return Project(directory, os.path.realpath(os.path.join(common, checkout)))
    if os.path.basename(common) == ".git":
        return Project(directory, above, is_bare=is_bare)
    pointed = _pointer(os.path.join(above, ".git"), "gitdir: ")
    if pointed is not None and os.path.realpath(os.path.join(above, pointed)) == common:
        return Project(directory, above, is_bare=is_bare)
    return Project(directory, common, is_bare=True)


def _core_of(git_dir: str) -> tuple[bool, str | None]:
    """Return whether a repository is bare, and the work tree that it names, from its ``config``."""
    bare, checkout, section = False, None, ""
    for line in map(str.strip, _small(os.path.join(git_dir, "config")).splitlines()):
        if line.startswith("["):
            section = line.lower()
        elif section == "[core]":
            name, _, value = (part.strip() for part in line.partition("="))
            bare = value.lower() == "true" if name.lower() == "bare" else bare
            checkout = value.strip('"') if name.lower() == "worktree" else checkout
    return bare, checkout


def _pointer(path: str, prefix: str) -> str | None:
    """Return the path that a small file of git holds behind a prefix; ``None`` if it holds none."""
    text = _small(path)
    return text.removeprefix(prefix).rstrip("\r\n") or None if text.startswith(prefix) else None


def _small(path: str) -> str:
    """Return the beginning of a file of git; empty if it cannot be read or is no text."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read(_LIMIT)
    except (OSError, ValueError):
        return ""
    return "" if "\0" in text else text


def _in_main_checkout(directory: str, project: Project | None) -> str:
    """Return the directory of the main checkout that corresponds to one of a linked worktree.

    A relative ``data_dir`` starts there: the file is in every worktree, and they share one board.
    """
    if project is None or project.top == project.root or not is_in(directory, project.top):
        return directory
    return os.path.normpath(os.path.join(project.root, os.path.relpath(directory, project.top)))


def is_in(path: str, directory: str) -> bool:
    """Say whether a path is a directory, or is in it."""
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def _upwards(start: str, home: str, project: Project | None) -> Iterator[str]:
    """Yield the directories of a walk, the nearest first: up to the repository's root, else to home or the root."""
    for directory in _parents(start):
        yield directory
        if project is not None and directory == project.top:
            if project.root != project.top:
                yield project.root
            return
        if project is None and directory == home:
            return


def _parents(start: str) -> Iterator[str]:
    directory = start
    while True:
        yield directory
        above = os.path.dirname(directory)
        if above == directory:
            return
        directory = above


def leads_out(path: str) -> bool:
    """Say whether a path is a symbolic link that leads out of the directory that it is in."""
    return os.path.islink(path) and not is_in(os.path.realpath(path), os.path.realpath(os.path.dirname(path)))


def has_board(directory: str) -> bool:
    """Say whether a board's file is in a directory; an empty one is no board yet."""
    try:
        return os.stat(os.path.join(directory, FILE)).st_size > 0
    except (OSError, ValueError):
        return False


def _is_closed(directory: str) -> bool:
    """Say whether a directory cannot be entered: a second board beside it would hide that there may be one."""
    try:
        os.stat(os.path.join(directory, FILE))
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return False


def _holds_other_things(directory: str) -> bool:
    """Say whether a directory is not ours: there is something in it beside what a board leaves."""
    try:
        names = os.listdir(directory)
    except OSError:
        return True
    return FILE not in names and any(name not in (".gitignore", "config.toml", "backups") for name in names)
