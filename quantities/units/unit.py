"""What the name of a unit means."""

from dataclasses import dataclass
from decimal import Decimal

from quantities.units.codes import CURRENCIES

_ONE = Decimal(1)


@dataclass(frozen=True, slots=True)
class Unit:
    """What a name of a unit means: *code* to keep, *factor* to multiply by, *also* the other codes it can mean."""

    code: str
    factor: Decimal = _ONE
    also: tuple[str, ...] = ()

    @property
    def is_currency(self) -> bool:
        """True for money, the only unit that a field without a unit lets go."""
        return self.code in CURRENCIES
