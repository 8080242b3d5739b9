"""Export the whole board as JSON, or its tasks as CSV, from one read transaction and in bounded memory."""

from __future__ import annotations

import contextlib
import errno
import json
import os

from .. import inputs
from ..board.rows import COLUMNS, NAMES
from ..board.snapshot import COLUMNS as JSON_COLUMNS
from ..errors import InvalidInput, Unusable
from ..folder import LeadsOut
from ..model import JSON_KEYS
from ..printable import escape_json
from ..reach import limits_of, reach
from ..storage import workdir
from .document import ARRAYS, NAME, VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO, NoReturn, Protocol

    from ..board.core import Core, Transaction

    class Writable(Protocol):
        """What bytes are written to."""

        def write(self, content: bytes, /) -> object:
            """Write all of the bytes."""
            ...


FORMATS = ("json", "csv")
PROGRESS_INTERVAL = 1_000
"""Rows between two calls of ``progress``."""
BATCH = 1_048_576
"""Characters that are collected before they are written, plus those of one row; bytes that are copied at once."""
SPOOL_MEMORY = 1_048_576
"""Bytes of an export that are spooled in memory; a larger export is spooled in a temporary file."""

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
"""SQL: the elements of each array as JSON; parameter ``now``."""


def export(
    core: Core,
    target: str | os.PathLike[str] | BinaryIO,
    *,
    file_format: str,
    bom: bool,
    progress: Callable[[int], object] | None,
) -> dict[str, Any]:
    """Export as ``Board.export`` documents."""
    file_format = inputs.one_of(file_format, "format", FORMATS)
    exporter = _Exporter(core, file_format, progress, bom=inputs.boolean(bom, "bom"))
    try:
        if not isinstance(target, (str, os.PathLike)):
            return _export_to_stream(exporter, target)
        path = _check_path(core, os.fspath(target))
        return {"path": os.path.realpath(path), **_export_to_path(exporter, path)}
    except MemoryError:
        raise Unusable(
            "there is not enough memory for this export",
            hint="Free some memory, or raise the memory limit of this process, then export again.",
        ) from None


def _export_to_stream(exporter: _Exporter, stream: Writable) -> dict[str, Any]:
    """Write an export to a stream once it is complete, so that a slow reader does not prolong the read transaction.

    An open read transaction keeps SQLite from reusing its write-ahead log. If the export fails, nothing is written.
    """
    with _Spool() as spool:
        counts = exporter.write(spool)
        spool.copy_to(stream)
    return counts


def _export_to_path(exporter: _Exporter, path: str) -> dict[str, Any]:
    exporter.separator = ",\n"  # one element per line, for readers and for diff
    with _replaced_file(path) as file:
        counts = exporter.write(file)
        file.write(b"\n" if exporter.file_format == "json" else b"")
    return counts


class _Exporter:
    """Writes the board as it is at one moment."""

    def __init__(self, core: Core, file_format: str, progress: Callable[[int], object] | None, *, bom: bool) -> None:
        self._core = core
        self.file_format = file_format
        self._bom = bom
        self._progress = progress
        self._rows = 0
        self.separator = ","

    def write(self, file: Writable) -> dict[str, Any]:
        """Write everything; return the numbers of tasks and events."""
        with self._core.read() as tx:
            if self.file_format == "csv":
                return {"tasks": self._write_csv(tx, file), "events": 0}
            head = {"format": NAME, "version": VERSION, "exported_at": tx.now}
            file.write(json.dumps(head, separators=(",", ":")).encode()[:-1])
            counts = {name: self._write_array(tx, file, name) for name in ARRAYS}
            file.write(b"}")
        return {"tasks": counts["tasks"], "events": counts["events"]}

    def _write_array(self, tx: Transaction, file: Writable, name: str) -> int:
        before = self._rows
        file.write(f',"{name}":['.encode())
        batch: list[str] = []
        size = 0
        for (element,) in tx.execute(_SELECTS[name], {"now": tx.now}):
            if self._rows > before:
                batch.append(self.separator)
            batch.append(escape_json(element))
            size += len(element)
            if size > BATCH:
                file.write("".join(batch).encode())
                batch.clear()
                size = 0
            self._count_row()
        file.write("".join([*batch, "]"]).encode())
        return self._rows - before

    def _write_csv(self, tx: Transaction, file: Writable) -> int:
        import csv
        import io

        from . import csv as csv_table

        text = io.StringIO(newline="")
        table = csv.writer(text, lineterminator="\r\n")
        table.writerow(csv_table.COLUMNS)
        file.write(b"\xef\xbb\xbf" if self._bom else b"")
        for row in tx.execute(f"SELECT {COLUMNS} FROM task ORDER BY seq"):
            table.writerow(csv_table.write_row(dict(zip(NAMES, row, strict=True))))
            if text.tell() > BATCH:
                file.write(text.getvalue().encode())
                text.seek(0)
                text.truncate()
            self._count_row()
        file.write(text.getvalue().encode())
        return self._rows

    def _count_row(self) -> None:
        self._rows += 1
        if self._progress is not None and self._rows % PROGRESS_INTERVAL == 0:
            self._progress(self._rows)


class _Spool:
    """A temporary file without a name: in memory while it is small, then on disk."""

    def __enter__(self) -> _Spool:
        import tempfile

        self._file = tempfile.SpooledTemporaryFile(max_size=SPOOL_MEMORY, dir=_temporary_directory())
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # a buffer that could not be written before cannot be written now
            self._file.close()

    def write(self, content: bytes) -> None:
        try:
            self._file.write(content)
        except OSError as error:
            _refuse_spool(error)

    def copy_to(self, stream: Writable) -> None:
        try:
            self._file.seek(0)
        except OSError as error:  # the last buffer is written only now
            _refuse_spool(error)
        while content := self._file.read(BATCH):
            stream.write(content)


def _refuse_spool(error: OSError) -> NoReturn:
    raise Unusable(
        f"the temporary file of the export cannot be written: {error.strerror}",
        hint="Free some space for temporary files, choose another directory with SQLITE_TMPDIR, or use --output FILE.",
    ) from error


def _temporary_directory() -> str | None:
    """Return the directory in which SQLite creates temporary files, too; ``None`` leaves it to Python."""
    candidates = (os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"), "/var/tmp")  # noqa: S108 - files there have no name
    return next((path for path in candidates if path and os.path.isdir(path) and os.access(path, os.W_OK)), None)


def _check_path(core: Core, path: str) -> str:
    """Return the absolute path, if a file can be created or replaced there.

    Raises:
        InvalidInput: the path is that of something else than a file, or of the board itself, or a link leads out.
    """
    try:
        absolute = os.path.abspath(path)
        real = os.path.realpath(absolute)
        if os.path.lexists(real) and not os.path.isfile(real):
            raise InvalidInput(
                f"output: not a file: {path[:200]}",
                hint="Omit --output to write to standard output.",
                field="output",
            )
        if core.database.owns(real):
            raise InvalidInput(f"output: {path[:200]} is the board itself", field="output")
        with contextlib.suppress(FileNotFoundError):
            reach(absolute, limits_of(absolute)).close()
    except ValueError as error:  # a NUL
        raise InvalidInput(f"output: {path[:200]!r}: {error}", field="output") from None
    except OSError as error:
        _refuse_output(absolute, error)
    return absolute


@contextlib.contextmanager
def _replaced_file(path: str) -> Iterator[BinaryIO]:
    """Create or replace a file once its content is complete and on disk; if the block fails, nothing changes."""
    try:
        with reach(path, limits_of(path)) as spot:
            workdir.sweep(spot.folder)
            with workdir.workplace(spot.folder) as place:
                with open(place.create("export"), "wb", buffering=1 << 20) as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                place.rename("export", spot.name, spot.folder)
            spot.folder.sync()
    except OSError as error:
        _refuse_output(path, error)


def _refuse_output(path: str, error: OSError) -> NoReturn:
    if isinstance(error, LeadsOut):
        raise InvalidInput(
            f"output: {error.filename} is {error.strerror}",
            hint="Nothing was written. Remove the link, or name the file that it leads to.",
            field="output",
        ) from error
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EISDIR):
        raise InvalidInput(f"output: {path}: {error.strerror}", field="output") from None
    raise Unusable(
        f"output: {path} cannot be written: {error.strerror}",
        hint="Free some space, or choose another path; no partial file was left behind.",
    ) from error
