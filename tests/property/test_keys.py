"""Keys in both directions: the same values always share one, different values never do."""

import random
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasklore.contracts.parameters.model import Parameters
from tasklore.contracts.quantities.amounts import Amount


class Mixed(Parameters):
    """One field of each kind."""

    number: Amount
    text: str
    whole: int
    some: tuple[Amount, ...] = ()
    words: tuple[str, ...] = ()
    maybe: str | None = None
    flag: bool = False


class Budget(Parameters):
    """The seed's task."""

    budget_limit: Amount
    spent: Amount
    history: tuple[Amount, ...] = ()


numbers = st.decimals(
    allow_nan=False,
    allow_infinity=False,
    min_value=-(10**12),
    max_value=10**12,
    places=3,
)
texts = st.text(max_size=12).filter(lambda text: text.isprintable())
mixed = st.fixed_dictionaries(
    {
        "number": numbers,
        "text": texts,
        "whole": st.integers(min_value=-(10**15), max_value=10**15),
        "some": st.lists(numbers, max_size=4),
        "words": st.lists(texts, max_size=3),
        "maybe": st.none() | texts,
        "flag": st.booleans(),
    }
)


def values_of(raw: dict[str, Any]) -> tuple[Any, ...]:
    """Return what *raw* means, by value."""
    return (
        raw["number"],
        raw["text"],
        raw["whole"],
        tuple(raw["some"]),
        tuple(raw["words"]),
        raw["maybe"],
        raw["flag"],
    )


@given(mixed, mixed)
def test_two_sets_of_parameters_share_a_key_only_when_they_are_equal(
    left: dict[str, Any], right: dict[str, Any]
) -> None:
    same = Mixed.read(left).key("task") == Mixed.read(right).key("task")

    assert same == (values_of(left) == values_of(right))


@given(texts, texts)
def test_text_never_leaks_into_its_neighbour(left: str, right: str) -> None:
    """Moving characters over the border between two fields changes the key."""
    one = Mixed.read({"number": 1, "text": left, "whole": 1, "maybe": right})
    other = Mixed.read({"number": 1, "text": left + right, "whole": 1, "maybe": ""})

    assert (one.key("t") == other.key("t")) == (right == "")


def built(limit: int, spent: int | Decimal, history: tuple[int, ...]) -> Budget:
    """Return what validation builds; validating a million would take a minute."""
    return Budget.model_construct(
        budget_limit=Amount(limit),
        spent=Amount(spent),
        history=tuple(map(Amount, history)),
    )


@pytest.mark.parametrize(
    "wanted", [30_000, pytest.param(1_000_000, marks=pytest.mark.long)]
)
def test_distinct_parameter_sets_have_distinct_keys(wanted: int) -> None:
    """No two of so many random questions are taken for one another, short keys and hashed ones alike."""
    validated = Budget.read(
        {"budget_limit": 12, "spent": Decimal("0.5"), "history": [1, 2, 3]}
    )
    assert built(12, Decimal("0.5"), (1, 2, 3)).key("analyze_budget") == validated.key(
        "analyze_budget"
    )
    rng = random.Random(20261121)
    asked: set[tuple[int, int, tuple[int, ...]]] = set()
    keys: set[str] = set()
    while len(asked) < wanted:
        history = tuple(rng.choices(range(100_000), k=rng.choice((0, 1, 2, 5, 6, 24))))
        asked.add((rng.randrange(10**6), rng.randrange(10**6), history))
    for limit, spent, history in asked:
        keys.add(built(limit, spent, history).key("analyze_budget"))

    assert len(keys) == wanted
