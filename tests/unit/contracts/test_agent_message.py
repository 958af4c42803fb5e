"""Messages to agents: read as any program writes them, refused with the field and the cure, never the words."""

import json
from typing import Any

import pytest

from tasklore.contracts.agent_messages import (
    AgentMessage,
    agent_message,
    read_agent_message,
)
from tasklore.contracts.errors import InvalidInput

SAID = {
    "message_id": "b1",
    "conversation_id": "coins.Ana",
    "sender": "Bob",
    "message": "Over here,\nAna!",
    "time": 5,
}


def test_a_message_becomes_what_its_sender_said() -> None:
    message = read_agent_message(json.dumps(SAID | {"mood": "glad"}).encode())
    assert (
        message
        == agent_message(**SAID)
        == AgentMessage.model_validate_json(message.model_dump_json())
    )
    said = message.as_utterance()
    assert (said.message_id, said.speaker, said.message, said.time) == (
        "b1",
        "Bob",
        "Over here,\nAna!",
        5.0,
    )
    assert said.user_id is None


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"1", b"\xff", b'{"message": "\\ud800"}', b'{"message']
)
def test_what_is_no_message_at_all_is_told_so(body: bytes) -> None:
    """Whatever was published there."""
    with pytest.raises(
        InvalidInput, match="not a JSON object; send the fields of an AgentMessage"
    ):
        read_agent_message(body)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"message": "a secret\x00"},
            r"^message holds the control character '\\x00'; leave it out$",
        ),
        (
            {"message": "a secret" * 300},
            "^message is not usable; it takes text of 1 to 2,000 characters",
        ),
        (
            {"sender": "B\u200bob"},
            r"^sender 'B\\u200bob' holds '\\u200b'; names appear in sentences, so omit it$",
        ),
        ({"time": float("inf")}, "^time is not usable; it takes seconds of the world"),
        (
            {"time": -1, "message_id": ""},
            "^message_id is not usable; .*; time is not usable; ",
        ),
        ({"schema_version": 0}, "^schema_version is not usable; it takes 1$"),
    ],
)
def test_every_wrong_field_is_named_and_no_word_is_repeated(
    changes: dict[str, Any], told: str
) -> None:
    """As a program sends it, and as one of our own says it."""
    for refused in (
        lambda: read_agent_message(json.dumps(SAID | changes).encode()),
        lambda: agent_message(**SAID | changes),
    ):
        with pytest.raises(InvalidInput, match=told) as caught:
            refused()
        assert "secret" not in str(caught.value)
