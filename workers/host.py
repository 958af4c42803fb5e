"""The host of a worker process: one pull engine an agent, its listeners, and the small loops that keep its word."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import structlog

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import Cancellation
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.long_term.store import LongTermMemory
from tasklore.runtime.blocking import Runner
from tasklore.runtime.messaging.pull import PullEngine
from tasklore.workers.agent import Agent
from tasklore.workers.execution.bounded_runs import HeldPlaces
from tasklore.workers.execution.consumer import Consumer
from tasklore.workers.execution.stores import EndedRuns, Name
from tasklore.workers.listening.queue_listener import QueueListener

log = structlog.get_logger(__name__)

#: Seconds between two writes of how often entries were served: what a crash loses of a mere statistic.
FLUSH_S = 1.0


@dataclass(slots=True)
class ServedAgent:
    """An agent at work: its engine and its consumer."""

    agent: Agent
    engine: PullEngine
    consumer: Consumer


@dataclass(slots=True)
class Host:
    """The agents of this process, working until `drain`."""

    agents: list[ServedAgent] = field(default_factory=list)
    listeners: list[QueueListener] = field(default_factory=list)
    hits: Counter[str] = field(default_factory=Counter)
    own_hits: Counter[tuple[str, str]] = field(default_factory=Counter)
    ended: EndedRuns = field(default_factory=EndedRuns)
    places: HeldPlaces = field(default_factory=HeldPlaces)

    def reconnected(self) -> None:
        """Let every engine ask anew."""
        for served in self.agents:
            served.engine.reconnected()
        for listener in self.listeners:
            listener.reconnected()

    def look_soon(self, queue: str) -> None:
        """Have the listener of *queue*, `turns` or `facts`, look at its rows at once, if one is here."""
        for listener in self.listeners:
            if listener.queue_name == queue:
                listener.outflow.look_soon()

    def cancel(self, request: Cancellation) -> set[str]:
        """Cancel a task and its children as far as they are here; return the children, which may have some too."""
        children = set[str]()
        for served in self.agents:
            was_here, found = served.consumer.jobs.cancel(
                request.task_id, request.reason
            )
            children |= found
            if was_here:
                log.info(
                    "task_cancelled",
                    agent=served.agent.agent_id,
                    task_id=request.task_id,
                )
        return children

    async def renew_runs(
        self, ledger: Ledger, worker_id: str, lease_ms: int
    ) -> list[Name]:
        """Lease anew in *ledger* what runs here, and return what other workers have taken; for any thread."""
        runs = [
            name
            for served in list(self.agents)
            for name in served.consumer.jobs.running()
        ]
        try:
            await self.ended.flush(ledger)
            return await ledger.hold(runs, worker_id, lease_ms)
        except MemoryUnavailable as error:
            log.info("run_leases_not_renewed", runs=len(runs), error=str(error))
            return []

    def replace(self, names: list[Name]) -> None:
        """End the runs of *names*, which other workers have taken meanwhile."""
        for served in self.agents:
            served.consumer.jobs.replace(names)

    def pause(self, is_paused: bool) -> None:
        """Take nothing while a task is to run alone."""
        for served in self.agents:
            served.engine.pause(is_paused=is_paused)

    @property
    def held(self) -> int:
        """Deliveries that are open in this process."""
        return sum(served.engine.held for served in self.agents)

    def find_run(self, task: "asyncio.Task[object]") -> Runner | None:
        """Return the run that *task* belongs to, None without one; for any thread."""
        for served in list(self.agents):
            job = served.consumer.jobs.find(task)
            if job is not None:
                return Runner(
                    served.agent.agent_id, job.task.name, job.assignment.task_id
                )
        return None

    def alive(self) -> tuple[bool, str]:
        """Return whether every engine makes progress or is provably idle, and a word on the one that does not."""
        for served in self.agents:
            fine, word = served.engine.vital_sign()
            if not fine:
                return False, f"{served.agent.agent_id}: {word}"
        for listener in self.listeners:
            fine, word = listener.vital_sign()
            if not fine:
                return False, word
        heard = (
            f", {len(self.listeners)} listeners at work for {self._listened_to} users"
            if self.listeners
            else ""
        )
        return True, f"{len(self.agents)} agents, {self.held} deliveries open{heard}"

    def ready(self) -> tuple[bool, str]:
        """Return whether every consumer can be read, and which cannot."""
        missing = [
            served.agent.agent_id for served in self.agents if not served.engine.ready
        ]
        missing += [
            f"{one.agent_id} on {one.queue_name}"
            for one in self.listeners
            if not one.ready
        ]
        return (
            not missing,
            f"no consumer for {', '.join(missing)}" if missing else "pulling",
        )

    @property
    def _listened_to(self) -> int:
        return sum(listener.busy for listener in self.listeners)

    async def flush_hits(self, memory: LongTermMemory) -> None:
        """Write the hits since the last time, until cancelled; the last of them by `flush_once`."""
        while True:
            await asyncio.sleep(FLUSH_S)
            await self.flush_once(memory)

    async def flush_once(self, memory: LongTermMemory) -> None:
        """Write the hits since the last time; they are kept for the next time when Redis is away."""
        served = Counter(self.hits)
        own = Counter(self.own_hits)
        if not served:
            return
        self.hits.clear()
        self.own_hits.clear()
        try:
            await memory.count_hits(served, own)
        except MemoryUnavailable:
            self.hits.update(served)
            self.own_hits.update(own)

    def stop(self) -> None:
        """Take no more work, and hand back tasks that have not begun."""
        for served in self.agents:
            served.engine.stop()
            served.consumer.jobs.leave()
        for listener in self.listeners:
            listener.stop()

    async def drain(self, grace_s: float, hurried: asyncio.Event) -> None:
        """Stop, and wait for what runs: up to *grace_s*, or until *hurried*.

        What still runs then is handed back when the engines end, and the rows of listeners with their loops.
        """
        self.stop()

        async def empty() -> None:
            for served in self.agents:
                await served.engine.emptied()
            for listener in self.listeners:
                await listener.emptied()

        async def hurry_up() -> None:
            await hurried.wait()

        emptied = asyncio.create_task(empty())
        hurry = asyncio.create_task(hurry_up())
        await asyncio.wait(
            [emptied, hurry], timeout=grace_s, return_when=asyncio.FIRST_COMPLETED
        )
        if emptied.done():
            log.info("drained")
        else:
            log.warning(
                "drained_with_work_left", left=self.held, users=self._listened_to
            )
        for waiting in (emptied, hurry):
            waiting.cancel()
        await asyncio.gather(emptied, hurry, return_exceptions=True)
