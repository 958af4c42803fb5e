"""When two questions are one: each row of the table in docs/reference/amounts.md holds for any value."""

import json
import unicodedata
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Context, Decimal, localcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasklore.contracts.errors import InvalidParameters
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import (
    Amount,
    Duration,
    Moment,
    Percent,
    Quantity,
)
from tasklore.contracts.quantities.units import measure_named
from tasklore.contracts.quantities.units.measures import BASES


class Money(Parameters):
    """Numbers of each kind."""

    plain: Amount = Amount(0)
    price: Amount = Field(0, unit="USD")
    whole: int = 0
    exact: Decimal = Decimal(0)
    real: float = 0.0


class Loose(Parameters):
    """Where nothing is normalised, and where order does not count."""

    text: str = ""
    anything: Any = None
    several: frozenset[Amount] = frozenset()
    listed: tuple[Amount, ...] = ()
    table: dict[str, int] = Field(aliases=("map",), default_factory=dict)
    maybe: int | None = None
    span: timedelta = timedelta()


class Typed(Parameters):
    """The types that are more than a number."""

    share: Percent = Field("0%")
    far: Quantity = Field("0 m", unit="m")
    any_size: Quantity = Field("0 m")
    wait: Duration = Field("0 seconds")
    day: Moment = Field("2026-01-01")


def key(of: type[Parameters], **values: Any) -> str:
    """Return the question that *values* ask."""
    return of.read(values).key("task")


wholes = st.integers(min_value=-(10**14), max_value=10**14)
decimals = st.decimals(
    allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=4
)
#: Scripts whose digits people type: Arabic, Persian, Devanagari, Bengali, Thai, full width.
zeros = st.sampled_from("\u0660\u06f0\u0966\u09e6\u0e50\uff10")
not_finite = st.sampled_from(
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("Infinity"),
    ]
)
exchangeable = st.sampled_from(
    [base.code for base in BASES if base.scale and base.shift == "0"]
)


@given(wholes, st.sampled_from(["plain", "price", "whole", "exact", "real"]))
def test_numbers_of_one_value_are_one_question(number: int, field: str) -> None:
    """Whole, float, decimal, with zeros behind, with groups, in JSON or not."""
    spellings = [
        number,
        float(number),
        Decimal(number),
        f"{number}.00",
        f"{number:,}",
        f"{number}e0",
        Amount(number),
    ]

    assert (
        len(
            {
                key(Money, **{field: spelling})
                for spelling in [*spellings, json.loads(json.dumps(number))]
            }
        )
        == 1
    )


@pytest.mark.parametrize("field", ["plain", "price", "whole", "exact", "real"])
def test_minus_zero_is_zero(field: str) -> None:
    """As text, float and decimal."""
    assert {
        key(Money, **{field: zero})
        for zero in (0, -0.0, "-0", "-0.00", Decimal("-0.0"))
    } == {key(Money)}


@given(not_finite, st.sampled_from(["plain", "price", "whole", "exact", "real"]))
def test_what_is_no_finite_number_is_refused(wrong: object, field: str) -> None:
    """At the door, even where a field takes anything."""
    for of, values in (
        (Money, {field: wrong}),
        (Loose, {"anything": [{"deep": wrong}]}),
    ):
        with pytest.raises(InvalidParameters, match="finite"):
            of.read(values)


@given(st.booleans(), st.sampled_from(["plain", "price", "whole", "exact", "real"]))
def test_a_boolean_is_no_number(wrong: bool, field: str) -> None:
    """Neither alone nor inside a mapping; where a field takes anything it is itself."""
    for of, values in (
        (Money, {field: wrong}),
        (Loose, {"table": {"a": wrong}}),
        (Loose, {"several": [wrong]}),
    ):
        with pytest.raises(InvalidParameters, match="number"):
            of.read(values)
    assert key(Loose, anything=wrong) != key(Loose, anything=int(wrong))


@given(wholes, zeros)
def test_digits_of_any_script_are_digits(number: int, zero: str) -> None:
    """A person types what the keyboard has."""
    typed = "".join(
        chr(ord(zero) + int(letter)) if letter.isdigit() else letter
        for letter in str(number)
    )

    assert key(Money, plain=typed) == key(Money, plain=number)


@given(st.integers(min_value=-(10**12), max_value=10**12))
def test_cents_are_parts_of_the_declared_currency(cents: int) -> None:
    """500 cents, 5 dollars and 5 are one question; in another currency they are refused."""
    dollars = Decimal(cents) / 100

    assert (
        len(
            {
                key(Money, price=spelling)
                for spelling in (f"{cents} cents", f"{dollars} dollars", dollars)
            }
        )
        == 1
    )
    with pytest.raises(InvalidParameters, match="EUR"):
        Money.read({"price": f"{dollars} EUR"})


@given(wholes, wholes, wholes)
def test_the_order_of_fields_does_not_count_and_the_order_of_a_list_does(
    one: int, two: int, three: int
) -> None:
    assert key(Money, plain=one, whole=two) == key(Money, whole=two, plain=one)
    assert (key(Loose, listed=[one, two]) == key(Loose, listed=[two, one])) == (
        one == two
    )
    assert key(Loose, several=[one, two, three]) == key(
        Loose, several=[three, f"{two:,}", one, one]
    )
    assert key(Loose, table={"a": one, "b": two}) == key(
        Loose, table={"b": two, "a": one}
    )


@given(wholes)
def test_an_alias_and_a_default_left_out_change_nothing(number: int) -> None:
    """A default sent, or spelled otherwise, is the default; given by two names is refused."""
    assert key(Loose, map={"a": number}) == key(Loose, table={"a": number})
    assert key(Typed) == key(
        Typed, share=0, far="0 km", wait="PT0S", day=date(2026, 1, 1)
    )
    assert key(Loose) == key(Loose, maybe=None, listed=[], text="")
    with pytest.raises(InvalidParameters, match="twice"):
        Loose.read({"map": {}, "table": {}})


@given(st.text(max_size=20))
def test_text_counts_as_it_is_written(text: str) -> None:
    for other in (
        text.upper(),
        f" {text}",
        text.strip(),
        unicodedata.normalize("NFD", text),
    ):
        assert (key(Loose, text=text) == key(Loose, text=other)) == (text == other)


@given(
    st.text(max_size=8) | wholes | decimals | st.booleans() | st.none(),
    st.text(max_size=8) | wholes | st.booleans(),
)
def test_kinds_never_pass_for_one_another(one: object, other: object) -> None:
    """The text "5" is no 5, "true" no True, "" no None."""
    is_same = (
        one == other
        and isinstance(one, bool) == isinstance(other, bool)
        and isinstance(one, str) == isinstance(other, str)
    )

    assert (key(Loose, anything=one) == key(Loose, anything=other)) == is_same


@given(decimals)
def test_a_percentage_counts_points(number: Decimal) -> None:
    """20, "20%" and "20 per cent" are one question, 0.2 is another."""
    assert (
        len(
            {
                key(Typed, share=spelling)
                for spelling in (number, f"{number}%", f"{number} per cent")
            }
        )
        == 1
    )
    assert (key(Typed, share=number) == key(Typed, share=number / 100)) == (number == 0)
    assert Percent(str(Percent(number))) == Percent(number)


@given(st.integers(min_value=0, max_value=10**9), exchangeable, exchangeable)
def test_quantities_of_one_worth_are_one_question(
    number: int, unit: str, other: str
) -> None:
    """In whatever unit of the dimension; two worths or two dimensions never."""
    said = Quantity(number, unit)
    assert Quantity(str(said)) == said
    assert key(Typed, any_size=said) == key(Typed, any_size=str(said))
    into = measure_named(other)
    if into is not None and into.dimension == said.dimension:
        assert said.to(other).to(unit) == said
        assert key(Typed, any_size=said.to(other)) == key(Typed, any_size=said)
    elif number:
        assert key(Typed, any_size=Quantity(number, other)) != key(Typed, any_size=said)
    assert key(Typed, any_size=Quantity(number + 1, unit)) != key(Typed, any_size=said)


@given(st.integers(min_value=0, max_value=10**6))
def test_lengths_of_time_are_seconds_and_months_are_not_days(number: int) -> None:
    assert (
        len(
            {
                key(Typed, wait=wording)
                for wording in (
                    f"{number * 60} minutes",
                    f"PT{number}H",
                    f"{number} hours",
                )
            }
        )
        == 1
    )
    assert (
        key(Typed, wait=f"{number} months") == key(Typed, wait=f"{number * 30} days")
    ) == (number == 0)


@given(
    st.datetimes(min_value=datetime(1000, 1, 2), max_value=datetime(9000, 1, 1)),  # noqa: DTZ001
    st.integers(-14, 14),
)
def test_equal_instants_are_one_moment_and_a_local_time_is_another(
    moment: datetime, hours: int
) -> None:
    """A day is not its midnight."""
    instant = moment.replace(tzinfo=UTC)
    moved = instant.astimezone(timezone(timedelta(hours=hours)))

    assert key(Typed, day=instant.isoformat()) == key(Typed, day=moved.isoformat())
    assert key(Typed, day=instant.isoformat()) != key(Typed, day=moment.isoformat())
    assert key(Typed, day=moment.date().isoformat()) != key(
        Typed, day=f"{moment.date().isoformat()}T00:00:00"
    )


@given(decimals, st.integers(min_value=1, max_value=6))
def test_the_precision_of_the_caller_changes_no_key(
    number: Decimal, precision: int
) -> None:
    """A thread that rounds to three digits asks the same question."""
    long = timedelta(days=400, microseconds=123456789)

    def keys() -> list[str]:
        return [
            key(Money, plain=number, price=str(number), exact=number),
            key(Typed, share=number, far=number, wait=long),
            key(Loose, span=long),
        ]

    with localcontext(Context(prec=precision)):
        rounded = keys()

    assert rounded == keys()
