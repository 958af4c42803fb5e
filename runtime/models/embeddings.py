"""Embeddings of an endpoint that speaks OpenAI's `/v1/embeddings`; the client is imported when one is configured."""

from collections.abc import Sequence
from math import sqrt

__all__ = ["Endpoint"]

#: Seconds for one request to an endpoint, and characters of a text that it is sent.
_DEADLINE_S, _LONGEST = 10.0, 4_000


class Endpoint:
    """An endpoint of embeddings; `embed` waits for it, and raises what its client does."""

    def __init__(self, model: str, *, base_url: str | None, api_key: str | None) -> None:
        from openai import OpenAI

        self._client = OpenAI(base_url=base_url, api_key=api_key or "none", timeout=_DEADLINE_S, max_retries=1)
        self._model = model
        self._width = 0

    @property
    def name(self) -> str:
        """The model."""
        return self._model

    def width(self) -> int:
        """Return how many numbers a vector has; the first call asks the endpoint."""
        return self._width or len(self.embed(["width"])[0])

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector of length one for each of *texts*."""
        asked = [text[:_LONGEST] or " " for text in texts]
        answer = self._client.embeddings.create(model=self._model, input=asked)
        vectors = [one.embedding for one in sorted(answer.data, key=lambda one: one.index)]
        if len(vectors) != len(texts):
            raise ValueError(f"the endpoint returned {len(vectors)} vectors for {len(texts)} texts")
        self._width = len(vectors[0])
        return [[part / (sqrt(sum(one * one for one in vector)) or 1.0) for part in vector] for vector in vectors]
