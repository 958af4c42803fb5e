"""NATS away for a while: what waiting for it costs a worker and a supervisor, and how soon they are back."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import nats.errors
from nats.aio.client import Client

from tests.acceptance.chaos.healing_strikes import HEALS_S, heal_row, reported_after
from tests.acceptance.chaos.stage import STEADY, cpu_s, page, pid_of, stage
from tests.acceptance.chaos.table import Row
from tests.acceptance.external_program import PATIENCE_S, outside
from tests.acceptance.system import Served, System

#: Share of one core that a waiting process may use.
IDLE_SHARE = 0.05
#: How many times as much it may be on a machine that is slow: one that never waits uses most of a core on any.
_MOST_SLACK = 5.0
#: Requests, or attempts to connect, that it may make in a second.
REQUESTS_PER_S = 5.0
#: Seconds of an outage in which somebody listens and hangs up, to count who knocks; the rest is refused.
_COUNTED_S = 10.0


@dataclass
class Knocks:
    """How often somebody connected."""

    count: int = 0


async def worker_outage(away_s: float, slack: float = 1.0) -> list[Row]:
    """Take NATS away from a worker."""
    async with stage() as system:
        worker = await asyncio.to_thread(system.worker(STEADY).ready)
        rows = await _waits(
            f"worker, NATS away for {away_s:.0f} s", system, worker, away_s, slack
        )
        began = time.monotonic()
        async with outside(system.servers.nats_url) as program:
            return [
                *rows,
                heal_row(
                    f"NATS back after {away_s:.0f} s",
                    await reported_after(program, began, 1),
                    slack,
                ),
            ]


async def supervisor_outage(away_s: float, slack: float = 1.0) -> list[Row]:
    """Take NATS away from a supervisor."""
    async with stage() as system:
        supervisor = await asyncio.to_thread(system.supervisor().ready)
        rows = await _waits(
            f"supervisor, NATS away for {away_s:.0f} s",
            system,
            supervisor,
            away_s,
            slack,
        )
        began = time.monotonic()
        async with outside(system.servers.nats_url) as program:
            body = json.dumps({"text": "anything", "wait_ms": 1000}).encode()
            await program.eventually(lambda: _answers(program.client, body), PATIENCE_S)
        healed_s = time.monotonic() - began
    within_s = slack * HEALS_S
    asked = f"NATS back: a person is answered within {within_s:.0f} s"
    return [*rows, Row(asked, f"{healed_s:.2f} s", healed_s <= within_s)]


async def _waits(
    what: str, system: System, process: Served, away_s: float, slack: float
) -> list[Row]:
    """Kill NATS, watch *process* wait for *away_s* seconds, start NATS again; return what waiting cost."""
    pid = pid_of(process)
    system.servers.nats.kill()
    # What the loss itself costs, closing and logging, is no waiting.
    await asyncio.sleep(1.0)
    began = time.monotonic()
    used = cpu_s(pid)
    async with _hanging_up(system.servers.nats.port) as knocks:
        await asyncio.sleep(_COUNTED_S)
        counted_s = time.monotonic() - began
    rate = knocks.count / counted_s
    await asyncio.sleep(max(0.0, away_s - _COUNTED_S))
    share = (cpu_s(pid) - used) / (time.monotonic() - began)
    status, _ = await page(process, "/healthz")
    await system.servers.nats.start()
    return [
        idle_row(what, share, slack),
        Row(
            f"{what}: at most {REQUESTS_PER_S:.0f} attempts/s",
            f"{rate:.1f}/s",
            rate <= REQUESTS_PER_S,
        ),
        Row(f"{what}: alive all the same", f"/healthz {status}", status == 200),
    ]


def idle_row(what: str, share: float, slack: float) -> Row:
    """Return the row that says which *share* of a core waiting cost."""
    most = IDLE_SHARE * min(slack, _MOST_SLACK)
    return Row(f"{what}: under {most:.0%} of a core", f"{share:.1%}", share < most)


@asynccontextmanager
async def _hanging_up(port: int) -> AsyncIterator[Knocks]:
    """Listen in the place of a server, count who connects and hang up."""
    knocks = Knocks()

    async def hang_up(
        _reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        knocks.count += 1
        writer.close()

    listener = await asyncio.start_server(hang_up, "127.0.0.1", port)
    try:
        yield knocks
    finally:
        listener.close()
        await listener.wait_closed()


async def _answers(client: Client, body: bytes) -> bool:
    try:
        await client.request("requests.SupervisorAgent", body, timeout=1)
    except (nats.errors.Error, TimeoutError):
        return False
    return True
