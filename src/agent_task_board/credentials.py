"""Keys of agents, sign-in codes and browser sessions of one board.

They lie in the user's state directory, never in the board's file: a copy of the board opens nothing. Only the SHA-256
of each secret is stored, and secrets are compared in constant time.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import contextmanager
from hmac import compare_digest

from . import inputs, instants, state
from .errors import Conflict, InvalidInput, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    Entry = dict[str, Any]

KEY_PREFIX = "atb_"
"""How each key begins, so that programs that look for secrets recognize it."""
CODE_LIFE = 10 * instants.MINUTE
SESSION_LIFE = 90 * instants.DAY
"""How long a code and a session are valid."""
KEYS = 1_000
CODES = 20
SESSIONS = 200
"""The most keys, codes and sessions of a board; the oldest codes and sessions make room for new ones."""

_FOLDER = "access"
_KEY_BYTES = _SESSION_BYTES = 32
_CODE_BYTES = 16
_ID_BYTES = 4
_KINDS = ("keys", "codes", "sessions")


class Credentials:
    """What opens one board.

    Args:
        board_id: the id of the board, 16 hexadecimal digits.
        clock: milliseconds since 1970.
        random: bytes for secrets.
        environ: the environment, which names the state directory.
    """

    def __init__(
        self,
        board_id: str,
        *,
        clock: Callable[[], int] = instants.now,
        random: Callable[[int], bytes] = os.urandom,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.board_id = board_id
        self._clock = clock
        self._random = random
        self._environ = environ
        self._read: tuple[bytes | None, dict[str, list[Entry]]] = (None, _empty())

    # Keys

    def add_key(self, name: str) -> tuple[Entry, str]:
        """Make a key for an agent; return its entry ``{"id", "name", "created_at"}`` and the key, which is not kept.

        Raises:
            InvalidInput: the name is not one of an agent.
            Conflict: there are too many keys.
            Unusable: the state directory cannot be written.
        """
        name = inputs.agent_name(name, "name")
        key = KEY_PREFIX + self._random(_KEY_BYTES).hex()
        with self._change() as stored:
            if len(stored["keys"]) >= KEYS:
                raise Conflict(f"too many keys (limit {KEYS:,})", hint="Revoke keys that nobody uses.")
            entry = {"id": self._random(_ID_BYTES).hex(), "name": name, "created_at": self._now(), "sha256": _hash(key)}
            stored["keys"].append(entry)
        return _shown(entry), key

    def keys(self) -> list[Entry]:
        """Return the entries of all keys, the oldest first."""
        return [_shown(entry) for entry in self._load()["keys"]]

    def revoke_keys(self, named: str) -> list[Entry]:
        """Revoke the key with an id, or all keys of an agent; return their entries.

        Raises:
            NotFound: there is no such key.
            Unusable: the state directory cannot be written.
        """
        with self._change() as stored:
            gone = [entry for entry in stored["keys"] if named == entry["id"]]
            gone = gone or [entry for entry in stored["keys"] if _is_name(named, entry["name"])]
            if not gone:
                raise NotFound(f"no such key: {named[:100]!r}", hint="`atb key list` shows the names and ids.")
            stored["keys"] = [entry for entry in stored["keys"] if entry not in gone]
        return [_shown(entry) for entry in gone]

    def key_of(self, secret: str) -> Entry | None:
        """Return the entry of a key; ``None`` if it is none, or was revoked."""
        return self._find("keys", secret)

    # Codes and sessions

    def new_code(self) -> str:
        """Make a code that signs one browser in, once, within ``CODE_LIFE``.

        Raises:
            Unusable: the state directory cannot be written.
        """
        code = self._random(_CODE_BYTES).hex()
        with self._change() as stored:
            stored["codes"].append({"sha256": _hash(code), "expires_at": self._clock() + CODE_LIFE})
            del stored["codes"][:-CODES]
        return code

    def redeem(self, code: str, *, instead_of: str | None = None) -> str | None:
        """Use up a code and return a new session; ``None`` if the code is wrong, expired or used.

        The session ``instead_of`` of the same browser ends.

        Raises:
            Unusable: the state directory cannot be written.
        """
        if self._find("codes", code) is None:
            return None  # without a lock, so that guesses delay nobody
        session = self._random(_SESSION_BYTES).hex()
        with self._change() as stored:
            found = _among(stored["codes"], code)
            if found is None:  # another browser was quicker
                return None
            stored["codes"].remove(found)
            if instead_of is not None and (old := _among(stored["sessions"], instead_of)) is not None:
                stored["sessions"].remove(old)
            stored["sessions"].append(
                {"sha256": _hash(session), "created_at": self._now(), "expires_at": self._clock() + SESSION_LIFE}
            )
            del stored["sessions"][:-SESSIONS]
        return session

    def is_session(self, secret: str) -> bool:
        """Say whether a secret is that of a session that has not ended."""
        return self._find("sessions", secret) is not None

    def sessions(self) -> list[Entry]:
        """Return ``{"created_at", "expires_at"}`` of each session, the oldest first."""
        return [
            {"created_at": entry["created_at"], "expires_at": instants.to_text(entry["expires_at"])}
            for entry in self._load()["sessions"]
        ]

    def end_session(self, secret: str) -> None:
        """End a session, if there is one with this secret.

        Raises:
            Unusable: the state directory cannot be written.
        """
        with self._change() as stored:
            found = _among(stored["sessions"], secret)
            if found is not None:
                stored["sessions"].remove(found)

    def end_sessions(self) -> int:
        """End all sessions and void all codes; return the number of sessions.

        Raises:
            Unusable: the state directory cannot be written.
        """
        with self._change() as stored:
            count = len(stored["sessions"])
            stored["sessions"], stored["codes"] = [], []
        return count

    # The file

    def _find(self, kind: str, secret: str) -> Entry | None:
        return _among(self._load()[kind], secret)

    def _load(self) -> dict[str, list[Entry]]:
        """Return what is stored and has not expired; what a revocation removed counts no more from the next call on."""
        content = state.read(self._name, self._environ, below=_FOLDER)
        if content != self._read[0]:
            self._read = (content, _parse(content))
        return self._without_expired(self._read[1])

    @contextmanager
    def _change(self) -> Iterator[dict[str, list[Entry]]]:
        with state.opened(self._environ, below=_FOLDER) as folder:
            try:
                content = folder.read(self._name)
            except FileNotFoundError:
                content = None
            stored = self._without_expired(_parse(content))
            yield stored
            folder.replace(self._name, json.dumps(stored, indent=1).encode() + b"\n")

    def _without_expired(self, stored: dict[str, list[Entry]]) -> dict[str, list[Entry]]:
        now = self._clock()
        return {
            kind: [one for one in entries if one.get("expires_at", now + 1) > now] for kind, entries in stored.items()
        }

    @property
    def _name(self) -> str:
        return f"{self.board_id}.json"

    def _now(self) -> str:
        return instants.to_text(self._clock())


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _among(entries: list[Entry], secret: str) -> Entry | None:
    """Return the entry of a secret; the time that it takes tells nothing of how much of a secret was right."""
    given, found = _hash(secret), None
    for entry in entries:
        if compare_digest(str(entry["sha256"]), given):
            found = entry
    return found


def _is_name(given: str, name: str) -> bool:
    try:
        return inputs.name_key(given) == inputs.name_key(name)
    except InvalidInput:
        return False


def _shown(entry: Entry) -> Entry:
    return {name: value for name, value in entry.items() if name != "sha256"}


def _empty() -> dict[str, list[Entry]]:
    return {kind: [] for kind in _KINDS}


def _parse(content: bytes | None) -> dict[str, list[Entry]]:
    """Return the entries by kind; a file that is damaged opens nothing."""
    try:
        document = json.loads(content or b"{}")
        return {kind: [dict(entry) for entry in document.get(kind, ()) if "sha256" in entry] for kind in _KINDS}
    except (ValueError, TypeError, AttributeError):
        return _empty()
