"""Parse cron expressions and compute their occurrences, without a clock and without a board.

An expression has five fields: minute, hour, day of month, month, day of week. A field is a list of ``*``, ``a``
and ``a-b``, each with an optional step (``*/n``, ``a-b/n``; ``a/n`` continues to the end of the field's range). Months
and days have names, in upper or lower case. Days of the week are 0 to 7; 0 and 7 are Sunday, and ``SUN`` at the end of
a range is 7. A whole rule can be a name such as ``@daily``.

Three rules that are easy to get wrong:

* A field that begins with ``*`` is unrestricted, even ``*/2``. If day of month and day of week are both restricted, a
  day must match one of them; otherwise it must match both, so ``0 0 */2 * MON`` means Mondays with an odd date.
  Debian's cron and cronsim do the same; croniter treats ``*/2`` as a restriction.
* A job with fixed times (neither minute nor hour begins with ``*``) runs once for each of its wall-clock times. A time
  in a gap runs at the first existing minute after the gap, and a time that occurs twice runs the first time. Times that
  fall into the same minute are one occurrence. So ``0 0-23 * * *`` differs from ``0 * * * *``.
* Every other job runs in real time: at every existing minute that matches, both times if the minute occurs twice.

croniter computes only the days, from plain lists of numbers that it cannot misread. It does not have these rules for
the time of day, so this module implements them; ``zoneinfo`` says which wall-clock times exist.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import takewhile

from .. import inputs, instants
from ..errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

COUNT = 1_000
"""The most occurrences in a preview."""

ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""Names of rules, in any case, and the five fields that each stands for."""
_HINT = (
    "Write five fields: minute 0-59, hour 0-23, day of month 1-31, month 1-12 or JAN-DEC, day of week 0-7 or SUN-SAT, "
    f'such as "30 9 * * MON-FRI"; or one of {" ".join(ALIASES)}.'
)
_MONTHS = {name: number for number, name in enumerate("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), 1)}
_WEEKDAYS = {name: number for number, name in enumerate("SUN MON TUE WED THU FRI SAT".split())}
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _WEEKDAYS),
)
_LONGEST = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ITEM = re.compile(r"(?:\*|([0-9]+|[A-Za-z]+)(?:-([0-9]+|[A-Za-z]+))?)(?:/([0-9]+))?")
_LOCAL = ("localtime", "posixrules", "Factory")
"""Names of zone files that mean different zones on different machines."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_END = instants.from_text("9999-12-30T00:00:00.000+00:00")
"""No occurrence from here on: a little later, clocks in some zones show the year 10000."""


class _Plan:
    """A parsed expression: sorted numbers by field, and how to combine them."""

    __slots__ = ("days", "either", "fixed", "hours", "minutes", "months", "weekdays")

    def __init__(self, fields: list[str]) -> None:
        numbers = [_numbers(field, *names) for field, names in zip(fields, _FIELDS, strict=True)]
        self.minutes, self.hours, self.days, self.months, weekdays = numbers
        self.weekdays = sorted({day % 7 for day in weekdays})
        self.fixed = not any(field.startswith("*") for field in fields[:2])
        self.either = not any(field.startswith("*") for field in (fields[2], fields[4]))


def check(cron: str, zone: str) -> str:
    """Return an expression as five fields with single spaces between them.

    Raises:
        InvalidInput: not five cron fields (the message names the wrong one), a date that never occurs, or no such time
            zone.
    """
    fields = _split(cron)
    _read(fields)
    instants.load_zone(inputs.line(zone, "timezone", inputs.NAME))
    if zone in _LOCAL or zone.startswith(("posix/", "right/")):
        what = f"timezone: not the same zone on every machine: {zone!r}"
        raise InvalidInput(what, hint='Use an IANA name such as "Europe/Berlin" or "UTC".', field="timezone")
    return " ".join(fields)


def occurrences(cron: str, zone: str, after: int) -> Iterator[int]:
    """Yield the instants of an expression in a zone, each later than ``after`` and than the one before.

    All are milliseconds in UTC. They end with the year 9999, so take only as many as needed. There may be none:
    ``* 2 25-31 3 */7`` never occurs in Europe/Berlin.

    Raises:
        InvalidInput: as for ``check``; raised by the call, not at the first instant.
    """
    plan = _read(_split(cron))
    walk = _once_each if plan.fixed else _in_real_time
    found = walk(plan, instants.load_zone(zone), min(after, _END))
    return takewhile(lambda at: at < _END, found)


def preview(cron: str, zone: str, after: int, count: int) -> list[dict[str, str]]:
    """Return the next ``count`` occurrences as ``{"at", "local"}``: the stored form, and ISO 8601 in the zone.

    Raises:
        InvalidInput: as for ``check``, or ``count`` is not 1 to 1,000.
    """
    inputs.integer(count, "count", 1, COUNT)
    local = instants.load_zone(zone)
    return [
        {"at": instants.to_text(at), "local": _moment(at).astimezone(local).isoformat(timespec="seconds")}
        for _, at in zip(range(count), occurrences(cron, zone, after), strict=False)
    ]


def _split(cron: object) -> list[str]:
    """Return the five fields as written."""
    text = inputs.line(cron.strip().replace("\t", " ") if isinstance(cron, str) else cron, "cron", inputs.KEY)
    fields = ALIASES.get(text.lower(), text).split()
    if len(fields) != len(_FIELDS):
        raise _refuse(f"not five fields but {len(fields)}: {text[:60]!r}")
    return fields


def _read(fields: list[str]) -> _Plan:
    plan = _Plan(fields)
    if not plan.either and plan.days[0] > max(_LONGEST[month] for month in plan.months):
        raise _refuse(f"day of month: never occurs: day {plan.days[0]} in month {fields[3][:60]!r}")
    return plan


def _numbers(field: str, name: str, low: int, high: int, words: dict[str, int]) -> list[int]:
    """Return the numbers that a field names, in order."""
    found: set[int] = set()
    for item in field.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise _refuse(f"{name}: not *, a number, a range or a step: {item[:60]!r}")
        begin, end, step = match.groups()
        first = low if begin is None else _number(begin, name, low, high, words)
        last = first if end is None else _number(end, name, low, high, words)
        if end is not None and end.upper() == "SUN" and first:
            last = 7  # SAT-SUN
        if last < first:
            two = ",".join(f"{a}-{b}" if a < b else str(a) for a, b in ((first, high), (low, last)))
            raise _refuse(f"{name}: range runs backwards: {item[:60]!r}", f"Write two ranges: {two}")
        if begin is None or (step is not None and end is None):
            last = high
        stride = 1 if step is None else int(step)
        if not 0 < stride <= high or (end is not None and stride > max(1, last - first)):
            raise _refuse(f"{name}: step is larger than its range: {item[:60]!r}")
        found.update(range(first, last + 1, stride))
    return sorted(found)


def _number(text: str, name: str, low: int, high: int, words: dict[str, int]) -> int:
    if text.upper() in words:
        return words[text.upper()]
    if not text.isdigit():
        raise _refuse(f"{name}: not a number{f' or a name such as {list(words)[1]}' if words else ''}: {text[:60]!r}")
    if not low <= int(text) <= high:
        raise _refuse(f"{name}: out of range: {text[:60]} (allowed {low} to {high})")
    return int(text)


def _refuse(what: str, hint: str = _HINT) -> InvalidInput:
    return InvalidInput(f"cron: {what}", hint=hint, field="cron")


# A wall-clock time is a datetime with the zone UTC, whatever the real zone: its arithmetic has no gaps or overlaps.


def _once_each(plan: _Plan, zone: tzinfo, after: int) -> Iterator[int]:
    reached = _wall(after, zone)
    for wall in _walls(plan, reached):
        if wall <= reached:  # a gap has moved an earlier time to here or later
            continue
        reached = wall
        while not (passes := _passes(reached, zone)):
            reached += _MINUTE
        if passes[0] > after:
            yield passes[0]


def _in_real_time(plan: _Plan, zone: tzinfo, after: int) -> Iterator[int]:
    # If the clock is set back soon, times that have passed occur again.
    start = min(_wall(after, zone), _wall(after + instants.DAY, zone) - _DAY)
    again: list[int] = []
    for wall in _walls(plan, start):
        passes = _passes(wall, zone)
        while passes and again and again[0] < passes[0]:
            yield again.pop(0)
        for at in passes[:1]:
            if at > after:
                yield at
        again += passes[1:]
    yield from again


def _passes(wall: datetime, zone: tzinfo) -> list[int]:
    """Return the instants at which clocks in a zone show a time: none in a gap, two if the clock is set back."""
    here = wall.replace(tzinfo=zone)
    first, second = here.utcoffset() or timedelta(), here.replace(fold=1).utcoffset() or timedelta()
    if first < second:  # PEP 495: the offsets before and after a change; in a gap the clock goes forward
        return []
    return [(wall - _EPOCH - offset) // _MILLISECOND for offset in dict.fromkeys((first, second))]


def _wall(instant: int, zone: tzinfo) -> datetime:
    return _moment(instant).astimezone(zone).replace(tzinfo=UTC)


def _moment(instant: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=instant)


def _walls(plan: _Plan, after: datetime) -> Iterator[datetime]:
    """Yield the wall-clock times of a plan later than ``after``, including those that a zone skips."""
    for day in _days(plan, after):
        for hour in plan.hours:
            if day.replace(hour=hour, minute=59) > after:
                for minute in plan.minutes:
                    wall = day.replace(hour=hour, minute=minute)
                    if wall > after:
                        yield wall


def _days(plan: _Plan, since: datetime) -> Iterator[datetime]:
    """Yield the days of a plan as midnights, from the day of ``since`` on."""
    from croniter import croniter

    days, months, weekdays = (",".join(map(str, field)) for field in (plan.days, plan.months, plan.weekdays))
    midnight = since.replace(hour=0, minute=0, second=0, microsecond=0)
    steps = croniter(f"0 0 {days} {months} {weekdays}", midnight - _MINUTE, ret_type=datetime, day_or=plan.either)
    try:
        while True:
            yield steps.get_next()
    except (OverflowError, ValueError):  # croniter's two ways to end after the year 9999
        return
