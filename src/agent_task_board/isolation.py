"""Import nothing that lies beside the work: a project's own ``json.py`` or ``mcp/`` must not replace a module of ours.

``PYTHONPATH=.`` and ``python -m`` put the project first. ``python -I`` prevents that; where a client or a shell starts
`atb` without it, the program takes these directories out of its own search path before it imports anything.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The directory from which this package is imported; it stays in the search path."""

OTHERS = ("croniter", "mcp", "mcp_types", "tomli_w", "tzdata", "ulid")
"""The top-level modules that this package takes from others."""


def leave_project(environ: Mapping[str, str] = os.environ) -> None:
    """Take the working directory, and what ``PYTHONPATH`` names around or below it, out of the search path.

    Modules that were already imported from there are forgotten, so that the next import finds the real ones.
    """
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:
        return
    named = {_real(entry) for entry in environ.get("PYTHONPATH", "").split(os.pathsep)}
    gone = {here, *(entry for entry in named if _is_in(entry, here) or _is_in(here, entry))} - {os.path.realpath(HOME)}
    if not any(_real(entry) in gone for entry in sys.path):
        return
    sys.path[:] = [entry for entry in sys.path if _real(entry) not in gone]
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and name != "__main__" and name.partition(".")[0] != __package__ and _origin(name, file) in gone:
            del sys.modules[name]


def safe_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of a child that runs this package: ``PYTHONPATH`` without the project."""
    left = {name: value for name, value in environ.items() if name != "PYTHONPATH"}
    kept = [entry for entry in environ.get("PYTHONPATH", "").split(os.pathsep) if entry and _real(entry) in _search()]
    return {**left, "PYTHONPATH": os.pathsep.join(kept)} if kept else left


def shadowed() -> tuple[str, str] | None:
    """Return a module of Python or of our dependencies that was taken from elsewhere, and its file; else ``None``."""
    named = {_real(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    try:  # noqa: SIM105  # importing contextlib could itself be what fails
        named.add(os.path.realpath(os.getcwd()))
    except OSError:
        pass
    for name in sorted({*sys.stdlib_module_names, *OTHERS} & sys.modules.keys()):
        file = getattr(sys.modules[name], "__file__", None)
        if file and _origin(name, file) in named - {os.path.realpath(HOME)}:
            return name, os.path.abspath(file)
    return None


def _search() -> set[str]:
    return {_real(entry) for entry in sys.path}


def _origin(name: str, file: str) -> str:
    """Return the directory of the search path from which a module was imported."""
    directory = os.path.dirname(os.path.realpath(file))
    ups = name.count(".") + (os.path.basename(file).startswith("__init__."))
    for _ in range(ups):
        directory = os.path.dirname(directory)
    return directory


def _real(entry: str) -> str:
    return os.path.realpath(entry or ".")


def _is_in(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)
