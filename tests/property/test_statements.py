"""Whatever is said, plain statements are read in time, and never from nothing."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasklore.workers.statements import read
from tests.steps import steps

TODAY = date(2026, 11, 24)


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    """A statement quotes the text that it was read from."""
    assert all(statement.evidence in text for statement in read(text, today=TODAY))


@pytest.mark.parametrize(
    "part",
    [
        "I love sushi. ",
        "I love ",
        "I like tea and ",
        "if ",
        "a",
        ". ",
        ", and i ",
        "my name is A",
        "until ",
        "\n",
    ],
)
def test_a_long_text_is_read_in_time_proportional_to_its_length(part: str) -> None:
    """Twice the text takes about twice the calls, up to the length that is read at all."""
    once = steps(lambda text: read(text, today=TODAY), (part * 2_000)[:1_900])
    twice = steps(lambda text: read(text, today=TODAY), (part * 4_000)[:3_800])

    assert twice <= 2.6 * once + 5_000
