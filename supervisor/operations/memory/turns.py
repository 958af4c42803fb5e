"""A turn about oneself: its outcome, its facts, and the rows that wait."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import quote

from pydantic import ConfigDict, Field, ValidationError, field_validator

from tasklore.contracts.callers import Caller
from tasklore.contracts.identifiers import NAME_PATTERN, new_id
from tasklore.contracts.messages import ChatTurn, ExtractedFacts, Fact
from tasklore.memory.documents.storage.history import PlanRecord
from tasklore.memory.holdings.store import Holding
from tasklore.memory.ledger.requests import RequestRecord, place_of
from tasklore.memory.queues.claims import KnownRow
from tasklore.memory.queues.waiting_rows import count_waiting, rows_waiting
from tasklore.supervisor.operations.forms import SPAN, Form, View, digest_of
from tasklore.supervisor.operations.idempotency import IdempotencyKey, demand_same
from tasklore.supervisor.operations.memory.plans import PlanView, view_plan
from tasklore.supervisor.operations.memory.services import (
    MemoryLooks,
    Owner,
    OwnerScope,
    TurnServices,
    demand_owner,
)
from tasklore.supervisor.operations.refusals import Fault, unusable
from tasklore.supervisor.operations.table import (
    Operations,
    Shows,
    Unfinished,
    operation,
)

#: Seconds between the first two looks at the outcome: below what a person notices. Each pause is half as long again as
#: the one before, up to a point where a busy system is not kept busy by us.
_LOOK_S = 0.05
_LONGEST_LOOK_S = 0.5
#: The word with which the host of the switchboard closes a turn that led to facts.
_LEARNED = "learned"
#: Rows of a table that are looked through for those of one turn.
_ROWS = 1_000
#: Rows of a table that are looked through for the end of a page: some 50 ms of the server.
_MOST_ROWS = 5_000
#: States in which a fact stays until somebody else does something.
_SETTLED = frozenset({"done", "failed", "rejected", "conflict", "needs_model"})
#: Characters of one turn, as of a request.
_LONGEST = 20_000


class Telling(Form):
    """Words of a person, as they said them; `wait_seconds` is how long the answer may take."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=_LONGEST,
            description="What the person said, in their own words.",
            json_schema_extra={"x-cli": {"kind": "words"}},
        ),
    ]
    conversation: Annotated[
        str | None,
        Field(
            min_length=1, max_length=256, description="The conversation it was said in."
        ),
    ] = None
    wait_seconds: Annotated[
        float, Field(ge=0, le=300, description="How long to wait for the answer."), SPAN
    ] = 15.0

    @field_validator("text", "conversation")
    @classmethod
    def _demand_words(cls, text: str | None) -> str | None:
        if text is not None and not text.strip():
            raise ValueError("must not be only blanks")
        return text


class FoundFact(View):
    """A fact that was found in a turn, and how it stands; `fact` is null where it cannot be read."""

    fact_id: str
    turn_id: str | None
    text: str
    fact: Fact | None
    state: str
    attempts: int
    reason: str
    plan_id: str | None
    at: datetime


class FactPage(View):
    """Facts: those that wait, those that wait for a model, then the last that were done.

    `after` leads to the next page, null at the end. `waiting` and `parked` count all that wait, and
    `closed` all that were decided, by outcome.
    """

    user: str
    facts: tuple[FoundFact, ...]
    after: str | None
    waiting: int
    parked: int
    closed: dict[str, int]


class TurnOutcome(View):
    """The outcome of a turn: its state, null while no worker has read it, its facts and the plans they led to.

    `settled` says that it changes no more by itself.
    """

    user: str
    turn_id: str
    state: str | None
    settled: bool
    reason: str
    facts: tuple[FoundFact, ...]
    plans: tuple[PlanView, ...]


class Waiting(View):
    """A turn or a fact that is not learned yet, or could not be, with the reason and the fix."""

    kind: Literal["turn", "fact"]
    row_id: str
    state: str
    reason: str
    cure: str
    attempts: int


class WaitingRows(View):
    """The waiting rows of one memory, turns first; `total` counts those, too, that are not listed."""

    user: str
    rows: tuple[Waiting, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The state of a turn, None while no worker has read it, with the reason, its facts and the plans they led to."""

    state: str | None = None
    facts: Sequence[KnownRow] = ()
    plans: Sequence[PlanRecord] = ()
    reason: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether it changes no more by itself."""
        return self.state in _SETTLED and all(
            fact.state in _SETTLED for fact in self.facts
        )


@operation(
    "memory",
    "tell",
    "POST /v1/memory/{user}/tell",
    roles=("ask",),
    mounted="operations",
    problems=(409,),
    waits=True,
    shows=Shows(
        arguments=("text",),
        picture="memory_turn",
        example='memory tell ana "I like omelettes, but no eggs on Friday"',
    ),
)
async def tell_turn(
    services: TurnServices,
    caller: Caller,
    user: Owner,
    telling: Telling,
    *,
    idempotency_key: IdempotencyKey = None,
) -> TurnOutcome | Unfinished[TurnOutcome]:
    """Say something as in a chat, and see the edits that follow.

    A turn that is not processed within the wait is kept and processed later.

    Raises:
        OwnerFull: the caller keeps too much; nothing was kept.
        Refused: 409, the key was used for something else.
        MemoryUnavailable: the store did not answer in time.
    """
    owner = demand_owner(caller, user, "user")
    words = telling.text.strip()
    earlier = None
    if idempotency_key is not None:
        place = place_of(caller.space, "turn", f"{owner} {idempotency_key}")
        earlier = (await services.records.find(place)).record
    if earlier is None:
        await services.dispatch.bounds.demand(
            caller, owner, Holding("turns", len(words.encode()))
        )
    now_ms = time.time_ns() // 1_000_000
    turn_id = new_id(now_ms)
    if idempotency_key is not None:
        record = RequestRecord(
            digest=digest_of({"text": words, "conversation": telling.conversation}),
            task_id=turn_id,
            at_ms=now_ms,
            conversation_id=telling.conversation,
            tenant=caller.tenant,
        )
        earlier = await services.records.claim(place, record)
        demand_same(earlier, record, idempotency_key)
        turn_id = turn_id if earlier is None else earlier.task_id
    # A repeat goes in again, which changes nothing: the first one may have been cut off before.
    turn = ChatTurn(
        turn_id=turn_id,
        conversation_id=telling.conversation or f"tell-{turn_id}",
        user_id=owner,
        speaker="person",
        text=words,
        at=datetime.now(UTC),
        tenant=caller.tenant,
    )
    await services.dispatch.hand_in(turn)
    ends = time.monotonic() + telling.wait_seconds
    pause_s = _LOOK_S
    while not (seen := await _look(services, owner, turn_id)).is_settled:
        left_s = ends - time.monotonic()
        if left_s <= 0:
            break
        await asyncio.sleep(min(pause_s, left_s))
        pause_s = min(_LONGEST_LOOK_S, 1.5 * pause_s)
    return _view_outcome(owner, turn_id, seen)


@operation(
    "memory",
    "turn",
    "GET /v1/memory/{user}/turns/{turn_id}",
    roles=("read", "ask"),
    mounted="operations",
    shows=Shows(
        picture="memory_turn", example="memory turn ana 0192d4b2-5f7c-7000-8000-0d0e"
    ),
)
async def see_turn(
    services: MemoryLooks,
    caller: Caller,
    user: Owner,
    turn_id: Annotated[
        str, Field(pattern=NAME_PATTERN, description="A turn, as `tell` names it.")
    ],
) -> TurnOutcome | Unfinished[TurnOutcome]:
    """Show the outcome of a turn; it has no state until a worker has read it."""
    owner = demand_owner(caller, user, "user")
    return _view_outcome(owner, turn_id, await _look(services, owner, turn_id))


@operation(
    "memory",
    "facts",
    "GET /v1/memory/{user}/facts",
    roles=("read",),
    mounted="operations",
    shows=Shows(
        rows="facts",
        columns=("text", "state", "at", "attempts", "reason"),
        example="memory facts ana",
    ),
)
async def list_facts(
    services: MemoryLooks,
    caller: Caller,
    user: Owner,
    *,
    scope: OwnerScope = "user",
    after: Annotated[
        str,
        Field(
            max_length=256,
            description="Pagination cursor: the `after` of the previous page.",
        ),
    ] = "",
    limit: Annotated[int, Field(ge=1, le=200, description="Maximum number.")] = 20,
) -> FactPage:
    """List the facts found in the words of a person.

    Ordered by state: waiting, waiting for a model, then the last ones that were done.
    """
    owner = demand_owner(caller, user, scope)
    rows = await services.facts.rows(owner, _MOST_ROWS if after else limit + 1)
    begin = _place_behind(rows, after)
    counts = await services.facts.counts(owner)
    shown = rows[begin : begin + limit]
    return FactPage(
        user=owner,
        facts=tuple(map(_view_fact, shown)),
        after=shown[-1].row_id if len(rows) > begin + limit else None,
        waiting=counts.waiting,
        parked=counts.parked,
        closed=dict(counts.closed),
    )


@operation(
    "memory",
    "waiting",
    "GET /v1/memory/{user}/waiting",
    roles=("read",),
    shows=Shows(
        rows="rows",
        columns=("kind", "row_id", "state", "reason", "cure"),
        example="memory waiting ana",
    ),
)
async def list_waiting(
    services: MemoryLooks, caller: Caller, user: Owner, *, scope: OwnerScope = "user"
) -> WaitingRows:
    """List turns and facts that are not learned yet, and why."""
    owner = demand_owner(caller, user, scope)
    found = await rows_waiting(owner, services.turns, services.facts)
    total = await count_waiting(owner, services.turns, services.facts)
    rows = tuple(map(Waiting.model_validate, found))
    return WaitingRows(user=owner, rows=rows, total=max(total, len(rows)))


OPERATOR_OPERATIONS: Operations[MemoryLooks] = (list_waiting,)
#: Those that read rows which are closed: supervisors may not.
OPERATORS: Operations[TurnServices] = (tell_turn, see_turn, list_facts)


def _place_behind(rows: Sequence[KnownRow], after: str) -> int:
    """Return the place in *rows* behind the one called *after*, "" for the beginning.

    Raises:
        Refused: 422, there is none so called any more.
    """
    if not after:
        return 0
    for place, row in enumerate(rows, start=1):
        if row.row_id == after:
            return place
    complaint = "that fact no longer exists; start again at the first page"
    raise unusable([Fault(where="after", message=complaint)])


async def _look(services: MemoryLooks, owner: str, turn_id: str) -> _Seen:
    """Return how the turn *turn_id* of *owner* stands."""
    rows = await services.turns.rows(owner, _ROWS)
    turn = next((row for row in rows if row.row_id == turn_id), None)
    if turn is None:
        return _Seen()
    found = [(row, _read_fact(row)) for row in await services.facts.rows(owner, _ROWS)]
    facts = sorted(
        (row for row, fact in found if fact is not None and fact[0] == turn_id),
        key=lambda row: row.row_id,
    )
    wanted = {row.plan_id for row in facts if row.plan_id}
    history = await services.reader.history(owner, limit=_ROWS) if wanted else ()
    # The turn is closed once its facts are published; all of them arrive in the table together, a moment later.
    has_learned = turn.reason == _LEARNED or (
        turn.note is not None and b'"fact_id"' in turn.note
    )
    is_on_its_way = has_learned and not facts
    return _Seen(
        state="waiting" if is_on_its_way else turn.state,
        facts=facts,
        plans=[one for one in history if one.plan_id in wanted],
        reason=turn.reason,
    )


def _view_outcome(
    owner: str, turn_id: str, seen: _Seen
) -> TurnOutcome | Unfinished[TurnOutcome]:
    view = TurnOutcome(
        user=owner,
        turn_id=turn_id,
        state=seen.state,
        settled=seen.is_settled,
        reason=seen.reason,
        facts=tuple(map(_view_fact, seen.facts)),
        plans=tuple(map(view_plan, seen.plans)),
    )
    if seen.is_settled:
        return view
    return Unfinished(
        view=view, location=f"/v1/memory/{quote(owner, safe='')}/turns/{turn_id}"
    )


def _read_fact(row: KnownRow) -> tuple[str, Fact] | None:
    """Return the turn and the fact that *row* holds, None when it cannot be read."""
    try:
        extracted = ExtractedFacts.model_validate_json(row.body)
    except ValidationError:
        return None
    return (extracted.turn_id, extracted.facts[0]) if extracted.facts else None


def _view_fact(row: KnownRow) -> FoundFact:
    found = _read_fact(row)
    told: dict[str, Any] = {
        "turn_id": None if found is None else found[0],
        "text": "(unreadable)" if found is None else found[1].text,
        "fact": None if found is None else found[1],
    }
    return FoundFact(
        **told,
        fact_id=row.row_id,
        state=row.state,
        attempts=row.attempts,
        reason=row.reason,
        plan_id=row.plan_id,
        at=datetime.fromtimestamp(row.at_ms / 1000, UTC),
    )
