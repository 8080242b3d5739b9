"""The files of each client, for one project or for all projects of a user, and what goes into each."""

from __future__ import annotations

import os
import sys

from ..errors import InvalidInput
from . import blocks, foreign, hooks, texts
from .json_entries import Entry, JsonEntries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .files import Piece

NAME = "agent-task-board"
"""The name of our entry."""

CLIENTS: dict[str, tuple[tuple[str, str | None, str | None], ...]] = {
    "claude": (
        ("server", ".mcp.json", "~/.claude.json"),
        ("hooks", ".claude/settings.json", "~/.claude/settings.json"),
        ("skill", f".claude/skills/{NAME}/SKILL.md", f"~/.claude/skills/{NAME}/SKILL.md"),
    ),
    "codex": (
        ("toml", ".codex/config.toml", "~/.codex/config.toml"),
        ("hooks", ".codex/hooks.json", "~/.codex/hooks.json"),
        ("block", "AGENTS.md", "~/.codex/AGENTS.md"),
    ),
    "gemini": (
        ("server and hooks", ".gemini/settings.json", "~/.gemini/settings.json"),
        ("block", "GEMINI.md", "~/.gemini/GEMINI.md"),
    ),
    "cursor": (
        ("server", ".cursor/mcp.json", "~/.cursor/mcp.json"),
        ("hooks", ".cursor/hooks.json", "~/.cursor/hooks.json"),
        ("rule", f".cursor/rules/{NAME}.mdc", None),
    ),
    "agents-md": (("block", "AGENTS.md", None),),
}
"""The content, the file of a project and the file of a user; ``None``: the client has no such file."""

MOVED = {"CLAUDE_CONFIG_DIR": ("~/.claude", "~/.claude.json"), "CODEX_HOME": ("~/.codex",)}
"""Variables that move files of a user to another directory."""

NEXT = {
    "claude": "Start Claude Code in the project; it asks once whether to use the project's MCP server.",
    "codex": "Start Codex in the project, trust it, and trust the hooks with /hooks; until then they do not run.",
    "gemini": "Start Gemini CLI in the project; it asks before it runs a project's hooks.",
    "cursor": "Open the project in Cursor and enable the server in the settings, under MCP.",
    "agents-md": "Clients that read AGENTS.md find the guide; configure `atb mcp` in your client yourself.",
}
NEXT_OF_A_USER = {
    "claude": "Start Claude Code in any project.",
    "codex": "Start Codex in any project, and trust the hooks with /hooks; until then they do not run.",
    "gemini": "Start Gemini CLI in any project.",
    "cursor": "Open any project in Cursor and enable the server in the settings, under MCP.",
}


MODULE = "agent_task_board"
AGENT = "ATB_AGENT"
"""The only variable in the environment of the MCP server that is ours."""


class Server:
    """How a client calls `atb`: the program, the options that name the board and, optionally, an agent's name."""

    __slots__ = ("agent", "options", "program")

    def __init__(self, program: list[str], options: list[str], agent: str | None) -> None:
        self.program = program
        self.options = options
        self.agent = agent

    def entry(self) -> dict[str, Any]:
        """Return the entry of the MCP server."""
        command, *before = self.program
        env = {"env": {AGENT: self.agent}} if self.agent else {}
        return {"command": command, "args": [*before, "mcp", *self.options], **env}

    def hook(self, client: str, hook: str) -> dict[str, Any]:
        """Return the element for the list of hooks of a client."""
        options = [*self.options, *(["--agent", self.agent] if self.agent else [])]
        return hooks.element(client, hook, hooks.command_line(self.program, client, hook, options))

    def shell(self) -> str:
        """Return the shell command that runs `atb` on the board."""
        import shlex

        return shlex.join([*self.program, *self.options])


def is_our_server(found: Any) -> bool:
    """Say whether the entry of an MCP server starts `atb mcp`, whatever its options."""
    if not isinstance(found, dict):
        return False
    command, args = found.get("command"), found.get("args")
    if not isinstance(command, str) or not isinstance(args, list) or "mcp" not in args:
        return False
    return hooks.starts_atb([command, *args[: args.index("mcp")]])


def merged_server(ours: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Return our entry of an MCP server with the harmless additions of others to the existing one."""
    theirs = {key: value for key, value in found.items() if key not in ("command", "args", "env")}
    env = found.get("env", ours.get("env"))
    if isinstance(env, dict):
        rest = {key: value for key, value in env.items() if key != AGENT}
        env = {**rest, **ours.get("env", {})} or (None if env else env)
    elif "env" in ours:
        env = ours["env"]
    return {**ours, **({} if env is None else {"env": env}), **theirs}


def agent_of_server(found: dict[str, Any]) -> str | None:
    """Return the agent that the entry of an MCP server names."""
    env = found.get("env")
    name = env.get(AGENT) if isinstance(env, dict) else None
    return name if isinstance(name, str) else None


def next_step(client: str, data_dir: str, *, user: bool) -> str:
    """Return the next step after a setup."""
    if user:
        return f"{NEXT_OF_A_USER[client]} All projects share the board in {data_dir}."
    return NEXT[client]


def program(environ: Mapping[str, str], *, is_shared: bool) -> tuple[list[str], bool]:
    """Return the words that start this program, and whether they are the same on every machine.

    With ``is_shared``, for files that people commit, it is `atb` if PATH leads to this very program. Otherwise it is
    the absolute path of this `atb`, or the Python command that runs it.
    """
    import shutil

    here = _here()
    found = shutil.which("atb", path=environ.get("PATH", os.defpath))
    if is_shared and found is not None and len(here) == 1 and os.path.realpath(found) == os.path.realpath(here[0]):
        return ["atb"], True
    return here, False


def _here() -> list[str]:
    """Return the absolute path of this `atb`, or the Python command that runs it."""
    import shutil

    called = sys.argv[0]
    if os.path.basename(called) == "atb":
        found = shutil.which(called)
        if found is not None:
            return [os.path.abspath(found)]
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "atb")
    if os.access(beside, os.X_OK):
        return [beside]
    return [os.path.abspath(sys.executable), *_flags(), "-m", MODULE]


def _flags() -> tuple[str, ...]:
    """Return the options with which Python finds this package, and nothing beside the work in its place.

    ``-I`` ignores the environment and the user's site directory. Where the package is in that directory, or is named by
    ``PYTHONPATH`` alone, as much of it is ignored as possible.
    """
    import subprocess

    for flags in hooks.FLAGS:
        try:
            words = [sys.executable, *flags, "-c", f"import {MODULE}"]
            found = subprocess.run(words, cwd="/", capture_output=True, timeout=30, check=False)
        except (OSError, subprocess.SubprocessError):
            break
        if found.returncode == 0:
            return flags
    return hooks.FLAGS[0]


def pieces(client: str, server: Server, *, project: str | None, environ: Mapping[str, str]) -> list[Piece]:
    """Return our part of each file of a client, in the directory of a project or, with ``None``, of the user.

    Raises:
        InvalidInput: this client has no files of a user, or the home directory is unknown.
    """
    found: list[Piece] = []
    for kind, in_project, in_home in CLIENTS[client]:
        if project is not None and in_project is not None:
            place = os.path.join(project, in_project)
            found.append(_piece(client, kind, place, project, server, user=False))
        elif project is None and in_home is not None:
            piece = _piece(client, kind, *_in_home(in_home, environ), server, user=True)
            piece.within = None
            found.append(piece)
    if not found:
        raise InvalidInput(f"user: not supported for {client}", hint="Leave out --user.", field="user")
    return found


def _in_home(path: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the path of a user's file, and the directory that is never deleted with it."""
    for variable, places in MOVED.items():
        moved = environ.get(variable)
        for place in places:
            if moved and (path == place or path.startswith(f"{place}/")):
                root = os.path.abspath(os.path.expanduser(moved))
                below = path[len(place) + 1 :] if path != place else os.path.basename(path)
                return os.path.join(root, below), root
    home = environ.get("HOME") if "HOME" in environ else os.path.expanduser("~")
    if not home or not os.path.isabs(home):
        raise InvalidInput(
            f"home: not an absolute path: {home!r}",
            hint="Nothing was changed. Set HOME, or leave out --user.",
            field="user",
        )
    return os.path.join(home, path.removeprefix("~/")), home


def _piece(client: str, kind: str, path: str, root: str, server: Server, *, user: bool) -> Piece:
    if kind == "block":
        return blocks.Guide(path, root, client, texts.block(server.shell(), user=user))
    if kind == "skill":
        return blocks.OwnFile(path, root, texts.skill(server.shell(), user=user))
    if kind == "rule":
        return blocks.OwnFile(path, root, texts.rule(server.shell(), user=user))
    if kind == "toml":
        return blocks.TomlBlock(path, root, ("mcp_servers", NAME), server_entry(("mcp_servers",), server))
    entries = []
    if "server" in kind:
        entries.append(server_entry(("mcpServers",), server))
    if "hooks" in kind:
        entries += [hook_entry(client, hook, server) for hook in hooks.EVENTS[client]]
    if client == "cursor" and kind == "hooks":
        entries.append(Entry((), "version", 1, lambda _: False, only_new=True))
    return JsonEntries(path, root, entries)


def server_entry(path: tuple[str, ...], server: Server) -> Entry:
    """Return the entry of the MCP server in the nested objects named by ``path``."""
    return Entry(
        path, NAME, server.entry(), is_our_server, merge=merged_server, foreign=foreign.of_server, agent=agent_of_server
    )


def hook_entry(client: str, hook: str, server: Server) -> Entry:
    """Return the entry of a hook."""
    element = server.hook(client, hook)
    return Entry(
        ("hooks", hooks.EVENTS[client][hook]),
        None,
        element,
        hooks.is_ours,
        merge=hooks.merged,
        foreign=foreign.of_hook,
        is_like=hooks.is_like_ours,
        inner="hooks" if "hooks" in element else None,
    )
