"""The example story that is shipped is consistent."""

from collections.abc import Iterable

import pytest

from tasklore.commands.stories.example import FOLDER
from tasklore.commands.stories.files import read_response, read_story, responses_in
from tasklore.contracts.analysis.stories import StoryBase, StoryResponse


@pytest.fixture(scope="module")
def base() -> StoryBase:
    """Return where the story begins."""
    return read_story(FOLDER)


@pytest.fixture(scope="module")
def responses() -> list[StoryResponse]:
    """Return all responses of the story in order."""
    return [read_response(path) for path in responses_in(FOLDER)]


def test_every_character_has_a_file(base: StoryBase) -> None:
    characters = {entity.name for entity in base.entities if entity.kind == "character"}
    named = {memory.character for memory in base.memories} | set(base.relations.tastes)
    named |= {name for bond in base.relations.bonds for name in bond.characters}
    named |= {name for thread in base.threads for name in thread.characters}
    assert named - characters == set()


def test_every_fact_is_about_an_entity(base: StoryBase) -> None:
    known = {
        name for entity in base.entities for name in (entity.name, *entity.aliases)
    }
    facts = [fact for fact in base.knowledge if fact.category != "history"]
    assert len(base.knowledge) >= 15
    assert {fact.subject for fact in facts} - known == set()
    assert {fact.source for fact in base.knowledge} == {"Ch0-R0"}


def test_tastes_are_declared_traits(base: StoryBase) -> None:
    tastes = base.relations.tastes.values()
    assert {trait for one in tastes for trait in (*one.likes, *one.dislikes)} == set(
        base.settings.traits
    )


def test_a_thread_is_resolved_in_one_response(
    base: StoryBase, responses: list[StoryResponse]
) -> None:
    ends = {
        end: _saying(end, responses)
        for thread in base.threads
        for end in thread.resolved_by
    }
    assert {end: where for end, where in ends.items() if len(where) != 1} == {}
    assert (
        0 < sum(bool(thread.resolved_by) for thread in base.threads) < len(base.threads)
    )


def _saying(phrase: str, responses: Iterable[StoryResponse]) -> list[str]:
    return [one.source for one in responses if phrase.casefold() in one.text.casefold()]
