"""A long turn is cut where a sentence ends, and put together its passages are the turn."""

import pytest

from tasklore.memory.episodes.passages import LONGEST, passages_of


@pytest.mark.parametrize(
    "text",
    [
        "",
        "short",
        "One sentence. " * 100,
        "no end of a sentence " * 100,
        "x" * 2_000,
        "\u4e00\u53e5\u8bdd\u3002" * 300,
        "a line\n" * 200,
    ],
)
def test_passages_are_the_text_and_none_is_long(text: str) -> None:
    passages = passages_of(text)

    assert "".join(passages) == text
    assert all(len(one) <= LONGEST for one in passages)
    assert all(len(one) > LONGEST / 3 for one in passages[:-1])


def test_a_passage_ends_with_a_sentence() -> None:
    passages = passages_of("We went to Oslo, by train. It was cold there! " * 30)

    assert len(passages) > 2
    assert all(one.endswith((". ", "! ")) for one in passages)
