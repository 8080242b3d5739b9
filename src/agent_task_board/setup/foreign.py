"""What others added to an entry of ours: harmless keys stay, all others are shown and refused.

An entry is a command that a client will run. A file that came with a checkout may hold one that looks like ours and has
a variable, a directory or a permission beside it that makes the command do something else. So only keys whose effect is
known, with values of the expected type, are left in an entry that `atb setup` vouches for.
"""

from __future__ import annotations

import json
import re

from ..printable import escape_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Harmless = dict[str, Callable[[Any], bool]]

SHOWN = 200
"""Characters of a value in a message."""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_tools(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


_VARIABLE = re.compile(r"LANG|LC_[A-Z]+|TZ|NO_COLOR|ATB_AGENT|ATB_FORMAT")
"""Variables that change at most how something is shown, and the one that is ours."""

_SERVER: Harmless = {
    "type": lambda value: value == "stdio",
    "transport": lambda value: value == "stdio",
    "description": _is_text,
    "timeout": _is_number,
    "startup_timeout_sec": _is_number,
    "startup_timeout_ms": _is_number,
    "tool_timeout_sec": _is_number,
    "enabled": _is_flag,
    "disabled": _is_flag,
    "required": _is_flag,
    "enabled_tools": _are_tools,
    "disabled_tools": _are_tools,
    "includeTools": _are_tools,
    "excludeTools": _are_tools,
    "disabledTools": _are_tools,
    "env_vars": lambda value: value == ["ATB_AGENT"],
    "trust": lambda value: value is False,
}
"""Keys of an MCP server, in any client, that neither change what runs nor what it may do unasked."""

_HOOK: Harmless = {
    "timeout": _is_number,
    "matcher": _is_text,
    "loop_limit": lambda value: value is None or _is_number(value),
    "name": _is_text,
    "description": _is_text,
    "statusMessage": _is_text,
}

_GROUP: Harmless = {"matcher": _is_text, "sequential": _is_flag, "description": _is_text}


def of_server(ours: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of an MCP server that we do not write and that are not harmless; variables as ``env.NAME``."""
    foreign = _others(found, _SERVER, ours.keys() | {"command", "args", "env"})
    env = found.get("env", {})
    if not isinstance(env, dict):
        return {**foreign, "env": env}
    unknown = {
        f"env.{name}": value
        for name, value in env.items()
        if not (isinstance(value, str) and _VARIABLE.fullmatch(name))
    }
    return {**foreign, **unknown}


def of_hook(ours: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of a hook that we do not write, or with another value, and that are not harmless."""
    same = {key for key, value in ours.items() if key == "command" or found.get(key) == value}
    return _others(found, _HOOK, same)


def of_group(found: dict[str, Any], inner: str) -> dict[str, Any]:
    """Return the keys of a group around a hook of ours that are not harmless; ``inner`` is its list of hooks."""
    return _others(found, _GROUP, {inner})


def _others(found: dict[str, Any], harmless: Harmless, known: set[str]) -> dict[str, Any]:
    return {
        key: value
        for key, value in found.items()
        if key not in known and not (key in harmless and harmless[key](value))
    }


def in_words(foreign: dict[str, Any]) -> str:
    """Return keys and their values for a message."""
    return ", ".join(f"{escape_line(key)} = {_value(value)}" for key, value in foreign.items())


def _value(value: Any) -> str:
    text = escape_line(json.dumps(value, default=str))
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
