"""The sums of a story, on the figures of the example: 18 + 10 = 28 points are three short of a friend."""

from decimal import Decimal

import pytest
from pydantic import ValidationError

from contracts.analysis.pieces import MOST_TOKENS, Reduction
from contracts.analysis.stories import TIERS, StorySettings, StoryThread, Tastes, Tier
from memory.stories.arithmetic import (
    Standing,
    countdown,
    countdowns,
    dialogue_share,
    pace,
    pacing_alert,
    plain,
    points_for,
    reduction,
    resolve_id,
    roi,
    thread_status,
    tier_of,
    total,
    variety_alert,
)


@pytest.mark.parametrize(
    ("score", "standing"),
    [
        (28, Standing("Acquaintance", "Friend", 3)),
        (31, Standing("Friend", "Close Friend", 30)),
        (30.5, Standing("Acquaintance", "Friend", 0.5)),
        (10, Standing("Stranger", "Acquaintance", 1)),
        (11, Standing("Acquaintance", "Friend", 20)),
        (0, Standing("Stranger", "Acquaintance", 11)),
        (-10, Standing("Stranger", "Acquaintance", 21)),
        (-10.1, Standing("Rival", "Stranger", 0.1)),
        (-30, Standing("Rival", "Stranger", 20)),
        (-31, Standing("Enemy", "Rival", 1)),
        (90.9, Standing("Close Friend", "Family", 0.1)),
        (91, Standing("Family")),
        (5000, Standing("Family")),
        (-5000, Standing("Enemy", "Rival", 4970)),
        # 0.1 + 0.2 is 0.30000000000000004, and thirty-one is thirty-one.
        (30.7 + 0.1 + 0.2, Standing("Friend", "Close Friend", 30)),
    ],
)
def test_a_score_has_a_tier_and_a_way_to_the_next(score: float, standing: Standing) -> None:
    """By the tiers of a story that declares none; the highest has no next."""
    assert tier_of(score, TIERS) == standing


def test_a_story_may_have_tiers_of_its_own() -> None:
    """Below the first one counts as the first one; a single one has no next."""
    tiers = (Tier(name="Cold", threshold=0), Tier(name="Warm", threshold=2.5))

    assert tier_of(-1, tiers) == Standing("Cold", "Warm", 3.5)
    assert tier_of(2.5, tiers) == Standing("Warm")
    assert tier_of(-9, tiers[:1]) == Standing("Cold")


@pytest.mark.parametrize(
    ("number", "written"), [(28.0, "28"), (0.1 + 0.2, "0.3"), (-0.0, "0"), (2.5, "2.5"), (-1e-9, "0"), (1, "1")]
)
def test_points_are_written_without_noise(number: float, written: str) -> None:
    """Whole ones without a point."""
    assert str(plain(number)) == written


TASTES = {
    "Marcus": Tastes(likes={"emotional_intelligence": 10, "wit": 2.5}, dislikes={"cruelty": 8, "wit": 1}),
    "Lily": Tastes(likes={"wit": 4}),
}


@pytest.mark.parametrize(
    ("trait", "who", "points"),
    [
        ("emotional_intelligence", "Marcus", 10),
        ("Emotional Intelligence", "marcus", 10),
        ("cruelty", "Marcus", -8),
        ("wit", "Marcus", 1.5),
        ("wit", "Lily", 4),
        ("cruelty", "Lily", 0),
        ("wit", "Nobody", 0),
        ("", "Marcus", 0),
    ],
)
def test_a_trait_is_worth_what_the_other_one_likes(trait: str, who: str, points: float) -> None:
    """Dislikes count against it, and what the story says nothing of counts nothing."""
    assert points_for(trait, who, TASTES) == points


@pytest.mark.parametrize(("at", "number", "left"), [(125, 120, 5), (120, 120, 0), (90, 120, 0)])
def test_a_countdown_ends_at_nothing(at: int, number: int, left: int) -> None:
    """What has passed is not overdue by less than nothing."""
    assert countdown(at, number) == left


@pytest.mark.parametrize(
    ("consequence_at", "due_at", "status"),
    [
        (125, None, "critical"),
        (126, None, "active"),
        (126, 135, "on_track"),
        (125, 135, "critical"),
        (100, None, "critical"),
        (None, 135, "on_track"),
        (None, 121, "on_track"),
        (None, None, "active"),
    ],
)
def test_a_thread_is_critical_by_its_consequence(consequence_at: int | None, due_at: int | None, status: str) -> None:
    """At five responses left, or as many as the story says; a resolved one is never."""
    thread = StoryThread(id="THREAD-001", consequence_at=consequence_at, due_at=due_at)

    assert thread_status(thread, 120, critical=5) == status
    assert thread_status(thread, 120, critical=5, is_open=False) == "resolved"
    assert (thread_status(thread, 120, critical=6) == "critical") is (consequence_at is not None)


def test_countdowns_are_those_that_there_are() -> None:
    """None where a thread waits for nothing."""
    assert countdowns(StoryThread(id="T", consequence_at=125), 120) == (5, None)
    assert countdowns(StoryThread(id="T", due_at=135), 120) == (None, 15)
    assert countdowns(StoryThread(id="T"), 120) == (None, None)


IDS = ("MEM-120-vulnerability", "MEM-12-divorce", "MEM-087-coffee", "MEM-087-rain", "mem-087-rain", "THREAD-001")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("MEM-120-vulnerability", "MEM-120-vulnerability"),
        ("MEM-120", "MEM-120-vulnerability"),
        (" mem-120 ", "MEM-120-vulnerability"),
        ("MEM-12", "MEM-12-divorce"),
        ("MEM-1", None),
        ("MEM-087", None),
        ("MEM-087-r", None),
        ("MEM-087-rain", "MEM-087-rain"),
        ("mem-087-rain", "mem-087-rain"),
        ("Mem-087-Rain", None),
        ("MEM-087-Coffee", "MEM-087-coffee"),
        ("THREAD-001", "THREAD-001"),
        ("THREAD", "THREAD-001"),
        ("", None),
        ("MEM-", None),
    ],
)
def test_a_short_id_means_one_or_none(said: str, meant: str | None) -> None:
    """It ends where a part of the id ends, and an id that is meant in whole is found whatever else begins with it."""
    assert resolve_id(said, IDS) == meant
    assert resolve_id("MEM-120", (*IDS, "MEM-120")) == "MEM-120"
    assert resolve_id("MEM-120", (*IDS, *IDS)) == "MEM-120-vulnerability"


@pytest.mark.parametrize(
    ("before", "after", "percent"),
    [
        (4000, 110, 97),
        (14700, 590, 96),
        (5500, 785, 86),
        (24200, 1515, 94),
        (0, 0, 0),
        (0, 5, 0),
        (200, 199, 1),
        (200, 201, 0),
        (100, 150, -50),
        (7, 0, 100),
    ],
)
def test_a_reduction_is_rounded_half_up(before: int, after: int, percent: int) -> None:
    """To a whole percentage, which is below nothing when condensing made it longer."""
    assert reduction(before, after) == Reduction(before=before, after=after, percent=percent)


def test_reductions_sum_to_what_was_saved() -> None:
    """Of those that there are; of none there is no sum."""
    parts = (reduction(4000, 110), reduction(14700, 590), reduction(5500, 785))

    assert total(parts) == Reduction(before=24200, after=1485, percent=94, saved=22715)
    assert total(parts[:1]) == Reduction(before=4000, after=110, percent=97, saved=3890)
    assert total(()) is None


@pytest.mark.parametrize(
    ("saved", "usd_per_million", "cost", "times"),
    [
        (22685, 3, 0.0016, 42.5),
        (22685, 3.0, Decimal("0.0016"), 42.5),
        (22685, 3, 0, None),
        (22685, 3, Decimal("0.00"), None),
        (0, 3, 0.0016, 0.0),
        (-100, 3, 0.0016, -0.2),
        (25, 1, Decimal("0.0005"), 0.1),
        (100, 0, 1, 0.0),
    ],
)
def test_the_return_is_what_the_reader_saves(
    saved: int, usd_per_million: float, cost: Decimal | float, times: float | None
) -> None:
    """In costs of the analysis, to one decimal and half up; there is none of what cost nothing."""
    assert roi(saved, usd_per_million, cost) == times


@pytest.mark.parametrize(
    ("types", "alert"),
    [
        (["dialogue", "dialogue", "action", "dialogue", "dialogue"], "Last 4/5 dialogue-heavy"),
        (["action", "dialogue", "dialogue", "dialogue", "dialogue"], "Last 4/5 dialogue-heavy"),
        (["dialogue"] * 5, "Last 5/5 dialogue-heavy"),
        (["dialogue"] * 9, "Last 5/5 dialogue-heavy"),
        (["dialogue"] * 4, None),
        (["action", "action", "dialogue", "dialogue", "dialogue", "dialogue"], None),
        ([None, "dialogue", "dialogue", "dialogue", "dialogue"], "Last 4/5 dialogue-heavy"),
        ([None] * 5, None),
        ([], None),
    ],
)
def test_four_scenes_of_five_are_an_alert(types: list[str | None], alert: str | None) -> None:
    """Whichever they are; before there are five it is too early to tell."""
    assert variety_alert(types) == alert


@pytest.mark.parametrize(
    ("tensions", "alert"),
    [
        ([6, 6, 6], "Tension steady at 6/10 for 3 responses"),
        ([6.0, 6, 6, 6, 2, 6], "Tension steady at 6/10 for 4 responses"),
        ([2.5] * 4, "Tension steady at 2.5/10 for 4 responses"),
        ([6, 6, 5, 6], None),
        ([6, 6], None),
        ([6, 6, None, 6], None),
        ([None, 6, 6, 6], None),
        ([], None),
    ],
)
def test_a_tension_that_stays_is_an_alert(tensions: list[float | None], alert: str | None) -> None:
    """From three on, with how many they really are; one that nobody knows ends the row."""
    assert pacing_alert(tensions) == alert


def test_shares_and_pace_are_read_off_the_words() -> None:
    """Short sentences are fast; where there is no text there is nothing to say."""
    assert (dialogue_share(1, 3), dialogue_share(0, 0), dialogue_share(9, 3)) == (0.33, 0.0, 1.0)
    assert [pace(words, 10) for words in (90, 91, 179, 180)] == ["fast", "medium", "medium", "slow"]
    assert (pace(0, 3), pace(3, 0)) == ("medium", "medium")


@pytest.mark.parametrize(
    ("saved", "usd_per_million", "cost", "times"),
    [
        (10**12, 1e6, Decimal("1e-300"), 1e12),
        (-(10**12), 1e6, Decimal("1e-300"), -1e12),
        (10**4000, 1e308, Decimal("1e-999999"), 1e12),
        (10**12, 3.0, Decimal("1e-22"), 1e12),
        (5, float("inf"), Decimal(1), None),
        (5, 3.0, float("inf"), None),
        (5, 3.0, float("nan"), None),
        (5, 3.0, 1e308, 0.0),
    ],
)
def test_the_return_is_a_number_whatever_was_paid(
    saved: int, usd_per_million: float, cost: Decimal | float, times: float | None
) -> None:
    """Or nothing; it fails for none."""
    assert roi(saved, usd_per_million, cost) == times


def test_a_total_has_an_end() -> None:
    """What is beyond is not told, and can be written all the same."""
    most = Reduction(before=MOST_TOKENS, after=0, percent=100)

    assert total([most] * 3) == Reduction(before=MOST_TOKENS, after=0, percent=100, saved=MOST_TOKENS)
    for before in (-1, MOST_TOKENS + 1):
        with pytest.raises(ValidationError, match="before"):
            Reduction(before=before, after=0, percent=100)
    with pytest.raises(ValidationError, match="reader_usd_per_million"):
        StorySettings(story_id="s", reader_usd_per_million=1e300)
