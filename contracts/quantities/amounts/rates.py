"""Rates between two currencies, and amounts that were converted by one.

Where a rate comes from is the business of whoever converts: none is known here.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tasklore.contracts.quantities.amounts.amount import Amount

__all__ = ["ConvertedAmount", "ExchangeRate", "RateSource"]

#: Characters of the name of a source.
_LONGEST_SOURCE = 200


class ExchangeRate(BaseModel):
    """What one of a currency was worth in another: `value` of it, on `day`, by `source` ("ECB")."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: Annotated[Decimal, Field(gt=0, allow_inf_nan=False)]
    day: date
    source: Annotated[str, StringConstraints(min_length=1, max_length=_LONGEST_SOURCE)]

    def convert(self, amount: Amount, currency: str) -> Amount:
        """Return *amount* in *currency*, exactly: rounding to cents is left to whoever pays them.

        Raises:
            InvalidAmount: that has more digits than are kept.
        """
        return Amount((amount * self.value).value, currency)


#: Finds the rate from the first currency to the second, by their codes: `await rate("USD", "EUR")`.
RateSource = Callable[[str, str], Awaitable[ExchangeRate]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedAmount:
    """An amount of the parameter called `field`, as it was `given` and as it became by `rate`."""

    field: str
    given: Amount
    amount: Amount
    rate: ExchangeRate
