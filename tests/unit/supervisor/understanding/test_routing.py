"""Which task is chosen: by names, keywords and examples, and none where nothing speaks for one."""

import pytest

from contracts.messages import AgentCard, TaskCard
from contracts.parameters.model import Parameters
from supervisor.catalogue import Catalogue
from supervisor.understanding.routing import Router
from supervisor.understanding.utterance import Utterance


class Nothing(Parameters):
    """No values, so that only the choice counts."""


def card(agent_id: str, *examples: str, keywords: tuple[str, ...] = (), name: str = "answer") -> AgentCard:
    """Return an agent with one task that *examples* tell of."""
    task = TaskCard(name=name, parameters=Nothing.schema_for_cards(), examples=examples, keywords=keywords)
    return AgentCard(agent_id=agent_id, tasks=(task,), digest="0")


ROUTER = Router(
    Catalogue(
        [
            card("Balance", "what is my balance", "how much money is in my account", "show the balance of my savings"),
            card("Weather", "what is the weather in Oslo", "will it rain tomorrow", "is it cold outside today"),
            card("Flights", "book a flight to Lima", "I need a plane ticket to Rome on Friday", "fly me to Paris"),
            card("Lost", keywords=("lost card", "stolen"), name="block_card"),
        ]
    )
)


def chosen(text: str) -> str | None:
    """Return the agent that *text* is for, None for none or several."""
    choice = ROUTER.choose(Utterance(text))
    return None if choice is None or choice.rivals else choice.task.offer.agent.agent_id


@pytest.mark.parametrize(
    ("text", "agent"),
    [
        ("could you tell me the balance of my account", "Balance"),
        ("a plane ticket to Tokyo on Monday", "Flights"),
        ("Weather: Oslo", "Weather"),
    ],
)
def test_the_task_is_the_one_that_the_words_speak_for(text: str, agent: str) -> None:
    """Also in other inflections."""
    assert chosen(text) == agent


@pytest.mark.parametrize(
    "text", ["who wrote Faust", "turn on the lights", "on Friday", "5", "", "!!!", "sing me a song"]
)
def test_where_nothing_speaks_for_a_task_none_is_chosen(text: str) -> None:
    """Nor by a date, a number or small words."""
    assert chosen(text) is None


def test_the_ranking_for_a_model_has_every_task_once() -> None:
    """The likeliest first, those without evidence behind them."""
    ranked = ROUTER.rank(Utterance("a plane ticket"), 10)
    assert ranked[0].offer.agent.agent_id == "Flights"
    assert sorted(task.key for task in ranked) == sorted(task.key for task in ROUTER.tasks)
    assert len(ROUTER.rank(Utterance("a plane ticket"), 2)) == 2
