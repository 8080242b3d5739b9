"""Change several files of other programs: check all before the first is written, and replace each as a whole."""

from __future__ import annotations

import contextlib
import os
import stat

from ..errors import InvalidInput, Unusable
from . import folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Protocol

    class Piece(Protocol):
        """Our part of one file; ``None`` stands for a missing file."""

        path: str
        root: str
        notes: list[str]
        """Warnings about the last ``put`` or ``take``."""

        def own(self) -> str:
            """Return the text of a file that has only our part."""

        def part(self, text: str) -> str:
            """Return what ``take`` removes."""

        def put(self, text: str | None) -> str:
            """Return the file with our part."""

        def take(self, text: str) -> str | None:
            """Return the file without our part."""


CREATE, UPDATE, DELETE, UNCHANGED, KEPT = ("create", "update", "delete", "unchanged", "kept")
"""What happens to a file; ``kept``: it was edited or is not ours, and stays as it is."""


class Unfit(Exception):
    """A file cannot be changed safely; the message completes a sentence that begins with its path.

    ``hint`` says what to do instead of adding our text by hand; ``details`` go into the refusal.
    """

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.hint = hint
        self.details = details


class Kept(Exception):
    """The existing content stays as it is; the message says why."""


class Change:
    """One file before and after.

    ``content`` is our part of it. If it is deleted, so are the directories above it, up to ``root``, that are
    then empty and that we created.
    ``notes`` are warnings.
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
    """Return the change of each file.

    Raises:
        InvalidInput: a file is malformed, or has an entry with our name that we did not write; ``details.add`` is the
            text to add by hand.
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
        hint = f"Nothing was changed. {unfit.hint or _BY_HAND[remove]}"
        raise InvalidInput(f"{path}: {unfit}", hint=hint, file=path, add=piece.own(), **unfit.details) from None
    return Change(piece, before, after, action=_action(before, after), notes=piece.notes, content=content)


_BY_HAND = {False: "Add the text in details.add by hand.", True: "Remove the text in details.add by hand."}


def _refuse_loose_link(path: str) -> None:
    """Refuse a path with a symbolic link without a target: the target is not ours to create."""
    while path != os.path.dirname(path):
        if os.path.islink(path) and not os.path.exists(path):
            raise Unfit(f"cannot be written: {path} is a symbolic link without a target")
        path = os.path.dirname(path)


def _action(before: str | None, after: str | None) -> str:
    if before == after:
        return UNCHANGED
    if after is None:
        return DELETE
    return CREATE if before is None else UPDATE


def read(path: str) -> str | None:
    """Return the text of a file with its line endings; ``None`` if it is missing.

    Raises:
        InvalidInput: the file is not a regular file, or not UTF-8.
        Unusable: the file cannot be read.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # before open(), which would wait for a writer of a pipe
            raise InvalidInput(f"{path}: not a regular file", hint="Nothing was changed.", file=path)
        with open(path, "rb") as file:
            return file.read().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path}: not UTF-8 (byte {error.start:,})", hint="Nothing was changed.", file=path
        ) from None
    except OSError as error:
        raise _unusable(path, error) from error


def write(changes: Iterable[Change]) -> None:
    """Write all changes. If one file cannot be written, the others are restored.

    Raises:
        Unusable: a file cannot be written.
    """
    wanted = [change for change in changes if change.after != change.before]
    staged: list[str] = []
    created: list[str] = []
    done: list[Change] = []
    path = ""
    try:
        for change in wanted:  # if the disk is full, this fails before anything is replaced
            path = change.path
            staged.append("" if change.after is None else _stage(path, change.after, created))
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
        _drop(created)
        raise _unusable(path, error) from error
    folders.remember(created)
    for change in wanted:
        if change.after is None:
            folders.drop_empty(os.path.dirname(change.path), change.root)


def _stage(path: str, text: str, created: list[str]) -> str:
    """Write a temporary file next to ``path``; return its path. New directories are added to ``created``."""
    real = os.path.realpath(path)  # a symbolic link stays one
    folder = os.path.dirname(real)
    missing: list[str] = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for folder in reversed(missing):
        os.mkdir(folder)
        created.append(folder)
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


def restore(changes: Iterable[Change]) -> None:
    """Put back what ``write`` changed, as far as that is possible."""
    for change in changes:
        if change.after != change.before:
            with contextlib.suppress(OSError):
                _restore(change)
            if change.before is None:
                folders.drop_empty(os.path.dirname(change.path), change.root)


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


def _unusable(path: str, error: OSError) -> Unusable:
    return Unusable(
        f"{path}: {error.strerror}", hint="Nothing was changed. Check the disk and the permissions.", file=path
    )
