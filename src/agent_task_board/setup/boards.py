"""The board that a client is configured for, and which boards it must never be."""

from __future__ import annotations

import os

from .. import config, places
from ..errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  # compared with, never written to


class Board:
    """The board that a client is configured for.

    ``options`` are those with which `atb` finds it: none for a board that it finds by itself in the project.
    """

    __slots__ = ("config", "data_dir", "options", "warnings")

    def __init__(self, found: config.Config, data_dir: str, options: list[str], warnings: list[str]) -> None:
        self.config = found
        self.data_dir = data_dir
        self.options = options
        self.warnings = warnings


def choose(
    *, data_dir: str | None, file: str | None, project: str | None, home: str, environ: Mapping[str, str]
) -> Board:
    """Return the board of a project (``None``: that of all projects of a user).

    Options name it, relative to the working directory. The environment of this shell does not: a client that is
    started elsewhere does not have it.

    Raises:
        InvalidInput: as ``config.load``; or no board is named for a user.
    """
    return _of_user(data_dir, file, home, environ) if project is None else _of(project, data_dir, file, environ)


def _of(project: str, data_dir: str | None, file: str | None, environ: Mapping[str, str]) -> Board:
    clean = {name: value for name, value in environ.items() if name not in ("ATB_DATA_DIR", "ATB_CONFIG")}
    own = config.load(data_dir=None, config=None, environ=clean, cwd=project)
    own_dir = _own_dir(own, project)
    if data_dir is None and file is None:
        warnings = [*own.warnings]
        here = config.load(data_dir=None, config=None, environ=environ)
        if here.place is None and not _same(here.data_dir, own_dir):
            origin = here.values["data_dir"][1]
            warnings.append(
                f"{origin} names another board, {here.data_dir}; the files name the project's, {own_dir}. To configure "
                f"the other one, pass it with --data-dir"
            )
        if own.place is not None and own.data_dir != own.place.data_dir and _same(own.data_dir, own_dir):
            warnings.append(f"not the project's own board: {own.values['data_dir'][1]} names {own_dir}")
        return Board(own, own_dir, [], warnings)
    named = config.load(data_dir=_absolute(data_dir), config=_absolute(file), environ=clean, cwd=project)
    chosen = named.data_dir if named.place is None else _own_dir(named, project)
    options = [] if data_dir is None or _same(chosen, own_dir) else ["--data-dir", chosen]
    options += [] if file is None else ["--config", str(_absolute(file))]
    warnings = [*named.warnings]
    if not _same(chosen, own_dir):
        warnings.append(f"not the project's own board: {chosen} (its own: {own_dir})")
    return Board(named, chosen, options, warnings)


def _of_user(data_dir: str | None, file: str | None, home: str, environ: Mapping[str, str]) -> Board:
    found = config.load(data_dir=_absolute(data_dir), config=_absolute(file), environ=environ, cwd=home)
    origin = found.values["data_dir"][1]
    warnings = [*found.warnings]
    if found.place is not None and found.data_dir == found.place.data_dir:
        raise InvalidInput(
            "user: no board named",
            hint="Pass --data-dir DIR: the board that all projects share. Or set up each project without --user.",
            field="user",
        )
    if data_dir is None:
        warnings.append(f"all projects will share the board in {found.data_dir} ({origin})")
    options = ["--data-dir", found.data_dir, *([] if file is None else ["--config", str(_absolute(file))])]
    return Board(found, found.data_dir, options, warnings)


def _own_dir(found: config.Config, project: str) -> str:
    """Return the data directory of a project's board; a new one is where `atb init` creates it."""
    place = found.place
    if place is None or place.exists or not place.is_default or places.has_board(found.data_dir):
        return found.data_dir
    return places.hidden_in(project if place.project is None else place.project.root)[0]


def refuse_wrong(board: Board, *, project: str | None, home: str) -> None:
    """Refuse a board that a client must not be configured for.

    Raises:
        InvalidInput: it is in a temporary directory, and the project is not; or it is the board of another project.
    """
    import tempfile

    if project is None and not os.path.isabs(home):  # refused where the files of a user are looked for
        return
    data_dir, where = os.path.realpath(board.data_dir), os.path.realpath(home if project is None else project)
    for temporary in map(os.path.realpath, (tempfile.gettempdir(), *_TEMPORARY)):
        if _is_in(data_dir, temporary) and not _is_in(where, temporary):
            raise InvalidInput(
                f"data_dir: in a temporary directory: {board.data_dir}",
                hint="Nothing was changed. Name a directory that stays, or none: then the project has its own board.",
                field="data_dir",
            )
    theirs = places.project_of(_existing(data_dir))
    ours = None if project is None else places.project_of(where)
    if theirs is not None and theirs.root != os.path.realpath(home) and (ours is None or theirs.root != ours.root):
        raise InvalidInput(
            f"data_dir: the board of another project: {board.data_dir}",
            hint="Nothing was changed. A board that projects share must be outside of their repositories.",
            field="data_dir",
        )


def _existing(path: str) -> str:
    """Return the nearest directory above a path, or itself, that exists."""
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _absolute(path: str | None) -> str | None:
    return None if path is None else config.absolute(path, config.working_directory())


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _is_in(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)
