"""Whatever is stored, in a prompt it stands within quotes, and it is known again when it comes back."""

import json
import re
import unicodedata
from collections.abc import Iterator
from datetime import date
from pathlib import Path as File

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from tasklore.memory.documents.items import Body, make_item
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.rendering.documents import (
    find_rendered,
    render,
    tokens_of,
    without_rendered,
)
from tasklore.memory.rendering.quoting import MARK, plain
from tasklore.memory.rendering.recalled import CLOSE, OPEN

KINDS = Kinds.load()
FOOD = "resource_user_food_prefs"
TODAY = date(2026, 6, 1)
POISON = json.loads((File(__file__).parents[1] / "poison.json").read_text("utf-8"))

# The grammar of a block, written down once more: what is not a quoted text is one of few words, a number or a date.
STRING = r'"([^"\n]*)"'
VALUE = rf"(?:{STRING}|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|true|false|null)"
NOTE = (
    rf"(?:(?:since|until|said) \d{{4}}-\d\d-\d\d|(?:about|by) {STRING}|confidence [01]\.\d\d|inferred|in conflict"
    rf"|{STRING}: {VALUE})"
)
ENTRY = rf"- (?:{STRING}: )?{VALUE}(?: \({NOTE}(?:, {NOTE})*\))?"
TITLE = rf"(?:Food|Likes|Dislikes|Diets|Avoids|More|{STRING}(?: / (?:{STRING}|\d+))*)"
LINE = re.compile(
    rf"{MARK} (?:\#{{2,3}} (?:{TITLE}|Said in conversations)|{ENTRY}|\(\d+ more not shown\))"
)
FORBIDDEN = re.compile(f"[`<>{MARK}\\[\\]{{}}\\\\]")

HOSTILE = st.sampled_from(
    [*'"\n¦`<>#\\{]\u202e\u200b', OPEN, CLOSE, "¦ - ", '" (', "remembered", ">>>"]
)
ANY = st.characters()
POISONS = st.integers(0, len(POISON) - 1).map(
    lambda number: str(POISON[number]["text"])
)
TEXTS = st.one_of(
    st.text(ANY, max_size=60),
    st.lists(st.one_of(HOSTILE, st.text(ANY, max_size=5)), max_size=12).map("".join),
    POISONS,
)
ITEMS = st.builds(
    lambda display, name, other, source, confidence: (
        make_item(
            f"x{display}", added=date(2026, 5, 20), source=source, confidence=confidence
        )
        | {name: other}
    ),
    TEXTS,
    TEXTS,
    st.one_of(TEXTS, st.integers(), st.lists(TEXTS, max_size=3)),
    st.one_of(TEXTS, st.just("inferred:t")),
    st.floats(0.2, 1),
)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.one_of(
        TEXTS,
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.none(),
        ITEMS,
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)
    ),
    max_leaves=6,
)
BODIES: st.SearchStrategy[Body] = st.builds(
    lambda likes, others: {"food": {"likes": likes}, **others},
    st.lists(VALUES, max_size=4),
    st.dictionaries(TEXTS, VALUES, max_size=3),
)


def _quoted(text: str) -> Iterator[str]:
    """Yield every quoted text of a block, after checking that there is nothing else in it."""
    first, *inner, last = text.split("\n")
    assert (first, last) == (OPEN, CLOSE)
    for line in inner:
        assert LINE.fullmatch(line), line
        assert not FORBIDDEN.search(line.removeprefix(MARK)), line
        yield from re.findall(STRING, line)


def _unseen(text: str) -> list[str]:
    return [
        sign
        for sign in text
        if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    ]


@given(BODIES, st.text(max_size=20))
def test_a_block_holds_nothing_but_quoted_texts_and_our_own_words(
    body: Body, query: str
) -> None:
    """Its lines are read back by a strict grammar, and every quoted text is the plain form of a stored one."""
    text = render(
        {FOOD: body, "resource_odd": body},
        KINDS,
        today=TODAY,
        query=query,
        budget_tokens=10**6,
    ).text

    if text:
        assert not _unseen(text.replace("\n", ""))
        shown = list(_quoted(text))
        assert all(plain(said) == said for said in shown)


@given(st.lists(TEXTS, max_size=8), st.integers(50, 400))
def test_every_stored_text_is_found_again_in_quotes(
    texts: list[str], budget: int
) -> None:
    """All of them when there is room, the first ones when not."""
    body: Body = {"food": {"likes": [*texts]}}
    everything = render({FOOD: body}, KINDS, today=TODAY, budget_tokens=10**6)
    some = render({FOOD: body}, KINDS, today=TODAY, budget_tokens=budget)

    assert [*(_quoted(everything.text) if texts else ())] == [
        plain(text) for text in texts
    ]
    assert tokens_of(some.text) <= max(some.tokens, 0) <= budget or not some.text
    assert len(some.shown) + some.left_out == len(texts)


@given(TEXTS)
def test_plain_text_stays_as_it_is_when_it_is_made_plain_again(text: str) -> None:
    """So nothing comes together only after something else was taken out."""
    assert plain(plain(text)) == plain(text)


@pytest.mark.parametrize(
    "poison",
    POISON,
    ids=[f"{poison['language']}, {poison['trick']}" for poison in POISON],
)
def test_no_injected_instruction_leaves_its_quotes(poison: dict[str, str]) -> None:
    """As a display, a name, a field, a plain text or a heading: it is quoted data there and nowhere else."""
    text = poison["text"]
    order = poison["order"]
    item = make_item(text, added=date(2026, 5, 20), source=text) | {
        text: text,
        "group": text,
        "durability": text,
    }
    body: Body = {
        "_metadata": {"tags": [text]},
        "food": {"likes": [item, text, [text]], text: text},
        text: {text: [item]},
    }

    block = render(
        {FOOD: body, "resource_odd": body},
        KINDS,
        today=TODAY,
        query=text,
        budget_tokens=10**6,
    ).text

    assert len(list(_quoted(block))) >= 10
    outside = re.sub(STRING, '""', block.removeprefix(OPEN).removesuffix(CLOSE))
    assert plain(order) not in outside
    assert not _unseen(outside.replace("\n", ""))
    assert without_rendered(f"Hi!\n{block}\nI like rice.") == "Hi!\nI like rice."


@given(BODIES, st.text("abc .,\n", max_size=30), st.text("abc .,\n", max_size=30))
def test_a_block_that_comes_back_is_taken_out_and_nothing_else(
    body: Body, before: str, after: str
) -> None:
    block = render({FOOD: body}, KINDS, today=TODAY, budget_tokens=10**6).text

    left = without_rendered(f"{before}\n{block}\n{after}")

    assert left.split() == f"{before}\n{after}".split() if block else True


@given(st.data(), st.sampled_from(["", "  ", "\t", "> ", "> > "]))
def test_no_whole_stored_text_is_left_of_a_piece_of_a_block(
    data: st.DataObject, indent: str
) -> None:
    """Cut at any two places, and indented or quoted again."""
    words = [f"zebra{number} lion{number}" for number in range(6)]
    likes: list[JsonValue] = [
        make_item(
            words[0], added=date(2026, 5, 20), source="told", durability="short_term"
        ),
        make_item(
            words[1], added=date(2026, 5, 20), source="inferred:x", confidence=0.5
        )
        | {"group": words[2]},
        words[3],
    ]
    body: Body = {"food": {"likes": likes, "other": {"x": words[4]}}}
    block = render({FOOD: body}, KINDS, today=TODAY, budget_tokens=10**6).text
    block = "\n".join(f"{indent}{line}" for line in block.split("\n"))
    start = data.draw(st.integers(0, len(block)))
    end = data.draw(st.integers(start, len(block)))
    piece = block[start:end]

    left = without_rendered(piece)

    # A piece of one line alone, without its mark, looks like anybody's words.
    if MARK in piece:
        assert not any(word in left for word in words)
        assert '"' not in left


@given(st.one_of(st.text(ANY), TEXTS, st.lists(HOSTILE, max_size=40).map("".join)))
def test_spans_are_in_order_within_any_text(text: str) -> None:
    """And never fail on one."""
    spans = find_rendered(text)

    ends = [place for span in spans for place in span]
    assert ends == sorted(ends)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert len(without_rendered(text)) <= len(text)
