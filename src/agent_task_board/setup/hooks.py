"""Commands that a client runs by itself, when a session begins and when its agent wants to stop.

They must never get in a client's way: what goes wrong ends in no output and exit code 0.
"""

from __future__ import annotations

import json
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

    from ..text.briefing import Briefing

START, STOP = "session-start", "stop"
EVENTS = {
    "claude": {START: "SessionStart", STOP: "Stop"},
    "codex": {START: "SessionStart", STOP: "Stop"},
    "gemini": {START: "SessionStart", STOP: "AfterAgent"},
    "cursor": {START: "sessionStart", STOP: "stop"},
}
"""What each client calls the moment of a hook."""

SECONDS = 10
"""After which a client gives up on a hook."""
INPUT_BYTES = 4_194_304
INPUT_SECONDS = 2.0
OF_SESSION = 8
"""Characters of a session's id that an agent's name has."""

_SESSION = re.compile(r"[A-Za-z0-9_-]{8,100}")


# What the configuration of a client holds


def command_line(program: list[str], client: str, hook: str, options: list[str]) -> str:
    """Return the line of shell that a client runs.

    It ends in ``|| true``: some clients take exit code 2 for an order to go on, so that a program that was removed, or
    that does not know an option any more, would keep an agent from stopping.
    """
    import shlex

    return f"{shlex.join([*program, 'prime', '--hook', hook, '--client', client, *options])} || true"


def element(client: str, hook: str, line: str) -> dict[str, Any]:
    """Return the element of a client's list of hooks."""
    if client == "cursor":
        limit = {"loop_limit": 1} if hook == STOP else {}
        return {"command": line, "timeout": SECONDS, **limit}
    told: dict[str, Any] = {"type": "command", "command": line, "timeout": SECONDS}
    if client == "gemini":  # it counts in milliseconds
        told = {"name": "agent-task-board", **told, "timeout": SECONDS * 1_000}
    return {"hooks": [told]}


def is_ours(found: Any) -> bool:
    """Say whether a hook, not the group around it, is one that we wrote, whatever its options."""
    words = _words(found)
    before = words[: words.index("prime")] if "prime" in words else []
    is_atb = [os.path.basename(word) for word in before] == ["atb"] or before[1:] == ["-m", "agent_task_board"]
    return is_atb and words[len(before) + 1 : len(before) + 2] == ["--hook"] and words[-2:] == ["||", "true"]


def is_like_ours(found: Any) -> bool:
    """Say whether a hook calls `atb prime --hook` in a line that we did not write, or that somebody changed."""
    words = _words(found)
    asks = any(words[place : place + 2] == ["prime", "--hook"] for place in range(len(words)))
    names = {os.path.basename(word) for word in words}
    return asks and not names.isdisjoint(("atb", "agent_task_board")) and not is_ours(found)


def merged(ours: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Return our hook with what others set in the one that is there, such as another timeout."""
    return {**ours, **found, "command": ours["command"]}


def _words(found: Any) -> list[str]:
    import shlex

    line = found.get("command") if isinstance(found, dict) else None
    try:
        return shlex.split(line) if isinstance(line, str) else []
    except ValueError:
        return []


# What a hook is asked, and what it answers


def read_input(stream: BinaryIO | None) -> dict[str, Any]:
    """Return the object that the client sends; an empty one for anything else, and if it takes too long."""
    if stream is None:
        return {}
    try:
        found = json.loads(_read(stream))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _read(stream: BinaryIO) -> bytes:
    import select
    from time import monotonic

    try:
        number = stream.fileno()
    except OSError:  # no file of the system
        return stream.read(INPUT_BYTES)
    if os.isatty(number):
        return b""
    content, end = bytearray(), monotonic() + INPUT_SECONDS
    while len(content) < INPUT_BYTES:
        readable, _, _ = select.select([number], [], [], max(0.0, end - monotonic()))
        part = os.read(number, min(65_536, INPUT_BYTES - len(content))) if readable else b""
        if not part:
            break
        content += part
    return bytes(content)


def agent_of(client: str, asked: Mapping[str, Any]) -> str | None:
    """Return a name for the agent of a session: the same after it was resumed or cut, another one in every session."""
    session = asked.get("conversation_id") or asked.get("session_id")
    if not isinstance(session, str) or not _SESSION.fullmatch(session):
        return None
    # Ids of version 7 begin with the time: sessions begun within a minute share their first characters.
    part = session[-OF_SESSION:] if session[14:15] == "7" and len(session) == 36 else session[:OF_SESSION]
    return f"{client}-{part}"


def started(client: str, text: str) -> dict[str, Any]:
    """Return what makes a client add a text to its agent's context."""
    if client == "cursor":
        return {"additional_context": text}
    return {"hookSpecificOutput": {"hookEventName": EVENTS[client][START], "additionalContext": text}}


def may_remind(asked: Mapping[str, Any]) -> bool:
    """Say whether an agent that stops may be reminded: the client told enough, and it was not reminded just now."""
    return (
        bool(asked)
        and not asked.get("stop_hook_active")
        and not asked.get("loop_count")
        and asked.get("status", "completed") == "completed"
    )


def stopped(client: str, found: Briefing) -> dict[str, Any] | None:
    """Return what makes a client's agent go on once more, since it still holds leases; ``None``: let it stop."""
    from ..text.compact import endings, instant, word

    tasks, count = found["holds"]["tasks"], found["holds"]["count"]
    if not tasks:
        return None
    name, names = word(found["agent"]), endings(task["id"] for task in tasks)
    told = [f"{names[task['id']]} (until {instant(task['lease_expires_at'])})" for task in tasks]
    more = f" and {count - len(tasks)} more" if count > len(tasks) else ""
    reason = (
        f"On the task board you ({name}) still hold {', '.join(told)}{more}. Complete, fail, release or hand off each,"
        f" with agent={name} in EVERY MCP call; `atb resume ID` or resume_task gives a lost token back. If you go on"
        " with it later in this session, send a heartbeat and stop; you are not reminded again."
    )
    if client == "cursor":
        return {"followup_message": reason}
    return {"decision": "deny" if client == "gemini" else "block", "reason": reason}


def export(file: str, variables: Mapping[str, str]) -> None:
    """Add variables to the file that a session's shells read, once."""
    import shlex

    lines = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    with open(file, "a+", encoding="utf-8") as target:
        target.seek(0)
        there = target.read()
        if lines not in there:
            target.write(("" if there.endswith("\n") or not there else "\n") + lines)
