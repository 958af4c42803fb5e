"""Numbers of examples: few in `make test`, many in `make long`."""

from typing import Any

from hypothesis import settings

#: Examples that `make long` tries for each one of `make test`.
WIDER = 20


def scale(count: int) -> int:
    """Return *count*, or `WIDER` times as many under the profile `searching`."""
    return count * WIDER if settings().max_examples >= 1000 else count


def examples(count: int, **others: Any) -> settings:
    """Return settings for *count* examples, scaled to the profile."""
    return settings(max_examples=scale(count), **others)
