"""The short version of profile `healing`."""

from functools import partial

from tests.acceptance.chaos.healing import side_by_side
from tests.acceptance.chaos.healing_outage import worker_outage
from tests.acceptance.chaos.healing_strikes import (
    consumer_deleted,
    dead_letters_deleted,
    nats_killed,
    stream_deleted,
    valkey_killed,
)
from tests.acceptance.chaos.healing_waiting import (
    consumer_of_others,
    drifted_stream,
    stuck_loop,
)

#: Seconds that each wait is watched.
WATCH_S = 10.0
#: Seconds for which the loop is blocked: twice as long as it takes to be noticed.
BLOCK_S = 20.0
#: How many times as long as promised anything may take: a busy machine must fail no test.
SLACK = 10.0


async def test_what_is_deleted_or_killed_heals_by_itself() -> None:
    """New tasks are reported again soon, and the log says what was made anew."""
    rows = await side_by_side(
        *(
            partial(strike, SLACK)
            for strike in (
                consumer_deleted,
                stream_deleted,
                dead_letters_deleted,
                nats_killed,
                valkey_killed,
            )
        )
    )
    assert [row for row in rows if not row.passed] == []


async def test_waiting_for_others_costs_next_to_nothing_and_ends_when_they_have_come() -> (
    None
):
    """A worker without NATS, without its stream, with one of another shape, or stuck, says so and works again."""
    rows = await side_by_side(
        partial(worker_outage, WATCH_S, SLACK),
        partial(consumer_of_others, WATCH_S, SLACK),
        partial(drifted_stream, WATCH_S, SLACK),
        partial(stuck_loop, BLOCK_S, SLACK),
    )
    assert [row for row in rows if not row.passed] == []
