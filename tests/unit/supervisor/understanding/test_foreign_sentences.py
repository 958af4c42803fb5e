"""Sentences that no agent was meant by: the rules ask about them, and a model, where there is one, is asked first."""

from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from tasklore.contracts.messages import AgentCard
from tasklore.contracts.parameters.model import Parameters
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import (
    Clarification,
    LlmInterpreter,
    RuleInterpreter,
    Understood,
)
from tasklore.workers.agents.budget import agent as budget
from tasklore.workers.card import card_of
from tests.understanding_cases import card_for
from tests.unit.supervisor.understanding.test_model_reading import Answers, reading

NOW = datetime(2026, 11, 20, 9, tzinfo=UTC)


class Book(Parameters):
    """A book to borrow."""

    title: str


class Pizza(Parameters):
    """A pizza and how many."""

    pizza: Literal["margherita", "funghi"]
    count: int = 1


def never_remembered(card: AgentCard, *examples: str) -> AgentCard:
    """Return *card* with a task that has effects, and *examples*."""
    [task] = card.tasks
    changed = task.model_copy(update={"examples": examples, "remember": "never"})
    return card.model_copy(update={"tasks": (changed,)})


LIBRARY = never_remembered(
    card_for("LibraryAgent", "borrow_book", Book, "Borrow a book.", ("borrow", "book")),
    "borrow Emma",
    "I would like to borrow the book Dune",
)
PIZZERIA = never_remembered(
    card_for("PizzaAgent", "order_pizza", Pizza, "Order pizzas.", ("pizza", "order")),
    "order 2 funghi",
    "a pizza margherita please",
)
ALL = Catalogue([LIBRARY, PIZZERIA, card_of(budget)])

FOREIGN = (
    "I borrowed 500 from my brother",
    "My limit for patience is 10 and I have spent 9 of it",
    "Could you tell me whether you have funghi?",
    "Do you have funghi?",
    "I'm allergic to funghi",
    "the pizza has 2 funghi on it",
    "order of 2 funghi arrived cold",
    "should I order 2 funghi?",
    "I want to know if borrowing Emma is allowed",
    "Emma borrowed my car",
    "my brother borrowed Dune from me",
    "She wants to borrow Emma",
    "He said: order 2 funghi",
    "Imagine I order 2 funghi",
    "Suppose I order 2 funghi",
)
MEANT = ("order 2 funghi", "limit 50k, 42k spent", "spent 42k of a limit of 50k")


@pytest.mark.parametrize("text", FOREIGN)
def test_rules_ask_about_a_sentence_that_is_about_something_else(text: str) -> None:
    found = RuleInterpreter().understand(text, catalogue=ALL, now=NOW)
    assert isinstance(found, Clarification), found


@pytest.mark.parametrize("text", [*MEANT, "borrow Emma"])
def test_rules_start_what_is_meant(text: str) -> None:
    found = RuleInterpreter().understand(text, catalogue=ALL, now=NOW)
    assert isinstance(found, Understood), found


async def asked(text: str, answer: Any) -> tuple[int, Any]:
    """Return how often the model is asked about *text*, and what comes of its *answer*."""
    model = Answers(answer, answer)
    interpreter = LlmInterpreter(model)
    found = await interpreter.interpret(text, catalogue=ALL, previous=[], now=NOW)
    return len(model.users), found


@pytest.mark.parametrize(
    "text",
    [
        *FOREIGN,
        "borrow 500 from my brother",
        "limit 10 and spent 9 among grumpy colleagues",
    ],
)
async def test_a_model_is_asked_about_words_that_no_field_explains(text: str) -> None:
    times, found = await asked(text, reading(unfit=[text]))
    assert times >= 1
    assert not isinstance(found, Understood)


@pytest.mark.parametrize("text", MEANT[1:])
async def test_no_model_is_asked_where_fields_explain_every_word(text: str) -> None:
    times, found = await asked(text, None)
    assert times == 0
    assert isinstance(found, Understood)
