"""Courtesies, and what only looks like one."""

import pytest

from supervisor.understanding.small_talk import answer_small_talk

ABILITIES = "I can: order a cake (order cake)."


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("thanks!", "You are welcome."),
        ("Thank you very much", "You are welcome."),
        ("great, thanks a lot", "You are welcome."),
        ("bye", "Goodbye."),
        ("See you tomorrow!", "Goodbye."),
        ("hello", f"Hello. {ABILITIES}"),
        ("Good morning, how are you?", f"Hello. {ABILITIES}"),
        ("ok great", "All right."),
        ("What can you do?", ABILITIES),
        ("help", ABILITIES),
        ("who are you?", ABILITIES),
    ],
)
def test_a_courtesy_gets_a_short_answer(text: str, answer: str) -> None:
    """Nothing is started, and nobody is told that they cannot be understood."""
    assert answer_small_talk(text, ABILITIES) == answer


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?!",
        "42",
        "thanks, make it 5",
        "thank Ada",
        "hello world cake",
        "order",
        "what can you cook",
        "help me move",
    ],
)
def test_a_request_is_no_courtesy(text: str) -> None:
    """One word of its own, or a digit, and it is read as a request."""
    assert answer_small_talk(text, ABILITIES) is None
