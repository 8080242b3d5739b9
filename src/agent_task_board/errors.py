"""Every refusal that the board can give: its code, exit code, HTTP status and hint.

One class per refusal. The docstring of a class is its sentence in ``docs/errors.md``. Callers branch on ``code``, never
on the message.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class BoardError(Exception):
    """A bug in the board."""

    code = "internal"
    exit_code = 1
    http_status: int | None = 500
    """``None``: not used over HTTP."""
    hint = "This is a bug in the board. Report it with the command that caused it."

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        if hint is not None:
            self.hint = hint
        self.details: dict[str, Any] = details

    def to_dict(self) -> dict[str, Any]:
        """Return the ``error`` object of the envelope: ``code message hint details``."""
        return {"code": self.code, "message": self.message, "hint": self.hint, "details": self.details}


class InvalidInput(BoardError):
    """The call is invalid: a value out of range, an unknown option, verb or field, a malformed or ambiguous id."""

    code = "invalid_input"
    exit_code = 2
    http_status = 400
    hint = "Correct the call; nothing was changed."


class NotFound(BoardError):
    """No such task, schedule, delivery or route, or no board where the call needs one."""

    code = "not_found"
    exit_code = 3
    http_status = 404
    hint = "List the tasks to find the id. If the task should exist, check that this is the right board."


class Conflict(BoardError):
    """The task is not in the expected state; ``details.reason`` says what differs."""

    code = "conflict"
    exit_code = 4
    http_status = 409
    hint = "Read the task again, or choose another one. Repeating the same call does not help."


class LeaseLost(BoardError):
    """The token is wrong, expired, used up or replaced: the caller does not hold the task."""

    code = "lease_lost"
    exit_code = 5
    http_status = 409
    hint = "Stop working on this task: you no longer hold its lease. Claim another task to continue."


class NotPermitted(BoardError):
    """The caller may not do this: it is for people only, the server is read-only, or the request is cross-origin."""

    code = "not_permitted"
    exit_code = 6
    http_status = 403
    hint = "Ask a person to do this."


class Busy(BoardError):
    """The board stayed locked for the whole busy timeout, or the file changed during a read; nothing was written."""

    code = "busy"
    exit_code = 7
    http_status = 503
    hint = "Repeat the same call in a moment."


class Unusable(BoardError):
    """The board cannot be used: not a board, newer schema, damaged, disk full, no permission; nothing was changed."""

    code = "unusable"
    exit_code = 8
    http_status = 500
    hint = "Check the file, the disk and the permissions named in the message."


class Empty(BoardError):
    """No task is ready: `claim --fail-empty`, and a wait that ran out or can no longer succeed."""

    code = "empty"
    exit_code = 9
    http_status = None
    hint = "Try again later."


REFUSALS: tuple[type[BoardError], ...] = (
    BoardError,
    InvalidInput,
    NotFound,
    Conflict,
    LeaseLost,
    NotPermitted,
    Busy,
    Unusable,
    Empty,
)


def no_board(path: str, looked: Sequence[str] = ()) -> NotFound:
    """Return the refusal of a call that needs a board where there is none.

    ``path`` is that of its file; ``looked`` names the places where a search for the project's board looked.
    """
    hint = "Create a board with `atb init`, or name one with --data-dir or ATB_DATA_DIR."
    if looked:
        return NotFound(
            "no board found", hint=f"{hint} Looked for: {', '.join(looked)}.", path=path, looked=list(looked)
        )
    return NotFound(f"there is no board at {path}", hint=hint, path=path)
