"""The short version of profile `poison`."""

from tests.acceptance.chaos.poison import SEED, poisoned
from tests.acceptance.chaos.poison_length import long_texts

#: How many times as long, and as much, as promised anything may take: on a busy machine more is in every hand at once.
#: What is kept alive is counted all the same.
SLACK = 4.0


async def test_three_hundred_spoiled_messages_harm_nobody_and_each_has_its_end() -> (
    None
):
    """Tasks end in a report or a dead letter, requests in a reply; nobody falls, and new processes start afterwards."""
    rows = await poisoned(300, SEED, SLACK)
    assert [row for row in rows if not row.passed] == []


async def test_the_longest_texts_neither_hold_up_the_supervisor_nor_stay_with_it() -> (
    None
):
    # A hang took forty seconds; how fast it is, the long profile measures.
    rows = await long_texts(read_s=20.0, measured=400)
    assert [row for row in rows if not row.passed] == []
