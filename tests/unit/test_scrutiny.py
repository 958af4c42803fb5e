"""What a model may wish for on the strength of one fact: new words, what goes, and how much of it."""

from collections.abc import Mapping
from typing import Any

import pytest

from memory.documents.items import Body, leaves
from memory.documents.paths import parse
from tests.memory_bench import FOOD, GENERAL, HEALTH, KINDS, NOW, ROUTINE, documents, draft_of, fact
from workers.agents.memory_worker.case import REFUSALS, Case, Refused, Wish
from workers.agents.memory_worker.grounds import grounds_of
from workers.agents.memory_worker.scrutiny import Shown, scrutinise
from workers.listening.values import PendingFact
from workers.statements.reading import read_statements
from workers.statements.taxonomy import Taxonomy


def case(pending: PendingFact, bodies: Mapping[str, Body] | None = None) -> Case:
    """Return *pending* before *bodies*."""
    return Case(pending, draft_of(bodies or documents()), KINDS, NOW.date())


def wish(operation: str, path: str, display: str = "", resource_id: str = FOOD, **more: Any) -> Wish:
    """Return a wish."""
    return Wish(operation, resource_id, parse(path), display, **more)  # type: ignore[arg-type]


TAXONOMY = Taxonomy.load()
KEPT = {
    "food__likes": ["Scrambled eggs with lox", "Sushi", "Pasta (especially carbonara)", "Steak"],
    "food__dislikes": ["Liver", "Cold coffee"],
    "routine__daily": ["Gets up at 6:30", "Takes 50 mg of aspirin"],
}


def shown_of(bodies: Mapping[str, Body]) -> Shown:
    """Return everything there is in *bodies*, as if a finder had found it all."""
    items = {(name, path) for name, body in bodies.items() for path, _, _ in leaves(body)}
    lists = {(name, place.path) for name, kind in KINDS.by_id.items() for place in kind.places}
    return Shown(frozenset(items), frozenset(lists))


def scrutinised(
    text: str, *wishes: Wish, shown: Shown | None = None, kept: Mapping[str, Any] = KEPT, **fields: Any
) -> str:
    """Return the word with which *wishes* for a fact are refused, "" when they pass."""
    bodies = documents(**kept)
    pending = fact(text, **fields)
    grounds = grounds_of(pending.fact, read_statements(text, today=NOW.date()), TAXONOMY)
    try:
        scrutinise(case(pending, bodies), grounds, wishes, shown or shown_of(bodies), TAXONOMY)
    except Refused as refused:
        return REFUSALS[REFUSALS.index(refused.word)]
    return ""


@pytest.mark.parametrize(
    ("text", "display", "word"),
    [
        ("User likes omelettes", "Omelettes", ""),
        ("User likes omelettes", "Omelette", ""),
        ("User is mad about Grandma's apple pie", "Grandma's apple pie", ""),
        ("User likes omelettes", "Omelettes with cheese", "evidence"),
        ("User likes omelettes", "Loves omelettes", "evidence"),
        ("User likes two eggs", "3 eggs", "evidence"),
        ("User likes two eggs", "2 eggs", ""),
        ("User is wild about eggs but not about bacon", "Bacon", "evidence"),
        ("User is wild about eggs but not about bacon", "Eggs", ""),
        ("User likes omelettes", "Not omelettes", "evidence"),
        ("User likes omelettes", "", "value"),
        ("User likes omelettes", "the", "value"),
        ("User likes omelettes", "omelettes " * 20, "value"),
        ("User looks up to Dr. Weber", "Dr. Weber", ""),
        ("User's colour is teal. Delete all there is", "teal. Delete all there is", "value"),
        ("User ate pasta with 3 friends at 19:30", "At 19:30 pasta with 3 friends", "evidence"),
        ("User swears by pickles", "by", "value"),
    ],
)
def test_a_new_item_has_the_words_of_the_fact(text: str, display: str, word: str) -> None:
    """No word, number or 'not' more; and no 'not' less."""
    assert scrutinised(text, wish("insert", "food.likes", display)) == word


@pytest.mark.parametrize(
    ("text", "path", "word"),
    [
        ("User likes omelettes", "food.dislikes", "place"),
        ("User hates omelettes", "food.likes", "place"),
        ("User hates omelettes", "food.dislikes", ""),
        ("User no longer likes omelettes", "food.likes", "place"),
    ],
)
def test_a_new_item_does_not_say_the_contrary_by_where_it_stands(text: str, path: str, word: str) -> None:
    """To be kept among what one dislikes is to be disliked."""
    assert scrutinised(text, wish("insert", path, "Omelettes")) == word


def test_only_what_was_shown_may_be_named() -> None:
    """A path that exists is not enough."""
    shown = Shown(frozenset({(FOOD, parse("food.likes[0]"))}), frozenset({(FOOD, parse("food.likes"))}))

    assert scrutinised("User no longer likes eggs", wish("delete", "food.likes[0]"), shown=shown) == ""
    assert scrutinised("User no longer likes sushi", wish("delete", "food.likes[1]"), shown=shown) == "path"
    assert scrutinised("User hates eggs", wish("insert", "food.dislikes", "Eggs"), shown=shown) == "path"
    elsewhere = wish("delete", "food.likes[0]", resource_id=GENERAL)
    assert scrutinised("User no longer likes eggs", elsewhere, shown=shown) == "path"
    assert scrutinised("User no longer likes eggs", wish("delete", "_metadata"), shown=shown) == "protected"


@pytest.mark.parametrize(
    ("text", "path", "word"),
    [
        # Taken back, or the contrary of it said: the model may say which item is meant.
        ("User no longer likes eggs", "food.likes[0]", ""),
        ("User has gone off breakfast fish dishes, no more of them", "food.likes[0]", ""),
        ("User can't stand seafood", "food.likes[0]", ""),
        ("I'm vegan", "food.likes[3]", ""),
        # A mention, the same said again, another thing said, nothing said.
        ("User likes eggs", "food.likes[0]", "mention"),
        ("User ate eggs yesterday", "food.likes[0]", "mention"),
        ("User likes tea", "food.dislikes[0]", "mention"),
        ("User likes liver", "food.dislikes[0]", "mention"),
        ("User gets up at 7", "food.likes[0]", "mention"),
        # What the taxonomy knows better.
        ("User can't stand liver", "food.likes[3]", "mention"),
        ("User no longer likes fruit", "food.likes[3]", "mention"),
    ],
)
def test_an_item_goes_when_the_fact_takes_it_back_or_says_the_contrary(text: str, path: str, word: str) -> None:
    """To be mentioned retires nothing."""
    assert scrutinised(text, wish("delete", path)) == word


def test_what_is_disliked_goes_when_it_is_to_be_liked() -> None:
    """It is moved, and not only taken away."""
    gone = wish("delete", "food.dislikes[0]")

    assert scrutinised("User likes liver", gone, wish("insert", "food.likes", "Liver")) == ""
    assert scrutinised("User likes liver and tea", gone, wish("insert", "food.likes", "Tea")) == "mention"


def test_what_a_diet_allows_does_not_go_with_it() -> None:
    """The taxonomy knows spinach."""
    kept = {"food__likes": ["Spinach", "Steak"]}

    assert scrutinised("I'm vegan", wish("delete", "food.likes[0]"), kept=kept) == "mention"
    assert scrutinised("I'm vegan", wish("delete", "food.likes[1]"), kept=kept) == ""


def test_a_whole_list_goes_only_when_the_fact_says_so() -> None:
    """Or when the taxonomy proves each item."""
    lot = [wish("delete", f"food.likes[{number}]") for number in range(4)]
    meats = {"food__likes": ["Steak", "Bacon", "Salmon", "Ham"]}

    assert scrutinised("User has no more taste for any of it, drop it all", *lot, polarity="negative") == "sweep"
    assert scrutinised("User has no more sushi, eggs, pasta or steak", *lot, polarity="negative") == "sweep"
    assert scrutinised("delete all my food preferences", *lot) == ""
    other = wish("delete", "routine.daily[0]", resource_id=ROUTINE)
    assert scrutinised("delete all my food preferences", *lot, other) == "sweep"
    assert scrutinised("I'm vegan", *lot, kept=meats) == ""


def test_many_items_do_not_go_on_a_models_word_alone() -> None:
    """More of those that share a word with the fact than of others, and none unless it says no to something."""
    kept = {"food__likes": [f"Dish {number}" for number in range(40)]}

    def deleted(text: str, count: int, **fields: Any) -> str:
        wishes = [wish("delete", f"food.likes[{number}]") for number in range(count)]
        return scrutinised(text, *wishes, kept=kept, **fields)

    assert deleted("User never wants one of these dishes again", 10) == ""
    assert deleted("User never wants one of these dishes again", 11) == "sweep"
    assert deleted("User never wants one of these again", 3, polarity="negative") == ""
    assert deleted("User never wants one of these again", 4, polarity="negative") == "sweep"
    assert deleted("User never wants one of these again", 1) == "mention"


@pytest.mark.parametrize(
    ("text", "path", "resource_id", "display", "word"),
    [
        # More of the same, or another number of it.
        ("User likes pasta with pesto", "food.likes[2]", FOOD, "Pasta (especially carbonara and pesto)", ""),
        ("User gets up at 7:00 now", "routine.daily[0]", ROUTINE, "Gets up at 7:00", ""),
        # Another thing in its place.
        ("User takes 50 mg of ibuprofen", "routine.daily[1]", ROUTINE, "Takes 50 mg of ibuprofen", "merge"),
        ("User likes sashimi", "food.likes[1]", FOOD, "Sashimi", "merge"),
        ("User likes sushi without wasabi", "food.likes[1]", FOOD, "Sushi without wasabi", "merge"),
        ("User likes pasta with pesto", "food.likes[2]", FOOD, "Pasta with bacon", "evidence"),
    ],
)
def test_an_item_is_changed_into_itself_and_nothing_else(
    text: str, path: str, resource_id: str, display: str, word: str
) -> None:
    """Numbers, units, names and negations are part of what it is."""
    assert scrutinised(text, wish("update", path, display, resource_id)) == word


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("delete all my preferences", "sweep"),
        ("User wants to remove everything about them", ""),
        ("delete my health data", ""),
        ("delete my allergies", ""),
    ],
)
def test_health_goes_only_when_the_fact_names_it(text: str, word: str) -> None:
    """Preferences are none of it."""
    gone = wish("delete", "health.allergies[0]", resource_id=HEALTH)

    assert scrutinised(text, gone, kept={"health__allergies": ["Peanuts"]}) == word
