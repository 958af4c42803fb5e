"""Operations on agents on real servers: their cards, their live workers, and decisions that nobody makes."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import NotPermitted, Unreachable
from tasklore.contracts.messages import (
    AgentCard,
    AwayModel,
    ChatTurn,
    TaskCard,
    WorkerPresence,
)
from tasklore.contracts.observations import Observation, SensoryData
from tasklore.memory.conversations.observations import Observations
from tasklore.memory.ledger.task_index import TaskIndex
from tasklore.memory.ledger.task_rows import TaskRow
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.presences import key_of_presence
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.cards import CardIndex
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.live_workers import LiveWorkers
from tasklore.supervisor.operations.agents import (
    OPERATOR_OPERATIONS,
    AgentLooks,
    AgentServices,
    Sensed,
    decide,
    list_agents,
    list_loads,
    list_outages,
    show_agent,
)
from tasklore.supervisor.operations.refusals import Refused
from tests.integration.dead_letters import put_card
from tests.integration.http_stand import http_stand
from tests.integration.operations.doors import door_of

OPERATOR = Caller(name="ops", roles=frozenset({"operate", "read"}))
ASKER = Caller(name="asker", roles=frozenset({"ask"}))
NAMES = ("OldAgent", "SoloAgent", "TripAgent")


@pytest.fixture
async def client(own_servers: EmbeddedServers) -> AsyncIterator[Client]:
    async with connected(own_servers.nats_url, "agents") as opened:
        await declare_streams(opened, StreamSizes())
        for agent in reversed(NAMES):
            await put_card(opened, agent)
        bucket = await opened.jetstream().key_value(subjects.WORKERS_BUCKET)
        for number in (1, 2):
            presence = WorkerPresence(
                worker_id=f"w{number}",
                agent_id="TripAgent",
                digest="d",
                slots=4,
                started_at=datetime.now(UTC),
                http="http://10.0.0.7:8000",
            )
            body = presence.model_dump_json().encode()
            await bucket.put(key_of_presence(presence), body)
        yield opened


def looks_at(client: Client, redis: Redis) -> AgentLooks:
    """Return what looks at the agents of *client* with no word from a supervisor."""
    index = CardIndex()

    async def read_catalogue() -> Catalogue:
        await index.load(client)
        return index.catalogue

    return AgentLooks(
        read_catalogue=read_catalogue, attendance=LiveWorkers(client), redis=redis
    )


async def test_agents_are_listed_with_their_live_workers_page_by_page(
    client: Client, redis: Redis
) -> None:
    services = looks_at(client, redis)
    whole = await list_agents(services, OPERATOR)
    assert [(one.agent_id, one.live_workers) for one in whole.agents] == [
        ("OldAgent", 0),
        ("SoloAgent", 0),
        ("TripAgent", 2),
    ]
    assert whole.after is None
    assert whole.agents[0].tasks[0].name == "share_trip"
    first = await list_agents(services, OPERATOR, limit=2)
    assert (len(first.agents), first.after) == (2, "SoloAgent")
    rest = await list_agents(services, OPERATOR, limit=2, after=first.after)
    assert ([one.agent_id for one in rest.agents], rest.after) == (["TripAgent"], None)


async def test_an_agent_is_shown_and_its_machines_to_an_operator_alone(
    client: Client, redis: Redis
) -> None:
    services = looks_at(client, redis)
    shown = await show_agent(services, OPERATOR, "TripAgent")
    assert [(one.worker_id, one.slots) for one in shown.workers] == [
        ("w1", 4),
        ("w2", 4),
    ]
    assert {one.http for one in shown.workers} == {"http://10.0.0.7:8000"}
    for found in (
        await show_agent(services, ASKER, "TripAgent"),
        (await list_agents(services, ASKER)).agents[-1],
    ):
        assert (found.live_workers, found.workers) == (2, ())
    with pytest.raises(Refused, match=r"no agent 'TripAgen'.*TripAgent") as refused:
        await show_agent(services, ASKER, "TripAgen")
    assert refused.value.problem.status == 404


async def test_models_that_do_not_answer_are_told_with_the_workers_that_find_so(
    client: Client, redis: Redis
) -> None:
    """The words of a provider are for keys of everybody: they may be about the request of another user."""
    services = looks_at(client, redis)
    none = await list_outages(services, ASKER)
    assert (none.outages, none.is_known) == ((), True)
    bucket = await client.jetstream().key_value(subjects.WORKERS_BUCKET)
    now = datetime.now(UTC)
    for ago_s, (agent, worker) in enumerate(
        (("TripAgent", "w1"), ("OldAgent", "w1"), ("TripAgent", "w2"))
    ):
        since = now - timedelta(seconds=ago_s)
        said = f"503, {ago_s} s ago"
        presence = WorkerPresence(
            worker_id=worker,
            agent_id=agent,
            digest="d",
            slots=4,
            started_at=now,
            away=(AwayModel(model="gpt-6", since=since, said=said),),
        )
        body = presence.model_dump_json().encode()
        await bucket.put(key_of_presence(presence), body)
    services = looks_at(client, redis)
    [told] = (await list_outages(services, ASKER)).outages
    assert (told.model, told.workers, told.agents, told.said) == (
        "gpt-6",
        2,
        ("OldAgent", "TripAgent"),
        "503, 0 s ago",
    )
    assert told.since == now - timedelta(seconds=2)
    ana = ASKER.model_copy(update={"user": "ana"})
    [bare] = (await list_outages(services, ana)).outages
    assert (bare.workers, bare.said) == (2, "")
    await ask_jetstream(
        client, f"STREAM.DELETE.{subjects.bucket_stream(subjects.WORKERS_BUCKET)}"
    )
    assert not (await list_outages(looks_at(client, redis), ASKER)).is_known


async def test_cards_are_shown_while_nobody_knows_who_is_alive(
    client: Client, redis: Redis
) -> None:
    """A bucket of cards that is away is said, and no agent is left out in silence."""
    services = looks_at(client, redis)
    for bucket in (subjects.WORKERS_BUCKET, subjects.AGENTS_BUCKET):
        found = await list_agents(services, OPERATOR)
        known = None if bucket == subjects.AGENTS_BUCKET else 2
        assert found.agents[-1].live_workers == known
        await ask_jetstream(client, f"STREAM.DELETE.{subjects.bucket_stream(bucket)}")
        services = looks_at(client, redis)
    with pytest.raises(Unreachable):
        await list_agents(services, OPERATOR)


def run(number: int, state: str = "completed", **values: Any) -> TaskRow:
    """Return a run of TripAgent that took *number* ms and ended a moment ago."""
    now_ms = time.time_ns() // 1_000_000
    return TaskRow(
        **{
            "task_id": f"{state}-{number}",
            "agent_id": "TripAgent",
            "task": "share_trip",
            "created_ms": now_ms - 60_000 - number,
            "ended_ms": now_ms,
            "run_ms": number,
            "state": state,
            **values,
        }
    )


async def test_a_load_has_open_tasks_times_and_code(
    client: Client, redis: Redis
) -> None:
    """Recalled answers and runs that ended long ago have no time that counts; a key of a tenant counts its own."""
    long_ago = time.time_ns() // 1_000_000 - 2 * 86_400_000
    opened = run(9, "accepted", ended_ms=None, run_ms=None)
    await TaskIndex(redis).write(
        [
            *(run(number) for number in range(1, 101)),
            run(4_000, memory="hit"),
            run(5_000, ended_ms=long_ago, created_ms=long_ago),
            run(6_000, "failed", tenant="acme", error="Boom"),
            opened,
        ]
    )
    services = looks_at(client, redis)
    page = await list_loads(services, OPERATOR)
    idle, _, busy = page.agents
    assert [one.agent_id for one in page.agents] == list(NAMES)
    assert (idle.slots, idle.code, idle.open, idle.p50_ms) == (0, (), 0, None)
    assert (busy.slots, busy.open, busy.oldest_ms) == (8, 1, opened.created_ms)
    assert (busy.ended, busy.failed, busy.p50_ms, busy.p95_ms) == (102, 1, 50, 95)
    [code] = busy.code
    assert (code.version, code.digest, code.workers, code.is_on_card) == (
        1,
        "d",
        2,
        (await show_agent(services, OPERATOR, "TripAgent")).digest == "d",
    )
    bound = Caller(name="of-acme", roles=frozenset({"ask"}), tenant="acme")
    [own] = (await list_loads(services, bound, after="SoloAgent")).agents
    assert (own.ended, own.failed, own.open, own.p50_ms) == (1, 1, 0, None)
    one = await list_loads(services, OPERATOR, agent="TripAgent")
    assert ([each.open for each in one.agents], one.after) == ([1], None)
    first = await list_loads(services, OPERATOR, limit=2)
    assert (len(first.agents), first.after) == (2, "SoloAgent")


async def test_a_load_has_the_tasks_that_ended_behind_thousands_of_open_ones(
    client: Client, redis: Redis
) -> None:
    now_ms = time.time_ns() // 1_000_000
    before = [run(one, created_ms=now_ms - 60_000) for one in range(1, 41)]
    opened = [
        run(one, "accepted", ended_ms=None, run_ms=None, created_ms=now_ms)
        for one in range(1_000, 3_500)
    ]
    await TaskIndex(redis).write([*before, *opened])
    services = looks_at(client, redis)
    (load,) = (await list_loads(services, OPERATOR, agent="TripAgent")).agents
    assert (load.open, load.ended) == (2_500, 40)


async def test_a_load_costs_the_same_however_many_tasks_there_are(
    client: Client, redis: Redis
) -> None:
    """A few commands for the tasks that ended, and one glance for each open one that is looked at."""
    index = TaskIndex(redis)
    services = looks_at(client, redis)

    async def asked(number: int) -> int:
        await index.write([run(one) for one in range(1, number + 1)])
        await list_loads(services, OPERATOR, agent="TripAgent")
        await redis.config_resetstat()
        (load,) = (await list_loads(services, OPERATOR, agent="TripAgent")).agents
        assert load.ended == min(number, 200)
        found = await redis.info("commandstats")
        return sum(int(one["calls"]) for one in found.values())

    costs = [await asked(number) for number in (300, 3_000)]
    assert max(costs) < 40
    assert costs[0] == costs[1]


async def test_agents_are_for_keys_that_ask_or_read(
    client: Client, own_servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> None:
    approver = Caller(name="approver", roles=frozenset({"approve"}))
    for operation in OPERATOR_OPERATIONS:
        with pytest.raises(NotPermitted, match="'ask' or 'read'"):
            await operation(looks_at(client, redis), approver)
    async with door_of(
        own_servers,
        redis,
        tmp_path,
        looks_at(client, redis),
        OPERATOR_OPERATIONS,
        asker=("ask",),
    ) as desks:
        # The stand has one agent of its own, and its worker is not alive.
        page = (await desks["asker"].ask("GET", "/v1/agents?limit=1")).json()
        assert [one["live_workers"] for one in page["agents"]] == [0]
        assert page["agents"][0]["workers"] == []
        assert (
            await desks["asker"].ask("GET", "/v1/agents?limit=0")
        ).status_code == 422


DECIDER = AgentCard(
    agent_id="DeciderAgent", tasks=(TaskCard(name="decide", parameters={}),), digest="d"
)
SENSED = Sensed(
    sensory_data=SensoryData.model_validate({"position": {"x": 0, "y": 0, "z": 0}}),
    wait_seconds=1,
)


async def test_a_decision_that_nobody_makes_is_late_and_one_of_strangers_is_refused(
    own_servers: EmbeddedServers, redis: Redis
) -> None:
    known = Catalogue([DECIDER, AgentCard(agent_id="Mute", tasks=(), digest="d")])

    async def read_catalogue() -> Catalogue:
        return known

    async with http_stand(own_servers, redis) as stand:
        services = AgentServices(
            read_catalogue=read_catalogue,
            attendance=LiveWorkers(stand.parts.client),
            redis=redis,
            tasks=stand.parts.for_tasks,
        )
        with pytest.raises(Refused, match="did not decide in time") as late:
            await decide(services, ASKER, "DeciderAgent", SENSED)
        assert (late.value.problem.status, late.value.headers) == (
            503,
            {"Retry-After": "1"},
        )
        with pytest.raises(Refused, match="'Mute' has no task 'decide'"):
            await decide(services, ASKER, "Mute", SENSED)
        bound = ASKER.model_copy(update={"user": "ann"})
        other = SENSED.model_copy(update={"user": "bob"})
        with pytest.raises(NotPermitted, match="another user"):
            await decide(services, bound, "DeciderAgent", other)
        turn = ChatTurn(
            turn_id="t",
            conversation_id="talk",
            user_id="bob",
            speaker="person",
            text="hello",
            at=datetime.now(UTC),
        )
        await stand.parts.conversations.append(
            "talk", turn.model_dump_json().encode(), "t", user_id="bob"
        )
        theirs = SENSED.model_copy(update={"conversation": "talk"})
        with pytest.raises(Refused, match="not of the user that the key is for"):
            await decide(services, bound, "DeciderAgent", theirs)


async def test_a_world_of_another_tenant_or_user_is_not_gone_on_with(
    own_servers: EmbeddedServers, redis: Redis
) -> None:
    """Words of agents and what they sense name nobody: whoever began the conversation has it."""
    known = Catalogue([DECIDER])

    async def read_catalogue() -> Catalogue:
        return known

    acme = Caller(name="acme", roles=frozenset({"ask"}), tenant="acme")
    rival = Caller(name="rival", roles=frozenset({"ask"}), tenant="rival")
    ann = ASKER.model_copy(update={"user": "ann"})
    named = ASKER.model_copy(update={"tenant": "acme", "named": True})
    async with http_stand(own_servers, redis) as stand:
        services = AgentServices(
            read_catalogue=read_catalogue,
            attendance=LiveWorkers(stand.parts.client),
            redis=redis,
            tasks=stand.parts.for_tasks,
        )
        conversations = stand.parts.conversations
        observed = Observations(redis)

        async def ask(caller: Caller, **more: object) -> str:
            """Return the kind of the refusal; nobody decides here, so that "late" is to be let in."""
            sensed = SENSED.model_copy(update={"wait_seconds": 0.1, **more})
            with pytest.raises(Refused) as refused:
                await decide(services, caller, "DeciderAgent", sensed)
            return refused.value.problem.type.rpartition(":")[2]

        async def see(conversation_id: str) -> None:
            await observed.note(conversation_id, "t1", Observation(time=1.0))

        # Begun by a key of acme, by one of no tenant that names it, and by one of no tenant at all.
        for place, first in (("hers", acme), ("theirs", named), ("free", ASKER)):
            assert await ask(first, conversation=place) == "late"
            await see(place)
        for place, others in (
            ("hers", {"acme": "late", "rival": "other-conversation"}),
            ("theirs", {"acme": "late", "rival": "other-conversation"}),
            ("free", {"acme": "other-conversation", "rival": "other-conversation"}),
        ):
            for caller in (acme, rival):
                found = await ask(caller, conversation=place)
                assert (place, caller.name, found) == (place, caller.name, others[caller.name])  # fmt: skip
            assert await ask(ann, conversation=place) == "other-conversation"
            assert await ask(ASKER, conversation=place) == "late"
        told = {"conversation": "rivals", "conversations": {"Ana": "hers"}}
        assert await ask(rival, **told) == "other-conversation"
        assert await conversations.tenant_of("free") is None
        # Without a name each tenant has a world of its own.
        for caller in (acme, rival, ASKER):
            assert await ask(caller, name="Ana") == "late"
        others = await redis.keys("tl:inbox:{DeciderAgent.Ana*:state")
        assert len(others) == 2


async def test_a_forgotten_conversation_is_no_tenants_any_more(
    own_servers: EmbeddedServers, redis: Redis
) -> None:
    async with http_stand(own_servers, redis) as stand:
        conversations = stand.parts.conversations
        assert await conversations.claim("c", "acme") == "acme"
        assert await conversations.claim("c", "rival") == "acme"
        assert not await conversations.is_begun("c")
        assert await conversations.forget("c")
        assert await conversations.claim("c", "rival") == "rival"
