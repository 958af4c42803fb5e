"""Starting on a cluster that is not complete: declarations are repeated, and then the error says what is missing."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import nats.errors
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from tasklore.contracts import subjects
from tasklore.contracts.errors import Unreachable
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import JetStreamRefused, ask_jetstream
from tasklore.runtime.messaging.streams import (
    PullSource,
    StreamSizes,
    declare_consumer,
    declare_streams,
    find_consumer,
)
from tasklore.runtime.servers.embedded import NatsServer

READER = PullSource(
    stream=subjects.TASKS,
    durable="Somebody",
    filter_subject=subjects.tasks_of("Somebody"),
    ack_wait_s=30.0,
)

#: What the server says, with both of its codes.
NO_PEERS = (400, 10005, "no suitable peers for placement, peer offline")
NO_LEADER = (503, 10008, "JetStream system temporarily unavailable")
NOT_LEADER = (500, 10009, "JetStream cluster can not handle request")
NO_QUORUM = (503, 10023, "insufficient resources")
OFFLINE = (500, 10118, "stream is offline")
NO_ROOM = (500, 10047, "insufficient storage resources available")
SILENCE = None


@dataclass
class Grudging:
    """Stands before a real server and answers the first *times* requests that begin with *call* in its place."""

    client: Client
    call: str
    refusal: tuple[int, int, str] | None
    times: int
    refused: list[str] = field(default_factory=list)

    async def request(self, subject: str, payload: bytes, timeout: float) -> Msg:  # noqa: ASYNC109 - as the client spells it
        """Refuse with *refusal*, or with silence, as often as was said; then let the server answer."""
        if (
            not subject.startswith(f"$JS.API.{self.call}")
            or len(self.refused) >= self.times
        ):
            return await self.client.request(subject, payload, timeout=timeout)
        self.refused.append(subject)
        if self.refusal is None:
            raise nats.errors.TimeoutError
        code, err_code, description = self.refusal
        error = {"code": code, "err_code": err_code, "description": description}
        return Msg(self.client, data=json.dumps({"error": error}).encode())


def grudging(
    client: Client, call: str, refusal: tuple[int, int, str] | None, times: int = 10**9
) -> Any:
    return Grudging(client, call, refusal, times)


@pytest.fixture
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    await server.start()
    try:
        async with connected(server.url, "test-forming") as client:
            yield client
    finally:
        await server.stop()


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        ("STREAM.INFO.TASKS", NO_LEADER),
        ("STREAM.INFO.TASKS", SILENCE),
        ("STREAM.CREATE.LATER", NO_PEERS),
        ("STREAM.CREATE.LATER", NOT_LEADER),
        ("STREAM.CREATE.KV_agents", OFFLINE),
    ],
)
async def test_streams_are_declared_again_until_the_cluster_takes_them(
    client: Client, call: str, refusal: tuple[int, int, str] | None
) -> None:
    asked = grudging(client, call, refusal, times=2)
    await declare_streams(asked, StreamSizes())
    assert len(asked.refused) == 2
    names = (await ask_jetstream(client, "STREAM.NAMES"))["streams"]
    assert {"TASKS", "LATER", "KV_agents", "KV_workers"} <= set(names)


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        ("CONSUMER.INFO", NO_LEADER),
        ("CONSUMER.DURABLE.CREATE", NO_QUORUM),
        ("CONSUMER.DURABLE.CREATE", SILENCE),
    ],
)
async def test_a_consumer_is_declared_again_until_the_cluster_takes_it(
    client: Client, call: str, refusal: tuple[int, int, str] | None
) -> None:
    await declare_streams(client, StreamSizes())
    asked = grudging(client, call, refusal, times=2)
    made_at = await declare_consumer(asked, READER)
    assert len(asked.refused) == 2
    assert (await ask_jetstream(client, "CONSUMER.INFO.TASKS.Somebody"))[
        "created"
    ] == made_at


async def test_a_cluster_with_too_few_nodes_is_an_error_with_the_cure(
    client: Client,
) -> None:
    asked = grudging(client, "STREAM.CREATE", NO_PEERS)
    with pytest.raises(JetStreamRefused) as raised:
        await declare_streams(asked, StreamSizes(replicas=3), patience_s=1.5)
    told = str(raised.value)
    assert told.startswith(
        "STREAM.CREATE.LATER: no suitable peers for placement, peer offline (10005), still so after"
    )
    assert (
        "fewer nodes with room for it than TASKLORE_REPLICAS asks for, or some have not joined"
        in told
    )
    assert set(asked.refused) == {"$JS.API.STREAM.CREATE.LATER"}
    assert len(asked.refused) >= 2


async def test_all_declarations_of_one_start_share_its_patience(client: Client) -> None:
    asked = grudging(client, "STREAM", SILENCE)
    async with asyncio.timeout(60):
        with pytest.raises(
            Unreachable, match=r"did not answer stream request 'STREAM.INFO.LATER'"
        ):
            await declare_streams(asked, StreamSizes(), patience_s=0.3)


async def test_healing_while_at_work_asks_once(client: Client) -> None:
    """The pull loop has pauses of its own, and would count as stuck while somebody waits within it."""
    await declare_streams(client, StreamSizes())
    await ask_jetstream(client, "STREAM.DELETE.TASKS")
    asked = grudging(client, "STREAM.CREATE", NO_PEERS)
    with pytest.raises(JetStreamRefused, match="no suitable peers"):
        await find_consumer(asked, READER, StreamSizes(), may_create=True)
    assert asked.refused == ["$JS.API.STREAM.CREATE.TASKS"]
    await declare_streams(client, StreamSizes())
    for call in ("CONSUMER.INFO", "CONSUMER.DURABLE.CREATE"):
        asked = grudging(client, call, NO_LEADER)
        with pytest.raises(JetStreamRefused, match="temporarily unavailable"):
            await find_consumer(asked, READER, StreamSizes(), may_create=True)
        assert len(asked.refused) == 1


async def test_a_refusal_that_waiting_does_not_mend_is_an_error_at_once(
    client: Client,
) -> None:
    with pytest.raises(
        JetStreamRefused,
        match=r"\(10074\); this NATS server is not a cluster: set TASKLORE_REPLICAS=1",
    ):
        await declare_streams(client, StreamSizes(replicas=3))
    asked = grudging(client, "STREAM.CREATE", NO_ROOM)
    with pytest.raises(
        JetStreamRefused, match=r"insufficient storage resources available \(10047\)$"
    ):
        await declare_streams(asked, StreamSizes())
    assert len(asked.refused) == 1
