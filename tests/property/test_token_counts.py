"""The estimate of tokens against the real tokenizer: never too low, and cut where that one cuts."""

from pathlib import Path

import bpe_openai  # type: ignore[import-not-found, import-untyped, unused-ignore]  # an extra
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasklore.memory.rendering.tokens import counter, estimate, exact, known_tokens
from tests.architecture.tree import ROOT
from tests.property.examples import examples

O200K = bpe_openai.get_encoding("o200k_base")

#: What is cut in odd ways: contractions, marks, blanks, numerals, and signs of many bytes.
ODD = st.sampled_from(
    [
        *"\u2019\u00e9\u01c4\u02b0\u00aa\u0661\u00b2\u2167\u3000\u2028\x85\x1c",
        *(
            "'s",
            "'RE",
            "'\u017f",
            "e\u0301",
            "\r\n",
            "  ",
            "//",
            "THREAD-001",
            "the",
            " The",
            "--",
            "<|endoftext|>",
        ),
        *(
            "👨\u200d👩\u200d👧\u200d👦",
            "⚠️",
            "🇩🇪",
            "漢字",
            "ひらがな",
            "한국어",
            "ไทย",
            "עברית",
        ),
    ]
)
TEXTS = st.one_of(
    st.text(max_size=80),
    st.text(st.characters(codec="latin-1"), max_size=80),
    st.text("abcdefghijklmnopqrstuvwxyz ", max_size=80),
    st.lists(st.one_of(ODD, st.text(max_size=3)), max_size=30).map("".join),
    st.binary(max_size=80).map(lambda raw: raw.decode("utf-8", "replace")),
    st.binary(max_size=80).map(bytes.hex),
)


@examples(300)
@given(TEXTS)
def test_the_estimate_is_never_too_low(text: str) -> None:
    """Emoji, scripts without case or blanks, code, bytes as text: at least as many as the tokenizer makes."""
    assert estimate(text) >= len(O200K.encode_ordinary(text))


#: Lists of imports: dotted paths, a line each, are neither prose nor code.
IMPORTS_ALONE = {ROOT / "memory/keys.py", ROOT / "memory/stores.py"}


@pytest.mark.parametrize(
    "file",
    sorted(
        {*(ROOT / "docs").rglob("*.md"), *ROOT.glob("memory/**/*.py")} - IMPORTS_ALONE
    ),
    ids=lambda file: file.name,
)
def test_pages_and_code_are_estimated_within_reason(file: Path) -> None:
    text = file.read_text("utf-8")

    assert 1 <= estimate(text) / max(1, len(O200K.encode_ordinary(text))) < 2


def test_every_known_token_is_one() -> None:
    """The list claims nothing that the tokenizer does not say, or the estimate could be too low."""
    texts = [token.decode() for token in known_tokens() if token.isascii()]

    assert [text for text in texts if len(O200K.encode_ordinary(text)) != 1] == []
    assert [
        token for token in known_tokens() if O200K.encode_single_token(token) < 0
    ] == []


def test_with_the_extra_tokens_are_counted_exactly() -> None:
    """Also what would steer a model is counted as text, and a text longer than the tokenizer takes at once."""
    assert counter() is exact()
    assert counter()("<|endoftext|>") == len(O200K.encode_ordinary("<|endoftext|>")) > 1
    assert counter()("a " * 600_000) >= 600_000
