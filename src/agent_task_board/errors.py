"""Every refusal that the board can give: its code, exit code, HTTP status and hint.

One class a refusal. The docstring of a class is its sentence in ``docs/errors.md``.
Callers tell refusals apart by ``code``, never by message.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class BoardError(Exception):
    """A bug: something that the board did not foresee."""

    code = "internal"
    exit_code = 1
    http_status: int | None = 500
    """``None``: this refusal never travels over HTTP."""
    hint = "This is a fault of the board itself; please report it with the command that led to it."

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
    """The call is malformed: a value out of range, an unknown option, verb or field, a malformed or ambiguous id."""

    code = "invalid_input"
    exit_code = 2
    http_status = 400
    hint = "Correct the call; nothing was changed."


class NotFound(BoardError):
    """There is no such task or route, or no board yet that could hold a task."""

    code = "not_found"
    exit_code = 3
    http_status = 404
    hint = "List the tasks to find the id; if it should be there, this may be another board than the one you mean."


class Conflict(BoardError):
    """The state is not the expected one; ``details.reason`` says which expectation failed."""

    code = "conflict"
    exit_code = 4
    http_status = 409
    hint = "Read the task again, or choose another one; repeating the same call will not help."


class LeaseLost(BoardError):
    """The token is wrong, expired, spent or replaced: the caller no longer holds the task."""

    code = "lease_lost"
    exit_code = 5
    http_status = 409
    hint = "Stop working on this task: its lease is not yours any more. Claim again to go on."


class NotPermitted(BoardError):
    """The caller may not do this: it is for people, the server is read-only, or a page of another origin asks."""

    code = "not_permitted"
    exit_code = 6
    http_status = 403
    hint = "Ask a person to do it."


class Busy(BoardError):
    """No write lock could be had within the busy timeout; nothing was changed."""

    code = "busy"
    exit_code = 7
    http_status = 503
    hint = "Make the same call again in a moment; it changed nothing."


class Unusable(BoardError):
    """The board cannot be used (not a board, newer schema, damaged, full disk, no permission); nothing was changed."""

    code = "unusable"
    exit_code = 8
    http_status = 500
    hint = "Check the file, the disk and the permissions named in the message."


class Empty(BoardError):
    """Nothing was ready: only `claim --fail-empty` says so with an exit code of its own."""

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
