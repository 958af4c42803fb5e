"""A conversation is one list; the number of its new messages divides it from the past."""

import math

import pytest
from pydantic import ValidationError

from tasklore.contracts.conversations import History, Utterance, split
from tasklore.contracts.errors import InvalidInput

MESSAGES = tuple(
    Utterance(message_id=f"m{n}", speaker="Bob", message=f"word {n}", time=n)
    for n in range(20)
)


@pytest.mark.parametrize("total", [0, 1, 2, 20])
def test_a_split_is_exact_for_every_number_of_new_messages(total: int) -> None:
    """None and all included: with none all of them are past, not new."""
    messages = MESSAGES[:total]
    for num_new in range(total + 1):
        past, current = split(messages, num_new)
        assert (len(past), len(current)) == (total - num_new, num_new)
        assert past + current == messages
        history = History(messages, num_new)
        assert (history.past, history.current) == (past, current)


@pytest.mark.parametrize("num_new", [-1, 21, 1_000_000])
def test_more_new_messages_than_there_are_is_an_error(num_new: int) -> None:
    """A negative slice would call some past and show them twice."""
    with pytest.raises(InvalidInput, match="num_new"):
        split(MESSAGES, num_new)


GOOD = {"message_id": "m1", "speaker": "Bob", "message": "Hello!", "time": 5}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("message_id", ""),
        ("message_id", "two words"),
        ("message_id", "x" * 129),
        ("speaker", "Bob\nAlice"),
        ("message", "x" * 2001),
        ("message", "null\x00"),
        ("message", "\ud800"),
        ("time", math.nan),
        ("time", -1),
        ("user_id", ""),
    ],
)
def test_what_cannot_have_been_said_is_refused(field: str, value: object) -> None:
    """By the name of its field."""
    with pytest.raises(ValidationError) as refused:
        Utterance.model_validate({**GOOD, field: value})
    assert [error["loc"] for error in refused.value.errors()] == [(field,)]


@pytest.mark.parametrize(
    "text",
    ["one\nline\tand more", "'quoted' \"twice\"", "été 決定 🪙", "{}<>\\", "x" * 2000],
)
def test_any_text_can_be_said(text: str) -> None:
    """And comes back from its JSON."""
    said = Utterance.model_validate({**GOOD, "message": text})
    assert Utterance.model_validate_json(said.model_dump_json()) == said
    assert said.message == text
