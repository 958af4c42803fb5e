"""The sums of a story, on the figures of the example: 18 + 10 = 28 points are three short of a friend."""

from decimal import Decimal

import pytest
from pydantic import ValidationError

from tasklore.contracts.analysis.pieces import MOST_TOKENS, Reduction
from tasklore.contracts.analysis.stories import TIERS, StorySettings, StoryThread
from tasklore.memory.stories.arithmetic import (
    TierPosition,
    dialogue_share,
    pace,
    resolve_id,
    roi,
    thread_status,
    tier_of,
    total,
)


@pytest.mark.parametrize(
    ("score", "standing"),
    [
        (28, TierPosition("Acquaintance", "Friend", 3)),
        (31, TierPosition("Friend", "Close Friend", 30)),
        (10, TierPosition("Stranger", "Acquaintance", 1)),
        (-10.1, TierPosition("Rival", "Stranger", 0.1)),
        (-31, TierPosition("Enemy", "Rival", 1)),
        (91, TierPosition("Family")),
        (-5000, TierPosition("Enemy", "Rival", 4970)),
        # 0.1 + 0.2 is 0.30000000000000004, and thirty-one is thirty-one.
        (30.7 + 0.1 + 0.2, TierPosition("Friend", "Close Friend", 30)),
    ],
)
def test_a_score_has_a_tier_and_a_way_to_the_next(
    score: float, standing: TierPosition
) -> None:
    """By the tiers of a story that declares none; the highest has no next."""
    assert tier_of(score, TIERS) == standing


@pytest.mark.parametrize(
    ("consequence_at", "due_at", "status"),
    [
        (125, None, "critical"),
        (126, 135, "on_track"),
        (125, 135, "critical"),
        (None, 135, "on_track"),
        (None, None, "active"),
    ],
)
def test_a_thread_is_critical_by_its_consequence(
    consequence_at: int | None, due_at: int | None, status: str
) -> None:
    """At five responses left, or as many as the story says; a resolved one is never."""
    thread = StoryThread(id="THREAD-001", consequence_at=consequence_at, due_at=due_at)

    assert thread_status(thread, 120, critical=5) == status
    assert thread_status(thread, 120, critical=5, is_open=False) == "resolved"
    assert (thread_status(thread, 120, critical=6) == "critical") is (
        consequence_at is not None
    )


IDS = (
    "MEM-120-vulnerability",
    "MEM-12-divorce",
    "MEM-087-coffee",
    "MEM-087-rain",
    "mem-087-rain",
    "THREAD-001",
)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("MEM-120-vulnerability", "MEM-120-vulnerability"),
        ("MEM-120", "MEM-120-vulnerability"),
        (" mem-120 ", "MEM-120-vulnerability"),
        ("MEM-1", None),
        ("MEM-087", None),
        ("MEM-087-rain", "MEM-087-rain"),
        ("Mem-087-Rain", None),
        ("THREAD", "THREAD-001"),
        ("", None),
    ],
)
def test_a_short_id_means_one_or_none(said: str, meant: str | None) -> None:
    """It ends where a part of the id ends, and an id that is meant in whole is found whatever else begins with it."""
    assert resolve_id(said, IDS) == meant
    assert resolve_id("MEM-120", (*IDS, "MEM-120")) == "MEM-120"
    assert resolve_id("MEM-120", (*IDS, *IDS)) == "MEM-120-vulnerability"


def test_shares_and_pace_are_read_off_the_words() -> None:
    """Short sentences are fast; where there is no text there is nothing to say."""
    assert (dialogue_share(1, 3), dialogue_share(0, 0), dialogue_share(9, 3)) == (
        0.33,
        0.0,
        1.0,
    )
    assert [pace(words, 10) for words in (90, 91, 179, 180)] == [
        "fast",
        "medium",
        "medium",
        "slow",
    ]
    assert (pace(0, 3), pace(3, 0)) == ("medium", "medium")


@pytest.mark.parametrize(
    ("saved", "usd_per_million", "cost", "times"),
    [
        (22685, 3, 0.0016, 42.5),
        (22685, 3, Decimal("0.00"), None),
        (25, 1, Decimal("0.0005"), 0.1),
        (10**12, 1e6, Decimal("1e-300"), 1e12),
        (10**4000, 1e308, Decimal("1e-999999"), 1e12),
        (10**12, 3.0, Decimal("1e-22"), 1e12),
        (5, float("inf"), Decimal(1), None),
        (5, 3.0, float("inf"), None),
        (5, 3.0, 1e308, 0.0),
    ],
)
def test_the_return_is_a_number_whatever_was_paid(
    saved: int, usd_per_million: float, cost: Decimal | float, times: float | None
) -> None:
    """In costs of the analysis, half up; nothing of what cost nothing."""
    assert roi(saved, usd_per_million, cost) == times


def test_a_total_has_an_end() -> None:
    most = Reduction(before=MOST_TOKENS, after=0, percent=100)

    assert total([most] * 3) == Reduction(
        before=MOST_TOKENS, after=0, percent=100, saved=MOST_TOKENS
    )
    for before in (-1, MOST_TOKENS + 1):
        with pytest.raises(ValidationError, match="before"):
            Reduction(before=before, after=0, percent=100)
    with pytest.raises(ValidationError, match="reader_usd_per_million"):
        StorySettings(story_id="s", reader_usd_per_million=1e300)
