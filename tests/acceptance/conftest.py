"""Fixtures of the acceptance tests: a system that stands for all of them, and one of its own for whoever breaks it."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import Served, System, running_system


@dataclass(frozen=True)
class Standing:
    """A system with a worker and a supervisor that stay."""

    system: System
    worker: Served
    supervisor: Served


@pytest.fixture(scope="session")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    """Run one worker and one supervisor for all tests that neither stop nor freeze anything."""
    folder = tmp_path_factory.mktemp("standing")
    with running_system(folder) as system:
        # Nobody is killed here, so that no lease has to end soon.
        worker = system.worker(ack_wait_s=30)
        supervisor = system.supervisor(ack_wait_s=30)
        yield Standing(system, worker.ready(), supervisor.ready())


@pytest.fixture
async def program(standing: Standing) -> AsyncIterator[Outside]:
    """Connect an outside program to the standing system."""
    async with outside(standing.system.servers.nats_url) as connected:
        yield connected


@pytest.fixture
async def own_system(
    own_servers: EmbeddedServers, tmp_path: Path
) -> AsyncIterator[System]:
    """Give a system to one test alone, which may kill what it likes."""
    with System(own_servers, tmp_path) as system:
        yield system
