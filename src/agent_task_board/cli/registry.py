"""The module of each command, in the order of ``atb --help``."""

from __future__ import annotations

GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Work on tasks": ("leases", ("claim", "resume", "heartbeat", "complete", "fail", "release", "handoff")),
    "Create and manage tasks": (
        "tasks",
        ("add", "done", "update", "edit", "comment", "approve", "reject", "reassign", "retry", "cancel"),
    ),
    "Query": ("reads", ("list", "show", "events", "agents", "stats")),
    "Wait and explain": ("waiting", ("wait", "why")),
    "Run": ("running", ("run",)),
    "Project": ("project", ("init", "where")),
    "Trust": ("trusting", ("trust",)),
    "In a terminal": ("terminal", ("watch", "completion")),
    "Agent setup": ("onboarding", ("prime", "setup")),
    "Servers": ("serving", ("serve", "mcp")),
    "Access to a server": ("access", ("open", "key")),
    "Schedules": ("schedules", ("schedule",)),
    "Hooks": ("hooks", ("hooks",)),
    "Import and export": ("transfer", ("export", "import")),
    "Backup and archive": ("retention", ("backup", "restore", "archive", "unarchive")),
    "Maintenance": ("upkeep", ("tick", "doctor", "config", "demo")),
}
ALIASES = {"ls": "list", "new": "add", "close": "done"}
"""Other names of commands."""
MODULES = {name: module for module, names in GROUPS.values() for name in names}

ALIASES = {other: name for other, name in ALIASES.items() if name in MODULES}


def overview() -> str:
    """Return the output of ``atb --help``."""
    from ..model import FRAMING
    from . import find

    lines = ["usage: atb COMMAND [options]", "", "A task board that several agents share on one machine.", FRAMING, ""]
    for title, (_, names) in GROUPS.items():
        lines.append(f"{title}:")
        lines.extend(f"  {name:<11}{find(name).summary}" for name in names)
        lines.append("")
    lines += [
        "Also: " + ", ".join(f"`{other}` is `{name}`" for other, name in ALIASES.items()) + ".",
        "At a terminal, every command prints tables; in a pipe and for agents, one JSON envelope (--json, --format).",
        "`atb help COMMAND` explains a command, with examples; `atb --version` prints the version.",
    ]
    return "\n".join(lines) + "\n"
