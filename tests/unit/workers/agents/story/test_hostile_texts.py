"""100 KB that nobody would write: each is read to its end, which no pattern that reads it anew ever reaches."""

from itertools import cycle, islice

import pytest

from tests.unit.workers.agents.story.oracle import RIGHT
from tests.unit.workers.agents.story.stage import BASE, MARA, RESPONSE, analysed, story
from tests.unit.workers.agents.story.test_sections import AGENTS, TIERS
from workers.agents.story.markdown import bare, lines_of
from workers.agents.story.names import Handles
from workers.agents.story.parts import stands_in
from workers.agents.story.prose import paragraphs, quotations, sentences

#: Characters of each.
LENGTH = 100_000


def repeated(fragment: str) -> str:
    """Return *fragment* again and again."""
    return "".join(islice(cycle(fragment), LENGTH - LENGTH % len(fragment)))


@pytest.mark.parametrize(
    "fragment",
    [".", "?!", "...", "Mr. ", "A. ", "e.g. ", ". (", ".)", ".\u201d", ". *", "'", '" ', "\u00ab", "([", "a"],
)
def test_what_ends_no_sentence_is_one(fragment: str) -> None:
    """However often it seems to end."""
    text = repeated(fragment)

    assert [one.text for one in sentences(text)] == [text.rstrip()]


@pytest.mark.parametrize(
    ("fragment", "signs"),
    [("No. ", 1), ("A dog. ", 7), ("He left?! ", 10), ("Oh\u2026 ", 4), ('"Go." ', 6), ("So.\n", 4)],
)
def test_every_sentence_of_many_is_found(fragment: str, signs: int) -> None:
    """As many as there are; "No." alone is a number to come."""
    found = sentences(repeated(fragment))

    assert len(found) == (1 if fragment == "No. " else LENGTH // signs)


@pytest.mark.parametrize(
    ("fragment", "signs"),
    [
        ("'", 0),
        ("'x ", 0),
        ("'x", 0),
        ("'x' ", 0),
        ("'x,' ", 5),
        ("\u2018x,\u2019 ", 5),
        ('"', 0),
        ('"x" ', 4),
        ("\u201cx", 4),
        ("\u00abx", 2),
    ],
)
def test_all_that_is_said_is_found(fragment: str, signs: int) -> None:
    """And nothing where a mark opens no speech, or none closes it."""
    text = repeated(fragment)

    assert len(quotations(text)) == (LENGTH // signs if signs else 0)


@pytest.mark.parametrize("fragment", ["\n", " \n", "\t", " "])
def test_blanks_are_no_paragraph(fragment: str) -> None:
    """Of whatever kind."""
    assert paragraphs(repeated(fragment)) == []


@pytest.mark.parametrize("fragment", ["[", "![", "[a](", "[a", "](", "~", "_a", "> a", "- "])
def test_what_only_seems_marked_is_no_link(fragment: str) -> None:
    """A file may be as strange as a response."""
    text = repeated(fragment)

    assert len(bare(text)) <= len(text)
    assert len(lines_of(text)) <= 1


def test_a_link_is_its_text() -> None:
    """With brackets in its address, and in front of it."""
    assert bare("see [[the map](maps/rock_(north).md), ![a gull](x.png)") == "see [the map, a gull"


@pytest.mark.parametrize("fragment", ["Mara ", "Mara's ", "the keeper ", "the the ", "Salt Quay ", "M"])
def test_every_name_of_many_is_found(fragment: str) -> None:
    """And none in what only begins like one."""
    count = Handles(BASE.entities).count(repeated(fragment))

    assert count[MARA] == (LENGTH // len(fragment) if fragment.startswith(("Mara", "the keeper")) else 0)
    assert set(count) <= {MARA}


def test_what_a_model_says_is_held_to_a_text_of_any_length() -> None:
    """A quotation stands where its words do."""
    text = f"{repeated('the lamp burned ')} Once."

    assert stands_in("burned the lamp burned once", text)
    assert not stands_in("burned the lamp burned twice", text)
    assert not stands_in("he lamp", text)
    assert not stands_in("a" * 150, "a" * LENGTH)


@pytest.mark.parametrize("section", AGENTS)
async def test_the_longest_response_is_read(section: str) -> None:
    """Nobody waits minutes for it, with a model or without."""
    text = "\n\n".join([RESPONSE.text] * (LENGTH // len(RESPONSE.text)))

    for llm in ((), (RIGHT[section],)):
        found, _ = await analysed(AGENTS[section], *llm, told=story(text, sections=TIERS))
        assert found["by"] == ("scripted" if llm else "rules")
