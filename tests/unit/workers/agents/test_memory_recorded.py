"""What a strong model answered to our prompts about made-up people, put through reading and checks again."""

import json
from pathlib import Path

from tests.memory_reading import recorded

PEOPLE = Path(recorded.__file__).with_name("people.json")
#: Those whose answers are recorded to the end, and those of them who were held back until then.
RECORDED, HELD = ("p05", "p06", "p07", "p08"), ("p14", "p15")


async def test_what_is_stored_is_right_and_little_is_missed() -> None:
    """Of 150 turns; nothing of what only looked like a fact."""
    everybody = json.loads(PEOPLE.read_text("utf-8"))["people"]
    found = await recorded.run([one for one in everybody if one["id"] in RECORDED], None)
    assert (found.people, found.turns, found.trapped) == (4, 150, 0), found.misses
    assert found.kept_right >= 0.97 * found.kept, found.misses
    assert found.found >= 0.9 * found.wanted, found.misses


async def test_of_people_who_were_held_back_nothing_is_missed() -> None:
    """Of 77 turns; beside 51 facts that are wanted or allowed stand five true ones that are not, one sung."""
    everybody = json.loads(PEOPLE.read_text("utf-8"))["people"]
    found = await recorded.run([one for one in everybody if one["id"] in HELD], None)
    assert (found.people, found.turns, found.found, found.wanted) == (2, 77, 39, 39), found.misses
    assert (found.kept_right, found.kept, found.trapped) == (51, 56, 1), found.misses
