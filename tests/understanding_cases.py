"""Cards and conversations that the tests of interpretation share; none is of an agent that we ship."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any, Literal

from tasklore.contracts.messages import AgentCard, ChatTurn, TaskCall, TaskCard
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import Amount
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import (
    Interpretation,
    RuleInterpreter,
    Understood,
)

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


class Budget(Parameters):
    """The seed's question."""

    budget_limit: Amount = Field(
        aliases=("limit",), cues=("limit", "budget of", "budget"), any_currency=True
    )
    spent: Amount = Field(cues=("spent", "spending"), any_currency=True)
    history: tuple[Amount, ...] = Field((), cues=("history", "past"), any_currency=True)


class Trip(Parameters):
    """Nothing but types: the design's own example."""

    hotel: Amount
    travellers: int
    tickets: tuple[Amount, ...] = ()


class Ride(Parameters):
    """Units, choices, dates, switches and text."""

    distance: Amount = Field(unit="km", cues=("drive",))
    fare: Amount | None = Field(None, unit="USD", cues=("costs",))
    comfort: Literal["economy", "first class"] = "economy"
    day: date | None = None
    quiet: bool = False
    note: str | None = Field(None, cues=("saying",))


class Greeting(Parameters):
    """One text."""

    name: str


def card_for(
    agent_id: str,
    task_name: str,
    parameters: type[Parameters],
    description: str = "",
    keywords: Sequence[str] = (),
    version: int = 1,
) -> AgentCard:
    """Return a card with one task."""
    task = TaskCard(
        name=task_name,
        description=description,
        parameters=parameters.schema_for_cards(),
    )
    return AgentCard(
        agent_id=agent_id,
        version=version,
        keywords=tuple(keywords),
        tasks=(task,),
        digest="0",
    )


BUDGET = card_for(
    "BudgetTrackerAgent",
    "analyze_budget",
    Budget,
    "Analyze a budget: what remains, the spending rate and the overshoot risk.",
    ("budget", "limit", "spent"),
)
TRIP = card_for(
    "TripAgent",
    "share_trip",
    Trip,
    "Tell what each traveller pays for the hotel and all tickets together.",
    ("trip", "travellers", "hotel"),
)
RIDE = card_for(
    "RideAgent", "book_ride", Ride, "Book a ride in a taxi.", ("ride", "taxi")
)
GREETER = card_for(
    "GreeterAgent", "greet", Greeting, "Greet somebody by name.", ("greet", "hello")
)
EVERYBODY = Catalogue([BUDGET, TRIP, RIDE, GREETER])


def said(
    speaker: Literal["person", "assistant"],
    text: str,
    task: TaskCall | None = None,
    agent: str | None = None,
) -> ChatTurn:
    """Return one turn."""
    return ChatTurn(
        turn_id=f"turn-{speaker}",
        conversation_id="c",
        speaker=speaker,
        text=text,
        at=AT,
        agent_id=agent,
        task=task,
    )


def budget_turn(text: str = "Remaining: 8,000", **parameters: Any) -> list[ChatTurn]:
    """Return a conversation in which the budget agent was asked with *parameters*."""
    call = TaskCall(name="analyze_budget", parameters=parameters)
    return [
        said("person", "Analyze my budget"),
        said("assistant", text, call, "BudgetTrackerAgent"),
    ]


def understand(
    text: str, previous: Sequence[ChatTurn] = (), catalogue: Catalogue = EVERYBODY
) -> Interpretation:
    """Return what the rules alone make of *text*."""
    return RuleInterpreter().understand(text, catalogue=catalogue, previous=previous)


def parameters_of(found: Interpretation) -> dict[str, Any]:
    """Return the parameters of an understood task, and fail on anything else."""
    assert isinstance(found, Understood), found
    return found.task.parameters
