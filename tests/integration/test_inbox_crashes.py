"""Agents that die at every step: no message is lost, and none is new again once a task has used it."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

from redis.asyncio import Redis

from tasklore.contracts.conversations import TakenMessages, Utterance
from tasklore.contracts.messages import TaskAssignment, TaskCall
from tasklore.contracts.observations import Action, AgentTarget, Observation
from tasklore.memory.conversations.inbox import Inbox
from tasklore.workers.context.history import TaskHistory
from tests.integration.inboxes import ids, said

AGENTS = ("Ann", "Bob", "Cay", "Dan")
#: Runs of a task before its caller gives it up.
ATTEMPTS = 3
CRASHES = 1_000


#: Seams behind which what a task decided stands.
_SETTLED = {"after settle", "before post", "after post", "on report"}


class Crash(Exception):
    """The process is gone: nothing behind this line happens."""


@dataclass
class Seams:
    """Where a process may die: before a call reached the store, or when it was done but nobody heard of it."""

    random: Random
    crashes: Counter[str] = field(default_factory=Counter)

    def here(self, seam: str) -> None:
        if self.random.random() < 0.12:
            self.crashes[seam] += 1
            raise Crash(seam)

    async def around(self, seam: str, call: Callable[[], Awaitable[Any]]) -> Any:
        self.here(f"before {seam}")
        result = await call()
        self.here(f"after {seam}")
        return result


@dataclass
class Village:
    """Agents that talk to each other, and what came of every task."""

    inbox: Inbox
    seams: Seams
    sent: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    used: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    #: What each task that reported told its world that its agent had said.
    reported: dict[str, str] = field(default_factory=dict)
    heard: dict[str, str] = field(default_factory=dict)
    posted_late: int = 0
    gave_up: int = 0

    async def task(self, agent: str, number: int, arriving: list[Utterance]) -> None:
        task_id = f"{agent}-{number}"
        assignment = TaskAssignment(
            task_id=task_id,
            agent_id="Decider",
            supervisor_id="S",
            task=TaskCall(name="decide", parameters={}),
            created_at=datetime(2026, 11, 21, tzinfo=UTC),
            conversation_id=agent,
        )
        shown: list[list[str]] = []
        has_settled = False
        for _ in range(ATTEMPTS):
            try:
                has_settled = await self._run(
                    TaskHistory(assignment, agent, self.inbox), agent, arriving, shown
                )
                break
            except Crash as crash:
                has_settled = has_settled or str(crash) in _SETTLED
        assert all(new == shown[0] for new in shown), (
            "a retry saw other messages as new"
        )
        self.gave_up += not has_settled
        if has_settled:
            self.used[agent] += shown[-1]

    async def _run(
        self,
        history: TaskHistory,
        agent: str,
        arriving: list[Utterance],
        shown: list[list[str]],
    ) -> bool:
        seams = self.seams
        seams.here("before the call")
        taken: TakenMessages = await seams.around(
            "take", lambda: history.take(arriving, observations=5)
        )
        shown.append(ids(taken.history.current))
        for one in taken.history.current:
            if one.speaker not in AGENTS:
                assert one.message == f"I am {one.message_id}"
            self.heard[one.message_id] = one.message
        to = AGENTS[(AGENTS.index(agent) + 1 + _order(history.said_id)[0] % 3) % 4]
        # Whoever decides anew wishes something else.
        done = taken.done.did if taken.done is not None else None
        wished = f"I wish {seams.random.random()}"
        did = done or Action(
            action="text", target=AgentTarget(agent=to), utterance=wished
        )
        message = said(history.said_id, agent, message=did.utterance or "")
        seams.here("between take and settle")
        await seams.around(
            "settle", lambda: history.settle(message, Observation(time=1.0, did=did))
        )
        is_new = await seams.around("post", lambda: self._post(history, to, message))
        self.posted_late += is_new and done is not None
        seams.here("on report")
        self.reported[history.said_id] = message.message
        return True

    async def own_words(self) -> dict[str, str]:
        pages = [await self.inbox.page(agent, None, 1_000) for agent in AGENTS]
        assert not any(page.before for page in pages)
        return {
            one.message_id: one.message
            for page in pages
            for one in page.messages
            if one.own
        }

    async def _post(self, history: TaskHistory, to: str, message: Utterance) -> bool:
        is_new = await history.post(to, message)
        if is_new:
            self.sent[to].append(message.message_id)
        return is_new


async def test_a_thousand_crashes_lose_no_message_and_show_none_twice(
    redis: Redis,
) -> None:
    """Before, during and after each call; senders keep their order, and a decision stands once."""
    random = Random(7)
    village = Village(Inbox(redis, deadline_s=60), Seams(random))
    expected: dict[str, set[str]] = defaultdict(set)

    async def live(agent: str, round_: int) -> None:
        for number in range(random.randrange(3)):
            name = f"radio-{agent}-{round_}-{number}"
            # Whoever sends does not know whether it arrived, and sends again.
            for _ in range(random.randrange(1, 3)):
                await village.inbox.post(agent, said(name, "radio"))
            expected[agent].add(name)
        arriving = [
            said(f"world-{agent}-{round_}-{number}", "world")
            for number in range(random.randrange(3))
        ]
        # A task that never reached the store stored nothing; its caller hands its messages on.
        await village.task(agent, round_, held[agent] + arriving)
        expected[agent] |= set(ids(tuple(arriving)))
        held[agent] = (held[agent] + arriving)[-20:]

    held: dict[str, list[Utterance]] = defaultdict(list)
    round_ = 0
    while sum(village.seams.crashes.values()) < CRASHES:
        await asyncio.gather(*(live(agent, round_) for agent in AGENTS))
        round_ += 1
    village.seams.here = lambda seam: None  # type: ignore[method-assign] # from now on nobody dies
    sent = {agent: set(names) for agent, names in village.sent.items()}
    for agent in AGENTS:
        await village.task(agent, round_, held[agent])
    # And everybody hears what the last ones said.
    for agent in AGENTS:
        await village.task(agent, round_ + 1, [])
    assert len(village.seams.crashes) == 9, village.seams.crashes
    assert min(village.gave_up, village.posted_late) > 10
    stands = await village.own_words()
    heard = {
        name: words for name, words in village.heard.items() if name.endswith(":said")
    }
    assert heard.items() <= stands.items(), "heard what does not stand"
    reported = {
        (name, words)
        for name, words in village.reported.items()
        if _order(name)[0] <= round_
    }
    assert reported <= heard.items(), "reported, and not delivered as reported"

    for agent in AGENTS:
        used = Counter(village.used[agent])
        assert set(used) >= expected[agent] | sent[agent], "lost"
        assert used.most_common(1)[0][1] == 1, "shown twice as new after success"
        for sender in ("radio", "world", *AGENTS):
            own = [one for one in village.used[agent] if one.startswith(sender)]
            assert own == sorted(own, key=_order), f"{sender}'s order"


def _order(name: str) -> list[int]:
    return [
        int(part) for part in name.removesuffix(":said").split("-") if part.isdigit()
    ]
