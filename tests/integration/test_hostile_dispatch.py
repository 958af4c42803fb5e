"""Hostile answers of a model behind the whole supervisor: real client, service and dispatch, and a real stream."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from nats.aio.client import Client
from redis.asyncio import Redis

from contracts import subjects
from contracts.identifiers import new_id
from contracts.messages import PersonRequest, TaskAssignment
from memory.conversation import Conversations
from memory.ledger import Ledger
from runtime.connection import connected
from runtime.embedded import EmbeddedServers
from runtime.link import Link
from runtime.llm import Llm, LlmSettings
from runtime.outbox import open_outbox
from runtime.streams import Sizes, declare_streams
from supervisor.dispatch import Dispatch
from supervisor.reports import ReportDesk
from supervisor.service import Service
from supervisor.understanding import make_interpreter
from tests.data.write_hostile_readings import reading
from tests.hostile_readings import ANN, CATALOGUE, SCENES, Recalling, Recorded, Scene, recorded, turns_of
from tests.llm_double import ScriptedLlm
from tests.servers import PATIENCE_S

#: Scenes in which a value is missing, or only the person can say what is meant: nothing is ever to start.
_OPEN = {"half said", "said before", "remembered of others", "only hinted at", "out of scope", "orders in the text"}
SUPERVISOR = "HostileStand"


@dataclass
class Stand:
    """A supervisor's service beside a stream, and a model that is scripted."""

    client: Client
    redis: Redis
    model: ScriptedLlm
    llm: Llm
    dispatch: Dispatch
    reports: ReportDesk

    async def say(self, scene: Scene, answer: Any) -> str:
        """Let Ann say the sentence of *scene*, and return what kind of reply she gets at once."""
        self.model.respond = lambda _asked: answer
        conversations, conversation_id = Conversations(self.redis, deadline_s=PATIENCE_S), new_id(0)
        for turn in turns_of(scene):
            said = turn.model_copy(update={"conversation_id": conversation_id, "turn_id": new_id(0)})
            await conversations.append(conversation_id, said.model_dump_json().encode(), said.turn_id)
        service = Service(
            SUPERVISOR,
            catalogue=lambda: CATALOGUE,
            interpreter=make_interpreter(self.llm, Recalling(scene) if scene.memory else None),
            dispatch=self.dispatch,
            reports=self.reports,
            conversations=conversations,
            publish=lambda _subject, _body, _message_id: None,
        )
        reply = await service.answer(
            PersonRequest(text=scene.text, conversation_id=conversation_id, user_id=ANN, wait_ms=0)
        )
        return reply.kind

    async def last(self) -> int:
        """Return the number of the last assignment that the stream took."""
        return (await self.client.jetstream().stream_info(subjects.TASKS)).state.last_seq


@asynccontextmanager
async def standing(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    """Open everything within the block."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(connected(servers.nats_url, f"hostile-{new_id(0)}"))
        await declare_streams(client, Sizes())
        outbox = await stack.enter_async_context(open_outbox(Link(client)))
        model = await stack.enter_async_context(ScriptedLlm())
        llm = Llm(LlmSettings(base_url=model.base_url, max_attempts=1, backoff_base_s=0.0))
        await stack.enter_async_context(llm)
        ledger = Ledger(redis, deadline_s=PATIENCE_S)
        yield Stand(client, redis, model, llm, Dispatch(outbox, ledger), ReportDesk(client, ledger))


def chosen() -> list[Recorded]:
    """Return one recorded answer of each of twenty attacks, all in scenes where nothing is to start."""
    firsts = {one.attack: one for one in reversed(recorded()) if one.scene in _OPEN}
    return [firsts[attack] for attack in sorted(firsts)][:20]


async def test_no_assignment_is_published_for_a_hostile_answer(servers: EmbeddedServers, redis: Redis) -> None:
    """The person is asked or told; and the same stand does publish what an honest answer makes complete."""
    hostile = chosen()
    assert len(hostile) == 20
    async with standing(servers, redis) as stand:
        before = await stand.last()
        for one in hostile:
            assert await stand.say(SCENES[one.scene], one.canned) in {"question", "unable"}, one
        assert await stand.last() == before
        assert stand.model.requests
        honest = SCENES["blown"]
        assert await stand.say(honest, reading(honest, honest.claims)) == "pending"
        assert await stand.last() == before + 1
        kept = await stand.client.jetstream().get_msg(subjects.TASKS, before + 1)
    assert TaskAssignment.model_validate_json(kept.data or b"").task.parameters == {
        "budget_limit": 50_000,
        "spent": 42_000,
    }
