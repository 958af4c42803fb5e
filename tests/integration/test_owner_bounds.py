"""At each door a key that keeps too much is refused before anything is kept, and others are served on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any, cast

import pytest
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.callers import Caller, keeper_of
from tasklore.contracts.errors import OwnerFull
from tasklore.contracts.messages import PersonRequest
from tasklore.memory import keys
from tasklore.memory.holdings.store import (
    OWNER_PART,
    OWNERS_PART,
    EndedTask,
    Holding,
    Holdings,
    NoRoom,
    Store,
)
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.admission.owner_bounds import SWEEP_S, OwnerBounds
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.webhooks.addresses import Addresses
from tests.http_client import Answer, ask
from tests.integration.http_stand import CARD, Stand, assigned, http_stand
from tests.servers import PATIENCE_S
from tests.unit.supervisor.reports import report_on

KIB = 1024
MOST: dict[Store, int] = {"queue": 320 * KIB, "store": 640 * KIB}
ECHO = {"agent_id": CARD.agent_id, "task": "echo", "wait_seconds": 0}
SHOP = Caller(name="shop", roles=frozenset({"ask"}))


@dataclass
class Keyed:
    """The API with the keys `shop`, `rival` and `boss`, an admin's."""

    stand: Stand
    holdings: Holdings
    redis: Redis
    secrets: dict[str, str]

    async def send(
        self, key: str, path: str, body: dict[str, Any], **more: str
    ) -> Answer:
        headers = {"Authorization": f"Bearer {self.secrets[key]}", **more}
        return await ask(self.stand.url, "POST", path, body, headers)

    async def kept(self) -> dict[str, int]:
        return dict(await self.holdings.kept(keeper_of(SHOP, None)))

    async def fill(self, store: Store) -> None:
        """Let `shop` keep all that it may of *store*, but for some bytes."""
        owner = keeper_of(SHOP, None)
        thing = (
            Holding("tasks", 1, "full") if store == "queue" else Holding("results", 1)
        )
        refused = await self.holdings.take(
            owner, [thing._replace(size=10**9)], may_refuse=True
        )
        assert refused is not None
        rest = refused.most - refused.kept - 1024
        taken = [thing._replace(size=rest)]
        assert await self.holdings.take(owner, taken, may_refuse=True) is None

    async def everything(self) -> tuple[set[bytes], int]:
        """Return every key of the store, and how many messages all streams hold."""
        streams = (subjects.TASKS, subjects.WAITING, subjects.LATER, subjects.TURNS)
        infos = [
            await ask_jetstream(self.stand.parts.client, f"STREAM.INFO.{one}")
            for one in streams
        ]
        count = sum(one["state"]["messages"] for one in infos)
        return {key async for key in self.redis.scan_iter()}, count


@asynccontextmanager
async def sweeping(bounds: OwnerBounds) -> AsyncIterator[OwnerBounds]:
    """Let *bounds* sweep within the block, and end it without an error."""
    running = asyncio.create_task(bounds.run())
    try:
        yield bounds
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


@pytest.fixture
async def keyed(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[Keyed]:
    file = tmp_path / "keys.json"
    secrets = {
        name: make_key(file, name, (role,), None)
        for name, role in (("shop", "ask"), ("rival", "ask"), ("boss", "admin"))
    }
    holdings = Holdings(redis, MOST, deadline_s=PATIENCE_S)
    webhooks = Addresses([ip_network("127.0.0.0/8")])
    async with (
        http_stand(servers, redis, keys=KeyRing(file), webhooks=webhooks) as stand,
        sweeping(OwnerBounds(holdings)) as bounds,
    ):
        stand.parts.dispatch.bounds = bounds
        stand.service.gate.set()
        yield Keyed(stand, holdings, redis, secrets)


def a_task(size: int = 10, **more: Any) -> dict[str, Any]:
    return {**ECHO, "parameters": {"word": "x" * size}, **more}


DOORS = [
    ("queue", "/v1/tasks", a_task(4000)),
    ("queue", "/v1/tasks", a_task(4000, after=28 * 86_400)),
    (
        "queue",
        "/v1/tasks",
        a_task(10, callback_url=f"http://127.0.0.1:1/{'x' * 1500}"),
    ),
    ("store", "/v1/requests", {"text": "hello " * 300}),
    (
        "store",
        "/v1/chat/completions",
        {
            "model": "tasklore",
            "messages": [{"role": "user", "content": "hello " * 300}],
        },
    ),
    (
        "store",
        "/v1/memory/ana/turns",
        {"turns": [{"turn_id": "a", "conversation_id": "c", "text": "hello " * 300}]},
    ),
]


@pytest.mark.parametrize(("store", "path", "body"), DOORS)
async def test_a_key_that_keeps_too_much_is_refused_and_nothing_is_kept(
    keyed: Keyed, store: Store, path: str, body: dict[str, Any]
) -> None:
    await keyed.fill(store)
    before = await keyed.everything()
    for more in ({}, {"Idempotency-Key": "mine"}):
        refused = await keyed.send("shop", path, body, **more)
        assert refused.status == 429, refused.body
        assert int(refused.headers["retry-after"]) >= 1
        detail = str(refused.body)
        assert "key 'shop' keeps" in detail
        setting = {"queue": "TASKS_MAX_BYTES", "store": "KEPT_MAX_BYTES"}[store]
        assert f"raise TASKLORE_{setting}" in detail
    assert await keyed.everything() == before
    for other in ("rival", "boss"):
        served = await keyed.send(other, path, body)
        assert served.status < 300, served.body


async def test_a_signal_of_a_key_that_keeps_too_much_is_refused(keyed: Keyed) -> None:
    sent = await keyed.send("shop", "/v1/tasks", a_task())
    await keyed.fill("store")
    path = f"/v1/tasks/{sent.body['task_id']}/signals/go"
    before = await keyed.everything()
    refused = await keyed.send("shop", path, {"value": "x" * 2000})
    assert refused.status == 429
    assert "of results" in refused.body["detail"]
    assert await keyed.everything() == before


async def test_a_task_counts_until_it_ends_and_its_address_with_it(
    keyed: Keyed,
) -> None:
    sent = await keyed.send("shop", "/v1/tasks", a_task(10))
    plain = (await keyed.kept())["tasks"]
    address = f"http://127.0.0.1:1/{'x' * 500}"
    await keyed.send("shop", "/v1/tasks", a_task(10, callback_url=address))
    assert (await keyed.kept())["tasks"] > 2 * plain + 500
    bounds = keyed.stand.parts.dispatch.bounds
    report = report_on(assigned(sent.body["task_id"]))
    await bounds.note_reports([(report, 700)])
    kept = await keyed.kept()
    assert kept["tasks"] > plain + 500
    assert kept["results"] >= 700


async def test_a_repeat_of_what_was_accepted_is_answered_however_full_it_is(
    keyed: Keyed,
) -> None:
    first = await keyed.send(
        "shop", "/v1/tasks", a_task(4000), **{"Idempotency-Key": "mine"}
    )
    await keyed.fill("queue")
    again = await keyed.send(
        "shop", "/v1/tasks", a_task(4000), **{"Idempotency-Key": "mine"}
    )
    assert (first.status, again.status) == (202, 202)
    assert again.body["task_id"] == first.body["task_id"]


async def test_tasks_that_ended_unnoticed_make_room_for_the_next(
    keyed: Keyed,
) -> None:
    ledger = Ledger(keyed.redis, deadline_s=PATIENCE_S)
    sent = [await keyed.send("shop", "/v1/tasks", a_task(40 * KIB)) for _ in range(4)]
    refused = await keyed.send("shop", "/v1/tasks", a_task(40 * KIB))
    assert [one.status for one in sent] == [202] * 4
    assert refused.status == 429
    for one in sent:
        await ledger.finish(one.body["task_id"], 1, "completed", b"{}")
    async with sweeping(OwnerBounds(keyed.holdings)) as bounds:
        keyed.stand.parts.dispatch.bounds = bounds
        served = await keyed.send("shop", "/v1/tasks", a_task(40 * KIB))
    assert served.status == 202


@dataclass
class CountingHoldings:
    """Refuses everything, and counts its sweeps, each of which waits for `gate`."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    sweeps: int = 0
    at_once: int = 0
    most_at_once: int = 0

    async def take(self, *_things: object, may_refuse: bool) -> NoRoom:
        return NoRoom("queue", 10, 10, {"tasks": 10})

    async def sweep(self) -> int:
        self.sweeps += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.gate.wait()
        self.at_once -= 1
        return 0


async def refuse_all(bounds: OwnerBounds, number: int) -> None:
    """Have each of so many owners refused."""
    task = Holding("tasks", 10, "t")
    refusals = await asyncio.gather(
        *(bounds.demand(None, f"user{one}", task) for one in range(number)),
        return_exceptions=True,
    )
    assert [type(one) for one in refusals] == [OwnerFull] * number


async def test_many_owners_that_are_refused_have_one_sweep_at_a_time_and_seldom() -> (
    None
):
    clock = [100.0]
    holdings = CountingHoldings()
    bounds = OwnerBounds(cast("Holdings", holdings), now=lambda: clock[0])
    async with sweeping(bounds):
        refused = asyncio.create_task(refuse_all(bounds, 50))
        while not holdings.at_once:  # noqa: ASYNC110 - a double is looked at
            await asyncio.sleep(0)
        holdings.gate.set()
        await refused
        await refuse_all(bounds, 50)
        assert (holdings.sweeps, holdings.most_at_once) == (1, 1)
        clock[0] += SWEEP_S
        await refuse_all(bounds, 50)
        assert (holdings.sweeps, holdings.most_at_once) == (2, 1)
        holdings.gate.clear()
        clock[0] += SWEEP_S
        running = asyncio.create_task(refuse_all(bounds, 1))
        while not holdings.at_once:  # noqa: ASYNC110 - a double is looked at
            await asyncio.sleep(0)
    # It ended in the middle of a sweep, with its owner; nobody waits for the rest of that.
    await running
    await refuse_all(bounds, 1)
    assert holdings.sweeps == 3


async def test_a_repeat_of_a_request_that_has_ended_is_sent_and_counted_no_more(
    keyed: Keyed,
) -> None:
    dispatch = keyed.stand.parts.dispatch
    task = assigned("ends").model_copy(update={"caller": SHOP})
    await dispatch.assign(task, room="refusable")
    ledger = Ledger(keyed.redis, deadline_s=PATIENCE_S)
    await ledger.finish("ends", 1, "completed", b"{}")
    await keyed.holdings.end_tasks([EndedTask("ends", 700)])
    before = await keyed.kept()
    await dispatch.assign(task, room="refusable")
    assert await keyed.kept() == before
    await keyed.fill("queue")
    await dispatch.assign(task, room="refusable")
    new = assigned("new", "x" * 4000).model_copy(update={"caller": SHOP})
    with pytest.raises(OwnerFull):
        await dispatch.assign(new, room="refusable")


async def test_what_follows_of_accepted_work_is_never_refused(keyed: Keyed) -> None:
    await keyed.fill("queue")
    task = assigned("follows", "x" * 4000).model_copy(update={"caller": SHOP})
    before = (await keyed.kept())["tasks"]
    await keyed.stand.parts.dispatch.assign(task)
    assert (await keyed.kept())["tasks"] > before + 4000


async def test_a_user_of_programs_at_nats_is_an_owner_of_their_own(
    keyed: Keyed,
) -> None:
    bounds = keyed.stand.parts.dispatch.bounds
    asked = PersonRequest(text="hello " * 3000, user_id="ana")
    for _ in range(10):
        await bounds.demand_words(asked)
    with pytest.raises(OwnerFull, match=r"user 'ana' keeps .* raise TASKLORE_KEPT_MAX"):
        await bounds.demand_words(asked)
    short = asked.model_copy(update={"user_id": "bo", "text": "hello"})
    await bounds.demand_words(short)
    for _ in range(10):
        await bounds.demand_words(asked.model_copy(update={"user_id": None}))


async def test_users_that_programs_at_nats_name_with_a_tenant_share_no_owner(
    keyed: Keyed,
) -> None:
    bounds = keyed.stand.parts.dispatch.bounds
    asked = PersonRequest(text="hello " * 3000, user_id="ana", tenant="acme")
    for _ in range(10):
        await bounds.demand_words(asked)
    with pytest.raises(OwnerFull, match="user 'ana' of tenant 'acme' keeps"):
        await bounds.demand_words(asked)
    others = ({"user_id": "bo"}, {"tenant": "rival"}, {"tenant": None})
    for other in (*others, {"user_id": None}):
        await bounds.demand_words(asked.model_copy(update={"text": "hello", **other}))
    caller = Caller(tenant="acme", named=True)
    named = (("ana", caller), ("bo", caller), ("ana", None), (None, caller))
    owners = {keeper_of(caller, user) for user, caller in named}
    assert len(owners - {""}) == len(named)
    assert keeper_of(Caller(), None) == keeper_of(None, None) == ""


async def test_a_store_that_is_away_refuses_nobody(keyed: Keyed) -> None:
    await keyed.fill("queue")
    away = Redis(host="127.0.0.1", port=1)
    try:
        bounds = OwnerBounds(Holdings(away, MOST, deadline_s=0.05))
        keyed.stand.parts.dispatch.bounds = bounds
        assert (await keyed.send("shop", "/v1/tasks", a_task(4000))).status == 202
    finally:
        await away.aclose()


async def test_a_task_far_ahead_counts_for_as_long_as_it_waits(
    keyed: Keyed,
) -> None:
    sent = await keyed.send("shop", "/v1/tasks", a_task(10, after=28 * 86_400))
    member = f"tasks {sent.body['task_id']}"
    until = await keyed.redis.zscore(keys.HOLDINGS.until, member)
    assert until is not None
    ends = datetime.fromtimestamp(until / 1000, UTC)
    assert ends > datetime.now(UTC) + timedelta(days=34)


async def test_half_a_thousand_at_once_from_one_key_stay_within_its_part(
    keyed: Keyed,
) -> None:
    answers = await asyncio.gather(
        *(keyed.send("shop", "/v1/tasks", a_task(1000)) for _ in range(200))
    )
    taken = [one for one in answers if one.status == 202]
    assert {one.status for one in answers} == {202, 429}
    assert (await keyed.kept())["tasks"] <= OWNER_PART * OWNERS_PART * MOST["queue"]
    ledger = Ledger(keyed.redis, deadline_s=PATIENCE_S)
    for one in taken:
        assert await ledger.read(one.body["task_id"]) is not None
