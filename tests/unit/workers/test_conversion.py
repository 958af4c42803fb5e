"""An amount in another currency than a task takes is converted by the task's own function, and by nothing else."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tasklore import (
    Agent,
    Amount,
    Context,
    ExchangeRate,
    Field,
    Money,
    Parameters,
)
from tasklore.contracts.errors import ConfigurationError, InvalidParameters
from tasklore.testing import AgentKit, run_task

#: What one of each is worth in euros.
WORTH = {"USD": "0.5", "GBP": "1.25", "JPY": "0.006"}


class Desk:
    """Knows rates, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def __call__(self, given: str, wanted: str) -> ExchangeRate:
        """Return the rate of the day."""
        self.asked.append((given, wanted))
        return ExchangeRate(
            value=Decimal(WORTH[given]), day=date(2026, 1, 1), source="desk"
        )


DESK = Desk()


class Refund(Parameters):
    """One amount, one that may be left out, and several."""

    amount: Amount = Field(unit="EUR", convert=DESK, gt=0)
    fee: Amount | None = Field(None, unit="EUR", convert=DESK)
    parts: tuple[Amount, ...] = Field((), unit="EUR", convert=DESK)


agent = Agent("TillAgent", description="Pays money back.", keywords=("refund",))


@agent.task
async def refund(said: Refund, context: Context) -> dict[str, Any]:
    """Pay money back."""
    return {
        "amount": str(said.amount),
        "fee": str(said.fee),
        "parts": [str(one) for one in said.parts],
        "converted": [
            (one.field, str(one.given), str(one.amount), str(one.rate.value))
            for one in context.converted
        ],
    }


@agent.task(remember="shared", remember_for=timedelta(hours=1))
async def tell(said: Refund) -> Amount:
    """Say what an amount is in euros."""
    return said.amount


@pytest.fixture(autouse=True)
def _nobody_asked() -> None:
    DESK.asked.clear()


async def test_a_task_gets_its_own_currency_and_hears_what_was_given() -> None:
    report = await run_task(
        agent,
        "refund",
        {"amount": "120 USD", "fee": "£2", "parts": ["3 USD", "4 EUR", "100 yen"]},
    )
    assert report.result == {
        "amount": "60 EUR",
        "fee": "2.5 EUR",
        "parts": ["1.5 EUR", "4 EUR", "0.6 EUR"],
        "converted": [
            ["amount", "120 USD", "60 EUR", "0.5"],
            ["fee", "2 GBP", "2.5 EUR", "1.25"],
            ["parts", "3 USD", "1.5 EUR", "0.5"],
            ["parts", "100 JPY", "0.6 EUR", "0.006"],
        ],
    }
    # One rate of a run for all amounts in a currency.
    assert DESK.asked == [("USD", "EUR"), ("GBP", "EUR"), ("JPY", "EUR")]


@pytest.mark.parametrize("amount", [120, "120", "120 euros", "€120", "12000 cents"])
async def test_what_is_in_its_own_currency_is_nothing_to_convert(amount: Any) -> None:
    report = await run_task(agent, "refund", {"amount": amount})
    assert report.result["amount"] == "120 EUR"
    assert report.result["converted"] == []
    assert not DESK.asked


async def test_a_remembered_answer_is_that_of_its_own_currency() -> None:
    """The number alone is no question: 50 dollars are not 50 euros, and not 50 pounds."""
    kit = AgentKit(agent)
    told = [
        await kit.run("tell", {"amount": amount})
        for amount in ("50 USD", "50 EUR", "50 GBP", "$50", 50)
    ]
    assert [one.result["value"] for one in told] == [25, 50, 62.5, 25, 50]
    assert [one.memory.outcome for one in told] == [
        "miss",
        "miss",
        "miss",
        "hit",
        "hit",
    ]


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        ("5 km", "amount: '5 km' is in km where money is expected"),
        ("20%", "is in % where money is expected"),
        ("80 kr", "can mean 80 SEK or 80 NOK"),
        ("-3 USD", "amount: must be greater than 0"),
    ],
)
def test_what_is_no_money_is_refused_as_before(amount: str, said: str) -> None:
    with pytest.raises(InvalidParameters) as refused:
        Refund.read({"amount": amount})
    assert said in str(refused.value)


def test_a_question_in_its_own_currency_keeps_its_key() -> None:
    """What was remembered before another currency was taken is found."""

    class Before(Parameters):
        amount: Amount = Field(unit="EUR")

    class After(Parameters):
        amount: Amount = Field(unit="EUR", convert=DESK)

    for raw in (50, "50", "50 euros", {"value": 50}, Amount(50)):
        assert After.read({"amount": raw}).key("t") == "t:50EUR"
        assert Before.read({"amount": raw}).key("t") == "t:50EUR"
    assert After.read({"amount": "50 USD"}).key("t") == "t:50USD"


async def test_a_task_without_a_function_refuses_another_currency() -> None:
    other = Agent("StrictAgent", description="Takes euros.", keywords=("euros",))

    class Euros(Parameters):
        amount: Amount = Field(unit="EUR")

    @other.task
    async def take(said: Euros) -> Amount:
        """Take euros."""
        return said.amount

    report = await run_task(other, "take", {"amount": "120 USD"})
    assert (report.status, report.result) == ("rejected", None)
    assert "amount: '120 USD' is in USD where EUR is expected; convert it first" in str(
        report.error
    )


async def _no_rate(_given: str, _wanted: str) -> Any:
    return 0.9


async def _unknown(given: str, _wanted: str) -> ExchangeRate:
    raise LookupError(f"no rate of {given} today")


@pytest.mark.parametrize(
    ("function", "said"),
    [(_no_rate, "return an ExchangeRate"), (_unknown, "no rate of USD today")],
)
async def test_without_a_rate_the_task_fails_and_says_so(
    function: Any, said: str
) -> None:
    other = Agent("NoRateAgent", description="Converts.", keywords=("convert",))

    class Given(Parameters):
        amount: Amount = Field(unit="EUR", convert=function)

    @other.task
    async def take(given: Given) -> Amount:
        """Take an amount."""
        return given.amount

    report = await run_task(other, "take", {"amount": "120 USD"})
    assert report.status == "failed"
    assert said in str(report.error)


@pytest.mark.parametrize(
    ("annotation", "declared", "said"),
    [
        (Amount, {"convert": DESK}, "add unit='EUR'"),
        (Amount, {"convert": DESK, "unit": "km"}, "add unit='EUR'"),
        (Amount, {"convert": len, "unit": "EUR"}, "convert is no async function"),
        (Amount, {"convert": DESK, "unit": "EUR", "le": 5}, "le=5 is another amount"),
        (Decimal, {"convert": DESK, "unit": "EUR"}, "which only an Amount"),
        (Amount | str, {"convert": DESK, "unit": "EUR"}, "which only an Amount"),
        (Money, {"le": 5}, "le=5 is another amount"),
    ],
)
def test_a_conversion_that_cannot_be_made_is_refused_when_the_class_is_made(
    annotation: Any, declared: dict[str, Any], said: str
) -> None:
    body = {"__annotations__": {"price": annotation}, "__module__": __name__}
    with pytest.raises(TypeError, match=said):
        type("Slip", (Parameters,), body | {"price": Field(**declared)})


def test_what_is_remembered_of_rates_has_to_end() -> None:
    other = Agent("StaleAgent", description="Converts.", keywords=("convert",))
    with pytest.raises(ConfigurationError, match="say when with remember_for"):

        @other.task(remember="shared")
        async def take(said: Refund) -> Amount:
            """Take an amount."""
            return said.amount
