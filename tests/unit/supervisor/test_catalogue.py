"""The catalogue of agents that a supervisor knows."""

from tasklore.supervisor.catalogue import Catalogue
from tests.understanding_cases import BUDGET, GREETER, TRIP, Trip, card_for


def test_learning_a_card_leaves_the_old_catalogue_unchanged() -> None:
    before = Catalogue([BUDGET])
    after = before.with_card(TRIP)
    assert set(before.cards) == {"BudgetTrackerAgent"}
    assert set(after.cards) == {"BudgetTrackerAgent", "TripAgent"}


def test_the_higher_version_wins_in_any_order() -> None:
    newer = card_for("TripAgent", "split_trip", Trip, version=2)
    for catalogue in (
        Catalogue([TRIP, newer]),
        Catalogue([newer, TRIP]),
        Catalogue([newer]).with_card(TRIP),
    ):
        assert catalogue.cards["TripAgent"].version == 2
        assert catalogue.find("TripAgent", "share_trip") is None


def test_the_same_version_replaces_its_card() -> None:
    mended = TRIP.model_copy(update={"description": "mended"})
    assert (
        Catalogue([TRIP]).with_card(mended).cards["TripAgent"].description == "mended"
    )


def test_an_unchanged_card_keeps_the_catalogue_and_its_indexes() -> None:
    catalogue = Catalogue([TRIP])
    assert catalogue.with_card(TRIP) is catalogue
    assert catalogue.without("NobodyAgent") is catalogue


def test_a_retired_agent_cannot_be_found() -> None:
    catalogue = Catalogue([TRIP, BUDGET]).without("TripAgent")
    assert catalogue.find("TripAgent", "share_trip") is None
    assert [offer.task.name for offer in catalogue.tasks()] == ["analyze_budget"]


def test_abilities_list_each_task_in_a_sentence() -> None:
    said = Catalogue([TRIP, GREETER]).abilities()
    assert said == (
        "I can: greet somebody by name; tell what each traveller pays for the hotel and"
        " all tickets together."
    )


def test_agents_that_take_no_words_are_not_called_absent() -> None:
    mute = BUDGET.model_copy(
        update={
            "tasks": tuple(
                t.model_copy(update={"in_words": False}) for t in BUDGET.tasks
            )
        }
    )
    said = Catalogue([mute]).abilities()
    assert (
        said
        == "No agent at work takes questions in words; start one that does with `tasklore worker`."
    )
    assert said != Catalogue().abilities()
    assert "tasklore worker" in Catalogue().abilities()


def test_a_task_not_in_words_is_found_by_name_alone() -> None:
    kept = BUDGET.model_copy(
        update={
            "tasks": tuple(
                t.model_copy(update={"in_words": False}) for t in BUDGET.tasks
            )
        }
    )
    catalogue = Catalogue([kept, TRIP])
    assert [offer.agent.agent_id for offer in catalogue.tasks()] == ["TripAgent"]
    assert catalogue.find("BudgetTrackerAgent", "analyze_budget") is not None
    assert "budget" not in catalogue.abilities()
