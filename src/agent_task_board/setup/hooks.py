"""The commands that a client runs as hooks, when a session starts and when its agent stops.

A hook must never make its client fail: after an error it prints nothing and exits with 0.
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
"""The name of each hook in each client."""

FLAGS = (("-I",), ("-E", "-P"), ("-P",))
"""Options of Python before ``-m agent_task_board``, the most careful first."""

TIMEOUT_SECONDS = 10
"""The time that a client gives a hook."""
INPUT_BYTES = 4_194_304
INPUT_SECONDS = 2.0
SESSION_CHARACTERS = 8
"""Characters of the session id in the name of an agent."""

_SESSION = re.compile(r"[A-Za-z0-9_-]{8,100}")


# The configuration of a client


def command_line(program: list[str], client: str, hook: str, options: list[str]) -> str:
    """Return the shell command that a client runs.

    It ends in ``|| true``, because some clients treat exit code 2 as a request to continue. Without it, an `atb` that
    was removed, or that does not have an option any more, would prevent the agent from stopping.
    """
    import shlex

    return f"{shlex.join([*program, 'prime', '--hook', hook, '--client', client, *options])} || true"


def element(client: str, hook: str, line: str) -> dict[str, Any]:
    """Return the element for the list of hooks of a client."""
    if client == "cursor":
        limit = {"loop_limit": 1} if hook == STOP else {}
        return {"command": line, "timeout": TIMEOUT_SECONDS, **limit}
    entry: dict[str, Any] = {"type": "command", "command": line, "timeout": TIMEOUT_SECONDS}
    if client == "gemini":  # it counts in milliseconds
        entry = {"name": "agent-task-board", **entry, "timeout": TIMEOUT_SECONDS * 1_000}
    return {"hooks": [entry]}


def is_ours(found: Any) -> bool:
    """Say whether we wrote a hook, with any options; ``found`` is the hook, not the group around it."""
    import shlex

    words = _words(found)
    before = words[: words.index("prime")] if "prime" in words else []
    is_hook = words[len(before) + 1 : len(before) + 2] == ["--hook"] and words[-2:] == ["||", "true"]
    # In any other spelling, a shell could find more in the line than these words.
    return is_hook and starts_atb(before) and bool(found["command"] == f"{shlex.join(words[:-2])} || true")


def starts_atb(words: list[Any]) -> bool:
    """Say whether the words before a command of ours are those that `atb setup` writes, whatever the directory."""
    if not all(isinstance(word, str) for word in words):
        return False
    if [os.path.basename(word) for word in words] == ["atb"]:
        return True
    return any(words[1:] == [*flags, "-m", "agent_task_board"] for flags in (*FLAGS, ()))


def is_like_ours(found: Any) -> bool:
    """Say whether a hook calls `atb prime --hook`, but in a command that is not exactly ours."""
    words = _words(found)
    calls = any(words[place : place + 2] == ["prime", "--hook"] for place in range(len(words)))
    names = {os.path.basename(word) for word in words}
    return calls and not names.isdisjoint(("atb", "agent_task_board")) and not is_ours(found)


def merged(ours: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Return our hook with the changes of others to the existing one, such as another timeout."""
    return {**ours, **found, "command": ours["command"]}


def _words(found: Any) -> list[str]:
    import shlex

    line = found.get("command") if isinstance(found, dict) else None
    try:
        return shlex.split(line) if isinstance(line, str) else []
    except ValueError:
        return []


# The input and output of a hook


def read_input(stream: BinaryIO | None) -> dict[str, Any]:
    """Return the object that the client sends; an empty one if it is invalid or takes too long."""
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
    except OSError:  # no file descriptor
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


def agent_of(client: str, request: Mapping[str, Any]) -> str | None:
    """Return the name of the agent of a session. It stays the same when the session is resumed or its context cut."""
    session = session_of(request)
    return None if session is None else f"{client}-{session}"


def session_of(request: Mapping[str, Any]) -> str | None:
    """Return what names the session of a client: some characters of its id; ``None`` if it has none."""
    session = request.get("conversation_id") or request.get("session_id")
    if not isinstance(session, str) or not _SESSION.fullmatch(session):
        return None
    # A version 7 id begins with the time: sessions that start within a minute share its first characters.
    if session[14:15] == "7" and len(session) == 36:
        return session[-SESSION_CHARACTERS:]
    return session[:SESSION_CHARACTERS]


def started(client: str, text: str) -> dict[str, Any]:
    """Return the output that makes a client add a text to the context of its agent."""
    if client == "cursor":
        return {"additional_context": text}
    return {"hookSpecificOutput": {"hookEventName": EVENTS[client][START], "additionalContext": text}}


def may_remind(request: Mapping[str, Any]) -> bool:
    """Say whether to remind an agent that stops: the input is valid, and the agent was not reminded just now."""
    return (
        bool(request)
        and not request.get("stop_hook_active")
        and not request.get("loop_count")
        and request.get("status", "completed") == "completed"
    )


def stopped(client: str, found: Briefing) -> dict[str, Any] | None:
    """Return the output that reminds an agent of the leases that it holds; ``None``: let it stop."""
    from ..text.compact import endings, instant, word

    tasks, count = found["holds"]["tasks"], found["holds"]["count"]
    if not tasks:
        return None
    name, names = word(found["agent"]), endings(task["id"] for task in tasks)
    held = [f"{names[task['id']]} (until {instant(task['lease_expires_at'])})" for task in tasks]
    more = f" and {count - len(tasks)} more" if count > len(tasks) else ""
    reason = (
        f"On the task board you ({name}) still hold {', '.join(held)}{more}. Complete, fail, release or hand off each,"
        f" with agent={name} in EVERY MCP call; `atb resume ID` or resume_task issues a new token. To continue later"
        " in this session, send a heartbeat and stop; you will not be reminded again."
    )
    if client == "cursor":
        return {"followup_message": reason}
    return {"decision": "deny" if client == "gemini" else "block", "reason": reason}


def export(file: str, variables: Mapping[str, str]) -> None:
    """Add variables to the file that the shells of a session read, unless they are already there."""
    import shlex

    lines = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    with open(file, "a+", encoding="utf-8") as target:
        target.seek(0)
        there = target.read()
        if lines not in there:
            target.write(("" if there.endswith("\n") or not there else "\n") + lines)
