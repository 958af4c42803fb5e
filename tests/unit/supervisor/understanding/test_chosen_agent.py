"""Words for an agent, or a task of it, that was chosen before they were said."""

from datetime import UTC, datetime

import pytest

from tasklore.contracts.messages import AgentCard, ChatTurn, TaskCard
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.http.chat.models import demand_model, list_models
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.understanding import (
    Clarification,
    Interpretation,
    RuleInterpreter,
    Understood,
    Unfitting,
)
from tasklore.supervisor.understanding.cache import CachedInterpreter


def task(name: str, *fields: str, in_words: bool = True) -> TaskCard:
    return TaskCard(
        name=name,
        parameters={
            "type": "object",
            "required": list(fields),
            "properties": {field: {"type": "integer"} for field in fields},
        },
        in_words=in_words,
    )


def card(agent_id: str, *tasks: TaskCard) -> AgentCard:
    return AgentCard(agent_id=agent_id, tasks=tasks, digest="0011223344556677")


LIFT = card("LiftAgent", task("move_lift", "floor"))
DESK = card("DeskAgent", task("book", "room", "guests"), task("close"))
CATALOGUE = Catalogue(
    [LIFT, DESK, card("QuietAgent", task("nap", in_words=False)), card("NoAgent")]
)


def narrowed(agent_id: str, name: str | None = None) -> Catalogue:
    found = CATALOGUE.narrow(agent_id, name)
    assert found is not None
    return found


def read(text: str, catalogue: Catalogue, *previous: ChatTurn) -> Interpretation:
    return RuleInterpreter().understand(text, catalogue=catalogue, previous=previous)


def test_models_are_the_agents_that_take_words() -> None:
    assert list_models(CATALOGUE) == [
        "tasklore",
        "DeskAgent",
        "DeskAgent/book",
        "DeskAgent/close",
        "LiftAgent",
    ]
    for name in list_models(CATALOGUE)[1:]:
        assert demand_model(CATALOGUE, name) is not None
    for name in ("QuietAgent", "QuietAgent/nap", "NoAgent", "LiftAgent/", "/move_lift"):
        with pytest.raises(Refused):
            demand_model(CATALOGUE, name)


def test_an_agent_with_the_name_of_the_supervisor_is_reached_by_its_tasks() -> None:
    catalogue = Catalogue([card("tasklore", task("nap"))])
    assert list_models(catalogue) == ["tasklore", "tasklore/nap"]
    assert demand_model(catalogue, "tasklore") is None
    assert demand_model(catalogue, "tasklore/nap") is not None


def test_a_part_is_the_same_while_its_whole_is() -> None:
    """So that it is learned once, beside the whole, and not at each turn of the two."""
    rules = RuleInterpreter()
    parts = [CATALOGUE, narrowed("DeskAgent"), narrowed("DeskAgent", "book")]
    routers = [rules.router(one) for one in parts]
    again = [CATALOGUE, narrowed("DeskAgent"), narrowed("DeskAgent", "book")]
    assert [rules.router(one) for one in again] == routers
    later = CATALOGUE.with_card(card("LaterAgent", task("later")))
    assert later.narrow("DeskAgent") is not narrowed("DeskAgent")
    assert rules.router(later) is not routers[0]


def test_a_part_has_nothing_of_the_others() -> None:
    desk = narrowed("DeskAgent")
    assert [offer.task.name for offer in desk.tasks()] == ["book", "close"]
    assert [offer.task.name for offer in narrowed("DeskAgent", "book").tasks()] == [
        "book"
    ]
    assert desk.find("LiftAgent", "move_lift") is None
    assert "lift" not in desk.abilities()


@pytest.mark.parametrize("text", ["7, as always", "bring me to 7"])
def test_a_value_that_nothing_announced_is_shown_for_a_yes(text: str) -> None:
    """Only where its task was chosen; else nobody knows what it is for."""
    assert isinstance(read(text, CATALOGUE), Unfitting)
    found = read(text, narrowed("LiftAgent"))
    assert isinstance(found, Clarification)
    assert found.question.startswith("Shall I ")
    asked = ChatTurn(
        turn_id="1",
        conversation_id="c",
        speaker="assistant",
        text=found.question,
        at=datetime(2026, 1, 1, tzinfo=UTC),
        agent_id=found.agent_id,
        task=found.call,
    )
    agreed = read("yes", narrowed("LiftAgent"), asked)
    assert isinstance(agreed, Understood)
    assert agreed.task.parameters == {"floor": 7}


def test_what_a_chosen_task_lacks_is_asked_for() -> None:
    found = read("good day to you all", narrowed("DeskAgent", "book"))
    assert isinstance(found, Clarification)
    assert found.missing == ("room", "guests")


@pytest.mark.parametrize("text", ["good day to you all", "7", "who are you?"])
def test_a_chosen_task_without_values_is_started_by_its_own_words_alone(
    text: str,
) -> None:
    assert isinstance(read(text, narrowed("DeskAgent", "close")), Unfitting)
    assert isinstance(read("close", narrowed("DeskAgent", "close")), Understood)


async def test_a_known_sentence_is_known_of_its_part_alone() -> None:
    cached = CachedInterpreter(RuleInterpreter())

    async def found(catalogue: Catalogue) -> Interpretation:
        return await cached.interpret(
            "move the lift to floor 7", catalogue=catalogue, previous=()
        )

    for _ in range(2):
        assert isinstance(await found(CATALOGUE), Understood)
        assert isinstance(await found(narrowed("LiftAgent")), Understood)
        assert not isinstance(await found(narrowed("DeskAgent")), Understood)
