"""What is kept for later when the key it was made with is removed: it rests, says so, and is lost to nobody."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from tasklore.contracts.callers import Caller
from tasklore.contracts.messages import TaskAssignment
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.schedules.store import KeptSchedule
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.key_file import KeyRing
from tasklore.supervisor.makers import Makers
from tasklore.supervisor.schedules.book import ScheduleBook
from tasklore.supervisor.schedules.scheduler import Scheduler
from tests.http_client import Answer, ask
from tests.integration.http_stand import CARD, Stand, http_stand
from tests.integration.kept_keys import KeyFile
from tests.servers import PATIENCE_S

BODY = {"agent_id": CARD.agent_id, "task": "echo", "parameters": {"word": "hi"}}


@pytest.fixture
def keys(tmp_path: Path) -> KeyFile:
    file = KeyFile(tmp_path / "keys.json")
    file.make("shop", "ask", tenant="acme")
    file.make("till", "ask", tenant="acme")
    file.make("olga", "admin")
    file.make("ann", "ask", user="ann")
    return file


@pytest.fixture
async def stand(
    servers: EmbeddedServers, redis: Redis, keys: KeyFile
) -> AsyncIterator[Stand]:
    async with http_stand(servers, redis, keys=keys.open()) as found:
        yield found


class Clerk:
    """Makes the ticks of one schedule as the scheduler would at a time, with the keys that its supervisor knows."""

    def __init__(self, stand: Stand, ring: KeyRing | None) -> None:
        self._now = datetime.now(UTC)
        self._stand = stand
        book = stand.parts.schedules
        self.book = ScheduleBook(
            book.store, stand.parts.catalogue, lambda: self._now, makers=Makers(ring)
        )
        self._scheduler = Scheduler(self.book, stand.parts.ticks)

    async def read(self, schedule_id: str) -> KeptSchedule:
        kept = (await self.book.store.read(schedule_id))[0]
        assert kept is not None
        return kept

    async def turn(self, schedule_id: str, at: datetime) -> KeptSchedule:
        self._now = at
        await self._scheduler.work(schedule_id, await self.read(schedule_id))
        return await self.read(schedule_id)


async def add(stand: Stand, headers: dict[str, str], **body: Any) -> Any:
    answer = await ask(stand.url, "POST", "/v1/schedules", {**BODY, **body}, headers)
    assert answer.status == 201, answer.body
    return answer.body


async def change(
    stand: Stand, headers: dict[str, str], schedule_id: str, verb: str
) -> Answer:
    return await ask(
        stand.url, "POST", f"/v1/schedules/{schedule_id}/{verb}", None, headers
    )


async def show(stand: Stand, headers: dict[str, str], schedule_id: str) -> Any:
    path = f"/v1/schedules/{schedule_id}"
    return (await ask(stand.url, "GET", path, headers=headers)).body


async def caller_of(redis: Redis, task_id: str | None) -> Caller | None:
    """Return whose task the tick began."""
    entry = await Ledger(redis, deadline_s=PATIENCE_S).read(task_id or "")
    assert entry is not None
    body = entry.generations[entry.newest].assignment
    return TaskAssignment.model_validate_json(body or b"").caller


async def test_a_schedule_rests_while_its_key_is_gone_and_goes_on_once_it_is_back(
    stand: Stand, keys: KeyFile
) -> None:
    """A tick of the time between is treated as one while no supervisor ran: by `missed`."""
    await add(stand, keys.headers["shop"], id="hourly", every=3600)
    clerk = Clerk(stand, keys.open())
    tick = (await clerk.read("hourly")).state.next
    assert tick is not None
    entry = keys.remove("shop")
    with capture_logs() as logs:
        held = await clerk.turn("hourly", tick)
        again = await clerk.turn("hourly", tick + timedelta(seconds=2))
    assert (held.state.task_id, held.state.next, held.schedule.paused) == (
        None,
        tick,
        False,
    )
    assert held.state.problem == again.state.problem
    assert "the API key 'shop' that created it was removed" in held.state.problem
    assert "`tasklore schedules resume hourly`" in held.state.problem
    assert [one["event"] for one in logs] == ["schedule_paused"]
    seen = await show(stand, keys.headers["till"], "hourly")
    assert (seen["paused"], seen["next"], seen["problem"]) == (
        True,
        [],
        held.state.problem,
    )
    keys.put_back(entry)
    made = await clerk.turn("hourly", tick + timedelta(minutes=10))
    assert made.state.task_id is not None
    assert (made.state.problem, made.state.last) == ("", tick)
    assert (await show(stand, keys.headers["shop"], "hourly"))["paused"] is False


async def test_it_is_shown_as_paused_before_its_next_tick(
    stand: Stand, keys: KeyFile
) -> None:
    await add(stand, keys.headers["shop"], id="later", every=3600)
    keys.remove("shop")
    answer = await ask(stand.url, "GET", "/v1/schedules", headers=keys.headers["olga"])
    [seen] = [one for one in answer.body["schedules"] if one["id"] == "later"]
    assert (seen["paused"], seen["next"]) == (True, [])
    assert seen["problem"].startswith("paused: the API key 'shop'")


async def test_who_resumes_it_takes_it_over_for_its_tenant(
    stand: Stand, keys: KeyFile, redis: Redis
) -> None:
    for schedule_id in ("one", "two"):
        await add(stand, keys.headers["shop"], id=schedule_id, every=3600)
    keys.remove("shop")
    clerk = Clerk(stand, keys.open())
    for schedule_id, name in (("one", "till"), ("two", "olga")):
        tick = (await clerk.read(schedule_id)).state.next
        assert tick is not None
        await clerk.turn(schedule_id, tick)
        answer = await change(stand, keys.headers[name], schedule_id, "resume")
        assert (answer.body["paused"], answer.body["problem"]) == (False, "")
        assert answer.body["changed_by"] == name
        kept = await clerk.read(schedule_id)
        assert kept.state.next is not None
        made = await clerk.turn(schedule_id, kept.state.next)
        caller = await caller_of(redis, made.state.task_id)
        assert caller is not None
        assert (caller.name, caller.tenant) == (name, "acme")
    # Removing it frees a place of the maker that it has now.
    for schedule_id in ("one", "two"):
        path = f"/v1/schedules/{schedule_id}"
        removed = await ask(stand.url, "DELETE", path, headers=keys.headers["olga"])
        assert removed.status == 200


async def test_who_resumes_one_whose_key_is_there_does_not_take_it_over(
    stand: Stand, keys: KeyFile
) -> None:
    await add(stand, keys.headers["shop"], id="kept", every=3600)
    await change(stand, keys.headers["olga"], "kept", "pause")
    await change(stand, keys.headers["olga"], "kept", "resume")
    kept = (await stand.parts.schedules.store.read("kept"))[0]
    assert kept is not None
    assert kept.schedule.caller is not None
    assert kept.schedule.caller.name == "shop"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"roles": ["read"]}, "no longer has the role 'ask'"),
        ({"tenant": "other"}, "is now for another user or tenant"),
        ({"user": "bob"}, "is now for another user or tenant"),
    ],
)
async def test_a_key_is_worth_what_it_may_do_now(
    stand: Stand, keys: KeyFile, changes: dict[str, Any], why: str
) -> None:
    schedule_id = next(iter(changes))
    await add(stand, keys.headers["shop"], id=schedule_id, every=3600)
    keys.put_back(keys.remove("shop"), **changes)
    seen = await show(stand, keys.headers["olga"], schedule_id)
    assert seen["paused"] is True
    assert why in seen["problem"]


async def test_a_key_made_anew_under_its_name_is_the_same_maker(
    stand: Stand, keys: KeyFile
) -> None:
    await add(stand, keys.headers["shop"], id="rotated", every=3600)
    keys.remove("shop")
    keys.make("shop", "ask", "read", tenant="acme")
    assert (await show(stand, keys.headers["shop"], "rotated"))["paused"] is False


async def test_of_two_supervisors_the_one_that_knows_the_key_makes_the_tick(
    stand: Stand, keys: KeyFile, tmp_path: Path
) -> None:
    """In a rolling update one has the list of before: it leaves the tick, within its time, to the other."""
    before = KeyFile(tmp_path / "before.json")
    before.make("olga", "admin")
    await add(stand, keys.headers["shop"], id="rolling", every=3600)
    old, new = Clerk(stand, before.open()), Clerk(stand, keys.open())
    tick = (await old.read("rolling")).state.next
    assert tick is not None
    held = await old.turn("rolling", tick)
    assert held.state.task_id is None
    due = await stand.parts.schedules.store.due(
        tick + timedelta(seconds=3), lease_ms=1, limit=10_000
    )
    assert "rolling" in due
    made = await new.turn("rolling", tick + timedelta(seconds=3))
    assert (made.state.last, made.state.problem, made.state.missed) == (tick, "", 0)
    assert made.state.task_id is not None


@pytest.mark.parametrize(
    "maker",
    [
        None,
        Caller(),
        Caller(tenant="acme", named=True),
        Caller(name="local", roles=frozenset({"ask"}), approves=frozenset({"*"})),
        Caller(name="operator:root@host", roles=frozenset({"ask"})),
        Caller(name="ops", roles=frozenset({"ask"}), is_handed=True),
    ],
)
async def test_who_showed_no_key_here_loses_none(
    keys: KeyFile, maker: Caller | None
) -> None:
    """The code of an agent, a program, this machine without keys, `--direct`, and a key of operations alone."""
    assert Makers(keys.open()).find_loss(maker, "ask") is None


async def test_without_keys_nothing_rests() -> None:
    assert Makers().find_loss(Caller(name="gone"), "ask") is None
