"""The sums of a story against plain ones: tiers, points, countdowns, ids and tokens, whatever the numbers are."""

from collections.abc import Sequence
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tasklore.contracts.analysis.stories import Relations, StoryThread, Tastes, Tier
from tasklore.memory.stories.arithmetic import (
    countdown,
    countdowns,
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

points = st.decimals(-1000, 1000, places=3).map(float)
tables = st.lists(points, min_size=1, max_size=8, unique=True).map(
    lambda thresholds: (
        Relations(
            tiers=tuple(
                Tier(name=f"tier {at}", threshold=one)
                for at, one in enumerate(sorted(thresholds))
            )
        ).tiers
    )
)
numbers = st.integers(0, 5000)
tokens = st.integers(0, 100_000)


@given(tables, points)
def test_a_tier_is_the_highest_that_is_reached(
    tiers: Sequence[Tier], score: float
) -> None:
    """The points that are needed reach the next one, and nothing less does."""
    standing = tier_of(score, tiers)
    reached = [tier.name for tier in tiers if tier.threshold <= score]
    above = [
        tier.name for tier in tiers if tier.name not in (reached or [tiers[0].name])
    ]

    assert standing.tier == (reached or [tiers[0].name])[-1]
    assert standing.next_tier == (above[0] if above else None)
    assert (standing.points_needed is None) is (not above)
    if standing.points_needed is not None:
        assert standing.points_needed > 0
        assert tier_of(score + standing.points_needed, tiers).tier == standing.next_tier
        assert (
            tier_of(score + standing.points_needed - 0.0005, tiers).tier
            == standing.tier
        )


@given(tables, points, points)
def test_more_points_are_never_a_lower_tier(
    tiers: Sequence[Tier], one: float, other: float
) -> None:
    """A score that grows leaves a tier upwards only."""
    names = [tier.name for tier in tiers]
    lower, higher = (
        names.index(tier_of(score, tiers).tier) for score in sorted((one, other))
    )

    assert lower <= higher


@given(st.lists(st.decimals(-1000, 1000, places=4), max_size=50))
def test_points_add_up_as_on_paper(changes: list[Decimal]) -> None:
    """Whatever binary fractions make of them on the way."""
    score: float = 0
    for change in changes:
        score = plain(score + float(change))

    assert Decimal(str(score)) == sum(changes)
    assert plain(sum(map(float, changes))) == score


@given(
    st.dictionaries(st.text("abc", min_size=1), st.integers(1, 20)),
    st.dictionaries(st.text("abc", min_size=1), st.integers(1, 20)),
)
def test_a_dislike_takes_what_a_like_gives(
    likes: dict[str, int], dislikes: dict[str, int]
) -> None:
    """For every trait of the table, and for no other."""
    tastes = {
        "Ann": Tastes(
            likes={k: float(v) for k, v in likes.items()},
            dislikes={k: float(v) for k, v in dislikes.items()},
        )
    }

    for trait in (*likes, *dislikes):
        assert points_for(trait, "Ann", tastes) == likes.get(trait, 0) - dislikes.get(
            trait, 0
        )
        assert points_for(trait, "Bob", tastes) == 0
    assert points_for("xyz", "Ann", tastes) == 0


@given(
    st.none() | numbers, st.none() | numbers, numbers, st.integers(0, 50), st.booleans()
)
def test_a_thread_is_critical_exactly_when_its_time_is_short(
    consequence_at: int | None,
    due_at: int | None,
    number: int,
    critical: int,
    is_open: bool,
) -> None:
    """No countdown is below nothing, and each response takes one off it until it is there."""
    thread = StoryThread(id="T", consequence_at=consequence_at, due_at=due_at)
    left, until = countdowns(thread, number)
    status = thread_status(thread, number, critical=critical, is_open=is_open)

    assert (left is None, until is None) == (consequence_at is None, due_at is None)
    assert all(one >= 0 for one in (left, until) if one is not None)
    assert (status == "critical") is (is_open and left is not None and left <= critical)
    assert (status == "resolved") is not is_open
    if due_at is not None:
        assert countdown(due_at, number) - countdown(due_at, number + 1) == (
            1 if due_at > number else 0
        )


ids = st.lists(
    st.from_regex(r"MEM-[0-3]{1,2}(-[ab]{1,2}){0,2}", fullmatch=True), max_size=8
)


@given(ids, st.from_regex(r"MEM-[0-3]{1,2}(-[ab]{1,2})?", fullmatch=True))
def test_an_id_is_resolved_when_it_can_mean_but_one(
    known: list[str], said: str
) -> None:
    """In whole before in part; every whole id means itself."""
    begun = {one for one in known if one.startswith(f"{said}-")}
    expected = said if said in known else begun.pop() if len(begun) == 1 else None

    assert resolve_id(said, known) == expected
    assert all(resolve_id(one, known) == one for one in known)
    assert resolve_id(said, reversed(known)) == expected


@given(st.lists(st.tuples(tokens, tokens), min_size=1, max_size=20))
def test_a_total_is_the_sum_of_its_parts(parts: list[tuple[int, int]]) -> None:
    """And its percentage that of the sums, off by half a point at most."""
    whole = total(reduction(*part) for part in parts)

    assert whole is not None
    assert (whole.before, whole.after) == tuple(map(sum, zip(*parts, strict=True)))
    assert whole.saved == whole.before - whole.after
    assert (
        abs(whole.percent * whole.before - 100 * whole.saved) * 2 <= whole.before
        or not whole.before
    )
    assert whole.percent <= 100


@given(
    st.integers(-100_000, 100_000),
    st.decimals("0.01", 100, places=2),
    st.decimals("0.0001", 10, places=4),
)
def test_the_return_pays_back(saved: int, price: Decimal, cost: Decimal) -> None:
    """So many times its cost, within the rounding."""
    times = roi(saved, float(price), cost)

    assert times is not None
    assert abs(
        Decimal(str(times)) * cost - saved * price / 1_000_000
    ) <= cost * Decimal("0.05")


@given(st.lists(st.sampled_from(["dialogue", "action", None]), max_size=9))
def test_variety_looks_at_five_scenes_and_no_more(types: list[str | None]) -> None:
    """An alert names a type that fills four of them."""
    alert = variety_alert(types)
    kinds = {kind: types[:5].count(kind) for kind in ("dialogue", "action")}
    heavy = [kind for kind, count in kinds.items() if count >= 4 and len(types) >= 5]

    assert alert == (f"Last {kinds[heavy[0]]}/5 {heavy[0]}-heavy" if heavy else None)


@given(st.lists(st.sampled_from([5, 6, 6.0, None]), max_size=8))
def test_a_steady_tension_is_counted_to_its_beginning(
    tensions: list[float | None],
) -> None:
    """Three of a kind from the latest on, however they are written."""
    steady = 0
    while (
        steady < len(tensions)
        and tensions[steady] is not None
        and tensions[steady] == tensions[0]
    ):
        steady += 1

    expected = (
        f"Tension steady at {plain(tensions[0] or 0)}/10 for {steady} responses"
        if steady >= 3
        else None
    )
    assert pacing_alert(tensions) == expected
