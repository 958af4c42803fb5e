"""What owners keep is counted with its time, bounded by what others leave, and never fills a store for a newcomer."""

import asyncio
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.holdings.store import (
    HOLDING_KINDS,
    OWNER_PART,
    OWNERS_PART,
    EndedTask,
    Holding,
    Holdings,
    Kind,
    NoRoom,
    Store,
)
from tasklore.memory.ledger.layouts import Layout
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.ledger_layouts import set_layout
from tests.servers import PATIENCE_S

KIB = 1024
MOST: dict[Store, int] = {"queue": 1000 * KIB, "store": 2000 * KIB}
#: Of a kind of which one costs 1 KiB beside its own bytes, and has more set aside for its result.
TASK = HOLDING_KINDS["tasks"].beside
ASIDE = HOLDING_KINDS["tasks"].aside


@pytest.fixture
def holdings(redis: Redis) -> Holdings:
    return Holdings(redis, MOST, deadline_s=PATIENCE_S)


def a_task(number: int, size: int = 9 * KIB) -> Holding:
    return Holding("tasks", size, f"t{number}")


async def fill(holdings: Holdings, owner: str, first: int = 0) -> NoRoom:
    """Let *owner* keep tasks of 10 KiB until there is no room for another."""
    for number in range(first, first + 1000):
        refused = await holdings.take(owner, [a_task(number)], may_refuse=True)
        if refused is not None:
            return refused
    raise AssertionError("it was never refused")


async def test_one_owner_alone_has_three_quarters_of_the_owners_part(
    holdings: Holdings,
) -> None:
    refused = await fill(holdings, "ana")
    alone = int(OWNER_PART * OWNERS_PART * MOST["queue"])
    assert refused == NoRoom("queue", 600 * KIB, alone, {"tasks": 600 * KIB})
    assert await holdings.totals() == {"queue": 600 * KIB, "store": 60 * ASIDE}


async def test_a_store_without_bytes_of_its_own_has_those_of_the_server(
    own_servers: EmbeddedServers,
) -> None:
    """A server without a bound bounds nobody."""
    async with valkey.connect(own_servers.redis_url) as client:
        words = [Holding("words", 10 * KIB * KIB)]
        for maxmemory, is_refused in (("0", False), ("20mb", True), ("80mb", False)):
            await client.config_set("maxmemory", maxmemory)
            holdings = Holdings(client, {"queue": KIB}, deadline_s=PATIENCE_S)
            refused = await holdings.take("ana", words, may_refuse=True)
            assert (refused is not None) == is_refused
            if refused is not None:
                may = int(OWNER_PART * OWNERS_PART * 20 * KIB * KIB)
                assert (refused.store, refused.most) == ("store", may)


async def test_every_newcomer_finds_room_and_the_reserve_is_never_touched(
    holdings: Holdings,
) -> None:
    kept = [
        (await fill(holdings, f"owner{number}", number * 1000)).kept
        for number in range(3)
    ]
    assert kept[0] > kept[1] > kept[2] > 0
    assert sum(kept) == (await holdings.totals())["queue"]
    assert sum(kept) <= OWNERS_PART * MOST["queue"]


async def test_a_full_queue_leaves_the_other_store_alone(holdings: Holdings) -> None:
    await fill(holdings, "ana")
    assert await holdings.take("ana", [Holding("words", 10)], may_refuse=True) is None


async def test_open_tasks_have_room_set_aside_for_their_results(
    holdings: Holdings,
) -> None:
    """Without it tasks would go on and fill the other store as they end, where nothing is refused."""
    may = int(OWNER_PART * OWNERS_PART * MOST["store"])
    full = Holding("words", may - HOLDING_KINDS["words"].beside - ASIDE)
    assert await holdings.take("ana", [full], may_refuse=True) is None
    assert await holdings.take("ana", [a_task(1, 0)], may_refuse=True) is None
    refused = await holdings.take("ana", [a_task(2, 0)], may_refuse=True)
    assert refused is not None
    assert (refused.store, refused.kept, refused.most) == ("store", may, may)


async def test_things_are_taken_together_or_not_at_all(holdings: Holdings) -> None:
    both = [Holding("words", 10), Holding("turns", 1300 * KIB)]
    refused = await holdings.take("ana", both, may_refuse=True)
    assert refused is not None
    assert refused.store == "store"
    assert await holdings.kept("ana") == {}


async def test_what_follows_is_counted_and_never_refused(holdings: Holdings) -> None:
    await fill(holdings, "ana")
    before = (await holdings.kept("ana"))["tasks"]
    assert await holdings.take("ana", [a_task(5000)], may_refuse=False) is None
    assert (await holdings.kept("ana"))["tasks"] == before + 10 * KIB


async def test_the_same_task_again_counts_once_and_is_its_owners(
    holdings: Holdings,
) -> None:
    for size in (9 * KIB, 4 * KIB):
        await holdings.take("ana", [a_task(1, size)], may_refuse=True)
    await holdings.take("bo", [a_task(1)], may_refuse=True)
    assert await holdings.kept("ana") == {"tasks": 5 * KIB, "results": ASIDE}
    assert await holdings.kept("bo") == {}


@pytest.mark.parametrize(
    ("layout", "days"), [("1", 7), ("prepared", 7), ("migrating", 1), ("2", 1)]
)
async def test_a_result_counts_as_long_as_the_ledger_keeps_it(
    layout: Layout, days: int, redis: Redis
) -> None:
    """Layout 2 keeps what a task has said for a time of its own."""
    await set_layout(redis, layout)
    holdings = Holdings(redis, MOST, deadline_s=PATIENCE_S)
    await holdings.take("ana", [a_task(1)], may_refuse=True)
    seconds, _ = await redis.time()
    before_ms = int(seconds) * 1000
    assert await holdings.end_tasks([EndedTask("t1", 700)]) == 1
    [(_, until)] = await redis.zrange(keys.HOLDINGS.until, 0, -1, withscores=True)
    kept_ms = timedelta(days=days) / timedelta(milliseconds=1)
    # Ends are counted in steps, so that many share one.
    assert kept_ms <= until - before_ms <= 1.1 * kept_ms


async def test_an_ended_task_leaves_its_report_to_its_owner(holdings: Holdings) -> None:
    await holdings.take("ana", [a_task(1), a_task(2)], may_refuse=True)
    ended = [
        EndedTask("t1", 700, is_remembered=True),
        EndedTask("unknown", 10, is_remembered=True),
        EndedTask("t2", 300),
    ]
    assert await holdings.end_tasks(ended) == 2
    assert await holdings.kept("ana") == {
        "results": 1000 + 2 * HOLDING_KINDS["results"].beside,
        "remembered": 700 + HOLDING_KINDS["remembered"].beside,
    }
    assert (await holdings.totals())["queue"] == 0
    assert await holdings.end_tasks(ended) == 0


async def test_everything_goes_with_its_time(holdings: Holdings, redis: Redis) -> None:
    soon = timedelta(milliseconds=1)
    kinds = [
        Holding(kind, 10, "" if kind != "tasks" else "t1", soon)
        for kind in HOLDING_KINDS
    ]
    await holdings.take("ana", kinds, may_refuse=True)
    assert set(await holdings.kept("ana")) == set(HOLDING_KINDS)
    until = float(
        (await redis.zrange(keys.HOLDINGS.until, -1, -1, withscores=True))[0][1]
    )
    async with asyncio.timeout(PATIENCE_S):
        while (await redis.time())[0] * 1000 <= until:  # noqa: ASYNC110 - a server's clock
            await asyncio.sleep(0.05)
    await holdings.take("bo", [Holding("words", 10)], may_refuse=True)
    assert await holdings.kept("ana") == {}
    assert await redis.hlen(keys.HOLDINGS.things) == 1


async def test_kinds_without_an_id_are_kept_together_in_few_records(
    holdings: Holdings, redis: Redis
) -> None:
    for _ in range(100):
        await holdings.take("ana", [Holding("words", 100)], may_refuse=True)
    assert await holdings.kept("ana") == {
        "words": 100 * (100 + HOLDING_KINDS["words"].beside)
    }
    assert await redis.hlen(keys.HOLDINGS.things) <= 2


def make_old(kind: Kind, thing_id: str) -> Holding:
    return Holding(kind, 0, thing_id, HOLDING_KINDS[kind].keep - timedelta(days=1))


async def test_a_sweep_finds_tasks_and_runs_of_all_that_ended_unnoticed(
    holdings: Holdings, redis: Redis
) -> None:
    ledger = Ledger(redis, deadline_s=PATIENCE_S)
    for task_id in ("open", "ended"):
        await ledger.accept(task_id, 1, b"{}")
    await ledger.finish("ended", 1, "completed", b"x" * 400)
    await redis.hset(keys.session("there").root, "state", "running")
    things = [Holding("tasks", 0, one) for one in ("open", "ended")]
    things += [make_old("tasks", "never-sent")]
    things += [make_old("runs", one) for one in ("there", "gone")]
    await holdings.take("ana", things, may_refuse=True)
    await holdings.take("bo", [make_old("tasks", "of-bo")], may_refuse=True)
    assert await holdings.sweep() == 4
    assert await holdings.kept("ana") == {
        "tasks": TASK,
        "results": 400 + HOLDING_KINDS["results"].beside + ASIDE,
        "runs": HOLDING_KINDS["runs"].beside,
    }
    assert await holdings.kept("bo") == {}


async def test_a_sweep_leaves_what_is_just_on_its_way_to_where_it_is_kept(
    holdings: Holdings, redis: Redis
) -> None:
    """Tasks and runs are counted before the ledger, or the store of sessions, has them."""
    things = [Holding("tasks", 0, "sent"), Holding("runs", 0, "begun")]
    things.append(Holding("tasks", 0, "later", timedelta(days=35)))
    await holdings.take("ana", things, may_refuse=True)
    # A wish to cancel it may be there before it is.
    await redis.hset(keys.task("sent"), "wish", "no more")
    before = await holdings.kept("ana")
    assert await holdings.sweep() == 0
    assert await holdings.kept("ana") == before


async def test_a_sweep_that_has_no_time_goes_on_where_it_ended(
    holdings: Holdings,
) -> None:
    things = [make_old("tasks", f"t{number}") for number in range(1500)]
    await holdings.take("ana", things, may_refuse=False)
    swept = [await holdings.sweep(within_s=0.0) for _ in range(20)]
    assert 0 < swept[0] < len(things)
    assert sum(swept) == len(things)


async def test_many_at_once_never_have_more_than_they_may(holdings: Holdings) -> None:
    async def keep(owner: str, number: int) -> None:
        await holdings.take(owner, [a_task(number)], may_refuse=True)

    async with asyncio.TaskGroup() as group:
        for number in range(600):
            group.create_task(keep(f"owner{number % 4}", number))
    total = (await holdings.totals())["queue"]
    assert 0 < total <= OWNERS_PART * MOST["queue"]
    owned = [await holdings.kept(f"owner{number}") for number in range(4)]
    assert sum(one["tasks"] for one in owned) == total
