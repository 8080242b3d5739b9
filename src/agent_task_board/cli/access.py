"""The commands for access to a server that asks for it: open, key. Both are for people."""

from __future__ import annotations

import os
import re
import sys

from ..errors import InvalidInput, NotFound, NotPermitted
from .command import Call, Command, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..credentials import Credentials
    from .parsing import Parser

ACTIONS = ("add", "list", "revoke")
_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+/?")


def _open_arguments(parser: Parser) -> None:
    parser.option("--url", "URL", "the address of the server, behind a reverse proxy (default: that of a running one)")
    parser.flag("--no-browser", "do not start a browser")


def _open(call: Call) -> Reply:
    _refuse_agent(call, "atb open")
    url = call.args.url
    if url is not None and not _URL.fullmatch(url):
        raise InvalidInput(f"url: not the address of a server: {url[:100]!r}", hint="Example: https://board.example/")
    asks = True
    if url is None:
        url, asks = _running(call)
    code = _credentials(call).new_code() if asks else None
    link = url if code is None else f"{url.rstrip('/')}/#code={code}"
    return Reply(
        {"url": url, "link": link, "auth": asks},
        page="opened",
        then=(lambda: show(link)) if call.style == "table" and not call.args.no_browser else None,
    )


def _running(call: Call) -> tuple[str, bool]:
    """Return the address of the board's server, and whether it asks for a key or a session.

    Raises:
        NotFound: none runs.
    """
    from ..web.running import find

    found = find(_board_id(call))
    if not found:
        raise NotFound("no server of this board is running", hint="Start one with `atb serve`, or pass --url.")
    return found[0]["url"], found[0]["auth"]


def show(link: str) -> None:
    """Show a link in the browser of the desktop, if there is a desktop."""
    has_desktop = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if has_desktop or sys.platform in ("darwin", "win32"):
        import webbrowser

        webbrowser.open(link)


def _key_arguments(parser: Parser) -> None:
    parser.add_argument("action", choices=ACTIONS, help="the operation")
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="with add: the agent; with revoke: an agent or the id of a key"
    )
    parser.flag("--sessions", "with revoke: sign out all browsers")


def _key(call: Call) -> Reply:
    _refuse_agent(call, "atb key")
    args, action = call.args, call.args.action
    if args.sessions and action != "revoke":
        raise InvalidInput("sessions: requires `revoke`", field="sessions")
    if action == "list" and args.name is not None:
        raise InvalidInput("name: not allowed with `list`", field="name")
    if args.name is None and (action == "add" or (action == "revoke" and not args.sessions)):
        raise InvalidInput(f"name: missing: `{action}` requires the name of an agent", field="name")
    credentials = _credentials(call)
    if action == "list":
        return _reply(call, {"keys": credentials.keys(), "sessions": credentials.sessions()})
    if action == "add":
        entry, key = credentials.add_key(args.name)
        return _reply(call, {**entry, "key": key})
    revoked = [] if args.name is None else credentials.revoke_keys(args.name)
    ended = credentials.end_sessions() if args.sessions else 0
    return _reply(call, {"revoked": revoked, "sessions": ended})


def _reply(call: Call, data: dict[str, object]) -> Reply:
    return Reply(data, page="keys", zone=call.config.settings.timezone)


def _credentials(call: Call) -> Credentials:
    from ..credentials import Credentials

    return Credentials(_board_id(call))


def _board_id(call: Call) -> str:
    board_id = call.board.board_id()
    if board_id is None:
        raise NotFound(f"there is no board at {call.board.path}")
    return board_id


def _refuse_agent(call: Call, command: str) -> None:
    """Refuse a caller that says it is an agent.

    Raises:
        NotPermitted: it does.
    """
    agent = call.agent_if_any()
    if agent is not None:
        raise NotPermitted(
            f"`{command}` is for people; the caller is the agent {agent!r}",
            hint="Ask a person to run it in a shell of their own.",
        )


COMMANDS = {
    "open": Command(
        _open,
        _open_arguments,
        "Open the board of a running server in a browser; people only.",
        "Prints the address and, where the server asks for a sign-in, a link with a one-time code, which is\n"
        "valid for 10 minutes. At a terminal with a desktop, it starts the browser. `data` is {url, link,\n"
        "auth}.",
        ("atb open", "atb open --url https://board.example/"),
        reads=True,
    ),
    "key": Command(
        _key,
        _key_arguments,
        "Manage the keys with which agents use a server that asks for one; people only.",
        "`add NAME` prints a new key: whoever sends it as `Authorization: Bearer KEY` acts as the agent NAME\n"
        "and can do nothing that is for people. It is shown only then; its SHA-256 is kept in your state\n"
        "directory, not on the board. `revoke` ends all keys of an agent, or one by its id, at once, open\n"
        "streams included; with --sessions, it signs out all browsers. `data` is {id, name, created_at, key}\n"
        "for add, {keys, sessions} for list, {revoked, sessions} for revoke.",
        ("atb key add ada", "atb key list", "atb key revoke ada", "atb key revoke --sessions"),
        reads=True,
    ),
}
