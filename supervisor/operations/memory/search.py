"""Memories found by a question or as a prompt quotes them, and turns handed in from elsewhere."""

import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Literal

import structlog
from pydantic import Field, field_validator

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.identifiers import Name
from tasklore.contracts.messages import ChatTurn
from tasklore.memory.documents.paths import lookup, place_name
from tasklore.memory.episodes.recall import quotations_of
from tasklore.memory.episodes.store import Episodes
from tasklore.memory.holdings.store import Holding
from tasklore.memory.recall import MAX_LIMIT, Within, search_memory, turns_for
from tasklore.memory.rendering.documents import BUDGET_TOKENS, Quotation, render
from tasklore.supervisor.operations.forms import Form, SpelledTime, View
from tasklore.supervisor.operations.memory.services import (
    MemoryLooks,
    MemoryServices,
    Owner,
    OwnerScope,
    demand_owner,
    read_documents,
)
from tasklore.supervisor.operations.refusals import unavailable
from tasklore.supervisor.operations.table import Operations, Shows, operation
from tasklore.supervisor.requests.request import digest_of

log = structlog.get_logger(__name__)

#: Turns of one request, and characters of each.
MOST_TURNS = 100
LONGEST_TURN = 20_000
#: Seconds that storing all turns of one request may take.
WITHIN_S = 20.0

Question = Annotated[
    str,
    Field(
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

    turns: Annotated[
        tuple[Said, ...],
        Field(
            min_length=1,
            max_length=MOST_TURNS,
            description="Each with `turn_id`, `text`, `conversation_id`, `speaker` and `at`.",
        ),
    ]


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


@operation(
    "memory",
    "search",
    "GET /v1/memory/{user}/search",
    roles=("read",),
    shows=Shows(
        arguments=("q",),
        picture="memory_matches",
        example='memory search ana "when did I move?"',
    ),
)
async def search_turns(
    services: MemoryLooks,
    caller: Caller,
    user: Owner,
    *,
    question: Question,
    scope: OwnerScope = "user",
    at: Annotated[
        date | None, Field(description="As of that day, such as 2026-05-01.")
    ] = None,
    since: Annotated[
        date | None, Field(description="Said on that day or later.")
    ] = None,
    until: Annotated[
        date | None, Field(description="Said by the end of that day.")
    ] = None,
    speaker: Annotated[
        Literal["person", "assistant", "agent"] | None,
        Field(description="Who said it."),
    ] = None,
    conversation_id: Annotated[
        str | None,
        Field(
            max_length=256,
            description="Said in it.",
            json_schema_extra={"x-cli": {"option": "--conversation"}},
        ),
    ] = None,
    limit: Annotated[
        int, Field(ge=1, le=MAX_LIMIT, description="Maximum number of results.")
    ] = 20,
) -> Matches:
    """Search turns and items, with the day and the speaker of each."""
    owner = demand_owner(caller, user, scope)
    found = await search_memory(
        question,
        user_id=owner,
        bodies={
            name: one.body
            for name, one in (await read_documents(services, owner)).items()
        },
        kinds=services.kinds,
        episodes=services.episodes,
        now=datetime.now(UTC),
        at=at,
        limit=limit,
        within=Within(since, until, speaker, conversation_id),
    )
    return Matches(
        user=owner,
        is_nothing_said=found.is_nothing_said,
        is_complete=found.is_complete,
        memories=tuple(map(Match.model_validate, found.memories)),
    )


@operation(
    "memory",
    "block",
    "GET /v1/memory/{user}/block",
    roles=("read",),
    shows=Shows(arguments=("q",), example='memory block ana "what may I eat?"'),
)
async def quote_memory(
    services: MemoryLooks,
    caller: Caller,
    user: Owner,
    *,
    scope: OwnerScope = "user",
    question: Annotated[
        str,
        Field(
            alias="q",
            max_length=2_000,
            description="The query that the entries are selected for.",
        ),
    ] = "",
    tokens: Annotated[
        int,
        Field(
            ge=0,
            le=100_000,
            description="Token budget for entries relevant to the query.",
        ),
    ] = BUDGET_TOKENS,
) -> Block:
    """Read a memory as a prompt quotes it."""
    owner = demand_owner(caller, user, scope)
    documents = await read_documents(services, owner)
    bodies = {name: one.body for name, one in documents.items()}
    now = datetime.now(UTC)
    said: Sequence[Quotation] = ()
    try:
        found = await turns_for(question, owner, services.episodes, now)
        said = quotations_of(found)
        shown = render(
            bodies,
            services.kinds,
            today=now.date(),
            query=question,
            budget_tokens=tokens,
            said=said,
        )
        places = [
            (name, place_name(path, lookup(bodies[name], path)))
            for name, path in shown.shown
        ]
        await services.reader.note_reads(owner, places, now)
    except MemoryUnavailable as error:
        log.info("block_without_turns_or_note", error=str(error))
        shown = render(
            bodies,
            services.kinds,
            today=now.date(),
            query=question,
            budget_tokens=tokens,
            said=said,
        )
    return Block(user=owner, text=shown.text, tokens=shown.tokens)


@operation(
    "memory",
    "hand-in",
    "POST /v1/memory/{user}/turns",
    roles=("ask",),
    status=202,
    shows=Shows(example="memory hand-in ana --turns @turns.json"),
)
async def hand_in_turns(
    services: MemoryServices,
    caller: Caller,
    user: Owner,
    said: SaidTurns,
    *,
    scope: OwnerScope = "user",
) -> TurnsTaken:
    """Store turns of other chats; answers once all of them are stored."""
    owner = demand_owner(caller, user, scope)
    now = datetime.now(UTC)
    count = len(said.turns)
    size = sum(len(one.text.encode()) for one in said.turns)
    await services.dispatch.bounds.demand(
        caller, owner, Holding("turns", size, number=count)
    )
    ends = time.monotonic() + WITHIN_S
    for taken, one in enumerate(said.turns):
        turn = ChatTurn(
            turn_id=one.turn_id,
            # Beside the conversations that are held here: the words of one of those are not shown with these.
            conversation_id=f"in-{digest_of(owner, one.conversation_id)}",
            user_id=owner,
            speaker=one.speaker,
            text=one.text,
            at=one.at or now,
            tenant=caller.tenant,
        )
        left_s = ends - time.monotonic()
        if left_s <= 0:
            stored = f"{taken} of {count} turns were stored in {WITHIN_S:g} s"
            raise unavailable(f"{stored}; send all of them again, none counts twice")
        await services.dispatch.hand_in(turn, patience_s=min(10.0, left_s))
    not_kept = await _find_not_kept(services.episodes, owner, said.turns, now)
    return TurnsTaken(
        user=owner, taken=count, kept=count - len(not_kept), not_kept=not_kept
    )


OPERATOR_OPERATIONS: Operations[MemoryLooks] = (search_turns, quote_memory)
CHANGES: Operations[MemoryServices] = (hand_in_turns,)


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
