"""The short version of profile `rolling`."""

from tests.acceptance.chaos.healing import side_by_side
from tests.acceptance.chaos.rolling import replaced_under_load
from tests.acceptance.chaos.rolling_leaving import joiners_handed_over, told_twice, told_without_nats

#: Seconds for a hand-over: ten times what is promised, since a busy machine must fail no test.
PATIENCE_S = 1.0


async def test_replacing_every_worker_under_load_loses_and_repeats_nothing() -> None:
    """Leases are far longer than the test, so that nothing is saved by their end."""
    rows = await replaced_under_load(400, PATIENCE_S)
    assert [row for row in rows if not row.passed] == []


async def test_whoever_is_told_to_leave_does_so_in_good_order() -> None:
    """What waits for another's answer is given back; told twice it leaves at once, and also when NATS is away."""
    rows = await side_by_side(lambda: joiners_handed_over(PATIENCE_S), told_twice, told_without_nats)
    assert [row for row in rows if not row.passed] == []
