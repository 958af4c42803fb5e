"""The governor as a model client sees it: a call is reserved before its request leaves and settled when it is back."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol

import structlog

from tasklore.contracts.admission.limits import (
    NANO_USD,
    CallUsage,
    ModelCall,
    Payer,
    Reservation,
)
from tasklore.contracts.errors import (
    BudgetSpent,
    LlmCutOff,
    LlmError,
    LlmMalformed,
    LlmRateLimited,
    LlmRefused,
    LlmThrottled,
    LlmTimeout,
    LlmUnavailable,
)
from tasklore.runtime.models.prices import ModelPrice, Tokens, dearer, expense_of
from tasklore.runtime.models.wire import retry_after_s

log = structlog.get_logger(__name__)

#: Seconds that a call waits for room where it is; a longer wait is the task's, which gives its slot back.
PATIENCE_S = 2.0


class ModelGate(Protocol):
    """Holds calls to the limits of the deployment."""

    async def reserve(self, call: ModelCall) -> Reservation:
        """Return the reservation of *call*, or raise LlmThrottled, BudgetSpent or MemoryUnavailable."""

    def settle(self, held: Reservation, taken: CallUsage | None) -> None:
        """Settle a reservation once; None is a call of unknown usage."""

    def count(self, held: Reservation, text: str) -> tuple[int, int]:
        """Return the tokens of a reserved request, and those of the *text* that came of its answer."""

    def fallbacks(self, model: str) -> tuple[str, ...]:
        """Return the models that answer in place of *model*, the best one first."""


@dataclass
class Bill:
    """The usage of a call, filled in when its answer is there; `text` is the part of a stream that broke."""

    tokens: Tokens | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class PendingCall:
    """A request that is about to leave: its model and address, its payer and text."""

    model: str
    base_url: str
    payer: Payer
    text: str
    most_output: int


@asynccontextmanager
async def governed(
    governor: ModelGate | None, asked: PendingCall, prices: Mapping[str, ModelPrice]
) -> AsyncIterator[Bill]:
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
        return None if expense.unpriced else ceil(expense.cost_usd * NANO_USD)

    def worst(read: int, written: int) -> int | None:
        return price(Tokens(read, written))

    def counted() -> CallUsage | None:
        tokens = bill.tokens
        if tokens is None:
            return None
        return CallUsage(
            input=tokens.input,
            output=tokens.output,
            cached=tokens.cached_input,
            nano_usd=price(tokens) or 0,
            requests_in_minute=_used(bill.headers, "requests"),
            tokens_in_minute=_used(bill.headers, "tokens"),
        )

    call = ModelCall(
        model=asked.model,
        payer=asked.payer,
        text=asked.text,
        most_output=asked.most_output,
        price=worst,
    )
    held = await governor.reserve(call)
    try:
        yield bill
    except BaseException as error:
        taken = counted()
        if taken is None and isinstance(error, LlmError):
            taken = _taken_by(error)
        if taken is None and bill.text:
            tokens = Tokens(*governor.count(held, bill.text))
            taken = CallUsage(
                input=tokens.input,
                output=tokens.output,
                cached=0,
                nano_usd=price(tokens) or 0,
            )
        governor.settle(held, taken)
        raise
    governor.settle(held, counted())


def next_model(
    governor: ModelGate | None,
    model: str,
    error: LlmError,
    base_url: str,
    prices: Mapping[str, ModelPrice],
    is_served: Callable[[str], bool],
) -> str | None:
    """Return the model that may answer in place of *model*, of which *error* is, None without one.

    *is_served* tells of a model whether the same provider can be asked it.

    The next of its chain answers where its provider is away, slow or limits us, where it came to no whole answer, and
    where a limit says so; a budget in money is spared by a cheaper model only.
    """
    if isinstance(error, BudgetSpent):
        may = error.at_limit == "next"
    else:
        may = isinstance(error, _HANDED_ON) and not isinstance(error, LlmThrottled)
    if governor is None or not may:
        return None
    is_broke = isinstance(error, BudgetSpent) and error.unit == "usd"
    for name in filter(is_served, governor.fallbacks(model)):
        if not (is_broke and dearer(name, model, base_url, prices)):
            log.warning(
                "llm_fell_back", model=model, to=name, error=type(error).__name__
            )
            return name
    return None


def _taken_by(error: LlmError) -> CallUsage | None:
    """Return what a failed request took: nothing when it was refused, None when that is not known."""
    cause = error.__cause__
    is_refused = (
        getattr(cause, "response", None) is not None
        or getattr(cause, "status_code", None) is not None
    )
    is_refused = (
        is_refused or type(getattr(cause, "__cause__", None)).__name__ in _NOT_SENT
    )
    if isinstance(error, LlmTimeout | LlmUnavailable) and not is_refused:
        return None
    pause_s = getattr(error, "retry_after_s", None) or retry_after_s(cause)
    return CallUsage(
        requests=0, pause_ms=None if pause_s is None else int(pause_s * 1000)
    )


#: Errors of one model that another one need not make.
_HANDED_ON = (
    LlmCutOff,
    LlmMalformed,
    LlmRateLimited,
    LlmRefused,
    LlmTimeout,
    LlmUnavailable,
)
#: Errors of the HTTP client by which no request arrived.
_NOT_SENT = ("ConnectError", "ConnectTimeout", "PoolTimeout")


def _used(headers: Mapping[str, str], what: str) -> int | None:
    """Return how many *what* the provider counts in its present minute, None where it does not say."""
    limit = headers.get(f"x-ratelimit-limit-{what}", "")
    left = headers.get(f"x-ratelimit-remaining-{what}", "")
    return (
        int(limit) - int(left)
        if limit.isdigit() and left.isdigit() and len(limit) < 16
        else None
    )
