"""The operation of stream tokens, without a door: which streams it finds, and what it refuses.

What a token opens is tried over HTTP in tests/integration/test_stream_tokens.py.
"""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import NotPermitted
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.operations.pipelines import for_supervisor
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.stream_tokens import (
    StreamTokenServices,
    StreamToOpen,
    make_stream_token,
)
from tests.http_client import ask
from tests.integration.http_stand import http_stand

ANN = Caller(name="ann", roles=frozenset({"ask"}), user="ann")
BOB = Caller(name="bob", roles=frozenset({"ask"}), user="bob")
READER = Caller(name="reader", roles=frozenset({"read"}))
SHOP = Caller(name="shop", roles=frozenset({"ask"}), user="ann", tenant="shop")


class Signer:
    """Signs for the keys *known*."""

    def __init__(self, *known: str) -> None:
        self._known = known

    def make(self, path: str, key: str, after: str | None = None) -> tuple[str, int]:
        if key not in self._known:
            raise LookupError(key)
        return f"{key}-{path.rpartition('/')[2]}-{after}", 1_800_000_000


@pytest.fixture
async def found(
    servers: EmbeddedServers, redis: Redis
) -> AsyncIterator[tuple[StreamTokenServices, str]]:
    """Yield the services, and the stream of a request of ann."""
    async with http_stand(servers, redis) as stand:
        stand.service.gate.set()
        body = {"text": "hello", "user": "ann"}
        sent = await ask(stand.url, "POST", "/v1/requests", body)
        services = StreamTokenServices(
            demands_keys=True,
            signer=Signer("ann"),
            tasks=stand.parts.for_tasks,
            requests=stand.parts.for_requests,
            pipelines=for_supervisor(stand.parts),
        )
        yield services, f"/v1/requests/{sent.body['request_id']}/events"


async def test_a_token_is_signed_for_the_key_the_stream_and_the_event(
    found: tuple[StreamTokenServices, str],
) -> None:
    services, path = found
    caller = ANN.model_copy(update={"user": None})
    made = await make_stream_token(
        services, caller, StreamToOpen(path=path, last_event_id="2")
    )
    assert made.token == "ann-events-2"
    assert made.url == f"{path}?stream_token=ann-events-2"
    assert made.expires_at is not None
    assert made.expires_at.timestamp() == 1_800_000_000
    open_ = replace(services, demands_keys=False, signer=None)
    free = await make_stream_token(open_, caller, StreamToOpen(path=path))
    assert free.model_dump() == {"url": path, "token": None, "expires_at": None}


async def test_another_callers_stream_and_a_removed_key_are_refused(
    found: tuple[StreamTokenServices, str],
) -> None:
    services, path = found
    wanted = StreamToOpen(path=path)
    for caller in (BOB, SHOP):
        with pytest.raises(Refused) as refused:
            await make_stream_token(services, caller, wanted)
        assert refused.value.problem.status == 404
    with pytest.raises(NotPermitted, match="'ask'"):
        await make_stream_token(services, READER, wanted)
    unbound = ANN.model_copy(update={"user": None})
    for gone, status in (
        (replace(services, signer=Signer()), 401),
        (replace(services, signer=None), 404),
    ):
        with pytest.raises(Refused) as refused:
            await make_stream_token(gone, unbound, wanted)
        assert refused.value.problem.status == status
