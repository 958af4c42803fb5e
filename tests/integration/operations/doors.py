"""Operations behind the admission of the API, with a key a caller, without a socket."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from redis.asyncio import Redis

from tasklore.contracts.callers import Role
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.http.app import make_app
from tasklore.supervisor.http.mount import mount
from tasklore.supervisor.operations.table import Operations, Services
from tests.integration.http_stand import http_stand


class Desk:
    """A client of the operations with the key of one caller."""

    def __init__(self, client: httpx.AsyncClient, headers: dict[str, str]) -> None:
        self._client = client
        self._headers = headers

    async def ask(
        self, method: str, path: str, *, lines: bool = False, **request: Any
    ) -> httpx.Response:
        """Return the answer to one request, whose content is *lines* of JSON where that is said."""
        kind = {"Content-Type": "application/x-ndjson"} if lines else {}
        return await self._client.request(
            method, path, headers=self._headers | kind, **request
        )


@asynccontextmanager
async def door_of(
    servers: EmbeddedServers,
    redis: Redis,
    folder: Path,
    services: Services,
    operations: Operations[Services],
    parts: Mapping[str, Any] | None = None,
    **roles: tuple[Role, ...],
) -> AsyncIterator[dict[str, Desk]]:
    """Serve *operations* within the block; each of *roles* is the name of a key with its roles.

    Those that a supervisor serves by itself have its *parts* in place of the services.
    """
    file = folder / "keys.json"
    keys = {name: make_key(file, name, roles[name], None) for name in roles}
    async with http_stand(servers, redis, keys=KeyRing(file), **parts or {}) as stand:
        app = make_app(stand.parts)
        app.include_router(mount(services, operations))
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost"
        ) as client:
            yield {
                name: Desk(client, {"Authorization": f"Bearer {key}"})
                for name, key in keys.items()
            }
