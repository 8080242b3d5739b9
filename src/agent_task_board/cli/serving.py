"""The commands that serve the board: serve to browsers and programs, mcp to an agent."""

from __future__ import annotations

import copy
import os
import signal
import sys

from .. import identity, inputs
from ..errors import Busy, Unusable
from ..instants import SECOND
from .command import Call, Command, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from ..service import Board
    from .parsing import Parser


MAKING = SECOND
"""Milliseconds that the start of ``atb mcp`` waits for the write lock: clients wait for it no longer than seconds."""


class _Terminated(BaseException):
    """The process was asked to end."""


def _arguments(parser: Parser) -> None:
    parser.option("--host", "ADDRESS", "the address to listen on (default: 127.0.0.1)")
    parser.whole("--port", "the port to listen on, 0 for any free one (default: 8765)")
    parser.repeated(
        "--allow-host", "HOST[:PORT]", "also answer for this host: behind a reverse proxy, or through a forwarded port"
    )
    parser.flag("--allow-remote", "listen on an address that other machines reach; everybody there may do everything")
    parser.flag("--read-only", "refuse every change, and open the board for reading only")


def _serve(call: Call) -> Reply:
    from ..web.server import Server, to_standard_error

    args, values = call.args, {key: value for key, (value, _) in call.config.values.items()}
    read_only = args.read_only or values["serve.read_only"]
    port = values["serve.port"] if args.port is None else inputs.integer(args.port, "port", 0, 65_535)
    board = _board(call, read_only=read_only, actor=identity.person(os.environ))
    server = Server(
        board,
        host=args.host or values["serve.host"],
        port=port,
        read_only=read_only,
        allow_remote=args.allow_remote,
        allow_hosts=[*values["serve.allow_hosts"], *args.allow_host],
        log=None if args.quiet else to_standard_error,
    )
    if read_only:
        board.revision()
    else:
        _make(call, board)
    call.tell(board)
    warnings = []
    if server.is_remote:
        warnings.append("other machines can reach this server, and whoever reaches it may do everything")
    return Reply({"url": server.url, "read_only": read_only}, warnings=warnings, then=lambda: _run(server.run, board))


def _run(serve: Callable[[], None], board: Board) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        serve()
    except _Terminated:
        pass
    finally:
        board.leave_thread()  # not close(): that would wait for a request that still waits for the write lock


def _stop(*_: object) -> NoReturn:
    raise _Terminated


def _mcp_arguments(parser: Parser) -> None:
    parser.flag("--read-only", "offer only what reads, and open the board for reading only")


def _mcp(call: Call) -> Reply:
    args, agent = call.args, os.environ.get("ATB_AGENT")
    agent = inputs.agent_name(agent, "ATB_AGENT") if agent else None
    board = _board(call, read_only=args.read_only)
    try:
        if args.read_only:
            board.revision()
        else:
            _make(call, board, patience=MAKING)
    except Busy:  # dying would leave the client without a server
        if not args.read_only:
            board = _board(call, create=not board.exists())
            call.warnings.append(f"{board.path} is busy; the first write makes it, or brings it up to date")
    call.tell(board)
    if not args.quiet:  # standard output is the protocol's
        sys.stderr.write("".join(f"warning: {warning}\n" for warning in call.warnings))

    def then() -> None:
        from ..mcp_server.server import serve

        serve(board, agent=agent, read_only=args.read_only, quiet=args.quiet)

    return Reply(None, printed=True, then=then)


def _board(call: Call, **how: Any) -> Board:
    """Open the board for as long as a server runs.

    It makes no board unless asked to: in the place of one that vanishes, an empty one would go unnoticed.
    """
    from ..service import Board

    return Board(call.config.data_dir, **{"create": False, "settings": call.config.settings, **how})


def _make(call: Call, board: Board, patience: int | None = None) -> None:
    """Make the board or bring its schema up to date, if need be; without that the write lock is not asked for.

    Raises:
        Busy: there was need, and no write lock within ``patience`` milliseconds (by default the busy timeout).
    """
    try:
        board.revision()
        if not board.is_missing:
            return
    except (Busy, Unusable):  # an older schema, or something worse, which is told now
        pass
    settings = copy.copy(call.config.settings)
    settings.busy_timeout = min(settings.busy_timeout, patience or settings.busy_timeout)
    with _board(call, create=True, settings=settings) as maker:
        maker.create()
        call.tell(maker)


COMMANDS = {
    "serve": Command(
        _serve,
        _arguments,
        "Show the board in a browser, and answer the HTTP API.",
        "Prints one envelope as soon as it listens: `data` is {url, read_only}; then serves until Ctrl-C or SIGTERM.\n"
        "Only this machine can reach it, unless --allow-remote says otherwise: the board knows no accounts.\n"
        "`GET /api` documents the API. Writes and refusals are logged on standard error. Makes the board if there is\n"
        "none yet.",
        (
            "atb serve",
            "atb serve --port 9000 --read-only",
            "atb serve --allow-host board.example   # behind a reverse proxy",
        ),
    ),
    "mcp": Command(
        _mcp,
        _mcp_arguments,
        "Serve the board to an MCP client, over standard input and output.",
        "For the configuration of an MCP client, not for a terminal. Standard output carries nothing but protocol,\n"
        "unless the server cannot start: then it is an envelope. ATB_AGENT says who the client is; otherwise it\n"
        "gets a name of its own. Ends with its client, or by SIGTERM or Ctrl-C. Makes the board if there is none yet.",
        (
            "atb mcp",
            "ATB_AGENT=ada atb mcp --data-dir ~/board",
            "atb mcp --read-only",
        ),
    ),
}
