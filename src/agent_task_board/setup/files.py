"""Change several files of somebody else: all are looked at before the first is written, and each appears whole."""

from __future__ import annotations

import contextlib
import os
import stat

from ..errors import InvalidInput, Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Protocol

    class Piece(Protocol):
        """What is ours in one file; ``None`` stands for a file that is not there."""

        path: str
        root: str
        notes: list[str]
        """What somebody should know of the last ``put`` or ``take``."""

        def own(self) -> str:
            """Return the text of a file that holds nothing else."""

        def part(self, text: str) -> str:
            """Return what ``take`` takes out."""

        def put(self, text: str | None) -> str:
            """Return the file with it."""

        def take(self, text: str) -> str | None:
            """Return the file without it."""


CREATE, UPDATE, DELETE, UNCHANGED, KEPT = ("create", "update", "delete", "unchanged", "kept")
"""What becomes of a file; ``kept``: it was edited, or is somebody else's, and stays as it is."""


class Unfit(Exception):
    """A file is not in a form that can be changed safely."""


class Kept(Exception):
    """What is there stays as it is; the message says why."""


class Change:
    """One file before and after.

    ``content`` is the part of it that is ours, ``root`` the directory below which empty ones may go with it, ``notes``
    what somebody should know.
    """

    __slots__ = ("action", "after", "before", "content", "notes", "path", "root")

    def __init__(
        self,
        piece: Piece,
        before: str | None,
        after: str | None,
        *,
        action: str,
        notes: list[str],
        content: str | None = None,
    ) -> None:
        self.path = piece.path
        self.root = piece.root
        self.before = before
        self.after = after
        self.content = content
        self.action = action
        self.notes = notes

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"path", "action", "content"}``."""
        return {"path": self.path, "action": self.action, "content": self.content}


def plan(pieces: Iterable[Piece], *, remove: bool) -> list[Change]:
    """Return what would happen to each file.

    Raises:
        InvalidInput: a file is not what it should be, or has an entry of our name that somebody else wrote;
            ``details.add`` is what to write by hand.
        Unusable: a file cannot be read.
    """
    return [_planned(piece, remove=remove) for piece in pieces]


def _planned(piece: Piece, *, remove: bool) -> Change:
    path = piece.path
    before = read(path)
    try:
        if not remove:
            _refuse_loose_link(path)
            after, content = piece.put(before), piece.own()
        elif before is None:
            after, content = None, None
        else:
            after = piece.take(before)
            content = None if after == before else piece.part(before)
    except Kept as kept:
        return Change(piece, before, before, action=KEPT, notes=[str(kept)])
    except Unfit as unfit:
        hint = f"Nothing was changed. {'Take out' if remove else 'Add'} by hand what details.add holds."
        raise InvalidInput(f"{path}: {unfit}", hint=hint, file=path, add=piece.own()) from None
    return Change(piece, before, after, action=_action(before, after), notes=piece.notes, content=content)


def _refuse_loose_link(path: str) -> None:
    """Refuse a symbolic link to nothing, in the path or at its end: what it leads to is not ours to make."""
    while path != os.path.dirname(path):
        if os.path.islink(path) and not os.path.exists(path):
            raise Unfit(f"cannot be written, since {path} is a symbolic link to nothing")
        path = os.path.dirname(path)


def _action(before: str | None, after: str | None) -> str:
    if before == after:
        return UNCHANGED
    if after is None:
        return DELETE
    return CREATE if before is None else UPDATE


def read(path: str) -> str | None:
    """Return the text of a file, line ends as they are; ``None`` if there is none.

    Raises:
        InvalidInput: not a regular file, or not UTF-8.
        Unusable: it cannot be read.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # before open(), which would wait for the writer of a pipe
            raise InvalidInput(f"{path}: is not a regular file", hint="Nothing was changed.", file=path)
        with open(path, "rb") as file:
            return file.read().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path}: not UTF-8 at byte {error.start:,}", hint="Nothing was changed.", file=path
        ) from None
    except OSError as error:
        raise _unusable(path, error) from error


def write(changes: Iterable[Change]) -> None:
    """Carry out a plan. A file that cannot be written leaves the others, too, as they were.

    Raises:
        Unusable: a file cannot be written.
    """
    wanted = [change for change in changes if change.after != change.before]
    staged: list[str] = []
    made: list[str] = []
    done: list[Change] = []
    path = ""
    try:
        for change in wanted:  # a full disk shows here, before anything is replaced
            path = change.path
            staged.append("" if change.after is None else _stage(path, change.after, made))
        for change, temporary in zip(wanted, staged, strict=True):
            path = change.path
            if change.after is None:
                os.unlink(os.path.realpath(path))
            else:
                os.replace(temporary, os.path.realpath(path))
            done.append(change)
    except OSError as error:
        for temporary in filter(None, staged):
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        for change in done:
            with contextlib.suppress(OSError):
                _restore(change)
        _drop(made)
        raise _unusable(path, error) from error
    for change in wanted:
        if change.after is None:
            _drop_empty(os.path.dirname(change.path), change.root)


def _stage(path: str, text: str, made: list[str]) -> str:
    """Write a file beside its place; return its path. Directories that had to be made are added to ``made``."""
    real = os.path.realpath(path)  # a symbolic link stays one
    folder = os.path.dirname(real)
    missing: list[str] = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for folder in reversed(missing):
        os.mkdir(folder)
        made.append(folder)
    temporary = f"{real}.{os.urandom(6).hex()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(descriptor, "wb") as file:
            if os.path.exists(real):
                os.fchmod(file.fileno(), stat.S_IMODE(os.stat(real).st_mode))
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        os.unlink(temporary)
        raise
    return temporary


def _restore(change: Change) -> None:
    real = os.path.realpath(change.path)
    if change.before is None:
        os.unlink(real)
    else:
        os.replace(_stage(real, change.before, []), real)


def _drop(folders: Sequence[str]) -> None:
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _drop_empty(folder: str, root: str) -> None:
    """Remove directories below ``root`` that are empty now: ``.cursor/rules``, then ``.cursor``."""
    while folder.startswith(root.rstrip("/") + "/"):
        try:
            os.rmdir(folder)
        except OSError:  # something else is in there
            return
        folder = os.path.dirname(folder)


def _unusable(path: str, error: OSError) -> Unusable:
    return Unusable(
        f"{path}: {error.strerror}", hint="Nothing was changed. Check the disk and the permissions.", file=path
    )
