"""Change several files of other programs: check all before the first is written, and replace each as a whole."""

from __future__ import annotations

import contextlib
import os
import stat

from ..errors import InvalidInput, Unusable
from ..folder import LeadsOut
from ..reach import reach
from . import folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Protocol

    class Piece(Protocol):
        """Our part of one file; ``None`` stands for a missing file."""

        path: str
        root: str
        within: str | None
        """The directory that no symbolic link may lead out of; ``None``: a user's own links may lead anywhere."""
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

    __slots__ = ("action", "after", "before", "content", "notes", "path", "root", "within")

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
        self.within = piece.within
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
    before = read(piece, may_create=not remove)
    try:
        if not remove:
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


def _action(before: str | None, after: str | None) -> str:
    if before == after:
        return UNCHANGED
    if after is None:
        return DELETE
    return CREATE if before is None else UPDATE


def read(piece: Piece, *, may_create: bool = False) -> str | None:
    """Return the text of a file with its line endings; ``None`` if it is missing.

    Raises:
        InvalidInput: the file is not a regular file, or not UTF-8; or a symbolic link leads out of the project or, with
            ``may_create``, to nothing: the target is not ours to create.
        Unusable: the file cannot be read.
    """
    path = piece.path
    try:
        with reach(path, piece.within) as spot:
            found = spot.find()
            if found is None:
                if spot.is_linked and may_create:
                    raise _loose(path)
                return None
            if not stat.S_ISREG(found.st_mode):  # before open(), which would wait for a writer of a pipe
                raise InvalidInput(f"{path}: not a regular file", hint="Nothing was changed.", file=path)
            return spot.folder.read(spot.name).decode("utf-8")
    except FileNotFoundError:
        if may_create and _is_loose(path):
            raise _loose(path) from None
        return None
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path}: not UTF-8 (byte {error.start:,})", hint="Nothing was changed.", file=path
        ) from None
    except OSError as error:
        raise _refusal(path, error) from error


def _is_loose(path: str) -> bool:
    """Say whether a path has a symbolic link without a target."""
    while path != os.path.dirname(path):
        if os.path.islink(path) and not os.path.exists(path):
            return True
        path = os.path.dirname(path)
    return False


def _loose(path: str) -> InvalidInput:
    hint = "Nothing was changed. Create its target, or remove the link."
    return InvalidInput(f"{path}: leads through a symbolic link without a target", hint=hint, file=path)


class _Staged:
    """One change on its way: where it goes, what its file's permissions were, and the new content beside it."""

    def __init__(self, change: Change, created: list[str]) -> None:
        self.change = change
        self.temporary = ""
        self.spot = reach(change.path, change.within, create=change.after is not None, mode=0o777, created=created)
        try:
            found = self.spot.find()
            self.mode = None if found is None else stat.S_IMODE(found.st_mode)
            if change.after is not None:
                self.temporary = self._write(change.after)
        except BaseException:
            self.spot.close()
            raise

    def put(self) -> None:
        if self.temporary:
            self.spot.folder.rename(self.temporary, self.spot.name)
            self.temporary = ""
        else:
            self.spot.folder.unlink(self.spot.name)

    def put_back(self) -> None:
        if self.change.before is None:
            self.spot.folder.unlink(self.spot.name)
        else:
            self.spot.folder.rename(self._write(self.change.before), self.spot.name)

    def close(self) -> None:
        if self.temporary:
            with contextlib.suppress(OSError):
                self.spot.folder.unlink(self.temporary)
        self.spot.close()

    def _write(self, text: str) -> str:
        return self.spot.folder.write(self.spot.name, text.encode("utf-8"), mode=self.mode)


def write(changes: Iterable[Change]) -> None:
    """Write all changes. If one file cannot be written, the others are restored.

    Raises:
        InvalidInput: a symbolic link leads out of the project by now.
        Unusable: a file cannot be written.
    """
    wanted = [change for change in changes if change.after != change.before]
    staged: list[_Staged] = []
    created: list[str] = []
    done: list[_Staged] = []
    path = ""
    try:
        for change in wanted:  # if the disk is full, this fails before anything is replaced
            path = change.path
            staged.append(_Staged(change, created))
        for one in staged:
            path = one.change.path
            one.put()
            done.append(one)
    except OSError as error:
        for one in done:
            with contextlib.suppress(OSError):
                one.put_back()
        for one in staged:
            one.close()
        _drop(created)
        raise _refusal(path, error) from error
    for one in staged:
        one.close()
    folders.remember(created)
    for change in wanted:
        if change.after is None:
            folders.drop_empty(os.path.dirname(change.path), change.root)


def restore(changes: Iterable[Change]) -> None:
    """Put back what ``write`` changed, as far as that is possible."""
    for change in changes:
        if change.after != change.before:
            with contextlib.suppress(OSError), reach(change.path, change.within) as spot:
                if change.before is None:
                    spot.folder.unlink(spot.name)
                else:
                    found = spot.find()
                    mode = None if found is None else stat.S_IMODE(found.st_mode)
                    spot.folder.replace(spot.name, change.before.encode("utf-8"), mode=mode)
            if change.before is None:
                folders.drop_empty(os.path.dirname(change.path), change.root)


def _drop(folders: Sequence[str]) -> None:
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _refusal(path: str, error: OSError) -> InvalidInput | Unusable:
    if isinstance(error, LeadsOut):
        return InvalidInput(
            f"{path}: {error.filename} is {error.strerror}",
            hint="Nothing was changed. A checkout may hold such a link: remove it, or edit its target by hand.",
            file=path,
            link=error.filename,
        )
    return Unusable(
        f"{path}: {error.strerror}", hint="Nothing was changed. Check the disk and the permissions.", file=path
    )
