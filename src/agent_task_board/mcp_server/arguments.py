"""The arguments of a tool call: refuse unknown names, and accept values that models write as text.

A list, a number, a boolean or an object may arrive as a string that contains it. Free text is never interpreted:
``"null"`` and ``"[1]"`` stay strings. The service checks the values.
"""

from __future__ import annotations

import difflib
import re

from .. import inputs
from ..board import fields
from ..errors import InvalidInput
from .definitions import BOOLEAN, DURATION, INTEGER, LIST, OBJECT, TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .definitions import Tool

CONFIRM = "Cancelling ends the task for everybody, including its holder. Send confirm: true if you want that."
"""The hint of ``cancel_task`` without a confirmation."""

_OTHER_NAMES = {
    "id": "task_id",
    fields.BLOCKED_BY: fields.DEPENDS_ON,
    "description": "body",
    "artifact": "artifacts",
}
"""Names that other surfaces use for an argument, or that a model may guess."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def read(tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name; ``null`` means not given, and so does ``""`` for an optional one.

    Raises:
        InvalidInput: an argument is unknown, missing, or of the wrong kind.
    """
    for name in given:
        if name not in tool.parameters:
            raise _unknown(name, tool)
    found = {
        name: _KINDS[tool.parameters[name][0]](value, name)
        for name, value in given.items()
        if value is not None and (value != "" or name in tool.required)
    }
    for name in tool.required:
        if name not in found:
            hint = CONFIRM if name == "confirm" else f"{tool.name} requires: {', '.join(tool.required)}."
            raise InvalidInput(f"{name}: is missing", hint=hint, field=name)
    if found.get("confirm") is False:
        raise InvalidInput("confirm: must be true", hint=CONFIRM, field="confirm")
    return found


def suggestion(name: str, known: list[str]) -> str:
    """Return a hint for an unknown argument: the name that was probably meant, or all known names."""
    meant = _OTHER_NAMES.get(name)
    near = [meant] if meant in known else difflib.get_close_matches(name[:60], known, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"Known names: {', '.join(known)}."


def _unknown(name: str, tool: Tool) -> InvalidInput:
    shown = name[:60]
    return InvalidInput(
        f"{shown}: {tool.name} has no such argument", hint=suggestion(name, list(tool.parameters)), field=shown
    )


def _text(value: Any, name: str) -> Any:
    return inputs.text(value, name, inputs.BODY)


def _duration(value: Any, _: str) -> Any:
    return value


def _integer(value: Any, _: str) -> Any:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:  # some clients write 5 as 5.0
        return int(value)
    return value


def _boolean(value: Any, name: str) -> bool:
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.strip().lower(), value)
    return inputs.boolean(value, name)


def _list(value: Any, name: str) -> list[Any]:
    if isinstance(value, str):
        if value.lstrip().startswith("["):
            try:
                items = inputs.parse_json(value, name)
            except InvalidInput:  # a tag may begin with a bracket
                return [value]
            return list(items)
        return [value]
    if not isinstance(value, list):
        raise InvalidInput(f"{name}: must be a list", field=name)
    return value


def _object(value: Any, name: str) -> Any:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = inputs.parse_json(value, name)
    if name == "result" and not isinstance(value, dict):
        raise InvalidInput(
            "result: must be a JSON object", hint='Put text into note, and data as {"tests": 12}.', field=name
        )
    return value


_KINDS: dict[str, Callable[[Any, str], Any]] = {
    TEXT: _text,
    DURATION: _duration,
    INTEGER: _integer,
    BOOLEAN: _boolean,
    LIST: _list,
    OBJECT: _object,
}
