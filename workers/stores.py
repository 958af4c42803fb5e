"""What a worker remembers with, as it needs it: long-term memory, ledger and sessions, as protocols that they fit."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from contracts.neighbours import Neighbourhood
from memory.entries import Near, Remembered, Standing
from memory.runs import Beginning, Ended, Wish
from memory.single_flight import SingleFlight
from workers.session import SessionStore

#: A generation of a task: its id and number.
Name = tuple[str, int]


class LongTerm(Protocol):
    """What is recalled from and remembered into: `memory.long_term.LongTermMemory` fits."""

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


class RunLedger(Protocol):
    """What is asked and told about runs: `memory.ledger.Ledger` fits."""

    async def begin(
        self,
        task_id: str,
        generation: int,
        worker_id: str,
        now_ms: int,
        lease_ms: int,
        *,
        before: int = 0,
        alone: bool = False,
        most_crashes: int = 0,
        token: str = "",
    ) -> Beginning:
        """Return which run this is, why there is none, or the terminal report that exists already."""

    async def hold(self, runs: Sequence[Name], worker_id: str, lease_ms: int) -> list[Name]:
        """Lease runs anew; return those that other workers have taken."""

    async def release(self, runs: Sequence[Ended]) -> None:
        """Note that runs ended with a word."""

    async def park(self, run: Ended, wait_ms: int, assignment: bytes | None = None) -> None:
        """Note that a run ended, and let no other begin for *wait_ms*."""

    async def wish(self, task_id: str) -> Wish | None:
        """Return why a task is to be cancelled, or None."""


class EffectLedger(Protocol):
    """Who gives the right to an effect: `memory.ledger.Ledger` fits."""

    async def once(self, task_id: str, generation: int, worker_id: str, name: str, token: str) -> bool | None:
        """Return whether the call *token* makes the effect, None when it may not even ask."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of one worker.

    `hits` counts the entries that were served, until the host flushes them, and `own_hits` those that were served to
    somebody, by their token and the entry.
    """

    long_term: LongTerm
    ledger: RunLedger
    flights: SingleFlight[bytes]
    sessions: SessionStore
    hits: Counter[str]
    own_hits: Counter[tuple[str, str]] = field(default_factory=Counter)

    def count_hit(self, key: str, user: str | None) -> None:
        """Count that the entry *key* was served, to *user* (a token) when it is known to whom."""
        self.hits[key] += 1
        if user is not None:
            self.own_hits[user, key] += 1
