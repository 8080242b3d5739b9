"""The commands for agent setup: prime, setup."""

from __future__ import annotations

import contextlib
import os
import sys

from .. import config, inputs, places
from ..errors import InvalidInput, NotFound
from .command import Call, Command, Reply
from .output import complain, print_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .parsing import Parser

HOOKS = ("session-start", "stop")
AGENTS = ("claude", "codex", "gemini", "cursor")
CLIENTS = (*AGENTS, "agents-md")


def _prime_arguments(parser: Parser) -> None:
    parser.option(
        "--agent", "NAME", "the calling agent (default: ATB_AGENT; in a hook, else a name made from the session id)"
    )
    parser.add_argument("--hook", choices=HOOKS, help="run as a hook of a client, with its JSON on standard input")
    parser.add_argument(
        "--client", choices=AGENTS, default="claude", help="the client that runs the hook (default: claude)"
    )


def _prime(call: Call) -> Reply:
    from ..text.briefing import text

    args = call.args
    if args.hook is not None:
        try:
            print_text(_hook_output(call))
        except NotFound:  # no board: most projects have none
            pass
        except Exception as error:  # a hook must never make its client fail
            if not args.quiet:
                complain(f"atb prime: {type(error).__name__}: {error}\n")
        return Reply(None, printed=True)
    agent = args.agent or os.environ.get("ATB_AGENT") or None
    found = call.board.briefing(agent=agent, command=_command(call, agent, os.environ))
    if args.json or args.format == "json" or call.style == "value":
        return Reply(found)
    print_text(text(found))
    return Reply(None, printed=True)


def _hook_output(call: Call) -> str:
    """Return the output of a hook: one JSON object, or nothing."""
    import json

    from ..setup import hooks
    from ..text.briefing import text
    from .remembered import VARIABLES

    client, start = call.args.client, call.args.hook == hooks.START
    request = hooks.read_input(None if sys.stdin is None else sys.stdin.buffer)
    agent = call.args.agent or os.environ.get("ATB_AGENT") or hooks.agent_of(client, request)
    session = hooks.session_of(request)
    if not start and (agent is None or not hooks.may_remind(request)):
        return ""
    known: Mapping[str, str] = os.environ
    if start:
        named = any(os.environ.get(name) for name in VARIABLES)
        variables = {"ATB_AGENT": agent or "", "ATB_SESSION": "" if named else session or os.urandom(4).hex()}
        known = _export(client, {**variables, "ATB_DATA_DIR": call.config.data_dir})
    found = call.board.briefing(agent=agent, command=_command(call, agent, known, session))
    answer = hooks.started(client, text(found)) if start else hooks.stopped(client, found)
    return "" if answer is None else json.dumps(answer) + "\n"


def _command(call: Call, agent: str | None, environ: Mapping[str, str], session: str | None = None) -> str:
    """Return how the agent runs `atb` in its shell, where these variables are set."""
    from ..setup.clients import program
    from . import calling

    return calling.command(call, agent, program(os.environ, is_shared=False)[0], environ, session)


def _export(client: str, variables: Mapping[str, str]) -> Mapping[str, str]:
    """Set variables in the shells of a session, if the client has a file for that; return what they know then."""
    from ..setup import hooks

    file = os.environ.get("CLAUDE_ENV_FILE")
    unset = {name: value for name, value in variables.items() if value and not os.environ.get(name)}
    if client == "claude" and file and unset:
        with contextlib.suppress(OSError, ValueError):  # the printed text is enough
            hooks.export(file, unset)
            return {**os.environ, **unset}
    return os.environ


def _setup_arguments(parser: Parser) -> None:
    parser.add_argument(
        "client", choices=CLIENTS, help="the client to configure; agents-md: any client that reads AGENTS.md"
    )
    parser.option("--project", "DIR", "configure the project in this directory (default: the root of this repository)")
    parser.flag("--user", "configure all projects of this user")
    parser.flag("--print", "print what would be written to each file, but write nothing")
    parser.flag("--remove", "remove what an earlier setup wrote")
    parser.option("--agent", "NAME", "a fixed name for the agent (default: a separate name for each session)")


def _setup(call: Call) -> Reply:
    from ..setup import boards, clients, files

    args = call.args
    project = _project(call)
    home = os.environ.get("HOME", os.path.expanduser("~"))  # an empty one is refused later, not taken for /
    board = boards.choose(data_dir=args.data_dir, file=args.config, project=project, home=home, environ=os.environ)
    if not args.remove:
        boards.refuse_wrong(board, project=project, home=home)
        call.warn(*board.warnings)
    program, is_on_path = clients.program(os.environ, is_shared=project is not None)
    program = [inputs.line(word, "program", inputs.PATH) for word in program]
    agent = None if args.agent is None else inputs.agent_name(args.agent, "agent")
    server = clients.Server(program, board.options, agent)
    plan = files.plan(clients.pieces(args.client, server, project=project, environ=os.environ), remove=args.remove)
    is_created = False
    if not args.print:
        files.write(plan)
        try:
            is_created = not args.remove and _create_board(call, board.config, board.data_dir)
        except BaseException:
            files.restore(plan)
            raise
    if project is not None and not is_on_path and not args.remove:
        call.warn(f"`atb` on PATH is not this program, so the files name its path on this machine: {program[0]}")
    call.warn(*(f"{change.path}: {note}" for change in plan for note in change.notes))
    changed = [change.to_dict() for change in plan]
    if all(change.action == files.UNCHANGED for change in plan):
        call.warn("already up to date")
    if not args.print:
        for change in changed:
            del change["content"]
    data = {
        "client": args.client,
        "project": project,
        "data_dir": board.data_dir,
        "created": is_created,
        "files": changed,
    }
    if not args.remove:
        data["next"] = clients.next_step(args.client, board.data_dir, user=args.user)
    return Reply(data, page="setup")


def _create_board(call: Call, found: config.Config, data_dir: str) -> bool:
    """Create the board that the client is configured for, unless it exists; say whether it was created."""
    from . import project

    return not places.has_board(data_dir) and bool(project.create(call, found, data_dir)["created"])


def _project(call: Call) -> str | None:
    """Return the directory of the project; ``None``: all projects of the user.

    It is the one given, else the root of the repository around the working directory: the main checkout's, but for
    worktrees of a bare repository, which has none.
    """
    args = call.args
    if args.user:
        if args.project is not None:
            raise InvalidInput("user: pass --project or --user, not both", field="user")
        return None
    if args.project is not None:
        given = os.path.realpath(os.path.expanduser(inputs.line(args.project, "project", inputs.PATH)))
        if not os.path.isdir(given):
            raise InvalidInput(f"project: not a directory: {given}", field="project")
        return given
    start = config.working_directory()
    if not start:
        raise InvalidInput("project: the working directory no longer exists", field="project")
    found = places.project_of(start)
    if found is None:
        return start
    return found.top if found.is_bare else found.root


COMMANDS = {
    "prime": Command(
        _prime,
        _prime_arguments,
        "Print what an agent needs to start, or to continue after its context was cut.",
        "Prints plain text of at most 2000 characters: who the agent is, what it holds, how to get a lost\n"
        "token back, what is ready for it, what waits for a person, and how to work, in commands that run as\n"
        "they are printed. With --json or --format json, `data` has the same: {agent, board, exists, holds,\n"
        "lost, ready, assigned, attention, command, protocol}; `command` is how the agent runs `atb` in its\n"
        "shell. With --hook, the output has the form that the client expects, and the exit code is always 0.\n"
        "At the start of a session it is this text; at its stop, one reminder of the leases that the agent\n"
        "still holds.",
        ("atb prime --agent ada", "atb prime --json", "atb prime --hook session-start --client codex"),
        reads=True,
    ),
    "setup": Command(
        _setup,
        _setup_arguments,
        "Configure Claude Code, Codex, Gemini CLI, Cursor or AGENTS.md to use this board.",
        "Writes the MCP server, a short guide and the hooks that the client supports, into the root of the\n"
        "repository, and creates the project's board if there is none, as `atb init` does. Everything else in\n"
        "these files stays as it is, and --remove restores them. All files are checked before the first is\n"
        "written. The command is refused if a file has an entry of the same name that `atb` did not write.\n"
        "`data` is {client, project, data_dir, created, files, next}. Each file is {path, action}, where action\n"
        "is create, update, delete, unchanged or kept. With --print it also has {content}: the part that is\n"
        "written, or that --remove removes.",
        (
            "atb setup claude --print",
            "atb setup claude",
            "atb setup codex --project ~/code/app --data-dir ~/boards/app",
            "atb setup cursor --remove",
        ),
        needs_board=False,
    ),
}
