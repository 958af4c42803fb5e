"""Tasks that found no room under a limit: as many are woken as there is room for, whatever makes it."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.limits import CallUsage, Limits, read_limits
from tasklore.contracts.errors import LlmThrottled
from tasklore.memory import keys
from tasklore.memory.budgets.governor import ModelBudget
from tasklore.memory.budgets.overview import read_accounts
from tasklore.memory.budgets.store import WAITING, Budgets
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
    governor = ModelBudget(redis)
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
    await waiting_tasks.await_note(waiting[0])
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


FOREIGN = "tl:other"
ROWS = {
    "no JSON": "no json",
    "no object": "[1]",
    "no needs": '{"at": 1}',
    "needs that are none": '{"needs": 1, "at": 1}',
    "no time": '{"needs": []}',
    "a need that is none": '{"needs": [1], "at": 1}',
    "no number": '{"needs": [["tl:budget:{all}:account:day", "x"]], "at": 1}',
    "no account": f'{{"needs": [["{FOREIGN}", 1]], "at": 1}}',
    "no end": '{"needs": [], "at": 1, "x": "' + "x" * 70_000 + '"}',
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("covers", [{}, {"tenant": "zeta"}])
async def test_a_row_that_is_none_keeps_nobody_from_room(
    redis: Redis, row: str, covers: dict[str, str]
) -> None:
    """Workers write them: it is dropped, and touches no other key."""
    await declare(redis, DAY)
    waiting = await fill(redis, 5)
    await redis.hset(keys.budget("waiters"), waiting[0], row)
    await redis.zadd(f"{FOREIGN}:queue", {waiting[0]: 1})
    await declare(redis, DAY | {"requests": 9} | covers)
    waiting_tasks = WaitingTasks(redis)
    assert await waiting_tasks.wake(9) == waiting[1:]
    await redis.hset(keys.budget("waiters"), "later:1", row)
    await waiting_tasks.forget("later:1")
    left = await redis.hkeys(keys.budget("waiters"))
    assert {one.decode() for one in left} == set(waiting[1:])
    assert await redis.zrange(f"{FOREIGN}:queue", 0, -1) == [waiting[0].encode()]


async def test_an_account_that_is_none_is_left_alone(redis: Redis) -> None:
    """It is taken off the lists that workers write; no other key is read or removed in its name."""
    await declare(redis, DAY)
    waiting = await fill(redis, 3)
    await redis.zadd(keys.budget("lined"), {FOREIGN: 0})
    await redis.zadd(keys.budget("accounts"), {FOREIGN: 1, f"{FOREIGN}:account:day": 1})
    places = FOREIGN, f"{FOREIGN}:queue", f"{FOREIGN}:account:day"
    for place in places:
        await redis.set(place, "kept")
    await declare(redis, {**DAY, "tenant": "zeta", "tokens": 9, "requests": None})
    waiting_tasks = WaitingTasks(redis)
    await waiting_tasks.wake(9)
    assert await redis.exists(*places) == len(places)
    assert await redis.zscore(keys.budget("lined"), FOREIGN) is None
    assert await redis.zcard(keys.budget("accounts")) == 0
    assert await redis.hexists(keys.budget("waiters"), waiting[0])


@pytest.mark.parametrize(
    "part", [*WAITING, "account:each;tenant=a", "account:each;tenant=a:queue"]
)
async def test_a_key_of_another_type_keeps_nobody_else_from_room(
    redis: Redis, part: str
) -> None:
    """What a worker put in the place of a list, an account or a queue is an error to none but those that need it."""
    each = DAY | {"name": "each", "tenant": "*", "requests": 1}
    await declare(redis, each)
    for tenant in "ab":
        assert await asks(redis, f"{tenant}0", tenant=tenant) is not None
        assert await asks(redis, f"{tenant}1", tenant=tenant) is None
    await redis.unlink(place := keys.budget(*part.split(":")))
    await redis.set(place, "x")
    await declare(redis, each, DAY | {"tenant": "zeta"})
    waiting_tasks = WaitingTasks(redis)
    assert await waiting_tasks.wake(9) == []
    assert await asks(redis, "b2", tenant="b") is None
    await declare(redis, each | {"requests": 9})
    assert "b2:1" in await waiting_tasks.wake(9)


async def test_a_waiter_that_is_no_task_is_forgotten(redis: Redis) -> None:
    """Names of waiters are written by workers too."""
    await declare(redis, DAY)
    waiting = await fill(redis, 3)
    row = await redis.hget(keys.budget("waiters"), waiting[0])
    looks = await redis.zscore(keys.budget("looks"), waiting[0])
    for name in (b"\xff:1", b"t:x", b"none"):
        await redis.hset(keys.budget("waiters"), name, row)
        await redis.zadd(keys.budget("looks"), {name: looks})
        await redis.zadd(keys.budget("freed"), {name: 1})
    await declare(redis, DAY | {"requests": 9})
    assert await WaitingTasks(redis).wake(9) == waiting
    assert await redis.hkeys(keys.budget("waiters")) == [waiting[0].encode()]


async def commands(redis: Redis) -> int:
    """Return how many commands the server ran since `config_resetstat`, those of scripts with them."""
    found = await redis.info("commandstats")
    return sum(one["calls"] for one in found.values())


async def let_wait(redis: Redis, tasks: int, limit: dict[str, Any]) -> list[str]:
    """Let *tasks* wait for *limit*, each a second behind the one before; return them in their order."""
    await declare(redis, limit)
    seconds, _ = await redis.time()
    account, at = keys.budget("account", "day"), seconds * 1000
    names = [f"t{number}:1" for number in range(tasks)]
    row = json.dumps({"needs": [[account, 1]], "at": at})
    turns = {name: at + 1000 * (place + 9) for place, name in enumerate(names)}
    await redis.hset(keys.budget("waiters"), mapping=dict.fromkeys(names, row))
    await redis.zadd(keys.budget("looks"), dict.fromkeys(names, at + 300_000))
    await redis.zadd(f"{account}:queue", turns)
    await redis.zadd(keys.budget("lined"), {account: 0})
    return names


async def test_however_many_wait_a_call_looks_at_a_bounded_number(redis: Redis) -> None:
    """A change looks at none of them; they are moved page by page, and all are woken in their order."""
    waiting = await let_wait(redis, 5_000, DAY)
    other = read_limits({"limits": [DAY | {"tenant": "zeta"}]})
    await redis.config_resetstat()
    await Budgets(redis).change(other, "test")
    assert await commands(redis) < 100
    waiting_tasks = WaitingTasks(redis)
    woken: list[str] = []
    while len(woken) < len(waiting):
        await redis.config_resetstat()
        found = await waiting_tasks.wake(250)
        assert found, len(woken)
        woken += found
        assert await commands(redis) < 40_000
        await redis.hdel(keys.budget("waiters"), *found)
    assert woken == waiting
    assert not await redis.exists(keys.budget("lined"), keys.budget("moves"))


async def test_however_many_accounts_have_a_queue_all_are_looked_at(
    redis: Redis,
) -> None:
    """A bounded number in each look."""
    each = DAY | {"name": "each", "tenant": "*", "requests": 1}
    await declare(redis, each)
    await fill(redis, 2, room=1, tenant="zz")
    account = keys.budget("account", "each;tenant=a")
    for number in range(3_000):
        await redis.zadd(f"{account}{number}:queue", {"x:1": 1})
        await redis.zadd(keys.budget("lined"), {f"{account}{number}": 0})
    await declare(redis, each | {"requests": 3})
    waiting_tasks = WaitingTasks(redis)
    await redis.config_resetstat()
    assert await waiting_tasks.wake(9) == []
    assert waiting_tasks.has_more
    assert await commands(redis) < 20_000
    assert await waiting_tasks.wake(9) == ["t1:1"]
    assert not waiting_tasks.has_more


@pytest.mark.parametrize(("amount", "factor"), [(20, 0.5), (5, 2.0)])
async def test_turns_under_a_rate_move_in_proportion_once(
    redis: Redis, amount: int, factor: float
) -> None:
    """Page by page, those at once for which there is room; who came after the change keeps its turn."""
    rate = DAY | {"requests": 10, "every": "minute"}
    names = await let_wait(redis, 1_200, rate)
    queue = keys.budget("account", "day") + ":queue"
    before = dict(await redis.zrange(queue, 0, -1, withscores=True))
    waiting_tasks = WaitingTasks(redis)
    await waiting_tasks.wake(0)
    await redis.hset(keys.budget("account", "day"), "r", 1000)
    await declare(redis, rate | {"requests": amount})
    at = json.loads(await redis.hget(keys.budget("moves"), "next"))["at"]
    late = {"needs": [[keys.budget("account", "day"), 1]], "at": at + 60_000}
    await redis.hset(keys.budget("waiters"), names[700], json.dumps(late))
    while await redis.exists(keys.budget("moves")):
        await waiting_tasks.wake(1)
    after = dict(await redis.zrange(queue, 0, -1, withscores=True))
    for name, turn in before.items():
        wanted = turn if name == names[700].encode() else at + (turn - at) * factor
        assert after[name] == pytest.approx(wanted, abs=1.0)


async def test_one_process_at_a_time_wakes_tasks(redis: Redis) -> None:
    """The others ask with one cheap command, until it has not asked for a while."""
    await declare(redis, DAY)
    waiting = await fill(redis, 4)
    first, second = WaitingTasks(redis), WaitingTasks(redis)
    assert await first.wake(9) == []
    assert await second.wake(9) == []
    await declare(redis, DAY | {"requests": 9})
    assert await second.wake(9) == []
    await redis.config_resetstat()
    assert await second.wake(9) == []
    # The reset, the script, and three that it runs.
    assert await commands(redis) <= 5
    assert await first.wake(1) == waiting[:1]
    assert 0 < await redis.pttl(keys.budget("waking")) <= 3_000
    await redis.unlink(keys.budget("waking"))
    assert await second.wake(9) == waiting[1:]


async def test_one_whose_wake_up_was_not_stored_is_woken_again(redis: Redis) -> None:
    """However long ago it was refused."""
    await declare(redis, DAY)
    waiting = await fill(redis, 3)
    place = keys.budget("waiters")
    row = json.loads(await redis.hget(place, waiting[0]))
    await redis.hset(place, waiting[0], json.dumps(row | {"at": row["at"] - 60_000}))
    await declare(redis, {**DAY, "requests": 3})
    waiting_tasks = WaitingTasks(redis)
    assert await waiting_tasks.wake(9) == waiting
    await waiting_tasks.await_note(waiting[0])
    assert await waiting_tasks.wake(9) == []
    await waiting_tasks.wake_again(waiting[0], 60.0)
    assert await waiting_tasks.wake(9) == []
    await waiting_tasks.wake_again(waiting[0], 0.0)
    assert await waiting_tasks.wake(9) == waiting
