"""What a worker remembers with, as it needs it: long-term memory, ledger and sessions, as protocols that they fit."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from contracts.parameters.neighbours import Neighbourhood
from memory.long_term.entries import Near, Remembered, Standing
from memory.long_term.single_flight import SingleFlight
from workers.context.session import SessionStore

if TYPE_CHECKING:
    from memory.ledger.ledger import Ledger

#: A generation of a task: its id and number.
Name = tuple[str, int]


class LongTerm(Protocol):
    """What is recalled from and remembered into: `memory.long_term.store.LongTermMemory` fits."""

    async def recall_many(self, entry_keys: Sequence[str]) -> list[Remembered | None]:
        """Return what is remembered for each key, in one round trip."""

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
        near: Standing | None = None,
    ) -> None:
        """Store a result, for questions next to it as well when *near* says where it stands."""

    async def nearest(self, asked: Sequence[tuple[str, Neighbourhood]]) -> list[Near | None]:
        """Return the nearest remembered neighbour of each question, None without one."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of one worker.

    `hits` counts the entries that were served, until the host flushes them, and `own_hits` those that were served to
    somebody, by their token and the entry.
    """

    long_term: LongTerm
    ledger: "Ledger"
    flights: SingleFlight[bytes]
    sessions: SessionStore
    hits: Counter[str]
    own_hits: Counter[tuple[str, str]] = field(default_factory=Counter)

    def count_hit(self, key: str, user: str | None) -> None:
        """Count that the entry *key* was served, to *user* (a token) when it is known to whom."""
        self.hits[key] += 1
        if user is not None:
            self.own_hits[user, key] += 1
