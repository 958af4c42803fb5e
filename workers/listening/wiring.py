"""The wiring of listeners: their tables, their partitions and their loops, opened by the wiring of a worker."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.cadence import EXPIRY_SWEEP_S
from tasklore.contracts.errors import ConfigurationError
from tasklore.memory.conversations.notices import Notices
from tasklore.memory.documents.storage.reader import DocumentOwners
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.episodes.store import Episodes
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.access import access_of
from tasklore.runtime.messaging.erasure import Eraser
from tasklore.runtime.messaging.leases import Leases
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.messaging.partitions import (
    ACK_WAIT_S,
    Owner,
    open_partitions,
    ordered_sources,
)
from tasklore.runtime.messaging.pull import PullEngine
from tasklore.runtime.messaging.signatures import open_publishers
from tasklore.runtime.messaging.streams import PullSource
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.settings import Settings
from tasklore.workers.agent import Agent
from tasklore.workers.context.services import Services
from tasklore.workers.execution.crash_isolation import CrashIsolation
from tasklore.workers.execution.retry_decision import RetryPolicy
from tasklore.workers.listening.backlog import Backlog
from tasklore.workers.listening.debounce import BatchLimits
from tasklore.workers.listening.declaration import Listener, Queue
from tasklore.workers.listening.embedder import Embedding
from tasklore.workers.listening.facts import FactWork
from tasklore.workers.listening.inflow import InflowHandler
from tasklore.workers.listening.outflow import ListenLimits, Outflow, QueueWork
from tasklore.workers.listening.queue_listener import QueueListener
from tasklore.workers.listening.sweep import Sweeper
from tasklore.workers.listening.turns import TurnWork
from tasklore.workers.listening.unsettled_facts import FactSettling

#: How long a learned turn is known: a repeat within it is not learned again.
TURNS_KEPT = timedelta(days=7)
#: Turns of one person that are put to a model in one question, where the agent takes several.
BATCH_TURNS = 8
#: Seconds that the first of them waits at most.
LONGEST_S = 120.0

_STREAMS: dict[Queue, str] = {"turns": subjects.TURNS, "facts": subjects.FACTS}


@dataclass(frozen=True, slots=True)
class ListenerDependencies:
    """Connections and stores that listeners of a worker share.

    *heal* makes a consumer anew and returns its time; *look_soon* has this worker's listener of a queue, if there is
    one, look at its rows at once.
    """

    client: Client
    link: Link
    outbox: Outbox
    leases: Leases
    redis: Redis
    services: Services
    episodes: Episodes
    metrics: Metrics
    settings: Settings
    worker_id: str
    heal: Callable[[PullSource], Awaitable[str]]
    exclusive: CrashIsolation
    look_soon: Callable[[Queue], None]


def demand_one_listener(agents: Sequence[Agent]) -> None:
    """Refuse two agents of one process that listen to one queue: each would get a part of the rows.

    Raises:
        ConfigurationError: there are two; names both.
    """
    heard: dict[str, Listener] = {}
    for agent in agents:
        for queue, listener in agent.listeners.items():
            if queue in heard:
                msg = (
                    f"{heard[queue].label} and {listener.label} both listen to "
                    f"{queue!r}; a row goes to one: serve one"
                )
                raise ConfigurationError(msg)
            heard[queue] = listener


async def open_listeners(
    agent: Agent, ground: ListenerDependencies
) -> list[QueueListener]:
    """Return the listeners of *agent*, ready to be started; their consumers are made where that is allowed."""
    return [
        await _open(agent, listener, ground) for listener in agent.listeners.values()
    ]


def sources_of(queue: Queue, ack_wait_s: float) -> list[PullSource]:
    """Return the partitions of *queue*: one message at a time in each, so that its order holds over all workers."""
    return ordered_sources(_STREAMS[queue], queue, ack_wait_s)


async def _open(
    agent: Agent, declared: Listener, ground: ListenerDependencies
) -> QueueListener:
    settings = ground.settings
    listener = declared.with_defaults(
        items=settings.listen_items,
        users=settings.listen_users,
        attempts=settings.max_attempts,
    )
    queue = _table(listener.queue, ground)
    # A silent worker's rows go to another after as long as its tasks do.
    pace = ListenLimits(listener.items or 1, listener.users or 1, settings.ack_wait_s)
    work = _work_of(agent, listener, queue, ground)
    outflow = Outflow(
        queue, work, pace, holder=ground.worker_id, exclusive=ground.exclusive
    )
    backlog = Backlog(queue, outflow.look_soon)
    ground.metrics.watch_waiting(listener.queue, backlog.pending, backlog.oldest_s)
    vectors = ground.episodes.vectors if listener.queue == "turns" else None
    embedding = None if vectors is None else Embedding(vectors)
    sweeper = None
    if listener.queue == "facts":
        store = DocumentStore(ground.redis, ground.services.kinds)
        owners = DocumentOwners(ground.redis)
        sweeper = Sweeper(store, owners, ground.services.now, EXPIRY_SWEEP_S)
    return QueueListener(
        agent_id=agent.agent_id,
        queue_name=listener.queue,
        queue=queue,
        engines=await _engines(
            agent,
            name=listener.queue,
            queue=queue,
            outflow=outflow,
            ground=ground,
            embedding=embedding,
        ),
        outflow=outflow,
        backlog=backlog,
        has_model=ground.services.llm.configured,
        sweeper=sweeper,
        embedding=embedding,
    )


def _table(queue: Queue, ground: ListenerDependencies) -> PersonalQueue:
    facts_kept = timedelta(days=ground.settings.facts_keep_days)
    keep = TURNS_KEPT if queue == "turns" else facts_kept
    return PersonalQueue(ground.redis, queue, keep=keep)


def _work_of(
    agent: Agent, listener: Listener, queue: PersonalQueue, ground: ListenerDependencies
) -> QueueWork:
    settings = ground.settings
    retry = RetryPolicy(settings.retry_base_s, settings.retry_cap_s)
    notices = Notices(ground.redis)
    if listener.queue == "turns":
        facts = _table("facts", ground)
        return TurnWork(
            listener,
            agent.settings,
            queue=queue,
            facts=facts,
            handed_over=lambda: ground.look_soon("facts"),
            services=ground.services,
            meter=ground.metrics,
            retry=retry,
            agent_files=settings.agent_files,
            agent_id=agent.agent_id,
            patience=BatchLimits(BATCH_TURNS, settings.listen_idle_s, LONGEST_S),
            settling=FactSettling(facts, notices, ground.services.now),
            notices=notices,
        )
    return FactWork(
        listener,
        agent.settings,
        queue=queue,
        store=DocumentStore(ground.redis, ground.services.kinds),
        services=ground.services,
        meter=ground.metrics,
        retry=retry,
        agent_files=settings.agent_files,
        agent_id=agent.agent_id,
        notices=notices,
    )


async def _engines(
    agent: Agent,
    name: Queue,
    queue: PersonalQueue,
    outflow: Outflow,
    ground: ListenerDependencies,
    embedding: Embedding | None,
) -> list[PullEngine]:
    handler = InflowHandler(
        _STREAMS[name],
        Owner(ground.worker_id, agent.agent_id),
        queue=queue,
        eraser=Eraser(ground.client)
        if ground.settings.erase_said == "at_once"
        else None,
        outbox=ground.outbox,
        meter=ground.metrics,
        appended=outflow.look_soon,
        publishers=open_publishers(access_of()),
        episodes=ground.episodes if name == "turns" else None,
        spoken=embedding.note if embedding is not None else lambda _owner: None,
    )
    return await open_partitions(
        ground.link,
        sources_of(name, min(ACK_WAIT_S, ground.settings.ack_wait_s)),
        handler,
        leases=ground.leases,
        meter=ground.metrics,
        heal=ground.heal,
        may_create=ground.settings.provision == "auto",
    )
