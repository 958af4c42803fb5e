"""Moments and periods: every way to say a day, a time or a zone, double readings, and the need of a now."""

import copy
import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from tasklore.contracts.errors import AmbiguousAmount, InvalidAmount, UnitMismatch
from tasklore.contracts.parameters.questions import spell_field
from tasklore.contracts.quantities.amounts import Duration, Moment
from tasklore.contracts.quantities.amounts.moment import iso_text
from tasklore.contracts.quantities.times import find_moments

ADAPTER = TypeAdapter(Moment)


#: A Wednesday.
NOW = datetime.fromisoformat("2026-11-18T16:40:12.5")


class Trip(BaseModel):
    """A model with a moment where a user would put one."""

    start: Moment


@pytest.mark.parametrize(
    "wording",
    ["2026-03-01", "1 March 2026", "March 1st, 2026", "Mar 1 2026", "the 1st of March, 2026", "sunday, 1 march 2026",
     "2026/03/01", "1.3.2026", "first of march 2026", "on 1 March '26", "\uff11 March \uff12\uff10\uff12\uff16",
     date(2026, 3, 1)],
)  # fmt: skip
def test_every_way_to_say_a_day_is_that_day(wording: Any) -> None:
    """Value, text and key agree, and the time of day stays unsaid."""
    moment = Moment(wording)
    assert moment == date(2026, 3, 1)
    assert moment.is_day
    assert (str(moment), spell_field("day", moment)) == ("2026-03-01", "2026-03-01")


def test_equal_instants_are_one_question_and_a_day_is_no_midnight() -> None:
    """An offset is a way to tell an instant; a local time is another thing, and so is a day."""
    instant = Moment("2026-03-01T15:30+02:00")
    assert (
        instant == Moment("2026-03-01 13:30 UTC") == Moment("2026-03-01T13:30:00.000Z")
    )
    assert (
        Moment(datetime(2026, 3, 1, 14, 30, tzinfo=ZoneInfo("Europe/Berlin")))
        == instant
    )
    assert str(instant) == "2026-03-01T13:30:00Z"
    assert instant.value.utcoffset() == timedelta(hours=2)  # type: ignore[union-attr]  # it has a time
    kinds = [
        Moment("2026-03-01"),
        Moment("2026-03-01T00:00"),
        Moment("2026-03-01T00:00Z"),
    ]
    assert len({spell_field("at", kind) for kind in kinds}) == len(set(kinds)) == 3
    with pytest.raises(UnitMismatch, match="make them alike"):
        assert kinds[0] < kinds[1]


def test_two_numbers_are_ambiguous_until_the_order_is_known() -> None:
    """Both readings are named, unless one cannot be a month."""
    with pytest.raises(AmbiguousAmount) as raised:
        Moment("01/03/2026")
    assert raised.value.readings == ("2026-03-01", "2026-01-03")
    assert Moment("01/03/2026", day_first=True) == Moment("15/03/2026") - Duration(
        "14 days"
    )
    assert Moment("01/03/2026", day_first=False) == date(2026, 1, 3)
    assert Moment("03/03/2026") == date(2026, 3, 3)


@pytest.mark.parametrize(
    "words",
    ["tomorrow", "3pm", "next friday", "in two weeks", "5 May", "the 5th", "now"],
)
def test_what_is_reckoned_from_now_is_refused_without_one(words: str) -> None:
    assert not find_moments(f"on {words}")
    with pytest.raises(
        InvalidAmount, match="is reckoned from a day that is not known here"
    ):
        Moment(f"on {words}" if words == "the 5th" else words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("today", "2026-11-18"), ("the day after tomorrow", "2026-11-20"), ("yesterday", "2026-11-17"),
        ("tomorrow at 3 pm", "2026-11-19T15:00:00"), ("at 15:30 on friday", "2026-11-20T15:30:00"),
        ("3pm", "2026-11-19T15:00:00"), ("5 pm", "2026-11-18T17:00:00"), ("friday morning at 9", "2026-11-20T09:00:00"),
        ("quarter to five in the afternoon", "2026-11-18T16:45:00"), ("24:00 today", "2026-11-19T00:00:00"),
        ("in two weeks", "2026-12-02"), ("in 3 months", "2027-02-18"), ("2 days ago", "2026-11-16"),
        ("in an hour and a half", "2026-11-18T18:10:12"), ("a week from tomorrow", "2026-11-26"),
        ("3 days before 5 May 2027", "2027-05-02"), ("end of the month", "2026-11-30"),
        ("the first day of next year", "2027-01-01"), ("the last day of february 2028", "2028-02-29"),
        ("5 May", "2027-05-05"), ("29 february", "2028-02-29"), ("the 25th of december", "2026-12-25"),
        ("last sunday", "2026-11-15"), ("tuesday", "2026-11-24"), ("on the 5th", "2026-12-05"),
        ("friday next week", "2026-11-27"), ("monday of next week", "2026-11-23"), ("friday week", "2026-11-27"),
        ("the third of next month", "2026-12-03"), ("tonight at half past nine", "2026-11-18T21:30:00"),
        ("8:15 tomorrow evening", "2026-11-19T20:15:00"), ("in 3 days at 5 pm", "2026-11-21T17:00:00"),
        ("3pm EST tomorrow", "2026-11-19T20:00:00Z"), ("6:45 am UTC+2 on 3 May 2027", "2027-05-03T04:45:00Z"),
    ],
)  # fmt: skip
def test_words_of_the_calendar_follow_now(words: str, expected: str) -> None:
    """A day without a year and an hour without a day are the next to come."""
    assert str(Moment(words, now=NOW)) == expected


@pytest.mark.parametrize(
    ("words", "readings"),
    [
        ("tomorrow at 5", ("2026-11-19T05:00:00", "2026-11-19T17:00:00")),
        ("half past ten tomorrow", ("2026-11-19T10:30:00", "2026-11-19T22:30:00")),
        ("wednesday", ("2026-11-18", "2026-11-25")),
        ("next friday", ("2026-11-20", "2026-11-27")),
        ("3pm IST on 1 May 2027", ("2027-05-01T09:30:00Z", "2027-05-01T14:00:00Z")),
    ],
)
def test_where_people_differ_both_readings_are_named(
    words: str, readings: tuple[str, ...]
) -> None:
    """A weekday on that weekday, "next friday" while this week's is to come, an hour without its half of the day."""
    with pytest.raises(AmbiguousAmount) as raised:
        Moment(words, now=NOW)
    assert raised.value.readings == readings


def test_the_lean_decides_on_which_side_of_now_a_day_is_looked_for() -> None:
    assert str(Moment("5 May", now=NOW, lean="past")) == "2026-05-05"
    assert str(Moment("friday", now=NOW, lean="past")) == "2026-11-13"
    assert str(Moment("3pm", now=NOW, lean="past")) == "2026-11-18T15:00:00"


@pytest.mark.parametrize(
    "raw",
    ["", "soon", "31 April 2026", "2026-02-30", "0000-00-00", "25:00 on 1 May 2026", "March 2026", "last week",
     "1 May 2026 or 2 May 2026", "5 km", 1_700_000_000, True, None, "2026-03-01T10:00:00.1234567", "1.2.3",
     "0001-01-01T00:00+05:00", "9" * 500, "2026-W09-7", "2026W097", "2026-060", "20260301", "2026-03-01T24:00",
     "2026-03-01T1530", "2016-12-31T23:59:60Z", datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))],
)  # fmt: skip
def test_what_is_no_one_moment_is_refused(raw: Any) -> None:
    """A month is no day, and what UTC cannot tell is no instant."""
    with pytest.raises(InvalidAmount):
        Moment(raw, now=NOW)


def test_moments_and_durations_add_up_on_the_calendar() -> None:
    """A month after the 31st is the last day of the month; hours need a time of day."""
    assert Moment("2026-01-31") + Duration("1 month") == date(2026, 2, 28)
    assert Moment("2026-05-31") + Duration("1 month") == date(2026, 6, 30)
    assert Moment("2026-03-01T23:00Z") + Duration("90 min") == Moment(
        "2026-03-02T00:30Z"
    )
    assert Moment("2026-03-01") - Moment("2026-02-01") == Duration("28 days")
    assert Moment("2026-03-01") - timedelta(days=1) == date(2026, 2, 28)
    for wrong in ("1 hour", "half a month", "9000 years"):
        with pytest.raises(InvalidAmount):
            Moment("2026-03-01") + Duration(wrong)


def test_a_moment_is_frozen_and_travels_as_text() -> None:
    """The model takes wordings that need no now; its schema names the format that supervisors know."""
    trip = Trip(start="March 1st, 2026")  # type: ignore[arg-type]  # what JSON brings
    assert trip.model_dump_json() == '{"start":"2026-03-01"}'
    assert (ADAPTER.json_schema()["type"], ADAPTER.json_schema()["format"]) == (
        "string",
        "moment",
    )
    assert (
        copy.deepcopy(trip.start)
        == pickle.loads(pickle.dumps(trip.start))  # noqa: S301 - our own
        == trip.start
    )
    with pytest.raises(AttributeError, match="cannot be changed"):
        trip.start.value = date(2026, 1, 1)
    with pytest.raises(ValidationError, match="2026-03-01 or 2026-01-03"):
        Trip(start="01/03/2026")  # type: ignore[arg-type]  # what JSON brings
    assert Moment("now", now=NOW.replace(tzinfo=UTC)) == Moment("2026-11-18T16:40:12Z")


@pytest.mark.parametrize(
    "sentence",
    ["every second tuesday", "the 3rd floor", "christmas cards", "half seven people came",
     "may I ask 5 people", "they march 10 times", "the cat sat on the sun", "a chunk size of 2000", "this morning",
     "between 2000 and 3000 dollars", "31 february 2020", "version 1.2.3 on 10.11.12.13"],
)  # fmt: skip
def test_words_that_only_look_like_time_are_left_alone(sentence: str) -> None:
    """Verbs, versions and counts are no days."""
    assert find_moments(sentence, NOW) == ()


#: A Monday.
MONDAY = datetime.fromisoformat("2026-11-23T10:00")


def moment(text: str) -> str:
    """Return the readings of the one moment of *text*, joined by a bar."""
    (found,) = find_moments(text, MONDAY)
    return "|".join(map(iso_text, found.readings))


@pytest.mark.parametrize(
    ("zone", "utc"),
    [
        ("New York time", "14:00"), ("new york time", "14:00"), ("EST", "14:00"), ("est", "14:00"), ("ET", "14:00"),
        ("Eastern time", "14:00"), ("Eastern Standard Time", "14:00"), ("Pacific", "17:00"),
        ("UTC", "09:00"), ("(UTC)", "09:00"), ("in UTC", "09:00"), ("GMT+2", "07:00"), ("UTC-5", "14:00"),
        ("CET", "08:00"),
        ("Berlin time", "08:00"), (", Berlin time", "08:00"), ("Europe/Berlin", "08:00"), ("London time", "09:00"),
        ("Tokyo time", "00:00"), ("JST", "00:00"), ("+02:00", "07:00"),
    ],
)  # fmt: skip
def test_a_zone_is_read_by_its_letters_and_its_places(zone: str, utc: str) -> None:
    """The same instant in each wording, and the day may follow the zone or stand before it."""
    assert moment(f"tomorrow at 9am {zone}") == f"2026-11-24T{utc}:00Z"
    assert moment(f"at 9am {zone.strip(', ')} tomorrow") == f"2026-11-24T{utc}:00Z"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("5 July 2027 at 9am New York time", "2027-07-05T13:00:00Z"),
        ("5 July 2027 at 9am EST", "2027-07-05T14:00:00Z"),
        ("7 Nov 2027 at 1:30am New York time", "2027-11-07T05:30:00Z|2027-11-07T06:30:00Z"),
        ("tomorrow at 9am IST", "2026-11-24T03:30:00Z|2026-11-24T08:00:00Z"),
        ("tomorrow at 9am CST", "2026-11-24T15:00:00Z|2026-11-24T01:00:00Z"),
    ],
)  # fmt: skip
def test_the_calendar_says_which_offset_and_two_are_told(text: str, told: str) -> None:
    """A place keeps summer time, letters do not; hours that come twice and letters of two zones have two readings."""
    assert moment(text) == told


@pytest.mark.parametrize(
    "after", ["local time", "this time", "in Berlin", "west of here", "Central Station"]
)
def test_what_only_looks_like_a_zone_is_none(after: str) -> None:
    """Where something happens is not whose clock it is."""
    assert moment(f"tomorrow at 9am {after}") == "2026-11-24T09:00:00"


@pytest.mark.parametrize(
    ("wording", "day"),
    [
        ("this coming wednesday", date(2026, 11, 25)),
        ("this coming thursday", date(2026, 11, 19)),
        ("this coming tuesday", date(2026, 11, 24)),
    ],
)
def test_a_coming_weekday_is_never_today(wording: str, day: date) -> None:
    """Said on a Wednesday."""
    (found,) = find_moments(f"see you {wording}", NOW)
    assert found.readings == (day,)


@pytest.mark.parametrize(
    ("written", "year"), [("1.3.68", 2068), ("1.3.69", 1969), ("1.3.99", 1999)]
)
def test_two_digits_are_a_year_as_posix_has_it(written: str, year: int) -> None:
    assert Moment(written) == date(year, 3, 1)


@pytest.mark.parametrize(
    ("wording", "day"),
    [
        ("on the 17th", date(2026, 12, 17)),
        ("on the 18th", date(2026, 11, 18)),
        ("on the 19th", date(2026, 11, 19)),
    ],
)
def test_a_day_of_no_month_is_the_next_one_and_may_be_today(
    wording: str, day: date
) -> None:
    (found,) = find_moments(wording, NOW)
    assert found.readings == (day,)
