"""What is found in a sentence, and how widely to look for it."""

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

_ONE = Decimal(1)


def plain(value: Decimal) -> Decimal:
    """Return *value* without trailing zeros after the point and without an exponent on whole numbers."""
    value = value.normalize() if value else Decimal(0)
    return value.quantize(_ONE) if 0 < int(value.as_tuple().exponent) <= 120 else value


class View(Enum):
    """How a sentence is read: for parameters, as it is worded, as a table of numbers, for prices or for percentages."""

    AMOUNTS = "amounts"
    WORDED = "worded"
    NUMBERS = "numbers"
    MONEY = "money"
    PERCENTS = "percents"


@dataclass(frozen=True, slots=True)
class Found:
    """One amount of a sentence, `sentence[start:end]` being *text*.

    *value* is None when the text has two *readings*. *unit* is an ISO currency code, "%" or a unit such as "km"; cents
    are already turned into their currency, and *said* and *said_unit* keep what was worded ("470 pence": 470 and
    "pence" where value and unit are 4.70 and GBP). *also* lists the other units that the wording can mean ("$"). A
    *vague* wording ("a few") has a value by custom only: confirm it before acting on it.
    """

    value: Decimal | None
    unit: str | None
    start: int
    end: int
    text: str
    readings: tuple[Decimal, ...]
    also: tuple[str, ...] = ()
    said: Decimal | None = None
    said_unit: str = ""
    is_vague: bool = False
