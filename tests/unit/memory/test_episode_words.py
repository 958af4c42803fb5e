"""One tokeniser for all scripts, and a ranking by the words in common."""

import pytest

from tasklore.memory.episodes.ranking import rank
from tasklore.memory.episodes.words import words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Moving boxes, moved; a box!", ["mov", "box", "mov", "a", "box"]),
        ("Mia's cities and 1,200 EUR", ["mia", "city", "and", "1200", "eur"]),
        ("Café CAFE\u0301", ["caf", "caf"]),
        ("stopped running", ["stop", "run"]),
        ("東京に行く", ["東京", "京に", "に行", "行く"]),
        ("", []),
        ("\U0001f600 --- !!", []),
    ],
)
def test_a_text_is_its_words(text: str, words: list[str]) -> None:
    """Case, accents, plurals and tenses are evened out; scripts without blanks are read in pairs."""
    assert words_of(text) == words


def test_the_text_with_the_rarer_word_ranks_first() -> None:
    """A word that stands everywhere is worth little, and no word in common nothing."""
    texts = [
        "I like tea",
        "I like the lighthouse",
        "nothing here",
        "I like tea and tea",
    ]

    scores = rank("do I like the lighthouse?", texts)

    assert scores.index(max(scores)) == 1
    assert scores[2] == 0.0
    assert rank("tea", texts)[3] > rank("tea", texts)[0] > 0
    assert rank("", texts) == [0.0] * 4
    assert rank("tea", []) == []
