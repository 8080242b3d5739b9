"""When cron expressions occur: named cases, a walk over every minute, and cronsim over every zone.

cronsim 2.8 reads ``5-5/1`` as ``5/1``. All else that it does differently is at clock changes, where the walk decides:
it runs a fixed time once more when asked in the second pass of an hour that comes twice; it skips or shifts minutes of
other jobs where clocks change by less than an hour (Lord Howe), between two hours (Chatham) or at midnight (Sao Paulo,
Apia); and it never comes back from a change that crosses midnight at 00:01 (St. John's until 2011).
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from bisect import bisect_left
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import pytest
from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agent_task_board import instants
from agent_task_board.schedules import recurrence
from tests.support import refused

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
ZONES = sorted(zone for zone in available_timezones() if "/" in zone and not zone.startswith("Etc/"))
CHANGES = [
    ("Africa/Cairo", "2026-04-24"),  # midnight becomes 01:00
    ("Africa/Cairo", "2026-10-30"),
    ("Africa/Casablanca", "2026-02-15"),  # summer time all year, except one month
    ("Africa/Casablanca", "2026-03-22"),
    ("Africa/Monrovia", "1972-01-07"),  # 44 minutes and 30 seconds
    ("America/Havana", "2026-03-08"),
    ("America/Havana", "2026-11-01"),
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("America/Santiago", "2026-04-05"),
    ("America/Santiago", "2026-09-06"),
    ("America/Sao_Paulo", "2018-02-18"),
    ("America/Sao_Paulo", "2018-11-04"),
    ("America/Scoresbysund", "2026-03-29"),  # the gap ends on another date
    ("America/St_Johns", "2006-04-02"),
    ("America/St_Johns", "2006-10-29"),  # 00:01 becomes 23:01 of the day before
    ("Antarctica/Casey", "2010-03-05"),  # three hours
    ("Antarctica/Troll", "2026-03-29"),  # two hours
    ("Antarctica/Troll", "2026-10-25"),
    ("Asia/Kathmandu", "1986-01-01"),  # a quarter of an hour
    ("Asia/Shanghai", "2026-11-30"),  # nothing happens
    ("Australia/Lord_Howe", "2026-04-05"),  # half an hour
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Europe/Berlin", "2026-10-25"),
    ("Europe/Dublin", "2026-03-29"),  # winter time is the one that is set back
    ("Europe/Dublin", "2026-10-25"),
    ("Pacific/Apia", "2011-12-30"),  # a skipped day
    ("Pacific/Chatham", "2026-04-05"),
    ("Pacific/Chatham", "2026-09-27"),
    ("Pacific/Kwajalein", "1969-09-30"),  # a day that occurred twice, except one hour
]


def instant(text: str, zone: str = "UTC") -> int:
    return instants.from_text(instants.parse_instant(text, zone, field="after"))


def moment(at: int) -> datetime:
    return EPOCH + at * MILLISECOND


def local(cron: str, zone: str, after: str, count: int) -> list[str]:
    """Return the next occurrences in local time, without seconds."""
    return [entry["local"].replace(":00+", "+", 1).replace(":00-", "-", 1) for entry in show(cron, zone, after, count)]


def show(cron: str, zone: str, after: str, count: int) -> list[dict[str, str]]:
    return recurrence.preview(cron, zone, instant(after, zone), count)


def dates(cron: str, after: str, count: int) -> list[str]:
    return [entry["local"][:10] for entry in show(cron, "UTC", after, count)]


# Named cases


@pytest.mark.parametrize(
    ("zone", "cron", "after", "following"),
    [
        (
            "Asia/Shanghai",
            "0 9 * * 1-5",
            "2026-11-27T09:00",
            ["2026-11-30T09:00:00+08:00", "2026-12-01T09:00:00+08:00", "2026-12-02T09:00:00+08:00"],
        ),
        (
            "Asia/Shanghai",
            "0 0 13 * 5",
            "2026-02-01T00:00",
            [f"2026-02-{day}T00:00:00+08:00" for day in ("06", "13", "20", "27")],
        ),
        (
            "Asia/Shanghai",
            "59/15 * * * *",
            "2026-06-01T00:00",
            ["2026-06-01T00:59:00+08:00", "2026-06-01T01:59:00+08:00"],
        ),
        (
            "Asia/Shanghai",
            "0 0 1-1 * *",
            "2026-06-01T00:00",
            ["2026-07-01T00:00:00+08:00", "2026-08-01T00:00:00+08:00"],
        ),
        (
            "America/New_York",
            "30 2 * * *",
            "2026-03-07T03:00",
            ["2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"],
        ),
        (
            "America/New_York",
            "30 1 * * *",
            "2026-10-31T12:00",
            ["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"],
        ),
        (
            "America/New_York",
            "*/30 * * * *",
            "2026-11-01T00:30",
            [
                "2026-11-01T01:00:00-04:00",
                "2026-11-01T01:30:00-04:00",
                "2026-11-01T01:00:00-05:00",
                "2026-11-01T01:30:00-05:00",
                "2026-11-01T02:00:00-05:00",
            ],
        ),
        (
            "Europe/Berlin",
            "0 * * * *",
            "2026-10-25T01:30",
            [
                "2026-10-25T02:00:00+02:00",
                "2026-10-25T02:00:00+01:00",
                "2026-10-25T03:00:00+01:00",
                "2026-10-25T04:00:00+01:00",
            ],
        ),
        (
            "Australia/Lord_Howe",
            "15 2 * * *",
            "2026-10-03T12:00",
            ["2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"],
        ),
    ],
)
def test_table_of_facts(zone: str, cron: str, after: str, following: list[str]) -> None:
    assert [entry["local"] for entry in show(cron, zone, after, len(following))] == following


def test_times_that_one_gap_swallows_make_one_occurrence_together() -> None:
    gap = ("America/New_York", "2026-03-08T00:00")
    assert local("10,50 2 * * *", *gap, 2) == ["2026-03-08T03:00-04:00", "2026-03-09T02:10-04:00"]
    assert local("0,30 2,3 * * *", *gap, 3) == [
        "2026-03-08T03:00-04:00",
        "2026-03-08T03:30-04:00",
        "2026-03-09T02:00-04:00",
    ]


def test_time_of_a_day_that_never_was_runs_as_the_next_day_begins() -> None:
    assert local("0 9 * * *", "Pacific/Apia", "2011-12-29T08:00", 3) == [
        "2011-12-29T09:00-10:00",
        "2011-12-31T00:00+14:00",
        "2011-12-31T09:00+14:00",
    ]


def test_gap_that_ends_within_a_minute_moves_a_time_to_the_next_whole_minute() -> None:
    assert local("10 0 * * *", "Africa/Monrovia", "1972-01-06T12:00", 2) == [
        "1972-01-07T00:45+00:00",
        "1972-01-08T00:10+00:00",
    ]


def test_fixed_time_does_not_come_again_when_asked_in_the_second_pass() -> None:
    second_pass = instant("2026-11-01T01:15:00-05:00")
    assert next(recurrence.occurrences("30 1 * * *", "America/New_York", second_pass)) == instant(
        "2026-11-02T01:30:00-05:00"
    )


def test_second_pass_comes_although_the_first_is_over() -> None:
    last_minute = instant("2026-11-01T01:59:30-04:00")
    following = recurrence.occurrences("*/30 1 1 11 *", "America/New_York", last_minute)
    assert list(itertools.islice(following, 3)) == [
        instant("2026-11-01T01:00:00-05:00"),
        instant("2026-11-01T01:30:00-05:00"),
        instant("2027-11-01T01:00:00-04:00"),
    ]


def test_other_jobs_skip_a_gap() -> None:
    assert local("*/20 2 * * *", "America/New_York", "2026-03-07T12:00", 1) == ["2026-03-09T02:00-04:00"]


def test_star_with_a_step_restricts_no_day_and_makes_no_fixed_time() -> None:
    assert dates("0 0 */2 * MON", "2026-06-01", 3) == ["2026-06-15", "2026-06-29", "2026-07-13"]
    assert dates("0 0 1-31/14 * MON", "2026-06-01", 4) == ["2026-06-08", "2026-06-15", "2026-06-22", "2026-06-29"]
    assert dates("0 0 1-31 * MON", "2026-06-01", 2) == ["2026-06-02", "2026-06-03"]
    assert dates("0 0 1 * 0-7", "2026-06-01", 2) == ["2026-06-02", "2026-06-03"]
    assert len(set(local("0 */1 * * *", "Europe/Berlin", "2026-10-25T01:30", 2))) == 2


@pytest.mark.parametrize(
    ("written", "weekdays"),
    [
        ("0", "Sun"),
        ("7", "Sun"),
        ("sun", "Sun"),
        ("5-7", "Fri Sat Sun"),
        ("FRI-sun", "Fri Sat Sun"),
        ("0-2", "Mon Tue Sun"),
        ("Sun-Sun", "Sun"),
        ("7-7", "Sun"),
        ("MON-FRI", "Mon Tue Wed Thu Fri"),
        ("mon-fri/2,SAT", "Mon Wed Fri Sat"),
        ("1/2", "Mon Wed Fri Sun"),
        ("*/2", "Tue Thu Sat Sun"),
        ("0-7", "Mon Tue Wed Thu Fri Sat Sun"),
    ],
)
def test_days_of_the_week(written: str, weekdays: str) -> None:
    week = dates(f"0 0 * * {written}", "2026-11-29T12:00", len(weekdays.split()))
    assert [date.fromisoformat(day).strftime("%a") for day in week] == weekdays.split()
    assert week[-1] <= "2026-12-06"


@pytest.mark.parametrize(
    ("written", "months"),
    [
        ("jan", [1]),
        ("Jan,MAR-may", [1, 3, 4, 5]),
        ("Jan-12/6", [1, 7]),
        ("10/2", [10, 12]),
        ("*/5", [1, 6, 11]),
        ("02,*/7", [1, 2, 8]),
    ],
)
def test_months(written: str, months: list[int]) -> None:
    year = dates(f"0 0 1 {written} *", "2026-12-31", len(months) + 1)
    assert [int(day[5:7]) for day in year] == [*months, months[0]]


def test_range_of_one_number_is_that_number() -> None:
    for cron in ("5-5 * * * *", "5-5/1 * * * *"):
        assert [text[11:16] for text in local(cron, "UTC", "2026-06-01T00:00", 3)] == ["00:05", "01:05", "02:05"]


def test_29_february_comes_every_four_years_but_for_some_centuries() -> None:
    assert dates("0 0 29 2 *", "2090-01-01", 3) == ["2092-02-29", "2096-02-29", "2104-02-29"]


def test_29_february_on_one_day_of_the_week_comes_after_forty_years() -> None:
    assert dates("0 0 29 2 */7", "2088-03-01", 2) == ["2128-02-29", "2156-02-29"]


def test_next_is_later_than_the_instant_given_even_by_a_millisecond() -> None:
    noon = instant("2026-06-01T12:00")
    for cron in ("0 12 * * *", "* * * * *"):
        assert next(recurrence.occurrences(cron, "UTC", noon - 1)) == noon
        assert next(recurrence.occurrences(cron, "UTC", noon)) > noon


@pytest.mark.parametrize("cron", ["0 12 * * *", "0 */12 * * *"])
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12"])
def test_occurrences_end_with_the_year_9999(cron: str, zone: str) -> None:
    found = list(recurrence.occurrences(cron, zone, instant("9999-12-20")))
    assert found
    assert moment(found[-1]).date() == date(9999, 12, 29)
    assert list(recurrence.occurrences(cron, zone, instant("9999-12-31T23:59:59.999Z"))) == []


def test_last_second_pass_of_all_is_not_forgotten() -> None:
    found = recurrence.occurrences("*/30 1 7 11 *", "America/New_York", instant("9999-11-01"))
    assert [moment(at).hour for at in found] == [5, 5, 6, 6]


def test_time_that_a_zone_leaves_out_every_year_ends_without_an_occurrence() -> None:
    late = instant("9700-01-01")
    last_sunday_of_march = "* 2 25-31 3 */7"
    assert next(recurrence.occurrences(last_sunday_of_march, "Europe/Berlin", late), None) is None
    assert next(recurrence.occurrences(last_sunday_of_march, "Asia/Shanghai", late), None) is not None


def test_preview_shows_stored_form_and_local_time() -> None:
    assert recurrence.preview("30 9 * * *", "Asia/Kathmandu", instant("2026-06-01"), 2) == [
        {"at": "2026-06-01T03:45:00.000+00:00", "local": "2026-06-01T09:30:00+05:45"},
        {"at": "2026-06-02T03:45:00.000+00:00", "local": "2026-06-02T09:30:00+05:45"},
    ]


@pytest.mark.parametrize("count", [0, -1, 1_001, "3", True])
def test_preview_refuses_a_count_out_of_range(count: Any) -> None:
    with refused("invalid_input") as caught:
        recurrence.preview("* * * * *", "UTC", 0, count)
    assert caught.value.details["field"] == "count"


# Refusals


@pytest.mark.parametrize(
    ("cron", "normal"),
    [
        ("* * * * *", "* * * * *"),
        ("  0\t9  *   * MON-fri ", "0 9 * * MON-fri"),
        ("00 09 01 007 *", "00 09 01 007 *"),
        ("*/59 */23 */31 */12 */7", "*/59 */23 */31 */12 */7"),
        ("5-5/1,*/7,50/9 1-3/2 * * *", "5-5/1,*/7,50/9 1-3/2 * * *"),
        ("0 0 31 2,5 *", "0 0 31 2,5 *"),
        ("0 0 30 2 MON", "0 0 30 2 MON"),
        ("0 0 29 FEB *", "0 0 29 FEB *"),
    ],
)
def test_good_expression_comes_back_with_single_spaces(cron: str, normal: str) -> None:
    assert recurrence.check(cron, "UTC") == normal
    assert next(recurrence.occurrences(cron, "UTC", 0)) > 0


@pytest.mark.parametrize(
    ("cron", "named"),
    [
        ("60 * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("*/60 * * * *", "minute"),
        ("10-20/15 * * * *", "minute"),
        ("5-5/2 * * * *", "minute"),
        ("0/60 * * * *", "minute"),
        ("*/5/5 * * * *", "minute"),
        ("/5 * * * *", "minute"),
        ("5/ * * * *", "minute"),
        ("*/-5 * * * *", "minute"),
        ("*5 * * * *", "minute"),
        ("*-5 * * * *", "minute"),
        ("-5 * * * *", "minute"),
        ("5- * * * *", "minute"),
        ("1-2-3 * * * *", "minute"),
        ("+5 * * * *", "minute"),
        ("1_0 * * * *", "minute"),
        ("0x1 * * * *", "minute"),
        ("1.5 * * * *", "minute"),
        ("1e1 * * * *", "minute"),
        (", * * * *", "minute"),
        ("5, * * * *", "minute"),
        ("1,,2 * * * *", "minute"),
        ("R * * * *", "minute"),
        ("H * * * *", "minute"),
        ("R(0-9) * * * *", "minute"),
        ("MON * * * *", "minute"),
        ("\u0663 * * * *", "minute"),
        ("\uff15 * * * *", "minute"),
        ("\u00b2 * * * *", "minute"),
        ("50-10 * * * *", "minute"),
        ("9" * 100 + " * * * *", "minute"),
        ("*/" + "9" * 100 + " * * * *", "minute"),
        ("0 24 * * *", "hour"),
        ("0 22-4 * * *", "hour"),
        ("0 */24 * * *", "hour"),
        ("0 0 0 * *", "day of month"),
        ("0 0 32 * *", "day of month"),
        ("0 0 L * *", "day of month"),
        ("0 0 15W * *", "day of month"),
        ("0 0 ? * *", "day of month"),
        ("0 0 JAN * *", "day of month"),
        ("0 0 30 2 *", "day of month"),
        ("0 0 30-31 FEB *", "day of month"),
        ("0 0 31 4,6,9,NOV *", "day of month"),
        ("0 0 30 2 */2", "day of month"),
        ("0 0 * 0 *", "month"),
        ("0 0 * 13 *", "month"),
        ("0 0 * */13 *", "month"),
        ("0 0 * MAYBE *", "month"),
        ("0 0 * MON *", "month"),
        ("0 0 * nov-feb *", "month"),
        ("0 0 * \u0131an *", "month"),
        ("0 0 * * 8", "day of week"),
        ("0 0 * * 6-0", "day of week"),
        ("0 0 * * SAT-MON", "day of week"),
        ("0 0 * * MON#2", "day of week"),
        ("0 0 * * 5L", "day of week"),
        ("0 0 * * MONDAY", "day of week"),
        ("0 0 * * MON-", "day of week"),
        ("0 0 * * JAN", "day of week"),
        ("0 0 * * MON/SUN", "day of week"),
    ],
)
def test_bad_field_is_refused_by_its_name(cron: str, named: str) -> None:
    with refused("invalid_input") as caught:
        recurrence.check(cron, "UTC")
    assert caught.value.message.startswith(f"cron: {named}: ")
    assert caught.value.details == {"field": "cron"}
    with refused("invalid_input"):
        recurrence.occurrences(cron, "UTC", 0)


@pytest.mark.parametrize(
    "cron",
    [
        "",
        " ",
        "* * * *",
        "* * * * * *",
        "0 0 * * * * 2026",
        "@",
        "@ daily",
        "@daily @weekly",
        "@every 5m",
        "@reboot",
        "0 0 * *\n* *",
        "0 0 * * *\0",
        "0 0 * * " + ",".join("1" * 200),
        "* " * 5_000,
        5,
        None,
        ["*", "*", "*", "*", "*"],
    ],
)
def test_anything_but_five_fields_in_a_line_is_refused(cron: Any) -> None:
    with refused("invalid_input") as caught:
        recurrence.check(cron, "UTC")
    assert caught.value.details["field"] == "cron"


def test_refusal_of_a_rule_shows_the_five_fields_and_an_example() -> None:
    with refused("invalid_input") as caught:
        recurrence.check("@reboot", "UTC")
    for words in ("minute 0-59", "hour", "day of month", "month", "day of week", "30 9 * * MON-FRI", "@daily"):
        assert words in caught.value.hint


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        (" @Weekly ", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@ANNUALLY", "0 0 1 1 *"),
    ],
)
def test_named_rule_is_stored_as_its_five_fields(name: str, fields: str) -> None:
    assert recurrence.check(name, "UTC") == fields
    found = recurrence.preview(name, "Asia/Shanghai", 0, 3)
    assert found == recurrence.preview(fields, "Asia/Shanghai", 0, 3)


@pytest.mark.parametrize("zone", ["", " ", "Asia", "Asia/Nowhere", "../UTC", "UTC\n", "\0", "z" * 300, None, 8])
def test_unknown_zone_is_refused(zone: Any) -> None:
    with refused("invalid_input") as caught:
        recurrence.check("* * * * *", zone)
    assert caught.value.details["field"] == "timezone"


def test_range_that_runs_backwards_is_given_as_two() -> None:
    for written, two in (("50-10", "50-59,0-10"), ("59-0", "59,0")):
        with refused("invalid_input") as caught:
            recurrence.check(f"{written} * * * *", "UTC")
        assert caught.value.hint.endswith(f": {two}")
        recurrence.check(f"{two} * * * *", "UTC")


@given(st.text(alphabet="0123456789*/-, \tMONJAFEB@LW#?\u0663", max_size=40))
@settings(max_examples=300)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        normal = recurrence.check(text, "UTC")
    except Exception as exc:
        assert getattr(exc, "code", None) == "invalid_input", exc  # noqa: PT017 - either outcome is fine
    else:
        assert recurrence.check(normal, "UTC") == normal
        assert next(recurrence.occurrences(normal, "UTC", 0)) > 0


def test_libraries_of_time_zones_and_cron_load_only_when_asked() -> None:
    loaded = "import sys, agent_task_board.schedules.recurrence; print(*{'croniter', 'zoneinfo'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout == "\n"


# Properties: the sets below come from how an expression was put together, never from the reader under test


class Expression(NamedTuple):
    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]

    @property
    def fixed(self) -> bool:
        return not any(field.startswith("*") for field in self.text.split()[:2])

    def has_day(self, day: date) -> bool:
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        fields = self.text.split()
        both = fields[2].startswith("*") or fields[4].startswith("*")
        return day.month in self.months and ((of_month and of_week) if both else (of_month or of_week))

    def has(self, wall: datetime) -> bool:
        whole = not (wall.second or wall.microsecond)
        return whole and wall.minute in self.minutes and wall.hour in self.hours and self.has_day(wall.date())


@st.composite
def fields(draw: st.DrawFn, low: int, high: int, names: str = "") -> tuple[str, frozenset[int]]:
    words = dict(enumerate(names.split(), low))

    def name(number: int) -> str:
        word = words.get(number)
        return draw(st.sampled_from([str(number), word, word.lower()])) if word else str(number)

    texts: list[str] = []
    found: set[int] = set()
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        a, b = sorted((draw(st.integers(low, high)), draw(st.integers(low, high))))
        kind = draw(st.sampled_from(["a", "a", "a-b", "*/n", "a/n", "a-b/n"]))
        step = draw(st.integers(1, max(1, b - a) if kind == "a-b/n" else high)) if "n" in kind else 1
        if a == b and kind == "a-b/n":
            kind = "a"
        if kind == "*/n":
            a, b = low, high
        elif kind == "a/n":
            b = high
        elif kind == "a":
            b = a
        forms = {"*/n": f"*/{step}", "a": name(a), "a/n": f"{name(a)}/{step}", "a-b": f"{name(a)}-{name(b)}"}
        texts.append(forms.get(kind, f"{forms['a-b']}/{step}"))
        found.update(range(a, b + 1, step))
    return ",".join(texts), frozenset(found)


def _star(low: int, high: int) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    return st.just(("*", frozenset(range(low, high + 1))))


@st.composite
def expressions(draw: st.DrawFn) -> Expression:
    early = fields(0, 4).filter(lambda field: "/" not in field[0])  # where clocks change
    month_names, day_names = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", "SUN MON TUE WED THU FRI SAT"
    parts = [
        draw(st.one_of(_star(0, 59), fields(0, 59), fields(0, 59))),
        draw(st.one_of(_star(0, 23), fields(0, 23), early)),
        draw(st.one_of(_star(1, 31), _star(1, 31), fields(1, 31))),
        draw(st.one_of(_star(1, 12), _star(1, 12), fields(1, 12, month_names))),
        draw(st.one_of(_star(0, 7), _star(0, 7), fields(0, 7, day_names))),
    ]
    minutes, hours, days, months, weekdays = (numbers for _, numbers in parts)
    text = " ".join(text for text, _ in parts)
    return Expression(text, minutes, hours, days, months, frozenset(day % 7 for day in weekdays))


ANY_DATE = {(day.month, day.day, day.isoweekday()): day for day in map(date.fromordinal, range(730_120, 740_400))}
"""A date for each day of the year on each day of the week: twenty-eight years have them all."""


def comes(expression: Expression) -> bool:
    return any(map(expression.has_day, ANY_DATE.values()))


class Walk(NamedTuple):
    """Every minute around a day, and what a zone's clocks show then."""

    minutes: list[tuple[int, datetime]]
    first: dict[datetime, int]
    """When a time was shown for the first time."""
    times: list[datetime]
    """What was shown, in the order of the clock's face."""

    @property
    def start(self) -> int:
        return self.minutes[0][0]

    @property
    def end(self) -> int:
        return self.minutes[-1][0]


@cache
def walk(zone: str, day: str) -> Walk:
    """Walk from four days before noon of a day to four days after it."""
    noon = datetime.fromisoformat(f"{day}T12:00+00:00")
    here = ZoneInfo(zone)
    whole = not any((noon + timedelta(days=days)).astimezone(here).second for days in (-4, 4))
    minutes: list[tuple[int, datetime]] = []
    first: dict[datetime, int] = {}
    for step in range(0, 8 * 24 * 3600, 60 if whole else 30):
        at = noon + timedelta(days=-4, seconds=step)
        shown = at.astimezone(here).replace(tzinfo=None, fold=0)
        minutes.append(((at - EPOCH) // MILLISECOND, shown))
        if not shown.second:
            first.setdefault(shown, minutes[-1][0])
    return Walk(minutes, first, sorted(first))


def by_walking(expression: Expression, ground: Walk, after: int) -> list[int]:
    """Return the occurrences later than ``after`` by our rule, seen from the clock on the wall."""
    if not expression.fixed:
        return [at for at, shown in ground.minutes if at > after and expression.has(shown)]
    found = set()
    for ordinal in range(ground.times[0].toordinal() + 1, ground.times[-1].toordinal() + 1):
        day = datetime.fromordinal(ordinal)
        if expression.has_day(day.date()):
            for hour, minute in itertools.product(expression.hours, expression.minutes):
                next_shown = bisect_left(ground.times, day.replace(hour=hour, minute=minute))
                if next_shown < len(ground.times):
                    found.add(ground.first[ground.times[next_shown]])
    return sorted(at for at in found if at > after)


def assert_walk_agrees(expression: Expression, zone: str, day: str, after: int) -> None:
    ground = walk(zone, day)
    end = ground.end - 2 * instants.DAY  # later fixed times of the walk's last days are beyond its end
    found = itertools.takewhile(lambda at: at < end, recurrence.occurrences(expression.text, zone, after))
    assert list(found) == [at for at in by_walking(expression, ground, after) if at < end]


@given(expressions(), st.sampled_from(CHANGES), st.integers(-36 * 3600, 36 * 3600))
@settings(max_examples=100, deadline=None)
def test_walk_over_every_minute_of_a_clock_change_agrees(
    expression: Expression, change: tuple[str, str], seconds: int
) -> None:
    assume(comes(expression))
    zone, day = change
    assert_walk_agrees(expression, zone, day, instant(f"{day}T12:00Z") + seconds * instants.SECOND)


@given(expressions(), st.sampled_from(ZONES), st.integers(instant("2012-01-01"), instant("2060-01-01")))
@settings(max_examples=150, deadline=None)
def test_cronsim_agrees_but_for_clock_changes(expression: Expression, zone: str, after: int) -> None:
    assume(comes(expression))
    here = ZoneInfo(zone)
    after -= after % instants.MINUTE
    ours = list(itertools.islice(recurrence.occurrences(expression.text, zone, after), 12))
    assert all(a < b for a, b in itertools.pairwise([after, *ours]))
    if not expression.fixed:
        assert all(expression.has(moment(at).astimezone(here)) for at in ours)
    theirs = [
        (at.astimezone(UTC) - EPOCH) // MILLISECOND
        for at in itertools.islice(CronSim(expression.text, moment(after).astimezone(here)), 12)
    ]
    for a, b in zip(ours, theirs, strict=True):
        if a != b:
            day = moment(min(a, b)).date().isoformat()
            ground = walk(zone, day)
            offsets = {moment(at).astimezone(here).utcoffset() for at, _ in ground.minutes[:: 24 * 60]}
            assert len(offsets) > 1, "cronsim differs although the clocks did not change"
            assert_walk_agrees(expression, zone, day, max(after, ground.start + instants.DAY))
            return


@given(expressions())
@settings(max_examples=80, deadline=None)
def test_expression_is_refused_just_when_its_date_never_comes(expression: Expression) -> None:
    if comes(expression):
        recurrence.check(expression.text, "UTC")
    else:
        with refused("invalid_input"):
            recurrence.check(expression.text, "UTC")


@given(
    st.sampled_from(ZONES),
    st.dates(date(2012, 1, 1), date(2060, 1, 1)),
    st.integers(0, 23),
    st.integers(0, 59),
)
@settings(max_examples=25, deadline=None)
def test_fixed_time_runs_once_for_every_date_of_a_year(zone: str, first: date, hour: int, minute: int) -> None:
    here = ZoneInfo(zone)
    days = [first + timedelta(days=number) for number in range(370)]
    planned = [datetime(day.year, day.month, day.day, hour, minute) for day in days]  # noqa: DTZ001 - a clock's face
    before = planned[0].replace(tzinfo=here) - timedelta(hours=12)
    found = recurrence.occurrences(f"{minute} {hour} * * *", zone, (before - EPOCH) // MILLISECOND)
    for wall, at in zip(planned, found, strict=False):
        shown = moment(at).astimezone(here).replace(tzinfo=None)
        exists = wall.replace(tzinfo=here).astimezone(UTC).astimezone(here).replace(tzinfo=None, fold=0) == wall
        assert shown == wall if exists else wall < shown <= wall + timedelta(hours=3)
