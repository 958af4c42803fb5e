"""An agent for tests that takes money: in any currency as it is, converted, and beside a field for the currency."""

from datetime import date, timedelta
from decimal import Decimal

from tasklore import Agent, Amount, Context, ExchangeRate, Field, Money, Parameters

agent = Agent("TillAgent", description="Counts money.", keywords=("till",))

#: Rates that were asked for: each is another one, as if time went by.
_asked: list[str] = []


async def find_rate(given: str, wanted: str) -> ExchangeRate:
    """Return 1 when it is first asked, then 2, ..."""
    _asked.append(f"{given} {wanted}")
    return ExchangeRate(
        value=Decimal(len(_asked)), day=date(2026, 1, 2), source="the test"
    )


class Price(Parameters):
    """Money, kept as it was given."""

    price: Money = Field(cues=("price",))
    parts: tuple[Money, ...] = ()


class Debt(Parameters):
    """Euros, or what is worth some."""

    amount: Amount = Field(unit="EUR", convert=find_rate, cues=("debt of",))


class Fee(Parameters):
    """An amount beside the field that says its currency."""

    amount: Amount
    currency: str = "EUR"


@agent.task(remember="shared", examples=("till price 50 euros",))
async def price(said: Price) -> str:
    """Say a price."""
    return f"{said.price} and {len(said.parts)} more"


@agent.task(remember="shared", remember_for=timedelta(hours=1))
async def settle(said: Debt) -> Money:
    """Settle a debt in euros."""
    return said.amount


@agent.task(remember=False, max_attempts=2, in_words=False)
async def settle_again(said: Debt, context: Context) -> Money:
    """Settle a debt, by a run that fails and by the next one."""
    if context.attempt == 1:
        raise ConnectionError("the bank was away")
    return said.amount


@agent.task(remember="shared", in_words=False)
async def charge(fee: Fee) -> str:
    """Charge a fee."""
    return f"{fee.amount} {fee.currency}"
