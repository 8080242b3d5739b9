"""Which module holds which command, in the order of ``atb --help``."""

from __future__ import annotations

GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Work on tasks": ("leases", ("claim", "resume", "heartbeat", "complete", "fail", "release", "handoff")),
    "Make and steer tasks": (
        "tasks",
        ("add", "update", "comment", "approve", "reject", "reassign", "retry", "cancel"),
    ),
    "Look": ("reads", ("list", "show", "events", "agents", "stats")),
    "Bring agents in": ("onboarding", ("prime", "setup")),
    "Serve": ("serving", ("serve", "mcp")),
    "Let tasks recur": ("schedules", ("schedule",)),
    "Tell other programs": ("hooks", ("hooks",)),
    "Take out and bring in": ("transfer", ("export", "import")),
    "Keep it for long": ("keeping", ("backup", "restore", "doctor", "archive", "unarchive")),
    "Look after the board": ("upkeep", ("tick", "config", "demo")),
}
MODULES = {name: module for module, names in GROUPS.values() for name in names}


def overview() -> str:
    """Return the page of ``atb --help``."""
    from . import find

    lines = ["usage: atb COMMAND [options]", "", "Share one local board of tasks between several agents.", ""]
    for title, (_, names) in GROUPS.items():
        lines.append(f"{title}:")
        lines.extend(f"  {name:<11}{find(name).summary}" for name in names)
        lines.append("")
    lines += [
        "Every command prints one JSON envelope; `--format table` shows a page for people instead.",
        "`atb COMMAND --help` explains a command and has lines to paste; `atb --version` tells the version.",
    ]
    return "\n".join(lines) + "\n"
