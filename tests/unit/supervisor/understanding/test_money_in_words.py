"""A task that takes Money gets the currency that was said, or asks for it in a way that one word answers."""

from typing import Any, Literal

import pytest

from tasklore.contracts.messages import TaskCall
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import Amount, Money, Percent
from tasklore.contracts.quantities.amounts.rates import ExchangeRate
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import Clarification, Understood
from tasklore.supervisor.understanding.evidence import (
    Evidence,
    Ungrounded,
    Why,
    ground,
)
from tasklore.supervisor.understanding.prompt import Quotable
from tasklore.supervisor.understanding.schema import task_schema
from tests.understanding_cases import AT, card_for, parameters_of, said, understand


class Refund(Parameters):
    """Money alone, and a percentage."""

    amount: Money = Field(cues=("refund",))
    rate: Percent | None = None


class Exchange(Parameters):
    """Money into another currency."""

    amount: Money = Field(cues=("convert",))
    to_currency: str = Field(cues=("to", "into"))


class Quote(Parameters):
    """Two amounts of money, each in its own currency."""

    price: Money = Field(cues=("price",))
    shipping: Money | None = Field(None, cues=("shipping",))
    earlier: tuple[Money, ...] = Field((), cues=("earlier",))


async def _find_rate(given: str, wanted: str) -> ExchangeRate:
    raise LookupError(f"nobody converts {given} to {wanted} here")


class Converted(Parameters):
    """Euros, and what can be converted into them."""

    amount: Amount = Field(cues=("refund",), unit="EUR", convert=_find_rate)


CONVERTED = Catalogue(
    [card_for("TillAgent", "refund", Converted, "Refund money.", ("refund",))]
)
REFUND = Catalogue(
    [card_for("TillAgent", "refund", Refund, "Refund money.", ("refund",))]
)
AMOUNT = task_schema(REFUND.tasks()[0].task).slots[0]
QUOTE = Catalogue(
    [card_for("QuoteAgent", "compare", Quote, "Compare prices.", ("compare", "price"))]
)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("refund 120 quid", "120 GBP"),
        ("refund $120", "120 USD"),
        ("refund 120 yen", "120 JPY"),
        ("refund JPY 120", "120 JPY"),
        ("refund 99 Swedish kronor", "99 SEK"),
        ("refund fifty thousand euros", "50000 EUR"),
        ("refund 5 €", "5 EUR"),
        ("refund C$1,200", "1200 CAD"),
        ("refund 120, in yen", "120 JPY"),
        ("refund 120 in Swedish kronor", "120 SEK"),
        ("refund 120, yen please", "120 JPY"),
        ("refund 120 (EUR)", "120 EUR"),
    ],
)
def test_the_currency_that_was_said_is_kept(text: str, amount: str) -> None:
    found = parameters_of(understand(text, catalogue=REFUND))
    assert found == {"amount": amount}
    # What a supervisor sends is what the worker takes.
    assert (
        Refund.read(found)
        .key("refund")
        .startswith(f"refund:{amount.replace(' ', '')}:")
    )


def test_two_currencies_into_a_third_are_two_questions() -> None:
    card = card_for("BankAgent", "convert", Exchange, "Convert money.", ("convert",))
    keys = set()
    for code in ("GBP", "USD"):
        text = f"convert 100 {code} to EUR"
        found = parameters_of(understand(text, catalogue=Catalogue([card])))
        assert found == {"amount": f"100 {code}", "to_currency": "EUR"}
        keys.add(Exchange.read(found).key("convert"))
    assert keys == {"convert:100GBP:EUR", "convert:100USD:EUR"}


class Choice(Parameters):
    """Money into one of a few currencies."""

    amount: Money = Field(cues=("convert", "change"))
    to_currency: Literal["EUR", "JPY", "SEK", "AUD"] = Field(cues=("to", "into"))


@pytest.mark.parametrize(
    ("text", "amount", "target"),
    [
        ("convert 100 USD to EUR", "100 USD", "EUR"),
        ("convert 100 dollars into euros", "100 USD", "EUR"),
        ("change 100 euros to yen", "100 EUR", "JPY"),
        ("convert 100 pounds to Swedish kronor", "100 GBP", "SEK"),
        ("convert 100 yen to Australian dollars", "100 JPY", "AUD"),
        ("convert 100 yen to pounds", "100 JPY", None),
    ],
)
def test_a_choice_of_currencies_is_said_in_any_name(
    text: str, amount: str, target: str | None
) -> None:
    keywords = ("convert", "change")
    card = card_for("BankAgent", "convert", Choice, "Convert money.", keywords)
    found = understand(text, catalogue=Catalogue([card]))
    if target is None:
        assert isinstance(found, Clarification), found
    else:
        assert parameters_of(found) == {"amount": amount, "to_currency": target}


def test_money_stands_beside_a_percentage() -> None:
    found = parameters_of(understand("refund 80 euros, rate 5%", catalogue=REFUND))
    assert found == {"amount": "80 EUR", "rate": "5%"}


def test_two_amounts_keep_their_own_currencies() -> None:
    found = parameters_of(
        understand(
            "compare price 500 euros, shipping 40 USD, earlier 3 yen, 4 CHF",
            catalogue=QUOTE,
        )
    )
    assert found == {
        "price": "500 EUR",
        "shipping": "40 USD",
        "earlier": ["3 JPY", "4 CHF"],
    }


@pytest.mark.parametrize(
    ("text", "question", "answers"),
    [
        (
            "refund 80 kr",
            "What is the amount, with its currency? You wrote '80 kr', which may be SEK, NOK, DKK, ISK, CZK or SKK.",
            {"NOK": "80 NOK", "Swedish kronor": "80 SEK", "80 DKK": "80 DKK"},
        ),
        (
            "refund 120",
            "What is the amount, with its currency? You wrote '120'.",
            {"euros": "120 EUR", "in yen please": "120 JPY", "£": "120 GBP"},
        ),
        (
            "refund 5 lei",
            "which may be RON or MDL.",
            {"RON": "5 RON", "Moldovan lei": "5 MDL"},
        ),
    ],
)
def test_what_has_no_currency_is_asked_about_and_one_word_settles_it(
    text: str, question: str, answers: dict[str, str]
) -> None:
    found = understand(text, catalogue=REFUND)
    assert isinstance(found, Clarification), found
    assert question in found.question
    assert found.missing == ("amount",)
    for answer, amount in answers.items():
        asked = said(
            "assistant",
            found.question,
            TaskCall(name="refund", parameters=found.known),
            "TillAgent",
        )
        settled = understand(answer, [said("person", text), asked], REFUND)
        assert parameters_of(settled) == {"amount": amount}, answer


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("refund 120", "120 EUR"),
        ("refund 120 euros", "120 EUR"),
        ("refund $120", "120 USD"),
        ("refund 120, in yen", "120 JPY"),
        ("refund 120, yen please", "120 JPY"),
        ("refund 120, won in a lottery", "120 EUR"),
        ("refund 120, try again", "120 EUR"),
        ("refund 80 kr", None),
        ("refund 120, in kr", None),
        ("refund 120 to Ana, in yen", None),
        ("refund 20%", None),
    ],
)
def test_what_is_converted_is_said_in_any_currency(
    text: str, amount: str | None
) -> None:
    """A number alone is in the currency of the field."""
    found = understand(text, catalogue=CONVERTED)
    if amount is None:
        assert isinstance(found, Clarification), found
    else:
        assert parameters_of(found)["amount"] == amount
        assert Converted.read(parameters_of(found)).key("t") == (
            f"t:{amount.replace(' ', '')}"
        )


def test_the_name_of_a_part_is_no_answer() -> None:
    """120 of something are not 120 pounds because somebody says pence."""
    found = understand("refund 120", catalogue=REFUND)
    assert isinstance(found, Clarification)
    asked = said(
        "assistant",
        found.question,
        TaskCall(name="refund", parameters=found.known),
        "TillAgent",
    )
    settled = understand("pence", [said("person", "refund 120"), asked], REFUND)
    assert not isinstance(settled, Understood), settled


@pytest.mark.parametrize("text", ["refund 20%", "refund 5 km", "refund 3 kilos"])
def test_what_is_no_money_is_never_taken_for_it(text: str) -> None:
    found = understand(text, catalogue=REFUND)
    assert isinstance(found, Clarification), found


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("and double the amount", "240 JPY"),
        ("raise the amount by 10%", "132 JPY"),
        ("raise the amount by 30 yen", "150 JPY"),
        ("raise the amount by 30", "150 JPY"),
        ("raise the amount by 30 euros", None),
    ],
)
def test_a_change_stays_in_its_currency(text: str, amount: Any) -> None:
    earlier = [
        said("person", "refund 120 yen"),
        said(
            "assistant",
            "Done.",
            TaskCall(name="refund", parameters={"amount": "120 JPY"}),
            "TillAgent",
        ),
    ]
    found = understand(text, earlier, REFUND)
    if amount is None:
        assert not isinstance(found, Understood), found
    else:
        assert parameters_of(found)["amount"] == amount


@pytest.mark.parametrize(
    ("text", "value", "quotation", "why"),
    [
        ("refund 120 euros", "120 EUR", "120 euros", None),
        # Several currencies have that name: what the model takes it for is shown for a yes.
        ("tillbaka 80 kr", "80 SEK", "80 kr", Why.UNREAD),
        # A name that Python does not know in that language.
        ("верни 300 рублей", "300 RUB", "300 рублей", Why.UNREAD),
    ],
)
def test_a_models_money_is_grounded(
    text: str, value: str, quotation: str, why: Why | None
) -> None:
    found = ground(
        AMOUNT, value, quotation, Evidence(Quotable(name="now", text=text, now=AT))
    )
    assert (found.value, found.why) == (value, why)


@pytest.mark.parametrize(
    ("text", "value", "quotation", "fault"),
    [
        ("refund 120 euros", "120 USD", "120 euros", "is worth '120 EUR'"),
        ("refund 120", "120", "120", "with its currency"),
        ("refund 120", "120 EUR", "120", "with its currency"),
        ("tillbaka 80 kr", "80 EUR", "80 kr", "which may be SEK, NOK"),
    ],
)
def test_a_model_cannot_change_the_currency(
    text: str, value: str, quotation: str, fault: str
) -> None:
    with pytest.raises(Ungrounded, match=fault):
        ground(
            AMOUNT, value, quotation, Evidence(Quotable(name="now", text=text, now=AT))
        )
