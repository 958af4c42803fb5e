"""Numbers as people write and say them, found in English sentences."""

from quantities.numerals.digit_runs import DecimalMark
from quantities.numerals.finding import (
    find_amounts,
    find_money,
    find_numbers,
    find_percents,
    parse_amount,
    parse_number,
)
from quantities.numerals.found import Found
from quantities.numerals.ordinals import Ordinal, find_ordinals
from quantities.numerals.quantities import find_quantities
from quantities.numerals.ranges import Range, find_ranges

__all__ = [
    "DecimalMark",
    "Found",
    "Ordinal",
    "Range",
    "find_amounts",
    "find_money",
    "find_numbers",
    "find_ordinals",
    "find_percents",
    "find_quantities",
    "find_ranges",
    "parse_amount",
    "parse_number",
]
