"""Names as the files of a story declare them: full ones, aliases, and first or last names of one owner alone."""

import pytest

from contracts.analysis.stories import Entity
from tests.unit.workers.agents.story.stage import CORWIN, ENTITIES, HANNE, INES, LANTERN, MARA, RESPONSE, TOBIAS
from workers.agents.story.names import Handles


def test_a_text_names_by_full_name_alias_and_part() -> None:
    """Each naming counts, in the order of first appearance."""
    count = Handles(ENTITIES).count(
        "The keeper rose. Mara Voss saw Reed at lantern  house. \u201cMara?\u201d asked the captain."
    )

    assert list(count.items()) == [(MARA, 3), (TOBIAS, 1), (LANTERN, 1), (INES, 1)]
    assert set(Handles(ENTITIES).count(RESPONSE.text)) == {MARA, TOBIAS, INES, CORWIN, LANTERN}


@pytest.mark.parametrize(
    ("said", "owner"),
    [
        ("mara", MARA),
        ("the Keeper", MARA),
        ("Mara Voss.", MARA),
        ("Mara Reed", None),
        ("Gandalf", None),
    ],
)
def test_a_name_is_that_of_one_alone(said: str, owner: str | None) -> None:
    """In any case; nobody's is None."""
    assert Handles(ENTITIES).owner(said) == owner


def test_a_name_that_two_share_is_nobody_s() -> None:
    """Unless one of them is called so in full, or by an alias."""
    two = [Entity(name="Ann Lee"), Entity(name="Bo Lee")]
    assert Handles(two).owner("Lee") is None
    assert Handles([*two, Entity(name="Lee")]).owner("Lee") == "Lee"
    assert Handles([*two, Entity(name="Cy", aliases=("Lee",))]).owner("Lee") == "Cy"


@pytest.mark.parametrize("text", ["a mark", "will you", "Marab", "unmara", "the reed bent"])
def test_a_word_is_no_name(text: str) -> None:
    """A character's begins with a capital and is whole; a title alone is nobody's."""
    entities = [*ENTITIES, Entity(name="Will Marsh"), Entity(name="Captain Flint")]
    assert Handles(entities).find(text) == []
    assert Handles(entities).owner("Captain") is None


def test_names_may_be_typed_otherwise() -> None:
    """Another apostrophe, another dash, a line end between two words."""
    entities = [Entity(name="Nan O'Dea"), Entity(name="Jean-Luc Roy")]
    assert Handles(entities).find("Nan\nO\u2019Dea met Jean\u2010Luc Roy.") == ["Nan O'Dea", "Jean-Luc Roy"]
    assert Handles(ENTITIES).find("Hanne's boat") == [HANNE]
    assert Handles([]).find("Hanne") == []
