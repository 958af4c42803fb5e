"""The short version of profile `cluster`."""

from tests.acceptance.chaos.cluster import leaders_killed


async def test_killing_the_leader_of_the_queue_loses_no_task() -> None:
    """In a cluster of three, whose other two elect a new one."""
    rows = await leaders_killed(300, kills=1)
    assert [row for row in rows if not row.passed] == []
