"""What is worth knowing of whoever is only mentioned: at most five facts of each file, verbatim but for a last stop."""

from typing import Any

import pytest

from contracts.analysis_immediate import FactExtraction
from contracts.errors import LlmTimeout
from contracts.stories import Entity
from memory.rendering.tokens import counter
from tests.unit.story.stage import BASE, CORWIN, ENTITIES, INES, LANTERN, TOBIAS, analysed, entity, story
from workers.agents.story.fact_extract import MOST_FACTS, FactChoice, agent
from workers.agents.story.reading.file_lines import lines_of


def second_tier(*names: str) -> dict[str, Any]:
    """Return what the agent of entity_analysis left."""
    return {"entity_analysis": {"by": "rules", "tier1": [], "tier2": [{"name": name} for name in names]}}


def choice(*numbers: int) -> FactChoice:
    """Return what a model picks."""
    return FactChoice(reasoning="so", facts=numbers)


async def test_the_files_of_the_second_tier_are_condensed() -> None:
    """Verbatim and in their own order; before is what the files take, after what the facts do."""
    section, _ = await analysed(agent, told=story(sections=second_tier(INES, CORWIN)))

    assert section["by"] == "rules"
    assert list(section["facts"]) == [INES, CORWIN]
    assert section["facts"][CORWIN] == [
        "Owner of the Salt Quay Tavern",
        "Testified against the old keeper",
        "Limps since the fire",
    ]
    assert len(section["facts"][INES]) == MOST_FACTS
    written = [line.text for line in lines_of(entity(INES).text)]
    assert section["facts"][INES] == [line for line in written if line in section["facts"][INES]]
    after = sum(counter()(fact) for facts in section["facts"].values() for fact in facts)
    assert section["reduction"]["before"] == entity(INES).tokens + entity(CORWIN).tokens
    assert section["reduction"]["after"] == after
    FactExtraction.model_validate(section)


@pytest.mark.parametrize(
    "left", [None, {"status": "late"}, {"status": "failed", "error": "x"}, "nonsense", {"tier2": 3}]
)
async def test_without_that_section_rules_find_who_is_mentioned(left: Any) -> None:
    """Late, failed, nonsense or not there yet: the facts are found nevertheless."""
    section, _ = await analysed(agent, told=story(sections={"entity_analysis": left}))

    assert list(section["facts"]) == [CORWIN, INES, LANTERN]


async def test_a_model_that_fails_leaves_it_to_the_rules() -> None:
    """The section is the same as without one."""
    assert (await analysed(agent, LlmTimeout("late")))[0] == (await analysed(agent))[0]


async def test_a_model_picks_lines_by_number() -> None:
    """Over all files; what it does not choose from a file, rules do, and numbers of no line are nobody's."""
    told = story(sections=second_tier(CORWIN, INES))

    section, kit = await analysed(agent, choice(10, 4, 99, 0, 4, -1), told=told)

    lines = kit.asked[0].user.splitlines()
    assert lines[lines.index(f"<{INES}>") + 1] == "4. Smuggles lamp oil past the customs boat"
    assert section["by"] == "scripted"
    assert section["facts"][INES] == ["Smuggles lamp oil past the customs boat", "Sleeps on board even in winter"]
    assert len(section["facts"][CORWIN]) == 3


async def test_no_more_than_five_facts_are_taken_from_a_model() -> None:
    """The first five that it names, in the order of the file."""
    section, _ = await analysed(agent, choice(7, 6, 5, 4, 3, 2, 1), told=story(sections=second_tier(INES)))

    written = [line.text for line in lines_of(entity(INES).text)]
    assert section["facts"] == {INES: written[2:7]}


async def test_rules_choose_what_the_response_is_about() -> None:
    """Lines that name somebody in the scene, share its words or stand under a heading that does; else the first."""
    filler = [f"- Owns a hat of size {number}" for number in range(8)]
    told = [
        "- Taught Mara to sail",
        "- Swore never to sell lamp oil for crowns",
        "## The debt",
        "- Keeps a copy in a tin",
    ]
    text = "\n".join(["# Ines Calder", *filler, *told])
    base = BASE.model_copy(update={"entities": (entity(INES, text), *ENTITIES[:2])})

    section, _ = await analysed(agent, told=story(base=base, sections=second_tier(INES)))

    assert section["facts"][INES] == [
        "Owns a hat of size 0",
        "Owns a hat of size 1",
        "Taught Mara to sail",
        "Swore never to sell lamp oil for crowns",
        "Keeps a copy in a tin",
    ]


async def test_the_first_line_and_short_ones_win_over_chance() -> None:
    """The first says who somebody is; a long one shares words with any text."""
    rambling = "Once counted paper sails, brass anchors, cheap whistles, wet gloves and a lamp of Norway"
    lines = [
        "Merchant of Hull",
        "Fears any bell",
        "Owns a ledger",
        rambling,
        "Sold a lamp",
        "Wrote a book",
        "Hates rain",
    ]
    base = BASE.model_copy(update={"entities": (entity(INES, "\n".join(f"- {line}" for line in lines)), *ENTITIES[:2])})

    section, _ = await analysed(agent, told=story(base=base, sections=second_tier(INES)))

    assert section["facts"][INES] == [lines[0], lines[1], lines[2], lines[4], lines[5]]


async def test_files_too_large_for_one_question_are_shown_in_part() -> None:
    """Each has its turn, the best lines of each are shown, and rules still see them all."""
    names = [f"Ann {letter}" for letter in "ABCDEF"]
    dull = [f"- Once saw ship number {number} pass the northern rock in autumn fog" for number in range(400)]
    files = [
        Entity(name=name, text="\n".join([*dull, "- Owes Tobias Reed forty crowns"]), tokens=9_000) for name in names
    ]
    base = BASE.model_copy(update={"entities": (*ENTITIES, *files)})

    section, kit = await analysed(agent, choice(), told=story(base=base, sections=second_tier(*names)))

    asked = kit.asked[0]
    assert counter()(asked.system + asked.user) < 1_450
    assert asked.user.count("Owes Tobias Reed forty crowns") == len(names)
    assert "did not take it away." in asked.user
    assert all("Owes Tobias Reed forty crowns" in section["facts"][name] for name in names)
    assert section["reduction"]["before"] == 54_000
    assert section["reduction"]["pct"] == 99


@pytest.mark.parametrize(
    ("written", "fact"),
    [
        ("- Ines Calder is on strike.", "Ines Calder is on strike"),
        ("Ines is on strike. She waits.", ["Ines is on strike", "She waits"]),
        ("- Never again!", "Never again!"),
        ("- Is she blind?", "Is she blind?"),
        ("- Counts the days...", "Counts the days..."),
        ("- Counts the days \u2026", "Counts the days \u2026"),
        ("- Sails at 3 p.m.", "Sails at 3 p.m."),
        ("- Sells oil, rope, etc.", "Sells oil, rope, etc."),
        ("- Fears one Tom B.", "Fears one Tom B."),
        ('- Says "no."', 'Says "no."'),
        ("- Owns a boat.\n- Owns a boat", "Owns a boat"),
    ],
)
async def test_a_fact_has_no_full_stop_at_its_end(written: str, fact: str | list[str]) -> None:
    """Facts are shown in a row; every other sign stays, and so does a name that the fact begins with."""
    base = BASE.model_copy(update={"entities": (entity(INES, f"# Ines Calder\n\n{written}"), *ENTITIES[:2])})
    section, _ = await analysed(agent, told=story(base=base, sections=second_tier(INES)))
    expected = [fact] if isinstance(fact, str) else fact
    assert section["facts"] == {INES: expected}
    assert section["reduction"]["after"] == sum(map(counter(), expected))


async def test_nobody_in_the_second_tier_asks_nobody() -> None:
    """There is nothing to condense, and nothing was saved."""
    section, kit = await analysed(agent, choice(1), told=story(sections=second_tier("Nobody Known")))

    assert section == {"by": "rules", "facts": {}, "reduction": {"before": 0, "after": 0, "pct": 0}}
    assert kit.asked == []


def test_a_file_is_read_line_by_line() -> None:
    """Bullets whole, prose by sentence, each once, without marks of Markdown and without what says what the file is."""
    text = """---
made: today
---
# **Ines** Calder

- Kind: character
- Also called: the captain

She is _tall_. She sails; see [the Heron](heron.md).

## Trade ##

1. Smuggles `lamp oil`
   past the **customs** boat
* Has snake_case habits
- Smuggles lamp oil past the customs boat

---

> Never sleeps ashore.
"""

    assert [(line.text, line.heading) for line in lines_of(text)] == [
        ("She is tall.", "Ines Calder"),
        ("She sails; see the Heron.", "Ines Calder"),
        ("Smuggles lamp oil past the customs boat", "Trade"),
        ("Has snake_case habits", "Trade"),
        ("Never sleeps ashore.", "Trade"),
    ]
    assert [line.place for line in lines_of(text)] == [0, 1, 2, 3, 4]


def test_an_empty_file_has_no_facts() -> None:
    """Nor has one that only says what it is."""
    assert lines_of("") == lines_of("# Tobias Reed\n\n- Kind: character\n") == ()
    assert lines_of(entity(TOBIAS).text)[0].text == "Apprentice at Lantern House for two years"
