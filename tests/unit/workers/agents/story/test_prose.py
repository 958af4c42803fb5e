"""The form of prose: sentences, speech, words, and a text that is clipped."""

import random

import pytest

from memory.rendering.tokens import counter
from tests.unit.workers.agents.story.stage import RESPONSE
from workers.agents.story.prose import (
    GAP,
    clip,
    paragraphs,
    quotations,
    sentences,
    words,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He left. She stayed.", ["He left.", "She stayed."]),
        ("Dr. Voss met Mr. T. Reed at 3 p.m. on the quay. It rained.", 2),
        ('"Go!" she said. "Now."', ['"Go!" she said.', '"Now."']),
        ("“Is it true?” He nodded… Then he left.", ["“Is it true?”", "He nodded…", "Then he left."]),
        ("# The quay\n\nA wall\nof stone. A boat.", ["# The quay", "A wall\nof stone.", "A boat."]),
        ("", []),
    ],
)
def test_a_text_is_cut_where_its_sentences_end(text: str, expected: list[str] | int) -> None:
    """Neither at a title or an initial, nor where what is said goes on in its tag; places are those of the text."""
    found = sentences(text)

    assert [one.text for one in found] == expected if isinstance(expected, list) else len(found) == expected
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
    """It goes on where no sentence ends, or while somebody speaks."""
    text = 'A wall\nof stone.\n"I came. \nI saw," he said.\nHe left.\n\n\nNight.'

    assert [text[start:end] for start, end in paragraphs(text)] == [
        "A wall\nof stone.",
        '"I came. \nI saw," he said.',
        "He left.",
        "Night.",
    ]


def test_words_are_counted_as_people_count_them() -> None:
    """A contraction and a compound are one word each; signs are none."""
    assert words("Don't — the well-known lamp, 2 crowns; it\u2019s *hers*.") == [
        "Don't",
        "the",
        "well-known",
        "lamp",
        "2",
        "crowns",
        "it\u2019s",
        "hers",
    ]


@pytest.mark.parametrize("tokens", [0, 1, 8, 30, 60, 150, 10_000])
def test_a_clipped_text_keeps_its_budget_its_beginning_and_its_end(tokens: int) -> None:
    """And says where something is left out."""
    shown = clip(RESPONSE.text, tokens)

    assert counter()(shown) <= tokens
    if tokens == 10_000:
        assert shown == RESPONSE.text
    elif tokens >= 60:
        assert shown.startswith("Monday, 9:15 PM.")
        assert shown.endswith("did not take it away.")
        assert GAP in shown


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
