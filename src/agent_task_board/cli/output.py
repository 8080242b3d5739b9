"""What a command prints: an envelope, a table or compact text on standard output, messages on standard error."""

from __future__ import annotations

import json
import os
import sys

from ..errors import BoardError, InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .command import Reply

STYLES = ("json", "table", "compact")
COMPACT = frozenset(
    """
    claim resume heartbeat complete fail release handoff add done update edit comment approve reject reassign retry
    cancel unarchive list show
    """.split()
)
"""Commands that support compact text; the others print their envelope instead."""
OWN_FORMAT = ("export", "import")
"""Commands whose ``--format`` is the format of a file."""
HOOK = "hook"
"""The style of a hook of a client: a refusal goes to standard error, and the exit code is always 0."""


def style_for(arguments: list[str], environ: Mapping[str, str]) -> str:
    """Return the output style. It is read before the arguments are parsed, so that a parse error has it, too."""
    from .parsing import place_of_command

    try:
        place = place_of_command(arguments)
    except InvalidInput:  # raised again when the arguments are parsed
        place = None
    if "--" in arguments:
        arguments = arguments[: arguments.index("--")]
    name = None if place is None else "".join(arguments[place : place + 1])
    is_prime = name == "prime" or (name is None and "prime" in arguments)
    if is_prime and any(word.partition("=")[0] == "--hook" for word in arguments):
        return HOOK
    if name in OWN_FORMAT or not {"--json", "--help", "-h"}.isdisjoint(arguments):
        return "json"
    style = environ.get("ATB_FORMAT") or "json"
    for place, word in enumerate(arguments):
        if word == "--format":
            style = "".join(arguments[place + 1 : place + 2])
        elif word.startswith("--format="):
            style = word.partition("=")[2]
    if style not in STYLES:
        raise InvalidInput(f"format: unknown value: {style[:60]!r} (allowed: {', '.join(STYLES)})", field="format")
    return "json" if style == "compact" and name is not None and not _has_compact_form(name) else style


def _has_compact_form(name: str) -> bool:
    """Say whether a command supports compact text; a misspelt name is refused in compact text, too."""
    from .registry import MODULES

    return name in COMPACT or name not in MODULES


def succeed(reply: Reply, warnings: list[str], style: str, *, quiet: bool) -> int:
    """Print the answer of a command that was not refused; return the exit code."""
    if reply.printed:
        return reply.exit_code
    warnings = [*warnings, *reply.warnings]
    try:
        if style == "compact" and reply.compact is not None:
            print_text(reply.compact(warnings))
        elif style != "table":
            print_line({"ok": True, "data": reply.data, "warnings": warnings})
        else:
            from . import pages

            _report([f"warning: {warning}" for warning in warnings], quiet=quiet)
            print_text(pages.page(reply))
    except BrokenPipeError:
        return discard()
    except OSError as error:
        discard()
        sys.stderr.write(f"the command succeeded, but its answer cannot be written: {error.strerror}\n")
        return BoardError.exit_code
    return reply.exit_code


def fail(error: BoardError, warnings: list[str], style: str, *, quiet: bool) -> int:
    """Print a refusal; return the exit code."""
    try:
        if style == "json":
            print_line({"ok": False, "error": error.to_dict(), "warnings": warnings})
        elif style == HOOK:
            _report([f"{error.code}: {error.message}"], quiet=quiet)
        elif style == "compact":
            from ..text import compact

            print_text(compact.refusal(error, warnings=warnings))
        else:
            from . import tables

            _report([f"warning: {warning}" for warning in warnings], quiet=quiet)
            if "findings" in error.details:  # of `doctor`: print the checks that passed, too
                from . import pages
                from .command import Reply

                print_text(pages.page(Reply(error.details, page="doctor")))
            sys.stderr.write(tables.clean(f"{error.code}: {error.message}\n{error.hint}\n"))
    except OSError:  # nobody reads the output; the exit code remains
        discard()
    return 0 if style == HOOK else error.exit_code


def bug(error: Exception, *, quiet: bool) -> BoardError:
    """Return the refusal for an unexpected exception; its traceback goes to standard error."""
    if not quiet:
        import traceback

        traceback.print_exception(error)
    return BoardError(f"{type(error).__name__}: {error}")


def discard() -> int:
    """Redirect standard output to nowhere, because its reader is gone or its disk is full; return exit code 0."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def print_line(value: Any) -> None:
    """Print one JSON value on its own line and flush it."""
    print_text(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n")


def print_text(text: str) -> None:
    """Print text and flush it."""
    if sys.stdout is None:  # started with standard output closed
        return
    sys.stdout.flush()
    # Bytes: standard output may have another encoding, and a message may contain bytes that are not UTF-8.
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def _report(lines: list[str], *, quiet: bool) -> None:
    if lines and not quiet:
        from . import tables

        sys.stderr.write(tables.clean("".join(f"{line}\n" for line in lines)))
