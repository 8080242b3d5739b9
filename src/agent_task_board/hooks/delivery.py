"""Deliver notifications: after an answer, in a server's thread, and on every tick as the safety net."""

from __future__ import annotations

import contextlib
import os
from _thread import allocate_lock

from .. import inputs, instants
from ..board.rows import to_task
from ..errors import InvalidInput
from ..model import DERIVED, JSON_KEYS, SYSTEM
from . import outbox, strays
from .message import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator
    from typing import Any

    from ..board.core import Core
    from ..settings import Hooks
    from .message import Outcome

PER_TICK = 100
"""The most attempts of one tick."""
SECONDS = 20.0
"""Seconds after which a tick starts no more attempts."""
AT_ONCE = 4
"""The most processes of one board that deliver at the same time, not counting ticks."""
LOCK = "hooks.lock"


def deliver_due(core: Core, warnings: list[str] | None = None) -> int:
    """Deliver up to the limits of one tick, and remove old deliveries; return how many were delivered.

    Any number of processes can do this at once. Deliveries to a target that is not configured any more are given up
    after a day, of which a sentence in ``warnings`` tells.
    """
    outbox.prune(core)
    hooks = core.settings.hooks
    if hooks is None:
        strays.end_all(core)
    given_up = outbox.give_up(core, hooks)
    if given_up and warnings is not None:
        what = "1 hook notification" if given_up == 1 else f"{given_up:,} hook notifications"
        warnings.append(f"{what} given up: no such target has been configured for a day; see `atb hooks list`")
    return 0 if hooks is None else _deliver(core, hooks, limit=PER_TICK, seconds=SECONDS)


def deliver_all(core: Core) -> int:
    """Deliver until nothing is due; return how many were delivered.

    If ``AT_ONCE`` other processes are delivering, they deliver for this one, too.
    """
    delivered, hooks = 0, core.settings.hooks
    while hooks is not None and outbox.is_anything_due(core, hooks):
        with _slot(core) as has_slot:
            if not has_slot:
                break
            delivered += _deliver(core, hooks)
        # Check again: a process that found no free slot relies on this one for what has become due since.
    return delivered


def deliver_soon(core: Core) -> None:
    """Deliver in a thread of this process, one for each board; return at once.

    A server calls it after each answer to a call that can have changed something. The thread runs while deliveries wait
    for another attempt. It ends with the process; the next tick delivers the rest.
    """
    if core.settings.hooks is None:
        return
    from threading import Event, Thread

    key = (os.getpid(), id(core))
    with _starting:
        wake = _threads.get(key)
        if wake is None:
            wake = _threads[key] = Event()
            Thread(target=_work, args=(core, key, wake), name="hooks", daemon=True).start()
        wake.set()


_starting = allocate_lock()
_threads: dict[tuple[int, int], threading.Event] = {}
"""The event that wakes the thread of a board."""


def _work(core: Core, key: tuple[int, int], wake: threading.Event) -> None:
    while True:
        wake.clear()
        wait = None
        with contextlib.suppress(Exception):  # busy, disk full, just closed: the next call delivers
            deliver_all(core)
            wait = outbox.next_due(core)
        core.leave_thread()
        with _starting:
            if wait is None and not wake.is_set():
                del _threads[key]
                return
        wake.wait(wait)


def _deliver(core: Core, hooks: Hooks, *, limit: int | None = None, seconds: float | None = None) -> int:
    """Attempt deliveries until nothing is due or a limit is reached; return how many were delivered."""
    from time import monotonic

    begun, attempts, delivered = monotonic(), 0, 0
    strays.end_all(core)
    while (limit is None or attempts < limit) and (seconds is None or monotonic() - begun < seconds):
        if not outbox.is_anything_due(core, hooks):  # an idle tick must not wait for the write lock
            core.has_pending_hooks = False
            break
        delivery = outbox.reserve(core, hooks)
        if delivery is None:
            continue
        attempts += 1
        outcome = attempt(core, hooks, delivery.target, delivery.message, delivery.id)
        outbox.record_outcome(core, delivery, outcome)
        delivered += outcome.error is None
    return delivered


def attempt(core: Core, hooks: Hooks, target: str, message: Message, delivery: str | None = None) -> Outcome:
    """Send a message to one target once, without recording the outcome; of a delivery, its process is recorded."""
    if target == "webhook":
        from . import webhook

        return webhook.call(hooks.webhook or "", hooks.secret, message, core.clock())
    from . import command

    directory = os.path.dirname(core.path)
    place = directory if os.path.isdir(directory) else os.getcwd()
    if delivery is None:
        return command.run(hooks.command or [], message, place)
    return command.run(hooks.command or [], message, place, lambda pid: strays.remember(core, delivery, pid))


@contextlib.contextmanager
def _slot(core: Core) -> Iterator[bool]:
    """Hold one of the ``AT_ONCE`` delivery slots during the block; yield whether one was free.

    Without a limit, many changes and a hanging hook would leave hundreds of waiting processes.
    """
    try:
        import fcntl

        file = os.open(os.path.join(os.path.dirname(core.path), LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except (ImportError, OSError):
        yield True
        return
    try:
        has_slot = False
        for number in range(AT_ONCE):
            with contextlib.suppress(OSError):
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
                has_slot = True
                break
        yield has_slot
    finally:
        os.close(file)


def send_test(core: Core, task: str | None = None) -> dict[str, Any]:
    """Send a test message to each target now, with a task of the board or a sample; nothing is recorded.

    Returns:
        ``{"delivery", "results": [{"target", "delivered", …}]}``, with what ``Outcome.to_dict`` returns for each.

    Raises:
        InvalidInput: no targets are configured.
        NotFound: no such task.
    """
    hooks = core.settings.hooks
    if hooks is None:
        raise InvalidInput("no targets configured", hint="Enable hooks in the configuration; see docs/hooks.md.")
    now = instants.to_text(core.clock())
    if task is None:
        found: dict[str, Any] = {**dict.fromkeys(JSON_KEYS), **_SAMPLE, "created_at": now, "updated_at": now}
    else:
        with core.read() as tx:
            found = to_task(tx.find(task, "task"), now).to_dict()
    event = {"seq": 0, "task_id": found["id"], "kind": "test", "actor": SYSTEM, "actor_kind": SYSTEM, "at": now}
    message = Message(f"test{core.random(14).hex()}", "test", {**event, "data": {}}, found)
    results = []
    for target in hooks.targets():
        outcome = attempt(core, hooks, target, message)
        results.append({"target": target, "delivered": outcome.error is None, **outcome.to_dict()})
    return {"delivery": message.delivery, "results": results}


_SAMPLE: dict[str, Any] = {
    "id": "0" * inputs.ULID,
    "title": "A test of the hooks",
    "body": "",
    "queue": "default",
    "status": "done",
    "priority": 0,
    "tags": [],
    "blocked_by": [],
    "params": {},
    "artifacts": [],
    "needs_approval": False,
    "attempts": 1,
    "max_attempts": 3,
    "fence": 1,
    "version": 1,
    "created_by": SYSTEM,
    **dict.fromkeys(DERIVED, False),
}
"""The task in a test message that names none."""
