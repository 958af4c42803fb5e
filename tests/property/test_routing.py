"""Whatever is said, and in whatever order examples are declared, a choice is made the same way."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from supervisor.catalogue import Catalogue
from supervisor.understanding.routing import Choice, Router
from supervisor.understanding.utterance import Utterance
from tests.unit.test_routing import HOLIDAY, INVOICES, OFFICE, OUTAGES, ROOMS, card

ROUTER = Router(OFFICE)
WORDS = sorted({word for text in (*ROOMS, *INVOICES, *HOLIDAY, *OUTAGES) for word in text.split()})
sentences = st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=30).map(" ".join)


def agents_of(choice: Choice | None) -> list[str]:
    """Return who is chosen and who nearly is."""
    return [] if choice is None else [task.offer.agent.agent_id for task in (choice.task, *choice.rivals)]


@settings(max_examples=200, deadline=None)
@given(sentences)
@example("")
@example("0 \u0661 \u00bd \u2160")
def test_any_sentence_is_chosen_for_or_not(text: str) -> None:
    """Nothing that can be typed raises, and the answer is the same twice."""
    choice = ROUTER.choose(Utterance(text))
    assert agents_of(choice) == agents_of(Router(OFFICE).choose(Utterance(text)))
    assert choice is None or choice.score > 0


@settings(max_examples=50, deadline=None)
@given(st.permutations(ROOMS), sentences)
def test_the_order_of_examples_is_of_no_importance(rooms: list[str], text: str) -> None:
    """They are a set of sentences."""
    other = Router(Catalogue([*OFFICE.without("RoomAgent").cards.values(), card("RoomAgent", rooms)]))
    assert agents_of(other.choose(Utterance(text))) == agents_of(ROUTER.choose(Utterance(text)))


@given(st.sampled_from([(one, task) for task in OFFICE.tasks() for one in task.task.examples]))
def test_every_example_finds_its_own_task(declared: tuple[str, object]) -> None:
    """What is declared is understood."""
    text, offer = declared
    choice = ROUTER.choose(Utterance(text))
    assert choice is not None
    assert choice.task.offer == offer
    assert choice.rivals == ()
