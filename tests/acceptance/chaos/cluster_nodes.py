"""Three NATS servers that are one cluster on this machine, each of which can be killed and started again."""

import asyncio
from pathlib import Path

from tasklore.contracts.errors import Unreachable
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import JetStreamRefused, ask_jetstream
from tasklore.runtime.servers.claims import HOST, free_port
from tasklore.runtime.servers.embedded import EmbeddedServers, NatsServer

NODES = 3
#: Seconds for all nodes to know one another: an election takes up to nine, on a machine that has time.
_COMPLETE_S = 60.0
#: A stream that is made and deleted again: whatever its nodes do not take, no other stream gets either.
_TRIAL = {
    "name": "TRIAL",
    "subjects": ["trial"],
    "num_replicas": NODES,
    "max_bytes": 1024,
}


class ClusterNode(NatsServer):
    """One server of the cluster; all speak to one another on the ports *routes*, it on that of *place*."""

    def __init__(self, data_dir: Path, place: int, routes: list[int]) -> None:
        super().__init__(data_dir)
        self._place = place
        self._routes = routes

    @property
    def name(self) -> str:
        """What JetStream calls it, as a leader for instance."""
        return self._server_name

    def _configuration(self, port: int) -> dict[str, object]:
        others = [
            route for place, route in enumerate(self._routes) if place != self._place
        ]
        return super()._configuration(port) | {
            "cluster": {
                "name": "chaos",
                "host": HOST,
                "port": self._routes[self._place],
                "routes": [f"nats://{HOST}:{route}" for route in others],
                # Addresses are told, not learned: what clients know of the cluster is what they were given.
                "no_advertise": True,
            }
        }


class Cluster(EmbeddedServers):
    """A cluster in place of one NATS server, and one Valkey.

    It stands once every node keeps copies: what a start makes of fewer is another test's question (see `start_some`).
    """

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir)
        routes = [free_port() for _ in range(NODES)]
        self.nodes = [
            ClusterNode(data_dir / f"nats-{place}", place, routes)
            for place in range(NODES)
        ]
        self._known: list[ClusterNode] = []

    @property
    def nats_url(self) -> str:
        """The addresses of all nodes that `start` or `start_some` started, as the setting takes them."""
        return ",".join(node.url for node in self._known)

    async def start(self) -> None:
        """Start everything, and return once all nodes take part."""
        await self.start_some(NODES)
        try:
            await self.complete()
        except BaseException:
            await self.stop()
            raise

    async def start_some(self, nodes: int) -> None:
        """Start Valkey and the first *nodes* nodes at once: none answers before most of all have found one another."""
        self._known = self.nodes[:nodes]
        try:
            await asyncio.gather(
                self.valkey.start(), *(node.start() for node in self._known)
            )
        except BaseException:
            await self.stop()
            raise

    async def complete(self) -> None:
        """Return once every node would keep a copy of a new stream."""
        async with (
            asyncio.timeout(_COMPLETE_S),
            connected(self.nodes[0].url, "cluster-trial") as client,
        ):
            while True:
                try:
                    await ask_jetstream(client, "STREAM.CREATE.TRIAL", _TRIAL)
                    await ask_jetstream(client, "STREAM.DELETE.TRIAL")
                except (JetStreamRefused, Unreachable):
                    # There is no leader yet, or it has not heard of all nodes.
                    await asyncio.sleep(0.1)
                else:
                    return

    async def stop(self) -> None:
        """Stop everything."""
        await asyncio.gather(*(node.stop() for node in self.nodes))
        await self.valkey.stop()
