"""The commands that start a server: serve for browsers and programs, mcp for an agent."""

from __future__ import annotations

import copy
import os
import signal

from .. import identity, inputs
from ..errors import Busy, Unusable
from ..instants import SECOND
from .command import Call, Command, Reply
from .output import complain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from ..service import Board
    from .parsing import Parser


MCP_START_TIMEOUT = SECOND
"""Milliseconds that ``atb mcp`` waits for the write lock at its start. Clients wait for a server only a few seconds."""


class _Terminated(BaseException):
    """The process received SIGTERM."""


def _arguments(parser: Parser) -> None:
    parser.option("--host", "ADDRESS", "the address to listen on (default: 127.0.0.1)")
    parser.whole("--port", "the port to listen on, 0 for any free one (default: 8765)")
    parser.repeated(
        "--allow-host", "HOST[:PORT]", "accept requests for this host, too: for a reverse proxy or a forwarded port"
    )
    parser.repeated("--allow-user", "NAME", "accept connections of this user of the machine, too: for a reverse proxy")
    parser.flag("--auth", "ask for a key (`atb key`) or a sign-in by a link (`atb open`)")
    parser.flag("--allow-remote", "allow an address that other machines can reach; includes --auth")
    parser.flag("--read-only", "refuse every change, and open the board read-only")


def _serve(call: Call) -> Reply:
    from ..web.server import Server, to_standard_error

    args, values = call.args, {key: value for key, (value, _) in call.config.values.items()}
    read_only = args.read_only or values["serve.read_only"]
    port = values["serve.port"] if args.port is None else inputs.integer(args.port, "port", 0, 65_535)
    call.warn(*(sentence for sentence in call.config.ignored if sentence not in call.warnings))
    board = _board(call, read_only=read_only, actor=identity.person(os.environ))
    if read_only:
        call.require(board)
        board.revision()
    else:
        call.refuse_place()
    server = Server(
        board,
        host=args.host or values["serve.host"],
        port=port,
        read_only=read_only,
        allow_remote=args.allow_remote,
        allow_hosts=[*values["serve.allow_hosts"], *args.allow_host],
        allow_users=args.allow_user,
        auth=args.auth,
        log=None if args.quiet else to_standard_error,
    )
    if not read_only:
        _create_or_migrate(call, board)
    call.report_board(board)
    warnings = []
    if server.is_remote:
        warnings.append("other machines can reach this server, and the connection is not encrypted")
    elif not (server.access.tells_users or server.access.asks):
        warnings.append("this system does not tell who opens a connection: any user of this machine can use the board")
    urls, asks = server.urls, server.access.asks
    link = f"{urls[0]}#code={server.access.credentials.new_code()}" if asks else None
    data = {"url": urls[0], "urls": urls, "read_only": read_only, "auth": asks, "link": link}
    return Reply(data, page="served", warnings=warnings, then=lambda: _run(server.run, board, urls[0], asks=asks))


def _run(serve: Callable[[], None], board: Board, url: str, *, asks: bool) -> None:
    """Serve until Ctrl-C or SIGTERM; meanwhile, `atb open` finds the server."""
    from ..web.running import announced

    signal.signal(signal.SIGTERM, _stop)
    try:
        with announced(board.board_id(), url, auth=asks):
            serve()
    except _Terminated:
        pass
    finally:
        board.leave_thread()  # not close(), which waits for requests that wait for the write lock


def _stop(*_: object) -> NoReturn:
    raise _Terminated


def _mcp_arguments(parser: Parser) -> None:
    parser.flag("--read-only", "offer only the tools that read, and open the board read-only")


def _mcp(call: Call) -> Reply:
    args, agent = call.args, os.environ.get("ATB_AGENT")
    agent = inputs.agent_name(agent, "ATB_AGENT") if agent else None
    board = _board(call, read_only=args.read_only)
    try:
        if args.read_only:
            call.require(board)
            board.revision()
        else:
            _create_or_migrate(call, board, timeout=MCP_START_TIMEOUT)
    except Busy:  # start anyway: if the server exits, the client has no tools
        if not args.read_only:
            board = _board(call, create=not board.exists())
            call.warn(f"board busy: {board.path}; the first write creates or migrates it")
    call.report_board(board)
    if not args.quiet:  # standard output is the protocol's
        from .tables import clean

        complain(clean("".join(f"warning: {warning}\n" for warning in call.warnings)))

    def then() -> None:
        from ..mcp_server.server import serve

        serve(board, agent=agent, read_only=args.read_only, quiet=args.quiet)

    return Reply(None, printed=True, then=then)


def _board(call: Call, **how: Any) -> Board:
    """Open the board for a server.

    By default it does not create a board: if the board vanished later, an empty new one would hide the loss.
    """
    from ..service import Board

    return Board(call.config.data_dir, **{"create": False, "settings": call.config.settings, **how})


def _create_or_migrate(call: Call, board: Board, timeout: int | None = None) -> None:
    """Create the board if it is missing, or migrate it if its schema is older; otherwise take no write lock.

    Raises:
        Busy: no write lock within ``timeout`` milliseconds (default: the busy timeout).
    """
    try:
        board.revision()
        if not board.is_missing:
            return
    except (Busy, Unusable):  # an older schema, or a fault that create() reports
        pass
    call.refuse_place()
    settings = copy.copy(call.config.settings)
    settings.busy_timeout = min(settings.busy_timeout, timeout or settings.busy_timeout)
    with _board(call, create=True, settings=settings) as creator:
        creator.create()
        call.report_board(creator)


COMMANDS = {
    "serve": Command(
        _serve,
        _arguments,
        "Start the server for the browser board and the HTTP API.",
        "Prints one envelope when it is ready, with `data` {url, urls, read_only, auth, link}, and then runs\n"
        "until Ctrl-C or SIGTERM. Only your own processes on this machine can use it; --allow-user lets those\n"
        "of another user in. With --auth, agents need a key (`atb key`), and `link` signs one browser in, once,\n"
        "within 10 minutes; `atb open` makes another. `GET /api` returns the documentation of the API. Writes\n"
        "and refusals are logged on standard error. Creates the board if it is missing, except with\n"
        "--read-only. Behind a reverse proxy, pass its host name with --allow-host, and the user that it runs\n"
        "as with --allow-user.",
        (
            "atb serve",
            "atb serve --port 9000 --read-only",
            "atb serve --auth --host 0.0.0.0 --allow-remote",
            "atb serve --allow-host board.example --allow-user www-data",
        ),
    ),
    "mcp": Command(
        _mcp,
        _mcp_arguments,
        "Start an MCP server on standard input and output.",
        "MCP clients start this command; it is not for a terminal. Standard output has only protocol\n"
        "messages, or one envelope if the server cannot start. ATB_AGENT is the name of the agent; without\n"
        "it, the server chooses a unique name. It runs until its client closes it, SIGTERM or Ctrl-C. Creates\n"
        "the board if it is missing.",
        (
            "atb mcp",
            "ATB_AGENT=ada atb mcp --data-dir ~/board",
            "atb mcp --read-only",
        ),
    ),
}
