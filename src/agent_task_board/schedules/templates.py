"""Check the templates of scheduled tasks, and fill them in for an occurrence."""

from __future__ import annotations

import json
import re

from .. import inputs, instants
from ..board import fields
from ..errors import BoardError, InvalidInput
from . import recurrence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..board.core import Core
    from ..storage.db import Row

DUE_IN = "due_in"
"""The template field for the deadline: a duration after the occurrence."""
CATCH_UP = 1_000
_DUE_HIGH = 366 * instants.DAY
_LATEST = 253_402_214_400_000  # the beginning of 9999-12-31: the longest possible text
_WORD = re.compile(r"\{(date|datetime|occurrence)\}")


def check(core: Core, task: object, zone: str) -> str:
    """Return a template in its stored form.

    Raises:
        InvalidInput: a field is unknown, or malformed before or after its placeholders are filled in.
    """
    if not isinstance(task, dict):
        raise InvalidInput("task: must be a JSON object with the fields of a task", field="task")
    allowed = fields.settable(fields.TEMPLATE)
    for field in task:
        if field not in allowed and field not in (DUE_IN, "dedupe_key"):
            hint = "Give the deadline as `due_in`, a duration." if field == "due_at" else None
            known = field in fields.FIELDS or field == fields.BLOCKED_BY
            what = "not allowed in a template" if known else "no such field"
            raise InvalidInput(f"task: {str(field)[:60]}: {what}", hint=hint, field="task")
    template = {key: value for key, value in task.items() if value is not None and key != "dedupe_key"}
    try:
        fill(core, template, instants.to_text(_LATEST), zone)
    except BoardError as error:
        raise InvalidInput(f"task: {error.message}", hint=error.hint, field="task") from None
    return inputs.json_text(template, "task")


def fill(core: Core, template: dict[str, Any], at: str, zone: str) -> dict[str, Any]:
    """Return the columns of the task that a template gives for the occurrence at an instant."""
    from datetime import UTC, datetime

    instant = instants.from_text(at)
    local = datetime.fromtimestamp(instant / 1000, UTC).astimezone(instants.load_zone(zone))
    words = {"date": local.date().isoformat(), "datetime": local.isoformat(timespec="seconds"), "occurrence": at}
    given = {field: template.get(field, default) for field, default in fields.settable(fields.TEMPLATE).items()}
    for field in ("title", "params"):
        given[field] = _with_words(given[field], words)
    due = template.get(DUE_IN)
    if due is not None:
        length = instants.parse_length(due, field=DUE_IN, high=_DUE_HIGH)
        due = instants.to_text(min(instant + length, _LATEST))
    template = {**given, "due_at": due, "not_before": None, "dedupe_key": None}
    return fields.stored(template, fields.Context(core.settings, core.clock(), old=True))


def read(text: str) -> Any:
    """Return a stored template; if it is not JSON, its text, so that the schedule can be shown and removed."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def check_stored(core: Core, row: Row) -> None:
    """Check a stored schedule (``name cron zone task next_at last_at``) as the doctor does.

    Raises:
        InvalidInput: it cannot create tasks.
        ValueError, TypeError, RecursionError: a value in it cannot be read.
    """
    recurrence.check(row["cron"], row["zone"])
    check(core, json.loads(row["task"]), row["zone"])
    last, following = (at and instants.from_text(at) for at in (row["last_at"], row["next_at"]))
    if last and following and following <= last:
        raise InvalidInput("its next occurrence is not after its latest one")


def read_imported(core: Core, given: dict[str, Any]) -> dict[str, Any]:
    """Check a schedule in an imported file; return its ``{"name", "zone", "cron", "catch_up", "task", "next_at"}``.

    ``next_at`` is the next occurrence from now on; ``None`` if the file has one.

    Raises:
        InvalidInput: a value is malformed.
    """
    name, zone = inputs.name(given.get("name"), "name"), inputs.line(given.get("zone"), "zone", inputs.NAME)
    cron = recurrence.check(given.get("cron"), zone)  # type: ignore[arg-type]
    return {
        "name": name,
        "zone": zone,
        "cron": cron,
        "catch_up": catch_up_limit(given.get("catch_up")),
        "task": check(core, given.get("task"), zone),
        "next_at": None if "next_at" in given else next_after(cron, zone, core.clock()),
    }


def catch_up_limit(value: object) -> int | None:
    """Return the limit of occurrences per tick; ``None`` means that of the settings."""
    return None if value is None else inputs.integer(value, "catch_up", 1, CATCH_UP)


def next_after(cron: str, zone: str, instant: int, latest: str | None = None) -> str | None:
    """Return the first occurrence after an instant and after the latest created one, even if the clock is set back."""
    if latest is not None:
        instant = max(instant, instants.from_text(latest))
    following = next(recurrence.occurrences(cron, zone, instant), None)
    return None if following is None else instants.to_text(following)


def _with_words(value: Any, words: dict[str, str]) -> Any:
    """Fill in the placeholders in the texts of a value; keys of objects do not change."""
    if isinstance(value, str):
        return _WORD.sub(lambda found: words[found[1]], value)
    if isinstance(value, list):
        return [_with_words(item, words) for item in value]
    if isinstance(value, dict):
        return {key: _with_words(item, words) for key, item in value.items()}
    return value
