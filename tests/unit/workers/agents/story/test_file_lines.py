"""What a file says of somebody, line by line, and how a fact of it is shown."""

import pytest

from tests.unit.workers.agents.story.stage import BASE, ENTITIES, INES, TOBIAS, analysed, entity, story
from workers.agents.story.fact_extract import agent
from workers.agents.story.markdown import lines_of


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

    assert lines_of(text) == (
        "She is tall.",
        "She sails; see the Heron.",
        "Smuggles lamp oil past the customs boat",
        "Has snake_case habits",
        "Never sleeps ashore.",
    )
    assert lines_of("") == lines_of("# Tobias Reed\n\n- Kind: character\n") == ()
    assert lines_of(entity(TOBIAS).text)[0] == "Apprentice at Lantern House for two years"


@pytest.mark.parametrize(
    ("written", "fact"),
    [
        ("- Counts the days.", "Counts the days"),
        ("- Counts the days...", "Counts the days..."),
        ("- Sails at 3 p.m.", "Sails at 3 p.m."),
        ("- Owns a boat.\n- Owns a boat", "Owns a boat"),
    ],
)
async def test_a_fact_has_no_full_stop_at_its_end(written: str, fact: str) -> None:
    """Facts are shown in a row; every other sign stays."""
    base = BASE.model_copy(update={"entities": (entity(INES, f"# Ines Calder\n\n{written}"), *ENTITIES[:2])})
    tiers = {"entity_analysis": {"by": "rules", "tier2": [{"name": INES}]}}

    found, _ = await analysed(agent, told=story(base=base, sections=tiers))

    assert found["facts"] == {INES: [fact]}
