"""Whom a text names: who is in its scene, who is only spoken of, and who says what."""

import pytest

from contracts.stories import Entity
from tests.unit.story.stage import CORWIN, ENTITIES, HANNE, INES, LANTERN, MARA, RESPONSE, TAVERN, TOBIAS
from workers.agents.story.reading.casting import cast_of, named, speaker
from workers.agents.story.reading.prose import quotations

PARKS = (Entity(name="David Park"), Entity(name="Will Park"), Entity(name="Dr. Sun Li", aliases=("the doctor",)))


def test_who_acts_is_in_the_scene_and_who_is_spoken_of_is_mentioned() -> None:
    """Full names in the order of first appearance, places apart, and how often each is named."""
    cast = cast_of(RESPONSE.text, ENTITIES)

    assert cast.in_scene == (MARA, TOBIAS)
    assert cast.mentioned == (INES, CORWIN)
    assert cast.locations == (LANTERN,)
    assert cast.counts == {LANTERN: 1, MARA: 4, INES: 1, TOBIAS: 2, CORWIN: 1}


@pytest.mark.parametrize(
    "text",
    [
        "Mara closed the book.",
        '"Mara, wait!" He ran.',
        '"Do wait, Mara." He ran.',
        "Mara's hand was cold, and Mara knew it.",
        "The keeper closed the book.",
        "MARA VOSS closed the book.",
    ],
)
def test_whoever_is_told_of_or_spoken_to_is_there(text: str) -> None:
    """By full name, first name or alias."""
    assert cast_of(text, ENTITIES).in_scene == (MARA,)


@pytest.mark.parametrize(
    "text",
    [
        '"Mara would not like it," he said.',
        "He thought about Mara.",
        "Mara's book lay on the table.",
        "Nobody remembered Mara Voss.",
        "He sailed without the keeper.",
    ],
)
def test_whoever_is_only_spoken_or_thought_of_is_mentioned(text: str) -> None:
    """In speech, as an owner, or after words such as "about"."""
    cast = cast_of(text, ENTITIES)

    assert (cast.in_scene, cast.mentioned) == ((), (MARA,))


@pytest.mark.parametrize("text", ["will he come to the park?", "The sun rose.", "Marathon", "Park left.", ""])
def test_a_word_that_is_no_name_names_nobody(text: str) -> None:
    """Nor does a name that two people share."""
    assert cast_of(text, (*ENTITIES, *PARKS)).counts == {}


def test_places_are_found_in_any_letters() -> None:
    """And without their article."""
    tavern = Entity(name="The Salt Quay", kind="location")

    assert cast_of("They met at the salt\nquay.", (tavern,)).locations == ("The Salt Quay",)


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
    assert named(said, (*ENTITIES, *PARKS)) == expected


def test_an_alias_of_one_is_no_name_of_another() -> None:
    """What is a full name stays it, and an alias wins over a part of a name."""
    two = (Entity(name="Tom Reed", aliases=("Ann",)), Entity(name="Ann Fox"), Entity(name="Reed"))

    assert named("Ann", two) == "Tom Reed"
    assert named("Reed", two) == "Reed"


def test_the_tag_of_speech_names_who_says_it() -> None:
    """Else whoever was told of last before it; nobody where the paragraph names nobody."""
    told = [speaker(one, ENTITIES) for one in quotations(RESPONSE.text)]

    assert told == [MARA, TOBIAS, TOBIAS, MARA, None, None, None, None]
    tagged = 'Mara turned. "No," said Tobias. Hanne laughed. "Yes." Ines sat down.'
    assert [speaker(one, ENTITIES) for one in quotations(tagged)] == [TOBIAS, HANNE]


@pytest.mark.parametrize(
    ("text", "speaks"),
    [
        ('Mara rose. "Wait," she told Tobias.', MARA),
        ('Mara looked at Tobias. "Wait," she quietly told Tobias.', MARA),
        ('"Wait," she told Tobias.', None),
        ('"Wait?" the widow asked Tobias.', None),
        ('"Wait," she said softly to Tobias.', None),
        ('"Wait," said Mara to Tobias.', MARA),
        ('"Wait," Tobias told Mara.', TOBIAS),
        ('"Wait?" asked Mara.', MARA),
        ('"Wait," quietly answered Mara.', MARA),
        ('"Wait," at last answered Mara.', MARA),
        ('She told Tobias: "Wait."', None),
        ('Mara rose and told Tobias: "Wait."', MARA),
        ('Mara told the captain, "Wait."', MARA),
        ('Then answered Mara: "Wait."', MARA),
    ],
)
def test_whoever_is_spoken_to_says_nothing(text: str, speaks: str | None) -> None:
    """Whoever is told, asked or answered by somebody is not who speaks."""
    (said,) = quotations(text)
    assert speaker(said, ENTITIES) == speaks
