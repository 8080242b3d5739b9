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
LATER = ("due_at", "not_before")
"""The template fields for instants: a time of day in the schedule's zone, or a duration after the occurrence."""
CATCH_UP = 1_000
_LATER_HIGH = 366 * instants.DAY
_TIME_OF_DAY = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
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
        if field not in allowed and field not in (DUE_IN, *LATER, "dedupe_key"):
            known = field in fields.FIELDS or field == fields.BLOCKED_BY
            what = "not allowed in a template" if known else "no such field"
            raise InvalidInput(f"task: {str(field)[:60]}: {what}", field="task")
    template = {key: value for key, value in task.items() if value is not None and key != "dedupe_key"}
    if DUE_IN in template and "due_at" in template:
        raise InvalidInput("task: due_at: cannot be combined with due_in", field="task")
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
    dates: dict[str, str | None] = dict.fromkeys(LATER)
    if template.get(DUE_IN) is not None:
        length = instants.parse_length(template[DUE_IN], field=DUE_IN, high=_LATER_HIGH)
        dates["due_at"] = instants.to_text(min(instant + length, _LATEST))
    for field in LATER:
        if template.get(field) is not None:
            dates[field] = _after(template[field], field, instant, zone)
    template = {**given, **dates, "dedupe_key": None}
    return fields.stored(template, fields.Context(core.settings, core.clock(), old=True))


def _after(value: object, field: str, instant: int, zone: str) -> str:
    """Return the instant that a template gives for an occurrence: a time of day in the zone, or a duration after it.

    A deadline's time of day is the next one after the occurrence; a start can be at the same time.
    """
    if isinstance(value, str) and (time := _TIME_OF_DAY.fullmatch(value.strip())):
        rule = f"{int(time[2])} {int(time[1])} * * *"  # as a rule, it knows what clocks do in gaps and overlaps
        since = instant if field == "due_at" else instant - 1
        return instants.to_text(next(recurrence.occurrences(rule, zone, since), _LATEST))
    if isinstance(value, str) and value.strip().startswith("+"):
        length = instants.parse_length(value.strip()[1:].strip(), field=field, high=_LATER_HIGH)
        return instants.to_text(min(instant + length, _LATEST))
    raise InvalidInput(
        f"{field}: neither a time of day nor a duration after the occurrence: {str(value)[:60]!r}",
        hint='Write a time of day in the zone of the schedule, such as "17:00", or a duration such as "+4h".',
        field=field,
    )


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
