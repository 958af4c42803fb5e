"""Paths into documents: reading, refusals and their words, and finding."""

from contextlib import suppress
from typing import Any

import pytest

from tasklore.contracts.edits import MAX_PATH
from tasklore.contracts.errors import InvalidPath, UnknownPath
from tasklore.memory.documents.paths import APPEND, Path, exists, lookup, parse, resolve

FOOD: Any = {
    "_metadata": {"tags": ["food"]},
    "food": {
        "likes": [{"item": "pasta"}, {"item": "omelettes"}, {"item": "scrambled_eggs"}],
        "odd key": {"x.y": 1, "": 2},
    },
}


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("food.likes[2]", ("food", "likes", 2)),
        ("food.likes[-1].item", ("food", "likes", -1, "item")),
        ("food.likes[-]", ("food", "likes", APPEND)),
        ('food["odd key"]', ("food", "odd key")),
        ('food["a\\"b"]["c\'d"]', ("food", 'a"b', "c'd")),
        ('["\\u263a\\ud834\\udd1e\\n"]', ("\u263a\U0001d11e\n",)),
        ("dairy-free.2024.größe.☺", ("dairy-free", "2024", "größe", "☺")),
        ("[9007199254740991]", (2**53 - 1,)),
        ("$", ()),
        ("$ \n.food\t[ 'likes' ] [ -1 ]", ("food", "likes", -1)),
        ("$['\\'\"\\\\\\/\\b']", ("'\"\\/\b",)),
    ],
)
def test_a_path_is_read_in_both_dialects(text: str, steps: tuple[object, ...]) -> None:
    """And its canonical spelling is read back as the same path."""
    path = parse(text)

    assert path.steps == steps
    assert parse(str(path)) == path


@pytest.mark.parametrize(
    ("steps", "spelled"),
    [
        ((), "$"),
        (("food", "likes", 2), "food.likes[2]"),
        (("food", "odd key", -1), 'food["odd key"][-1]'),
        ((0, "a", APPEND), "[0].a[-]"),
        (('say "no"',), "['say \"no\"']"),
        (("line\u2028end\x00",), '["line\\u2028end\\u0000"]'),
    ],
)
def test_the_canonical_spelling_stays_on_one_printable_line(
    steps: tuple[Any, ...], spelled: str
) -> None:
    """So that a name from outside cannot look like another line of a prompt or a log."""
    assert str(Path(steps)) == spelled
    assert spelled.isprintable()
    assert parse(spelled).steps == steps


@pytest.mark.parametrize(
    ("text", "at", "found"),
    [
        ("", 1, "the end"),
        ("food ", 5, "' '"),
        ("food.", 6, "the end"),
        ("food.likes[]", 12, "']'"),
        ("food.likes[02]", 12, "'0'"),
        ("food.likes[9007199254740992]", 12, "'9'"),
        ("food.likes[+1]", 12, "'+'"),
        ("food.likes[\u0661]", 12, "'\u0661'"),
        ("food.likes[-].item", 14, "'.'"),
        ("food.$x", 6, "'$'"),
        ("food['odd key]", 15, "the end"),
        ("food['odd\nkey']", 10, "'\\n'"),
        ("food['\\u12']", 8, "'u'"),
        ("food['\\ud834']", 8, "'u'"),
        ("food['\\ud834\\u0041']", 8, "'u'"),
        ("fo\ud834od", 3, "'\\ud834'"),
        ("/food/likes/2", 1, "'/'"),
        ("$food", 2, "'f'"),
        ("$.food ", 7, "' '"),
        ("$.dairy-free", 8, "'-'"),
        ("$[-]", 3, "'-'"),
        ("$[\u00a01]", 3, "'\\xa0'"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(
    text: str, at: int, found: str
) -> None:
    """Every message has the character (from 1), what stands there and what would fit."""
    with pytest.raises(InvalidPath) as refused:
        parse(text)

    assert f"character {at}: found {found}, what fits is " in str(refused.value)


@pytest.mark.parametrize(
    ("text", "at", "word"),
    [
        ("food.*", 6, "wildcard"),
        ("food.likes[*]", 12, "wildcard"),
        ("food..likes", 6, "descendants"),
        ("food.likes[1:2]", 13, "slice"),
        ("food.likes[0,1]", 13, "union"),
        ("food.likes[?@.item]", 12, "filter"),
        ("$[ ?@.a ]", 4, "filter"),
    ],
)
def test_what_selects_several_places_is_refused_as_such(
    text: str, at: int, word: str
) -> None:
    """It may be a fine query; an edit names one place, and the message says so."""
    with pytest.raises(
        InvalidPath,
        match=rf"character {at}: .*{word}.* selects any number of places.*one edit for each",
    ):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * MAX_PATH,
        ".a" * (MAX_PATH // 2),
        "$" + "[0]" * 333,
        "['" + "\\u0041" * 165,
        "$" + " " * (MAX_PATH - 1),
    ],
)
def test_a_path_as_long_as_allowed_costs_little_and_one_longer_is_refused(
    text: str,
) -> None:
    """Depth and length are bounded by the characters; nothing recurses."""
    assert len(text) <= MAX_PATH
    with suppress(InvalidPath):
        assert parse(str(parse(text))) == parse(text)
    with pytest.raises(
        InvalidPath, match=r"a path of 1001 characters is longer than the 1000"
    ):
        parse(text.ljust(MAX_PATH + 1, "x"))


@pytest.mark.parametrize(
    ("text", "why", "near"),
    [
        ("food.like", "'food' has names, none is 'like'", "food.likes"),
        ("food.likes[3]", "'food.likes' is a list of 3", "food.likes[2]"),
        (
            "food.likes.2",
            "'food.likes' is a list of 3, whose items have an [index]",
            "food.likes[2]",
        ),
        ("food[0]", "'food' has names and no index", "food"),
        ("food.likes[-]", "[-] is where to insert", "food.likes"),
        ("foods.likes[2]", "'$' has names, none is 'foods'", "food.likes[2]"),
        ("xyz", "'$' has names", "$"),
    ],
)
def test_what_is_not_there_is_refused_with_the_nearest_path(
    text: str, why: str, near: str
) -> None:
    """A person or a model can mend the path from the message alone."""
    with pytest.raises(UnknownPath) as refused:
        lookup(FOOD, parse(text))

    assert why in str(refused.value)
    assert str(refused.value).endswith(f"the nearest is {near!r}")
    assert not exists(FOOD, parse(text))


def test_a_resolved_path_counts_every_index_from_the_front() -> None:
    assert str(resolve([[1], [2, 3]], parse("[-1][-2]"))) == "[1][0]"
    assert str(resolve(FOOD, parse("food.likes[1]"))) == "food.likes[1]"
    with pytest.raises(UnknownPath):
        resolve([[1]], parse("[-2]"))
