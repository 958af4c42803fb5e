"""What is handed on is smaller than what it was made of: never larger, and at most 30 % of what is large."""

import random
from typing import Any

import pytest

from contracts.analysis.stories import Entity, StoryMemory, StoryThread
from memory.rendering.tokens import counter
from tests.unit.workers.agents.story.oracle import RIGHT
from tests.unit.workers.agents.story.stage import BASE, MARA, analysed, story
from tests.unit.workers.agents.story.test_sections import AGENTS
from workers.agents.story.tokens import shrink, take_turns

REDUCED = ("fact_extract", "memory_extract", "thread_extract")


@pytest.mark.parametrize(("before", "most"), [(0, 0), (7, 7), (1_000, 1_000), (1_001, 300), (10_000, 3_000)])
def test_what_stands_in_for_something_keeps_its_share(before: int, most: int) -> None:
    """Whole texts, the first ones, as many as fit."""
    texts = [f"Text number {number} of them." for number in range(2_000)]
    kept = shrink(texts, before)

    assert sum(map(counter(), texts[:kept])) <= most < sum(map(counter(), texts[: kept + 1]))


def test_rows_take_turns() -> None:
    """The first of each goes before the second of any."""
    one = counter()("word")
    assert take_turns({"a": ["word"] * 3, "b": ["word"] * 2, "c": []}, str, 3 * one) == (
        {"a": ("word", "word"), "b": ("word",)},
        3 * one,
    )
    assert take_turns({"a": ["word"]}, str, 0) == ({}, 0)


def grown(seed: int) -> Any:
    """Return a story whose files, memories and threads are of any size, tiny and huge ones side by side."""
    chance = random.Random(seed)

    def text() -> str:
        return "The bell rang, and the rope slipped from wet hands. " * chance.choice((0, 1, 1, 4, 40))

    entities = tuple(
        Entity(name=name, text=f"# {name}\n\n" + "".join(f"- {n} {text()}\n" for n in range(chance.randrange(9))))
        for name in (*(one.name for one in BASE.entities), "Bell")
    )
    memories = tuple(
        StoryMemory(id=f"MEM-{n}", character=MARA, title=text()[:60], summary=text()[:200], text=text())
        for n in range(chance.randrange(12))
    )
    threads = tuple(
        StoryThread(
            id=f"THREAD-{n}",
            title=f"The rope {n}",
            text=text(),
            keywords=("rope",),
            consequence_at=chance.choice((None, 4, 90)),
            opened=chance.choice((None, 3)),
        )
        for n in range(chance.randrange(12))
    )
    base = BASE.model_copy(update={"entities": entities, "memories": memories, "threads": threads})
    return story(base=base)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("section", REDUCED)
async def test_no_reduction_is_negative_and_of_much_little_is_left(section: str, seed: int) -> None:
    """Whoever chose, and however small a thing is."""
    for llm in ((), (RIGHT[section], RIGHT[section])):
        found, _ = await analysed(AGENTS[section], *llm, told=grown(seed))
        told = found["reduction"]
        assert 0 <= told["after"] <= told["before"]
        assert told["before"] <= 1_000 or told["pct"] >= 70
