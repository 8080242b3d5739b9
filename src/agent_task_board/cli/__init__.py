"""The command line: parse, one call of the service, one envelope on standard output.

The name of the command is read first, and only its module and parser are loaded. Loading all of them would double the
time of a claim.
"""

from __future__ import annotations

import gc
import os
import sys

from ..errors import BoardError, InvalidInput
from . import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from .command import Call, Command, Reply

INTERRUPTED = 130
"""The exit code after Ctrl-C, as in shells: 128 plus the number of the signal."""

COMPLETE = "__complete"
"""What a shell's completion script calls instead of a command."""


def run() -> NoReturn:
    """Run one command and end the process; the entry point of ``atb``.

    The process runs for milliseconds, so it does not collect garbage and skips the shutdown of the interpreter, which
    would take a tenth of the time of a claim. All output is written, and the board is closed, before it exits.
    """
    gc.set_threshold(100_000)
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:  # the reader is gone
            pass
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, print its answer, start the delivery of hook notifications, and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == [COMPLETE]:
        from .completion import answer

        return answer(arguments[1:])
    calls: list[Call] = []
    code = _answer(arguments, calls)
    for call in calls:
        if call.has_pending_hooks:
            from .detached import deliver

            deliver(call.config)
    return code


def _answer(arguments: list[str], calls: list[Call]) -> int:
    """Run one command, print its answer, and return the exit code; its call is appended to ``calls``."""
    quiet = "--quiet" in arguments
    warnings: list[str] = []
    style = "json"
    try:
        style = output.style_for(arguments, os.environ, at_terminal=sys.stdout is not None and sys.stdout.isatty())
        reply = _run(arguments, warnings, calls, style)
        code = output.succeed(reply, warnings, style, quiet=quiet, path=output.path_to_print(arguments))
        if reply.then is not None:
            reply.then()
        return code
    except BoardError as error:
        return output.fail(error, warnings, style, quiet=quiet)
    except SystemExit as stop:  # a help page was printed
        return int(stop.code or 0)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return output.discard()
    except Exception as error:
        from .. import exhaustion

        refusal = exhaustion.refusal(error) or output.bug(error, quiet=quiet)
        return output.fail(refusal, warnings, style, quiet=quiet)


def _run(given: list[str], warnings: list[str], calls: list[Call], style: str) -> Reply:
    from . import parsing

    arguments = list(given)
    place = parsing.place_of_command(arguments)
    if place is None:
        command, name = _without_command(arguments, style), ""
    else:
        name = real_name(arguments.pop(place))
        if name == "help":
            _print_help(arguments)
        command = find(name)
    parsed = parsing.parser_of(name, command).parse_args(arguments)

    from .command import Call

    call = Call(parsed, command, warnings, style)
    calls.append(call)
    try:
        return command.run(call)
    finally:
        call.close()


def real_name(name: str) -> str:
    """Return the name of a command that may be given by another one."""
    from .registry import ALIASES

    return ALIASES.get(name, name)


def find(name: str) -> Command:
    """Return the command with this name.

    Raises:
        InvalidInput: unknown command; the hint names the one that was probably meant.
    """
    from .registry import ALIASES, MODULES

    name = ALIASES.get(name, name)
    if name not in MODULES:
        from .neighbours import hint

        raise InvalidInput(f"unknown command: {name[:60]!r}", hint=hint(name))
    module = __import__(f"{__name__}.{MODULES[name]}", fromlist=["COMMANDS"])
    command: Command = module.COMMANDS[name]
    return command


def _without_command(arguments: list[str], style: str) -> Command:
    """Return the command that ``atb`` alone runs; print the overview of all commands if that is asked for."""
    if "-h" in arguments or "--help" in arguments:
        _print_help([])
    from . import home

    if not {"--version", "-V"}.isdisjoint(arguments):
        return home.VERSION
    if style == "table" and sys.stdout.isatty():
        return home.BOARD
    raise InvalidInput("command: missing", hint="See `atb --help`. Agents usually start with `atb claim`.")


def _print_help(arguments: list[str]) -> NoReturn:
    """Print the page of a command, or the overview of all."""
    from . import output, parsing
    from .registry import overview

    names = [word for word in arguments if not word.startswith("-")]
    if len(names) > 1:
        raise InvalidInput("help: one command at a time", hint="See `atb help`.")
    if names:
        name = real_name(names[0])
        output.print_text(parsing.parser_of(name, find(name)).format_help())
    else:
        output.print_text(overview())
    raise SystemExit(0)
