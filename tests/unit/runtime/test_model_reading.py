"""What a model wrote is read whatever stands around it; what cannot be read is a fault with a name."""

import pytest
from pydantic import BaseModel

from tasklore.contracts.errors import LlmMalformed
from tasklore.runtime.models.answer_reader import answer_in, text_of, words_of
from tests.llm_questions import Colour

GREEN = '{"reasoning": "grass", "colour": "green"}'
RED = '{"reasoning": "no", "colour": "red"}'


@pytest.mark.parametrize(
    "text",
    [
        GREEN,
        f"\ufeff{GREEN}",
        f"\n```json\n{GREEN}\n```\n",
        f"```\n{GREEN}```",
        f"```JSON {GREEN} ```",
        f"<think>It may be {RED}.</think>\n{GREEN}",
        f"<THINKING>\nred?\n</THINKING>{GREEN}",
        f"so it is red: {RED}\n</think>\n\n{GREEN}",
        f"<think>\n```json\n{RED}\n```\n</think>\n```json\n{GREEN}\n```",
        f"Sure! Here is the answer:\n{GREEN}\nLet me know {{if}} it helps.",
        f"First I thought {RED}, but then: {GREEN}",
        '{"reasoning": "grass", "colour": "green",}',
        '```json\n{"reasoning": "grass, }", "colour": "green", \n}\n```',
        '{"reasoning": "gr\\ud800ass", "colour": "green"}',
        '{"reasoning": "two\nlines", "colour": "green"}',
        '{"reasoning": "grass", "colour": "green", "shade": NaN}',
        f'{{"reasoning": "grass", "colour": "green", "n": {"9" * 5_000}}}',
        '{"reasoning": "a fence: ```json x``` and <think>", "colour": "green"}',
    ],
)
def test_an_answer_is_read_whatever_stands_around_it(text: str) -> None:
    assert answer_in(text, Colour).colour == "green"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "Invalid JSON"),
        ("It is green.", "Invalid JSON"),
        ('{"reasoning": "grass", "colour": "gre', "Invalid JSON"),
        ('```json\n{"reasoning": "grass", "colour": "blue"}\n```', "colour"),
        (f"<think>{GREEN}", "Invalid JSON"),
        (f"<think>{GREEN}</think>", "Invalid JSON"),
        ("{" * 100_000, "Invalid JSON"),
        ('{"a":' * 50_000, "Invalid JSON"),
        ('{"reasoning": NaN, "colour": "green"}', "reasoning"),
    ],
)
def test_what_is_no_answer_is_a_fault_with_its_text(text: str, fault: str) -> None:
    """An answer that ends in the middle, and one that was only thought of, are none."""
    with pytest.raises(LlmMalformed, match=fault) as caught:
        answer_in(text, Colour)
    assert caught.value.answer == (text if len(text) <= 20_000 else None)


class Counted(BaseModel):
    """An answer with a whole number."""

    reasoning: str
    count: int


def test_a_number_is_never_made_up() -> None:
    for written in ("NaN", "Infinity", "1e999", "9" * 5_000):
        with pytest.raises(LlmMalformed, match="count"):
            answer_in(f'x {{"reasoning": "", "count": {written}}}', Counted)
    big = answer_in(f'x {{"reasoning": "", "count": {"9" * 40}}}', Counted)
    assert big.count == int("9" * 40)


def test_parts_of_a_message_are_one_text() -> None:
    assert text_of([{"type": "text", "text": "a"}, {"type": "image"}, "b"]) == "ab"
    assert [text_of(odd) for odd in (None, 3, {}, [None])] == [""] * 4


def test_words_for_people_are_one_short_line() -> None:
    assert words_of("a\n b\ud800") == "a b\ufffd"
    assert len(words_of("x" * 10_000)) < 250


def test_a_part_of_what_was_cut_off_is_no_answer() -> None:
    """An object within one that does not end might fit by chance."""
    for written in (
        f'{{"reasoning": "so", "best": {GREEN}',
        f'Here: {{"best": [{GREEN}, {{"reasoning": "no',
    ):
        with pytest.raises(LlmMalformed):
            answer_in(written, Colour)
    assert answer_in(f"Use {{braces}} as in {GREEN}", Colour).colour == "green"
