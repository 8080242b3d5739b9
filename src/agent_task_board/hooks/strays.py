"""Commands that outlived their deliverer: if it was killed, the next delivery or tick ends what it had started.

A process is known by its id, its start time and the boot of the machine, so that another process that got the same id
later is never touched. Where the system has no ``/proc``, nothing is recorded and nothing is ended.
"""

from __future__ import annotations

import os
from contextlib import suppress

from ..board.core import system
from ..errors import BoardError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..board.core import Core

_START = 19
"""The place of the start time in ``/proc/PID/stat``, counted after the name of the program."""


def remember(core: Core, delivery: str, pid: int) -> None:
    """Record the process that a delivery has started, in its row."""
    process = _identity(pid)
    if process is not None:
        with suppress(BoardError), core.write(system()) as tx:  # busy: the command runs all the same
            tx.execute("UPDATE outbox SET process = ? WHERE id = ? AND status = 'pending'", (process, delivery))


def end_all(core: Core) -> None:
    """End the process groups that killed deliverers left behind, once their time is over."""
    from .command import GRACE, LIMIT, end_group

    with core.read() as tx:
        rows = tx.execute("SELECT id, process FROM outbox WHERE process IS NOT NULL").fetchall()
    for row in rows:
        pid = _still_running(row["process"], row["id"])
        if pid is not None and _age(pid) <= LIMIT + 2 * GRACE:
            continue  # its deliverer may be alive, and ends it in time
        if pid is not None:
            end_group(pid)
        with core.write(system()) as tx:
            tx.execute("UPDATE outbox SET process = NULL WHERE id = ? AND process = ?", tuple(row))


def _still_running(process: str, delivery: str) -> int | None:
    """Return the id of a recorded process that leads its group and has the delivery in its environment, or ``None``."""
    _, _, rest = process.partition(" ")
    text = rest.partition(" ")[0]
    if not text.isdecimal() or _identity(int(text)) != process:
        return None
    pid = int(text)
    environ = _read(f"/proc/{pid}/environ") or ""
    is_leader = pid > 1 and os.getpgid(pid) == pid != os.getpgrp()
    return pid if is_leader and f"ATB_DELIVERY={delivery}" in environ.split("\0") else None


def _identity(pid: int) -> str | None:
    """Return boot id, process id and start time of a process; ``None`` if it is not there or cannot be told."""
    start = _start(pid)
    boot = _read("/proc/sys/kernel/random/boot_id")
    return None if start is None or boot is None else f"{boot.strip()} {pid} {start}"


def _start(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since the boot."""
    text = _read(f"/proc/{pid}/stat")
    return None if text is None else int(text.rpartition(")")[2].split()[_START])


def _age(pid: int) -> float:
    """Return for how many seconds a process has run; 0 if it is gone."""
    start, uptime = _start(pid), _read("/proc/uptime")
    if start is None or uptime is None:
        return 0.0
    return float(uptime.split()[0]) - start / os.sysconf("SC_CLK_TCK")


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None
