"""Whose files the next response needs: whole, condensed, or by name alone."""

from typing import Any

import pytest

from contracts.analysis_immediate import EntityAnalysis
from contracts.errors import LlmRefused
from contracts.stories import Entity
from memory.rendering.tokens import counter
from tests.unit.story.stage import (
    BASE,
    CORWIN,
    ENTITIES,
    HANNE,
    INES,
    LANTERN,
    MARA,
    RESPONSE,
    TAVERN,
    TOBIAS,
    analysed,
    entity,
    story,
)
from workers.agents.story.entity_analysis import EntityChoice, agent
from workers.agents.story.rules.tiers import tiers_of


def names(section: dict[str, Any], tier: str) -> list[str]:
    """Return who is in a tier with files."""
    return [one["name"] for one in section[tier]]


def choice(focus: tuple[int, ...] = (), relevant: tuple[int, ...] = ()) -> EntityChoice:
    """Return what a model picks."""
    return EntityChoice(reasoning="so", focus=focus, relevant=relevant)


async def test_the_scene_is_whole_and_what_it_mentions_condensed() -> None:
    """Files with their tokens; then names that the whole files know, and how many others there are."""
    section, _ = await analysed(agent)

    assert section["by"] == "rules"
    assert section["tier1"] == [
        {"name": one.name, "file": one.file, "tokens": one.tokens} for one in (entity(MARA), entity(TOBIAS))
    ]
    assert names(section, "tier2") == [CORWIN, INES, LANTERN]
    assert section["tier3"] == [HANNE, "[1 other]"]
    assert section["locs"] == [LANTERN]
    EntityAnalysis.model_validate(section)


async def test_a_model_that_fails_leaves_it_to_the_rules() -> None:
    """The section is the same as without one."""
    assert (await analysed(agent, LlmRefused("no")))[0] == (await analysed(agent))[0]


async def test_a_model_picks_by_number_and_cannot_invent() -> None:
    """Its order counts, a place is no focus, and nobody who is named is left out for its picks."""
    section, kit = await analysed(agent, choice(focus=(5, 2, 0, 99), relevant=(7, 1, 4)))

    listed = kit.asked[0].user.split("<entities>\n")[1].splitlines()
    assert listed[:7] == [
        f"{number}. {kind}: {name}"
        for number, (kind, name) in enumerate(
            [
                ("character", MARA),
                ("character", TOBIAS),
                ("character", CORWIN),
                ("character", INES),
                ("location", LANTERN),
                ("character", HANNE),
                ("location", TAVERN),
            ],
            1,
        )
    ]
    assert section["by"] == "scripted"
    assert names(section, "tier1") == [TOBIAS]
    assert names(section, "tier2") == [TAVERN, MARA, INES, CORWIN, LANTERN]


async def test_an_empty_choice_is_the_rules_own() -> None:
    """Somebody always is in focus, when anybody is there."""
    chosen, _ = await analysed(agent, choice())
    by_rules, _ = await analysed(agent)

    assert {**chosen, "by": "rules"} == by_rules


async def test_what_a_model_was_not_shown_it_cannot_pick() -> None:
    """A long list is cut, and a number beyond it is nobody's."""
    crowd = tuple(Entity(name=f"Person {'abcdefghij'[n // 100]}{n:03}", file="f.md", tokens=9) for n in range(1_000))
    base = BASE.model_copy(update={"entities": (*ENTITIES, *crowd)})

    section, kit = await analysed(agent, choice(focus=(900, 1), relevant=(8, 950)), told=story(base=base))

    assert "\n950. " not in kit.asked[0].user
    assert names(section, "tier1") == [MARA]
    assert names(section, "tier2")[0].startswith("Person")
    assert not any(name.endswith("9") for name in names(section, "tier2")[1:])


def test_every_entity_is_counted_once() -> None:
    """In a tier or among the others."""
    tiers = tiers_of(RESPONSE.text, ENTITIES)
    placed = [one.name for one in (*tiers.whole, *tiers.condensed, *tiers.named)]

    assert len(set(placed)) == len(placed)
    assert len(placed) + tiers.others == len(ENTITIES)


def test_tiers_are_relevance_and_tokens_only_break_ties() -> None:
    """Whoever is named more often comes first however long the file; of two that are equal, the shorter."""
    cast = (
        entity("Ann", "a " * 900),
        entity("Bob", "b"),
        entity("Cleo", "c " * 50),
        entity("Dan", "d " * 20),
        Entity(name="The Quay", kind="location", file="quay.md", tokens=1),
    )
    tiers = tiers_of('"They say Ann, Cleo and Dan saw Ann at the quay, the quay, the quay," said Bob.', cast)

    assert [one.name for one in tiers.whole] == ["Bob"]
    assert [one.name for one in tiers.condensed] == ["Ann", "Dan", "Cleo", "The Quay"]


def test_a_crowd_is_condensed_beyond_the_focus() -> None:
    """Those in the scene come before those who are only mentioned, and the third tier names at most three."""
    crowd = [Entity(name=name, file=f"{name}.md", tokens=5) for name in ("Ann", "Bob", "Cleo", "Dan", "Eve")]
    known = [Entity(name=name, file=f"{name}.md", tokens=5) for name in ("Fay", "Gil", "Hal", "Ida")]
    ann = crowd[0].model_copy(update={"text": "Knows Fay and Gil. Fears Hal, loves Ida and Ida."})
    tiers = tiers_of("Ann, Bob, Cleo and Dan sat there, thinking of Eve and of Eve.", [ann, *crowd[1:], *known])

    assert [one.name for one in tiers.whole] == ["Ann", "Bob", "Cleo"]
    assert [one.name for one in tiers.condensed] == ["Dan", "Eve"]
    assert tiers.last_names == ("Ida", "Fay", "Gil", "[1 other]")


@pytest.mark.parametrize("text", ["It rained.", "..."])
async def test_a_response_that_names_nobody_has_no_files(text: str) -> None:
    """All are others then."""
    section, _ = await analysed(agent, told=story(text))

    assert section == {"by": "rules", "tier1": [], "tier2": [], "tier3": ["[7 others]"], "locs": []}


async def test_somebody_without_a_file_is_in_no_tier() -> None:
    """There is nothing to give to the next response."""
    base = BASE.model_copy(update={"entities": (Entity(name="Ann"), Entity(name="Bob", text="Bob."))})

    section, _ = await analysed(agent, told=story("Ann and Bob sat.", base))

    assert names(section, "tier1") == ["Bob"]
    assert section["tier2"] == []
    assert section["tier1"][0] == {"name": "Bob", "tokens": counter()("Bob.")}
