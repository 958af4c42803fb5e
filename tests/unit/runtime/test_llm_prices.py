"""What tokens cost: the shipped list, prices of the settings, and models whose price is not known."""

import json
import subprocess
import sys
from decimal import Decimal

import pytest

from tasklore.contracts.messages import Usage
from tasklore.runtime.models.prices import (
    Expense,
    ModelPrice,
    Tokens,
    expense_of,
    parse_prices,
)
from tasklore.runtime.models.settings import MEDIUM_MODEL, OPENAI_URL, SMALL_MODEL

MILLION = Tokens(input=1_000_000, output=1_000_000, cached_input=500_000)
OWN = "http://127.0.0.1:8080/v1"


@pytest.mark.parametrize("url", [OPENAI_URL, OWN])
@pytest.mark.parametrize(
    ("model", "usd"),
    [
        # Half of what is asked at full price and half cached; past 272,000 tokens asked twice that, and 1.5 times out.
        (SMALL_MODEL, "0.86"),
        (MEDIUM_MODEL, "8.55"),
        (f"{SMALL_MODEL}-2026-09-22", "0.86"),
        ("gpt-4.1-mini", "1.85"),
    ],
)
def test_the_list_has_the_shipped_models_and_older_ones(
    model: str, usd: str, url: str
) -> None:
    """By the list of the provider; a gateway that it does not know is reckoned by OpenAI's."""
    assert expense_of(MILLION, model, url, {}) == Expense(
        1_000_000, 1_000_000, Decimal(usd), cached_tokens=MILLION.cached_input
    )


@pytest.mark.parametrize("model", ["own", "gpt-99", "", "gpt-6.1-terracotta", "\ud800"])
def test_a_model_of_no_list_is_unpriced(model: str) -> None:
    """Its tokens count, its cost is unknown, and a sum with it is too, until the settings name a price."""
    unknown = expense_of(MILLION, model, OWN, {})
    assert unknown == Expense(
        1_000_000, 1_000_000, unpriced=True, cached_tokens=MILLION.cached_input
    )
    assert (unknown + Expense(1, 1, Decimal(1))).as_usage().cost_usd is None
    assert (
        expense_of(
            MILLION,
            model,
            OWN,
            {model: ModelPrice(input=Decimal(0), output=Decimal(0))},
        ).unpriced
        is False
    )


def test_a_price_of_the_settings_comes_before_the_list() -> None:
    """Of cached tokens too; a dated name shares the price of the name before its date."""
    prices = parse_prices(f"{SMALL_MODEL}=1/2/0.5, own/model:8b = 3/4")
    assert expense_of(
        MILLION, f"{SMALL_MODEL}-2026-09-22", OPENAI_URL, prices
    ).cost_usd == Decimal("2.75")
    assert expense_of(MILLION, "own/model:8b", OWN, prices).cost_usd == Decimal(7)


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a=1",
        "=1/2",
        "a=1/2/3/4",
        "a=x/2",
        "a=-1/2",
        "a=nan/1",
        "a=1/2/",
        "a=1/1e999",
        "b=1/1,a",
    ],
)
def test_a_price_that_cannot_be_read_is_named(text: str) -> None:
    """The entry and the form stand in the error."""
    with pytest.raises(
        ValueError, match=r"'=?a?.*is not a valid price; write MODEL=INPUT/OUTPUT"
    ):
        parse_prices(text)


def test_an_unknown_cost_is_left_out_of_a_message() -> None:
    written = Expense(3, 4, unpriced=True).as_usage().model_dump_json()
    assert json.loads(written) == {
        "input_tokens": 3,
        "output_tokens": 4,
        "unpriced": True,
    }
    assert Usage.model_validate_json(written).cost_usd is None
    assert Usage.model_validate({"cost_usd": None}).cost_usd is None
    assert Usage.model_validate({}).cost_usd == 0.0
    assert json.loads(Usage().model_dump_json()) == {
        "input_tokens": 0,
        "output_tokens": 0,
        "cost_usd": 0.0,
    }


def test_prices_are_known_without_a_network() -> None:
    """Nothing is fetched, at the first look or later: every attempt to connect would end the process."""
    code = (
        "import socket, sys, threading\n"
        "def refuse(event, arguments):\n"
        "    if event.startswith('socket.'): sys.exit(f'it used the network: {event}')\n"
        "sys.addaudithook(refuse)\n"
        "from tasklore.runtime.models.prices import is_priced, load_prices\n"
        "load_prices()\n"
        "assert is_priced('gpt-6-luna', 'https://api.openai.com/v1', {})\n"
        "assert threading.active_count() == 1\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
