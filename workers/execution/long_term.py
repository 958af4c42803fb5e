"""The part of the long-term memory that a worker needs."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from tasklore.contracts.parameters.neighbours import Neighbourhood
from tasklore.memory.long_term.entries import CachedResult, IndexPosition, NearMatch


class LongTerm(Protocol):
    """The long-term memory that a worker needs: `tasklore.memory.long_term.store.LongTermMemory` fits."""

    async def recall_many(self, entry_keys: Sequence[str]) -> list[CachedResult | None]:
        """Return the answer remembered for each key, in one round trip."""

    async def remember(
        self,
        key: str,
        result_json: bytes,
        *,
        computed_ms: int,
        ttl: timedelta | None,
        now_ms: int,
        user_token: str | None = None,
        parameters_json: bytes = b"{}",
        near: IndexPosition | None = None,
        nano_usd: int = 0,
    ) -> None:
        """Store a result, for questions next to it as well when *near* says where it stands."""

    async def nearest(
        self, asked: Sequence[tuple[str, Neighbourhood]]
    ) -> list[NearMatch | None]:
        """Return the nearest remembered neighbour of each question, None without one."""
