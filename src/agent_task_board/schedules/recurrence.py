"""Read cron expressions and compute when they occur: pure, without a clock and without a board.

An expression has five fields: minute, hour, day of month, month, day of week. A field is a list of ``*``, ``a``,
``a-b``, each with a step if it likes (``*/n``, ``a-b/n``; ``a/n`` goes on to the end of the field's range). Months
and days have names in any case. The days of the week are 0 to 7, both ends are Sunday; ``SUN`` ends a range as 7.

Three rules that a reader would get wrong:

* A field that begins with ``*`` restricts nothing, ``*/2`` included. If day of month and day of week both restrict, a
  day that fits one of them is enough; otherwise a day must fit both, so ``0 0 */2 * MON`` is the Mondays of odd date.
  This is how the cron of Debian and cronsim read it; croniter would take ``*/2`` as a restriction.
* A job of fixed times (neither minute nor hour begins with ``*``) runs once for each of its wall-clock times: at the
  first existing minute after a gap that swallowed the time, at the first of the two where the clock is set back. Times
  that meet in one minute are one occurrence. So ``0 0-23 * * *`` is not ``0 * * * *``.
* Every other job runs in real time: at every existing minute that fits, in both passes of an hour that comes twice.

croniter only counts out the days, from plain lists of numbers that leave it nothing to misread. It does not know these
rules for the time of day, so that part is done here; ``zoneinfo`` says which wall-clock times exist.
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
"""The most occurrences of one preview."""

_HINT = (
    "Write five fields: minute 0-59, hour 0-23, day of month 1-31, month 1-12 or JAN-DEC, day of week 0-7 or SUN-SAT, "
    'such as "30 9 * * MON-FRI".'
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
"""Names that zone files have on some machines, each with a meaning of its own."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_END = instants.from_text("9999-12-30T00:00:00.000+00:00")
"""No occurrence from here on: a zone's clocks show the year 10000 a little later."""


class _Plan:
    """What an expression asks for: sorted numbers, and how they go together."""

    __slots__ = ("days", "either", "fixed", "hours", "minutes", "months", "weekdays")

    def __init__(self, fields: list[str]) -> None:
        numbers = [_numbers(field, *names) for field, names in zip(fields, _FIELDS, strict=True)]
        self.minutes, self.hours, self.days, self.months, weekdays = numbers
        self.weekdays = sorted({day % 7 for day in weekdays})
        self.fixed = not any(field.startswith("*") for field in fields[:2])
        self.either = not any(field.startswith("*") for field in (fields[2], fields[4]))


def check(cron: str, zone: str) -> str:
    """Return an expression with single spaces between its fields.

    Raises:
        InvalidInput: not five fields of cron (the message names the field that is wrong), a date that never comes, or
            no such time zone.
    """
    fields = _split(cron)
    _read(fields)
    instants.load_zone(inputs.line(zone, "timezone", inputs.NAME))
    if zone in _LOCAL or zone.startswith(("posix/", "right/")):
        what = f"timezone: {zone!r} means another zone on each machine, or none"
        raise InvalidInput(what, hint='Use an IANA name such as "Europe/Berlin" or "UTC".', field="timezone")
    return " ".join(fields)


def occurrences(cron: str, zone: str, after: int) -> Iterator[int]:
    """Yield the instants of an expression in a zone, each later than ``after`` and than the one before.

    All are milliseconds in UTC. They end only with the year 9999, so take as many as needed. There may be none at all:
    no clock of Berlin ever shows ``* 2 25-31 3 */7``.

    Raises:
        InvalidInput: as ``check`` says, at the call and not at the first instant.
    """
    plan = _read(_split(cron))
    walk = _once_each if plan.fixed else _in_real_time
    found = walk(plan, instants.load_zone(zone), min(after, _END))
    return takewhile(lambda at: at < _END, found)


def preview(cron: str, zone: str, after: int, count: int) -> list[dict[str, str]]:
    """Return the next ``count`` occurrences as ``{"at", "local"}``: the stored form, and ISO 8601 in the zone.

    Raises:
        InvalidInput: as ``check`` says, or ``count`` is not between 1 and 1,000.
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
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise _refuse(f"{text[:60]!r} has {len(fields)} instead of five fields")
    return fields


def _read(fields: list[str]) -> _Plan:
    plan = _Plan(fields)
    if not plan.either and plan.days[0] > max(_LONGEST[month] for month in plan.months):
        raise _refuse(f"day of month: no month of {fields[3][:60]!r} has a day {plan.days[0]}, so it would never run")
    return plan


def _numbers(field: str, name: str, low: int, high: int, words: dict[str, int]) -> list[int]:
    """Return the numbers that a field names, in order."""
    found: set[int] = set()
    for item in field.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise _refuse(f"{name}: {item[:60]!r} is not *, a number, a range or a step")
        begin, end, step = match.groups()
        first = low if begin is None else _number(begin, name, low, high, words)
        last = first if end is None else _number(end, name, low, high, words)
        if end is not None and end.upper() == "SUN" and first:
            last = 7  # SAT-SUN
        if last < first:
            two = ",".join(f"{a}-{b}" if a < b else str(a) for a, b in ((first, high), (low, last)))
            raise _refuse(f"{name}: {item[:60]!r} runs backwards", f"Write two ranges: {two}")
        if begin is None or (step is not None and end is None):
            last = high
        stride = 1 if step is None else int(step)
        if not 0 < stride <= high or (end is not None and stride > max(1, last - first)):
            raise _refuse(f"{name}: the step of {item[:60]!r} is beyond its range")
        found.update(range(first, last + 1, stride))
    return sorted(found)


def _number(text: str, name: str, low: int, high: int, words: dict[str, int]) -> int:
    if text.upper() in words:
        return words[text.upper()]
    if not text.isdigit():
        raise _refuse(
            f"{name}: {text[:60]!r} is not a number" + (" or a name such as " + list(words)[1] if words else "")
        )
    if not low <= int(text) <= high:
        raise _refuse(f"{name}: {text[:60]} is not between {low} and {high}")
    return int(text)


def _refuse(what: str, hint: str = _HINT) -> InvalidInput:
    return InvalidInput(f"cron: {what}", hint=hint, field="cron")


# A wall-clock time is a datetime whose zone says UTC and means nothing: its arithmetic has no gaps and no overlaps.


def _once_each(plan: _Plan, zone: tzinfo, after: int) -> Iterator[int]:
    reached = _wall(after, zone)
    for wall in _walls(plan, reached):
        if wall <= reached:  # a gap moved an earlier time to here or beyond
            continue
        reached = wall
        while not (passes := _passes(reached, zone)):
            reached += _MINUTE
        if passes[0] > after:
            yield passes[0]


def _in_real_time(plan: _Plan, zone: tzinfo, after: int) -> Iterator[int]:
    # If the clock is set back soon, times that are over come once more.
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
    """Return the instants at which a zone's clocks show a time: none in a gap, two where they are set back."""
    here = wall.replace(tzinfo=zone)
    first, second = here.utcoffset() or timedelta(), here.replace(fold=1).utcoffset() or timedelta()
    if first < second:  # PEP 495: the offset before a change and the one after it, and in a gap the clock goes forward
        return []
    return [(wall - _EPOCH - offset) // _MILLISECOND for offset in dict.fromkeys((first, second))]


def _wall(instant: int, zone: tzinfo) -> datetime:
    return _moment(instant).astimezone(zone).replace(tzinfo=UTC)


def _moment(instant: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=instant)


def _walls(plan: _Plan, after: datetime) -> Iterator[datetime]:
    """Yield the wall-clock times of a plan later than ``after``, whether a zone has them or not."""
    for day in _days(plan, after):
        for hour in plan.hours:
            if day.replace(hour=hour, minute=59) > after:
                for minute in plan.minutes:
                    wall = day.replace(hour=hour, minute=minute)
                    if wall > after:
                        yield wall


def _days(plan: _Plan, since: datetime) -> Iterator[datetime]:
    """Yield the midnights of the days of a plan from the day of ``since`` on."""
    from croniter import croniter

    days, months, weekdays = (",".join(map(str, field)) for field in (plan.days, plan.months, plan.weekdays))
    midnight = since.replace(hour=0, minute=0, second=0, microsecond=0)
    steps = croniter(f"0 0 {days} {months} {weekdays}", midnight - _MINUTE, ret_type=datetime, day_or=plan.either)
    try:
        while True:
            yield steps.get_next()
    except (OverflowError, ValueError):  # how croniter says, on one path or another, that the year 9999 is over
        return
