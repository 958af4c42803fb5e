"""Fixtures of the acceptance tests: a house that stands for all of them, and one of its own for whoever breaks it."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.acceptance.house import House, Served, running_house
from tests.acceptance.outside import Outside, outside


@dataclass(frozen=True)
class Standing:
    """A house with a worker and a supervisor that stay."""

    house: House
    worker: Served
    supervisor: Served


@pytest.fixture(scope="session")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    """Run one worker and one supervisor for all tests that neither stop nor freeze anything."""
    folder = tmp_path_factory.mktemp("standing")
    with running_house(folder) as house:
        # Nobody is killed here, so that no lease has to end soon.
        worker = house.worker(ack_wait_s=30)
        supervisor = house.supervisor(ack_wait_s=30)
        yield Standing(house, worker.ready(), supervisor.ready())


@pytest.fixture
async def program(standing: Standing) -> AsyncIterator[Outside]:
    """Connect an outside program to the standing house."""
    async with outside(standing.house.servers.nats_url) as connected:
        yield connected


@pytest.fixture
async def own_house(
    own_servers: EmbeddedServers, tmp_path: Path
) -> AsyncIterator[House]:
    """Give a house to one test alone, which may kill what it likes."""
    with House(own_servers, tmp_path) as house:
        yield house
