"""Feelings between characters count the same in any order of telling, and once for each receiver."""

from collections.abc import Sequence
from fractions import Fraction
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tasklore.contracts.analysis.stories import Entity, Relations, Tastes
from tasklore.workers.agents.story.names import Handles
from tasklore.workers.agents.story.relationship import Feelings, Show

CAST = ("Ana Reyes", "Ben Okoro", "Cleo Marsh")
TRAITS = ("honesty", "kindness", "quiet courage")

points = st.decimals("0.1", 20, places=1).map(float)
tables = st.dictionaries(st.sampled_from(TRAITS), points)
tastes = st.builds(Tastes, likes=tables, dislikes=tables)
relations = st.dictionaries(st.sampled_from(CAST), tastes).map(
    lambda told: Relations(tastes=told)
)
shows = st.lists(
    st.builds(
        lambda pair, trait: Show(*pair, trait, shown=trait),
        st.permutations(CAST).map(lambda names: names[:2]),
        st.sampled_from((*TRAITS, "Honesty", "quiet_courage")),
    ),
    max_size=12,
)


def changes(told: Sequence[Show], likes: Relations) -> dict[frozenset[str], float]:
    """Return what each pair's score changes by."""
    feelings = Feelings(likes, Handles([Entity(name=name) for name in CAST]))
    return {
        frozenset(one.characters): one.change for one in feelings.interactions(told)
    }


@given(shows, relations, st.randoms(use_true_random=False))
def test_the_order_of_what_was_shown_does_not_matter(
    told: list[Show], likes: Relations, random: Random
) -> None:
    """Nor does how often: each pair's change is the same."""
    shuffled = [*told, *told[:3]]
    random.shuffle(shuffled)
    assert changes(shuffled, likes) == changes(told, likes)


@given(shows, relations)
def test_a_change_is_the_sum_over_who_received_which_trait(
    told: list[Show], likes: Relations
) -> None:
    received = {
        (
            frozenset((one.giver, one.receiver)),
            one.receiver,
            one.trait.lower().replace("_", " "),
        )
        for one in told
    }
    expected: dict[frozenset[str], Fraction] = {}
    for pair, receiver, trait in received:
        taste = likes.tastes.get(receiver, Tastes())
        worth = Fraction(str(taste.likes.get(trait, 0))) - Fraction(
            str(taste.dislikes.get(trait, 0))
        )
        expected[pair] = expected.get(pair, Fraction(0)) + worth
    found = {
        pair: Fraction(str(change)) for pair, change in changes(told, likes).items()
    }
    assert {pair: sum_ for pair, sum_ in found.items() if sum_} == {
        pair: one for pair, one in expected.items() if one
    }
