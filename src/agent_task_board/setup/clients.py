"""Which files each client reads, for one project or for all of a user, and what goes into each."""

from __future__ import annotations

import os
import sys

from ..errors import InvalidInput
from . import blocks, hooks, texts
from .json_entries import Entry, JsonEntries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .files import Piece

NAME = "agent-task-board"
"""Our entry, wherever a name is needed."""

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
"""What goes in, the file of a project, and the file of a user; ``None``: the client has none."""

MOVED = {"CLAUDE_CONFIG_DIR": ("~/.claude", "~/.claude.json"), "CODEX_HOME": ("~/.codex",)}
"""Variables that name another directory for files of a user."""

NEXT = {
    "claude": "Start Claude Code there; it asks once whether to use the project's MCP server.",
    "codex": "Start Codex there, trust the project, and trust the hooks with /hooks: until then it does not run them.",
    "gemini": "Start Gemini CLI there; it asks before it runs a project's hooks.",
    "cursor": "Open the project in Cursor and switch the server on in its settings, under MCP.",
    "agents-md": "Whatever reads AGENTS.md finds it; start `atb mcp` in your client by hand.",
}


class Server:
    """How `atb` is called from anywhere: the program, the board, perhaps a configuration and a name for the agent."""

    __slots__ = ("agent", "options", "program")

    def __init__(self, program: list[str], data_dir: str, config: str | None, agent: str | None) -> None:
        self.program = program
        self.options = ["--data-dir", data_dir, *(["--config", config] if config else [])]
        self.agent = agent

    def entry(self) -> dict[str, Any]:
        """Return the entry of an MCP server."""
        command, *before = self.program
        env = {"env": {"ATB_AGENT": self.agent}} if self.agent else {}
        return {"command": command, "args": [*before, "mcp", *self.options], **env}

    def hook(self, client: str, hook: str) -> dict[str, Any]:
        """Return the element of a client's list of hooks."""
        options = [*self.options, *(["--agent", self.agent] if self.agent else [])]
        return hooks.element(client, hook, hooks.command_line(self.program, client, hook, options))

    def shell(self) -> str:
        """Return `atb` with the board, as a shell takes it."""
        import shlex

        return shlex.join([*self.program, *self.options])


def is_our_server(found: Any) -> bool:
    """Say whether the entry of an MCP server starts `atb mcp`, whatever its options."""
    if not isinstance(found, dict):
        return False
    command, args = found.get("command"), found.get("args")
    if not isinstance(command, str) or not isinstance(args, list) or "mcp" not in args:
        return False
    return os.path.basename(command) == "atb" or args[:2] == ["-m", "agent_task_board"]


def program() -> list[str]:
    """Return the absolute path of this `atb`, or how to start it where there is none."""
    import shutil

    called = sys.argv[0]
    if os.path.basename(called) == "atb":
        found = shutil.which(called)
        if found is not None:
            return [os.path.abspath(found)]
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "atb")
    if os.access(beside, os.X_OK):
        return [beside]
    return [os.path.abspath(sys.executable), "-m", "agent_task_board"]


def pieces(client: str, server: Server, *, project: str | None, environ: Mapping[str, str]) -> list[Piece]:
    """Return what is ours in each file of a client: in a project's directory, or with ``None`` in the user's.

    Raises:
        InvalidInput: this client has no files of a user.
    """
    found: list[Piece] = []
    for kind, in_project, in_home in CLIENTS[client]:
        if project is not None and in_project is not None:
            found.append(_piece(client, kind, os.path.join(project, in_project), project, server))
        elif project is None and in_home is not None:
            found.append(_piece(client, kind, *_in_home(in_home, environ), server))
    if not found:
        raise InvalidInput(f"{client} has files of a project only", hint="Leave out --user.", field="user")
    return found


def _in_home(path: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the path of a user's file, and the directory that stays whatever becomes of the file."""
    for variable, places in MOVED.items():
        moved = environ.get(variable)
        for place in places:
            if moved and (path == place or path.startswith(f"{place}/")):
                root = os.path.abspath(os.path.expanduser(moved))
                below = path[len(place) + 1 :] if path != place else os.path.basename(path)
                return os.path.join(root, below), root
    return os.path.expanduser(path), os.path.expanduser("~")


def _piece(client: str, kind: str, path: str, root: str, server: Server) -> Piece:
    if kind == "block":
        return blocks.Block(path, root, blocks.MARKDOWN, texts.block(server.shell()))
    if kind == "skill":
        return blocks.OwnFile(path, root, texts.skill(server.shell()))
    if kind == "rule":
        return blocks.OwnFile(path, root, texts.rule(server.shell()))
    if kind == "toml":
        import tomli_w

        body = tomli_w.dumps({"mcp_servers": {NAME: server.entry()}}).rstrip("\n")
        about = "# Written by `atb setup codex`; the same with --remove takes it out."
        return blocks.TomlBlock(path, root, ("mcp_servers", NAME), f"{about}\n{body}")
    entries = []
    if "server" in kind:
        entries.append(Entry(("mcpServers",), NAME, server.entry(), is_our_server))
    if "hooks" in kind:
        for hook, event in hooks.EVENTS[client].items():
            entries.append(Entry(("hooks", event), None, server.hook(client, hook), hooks.is_ours))
    if client == "cursor" and kind == "hooks":
        entries.append(Entry((), "version", 1, lambda _: False, only_new=True))
    return JsonEntries(path, root, entries)
