"""Transactions: they wait for their turn and the lock, and end in a commit, a rollback or a refusal.

A write starts with ``BEGIN IMMEDIATE``: a transaction that reads first and then writes fails at once if another writer
committed in between, whatever its busy timeout.
"""

from __future__ import annotations

import sqlite3
from time import monotonic

from ..errors import Busy, Unusable, no_board
from .process import AFTER_FORK
from .refusals import changed, primary_code, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from .db import Database

SEARCH_LESS = "Search for less: with a status, a queue or a tag."


class Read:
    """A context manager: one read transaction, which sees the board at a single moment."""

    def __init__(self, database: Database, stop: Callable[[], bool] | None = None) -> None:
        self._database = database
        self._stop = stop

    def __enter__(self) -> sqlite3.Connection:
        database = self._database
        deadline = database.deadline()
        while True:
            session = self._session = database.session(deadline=deadline)
            connection = session.connection
            try:
                if session.waits_other_than(database.busy_timeout):
                    session.wait_until(deadline)
                connection.execute("BEGIN")
                session.refuse_unreadable()
            except BaseException as error:
                session.roll_back()
                if isinstance(error, Exception) and session.has_changed():
                    if monotonic() < deadline:
                        continue
                    raise changed(database.path) from error
                if isinstance(error, sqlite3.Error):
                    refuse(error, database.path)
                raise
            if self._stop is not None:
                session.ask_while_running(self._stop)
            return connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session = self._session
        if self._stop is not None:
            session.ask_while_running(None)
        session.roll_back()
        is_stopped = isinstance(error, sqlite3.Error) and primary_code(error) == sqlite3.SQLITE_INTERRUPT
        if self._stop is not None and is_stopped:
            raise Busy("the search took too long and was stopped", hint=SEARCH_LESS) from error
        if session.is_momentary and isinstance(error, Exception | None) and session.has_changed():
            raise changed(self._database.path) from error
        if isinstance(error, sqlite3.Error):
            refuse(error, self._database.path)


class Write:
    """A context manager: one write transaction, committed at its end, rolled back after an exception."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> sqlite3.Connection:
        deadline = self._database.deadline()
        session = self._session = self._database.session(to_write=True, deadline=deadline)
        self._changes = session.connection.total_changes
        try:
            if not session.is_absent:
                was_behind_others = session.turnstile.enter(deadline)
                if was_behind_others or session.waits_other_than(self._database.busy_timeout):
                    session.wait_until(deadline)
            session.begin_write(deadline)
        except BaseException as error:
            self._abort(error)
            raise
        return session.connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session = self._session
        if error is None:
            try:
                if session.is_inherited:  # the body of this transaction forked, and this is the child
                    raise Unusable(f"{self._database.path}: this process was forked during a write", hint=AFTER_FORK)
                if session.is_absent and session.connection.total_changes > self._changes:
                    raise no_board(self._database.path)
                session.commit()
            except BaseException as failure:
                self._abort(failure)
                raise
            session.turnstile.leave()
        else:
            self._abort(error)

    def _abort(self, error: BaseException) -> None:
        session = self._session
        if session.is_inherited:
            return
        try:
            session.roll_back()
        finally:
            session.turnstile.leave()
        if isinstance(error, Exception) and not isinstance(error, Unusable):
            session.refuse_deleted_log()  # what the call met may be the past
        if isinstance(error, sqlite3.Error):
            refuse(error, self._database.path)
