"""Hostile answers of a model before a whole supervisor: real client, service, dispatch and stream."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.identifiers import new_id
from tasklore.contracts.messages import PersonRequest, TaskAssignment
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.models.llm import Llm, LlmSettings
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.reports.reports import ReportWaiter
from tasklore.supervisor.service import Service
from tasklore.supervisor.understanding import make_interpreter
from tests.llm_double import ScriptedLlm
from tests.servers import PATIENCE_S
from tests.understanding.hostile import ATTACKS, Answer, hostile
from tests.understanding.recorded import CATALOGUE, NOW, Case, answers, cases

#: Attacks after which nothing of what is left can start, whatever case they were made on.
_SPOILED = (
    "quote all",
    "of a stranger",
    "invent with its quotation",
    "complete a text",
)
SUPERVISOR = "HostileStand"


@dataclass
class Stand:
    client: Client
    redis: Redis
    model: ScriptedLlm
    llm: Llm
    dispatch: Dispatch
    reports: ReportWaiter

    async def say(
        self, text: str, answer: Answer, conversation_id: str | None = None
    ) -> str:
        self.model.respond = lambda _asked: answer
        service = Service(
            SUPERVISOR,
            catalogue=lambda: CATALOGUE,
            interpreter=make_interpreter(self.llm),
            dispatch=self.dispatch,
            reports=self.reports,
            conversations=Conversations(self.redis, deadline_s=PATIENCE_S),
            publish=lambda _subject, _body, _message_id: None,
            now=lambda: NOW,
        )
        reply = await service.answer(
            PersonRequest(
                text=text,
                conversation_id=conversation_id or new_id(0),
                user_id="ann",
                wait_ms=0,
            )
        )
        return reply.kind

    async def last(self) -> int:
        return (
            await self.client.jetstream().stream_info(subjects.TASKS)
        ).state.last_seq

    async def started(self, number: int) -> TaskAssignment:
        kept = await self.client.jetstream().get_msg(subjects.TASKS, number)
        return TaskAssignment.model_validate_json(kept.data or b"")


@asynccontextmanager
async def standing(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            connected(servers.nats_url, f"hostile-{new_id(0)}")
        )
        await declare_streams(client, StreamSizes())
        outbox = await stack.enter_async_context(open_outbox(Link(client)))
        model = await stack.enter_async_context(ScriptedLlm())
        llm = Llm(
            LlmSettings(base_url=model.base_url, max_attempts=1, backoff_base_s=0.0)
        )
        await stack.enter_async_context(llm)
        ledger = Ledger(redis, deadline_s=PATIENCE_S)
        yield Stand(
            client,
            redis,
            model,
            llm,
            Dispatch(outbox, ledger),
            ReportWaiter(client, ledger),
        )


def chosen() -> list[tuple[str, Case, Answer]]:
    """Return five answers of each of four attacks, to single utterances that the rules leave to the model."""
    found = [
        (attack, case, answer)
        for attack, case, answer in hostile()
        if case.kind == "one" and case.lang != "en"
    ]
    return [
        one
        for name in _SPOILED
        for one in [each for each in found if each[0] == name][:5]
    ]


async def test_no_assignment_is_published_for_a_hostile_answer(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """The same supervisor does publish what an honest answer grounds."""
    assert set(_SPOILED) <= ATTACKS.keys()
    assert len(chosen()) == 20
    async with standing(servers, redis) as stand:
        before = await stand.last()
        kinds = {await stand.say(case.say, answer) for _, case, answer in chosen()}
        assert kinds <= {"question", "unable"}
        assert await stand.last() == before
        assert stand.model.requests
        honest = next(case for case in cases() if case.id == "fr04")
        assert await stand.say(honest.say, answers()["fr04"]) == "pending"
        assert await stand.last() == before + 1
        assert (await stand.started(before + 1)).task.parameters == honest.key[0][
            "parameters"
        ]


async def test_a_task_with_effects_starts_with_the_yes_that_follows_and_once(
    servers: EmbeddedServers, redis: Redis
) -> None:
    case = next(case for case in cases() if case.id == "it06")
    async with standing(servers, redis) as stand:
        before = await stand.last()
        conversation_id = new_id(0)
        assert (
            await stand.say(case.say, answers()["it06"], conversation_id) == "question"
        )
        assert await stand.last() == before
        assert (
            await stand.say(
                "s\u00ec",
                {"reasoning": "agreed", "intents": [], "unfit": []},
                conversation_id,
            )
            == "pending"
        )
        assert (await stand.started(before + 1)).task.parameters == case.key[0][
            "parameters"
        ]
        assert await stand.last() == before + 1
