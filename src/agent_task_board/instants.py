"""Parse and print instants and lengths of time.

Inside the program an instant is an integer, milliseconds since 1970 in UTC, and a length of time an integer
number of milliseconds. In the database and in every answer an instant is text of fixed width in UTC,
``2026-11-30T06:14:05.123+00:00``, so that text order is time order.
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
    """Return the present instant."""
    return time.time_ns() // 1_000_000


def to_text(instant: int) -> str:
    """Return the stored form of an instant."""
    return (_EPOCH + timedelta(milliseconds=instant)).isoformat(timespec="milliseconds")


def from_text(text: str) -> int:
    """Return the instant of a stored form."""
    return (datetime.fromisoformat(text) - _EPOCH) // _MILLISECOND


def parse_instant(value: str | datetime, zone: str, *, field: str, end_of_day: bool = False) -> str:
    """Return the stored form of an ISO 8601 instant.

    Without an offset the value is in ``zone`` (an IANA name). A bare date means its first millisecond, or its
    last one with ``end_of_day``.

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
            f"{field}: {str(value)[:60]!r} is not an instant",
            hint='Write an ISO 8601 instant such as "2026-12-01T09:00:00+00:00", or a date such as "2026-12-01".',
            field=field,
        ) from None


def _parse_iso(value: object, *, end_of_day: bool) -> datetime:
    text = value.strip() if isinstance(value, str) else "\0"
    if not text.isprintable():  # the library's own reader stops at a NUL
        raise ValueError
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(text)
    start = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - the caller puts it into its zone
    return start.replace(hour=23, minute=59, second=59, microsecond=999_000) if end_of_day else start


def load_zone(name: str) -> tzinfo:
    """Return the time zone of an IANA name.

    Raises:
        InvalidInput: no such zone.
    """
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # OSError: the name of a folder of zones, such as "Asia"
        raise InvalidInput(
            f"timezone: {name[:60]!r} is not a time zone",
            hint='Use an IANA name such as "Asia/Shanghai" or "UTC".',
            field="timezone",
        ) from None


def parse_length(value: str | float | timedelta, *, field: str, low: int = 0, high: int) -> int:
    """Return a length of time in milliseconds.

    Accepts ``90``, ``90s``, ``15m``, ``1h30m``, ``2d``; a bare number counts seconds.

    Raises:
        InvalidInput: not a length of time, or not within ``low`` and ``high`` milliseconds.
    """
    length = _to_milliseconds(value)
    if length is None:
        raise InvalidInput(
            f"{field}: {str(value)[:60]!r} is not a length of time",
            hint="Write seconds, or a length such as 90s, 15m, 1h30m or 2d.",
            field=field,
        )
    if not low <= length <= high:
        raise InvalidInput(
            f"{field}: {format_length(length)} is not between {format_length(low)} and {format_length(high)}",
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
    """Return a length of time as people write it: ``1h30m``, ``90s`` as ``1m30s``; at most two units."""
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
