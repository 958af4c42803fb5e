"""Recorded answers of a strong model about made-up people, read, checked and stored again."""

import json
from pathlib import Path

import pytest

from tests.memory_reading import recorded

PEOPLE = json.loads(
    Path(recorded.__file__).with_name("people.json").read_text("utf-8")
)["people"]


@pytest.mark.parametrize(
    ("part", "people", "turns", "right", "kept", "found", "wanted", "trapped"),
    [
        ("development", 8, 299, 156, 159, 124, 126, 0),
        ("held", 7, 273, 155, 165, 128, 130, 2),
    ],
)
async def test_facts_stored_from_recorded_answers_match_the_key(
    part: str,
    people: int,
    turns: int,
    right: int,
    kept: int,
    found: int,
    wanted: int,
    trapped: int,
) -> None:
    """Precision, recall and traps of the part that prompts were made with, and of the part that was kept apart."""
    score = await recorded.run([one for one in PEOPLE if one["part"] == part], None)
    assert (score.people, score.turns) == (people, turns)
    assert (score.kept_right, score.kept) == (right, kept), score.misses
    assert (score.found, score.wanted, score.trapped) == (found, wanted, trapped), (
        score.misses
    )
