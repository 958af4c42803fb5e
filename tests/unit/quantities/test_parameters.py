"""Parameters: one question however it is spelled, another one whenever a value differs."""

import re
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from tasklore.contracts.errors import InvalidParameters
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.parameters.questions import spell_field
from tasklore.contracts.quantities.amounts import Amount


class Budget(Parameters):
    """The parameters of the seed's task."""

    budget_limit: Amount = Field(aliases=("limit",), cues=("limit",))
    spent: Amount
    history: tuple[Amount, ...] = ()


class Trip(Parameters):
    """Everything else that a field can be."""

    city: str
    travellers: int = 1
    price: Amount | None = Field(default=None, unit="USD")
    nights: tuple[int, ...] | int = 1
    flexible: bool = False


def test_the_keys_of_the_seed_are_the_keys() -> None:
    """The three examples of the source document come out to the letter."""
    spelled = [
        Budget.read(
            {"budget_limit": 50000, "spent": 42000, "history": [5000, 7000, 8000, 6000]}
        ),
        Budget.read({"budget_limit": 100000, "spent": 30000}),
        Budget.read(
            {"budget_limit": 75000, "spent": 50000, "history": ["10k", "12k", "15k"]}
        ),
    ]

    assert [budget.key("analyze_budget") for budget in spelled] == [
        "analyze_budget:50000:42000:5000,7000,8000,6000",
        "analyze_budget:100000:30000:no_history",
        "analyze_budget:75000:50000:10000,12000,15000",
    ]


def test_sixth_history_value_changes_the_question() -> None:
    """Histories that differ only behind the fifth value used to share a key."""
    five = [5000, 6000, 7000, 5000, 25000]
    keys = {
        Budget.read({"limit": 100000, "spent": 30000, "history": history}).key(
            "analyze_budget"
        )
        for history in (five, [*five, 6000], [*five, 7000])
    }

    assert len(keys) == 3


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ({"spent": 1}, "budget_limit is missing"),
        ({"limit": True, "spent": 1}, "budget_limit: True is not a valid amount"),
        ({"limit": float("nan"), "spent": 1}, "budget_limit: nan"),
        ({"limit": "1.500", "spent": 1}, "1.5 or 1500"),
        ({"limit": 1, "budget_limit": 1, "spent": 1}, "given twice"),
        ({"budget_limit": 1, "limit": 1, "spent": 1}, "given twice"),
        (
            {"limit": 1, "spent": 1, "colour": 1},
            "colour is not a parameter; known are budget_limit",
        ),
        ({"limit": "a lot", "spent": 1}, "budget_limit: 'a lot' is not a valid amount"),
    ],
)
def test_a_bad_parameter_names_the_field_and_the_cure(
    raw: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidParameters, match=problem):
        Budget.read(raw)


def test_a_declared_unit_is_what_a_bare_number_means() -> None:
    """Cents convert exactly, and the unit stands in the key."""
    keys = {
        Trip.read({"city": "Rome", "price": price}).key("plan")
        for price in (5, "5 USD", "500 cents", "$5.00", 5.0)
    }

    assert keys == {"plan:Rome:1:5USD:1:false"}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"city": "5"}, {"city": "5.0"}),
        ({"city": "a", "nights": 5}, {"city": "a", "nights": [5]}),
        ({"city": "a:1"}, {"city": "a", "travellers": 1}),
        ({"city": "no_city"}, {"city": "No_city"}),
        ({"city": "%"}, {"city": ""}),
        ({"city": "a,b"}, {"city": "a%2Cb"}),
    ],
)
def test_different_values_are_different_questions(
    left: dict[str, Any], right: dict[str, Any]
) -> None:
    """No value can imitate a delimiter, a mark of ours or another type."""
    assert Trip.read(left).key("plan") != Trip.read(right).key("plan")


def test_a_long_question_keeps_a_readable_start_and_stays_its_own() -> None:
    """Past 120 characters the end is a digest of the whole."""
    history = list(range(1000, 1100))
    key = Budget.read({"limit": 1, "spent": 1, "history": history}).key(
        "analyze_budget"
    )
    other = Budget.read({"limit": 1, "spent": 1, "history": [*history[:-1], 7]}).key(
        "analyze_budget"
    )

    assert len(key) == len(other) == 120
    assert key.startswith("analyze_budget:1:1:1000,1001,")
    assert key != other
    assert key[:93] == other[:93]


def test_an_alias_that_names_two_fields_is_refused_at_once() -> None:
    """The class says so when it is written, not when it is used."""
    with pytest.raises(TypeError, match="names two fields"):

        class Twice(Parameters):
            """Two fields, one alias."""

            left: int = Field(aliases=("same",))
            right: int = Field(aliases=("same",))


class Fee(Parameters):
    """An amount with a unit and a default."""

    fee: Amount = Field(0, unit="USD")
    steps: tuple[Amount, ...] = Field((1, "2k"), unit="USD")


def test_a_default_left_out_is_the_default_sent() -> None:
    """Also where a unit is put to it: one key, and an amount either way."""
    left_out = Fee.read({})
    sent = Fee.read({"fee": "0", "steps": [1, 2000]})

    assert left_out.key("pay") == sent.key("pay") == "pay:0USD:1USD,2000USD"
    assert left_out.fee == sent.fee == Amount(0, "USD")


def test_a_default_that_cannot_be_read_is_refused_when_the_class_is_written() -> None:
    """The author hears of it, not the first caller."""
    with pytest.raises(TypeError, match="default of fee"):

        class Wrong(Parameters):
            """A default with two readings."""

            fee: Amount = Field("1.500")


class Stop(BaseModel):
    """A model inside parameters, with numbers of its own."""

    nights: int = 1
    price: float = 0.0
    next: "list[Stop]" = []


class Tour(Parameters):
    """Numbers that pydantic reads, not we."""

    stops: tuple[Stop, ...] = ()
    pause: timedelta = timedelta()
    leaves: time | None = None
    until: datetime | None = None


@pytest.mark.parametrize(
    "raw",
    [
        {"stops": [{"nights": True}]},
        {"stops": [{"next": [{"price": True}]}]},
        {"stops": [{"price": float("nan")}]},
        {"stops": [{"price": Decimal("nan")}]},
        {"pause": True},
    ],
)
def test_neither_a_boolean_nor_nan_is_a_number_in_a_model_or_a_time(
    raw: dict[str, Any],
) -> None:
    """Pydantic would take the one for 1, and the other has no key."""
    with pytest.raises(
        InvalidParameters,
        match=r"(stops[.0-9a-z]*|pause): .* is not a (finite )?number",
    ):
        Tour.read(raw)


@pytest.mark.parametrize("raw", ["P3M", "-P1M", "P1MT2H"])
def test_months_are_no_fixed_length(raw: str) -> None:
    with pytest.raises(
        InvalidParameters,
        match=r"pause: .* has months, which have no fixed length; send days",
    ):
        Tour.read({"pause": raw})
    with pytest.raises(TypeError, match=r"the default of pause: .* has months"):
        type(
            "Late",
            (Parameters,),
            {"__annotations__": {"pause": timedelta}, "pause": raw},
        )


@pytest.mark.parametrize(
    ("raw", "days"),
    [
        ("P90D", 90),
        ("P12W", 84),
        ("PT36H", 1.5),
        ("P0Y0M3D", 3),
        ("P1Y35D", 400),
        ("P1DT720M", 1.5),
    ],
)
def test_what_has_a_fixed_length_is_taken(raw: str, days: float) -> None:
    """Minutes are no months, no months are none, and pydantic writes 400 days as a year of 365 days and 35 more."""
    assert Tour.read({"pause": raw}).pause == timedelta(days=days)
    assert Tour.read(
        Tour(pause=timedelta(days=days)).model_dump(mode="json")
    ).pause == timedelta(days=days)


def test_a_list_of_nothing_is_not_nothing() -> None:
    spelled = {
        spell_field("stops", value) for value in (None, [], [None], [None, None])
    }
    assert len(spelled) == 4


def test_one_moment_in_two_zones_is_one_question() -> None:
    here, there = (
        Tour.read({"until": text})
        for text in ("2026-01-01T12:00:00+02:00", "2026-01-01T10:00:00Z")
    )
    assert Parameters.key(here, "go") == Parameters.key(there, "go")
    later = Tour.read({"until": "2026-01-01T12:00:00Z"})
    assert Parameters.key(later, "go") != Parameters.key(here, "go")


def test_one_time_of_day_in_two_offsets_is_one_question() -> None:
    same = [
        Tour.read({"leaves": leaves}).key("tour")
        for leaves in ("00:30+01:00", "23:30Z", "18:30-05:00")
    ]
    assert len(set(same)) == 1
    assert Tour.read({"leaves": "23:30"}).key("tour") not in same


class Plain(Parameters):
    """Numbers that nobody said a currency of."""

    amount: Amount
    price: float = 0
    count: int = 0
    history: tuple[Amount, ...] = ()


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"amount": "10 yen"}, "amount: '10 yen' is in JPY"),
        ({"amount": "$10"}, "amount: '$10' is in USD"),
        ({"amount": {"value": 10, "unit": "EUR"}}, "is in EUR"),
        ({"amount": Amount(10, "JPY")}, "is in JPY"),
        ({"amount": 1, "price": "3 GBP"}, "price: '3 GBP' is in GBP"),
        ({"amount": 1, "count": "2 pounds"}, "count: '2 pounds' is in GBP"),
        ({"amount": 1, "history": [1, "2 CHF"]}, "history: '2 CHF' is in CHF"),
        ({"amount": "5 km"}, "is in km"),
        ({"amount": "20%"}, "is in %"),
    ],
)
def test_a_currency_or_unit_that_nothing_takes_is_refused(
    raw: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidParameters, match=re.escape(said)):
        Plain.read(raw)


class Spent(Parameters):
    """Two amounts in any currency, and a list."""

    limit: Amount = Field(any_currency=True)
    spent: Amount = Field(0, any_currency=True)
    history: tuple[Amount, ...] = Field((), any_currency=True)


class Paid(Parameters):
    """An amount beside its currency."""

    amount: Amount
    currency: str = "EUR"


class Due(Parameters):
    """An amount whose currency may be left out."""

    amount: Amount
    currency: Literal["EUR", "JPY"] | None = None


class Dollars(Parameters):
    """An amount in one of two dollars, neither of them American."""

    amount: Amount
    currency: Literal["AUD", "CAD"] | None = None


class Change(Parameters):
    """An amount between two currencies."""

    amount: Amount
    from_currency: str
    to_currency: str


class Target(Parameters):
    """An amount, and the currency of what comes out alone."""

    amount: Amount
    to_currency: str


@pytest.mark.parametrize(
    ("kind", "raw", "said"),
    [
        (Spent, {"limit": "500 euros", "spent": "40000 yen"}, "limit in EUR, spent in JPY"),
        (Spent, {"limit": "500 euros", "history": [1, "3 USD"]}, "history in USD"),
        (Spent, {"limit": 500, "history": ["3 USD", "4 yen"]}, "history in several"),
        (Spent, {"limit": {"value": 5, "unit": "EUR"}, "spent": "1 USD"}, "spent in USD"),
        (Spent, {"limit": Amount(5, "EUR"), "spent": "1 USD"}, "spent in USD"),
        (Paid, {"amount": "10 yen", "currency": "EUR"}, "currency is EUR, and there is amount in JPY"),
        (Paid, {"amount": "80 kr"}, "currency is EUR, and there is amount in"),
        (Paid, {"amount": "10 yen", "currency": "USD"}, "currency is USD"),
        (Paid, {"amount": "10 euros", "currency": "points"}, "currency is points"),
        (Due, {"amount": "10 yen", "currency": None}, "amount in JPY, and currency is not given"),
        (Due, {"amount": "10 CHF"}, "amount in CHF, and currency is not given"),
        (Dollars, {"amount": "$10"}, "and currency is not given"),
        (Change, {"amount": "10 yen", "from_currency": "USD", "to_currency": "JPY"}, "from_currency is USD"),
        (Target, {"amount": "10 yen", "to_currency": "EUR"}, "is in JPY where a plain number is expected"),
        (Change, {"amount": "10 yen", "from_currency": "USD", "to_currency": "EUR"}, "amount in JPY"),
    ],
)  # fmt: skip
def test_two_currencies_never_meet_in_one_task(
    kind: type[Parameters], raw: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidParameters, match=said):
        kind.read(raw)


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (Spent, {"limit": "$50,000.00", "spent": "42k"}),
        (Spent, {"limit": "$500", "spent": "3 CAD"}),
        (Paid, {"amount": "10 yen", "currency": "JPY"}),
        (Paid, {"amount": "10 yen", "currency": "yen"}),
        (Paid, {"amount": "10"}),
        (Due, {"amount": 10}),
        (Due, {"amount": "10 yen", "currency": "JPY"}),
        (Change, {"amount": "10 yen", "from_currency": "JPY", "to_currency": "EUR"}),
    ],
)
def test_one_currency_for_all_is_let_go_where_it_is_declared(
    kind: type[Parameters], raw: dict[str, Any]
) -> None:
    assert kind.read(raw)


@pytest.mark.parametrize(
    ("kind", "raw", "currency"),
    [
        (Paid, {"amount": "10 yen"}, "JPY"),
        (Paid, {"amount": "$10"}, "USD"),
        (Paid, {"amount": {"value": 10, "unit": "NOK"}}, "NOK"),
        (Paid, {"amount": 10}, "EUR"),
        (Due, {"amount": "10 yen"}, "JPY"),
        (Due, {"amount": 10}, None),
        (Dollars, {"amount": "C$10"}, "CAD"),
    ],
)
def test_a_field_for_the_currency_that_is_left_out_takes_that_of_the_amount(
    kind: type[Parameters], raw: dict[str, Any], currency: str | None
) -> None:
    """As of a sentence; and it is the question of both said apart."""
    read = kind.read(raw)
    assert (read.amount, read.currency) == (Amount(10), currency)  # type: ignore[attr-defined]  # of either class
    apart = {"amount": 10} | ({"currency": currency} if currency else {})
    assert read.key("t") == kind.read(apart).key("t")


def test_a_default_in_a_currency_that_nothing_takes_is_refused() -> None:
    """The author sees it when the agent is loaded."""
    with pytest.raises(TypeError, match="default of price cannot be used"):
        type(
            "Shop",
            (Parameters,),
            {
                "__annotations__": {"price": Amount},
                "price": "$5",
                "__module__": __name__,
            },
        )


@pytest.mark.parametrize(
    ("name", "cure"),
    [("cuess", "did you mean 'cues'?"), ("minimum", "Field() has no argument")],
)
def test_a_misspelt_argument_of_a_field_is_refused(name: str, cure: str) -> None:
    """Pydantic would keep it as an extra that nobody reads."""
    with pytest.raises(TypeError, match=name) as refused:
        Field(**{name: ("bill of",)})
    assert cure in str(refused.value)
