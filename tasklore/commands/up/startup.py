"""The wait of a starting process for servers and for the bootstrap: it is alive, and not ready, and says so.

Servers may be away, or not know its credentials yet. A server that knows it and refuses a right is not waited for:
nothing but another configuration mends that.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import structlog

from tasklore.commands.endpoints import demand_listener
from tasklore.contracts import subjects
from tasklore.contracts.errors import Forbidden, UnknownCredentials, Unreachable
from tasklore.runtime.health import HealthServer, Pulse
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import JetStreamRefused, ask_or_none
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.endpoints import masked_url
from tasklore.runtime.settings import Settings

log = structlog.get_logger(__name__)

#: Seconds before the second look, and at most between two; drawn at random from the upper half of it, so that many
#: processes that start together do not come back together.
_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 5.0
#: Seconds between two lines about one server.
_SAY_EVERY_S = 30.0


async def wait_for_servers(settings: Settings) -> None:
    """Return once NATS and Redis answer and know us, and the bootstrap has run; see `departure` for signals.

    Until then `/healthz` answers 200, and `/readyz` 503 with the missing one.

    Raises:
        Forbidden: a server knows us and does not let us: no wait mends that.
        ConfigurationError: an address or a file of ours is wrong.
    """

    async def check_nats(url: str) -> None:
        await demand_listener(url)
        async with connected(url, "tasklore-start"):
            pass

    async def check_redis(url: str) -> None:
        async with valkey.connect(
            url, name="tasklore-start", max_connections=1
        ) as client:
            await client.check()

    async def check_made(url: str) -> None:
        async with connected(url, "tasklore-start") as client:
            bucket = subjects.bucket_stream(subjects.AGENTS_BUCKET)
            try:
                made = await ask_or_none(client, f"STREAM.INFO.{bucket}")
            except JetStreamRefused as error:
                raise Unreachable(str(error)) from error
            if made is None:
                raise Unreachable(f"there is no {bucket} yet; run `tasklore bootstrap`")

    servers = (
        ("NATS", settings.nats_url, check_nats),
        ("Redis or Valkey", settings.redis_url, check_redis),
        ("what `tasklore bootstrap` makes", settings.nats_url, check_made),
    )
    async with AsyncExitStack() as stack:
        away: list[str] = []
        for name, url, check in servers:
            is_ours_to_make = check is check_made and settings.provision == "auto"
            if url is not None and not is_ours_to_make:
                await _wait_for(
                    f"{name} at {masked_url(url)}",
                    url=url,
                    check=check,
                    away=away,
                    stack=stack,
                    settings=settings,
                )


async def _wait_for(
    server: str,
    url: str,
    check: Callable[[str], Awaitable[None]],
    away: list[str],
    stack: AsyncExitStack,
    settings: Settings,
) -> None:
    """Return when *check* of *url* succeeds; *away* holds what `/readyz` shows, which is served from the first miss."""
    began = time.monotonic()
    said_at = float("-inf")
    pause_s = _PAUSE_S
    while True:
        try:
            await check(url)
        except Unreachable as error:
            is_refusal = isinstance(error, Forbidden)
            if is_refusal and not isinstance(error, UnknownCredentials):
                raise
            if not away:
                _serve_probes(away, stack, settings)
            away[:] = [server]
            waited_s = time.monotonic() - began
            if time.monotonic() - said_at >= _SAY_EVERY_S:
                said_at = time.monotonic()
                log.warning(
                    "waiting_for_server",
                    server=server,
                    waited_s=round(waited_s, 1),
                    error=str(error),
                )
            await asyncio.sleep(random.uniform(pause_s / 2, pause_s))  # noqa: S311  # no secret hangs on it
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        else:
            if said_at > 0:
                log.info(
                    "server_answers",
                    server=server,
                    waited_s=round(time.monotonic() - began, 1),
                )
            return


def _serve_probes(away: list[str], stack: AsyncExitStack, settings: Settings) -> None:
    pulse = Pulse()
    server = HealthServer(
        settings.http_host,
        settings.http_port,
        alive={"event_loop": pulse.check},
        ready={"servers": lambda: (False, f"waiting for {', '.join(away)}")},
        metrics=lambda: b"",
    )
    server.start()
    stack.callback(server.stop)
    pulse.start()
    stack.callback(pulse.stop)
