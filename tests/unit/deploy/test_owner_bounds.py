"""The page on deployment says what one owner may keep, as the stores bound it."""

import re
from pathlib import Path

from tasklore.memory.schedules import store as schedules
from tasklore.memory.webhooks import outbox as webhooks
from tasklore.supervisor.schedules.book import MOST_BYTES, MOST_PIPELINE_BYTES
from tasklore.supervisor.webhooks.events import MOST_BYTES as MOST_WEBHOOK_BYTES

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "deploy.md"


def test_the_table_of_bounds_by_owner_has_the_numbers_of_the_stores() -> None:
    """Of one maker, of all makers, and of all; each kind is a row, and each leaves a reserve."""
    part = PAGE.read_text("utf-8").split("## What one owner may keep", 1)[1]
    part = part.split("\n## ", 1)[0]
    rows = [
        tuple(int(one.replace(",", "")) for one in re.findall(r"[\d,]+", row))
        for row in re.findall(
            r"^\| (?:schedules|webhooks).*?(\|.*)$", part, re.MULTILINE
        )
    ]
    assert rows == [
        (
            schedules.MOST_OF_MAKER,
            schedules.MOST - schedules.RESERVED,
            schedules.MOST,
        ),
        (webhooks.MOST_OF_MAKER, webhooks.MOST - webhooks.RESERVED, webhooks.MOST),
        (
            of_host := webhooks.MOST_OF_HOST - webhooks.RESERVED_OF_HOST,
            of_host,
            webhooks.MOST_OF_HOST,
        ),
    ]
    assert all(of_maker <= of_makers < of_all for of_maker, of_makers, of_all in rows)
    assert f"a user has {schedules.MOST_OF_USER} schedules" in part
    sizes = (MOST_BYTES, MOST_PIPELINE_BYTES, MOST_WEBHOOK_BYTES)
    assert re.findall(r"(\d+) KiB", part) == [str(size // 1024) for size in sizes]
