"""What tokens cost: a small table of list prices, and the expense of one call or of many."""

import re
from dataclasses import dataclass
from decimal import Decimal

from pydantic import BaseModel, ConfigDict, Field

from contracts.messages import Usage

_MILLION = Decimal(1_000_000)
#: Providers answer with dated names ("gpt-4.1-mini-2025-04-14"); the price belongs to the name before the date.
_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}$")


class ModelPrice(BaseModel):
    """US dollars per million tokens; `cached_input` None means that cached input costs as much as any other."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Decimal = Field(ge=0)
    output: Decimal = Field(ge=0)
    cached_input: Decimal | None = Field(default=None, ge=0)


def _price(tokens_in: str, cached: str, tokens_out: str) -> ModelPrice:
    return ModelPrice(input=Decimal(tokens_in), cached_input=Decimal(cached), output=Decimal(tokens_out))


#: OpenAI's list prices of the standard tier; `LlmSettings.prices` overrides and extends them.
LIST_PRICES = {
    "gpt-4.1": _price("2.00", "0.50", "8.00"),
    "gpt-4.1-mini": _price("0.40", "0.10", "1.60"),
    "gpt-4.1-nano": _price("0.10", "0.025", "0.40"),
    "gpt-4o": _price("2.50", "1.25", "10.00"),
    "gpt-4o-mini": _price("0.15", "0.075", "0.60"),
}


@dataclass(frozen=True)
class Tokens:
    """Tokens that a provider counted for one answer; `cached_input` is the part of `input` that it had cached."""

    input: int = 0
    output: int = 0
    cached_input: int = 0


@dataclass(frozen=True)
class Expense:
    """Tokens and US dollars of one call, or the sum of several."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)

    def __add__(self, other: "Expense") -> "Expense":
        return Expense(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost_usd + other.cost_usd,
        )

    def as_usage(self) -> Usage:
        """Return the expense as a report carries it."""
        return Usage(input_tokens=self.input_tokens, output_tokens=self.output_tokens, cost_usd=float(self.cost_usd))


def price_of(model: str, prices: dict[str, ModelPrice]) -> ModelPrice | None:
    """Return the price of *model*, from *prices* before the list, or None when nobody knows it (a local model)."""
    undated = _DATE.sub("", model)
    return prices.get(model) or prices.get(undated) or LIST_PRICES.get(undated)


def expense_of(tokens: Tokens, price: ModelPrice | None) -> Expense:
    """Return what *tokens* cost; a model without a price counts its tokens and costs nothing."""
    if price is None:
        return Expense(tokens.input, tokens.output)
    cached = min(tokens.cached_input, tokens.input)
    cached_price = price.input if price.cached_input is None else price.cached_input
    cost = (tokens.input - cached) * price.input + cached * cached_price + tokens.output * price.output
    return Expense(tokens.input, tokens.output, cost / _MILLION)
