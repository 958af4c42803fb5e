"""What tokens cost: prices of the settings before those of `genai-prices`, and the expense of one call or of many.

The library carries its prices with it and fetches none. It costs 0.6 s of CPU to import, so it is imported in a thread,
beside the client, by those alone who ask a model (see `load_prices`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import zip_longest
from typing import Annotated

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from tasklore.contracts.messages import Usage

#: More than any model costs, so that no sum of costs overflows.
_MOST_USD = 1_000_000
_MILLION = Decimal(1_000_000)
#: Providers answer with dated names ("gpt-6-luna-2026-09-22"); a price of the settings holds for the name without.
_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}$")
#: Whose list counts for a server of an address that the library does not know: a gateway, or a scripted one.
_PROVIDER = "openai"
#: Models that a report names.
_MOST_MODELS = 8
_NAME = TypeAdapter(
    Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
)


class ModelPrice(BaseModel):
    """US dollars per million tokens; `cached_input` None means that cached input costs as much as any other."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Decimal = Field(ge=0, le=_MOST_USD)
    output: Decimal = Field(ge=0, le=_MOST_USD)
    cached_input: Decimal | None = Field(default=None, ge=0, le=_MOST_USD)


@dataclass(frozen=True)
class Tokens:
    """Tokens that a provider counted for one answer; `cached_input` is the part of `input` that it had cached.

    `estimated` says that no provider counted them: they are what the length of the texts comes to.
    """

    input: int = 0
    output: int = 0
    cached_input: int = 0
    estimated: bool = False


@dataclass(frozen=True)
class Expense:
    """Tokens and US dollars of one call, or the sum of several.

    `cost_usd` leaves out calls whose price is unknown; `unpriced` says that there was one. `models` are those that
    answered, `estimated_tokens` those of input and output that no provider counted.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    unpriced: bool = False
    models: tuple[str, ...] = field(default=(), compare=False)
    cached_tokens: int = 0
    estimated_tokens: int = 0

    def __add__(self, other: "Expense") -> "Expense":
        return Expense(
            self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
            unpriced=self.unpriced or other.unpriced,
            models=tuple(dict.fromkeys(self.models + other.models))[:_MOST_MODELS],
            cached_tokens=self.cached_tokens + other.cached_tokens,
            estimated_tokens=self.estimated_tokens + other.estimated_tokens,
        )

    def as_usage(self) -> Usage:
        """Return the expense as a report carries it."""
        return Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cost_usd=None if self.unpriced else float(self.cost_usd),
            unpriced=self.unpriced,
            cached_tokens=self.cached_tokens,
            estimated_tokens=self.estimated_tokens,
            models=self.models,
        )


def parse_prices(text: str) -> dict[str, ModelPrice]:
    """Return the prices written as `MODEL=INPUT/OUTPUT` or `MODEL=INPUT/OUTPUT/CACHED`, joined by commas.

    Raises:
        ValueError: one cannot be read; the message names it and the form.
    """
    prices = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        model, _, amounts = entry.rpartition("=")
        try:
            prices[_NAME.validate_python(model)] = ModelPrice.model_validate(
                dict(
                    zip_longest(
                        ModelPrice.model_fields, amounts.split("/"), fillvalue=None
                    )
                )
            )
        except ValidationError as error:
            form = "MODEL=INPUT/OUTPUT or MODEL=INPUT/OUTPUT/CACHED, in US dollars per million tokens"
            raise ValueError(
                f"{entry!r} is not a valid price; write {form}, such as "
                "'my-model=0.10/0.50/0.01'"
            ) from error
    return prices


def load_prices() -> None:
    """Import the price list, 0.6 s of CPU or more, so call it in a thread."""
    from genai_prices.data_snapshot import get_snapshot

    get_snapshot()


def expense_of(
    tokens: Tokens, model: str, base_url: str, prices: Mapping[str, ModelPrice]
) -> Expense:
    """Return what *tokens* of *model* cost at *base_url*; `unpriced` when neither *prices* nor the list has it."""
    if not tokens.input and not tokens.output:
        return Expense()
    price = prices.get(model) or prices.get(_DATE.sub("", model))
    cost = _listed(tokens, model, base_url) if price is None else _priced(tokens, price)
    cached = min(tokens.cached_input, tokens.input)
    total = tokens.input + tokens.output
    return Expense(
        tokens.input,
        tokens.output,
        cost_usd=cost or Decimal(0),
        unpriced=cost is None,
        models=(model,),
        cached_tokens=cached,
        estimated_tokens=total if tokens.estimated else 0,
    )


def is_priced(model: str, base_url: str, prices: Mapping[str, ModelPrice]) -> bool:
    """Say whether the price of *model* at *base_url* is known."""
    return not expense_of(Tokens(1, 1), model, base_url, prices).unpriced


def dearer(
    model: str, other: str, base_url: str, prices: Mapping[str, ModelPrice]
) -> bool:
    """Say whether *model* costs as much as *other* or more, or its price is not known."""
    mine, its = (
        expense_of(Tokens(1_000, 1_000), name, base_url, prices)
        for name in (model, other)
    )
    return mine.unpriced or (not its.unpriced and mine.cost_usd >= its.cost_usd)


def _priced(tokens: Tokens, price: ModelPrice) -> Decimal:
    cached = min(tokens.cached_input, tokens.input)
    cached_price = price.input if price.cached_input is None else price.cached_input
    return (
        (tokens.input - cached) * price.input
        + cached * cached_price
        + tokens.output * price.output
    ) / _MILLION


def _listed(tokens: Tokens, model: str, base_url: str) -> Decimal | None:
    """Return the cost by the list of the provider at *base_url*; None for a model that it does not have."""
    from genai_prices import Usage as Counts
    from genai_prices.data_snapshot import get_snapshot

    snapshot = get_snapshot()
    counts = Counts(
        input_tokens=tokens.input,
        cache_read_tokens=min(tokens.cached_input, tokens.input),
        output_tokens=tokens.output,
    )
    try:
        provider = snapshot.find_provider(None, None, base_url).id
    except LookupError:
        provider = _PROVIDER
    try:
        calculation = snapshot.calc(
            counts,
            model_ref=model,
            provider_id=provider,
            provider_api_url=None,
            genai_request_timestamp=None,
        )
    except (LookupError, ValueError):
        return None
    return calculation.total_price
