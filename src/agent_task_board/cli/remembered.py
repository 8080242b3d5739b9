"""Remembered leases: ``claim --save`` keeps the token, so that the verbs of a lease need none on the command line.

Other users can read the arguments of every process. A token is kept in the user's state directory instead, one file for
each board, agent, calling session and task, mode 0600, with the fence of that claim. It is presented only where it
cannot be another worker's:

- A session is what ``ATB_SESSION`` or a coding agent names; else the POSIX session of the process, its leader told by
  the instant at which it started. Other sessions of the same agent never see the file.
- Without such a name, a shell that claimed and still runs is the only one that uses its token, with what it starts.
- A token belongs to one fence. The board refuses it as soon as the task has another one; it is then forgotten.
- If a session claims a task again although its earlier lease there was never ended, two workers may share its name.
  Nothing tells them apart, so neither token is kept: a late worker must not present its successor's.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from .. import inputs, instants, state
from ..errors import InvalidInput, Unusable
from ..storage.fingerprint import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..folder import Folder
    from ..model import Grant, Lease

    Process = list[int]
    """Process id, and the instant of its start in clock ticks since boot."""

FOLDER = "leases"
"""The subdirectory of the state directory."""
VARIABLES = ("ATB_SESSION", "CODEX_THREAD_ID", "AMP_CURRENT_THREAD_ID")
"""Variables that name a session, the first that is set."""
ENDED = "0" * 32
"""Presented in place of a token that was removed at the end of its lease: the board says what became of the task."""
KEPT = 7 * instants.DAY
"""How long a lease that nobody ended is remembered after its end, without its token."""

_ANCESTORS = 64
_SHORTEST = 4
"""The fewest characters that name a task."""


class Remembered:
    """A lease that this session keeps: ``token`` and ``fence`` of ``task``.

    ``token`` is ``None`` once the lease has ended, and if the lease ``is_shared``: two workers may have its name.
    """

    __slots__ = ("_name", "expires_at", "fence", "is_shared", "shell", "task", "token")

    def __init__(self, name: str, kept: dict[str, Any]) -> None:
        self._name = name
        self.task: str = kept["task"]
        self.token: str | None = kept["token"]
        self.fence: int = kept["fence"]
        self.expires_at: str = kept["expires_at"]
        self.shell: Process | None = kept["shell"]
        self.is_shared: bool = kept["is_shared"]

    def forget(self) -> None:
        """Remove the token: the lease has ended."""
        with suppress(Unusable, OSError), state.opened(below=FOLDER) as folder:
            folder.unlink(self._name)

    def renew(self, lease: Lease) -> None:
        """Keep the token until the new end of the lease."""
        self.expires_at = lease.expires_at
        with suppress(Unusable, OSError), state.opened(below=FOLDER) as folder:
            if folder.find(self._name) is not None:
                _write(folder, self)

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._name

    def to_json(self) -> bytes:
        """Return the content of the file."""
        kept = {name: getattr(self, name) for name in ("task", "token", "fence", "expires_at", "shell", "is_shared")}
        return json.dumps(kept).encode()


def require_session(environ: Mapping[str, str] = os.environ) -> str:
    """Return what identifies the calling session.

    Raises:
        InvalidInput: the system does not tell, and no variable names it.
    """
    session = _session(environ)
    if session is None:
        raise InvalidInput(
            "save: this system does not tell sessions apart",
            hint="Set ATB_SESSION to a name of this session, the same in all of its calls.",
            field="save",
        )
    return session


def keep(board: str, agent: str, grant: Grant, *, resumed: bool, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Keep the token of a claim or, with ``resumed``, of a new lease on the same attempt; return warnings.

    The claim is not refused if that fails: its answer has the token.
    """
    prefix = _prefix(board, agent, require_session(environ))
    task, lease = grant.task.id, grant.lease
    kept = {
        "task": task,
        "token": lease.token,
        "fence": lease.fence,
        "expires_at": lease.expires_at,
        "shell": None if _named(environ) else _process(os.getppid()),
        "is_shared": False,
    }
    fresh = Remembered(f"{prefix}-{task}", kept)
    warnings = []
    try:
        with state.opened(environ, below=FOLDER) as folder:
            now = instants.now()
            for name in folder.names():
                _sweep(folder, name, now)
            earlier = _read(folder, fresh.name)
            if earlier is not None and earlier.fence != fresh.fence and not resumed:
                fresh.token, fresh.is_shared = None, True
                warnings.append(
                    "the token is not remembered: an earlier lease of this session on the same task was never ended, "
                    "and its worker could present this token; pass it with --token-file or ATB_TOKEN"
                )
            _write(folder, fresh)
    except (Unusable, OSError) as error:
        warnings.append(f"the token is not remembered: {error}; pass it with --token-file or ATB_TOKEN")
    return warnings


def find(board: str, agent: str, reference: str, environ: Mapping[str, str] = os.environ) -> Remembered:
    """Return the lease that this session keeps for a task, which is named as in every command.

    Raises:
        InvalidInput: there is none, or another worker may hold it.
    """
    session = _session(environ)
    wanted = inputs.reference(reference, "id")
    found = (
        [] if session is None or len(wanted) < _SHORTEST else _of_task(_prefix(board, agent, session), wanted, environ)
    )
    if len(found) != 1:
        raise _missing(
            "this session remembers no lease of the task" if not found else "several remembered leases match"
        )
    (lease,) = found
    if lease.is_shared:
        raise _missing("the lease of this session on the task is not remembered, since an earlier one was never ended")
    if lease.shell is not None and not _named(environ) and _runs_elsewhere(lease.shell):
        raise _missing("another shell of this session claimed the task and still runs")
    return lease


def _missing(why: str) -> InvalidInput:
    return InvalidInput(
        f"token: missing: {why}",
        hint="Set ATB_TOKEN, or pass --token-file FILE or --token TOKEN. `atb resume ID --save` issues a new token to "
        "the holder; ATB_SESSION, the same in all calls, names a session that starts a new shell for each.",
        field="token",
    )


def _of_task(prefix: str, wanted: str, environ: Mapping[str, str]) -> list[Remembered]:
    """Return the leases of a session whose task has this id, or one that ends like this, else begins like this."""
    if not os.path.isdir(os.path.join(state.directory(environ), FOLDER)):
        return []  # a call that only looks creates nothing
    try:
        with state.opened(environ, below=FOLDER) as folder:
            names = [name for name in folder.names() if name.startswith(f"{prefix}-")]
            ids = [name[len(prefix) + 1 :] for name in names]
            chosen = [id_ for id_ in ids if id_.endswith(wanted)] or [id_ for id_ in ids if id_.startswith(wanted)]
            read = [_read(folder, f"{prefix}-{id_}") for id_ in chosen]
            return [lease for lease in read if lease is not None]
    except (Unusable, OSError):
        return []


def _prefix(board: str, agent: str, session: str) -> str:
    """Return the beginning of the names of the files of a session: it tells nothing of what it stands for."""
    return digest(json.dumps([os.path.realpath(board), inputs.name_key(agent), session]))[:32]


def _write(folder: Folder, lease: Remembered) -> None:
    folder.replace(lease.name, lease.to_json())


def _read(folder: Folder, name: str) -> Remembered | None:
    """Return a lease; ``None`` if there is none, or the file is not one of ours."""
    try:
        kept = json.loads(folder.read(name, 10_000))
        lease = Remembered(name, kept)
        instants.from_text(lease.expires_at)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return lease


def _sweep(folder: Folder, name: str, now: int) -> None:
    """Remove the token of a lease that has ended, and after a while all that is left of it."""
    lease = _read(folder, name)
    ended = None if lease is None else instants.from_text(lease.expires_at)
    with suppress(OSError):
        if lease is None or ended is None or now - ended > KEPT:
            folder.unlink(name)
        elif ended <= now and lease.token is not None:
            lease.token = None
            _write(folder, lease)


# Sessions


def _named(environ: Mapping[str, str]) -> str | None:
    return next((f"{name}={environ[name]}" for name in VARIABLES if environ.get(name)), None)


def _session(environ: Mapping[str, str]) -> str | None:
    """Return what identifies the calling session; ``None`` if the system does not tell."""
    named = _named(environ)
    if named is not None:
        return named
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        leader = os.getsid(0)
        # The number of a session is not used again while a process is left in it, also after its leader has ended.
        return json.dumps([boot, os.readlink("/proc/self/ns/pid"), leader, (_process(leader) or [0, 0])[1]])
    except (OSError, AttributeError):
        return None


def _process(number: int) -> Process | None:
    """Return a process with the instant of its start; ``None`` if it does not run."""
    fields = _stat(number)
    return None if fields is None else [number, int(fields[19])]


def _stat(number: int) -> list[bytes] | None:
    """Return the fields of ``/proc/NUMBER/stat`` behind the name of the process: state, parent, and so on."""
    try:
        with open(f"/proc/{number}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else fields


def _runs_elsewhere(shell: Process) -> bool:
    """Say whether a process still runs, and is neither this one nor one that this one descends from."""
    if _process(shell[0]) != shell:
        return False
    number = os.getpid()
    for _ in range(_ANCESTORS):
        if number == shell[0]:
            return False
        fields = _stat(number)
        if fields is None or number <= 1:
            break
        number = int(fields[1])
    return True
