"""Routing of sentences to agents by names, examples and keywords."""

from collections.abc import Sequence

import pytest

from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.contracts.parameters.model import Parameters
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding.outcome import Clarification, Understood
from tasklore.supervisor.understanding.routing import Router
from tasklore.supervisor.understanding.rules import RuleInterpreter
from tasklore.supervisor.understanding.utterance import ReadUtterance


class NoValues(Parameters):
    """A task that needs nothing but to be chosen."""


ROOMS = (
    "reserve the big meeting room for tuesday at 3pm",
    "is there a room free on friday morning",
    "i need a conference room for eight people",
    "book us a room next to the kitchen from 10 to 11",
)
INVOICES = (
    "has the invoice from acme been paid",
    "when is invoice 4711 due",
    "show me all unpaid invoices of may",
    "did we pay the bill of the cleaning company",
)
HOLIDAY = (
    "how many days off do i have left",
    "i would like to take monday off",
    "put me down for vacation in august",
    "can i take two weeks of leave at christmas",
)
OUTAGES = (
    "the printer on the second floor is not working",
    "my laptop crashes all the time",
    "the web site is down again",
    "i get an error when i open the mail program",
)


def card(
    agent_id: str,
    examples: Sequence[str],
    keywords: Sequence[str] = (),
    name: str = "answer",
) -> AgentCard:
    """Return an agent with one task that is known by its examples."""
    task = TaskCard(
        name=name,
        parameters=NoValues.schema_for_cards(),
        examples=tuple(examples),
        keywords=tuple(keywords),
    )
    return AgentCard(agent_id=agent_id, tasks=(task,), digest="0")


OFFICE = Catalogue(
    [
        card("RoomAgent", ROOMS),
        card("InvoiceAgent", INVOICES),
        card("leave", HOLIDAY),
        card("HelpAgent", OUTAGES),
    ]
)


def chosen(text: str, catalogue: Catalogue = OFFICE) -> str | None:
    """Return the agent that *text* goes to, also with a question about it; None when nobody gets it."""
    found = RuleInterpreter().understand(text, catalogue=catalogue)
    return found.agent_id if isinstance(found, Understood | Clarification) else None


@pytest.mark.parametrize(
    ("text", "agent"),
    [
        ("could you reserve a room for wednesday noon", "RoomAgent"),
        ("i want friday off", "leave"),
        ("my laptop keeps crashing", "HelpAgent"),
    ],
)
def test_examples_alone_route_other_words(text: str, agent: str) -> None:
    assert chosen(text) == agent


def test_a_named_agent_outweighs_examples() -> None:
    assert (
        chosen("InvoiceAgent: is there a room free on friday morning") == "InvoiceAgent"
    )


def test_tasks_with_equal_examples_are_asked_about() -> None:
    catalogue = Catalogue([card("NorthAgent", ROOMS), card("SouthAgent", ROOMS)])
    found = RuleInterpreter().understand(
        "is there a room free on monday", catalogue=catalogue
    )
    assert isinstance(found, Clarification)
    assert "NorthAgent" in found.question
    assert "SouthAgent" in found.question


def test_among_many_tasks_the_same_one_is_chosen() -> None:
    crowd = [
        card(
            f"Crowd{number}Agent",
            [
                f"could you {verb} thing {number} on wednesday"
                for verb in ("polish", "paint", "stack")
            ],
        )
        for number in range(120)
    ]
    many = Catalogue([*crowd, *OFFICE.cards.values()])
    assert chosen("could you reserve a room for wednesday noon", many) == "RoomAgent"
    assert chosen("how many planets are there in the solar system", many) is None


@pytest.mark.parametrize(
    "text", ["who wrote Faust", "on Friday", "5", "", "!!!", "sing me a song"]
)
def test_small_words_and_values_choose_no_agent(text: str) -> None:
    assert chosen(text) is None


def test_the_ranking_for_a_model_has_every_task_once() -> None:
    router = Router(OFFICE)
    ranked = router.rank(ReadUtterance("a meeting room"), 10)
    assert ranked[0].offer.agent.agent_id == "RoomAgent"
    assert sorted(task.key for task in ranked) == sorted(
        task.key for task in router.tasks
    )
    assert len(router.rank(ReadUtterance("a meeting room"), 2)) == 2
