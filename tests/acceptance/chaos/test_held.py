"""The short version of profile `held`."""

from tests.acceptance.chaos.held import measure


async def test_a_worker_under_load_never_holds_more_than_its_slots() -> None:
    rows = await measure(150)
    assert [row for row in rows if not row.passed] == []
