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
        style = output.style_for(arguments, os.environ)
        reply = _run(arguments, warnings, calls)
        code = output.succeed(reply, warnings, style, quiet=quiet)
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


def _run(arguments: list[str], warnings: list[str], calls: list[Call]) -> Reply:
    from . import parsing, registry

    place = parsing.place_of_command(arguments)
    if place is None:
        return _without_command(arguments)
    name = registry.ALIASES.get(arguments[place], arguments[place])
    del arguments[place]
    command = find(name)
    parsed = parsing.parser_of(name, command).parse_args(arguments)

    from .command import Call

    call = Call(parsed, command, warnings)
    calls.append(call)
    try:
        return command.run(call)
    finally:
        call.close()


def find(name: str) -> Command:
    """Return the command with this name.

    Raises:
        InvalidInput: unknown command; the hint names the one that was probably meant.
    """
    from .registry import MODULES

    if name not in MODULES:
        from .neighbours import hint

        raise InvalidInput(f"unknown command: {name[:60]!r}", hint=hint(name))
    module = __import__(f"{__name__}.{MODULES[name]}", fromlist=["COMMANDS"])
    command: Command = module.COMMANDS[name]
    return command


def _without_command(arguments: list[str]) -> Reply:
    if "-h" in arguments or "--help" in arguments:
        from .registry import overview

        sys.stdout.write(overview())
        raise SystemExit(0)
    if "--version" in arguments:
        from .._version import __version__
        from ..storage.db import SQLITE_VERSION
        from .command import Reply

        python = ".".join(map(str, sys.version_info[:3]))
        return Reply({"version": __version__, "python": python, "sqlite": ".".join(map(str, SQLITE_VERSION))})
    raise InvalidInput("command: missing", hint="See `atb --help`. Agents usually start with `atb claim`.")
