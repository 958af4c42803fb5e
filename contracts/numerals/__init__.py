"""Numbers as people write and say them, found in English sentences."""

from contracts.numerals.digit_runs import DecimalMark
from contracts.numerals.finding import Found, find_amounts, parse_amount, parse_number

__all__ = ["DecimalMark", "Found", "find_amounts", "parse_amount", "parse_number"]
