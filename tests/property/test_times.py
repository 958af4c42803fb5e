"""Durations and moments: one value for every spelling, spans that point where they say, no text that breaks them."""

import copy
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tasklore.contracts.errors import InvalidAmount
from tasklore.contracts.parameters.questions import spell_field
from tasklore.contracts.quantities.amounts import Duration, Moment
from tasklore.contracts.quantities.times import find_durations, find_moments
from tasklore.supervisor.understanding.utterance import word_set

NOW = datetime.fromisoformat("2026-11-22T09:30")
DURATIONS = TypeAdapter(Duration)
MOMENTS = TypeAdapter(Moment)

counts = st.decimals(min_value=0, max_value=10**9, places=3, allow_nan=False)
durations = st.builds(
    lambda months, seconds, sign: (Duration({"value": months, "unit": "month"}) + Duration({"value": seconds, "unit":
    "second"})) * sign,
    st.integers(min_value=0, max_value=10**6), counts, st.sampled_from([1, -1]),
)  # fmt: skip
zones = st.integers(min_value=-14 * 60, max_value=14 * 60).map(
    lambda minutes: timezone(timedelta(minutes=minutes))
)
offsets = st.none() | zones
days = st.dates(min_value=date(1, 1, 3), max_value=date(9999, 12, 28))
moments = days.map(Moment) | st.builds(
    lambda day, clock, zone: Moment(datetime.combine(day, clock, zone)),
    days,
    st.times(),
    offsets,
)

_WORDS = sorted(word_set(
    "a an the half quarter and three five twenty hundred hours hour minutes day days weeks month months year ago in"
    " from now at pm am noon midnight next last this friday monday may march 5th 3 7 12 31 2026 15:30 2026-03-01"
    " 01/03/2026 between to - , . of end beginning first second couple few tomorrow yesterday since until past"
    " on o'clock q3 letzte woche 上周 三天前 2024年3月 十二月 il y jours назад utc 1.500 ½ 1/2 PT1H30M P3M after"
    " before old every"
))  # fmt: skip
sentences = st.lists(st.sampled_from(_WORDS), max_size=12).map(" ".join) | st.text(
    max_size=60
)


@given(durations)
def test_a_duration_is_read_back_from_its_own_text_and_its_json(
    duration: Duration,
) -> None:
    """The canonical spelling, JSON and a copy lose nothing, and equal values have one key."""
    again = Duration(str(duration))
    assert again == duration == DURATIONS.validate_json(DURATIONS.dump_json(duration))
    assert copy.deepcopy(duration) == duration
    assert (str(again), spell_field("length", again)) == (
        str(duration),
        spell_field("length", duration),
    )


@given(st.integers(min_value=0, max_value=10**6))
def test_every_unit_that_counts_the_same_time_is_one_question(minutes: int) -> None:
    """Minutes, hours, seconds and ISO 8601 share value, hash and key."""
    spelled = (
        f"{minutes} minutes",
        f"{minutes:,} mins",
        f"{Decimal(minutes) * 60}s",
        f"PT{minutes}M",
        f"{minutes // 60}h{minutes % 60}m",
        f"{minutes // 60} hours and {minutes % 60} minutes",
    )
    assert {spell_field("length", Duration(one)) for one in spelled} == {
        f"{minutes * 60}s"
    }
    assert {Duration(one) for one in spelled} == {Duration(timedelta(minutes=minutes))}


@given(durations, durations)
def test_distinct_durations_never_share_a_key(left: Duration, right: Duration) -> None:
    """A month is no number of days in a key either."""
    assert (left == right) == (
        spell_field("length", left) == spell_field("length", right)
    )


@given(durations, durations)
def test_what_is_added_can_be_taken_away(left: Duration, right: Duration) -> None:
    """Months and seconds are calculated apart and exactly."""
    if (left >= Duration("0s")) == (right >= Duration("0s")):
        assert (left + right) - right == left


@given(moments)
def test_a_moment_is_read_back_from_its_own_text_and_its_json(moment: Moment) -> None:
    """The canonical spelling, JSON and a copy lose nothing."""
    again = Moment(str(moment))
    assert again == moment == MOMENTS.validate_json(MOMENTS.dump_json(moment))
    assert copy.deepcopy(moment) == moment
    assert (str(again), hash(again)) == (str(moment), hash(moment))


@given(days, st.times(), zones, zones)
def test_one_instant_told_with_two_offsets_is_one_question(
    day: date, clock: time, zone: timezone, other: timezone
) -> None:
    """Offsets are ways to tell an instant, and a day is never the midnight it begins with."""
    told = datetime.combine(day, clock, zone)
    one = Moment(told)
    two = Moment(told.astimezone(other))
    assert one == two
    assert spell_field("at", one) == spell_field("at", two)
    assert Moment(day) not in (one, Moment(datetime.combine(day, time())))


@given(days)
def test_every_way_to_write_a_day_is_that_day(day: date) -> None:
    """Names of months in any order and ISO 8601 agree; only two numbers are ambiguous."""
    name = day.strftime("%B")
    spelled = (
        day.isoformat(),
        f"{day.day} {name} {day.year:04}",
        f"{name} {day.day}, {day.year:04}",
        f"the {day.day}th of {name[:3]} {day.year:04}",
        f"{day.year:04}/{day.month}/{day.day}",
        f"{day.day}.{day.month}.{day.year:04}",
    )
    assert {Moment(one).value for one in spelled} == {day}


@given(sentences)
def test_no_text_breaks_the_finders_and_spans_point_where_they_say(text: str) -> None:
    for found in (find_durations(text), find_moments(text, NOW)):
        end = 0
        for one in found:
            assert text[one.start : one.end] == one.text
            assert end <= one.start < one.end
            end = one.end
    assert all(one.readings for one in find_moments(text, NOW))


@given(sentences, st.sampled_from([None, NOW, NOW.replace(tzinfo=UTC)]))
def test_a_text_is_a_value_or_a_refusal(text: str, now: datetime | None) -> None:
    for read in (lambda: Duration(text), lambda: Moment(text, now=now)):
        try:
            value = read()
        except InvalidAmount:
            continue
        assert type(value)(str(value)) == value


@given(st.datetimes(min_value=NOW.replace(year=1900), max_value=NOW.replace(year=2100)))
def test_words_that_need_a_now_follow_it(now: datetime) -> None:
    """Tomorrow is the day after now, whatever now is, and no day that follows from now changes its key within a day."""
    today = now.date()
    assert Moment("tomorrow", now=now).value == today + timedelta(days=1)
    assert Moment("in 2 weeks", now=now).value == today + timedelta(days=14)
