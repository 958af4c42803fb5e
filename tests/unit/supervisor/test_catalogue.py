"""What a supervisor knows of its agents."""

from supervisor.catalogue import Catalogue
from tests.understanding_cases import BUDGET, GREETER, TRIP, Trip, card_for


def test_a_new_card_leaves_the_old_catalogue_as_it_was() -> None:
    """Whoever still reads the old one sees no change under its hands."""
    before = Catalogue([BUDGET])
    after = before.with_card(TRIP)
    assert set(before.cards) == {"BudgetTrackerAgent"}
    assert set(after.cards) == {"BudgetTrackerAgent", "TripAgent"}


def test_the_higher_version_wins_whatever_the_order() -> None:
    """A card that arrives late does not bring an old agent back."""
    newer = card_for("TripAgent", "split_trip", Trip, version=2)
    for catalogue in (Catalogue([TRIP, newer]), Catalogue([newer, TRIP]), Catalogue([newer]).with_card(TRIP)):
        assert catalogue.cards["TripAgent"].version == 2
        assert catalogue.find("TripAgent", "share_trip") is None


def test_the_same_version_again_replaces_the_card() -> None:
    """A restarted worker may have mended its description."""
    mended = TRIP.model_copy(update={"description": "mended"})
    assert Catalogue([TRIP]).with_card(mended).cards["TripAgent"].description == "mended"


def test_a_card_that_says_nothing_new_changes_nothing() -> None:
    """Indexes built for the catalogue stay good."""
    catalogue = Catalogue([TRIP])
    assert catalogue.with_card(TRIP) is catalogue
    assert catalogue.without("NobodyAgent") is catalogue


def test_a_retired_agent_is_gone() -> None:
    """Nothing of it can be found or asked for."""
    catalogue = Catalogue([TRIP, BUDGET]).without("TripAgent")
    assert catalogue.find("TripAgent", "share_trip") is None
    assert [offer.task.name for offer in catalogue.tasks()] == ["analyze_budget"]


def test_what_can_be_asked_is_said_in_a_sentence() -> None:
    """Each task stands there by what it does."""
    said = Catalogue([TRIP, GREETER]).abilities()
    assert said == (
        "I can: greet somebody by name (greet); tell what each traveller pays for the hotel and all tickets together"
        " (share trip)."
    )


def test_an_empty_catalogue_says_how_to_fill_it() -> None:
    """Nobody is left wondering why nothing fits."""
    assert "tasklore worker" in Catalogue().abilities()


def test_where_no_agent_takes_words_nobody_is_told_that_there_is_none() -> None:
    """One is at work; only it cannot be asked in words."""
    mute = BUDGET.model_copy(update={"tasks": tuple(t.model_copy(update={"in_words": False}) for t in BUDGET.tasks)})
    said = Catalogue([mute]).abilities()
    assert said == "No agent at work takes questions in words; start one that does with `tasklore worker`."
    assert said != Catalogue().abilities()


def test_what_persons_may_not_ask_for_is_not_offered_to_them() -> None:
    """Pipelines and analyses still find it by name."""
    kept = BUDGET.model_copy(update={"tasks": tuple(t.model_copy(update={"in_words": False}) for t in BUDGET.tasks)})
    catalogue = Catalogue([kept, TRIP])

    assert [offer.agent.agent_id for offer in catalogue.tasks()] == ["TripAgent"]
    assert catalogue.find("BudgetTrackerAgent", "analyze_budget") is not None
    assert "budget" not in catalogue.abilities()
