"""A short storm keeps every promise."""

from pathlib import Path

from tests.acceptance.chaos.promises import rows_of
from tests.acceptance.chaos.smith import Smith
from tests.acceptance.chaos.storm import AGENT, storm
from tests.acceptance.chaos.weather import BREEZE


async def test_a_short_storm_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    """Workers, nats-server and Valkey are killed, a wire is cut and the consumer deleted under hundreds of tasks."""
    async with Smith([AGENT], tmp_path / "workers") as smith:
        findings = await storm(smith, tmp_path / "storm", BREEZE, seed=1)

    assert findings.violations == {}
    assert [row for row in rows_of([findings], BREEZE) if not row.passed] == []
