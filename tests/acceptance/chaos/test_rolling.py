"""The short version of profile `rolling`."""

from functools import partial

from tests.acceptance.chaos.healing import side_by_side
from tests.acceptance.chaos.rolling import replaced_under_load
from tests.acceptance.chaos.rolling_leaving import (
    joiners_handed_over,
    told_twice,
    told_without_nats,
)

#: How many times as long as promised anything may take: a busy machine must fail no test.
SLACK = 20.0


async def test_replacing_every_worker_under_load_loses_and_repeats_nothing() -> None:
    """Leases are far longer than the test, so that nothing is saved by their end."""
    rows = await replaced_under_load(400, SLACK)
    assert [row for row in rows if not row.passed] == []


async def test_whoever_is_told_to_leave_does_so_in_good_order() -> None:
    """What waits for another's answer is given back; told twice it leaves at once, and also when NATS is away."""
    leavings = (joiners_handed_over, told_twice, told_without_nats)
    rows = await side_by_side(*(partial(leaving, SLACK) for leaving in leavings))
    assert [row for row in rows if not row.passed] == []
