"""Watches: looks at the streams, the ledger and the store now and then, exported as metrics."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, get_args

import structlog
from nats.aio.client import Client
from pydantic import TypeAdapter, ValidationError
from redis.asyncio import ConnectionPool, Redis
from redis.exceptions import RedisError

from tasklore.contracts import subjects
from tasklore.contracts.admission.limits import Every
from tasklore.contracts.cadence import until_look
from tasklore.contracts.errors import MemoryUnavailable, TaskloreError
from tasklore.contracts.messages import CompletionReport
from tasklore.contracts.words import OTHER
from tasklore.memory import keys
from tasklore.memory.budgets.overview import AccountView, read_accounts
from tasklore.memory.budgets.store import Budgets
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.tally import Tally
from tasklore.memory.ledger.waits import Waits
from tasklore.memory.shared_values import SharedReading
from tasklore.memory.webhooks.outbox import WebhookOutbox
from tasklore.runtime.messaging.buckets import read_bucket
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.metrics import Metrics
from tasklore.supervisor.cards import CardIndex
from tasklore.supervisor.reports.reports import ReportWaiter, RunTimes, TaskCosts
from tasklore.supervisor.webhooks.events import WebhookEvents

log = structlog.get_logger(__name__)

#: Seconds between looks: a scraper comes every 15 s or so, and then sees what was purged before.
LOOK_S = 5.0
#: Seconds between looks into the ledger, of which one supervisor's takes 30 ms of CPU time and 7 ms of the server's.
TALLY_S = 10.0
#: Milliseconds for which what one supervisor was told of the backlog is that of all.
BACKLOG_MS = 2_500
#: Seconds for the command that ends a script: a busy server answers it at once.
KILL_S = 2.0
#: Agents with series of their own, those with most tasks; the others are counted as one.
MOST_AGENTS = 64
#: Seconds between looks at questions, which persons answer in minutes.
QUESTIONS_S = 30.0
#: Questions that are looked at, at most, some at once, and those that are counted.
MOST_QUESTIONS = 1_000
_QUESTIONS_AT_ONCE = 100
_MOST_LISTED = 100_000
#: Tasks that call back and are looked through at once.
CALLBACKS = 200


class Watcher(ABC):
    """A look that is repeated."""

    #: Seconds between looks.
    every_s = LOOK_S

    async def run(self) -> None:
        """Look every `every_s` seconds until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self.look()
            await asyncio.sleep(until_look(loop.time(), self.every_s))

    @abstractmethod
    async def look(self) -> None:
        """Look once."""


class StreamWatch(Watcher):
    """The number and age of messages in *stream*; both are 0 when it is empty, or could not be asked.

    *now* returns seconds since 1970.
    """

    def __init__(
        self, client: Client, stream: str, now: Callable[[], float] = time.time
    ) -> None:
        self._client = client
        self._stream = stream
        self._now = now
        self._waiting = 0
        self._oldest_at: float | None = None

    def waiting(self) -> float:
        """Return the number of messages."""
        return self._waiting

    def oldest_s(self) -> float:
        """Return the age of the oldest message, in seconds."""
        return (
            0.0 if self._oldest_at is None else max(0.0, self._now() - self._oldest_at)
        )

    async def look(self) -> None:
        """Ask once."""
        try:
            state: dict[str, Any] = (
                await ask_jetstream(self._client, f"STREAM.INFO.{self._stream}")
            )["state"]
        except TaskloreError as error:
            log.info("stream_not_counted", stream=self._stream, error=str(error))
            state = {"messages": 0}
        self._waiting = state["messages"]
        self._oldest_at = (
            datetime.fromisoformat(state["first_ts"]).timestamp()
            if self._waiting
            else None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBacklog:
    """Numbers of tasks by subject, when the oldest was stored ("" where that is not known), and of workers by agent."""

    tasks: dict[str, int]
    first_at: str
    workers: dict[str, int]


class BacklogWatch(Watcher):
    """The tasks that wait or run, by agent, and the workers that are alive; nothing while the server cannot be asked.

    Seen from outside, as a dead worker exports nothing. A task lies in TASKS until it is acknowledged, so that waiting
    and running ones are counted together.

    Args:
        link: The connection to NATS.
        shared: Lets one supervisor ask for all: each asks twice, and is sent a message a worker.
        agents: Ids of the known agents.
        run_times: How long tasks take.
        now: Seconds since 1970.
    """

    def __init__(
        self,
        link: Link,
        shared: SharedReading[TaskBacklog],
        agents: Callable[[], Iterable[str]],
        run_times: RunTimes,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._link = link
        self._shared = shared
        self._agents = agents
        self._run_times = run_times
        self._now = now
        #: By agent and task.
        self._tasks: dict[tuple[str, str], int] = {}
        self._workers: Counter[str] = Counter()
        self._shown: frozenset[str] = frozenset()
        self._oldest_at: float | None = None

    def unfinished(self) -> Mapping[str, float]:
        """Return the number of tasks that wait or run, by agent."""
        return self._sum_by_agent(dict.fromkeys(self._tasks, 1.0))

    def slot_s(self) -> Mapping[str, float]:
        """Return the seconds for which they will hold a slot, all together, by agent."""
        return self._sum_by_agent(
            {name: self._run_times.of(*name) for name in self._tasks}
        )

    def workers(self) -> Mapping[str, float]:
        """Return the number of workers that are alive, by agent."""
        counted = dict.fromkeys(self._shown, 0.0)
        for agent, number in self._workers.items():
            shown = agent if agent in self._shown else OTHER
            counted[shown] = counted.get(shown, 0.0) + number
        return counted

    def oldest_s(self) -> float:
        """Return for how many seconds the oldest task has been waiting or running, 0 when there is none."""
        return (
            0.0 if self._oldest_at is None else max(0.0, self._now() - self._oldest_at)
        )

    async def look(self) -> None:
        """Ask once, or take what another supervisor was answered just now."""
        backlog = TaskBacklog(tasks={}, first_at="", workers={})
        try:
            try:
                backlog = (await self._shared.take(self._read)).value
            except MemoryUnavailable as error:
                log.info("backlog_not_shared", error=str(error))
                backlog = await self._read()
        except TaskloreError as error:
            log.info("backlog_not_counted", error=str(error))
        self._tasks = {}
        for subject, number in backlog.tasks.items():
            agent, _, task = subject.partition(".")[2].partition(".")
            self._tasks[agent, task] = number
        self._oldest_at = (
            datetime.fromisoformat(backlog.first_at).timestamp()
            if self._tasks
            else None
        )
        self._workers = Counter(backlog.workers)
        waiting: Counter[str] = Counter(
            dict.fromkeys([*self._workers, *self._agents()], 0)
        )
        for (agent, _), number in self._tasks.items():
            waiting[agent] += number
        self._shown = (
            frozenset(agent for agent, _ in waiting.most_common(MOST_AGENTS))
            if backlog.first_at
            else frozenset()
        )

    async def _read(self) -> TaskBacklog:
        """Ask the server.

        Raises:
            TaskloreError: it does not answer, so that there is nothing to share.
        """
        question = {"subjects_filter": subjects.TASKS_ALL}
        state: dict[str, Any] = (
            await ask_jetstream(
                self._link.client, f"STREAM.INFO.{subjects.TASKS}", question
            )
        )["state"]
        present: dict[str, bytes] = {}
        try:
            present = await read_bucket(self._link, subjects.WORKERS_BUCKET)
        except TaskloreError as error:
            # Before the first worker there is no bucket of them.
            log.info("workers_not_counted", error=str(error))
        return TaskBacklog(
            tasks=state.get("subjects") or {},
            first_at=state["first_ts"],
            workers=Counter(key.partition(".")[0] for key in present),
        )

    def _sum_by_agent(
        self, weights: Mapping[tuple[str, str], float]
    ) -> dict[str, float]:
        found = dict.fromkeys(self._shown, 0.0)
        for name, number in self._tasks.items():
            shown = name[0] if name[0] in self._shown else OTHER
            found[shown] = found.get(shown, 0.0) + number * weights.get(name, 0.0)
        return found


class LedgerWatch(Watcher):
    """The number of tasks that ended in each state; the last numbers stay while the ledger is away.

    One supervisor adds them up for all: 16,384 counters are too many for each.
    """

    every_s = TALLY_S

    def __init__(self, tally: Tally, now: Callable[[], float] = time.monotonic) -> None:
        self._tally = tally
        self._now = now
        self._read_at = now()
        self._ended: Mapping[str, int] = {}

    def ended(self) -> Mapping[str, int]:
        """Return the numbers by state, none before the first look."""
        return self._ended

    def age_s(self) -> float:
        """Return for how many seconds the ledger has not been read, from the start when it never was."""
        return max(0.0, self._now() - self._read_at)

    async def look(self) -> None:
        """Ask once."""
        try:
            sums = await self._tally.read_shared()
        except MemoryUnavailable as error:
            log.info("ledger_not_counted", error=str(error))
        else:
            self._ended = {"completed": 0, **sums.value}
            self._read_at = self._now() - sums.age_s


class StoreWatch(Watcher):
    """The part of its `maxmemory` that the store of *redis* uses; a function that never ends there is killed."""

    every_s = TALLY_S

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._part = 0.0

    def part(self) -> float:
        """Return the used part of its memory, 0 where it has no limit or could not be asked."""
        return self._part

    async def look(self) -> None:
        """Ask once; a server that does not answer may run a function, which is killed if it has not written."""
        try:
            info = await self._redis.info("memory")
        except (RedisError, OSError) as error:
            log.info("store_not_measured", error=str(error))
            self._part = 0.0
            await self._kill_scripts()
        else:
            self._part = (
                info["used_memory"] / info["maxmemory"]
                if info.get("maxmemory")
                else 0.0
            )

    async def _kill_scripts(self) -> None:
        pool = self._redis.connection_pool
        # A busy server accepts no CLIENT SETNAME.
        options = {**pool.connection_kwargs, "client_name": None}
        for kind in ("FUNCTION", "SCRIPT"):
            async with Redis(
                connection_pool=ConnectionPool(
                    connection_class=pool.connection_class, **options
                )
            ) as bare:
                try:
                    async with asyncio.timeout(KILL_S):
                        await bare.execute_command(kind, "KILL")  # type: ignore[no-untyped-call]  # redis-py
                except (RedisError, OSError) as error:
                    log.info("no_script_ended", kind=kind, error=str(error))
                else:
                    log.warning("script_ended", kind=kind)


class LimitWatch(Watcher):
    """How full the accounts of each limit are; the last figures stay while the store is away."""

    every_s = TALLY_S

    def __init__(
        self, budgets: Budgets, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._budgets = budgets
        self._now = now
        self._accounts: tuple[AccountView, ...] = ()

    def used(self) -> Mapping[str, float]:
        """Return the used part of each limit, of its fullest account."""
        return self._largest(lambda one: one.used)

    def spent(self) -> Mapping[str, float]:
        """Return the same of limits of a day or a month."""
        return self._largest(lambda one: one.used, ("day", "month"))

    def unconfirmed(self) -> Mapping[str, float]:
        """Return the unconfirmed part of each limit, of the account with most."""
        return self._largest(lambda one: one.unconfirmed / one.amount)

    def waiting(self) -> Mapping[str, float]:
        """Return the number of calls that wait, by limit."""
        found: dict[str, float] = {}
        for one in self._accounts:
            found[one.limit] = found.get(one.limit, 0) + one.waiting
        return found

    async def look(self) -> None:
        """Ask once."""
        try:
            limits = (await self._budgets.read()).limits
            self._accounts = await read_accounts(self._budgets, limits, self._now())
        except MemoryUnavailable as error:
            log.info("limits_not_read", error=str(error))

    def _largest(
        self,
        part: Callable[[AccountView], float],
        every: Collection[str | None] = (None, *get_args(Every)),
    ) -> dict[str, float]:
        found: dict[str, float] = {}
        for one in self._accounts:
            if one.every in every:
                found[one.limit] = max(found.get(one.limit, 0.0), part(one))
        return found


class WaitWatch(Watcher):
    """The number of open waits, and of webhooks; the last figures stay while the store is away."""

    every_s = TALLY_S

    def __init__(self, waits: Waits, webhooks: WebhookOutbox) -> None:
        self._waits = waits
        self._webhooks = webhooks
        self.open = self.sending = self.failed = 0
        self._oldest: datetime | None = None

    def oldest_s(self) -> float:
        """Return for how many seconds the webhook that waits longest is tried, 0 when none waits."""
        return (
            0.0
            if self._oldest is None
            else max(0.0, (datetime.now(UTC) - self._oldest).total_seconds())
        )

    async def look(self) -> None:
        """Ask once."""
        try:
            self.open = await self._waits.count_open()
            self.sending, self.failed = await self._webhooks.counts()
            self._oldest = await self._webhooks.oldest()
        except MemoryUnavailable as error:
            log.info("waits_not_counted", error=str(error))


class QuestionWatch(Watcher):
    """The number of questions that wait for a person, and since when; the last figures stay while the ledger is away.

    Of more than `MOST_QUESTIONS` the others are counted as they are listed, and the oldest is one of those looked at.
    """

    every_s = QUESTIONS_S

    def __init__(
        self, waits: Waits, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._waits = waits
        self._now = now
        self._open = 0
        self._oldest: datetime | None = None

    def open(self) -> float:
        """Return the number of open questions."""
        return self._open

    def oldest_s(self) -> float:
        """Return for how many seconds the oldest one waits, 0 when there is none."""
        if self._oldest is None:
            return 0.0
        return max(0.0, (self._now() - self._oldest).total_seconds())

    async def look(self) -> None:
        """Ask once."""
        try:
            names = await self._waits.list_open("ask", _MOST_LISTED)
            # One that has just ended may be listed still.
            ended = 0
            asked: list[datetime] = []
            for first in range(0, min(len(names), MOST_QUESTIONS), _QUESTIONS_AT_ONCE):
                page = names[first : first + _QUESTIONS_AT_ONCE]
                for state in await self._waits.read_many(page):
                    if state is not None and state.is_open:
                        asked.append(state.wait.asked_at)
                    else:
                        ended += 1
        except MemoryUnavailable as error:
            log.info("questions_not_counted", error=str(error))
            return
        self._open = len(names) - ended
        self._oldest = min(asked, default=None)


class CallbackWatch(Watcher):
    """Finds tasks that ended while no supervisor took their reports, which lie in REPORTS for an hour alone."""

    every_s = 1800.0

    def __init__(
        self,
        events: WebhookEvents,
        ledger: Ledger,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._events = events
        self._ledger = ledger
        self._now = now

    async def look(self) -> None:
        """Ask the ledger once for each open task that calls back; an event that is known is not stored again."""
        seen = 0
        try:
            while page := await self._events.outbox.open_tasks(
                self._now(), seen, CALLBACKS
            ):
                seen += len(page)
                # An id alone leads to an entry only as long as its report is kept.
                named = [await self._ledger.name(task_id) for task_id in page]
                entries = [await self._ledger.read(task) for task in named]
                reports = [
                    one.generations[one.newest].report
                    for one in entries
                    if one is not None
                ]
                ended = [
                    (CompletionReport.model_validate_json(body), "")
                    for body in reports
                    if body is not None
                ]
                await self._events.note_reports(ended)
                seen -= len(ended)
        except (MemoryUnavailable, ValidationError) as error:
            log.info("callbacks_not_looked_through", error=str(error))


class CostKeeper(Watcher):
    """Keeps what the last reports of each task had cost, for estimates."""

    def __init__(self, budgets: Budgets, costs: TaskCosts) -> None:
        self._budgets = budgets
        self._costs = costs

    async def look(self) -> None:
        """Store the costs of the reports since the last look; they are lost when the store is away."""
        try:
            await self._budgets.note_costs(self._costs.take())
        except MemoryUnavailable as error:
            log.info("costs_not_kept", error=str(error))


def make_watches(
    metrics: Metrics,
    link: Link,
    redis: Redis,
    cards: CardIndex,
    reports: ReportWaiter,
    webhooks: WebhookEvents | None = None,
) -> tuple[Watcher, ...]:
    """Return the watches of a supervisor, to be run; *metrics* exports their last values."""
    dead = StreamWatch(link.client, subjects.DEAD)
    messages = StreamWatch(link.client, subjects.MESSAGES)
    shared = SharedReading(
        redis, keys.backlog(), keep_ms=BACKLOG_MS, kind=TypeAdapter(TaskBacklog)
    )
    backlog = BacklogWatch(
        link, shared, lambda: cards.catalogue.cards, reports.run_times
    )
    ledger = LedgerWatch(Tally(redis))
    store = StoreWatch(redis)
    limits = LimitWatch(Budgets(redis))
    costs = CostKeeper(Budgets(redis), reports.costs)
    waits = WaitWatch(Waits(redis), WebhookOutbox(redis))
    metrics.watch_waits(lambda: waits.open)
    questions = QuestionWatch(Waits(redis))
    metrics.watch_questions(questions.open, questions.oldest_s)
    calling = () if webhooks is None else (CallbackWatch(webhooks, Ledger(redis)),)
    if webhooks is not None:
        metrics.watch_webhooks(
            lambda: waits.sending, lambda: waits.failed, waits.oldest_s
        )
    metrics.watch_dead_letters(dead.waiting, dead.oldest_s)
    metrics.watch_waiting("messages", messages.waiting, messages.oldest_s)
    metrics.watch_tasks(
        backlog.unfinished, backlog.slot_s, backlog.workers, backlog.oldest_s
    )
    metrics.watch_ledger(ledger.ended, ledger.age_s)
    metrics.watch_store(store.part)
    metrics.watch_limits(limits.used, limits.spent, limits.unconfirmed, limits.waiting)
    looks = (dead, messages, backlog, ledger, store, limits, costs, waits, questions)
    return (*looks, *calling)
