"""The commands `export` and `import`."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time

from ..errors import InvalidInput
from ..transfer import detection
from ..transfer.export import FORMATS as EXPORT_FORMATS
from ..transfer.formats import FORMATS as IMPORT_FORMATS
from . import output
from .command import Call, Command, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

    from .parsing import Parser

PROGRESS_INTERVAL = 0.5
"""Seconds between two updates of the progress line."""


def _format_of(given: str | None, path: str | None) -> str:
    """Return the format of a file: that of the option, else that of the file name."""
    return given or ("csv" if path is not None and path.lower().endswith(".csv") else "json")


def _export_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--format",
        choices=list(EXPORT_FORMATS),
        help="the format of the file (default: csv if --output ends in .csv, else json)",
    )
    parser.flag("--utf8", "write CSV without the byte order mark that spreadsheets need to recognize UTF-8")
    parser.option("--output", "FILE", "write to a file, all or nothing (default: standard output)")


def _export(call: Call) -> Reply:
    path = call.args.output
    form = _format_of(call.args.format, path)
    if call.args.utf8 and form != "csv":
        raise InvalidInput("utf8: requires the format csv", field="utf8")
    if path is not None:
        if path == "":
            raise InvalidInput("output: must not be empty", field="output")
        with _progress(call, "rows") as progress:
            return Reply(call.board.export(path, file_format=form, bom=not call.args.utf8, progress=progress))
    if form == "csv" and call.args.json:
        raise InvalidInput(
            "json: CSV on standard output has no envelope",
            hint="Omit --json, or write to a file with --output.",
            field="json",
        )
    if sys.stdout is None:  # started with standard output closed
        return Reply(None, printed=True)
    return _export_to_standard_output(call, form)


def _export_to_standard_output(call: Call, form: str) -> Reply:
    """Print an export; once a part of it is written, no error is printed after it."""
    sys.stdout.flush()
    out: Any = _DeferredPrefix(sys.stdout.buffer, b"" if form == "csv" else b'{"ok":true,"data":')
    try:
        with _progress(call, "rows") as progress:
            call.board.export(out, file_format=form, bom=not call.args.utf8, progress=progress)
        if form == "json":
            call.close()
            warnings = json.dumps(call.warnings, ensure_ascii=False, separators=(",", ":"))
            out.write(b',"warnings":' + warnings.encode("utf-8", "replace") + b"}\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        output.discard()
    except OSError as error:
        raise output.Unwritable(error, is_begun=True) from None
    except BaseException:
        if out.has_begun:
            output.discard()
        raise
    return Reply(None, printed=True)


class _DeferredPrefix:
    """Standard output with a prefix that is written just before the first content.

    Until then, an error can still be printed as the only document.
    """

    def __init__(self, file: BinaryIO, prefix: bytes) -> None:
        self._file = file
        self._prefix = prefix
        self.has_begun = False

    def write(self, content: bytes) -> None:
        self.has_begun = True
        self._file.write(self._prefix + content)
        self._prefix = b""


def _import_arguments(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file to import, or - for standard input")
    parser.add_argument(
        "--format",
        choices=list(IMPORT_FORMATS),
        help="the format of the file (default: as its content says)",
    )
    parser.flag("--dry-run", "check everything, write nothing")
    parser.actor()


def _detected(file: BinaryIO, path: str) -> str:
    """Return the format of a file, by its beginning, which is not consumed."""
    try:
        if path == "-":
            beginning = file.peek(detection.SAMPLE)[: detection.SAMPLE]  # type: ignore[attr-defined]
        else:
            beginning = file.read(detection.SAMPLE)
            file.seek(0)
    except (OSError, AttributeError):  # a pipe under a name
        return _format_of(None, path)
    return detection.detect(beginning, path)


def _import(call: Call) -> Reply:
    with _opened(call, call.args.file) as file, _progress(call, "elements") as progress:
        form = call.args.format or ("backlog" if isinstance(file, str) else _detected(file, call.args.file))
        if isinstance(file, str) and form != "backlog":
            raise InvalidInput(
                f"file: {file[:200]} is a directory",
                hint="Only a directory of Backlog.md can be imported: --format backlog.",
                field="file",
            )
        done = call.board.import_tasks(
            file,
            file_format=form,
            dry_run=call.args.dry_run,
            actor=call.actor(),
            progress=progress,
            before_lock=None if call.args.quiet else lambda rows, seconds: _announce(call, rows, seconds),
        )
    return Reply(done.to_dict(), warnings=done.warnings)


def _announce(call: Call, rows: int, seconds: float) -> None:
    """Say on standard error how long an import is going to hold the write lock."""
    if sys.stderr is None:
        return
    wait = call.board.settings.busy_timeout / 1_000
    others = "other writers wait" if seconds < wait else f"other writers wait for up to {wait:,.0f} s, then get `busy`"
    with contextlib.suppress(OSError):
        sys.stderr.write(f"import: {rows:,} rows, the board is locked for about {max(1, seconds):,.0f} s; {others}\n")
        sys.stderr.flush()


@contextlib.contextmanager
def _opened(call: Call, path: str) -> Iterator[BinaryIO | str]:
    """Open the file to import; of a directory the path is enough.

    Raises:
        InvalidInput: it cannot be read, or is the board's own database: closing it would drop SQLite's locks.
    """
    try:
        if path == "-":
            if sys.stdin is None:
                raise InvalidInput("file: standard input is closed", field="file")
            yield sys.stdin.buffer
        elif os.path.isdir(path):
            yield path
        elif call.board.database.owns(path):
            raise InvalidInput(f"file: {path[:200]} is the board itself", field="file")
        else:
            with open(path, "rb") as file:
                yield file
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"file: {path[:200]}: {reason}", field="file") from None


@contextlib.contextmanager
def _progress(call: Call, what: str) -> Iterator[Callable[[int], None] | None]:
    """Show progress on standard error if it is a terminal."""
    if call.args.quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    started = updated = time.monotonic()

    def update(count: int) -> None:
        nonlocal updated
        now = time.monotonic()
        if now - updated >= PROGRESS_INTERVAL:
            updated = now
            sys.stderr.write(f"\r{count:,} {what} in {now - started:,.0f} s ")
            sys.stderr.flush()

    try:
        yield update
    finally:
        if updated > started:
            sys.stderr.write(f"\r{'':<60}\r")
            sys.stderr.flush()


COMMANDS = {
    "export": Command(
        _export,
        _export_arguments,
        "Export the whole board as JSON, or its tasks as CSV.",
        "JSON has tasks, attempts, events, comments, schedules and archive dates; `atb import` creates an equal board\n"
        "from it. CSV has tasks, for a spreadsheet. With `--output` the file appears complete or not at all, only you\n"
        "can read it, and `data` is {path, tasks, events}. Without it, JSON is the `data` of the envelope, and CSV is\n"
        "printed without an envelope. Nothing is printed before the export is complete; more than 1 MiB is spooled\n"
        "in a temporary file. An export never contains a lease token.",
        (
            "atb export --output board.json",
            "atb export --output tasks.csv",
            "atb export | atb --data-dir copy import -",
        ),
        reads=True,
    ),
    "import": Command(
        _import,
        _import_arguments,
        "Import tasks from a file: all of them or none.",
        "Reads the output of `atb export` or `atb list --full`, an array of tasks, an object with `tasks`, CSV, and\n"
        "files of beads, GitHub, task-master, Backlog.md (a directory), Jira, Linear, Trello, Asana, todo.txt and\n"
        "Markdown checklists: docs/import.md says what becomes what. Ids are kept. A task whose id exists, or whose\n"
        "dedupe key an unfinished task has, is skipped and counted; a newer row of a tracker updates its task unless\n"
        "somebody claimed or changed it here. Claimed and running tasks are imported as queued. `data` is {imported,\n"
        "updated, skipped, ignored, details}. The file may be larger than memory, and agents can claim tasks while it\n"
        "is read. Creates the board if there is none. `--dry-run` only checks.",
        (
            "atb import examples/tasks.json",
            "atb import tasks.csv --dry-run",
            "atb import .beads/issues.jsonl --format beads",
            "atb export | atb --data-dir copy import -",
        ),
        creates=True,
    ),
}
