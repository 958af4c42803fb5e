"""Times of day as prose tells them, and how many minutes lie between two."""

import pytest

from workers.agents.story.reading.story_time import Moment, clock_in, elapsed_minutes, moments_in

MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY, SATURDAY, SUNDAY = range(7)


@pytest.mark.parametrize(
    ("text", "weekday", "clock"),
    [
        ("Tuesday 3:00 PM", TUESDAY, "15:00"),
        ("By Monday, 4:00 PM, the light was going", MONDAY, "16:00"),
        ("Friday, a quarter past nine", FRIDAY, "9:15"),
        ("noon", None, "12:00"),
        ("noon on Friday", FRIDAY, "12:00"),
        ("midnight on Sunday", SUNDAY, "0:00"),
        ("7 am", None, "7:00"),
        ("7 a.m. sharp", None, "7:00"),
        ("3pm", None, "15:00"),
        ("3.30 p.m. on Thursday", THURSDAY, "15:30"),
        ("12:30 am", None, "0:30"),
        ("12 pm", None, "12:00"),
        ("15:30", None, "15:30"),
        ("Sat 9:15", SATURDAY, "9:15"),
        ("0700 hours", None, "7:00"),
        ("half past six in the evening", None, "18:30"),
        ("It was half past seven on Monday evening.", MONDAY, "19:30"),
        ("It was Tuesday evening, a little before seven o\u2019clock.", TUESDAY, "19:00"),
        ("by six thirty that evening", None, "18:30"),
        ("At ten to nine on Monday she left", MONDAY, "8:50"),
        ("Monday morning at quarter to 8", MONDAY, "7:45"),
        ("twenty-five minutes to ten", None, "9:35"),
        ("Thursday evening, twenty minutes past seven", THURSDAY, "19:20"),
        ("Thursday, ten o'clock, and the mail boat had gone at eight", THURSDAY, "10:00"),
        ("It was Sunday, three in the afternoon.", SUNDAY, "15:00"),
        ("eleven in the morning on Saturday", SATURDAY, "11:00"),
        ("twelve at night", None, "0:00"),
        ("ten past midnight", None, "0:10"),
        ("a quarter to midnight", None, "23:45"),
        ("five to noon", None, "11:55"),
        ("two at night", None, "2:00"),
        ("ten at night", None, "22:00"),
        ("Friday at seven", FRIDAY, "7:00"),
        ("2026-11-22T15:30:00Z", None, "15:30"),
    ],
)
def test_a_clock_is_read_however_it_is_written(text: str, weekday: int | None, clock: str) -> None:
    """Figures, words, parts of the day and weekdays on either side are one time."""
    hour, minute = map(int, clock.split(":"))
    found = clock_in(text)
    assert found is not None
    assert (found.weekday, found.minute) == (weekday, 60 * hour + minute)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "They ran past nine houses",
        "on Sundays",
        "She counted from five to nine",
        "an hour before noon",
        "ten minutes past the mill",
        "there were 25:70 of them",
        "a quarter of an hour",
        "five after eight people left",
        "he sat in the sun",
        "I am 7",
    ],
)
def test_what_is_no_time_is_none(text: str) -> None:
    """Counts, habits, lengths of time and impossible clocks are not read."""
    assert clock_in(text) is None


def test_the_words_stand_as_they_are() -> None:
    """A moment carries the story's own words."""
    found = clock_in("Snow fell. It was Tuesday evening, a quarter past nine, and dark.")
    assert found == Moment(TUESDAY, 21 * 60 + 15, "Tuesday evening, a quarter past nine")


def test_the_last_clock_counts_and_a_weekday_without_one_only_alone() -> None:
    """A weekday that is merely mentioned later does not take the place of a clock."""
    text = "Tuesday 3:00 PM. They talked until Wednesday 4:00 PM. The boat goes on Friday."
    assert clock_in(text) == Moment(WEDNESDAY, 16 * 60, "Wednesday 4:00 PM")
    assert clock_in("The boat goes on Friday night.") == Moment(FRIDAY, None, "Friday night")


def test_each_clock_has_its_own_weekday() -> None:
    """A weekday between two clocks belongs to one of them."""
    assert [one.weekday for one in moments_in("3 pm on Tuesday, 5 pm on Wednesday")] == [TUESDAY, WEDNESDAY]
    assert [one.weekday for one in moments_in("Tuesday 3:00 PM, Wednesday 4:00 PM")] == [TUESDAY, WEDNESDAY]


@pytest.mark.parametrize(
    ("before", "now", "minutes"),
    [
        ("Tuesday 3:00 PM", "Tuesday 3:30 PM", 30),
        ("Tuesday 11:50 PM", "Wednesday, ten minutes past midnight", 20),
        ("Tuesday 11:50 PM", "Wednesday 0:10", 20),
        ("Sunday 11:00 PM", "Monday 1:00 AM", 120),
        ("Friday noon", "Monday noon", 3 * 1440),
        ("Friday noon", "Friday noon", 0),
        ("Friday noon", "Friday 11:00 AM", 7 * 1440 - 60),
        ("11:00 PM", "Tuesday 1:00 AM", 120),
        ("Tuesday 11:00 PM", "half past eleven at night", 30),
        ("Tuesday", "Wednesday 4:00 PM", None),
        ("", "noon", None),
        (None, "noon", None),
        ("noon", None, None),
    ],
)
def test_minutes_go_on_only(before: str | None, now: str | None, minutes: int | None) -> None:
    """With both weekdays time wraps at the week, otherwise at the day; without two clocks nothing is known."""
    assert elapsed_minutes(before, now) == minutes
