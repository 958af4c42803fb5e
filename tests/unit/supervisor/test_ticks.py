"""When ticks are: both days of a clock change in three zones, leap days, ends of months, and after an outage."""

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasklore.contracts.admission.schedules import MissedTicks, Timing
from tasklore.memory.schedules.store import Schedule
from tasklore.supervisor.schedules.scheduler import choose_ticks
from tasklore.supervisor.schedules.ticks import (
    find_faults,
    last_tick,
    next_five,
    ticks_after,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@pytest.mark.parametrize(
    ("zone", "cron", "since", "ticks"),
    [
        # 02:00 to 03:00 is left out, and 02:00 to 03:00 comes twice.
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-03-28T12:00+01:00",
            ["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"],
        ),
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-10-24T12:00+02:00",
            ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"],
        ),
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-10-25T02:10+01:00",
            ["2026-10-26T02:30+01:00", "2026-10-27T02:30+01:00"],
        ),
        (
            "Europe/Berlin",
            "0 * * * *",
            "2026-10-25T01:30+02:00",
            ["2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00"],
        ),
        (
            "Europe/Berlin",
            "0 * * * *",
            "2026-03-29T01:30+01:00",
            ["2026-03-29T03:00+02:00", "2026-03-29T04:00+02:00"],
        ),
        (
            "America/New_York",
            "30 2 * * *",
            "2026-03-07T12:00-05:00",
            ["2026-03-08T03:00-04:00", "2026-03-09T02:30-04:00"],
        ),
        (
            "America/New_York",
            "30 1 * * *",
            "2026-10-31T12:00-04:00",
            ["2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00"],
        ),
        # Half an hour, in the south: April ends what October begins.
        (
            "Australia/Lord_Howe",
            "15 2 * * *",
            "2026-10-03T12:00+10:30",
            ["2026-10-04T02:30+11:00", "2026-10-05T02:15+11:00"],
        ),
        (
            "Australia/Lord_Howe",
            "45 1 * * *",
            "2026-04-04T12:00+11:00",
            ["2026-04-05T01:45+11:00", "2026-04-06T01:45+10:30"],
        ),
        (
            "UTC",
            "0 9 29 2 *",
            "2026-01-01T00:00+00:00",
            ["2028-02-29T09:00+00:00", "2032-02-29T09:00+00:00"],
        ),
        (
            "UTC",
            "0 9 L * *",
            "2026-01-01T00:00+00:00",
            ["2026-01-31T09:00+00:00", "2026-02-28T09:00+00:00"],
        ),
        (
            "UTC",
            "0 9 L 2 *",
            "2027-03-01T00:00+00:00",
            ["2028-02-29T09:00+00:00", "2029-02-28T09:00+00:00"],
        ),
        (
            "UTC",
            "0 9 31 * *",
            "2026-01-31T10:00+00:00",
            ["2026-03-31T09:00+00:00", "2026-05-31T09:00+00:00"],
        ),
    ],
)
def test_a_tick_comes_once_by_the_clocks_of_its_zone(
    zone: str, cron: str, since: str, ticks: list[str]
) -> None:
    """A time that is left out comes right after the change, one that comes twice is one tick."""
    timing = Timing(cron=cron, time_zone=zone)
    assert list(islice(ticks_after(timing, at(since), NOW), 2)) == [
        at(one) for one in ticks
    ]


@given(
    st.sampled_from(
        ["30 2 * * *", "*/20 * * * *", "0 1-3 * * *", "15 */2 * * sun", "45 1 * * *"]
    ),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    st.integers(0, 365 * 86_400),
)
def test_ticks_only_go_forward_and_are_the_same_from_wherever_they_are_looked_for(
    cron: str, zone: str, seconds: int
) -> None:
    """So that a desk that goes on from a tick, and one that goes on from now, make the same ones."""
    timing = Timing(cron=cron, time_zone=zone)
    since = NOW + timedelta(seconds=seconds)
    ticks = list(islice(ticks_after(timing, since, NOW), 8))
    assert all(one < other for one, other in zip([since, *ticks], ticks, strict=False))
    for place, tick in enumerate(ticks[:-1]):
        assert next(ticks_after(timing, tick, NOW)) == ticks[place + 1]
    assert last_tick(timing, ticks[0], ticks[-1], NOW) == ticks[-1]


def test_every_counts_from_the_whole_second_after_its_beginning() -> None:
    """The server is punctual at whole seconds; nothing drifts."""
    anchor = NOW + timedelta(milliseconds=300)
    assert next_five(Timing(every_s=90), anchor, anchor)[:2] == [
        NOW + timedelta(seconds=91),
        NOW + timedelta(seconds=181),
    ]
    later = NOW + timedelta(days=30)
    assert (
        next_five(Timing(every_s=90), later, anchor)[0] - NOW
    ).total_seconds() % 90 == 1


@pytest.mark.parametrize(
    ("timing", "field", "cure"),
    [
        (Timing(every_s=0), "every", "from 1"),
        (Timing(every_s=10**12), "every", "31,622,400"),
        (Timing(), "cron", "one of"),
        (Timing(cron="* * * * *", every_s=5), "every_s", "one of"),
        (Timing(cron="0 0 30 2 *"), "cron", "day-of-month"),
        (Timing(cron="every monday"), "cron", "five fields"),
        (Timing(cron="*/0 * * * *"), "cron", "minute"),
        (Timing(cron="1," * 5_000 + "1 * * * *"), "cron", "100"),
        (
            Timing(cron="* * * * *", time_zone="Europe/Berln"),
            "time_zone",
            "Europe/Berlin",
        ),
        (
            Timing(cron="* * * * *", time_zone="../../etc/passwd"),
            "time_zone",
            "write one",
        ),
        (Timing(at=NOW - timedelta(days=1)), "at", "never"),
    ],
)
def test_a_timing_that_cannot_be_kept_names_field_and_cure(
    timing: Timing, field: str, cure: str
) -> None:
    """Nothing raises, whatever is sent."""
    [(where, words)] = find_faults(timing, NOW)
    assert where == field
    assert cure in words


@given(st.text("0123456789*/,-#Lmonw ", max_size=40))
def test_no_text_breaks_the_reading_of_a_cron_expression(text: str) -> None:
    """It is read, or refused in words."""
    assert all(words for _, words in find_faults(Timing(cron=text), NOW))


def a_schedule(missed: MissedTicks) -> Schedule:
    timing = Timing(every_s=600, missed=missed)
    own = {"agent_id": "A", "task": "t"}
    return Schedule(
        id="s", timing=timing, anchor=NOW, created_at=NOW, changed_at=NOW, **own
    )


@pytest.mark.parametrize(
    ("missed", "made", "lost"), [("skip", 0, 12), ("once", 1, 11), ("all", 12, 0)]
)
def test_ticks_missed_in_an_outage_are_made_up_for_by_policy(
    missed: MissedTicks, made: int, lost: int
) -> None:
    """Two hours of an outage under a tick of ten minutes; of `once` the last of them runs."""
    schedule = a_schedule(missed)
    now = NOW + timedelta(minutes=125)
    ticks, count = choose_ticks(schedule, NOW + timedelta(minutes=10), now)
    assert (len(ticks), count) == (made, lost)
    assert ticks[-1:] == ([NOW + timedelta(minutes=120)] if made else [])


@pytest.mark.parametrize("missed", ["skip", "once", "all"])
def test_a_tick_that_is_a_little_late_is_not_missed(missed: MissedTicks) -> None:
    """A supervisor that was killed is replaced within seconds, which no policy is for."""
    due = NOW + timedelta(minutes=10)
    assert choose_ticks(a_schedule(missed), due, due + timedelta(seconds=20)) == (
        [due],
        0,
    )


def test_all_ticks_of_a_long_outage_are_made_a_hundred_at_a_time() -> None:
    """None is left out, none is made twice."""
    schedule = a_schedule("all")
    now = NOW + timedelta(days=10)
    following = NOW + timedelta(minutes=10)
    made: list[datetime] = []
    while ticks := choose_ticks(schedule, following, now)[0]:
        made += ticks
        following = next(ticks_after(schedule.timing, ticks[-1], NOW))
    assert made == list(
        takewhile(lambda tick: tick <= now, ticks_after(schedule.timing, NOW, NOW))
    )
