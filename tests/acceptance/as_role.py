"""Connections to guarded servers with the rights of a role, by plain libraries, and what they are refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nats
from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.runtime.access import ServerCredentials
from tasklore.runtime.messaging.refusals import ServerRefusal, read_refusal
from tests.acceptance.external_program import PATIENCE_S
from tests.acceptance.guarded import EXAMINER, Guarded


@asynccontextmanager
async def trying(
    pair: Guarded, name: str
) -> AsyncIterator[tuple[Client, list[ServerRefusal]]]:
    """Connect as *name* with the plain library, and collect what is refused."""
    refused: list[ServerRefusal] = []

    async def hear(error: Exception) -> None:
        refusal = read_refusal(str(error))
        if refusal is not None:
            refused.append(refusal)

    client = await nats.connect(
        pair.nats_url,
        error_cb=hear,
        skip_subject_validation=True,
        **_options(pair, name),
    )
    try:
        yield client, refused
    finally:
        async with asyncio.timeout(PATIENCE_S):
            await client.close()


async def spoken(client: Client) -> None:
    """Return once the server has answered all that was said: the ping of one flush overtakes what is yet unsent."""
    await client.flush(PATIENCE_S)
    await client.flush(PATIENCE_S)


def _options(pair: Guarded, name: str) -> dict[str, object]:
    access: ServerCredentials = pair.access(name)
    return access.nats_options()


def subjects_of(refused: list[ServerRefusal], kind: str) -> set[str]:
    return {refusal.subject for refusal in refused if refusal.kind == kind}


@asynccontextmanager
async def valkey_as(pair: Guarded, name: str | None) -> AsyncIterator[Redis]:
    """Connect as *name*, for None as whoever may ask what others may do."""
    username, password = (
        (name, pair.password(name)) if name is not None else (EXAMINER, EXAMINER)
    )
    async with Redis(
        port=pair.valkey.port,
        username=username,
        password=password,
        socket_timeout=PATIENCE_S,
    ) as client:
        yield client
