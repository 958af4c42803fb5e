"""A question put to what was said: the period it names, the best passages, and these within a budget of tokens."""

from collections.abc import Iterable
from datetime import date, datetime
from typing import Protocol

from memory.episodes.periods import period_of
from memory.episodes.store import Found, Hit
from memory.rendering.documents import Quotation, tokens_of

__all__ = ["SearchesEpisodes", "pack", "recall"]


class SearchesEpisodes(Protocol):
    """What is needed of `memory.episodes.store.Episodes`."""

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
    ) -> Found:
        """Return what was said of *query*, best first."""


async def recall(episodes: SearchesEpisodes, owner: str, question: str, now: datetime, *, limit: int = 40) -> Found:
    """Return what answers *question*, best first: of the period that it names, if any; without the person's own words.

    A turn that is the question itself, as the chat just kept it, answers nothing.

    Raises:
        MemoryUnavailable: the store did not answer in time.
    """
    period = period_of(question, now)
    if period is None:
        found = await episodes.search(owner, question, limit=limit)
    else:
        words = period.question if any(sign.isalnum() for sign in period.question) else question
        found = await episodes.search(owner, words, limit=limit, since=period.first, until=period.last)
    asked = question.strip().casefold()
    kept = tuple(hit for hit in found.hits if hit.episode.text.strip().casefold() != asked)
    return Found(kept, found.turns)


def pack(hits: Iterable[Hit], budget_tokens: int) -> tuple[Quotation, ...]:
    """Return the best of *hits* whose texts fit into *budget_tokens*, in the order of time."""
    spent, kept = 0, list[Hit]()
    for hit in hits:
        needed = tokens_of(hit.episode.text) + LINE_TOKENS
        if spent + needed <= budget_tokens:
            spent += needed
            kept.append(hit)
    return tuple(quotation_of(hit) for hit in sorted(kept, key=lambda hit: hit.episode.at))


#: Tokens of a line beside its text: mark, quotes, day and speaker.
LINE_TOKENS = 14


def quotation_of(hit: Hit) -> Quotation:
    """Return *hit* as a line of a prompt shows it."""
    episode = hit.episode
    return Quotation(episode.text, episode.agent_id or episode.speaker, episode.at.date())
