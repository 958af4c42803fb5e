"""Gathering facts over HTTP: health pages of processes, the monitoring of a nats-server; each within a deadline."""

import asyncio
import json
import ssl
from collections.abc import Sequence
from urllib.parse import urlsplit

from tasklore.commands.doctor.facts import (
    HealthPage,
    MonitorFacts,
    ProcessFacts,
    Unanswered,
    reason_of,
)
from tasklore.runtime.servers.endpoints import masked_url

#: Seconds for one page, from the connection to its last byte; a process that is well needs milliseconds.
PAGE_S = 2.0
#: Bytes of a page that are read; `/varz` has about ten thousand.
PAGE_BYTES = 1024 * 1024


async def fetch(url: str, within_s: float = PAGE_S) -> HealthPage | Unanswered:
    """Return the page at *url*, whatever its status, or why there is none after at most *within_s* seconds."""
    try:
        async with asyncio.timeout(within_s):
            return _parse_page(await _download(url))
    except TimeoutError:
        return Unanswered(f"no answer within {within_s:g} s")
    except OSError as error:
        return Unanswered(reason_of(error))
    except ValueError as error:
        return Unanswered(f"no HTTP page ({error})")


async def examine_monitor(url: str, source: str) -> MonitorFacts:
    """Ask the nats-server monitored at *url* for its settings and its health."""
    page, health = await asyncio.gather(
        fetch(f"{url.rstrip('/')}/varz"), fetch(f"{url.rstrip('/')}/healthz")
    )
    if isinstance(page, HealthPage) and (
        page.status != 200 or "server_id" not in page.body
    ):
        page = Unanswered(
            f"status {page.status}, and not what a nats-server says there"
        )
    return MonitorFacts(
        masked_url(url),
        source,
        page if isinstance(page, Unanswered) else page.body,
        _objection_in(health),
    )


def _objection_in(health: HealthPage | Unanswered) -> str | None:
    """Return what a nats-server that answers says against itself, None when it is well or cannot be asked."""
    if isinstance(health, Unanswered) or health.status == 200:
        return None
    error = health.body.get("error")
    return str(error)[:500] if error else None


async def examine_processes(
    places: Sequence[tuple[str, str, bool]],
) -> list[ProcessFacts]:
    """Ask each process of *places* (name, address, whether endpoints.json names it) whether it lives and is ready."""

    async def examine(name: str, url: str, is_named: bool) -> ProcessFacts:
        alive, ready = await asyncio.gather(
            fetch(f"{url}/healthz"), fetch(f"{url}/readyz")
        )
        return ProcessFacts(
            name=name, url=masked_url(url), is_named=is_named, alive=alive, ready=ready
        )

    return list(await asyncio.gather(*(examine(*place) for place in places)))


async def _download(url: str) -> bytes:
    parts = urlsplit(url)
    if parts.hostname is None:
        raise ValueError("the address names no host")
    secure = ssl.create_default_context() if parts.scheme == "https" else None
    port = parts.port or (443 if secure else 80)
    reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=secure)
    try:
        query = f"?{parts.query}" if parts.query else ""
        # Version 1.0: the answer comes in one piece and ends with the connection.
        head = f"GET {parts.path or '/'}{query} HTTP/1.0\r\nHost: {parts.netloc.rpartition('@')[2]}\r\n\r\n"
        writer.write(head.encode())
        answer = b""
        while len(answer) < PAGE_BYTES and (piece := await reader.read(64 * 1024)):
            answer += piece
        return answer
    finally:
        writer.close()


def _parse_page(answer: bytes) -> HealthPage:
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/"):
        raise ValueError("something else answers there")
    try:
        content = json.loads(body)
    except ValueError:
        content = {}
    return HealthPage(int(words[1]), content if isinstance(content, dict) else {})
