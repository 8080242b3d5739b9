"""The fields of a task that a caller can set: one table for the service, every adapter, imports and templates.

The argument ``depends_on`` is the same list as ``blocked_by`` in a task's JSON.
"""

from __future__ import annotations

from .. import inputs, instants
from ..settings import LEASE_HIGH, LEASE_LOW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..settings import Settings

    Check = Callable[[Any, "Context"], Any]
    """Takes a value and its context; returns what is stored, or raises ``InvalidInput``."""

ADD, UPDATE, IMPORT, TEMPLATE = "add", "update", "import", "template"
"""Where a field can be set."""


class Context:
    """What a value is read with: the settings, and the instant from which relative ones such as ``+2d`` count.

    ``old`` says that the values come from a board: names that no call may introduce any more are taken there.
    """

    __slots__ = ("now", "old", "settings")

    def __init__(self, settings: Settings, now: int, *, old: bool = False) -> None:
        self.settings = settings
        self.now = now
        self.old = old


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
    def check(value: Any, context: Context) -> str | None:
        if value is None or value == "":
            return None
        zone = context.settings.timezone
        return instants.parse_instant(value, zone, field=field, end_of_day=end_of_day, now=context.now)

    return check


def _max_attempts(value: Any, context: Context) -> int:
    limit = context.settings.max_attempts if value is None else value
    return inputs.integer(limit, "max_attempts", 1, inputs.MAX_ATTEMPTS)


def _max_runtime(value: Any, _: Context) -> int | None:
    """Return whole seconds, rounded up, of a number of seconds or a duration."""
    if value is None or value == "":
        return None
    length = instants.parse_length(value, field="max_runtime", low=LEASE_LOW, high=LEASE_HIGH)
    return -(-length // instants.SECOND)


def _queue(value: Any, context: Context) -> str:
    return (inputs.name if context.old else inputs.queue_name)(value, "queue")


def _tags(value: Any, context: Context) -> str:
    return inputs.json_text((inputs.tags if context.old else inputs.new_tags)(value), "tags")


_EVERYWHERE = (ADD, UPDATE, IMPORT, TEMPLATE)

FIELDS: dict[str, Field] = {
    "title": Field(lambda value, _: inputs.title(value, "title"), None, *_EVERYWHERE, resets=False),
    "body": Field(lambda value, _: inputs.text(value, "body", inputs.BODY), "", *_EVERYWHERE),
    "queue": Field(_queue, "default", *_EVERYWHERE),
    "priority": Field(lambda value, _: inputs.priority(value, "priority"), 0, *_EVERYWHERE),
    "assignee": Field(lambda value, context: inputs.assignee(value, "assignee", old=context.old), None, *_EVERYWHERE),
    "due_at": Field(_instant("due_at", end_of_day=True), None, ADD, UPDATE, IMPORT),
    "not_before": Field(_instant("not_before"), None, ADD, UPDATE, IMPORT),
    "tags": Field(_tags, (), *_EVERYWHERE),
    "params": Field(lambda value, _: inputs.parameters({} if value is None else value), None, *_EVERYWHERE),
    "dedupe_key": Field(lambda value, _: inputs.key(value, "dedupe_key"), None, ADD, UPDATE, IMPORT),
    "max_attempts": Field(_max_attempts, None, *_EVERYWHERE),
    "max_runtime": Field(_max_runtime, None, *_EVERYWHERE),
    "needs_approval": Field(
        lambda value, _: int(inputs.boolean(value, "needs_approval")), False, *_EVERYWHERE, resets=False
    ),
}
"""The fields by name; only ``title`` is required."""

INSTANTS = ("due_at", "not_before")
"""The fields that hold an instant."""

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


def stored(given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Check the fields given and return what is stored for them, by column.

    Raises:
        InvalidInput: a value is malformed or out of range; ``details.field`` names it.
    """
    return {name: FIELDS[name].check(value, context) for name, value in given.items()}
