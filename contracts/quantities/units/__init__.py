"""Currencies, percentages and measures as people write them, each with the one code it is kept under.

Names and exact factors belong here; how numbers are found does not, and neither do the values made of both.
"""

from tasklore.contracts.quantities.units.catalogue import Measure, base_code
from tasklore.contracts.quantities.units.codes import CURRENCIES, Unit, currency_code
from tasklore.contracts.quantities.units.currencies import DOLLAR_PREFIXES
from tasklore.contracts.quantities.units.names import (
    NAMES,
    SYMBOLS,
    is_counted,
    unit_named,
    unit_of,
)
from tasklore.contracts.quantities.units.reading import (
    means_metres,
    measure_after,
    measure_named,
    speaks_of_extent,
)

__all__ = [
    "CURRENCIES", "DOLLAR_PREFIXES", "NAMES", "SYMBOLS", "Measure", "Unit", "base_code", "currency_code", "is_counted",
    "means_metres", "measure_after", "measure_named", "speaks_of_extent", "unit_named", "unit_of",
]  # fmt: skip
