"""Items: how a statement is kept, read from any similar form, and how its confidence fades."""

from datetime import date, timedelta

import pytest
from pydantic import JsonValue

from tasklore.contracts.errors import InvalidInput
from tasklore.memory.documents.decay import (
    HALF_LIVES,
    STALE_BELOW,
    confidence_now,
    is_stale,
)
from tasklore.memory.documents.items import (
    FIELDS,
    MAX_SLUG,
    Body,
    Durability,
    Item,
    is_expired,
    is_item,
    lasting_name,
    leaves,
    make_item,
    slug,
)
from tasklore.memory.documents.paths import lookup, parse

DAY = date(2025, 12, 28)


PASTA: Body = {
    "item": "pasta_carbonara",
    "display": "Pasta (especially carbonara)",
    "added": "2025-12-28",
}


def test_a_new_item_has_every_field_in_order() -> None:
    item = make_item("Pasta  (especially\ncarbonara)", added=DAY, source="stated:t1")

    assert tuple(item) == FIELDS
    assert item == {
        "item": "pasta_especially_carbonara",
        "display": "Pasta (especially carbonara)",
        "added": "2025-12-28",
        "expiry": None,
        "confidence": 1.0,
        "durability": "long_term",
        "source": "stated:t1",
    }


@pytest.mark.parametrize(
    ("display", "confidence"),
    [("", 1.0), (" \n", 1.0), ("tea", 1.01), ("tea", float("nan"))],
)
def test_an_item_without_text_or_with_an_odd_confidence_is_refused(
    display: str, confidence: float
) -> None:
    with pytest.raises(InvalidInput, match=r"no text|0 to 1"):
        make_item(display, added=DAY, confidence=confidence, source="told")


def test_what_an_item_lacks_is_taken_as_imported_and_certain() -> None:
    """An older file says much less."""
    assert Item.read({"display": "Tea"}) == Item(
        item="tea",
        display="Tea",
        added=None,
        expiry=None,
        confidence=1.0,
        durability="long_term",
        source="imported",
    )
    assert Item.read({"item": "green_tea", "note": 1}) == Item(
        item="green_tea", display="green tea", others={"note": 1}
    )


@pytest.mark.parametrize(
    "value",
    [
        {
            "display": "x",
            "added": "yesterday",
            "expiry": 5,
            "confidence": "high",
            "durability": "eternal",
            "source": 7,
        },
        {
            "display": "x",
            "added": None,
            "expiry": "",
            "confidence": True,
            "durability": None,
            "source": " ",
        },
        {
            "display": "x",
            "added": ["2025-01-01"],
            "expiry": {},
            "confidence": float("nan"),
            "durability": [],
        },
    ],
)
def test_what_cannot_be_read_is_as_if_it_were_missing(value: Body) -> None:
    """Nothing in an imported file stops anybody."""
    assert Item.read(value) == Item(item="x", display="x")


@pytest.mark.parametrize(
    "value",
    [
        None,
        "tea",
        5,
        [],
        {},
        {"display": ""},
        {"item": 5},
        {"display": {}},
        {"name": "x"},
    ],
)
def test_what_has_no_text_of_its_own_is_no_item(value: JsonValue) -> None:
    """Plain values and sections are read otherwise."""
    assert not is_item(value)
    assert Item.read(value) is None


def test_an_item_holds_on_its_last_day_and_not_on_the_next() -> None:
    """None is no end, and a plain value has none."""
    item = make_item("guest", added=DAY, expiry=date(2025, 12, 31), source="told")

    assert not is_expired(item, date(2025, 12, 31))
    assert is_expired(item, date(2026, 1, 1))
    assert is_expired(Item(item="x", display="x", expiry=DAY), date(2026, 1, 1))
    assert not is_expired(PASTA, date(2999, 1, 1))
    assert not is_expired("tea", date(2999, 1, 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Scrambled eggs, with lox!", "scrambled_eggs_with_lox"),
        ("नमस्ते दुनिया", "नमस्ते_दुनिया"),
        ("C++", "c_plus_plus"),
        ("-5 °C", "minus_5_deg_c"),
        ("1.5 km", "1_5_km"),
        ("__init__", "init"),
    ],
)
def test_a_slug_is_the_words_of_any_script(text: str, expected: str) -> None:
    """Signs that tell two things apart are spelled out."""
    assert slug(text) == expected


def test_a_slug_is_never_empty_and_never_long() -> None:
    """Cut names end in a digest, so that they still differ."""
    assert slug("🍕").startswith("item_")
    assert slug("🍕") != slug("🍔")
    assert slug("") == slug("")
    long = [slug("word " * 40 + end) for end in ("a", "b")]
    assert max(map(len, long)) <= MAX_SLUG
    assert long[0] != long[1]


def test_every_leaf_is_seen_once_by_its_path() -> None:
    """Items, plain values and odd names; neither metadata nor empty places."""
    body: Body = {
        "_metadata": {"tags": ["food"]},
        "food": {
            "likes": [PASTA, "tea", 5, ["deep"]],
            "dislikes": [],
            "mood": {"now": None},
        },
        "odd key": True,
    }

    found = list(leaves(body))

    assert [(str(path), text) for path, text, _ in found] == [
        ("food.likes[0]", "Pasta (especially carbonara)"),
        ("food.likes[1]", "tea"),
        ("food.likes[2]", "5"),
        ("food.likes[3][0]", "deep"),
        ("food.mood.now", "null"),
        ('["odd key"]', "true"),
    ]
    assert all(lookup(body, path) is value for path, _, value in found)


def test_a_lasting_name_does_not_move_with_the_list() -> None:
    names = {lasting_name(parse(f"food.likes[{index}]"), PASTA) for index in range(3)}

    assert names == {"food.likes.pasta_carbonara"}
    assert lasting_name(parse("food.likes[1]"), "tea") == "food.likes[1]"
    assert lasting_name(parse("food.mood"), "fine") == "food.mood"


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, "current"),
        ({"until": "2026-11-20"}, "past"),
        ({"expiry": "2026-11-19"}, "expired"),
        ({"expiry": "2026-11-20"}, "current"),
        ({"paused_until": "2026-11-20"}, "paused"),
        ({"since": "2026-11-21"}, "planned"),
        ({"since": "2026-11-20"}, "current"),
        ({"until": "2026-11-01", "paused_until": "2026-12-01"}, "past"),
        ({"until": "soon", "since": 3}, "current"),
    ],
)
def test_an_item_says_how_it_stands_on_a_day(
    fields: dict[str, JsonValue], state: str
) -> None:
    """`until` is the day on which it ended, `expiry` and `paused_until` are last days; nonsense counts as missing."""
    item = Item.read({"item": "tea", "display": "tea", **fields})

    assert item is not None
    assert item.state(date(2026, 11, 20)) == state


def test_a_new_item_says_whom_it_is_about_only_where_that_is_somebody_else() -> None:
    plain = make_item("tea", added=date(2026, 11, 20), source="stated:t")
    mias = make_item(
        "nuts",
        added=date(2026, 11, 20),
        source="stated:t",
        subject="Mia",
        category="health.allergies",
    )

    assert tuple(plain) == FIELDS
    assert (mias["subject"], mias["category"]) == ("Mia", "health.allergies")


TODAY = date(2026, 1, 1)


@pytest.mark.parametrize(
    "durability",
    [name for name, half_life in HALF_LIVES.items() if half_life is not None],
)
def test_half_of_the_confidence_is_left_after_a_half_life(
    durability: Durability,
) -> None:
    """And a quarter after two."""
    half_life = HALF_LIVES[durability] or timedelta()
    ages = [
        confidence_now(
            Item(
                item="x",
                display="x",
                added=TODAY - half_life * n,
                expiry=None,
                confidence=0.8,
                durability=durability,
            ),
            TODAY,
        )
        for n in range(3)
    ]

    assert ages == pytest.approx([0.8, 0.4, 0.2])


def test_what_is_permanent_never_fades() -> None:
    """A birthday of a hundred years ago."""
    assert (
        confidence_now(
            Item(
                item="x",
                display="x",
                added=date(1926, 1, 1),
                expiry=None,
                confidence=0.9,
                durability="permanent",
            ),
            TODAY,
        )
        == 0.9
    )


def test_an_unknown_or_future_day_takes_nothing_away() -> None:
    assert (
        confidence_now(
            Item(
                item="x",
                display="x",
                added=None,
                expiry=None,
                confidence=0.7,
                durability="momentary",
            ),
            TODAY,
        )
        == 0.7
    )
    assert (
        confidence_now(
            Item(
                item="x",
                display="x",
                added=date(2027, 1, 1),
                expiry=None,
                confidence=0.7,
                durability="momentary",
            ),
            TODAY,
        )
        == 0.7
    )
    assert confidence_now("tea", TODAY) == 1.0


def test_an_item_is_stale_after_two_half_lives() -> None:
    item = make_item("diet", added=TODAY, durability="short_term", source="told")

    assert not is_stale(item, TODAY + timedelta(days=60))
    assert is_stale(item, TODAY + timedelta(days=61))
    assert STALE_BELOW == 0.25
