"""Take everything out: the whole board as JSON, or its tasks as CSV, row by row from one read transaction."""

from __future__ import annotations

import contextlib
import errno
import json
import os

from .. import inputs
from ..board.rows import COLUMNS, NAMES
from ..board.snapshot import COLUMNS as JSON_COLUMNS
from ..errors import InvalidInput, Unusable
from ..model import JSON_KEYS
from ..storage import workdir
from .importing import ARRAYS, NAME, VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

    from ..board.core import Core, Transaction
    from ..storage.db import Cursor

FORMATS = ("json", "csv")
PROGRESS_EVERY = 1_000
"""Rows between two calls of ``progress``."""
_ROWS = 200
"""Rows that are written at once."""

_TASK = JSON_COLUMNS | {"params": "json(params)", "result": "json(result)"}
_SELECTS = {
    "tasks": f"""
        SELECT json_object({", ".join(f"'{key}', {_TASK.get(key, key)}" for key in JSON_KEYS)})
          FROM task ORDER BY seq""",
    "attempts": """
        SELECT json_object('task_id', id, 'number', number, 'agent', agent, 'fence', attempt.fence,
                           'claimed_at', attempt.claimed_at, 'ended_at', ended_at, 'outcome', outcome,
                           'error', attempt.error, 'note', note, 'result', json(attempt.result))
          FROM attempt JOIN task ON seq = task_seq ORDER BY task_seq, number""",
    "events": """
        SELECT json_object('task_id', id, 'kind', kind, 'actor', actor, 'actor_kind', actor_kind, 'at', at,
                           'data', json(data))
          FROM event CROSS JOIN task ON task.seq = task_seq ORDER BY event.seq""",
    "comments": """
        SELECT json_object('task_id', id, 'actor', actor, 'actor_kind', actor_kind, 'at', at, 'text', data ->> 'text')
          FROM event CROSS JOIN task ON task.seq = task_seq WHERE kind = 'commented' ORDER BY event.seq""",
    "schedules": """
        SELECT json_object('id', id, 'name', name, 'cron', cron, 'zone', zone, 'task', json(task), 'catch_up', catch_up,
                           'paused', json(iif(paused_at IS NULL, 'false', 'true')), 'paused_at', paused_at,
                           'next_at', next_at, 'last_at', last_at, 'made', made, 'created_by', created_by,
                           'created_at', created_at, 'updated_at', updated_at)
          FROM schedule ORDER BY key""",
    "archived": """
        SELECT json_object('task_id', id, 'archived_at', archived_at)
          FROM task WHERE archived_at IS NOT NULL ORDER BY seq""",
}
"""SQL: each array's elements as JSON; parameter ``now``."""


def export(
    core: Core,
    target: str | os.PathLike[str] | BinaryIO,
    *,
    file_format: str,
    bom: bool,
    progress: Callable[[int], object] | None,
) -> dict[str, Any]:
    """Do what ``Board.export`` promises."""
    form = inputs.one_of(file_format, "format", FORMATS)
    writer = _Writer(core, form, progress, bom=inputs.boolean(bom, "bom"))
    if not isinstance(target, (str, os.PathLike)):
        return writer.write(target)
    writer.separator = ",\n"  # for people who look into the file, and for programs that compare two
    path = _checked_path(core, os.fspath(target))
    with _appearing(path) as file:
        counts = writer.write(file)
        file.write(b"\n" if form == "json" else b"")
    return {"path": path, **counts}


class _Writer:
    """Writes one view of the board."""

    def __init__(self, core: Core, form: str, progress: Callable[[int], object] | None, *, bom: bool) -> None:
        self._core = core
        self._form = form
        self._bom = bom
        self._progress = progress
        self._rows = 0
        self.separator = ","

    def write(self, file: BinaryIO) -> dict[str, Any]:
        """Write everything; return how many tasks and events that is."""
        with self._core.read() as tx:
            if self._form == "csv":
                return {"tasks": self._csv(tx, file), "events": 0}
            head = {"format": NAME, "version": VERSION, "exported_at": tx.now}
            file.write(json.dumps(head, separators=(",", ":")).encode()[:-1])
            counts = {name: self._array(tx, file, name) for name in ARRAYS}
            file.write(b"}")
        return {"tasks": counts["tasks"], "events": counts["events"]}

    def _array(self, tx: Transaction, file: BinaryIO, name: str) -> int:
        before = self._rows
        file.write(f',"{name}":['.encode())
        separator = ""
        for rows in self._some(tx.execute(_SELECTS[name], {"now": tx.now})):
            file.write((separator + self.separator.join(row[0] for row in rows)).encode())
            separator = self.separator
        file.write(b"]")
        return self._rows - before

    def _csv(self, tx: Transaction, file: BinaryIO) -> int:
        import csv
        import io

        from . import csv as csv_table

        text = io.StringIO(newline="")
        table = csv.writer(text, lineterminator="\r\n")
        table.writerow(csv_table.COLUMNS)
        file.write(b"\xef\xbb\xbf" if self._bom else b"")
        for rows in self._some(tx.execute(f"SELECT {COLUMNS} FROM task ORDER BY seq")):
            table.writerows(csv_table.write_row(dict(zip(NAMES, row, strict=True))) for row in rows)
            file.write(text.getvalue().encode())
            text.seek(0)
            text.truncate()
        file.write(text.getvalue().encode())
        return self._rows

    def _some(self, cursor: Cursor) -> Iterator[list[Any]]:
        """Yield rows, some at a time, and tell how many there were."""
        while rows := cursor.fetchmany(_ROWS):
            yield rows
            before, self._rows = self._rows, self._rows + len(rows)
            if self._progress is not None and before // PROGRESS_EVERY != self._rows // PROGRESS_EVERY:
                self._progress(self._rows)


def _checked_path(core: Core, path: str) -> str:
    """Return where a link leads, if a file may appear there.

    Raises:
        InvalidInput: something else is there, or it is the board itself.
    """
    try:
        real = os.path.realpath(path)
        if os.path.lexists(real) and not os.path.isfile(real):
            raise InvalidInput(
                f"output: {path[:200]} is not a file",
                hint="Leave --output out to write to standard output.",
                field="output",
            )
    except ValueError as error:  # a NUL
        raise InvalidInput(f"output: {path[:200]!r}: {error}", field="output") from None
    if core.database.owns(real):
        raise InvalidInput(f"output: {path[:200]} is the board itself", field="output")
    return real


@contextlib.contextmanager
def _appearing(path: str) -> Iterator[BinaryIO]:
    """Let a file appear when it is whole and on disk; until then, and after a failure, there is nothing of it."""
    folder = os.path.dirname(path)
    try:
        workdir.sweep(folder)
        with workdir.workplace(folder) as place:
            temporary = os.path.join(place, "export")
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=1 << 20) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        workdir.sync_directory(folder)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EISDIR):
            raise InvalidInput(f"output: {path}: {error.strerror}", field="output") from None
        raise Unusable(
            f"{path} could not be written: {error.strerror}",
            hint="Free some space, or name another place; nothing was left behind.",
        ) from error
