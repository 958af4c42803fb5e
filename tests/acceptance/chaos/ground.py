"""The ground of a storm: strict servers, workers on seats that are never empty for long, and a wire that can be cut.

Every deed is written into the history, so that the checker can tell what it explains.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from redis.asyncio import Redis

from tasklore.memory.ledger.layouts import Layout
from tasklore.runtime.servers.child import ServerProcess
from tasklore.runtime.servers.embedded import Durability, EmbeddedServers
from tests.acceptance.chaos.agent import HISTORY_VARIABLE, agent
from tests.acceptance.chaos.forge import ROLE_VARIABLE
from tests.acceptance.chaos.forged import Forged
from tests.acceptance.chaos.history import History
from tests.acceptance.chaos.proxy import Cut, Proxy
from tests.acceptance.chaos.smith import Smith
from tests.acceptance.chaos.submitter import Submitter, submitter
from tests.acceptance.system import QUICK
from tests.ledger_layouts import set_layout

ServerName = Literal["nats", "valkey"]

#: Seconds until a seat whose worker fell by itself is filled again: it found no server, and finds one no sooner.
_AFTER_FALL_S = 0.2
#: Workers of one seat that may fall one after another before any takes tasks: what fails more often cannot be mended.
_MOST_FALLS = 10


@dataclass(eq=False)
class Seat:
    """A place for one worker at a time, with wires of its own to both servers."""

    wires: Mapping[ServerName, Proxy]
    worker: Forged
    #: Somebody does something to this worker that takes time; others leave it alone.
    is_taken: bool = False

    @property
    def is_free(self) -> bool:
        """Whether its worker takes tasks and nothing is being done to it."""
        return not self.is_taken and self.worker.ready.done() and self.worker.is_alive


class Ground:
    """What stands while it storms; see `stand`."""

    def __init__(
        self,
        servers: EmbeddedServers,
        history: History,
        program: Submitter,
        smith: Smith,
        environment: dict[str, str],
    ) -> None:
        self.servers = servers
        self.history = history
        self.program = program
        self.agent_id = agent.agent_id
        self.seats: list[Seat] = []
        #: Where supervisors sit, who take no tasks.
        self.supervisors: list[Seat] = []
        self._smith = smith
        self._environment = environment
        self._closing = asyncio.Event()

    async def add_seat(
        self,
        stack: AsyncExitStack,
        keepers: asyncio.TaskGroup,
        deed: str = "",
        role: str = "worker",
    ) -> Seat:
        """Open a seat, whose process of *role* commits *deed* (see `sabotage`), and return once that takes work."""
        wires: dict[ServerName, Proxy] = {
            "nats": await stack.enter_async_context(Proxy(self.servers.nats.port)),
            "valkey": await stack.enter_async_context(Proxy(self.servers.valkey.port)),
        }
        seat = Seat(wires, await self._fork(wires, deed, role))
        (self.seats if role == "worker" else self.supervisors).append(seat)
        keepers.create_task(self._keep(seat, deed, role))
        stack.callback(self._empty, seat)
        await seat.worker.begun()
        return seat

    async def _fork(
        self, wires: Mapping[ServerName, Proxy], deed: str, role: str
    ) -> Forged:
        addresses = {
            ROLE_VARIABLE: role,
            "TASKLORE_NATS_URL": f"nats://127.0.0.1:{wires['nats'].port}",
            "TASKLORE_REDIS_URL": f"redis://127.0.0.1:{wires['valkey'].port}",
        }
        return await self._smith.fork(
            {**self._environment, **addresses}, self.history, deed
        )

    async def _keep(self, seat: Seat, deed: str, role: str) -> None:
        """Replace a worker that died, at once."""
        falls = 0
        while True:
            status = await asyncio.shield(seat.worker.died)
            if self._closing.is_set():
                return
            falls = 0 if seat.worker.ready.done() or status < 0 else falls + 1
            if falls > _MOST_FALLS:
                raise RuntimeError(
                    f"{falls} workers in a row could not start; see {self._smith.folder}"
                )
            if falls:
                await asyncio.sleep(_AFTER_FALL_S)
            seat.worker = await self._fork(seat.wires, deed, role)
            if self._closing.is_set():
                seat.worker.dismiss()

    def _empty(self, seat: Seat) -> None:
        self._closing.set()
        seat.worker.dismiss()

    async def leave(self) -> None:
        """Ask every process to leave and return when all are gone: what they still had to say is said."""
        self._closing.set()
        workers = [seat.worker for seat in (*self.seats, *self.supervisors)]
        for worker in workers:
            worker.terminate()
        for worker in workers:
            await worker.gone()

    async def kill_server(self, name: ServerName) -> None:
        """Kill a server with SIGKILL and start it again on its port and data; returns when it answers."""
        server: ServerProcess = (
            self.servers.nats if name == "nats" else self.servers.valkey
        )
        self.history.note("outage", pid=server.pid, about=name)
        server.kill()
        await server.start()
        self.history.note("restored", pid=server.pid, about=name)

    async def stop_worker(self, seat: Seat, seconds: float) -> None:
        """Freeze the worker on *seat* for *seconds*."""
        seat.is_taken = True
        worker = seat.worker
        worker.stop()
        await asyncio.sleep(seconds)
        worker.resume()
        seat.is_taken = False

    async def cut_off(
        self, seat: Seat, server: ServerName, manner: Cut, seconds: float
    ) -> None:
        """Cut the wire between *seat* and *server* for *seconds*."""
        seat.is_taken = True
        pid = seat.worker.pid
        self.history.note("cut", pid=pid, about=server)
        seat.wires[server].cut(manner)
        await asyncio.sleep(seconds)
        seat.wires[server].heal()
        self.history.note("healed", pid=pid, about=server)
        seat.is_taken = False

    async def delete_consumer(self, stream: str, durable: str) -> None:
        """Delete a consumer under the feet of whoever reads it."""
        self.history.note("deleted", about=f"{stream}.{durable}")
        await self.program.wire.api(f"CONSUMER.DELETE.{stream}.{durable}")


@asynccontextmanager
async def stand(
    smith: Smith,
    folder: Path,
    *,
    seats: int,
    supervisors: int = 0,
    durability: Durability = "strict",
    servers: EmbeddedServers | None = None,
    deed: str = "",
    layout: Layout = "1",
    **settings: object,
) -> AsyncIterator[Ground]:
    """Put up servers (or take *servers*), *seats* workers that take tasks, *supervisors* and a submitter for the block.

    *folder* takes the history and the data; *layout* is that of the ledger;
    *settings* are the workers', over `tests.acceptance.system.QUICK`.
    """
    environment = {
        **QUICK,
        **{f"TASKLORE_{name.upper()}": str(value) for name, value in settings.items()},
        HISTORY_VARIABLE: str(folder / "history"),
    }
    async with AsyncExitStack() as stack:
        if servers is None:
            servers = await stack.enter_async_context(
                EmbeddedServers(folder / "servers", durability)
            )
        async with Redis.from_url(servers.redis_url) as redis:
            await set_layout(redis, layout)
        history = stack.enter_context(History(folder / "history"))
        program = await stack.enter_async_context(
            submitter(servers.nats_url, agent.agent_id, history)
        )
        ground = Ground(servers, history, program, smith, environment)
        # Its end waits for every seat to be empty; a seat that cannot be filled ends the block.
        keepers = await stack.enter_async_context(asyncio.TaskGroup())
        for _ in range(seats):
            await ground.add_seat(stack, keepers, deed)
        for _ in range(supervisors):
            await ground.add_seat(stack, keepers, deed, "supervisor")
        yield ground
