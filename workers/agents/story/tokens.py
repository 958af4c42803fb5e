"""Tokens of texts, and how many texts may stand in for something larger."""

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import TypeVar

from tasklore.contracts.analysis.stories import Entity
from tasklore.memory.rendering.tokens import counter

T = TypeVar("T")

#: Tokens above which a text has to become much smaller.
_LARGE = 1_000


def count_tokens(text: str) -> int:
    """Return how many tokens *text* is to a model."""
    return counter()(text)


def file_tokens(entity: Entity) -> int:
    """Return how many tokens the file of *entity* would take in a prompt."""
    return entity.tokens or count_tokens(entity.text)


def shrink(texts: Sequence[str], before: int) -> int:
    """Return how many of the first *texts* may stand in for something of *before* tokens.

    Never more tokens than that, and at most 30 % of it where it is over 1,000.
    """
    left = before if before <= _LARGE else before * 3 // 10
    for place, text in enumerate(texts):
        left -= count_tokens(text)
        if left < 0:
            return place
    return len(texts)


def take_turns(
    rows: Mapping[str, Sequence[T]], text: Callable[[T], str], before: int
) -> tuple[dict[str, tuple[T, ...]], int]:
    """Return as much of each of *rows* as may stand in for *before* tokens, and how many tokens that is.

    The first of each row goes before the second of any.
    """
    columns = zip_longest(*([(name, one) for one in row] for name, row in rows.items()))
    turns = [turn for column in columns for turn in column if turn is not None]
    kept = turns[: shrink([text(one) for _, one in turns], before)]
    by_row = {name: tuple(one for owner, one in kept if owner == name) for name in rows}
    return {name: row for name, row in by_row.items() if row}, sum(
        count_tokens(text(one)) for _, one in kept
    )
