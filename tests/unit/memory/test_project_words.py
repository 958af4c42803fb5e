"""Which words a text has, and when two tags are one."""

import pytest

from memory.projects.words import MAX_WORD, tag_name, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("?! -- \n", []),
        ("The the THE", ["the"]),
        ("Max_value=2, CAFÉ", ["max", "value", "2", "café"]),
        ("don't stop-it", ["don", "t", "stop", "it"]),
        ("\ufb01ne \uff37\uff29\uff24\uff25 ²", ["fine", "wide", "2"]),
        ("cafe\u0301", ["café"]),
        ("हिन्दी", ["हिन्दी"]),
        ("API決定を", ["api", "決", "定", "を"]),
        ("\U0001f600 ok\x00b", ["ok", "b"]),
        ("x" * 70, ["x" * MAX_WORD]),
    ],
)
def test_words_are_what_people_would_type(text: str, words: list[str]) -> None:
    """Folded, each once, in their order."""
    assert words_of(text) == words


def test_tags_are_one_however_they_are_spelled() -> None:
    """Capitals, space around them and the spelling of accents do not count; accents do."""
    assert tag_name(" Café ") == tag_name("CAFE\u0301") != tag_name("cafe")
