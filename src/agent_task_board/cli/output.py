"""What a command prints: an envelope, a table or compact text on standard output, messages on standard error."""

from __future__ import annotations

import json
import os
import sys

from ..errors import BoardError, InvalidInput, Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .command import Reply

AGENT_VARIABLES = (
    "CLAUDECODE",  # Claude Code
    "CODEX_CI",  # Codex CLI, with the next three
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_THREAD_ID",
    "GEMINI_CLI",  # Gemini CLI
    "QWEN_CODE",  # Qwen Code
    "CURSOR_AGENT",  # Cursor
    "OPENCODE",  # OpenCode
    "AMP_CURRENT_THREAD_ID",  # Amp
    "AUGMENT_AGENT",  # Augment
    "CLINE_ACTIVE",  # Cline
    "GOOSE_TERMINAL",  # Goose
    "AI_AGENT",  # any other agent may set it
)
"""Environment variables that coding agents set in the shells that they open: an agent in a pseudo-terminal gets JSON.
``docs/cli.md`` lists them."""
STYLES = ("json", "table", "compact")
COMPACT = frozenset(
    """
    claim resume heartbeat complete fail release handoff add done update edit comment approve reject reassign retry
    cancel archive unarchive list show events wait why
    """.split()
)
"""Commands that support compact text; the others print their envelope instead."""
OWN_FORMAT = ("export", "import")
"""Commands whose ``--format`` is the format of a file."""
HOOK = "hook"
"""The style of a hook of a client: a refusal goes to standard error, and the exit code is always 0."""


VALUE = "value"
"""The style of ``--print``: one value on standard output; a refusal goes to standard error."""


class Unwritable(Unusable):
    """Standard output cannot be written, for example because its disk is full. What is written later is discarded."""

    def __init__(self, error: OSError, *, is_begun: bool = False) -> None:
        super().__init__(
            f"standard output cannot be written: {error.strerror}",
            hint="The output is incomplete. Free some space, or redirect it to another place."
            if is_begun
            else "Free some space, or redirect it to another place.",
        )
        discard()


def style_for(arguments: list[str], environ: Mapping[str, str], *, at_terminal: bool = False) -> str:
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
    if path_to_print(arguments) is not None:
        return VALUE
    if not {"--json", "--help", "-h"}.isdisjoint(arguments):
        return "json"
    if name is None and not {"--version", "-V"}.isdisjoint(arguments):
        return "json"
    is_agent = any(environ.get(variable) for variable in ("ATB_AGENT", *AGENT_VARIABLES))
    style = "table" if at_terminal and not is_agent else "json"
    if name in OWN_FORMAT:
        return "json" if environ.get("ATB_FORMAT") else style
    style = environ.get("ATB_FORMAT") or style
    for place, word in enumerate(arguments):
        if word == "--format":
            style = "".join(arguments[place + 1 : place + 2])
        elif word.startswith("--format="):
            style = word.partition("=")[2]
    if style not in STYLES:
        raise InvalidInput(f"format: unknown value: {style[:60]!r} (allowed: {', '.join(STYLES)})", field="format")
    return "json" if style == "compact" and name is not None and not _has_compact_form(name) else style


def path_to_print(arguments: list[str]) -> str | None:
    """Return the path of ``--print``; ``setup`` has a flag of that name."""
    from .parsing import place_of_command

    if "--" in arguments:
        arguments = arguments[: arguments.index("--")]
    path = None
    for place, word in enumerate(arguments):
        if word == "--print":
            path = "".join(arguments[place + 1 : place + 2])
        elif word.startswith("--print="):
            path = word.partition("=")[2]
    if path is None:
        return None
    try:
        command = place_of_command(arguments)
    except InvalidInput:
        return path
    return None if command is not None and arguments[command] == "setup" else path


def _has_compact_form(name: str) -> bool:
    """Say whether a command supports compact text; a misspelt name is refused in compact text, too."""
    from .registry import ALIASES, MODULES

    name = ALIASES.get(name, name)
    return name in COMPACT or name not in MODULES


def succeed(reply: Reply, warnings: list[str], style: str, *, quiet: bool, path: str | None = None) -> int:
    """Print the answer of a command that was not refused as a whole; return the exit code."""
    if reply.printed:
        return 0 if reply.error is None else reply.error.exit_code
    warnings = [*warnings, *reply.warnings]
    code = 0 if reply.error is None else reply.error.exit_code
    try:
        if style == VALUE:
            _report([f"warning: {warning}" for warning in warnings], quiet=quiet)
            if reply.error is not None:
                _print_refusal(reply.error, [])
            return _print_value(reply.data, warnings, path or "") or code
        if style == "compact" and reply.compact is not None:
            print_text(reply.compact(warnings))
        elif style != "table" and reply.error is not None:
            print_line({"ok": False, "error": reply.error.to_dict(), "data": reply.data, "warnings": warnings})
        elif style != "table":
            print_line({"ok": True, "data": reply.data, "warnings": warnings})
        else:
            from . import pages

            _report([f"warning: {warning}" for warning in warnings], quiet=quiet)
            print_text(pages.page(reply))
            if reply.error is not None:
                _report_refusal(reply.error)
    except BrokenPipeError:
        return discard()
    except Unwritable as error:
        error.hint = f"The command itself succeeded. {error.hint}"
        raise
    return code


def _print_value(data: Any, warnings: list[str], path: str) -> int:
    """Print one value of an answer: text as it is, everything else as JSON, nothing for ``null``.

    Returns the exit code. The command has done its work when the path turns out to be wrong, and its answer (a lease
    token) must not be lost: the refusal holds it.
    """
    value: Any = {"data": data, "ok": True, "warnings": warnings}
    for word in path.split("."):
        if value is None:  # `data.task.id` of a claim that found nothing
            break
        if isinstance(value, dict) and word in value:
            value = value[word]
        elif isinstance(value, list) and word.isascii() and word.isdigit() and int(word) < len(value):
            value = value[int(word)]
        else:
            known = ", ".join(value) if isinstance(value, dict) else f"0 to {len(value) - 1}" if value else "nothing"
            error = InvalidInput(
                f"print: no {word!r} in the answer; the command itself succeeded",
                hint=f"There: {known}." if isinstance(value, dict | list) else "That is a single value.",
                field="print",
                data=data,
            )
            _print_refusal(error, warnings)
            return error.exit_code
    if value is None:
        return 0
    text = value if isinstance(value, str) else _as_json(value)
    if sys.stdout is not None and sys.stdout.isatty():  # as it is only for a program
        from .tables import clean

        text = clean(text)
    print_text(f"{text}\n")
    return 0


def fail(error: BoardError, warnings: list[str], style: str, *, quiet: bool) -> int:
    """Print a refusal; return the exit code. If standard output cannot be written, it goes to standard error."""
    if isinstance(error, Unwritable):
        _report_refusal(error)
        return error.exit_code
    try:
        if style == "json":
            print_line({"ok": False, "error": error.to_dict(), "warnings": warnings})
        elif style == VALUE:
            _print_refusal(error, warnings)
        elif style == HOOK:
            _report([f"{error.code}: {error.message}"], quiet=quiet)
        elif style == "compact":
            from ..text import compact

            print_text(compact.refusal(error, warnings=warnings))
        else:
            _report([f"warning: {warning}" for warning in warnings], quiet=quiet)
            if "findings" in error.details:  # of `doctor`: print the checks that passed, too
                from . import pages
                from .command import Reply

                complain(pages.page(Reply(error.details, page="doctor")))
            _report_refusal(error)
    except BrokenPipeError:  # nobody reads the output; the exit code remains
        discard()
    except Unwritable as unwritable:
        _report_refusal(unwritable)
        _report_refusal(error)
    return 0 if style == HOOK else error.exit_code


def _report_refusal(error: BoardError) -> None:
    from . import tables

    complain(tables.clean(f"{error.code}: {error.message}\n{error.hint}\n"))


def _print_refusal(error: BoardError, warnings: list[str]) -> None:
    """Print the envelope of a refusal on standard error, since standard output is for one value."""
    complain(_as_json({"ok": False, "error": error.to_dict(), "warnings": warnings}) + "\n")


def bug(error: Exception, *, quiet: bool) -> BoardError:
    """Return the refusal for an unexpected exception; its traceback goes to standard error.

    If a module of Python or of a dependency was taken from elsewhere, the refusal names its file.
    """
    from ..isolation import shadowed

    found = shadowed()
    if found is not None:
        name, file = found
        return Unusable(
            f"{file} is imported instead of the module {name!r}: {type(error).__name__}: {error}",
            hint="Rename it, or take its directory out of PYTHONPATH.",
            module=name,
            file=file,
        )
    if not quiet:
        import traceback

        from .tables import clean

        complain(clean("".join(traceback.format_exception(error))))
    return BoardError(f"{type(error).__name__}: {error}")


def discard() -> int:
    """Redirect standard output to nowhere, because its reader is gone or its disk is full; return exit code 0."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def print_line(value: Any) -> None:
    """Print one JSON value on its own line and flush it."""
    print_text(_as_json(value) + "\n")


def _as_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if text.isascii() and "\x7f" not in text:  # nothing to escape: most answers, at the cost of no import
        return text
    from ..printable import escape_json

    return escape_json(text)


def print_text(text: str) -> None:
    """Print text and flush it.

    Raises:
        BrokenPipeError: its reader is gone.
        Unwritable: standard output cannot be written.
    """
    if sys.stdout is None:  # started with standard output closed
        return
    try:
        sys.stdout.flush()
        # Bytes: standard output may have another encoding, and a message may contain bytes that are not UTF-8.
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unwritable(error) from None


def complain(text: str) -> None:
    """Print text on standard error, if it can be written: it must not decide how a command ends."""
    if sys.stderr is None:  # started with standard error closed
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        pass


def _report(lines: list[str], *, quiet: bool) -> None:
    if lines and not quiet:
        from . import tables

        complain(tables.clean("".join(f"{line}\n" for line in lines)))
