"""The arguments of a tool call: refuse unknown names, and accept values that models write as text.

A list, a number, a boolean or an object may arrive as a string that contains it. Free text is never interpreted:
``"null"`` and ``"[1]"`` stay strings. The service checks the values.
"""

from __future__ import annotations

import difflib
import json
import re

from .. import inputs
from ..board import fields
from ..errors import InvalidInput
from ..instants import parse_length
from ..settings import LEASE_HIGH, LEASE_LOW, WAIT_HIGH
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


def read(tool: Tool, given: dict[str, Any], context: fields.Context) -> dict[str, Any]:
    """Return the arguments of a call by name; ``null`` means not given, and so does ``""`` for an optional one.

    Raises:
        InvalidInput: arguments are unknown, missing or wrong. It names all of them, and has an example that would pass.
    """
    found: dict[str, Any] = {}
    faults: list[InvalidInput] = []
    for name, value in given.items():
        if name not in tool.parameters:
            faults.append(_unknown(name, tool))
        elif value is not None and (value != "" or name in tool.required):
            try:
                found[name] = _KINDS[tool.parameters[name][0]](value, name)
                _check(tool, name, found[name], context)
            except InvalidInput as fault:
                faults.append(fault)
    for name in tool.required:
        if given.get(name) is None:
            hint = CONFIRM if name == "confirm" else f"{tool.name} requires: {', '.join(tool.required)}."
            faults.append(InvalidInput(f"{name}: is missing", hint=hint, field=name))
    if found.get("confirm") is False:
        faults.append(InvalidInput("confirm: must be true", hint=CONFIRM, field="confirm"))
    if faults:
        raise _all(faults, tool)
    return found


def _check(tool: Tool, name: str, value: Any, context: fields.Context) -> None:
    """Check a value as the service will, so that all faults of a call can be named at once.

    Raises:
        InvalidInput: the service would refuse it.
    """
    if name in fields.FIELDS and tool.name in ("create_task", "update_task"):  # elsewhere it selects tasks
        fields.FIELDS[name].check(value, context)
    elif name == "lease":
        parse_length(value, field=name, low=LEASE_LOW, high=LEASE_HIGH)
    elif name in ("after", "retry_in") and tool.parameters[name][0] == DURATION:  # after may be a cursor
        parse_length(value, field=name, high=WAIT_HIGH)


def _all(faults: list[InvalidInput], tool: Tool) -> InvalidInput:
    """Return one refusal of all that is wrong."""
    first = faults[0]
    if len(faults) == 1:
        return InvalidInput(first.message, hint=f"{first.hint} {_example(faults, tool)}", **first.details)
    hints = dict.fromkeys(fault.hint for fault in faults if fault.hint != InvalidInput.hint)
    hint = " ".join([*hints, _example(faults, tool)])
    return InvalidInput("; ".join(fault.message for fault in faults), hint=hint, **first.details)


_SAMPLES = {TEXT: "text", DURATION: "15m", INTEGER: 1, BOOLEAN: True, LIST: ["text"], OBJECT: {"key": "value"}}
_NAMED_SAMPLES = {
    "task_id": "9F3K2A",
    "task_ids": ["9F3K2A"],
    "depends_on": ["9F3K2A"],
    "drop_depends_on": ["9F3K2A"],
    "due_at": "2027-01-31",
    "not_before": "+2d",
    "status": ["done"],
    "token": "TOKEN",
    "to": "bob",
    "agent": "ada",
    "assignee": "ada",
}


def _example(faults: list[InvalidInput], tool: Tool) -> str:
    """Return a call with the required arguments and those that were wrong, as it would pass."""
    names = [*tool.required, *(name for fault in faults if (name := fault.details.get("field")) in tool.parameters)]
    values = {name: _NAMED_SAMPLES.get(name, _SAMPLES[tool.parameters[name][0]]) for name in dict.fromkeys(names)}
    return f"Example: {tool.name} {json.dumps(values)}."


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
    value = _only(value)
    return inputs.text(value, name, inputs.BODY)


def _duration(value: Any, _: str) -> Any:
    return _only(value)


def _only(value: Any) -> Any:
    """Return the element of a list of one: models send it where one value is due."""
    is_one = isinstance(value, list) and len(value) == 1 and not isinstance(value[0], (list, dict))
    return value[0] if is_one else value


def _integer(value: Any, _: str) -> Any:
    value = _only(value)
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:  # some clients write 5 as 5.0
        return int(value)
    return value


def _boolean(value: Any, name: str) -> bool:
    value = _only(value)
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
