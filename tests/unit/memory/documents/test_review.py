"""What a person should look at in their documents, and how much of it there is."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path as File

import pytest
from pydantic import JsonValue

from tasklore.memory.documents.items import Body, lasting_name, make_item
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.paths import parse
from tasklore.memory.documents.plans import Origin, PlanKind
from tasklore.memory.documents.review import (
    PROTECTED,
    Spot,
    conflicts,
    find_changed_protected,
    plain_form,
    review,
)
from tasklore.memory.documents.storage.history import PlanRecord

KINDS = Kinds.load()
FOOD = "resource_user_food_prefs"
TODAY = date(2026, 6, 1)


def _item(display: str, **fields: JsonValue) -> Body:
    return make_item(display, added=date(2026, 5, 1), source="told") | fields


def _food(**places: list[JsonValue]) -> dict[str, Body]:
    return {FOOD: {"_metadata": {}, "food": {**places}}}


def _texts(spots: tuple[Spot, ...] | None) -> list[str]:
    return [spot.text for spot in spots or ()]


def test_the_same_text_in_opposite_places_is_a_conflict() -> None:
    """In whatever case and punctuation, and seen once."""
    documents = _food(
        likes=[_item("Coriander!"), _item("tea")],
        dislikes=[_item("coriander")],
        avoids=["tea"],
    )

    found = conflicts(documents, KINDS, today=TODAY)

    assert [(conflict.why, _texts(conflict.spots)) for conflict in found] == [
        ("opposite", ["Coriander!", "coriander"]),
        ("opposite", ["tea", "tea"]),
    ]
    assert review(documents, KINDS, today=TODAY).rates["conflict"] == 1


def test_what_has_expired_contradicts_nothing() -> None:
    """A diet that is over."""
    over = _item("coriander", expiry="2026-05-31")
    assert (
        conflicts(_food(likes=[over], dislikes=["coriander"]), KINDS, today=TODAY) == ()
    )


def test_what_was_marked_when_it_was_stored_stays_a_conflict() -> None:
    """Both items carry the id of one plan; a mark is not text."""
    documents = _food(
        likes=[
            _item("tea", conflict="p1"),
            _item("rice", conflict="p2"),
            _item("no tea", conflict="p1"),
        ]
    )

    found = conflicts(documents, KINDS, today=TODAY)

    assert [(conflict.why, _texts(conflict.spots)) for conflict in found] == [
        ("marked", ["tea", "no tea"]),
        ("marked", ["rice"]),
    ]


def test_a_place_for_one_item_with_two_is_a_conflict(tmp_path: File) -> None:
    """One of them must be older."""
    (tmp_path / "home.toml").write_text(
        'resource_id = "home"\ntitle = "Home"\ntags = ["home"]\n'
        '[[places]]\npath = "home.city"\nrelation = "about"\nmeaning = "where the user lives"\nsingle = true\n'
    )
    kinds = Kinds.load(tmp_path)

    found = conflicts(
        {"home": {"home": {"city": [_item("Rome"), _item("Oslo")]}}}, kinds, today=TODAY
    )

    assert [(conflict.why, _texts(conflict.spots)) for conflict in found] == [
        ("single", ["Rome", "Oslo"])
    ]
    assert (
        conflicts({"home": {"home": {"city": [_item("Rome")]}}}, kinds, today=TODAY)
        == ()
    )


def test_the_same_text_twice_in_a_place_is_a_duplicate() -> None:
    documents = _food(
        likes=[
            _item("Green tea"),
            _item("green-tea"),
            _item("GREEN TEA."),
            _item("tea"),
        ]
    )
    documents[FOOD]["counts"] = {"cats": 2, "dogs": 2}

    found = review(documents, KINDS, today=TODAY)

    assert [_texts(group) for group in found.duplicates] == [
        ["Green tea", "green-tea", "GREEN TEA."]
    ]
    assert found.rates["duplicate"] == pytest.approx(2 / 6)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2 eggs", "3 eggs"),
        ("-5 degrees", "5 degrees"),
        ("5 %", "5"),
        ("eats meat", "does not eat meat"),
        ("C++", "C"),
        ("7:30", "7 30"),
    ],
)
def test_numbers_units_negations_and_names_tell_texts_apart(
    one: str, other: str
) -> None:
    """Nothing of them is punctuation."""
    assert plain_form(one) != plain_form(other)


def test_what_has_expired_or_faded_is_stale() -> None:
    """Said long ago, or for a while that is over."""
    documents = _food(
        likes=[
            _item("over", expiry="2026-05-31"),
            _item("today still", expiry="2026-06-01"),
            _item("old mood", durability="momentary"),
            _item("doubtful", confidence=0.2),
            _item("fresh"),
        ]
    )
    assert _texts(review(documents, KINDS, today=TODAY).stale) == [
        "over",
        "old mood",
        "doubtful",
    ]


def test_what_was_never_shown_is_told_when_somebody_counts() -> None:
    """By the names that stay when others are deleted."""
    tea = _item("tea")
    documents = _food(likes=[_item("rice"), tea])

    found = review(
        documents,
        KINDS,
        today=TODAY,
        reads={(FOOD, lasting_name(parse("food.likes[7]"), tea))},
    )

    assert _texts(found.never_read) == ["rice"]
    assert found.rates["never_read"] == 0.5


def test_what_stands_in_no_place_is_an_orphan() -> None:
    """No rule finds it there; a document of no kind has no places at all."""
    documents: dict[str, Body] = {
        **_food(likes=["tea"], snacks=["nuts"]),
        "resource_unknown": {"a": ["b"]},
    }

    assert _texts(review(documents, KINDS, today=TODAY).orphans) == ["nuts", "b"]


def test_a_day_that_is_none_is_pointed_out() -> None:
    documents = _food(
        likes=[
            _item("a", expiry="next Friday"),
            _item("b", added="long ago"),
            _item("c", expiry=""),
            _item("d"),
            "e",
        ]
    )
    assert _texts(review(documents, KINDS, today=TODAY).unreadable) == ["a", "b"]


def test_an_event_on_two_days_and_what_was_so_before_are_no_duplicates() -> None:
    """Two of one day are."""
    plans: dict[str, Body] = {
        "resource_user_plans": {
            "_metadata": {},
            "plans": {
                "upcoming": [
                    _item("Dentist", expiry="2026-06-10"),
                    _item("Dentist", expiry="2026-06-20"),
                    _item("dentist", expiry="2026-06-20"),
                ]
            },
        }
    }
    (group,) = review(plans, KINDS, today=TODAY).duplicates
    assert [str(spot.path) for spot in group] == [
        "plans.upcoming[1]",
        "plans.upcoming[2]",
    ]
    past = _food(likes=[_item("Tea"), _item("Tea", until="2026-01-01")])
    assert review(past, KINDS, today=TODAY).duplicates == ()


@pytest.mark.parametrize(
    ("days", "kind", "undone_by", "reasoning", "is_shown"),
    [
        (0, "edit", None, f"{PROTECTED}said so", True),
        (30, "edit", None, f"{PROTECTED}said so", True),
        (31, "edit", None, f"{PROTECTED}said so", False),
        (1, "edit", None, "said so", False),
        (1, "edit", "p2", f"{PROTECTED}said so", False),
        (1, "undo", None, f"{PROTECTED}said so", False),
    ],
)
def test_what_took_something_protected_away_is_shown_for_a_month(
    days: int, kind: PlanKind, undone_by: str | None, reasoning: str, is_shown: bool
) -> None:
    """Unless that is taken back."""
    now = datetime(2026, 6, 1, tzinfo=UTC)
    origin = Origin(by="rules", at=now - timedelta(days=days), reasoning=reasoning)
    record = PlanRecord(
        plan_id="p1",
        number=1,
        kind=kind,
        origin=origin,
        edits=(),
        changes={},
        revisions={},
        undone_by=undone_by,
    )
    assert find_changed_protected([record], now) == ((record,) if is_shown else ())
