"""The governor as a model client sees it: a call is reserved before its request leaves and settled when it is back."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from contracts.errors import LlmError, LlmTimeout, LlmUnavailable
from contracts.limits import NANO_USD, Call, Payer, Taken
from runtime.models.prices import ModelPrice, Tokens, expense_of
from runtime.models.wire import retry_after_s

#: Seconds that a call waits for room where it is; a longer wait is the task's, which gives its slot back.
PATIENCE_S = 2.0


class Governor(Protocol):
    """Holds calls to the limits of the deployment."""

    async def reserve(self, call: Call) -> Any:
        """Return the reservation of *call*, or raise LlmThrottled, BudgetSpent or MemoryUnavailable."""

    def settle(self, held: Any, taken: Taken | None) -> None:
        """Settle a reservation once; None is a call of which it is not known what it took."""

    def fallbacks(self, model: str) -> tuple[str, ...]:
        """Return the models that answer in place of *model*, the best one first."""


@dataclass
class Bill:
    """What a call took, filled in when its answer is there; `text` is what came of a stream that broke."""

    tokens: Tokens | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True)
class Asked:
    """A request that is about to leave: to which model at which address, for whom, with which text."""

    model: str
    base_url: str
    payer: Payer
    text: str
    most_output: int


@asynccontextmanager
async def governed(governor: Governor | None, asked: Asked, prices: Mapping[str, ModelPrice]) -> AsyncIterator[Bill]:
    """Reserve the request that the block sends, and settle it by the bill, or by how the block failed.

    Raises:
        LlmThrottled: a limit leaves no room now.
        BudgetSpent: a limit leaves no room and does not let the call wait.
        MemoryUnavailable: limits cannot be checked.
    """
    bill = Bill()
    if governor is None:
        yield bill
        return

    def price(tokens: Tokens) -> int | None:
        expense = expense_of(tokens, asked.model, asked.base_url, prices)
        return None if expense.unpriced else int(expense.cost_usd * NANO_USD + 1) if expense.cost_usd else 0

    call = Call(
        asked.model, asked.payer, asked.text, asked.most_output, lambda read, written: price(Tokens(read, written))
    )
    held = await governor.reserve(call)
    try:
        yield bill
    except LlmError as error:
        governor.settle(held, _taken_by(error))
        raise
    except BaseException:
        governor.settle(held, None)
        raise
    tokens = bill.tokens
    if tokens is None:
        governor.settle(held, None)
        return
    used = _used(bill.headers, "requests"), _used(bill.headers, "tokens")
    taken = Taken(tokens.input, tokens.output, tokens.cached_input, price(tokens) or 0, 1, None, *used)
    governor.settle(held, taken)


def _taken_by(error: LlmError) -> Taken | None:
    """Return what a failed request took: nothing when it was refused, None when that is not known."""
    response = getattr(error.__cause__, "response", None)
    is_refused = (
        response is not None or type(error.__cause__.__cause__ if error.__cause__ else None).__name__ in _NOT_SENT
    )
    if isinstance(error, LlmTimeout | LlmUnavailable) and not is_refused:
        return None
    pause_s = retry_after_s(error.__cause__)
    return Taken(requests=0, pause_ms=None if pause_s is None else int(pause_s * 1000))


#: Errors of the HTTP client by which no request arrived.
_NOT_SENT = ("ConnectError", "ConnectTimeout", "PoolTimeout")


def _used(headers: Mapping[str, str], what: str) -> int | None:
    """Return how many *what* the provider counts in its present minute, None where it does not say."""
    limit, left = headers.get(f"x-ratelimit-limit-{what}", ""), headers.get(f"x-ratelimit-remaining-{what}", "")
    return int(limit) - int(left) if limit.isdigit() and left.isdigit() and len(limit) < 16 else None
