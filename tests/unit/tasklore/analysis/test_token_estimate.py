"""The estimate of tokens beside counts of the real tokenizer that were written down."""

import json
from pathlib import Path

import pytest

from memory.rendering.tokens import estimate

COUNTS = json.loads((Path(__file__).parent / "token_counts.json").read_text("utf-8"))


@pytest.mark.parametrize(("text", "tokens"), [*COUNTS["prose"], *COUNTS["anything"]])
def test_the_estimate_is_never_below_what_was_counted(text: str, tokens: int) -> None:
    """Prose, code, scripts, pictographs, broken bytes."""
    assert estimate(text) >= tokens


def test_english_prose_is_hardly_counted_too_high() -> None:
    """At most a third more, or a budget would go to waste."""
    estimated = sum(estimate(text) for text, _ in COUNTS["prose"])

    assert estimated <= 1.35 * sum(tokens for _, tokens in COUNTS["prose"])


def test_a_sign_newer_than_our_tables_costs_more_than_its_bytes() -> None:
    """Nobody here knows whether it is a letter, and so how its neighbours are cut."""
    assert estimate("a\U000e0ffe") > estimate("a") + len("\U000e0ffe".encode())


def test_halves_of_surrogate_pairs_are_read_as_the_tokenizer_reads_them() -> None:
    """Two that belong together are one sign, one alone is what takes its place."""
    assert estimate("\ud83d\ude00") == estimate("\U0001f600")
    assert estimate("a\ud800b") == estimate("a\ufffdb")
