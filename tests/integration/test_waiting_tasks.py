"""Tasks that found no room under a limit: as many are woken as there is room for, whatever makes it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.limits import CallUsage, Limits, read_limits
from tasklore.contracts.errors import LlmThrottled
from tasklore.memory import keys
from tasklore.memory.budgets.governor import Governor
from tasklore.memory.budgets.overview import read_accounts
from tasklore.memory.budgets.store import Budgets
from tasklore.memory.budgets.waiting_tasks import WaitingTasks
from tasklore.memory.functions import load_functions
from tests.integration.test_governor import call, price

DAY = {"name": "day", "requests": 2, "every": "day"}


class Clock:
    """A clock of the days, which stands until it is moved."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC)

    def now(self) -> datetime:
        """Return its time."""
        return self.at


async def declare(redis: Redis, *limits: dict[str, Any]) -> Limits:
    """Store *limits*, in place of others."""
    await load_functions(redis)
    declared = read_limits({"limits": limits})
    await Budgets(redis).change(declared, "test")
    return declared


async def asks(redis: Redis, task: str, **payer: Any) -> Any:
    """Make a call of *task* by a process that read the limits just now; return None where it has to wait."""
    governor = Governor(redis)
    try:
        held = await governor.reserve(call(task_id=task, run=f"{task}:1:1", **payer))
    except LlmThrottled:
        return None
    most = held.input_tokens + held.call.most_output
    governor.settle(held, CallUsage(input=most, nano_usd=price(most, 0) or 0))
    await governor.flush()
    return held


async def fill(redis: Redis, tasks: int, room: int = 2, **payer: Any) -> list[str]:
    """Let *tasks* ask in turn, of which *room* may; return those that wait, as they are woken."""
    found = [await asks(redis, f"t{number}", **payer) for number in range(tasks)]
    assert sum(one is not None for one in found) == room
    return [f"t{number}:1" for number in range(room, tasks)]


@pytest.mark.parametrize(
    ("limit", "raised", "woken"),
    [
        (DAY, {"requests": 5}, 3),
        ({**DAY, "every": "month"}, {"requests": 3}, 1),
        ({**DAY, "every": "minute"}, {"requests": 4}, 2),
        ({**DAY, "requests": None, "tokens": 300}, {"tokens": 600}, 2),
        ({**DAY, "requests": None, "usd": "0.003"}, {"usd": "0.0045"}, 1),
        ({**DAY, "tenant": "acme"}, {"requests": 4}, 2),
        ({**DAY, "tenant": "*"}, {"requests": 4}, 2),
        ({**DAY, "agent": "*"}, {"requests": 4}, 2),
        ({**DAY, "model": "gpt-*"}, {"requests": 4}, 2),
        (DAY, {"requests": 2, "tenant": "zeta"}, 6),
    ],
)
async def test_a_raise_wakes_as_many_as_it_lets_through(
    redis: Redis, limit: dict[str, Any], raised: dict[str, Any], woken: int
) -> None:
    """In their order, each once; the others go on waiting, and are counted."""
    limit = {name: value for name, value in limit.items() if value is not None}
    payer = {"tenant": "acme", "agent": "Reader"}
    await declare(redis, limit)
    waiting = await fill(redis, 8, **payer)
    waiting_tasks = WaitingTasks(redis)
    assert await waiting_tasks.wake(100) == []
    declared = await declare(redis, limit | raised)
    assert await waiting_tasks.wake(100) == waiting[:woken]
    assert await waiting_tasks.wake(100) == []
    accounts = await read_accounts(Budgets(redis), declared, datetime.now(UTC))
    if raised.get("tenant") is None:
        assert [one.waiting for one in accounts] == [len(waiting)]
    for task in waiting[:woken]:
        assert await asks(redis, task.partition(":")[0], **payer) is not None
    assert await waiting_tasks.wake(100) == []
    accounts = await read_accounts(Budgets(redis), declared, datetime.now(UTC))
    if raised.get("tenant") is None:
        assert [one.waiting for one in accounts] == [len(waiting) - woken]


async def test_a_removal_wakes_all_a_bounded_number_at_a_time(redis: Redis) -> None:
    """Those that another limit holds back wait on."""
    agent = {"name": "agent", "agent": "Slow", "requests": 1, "every": "day"}
    await declare(redis, DAY, agent)
    waiting = await fill(redis, 9, tenant="acme", agent="Fast")
    await asks(redis, "slow", agent="Slow")
    await declare(redis, agent)
    waiting_tasks = WaitingTasks(redis)
    woken = await waiting_tasks.wake(5)
    assert woken == waiting[:5]
    assert await waiting_tasks.wake(5) == [*waiting[5:], "slow:1"]


async def test_what_another_limit_holds_back_is_not_woken(redis: Redis) -> None:
    """Nor does it keep those behind it from the room that it cannot take."""
    await declare(redis, DAY, {**DAY, "name": "each", "tenant": "*", "requests": 1})
    assert await asks(redis, "a0", tenant="a") is not None
    assert await asks(redis, "b0", tenant="b") is not None
    assert await asks(redis, "a1", tenant="a") is None
    assert await asks(redis, "c1", tenant="c") is None
    await declare(
        redis,
        {**DAY, "requests": 9},
        {**DAY, "name": "each", "tenant": "*", "requests": 1},
    )
    assert await WaitingTasks(redis).wake(9) == ["c1:1"]


async def test_a_refund_wakes_those_that_it_leaves_room_for(redis: Redis) -> None:
    """What calls of a dead worker may have cost is given back once they are settled."""
    await declare(redis, {"name": "day", "tokens": 300, "every": "day"})
    account = keys.budget("account", "day")
    window = f"{datetime.now(UTC):%Y-%m-%d}"
    await redis.hset(account, mapping={"u": 290, "win": window})
    waiting = await fill(redis, 4, room=0)
    waiting_tasks = WaitingTasks(redis)
    assert await waiting_tasks.wake(9) == []
    await redis.hset(account, "u", 30)
    assert await waiting_tasks.wake(9) == waiting[:2]


async def test_another_day_wakes_as_many_as_it_lets_through(redis: Redis) -> None:
    """With the turn of the period."""
    await declare(redis, DAY)
    waiting = await fill(redis, 6)
    clock = Clock()
    waiting_tasks = WaitingTasks(redis, now=clock.now)
    assert await waiting_tasks.wake(9) == []
    clock.at += timedelta(days=1)
    assert await waiting_tasks.wake(9) == waiting[:2]


async def test_one_that_was_woken_before_it_waited_is_woken_again(
    redis: Redis,
) -> None:
    """Its worker notes that it waits a little after it was refused."""
    await declare(redis, DAY)
    waiting = await fill(redis, 3)
    await declare(redis, {**DAY, "requests": 3})
    waiting_tasks = WaitingTasks(redis)
    assert await waiting_tasks.wake(9) == waiting
    assert await waiting_tasks.wake(9) == []
    await waiting_tasks.wake_again(waiting[0])
    assert await waiting_tasks.wake(9) == waiting


async def test_one_that_looks_no_more_is_forgotten(redis: Redis) -> None:
    """A task that was cancelled while it waited counts as waiting for a quarter of an hour at most."""
    declared = await declare(redis, DAY)
    waiting = await fill(redis, 3)
    await redis.zadd(keys.budget("looks"), {waiting[0]: 1})
    assert await WaitingTasks(redis).wake(9) == []
    accounts = await read_accounts(Budgets(redis), declared, datetime.now(UTC))
    assert [one.waiting for one in accounts] == [0]
    assert await redis.exists(*(keys.budget(one) for one in ("waiters", "looks"))) == 0
