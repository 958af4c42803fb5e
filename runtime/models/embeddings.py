"""Embeddings of an endpoint that speaks OpenAI's `/v1/embeddings`; the client is imported when one is configured."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from tasklore.contracts.admission.limits import (
    NANO_USD,
    CallUsage,
    ModelCall,
    Payer,
    Reservation,
)
from tasklore.contracts.extensions import Embedder
from tasklore.runtime.bounded_http import bound_responses
from tasklore.runtime.models.client import MOST_BYTES, headers_for, split_address
from tasklore.runtime.models.governor import ModelGate
from tasklore.runtime.models.prices import ModelPrice, Tokens, expense_of, load_prices
from tasklore.runtime.models.settings import OPENAI_URL

__all__ = ["Endpoint", "GovernedEmbedder", "ThreadGate"]

#: Seconds for one request to an endpoint, and characters of a text that it is sent.
_DEADLINE_S = 10.0
_LONGEST = 4_000


@dataclass(frozen=True)
class ThreadGate:
    """The governor, for a thread beside the event loop *loop* in which it lives."""

    governor: ModelGate
    loop: asyncio.AbstractEventLoop

    def reserve(self, call: ModelCall) -> Reservation:
        """Return the reservation of *call*; raises as the governor does."""
        return asyncio.run_coroutine_threadsafe(
            self.governor.reserve(call), self.loop
        ).result(_DEADLINE_S)

    def settle(self, held: Reservation, taken: CallUsage | None) -> None:
        """Settle a reservation, as the governor does."""
        self.loop.call_soon_threadsafe(self.governor.settle, held, taken)


class GovernedEmbedder:
    """An embedder from an extension, which is asked where the limits leave room; its tokens are estimated."""

    def __init__(
        self, embedder: Embedder, door: ThreadGate, prices: Mapping[str, ModelPrice]
    ) -> None:
        self._embedder = embedder
        self._door = door
        self._prices = prices

    @property
    def name(self) -> str:
        """The model."""
        return self._embedder.name

    def width(self) -> int:
        """Return how many numbers a vector has."""
        return self._embedder.width()

    def embed(self, texts: Sequence[str], /) -> Sequence[Sequence[float]]:
        """Return one vector of length one for each of *texts*."""
        call = _call_of(self.name, texts, self._price)
        held = self._door.reserve(call)
        try:
            return self._embedder.embed(texts)
        finally:
            self._door.settle(held, None)

    def _price(self, tokens: int) -> int | None:
        return _price_of(tokens, self.name, "", self._prices)


class Endpoint:
    """An endpoint of embeddings; `embed` waits for it, and raises what its client or the governor does."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        api_key: str | None,
        prices: Mapping[str, ModelPrice] | None = None,
        door: ThreadGate | None = None,
    ) -> None:
        from openai import DefaultHttpxClient, OpenAI

        address, query = split_address(base_url)
        key = api_key or "none"
        http_client = DefaultHttpxClient()
        bound_responses(http_client, MOST_BYTES)
        self._client = OpenAI(
            base_url=address,
            api_key=key,
            default_query=query,
            default_headers=headers_for(address, key),
            timeout=_DEADLINE_S,
            http_client=http_client,
            max_retries=0,
        )
        self._model = model
        self._address = base_url or OPENAI_URL
        self._prices = prices or {}
        self._door = door
        self._width = 0
        load_prices()

    @property
    def name(self) -> str:
        """The model."""
        return self._model

    def width(self) -> int:
        """Return how many numbers a vector has; the first call asks the endpoint."""
        return self._width or len(self.embed(["width"])[0])

    def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        """Return one vector of length one for each of *texts*."""
        asked = [text[:_LONGEST] or " " for text in texts]
        call = _call_of(self._model, asked, self._price)
        held = self._door.reserve(call) if self._door is not None else None
        taken = None
        try:
            answer = self._client.embeddings.create(model=self._model, input=asked)
            counted = answer.usage.prompt_tokens if answer.usage is not None else 0
            if counted:
                taken = CallUsage(input=counted, nano_usd=self._price(counted) or 0)
        finally:
            if self._door is not None and held is not None:
                self._door.settle(held, taken)
        vectors = [
            one.embedding for one in sorted(answer.data, key=lambda one: one.index)
        ]
        if len(vectors) != len(texts):
            raise ValueError(
                f"the endpoint returned {len(vectors)} vectors for {len(texts)} texts"
            )
        self._width = len(vectors[0])
        return [
            [part / (sqrt(sum(one * one for one in vector)) or 1.0) for part in vector]
            for vector in vectors
        ]

    def _price(self, tokens: int) -> int | None:
        return _price_of(tokens, self._model, self._address, self._prices)


def _call_of(
    model: str, texts: Sequence[str], price: Callable[[int], int | None]
) -> ModelCall:
    return ModelCall(
        model=model,
        payer=Payer(agent="embedder"),
        text="\n".join(texts),
        most_output=0,
        price=lambda read, _: price(read),
    )


def _price_of(
    tokens: int, model: str, address: str, prices: Mapping[str, ModelPrice]
) -> int | None:
    """Return what *tokens* that are read cost, in billionths of a dollar; None where that is not known."""
    expense = expense_of(Tokens(tokens), model, address, prices)
    return None if expense.unpriced else ceil(expense.cost_usd * NANO_USD)
