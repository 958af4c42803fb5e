"""Short storms over memory workers keep every promise; the long ones are `make memory-storm`."""

from pathlib import Path

from tests.acceptance.memory_storm import deaths, replays, writers
from tests.acceptance.memory_storm.stage import stage


async def test_short_storms_over_memory_workers_keep_every_promise(
    tmp_path: Path,
) -> None:
    """Many write one user's documents, six workers are killed, the same is told over and over; one forge for all."""
    async with stage(tmp_path) as on:
        rows = [
            *await writers.run(on, writers.SHORT),
            *await deaths.run(on, deaths.SHORT),
            *await replays.run(on, replays.SHORT),
        ]

    assert [row for row in rows if not row.passed] == []
