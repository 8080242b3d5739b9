"""What a tool is called with: unknown names refused, and what models write as text understood where it is no text.

A list, a number, a boolean or an object may come as a string that holds it. Free text is never looked into: ``"null"``
and ``"[1]"`` arrive as they are. What a value may be is for the service to say.
"""

from __future__ import annotations

import difflib
import re

from .. import inputs
from ..errors import InvalidInput
from .definitions import FLAG, LENGTH, LIST, OBJECT, TEXT, WHOLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .definitions import Tool

CONFIRM = "Cancelling ends the task for everybody, whoever holds it. Send confirm: true if that is meant."
"""Why ``cancel_task`` asks."""

_ELSEWHERE = {"id": "task_id", "blocked_by": "depends_on", "description": "body", "artifact": "artifacts"}
"""Names that the HTTP API, the command line or a guess have for an argument."""
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


def read(tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name; those that are ``null`` were not given.

    Raises:
        InvalidInput: an unknown argument, one that is missing, or one of the wrong kind.
    """
    for name in given:
        if name not in tool.parameters:
            raise _unknown(name, tool)
    found = {name: _KINDS[tool.parameters[name][0]](value, name) for name, value in given.items() if value is not None}
    for name in tool.required:
        if name not in found:
            hint = CONFIRM if name == "confirm" else f"{tool.name} needs: {', '.join(tool.required)}."
            raise InvalidInput(f"{name}: is missing", hint=hint, field=name)
    if found.get("confirm") is False:
        raise InvalidInput("confirm: must be true", hint=CONFIRM, field="confirm")
    return found


def nearest(name: str, known: list[str]) -> str:
    """Return a hint: the name that may have been meant, or all of them."""
    meant = _ELSEWHERE.get(name)
    near = [meant] if meant in known else difflib.get_close_matches(name[:60], known, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(known)}."


def _unknown(name: str, tool: Tool) -> InvalidInput:
    shown = name[:60]
    return InvalidInput(
        f"{shown}: {tool.name} takes no such argument", hint=nearest(name, list(tool.parameters)), field=shown
    )


def _text(value: Any, name: str) -> Any:
    return inputs.text(value, name, inputs.BODY)


def _length(value: Any, _: str) -> Any:
    return value


def _whole(value: Any, _: str) -> Any:
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:  # 5.0, as some clients write 5
        return int(value)
    return value


def _flag(value: Any, name: str) -> bool:
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.strip().lower(), value)
    return inputs.boolean(value, name)


def _list(value: Any, name: str) -> list[Any]:
    if isinstance(value, str):
        if value.lstrip().startswith("["):
            try:
                held = inputs.parse_json(value, name)
            except InvalidInput:  # a tag may begin with a bracket
                return [value]
            return list(held)
        return [value]
    if not isinstance(value, list):
        raise InvalidInput(f"{name}: must be a list", field=name)
    return value


def _object(value: Any, name: str) -> Any:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = inputs.parse_json(value, name)
    if name == "result" and not isinstance(value, dict):
        raise InvalidInput(
            "result: must be a JSON object", hint='Put prose into note, and data as {"tests": 12}.', field=name
        )
    return value


_KINDS: dict[str, Callable[[Any, str], Any]] = {
    TEXT: _text,
    LENGTH: _length,
    WHOLE: _whole,
    FLAG: _flag,
    LIST: _list,
    OBJECT: _object,
}
