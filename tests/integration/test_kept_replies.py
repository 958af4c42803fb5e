"""The reply to a request is kept when it is first made: the same for whoever asks again, wherever, and however late."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import NotAccepted
from tasklore.contracts.identifiers import TaskName, new_id
from tasklore.contracts.messages import (
    CompletionReport,
    ErrorNote,
    MemoryNote,
    PersonRequest,
)
from tasklore.memory import keys
from tasklore.memory.command_batch import Commands
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.requests import (
    KnownRequest,
    Reply,
    RequestRecords,
    place_of,
)
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.requests import work
from tasklore.supervisor.requests.kept_replies import MOST_BYTES
from tasklore.supervisor.requests.request import part_task_id, single_task_id
from tasklore.supervisor.requests.work import InFlightRequests
from tasklore.supervisor.understanding import Interpretation, RuleInterpreter
from tasklore.supervisor.understanding.outcome import Clarification, Several
from tests.http_client import Answer, ask, until
from tests.integration.http_stand import Stand as Api
from tests.integration.http_stand import http_stand
from tests.integration.test_hostile_dispatch import SUPERVISOR, standing
from tests.integration.test_repeats import ONE, TWO, Desk, Fickle
from tests.ledger_layouts import finish_long_ago, set_layout
from tests.servers import PATIENCE_S

#: Results of which a reply is too large to be kept whole.
LONG = "A line of a long text. " * (MOST_BYTES // 10)
MANY = [{"number": number, "word": "x" * 40} for number in range(MOST_BYTES // 40)]
NOTHING = RuleInterpreter().understand("hm", catalogue=Catalogue())


class Frozen(Conversations):
    """Stops before it keeps an answer, or with *keeps_turn* between that and the reply, until it is to go on."""

    def __init__(self, redis: Redis, *, keeps_turn: bool = False) -> None:
        super().__init__(redis, deadline_s=PATIENCE_S)
        self._keeps_turn = keeps_turn
        self.reached = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def append(
        self,
        conversation_id: str,
        turn: bytes,
        turn_id: str,
        *,
        user_id: str | None = None,
        beside: Commands = (),
    ) -> bool:
        if "-a" in turn_id:
            if self._keeps_turn:
                await super().append(conversation_id, turn, turn_id, user_id=user_id)
            self.reached.set()
            await self.goes_on.wait()
        return await super().append(
            conversation_id, turn, turn_id, user_id=user_id, beside=beside
        )


class Killed(RequestRecords):
    """Lets nothing go, as a process that was killed does not."""

    async def let_go(self, request: str, reply: Reply | None) -> bool:
        return True


@dataclass
class Replicas:
    """Supervisors on the same servers, one after the other or at once, and one request that is sent to them."""

    desk: Desk
    servers: EmbeddedServers
    redis: Redis
    fickle: Fickle = field(default_factory=lambda: Fickle([]))
    key: str = field(default_factory=lambda: new_id(0))
    handed_before: int = 0

    @asynccontextmanager
    async def replica(
        self,
        conversations: Conversations | None = None,
        records: RequestRecords | None = None,
    ) -> AsyncIterator[Api]:
        """Start one."""
        records = records or RequestRecords(self.redis, deadline_s=PATIENCE_S)
        service = self.desk.service(self.fickle, conversations=conversations)
        work = InFlightRequests(service, records)
        async with http_stand(
            self.servers, self.redis, service=service, work=work, records=records
        ) as api:
            yield api

    async def send(self, api: Api, wait_seconds: float = PATIENCE_S) -> Answer:
        """Send the request, once more or not."""
        body = {"text": "hm", "user": "ann", "wait_seconds": wait_seconds}
        header = {"Idempotency-Key": self.key}
        return await ask(api.url, "POST", "/v1/requests", body, header)

    async def look(self, api: Api) -> Answer:
        """Look at the request."""
        return await ask(api.url, "GET", f"/v1/requests/{self.key}")

    @property
    def place(self) -> str:
        """The place of the request."""
        return place_of("", "request", self.key)

    def task_ids(self, found: Interpretation) -> list[str]:
        """Return the ids of the tasks that the request becomes."""
        request = PersonRequest(text="hm", request_id=self.key, user_id="ann")
        whole = single_task_id(SUPERVISOR, request)
        if isinstance(found, Several):
            return [part_task_id(whole, place) for place in (1, 2)]
        return [] if found is NOTHING else [whole]

    async def report(
        self, task_id: str, result: Any, generation: int = 1, error: str | None = None
    ) -> None:
        """Let a task have ended."""
        report = CompletionReport(
            task_id=task_id,
            generation=generation,
            agent_id="BudgetTrackerAgent",
            supervisor_id=SUPERVISOR,
            task_name="analyze_budget",
            status="completed" if error is None else "failed",
            result=result,
            error=None if error is None else ErrorNote(type=error, message=error),
            memory=MemoryNote(outcome="miss"),
            worker_id="w",
            finished_at=datetime.now(UTC),
        )
        body = report.model_dump_json().encode()
        ledger = Ledger(self.redis, deadline_s=PATIENCE_S)
        await ledger.finish(task_id, generation, report.status, body)

    async def handed(self) -> int:
        """Return how many tasks were handed over."""
        return await self.desk.stand.last() - self.handed_before

    async def lose(self, kind: str) -> None:
        """Remove all keys of *kind*."""
        await self.redis.delete("x", *await self.redis.keys(f"tl:{kind}*"))


@pytest.fixture(autouse=True)
def _no_renewals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no process renew its hold on a request: one that froze, or was killed, renews nothing."""
    monkeypatch.setattr(work, "_RENEW_S", 3600.0)


@pytest.fixture
async def replicas(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Replicas]:
    async with standing(servers, redis) as stand:
        found = Replicas(Desk(stand, redis), servers, redis)
        found.handed_before = await stand.last()
        yield found


@pytest.mark.parametrize(
    ("found", "result"),
    [
        (ONE, {"remaining": 8}),
        (TWO, {"remaining": 8}),
        (NOTHING, None),
        (ONE, LONG),
        (ONE, MANY),
        (TWO, LONG),
    ],
    ids=["one task", "two tasks", "none", "long text", "large result", "two long"],
)
async def test_a_reply_is_the_same_at_any_supervisor_whatever_else_is_gone(
    replicas: Replicas, redis: Redis, found: Interpretation, result: Any
) -> None:
    """Byte for byte, without the conversation, and for a small one without the reports."""
    replicas.fickle.readings = [found]
    tasks = replicas.task_ids(found)
    for task_id in tasks:
        await replicas.report(task_id, result)
    async with replicas.replica() as first:
        told = await replicas.send(first)
    assert (told.status, told.body["state"]) == (200, "done")
    await replicas.lose("conversation:")
    kept = await redis.strlen(keys.request(replicas.place).reply)
    assert 0 < kept <= MOST_BYTES
    if result not in (LONG, MANY):
        await replicas.lose("task")
    async with replicas.replica() as second:
        again = [await replicas.look(second), await replicas.send(second)]
    assert [answer.body for answer in again] == [told.body, told.body]
    assert replicas.fickle.asked == 1
    assert await replicas.handed() == len(tasks)


async def test_a_reply_outlives_a_large_result_and_says_so(replicas: Replicas) -> None:
    """Where reports are kept for a shorter time than requests."""
    replicas.fickle.readings = [ONE]
    await replicas.report(replicas.task_ids(ONE)[0], LONG)
    async with replicas.replica() as first:
        told = await replicas.send(first)
        assert told.body["reply"]["text"] == LONG
        await replicas.lose("task")
        late = (await replicas.look(first)).body["reply"]
    assert (late["kind"], late["report"]["result"]) == ("answer", None)
    assert late["text"] == "The result is no longer kept. Ask for it again."


@pytest.mark.parametrize("keeps_turn", [False, True], ids=["report", "turn"])
@pytest.mark.parametrize("found", [ONE, TWO], ids=["one task", "two tasks"])
async def test_a_supervisor_that_is_killed_before_it_kept_a_reply_is_replaced_by_the_next_look(
    replicas: Replicas, redis: Redis, found: Interpretation, keeps_turn: bool
) -> None:
    """Behind the report, or behind the turn of the answer: nothing is handed over again, and one reply is kept."""
    replicas.fickle.readings = [found]
    tasks = replicas.task_ids(found)
    for task_id in tasks:
        await replicas.report(task_id, {"remaining": 8})
    frozen = Frozen(redis, keeps_turn=keeps_turn)
    records = Killed(redis, deadline_s=PATIENCE_S)
    async with replicas.replica(frozen, records) as first, replicas.replica() as second:
        assert (await replicas.send(first, 0)).status == 202
        await frozen.reached.wait()
        meanwhile = (await replicas.look(second)).body
        assert (meanwhile["state"], "reply" in meanwhile) == ("running", True)
        assert meanwhile["reply"] is None
        for task in list(first.parts.work._tasks):
            task.cancel()
        # As it lapses.
        await redis.delete(keys.request(replicas.place).held)
        done = await replicas.look(second)
        assert (done.body["state"], done.body["reply"]["kind"]) == ("done", "answer")
    async with replicas.replica() as third:
        assert (await replicas.send(third)).body == done.body
    assert replicas.fickle.asked == 1
    assert await replicas.handed() == len(tasks)


async def test_of_two_supervisors_that_answer_a_request_the_first_reply_counts(
    replicas: Replicas, redis: Redis
) -> None:
    """One froze with it, and its own client hears what the other one said meanwhile."""
    replicas.fickle.readings = [ONE]
    await replicas.report(replicas.task_ids(ONE)[0], {"remaining": 8})
    frozen = Frozen(redis)
    async with replicas.replica(frozen) as first, replicas.replica() as second:
        waiting = asyncio.create_task(replicas.send(first))
        await frozen.reached.wait()
        await redis.delete(keys.request(replicas.place).held)
        done = await replicas.look(second)
        assert done.body["state"] == "done"
        # What differs in any case is the time that the frozen one took.
        await asyncio.sleep(0.01)
        frozen.goes_on.set()
        told = await waiting
        assert told.body == done.body
        assert (await replicas.look(first)).body == done.body


@pytest.mark.parametrize(
    "found", [ONE, TWO, NOTHING], ids=["one task", "two tasks", "none"]
)
async def test_what_0_2_answered_is_answered_again_and_then_kept(
    replicas: Replicas, redis: Redis, found: Interpretation
) -> None:
    """Its record has no caller and no reply beside it, but how it ended, which is not needed."""
    replicas.fickle.readings = [found]
    tasks = replicas.task_ids(found)
    for task_id in tasks:
        await replicas.report(task_id, {"remaining": 8})
    async with replicas.replica() as first:
        told = (await replicas.send(first)).body
    of = keys.request(replicas.place)
    record = json.loads(await redis.get(of.record))
    record.pop("sender")
    await redis.set(of.record, json.dumps(record))
    ends = [{"kind": "answer", "missing": []}] * (2 if found is TWO else 0)
    end = {"kind": "answer", "missing": [], "elapsed_ms": 3, "parts": ends}
    await redis.set(f"{of.record}:end", json.dumps(end))
    await redis.delete(of.reply)
    async with replicas.replica() as second:
        again = (await replicas.look(second)).body
        assert (await replicas.send(second)).body == again
    told["reply"].pop("elapsed_ms")
    again["reply"].pop("elapsed_ms")
    assert again == told
    assert replicas.fickle.asked == 1
    assert await replicas.handed() == len(tasks)


async def test_the_reply_to_a_task_that_failed_is_another_one_once_it_was_sent_again(
    replicas: Replicas,
) -> None:
    replicas.fickle.readings = [ONE]
    [task_id] = replicas.task_ids(ONE)
    await replicas.report(task_id, None, error="Broken")
    async with replicas.replica() as api:
        assert (await replicas.send(api)).body["reply"]["kind"] == "failed"
        ledger = Ledger(replicas.redis, deadline_s=PATIENCE_S)
        [stored] = [await replicas.desk.stand.started(await replicas.desk.stand.last())]
        await ledger.accept(task_id, 2, stored.model_dump_json().encode())
        assert (await replicas.look(api)).body["state"] == "running"
        await replicas.report(task_id, {"remaining": 8}, generation=2)
        done = (await replicas.look(api)).body
    assert (done["state"], done["reply"]["kind"]) == ("done", "answer")
    assert done["reply"]["report"]["generation"] == 2


@pytest.mark.parametrize("found", [ONE, TWO], ids=["one task", "two tasks"])
async def test_a_task_of_which_only_the_acknowledgement_was_lost_is_answered_once_it_ran(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch, found: Interpretation
) -> None:
    """The reply that nothing was started is kept, and counts no more once the ledger has the task."""
    replicas.fickle.readings = [found]
    tasks = replicas.task_ids(found)
    put = Outbox.put

    async def lose(self: Outbox, *args: Any, **options: Any) -> None:
        await put(self, *args, **options)
        raise NotAccepted("no acknowledgement")

    async with replicas.replica() as api:
        with monkeypatch.context() as patched:
            patched.setattr(Outbox, "put", lose)
            assert (await replicas.send(api)).status == 503
        assert (await replicas.look(api)).body["reply"]["kind"] == "failed"
        for task_id in tasks:
            await replicas.report(task_id, {"remaining": 8})
        done = await replicas.look(api)
        assert (done.body["state"], done.body["reply"]["kind"]) == ("done", "answer")
        assert (await replicas.send(api)).body == done.body
    assert await replicas.handed() == len(tasks)


async def test_a_part_that_failed_beside_a_question_has_its_new_end_once_it_was_sent_again(
    replicas: Replicas,
) -> None:
    """The kind of the whole is that of the question, before and after."""
    found = Several((ONE, Clarification("Which trip?")))
    replicas.fickle.readings = [found]
    [task_id, _] = replicas.task_ids(found)
    await replicas.report(task_id, None, error="Broken")
    async with replicas.replica() as api:
        told = (await replicas.send(api)).body["reply"]
        kinds = [part["kind"] for part in told["parts"]]
        assert (told["kind"], kinds) == ("question", ["failed", "question"])
        assert (await replicas.look(api)).body["reply"] == told
        ledger = Ledger(replicas.redis, deadline_s=PATIENCE_S)
        [stored] = [await replicas.desk.stand.started(await replicas.desk.stand.last())]
        await ledger.accept(task_id, 2, stored.model_dump_json().encode())
        await replicas.report(task_id, {"remaining": 8}, generation=2)
        done = (await replicas.look(api)).body["reply"]
    kinds = [part["kind"] for part in done["parts"]]
    assert (done["kind"], kinds) == ("question", ["answer", "question"])
    assert done["parts"][0]["report"]["generation"] == 2


class Slow(RequestRecords):
    """Stops when it has found something for the time *stops_at*."""

    found = 0
    stops_at = 0

    def __init__(self, redis: Redis) -> None:
        super().__init__(redis, deadline_s=PATIENCE_S)
        self.reached = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def find(self, request: str) -> KnownRequest:
        known = await super().find(request)
        self.found += 1
        if self.found == self.stops_at:
            self.reached.set()
            await self.goes_on.wait()
        return known


async def test_of_two_repeats_of_what_was_not_started_neither_removes_the_reply_of_the_other(
    replicas: Replicas, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both read that it was not, and one is late with that."""
    replicas.fickle.readings = [ONE]
    slow = Slow(redis)

    async def refuse(*_args: Any, **_options: Any) -> None:
        raise NotAccepted("no stream")

    async with replicas.replica() as first, replicas.replica(records=slow) as second:
        with monkeypatch.context() as patched:
            patched.setattr(Outbox, "put", refuse)
            assert (await replicas.send(first)).status == 503
        # It is known, and its reply is read.
        slow.stops_at = slow.found + 2
        late = asyncio.create_task(replicas.send(second))
        await slow.reached.wait()
        await replicas.report(replicas.task_ids(ONE)[0], {"remaining": 8})
        told = await replicas.send(first)
        assert told.body["reply"]["kind"] == "answer"
        kept = await redis.get(keys.request(replicas.place).reply)
        slow.goes_on.set()
        assert (await late).body == told.body
        assert await redis.get(keys.request(replicas.place).reply) == kept
    assert await slow.forget_reply(replicas.place, b"another")
    assert await redis.get(keys.request(replicas.place).reply) == kept
    assert not await slow.forget_reply(replicas.place, kept)
    assert not await redis.exists(keys.request(replicas.place).reply)


async def test_a_request_of_which_nothing_is_left_says_so_and_may_be_sent_again(
    replicas: Replicas,
) -> None:
    replicas.fickle.readings = [NOTHING, NOTHING]
    async with replicas.replica() as api:
        await replicas.send(api)
        records = RequestRecords(replicas.redis, deadline_s=PATIENCE_S)
        assert await records.count("ann") == 1
        assert await records.forget("ann") == 1
        assert await records.count("ann") == 0
        await replicas.lose("conversation:")
        gone = (await replicas.look(api)).body["reply"]
        assert (gone["kind"], "Send it again" in gone["text"]) == ("failed", True)
        assert (await replicas.send(api)).body["reply"]["kind"] == "unable"


async def test_a_report_answers_a_request_of_which_the_words_are_gone(
    replicas: Replicas, redis: Redis
) -> None:
    """Its process died behind the report, and the conversation has no turn of it: neither looks nor repeats lose it."""
    replicas.fickle.readings = [ONE]
    await replicas.report(replicas.task_ids(ONE)[0], {"remaining": 8})
    frozen = Frozen(redis)
    records = Killed(redis, deadline_s=PATIENCE_S)
    async with replicas.replica(frozen, records) as first:
        assert (await replicas.send(first, 0)).status == 202
        await frozen.reached.wait()
        for task in list(first.parts.work._tasks):
            task.cancel()
    await redis.delete(keys.request(replicas.place).held)
    await replicas.lose("conversation:")
    async with replicas.replica() as second:
        done = (await replicas.look(second)).body
        assert (done["state"], done["reply"]["kind"]) == ("done", "answer")
        assert done["reply"]["report"]["result"] == {"remaining": 8}
        assert (await replicas.send(second)).body == done
    assert replicas.fickle.asked == 1


async def test_a_request_whose_report_has_expired_is_answered_with_its_end(
    replicas: Replicas, redis: Redis
) -> None:
    """Its process died before it kept a reply; nothing runs again."""
    replicas.fickle.readings = [ONE]
    await set_layout(redis, "2")
    frozen = Frozen(redis)
    records = Killed(redis, deadline_s=PATIENCE_S)
    async with replicas.replica(frozen, records) as first:
        assert (await replicas.send(first, 0)).status == 202
        [underway] = list(first.parts.work._under_way.values())
        await until(lambda: bool(underway.routed))
        for task in list(first.parts.work._tasks):
            task.cancel()
    await redis.delete(keys.request(replicas.place).held)
    [task_id] = replicas.task_ids(ONE)
    await finish_long_ago(redis, TaskName("BudgetTrackerAgent", task_id))
    async with replicas.replica() as second:
        done = (await replicas.look(second)).body
    assert (done["state"], done["reply"]["kind"]) == ("done", "failed")
    assert "expired" in done["reply"]["text"]
    assert await replicas.handed() == 1
