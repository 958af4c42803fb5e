"""Schedules on real servers: ticks by several desks, changes, those in the code of agents, and hostile clients."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.admission.schedules import Timing
from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import OwnerFull, QueueFull
from tasklore.contracts.identifiers import TaskName
from tasklore.contracts.messages import TaskAssignment
from tasklore.memory import keys
from tasklore.memory.schedules import store
from tasklore.memory.schedules.store import (
    MOST_OF_USER,
    Schedule,
    ScheduleState,
    ScheduleStore,
    UserSchedules,
)
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.schedules.book import ScheduleBook
from tasklore.supervisor.schedules.scheduler import Scheduler
from tests.http_client import Answer, ask
from tests.integration.http_stand import CARD, Stand, http_stand
from tests.servers import PATIENCE_S

NOW = datetime(2026, 5, 1, tzinfo=UTC)
BODY = {"agent_id": CARD.agent_id, "task": "echo", "parameters": {"word": "hi"}}


@pytest.fixture
async def stand(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    async with http_stand(servers, redis) as found:
        await ask_jetstream(
            found.parts.client,
            f"STREAM.PURGE.{subjects.TASKS}",
            {"filter": subjects.TASKS_ALL},
        )
        yield found


@pytest.fixture
async def guarded(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[tuple[Stand, dict[str, Any]]]:
    file = tmp_path / "keys.json"
    headers = {}
    for name in ("ann", "bob"):
        headers[name] = {
            "Authorization": f"Bearer {make_key(file, name, ('ask',), name)}"
        }
    async with http_stand(servers, redis, keys=KeyRing(file)) as found:
        yield found, headers


async def add(
    stand: Stand, headers: dict[str, str] | None = None, **body: Any
) -> Answer:
    return await ask(stand.url, "POST", "/v1/schedules", {**BODY, **body}, headers)


async def started(stand: Stand) -> list[TaskAssignment]:
    """Return what lies in TASKS, in order."""
    state = (await ask_jetstream(stand.parts.client, f"STREAM.INFO.{subjects.TASKS}"))[
        "state"
    ]
    stream = stand.parts.client.jetstream()
    numbers = (
        range(state["first_seq"], state["last_seq"] + 1) if state["messages"] else ()
    )
    found = [
        (await stream.get_msg(subjects.TASKS, number)).data or b"" for number in numbers
    ]
    return [TaskAssignment.model_validate_json(body) for body in found]


async def test_two_desks_make_each_tick_once_and_in_time(stand: Stand) -> None:
    """Each tick is a task whose id follows from schedule and time."""
    assert (await add(stand, every=1, id="beat")).status == 201
    desks = [Scheduler(stand.parts.schedules, stand.parts.ticks) for _ in range(2)]
    running = [asyncio.create_task(desk.run()) for desk in desks]
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                tasks = await started(stand)
                # Those that are due while nobody is served come together, in any order.
                times = sorted(task.waits_from for task in tasks)
                steps = {later - earlier for earlier, later in pairwise(times)}
                if len(tasks) >= 4 and steps == {timedelta(seconds=1)}:
                    break
                assert timedelta(0) not in steps
                await asyncio.sleep(0.1)
    finally:
        await asyncio.gather(*(desk.drain() for desk in desks))
        await asyncio.gather(*running)
    assert len({task.task_id for task in tasks}) == len(tasks)
    seen = (await ask(stand.url, "GET", "/v1/schedules/beat")).body
    assert seen["last_task"].startswith("beat-")


async def test_a_paused_schedule_withdraws_its_next_tick_and_missed_none_when_it_goes_on(
    stand: Stand,
) -> None:
    """Pausing and removing take back the task that already waits in LATER."""
    await add(stand, every=4, id="slow")
    desk = Scheduler(stand.parts.schedules, stand.parts.ticks)
    running = asyncio.create_task(desk.run())
    store = stand.parts.schedules.store
    async with asyncio.timeout(PATIENCE_S):
        while (  # noqa: ASYNC110
            kept := (await store.read("slow"))[0]
        ) is None or kept.state.task_id is None:
            await asyncio.sleep(0.02)
    paused = (await ask(stand.url, "POST", "/v1/schedules/slow/pause")).body
    assert (paused["paused"], paused["next"], paused["version"]) == (True, [], 2)
    entry = await stand.parts.ledger.read(kept.state.task_id)
    assert entry is not None
    assert entry.generations[1].state == "cancelled"
    resumed = (await ask(stand.url, "POST", "/v1/schedules/slow/resume")).body
    assert (resumed["paused"], resumed["missed_ticks"], len(resumed["next"])) == (
        False,
        0,
        5,
    )
    assert (await ask(stand.url, "DELETE", "/v1/schedules/slow")).status == 200
    assert (await ask(stand.url, "GET", "/v1/schedules/slow")).status == 404
    await desk.drain()
    await running
    assert [
        task.task_id for task in await started(stand) if task.task_id.startswith("slow")
    ] == []


async def test_a_task_says_whether_its_deadline_is_its_own_or_its_senders(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """A dead letter is sent again by it, for which a worker of 0.2 does not ask."""
    task = CARD.tasks[0].model_copy(update={"deadline_s": 120.0})
    catalogue = Catalogue([CARD.model_copy(update={"tasks": (task,)})])
    async with http_stand(servers, redis, catalogue=lambda: catalogue) as stand:
        sent = {"agent_id": CARD.agent_id, "task": "echo", "parameters": {"word": "hi"}}
        task_ids = [
            (
                await ask(
                    stand.url,
                    "POST",
                    "/v1/tasks",
                    {**sent, "wait_seconds": 0, **within},
                )
            ).body["task_id"]
            for within in ({}, {"within_seconds": 120})
        ]
        assert (await add(stand, every=600, id="beat")).status == 201
        [kept] = await stand.parts.schedules.store.read("beat")
        assert kept is not None
        ticks = replace(stand.parts.ticks, catalogue=lambda: catalogue)
        task_ids.append(await ticks.run_now(kept.schedule))
        said = []
        for task_id in task_ids:
            entry = await stand.parts.ledger.read(TaskName(CARD.agent_id, task_id))
            assert entry is not None
            assert entry.generations[1].assignment is not None
            assignment = TaskAssignment.model_validate_json(
                entry.generations[1].assignment
            )
            assert assignment.deadline is not None
            assert assignment.deadline - assignment.waits_from == timedelta(seconds=120)
            said.append(assignment.has_own_deadline)
        assert said == [True, False, True]


async def test_the_next_five_times_are_shown_before_anything_is_kept(
    stand: Stand,
) -> None:
    """With `dry_run`, by the clocks of the zone."""
    shown = (
        await add(
            stand, cron="0 9 * * mon-fri", time_zone="Europe/Berlin", dry_run=True
        )
    ).body
    assert len(shown["next"]) == 5
    assert (await ask(stand.url, "GET", "/v1/schedules")).body == {
        "schedules": [],
        "after": None,
    }


async def test_a_schedule_runs_once_more_when_asked_and_the_same_again_changes_nothing(
    stand: Stand,
) -> None:
    """Its next ticks stay as they are; another one of its id is refused."""
    first = await add(stand, every=3600, id="hourly")
    again = await add(stand, every=3600, id="hourly")
    assert (first.status, again.status, again.body) == (201, 201, first.body)
    assert (await add(stand, every=60, id="hourly")).status == 409
    other = await add(stand, every=3600, id="hourly", parameters={"word": "no"})
    assert other.status == 409
    begun = await ask(stand.url, "POST", "/v1/schedules/hourly/run")
    # A tick of another test's schedule may come in between.
    ids = [
        task.task_id
        for task in await started(stand)
        if task.task_id.startswith("hourly")
    ]
    assert (begun.status, ids) == (202, [begun.body["task_id"]])


#: What a hostile or mistaken client sends, the field that is at fault, and a word of the cure.
UNUSABLE: list[tuple[dict[str, Any], str, str]] = [
    ({"every": 0.001}, "every", "whole number"),
    ({"every": 0}, "every", "from 1"),
    ({"every": -5}, "every", "from 1"),
    ({"every": 10**30}, "every", ""),
    ({}, "cron", "one of cron, every and at"),
    ({"cron": "* * * * *", "every": 5}, "every_s", "one of"),
    ({"cron": "0 0 30 2 *"}, "cron", "day-of-month"),
    ({"cron": "* " * 100_000}, "cron", "characters"),
    ({"cron": "0 9 * * *", "time_zone": "Mars/Olympus"}, "time_zone", "Europe/Berlin"),
    ({"cron": "0 9 * * *", "time_zone": "../../etc/passwd"}, "time_zone", "write one"),
    ({"at": "2020-01-01T00:00:00Z"}, "at", "passed"),
    ({"every": 60, "missed": "twice"}, "missed", "skip"),
    ({"every": 60, "id": "a b"}, "id", ""),
    ({"every": 60, "id": "a" * 64}, "id", "40"),
    ({"every": 60, "parameters": {"word": "x" * 20_000}}, "parameters", "16,384"),
    ({"every": 60, "parameters": {"wrd": "x"}}, "parameters.wrd", "word"),
    ({"every": 60, "surprise": 1}, "surprise", ""),
]


async def test_what_cannot_be_kept_is_refused_with_its_field_and_cure(
    stand: Stand,
) -> None:
    """Nothing is kept of it."""
    for body, field, cure in UNUSABLE:
        answer = await add(stand, **body)
        assert answer.status == 422, body
        assert field in [one["where"] for one in answer.body["problems"]], body
        assert cure in answer.body["detail"], body
    assert (await ask(stand.url, "GET", "/v1/schedules")).body["schedules"] == []


async def test_a_page_of_schedules_begins_behind_the_one_before(redis: Redis) -> None:
    """Of one user, and of all."""
    book = ScheduleStore(redis, "S", deadline_s=PATIENCE_S)
    for name in ("a", "b", "c"):
        made = Schedule(
            id=name,
            timing=Timing(every_s=60),
            agent_id=CARD.agent_id,
            task="echo",
            user_id="ann",
            anchor=NOW,
            created_at=NOW,
            changed_at=NOW,
        )
        assert await book.put(made, ScheduleState(), None) == 1
    for user in ("ann", None):
        pages = [
            [kept.schedule.id for kept in await book.list(user, after=after, limit=2)]
            for after in ("", "b", "c")
        ]
        assert pages == [["a", "b"], ["c"], []]


async def test_a_schedule_of_another_user_is_not_there(
    guarded: tuple[Stand, dict[str, Any]],
) -> None:
    """Neither to be seen nor to be changed; and one user may have a hundred."""
    stand, headers = guarded
    assert (await add(stand, headers["ann"], every=3600, id="anns")).status == 201
    assert (await add(stand, headers["bob"], every=3600, user="ann")).status == 403
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/run"),
    ):
        assert (
            await ask(
                stand.url, method, f"/v1/schedules/anns{path}", None, headers["bob"]
            )
        ).status == 404
    assert (await ask(stand.url, "GET", "/v1/schedules", None, headers["bob"])).body[
        "schedules"
    ] == []
    for number in range(MOST_OF_USER):
        assert (
            await add(stand, headers["bob"], every=3600, id=f"bob{number}")
        ).status == 201
    refused = await add(stand, headers["bob"], every=3600)
    assert refused.status == 429
    assert "100 schedules of this user" in refused.body["detail"]
    first = (
        await ask(stand.url, "GET", "/v1/schedules?limit=60", None, headers["bob"])
    ).body
    rest = (
        await ask(
            stand.url,
            "GET",
            f"/v1/schedules?limit=60&after={first['after']}",
            None,
            headers["bob"],
        )
    ).body
    assert (
        len({one["id"] for one in first["schedules"] + rest["schedules"]})
        == MOST_OF_USER
    )


class FakeMaker:
    """Notes ticks instead of making them."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.made: list[datetime] = []
        self.catalogue = lambda: catalogue

    async def make(self, schedule: Schedule, tick: datetime) -> str:
        self.made.append(tick)
        return schedule.tick_id("S", tick)

    async def withdraw(self, task_id: str | None) -> None:
        raise AssertionError(task_id)


@pytest.mark.parametrize(
    ("missed", "made", "lost"), [("skip", 1, 72), ("once", 2, 71), ("all", 73, 0)]
)
async def test_after_an_outage_missed_ticks_are_made_up_for_by_policy(
    redis: Redis, missed: Any, made: int, lost: int
) -> None:
    """Twelve hours of an injected clock under a tick of ten minutes; the tick that is due now comes in any case."""
    clock = [NOW]
    catalogue = Catalogue([CARD])
    book = ScheduleBook(
        ScheduleStore(redis, "S", deadline_s=PATIENCE_S),
        lambda: catalogue,
        lambda: clock[0],
    )
    own = {"agent_id": CARD.agent_id, "task": "echo", "parameters": {"word": "hi"}}
    timing = Timing(every_s=600, missed=missed)
    await book.add(
        Schedule(
            id="s", timing=timing, anchor=NOW, created_at=NOW, changed_at=NOW, **own
        )
    )
    clock[0] += timedelta(hours=12, minutes=10)
    maker = FakeMaker(catalogue)
    desk = Scheduler(book, maker)  # type: ignore[arg-type]  # a double
    for _ in range(3):
        for key in await desk.due(10):
            await desk.attend(key)
        clock[0] += timedelta(seconds=3)
    assert len(maker.made) == len(set(maker.made)) == made
    kept = (await book.store.read("s"))[0]
    assert kept is not None
    assert (kept.state.missed, kept.state.next) == (
        lost,
        NOW + timedelta(hours=12, minutes=20),
    )


async def test_schedules_in_code_come_and_go_with_the_card_and_stay_paused(
    redis: Redis,
) -> None:
    """A changed time takes the place of the old one, an agent that is not known at all loses nothing."""
    clock = [NOW]
    cards = [Catalogue([CARD])]
    book = ScheduleBook(
        ScheduleStore(redis, "S", deadline_s=PATIENCE_S),
        lambda: cards[0],
        lambda: clock[0],
    )

    def deploy(timing: Timing | None) -> None:
        task = CARD.tasks[0].model_copy(update={"schedule": timing})
        cards[0] = Catalogue([CARD.model_copy(update={"tasks": (task,)})])

    deploy(Timing(cron="0 9 * * *"))
    await asyncio.gather(book.declare(), book.declare(), book.declare())
    [kept] = await book.store.list(declared=True)
    assert (kept.schedule.target, kept.state.next) == (
        "EchoAgent.echo",
        NOW + timedelta(hours=9),
    )
    await book.set_paused(kept.schedule.id, Caller(name="olga"), paused=True)
    deploy(Timing(cron="0 8 * * *"))
    await book.declare()
    [kept] = await book.store.list(declared=True)
    assert (kept.schedule.timing.cron, kept.schedule.paused) == ("0 8 * * *", True)
    cards[0] = Catalogue([])
    await book.declare()
    assert len(await book.store.list(declared=True)) == 1
    deploy(None)
    await book.declare()
    assert await book.store.list(declared=True) == []


async def test_a_full_book_is_no_owners_fault_and_stops_no_ticks(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that stands in the code of an agent is left out and logged, and the desk goes on with the others."""
    monkeypatch.setattr(store, "MOST", 1)
    card = CARD.model_copy(
        update={
            "tasks": (
                CARD.tasks[0].model_copy(update={"schedule": Timing(every_s=600)}),
            )
        }
    )
    catalogue = Catalogue([card])
    book = ScheduleBook(
        ScheduleStore(redis, "S", deadline_s=PATIENCE_S), lambda: catalogue, lambda: NOW
    )
    fields = {"anchor": NOW, "created_at": NOW, "changed_at": NOW, **BODY}
    first = Schedule(id="first", timing=Timing(at=NOW + timedelta(seconds=3)), **fields)
    await book.add(first)
    with pytest.raises(QueueFull, match="remove one") as refused:
        await book.add(first.model_copy(update={"id": "second"}))
    assert not isinstance(refused.value, OwnerFull)
    desk = Scheduler(book, FakeMaker(catalogue))  # type: ignore[arg-type]  # a double
    assert list(await desk.due(10)) == ["first"]


async def test_forgetting_a_user_removes_their_schedules_of_every_supervisor(
    redis: Redis,
) -> None:
    """And no other ones."""
    stores = [
        ScheduleStore(redis, name, deadline_s=PATIENCE_S) for name in ("One", "Two")
    ]
    for one in stores:
        for name, user in (("a", "ann"), ("b", "bob"), ("c", None)):
            stamps = {"anchor": NOW, "created_at": NOW, "changed_at": NOW}
            await one.put(
                Schedule(id=name, timing=Timing(every_s=60), user_id=user, **stamps),
                ScheduleState(NOW),
                NOW,
            )
    owned = UserSchedules(redis, deadline_s=PATIENCE_S)
    # As a supervisor of 0.2 leaves them.
    await redis.delete(keys.schedule_books())
    assert await owned.count("ann") == 2
    await owned.build_index()
    await redis.config_resetstat()
    assert await owned.count("ann") == 2
    assert "cmdstat_scan" not in await redis.info("commandstats")
    assert (
        await owned.forget("ann"),
        await owned.count("ann"),
        await owned.count("bob"),
    ) == (2, 0, 2)
    assert [len(await one.list()) for one in stores] == [2, 2]


async def test_a_state_survives_its_spelling() -> None:
    """As one desk leaves it, the next one reads it."""
    state = ScheduleState(NOW, None, "t", 3, "no room")
    assert ScheduleState.read(state.spell().encode()) == state
    assert json.loads(ScheduleState().spell()) == [None, None, None, 0, ""]
