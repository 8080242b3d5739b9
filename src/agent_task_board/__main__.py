"""The program: what ``atb`` and ``python -m agent_task_board`` start."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

INTERRUPTED = 130
"""The exit code after Ctrl-C, as in shells: 128 plus the number of the signal."""


def run() -> NoReturn:
    """Run the command line; Ctrl-C ends it without a traceback, even while its modules are being imported."""
    sys.unraisablehook = _exit_if_interrupted
    try:
        if "PYTHONPATH" in os.environ or __name__ == "__main__":
            from . import isolation

            isolation.leave_project()
        from .cli import run

        run()
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)


def _exit_if_interrupted(unraisable: sys.UnraisableHookArgs) -> None:
    """Exit on a Ctrl-C that Python would print and then ignore: one in a destructor or in a callback of an import."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__unraisablehook__(unraisable)


if __name__ == "__main__":
    run()
