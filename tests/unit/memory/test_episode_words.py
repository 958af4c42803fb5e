"""One tokeniser for all scripts, and a ranking by the words in common."""

import pytest

from tasklore.memory.episodes.ranking import rank
from tasklore.memory.episodes.words import (
    index_words,
    is_asking,
    telling_words,
    words_of,
)


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What is the name of my dog?", ["nam", "dog"]),
        ("What hat did I buy?", ["hat", "buy"]),
        ("Wann war ich im Zoo?", ["zoo"]),
        ("Где я живу?", ["живу"]),
        ("who was it", ["who", "was", "it"]),
        ("", []),
    ],
)
def test_function_words_of_its_language_tell_nothing(
    text: str, words: list[str]
) -> None:
    """A word of another language is none; and where there is nothing else they are looked for."""
    assert telling_words(text) == words


@pytest.mark.parametrize(
    ("text", "is_question"),
    [
        ("What pets do I have?", True),
        ("Where? When?", True),
        ("我有什么宠物\uff1f", True),
        ('"what is it?"', True),
        ("I have two cats.", False),
        ("I'm allergic to bees. Can I go?", False),
        ("Can I go? I'm allergic to bees", False),
        ("Here is my day: " + "up at six, " * 30 + "right?", False),
        ("", False),
    ],
)
def test_what_only_asks_is_known_by_its_signs(text: str, is_question: bool) -> None:
    assert is_asking(text) is is_question


def test_a_word_of_one_sign_is_found_in_a_text_without_blanks() -> None:
    assert set(words_of("虾")) <= set(index_words("我不能吃虾"))
    assert index_words("a shrimp") == words_of("a shrimp")
