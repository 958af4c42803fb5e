"""Older Markdown memories, whatever is in them: no word is lost on the way into a document."""

import re
from datetime import date

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from examples.migrate_memories.older_markdown import read
from tasklore.memory.documents.items import leaf_values
from tasklore.memory.documents.kinds import Kinds

KINDS = Kinds.load()
WORDS = st.from_regex(r"[a-zäß0-9]{3,9}", fullmatch=True)
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
LINES = st.one_of(
    SENTENCES,
    SENTENCES.map(lambda text: f"## {text}"),
    st.tuples(st.sampled_from(["- ", "  - ", "\t* ", "    1. "]), SENTENCES).map(
        "".join
    ),
    st.tuples(SENTENCES, SENTENCES).map(lambda pair: f"- **{pair[0]}**: {pair[1]}"),
    SENTENCES.map(lambda text: f"> {text}"),
    SENTENCES.map(lambda text: f"| {text} | x |"),
    st.sampled_from(
        [
            "",
            "---",
            "===",
            "```",
            "~~~",
            "## Likes",
            "- Dislikes:",
            "## Food",
            "***",
            "<!-- x -->",
            "[a]: b",
        ]
    ),
    st.tuples(WORDS, SENTENCES).map(": ".join),
    st.text(max_size=30),
)


@given(st.lists(LINES, max_size=25), st.booleans())
def test_no_word_of_any_file_is_lost(lines: list[str], has_front_matter: bool) -> None:
    """Each is in an item or in the metadata; but for headings that mean a place, every one of them."""
    text = "\n".join(
        [*(["---", *lines[:4], "---"] if has_front_matter else []), *lines]
    )
    made = read(text, KINDS, name="resource_user_food_prefs.md", added=date(2025, 1, 1))

    kept = set(re.findall(r"[^\W_]+", " ".join(_texts(made.body))))
    lost = {word for line in lines for word in re.findall(r"[^\W_]+", line)} - kept
    assert lost <= {"Likes", "Dislikes", "Food"}
    assert all(path.steps[0] == "food" for path, _ in leaf_values(made.body))


def _texts(value: JsonValue) -> list[str]:
    """Return every name and text in *value*."""
    if isinstance(value, dict):
        return [
            text for name, inner in value.items() for text in (name, *_texts(inner))
        ]
    if isinstance(value, list):
        return [text for inner in value for text in _texts(inner)]
    return [str(value)]
