"""Whom a text names, by which of their names, and how often."""

import pytest

from contracts.stories import Entity
from tests.unit.story.stage import CORWIN, ENTITIES, INES, LANTERN, MARA, RESPONSE, TAVERN, TOBIAS
from workers.agents.story.names import Names, counts_of

PARKS = (Entity(name="David Park"), Entity(name="Will Park"), Entity(name="Dr. Sun Li", aliases=("the doctor",)))


def test_names_and_aliases_are_counted() -> None:
    """By full name, in the order of first appearance."""
    assert list(counts_of(RESPONSE.text, ENTITIES).items()) == [
        (LANTERN, 1),
        (MARA, 4),
        (INES, 1),
        (TOBIAS, 2),
        (CORWIN, 1),
    ]


@pytest.mark.parametrize("text", ["Mara closed the book.", "The keeper's book.", "MARA VOSS closed it.", "Voss?"])
def test_somebody_is_named_by_full_name_first_or_last_name_or_alias(text: str) -> None:
    """In the letters of a name."""
    assert counts_of(text, ENTITIES) == {MARA: 1}


@pytest.mark.parametrize("text", ["will he come to the park?", "The sun rose.", "Marathon", "Park left.", ""])
def test_a_word_that_is_no_name_names_nobody(text: str) -> None:
    """Nor does a name that two people share."""
    assert counts_of(text, (*ENTITIES, *PARKS)) == {}


def test_places_are_found_in_any_letters() -> None:
    """And without their article."""
    tavern = Entity(name="The Salt Quay", kind="location")

    assert counts_of("They met at the salt\nquay.", (tavern,)) == {"The Salt Quay": 1}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Mara", MARA),
        ("mara voss", MARA),
        ("Voss.", MARA),
        ("The captain", INES),
        ("salt quay tavern", TAVERN),
        ("Park", None),
        ("Will", "Will Park"),
        ("Li", "Dr. Sun Li"),
        ("Dr", None),
        ("nobody", None),
        ("", None),
    ],
)
def test_a_name_means_one_entity_or_none(said: str, expected: str | None) -> None:
    """Full name, alias, or a first or last name that is nobody else's."""
    assert Names((*ENTITIES, *PARKS)).owner(said) == expected


def test_an_alias_of_one_is_no_name_of_another() -> None:
    """What is a full name stays it, and an alias wins over a part of a name."""
    two = (Entity(name="Tom Reed", aliases=("Ann",)), Entity(name="Ann Fox"), Entity(name="Reed"))

    assert Names(two).owner("Ann") == "Tom Reed"
    assert Names(two).owner("Reed") == "Reed"
