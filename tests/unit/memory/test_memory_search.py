"""Items of a person's documents are found by the words of a question that tell them apart."""

from datetime import UTC, datetime

import pytest

from tasklore.memory.recall import search_memory
from tasklore.workers.testing.fakes import KitEpisodes
from tests.memory_bench import KINDS, USER, documents

BODIES = documents(
    food__likes=["Omelettes", "Green tea"],
    health__allergies=["Peanuts"],
    places__home=["Porto"],
)


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("what am I allergic to?", ["Peanuts"]),
        ("Allergies?", ["Peanuts"]),
        ("where do I live?", ["Porto"]),
        ("peanuts and tea", ["Green tea", "Peanuts"]),
        ("what is the user to it?", []),
    ],
)
async def test_items_are_found_by_telling_words_and_their_kin(
    question: str, found: list[str]
) -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    recalled = await search_memory(
        question,
        user_id=USER,
        bodies=BODIES,
        kinds=KINDS,
        episodes=KitEpisodes(()),
        now=now,
    )
    assert sorted(one.text for one in recalled.memories) == found
