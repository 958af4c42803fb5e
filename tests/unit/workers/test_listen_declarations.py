"""What can be declared as a listener, and what is refused with the cure."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from contracts.errors import (
    ConfigurationError,
)
from contracts.messages import ChatTurn, Fact
from workers import Agent
from workers.listening.context import ListenContext
from workers.listening.values import Ruling
from workers.loading import load_agents


def twice(agent: Agent) -> None:
    """Listen to one queue twice."""

    @agent.listen("turns")
    def first(turn: ChatTurn) -> Sequence[Fact]:
        return []

    @agent.listen("turns")
    def second(turn: ChatTurn) -> Sequence[Fact]:
        return []


def unknown_queue(agent: Agent) -> None:
    """Listen to what is none."""

    @agent.listen("rumours")  # type: ignore[arg-type]  # that is what is refused
    def hear(turn: ChatTurn) -> Sequence[Fact]:
        return []


def wrong_given(agent: Agent) -> None:
    """Take a turn where facts come."""

    @agent.listen("facts")
    def hear(turn: ChatTurn) -> Sequence[Ruling]:
        return []


def nothing_given(agent: Agent) -> None:
    """Take nothing of what comes."""

    @agent.listen("facts")
    def hear(context: ListenContext) -> Sequence[Ruling]:
        return []


def two_of_one(agent: Agent) -> None:
    """Take two turns."""

    @agent.listen("turns")
    def hear(turn: ChatTurn, other: ChatTurn) -> Sequence[Fact]:
        return []


def wrong_answer(agent: Agent) -> None:
    """Return one fact, and not several."""

    @agent.listen("turns")
    def hear(turn: ChatTurn) -> Fact:
        return Fact(fact_id="fact-1", text="x")


def no_items(agent: Agent) -> None:
    """Want none at once."""

    @agent.listen("turns", items=0)
    def hear(turn: ChatTurn) -> Sequence[Fact]:
        return []


@pytest.mark.parametrize(
    ("declare", "cure"),
    [
        (twice, "merge Ear.first and this one"),
        (unknown_queue, 'takes "turns" or "facts", not \'rumours\''),
        (wrong_given, "a listener of facts takes named arguments of FactBatch, ListenContext only"),
        (nothing_given, "add an argument with that annotation"),
        (two_of_one, "two of ChatTurn: 'turn' and 'other'; drop one"),
        (wrong_answer, "returns Sequence[Fact], or a list or tuple of them"),
        (no_items, "items must be a whole number from 1 to 500, not 0"),
    ],
)
def test_what_cannot_be_served_is_refused_with_the_cure(declare: Callable[[Agent], None], cure: str) -> None:
    """When it is declared, not when the first turn comes."""
    with pytest.raises(ConfigurationError) as caught:
        declare(Agent("Ear"))
    assert cure in str(caught.value)


def test_an_agent_may_listen_and_do_nothing_else(tmp_path: Any) -> None:
    """It is loaded like any other; one that does neither is refused."""
    ear = """
from collections.abc import Sequence
from contracts.messages import ChatTurn, Fact
from workers import Agent

agent = Agent("OnlyEar")


@agent.listen("turns")
def hear(turn: ChatTurn) -> Sequence[Fact]:
    return []
"""
    (tmp_path / "only_ear.py").write_text(ear)
    (tmp_path / "idle_ear.py").write_text('from workers import Agent\n\nagent = Agent("IdleEar")\n')
    (agent,) = load_agents(str(tmp_path / "only_ear.py"))
    assert list(agent.listeners) == ["turns"]
    assert list(agent.configured({}).listeners) == ["turns"]
    with pytest.raises(ConfigurationError, match=r"@agent.task or @agent.listen"):
        load_agents(str(tmp_path / "idle_ear.py"))
