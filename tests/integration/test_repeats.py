"""A repeated request is answered as it was read the first time, over kills and outages of the store."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.identifiers import new_id
from tasklore.contracts.messages import (
    ChatTurn,
    CompletionReport,
    MemoryNote,
    PersonReply,
    PersonRequest,
    TaskAssignment,
    TaskCall,
)
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.requests import RequestRecords
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.requests.readings import (
    LOOK_BACK,
    HeardTurn,
    make_reading,
    parse_turn,
)
from tasklore.supervisor.requests.work import InFlightRequests
from tasklore.supervisor.service import Service
from tasklore.supervisor.understanding import (
    Interpretation,
    Interpreter,
    RuleInterpreter,
    Understood,
)
from tasklore.supervisor.understanding.outcome import Several
from tests.http_client import ask as over_http
from tests.integration.http_stand import http_stand
from tests.integration.test_hostile_dispatch import SUPERVISOR, Stand, standing
from tests.servers import PATIENCE_S
from tests.understanding_cases import BUDGET, TRIP

ONE = Understood(
    agent_id="BudgetTrackerAgent",
    task=TaskCall(name="analyze_budget", parameters={"budget_limit": 50, "spent": 42}),
)
OTHER = Understood(
    agent_id="BudgetTrackerAgent",
    task=TaskCall(name="analyze_budget", parameters={"budget_limit": 9, "spent": 7}),
)
TRIPS = Understood(
    agent_id="TripAgent",
    task=TaskCall(name="share_trip", parameters={"hotel": 5, "travellers": 2}),
)
BOTH = Catalogue([BUDGET, TRIP])
TWO = Several((OTHER, TRIPS))


@dataclass
class Fickle:
    """An interpreter that reads the same words otherwise each time, as a model may."""

    readings: list[Interpretation]
    asked: int = 0

    async def interpret(self, text: str, **_said: object) -> Interpretation:
        self.asked += 1
        return self.readings.pop(0)


@dataclass
class Desk:
    """A supervisor that can be killed and started anew on the same servers."""

    stand: Stand
    redis: Redis
    conversation_id: str = field(default_factory=lambda: new_id(0))

    def service(
        self,
        interpreter: Interpreter,
        catalogue: Catalogue = BOTH,
        conversations: "Conversations | None" = None,
    ) -> Service:
        return Service(
            SUPERVISOR,
            catalogue=lambda: catalogue,
            interpreter=interpreter,
            dispatch=self.stand.dispatch,
            reports=self.stand.reports,
            conversations=conversations
            or Conversations(self.redis, deadline_s=PATIENCE_S),
            publish=lambda _subject, _body, _message_id: None,
        )

    def request(self, text: str = "hm", **fields: Any) -> PersonRequest:
        said = {
            "text": text,
            "conversation_id": self.conversation_id,
            "wait_ms": 0,
        } | fields
        return PersonRequest.model_validate(said)

    async def answer(self, turn_id: str, found: Understood) -> None:
        turn = ChatTurn(
            turn_id=turn_id,
            conversation_id=self.conversation_id,
            speaker="assistant",
            text="Found.",
            at=datetime.now(UTC),
            agent_id=found.agent_id,
            task=found.task,
        )
        await Conversations(self.redis, deadline_s=PATIENCE_S).append(
            self.conversation_id, turn.model_dump_json().encode(), turn_id
        )

    async def kill(
        self, service: Service, request: PersonRequest, tasks: int = 1
    ) -> list[TaskAssignment]:
        """Let *service* die when it has handed over *tasks* tasks, and return these."""
        handed: asyncio.Queue[TaskAssignment] = asyncio.Queue()
        dying = asyncio.create_task(
            service.answer(
                request.model_copy(update={"wait_ms": 60_000}), routed=handed.put_nowait
            )
        )
        seen = [await handed.get() for _ in range(tasks)]
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        return seen

    async def report(self, assignment: TaskAssignment) -> None:
        found = CompletionReport(
            task_id=assignment.task_id,
            agent_id=assignment.agent_id,
            supervisor_id=assignment.supervisor_id,
            task_name=assignment.task.name,
            status="completed",
            result={"remaining": 8},
            memory=MemoryNote(outcome="miss"),
            worker_id="w",
            finished_at=datetime.now(UTC),
        )
        body = found.model_dump_json().encode()
        await Ledger(self.redis, deadline_s=PATIENCE_S).finish(
            assignment.task_id, 1, "completed", body
        )


@pytest.fixture
async def desk(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Desk]:
    async with standing(servers, redis) as stand:
        yield Desk(stand, redis)


def tasks_of(reply: PersonReply) -> list[TaskCall | None]:
    """Return the tasks in *reply*."""
    return [part.task for part in reply.parts] or [reply.task]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (ONE, TWO),
        (TWO, ONE),
        (ONE, RuleInterpreter().understand("hm", catalogue=Catalogue())),
    ],
    ids=["two tasks", "one task", "none"],
)
async def test_a_repeat_is_answered_by_the_tasks_of_the_first_reading(
    desk: Desk, first: Interpretation, then: Interpretation
) -> None:
    expected = list(first.parts) if isinstance(first, Several) else [first]
    before = await desk.stand.last()
    request = desk.request(request_id=new_id(0))
    fickle = Fickle([first, then])
    handed = await desk.kill(desk.service(fickle), request, len(expected))
    for assignment in handed:
        await desk.report(assignment)
    reply = await desk.service(fickle).answer(
        request.model_copy(update={"wait_ms": 60_000})
    )
    assert await desk.stand.last() == before + len(expected)
    assert tasks_of(reply) == [
        one.task for one in expected if isinstance(one, Understood)
    ]
    assert (reply.kind, fickle.asked) == ("answer", 1)
    assert {part.task_id for part in reply.parts if part.task_id} in (
        {one.task_id for one in handed},
        set(),
    )


async def test_a_repeat_starts_tasks_that_the_dead_supervisor_had_only_read(
    desk: Desk, redis: Redis
) -> None:
    before = await desk.stand.last()
    request = desk.request(request_id=new_id(0))
    fickle = Fickle([TWO, ONE])
    stopped = asyncio.Event()
    gone = asyncio.Event()

    class Dying(Conversations):
        """Keeps the reading, and dies then."""

        async def append(self, *arguments: Any, **named: Any) -> bool:
            is_new = await super().append(*arguments, **named)
            stopped.set()
            await gone.wait()
            return is_new

    service = desk.service(fickle, conversations=Dying(redis))
    dying = asyncio.create_task(service.answer(request))
    await stopped.wait()
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)
    assert await desk.stand.last() == before
    reply = await desk.service(fickle, Catalogue()).answer(request)
    assert await desk.stand.last() == before + 2
    assert (reply.kind, tasks_of(reply)) == ("pending", [OTHER.task, TRIPS.task])


async def test_a_reference_in_a_repeat_means_the_same_however_much_was_said_since(
    desk: Desk,
) -> None:
    rules = RuleInterpreter()
    again = desk.request("double the limit", request_id=new_id(0))
    service = desk.service(rules)
    await desk.answer("A", ONE)
    first = await service.answer(again)
    for number in range(LOOK_BACK):
        await desk.answer(f"A{number}", OTHER)
    before = await desk.stand.last()
    repeated = await desk.service(RuleInterpreter(), Catalogue([TRIP])).answer(again)
    assert await desk.stand.last() == before
    assert first.task is not None
    assert first.task.parameters == {"budget_limit": 100, "spent": 42}
    assert repeated.task == first.task
    assert "budget limit 100 (double 50)" in repeated.text


async def test_unread_words_are_read_in_the_context_before_them(
    desk: Desk, redis: Redis
) -> None:
    again = desk.request("double the limit", request_id=new_id(0))
    await desk.answer("A", ONE)
    kept = asyncio.Event()

    class Dying(Conversations):
        """Keeps the words, and nothing after them."""

        async def append(self, *arguments: Any, **named: Any) -> bool:
            is_new = await super().append(*arguments, **named)
            kept.set()
            return is_new

        async def replace(self, *_turns: object) -> bool:
            raise asyncio.CancelledError

    class Slow(RuleInterpreter):
        """Reads no sooner than the words are kept."""

        async def interpret(self, *arguments: Any, **named: Any) -> Interpretation:
            await kept.wait()
            return await super().interpret(*arguments, **named)

    service = desk.service(Slow(), conversations=Dying(redis))
    assert isinstance(
        (await asyncio.gather(service.answer(again), return_exceptions=True))[0],
        BaseException,
    )
    for number in range(LOOK_BACK):
        await desk.answer(f"A{number}", OTHER)
    told = [await desk.service(RuleInterpreter()).answer(again) for _ in range(2)]
    assert [reply.task.parameters for reply in told if reply.task] == [
        {"budget_limit": 100, "spent": 42}
    ] * 2


@pytest.mark.parametrize("names_conversation", [False, True])
async def test_a_reading_that_could_not_be_kept_makes_the_same_task_again(
    desk: Desk, redis: Redis, names_conversation: bool
) -> None:
    class Away(Conversations):
        """Keeps nothing, and returns nothing."""

        async def append(self, *_arguments: object, **_named: object) -> bool:
            raise MemoryUnavailable("away")

        async def recent(self, *_arguments: object) -> list[bytes]:
            raise MemoryUnavailable("away")

    before = await desk.stand.last()
    first = await desk.service(Fickle([ONE]), conversations=Away(redis)).answer(
        PersonRequest(text="hm", wait_ms=0)
    )
    named = {"conversation_id": first.conversation_id} if names_conversation else {}
    repeat = PersonRequest.model_validate(
        {"text": "hm", "request_id": first.request_id, "wait_ms": 0} | named
    )
    await desk.service(Fickle([ONE])).answer(repeat)
    assert await desk.stand.last() == before + 1


@pytest.mark.parametrize("away", ["first", "then"])
async def test_one_supervisor_reads_a_request_once_while_the_store_comes_and_goes(
    desk: Desk, redis: Redis, away: str
) -> None:
    calls = 0

    class Shaky(Conversations):
        """Is away for one of two deliveries."""

        async def append(self, *arguments: Any, **named: Any) -> bool:
            self._fail()
            return await super().append(*arguments, **named)

        async def recent(self, *arguments: Any) -> list[bytes]:
            self._fail()
            return await super().recent(*arguments)

        def _fail(self) -> None:
            if away == ("first" if calls == 0 else "then"):
                raise MemoryUnavailable("away")

    before = await desk.stand.last()
    request = desk.request(request_id=new_id(0))
    service = desk.service(Fickle([TWO, ONE]), conversations=Shaky(redis))
    first = await service.answer(request)
    calls = 1
    again = await service.answer(request)
    assert await desk.stand.last() == before + 2
    assert tasks_of(first) == tasks_of(again) == [OTHER.task, TRIPS.task]


async def test_over_http_a_repeated_key_is_answered_by_the_first_reading_after_a_kill(
    desk: Desk, servers: EmbeddedServers, redis: Redis
) -> None:
    body = {"text": "hm", "wait_seconds": 0}
    key = {"Idempotency-Key": f"once-{new_id(0)}"}
    records = RequestRecords(redis, deadline_s=PATIENCE_S)
    fickle = Fickle([ONE, OTHER])
    service = desk.service(fickle)
    async with http_stand(
        servers, redis, service=service, work=InFlightRequests(service, records)
    ) as first:
        sent = await over_http(first.url, "POST", "/v1/requests", body, key)
        assert sent.status == 202
        [underway] = list(first.parts.work._under_way.values())
        if not underway.routed:
            await underway.changed.wait()
        [assignment] = underway.routed
        for task in list(first.parts.work._tasks):
            task.cancel()
    await desk.report(assignment)
    other = desk.service(fickle)
    async with http_stand(
        servers, redis, service=other, work=InFlightRequests(other, records)
    ) as second:
        told = await over_http(second.url, "POST", "/v1/requests", body, key)
    assert (told.status, told.body["task"], fickle.asked) == (
        200,
        ONE.task.model_dump(),
        1,
    )
    assert "budget limit 50, spent 42" in told.body["reply"]["text"]


async def test_over_http_a_key_of_another_user_is_refused(
    desk: Desk, servers: EmbeddedServers, redis: Redis
) -> None:
    key = new_id(0)
    service = desk.service(RuleInterpreter())
    header = {"Idempotency-Key": key}
    body = {
        "text": "budget limit 50",
        "user": "bob",
        "conversation": desk.conversation_id,
    }
    work = InFlightRequests(service, RequestRecords(redis, deadline_s=PATIENCE_S))
    async with http_stand(servers, redis, service=service, work=work) as api:
        told = [await over_http(api.url, "POST", "/v1/requests", body, header)]
        other = await service.answer(
            desk.request("budget limit 9", request_id=key, user_id="ana")
        )
        told.append(await over_http(api.url, "GET", f"/v1/requests/{key}"))
        refused = [
            await over_http(api.url, "POST", "/v1/requests", body | change, header)
            for change in ({"user": "ana"}, {"text": "budget limit 9"})
        ]
    assert [answer.body["task"]["parameters"] for answer in told] == [
        {"budget_limit": 50}
    ] * 2
    assert other.task is not None
    assert other.task.parameters == {"budget_limit": 9}
    assert [answer.status for answer in refused] == [409, 409]


def test_words_read_by_an_older_supervisor_are_turns_all_the_same() -> None:
    turn = ChatTurn(
        turn_id="t",
        conversation_id="c",
        speaker="person",
        text="hm",
        at=datetime.now(UTC),
    )
    assert parse_turn(turn.model_dump_json().encode()) == HeardTurn.model_validate(
        dict(turn)
    )
    body = (
        HeardTurn(**dict(turn), read_as=make_reading(TWO, "t1"))
        .model_dump_json()
        .encode()
    )
    assert ChatTurn.model_validate_json(body) == turn
    assert parse_turn(body.replace(b'"kind":"task"', b'"kind":"dream"')) == HeardTurn(
        **dict(turn), is_legible=False
    )
