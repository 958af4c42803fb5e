"""Time zones: named as IANA names them, shown as their clocks show them."""

from datetime import UTC, date, datetime, timedelta

import pytest
from pydantic import ValidationError

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import PersonRequest
from tasklore.contracts.quantities.times import find_moments
from tasklore.contracts.zones import in_zone, read_zone

NEW_YEARS_EVE = datetime(2026, 12, 31, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("UTC", "2026-12-31T23:30:00+00:00"),
        ("Europe/Berlin", "2027-01-01T00:30:00+01:00"),
        ("Asia/Kathmandu", "2027-01-01T05:15:00+05:45"),
    ],
)
def test_a_moment_is_told_as_the_clocks_of_a_zone_show_it(
    name: str, shown: str
) -> None:
    """It stays the same instant."""
    told = in_zone(NEW_YEARS_EVE, name)
    assert (told.isoformat(), told) == (shown, NEW_YEARS_EVE)


@pytest.mark.parametrize("hours", [22, 24, 24.5, 25.5, 46.9])
def test_tomorrow_is_one_day_however_long_today_is(hours: float) -> None:
    """From the first minute to the last of a day with 25 hours, and in both that the clocks call two."""
    now = in_zone(
        datetime(2026, 10, 24, tzinfo=UTC) + timedelta(hours=hours), "Europe/Berlin"
    )
    assert [one.readings for one in find_moments("for tomorrow", now)] == [
        (date(2026, 10, 26),)
    ]


def test_hours_from_a_moment_are_hours_when_the_clocks_change() -> None:
    """Two of them after half past one, in the night of the change, although the clocks show half past four by then."""
    before = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
    assert in_zone(before, "Europe/Berlin") + timedelta(hours=2) - before == timedelta(
        hours=2
    )


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("Europe/Berln", "did you mean 'Europe/Berlin'?"),
        ("europe/berlin", "did you mean 'Europe/Berlin'?"),
        ("", "write one such as"),
        ("localtime", "there is no time zone"),
        ("posix/Europe/Berlin", "there is no time zone"),
        ("../../etc/passwd", "there is no time zone"),
        ("Z" * 5000, "there is no time zone"),
    ],
)
def test_what_is_no_zone_is_refused_with_the_nearest(name: str, cure: str) -> None:
    """Files of the machine are none, whatever they are called."""
    with pytest.raises(InvalidInput) as caught:
        read_zone(name)
    assert cure in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_request_names_a_zone_or_none() -> None:
    """Without one it is written as it always was, so that older programs read and compare the same."""
    with pytest.raises(ValidationError, match="did you mean 'Asia/Tokyo'"):
        PersonRequest(text="hi", time_zone="Asia/Tokio")
    assert (
        PersonRequest(text="hi", time_zone="Asia/Tokyo").model_dump()["time_zone"]
        == "Asia/Tokyo"
    )
    assert "time_zone" not in PersonRequest(text="hi").model_dump_json()
