"""The routes of search: memories found by a question, the block of a prompt, and turns handed in from elsewhere."""

import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Literal

import structlog
from fastapi import APIRouter, Query
from pydantic import Field, field_validator

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.identifiers import Name
from tasklore.contracts.messages import ChatTurn
from tasklore.memory.documents.paths import lookup, place_name
from tasklore.memory.documents.storage.reader import DocumentReader
from tasklore.memory.episodes.recall import quotation_of
from tasklore.memory.episodes.store import Episodes
from tasklore.memory.holdings.store import Holding
from tasklore.memory.recall import MAX_LIMIT, Within, search_memory, turns_for
from tasklore.memory.rendering.documents import BUDGET_TOKENS, Quotation, render
from tasklore.supervisor.http.memory.tasks import AskedBy, By, ReadBy
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.operations.forms import Form, SpelledTime, View
from tasklore.supervisor.operations.refusals import unavailable
from tasklore.supervisor.requests.request import digest_of

log = structlog.get_logger(__name__)

#: Turns of one request, and characters of each.
MOST_TURNS = 100
LONGEST_TURN = 20_000
#: Seconds that storing all turns of one request may take.
WITHIN_S = 20.0

Question = Annotated[
    str,
    Query(
        alias="q",
        min_length=1,
        max_length=2_000,
        description="A question, in any words.",
    ),
]


class Match(View):
    """One match: an item of a document or a turn, with the days on which it was said and held."""

    source: Literal["item", "turn"]
    text: str
    reference: str
    at: date | None
    speaker: str
    subject: str | None
    since: date | None
    until: date | None
    score: float


class Matches(View):
    """The matches of a question, best first; `is_nothing_said` when nothing answers it.

    `is_complete` is false when only items were searched, as turns could not be looked up.
    """

    user: str
    is_nothing_said: bool
    is_complete: bool = True
    memories: tuple[Match, ...]


class Block(View):
    """Memories as a prompt quotes them; `text` is empty without any."""

    user: str
    text: str
    tokens: int


class Said(Form):
    """One turn of a chat; `at` is when it was said, now unless given. Its `turn_id` makes a repeat change nothing."""

    turn_id: Name
    text: Annotated[str, Field(min_length=1, max_length=LONGEST_TURN)]
    speaker: Literal["person", "assistant"] = "person"
    conversation_id: Annotated[str, Field(min_length=1, max_length=256)]
    at: SpelledTime | None = None

    @field_validator("at")
    @classmethod
    def _demand_past(cls, at: datetime | None) -> datetime | None:
        if at is not None and at > datetime.now(UTC) + timedelta(days=1):
            raise ValueError("lies in the future; send when it was said, with its zone")
        return at


class SaidTurns(Form):
    """Turns in the order in which they were said."""

    turns: Annotated[tuple[Said, ...], Field(min_length=1, max_length=MOST_TURNS)]


class NotKept(View):
    """A turn that no search finds, although it is learned from, and why."""

    turn_id: str
    why: str


class TurnsTaken(View):
    """How many turns were taken, which are learned from soon, and how many of them are kept to be searched.

    `not_kept` are the others.
    """

    user: str
    taken: int
    kept: int
    not_kept: tuple[NotKept, ...] = ()


def add_search(router: APIRouter, parts: ApiParts, reader: DocumentReader) -> None:
    """Add the route of the search to *router*."""
    episodes = Episodes(parts.redis, keep=parts.turns_kept)

    @router.get(
        "/{user}/search",
        operation_id="memory_search",
        summary="Find what was said and is remembered",
        responses=answers(),
    )
    async def search(
        user: ReadBy,
        question: Question,
        at: Annotated[
            date | None, Query(description="As it stood on that day.")
        ] = None,
        since: Annotated[
            date | None, Query(description="Said on that day or later.")
        ] = None,
        until: Annotated[
            date | None, Query(description="Said by the end of that day.")
        ] = None,
        speaker: Annotated[
            Literal["person", "assistant", "agent"] | None,
            Query(description="Who said it."),
        ] = None,
        conversation_id: Annotated[
            str | None, Query(max_length=256, description="Said in it.")
        ] = None,
        limit: Annotated[
            int, Query(ge=1, le=MAX_LIMIT, description="How much at most.")
        ] = 20,
    ) -> Matches:
        bodies = {
            name: one.body
            for name, one in (await reader.snapshot(user)).documents.items()
        }
        found = await search_memory(
            question,
            user_id=user,
            bodies=bodies,
            kinds=parts.kinds,
            episodes=episodes,
            now=datetime.now(UTC),
            at=at,
            limit=limit,
            within=Within(since, until, speaker, conversation_id),
        )
        return Matches(
            user=user,
            is_nothing_said=found.is_nothing_said,
            is_complete=found.is_complete,
            memories=tuple(map(Match.model_validate, found.memories)),
        )


def add_block(router: APIRouter, parts: ApiParts, reader: DocumentReader) -> None:
    """Add the route of the block to *router*."""
    episodes = Episodes(parts.redis, keep=parts.turns_kept)

    @router.get(
        "/{user}/block",
        operation_id="memory_block",
        summary="Read what is remembered, as a prompt quotes it",
        responses=answers(),
    )
    async def block(
        user: ReadBy,
        question: Annotated[
            str, Query(alias="q", max_length=2_000, description="What it is for.")
        ] = "",
        tokens: Annotated[
            int, Query(ge=0, le=100_000, description="For what answers that.")
        ] = BUDGET_TOKENS,
    ) -> Block:
        bodies = {
            name: one.body
            for name, one in (await reader.snapshot(user)).documents.items()
        }
        now = datetime.now(UTC)
        said: Sequence[Quotation] = ()
        try:
            found = await turns_for(question, user, episodes, now)
            said = () if found.is_nothing_said else tuple(map(quotation_of, found.hits))
            shown = render(
                bodies,
                parts.kinds,
                today=now.date(),
                query=question,
                budget_tokens=tokens,
                said=said,
            )
            places = [
                (name, place_name(path, lookup(bodies[name], path)))
                for name, path in shown.shown
            ]
            await reader.note_reads(user, places, now)
        except MemoryUnavailable as error:
            log.info("block_without_turns_or_note", error=str(error))
            shown = render(
                bodies,
                parts.kinds,
                today=now.date(),
                query=question,
                budget_tokens=tokens,
                said=said,
            )
        return Block(user=user, text=shown.text, tokens=shown.tokens)


def add_turns(router: APIRouter, parts: ApiParts) -> None:
    """Add the route that takes turns to *router*; it answers once all of them are stored."""
    episodes = Episodes(parts.redis, keep=parts.turns_kept)

    @router.post(
        "/{user}/turns",
        status_code=202,
        operation_id="memory_tell",
        summary="Hand in what was said elsewhere",
        responses=answers(),
    )
    async def turns(user: AskedBy, body: SaidTurns, caller: By) -> TurnsTaken:
        now = datetime.now(UTC)
        size = sum(len(one.text.encode()) for one in body.turns)
        said = Holding("turns", size, number=len(body.turns))
        await parts.dispatch.bounds.demand(caller, user, said)
        ends = time.monotonic() + WITHIN_S
        for taken, one in enumerate(body.turns):
            turn = ChatTurn(
                turn_id=one.turn_id,
                # Beside the conversations that are held here: the words of one of those are not shown with these.
                conversation_id=f"in-{digest_of(user, one.conversation_id)}",
                user_id=user,
                speaker=one.speaker,
                text=one.text,
                at=one.at or now,
                tenant=caller.tenant,
            )
            left_s = ends - time.monotonic()
            if left_s <= 0:
                stored = (
                    f"{taken} of {len(body.turns)} turns were stored in {WITHIN_S:g} s"
                )
                raise unavailable(
                    f"{stored}; send all of them again, none counts twice"
                )
            await parts.dispatch.hand_in(turn, patience_s=min(10.0, left_s))
        not_kept = await _find_not_kept(episodes, user, body.turns, now)
        taken = len(body.turns)
        return TurnsTaken(
            user=user, taken=taken, kept=taken - len(not_kept), not_kept=not_kept
        )


async def _find_not_kept(
    episodes: Episodes, user: str, turns: Sequence[Said], now: datetime
) -> tuple[NotKept, ...]:
    """Return those of *turns* that no search will find, each with the reason.

    Raises:
        MemoryUnavailable: the store does not answer; handing them in again changes nothing.
    """
    keep = await episodes.keep_of(user)

    def find_reason(turn: Said) -> str:
        if not turn.text.strip():
            return "it has no words"
        if keep == timedelta(0):
            return "turns of this user are not kept"
        if keep is not None and turn.at is not None and turn.at < now - keep:
            return f"it was said more than {keep.days} days ago, which is how long turns are kept"
        return ""

    reasons = ((turn.turn_id, find_reason(turn)) for turn in turns)
    return tuple(NotKept(turn_id=turn_id, why=why) for turn_id, why in reasons if why)
