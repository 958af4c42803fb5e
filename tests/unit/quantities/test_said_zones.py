"""Zones beside a time of day, by their letters and by the places they belong to."""

from datetime import datetime

import pytest

from quantities.amounts.moment import iso_text
from quantities.times import find_moments

#: A Monday.
NOW = datetime.fromisoformat("2026-11-23T10:00")


def moment(text: str) -> str:
    """Return the readings of the one moment of *text*, joined by a bar."""
    (found,) = find_moments(text, NOW)
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


@pytest.mark.parametrize("after", ["local time", "this time", "in Berlin", "west of here", "Central Station"])
def test_what_only_looks_like_a_zone_is_none(after: str) -> None:
    """Where something happens is not whose clock it is."""
    assert moment(f"tomorrow at 9am {after}") == "2026-11-24T09:00:00"
