"""The index of runs on a real server: what a row says, who is among the open ones, what goes, and what a page has."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.waits import RunWait
from tasklore.contracts.errors import InvalidInput, MemoryUnavailable
from tasklore.contracts.identifiers import TaskName, user_token
from tasklore.contracts.messages import (
    CompletionReport,
    MemoryNote,
    TaskAssignment,
    TaskCall,
)
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.ledger.layouts import Layout
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.open_tasks import OpenTasks
from tasklore.memory.ledger.runs import CancelRequest, Ended, Finish
from tasklore.memory.ledger.task_index import CancelledRun, TaskIndex
from tasklore.memory.ledger.task_list import (
    MOST_READ,
    ListedTask,
    TaskFilter,
    TaskList,
)
from tasklore.memory.ledger.task_rows import TaskRow, read_row, row_of_report
from tests.ledger_layouts import set_layout
from tests.servers import PATIENCE_S

AGENT = "ListedAgent"
ANA = user_token("ana")
BEN = user_token("ben")
DAY_MS = 86_400_000
NOW_MS = time.time_ns() // 1_000_000


def row(task_id: str, *, age_ms: int = 60_000, **fields: object) -> TaskRow:
    made = {
        "task_id": task_id,
        "agent_id": AGENT,
        "task": "leaf",
        "created_ms": NOW_MS - age_ms,
    }
    return TaskRow(**(made | fields))  # type: ignore[arg-type]  # of the fields' own types


async def test_a_run_that_was_opened_again_stays_open_when_its_earlier_end_is_closed(
    index: TaskIndex, valkey_or_redis: Redis
) -> None:
    """A second generation may come before the first is taken off."""
    first = row("t1")
    await index.write([first, row("t2")])
    await index.write([ended(first), ended(row("t2"))])
    await index.write([first._replace(generation=2)])
    await index.close(AGENT, ["t1", "t2"])
    opened = await valkey_or_redis.zrange(keys.runs(AGENT).open, 0, -1)
    assert opened == [b"t1"]


async def test_an_ended_run_that_its_dead_worker_left_open_is_closed(
    redis: Redis,
) -> None:
    """As soon as the ledger says that it has ended; what is open or ends just now stays, however many there are."""
    await set_layout(redis, "2")
    ledger = Ledger(redis, deadline_s=PATIENCE_S)
    index = TaskIndex(redis, deadline_s=PATIENCE_S)
    many = [row(f"t{number}") for number in range(300)]
    for one in many:
        await ledger.accept(TaskName(AGENT, one.task_id), 1, b"assignment", row=one)
    dead = [many[0], many[299]]
    for one in dead:
        end = Finish(
            TaskName(AGENT, one.task_id), 1, "completed", b"{}", row=ended(one)
        )
        await ledger.finish_many([end])
        # Its worker dies before it closes the run.
        ledger._late._ended.clear()
    ending = many[150]
    await index._batch.run(index.listing([ended(ending)], is_settled=False))

    # A worker may write what it likes to the keys of its own agents, which come first here.
    for hostile, key in (("A", keys.runs("A").open), ("B", keys.runs("B").rows)):
        await redis.zadd(keys.run_agents(), {hostile: 1})
        await redis.set(key, b"no list")

    unfinished = OpenTasks(redis, step_s=PATIENCE_S)
    closed = 0
    for _ in range(10):
        closed += await unfinished.close_ended()

    assert closed == len(dead)
    opened = {one.decode() for one in await redis.zrange(keys.runs(AGENT).open, 0, -1)}
    assert opened == {one.task_id for one in many} - {one.task_id for one in dead}


async def test_keys_of_another_type_hide_no_runs_of_others(redis: Redis) -> None:
    """A worker may write what it likes to those of its agents: recovery and forgetting go on with all others."""
    index = TaskIndex(redis, deadline_s=PATIENCE_S)
    await index.write([row("t1", user=ANA)])
    for hostile in ("A", "B", "C"):
        await redis.zadd(keys.run_agents(), {hostile: 1})
        await index.write([row("t2", agent_id=hostile, user=ANA)])
    await redis.set(keys.runs("A").open, b"no list")
    await redis.set(keys.runs("B").rows, b"no rows")
    await redis.set(keys.runs("C").of_user(ANA), b"no list")

    opened = {(agent, *page) async for agent, page in index.open_runs()}
    theirs = {(agent, *page) async for agent, page in index.user_runs(ANA)}

    assert (AGENT, "t1") in opened & theirs
    assert ("C", "t2") in opened


async def test_an_agent_whose_first_listing_was_lost_is_listed_with_the_next(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That an agent has runs is written now and then alone."""
    ledger = Ledger(redis, deadline_s=PATIENCE_S)

    async def away(_commands: Sequence[Command]) -> list[Any]:
        raise MemoryUnavailable("away")

    with monkeypatch.context() as lost:
        lost.setattr(ledger._batch, "run", away)
        with pytest.raises(MemoryUnavailable):
            await ledger.list_runs([row("t1")])
    await ledger.list_runs([row("t1")])
    assert await redis.zrange(keys.run_agents(), 0, -1) == [AGENT.encode()]


def ended(one: TaskRow, state: str = "completed", **fields: object) -> TaskRow:
    more = {"state": state, "ended_ms": one.created_ms + 1_000, "run_ms": 900}
    return one._replace(**(more | fields))  # type: ignore[arg-type]  # as above


@pytest.fixture
def index(valkey_or_redis: Redis) -> TaskIndex:
    return TaskIndex(valkey_or_redis, deadline_s=PATIENCE_S)


@pytest.fixture
def tasks(valkey_or_redis: Redis) -> TaskList:
    return TaskList(valkey_or_redis, deadline_s=PATIENCE_S)


async def listed(
    tasks: TaskList, asked: TaskFilter, limit: int = 50
) -> list[ListedTask]:
    """Return all pages of *asked*."""
    found: list[ListedTask] = []
    after = ""
    while True:
        page = await tasks.read(asked, after=after, limit=limit)
        assert len(page.tasks) <= limit
        found += page.tasks
        if page.after is None:
            return found
        after = page.after


async def ids(tasks: TaskList, **asked: object) -> list[str]:
    found = await listed(tasks, TaskFilter(**asked))  # type: ignore[arg-type]  # as above
    return [one.task_id for one in found]


async def gather(pages: AsyncIterator[tuple[str, list[str]]]) -> set[str]:
    return {one async for _, page in pages for one in page}


def test_a_user_that_is_no_token_is_none() -> None:
    """Other programs may write any header of a report."""
    report = CompletionReport(
        task_id="t1",
        agent_id=AGENT,
        supervisor_id="S",
        task_name="leaf",
        status="completed",
        memory=MemoryNote(outcome="off"),
        worker_id="w1",
        finished_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert row_of_report(report, ANA).user == ANA
    assert row_of_report(report, 'a"}').user == ""


def test_a_row_is_read_as_it_was_spelled() -> None:
    """Every field comes back, whatever a tenant is called."""
    whole = ended(
        row("t1"),
        "failed",
        generation=3,
        tenant='ac"me"e":1\\',
        user=ANA,
        parent_id="p",
        error="ValueError",
        memory="miss",
    )

    assert read_row(AGENT, "t1", whole.spell()) == whole
    assert read_row(AGENT, "t1", row("t1").spell()) == row("t1")


async def test_rows_of_one_command_are_listed_as_one_after_the_other(
    valkey_or_redis: Redis, index: TaskIndex
) -> None:
    """A task may end, or begin anew, beside an earlier row of its own; the set of its user knows the latest time."""

    async def read(agent_id: str) -> tuple[Any, ...]:
        own = keys.runs(agent_id)
        return (
            await valkey_or_redis.hgetall(own.rows),
            await valkey_or_redis.zrange(own.listed, 0, -1, withscores=True),
            await valkey_or_redis.zrange(own.open, 0, -1, withscores=True),
            await valkey_or_redis.zrange(own.of_user(ANA), 0, -1),
        )

    choice = random.Random(7)
    for turn in range(40):
        rows = []
        for _ in range(12):
            opened = row(
                choice.choice("abcd"),
                generation=choice.randint(1, 3),
                user=choice.choice(("", ANA)),
            )
            rows.append(choice.choice((opened, ended(opened), ended(opened, "failed"))))
        together, apart = f"Together{turn}", f"Apart{turn}"
        await index.write([one._replace(agent_id=together) for one in rows])
        for one in rows:
            await index.write([one._replace(agent_id=apart)])
        found = await read(together)
        expected = await read(apart)
        assert [sorted(part) for part in found] == [sorted(part) for part in expected]
        assert found[0] == expected[0]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"7",
        b'{"g":1}',
        b'{"g":true,"s":"x","t":"x","c":"1"}',
        b'{"g":1,"s":"completed","t":"x","c":1,"e":"soon"}',
        b'{"g":1,"s":"completed","t":"x","c":-1}',
        b'{"g":1,"s":"completed","t":"x","c":1,"u":7}',
        b'{"g":1,"s":"completed","t":"x","c":1,"m":"magic"}',
        b"\xff",
    ],
)
def test_a_row_that_is_none_is_passed_over(body: bytes) -> None:
    """The workers of an agent may write any bytes there."""
    assert read_row(AGENT, "t1", body) is None


async def test_a_task_is_open_until_it_ends_and_again_when_it_is_redriven(
    index: TaskIndex, tasks: TaskList
) -> None:
    """A writer that is late, in whatever order, takes nothing back."""
    first = row("t1")
    await index.write([first])
    assert await gather(index.open_runs()) == {"t1"}
    await index.write([ended(first, "failed", error="ValueError")])
    await index.write([first])
    assert await gather(index.open_runs()) == set()
    [found] = await listed(tasks, TaskFilter())
    assert (found.state, found.error) == ("failed", "ValueError")
    again = first._replace(generation=2)
    await index.write([again])
    await index.write([ended(first, "completed")])
    assert await gather(index.open_runs()) == {"t1"}
    await index.write([ended(again)])
    [found] = await listed(tasks, TaskFilter())
    assert (found.state, found.generation, found.error) == ("completed", 2, None)


async def test_a_page_has_how_far_each_task_is_by_the_ledger(
    index: TaskIndex, tasks: TaskList, valkey_or_redis: Redis
) -> None:
    """Running, waiting and why, to be cancelled, ended meanwhile, and no longer known; each is found by its state."""
    ledger = Ledger(valkey_or_redis, deadline_s=PATIENCE_S)
    wait = RunWait(
        kind="limit",
        name="tenant:acme",
        text="the budget of tenant acme",
        since=datetime(2026, 1, 1, tzinfo=UTC),
        until=datetime(2026, 1, 2, tzinfo=UTC),
    )
    names = ("accepted", "running", "waiting", "cancelling", "expired", "gone")
    await index.write([row(name, age_ms=at) for at, name in enumerate(names)])
    for name in names[:-1]:
        await ledger.accept(name, 1, assignment_of(name))
    await ledger.begin("running", 1, "w1", NOW_MS, 30_000)
    await ledger.note_wait("waiting", 1, wait)
    await valkey_or_redis.hset(keys.task("waiting"), "state:1", "waiting")
    await ledger.cancel("cancelling", 1, "it is not wanted")
    await ledger.finish("expired", 1, "expired", b"{}")

    found = {one.task_id: one for one in await listed(tasks, TaskFilter())}
    assert {name: one.state for name, one in found.items()} == {n: n for n in names}
    assert found["waiting"].waits_for == wait
    assert found["running"].attempts == 1
    for state in names[:-1]:
        assert await ids(tasks, state=state) == [state]


async def test_a_foreign_key_fails_neither_the_list_nor_a_task(
    index: TaskIndex, tasks: TaskList, valkey_or_redis: Redis
) -> None:
    """Keys of another type are replaced by who writes, and passed over by who reads."""
    own = keys.runs(AGENT)
    await index.write([row("t1", user=ANA)])
    await valkey_or_redis.set(keys.task("t1"), "no entry")
    assert await ids(tasks) == ["t1"]
    for key in (*own, own.of_user(ANA)):
        await valkey_or_redis.delete(key)
        await valkey_or_redis.set(key, "no list")
        assert await ids(tasks) == [] or key not in own[:2]
        await index.write([row("t1", user=ANA)])
        assert await ids(tasks, user=ANA) == ["t1"]
        assert await ids(tasks, state="accepted") == []  # its entry is none


async def test_what_is_too_old_or_too_many_goes_now_and_then(
    valkey_or_redis: Redis, tasks: TaskList
) -> None:
    """An open run stays however old it is, and one that ended lately; the sets of users outlive the rows."""
    index = TaskIndex(valkey_or_redis, deadline_s=PATIENCE_S, most=20)
    own = keys.runs(AGENT)
    old = row("old-open", age_ms=30 * DAY_MS, user=ANA)
    late = row("late", age_ms=9 * DAY_MS)
    past = ended(row("past", age_ms=8 * DAY_MS), user=ANA)
    await index.write([old, late, ended(late, ended_ms=NOW_MS - DAY_MS), past])
    assert set(await ids(tasks)) == {"old-open", "late"}
    for number in range(60):
        await index.write([ended(row(f"t{number}", age_ms=1_000 - number), user=ANA)])
        assert await valkey_or_redis.zcard(own.listed) <= 20 + 25
    await TaskIndex(valkey_or_redis, deadline_s=PATIENCE_S, most=20).write([old])
    assert await ids(tasks) == [f"t{number}" for number in reversed(range(40, 60))]
    assert await gather(index.open_runs()) == {"old-open"}
    assert await valkey_or_redis.hlen(own.rows) == 21
    assert await ids(tasks, state="accepted", user=ANA) == []
    assert await gather(index.user_runs(ANA)) >= {f"t{n}" for n in range(60)}
    await index.write([ended(old, ended_ms=NOW_MS)])
    assert await gather(index.open_runs()) == set()


@pytest.mark.parametrize("seed", range(6))
async def test_pages_have_each_fitting_run_once_and_in_order(
    seed: int, index: TaskIndex, tasks: TaskList
) -> None:
    """Of several agents, with many of one millisecond, for any filter and any size of page, as an oracle says."""
    chance = random.Random(seed)
    agents = [f"Agent{number}" for number in range(chance.choice([1, 2, 7]))]
    rows = []
    for number in range(700):
        made = row(
            f"t{number}",
            agent_id=chance.choice(agents),
            age_ms=chance.choice([5, 5, 5, chance.randrange(5_000)]),
            tenant=chance.choice([None, "acme", "other"]),
            user=chance.choice(["", ANA, BEN]),
            parent_id=chance.choice([None, "p1"]),
        )
        state = chance.choice(["completed", "failed", "expired"])
        error = None if state == "completed" else chance.choice(["A", "B"])
        rows.append(ended(made, state, error=error))
    await index.write(rows)
    for _ in range(25):
        asked = TaskFilter(
            agent_id=chance.choice([None, None, *agents]),
            state=chance.choice([None, "failed", "completed"]),
            tenant=chance.choice([None, "acme"]),
            user=chance.choice([None, ANA]),
            parent_id=chance.choice([None, "p1"]),
            error=chance.choice([None, "A"]),
            created_from_ms=chance.choice([None, NOW_MS - 3_000]),
            created_before_ms=chance.choice([None, NOW_MS - 5, NOW_MS - 100]),
        )
        found = await listed(tasks, asked, limit=chance.choice([1, 3, 50, 200]))
        expected = {one.task_id for one in rows if fits(asked, one)}
        assert len(found) == len(expected)
        assert {one.task_id for one in found} == expected
        if asked.user is None:
            times = [one.began_ms for one in found]
            assert times == sorted(times, reverse=True)


def fits(asked: TaskFilter, one: TaskRow) -> bool:
    """Return whether *one* is as *asked*, said in another way than the product does."""
    wanted = {
        "agent_id": asked.agent_id,
        "state": asked.state,
        "tenant": asked.tenant,
        "user": asked.user,
        "parent_id": asked.parent_id,
        "error": asked.error,
    }
    alike = all(getattr(one, name) == value for name, value in wanted.items() if value)
    since = asked.created_from_ms or 0
    until = asked.created_before_ms or NOW_MS * 2
    return alike and since <= one.created_ms < until


async def test_a_page_that_finds_nothing_comes_back_short_and_goes_on(
    index: TaskIndex, tasks: TaskList
) -> None:
    """So many rows are read for a page, and the last one is found on the next."""
    many = [row(f"t{number}", age_ms=number) for number in range(MOST_READ + 10)]
    await index.write([ended(one) for one in many])
    await index.write([ended(row("rare", age_ms=DAY_MS), tenant="acme")])

    first = await tasks.read(TaskFilter(tenant="acme"))
    assert first.tasks == ()
    assert first.after is not None
    then = await tasks.read(TaskFilter(tenant="acme"), after=first.after)
    assert [one.task_id for one in then.tasks] == ["rare"]
    assert then.after is None


@pytest.mark.parametrize(
    "after", ["x", "1", "1.2", "1.2.{A}", "1.2.A.3", "-1.2.A", " "]
)
async def test_a_place_that_is_none_is_refused(tasks: TaskList, after: str) -> None:
    """With the cure."""
    with pytest.raises(InvalidInput, match="use the `after` of the previous page"):
        await tasks.read(TaskFilter(), after=after)


async def test_a_state_or_limit_that_is_none_is_refused(tasks: TaskList) -> None:
    """With what may stand there."""
    with pytest.raises(InvalidInput, match="accepted, running"):
        await tasks.read(TaskFilter(state="queued"))
    for limit in (0, 201):
        with pytest.raises(InvalidInput, match="1 to 200"):
            await tasks.read(TaskFilter(), limit=limit)


async def test_nothing_of_a_user_is_left_after_forgetting_them(
    index: TaskIndex, tasks: TaskList, valkey_or_redis: Redis
) -> None:
    """Open, ended and overdue runs, at every agent; what was cancelled for that is never listed as theirs again."""
    theirs = [
        row("open", user=ANA),
        ended(row("done", user=ANA)),
        ended(row("elsewhere", agent_id="OtherAgent", user=ANA)),
        row("overdue", age_ms=100 * DAY_MS, user=ANA),
    ]
    others = [ended(row("his", user=BEN)), ended(row("nobodys"))]
    await index.write([*theirs, *others])
    # As if nobody had written for so long that her set is over.
    await valkey_or_redis.zrem(keys.runs(AGENT).of_user(ANA), "overdue")
    assert await index.count_of(ANA) == 4
    cancelled = CancelledRun(AGENT, "open", generation=1, task="leaf", ended_ms=NOW_MS)

    assert await index.forget(ANA, [cancelled]) == 4
    await index.write([ended(theirs[0])])
    await index.write([theirs[0]])

    assert await index.count_of(ANA) == 0
    assert await ids(tasks, user=ANA) == []
    states = {one.task_id: one.state for one in await listed(tasks, TaskFilter())}
    mine = {"open": "cancelled", "overdue": "cancelled"}
    assert states == mine | {"his": "completed", "nobodys": "completed"}
    assert await gather(index.open_runs()) == set()
    left = [key async for key in valkey_or_redis.scan_iter()]
    dumped = b"".join([*left, *[await dump(valkey_or_redis, key) for key in left]])
    assert ANA.encode() not in dumped
    assert BEN.encode() in dumped


async def test_no_command_touches_more_than_200_entries(
    valkey_or_redis: Redis, record_property: Callable[[str, object], None]
) -> None:
    """Whatever is written, listed, walked or forgotten, as the server saw it."""
    index = TaskIndex(valkey_or_redis, deadline_s=PATIENCE_S, most=2_000)
    tasks = TaskList(valkey_or_redis, deadline_s=PATIENCE_S)
    agents = [f"Agent{number}" for number in range(3)]
    rows = [
        row(
            f"t{number}",
            agent_id=agents[number % 3],
            age_ms=number * 200_000,
            user=user_token(f"user{number % 40}") if number % 2 else ANA,
            tenant="acme" if number % 500 == 0 else None,
        )
        for number in range(9_000)
    ]
    async with valkey_or_redis.monitor() as monitor:
        await index.write(rows)
        await index.write([ended(one) for one in rows])
        await index.write(rows[:3_000])
        for asked in (
            TaskFilter(),
            TaskFilter(agent_id=agents[0]),
            TaskFilter(tenant="acme"),
            TaskFilter(user=ANA),
            TaskFilter(state="failed"),
            TaskFilter(state="waiting"),
            TaskFilter(error="A", created_from_ms=NOW_MS - DAY_MS),
            TaskFilter(parent_id="p"),
        ):
            await listed(tasks, asked, limit=200)
        await gather(index.open_runs())
        await index.close(agents[0], [one.task_id for one in rows])
        await index.forget(ANA)
        await valkey_or_redis.echo("over")
        entries: dict[str, int] = {}
        known: set[str] = set()
        async for seen in monitor.listen():
            words = str(seen["command"]).split(" ")
            if words[0] == "ECHO":
                break
            if seen["client_type"] != "lua":
                known = set()
            known |= entries_in(words, len(known))
            name = words[0] if seen["client_type"] != "lua" else "FCALL"
            entries[name] = max(entries.get(name, 0), len(known))
    record_property("entries", entries)
    assert entries["FCALL"] > 100
    assert max(entries.values()) <= 200, entries


def entries_in(words: list[str], before: int) -> set[str]:
    """Return the entries that a command names, or may read: these are none that *before* others were read."""
    name = words[0].upper()
    if name == "ZRANGE" and "LIMIT" in words:
        most = int(words[words.index("LIMIT") + 2])
        return {f"{words[1]} {before + one}" for one in range(most)}
    if name == "ZRANGE":
        most = int(words[3]) - int(words[2]) + 1
        return {f"{words[1]} {before + one}" for one in range(most)}
    if name == "ZSCAN":
        return {f"{words[1]} {before + one}" for one in range(int(words[4]))}
    if name in ("ZREM", "HDEL", "HGET", "ZSCORE"):
        return set(words[2:])
    if name == "ZADD":
        return {words[-1]}
    if name == "HSET":
        return set(words[2::2])
    return set()


async def dump(redis: Redis, key: bytes) -> bytes:
    kind = await redis.type(key)
    if kind == b"hash":
        found: Sequence[bytes] = [
            part for pair in (await redis.hgetall(key)).items() for part in pair
        ]
        return b" ".join(found)
    return b" ".join(await redis.zrange(key, 0, -1))


def assignment_of(task_id: str) -> bytes:
    made = TaskAssignment(
        task_id=task_id,
        agent_id=AGENT,
        supervisor_id="S",
        task=TaskCall(name="leaf"),
        created_at=datetime.now(UTC) - timedelta(minutes=1),
    )
    return made.model_dump_json().encode()


async def until_open(index: TaskIndex, wanted: set[str]) -> None:
    """Wait until *wanted* are the open runs: those that have ended leave them a moment later."""
    async with asyncio.timeout(PATIENCE_S):
        while await gather(index.open_runs()) != wanted:  # noqa: ASYNC110 - a store tells nobody
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("is_cancelled", [False, True])
@pytest.mark.parametrize("layout", ["1", "2"])
async def test_a_process_that_dies_between_leaves_a_task_among_the_open_ones(
    layout: Layout,
    is_cancelled: bool,
    valkey_or_redis: Redis,
    index: TaskIndex,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever of a batch was carried out: what the ledger has as open is listed as open.

    A task fails and is sent again, or is to be cancelled by the time at which a run of it would end it otherwise.
    """
    await set_layout(valkey_or_redis, layout)
    task = TaskName(AGENT, "t1")
    ledger = Ledger(valkey_or_redis, deadline_s=PATIENCE_S)
    commands: list[Command] = []
    run = CommandBatch.run

    async def note(
        batch: CommandBatch, asked: Sequence[Command], **words: Any
    ) -> list[Any]:
        if asked and asked[0][0] not in ("ZSCAN", "GET"):
            commands.extend(asked)
        return await run(batch, asked, **words)

    async def end(generation: int, status: str) -> object:
        made = ended(row("t1"), status, generation=generation)
        body = status.encode()
        finish = Finish(task, generation, status, body, row=made)
        return (await ledger.finish_many([finish]))[0]

    monkeypatch.setattr(CommandBatch, "run", note)
    opened = row("t1")
    await ledger.accept(task, 1, assignment_of("t1"), row=opened)
    await ledger.begin(task, 1, "w1", NOW_MS, 30_000, token="token")
    await ledger.park(Ended(task, 1, "token"), 0, assignment_of("t1"), row=opened)
    if is_cancelled:
        await ledger.cancel(task, 1, "enough")
        assert await end(1, "completed") == CancelRequest("enough")
        await asyncio.sleep(0.3)
        assert await gather(index.open_runs()) == {"t1"}
        await end(1, "cancelled")
    else:
        await end(1, "failed")
        again = opened._replace(generation=2)
        await ledger.accept(task, 2, assignment_of("t1"), row=again)
        await until_open(index, {"t1"})
        await end(2, "completed")
    await until_open(index, set())
    monkeypatch.undo()

    was_open = 0
    for count in range(1, len(commands) + 1):
        await valkey_or_redis.flushdb()
        for command in commands[:count]:
            await valkey_or_redis.execute_command(*command)
            entry = await ledger.read(task)
            known = () if entry is None else entry.generations.values()
            if any(one.assignment and one.report is None for one in known):
                was_open += 1
                assert await gather(index.open_runs()) == {"t1"}
    assert was_open > len(commands)
    assert await gather(index.open_runs()) == set()


async def test_a_task_that_begins_anew_past_its_time_is_open(index: TaskIndex) -> None:
    """Its row may still wait to be removed, and says that it has ended."""
    old = row("t1", age_ms=9 * DAY_MS)
    await index.write([ended(old)])
    await index.write([row("t1")])
    assert await gather(index.open_runs()) == {"t1"}


async def test_what_is_no_agent_hides_no_open_run(
    index: TaskIndex, valkey_or_redis: Redis
) -> None:
    """Workers may write any text among the agents."""
    await valkey_or_redis.zadd(keys.run_agents(), {"no agent": 1, b"\xff": 2})
    await index.write([row("t1")])
    assert await gather(index.open_runs()) == {"t1"}


async def test_a_short_task_of_a_program_is_written_once_and_a_long_one_soon(
    valkey_or_redis: Redis, tasks: TaskList
) -> None:
    """What nobody noted before is listed a moment after it began, unless it has ended by then."""
    ledger = Ledger(valkey_or_redis, deadline_s=PATIENCE_S)
    for name in ("short", "long", "known"):
        if name == "known":
            await ledger.accept(name, 1, assignment_of(name))
        await ledger.begin(name, 1, "w1", NOW_MS, 30_000, make_row=partial(row, name))
    await ledger.finish_many([Finish("short", 1, "failed", b"{}", row=row("short"))])
    # An open row in place of an ended one shows that it was written by its end alone.
    own = keys.runs(AGENT)
    await valkey_or_redis.hdel(own.rows, "short")
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if await valkey_or_redis.hexists(own.rows, "long"):
                break
            await asyncio.sleep(0.01)
    assert not await valkey_or_redis.hexists(own.rows, "short")
    assert not await valkey_or_redis.hexists(own.rows, "known")
    assert await ids(tasks, state="running") == ["long"]


async def test_a_report_that_the_ledger_takes_over_keeps_what_its_task_was_listed_by(
    valkey_or_redis: Redis, tasks: TaskList
) -> None:
    """Tenant, parent, user and creation stand in no report."""
    ledger = Ledger(valkey_or_redis, deadline_s=PATIENCE_S)
    first = row("t1", tenant="acme", parent_id="p1", user=ANA)
    await ledger.accept("t1", 1, assignment_of("t1"), row=first)
    told = row("t1", age_ms=5)
    await ledger.adopt_many(
        [Finish("t1", 1, "failed", b"{}", row=ended(told, "failed", error="A"))]
    )
    [found] = await listed(tasks, TaskFilter(user=ANA, tenant="acme", parent_id="p1"))
    assert (found.state, found.error, found.began_ms) == (
        "failed",
        "A",
        first.created_ms,
    )
