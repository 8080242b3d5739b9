"""Start a process that continues after the command has ended."""

from __future__ import annotations

import os
import sys

from .. import isolation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..config import Config


def deliver(config: Config) -> None:
    """Start ``atb hooks deliver`` with the board and the file of a configuration; return at once.

    The process has its own session and inherits no open files, so that a program that reads this command's output does
    not wait for a hook. If the process cannot be started, the next tick delivers.
    """
    if not sys.executable:
        return
    # -P: a module in the working directory must not replace one of ours.
    words = [sys.executable, "-P", "-m", "agent_task_board", "hooks", "deliver"]
    if config.place is None:
        words += ["--data-dir", config.data_dir]
    if config.is_named:  # a file that was found must be found again: named, it would count whatever it says by then
        words += ["--config", str(config.file)]
    environ = {name: value for name, value in isolation.safe_environment().items() if name != "ATB_TOKEN"}
    files = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    try:  # noqa: SIM105  # importing contextlib takes too long
        # Not fork, which would copy the page tables of this process for a program that does not need them.
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
    """Return the file descriptors above standard error that a child process would inherit."""
    found = []
    try:
        for name in os.listdir("/dev/fd"):
            number = int(name)
            try:
                if number > 2 and os.get_inheritable(number):
                    found.append(number)
            except OSError:  # the descriptor of this listing
                pass
    except OSError:  # a sandbox without it
        pass
    return found
