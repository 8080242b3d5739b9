"""Parse and print instants and durations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_task_board import instants
from tests.support import refused

ZONE = "Asia/Shanghai"
LAST = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z


# Instants


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("2026-11-30T06:14:05.123+00:00", "2026-11-30T06:14:05.123+00:00"),
        ("2026-11-30T06:14:05Z", "2026-11-30T06:14:05.000+00:00"),
        ("2026-11-30T06:14:05.123999+00:00", "2026-11-30T06:14:05.123+00:00"),
        ("2026-11-30 06:14+08:00", "2026-11-29T22:14:00.000+00:00"),
        ("2026-11-30T06:14:05-03:30", "2026-11-30T09:44:05.000+00:00"),
        (" 2026-11-30T06:14:05Z ", "2026-11-30T06:14:05.000+00:00"),
        ("0001-01-02T00:00:00+00:00", "0001-01-02T00:00:00.000+00:00"),
        ("9999-12-31T23:59:59.999+00:00", "9999-12-31T23:59:59.999+00:00"),
    ],
)
def test_instant_goes_out_in_utc_with_fixed_width(written: str, stored: str) -> None:
    assert instants.parse_instant(written, ZONE, field="due_at") == stored
    assert len(stored) == 29


def test_instant_without_an_offset_is_in_the_zone_given() -> None:
    written = "2026-07-01T12:00:00"
    assert instants.parse_instant(written, ZONE, field="x") == "2026-07-01T04:00:00.000+00:00"
    assert instants.parse_instant(written, "America/New_York", field="x") == "2026-07-01T16:00:00.000+00:00"
    assert instants.parse_instant(written, "UTC", field="x") == "2026-07-01T12:00:00.000+00:00"


def test_bare_date_is_its_first_millisecond_or_its_last() -> None:
    assert instants.parse_instant("2026-12-01", ZONE, field="not_before") == "2026-11-30T16:00:00.000+00:00"
    assert (
        instants.parse_instant("2026-12-01", ZONE, field="due_at", end_of_day=True) == "2026-12-01T15:59:59.999+00:00"
    )


def test_end_of_day_does_not_touch_an_instant_with_a_time() -> None:
    assert (
        instants.parse_instant("2026-12-01T00:00", "UTC", field="due_at", end_of_day=True)
        == "2026-12-01T00:00:00.000+00:00"
    )


def test_date_on_which_the_clocks_change_ends_at_its_own_last_millisecond() -> None:
    found = instants.parse_instant("2026-10-25", "Europe/Berlin", field="due_at", end_of_day=True)
    assert found == "2026-10-25T22:59:59.999+00:00"


NOW = instants.from_text("2026-11-30T06:14:05.123+00:00")  # a Monday


def read(written: str, zone: str = "UTC", now: int = NOW, *, end: bool = False) -> str:
    return instants.parse_instant(written, zone, field="due_at", end_of_day=end, now=now)


@pytest.mark.parametrize(
    ("written", "zone", "first", "last"),
    [
        ("today", "UTC", "2026-11-30T00:00:00.000", "2026-11-30T23:59:59.999"),
        (" Tomorrow ", "UTC", "2026-12-01T00:00:00.000", "2026-12-01T23:59:59.999"),
        ("TUESDAY", "UTC", "2026-12-01T00:00:00.000", "2026-12-01T23:59:59.999"),
        ("friday", "UTC", "2026-12-04T00:00:00.000", "2026-12-04T23:59:59.999"),
        ("sunday", "UTC", "2026-12-06T00:00:00.000", "2026-12-06T23:59:59.999"),
        ("monday", "UTC", "2026-12-07T00:00:00.000", "2026-12-07T23:59:59.999"),
        ("today", "Asia/Shanghai", "2026-11-29T16:00:00.000", "2026-11-30T15:59:59.999"),
        ("today", "Pacific/Honolulu", "2026-11-29T10:00:00.000", "2026-11-30T09:59:59.999"),
        ("monday", "Pacific/Honolulu", "2026-11-30T10:00:00.000", "2026-12-01T09:59:59.999"),
    ],
)
def test_word_is_a_day_in_the_zone(written: str, zone: str, first: str, last: str) -> None:
    assert read(written, zone) == f"{first}+00:00"
    assert read(written, zone, end=True) == f"{last}+00:00"


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("+2d", "2026-12-02T06:14:05.123+00:00"),
        ("+90", "2026-11-30T06:15:35.123+00:00"),
        (" +1h30m ", "2026-11-30T07:44:05.123+00:00"),
        ("+ 1h", "2026-11-30T07:14:05.123+00:00"),
        ("+0", "2026-11-30T06:14:05.123+00:00"),
    ],
)
def test_length_counts_from_now_in_any_zone(written: str, stored: str) -> None:
    assert read(written) == read(written, "America/New_York", end=True) == stored


def test_days_after_today_follow_the_clocks_and_lengths_do_not() -> None:
    evening = instants.from_text("2026-10-24T20:00:00.000+00:00")  # 22:00 in Berlin, where the clocks go back at 3:00
    assert read("tomorrow", "Europe/Berlin", evening, end=True) == "2026-10-25T22:59:59.999+00:00"
    assert read("+1d", "Europe/Berlin", evening) == "2026-10-25T20:00:00.000+00:00"
    late = instants.from_text("2026-10-24T22:30:00.000+00:00")  # already Sunday in Berlin
    assert read("today", "Europe/Berlin", late) == "2026-10-24T22:00:00.000+00:00"
    assert read("sunday", "Europe/Berlin", late) == "2026-10-31T23:00:00.000+00:00"


def test_day_whose_last_hour_comes_twice_ends_after_the_second() -> None:
    # Cairo, 29 October 2026: at 24:00 the clocks go back to 23:00.
    assert read("2026-10-29", "Africa/Cairo", end=True) == "2026-10-29T21:59:59.999+00:00"
    assert read("2026-10-30", "Africa/Cairo") == "2026-10-29T22:00:00.000+00:00"


def test_day_that_begins_with_a_gap_begins_after_it() -> None:
    # Cairo, 24 April 2026: at 0:00 the clocks go forward to 1:00.
    assert read("2026-04-24", "Africa/Cairo") == "2026-04-23T22:00:00.000+00:00"
    assert read("2026-04-23", "Africa/Cairo", end=True) == "2026-04-23T21:59:59.999+00:00"


@pytest.mark.parametrize(
    "written", ["+", "+x", "++1d", "+-1d", "-2d", "2d", "+1w", "+99999999999d", "yesterday", "fri"]
)
def test_what_is_no_relative_instant_is_refused_and_told_which_there_are(written: str) -> None:
    with refused("invalid_input") as caught:
        read(written)
    assert "tomorrow" in caught.value.hint


def test_words_need_to_be_told_the_time() -> None:
    for written in ("tomorrow", "friday", "+2d"):
        with refused("invalid_input"):
            instants.parse_instant(written, "UTC", field="x")


def test_last_day_of_the_calendar_has_an_end() -> None:
    assert read("9999-12-31", end=True) == "9999-12-31T23:59:59.999+00:00"


def test_instant_may_be_a_datetime() -> None:
    east = timezone(timedelta(hours=8))
    assert (
        instants.parse_instant(datetime(2026, 12, 1, 8, tzinfo=east), "UTC", field="x")
        == "2026-12-01T00:00:00.000+00:00"
    )
    naive = datetime(2026, 12, 1, 8)  # noqa: DTZ001 - the board's zone applies
    assert instants.parse_instant(naive, ZONE, field="x") == "2026-12-01T00:00:00.000+00:00"


@pytest.mark.parametrize(
    "written",
    [
        *("", " ", "tomorrow", "2026-13-01", "2026-02-30", "2026-11-30T25:00", "30.11.2026", "12:00", "1796000000"),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "2026-11-30T06:14:05+25:00", "10000-01-01"),
        *(
            "2026-11-30T06:14:05 Europe/Berlin",
            "2026-11-30T06:14:05\x00",
            "2026-11-30\x0006:14",
            "\ud800",
            "x" * 10_000,
        ),
    ],
)
def test_what_is_no_instant_is_refused_by_field(written: str) -> None:
    with refused("invalid_input") as caught:
        instants.parse_instant(written, ZONE, field="not_before")
    assert caught.value.details["field"] == "not_before"
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("value", [5, 1.5, True, ["2026-12-01"], {}])
def test_what_is_not_even_text_is_refused_by_field(value: Any) -> None:
    with refused("invalid_input") as caught:
        instants.parse_instant(value, ZONE, field="due_at")
    assert caught.value.details["field"] == "due_at"


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../etc/passwd", "/etc/localtime", "Asia", "\x00", "z" * 5_000])
def test_unknown_zone_is_refused(zone: str) -> None:
    with refused("invalid_input") as caught:
        instants.load_zone(zone)
    assert caught.value.details["field"] == "timezone"
    with refused("invalid_input"):
        instants.parse_instant("2026-12-01", zone, field="due_at")


@given(st.integers(-62_135_596_800_000, LAST))
def test_stored_form_is_read_back_exactly(instant: int) -> None:
    text = instants.to_text(instant)
    assert len(text) == 29
    assert instants.from_text(text) == instant
    assert instants.parse_instant(text, ZONE, field="x") == text


@given(st.integers(-62_135_596_800_000, LAST), st.integers(-62_135_596_800_000, LAST))
def test_text_order_is_time_order(one: int, other: int) -> None:
    assert (instants.to_text(one) < instants.to_text(other)) == (one < other)


def test_now_is_the_present_in_milliseconds() -> None:
    before = datetime.now(UTC)
    found = datetime.fromtimestamp(instants.now() / 1_000, UTC)
    assert before - timedelta(milliseconds=1) <= found <= datetime.now(UTC)


# Durations


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        (90, 90_000),
        (1.5, 1_500),
        ("0", 0),
        ("90", 90_000),
        ("90s", 90_000),
        ("15m", 900_000),
        ("1h30m", 5_400_000),
        ("1h30", 3_630_000),
        ("2d", 172_800_000),
        ("1d2h3m4s", 93_784_000),
        (" 15m ", 900_000),
        ("120m", 7_200_000),
        (timedelta(minutes=2, milliseconds=3), 120_003),
    ],
)
def test_length_of_time_is_read(written: Any, milliseconds: int) -> None:
    assert instants.parse_length(written, field="lease", high=instants.DAY * 9) == milliseconds


@pytest.mark.parametrize(
    "written",
    [
        *("", " ", "m", "s", "-1", "-1s", "+1", "1.5h", "1 h", "1w", "1M", "15min", "30m1h", "1h1h", "1e3", "0x10"),
        *("٣", "\uff11s", "9" * 41, "NaN", "inf", None, True, False, [], {}, float("nan"), float("inf"), float("-inf")),
        *("1h\n30m", "1h\x00"),
    ],
)
def test_what_is_no_length_of_time_is_refused_by_field(written: Any) -> None:
    with refused("invalid_input") as caught:
        instants.parse_length(written, field="after", high=instants.DAY)
    assert caught.value.details["field"] == "after"


@pytest.mark.parametrize(
    ("written", "fits"),
    [("59s", False), ("1m", True), ("1h", True), ("1h1s", False), (3_600.001, False), (-5, False), (10**30, False)],
)
def test_bounds_of_a_length_of_time_are_included(written: Any, fits: bool) -> None:
    def parse() -> int:
        return instants.parse_length(written, field="lease", low=instants.MINUTE, high=instants.HOUR)

    if fits:
        parse()
        return
    with refused("invalid_input") as caught:
        parse()
    assert caught.value.details["field"] == "lease"


@pytest.mark.parametrize(
    ("length", "written"),
    [
        (0, "0s"),
        (1, "1ms"),
        (999, "999ms"),
        (1_000, "1s"),
        (90_000, "1m30s"),
        (5_400_000, "1h30m"),
        (instants.DAY, "1d"),
        (instants.DAY + instants.SECOND, "1d1s"),
        (instants.DAY + instants.HOUR + instants.MINUTE, "1d1h"),
        (-90_000, "-1m30s"),
    ],
)
def test_length_of_time_is_written_as_people_write_it(length: int, written: str) -> None:
    assert instants.format_length(length) == written


@given(st.integers(0, 10**6), st.sampled_from([instants.SECOND, instants.MINUTE, instants.HOUR, instants.DAY]))
def test_whole_units_are_read_back_as_they_are_written(count: int, unit: int) -> None:
    length = count % 24 * unit
    assert instants.parse_length(instants.format_length(length), field="x", high=instants.DAY * 25) == length
