"""One form for the wordings of a thing, and never one for two things."""

import random
import re

import pytest

from workers.statements.normal import may_merge, normal, same

SAME = [
    ("Two eggs", "2 eggs"),
    ("an omelette", "omelettes"),
    ("The omelettes!", "omelette"),
    ("scrambled_eggs_with_lox", "Scrambled eggs with lox"),
    ("gluten-free bread", "gluten free breads"),
    ("I don't like eggs", "i do not like egg"),
    ("can\u2019t eat nuts", "can not eat nut"),
    ("50k steps", "50,000 steps"),
    ("a dozen rolls", "12 rolls"),
    ("5 km run", "5 kilometres run"),
    ("$5", "5 dollars"),
    ("gets up at 6:30 pm", "gets up at 18:30"),
    ("7am", "7:00 a.m."),
    ("1½ cups", "1.5 cups"),
    ("\uff30\uff21\uff33\uff34\uff21", "pasta"),
    ("lives in japan", "lives in Japan"),
    ("potatoes", "potato"),
    ("favorite color", "favourite colour"),
    ("Pasta (especially carbonara)", "pasta, especially carbonara"),
]  # fmt: skip

DIFFERENT = [
    ("5 km", "5 miles"),
    ("5 km", "50 km"),
    ("15", "51"),
    ("5-10 cups", "5 10 cups"),
    ("1/2 cup", "1 2 cup"),
    ("10² m", "102 m"),
    ("$5", "5 AUD"),
    ("-5 degrees", "5 degrees"),
    ("6:30", "6:30 pm"),
    ("6:30 am", "6:30 pm"),
    ("at 6", "at 6:30"),
    ("v1.2", "v12"),
    ("2025-12-03", "2025-12-30"),
    ("likes eggs", "does not like eggs"),
    ("with milk", "without milk"),
    ("sugar", "no sugar"),
    ("gluten free", "gluten"),
    ("never eats meat", "eats meat"),
    ("vitamin A", "vitamin"),
    ("vitamin a", "vitamin"),
    ("hepatitis B", "hepatitis C"),
    ("likes Turkey", "likes turkey"),
    ("lives in May", "lives in may"),
    ("Dr Williams", "Dr William"),
    ("works for Peters", "works for Peter"),
    ("C++", "C"),
    ("C#", "C"),
    ("<5 a day", ">5 a day"),
    ("glasses", "glass"),
    ("the news", "new"),
    ("James", "Jame"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_another_wording_is_the_same(first: str, second: str) -> None:
    """Case, articles, plurals, punctuation and the spelling of numbers do not count, in either direction."""
    assert same(first, second)
    assert same(second, first)
    assert normal(first).key == normal(second).key
    assert may_merge(first, second)


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_another_thing_is_never_the_same(first: str, second: str) -> None:
    """A number, unit, negation or name that differs gives another form."""
    assert not same(first, second)
    assert not same(second, first)
    assert str(normal(first)) != str(normal(second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("runs in the morning", "goes jogging in the evening"),
        ("has lunch on Monday", "has lunch on Tuesday"),
        ("no calls before nine", "no calls after nine"),
        ("her mother is called Eva", "her sister is called Eva"),
        ("coffee with milk", "coffee without milk"),
        ("10 mg a day", "10 g a day"),
        ("works for Siemens", "works for Bosch"),
        ("hot chocolate", "cold chocolate"),
        ("is allergic to nuts", "is not allergic to nuts"),
        ("once a week", "twice a week"),
    ],
)
def test_what_contradicts_may_not_be_merged(first: str, second: str) -> None:
    """However close two sentences seem to a model, one of these differences keeps them apart."""
    assert not may_merge(first, second)
    assert not may_merge(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("likes omelettes", "enjoys omelettes"),
        ("coffee with two sugars", "coffee, 2 sugars"),
        ("lives in Vienna", "is based in Vienna"),
        ("gets up at 6:30 am", "wakes up at 06:30"),
    ],
)
def test_what_may_mean_the_same_may_be_merged(first: str, second: str) -> None:
    """Nothing that must agree differs; whether they are the same is for somebody else to say."""
    assert may_merge(first, second)


_SENTENCES = [
    "User walks 5 km every morning",
    "User takes 2 tablets of 10 mg at 8:15",
    "User does not eat more than 3 eggs a week",
    "User never drinks coffee after 14:30",
    "User weighs 72.5 kg",
    "User has 2 children and no pets",
    "User pays $45 for 12 lessons",
    "User's birthday is 3 May 1984",
    "User can not run without shoes",
    "User likes tea with 1 spoon of sugar",
]


def _with_other_number(sentence: str, dice: random.Random) -> str:
    """Change one number of *sentence*: another digit, one more, or two swapped."""
    spans = [match.span() for match in re.finditer(r"\d+", sentence)]
    start, end = dice.choice(spans)
    number = sentence[start:end]
    changed = dice.choice([str(int(number) + dice.randint(1, 9)), f"{number}{dice.randint(1, 9)}", f"1{number}"])
    return sentence[:start] + changed + sentence[end:]


def _with_other_negation(sentence: str, dice: random.Random) -> str:
    """Turn *sentence* round: take its negation out, or put one in."""
    for denial, instead in (
        ("does not eat", "eats"),
        ("never drinks", "drinks"),
        ("without", "with"),
        ("no pets", "pets"),
    ):
        if denial in sentence:
            return sentence.replace(denial, instead)
    words = sentence.split()
    place = dice.randint(1, len(words) - 1)
    return " ".join([*words[:place], dice.choice(["not", "never", "no", "without"]), *words[place:]])


def test_of_a_thousand_mutations_none_is_the_same() -> None:
    """Sentences that differ in one number or one negation are two sentences, and nothing may merge them."""
    dice = random.Random(20)
    taken_for_same, mergeable = [], []
    for _ in range(1_000):
        sentence = dice.choice(_SENTENCES)
        has_number = re.search(r"\d", sentence) is not None
        change = dice.choice([_with_other_number, _with_other_negation]) if has_number else _with_other_negation
        mutated = change(sentence, dice)
        assert mutated != sentence
        if same(sentence, mutated) or normal(sentence).key == normal(mutated).key:
            taken_for_same.append((sentence, mutated))
        if may_merge(sentence, mutated):
            mergeable.append((sentence, mutated))

    assert taken_for_same == []
    assert mergeable == []


def test_a_form_can_be_written_and_is_stable() -> None:
    """Its text is its words, names with a capital; the form of that text is the same again."""
    form = normal("The 2 Red Omelettes of Mr. Schmitt")

    assert str(form) == "2 red omelette of Mr Schmitt"
    assert same(str(form), "2 red omelettes of Mr Schmitt")
    assert form.numbers == {"2": 1}


def test_nothing_has_a_form_too() -> None:
    """An empty text, or one of signs alone, has no words."""
    assert str(normal("")) == ""
    assert str(normal(" ... ")) == ""
    assert same("", "!")
