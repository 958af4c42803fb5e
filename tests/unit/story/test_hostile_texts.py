"""100 KB that nobody would write: each is read to its end, which no pattern that reads it anew ever reaches."""

from itertools import cycle, islice

import pytest

from tests.unit.story.stage import BASE, MARA, RESPONSE, TOBIAS, analysed, story
from workers.agents.story import (
    contradiction_agent,
    knowledge_agent,
    memory_creation_agent,
    response_agent,
    thread_agent,
)
from workers.agents.story.reading.casting import Cast, Handles, cast_of
from workers.agents.story.reading.clauses import clauses_in, clauses_of_file
from workers.agents.story.reading.deeds import deeds_in
from workers.agents.story.reading.file_lines import bare, lines_of
from workers.agents.story.reading.grounding import line_from
from workers.agents.story.reading.named_words import Names
from workers.agents.story.reading.prose import (
    READ_AT_ENDS,
    ends_of,
    narration,
    paragraphs,
    quotations,
    sentences,
    stands_in,
)
from workers.agents.story.reading.story_time import moments_in

#: Characters of each.
LENGTH = 100_000
NAMES = Names(Handles(BASE.entities), frozenset({MARA, TOBIAS}))


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
        ("x,' ", 0),
        ("'x,' ", 5),
        ("\u2018x,\u2019 ", 5),
        ('"', 0),
        ('"x" ', 4),
        ("\u201cx\u201d\n", 4),
        ("\u201cx", 4),
        ("\u00abx", 2),
    ],
)
def test_all_that_is_said_is_found(fragment: str, signs: int) -> None:
    """And nothing where a mark opens no speech, or none closes it."""
    text = repeated(fragment)

    assert len(quotations(text)) == (LENGTH // signs if signs else 0)
    assert len(narration(text)) == len(text)


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
    assert clauses_of_file(text, NAMES, MARA) == []


def test_a_link_is_its_text() -> None:
    """With brackets in its address, and in front of it."""
    assert bare("see [[the map](maps/rock_(north).md), ![a gull](x.png)") == "see [the map, a gull"


@pytest.mark.parametrize("fragment", ["Mara ", "Mara's ", "7 ", "7,", "noon ", "Monday ", "at 7:00 5 ", "Mara, and "])
def test_a_sentence_without_an_end_is_none_that_tells_something(fragment: str) -> None:
    """Its times are read, and nobody takes it for a statement."""
    text = repeated(fragment)

    assert len(moments_in(text)) <= LENGTH // 5
    assert clauses_in(text, NAMES) == []


@pytest.mark.parametrize(
    "fragment", ["\u201cNo.\u201d ", "\u201cNo", "'No,' ", "Mara ", "Mara, and ", '."\n', "She left. "]
)
def test_who_does_what_is_told_of_two_chapters_at_most(fragment: str) -> None:
    """Whatever is said in them, and however often somebody is named."""
    text = f"Mara Voss rose.\n\n{repeated(fragment)}"

    assert {deed.who for deed in deeds_in(text, BASE.entities, Cast((MARA,)))} == {MARA}
    assert MARA in cast_of(text, BASE.entities).in_scene


def test_of_a_long_text_beginning_and_end_are_read() -> None:
    """Whole lines of both, or words where there are no lines, and no more than two chapters."""
    line = "A gull cried over the rock all night. "
    long = f"First.\n{(line * 5 + chr(10)) * 1_000}Last."

    for text, whole in ((long, f"{line * 5}\n"), (long.replace("\n", " "), "rock"), ("a" * 100_000, "a")):
        shown = ends_of(text)
        head, _, tail = shown.partition("\n\n")
        assert 2 * READ_AT_ENDS - 2 * len(line * 5) < len(shown) <= 2 * READ_AT_ENDS + 2
        assert (text.startswith(head), text.endswith(tail)) == (True, True)
        assert whole.strip() in head

    assert ends_of("a" * 2 * READ_AT_ENDS) == "a" * 2 * READ_AT_ENDS


def test_what_a_model_says_is_held_to_a_text_of_any_length() -> None:
    """A quote stands where its words do, and a line rests on the words that are there."""
    text = f"{repeated('the lamp burned ')} Once."

    assert stands_in("burned the lamp burned once", text)
    assert not stands_in("burned the lamp burned twice", text)
    assert not stands_in("he lamp", text)
    assert not stands_in("a" * 150, "a" * LENGTH)
    assert line_from("The lamp went out", (text, "It rained."), (), 80) == "The lamp went out"
    assert line_from("Mara's lamp went out", (text,), (MARA,), 80) == "Mara's lamp went out"
    assert line_from("The lamp of Ines went out", (text,), (MARA,), 80) is None
    assert line_from("The lamp burned 40 hours", (text,), (), 80) is None


@pytest.mark.parametrize(
    "agent", [response_agent, memory_creation_agent, thread_agent, knowledge_agent, contradiction_agent]
)
async def test_the_longest_response_is_read_by_rules(agent: object) -> None:
    """Of as many characters as a request may have: nobody waits minutes for it."""
    text = "\n\n".join([RESPONSE.text] * (400_000 // len(RESPONSE.text)))

    found, _ = await analysed(agent, told=story(text))  # type: ignore[arg-type]  # any agent

    assert found["by"] == "rules"
