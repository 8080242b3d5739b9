"""The commands that take everything out and bring it in: export, import."""

from __future__ import annotations

import contextlib
import json
import sys
import time

from ..errors import InvalidInput, Unusable
from ..transfer.export import FORMATS as WRITTEN
from ..transfer.importing import FORMATS as READ
from . import output
from .command import Call, Command, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

    from .parsing import Parser

GUESSED = 65_536
"""Bytes at the beginning of a file that tell its format, at most."""
PATIENCE = 0.5
"""Seconds between two lines of progress."""


def _format_of(given: str | None, path: str | None) -> str:
    """Return the format of a file: what the option says, else what its name says."""
    return given or ("csv" if path is not None and path.lower().endswith(".csv") else "json")


def _export_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--format",
        choices=list(WRITTEN),
        help="the format of the file (default: csv if --output ends in .csv, else json)",
    )
    parser.flag("--utf8", "write CSV without the byte order mark by which spreadsheets know UTF-8")
    parser.option("--output", "FILE", "write to a file, which appears whole or not at all (default: standard output)")


def _export(call: Call) -> Reply:
    path = call.args.output
    form = _format_of(call.args.format, path)
    if call.args.utf8 and form != "csv":
        raise InvalidInput("utf8: goes with CSV only", field="utf8")
    if path is not None:
        if path == "":
            raise InvalidInput("output: must not be empty", field="output")
        with _progress(call, "rows") as progress:
            return Reply(call.board.export(path, file_format=form, bom=not call.args.utf8, progress=progress))
    if form == "csv" and call.args.json:
        raise InvalidInput(
            "json: CSV goes raw to standard output, without an envelope",
            hint="Leave --json out, or write to a file with --output.",
            field="json",
        )
    if sys.stdout is None:  # started with standard output closed
        return Reply(None, printed=True)
    sys.stdout.flush()
    out: Any = _Late(sys.stdout.buffer, b"" if form == "csv" else b'{"ok":true,"data":')
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
        output.discard()
        raise Unusable(
            f"standard output cannot take it: {error.strerror}",
            hint="What was written is not whole. Free some space, or name a file with --output.",
        ) from None
    return Reply(None, printed=True)


class _Late:
    """Standard output, with a beginning that is written only once there is something to follow it.

    Until then a refusal can still be the one document that is printed.
    """

    def __init__(self, file: BinaryIO, beginning: bytes) -> None:
        self._file = file
        self._beginning = beginning

    def write(self, content: bytes) -> None:
        self._file.write(self._beginning + content)
        self._beginning = b""


def _import_arguments(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file to import, or - for standard input")
    parser.add_argument(
        "--format",
        choices=list(READ),
        help="the format of the file (default: csv if its name ends in .csv, else as its first line says)",
    )
    parser.flag("--dry-run", "check everything and write nothing")
    parser.actor()


def _guessed(file: BinaryIO, path: str) -> str:
    """Return the format of a file by its name, else by its beginning, which is not consumed."""
    if path.lower().endswith(".csv"):
        return "csv"
    try:
        if path == "-":
            beginning = file.peek(GUESSED)[:GUESSED]  # type: ignore[attr-defined]
        else:
            beginning = file.read(GUESSED)
            file.seek(0)
    except (OSError, AttributeError):  # a pipe under a name
        return "json"
    text = beginning.decode("utf-8-sig", "ignore").lstrip()
    try:
        first, end = json.JSONDecoder().raw_decode(text.removeprefix("[").lstrip())
    except (ValueError, RecursionError):  # longer than what was read, or no JSON
        return "json"
    if not isinstance(first, dict):
        return "json"
    if text.startswith("["):
        return "github" if {"number", "title"} <= first.keys() else "json"
    follows = text[end:].lstrip()
    is_beads = {"id", "title"} <= first.keys() and (follows or "issue_type" in first)
    return "beads" if is_beads or "_type" in first else "json"


def _import(call: Call) -> Reply:
    with _opened(call, call.args.file) as file, _progress(call, "elements") as progress:
        form = call.args.format or _guessed(file, call.args.file)
        done = call.board.import_tasks(
            file, file_format=form, dry_run=call.args.dry_run, actor=call.actor(), progress=progress
        )
    return Reply(done.to_dict(), warnings=done.warnings)


@contextlib.contextmanager
def _opened(call: Call, path: str) -> Iterator[BinaryIO]:
    """Open what is imported.

    Raises:
        InvalidInput: it cannot be read, or is a file of the live board, whose locks would be dropped by reading it.
    """
    try:
        if path == "-":
            if sys.stdin is None:
                raise InvalidInput("file: standard input is closed", field="file")
            yield sys.stdin.buffer
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
    """Tell people on a terminal how far it is; nobody else."""
    if call.args.quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    began = shown = time.monotonic()

    def tell(count: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= PATIENCE:
            shown = now
            sys.stderr.write(f"\r{count:,} {what} in {now - began:,.0f} s ")
            sys.stderr.flush()

    try:
        yield tell
    finally:
        if shown > began:
            sys.stderr.write(f"\r{'':<60}\r")
            sys.stderr.flush()


COMMANDS = {
    "export": Command(
        _export,
        _export_arguments,
        "Take the whole board out as JSON, or its tasks as CSV.",
        "JSON holds tasks, attempts, events, comments, schedules and what is archived, and `atb import` makes an\n"
        "equal board of it. CSV holds tasks for a spreadsheet. With `--output` the file appears whole or not at all,\n"
        "only this user can read it, and `data` is {path, tasks, events}; without it JSON is the `data` of the\n"
        "envelope, and CSV goes raw to standard output. No lease token is in an export.",
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
        "Bring in tasks from a file: all of it or nothing.",
        "Takes what `atb export` writes, an array of tasks, an object with `tasks`, or what `atb list --full` prints;\n"
        "CSV; the issues of beads; and what `gh issue list --json` prints. Ids are kept; a task whose id exists, or\n"
        "whose dedupe key an unfinished task holds, is passed over and counted. Claimed and running tasks come in as\n"
        "queued. `data` is {imported, skipped}. The file may be larger than memory, and agents go on claiming while\n"
        "it is read. Makes the board if there is none yet, but for `--dry-run`, which only checks.",
        (
            "atb import examples/tasks.json",
            "atb import tasks.csv --dry-run",
            "atb import .beads/issues.jsonl --format beads",
            "atb list --full --limit 100000 | atb --data-dir copy import -",
        ),
        creates=True,
    ),
}
