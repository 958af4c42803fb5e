"""Times of a story, whatever a text holds."""

from hypothesis import given
from hypothesis import strategies as st

from workers.agents.story.reading.story_time import DAY, WEEK, clock_in, elapsed_minutes, moments_in

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
PIECES = st.sampled_from(
    (*DAYS, "Sat", "at", "on", "half", "past", "a", "quarter", "to", "twenty", "five", "twelve", "o'clock", "noon",
     "PM", "a.m.", ",", ".", "9:15", "12:60", "0700", "hours", "in", "the", "evening", "night", "before", "an",
     "hour", "99")
)  # fmt: skip


@st.composite
def clocks(draw: st.DrawFn) -> tuple[str, int, int]:
    """A time in one of its spellings, its weekday and its minute of the day."""
    day, minute = draw(st.integers(0, 6)), draw(st.integers(0, DAY - 1))
    hour, rest = divmod(minute, 60)
    half = "AM" if hour < 12 else "PM"
    told = draw(st.sampled_from((f"{hour}:{rest:02}", f"{hour % 12 or 12}:{rest:02} {half}")))
    shapes = (f"{DAYS[day]} {told}", f"{DAYS[day]}, {told}", f"{told} on {DAYS[day]}", f"It was {told}, {DAYS[day]}.")
    return draw(st.sampled_from(shapes)), day, minute


@given(clocks())
def test_every_spelling_of_a_time_is_that_time(told: tuple[str, int, int]) -> None:
    """Whatever the day and the minute: what was written is what is read."""
    text, day, minute = told
    found = clock_in(text)
    assert found is not None
    assert (found.weekday, found.minute) == (day, minute)


@given(clocks(), clocks())
def test_going_there_and_back_takes_whole_weeks(one: tuple[str, int, int], other: tuple[str, int, int]) -> None:
    """Minutes are never negative, and those of both ways add up to none or one week."""
    there, back = elapsed_minutes(one[0], other[0]), elapsed_minutes(other[0], one[0])
    assert there is not None
    assert back is not None
    assert 0 <= there < WEEK
    assert (there + back) % WEEK == 0


@given(st.one_of(st.text(), st.lists(PIECES, max_size=40).map(" ".join)))
def test_no_text_breaks_the_reading(text: str) -> None:
    """Whatever stands there: weekdays and minutes are within bounds, and the words are the text's own."""
    for moment in moments_in(text):
        assert moment.weekday is None or 0 <= moment.weekday < 7
        assert moment.minute is None or 0 <= moment.minute < DAY
        assert moment.words in text
