"""Members of a list of people, what they come to, and the party that they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Member(NamedTuple):
    """One member of a list of people up to token *end*; *value* is None when nobody said how many."""

    value: int | None
    end: int
    is_self: bool = False
    is_other: bool = False
    is_related: bool = False
    has_number: bool = False
    is_whole: bool = False
    is_listed: bool = False


@dataclass(frozen=True, slots=True)
class Party:
    """The people of tokens *first* to *end*, and whether a number was said or the whole was called a total."""

    value: int | None
    first: int
    end: int
    has_number: bool
    is_total: bool


def whole(members: Sequence[Member]) -> int | None:
    """Return the sum of *members*; "8 people, 5 adults and 3 kids" are 8, "8 people, 3 kids" nobody knows."""
    values = [member.value or 0 for member in members]
    is_told_apart = members[0].is_whole and members[0].is_listed and not any(member.is_self for member in members[1:])
    if not is_told_apart:
        return sum(values)
    return values[0] if sum(values[1:]) == values[0] else None
