"""The page on deployment says what one owner may keep, as the stores bound it."""

import re
from pathlib import Path

from tasklore.contracts import subjects
from tasklore.memory.holdings.store import HOLDING_KINDS, OWNER_PART, OWNERS_PART
from tasklore.memory.schedules import store as schedules
from tasklore.memory.stores import STORES
from tasklore.memory.webhooks import outbox as webhooks
from tasklore.runtime.messaging.streams import StreamSizes, stream_configurations
from tasklore.runtime.settings import Settings
from tasklore.supervisor.schedules.book import MOST_BYTES, MOST_PIPELINE_BYTES
from tasklore.supervisor.webhooks.events import MOST_BYTES as MOST_WEBHOOK_BYTES

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "deploy.md"
SECURITY = ROOT / "docs" / "reference" / "security.md"


def the_part() -> str:
    part = PAGE.read_text("utf-8").split("## What one owner may keep", 1)[1]
    return part.split("\n## ", 1)[0]


def the_names(heading: str) -> set[str]:
    """Return what the first column of the table under *heading* names."""
    table = the_part().split(f"| {heading} |", 1)[1].split("\n\n", 1)[0]
    cells = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_the_table_of_bounds_by_owner_has_the_numbers_of_the_stores() -> None:
    """Of one maker, of all makers, and of all; each kind is a row, and each leaves a reserve."""
    part = the_part()
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


def test_the_table_of_kinds_is_that_of_the_holdings() -> None:
    """Each kind with its store, what it costs beside its bytes, and for how many days, where it says days."""
    rows = re.findall(
        r"^\| `(\w+)` \| .* \| `(queue|store)` \| ([\d,]+) \| (.*) \|$",
        the_part(),
        re.MULTILINE,
    )
    assert [row[0] for row in rows] == list(HOLDING_KINDS)
    for name, store, beside, until in rows:
        kind = HOLDING_KINDS[name]
        assert (store, int(beside.replace(",", ""))) == (kind.store, kind.beside)
        if days := re.match(r"(\d+) days", until):
            assert int(days[1]) == kind.keep.days
        else:
            assert name == "tasks"
    assert f"{HOLDING_KINDS['tasks'].aside:,} bytes are set aside" in the_part()
    assert (OWNERS_PART, OWNER_PART) == (4 / 5, 3 / 4)
    assert "60 % of the store for one that is\nalone" in the_part()


def test_every_stream_has_a_row() -> None:
    """As they are declared."""
    streams = {
        one["name"]
        for one in stream_configurations(StreamSizes())
        if not one["name"].startswith("KV_")
    }
    assert the_names("streams | bounded by") == streams


def test_what_bounds_a_store_names_kinds_of_what_owners_keep() -> None:
    """And settings that there are, in backticks."""
    named = {word for one in STORES for word in re.findall(r"`([^`]+)`", one.bound)}
    settings = {word for word in named if word.startswith("TASKLORE_")}
    fields = {word.removeprefix("TASKLORE_").lower() for word in settings}
    assert fields <= Settings.model_fields.keys()
    assert named - settings <= HOLDING_KINDS.keys()


def test_the_streams_of_words_have_a_gibibyte_each_however_much_redis_may_keep() -> (
    None
):
    """Their bytes are of NATS; the pages say how many."""
    for kept in (1024**2, 64 * 1024**3):
        made = stream_configurations(StreamSizes.of(Settings(kept_max_bytes=kept)))
        sizes = {one["name"]: one.get("max_bytes") for one in made}
        names = (subjects.TURNS, subjects.FACTS, subjects.MESSAGES)
        assert [sizes[name] for name in names] == [1024**3] * 3
    assert "each has 1 GiB and refuses new" in the_part()


def test_the_page_on_security_names_tests_that_there_are() -> None:
    """Of the section on owners."""
    part = SECURITY.read_text("utf-8").split("## What one owner may keep", 1)[1]
    named = re.findall(r"`(tests/[^`]+)`", part.split("\n## ", 1)[0])
    assert named
    assert [one for one in named if not (ROOT / one).exists()] == []
