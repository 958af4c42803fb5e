"""What tests of listeners share: tables and documents on a real store, and a loop over handlers of the test's own."""

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from redis.asyncio import Redis

from tasklore import Agent
from tasklore.contracts.edits import Insert
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import ChatTurn, ExtractedFacts, Fact
from tasklore.memory.conversations.notices import Notices
from tasklore.memory.documents.items import make_item
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.plans import Origin, Plan
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.queues.claims import Claim, Closing, NewRow, QueueName
from tasklore.memory.queues.queue import KnownRow, PersonalQueue
from tasklore.workers.execution.crash_isolation import CrashIsolation
from tasklore.workers.execution.retry_decision import RetryPolicy
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.debounce import BatchLimits
from tasklore.workers.listening.facts import FactWork
from tasklore.workers.listening.outflow import ListenLimits, Outflow, QueueWork
from tasklore.workers.listening.turns import TurnWork
from tasklore.workers.listening.unsettled_facts import FactSettling
from tasklore.workers.listening.values import FactBatch, Ruling
from tasklore.workers.testing import KitServices, ScriptedLlm

#: Seconds that any wait here may take on a busy machine; no test waits for it to pass.
PATIENCE_S = 60.0
#: Seconds of a lease: longer than any wait, so that what goes on was given back, and nothing is saved by its end.
LEASE_S = 600.0
FOOD = "resource_user_food_prefs"

Learn = Callable[[ChatTurn, ListenContext], Awaitable[Sequence[Fact]]]
Rule = Callable[[FactBatch, ListenContext], Awaitable[Sequence[Ruling]]]


class FactTable(PersonalQueue):
    """The table of facts, which refuses hand-overs as often as it is told, or has them hang, `before` or `after`."""

    refuses = 0
    hangs: Literal["before", "after"] | None = None

    def __init__(self, redis: Redis) -> None:
        super().__init__(redis, "facts", deadline_s=PATIENCE_S)
        self.is_hanging = asyncio.Event()

    async def take_over(
        self, claim: Claim, closings: Sequence[Closing], rows: Sequence[NewRow]
    ) -> bool:
        """Append rows and close others, unless something is to go wrong."""
        if self.refuses:
            self.refuses -= 1
            raise MemoryUnavailable("no room")
        if self.hangs == "before":
            await self._hang()
        is_held = await super().take_over(claim, closings, rows)
        if self.hangs == "after":
            await self._hang()
        return is_held

    async def _hang(self) -> None:
        self.is_hanging.set()
        await asyncio.Event().wait()


class Counts:
    """A meter that counts by what happened."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def count_turn(self, outcome: str) -> None:
        """Count a turn."""
        self.seen[f"turn:{outcome}"] += 1

    def count_fact(self, outcome: str) -> None:
        """Count a fact."""
        self.seen[f"fact:{outcome}"] += 1

    def count_edit(self, operation: str, outcome: str) -> None:
        """Count an edit."""
        self.seen[
            f"edit:{operation}"
            if outcome == "applied"
            else f"edit:{operation}:{outcome}"
        ] += 1

    def count_edit_refused(self, reason: str) -> None:
        """Count a refusal."""
        self.seen[f"refused:{reason}"] += 1

    def count_stale_draft(self) -> None:
        """Count a draft that came too late."""
        self.seen["stale"] += 1

    def count_listen_retry(self, queue: str) -> None:
        """Count a run to come."""
        self.seen[f"retry:{queue}"] += 1

    def count_dead_letter(self, reason: str) -> None:
        """Count a burial."""
        self.seen[f"dead:{reason}"] += 1


def now() -> datetime:
    """Return the time: the store goes by its own clock."""
    return datetime.now(UTC)


def now_ms() -> int:
    """Return the time in milliseconds since 1970."""
    return int(now().timestamp() * 1000)


@dataclass
class Room:
    """A store, and what listeners need around it."""

    redis: Redis
    counts: Counts = field(default_factory=Counts)
    services: KitServices = field(
        default_factory=lambda: KitServices(ScriptedLlm(), now())
    )
    retry: RetryPolicy = field(default_factory=lambda: RetryPolicy(0.02, 0.05))
    #: Turns that one question to a model serves; none waits for another unless a test says so.
    patience: BatchLimits = field(default_factory=lambda: BatchLimits(idle_s=0))
    notices: Notices | None = None
    #: Whether turns wait for the facts of those before them.
    settles: bool = False
    holders: Any = field(
        default_factory=lambda: map("worker-{}".format, itertools.count(1))
    )

    def __post_init__(self) -> None:
        self.turns = PersonalQueue(self.redis, "turns", deadline_s=PATIENCE_S)
        self.facts = FactTable(self.redis)
        self.store = DocumentStore(self.redis, Kinds.load(), deadline_s=PATIENCE_S)

    async def say(self, user: str, *texts: str, start: int = 1) -> None:
        """Append turns of *user*, called `t1` and on."""
        rows = []
        for number, text in enumerate(texts, start=start):
            turn = ChatTurn(
                turn_id=f"t{number}",
                conversation_id="c",
                user_id=user,
                speaker="person",
                text=text,
                at=now(),
            )
            rows.append((turn.turn_id, turn.model_dump_json().encode()))
        await self.turns.append(user, rows)

    async def learn(self, user: str, *texts: str, start: int = 1) -> None:
        """Append facts about *user*, called `f1` and on."""
        await self.facts.append(
            user,
            [
                fact_row(user, number, text)
                for number, text in enumerate(texts, start=start)
            ],
        )

    @contextlib.asynccontextmanager
    async def listening(
        self,
        agent: Agent,
        queue: QueueName,
        *,
        items: int = 32,
        users: int = 16,
        lease_s: float = LEASE_S,
        exclusive: CrashIsolation | None = None,
        cut_short: bool = False,
    ) -> AsyncIterator[Outflow]:
        """Work on *queue* as *agent* says, in a worker of a name of its own, until the block ends.

        What is under way then goes on to its end, which is counted a moment after its row is closed; or is *cut_short*.
        """
        outflow = Outflow(
            self.turns if queue == "turns" else self.facts,
            self.work_of(agent, queue),
            ListenLimits(items, users, lease_s),
            holder=next(self.holders),
            exclusive=exclusive or CrashIsolation(),
        )
        running = asyncio.create_task(outflow.run())
        try:
            yield outflow
            if not cut_short:
                outflow.stop()
                await asyncio.wait_for(running, PATIENCE_S)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def work_of(self, agent: Agent, queue: QueueName, attempts: int = 3) -> QueueWork:
        """Return what *agent* does with the rows of *queue*."""
        listener = agent.listeners[queue].with_defaults(
            items=32, users=16, attempts=attempts
        )
        if queue == "turns":
            return TurnWork(
                listener,
                None,
                queue=self.turns,
                facts=self.facts,
                services=self.services,
                meter=self.counts,
                retry=self.retry,
                patience=self.patience,
                settling=FactSettling(self.facts, self.notices, self.services.now)
                if self.settles
                else None,
                notices=self.notices,
            )
        return FactWork(
            listener,
            None,
            queue=self.facts,
            store=self.store,
            services=self.services,
            meter=self.counts,
            retry=self.retry,
        )

    async def states(self, queue: QueueName, user: str) -> dict[str, str]:
        """Return how far each row of *user* is, by its id."""
        return {row.row_id: row.state for row in await self.rows(queue, user)}

    async def rows(self, queue: QueueName, user: str) -> tuple[KnownRow, ...]:
        """Return every row of *user*."""
        return await (self.turns if queue == "turns" else self.facts).rows(user, 10_000)

    async def found(self, user: str) -> list[ExtractedFacts]:
        """Return the facts about *user* that wait, one by one, in order."""
        return [
            ExtractedFacts.model_validate_json(row.body)
            for row in await self.rows("facts", user)
        ]

    async def texts(self, user: str) -> list[str]:
        """Return the texts of the facts about *user* that wait, in order."""
        return [one.facts[0].text for one in await self.found(user)]

    async def die_handing_over(
        self, agent: Agent, hangs: Literal["before", "after"]
    ) -> None:
        """Have a worker end that is about to append the facts of turns, or has just done so."""
        self.facts.hangs = hangs
        self.facts.is_hanging.clear()
        async with self.listening(agent, "turns", cut_short=True):
            await asyncio.wait_for(self.facts.is_hanging.wait(), PATIENCE_S)
        self.facts.hangs = None

    async def closed(self, queue: QueueName, *users: str) -> None:
        """Return once nothing of *users* waits any more."""

        async def none_waits() -> bool:
            table = self.turns if queue == "turns" else self.facts
            return all([(await table.counts(user)).waiting == 0 for user in users])

        await eventually(none_waits)

    async def likes(self, user: str) -> list[str]:
        """Return what *user* is known to like, in order."""
        snapshot = await self.store.snapshot(user, [FOOD])
        food: Any = snapshot.documents[FOOD].body["food"]
        return [item["display"] for item in food["likes"]]


def fact_row(user: str, number: int, text: str) -> tuple[str, bytes]:
    """Return a row of the table of facts."""
    fact = Fact(fact_id=f"f{number}", text=text)
    body = ExtractedFacts(
        turn_id=f"t{number}", conversation_id="c", user_id=user, facts=(fact,), at=now()
    )
    return fact.fact_id, body.model_dump_json().encode()


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Return once *condition* holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():  # noqa: ASYNC110 - a server's state makes no event here
            await asyncio.sleep(0.01)


def ear(learn: Learn) -> Agent:
    """Return an agent that learns from turns by *learn*."""
    agent = Agent("Ear")

    @agent.listen("turns")
    async def hear(turn: ChatTurn, context: ListenContext) -> Sequence[Fact]:
        return await learn(turn, context)

    return agent


def judge(rule: Rule) -> Agent:
    """Return an agent that rules on facts by *rule*."""
    agent = Agent("Judge")

    @agent.listen("facts")
    async def rule_on(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
        return await rule(batch, context)

    return agent


async def parrot(turn: ChatTurn, _context: ListenContext) -> list[Fact]:
    """Learn the very words of a turn; of an empty one nothing."""
    return [Fact(fact_id=f"fact-{turn.turn_id}", text=turn.text)] if turn.text else []


def plan_of(fact: Fact, at: datetime, path: str = "food.likes") -> Plan:
    """Return a plan that adds *fact* to what the user likes, or to what is at *path*."""
    item = make_item(fact.text, added=at.date(), source="told")
    return Plan(
        plan_id=f"plan-{fact.fact_id}",
        edits=(Insert(path=path, new_value=item, file=FOOD),),
        origin=Origin(by="rules", at=at, fact_id=fact.fact_id),
    )


async def keep_all(batch: FactBatch, context: ListenContext) -> list[Ruling]:
    """Add every fact to what the user likes; a text that is there already is known."""
    rulings = []
    for pending in batch.facts:
        fact = pending.fact
        food = context.draft.body(FOOD)["food"]
        if any(item["display"] == fact.text for item in food["likes"]):  # type: ignore[index, call-overload, union-attr]
            rulings.append(
                Ruling(fact_id=fact.fact_id, outcome="known", reasoning="it is there")
            )
            continue
        plan = plan_of(fact, context.now())
        context.draft.apply(plan)
        rulings.append(
            Ruling(fact_id=fact.fact_id, outcome="applied", reasoning="told", plan=plan)
        )
    return rulings
