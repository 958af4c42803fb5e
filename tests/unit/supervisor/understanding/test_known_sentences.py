"""The cache of understood sentences, and what is read anew each time."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tasklore.contracts.messages import AgentCard, ChatTurn, TaskCard
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import (
    Interpretation,
    RuleInterpreter,
    Understood,
)
from tasklore.supervisor.understanding.cache import CachedInterpreter
from tasklore.workers.agents.budget import agent
from tasklore.workers.card import card_of

BUDGET = "limit 50k, spent 42,000: how is my budget?"
NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


class Counting:
    """Interprets by rules, and counts how often; as a model would with *by_model*."""

    def __init__(self, *, by_model: bool = False) -> None:
        self.times = 0
        self._rules = RuleInterpreter()
        self._by_model = by_model

    async def interpret(
        self,
        text: str,
        *,
        catalogue: Catalogue,
        previous: Sequence[ChatTurn],
        user_id: str | None = None,
        now: datetime | None = None,
    ) -> Interpretation:
        self.times += 1
        found = await self._rules.interpret(
            text, catalogue=catalogue, previous=previous, user_id=user_id, now=now
        )
        return (
            replace(found, by_model=self._by_model)
            if isinstance(found, Understood)
            else found
        )


def visits() -> Catalogue:
    schema = {
        "type": "object",
        "required": ["day"],
        "properties": {"day": {"type": "string", "format": "date"}},
    }
    return Catalogue(
        [
            AgentCard(
                agent_id="V",
                tasks=(TaskCard(name="book_visit", parameters=schema),),
                digest="0" * 16,
            )
        ]
    )


async def read(
    known: CachedInterpreter,
    text: str,
    catalogue: Catalogue,
    *,
    days: int = 0,
    **more: object,
) -> object:
    later = NOW + timedelta(days=days)
    return await known.interpret(
        text, **{"catalogue": catalogue, "previous": (), "now": later, **more}
    )  # type: ignore[arg-type]


async def test_a_repeated_sentence_is_read_once() -> None:
    reading = Counting()
    catalogue = Catalogue([card_of(agent)])
    known = CachedInterpreter(reading)
    found = [await read(known, BUDGET, catalogue, days=days) for days in range(4)]
    assert isinstance(found[0], Understood)
    assert found == [found[0]] * 4
    assert reading.times == 1
    other = await read(known, BUDGET.replace("42", "43"), catalogue)
    assert isinstance(other, Understood)
    assert other.task.parameters["spent"] != found[0].task.parameters["spent"]
    assert reading.times == 2


async def test_a_sentence_with_a_day_is_read_anew() -> None:
    reading = Counting()
    catalogue = visits()
    known = CachedInterpreter(reading)
    found = [
        await read(known, "book a visit tomorrow", catalogue, days=days)
        for days in range(4)
    ]
    told = [one.task.parameters["day"] for one in found if isinstance(one, Understood)]
    assert told == ["2026-11-24", "2026-11-25", "2026-11-26", "2026-11-27"]
    assert reading.times == 4


async def test_a_changed_catalogue_is_read_anew() -> None:
    reading = Counting()
    known = CachedInterpreter(reading)
    for catalogue in (Catalogue([card_of(agent)]), Catalogue()):
        for _ in range(2):
            await read(known, BUDGET, catalogue)
    # What is no task is read each time.
    assert reading.times == 3


async def test_a_sentence_in_a_conversation_is_read_anew() -> None:
    reading = Counting()
    catalogue = Catalogue([card_of(agent)])
    known = CachedInterpreter(reading)
    said = ChatTurn(
        turn_id="t", conversation_id="c", speaker="person", text="hello", at=NOW
    )
    await read(known, BUDGET, catalogue)
    await read(known, BUDGET, catalogue, previous=(said,))
    assert reading.times == 2


@pytest.mark.parametrize("text", [BUDGET, "hello there", f"{BUDGET} {'please ' * 100}"])
async def test_model_readings_misses_and_long_texts_are_not_cached(text: str) -> None:
    reading = Counting(by_model=True)
    catalogue = Catalogue([card_of(agent)])
    known = CachedInterpreter(reading)
    for _ in range(3):
        await read(known, text, catalogue)
    assert reading.times == 3


async def test_the_cache_keeps_the_latest_sentences() -> None:
    reading = Counting()
    catalogue = Catalogue([card_of(agent)])
    known = CachedInterpreter(reading, most=3)
    for number in (1, 2, 3, 1, 4, 1, 2):
        await read(known, f"limit 50k, spent {number}: how is my budget?", catalogue)
    assert reading.times == 5
