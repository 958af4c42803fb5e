"""Reading prose and files without a model: sentences, speech, names and lines of hostile texts too."""

import random
from itertools import cycle, islice, pairwise

import pytest

from tasklore.contracts.analysis.stories import Entity
from tasklore.memory.rendering.tokens import counter
from tasklore.workers.agents.story.markdown import bare, lines_of
from tasklore.workers.agents.story.names import Handles
from tasklore.workers.agents.story.parts import stands_in
from tasklore.workers.agents.story.prose import (
    clip,
    paragraphs,
    quotations,
    sentences,
)
from tests.unit.workers.agents.story.right_answers import RIGHT
from tests.unit.workers.agents.story.sample_story import (
    BASE,
    CORWIN,
    ENTITIES,
    HANNE,
    INES,
    LANTERN,
    MARA,
    RESPONSE,
    TOBIAS,
    analysed,
    entity,
    story,
)
from tests.unit.workers.agents.story.test_sections import AGENTS, TIERS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He left. She stayed.", ["He left.", "She stayed."]),
        ("Dr. Voss met Mr. T. Reed at 3 p.m. on the quay. It rained.", 2),
        ('"Go!" she said. "Now."', ['"Go!" she said.', '"Now."']),
        (
            "“Is it true?” He nodded… Then he left.",
            ["“Is it true?”", "He nodded…", "Then he left."],
        ),
        (
            "# The quay\n\nA wall\nof stone. A boat.",
            ["# The quay", "A wall\nof stone.", "A boat."],
        ),
        ("", []),
    ],
)
def test_a_text_is_cut_where_its_sentences_end(
    text: str, expected: list[str] | int
) -> None:
    found = sentences(text)

    assert (
        [one.text for one in found] == expected
        if isinstance(expected, list)
        else len(found) == expected
    )
    assert all(text[one.start : one.end] == one.text for one in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('He said "yes" and "no, never".', ["yes", "no, never"]),
        ("“Yes,” he said. «Non.»", ["Yes,", "Non."]),
        ('"I went on\nand on," she said.', ["I went on\nand on,"]),
        ('"This goes on.\n\n"And ends," he said.', ["This goes on.", "And ends,"]),
        ("'It's Tom's boat,' said Ann, and it's hers.", ["It's Tom's boat,"]),
        ("It's Tom's boat, and the dogs' too.", []),
        ('The boys\' "yes" was quick.', ["yes"]),
    ],
)
def test_speech_stands_between_marks(text: str, expected: list[str]) -> None:
    """Of every kind, over a wrapped line too; single ones only where there are no others, and never an apostrophe."""
    assert quotations(text) == expected


def test_a_line_may_be_wrapped_or_a_paragraph_of_its_own() -> None:
    text = 'A wall\nof stone.\n"I came. \nI saw," he said.\nHe left.\n\n\nNight.'

    assert [text[start:end] for start, end in paragraphs(text)] == [
        "A wall\nof stone.",
        '"I came. \nI saw," he said.',
        "He left.",
        "Night.",
    ]


def test_any_text_is_clipped_to_its_budget() -> None:
    """Whatever its signs are, and wherever it is cut."""
    chance = random.Random(5)
    bits = [
        "He ran.",
        "\n\n",
        "\n",
        " ",
        '"Wait!"',
        "Dr. Voss met 12,500 men… ",
        "日本語。",
        "a" * 50,
        " 3:15 PM. ",
        "!!!???",
    ]
    bits += ["“Oui?” ", "👨‍👩‍👧‍👦", "```", "\t"]
    for _ in range(200):
        text = "".join(chance.choices(bits, k=chance.randrange(100)))
        tokens = chance.randrange(150)
        assert counter()(clip(text, tokens)) <= tokens


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
    assert (
        lines_of(entity(TOBIAS).text)[0] == "Apprentice at Lantern House for two years"
    )


def test_a_text_names_by_full_name_alias_and_part() -> None:
    """Each naming counts, in the order of first appearance."""
    count = Handles(ENTITIES).count(
        "The keeper rose. Mara Voss saw Reed at lantern  house. \u201cMara?\u201d asked the captain."
    )

    assert list(count.items()) == [(MARA, 3), (TOBIAS, 1), (LANTERN, 1), (INES, 1)]
    assert set(Handles(ENTITIES).count(RESPONSE.text)) == {
        MARA,
        TOBIAS,
        INES,
        CORWIN,
        LANTERN,
    }


@pytest.mark.parametrize(
    ("said", "owner"),
    [
        ("mara", MARA),
        ("the Keeper", MARA),
        ("Mara Voss.", MARA),
        ("Mara Reed", None),
        ("Gandalf", None),
    ],
)
def test_a_name_is_that_of_one_alone(said: str, owner: str | None) -> None:
    assert Handles(ENTITIES).owner(said) == owner


def test_a_name_that_two_share_is_nobody_s() -> None:
    """Unless one of them is called so in full, or by an alias."""
    two = [Entity(name="Ann Lee"), Entity(name="Bo Lee")]
    assert Handles(two).owner("Lee") is None
    assert Handles([*two, Entity(name="Lee")]).owner("Lee") == "Lee"
    assert Handles([*two, Entity(name="Cy", aliases=("Lee",))]).owner("Lee") == "Cy"


@pytest.mark.parametrize(
    "text", ["a mark", "will you", "Marab", "unmara", "the reed bent"]
)
def test_a_word_is_no_name(text: str) -> None:
    entities = [*ENTITIES, Entity(name="Will Marsh"), Entity(name="Captain Flint")]
    assert Handles(entities).find(text) == []
    assert Handles(entities).owner("Captain") is None


def test_names_may_be_typed_otherwise() -> None:
    """Another apostrophe, another dash, a line end between two words."""
    entities = [Entity(name="Nan O'Dea"), Entity(name="Jean-Luc Roy")]
    assert Handles(entities).find("Nan\nO\u2019Dea met Jean\u2010Luc Roy.") == [
        "Nan O'Dea",
        "Jean-Luc Roy",
    ]
    assert Handles(ENTITIES).find("Hanne's boat") == [HANNE]
    assert Handles([]).find("Hanne") == []


#: Characters of each.
LENGTH = 100_000


def repeated(fragment: str) -> str:
    """Return *fragment* again and again."""
    return "".join(islice(cycle(fragment), LENGTH - LENGTH % len(fragment)))


@pytest.mark.parametrize(
    "fragment",
    [
        *(
            ".",
            "?!",
            "...",
            "Mr. ",
            "e.g. ",
            ". (",
            ".\u201d",
            ". *",
            "([",
            "a",
            "No. ",
            "A dog. ",
            "He left?! ",
            '"Go." ',
        ),
        *(
            "'",
            "'x ",
            "'x",
            "'x' ",
            "x,' ",
            "\u2018x,\u2019 ",
            '"',
            '"x" ',
            "\u201cx\u201d\n",
            "\u201cx",
            "\u00abx",
        ),
        *(
            "\n",
            " \n",
            "[",
            "![",
            "[a](",
            "](",
            "~",
            "_a",
            "> a",
            "- ",
            "Mara's ",
            "the the ",
            "M",
        ),
    ],
)
def test_every_reader_comes_to_the_end_of_a_text(fragment: str) -> None:
    text = repeated(fragment)

    found = sentences(text)
    assert all(text[one.start : one.end] == one.text for one in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert all(said in text for said in set(quotations(text)))
    assert all(text[start:end].strip() for start, end in paragraphs(text))
    assert len(bare(text)) <= len(text)
    assert sum(map(len, lines_of(text))) <= len(text)
    assert set(Handles(BASE.entities).count(text)) <= {MARA}


def test_what_a_model_says_is_held_to_a_text_of_any_length() -> None:
    """A quotation stands where its words do."""
    text = f"{repeated('the lamp burned ')} Once."

    assert stands_in("burned the lamp burned once", text)
    assert not stands_in("burned the lamp burned twice", text)
    assert not stands_in("he lamp", text)
    assert not stands_in("a" * 150, "a" * LENGTH)


@pytest.mark.parametrize("section", AGENTS)
async def test_the_longest_response_is_read(section: str) -> None:
    text = "\n\n".join([RESPONSE.text] * (LENGTH // len(RESPONSE.text)))

    for llm in ((), (RIGHT[section],)):
        found, _ = await analysed(
            AGENTS[section], *llm, told=story(text, sections=TIERS)
        )
        assert found["by"] == ("scripted" if llm else "rules")
