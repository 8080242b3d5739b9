"""What this user decided to trust: directories of other owners, and configuration files that were found, word for word.

The decisions are in ``trust.json`` of the user's state directory. Only ``atb trust`` and the commands that write a
configuration file record any; every other command only reads them, and only if something needs one.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager

from . import instants, ownership, state
from .errors import InvalidInput, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

FILE = "trust.json"


class Trust:
    """The decisions of this user, read when they are first asked for."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._found: dict[str, dict[str, Any]] | None = None

    def admits(self, path: str, found: os.stat_result, others: int) -> bool:
        """Say whether this user trusts a path that others control (``ownership.Admits``).

        A trusted directory admits everything in it that its owner at that time owns and that nobody may write who
        could not write the directory then.
        """
        real = os.path.realpath(path)
        for directory, decision in self._decisions("directories").items():
            if (real + os.sep).startswith(directory.rstrip(os.sep) + os.sep) and found.st_uid in (
                decision["owner"],
                os.getuid(),
                0,
            ):
                return not others & ~int(decision["others"])
        return False

    def knows(self, path: str, content: bytes) -> bool:
        """Say whether this user trusts a file with exactly this content."""
        decision = self._decisions("files").get(_name_of(path))
        return decision is not None and decision["sha256"] == digest(content)

    def knew(self, path: str) -> bool:
        """Say whether this user trusted a file, whatever its content was."""
        return _name_of(path) in self._decisions("files")

    def listed(self) -> dict[str, list[dict[str, Any]]]:
        """Return ``{"directories": [{"path", "owner", "at"}], "files": [{"path", "sha256", "at"}]}``, by path."""
        return {
            kind: [
                {"path": path, **{key: decision[key] for key in (*keys, "at")}}
                for path, decision in sorted(self._decisions(kind).items())
            ]
            for kind, keys in (("directories", ("owner",)), ("files", ("sha256",)))
        }

    def _decisions(self, kind: str) -> dict[str, Any]:
        if self._found is None:
            self._found = _parsed(state.read(FILE, self._environ))
        return self._found[kind]


def directory(path: str) -> dict[str, Any]:
    """Return what trusting a directory would mean: ``{"path", "owner", "others"}``, as it is now.

    ``owner`` is a user id, ``others`` the write permissions of the group and of all others (``0o022``).

    Raises:
        InvalidInput: it does not exist, or every user may put files of their own into it.
    """
    real = os.path.realpath(path)
    try:
        found = os.stat(real)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"directory: {path}: {reason}", field="directory") from None
    if not stat.S_ISDIR(found.st_mode):
        raise InvalidInput(f"directory: not a directory: {real}", field="directory")
    if real == os.path.dirname(real) or found.st_mode & (stat.S_ISVTX | 0o002) == stat.S_ISVTX | 0o002:
        raise InvalidInput(
            f"directory: every user has files in {real}",
            hint="Nothing was recorded. Name the one directory in it that you trust.",
            field="directory",
        )
    return {"path": real, "owner": found.st_uid, "others": found.st_mode & ownership.WRITE}


def trust_directory(found: dict[str, Any], environ: Mapping[str, str] = os.environ) -> None:
    """Trust a directory for as long as it is as ``directory`` found it.

    Raises:
        Unusable: the decision cannot be stored.
    """
    _record("directories", found["path"], {"owner": found["owner"], "others": found["others"]}, environ)


def trust_file(path: str, content: bytes, environ: Mapping[str, str] = os.environ) -> None:
    """Trust a configuration file for as long as it has exactly this content.

    Raises:
        Unusable: the decision cannot be stored.
    """
    _record("files", _name_of(path), {"sha256": digest(content)}, environ)


def forget(path: str, environ: Mapping[str, str] = os.environ) -> str:
    """Take back the decision about a file or directory; return its path as it was recorded.

    Raises:
        NotFound: there is none.
        Unusable: the change cannot be stored.
    """
    with _changing(environ) as found:
        for name in (_name_of(path), os.path.realpath(path)):
            for decisions in found.values():
                if decisions.pop(name, None) is not None:
                    return name
        raise NotFound(f"not trusted: {path}", hint="`atb trust --list` shows what is.", path=path)


def _record(kind: str, path: str, decision: dict[str, Any], environ: Mapping[str, str]) -> None:
    with _changing(environ) as found:
        found[kind][path] = {**decision, "at": instants.to_text(instants.now())}


@contextmanager
def _changing(environ: Mapping[str, str]) -> Iterator[dict[str, dict[str, Any]]]:
    """Yield the decisions, and store them at the end of a block that raises nothing."""
    import json

    with state.opened(environ) as folder:
        found = _parsed(state.read(FILE, environ))
        yield found
        folder.replace(FILE, json.dumps(found, indent=1).encode() + b"\n")


def _parsed(content: bytes | None) -> dict[str, dict[str, Any]]:
    """Return the decisions of the file; none if it is damaged, so that they are asked for again."""
    import json

    try:
        found = {} if content is None else json.loads(content)
        return {kind: dict(_valid(found.get(kind, {}), keys)) for kind, keys in _KEYS.items()}
    except (ValueError, AttributeError, TypeError, RecursionError):
        return {kind: {} for kind in _KEYS}


_KEYS: dict[str, dict[str, type]] = {
    "directories": {"owner": int, "others": int, "at": str},
    "files": {"sha256": str, "at": str},
}
"""What a decision about each kind of thing holds."""


def _valid(found: dict[str, Any], keys: dict[str, type]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, decision in found.items():
        if all(type(decision.get(key)) is kind for key, kind in keys.items()):
            yield path, decision


def _name_of(path: str) -> str:
    """Return the path under which a decision about a file is kept: a link there is another file than its target."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def digest(content: bytes) -> str:
    """Return the SHA-256 of a file's content, in hex."""
    from hashlib import sha256

    return sha256(content).hexdigest()
