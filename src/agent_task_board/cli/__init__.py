"""The command line: parse, one call of the service, one envelope on standard output.

The command's name is found first, and then only that command's parser and module are loaded: all of them together
would double the time of a claim.
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
"""The exit code after Ctrl-C, as shells have it: 128 and the number of the signal."""


def run() -> NoReturn:
    """Run one command as a process of its own; what ``atb`` starts.

    A process that lives for milliseconds need not collect garbage, nor take its interpreter apart at the end: that
    alone would be a tenth of a claim. Everything that matters is written and closed by then.
    """
    gc.set_threshold(100_000)
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:  # its reader has gone
            pass
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, let hooks be told of what it did once its answer is out, and return its exit code."""
    calls: list[Call] = []
    code = _answer(list(sys.argv[1:] if argv is None else argv), calls)
    for call in calls:
        if call.has_pending_hooks:
            from .detached import deliver

            deliver(call.config)
    return code


def _answer(arguments: list[str], calls: list[Call]) -> int:
    """Run one command, print its answer, and return its exit code; its call is appended to ``calls``."""
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
    except SystemExit as stop:  # a help page was shown
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
    from . import parsing

    place = parsing.place_of_command(arguments)
    if place is None:
        return _without_command(arguments)
    name = arguments.pop(place)
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
    """Return the command of a name.

    Raises:
        InvalidInput: there is none; the hint names the nearest.
    """
    from .registry import MODULES

    if name not in MODULES:
        from .parsing import did_you_mean

        raise InvalidInput(
            f"there is no command {name[:60]!r}", hint=did_you_mean(name, MODULES) or "See `atb --help`."
        )
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
    raise InvalidInput("name a command", hint="See `atb --help`; most agents start with `atb claim`.")
