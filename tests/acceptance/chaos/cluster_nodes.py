"""Three NATS servers that are one cluster on this machine, each of which can be killed and started again."""

import asyncio
from pathlib import Path

from runtime.claims import HOST, free_port
from runtime.embedded import EmbeddedServers, NatsServer

NODES = 3


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
        others = [route for place, route in enumerate(self._routes) if place != self._place]
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
    """A cluster in place of one NATS server, and one Valkey."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir)
        routes = [free_port() for _ in range(NODES)]
        self.nodes = [ClusterNode(data_dir / f"nats-{place}", place, routes) for place in range(NODES)]

    @property
    def nats_url(self) -> str:
        """All addresses, as the setting takes them."""
        return ",".join(node.url for node in self.nodes)

    async def start(self) -> None:
        """Start everything at once: no node answers before most of them have found one another."""
        try:
            await asyncio.gather(self.valkey.start(), *(node.start() for node in self.nodes))
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop everything."""
        await asyncio.gather(*(node.stop() for node in self.nodes))
        await self.valkey.stop()
