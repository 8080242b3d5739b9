"""A process that outlives the command which started it, and in which nobody waits for it."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..config import Config


def deliver(config: Config) -> None:
    """Start ``atb hooks deliver`` for the board and the file of a configuration; return at once.

    It leads a session of its own, and inherits no file: whoever reads what this command writes, into whatever
    descriptor, must not wait for a hook. Where it cannot be started, the next tick delivers.
    """
    if not (sys.executable and hasattr(os, "posix_spawn")):
        return
    # -P: a module of the working directory must not be taken for one of ours.
    words = [sys.executable, "-P", "-m", "agent_task_board", "hooks", "deliver", "--data-dir", config.data_dir]
    if config.file is not None:
        words += ["--config", config.file]
    environ = {name: value for name, value in os.environ.items() if name != "ATB_TOKEN"}
    files = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    try:  # noqa: SIM105  # contextlib takes its time to load
        # Not fork: that would copy the tables of all our memory, for a program which needs none of it.
        os.posix_spawn(
            words[0],
            words,
            environ,
            file_actions=[*files, *((os.POSIX_SPAWN_CLOSE, number) for number in _inherited())],
            setsid=True,
        )
    except (OSError, NotImplementedError):
        pass


def _inherited() -> list[int]:
    """Return the descriptors beyond standard error that a program started by this process would have."""
    found = []
    try:
        for name in os.listdir("/dev/fd"):
            number = int(name)
            try:
                if number > 2 and os.get_inheritable(number):
                    found.append(number)
            except OSError:  # that of the listing itself
                pass
    except OSError:  # a system without it
        pass
    return found
