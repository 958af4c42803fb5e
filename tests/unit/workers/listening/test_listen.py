"""Declaring the messages that an agent listens to, refusals with their cure, and a trial without servers."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tasklore import Agent
from tasklore.contracts.edits import Insert
from tasklore.contracts.errors import (
    ConfigurationError,
    GiveUp,
    InvalidInput,
    LlmMalformed,
    LlmNotConfigured,
    LlmRateLimited,
    LlmRefused,
    LlmTimeout,
    LlmUnavailable,
    MemoryUnavailable,
    NotAccepted,
    RetryLater,
    TaskloreError,
    UndeclaredAccess,
)
from tasklore.contracts.messages import ChatTurn, Fact
from tasklore.memory.documents.items import make_item
from tasklore.memory.documents.plans import Origin, Plan
from tasklore.workers.execution.retry_decision import RetryPolicy
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.row_outcomes import OUTAGE_CAP_S, fate_of, run_contained
from tasklore.workers.listening.values import FactBatch, Ruling, TurnBatch
from tasklore.workers.testing import NOW, listen

FOOD = "resource_user_food_prefs"


def learned(text: str, number: int = 1) -> Fact:
    """Return a fact."""
    return Fact(fact_id=f"fact-{number}", text=text)


def plan_for(fact: Fact, *, path: str = "food.likes", now: datetime = NOW) -> Plan:
    """Return a plan that keeps *fact* as one more item."""
    item = make_item(fact.text, added=now.date(), source="told")
    return Plan(
        plan_id=f"p-{fact.fact_id}",
        edits=(Insert(path=path, new_value=item, file=FOOD),),
        origin=Origin(by="rules", at=now, fact_id=fact.fact_id),
    )


def keeper() -> Agent:
    """Return an agent that keeps every fact it hears among the foods that are liked."""
    agent = Agent("Keeper")

    @agent.listen("facts")
    async def keep(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
        plans = [plan_for(pending.fact, now=context.now()) for pending in batch.facts]
        for plan in plans:
            context.draft.apply(plan)
        return [
            Ruling(
                fact_id=plan.origin.fact_id or "",
                outcome="applied",
                reasoning="as told",
                plan=plan,
            )
            for plan in plans
        ]

    return agent


async def test_a_listener_of_turns_returns_facts() -> None:
    """It is given the turn and, if it asks for it, the context of the user who spoke."""
    agent = Agent("Ear")

    @agent.listen("turns")
    async def hear(turn: ChatTurn, context: ListenContext) -> list[Fact]:
        return [
            learned(f"{context.user_id} said {turn.text!r} on {context.now().date()}")
        ]

    heard = await listen(agent, "hello", user_id="ann")
    assert [fact.text for fact in heard.facts] == ["ann said 'hello' on 2026-01-01"]


async def test_a_listener_of_facts_edits_the_draft_and_rules() -> None:
    heard = await listen(keeper(), ["omelettes", "pasta"])
    assert [ruling.outcome for ruling in heard.rulings] == ["applied", "applied"]
    food: Any = heard.documents[FOOD]["food"]
    assert [item["display"] for item in food["likes"]] == ["omelettes", "pasta"]
    assert heard.ruling_on(1).fact_id == "fact-2"


async def test_a_listener_of_turns_has_nothing_to_edit() -> None:
    agent = Agent("Ear")

    @agent.listen("turns")
    async def hear(turn: ChatTurn, context: ListenContext) -> Sequence[Fact]:
        context.draft.apply(plan_for(learned("x")))
        return []

    with pytest.raises(UndeclaredAccess, match=r'@agent.listen\("facts"\)'):
        await listen(agent, "hi")


async def test_what_is_no_fact_is_not_taken_for_one() -> None:
    """Whatever the annotation promised."""
    agent = Agent("Ear")

    @agent.listen("turns")
    def hear(turn: ChatTurn) -> Sequence[Fact]:
        return ["User says hi"]  # type: ignore[list-item]  # that is what is refused

    with pytest.raises(GiveUp, match="did not return facts"):
        await listen(agent, "hi")


Ruled = Callable[[FactBatch, ListenContext], list[Ruling]]


def applied_unsaid(batch: FactBatch, context: ListenContext) -> list[Ruling]:
    """Apply a plan that no ruling speaks of."""
    context.draft.apply(plan_for(batch.facts[0].fact))
    return [Ruling(fact_id="fact-1", outcome="known")]


def said_unapplied(batch: FactBatch, context: ListenContext) -> list[Ruling]:
    """Name a plan that was not applied."""
    return [
        Ruling(
            fact_id="fact-1",
            outcome="applied",
            reasoning="",
            plan=plan_for(batch.facts[0].fact),
        )
    ]


@pytest.mark.parametrize(
    ("ruled", "told"),
    [
        (lambda _batch, _context: [], "ruled 0 times on fact 'fact-1'"),
        (
            lambda _batch, _context: [Ruling(fact_id="fact-1", outcome="known")] * 2,
            "ruled 2 times on fact 'fact-1'",
        ),
        (
            lambda _batch, _context: [
                Ruling(fact_id="fact-1", outcome="known"),
                Ruling(fact_id="x", outcome="known"),
            ],
            "ruled 1 times on fact 'x'",
        ),
        (
            lambda _batch, _context: [Ruling(fact_id="fact-1", outcome="applied")],
            "applied without a plan",
        ),
        (said_unapplied, "hand it to context.draft.apply"),
        (applied_unsaid, "of which no ruling speaks"),
    ],
)
async def test_rulings_that_do_not_fit_are_refused_before_anything_is_stored(
    ruled: Ruled, told: str
) -> None:
    """One for each fact, and each edit accounted for."""
    agent = Agent("Judge")

    @agent.listen("facts")
    async def rule(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
        return ruled(batch, context)

    with pytest.raises(TaskloreError, match=told):
        await listen(agent, ["omelettes"])


RETRY = RetryPolicy(base_s=1.0, cap_s=8.0)


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (MemoryUnavailable("away"), "outage"),
        (NotAccepted("away"), "outage"),
        (LlmTimeout("late"), "outage"),
        (LlmUnavailable("503"), "outage"),
        (LlmRateLimited("patience", 3.0), "outage"),
        (LlmMalformed("no JSON"), "retry"),
        (RetryLater("soon", 2.0), "retry"),
        (ValueError("a bug"), "retry"),
        (LlmNotConfigured("no key"), "needs_model"),
        (LlmRefused("no"), "failed"),
        (GiveUp("never"), "failed"),
        (InvalidInput("wrong"), "failed"),
    ],
)
def test_an_error_becomes_the_fate_of_what_it_was_raised_over(
    error: Exception, state: str
) -> None:
    fate = fate_of(error, attempt=1, allowed=5, rests=0, retry=RETRY, now=NOW)
    assert fate.state == state
    assert type(error).__name__ in fate.reason


def test_the_last_attempt_is_the_last_unless_a_server_was_away() -> None:
    """However often it was away before."""
    last = {"attempt": 5, "allowed": 5, "rests": 400, "retry": RETRY, "now": NOW}
    assert fate_of(ValueError("a bug"), **last).state == "failed"  # type: ignore[arg-type]  # the same for both
    away = fate_of(LlmUnavailable("503"), **last)  # type: ignore[arg-type]
    assert away.state == "outage"
    assert 0 <= away.pause_s <= OUTAGE_CAP_S
    patient = fate_of(LlmRateLimited("patience", 1e9), **last)  # type: ignore[arg-type]
    assert patient.pause_s == OUTAGE_CAP_S


async def test_a_listener_that_takes_too_long_is_tried_again() -> None:
    """Its deadline ends the run, not the worker."""
    agent = Agent("Slow")

    @agent.listen("turns", deadline=timedelta(milliseconds=1))
    async def hear(turn: ChatTurn, context: ListenContext) -> Sequence[Fact]:
        await asyncio.Event().wait()
        return []

    listener = agent.listeners["turns"]
    turn = ChatTurn(
        turn_id="t",
        conversation_id="c",
        speaker="person",
        text="hi",
        at=datetime.now(UTC),
    )
    with pytest.raises(TaskloreError, match="did not end within"):
        await run_contained(listener, listener.learn(TurnBatch("u", (turn,)), None))  # type: ignore[arg-type]  # not looked at


@pytest.mark.parametrize("raised", [asyncio.CancelledError, SystemExit])
async def test_what_would_end_the_worker_is_the_listeners_failure_alone(
    raised: type[BaseException],
) -> None:
    agent = Agent("Mad")

    @agent.listen("turns")
    async def hear(turn: ChatTurn) -> Sequence[Fact]:
        raise raised

    listener = agent.listeners["turns"]
    turn = ChatTurn(
        turn_id="t", conversation_id="c", speaker="person", text="hi", at=NOW
    )
    with pytest.raises(TaskloreError, match=raised.__name__):
        await run_contained(listener, listener.learn(TurnBatch("u", (turn,)), None))  # type: ignore[arg-type]  # not looked at


def hear(turn: ChatTurn) -> Sequence[Fact]:
    """Listen to turns as one does."""
    return []


def rule_on_turns(turn: ChatTurn) -> Sequence[Ruling]:
    """Take a turn where facts come."""
    return []


def take_nothing(context: ListenContext) -> Sequence[Ruling]:
    """Take nothing of what comes."""
    return []


def take_two(turn: ChatTurn, other: ChatTurn) -> Sequence[Fact]:
    """Take two turns."""
    return []


def return_one(turn: ChatTurn) -> Fact:
    """Return one fact, and not several."""
    return learned(turn.text)


@pytest.mark.parametrize(
    ("queue", "options", "function", "cure"),
    [
        ("rumours", {}, hear, 'takes "turns" or "facts", not \'rumours\''),
        (
            "facts",
            {},
            rule_on_turns,
            "a listener of facts takes named arguments of FactBatch, ListenContext only",
        ),
        ("facts", {}, take_nothing, "add an argument with that annotation"),
        ("turns", {}, take_two, "two of ChatTurn: 'turn' and 'other'; drop one"),
        ("turns", {}, return_one, "returns Sequence[Fact], or a list or tuple of them"),
        (
            "turns",
            {"items": 0},
            hear,
            "items must be a whole number from 1 to 500, not 0",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_with_the_cure(
    queue: Any, options: dict[str, Any], function: Callable[..., Any], cure: str
) -> None:
    """When it is declared, not when the first turn comes; so is a second listener of one queue."""
    agent = Agent("Ear")
    with pytest.raises(ConfigurationError) as caught:
        agent.listen(queue, **options)(function)
    assert cure in str(caught.value)
    agent.listen("turns")(hear)
    with pytest.raises(ConfigurationError, match=r"merge Ear\.hear and this one"):
        agent.listen("turns")(hear)
