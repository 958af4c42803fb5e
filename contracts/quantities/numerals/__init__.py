"""Numbers as people write and say them, found in English sentences with their units.

Readers of amounts belong here; what a unit is worth and what a day is do not.
"""

from tasklore.contracts.quantities.numerals.digit_runs import DecimalMark
from tasklore.contracts.quantities.numerals.finding import (
    find_amounts,
    parse_amount,
    parse_number,
)
from tasklore.contracts.quantities.numerals.found import FoundAmount

__all__ = ["DecimalMark", "FoundAmount", "find_amounts", "parse_amount", "parse_number"]
