"""Agents are retired on real servers: their card is gone, unless workers of them are alive."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import NotPermitted
from tasklore.contracts.messages import WorkerPresence
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.presences import key_of_presence
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.cards import read_cards
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.retirement import (
    OPERATIONS,
    AgentToRetire,
    RetirementServices,
    retire_agent,
)
from tests.integration.dead_letters import put_card
from tests.integration.operations.doors import door_of

OPERATOR = Caller(name="ops", roles=frozenset({"operate"}))


@pytest.fixture
async def client(own_servers: EmbeddedServers) -> AsyncIterator[Client]:
    async with connected(own_servers.nats_url, "retiring") as opened:
        await declare_streams(opened, StreamSizes())
        for agent in ("OldAgent", "TripAgent"):
            await put_card(opened, agent)
        yield opened


async def names(client: Client) -> list[str]:
    return [card.agent_id for card in await read_cards(client)]


async def test_an_agent_is_taken_out_of_the_catalogue(client: Client) -> None:
    services = RetirementServices(line=client)
    done = await retire_agent(services, OPERATOR, "OldAgent", AgentToRetire())
    assert (done.agent_id, done.workers) == ("OldAgent", ())
    assert await names(client) == ["TripAgent"]
    with pytest.raises(Refused, match="known are TripAgent") as refused:
        await retire_agent(services, OPERATOR, "OldAgent", AgentToRetire())
    assert refused.value.problem.status == 404


async def test_an_agent_with_live_workers_stays_unless_it_is_forced(
    client: Client,
) -> None:
    presence = WorkerPresence(
        worker_id="w1",
        agent_id="OldAgent",
        digest="d",
        slots=1,
        started_at=datetime.now(UTC),
    )
    bucket = await client.jetstream().key_value(subjects.WORKERS_BUCKET)
    await bucket.put(key_of_presence(presence), presence.model_dump_json().encode())
    services = RetirementServices(line=client)
    with pytest.raises(Refused, match=r"1 live worker.*w1.*`force`") as refused:
        await retire_agent(services, OPERATOR, "OldAgent", AgentToRetire())
    assert refused.value.problem.status == 409
    assert "OldAgent" in await names(client)
    forced = AgentToRetire(force=True)
    assert (await retire_agent(services, OPERATOR, "OldAgent", forced)).workers == (
        "w1",
    )
    assert await names(client) == ["TripAgent"]


async def test_only_an_operator_of_all_retires_an_agent(
    client: Client, own_servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> None:
    services = RetirementServices(line=client)
    bound = OPERATOR.model_copy(update={"user": "ann"})
    with pytest.raises(NotPermitted):
        await retire_agent(services, bound, "OldAgent", AgentToRetire())
    async with door_of(
        own_servers,
        redis,
        tmp_path,
        services,
        OPERATIONS,
        ops=("operate",),
        guest=("ask", "read", "approve"),
    ) as desks:
        path = "/v1/agents/OldAgent/retire"
        assert (await desks["guest"].ask("POST", path, json={})).status_code == 403
        done = await desks["ops"].ask("POST", path, json={})
        assert done.json() == {"agent_id": "OldAgent", "workers": []}
    assert await names(client) == ["TripAgent"]
