"""Events of a stream are read with work that grows with their bytes alone, however those come."""

import json

import pytest

from tasklore.contracts.errors import LlmUnavailable
from tasklore.runtime.models import event_stream
from tasklore.runtime.models.completions import read_body
from tasklore.runtime.models.event_stream import DONE, EventDecoder

MANY = 2_000


class Piece(bytes):
    """Bytes that count how many stand before them when they are put behind others."""

    copied = 0

    def __radd__(self, before: bytes) -> bytes:
        """Return both, by copying all of them."""
        Piece.copied += len(before)
        return bytes(before).__add__(bytes(self))


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the length of each text that is parsed to see whether it is a whole event."""
    lengths: list[int] = []
    is_whole = event_stream.is_whole

    def count(text: str) -> bool:
        lengths.append(len(text))
        return is_whole(text)

    monkeypatch.setattr(event_stream, "is_whole", count)
    return lengths


def test_an_event_of_many_lines_is_parsed_twice_at_most(parsed: list[int]) -> None:
    reader = EventDecoder()
    text = json.dumps(dict.fromkeys(map(str, range(MANY)), 0), indent=0)
    lines = "".join(f"data: {line}\n" for line in text.splitlines())
    [data] = reader.feed(f"{lines}\n".encode())
    assert len(json.loads(data)) == MANY
    assert sum(parsed) <= 2 * len(text)


def test_an_event_of_one_line_is_read_before_the_next_comes(parsed: list[int]) -> None:
    """Some servers leave out the blank line behind it."""
    reader = EventDecoder()
    found = [reader.feed(b'data: {"a": 1}\n') for _ in range(MANY)]
    assert found == [['{"a": 1}']] * MANY
    assert len(parsed) == MANY
    assert reader.feed(b"data: [DONE]\n") == [DONE]


def test_comments_are_not_parsed(parsed: list[int]) -> None:
    """Not while an event has begun either: each would be a look at the whole of it."""
    reader = EventDecoder()
    assert reader.feed(b'data: {"a":\n') == []
    assert reader.feed(b": still here\n" * MANY) == []
    assert len(parsed) == 1
    assert reader.feed(b"data: 1}\n\n") == ['{"a":1}']


def test_a_line_that_comes_in_pieces_is_put_together_once() -> None:
    reader = EventDecoder()
    Piece.copied = 0
    for letter in b'data: "' + b"a" * MANY + b'"':
        assert reader.feed(Piece([letter])) == []
    assert reader.feed(Piece(b"\n")) == [f'"{"a" * MANY}"']
    assert Piece.copied == 0


def test_an_event_that_ends_in_its_middle_is_no_json() -> None:
    reader = EventDecoder()
    with pytest.raises(LlmUnavailable, match="not valid JSON"):
        reader.feed(b'data: {"a":\n\n')


@pytest.mark.parametrize(
    "comment", [":\n", ": still here\n\n", "\r\n", "\ufeff \n:\r\n"]
)
def test_a_mebibyte_of_comments_stands_before_a_reply(comment: str) -> None:
    signs = comment.encode() * (2**20 // len(comment.encode()))
    assert read_body(signs + b'{"a": 1}') == {"a": 1}
    with pytest.raises(LlmUnavailable):
        read_body(signs + b":")
