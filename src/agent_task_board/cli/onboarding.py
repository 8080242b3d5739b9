"""The commands for agent setup: prime, setup."""

from __future__ import annotations

import contextlib
import os
import sys

from .. import inputs
from ..errors import InvalidInput
from .command import Call, Command, Reply
from .output import print_text

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
        except Exception as error:  # a hook must never make its client fail
            if not args.quiet:
                sys.stderr.write(f"atb prime: {type(error).__name__}: {error}\n")
        return Reply(None, printed=True)
    found = call.board.briefing(agent=args.agent or os.environ.get("ATB_AGENT") or None)
    if args.json or args.format == "json" or call.style == "value":
        return Reply(found)
    print_text(text(found))
    return Reply(None, printed=True)


def _hook_output(call: Call) -> str:
    """Return the output of a hook: one JSON object, or nothing."""
    import json

    from ..setup import hooks
    from ..text.briefing import text

    client, start = call.args.client, call.args.hook == hooks.START
    request = hooks.read_input(None if sys.stdin is None else sys.stdin.buffer)
    agent = call.args.agent or os.environ.get("ATB_AGENT") or hooks.agent_of(client, request)
    if not start and (agent is None or not hooks.may_remind(request)):
        return ""
    found = call.board.briefing(agent=agent)
    if start:
        _export(client, {"ATB_AGENT": found["agent"] or "", "ATB_DATA_DIR": call.config.data_dir})
    answer = hooks.started(client, text(found)) if start else hooks.stopped(client, found)
    return "" if answer is None else json.dumps(answer) + "\n"


def _export(client: str, variables: Mapping[str, str]) -> None:
    """Set variables in the shells of a session, if the client has a file for that."""
    from ..setup import hooks

    file = os.environ.get("CLAUDE_ENV_FILE")
    unset = {name: value for name, value in variables.items() if value and not os.environ.get(name)}
    if client == "claude" and file and unset:
        with contextlib.suppress(OSError, ValueError):  # the printed text is enough
            hooks.export(file, unset)


def _setup_arguments(parser: Parser) -> None:
    parser.add_argument(
        "client", choices=CLIENTS, help="the client to configure; agents-md: any client that reads AGENTS.md"
    )
    parser.option("--project", "DIR", "configure the project in this directory (default: the working directory)")
    parser.flag("--user", "configure all projects of this user")
    parser.flag("--print", "print what would be written to each file, but write nothing")
    parser.flag("--remove", "remove what an earlier setup wrote")
    parser.option("--agent", "NAME", "a fixed name for the agent (default: a separate name for each session)")


def _setup(call: Call) -> Reply:
    from .. import config
    from ..setup import clients, files

    args = call.args
    project = _project(call)
    named = None if args.config is None else os.path.abspath(os.path.expanduser(args.config))
    found = config.load(
        data_dir=None if args.data_dir is None else os.path.abspath(os.path.expanduser(args.data_dir)),
        config=named,
        environ=os.environ,
        cwd=project,
    )
    call.warn(*found.warnings)
    program = [inputs.line(word, "program", inputs.PATH) for word in clients.program()]
    agent = None if args.agent is None else inputs.agent_name(args.agent, "agent")
    server = clients.Server(program, found.data_dir, named, agent)
    plan = files.plan(clients.pieces(args.client, server, project=project, environ=os.environ), remove=args.remove)
    if not args.print:
        files.write(plan)
    call.warn(*(f"{change.path}: {note}" for change in plan for note in change.notes))
    if args.user and not args.remove and found.values["data_dir"][1] == "default":
        call.warn(f"no --data-dir given: all projects will share the board in {found.data_dir}")
    changed = [change.to_dict() for change in plan]
    if all(change.action == files.UNCHANGED for change in plan):
        call.warn("already up to date")
    if not args.print:
        for change in changed:
            del change["content"]
    data = {"client": args.client, "data_dir": found.data_dir, "files": changed}
    if not args.remove:
        data["next"] = clients.next_step(args.client, found.data_dir, user=args.user)
    return Reply(data, page="setup")


def _project(call: Call) -> str | None:
    """Return the directory of the project; ``None``: all projects of the user."""
    args = call.args
    if args.user:
        if args.project is not None:
            raise InvalidInput("user: pass --project or --user, not both", field="user")
        return None
    project = os.path.abspath(os.path.expanduser(inputs.line(args.project or ".", "project", inputs.PATH)))
    if not os.path.isdir(project):
        raise InvalidInput(f"project: not a directory: {project}", field="project")
    return project


COMMANDS = {
    "prime": Command(
        _prime,
        _prime_arguments,
        "Print what an agent needs to start, or to continue after its context was cut.",
        "Prints plain text of at most 1200 characters: who the agent is, what it holds, how to get a lost\n"
        "token back, what is ready for it, what waits for a person, and how to work. With --json or --format\n"
        "json, `data` has the same: {agent, board, exists, holds, lost, ready, assigned, attention,\n"
        "protocol}. With --hook, the output has the form that the client expects, and the exit code is always\n"
        "0. At the start of a session it is this text; at its stop, one reminder of the leases that the agent\n"
        "still holds.",
        ("atb prime --agent ada", "atb prime --json", "atb prime --hook session-start --client codex"),
        reads=True,
    ),
    "setup": Command(
        _setup,
        _setup_arguments,
        "Configure Claude Code, Codex, Gemini CLI, Cursor or AGENTS.md to use this board.",
        "Writes the MCP server, a short guide and the hooks that the client supports, with absolute paths.\n"
        "Everything else in these files stays as it is, and --remove restores them. All files are checked\n"
        "before the first is written. The command is refused if a file has an entry of the same name that\n"
        "`atb` did not write. `data` is {client, data_dir, files, next}. Each file is {path, action}, where\n"
        "action is create, update, delete, unchanged or kept. With --print it also has {content}: the part\n"
        "that is written, or that --remove removes.",
        (
            "atb setup claude --print",
            "atb setup claude",
            "atb setup codex --project ~/code/app --data-dir ~/boards/app",
            "atb setup cursor --remove",
        ),
    ),
}
