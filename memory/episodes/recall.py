"""A question to the episodes: the period it names, the best passages, and these as lines of a prompt."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from tasklore.memory.episodes.episode import Episode
from tasklore.memory.episodes.periods import AskedPeriod, period_of
from tasklore.memory.episodes.store import EpisodePeriod, SearchResult
from tasklore.memory.rendering.documents import Quotation

__all__ = ["ANY", "KeepsTurns", "SearchesEpisodes", "Within", "quotations_of", "recall"]


class SearchesEpisodes(Protocol):
    """The part of `tasklore.memory.episodes.store.Episodes` that is needed."""

    async def search(
        self,
        owner: str,
        query: str,
        *,
        limit: int = 20,
        since: date | None = None,
        until: date | None = None,
        speaker: str | None = None,
        conversation_id: str | None = None,
        asked: str | None = None,
        period: EpisodePeriod | None = None,
    ) -> SearchResult:
        """Return turns on *query*, best first."""

    async def recent(self, owner: str, count: int) -> tuple[Episode, ...]:
        """Return the last *count* turns, oldest first."""


class KeepsTurns(SearchesEpisodes, Protocol):
    """What changes of users' memory need of it."""

    async def settle(
        self, owner: str, *, is_on: bool = True, days: int | None = None
    ) -> None:
        """Say whether turns are kept, and for how many days."""

    async def append(self, owner: str, episodes: Sequence[Episode]) -> int:
        """Keep *episodes*, each once by its turn id; return how many were new."""

    async def count(self, owner: str) -> int:
        """Return how many turns of *owner* there are."""

    async def first(self, owner: str) -> Episode | None:
        """Return the oldest turn of *owner*, None where there is none."""


@dataclass(frozen=True, slots=True)
class Within:
    """Which turns may answer: first and last day, who spoke (`person`, `assistant`, `agent`), and the conversation."""

    since: date | None = None
    until: date | None = None
    speaker: str | None = None
    conversation_id: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether any time may answer."""
        return self.since is None and self.until is None


ANY = Within()


async def recall(
    episodes: SearchesEpisodes,
    owner: str,
    question: str,
    now: datetime,
    *,
    limit: int = 40,
    within: Within = ANY,
) -> SearchResult:
    """Return what answers *question*, best first, *within* its bounds; what the period says that it names is raised.

    A turn that is the question itself, as the chat just kept it, answers nothing.

    Raises:
        MemoryUnavailable: the store did not answer in time.
    """
    asked = period_of(question, now) if within.is_open else None
    return await episodes.search(
        owner,
        question if asked is None else f"{asked.question} {_spelled(asked)}",
        limit=limit,
        since=within.since,
        until=within.until,
        speaker=within.speaker,
        conversation_id=within.conversation_id,
        asked=question,
        period=None if asked is None else EpisodePeriod(asked.first, asked.last),
    )


def _spelled(asked: AskedPeriod) -> str:
    """Return the words by which a turn may speak of the period, on whatever day it was said."""
    is_one_month = (asked.first.year, asked.first.month) == (
        asked.last.year,
        asked.last.month,
    )
    month = f"{asked.first:%B} " if is_one_month else ""
    is_one_year = asked.first.year == asked.last.year
    return f"{month}{asked.first.year if is_one_year else ''}"


def quotations_of(found: SearchResult) -> tuple[Quotation, ...]:
    """Return the hits *found* as lines of a prompt, best first; none where nothing was said about it."""
    if found.is_nothing_said:
        return ()
    best = max(hit.score for hit in found.hits)
    return tuple(
        Quotation(
            hit.text,
            hit.episode.agent_id or hit.episode.speaker,
            hit.episode.at.date(),
            max(0.0, hit.score / best) if best > 0 else 0.0,
        )
        for hit in found.hits
    )
