"""Requests in plain words: ask, look at one, cancel it."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from tasklore.contracts.callers import Caller
from tasklore.contracts.identifiers import NAME_PATTERN, new_id
from tasklore.contracts.messages import PersonRequest
from tasklore.contracts.zones import TimeZone
from tasklore.memory.ledger.requests import RequestRecord, place_of
from tasklore.supervisor.operations.dependencies import SupervisorDependencies
from tasklore.supervisor.operations.forms import SPAN, Cancelled, Later, digest_of
from tasklore.supervisor.operations.idempotency import (
    IdempotencyKey,
    claim_record,
    demand_kept,
    is_known,
)
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.owners import (
    demand_conversation,
    own_conversation,
    task_place,
)
from tasklore.supervisor.operations.refusals import not_found, unavailable
from tasklore.supervisor.operations.starts import demand_reachable
from tasklore.supervisor.operations.table import Shows, Unfinished, operation
from tasklore.supervisor.requests.outcome import (
    Lookup,
    RequestPlace,
    begin,
    forget_unstarted,
    read_outcome,
    wait_for,
)
from tasklore.supervisor.requests.outcome_parts import cancel_request
from tasklore.supervisor.requests.services import RequestServices
from tasklore.supervisor.requests.work import HOLD_MS, is_unstarted

#: Milliseconds that a request is waited for in the process that took it; after that the ledger knows its end.
_WAIT_MS = 600_000
#: Seconds within which the words of a request are kept, also where a model reads them.
_KEPT_S = 1.0
#: What of a request its digest leaves out: a repeat may say it otherwise.
_NOT_DIGESTED = {"caller", "not_before", "unserved_at_once"}

RequestId = Annotated[
    str,
    Field(pattern=NAME_PATTERN, description="Request id: its Idempotency-Key."),
]
#: The id of a request is the key under which it may come again.
ChosenId = Annotated[
    IdempotencyKey,
    Field(json_schema_extra={"x-cli": {"option": "--request-id", "metavar": "ID"}}),
]


class Ask(Later):
    """A person's question or request, in plain language; `wait_seconds` 0 does not wait for the answer.

    `time_zone`, by IANA's name, is the time zone of the person, in which "tomorrow" and
    `at` are read; default: UTC.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=20_000,
            description="The question or request, in plain language.",
            json_schema_extra={"x-cli": {"kind": "words"}},
        ),
    ]
    user: Annotated[
        str | None,
        Field(min_length=1, max_length=256, description="Ask as this user."),
    ] = None
    conversation: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=256,
            description="Continue this conversation, or begin it.",
        ),
    ] = None
    memory: Annotated[
        Literal["use", "refresh", "bypass"],
        Field(
            description="Result cache: use = read and write, refresh = recompute and "
            "overwrite, bypass = ignore."
        ),
    ] = "use"
    wait_seconds: Annotated[
        float,
        Field(
            ge=0,
            le=600,
            description="How long to wait for the answer.",
            json_schema_extra={"x-cli": {"option": "--wait", "metavar": "SPAN"}},
        ),
        SPAN,
    ] = 30.0
    time_zone: Annotated[
        TimeZone | None,
        Field(description="Time zone of the person, such as Europe/Berlin."),
    ] = None
    pending_reply: Annotated[
        bool,
        Field(
            description="If it is not done by then, `reply` has the kind `pending` and "
            "says why; it comes early if no worker of the agent is alive."
        ),
    ] = False

    @property
    def hears_pending(self) -> bool:
        """Whether the answer says why it is not done: what begins later never is."""
        return self.pending_reply or self.at is not None or self.after is not None


@operation(
    "requests",
    "ask",
    "POST /v1/requests",
    roles=("ask",),
    problems=(409,),
    waits=True,
    shows=Shows(
        arguments=("text",),
        shortcut="ask",
        picture="ask",
        example='requests ask "Check my budget: limit 50k, spent 42,000"\n'
        'requests ask --conversation trip "the same with 45k spent"\n'
        'requests ask --after 2h "Check my budget: limit 50k, spent 42,000"',
    ),
)
async def ask(
    services: RequestServices,
    caller: Caller,
    new: Ask,
    *,
    idempotency_key: ChosenId = None,
) -> Lookup | Unfinished[Lookup]:
    """Ask a question, or request a task, in plain language."""
    place, record = await accept(services, caller, new, idempotency_key)

    async def keep() -> None:
        hold_ms = HOLD_MS if services.work.find(place.key) is not None else 0
        await demand_kept(services.records, place.key, record, hold_ms)
        if caller.user is not None:
            own = task_place(caller, record.task_id)
            await demand_kept(services.records, own, record)

    asked = await wait_for(
        services,
        place,
        new.wait_seconds,
        text=new.text,
        keep=keep,
        hears_pending=new.hears_pending,
    )
    if asked.state == "done":
        if asked.reply is not None and is_unstarted(asked.reply):
            raise unavailable(asked.reply.text)
        return asked
    return Unfinished(view=asked, location=f"/v1/requests/{place.request_id}")


@operation(
    "requests",
    "show",
    "GET /v1/requests/{request_id}",
    roles=("ask",),
    problems=(404,),
    shows=Shows(example="requests show trip-1"),
)
async def show_request(
    services: RequestServices, caller: Caller, request_id: RequestId
) -> Lookup:
    """Show the status and the answer of a request."""
    if caller.own_tenant is not None:
        await demand_request(services, caller, request_id)
    return await read_outcome(services, request_place(caller, request_id))


@operation(
    "requests",
    "cancel",
    "DELETE /v1/requests/{request_id}",
    roles=("ask",),
    problems=(404,),
    shows=Shows(example="requests cancel trip-1"),
)
async def cancel_asked(
    services: RequestServices, caller: Caller, request_id: RequestId
) -> Cancelled:
    """Cancel a request."""
    record = await demand_request(services, caller, request_id)
    return await cancel_request(
        services.canceller,
        services.ledger,
        record.task_id,
        f"cancelled by {caller.name}",
    )


OPERATIONS = (ask, show_request, cancel_asked)


async def accept(
    services: RequestServices, caller: Caller, new: Ask, chosen: str | None
) -> tuple[RequestPlace, RequestRecord]:
    """Begin the request in *new*, once for an id that was *chosen*, and return its place and the record of it.

    Raises:
        OwnerFull: the caller keeps too much; nothing was kept.
        Refused: 403, it is another user's; 409, another body came under that id; 422, it cannot begin then.
    """
    user_id = caller.demand_user(new.user)
    request_id = chosen or new_id(time.time_ns() // 1_000_000)
    conversation_id = new.conversation or own_conversation(caller, request_id)
    await demand_conversation(services.conversations, caller, new.conversation)
    place = request_place(caller, request_id)
    is_repeat = chosen is not None and await is_known(services.records, place.key)
    request = PersonRequest(
        text=new.text,
        request_id=request_id,
        conversation_id=conversation_id,
        user_id=user_id,
        caller=caller,
        memory=new.memory,
        wait_ms=_WAIT_MS,
        time_zone=new.time_zone,
    )
    digest = digest_of(request.model_dump(mode="json", exclude=_NOT_DIGESTED))
    now = datetime.now(UTC)
    starts_at = new.find_start(now, new.time_zone or "UTC", may_have_passed=is_repeat)
    demand_reachable(starts_at, now)
    if new.hears_pending:
        request = request.model_copy(
            update={
                "not_before": starts_at,
                "unserved_at_once": True,
                "wait_ms": int(new.wait_seconds * 1000),
            }
        )
    record = RequestRecord(
        digest=digest,
        task_id=services.service.task_id_of(request),
        at_ms=time.time_ns() // 1_000_000,
        conversation_id=conversation_id,
        memory=new.memory,
        time_zone=new.time_zone,
        not_before=starts_at,
        tenant=caller.tenant,
        sender=caller.model_copy(update={"user": None}),
    )
    if not is_repeat:
        # A repeat takes no room.
        await services.dispatch.bounds.demand_words(request)
    # With an id and a conversation of its own, both made here, it is kept and held at once: no other process knows it.
    is_fresh = chosen is None and new.conversation is None
    if is_fresh and caller.user is None and new.wait_seconds >= _KEPT_S:
        # Nor does its sender for a while, so that the store takes the record together with the words.
        claim = services.records.claiming(place.key, record, HOLD_MS)
        await begin(services, place, request, is_new=True, claim=claim)
    else:
        # A client that leaves between the record and the beginning would leave a record of nothing.
        await asyncio.shield(
            _claim(services, place, request, record, chosen=chosen, new=new)
        )
    return place, record


async def _claim(
    services: RequestServices,
    place: RequestPlace,
    request: PersonRequest,
    record: RequestRecord,
    *,
    chosen: str | None,
    new: Ask,
) -> None:
    """Keep *record* and begin *request*; a repeat is begun unless it is under way, or has ended."""
    caller = place.caller
    is_fresh = chosen is None and new.conversation is None
    if await claim_record(
        services.records,
        place.key,
        record,
        chosen,
        hold_ms=HOLD_MS if is_fresh else 0,
    ):
        if caller.user is not None:
            # Its task is looked for under its own id, too.
            own = task_place(caller, record.task_id)
            await claim_record(services.records, own, record, None)
        await begin(services, place, request, is_new=is_fresh)
        return
    asked = await read_outcome(services, place, new.text)
    may_begin_again = (
        asked.reply is not None
        and is_unstarted(asked.reply)
        and await forget_unstarted(services, place)
    )
    # What said that it is pending is followed by nobody: its answer is not in the conversation yet.
    is_to_be_heard = new.hears_pending and asked.state == "running"
    if may_begin_again or is_to_be_heard or asked.state == "accepted":
        await begin(services, place, request)


async def demand_request(
    services: RequestServices, caller: Caller, request_id: str
) -> RequestRecord:
    """Return the record of a request that *caller* sent.

    Raises:
        Refused: 404, there is none.
        MemoryUnavailable: the store does not answer.
    """
    place = request_place(caller, request_id)
    record = (await services.records.find(place.key)).record
    if record is None or not await _is_of_tenant(services, caller, record):
        raise not_found(
            f"there is no request {request_id!r}, or it is more than a day old"
        )
    return record


async def _is_of_tenant(
    services: RequestServices, caller: Caller, record: RequestRecord
) -> bool:
    """Return whether the request of *record* is one of the tenant of *caller*."""
    if caller.own_tenant is None:
        return True
    tenant = record.tenant
    if tenant is None:
        # As 0.2 kept it: its task says whose it is.
        entry = await services.ledger.read(await services.ledger.name(record.task_id))
        tenant = None if entry is None else await services.ledger.tenant_of(entry)
    return caller.may_see(caller.user, tenant)


def request_place(caller: Caller, request_id: str) -> RequestPlace:
    """Return the place of the request that *caller* named *request_id*."""
    return RequestPlace(
        place_of(caller.space, "request", request_id), request_id, caller
    )


def for_supervisor(parts: SupervisorDependencies) -> RequestServices:
    """Return the services of operations of requests."""
    return parts.for_requests


NOUN = NounDeclaration(
    operations=OPERATIONS, supervisor=serve(for_supervisor, OPERATIONS)
)
