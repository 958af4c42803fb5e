"""One tokeniser for all scripts, and a ranking by the words in common."""

import pytest

from tasklore.memory.episodes.ranking import rank
from tasklore.memory.episodes.words import (
    index_words,
    is_asking,
    names_in,
    telling_words,
    words_of,
)
from tests.episodes.inflected import found_by_language


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
        ("Где я живу?", ["живу", "~живу"]),
        ("¿Dónde vive mi hermana?", ["viv", "hermana", "~herm"]),
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
        ("I'm allergic to shrimp, can I eat this?", False),
        ("Je suis allergique aux noix, je peux en manger ?", False),
        ("我对虾过敏\uff0c可以吃这个吗\uff1f", False),
        ("My dog Rex ate grapes - is that bad?", False),
        ("Hey Ana, what pets do I have?", True),
        ("", False),
    ],
)
def test_what_only_asks_is_known_by_its_signs(text: str, is_question: bool) -> None:
    assert is_asking(text) is is_question


def test_a_word_of_one_sign_is_found_in_a_text_without_blanks() -> None:
    assert set(words_of("虾")) <= set(index_words("我不能吃虾"))
    assert index_words("the shrimp") == words_of("the shrimp")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Where does Petra live?", ["petra"]),
        (
            "What did Aunt Rosa's friend eat at Casa Verde?",
            ["aunt", "rosa", "casa", "verd"],
        ),
        ("What did I do on Friday in May?", []),
        ("Am I from the USA, as I said?", []),
        ("Où habite Amélie ?", ["ameli"]),
        # German writes other words so, Russian names in other forms; and a title tells nothing.
        ("Wie heißt mein Hund?", []),
        ("Что мне подарила Оля?", []),
        ("What Pets Do I Have Now?", []),
        ("WHERE IS MY DOG", []),
        ("Petra Novak Smith", []),
    ],
)
def test_names_are_known_where_a_language_writes_them_so(
    text: str, names: list[str]
) -> None:
    assert names_in(text) == names


def test_words_in_other_forms_are_found_in_six_languages() -> None:
    """By their beginnings; of 36 questions 9 are answered without."""
    found = found_by_language("seen")
    assert sum(count for count, _ in found.values()) >= 28
    assert min(count for count, _ in found.values()) >= 4


def test_an_english_text_has_no_beginnings_and_one_of_no_language_has() -> None:
    assert index_words("I sold my bicycle") == ["i", "sold", "my", "bicycl"]
    assert index_words("Fahrräder!") == ["fahrrader", "~fahr"]
