"""About how many tokens a text is, where nothing counts exactly: right on chats in many scripts."""

import json
from pathlib import Path

import pytest

from tasklore.memory.rendering.tokens import exact, likely

#: Two texts of a chat by language: the first was fitted by; the second was
#: looked at once, when the weights of Latin letters were raised for Polish, so it is not unseen.
CHATS: dict[str, tuple[str, str]] = json.loads(
    Path(__file__).with_name("chats_of_scripts.json").read_text("utf-8")
)


@pytest.mark.parametrize("language", sorted(CHATS))
@pytest.mark.parametrize("part", [0, 1], ids=["fitted", "checked"])
def test_the_likely_count_is_near_the_exact_one(language: str, part: int) -> None:
    """A third too many at most, a sixth too few: the bound of what a budget is overrun by."""
    count = exact()
    assert count is not None
    text = CHATS[language][part]

    assert 5 / 6 * count(text) <= likely(text) <= 4 / 3 * count(text)


@pytest.mark.parametrize(
    "text", ["", " ", "\n", "?!", "12345", "\ud800", "\U0001f600", "\x00", "a\u0301"]
)
def test_any_text_has_a_count(text: str) -> None:
    assert likely(text) >= bool(text)
