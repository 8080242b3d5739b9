"""Agent Task Board: a local task queue that several AI agents share without doing a task twice.

>>> from agent_task_board import Board
>>> board = Board("data")
>>> claim = board.claim(agent="worker-1")
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._version import __version__
    from .errors import BoardError
    from .identity import Actor
    from .model import Grant, Lease, Receipt, Task
    from .service import Board
    from .settings import Settings

__all__ = ["Actor", "Board", "BoardError", "Grant", "Lease", "Receipt", "Settings", "Task", "__version__"]

_HOMES = {
    "Actor": "identity",
    "Board": "service",
    "BoardError": "errors",
    "Settings": "settings",
    **dict.fromkeys(("Grant", "Lease", "Receipt", "Task"), "model"),
    "__version__": "_version",
}


if not TYPE_CHECKING:  # else a type checker would take any name for one of ours

    def __getattr__(name: str) -> object:
        """Load a public name on first use: the command line pays only for what a command needs."""
        if name in _HOMES:
            from importlib import import_module

            return getattr(import_module(f".{_HOMES[name]}", __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
