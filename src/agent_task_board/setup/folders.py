"""The directories that `atb setup` created: ``--remove`` deletes these when they are empty, and no others.

They are listed in the user's state directory. A directory that is not listed, because the list could not be written or
the files came from another machine, stays.
"""

from __future__ import annotations

import contextlib
import json
import os

from .. import state
from ..errors import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..folder import Folder

_FILE = "setup.json"
"""``{"directories": [PATH, …]}``; the paths have no symbolic links."""


def remember(created: Iterable[str], environ: Mapping[str, str] = os.environ) -> None:
    """Add directories to the list."""
    found = [os.path.realpath(path) for path in created]
    if found:
        with contextlib.suppress(Unusable), state.opened(environ) as folder:
            _write(folder, [*_listed(environ), *found])


def drop_empty(start: str, root: str, environ: Mapping[str, str] = os.environ) -> None:
    """Delete ``start`` and the directories above it, below ``root``, as long as they are empty and listed."""
    dropped = []
    listed = set(_listed(environ))
    while start.startswith(root.rstrip("/") + "/"):
        real = os.path.realpath(start)
        if real not in listed:
            break
        try:
            os.rmdir(start)
        except OSError:  # not empty
            break
        dropped.append(real)
        start = os.path.dirname(start)
    if dropped:
        with contextlib.suppress(Unusable), state.opened(environ) as folder:
            _write(folder, [path for path in _listed(environ) if path not in dropped])


def _listed(environ: Mapping[str, str]) -> list[str]:
    """Return the list; what is not readable counts as empty."""
    try:
        found = json.loads(state.read(_FILE, environ) or b"{}")["directories"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    return [path for path in found if isinstance(path, str)] if isinstance(found, list) else []


def _write(folder: Folder, paths: Iterable[str]) -> None:
    folder.replace(_FILE, json.dumps({"directories": list(dict.fromkeys(paths))}).encode())
