"""The fields of a task that a caller can set: one table for the service, every adapter, imports and templates.

The argument ``depends_on`` is the same list as ``blocked_by`` in a task's JSON.
"""

from __future__ import annotations

from .. import inputs, instants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..settings import Settings

    Check = Callable[[Any, Settings], Any]
    """Takes a value and the settings; returns the stored value, or raises ``InvalidInput``."""

ADD, UPDATE, IMPORT, TEMPLATE = "add", "update", "import", "template"
"""Where a field can be set."""


class Field:
    """One field: its check, its default, and where it can be set."""

    __slots__ = ("check", "default", "places", "resets")

    def __init__(self, check: Check, default: Any, *places: str, resets: bool = True) -> None:
        self.check = check
        self.default = default
        self.places = frozenset(places)
        self.resets = resets
        """Whether ``None`` in an update resets it to its default."""


def _instant(field: str, *, end_of_day: bool = False) -> Check:
    def check(value: Any, settings: Settings) -> str | None:
        if value is None or value == "":
            return None
        return instants.parse_instant(value, settings.timezone, field=field, end_of_day=end_of_day)

    return check


def _max_attempts(value: Any, settings: Settings) -> int:
    limit = settings.max_attempts if value is None else value
    return inputs.integer(limit, "max_attempts", 1, inputs.MAX_ATTEMPTS)


_EVERYWHERE = (ADD, UPDATE, IMPORT, TEMPLATE)

FIELDS: dict[str, Field] = {
    "title": Field(lambda value, _: inputs.title(value, "title"), None, *_EVERYWHERE, resets=False),
    "body": Field(lambda value, _: inputs.text(value, "body", inputs.BODY), "", *_EVERYWHERE),
    "queue": Field(lambda value, _: inputs.name(value, "queue"), "default", *_EVERYWHERE),
    "priority": Field(lambda value, _: inputs.priority(value, "priority"), 0, *_EVERYWHERE),
    "assignee": Field(lambda value, _: inputs.assignee(value, "assignee"), None, *_EVERYWHERE),
    "due_at": Field(_instant("due_at", end_of_day=True), None, ADD, UPDATE, IMPORT),
    "not_before": Field(_instant("not_before"), None, ADD, UPDATE, IMPORT),
    "tags": Field(lambda value, _: inputs.json_text(inputs.tags(value), "tags"), (), *_EVERYWHERE),
    "params": Field(lambda value, _: inputs.parameters({} if value is None else value), None, *_EVERYWHERE),
    "dedupe_key": Field(lambda value, _: inputs.key(value, "dedupe_key"), None, ADD, UPDATE, IMPORT),
    "max_attempts": Field(_max_attempts, None, *_EVERYWHERE),
    "needs_approval": Field(
        lambda value, _: int(inputs.boolean(value, "needs_approval")), False, *_EVERYWHERE, resets=False
    ),
}
"""The fields by name; only ``title`` is required."""

DEPENDS_ON = "depends_on"
BLOCKED_BY = "blocked_by"
"""The argument, and the key in a task's JSON, for its dependencies."""


def as_arguments(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields in the names of a task's JSON in those of the service's arguments."""
    return {DEPENDS_ON if name == BLOCKED_BY else name: value for name, value in task.items()}


def name_in_json(argument: str) -> str:
    """Return the name that an argument of the service has in a task's JSON."""
    return BLOCKED_BY if argument == DEPENDS_ON else argument


def settable(place: str) -> dict[str, Any]:
    """Return the fields that can be set in a place, with their defaults."""
    return {name: field.default for name, field in FIELDS.items() if place in field.places}


def among(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are fields, in the order of the table."""
    return {name: arguments[name] for name in FIELDS if name in arguments}


def reset(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given fields, with the default for each ``None`` that resets its field."""
    return {
        name: FIELDS[name].default if value is None and FIELDS[name].resets else value for name, value in given.items()
    }


def stored(given: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Check the given fields; return the stored values by column.

    Raises:
        InvalidInput: a value is malformed or out of range; ``details.field`` names it.
    """
    return {name: FIELDS[name].check(value, settings) for name, value in given.items()}
