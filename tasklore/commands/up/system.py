"""A whole system on one machine: its servers, a supervisor, operations and workers, each a process of its own."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tasklore.commands.up.roles import RoleProcess, end_of
from tasklore.contracts.errors import ConfigurationError, TaskloreError
from tasklore.runtime.servers.child import ServerProcess
from tasklore.runtime.servers.embedded import Durability, EmbeddedServers, NatsServer
from tasklore.runtime.servers.endpoints import NATS_VARIABLE, REDIS_VARIABLE, Endpoints

#: Seconds until a role that died is started again; doubled with every further death.
FIRST_PAUSE_S = 0.5
#: The longest such pause.
LONGEST_PAUSE_S = 30.0
#: Seconds that a role has to live for its death to count as the first one again.
SOUND_S = 60.0

#: The settings of the ports that are kept, by the names of `tasklore.commands.up.ports`.
_SUPERVISOR_PORTS = {"http": "TASKLORE_HTTP_PORT", "api": "TASKLORE_API_PORT"}
_OPERATIONS_PORTS = {"operations": "TASKLORE_OPERATIONS_PORT"}

#: Seconds between looks at whether an embedded server still lives.
_LOOK_S = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPlan:
    """What to start: agents by reference, how many worker processes serve them, and where it is kept.

    *data_dir* None is a temporary directory, removed at the end. With both addresses given no server is started.
    *ports* are those of `tasklore.commands.up.ports`; one that is not given is chosen at each start. *log* takes the
    stderr of the roles, None shares ours. *variables* are for the environment of every role. Operations are served
    where the API is, unless *serves_operations* is switched off.
    """

    agents: Sequence[str]
    workers: int = 1
    data_dir: Path | None = None
    durability: Durability = "standard"
    nats_url: str | None = None
    redis_url: str | None = None
    grace_s: float = 30.0
    ports: Mapping[str, int] = field(default_factory=dict)
    log: IO[bytes] | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    serves_operations: bool = True


class System:
    """A started system: `endpoints` names its addresses, `supervise` keeps it running."""

    def __init__(
        self,
        plan: SystemPlan,
        nats_url: str,
        redis_url: str,
        servers: Sequence[ServerProcess],
    ) -> None:
        self._nats_url = nats_url
        self._redis_url = redis_url
        self._servers = servers
        own = {
            **plan.variables,
            NATS_VARIABLE: nats_url,
            REDIS_VARIABLE: redis_url,
            "TASKLORE_LOG_LEVEL": os.environ.get("TASKLORE_LOG_LEVEL") or "warning",
        }
        self._supervisor = RoleProcess(
            "supervisor",
            ("supervisor",),
            {**own, **_serving_ports(plan.ports, _SUPERVISOR_PORTS)},
            log=plan.log,
            grace_s=plan.grace_s,
        )
        # A port that was chosen for one process cannot serve them all.
        beside = {**own, "TASKLORE_HTTP_PORT": "0"}
        self._operations = (
            RoleProcess(
                "operations",
                ("supervisor", "--operations"),
                {**beside, **_serving_ports(plan.ports, _OPERATIONS_PORTS)},
                log=plan.log,
                grace_s=plan.grace_s,
            )
            if plan.serves_operations
            else None
        )
        self._workers = [
            RoleProcess(
                f"worker-{number}",
                ("worker", *plan.agents),
                beside,
                log=plan.log,
                grace_s=plan.grace_s,
            )
            for number in range(1, plan.workers + 1)
        ]

    @property
    def endpoints(self) -> Endpoints:
        """The addresses now; those of HTTP change with a restart."""
        workers = {worker.name: worker.address for worker in self._workers}
        monitor = next(
            (
                server.monitor_url
                for server in self._servers
                if isinstance(server, NatsServer)
            ),
            None,
        )
        supervisor = self._supervisor
        return Endpoints(
            nats=self._nats_url,
            redis=self._redis_url,
            http=supervisor.address,
            workers=workers,
            monitor=monitor,
            api=supervisor.api,
            operations=None if self._operations is None else self._operations.api,
        )

    async def start(self) -> None:
        """Start every role and return once all are ready; raises what the first one that cannot start raises."""
        starting = [asyncio.ensure_future(role.start()) for role in self._roles]
        try:
            await asyncio.gather(*starting)
        finally:
            for start in starting:
                start.cancel()
            await asyncio.gather(*starting, return_exceptions=True)

    async def stop(self) -> None:
        """Stop every role, all at once."""
        await asyncio.gather(*(role.stop() for role in self._roles))

    async def supervise(
        self, say: Callable[[str], None], changed: Callable[[], None]
    ) -> None:
        """Restart dead processes for ever; *say* informs a person, *changed* is called after new addresses."""
        async with asyncio.TaskGroup() as group:
            for role in self._roles:
                group.create_task(_keep_role(role, say, changed))
            for server in self._servers:
                group.create_task(_keep_server(server, say, changed))

    @property
    def _roles(self) -> list[RoleProcess]:
        operations = [] if self._operations is None else [self._operations]
        return [self._supervisor, *operations, *self._workers]


@contextlib.asynccontextmanager
async def running(plan: SystemPlan) -> AsyncIterator[System]:
    """Run the system of *plan* for as long as the block lasts; everything it started is gone afterwards.

    Raises:
        ConfigurationError: a server or an agent cannot run here.
        Unreachable: a server does not answer.
        Aborted: a role ended while it was starting, having said why.
    """
    async with _addresses(plan) as (nats_url, redis_url, servers):
        system = System(plan, nats_url, redis_url, servers)
        try:
            await system.start()
            yield system
        finally:
            await system.stop()


@contextlib.asynccontextmanager
async def _addresses(
    plan: SystemPlan,
) -> AsyncIterator[tuple[str, str, list[ServerProcess]]]:
    if plan.nats_url is not None and plan.redis_url is not None:
        yield plan.nats_url, plan.redis_url, []
        return
    if plan.nats_url is not None or plan.redis_url is not None:
        given, missing = (
            (NATS_VARIABLE, REDIS_VARIABLE)
            if plan.nats_url is not None
            else (REDIS_VARIABLE, NATS_VARIABLE)
        )
        raise ConfigurationError(
            f"{given} is set and {missing} is not; set both, or neither to get servers started"
        )
    async with EmbeddedServers(
        plan.data_dir,
        plan.durability,
        plan.ports.get("nats"),
        plan.ports.get("valkey"),
        monitor=True,
    ) as servers:
        yield servers.nats_url, servers.redis_url, [servers.nats, servers.valkey]


def _serving_ports(
    ports: Mapping[str, int], variables: Mapping[str, str]
) -> dict[str, str]:
    """Return the settings of a process that serves on *ports*, by *variables*, unless the environment names others."""
    return {
        variable: str(ports[name])
        for name, variable in variables.items()
        if name in ports and not os.environ.get(variable)
    }


async def _keep_role(
    role: RoleProcess, say: Callable[[str], None], changed: Callable[[], None]
) -> None:
    pause_s = FIRST_PAUSE_S
    started = time.monotonic()
    while True:
        status = await role.wait()
        if time.monotonic() - started > SOUND_S:
            pause_s = FIRST_PAUSE_S
        say(f"{role} {end_of(status)}; restarting it in {pause_s:g} s")
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
        started = time.monotonic()
        try:
            await role.start()
        except TaskloreError:
            # It ended, or was killed for being late: the next turn says so.
            continue
        say(f"{role.name} is back")
        changed()


async def _keep_server(
    server: ServerProcess, say: Callable[[str], None], changed: Callable[[], None]
) -> None:
    pause_s = FIRST_PAUSE_S
    while True:
        await asyncio.sleep(_LOOK_S)
        if server.is_running:
            continue
        say(f"{server.program} crashed; restarting it on the same port and data")
        try:
            await server.start()
            changed()
            say(f"{server.program} is back")
            pause_s = FIRST_PAUSE_S
        except TaskloreError as error:
            say(f"{error}; trying again in {pause_s:g} s")
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
