"""What the models of runs saw, on a real server: bounded, fenced by the ledger, gone with its user."""

from datetime import timedelta

import pytest
from redis.asyncio import Redis

from tasklore.contracts.identifiers import TaskName, user_token
from tasklore.contracts.run_messages import RunMessage
from tasklore.memory import keys
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import RunName
from tasklore.memory.ledger.user_tasks import UserTasks
from tasklore.memory.run_messages.keys import owner_of_run
from tasklore.memory.run_messages.store import RunMessages
from tests.ledger_layouts import LayoutUnderTest, ListingLedger
from tests.servers import PATIENCE_S

AGENT = "Probe"
LEASE_MS = 30_000
ANN = user_token("ann")


@pytest.fixture
def ledger(valkey_or_redis: Redis, layout: LayoutUnderTest) -> Ledger:
    """Return a ledger on a server."""
    return ListingLedger(valkey_or_redis, deadline_s=PATIENCE_S)


@pytest.fixture
def messages(valkey_or_redis: Redis) -> RunMessages:
    """Return a store on the same server that keeps little."""
    return RunMessages(
        valkey_or_redis,
        keep=timedelta(hours=1),
        most_of_task=1000,
        most_of_owner=2500,
        deadline_s=PATIENCE_S,
    )


def task_of(name: str = "one") -> TaskName:
    return TaskName(AGENT, name)


async def begin(ledger: Ledger, name: str = "one", worker: str = "w1") -> RunName:
    """Let *worker* run a task, and return its run."""
    await ledger.begin(task_of(name), 1, worker, 1000, LEASE_MS)
    return RunName(task_of(name), 1, worker)


def body(text: str) -> bytes:
    return (
        RunMessage(kind="answer", at_ms=1, text=text, size=len(text))
        .model_dump_json()
        .encode()
    )


async def texts(messages: RunMessages, name: str = "one") -> list[str] | None:
    """Return the texts that are kept of a task, None where there is nothing."""
    found = await messages.read(task_of(name))
    return None if found is None else [one.text for one in found.messages]


async def test_messages_are_read_back_in_order(
    ledger: Ledger, messages: RunMessages, valkey_or_redis: Redis
) -> None:
    """For as long as they are kept, and with what lists them."""
    run = await begin(ledger)
    assert await messages.append(run, AGENT, ANN, [body("a"), body("b")])
    assert await messages.append(run, AGENT, ANN, [body("c")])
    assert await texts(messages) == ["a", "b", "c"]
    index = keys.run_messages_of(AGENT, ANN)
    for key in (keys.run_messages(task_of()), *index):
        assert 0 < await valkey_or_redis.pttl(key) <= 3_600_000


async def test_a_task_keeps_so_many_bytes_and_says_what_went(
    ledger: Ledger, messages: RunMessages
) -> None:
    """The oldest go: how it ended is worth more than how it began."""
    run = await begin(ledger)
    for number in range(30):
        assert await messages.append(run, AGENT, ANN, [body(f"{number:03}")])
    found = await messages.read(task_of())
    assert found is not None
    sizes = sum(len(one.model_dump_json()) for one in found.messages)
    assert sizes <= 1000
    assert found.messages[-1].text == "029"
    assert found.dropped == 30 - len(found.messages)
    assert found.dropped_bytes == found.dropped * len(body("000"))


async def test_one_message_larger_than_all_is_kept_alone(
    ledger: Ledger, messages: RunMessages
) -> None:
    """Its writer cuts it; a task never shows nothing for it."""
    run = await begin(ledger)
    await messages.append(run, AGENT, ANN, [body("small")])
    await messages.append(run, AGENT, ANN, [body("x" * 1500)])
    assert await texts(messages) == ["x" * 1500]


async def test_an_owner_keeps_so_many_bytes(
    ledger: Ledger, messages: RunMessages, valkey_or_redis: Redis
) -> None:
    """Messages of their oldest tasks go; those of others stay.

    Of tasks of one millisecond that with the first name is the oldest.
    """
    other = await begin(ledger, "other")
    await messages.append(other, AGENT, owner_of_run("bob", None), [body("y" * 500)])
    for name in ("task-1", "task-2", "task-3", "task-4"):
        run = await begin(ledger, name)
        assert await messages.append(run, AGENT, ANN, [body("x" * 700)])
    assert await texts(messages, "task-1") is None
    assert [await texts(messages, name) for name in ("task-3", "task-4", "other")] == [
        ["x" * 700],
        ["x" * 700],
        ["y" * 500],
    ]
    index = keys.run_messages_of(AGENT, ANN)
    counted = await valkey_or_redis.hgetall(index.bytes)
    assert int(counted[b""]) == sum(int(counted[one]) for one in counted if one)
    assert set(counted) - {b""} == set(await valkey_or_redis.zrange(index.until, 0, -1))


async def test_whatever_is_over_is_not_counted_any_more(
    ledger: Ledger, messages: RunMessages, valkey_or_redis: Redis
) -> None:
    """Its messages are gone by their own time, of which its owner's list knows."""
    run = await begin(ledger)
    await messages.append(run, AGENT, ANN, [body("x" * 700)])
    index = keys.run_messages_of(AGENT, ANN)
    await valkey_or_redis.zadd(index.until, {str(task_of()): 1})
    again = await begin(ledger, "two")
    await messages.append(again, AGENT, ANN, [body("z")])
    assert await valkey_or_redis.zrange(index.until, 0, -1) == [b"two"]
    assert int(await valkey_or_redis.hget(index.bytes, "") or 0) == len(body("z"))


async def test_a_run_that_another_worker_took_keeps_nothing_more(
    ledger: Ledger, messages: RunMessages
) -> None:
    """Nor does one that has ended; what there is stays listed."""
    lost = RunName(task_of(), 1, "w0")
    run = await begin(ledger)
    assert not await messages.append(lost, AGENT, ANN, [body("late")])
    assert await messages.count("ann") == 0
    assert await messages.append(run, AGENT, ANN, [body("a")])
    await ledger.finish(task_of(), 1, "completed", b"{}")
    assert not await messages.append(run, AGENT, ANN, [body("late")])
    assert await texts(messages) == ["a"]
    assert await messages.count("ann") == 1


async def test_nothing_is_kept_of_a_task_that_the_ledger_does_not_know(
    messages: RunMessages, layout: LayoutUnderTest
) -> None:
    """Nobody could tell whether its user was forgotten meanwhile."""
    run = RunName(task_of("unknown"), 1, "w1")
    assert not await messages.append(run, AGENT, ANN, [body("a")])
    assert await messages.count("ann") == 0


async def test_a_user_is_forgotten_at_every_agent(
    ledger: Ledger, messages: RunMessages, valkey_or_redis: Redis
) -> None:
    """And nobody else is."""
    for name in ("one", "two"):
        await messages.append(await begin(ledger, name), AGENT, ANN, [body("ann")])
    other = TaskName("Other", "three")
    await ledger.begin(other, 1, "w1", 1000, LEASE_MS)
    await messages.append(RunName(other, 1, "w1"), "Other", ANN, [body("ann")])
    bob = await begin(ledger, "bob")
    await messages.append(bob, AGENT, user_token("bob"), [body("bob")])
    assert await messages.count("ann") == 3
    assert await messages.forget("ann") == 3
    assert await messages.count("ann") == 0
    assert await texts(messages, "bob") == ["bob"]
    left = [one.decode() for one in await valkey_or_redis.keys("tl:run-messages*")]
    assert len(left) == 3
    assert not [one for one in left if ANN in one]


async def test_a_run_under_way_keeps_nothing_once_its_user_is_forgotten(
    ledger: Ledger, messages: RunMessages, valkey_or_redis: Redis
) -> None:
    """However its task was left by then: stripped of words, or removed."""
    tasks = UserTasks(valkey_or_redis, step_s=PATIENCE_S)
    for name in ("stripped", "removed"):
        run = await begin(ledger, name)
        assert await messages.append(run, AGENT, ANN, [body("before")])
        if name == "stripped":
            await tasks.strip(task_of(name), 1, b"{}")
        else:
            await tasks.remove([task_of(name)])
        await messages.forget("ann")
        assert not await messages.append(run, AGENT, ANN, [body("after")])
        assert await texts(messages, name) is None
    assert await messages.count("ann") == 0
    assert await valkey_or_redis.keys("tl:run-messages*") == []


async def test_what_cannot_be_read_is_shown_as_such(
    ledger: Ledger, messages: RunMessages, valkey_or_redis: Redis
) -> None:
    """Any worker of the agent may have written it."""
    await messages.append(await begin(ledger), AGENT, ANN, [b"no JSON", body("a")])
    found = await messages.read(task_of())
    assert found is not None
    assert [one.kind for one in found.messages] == ["other", "answer"]
    await valkey_or_redis.hset(keys.run_messages(task_of()), "dropped", "many")
    again = await messages.read(task_of())
    assert again is not None
    assert again.dropped == 0


async def test_keys_of_another_type_hold_nobody_up(
    ledger: Ledger, messages: RunMessages, valkey_or_redis: Redis
) -> None:
    """A worker may write anything to the keys of its agents: a user is forgotten all the same, those keys with them."""
    await messages.append(await begin(ledger), AGENT, ANN, [body("ann")])
    for agent in ("Odd", "Long", "Strange"):
        await ledger.begin(TaskName(agent, "x"), 1, "w1", 1000, LEASE_MS)
        await valkey_or_redis.zadd(keys.run_agents(), {agent: 1})
    odd = keys.run_messages_of("Odd", ANN)
    await valkey_or_redis.set(odd.until, "no list")
    await valkey_or_redis.zadd(
        keys.run_messages_of("Long", ANN).until, {"x" * 600: 1, b"\xff\xfe": 1}
    )
    await valkey_or_redis.set(keys.run_messages(TaskName("Strange", "x")), "no hash")
    assert await messages.read(TaskName("Strange", "x")) is None
    assert await messages.count("ann") == 4
    assert await messages.forget("ann") == 4
    assert await messages.count("ann") == 0
    assert await valkey_or_redis.keys(f"tl:run-messages*{ANN}*") == []
    assert await texts(messages) is None


def test_the_owner_of_a_run_is_its_user_then_its_tenant() -> None:
    """No tenant is named as a user is."""
    owners = [owner_of_run("ann", "acme"), owner_of_run(None, "acme")]
    owners += [owner_of_run(None, "t" * 300), owner_of_run(None, None)]
    assert owners[0] == ANN
    assert all(one.startswith("=") for one in owners[1:])
    assert len({keys.run_messages_of(AGENT, one) for one in owners}) == 4
