"""Currencies and units as people write them, each with the one code it is kept under."""

from contracts.units.names import (
    CURRENCIES,
    DOLLAR_PREFIXES,
    GLUED_PREFIX,
    LONGEST_NAME,
    NAMES,
    SYMBOLS,
    Unit,
    currency_code,
    unit_named,
)

__all__ = [
    "CURRENCIES",
    "DOLLAR_PREFIXES",
    "GLUED_PREFIX",
    "LONGEST_NAME",
    "NAMES",
    "SYMBOLS",
    "Unit",
    "currency_code",
    "unit_named",
]
