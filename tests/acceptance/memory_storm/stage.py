"""Where a storm takes place: servers, a model, forked memory workers, and somebody who tells facts and looks after."""

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.messages import ExtractedFacts, Fact
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox, open_outbox
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.acceptance.chaos.history import History
from tests.acceptance.chaos.smith import Smith
from tests.acceptance.faults.cast import Cast
from tests.acceptance.memory_storm.told import Answers, Told
from tests.acceptance.system import QUICK
from tests.llm_double import ScriptedLlm

AGENT = "tests.acceptance.memory_storm.agent"
#: Seconds for whatever the storm waits for: far above what a long one takes on a busy machine.
PATIENCE_S = 1_800.0
#: Seconds between two looks at the table, which makes no event.
LOOK_S = 0.05
#: Settings under which a killed worker's facts go on soon, and no fact is blamed for the kills that it is hit by.
SETTINGS = {
    "TASKLORE_ACK_WAIT_S": "2",
    "TASKLORE_MAX_ATTEMPTS": "1000",
    "TASKLORE_LLM_MAX_CONCURRENCY": "64",
    "TASKLORE_LOG_LEVEL": "warning",
}


@dataclass(eq=False)
class Stage:
    """A stage; `told` is all that was told so far, by user and in order."""

    redis: Redis
    outbox: Outbox
    cast: Cast
    answers: Answers
    facts: PersonalQueue
    store: DocumentStore
    #: What every worker does against the rules, see `sabotage`; "" for nothing.
    deed: str = ""
    told: dict[str, list[Told]] = field(default_factory=lambda: defaultdict(list))

    async def begin(self, workers: int, model_s: float, **settings: object) -> None:
        """Return once *workers* new ones with *settings* take facts; the model takes *model_s* s for each answer."""
        self.told.clear()
        self.answers.delay_s = model_s
        await self.cast.begin(
            {"worker": workers}, deeds={"worker": self.deed}, settings=settings
        )

    async def tell(self, user: str, told: Sequence[Told]) -> None:
        """Publish *told* as one turn of *user*."""
        self.told[user] += told
        facts = tuple(one.fact(user) for one in told)
        await self._publish(user, facts, facts[0].fact_id)

    async def tell_again(
        self, user: str, told: Sequence[Told], name: str, *, anew: bool
    ) -> None:
        """Publish *told* once more under *name*: as facts of their own when *anew*, else the same delivered again."""
        facts = tuple(one.fact(user) for one in told)
        if anew:
            facts = tuple(
                fact.model_copy(update={"fact_id": f"{fact.fact_id}-{name}"})
                for fact in facts
            )
        await self._publish(user, facts, f"{facts[0].fact_id}-{name}")

    async def _publish(
        self, user: str, facts: tuple[Fact, ...], message_id: str
    ) -> None:
        extracted = ExtractedFacts(
            turn_id=f"turn-{message_id}",
            conversation_id="storm",
            user_id=user,
            facts=facts,
            at=datetime.now(UTC),
        )
        body = extracted.model_dump_json(exclude_none=True).encode()
        await self.outbox.put(
            subjects.facts(user), body, message_id, patience_s=PATIENCE_S
        )

    async def closed(self, user: str) -> int:
        """Return how many facts of *user* are dealt with for good."""
        return sum((await self.facts.counts(user)).closed.values())

    async def until_closed(self, counts: dict[str, int]) -> None:
        """Return once of each user as many facts are closed, or set aside, as *counts* says.

        Raises:
            TimeoutError: they are not within `PATIENCE_S`; tells how far each is.
        """
        waiting = dict(counts)
        gives_up_at = time.monotonic() + PATIENCE_S
        while waiting:
            for user, count in list(waiting.items()):
                now = await self.facts.counts(user)
                if now.parked + sum(now.closed.values()) >= count:
                    del waiting[user]
            if waiting and time.monotonic() > gives_up_at:
                raise TimeoutError(f"facts still wait: {waiting}")
            await asyncio.sleep(LOOK_S if waiting else 0)


@asynccontextmanager
async def stage(folder: Path, deed: str = "") -> AsyncIterator[Stage]:
    """Put up a stage without a worker, whose workers commit *deed*, with data and logs below *folder*."""
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(
            EmbeddedServers(folder / "servers", "standard")
        )
        answers = Answers()
        model = await stack.enter_async_context(ScriptedLlm(answers))
        smith = await stack.enter_async_context(Smith([AGENT], folder / "workers"))
        client = await stack.enter_async_context(connected(servers.nats_url, "storm"))
        redis = await stack.enter_async_context(
            valkey.connect(servers.redis_url, deadline_s=PATIENCE_S)
        )
        environment = {
            **QUICK,
            **SETTINGS,
            "TASKLORE_NATS_URL": servers.nats_url,
            "TASKLORE_REDIS_URL": servers.redis_url,
            "TASKLORE_LLM_BASE_URL": model.base_url,
        }
        history = stack.enter_context(contextlib.closing(History(folder / "history")))
        cast = Cast(smith, history, environment)
        made = Stage(
            redis,
            await stack.enter_async_context(open_outbox(Link(client))),
            cast,
            answers,
            PersonalQueue(redis, "facts", deadline_s=60.0),
            DocumentStore(redis, Kinds.load(), deadline_s=60.0),
            deed,
        )
        forgetting = asyncio.create_task(_forget_questions(model))
        stack.callback(forgetting.cancel)
        stack.push_async_callback(cast.close)
        yield made


async def _forget_questions(model: ScriptedLlm) -> None:
    """Keep the model from remembering tens of thousands of prompts."""
    while True:
        await asyncio.sleep(1)
        model.requests.clear()
