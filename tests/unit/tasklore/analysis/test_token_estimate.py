"""The estimate of tokens beside recorded counts of a real tokenizer."""

import json
from pathlib import Path

from tasklore.memory.rendering.tokens import estimate

COUNTS = json.loads((Path(__file__).parent / "token_counts.json").read_text("utf-8"))


def test_the_estimate_is_never_too_low() -> None:
    counted = [*COUNTS["prose"], *COUNTS["anything"]]
    assert [text for text, tokens in counted if estimate(text) < tokens] == []


def test_the_estimate_of_english_prose_is_close() -> None:
    estimated = sum(estimate(text) for text, _ in COUNTS["prose"])
    assert estimated <= 1.35 * sum(tokens for _, tokens in COUNTS["prose"])


def test_an_unknown_character_costs_more_than_its_bytes() -> None:
    assert estimate("a\U000e0ffe") > estimate("a") + len("\U000e0ffe".encode())


def test_surrogates_are_read_as_the_tokenizer_does() -> None:
    assert estimate("\ud83d\ude00") == estimate("\U0001f600")
    assert estimate("a\ud800b") == estimate("a\ufffdb")
