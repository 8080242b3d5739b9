"""Parse and print instants and durations.

Inside the program an instant is an integer: milliseconds since 1970 in UTC. A duration is an integer number of
milliseconds. In the database and in every answer an instant is fixed-width text in UTC,
``2026-11-30T06:14:05.123+00:00``, so that the order of the texts is the order of the instants.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, date, datetime, timedelta

from .errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import tzinfo

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_STORED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DAYS = ("today", "tomorrow")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LENGTH = r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?"


def now() -> int:
    """Return the current instant."""
    return time.time_ns() // 1_000_000


def to_text(instant: int) -> str:
    """Return the stored form of an instant."""
    return (_EPOCH + timedelta(milliseconds=instant)).isoformat(timespec="milliseconds")


def from_text(text: str) -> int:
    """Return the instant of a stored form."""
    return (datetime.fromisoformat(text) - _EPOCH) // _MILLISECOND


def is_stored(text: str) -> bool:
    """Say whether a text is an instant in its stored form."""
    if not _STORED.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)  # the pattern also matches days that do not exist
    except ValueError:
        return False
    return True


def parse_instant(
    value: str | datetime, zone: str, *, field: str, end_of_day: bool = False, now: int | None = None
) -> str:
    """Return the stored form of an instant: ISO 8601 or, with ``now``, one relative to it.

    Without an offset the value is in ``zone`` (an IANA name). A bare date means its first millisecond, or its
    last one with ``end_of_day``; ``today``, ``tomorrow`` and the name of a weekday (its next one, never today) are
    such dates. ``+2d`` is that length of time after ``now``, whatever the clocks of the zone do meanwhile.

    Raises:
        InvalidInput: not an instant, or outside the years 1 to 9999.
    """
    try:
        if isinstance(value, str) and now is not None and is_relative(value):
            found = _relative(value.strip().lower(), load_zone(zone), now)
        else:
            found = value if isinstance(value, datetime) else _parse_iso(value)
        if not isinstance(found, datetime):
            return _of_day(found, load_zone(zone), end=end_of_day)
        if found.tzinfo is None:
            found = found.replace(tzinfo=load_zone(zone))
        return found.astimezone(UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        hint = 'Write an ISO 8601 instant such as "2026-12-01T09:00:00+00:00", or a date such as "2026-12-01"'
        more = "" if now is None else ", or today, tomorrow, the name of a weekday, or +2d"
        raise InvalidInput(
            f"{field}: not an instant: {str(value)[:60]!r}", hint=f"{hint}{more}.", field=field
        ) from None


def is_relative(value: object) -> bool:
    """Say whether an instant depends on when it is read: a word such as ``tomorrow``, or a length such as ``+2d``."""
    text = value.strip().lower() if isinstance(value, str) and len(value) <= 60 else ""
    return text in _DAYS or text in _WEEKDAYS or text.startswith("+")


def _relative(text: str, zone: tzinfo, now: int) -> date | datetime:
    """Return the date or the instant that a relative one stands for."""
    if text.startswith("+"):
        length = _to_milliseconds(text[1:].lstrip())
        if length is None:
            raise ValueError
        return _EPOCH + timedelta(milliseconds=now + length)
    today = (_EPOCH + timedelta(milliseconds=now)).astimezone(zone).date()
    if text in _DAYS:
        return today + timedelta(days=_DAYS.index(text))
    return today + timedelta(days=(_WEEKDAYS.index(text) - today.weekday() - 1) % 7 + 1)


def _of_day(day: date, zone: tzinfo, *, end: bool) -> str:
    """Return the first or the last millisecond of a day in a zone, whatever its clocks do at midnight."""
    if end and day < date.max:  # not 23:59:59.999, which comes twice where clocks are set back at midnight
        following = datetime.combine(day + timedelta(days=1), datetime.min.time(), zone).astimezone(UTC)
        return (following - _MILLISECOND).isoformat(timespec="milliseconds")
    time_of_day = datetime.max.time().replace(microsecond=999_000) if end else datetime.min.time()
    return datetime.combine(day, time_of_day, zone).astimezone(UTC).isoformat(timespec="milliseconds")


def _parse_iso(value: object) -> date | datetime:
    text = value.strip() if isinstance(value, str) else "\0"
    if not text.isprintable():  # fromisoformat stops at a NUL
        raise ValueError
    try:
        return date.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(text)


def load_zone(name: str) -> tzinfo:
    """Return the time zone of an IANA name.

    Raises:
        InvalidInput: no such zone.
    """
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # OSError: a folder of zones, such as "Asia"
        raise InvalidInput(
            f"timezone: not a time zone: {name[:60]!r}",
            hint='Use an IANA name such as "Asia/Shanghai" or "UTC".',
            field="timezone",
        ) from None


def parse_length(value: str | float | timedelta, *, field: str, low: int = 0, high: int) -> int:
    """Return a duration in milliseconds.

    Accepts ``90``, ``90s``, ``15m``, ``1h30m``, ``2d``; a bare number counts seconds.

    Raises:
        InvalidInput: not a duration, or not between ``low`` and ``high`` milliseconds.
    """
    length = _to_milliseconds(value)
    if length is None:
        raise InvalidInput(
            f"{field}: not a duration: {str(value)[:60]!r}",
            hint="Write a number of seconds, or a duration such as 90s, 15m, 1h30m or 2d.",
            field=field,
        )
    if not low <= length <= high:
        raise InvalidInput(
            f"{field}: out of range: {format_length(length)} (allowed {format_length(low)} to {format_length(high)})",
            field=field,
        )
    return length


def _to_milliseconds(value: object) -> int | None:
    if isinstance(value, timedelta):
        return value // _MILLISECOND
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return round(value * SECOND) if abs(value) < 1e12 else None  # NaN and infinities compare false
    match = re.fullmatch(_LENGTH, value.strip(), re.ASCII) if isinstance(value, str) and len(value) <= 40 else None
    if match is None or not any(match.groups()):
        return None
    days, hours, minutes, seconds = (int(group or 0) for group in match.groups())
    return days * DAY + hours * HOUR + minutes * MINUTE + seconds * SECOND


def format_length(length: int) -> str:
    """Return a duration as people write it, in at most two units: 90,061 s is ``1d1h``, 90 s is ``1m30s``."""
    if length < 0:
        return f"-{format_length(-length)}"
    if 0 < length < SECOND:
        return f"{length}ms"
    parts = []
    for unit, letter in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s")):
        count, length = divmod(length, unit)
        if count:
            parts.append(f"{count}{letter}")
    return "".join(parts[:2]) or "0s"
