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

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
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


def parse_instant(value: str | datetime, zone: str, *, field: str, end_of_day: bool = False) -> str:
    """Return the stored form of an ISO 8601 instant.

    A value without an offset is in ``zone`` (an IANA name). A bare date means its first millisecond, with
    ``end_of_day`` its last.

    Raises:
        InvalidInput: not ISO 8601, or outside the years 1 to 9999.
    """
    try:
        moment = value if isinstance(value, datetime) else _parse_iso(value, end_of_day=end_of_day)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=load_zone(zone))
        return moment.astimezone(UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{field}: not an instant: {str(value)[:60]!r}",
            hint='Write an ISO 8601 instant such as "2026-12-01T09:00:00+00:00", or a date such as "2026-12-01".',
            field=field,
        ) from None


def _parse_iso(value: object, *, end_of_day: bool) -> datetime:
    text = value.strip() if isinstance(value, str) else "\0"
    if not text.isprintable():  # fromisoformat stops at a NUL
        raise ValueError
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(text)
    start = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - the caller adds the zone
    return start.replace(hour=23, minute=59, second=59, microsecond=999_000) if end_of_day else start


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
