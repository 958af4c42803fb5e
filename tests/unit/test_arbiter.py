"""The arbiter, and the scrutiny before it: what a wish for an edit must withstand."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from contracts.edits import MAX_EDITS
from memory.documents.edits import apply_edits
from memory.documents.items import CONFLICT, Body
from memory.documents.paths import parse
from tests.memory_bench import FOOD, HEALTH, KINDS, NOW, documents, draft_of, fact, item
from workers.agents.memory_worker.arbiter import arbitrate
from workers.agents.memory_worker.case import REFUSALS, Case, Verdict, Wish
from workers.listening.values import PendingFact

SAID, INFERRED, IMPORTED = "stated:t0", "inferred:t0", "imported:notes.json"


def case(pending: PendingFact, bodies: Mapping[str, Body] | None = None) -> Case:
    """Return *pending* before the arbiter, over *bodies*."""
    return Case(pending, draft_of(bodies or documents()), KINDS, NOW.date())


def judge(pending: PendingFact, bodies: Mapping[str, Body], *wishes: Wish) -> Verdict:
    """Return the verdict on *wishes* for *pending* over *bodies*."""
    return arbitrate(case(pending, bodies), wishes, "because")


def wish(operation: str, path: str, display: str = "", resource_id: str = FOOD, **more: Any) -> Wish:
    """Return a wish."""
    return Wish(operation, resource_id, parse(path), display, **more)  # type: ignore[arg-type]


def after(judged: Verdict, bodies: Mapping[str, Body], resource_id: str = FOOD) -> Any:
    """Return the body of a document after the edits of *judged*."""
    return apply_edits(bodies[resource_id], [one for one in judged.edits if one.file == resource_id]).body


# -- who overrules whom ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [SAID, INFERRED, IMPORTED, "told"])
def test_what_is_said_now_overrules_whatever_was_said_before(source: str) -> None:
    """The contrary goes from its list in the same plan."""
    bodies = documents(food__likes=[item("Eggs", source=source)])

    judged = judge(fact("User hates eggs"), bodies, wish("insert", "food.dislikes", "Eggs"))

    assert judged.outcome == "applied"
    food = after(judged, bodies)["food"]
    assert (food["likes"], [kept["display"] for kept in food["dislikes"]]) == ([], ["Eggs"])


@pytest.mark.parametrize("source", [SAID, IMPORTED, "told"])
@pytest.mark.parametrize(
    "wished",
    [
        wish("insert", "food.dislikes", "Eggs"),
        wish("delete", "food.likes[0]"),
        wish("update", "food.likes[0]", "Boiled eggs"),
    ],
)
def test_an_inference_never_overrules_what_was_said(source: str, wished: Wish) -> None:
    """Neither by the contrary, nor by deleting, nor by changing it: it is a conflict, and nothing is done."""
    bodies = documents(food__likes=[item("Eggs", source=source)])

    judged = judge(fact("User hates boiled eggs", inferred=True), bodies, wished)

    assert (judged.outcome, judged.word, judged.edits) == ("conflict", "rank", ())


def test_two_inferences_that_contradict_are_both_kept_and_marked() -> None:
    """With the id of the plan that noticed it, by which they are found together."""
    bodies = documents(food__likes=[item("Eggs", source=INFERRED)])

    judged = judge(fact("User hates eggs", inferred=True), bodies, wish("insert", "food.dislikes", "Eggs"))

    food = after(judged, bodies)["food"]
    assert judged.outcome == "conflict"
    assert (food["likes"][0][CONFLICT], food["dislikes"][0][CONFLICT]) == ("f1", "f1")
    assert food["dislikes"][0]["source"] == "inferred:t1"


def test_what_is_said_in_one_breath_is_both_kept_and_marked() -> None:
    """No part of a turn is newer than another."""
    bodies = documents(food__likes=[item("Eggs", source="stated:t1")])

    judged = judge(fact("User hates eggs"), bodies, wish("insert", "food.dislikes", "Eggs"))

    food = after(judged, bodies)["food"]
    assert judged.outcome == "conflict"
    assert [kept[CONFLICT] for kept in (*food["likes"], *food["dislikes"])] == ["f1", "f1"]


def test_one_fact_that_contradicts_itself_is_marked_too() -> None:
    """Both of its items are new."""
    wishes = [wish("insert", "food.likes", "Eggs"), wish("insert", "food.dislikes", "Eggs")]
    bodies = documents()

    judged = judge(fact("User loves and hates eggs"), bodies, *wishes)

    food = after(judged, bodies)["food"]
    assert judged.outcome == "conflict"
    assert [kept[CONFLICT] for kept in (*food["likes"], *food["dislikes"])] == ["f1", "f1"]


def test_whoever_joins_a_conflict_gets_its_mark() -> None:
    """So that all who contradict each other are found under one."""
    bodies = documents(food__likes=[item("Eggs", source=INFERRED, conflict="older")])

    judged = judge(fact("User avoids eggs", inferred=True), bodies, wish("insert", "food.avoids", "Eggs"))

    assert after(judged, bodies)["food"]["avoids"][0][CONFLICT] == "older"


def test_a_word_of_the_person_ends_a_conflict() -> None:
    """The contrary goes, and what is confirmed is marked no longer."""
    bodies = documents(
        food__likes=[item("Eggs", source=INFERRED, conflict="p1")],
        food__dislikes=[item("Eggs", source=INFERRED, conflict="p1")],
    )

    judged = judge(fact("User likes eggs"), bodies, wish("insert", "food.likes", "eggs"))

    food = after(judged, bodies)["food"]
    assert judged.outcome == "applied"
    assert food["dislikes"] == []
    assert (food["likes"][0].get(CONFLICT), food["likes"][0]["source"]) == (None, "stated:t1")


@pytest.mark.parametrize("source", [SAID, INFERRED])
@pytest.mark.parametrize("operation", ["delete", "update"])
def test_an_inference_changes_nothing_in_a_guarded_document(source: str, operation: str) -> None:
    """Not even what was inferred."""
    bodies = documents(health__allergies=[item("Nuts", source=source)])
    wished = wish(operation, "health.allergies[0]", "Peanuts", HEALTH)

    judged = judge(fact("User eats nuts", inferred=True), bodies, wished)

    assert (judged.outcome, judged.word, judged.edits) == ("conflict", "guarded", ())


def test_an_inference_may_add_to_a_guarded_document() -> None:
    """It overrides nothing there, and says that it is one."""
    bodies = documents()
    wished = wish("insert", "health.allergies", "Nuts", HEALTH)

    judged = judge(fact("User cannot eat nuts", inferred=True), bodies, wished)

    assert after(judged, bodies, HEALTH)["health"]["allergies"][0]["source"] == "inferred:t1"


EARLY, LATE = "019a0000-0000-7000-8000-000000000001", "019b0000-0000-7000-8000-000000000001"


@pytest.mark.parametrize(
    ("turn_id", "kept", "outcome"),
    [(EARLY, LATE, "rejected"), (LATE, EARLY, "applied"), ("t1", LATE, "applied"), (EARLY, "t9", "applied")],
)
def test_a_fact_that_waited_does_not_overrule_what_was_said_since(turn_id: str, kept: str, outcome: str) -> None:
    """Only ids that begin with their time can tell; others count as older than what comes now."""
    bodies = documents(food__likes=[item("Eggs", source=f"stated:{kept}")])

    judged = judge(fact("User hates eggs", turn_id=turn_id), bodies, wish("delete", "food.likes[0]"))

    assert judged.outcome == outcome
    assert judged.word == ("older" if outcome == "rejected" else None)


# -- what is there already ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inferred", [True, False])
@pytest.mark.parametrize("display", ["eggs", "Eggs", "an egg", "EGGS!"])
def test_what_is_kept_is_known_in_any_wording(display: str, inferred: bool) -> None:
    """No edit comes of it."""
    bodies = documents(food__likes=["Eggs"])

    judged = judge(fact("User likes eggs", inferred=inferred), bodies, wish("insert", "food.likes", display))

    assert (judged.outcome, judged.edits) == ("known", ())


def test_a_guess_that_is_confirmed_becomes_a_statement() -> None:
    """It keeps its place and its words."""
    bodies = documents(food__likes=[item("Eggs, boiled", source=INFERRED, confidence=0.4, note="soft")])

    judged = judge(fact("User likes boiled eggs"), bodies, wish("insert", "food.likes", "Eggs (boiled)"))

    (kept,) = after(judged, bodies)["food"]["likes"]
    assert (kept["display"], kept["source"], kept["confidence"], kept["note"]) == (
        "Eggs, boiled",
        "stated:t1",
        1.0,
        "soft",
    )


def test_a_guess_leaves_what_was_said_as_it_is() -> None:
    """Also one with an end of its own."""
    bodies = documents(food__likes=["Eggs"])
    wished = wish("insert", "food.likes", "Eggs", expiry=NOW.date())

    assert judge(fact("User likes eggs", inferred=True), bodies, wished).outcome == "known"


def test_the_same_wish_twice_is_one() -> None:
    """In another wording too."""
    bodies = documents()

    judged = arbitrate(
        case(fact("User likes eggs"), bodies),
        [wish("insert", "food.likes", "Eggs"), wish("insert", "food.likes", "an egg")],
        "",
    )

    assert len(judged.edits) == 1


def test_what_an_older_file_kept_as_plain_text_is_known_and_changed_as_text() -> None:
    """A string stays a string: nobody asked for another shape."""
    bodies = documents()
    bodies[FOOD]["food"] = {**bodies[FOOD]["food"], "likes": ["Eggs", "Tea"]}  # type: ignore[dict-item]

    known = judge(fact("User likes eggs"), bodies, wish("insert", "food.likes", "Eggs"))
    changed = judge(fact("User likes boiled eggs"), bodies, wish("update", "food.likes[0]", "Boiled eggs"))

    assert known.outcome == "known"
    assert after(changed, bodies)["food"]["likes"] == ["Boiled eggs", "Tea"]


# -- what no wish can do -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wished", "word"),
    [
        (wish("delete", "_metadata"), "protected"),
        (wish("update", "_metadata.revision", "9"), "protected"),
        (wish("insert", "_metadata.tags", "x"), "protected"),
        (wish("delete", "$"), "protected"),
        (wish("delete", "food.likes[7]"), "path"),
        (wish("delete", "food.drinks[0]"), "path"),
        (wish("delete", "food.likes[0]", resource_id="resource_of_nobody"), "path"),
        (wish("delete", "food.likes"), "place"),
        (wish("delete", "food"), "place"),
        (wish("delete", "food.likes[0].display"), "place"),
        (wish("update", "food.likes[0].source", "told"), "place"),
        (wish("insert", "food", "Eggs"), "place"),
        (wish("insert", "food.likes[0]", "Eggs"), "place"),
        (wish("insert", "food.likes", " "), "value"),
        (wish("update", "food.likes[0]", ""), "value"),
    ],
)
def test_wishes_that_no_fact_can_have_are_refused(wished: Wish, word: str) -> None:
    """All of what is wished for falls with one of it."""
    bodies = documents(food__likes=["Sushi"])

    judged = judge(fact("User likes eggs"), bodies, wish("insert", "food.likes", "Eggs"), wished)

    assert (judged.outcome, judged.word, judged.edits) == ("rejected", word, ())
    assert judged.reasoning.startswith(f"{word}: ")


def test_a_plan_has_only_so_many_edits() -> None:
    """More are no plan but an accident."""
    wishes = [wish("insert", "food.likes", f"Dish {number}") for number in range(MAX_EDITS + 1)]

    assert judge(fact("User likes dishes"), documents(), *wishes).word == "size"


def test_one_item_does_not_become_two_things() -> None:
    """Two changes of it contradict each other; to delete it is the last word."""
    bodies = documents(food__likes=["Eggs"])
    changes = [wish("update", "food.likes[0]", "Boiled eggs"), wish("update", "food.likes[0]", "Fried eggs")]

    assert judge(fact("User likes eggs"), bodies, *changes).word == "merge"
    both = judge(fact("User likes eggs"), bodies, changes[0], wish("delete", "food.likes[0]"))
    assert [one.operation for one in both.edits] == ["delete"]


def test_every_refusal_has_its_word() -> None:
    """They label a metric: few, and each one explained."""
    assert len(REFUSALS) == len(set(REFUSALS)) <= 16
    assert all(word.isalpha() and word.islower() for word in REFUSALS)


def test_wishes_of_these_tests_differ() -> None:
    """A wish is a value."""
    first: Sequence[Wish] = [wish("delete", "food.likes[0]"), wish("delete", "food.likes[0]")]
    assert first[0] == first[1]
