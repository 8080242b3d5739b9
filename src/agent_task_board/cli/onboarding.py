"""The commands that bring agents in: prime, setup."""

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
    parser.option("--agent", "NAME", "who asks (default: ATB_AGENT; in a hook else a name made of the session's id)")
    parser.add_argument("--hook", choices=HOOKS, help="answer a client's hook, whose JSON is on standard input")
    parser.add_argument("--client", choices=AGENTS, default="claude", help="whose hook it is (default: claude)")


def _prime(call: Call) -> Reply:
    from ..text.briefing import text

    args = call.args
    if args.hook is not None:
        try:
            print_text(_answer(call))
        except Exception as error:  # a hook must not fail its client
            if not args.quiet:
                sys.stderr.write(f"atb prime: {type(error).__name__}: {error}\n")
        return Reply(None, printed=True)
    found = call.board.briefing(agent=args.agent or os.environ.get("ATB_AGENT") or None)
    if args.json or args.format == "json":
        return Reply(found)
    print_text(text(found))
    return Reply(None, printed=True)


def _answer(call: Call) -> str:
    """Return what a hook prints: one JSON object, or nothing."""
    import json

    from ..setup import hooks
    from ..text.briefing import text

    client, start = call.args.client, call.args.hook == hooks.START
    asked = hooks.read_input(None if sys.stdin is None else sys.stdin.buffer)
    agent = call.args.agent or os.environ.get("ATB_AGENT") or hooks.agent_of(client, asked)
    if not start and (agent is None or not hooks.may_remind(asked)):
        return ""
    found = call.board.briefing(agent=agent)
    if start:
        _export(client, {"ATB_AGENT": found["agent"] or "", "ATB_DATA_DIR": call.config.data_dir})
    answer = hooks.started(client, text(found)) if start else hooks.stopped(client, found)
    return "" if answer is None else json.dumps(answer) + "\n"


def _export(client: str, variables: Mapping[str, str]) -> None:
    """Tell the shells of a session who its agent is and where the board is, where the client has a file for that."""
    from ..setup import hooks

    file = os.environ.get("CLAUDE_ENV_FILE")
    unset = {name: value for name, value in variables.items() if value and not os.environ.get(name)}
    if client == "claude" and file and unset:
        with contextlib.suppress(OSError, ValueError):  # the text alone will do
            hooks.export(file, unset)


def _setup_arguments(parser: Parser) -> None:
    parser.add_argument("client", choices=CLIENTS, help="which client; agents-md: whatever reads AGENTS.md")
    parser.option("--project", "DIR", "for the project in this directory (default: the working directory)")
    parser.flag("--user", "for all projects of this user")
    parser.flag("--print", "show every file with what would be written, and write nothing")
    parser.flag("--remove", "take out what an earlier setup wrote")
    parser.option("--agent", "NAME", "a fixed name for the agent (default: each session has its own)")


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
    call.warnings.extend(found.warnings)
    program = [inputs.line(word, "program", inputs.PATH) for word in clients.program()]
    agent = None if args.agent is None else inputs.agent_name(args.agent, "agent")
    server = clients.Server(program, found.data_dir, named, agent)
    plan = files.plan(clients.pieces(args.client, server, project=project, environ=os.environ), remove=args.remove)
    if not args.print:
        files.write(plan)
    call.warnings.extend(f"{change.path}: {note}" for change in plan for note in change.notes)
    if args.user and not args.remove and found.values["data_dir"][1] == "default":
        call.warnings.append(f"no board was named: all projects will share {found.data_dir}; --data-dir names another")
    told = [change.to_dict() for change in plan]
    if all(change.action == files.UNCHANGED for change in plan):
        call.warnings.append("nothing to change: all of it is as it would be")
    if not args.print:
        for change in told:
            del change["content"]
    data = {"client": args.client, "data_dir": found.data_dir, "files": told}
    if not args.remove:
        data["next"] = clients.next_step(args.client, found.data_dir, user=args.user)
    return Reply(data, page="setup")


def _project(call: Call) -> str | None:
    """Return the project's directory, ``None`` for the user."""
    args = call.args
    if args.user:
        if args.project is not None:
            raise InvalidInput("--project and --user exclude each other", field="user")
        return None
    project = os.path.abspath(os.path.expanduser(inputs.line(args.project or ".", "project", inputs.PATH)))
    if not os.path.isdir(project):
        raise InvalidInput(f"project: {project} is no directory", field="project")
    return project


COMMANDS = {
    "prime": Command(
        _prime,
        _prime_arguments,
        "Tell an agent what it needs to begin, or to go on after its context was cut.",
        "Who it is, what it holds and how to get a lost token back, what is ready for it, what waits for a person,\n"
        "and how to work: plain text of at most 1200 characters. With --json or --format json `data` has the same:\n"
        "{agent, board, exists, holds, lost, ready, assigned, attention, protocol}. With --hook it answers in the\n"
        "form that the client understands, always with exit 0: at a session's start with this text, at its stop\n"
        "with one reminder of the leases that the agent still holds.",
        ("atb prime --agent ada", "atb prime --json", "atb prime --hook session-start --client codex"),
        reads=True,
    ),
    "setup": Command(
        _setup,
        _setup_arguments,
        "Make Claude Code, Codex, Gemini CLI, Cursor or AGENTS.md know this board.",
        "Writes the MCP server, what an agent must know, and the hooks that the client has, with absolute paths.\n"
        "Everything else in these files keeps its bytes, and --remove gives them back as they were. All files are\n"
        "checked before the first is written; an entry that somebody else wrote is refused. `data` is {client,\n"
        "data_dir, files, next}; a file is {path, action} with action one of create, update, delete, unchanged,\n"
        "kept, and with --print also {content}, our part of it: what is to stand there, or what --remove takes out.",
        (
            "atb setup claude --print",
            "atb setup claude",
            "atb setup codex --project ~/code/app --data-dir ~/boards/app",
            "atb setup cursor --remove",
        ),
    ),
}
