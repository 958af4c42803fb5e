"""What a name of a unit stands for: money, a percentage or a measure, each with the one code it is kept under.

Only names live here: nothing is ever converted, except a part of a currency ("5 cents") into the currency.
"""

from dataclasses import replace
from decimal import Decimal

from tasklore.contracts.quantities.units.catalogue import Measure
from tasklore.contracts.quantities.units.codes import CURRENCIES, Unit, currency_code
from tasklore.contracts.quantities.units.currencies import CURRENCY_NAMES
from tasklore.contracts.quantities.units.currencies import SYMBOLS as CURRENCY_SYMBOLS
from tasklore.contracts.quantities.units.reading import measure_named

SYMBOLS = CURRENCY_SYMBOLS | {"%": Unit("%"), "\u2030": Unit("%", Decimal("0.1"))}

#: Percentages; a hundredth of a percent is turned into percent.
_SHARES = {
    name: Unit("%", Decimal(factor))
    for factor, names in (
        (
            "1",
            "percent,percents,per cent,per cents,percentage,percentages,pct,pcts,p.c.,percentage point",
        ),
        ("1", "percentage points,percent points,pct points"),
        ("0.1", "per mille,per mil"),
        ("0.01", "basis point,basis points,bp,bps"),
    )
    for name in names.split(",")
}

#: Money and percent; measures are named in `tasklore.contracts.quantities.units.catalogue`.
NAMES = _SHARES | CURRENCY_NAMES
#: Without a sign of money "two pounds" is a weight as well.
NAMES |= {
    name: replace(NAMES[name], also=(*NAMES[name].also, "lb"))
    for name in ("pound", "pounds")
}


def unit_named(name: str) -> Unit | None:
    """Return what *name* ("$", "euros", "eur", "km", "cents") stands for, or None when it is not known here."""
    if unit := SYMBOLS.get(name):
        return unit
    if code := currency_code(name):
        return Unit(code)
    if unit := NAMES.get(name.lower()):
        return unit
    if name in CURRENCIES:
        return Unit(name)
    measure = measure_named(name)
    return unit_of(measure) if measure else None


def is_counted(unit: str) -> bool:
    """True for a measure that is also a thing people count ("3 cups"): a plain number takes it without its unit."""
    measure = measure_named(unit)
    return measure is not None and measure.is_counted


def unit_of(measure: Measure) -> Unit:
    """Return *measure* as the unit of an amount; bare degrees can also be those of a temperature."""
    return _DEGREE if measure.code == "degree" else Unit(measure.code)


_DEGREE = Unit("degree", also=("°C", "°F"))
