"""Choosing depends on the words and the cards alone: neither on their order, nor on what a slot consumes."""

from hypothesis import given
from hypothesis import strategies as st

from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import Understood
from tasklore.supervisor.understanding.routing import Router
from tasklore.supervisor.understanding.utterance import ReadUtterance
from tests.understanding_cases import BUDGET, GREETER, RIDE, TRIP, understand

CARDS = [BUDGET, TRIP, RIDE, GREETER]
ROUTER = Router(Catalogue(CARDS))
WORDS = [
    "budget",
    "limit",
    "spent",
    "trip",
    "hotel",
    "travellers",
    "ride",
    "taxi",
    "greet",
    "hello",
    "the",
    "my",
    "of",
]
words = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
anything = st.text(max_size=80) | words


@given(anything)
def test_a_choice_is_one_of_the_tasks_and_the_same_each_time(text: str) -> None:
    """With rivals that are others."""
    choice = ROUTER.choose(ReadUtterance(text))
    if choice is not None:
        assert choice.task in ROUTER.tasks
        assert choice.task not in choice.rivals
        again = ROUTER.choose(ReadUtterance(text))
        assert again is not None
        assert (again.task, set(again.rivals)) == (choice.task, set(choice.rivals))


@given(words, st.permutations(CARDS))
def test_the_order_of_the_cards_changes_nothing(text: str, cards: list) -> None:  # type: ignore[type-arg]
    """A catalogue is a set."""
    mine = ROUTER.choose(ReadUtterance(text))
    other = Router(Catalogue(cards)).choose(ReadUtterance(text))
    assert (mine is None) == (other is None)
    if mine is not None and other is not None:
        assert mine.score == other.score


@given(
    st.sampled_from(
        ["tomorrow", "2026-12-24", "at 5 pm", "12", "50k", "3.5 km", "17 %"]
    )
)
def test_a_value_alone_chooses_nothing(text: str) -> None:
    """Whatever it is."""
    assert ROUTER.choose(ReadUtterance(text)) is None


@given(
    st.integers(1, 10**12),
    st.integers(1, 10**12),
    st.sampled_from(["{a} limit, {b} spent", "spent {b}, limit {a}"]),
)
def test_every_pair_of_numbers_is_read_as_it_is_said(
    limit: int, spent: int, form: str
) -> None:
    """In either order, and none of them is another."""
    found = understand(f"Check my budget: {form.format(a=limit, b=spent)}")
    assert isinstance(found, Understood)
    assert (
        int(found.task.parameters["budget_limit"]),
        int(found.task.parameters["spent"]),
    ) == (limit, spent)


@given(anything)
def test_nothing_that_is_said_raises(text: str) -> None:
    """And what starts has values that stand in the text."""
    found = understand(text)
    if isinstance(found, Understood):
        assert all(text[span.start : span.end] == span.text for span in found.spans)
