"""Hostile answers of both models of the memory chain; `python -m tests.memory_reading.hostile 10000` runs them all."""

from tests.memory_reading.hostile import run
from tests.property.examples import scale

SAMPLE = scale(150)


async def test_no_hostile_answer_damages_a_document_or_shows_anothers_words() -> None:
    """What is protected holds, or was ended by the person's own quoted words and is flagged."""
    outcome = await run(SAMPLE, first=50_000)
    assert outcome.damages == []
    # Some get through, or nothing was tried.
    assert outcome.rulings["applied"] > SAMPLE
    assert outcome.rulings["conflict"] > SAMPLE // 10
    assert outcome.flagged > SAMPLE // 10
