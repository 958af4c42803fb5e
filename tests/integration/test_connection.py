"""Connecting to NATS: several addresses, and servers that do not want us."""

from pathlib import Path

import pytest

from contracts.errors import Unreachable
from runtime.messaging.connection import connected
from runtime.servers.claims import free_port
from runtime.servers.embedded import EmbeddedServers, NatsServer


class GuardedServer(NatsServer):
    """A nats-server that asks for a password."""

    def _configuration(self, port: int) -> dict[str, object]:
        users = [{"user": "worker", "password": "right"}, {"user": "probe", "password": "p"}]
        return super()._configuration(port) | {"authorization": {"users": users}, "no_auth_user": "probe"}


async def test_of_several_addresses_one_that_answers_is_enough(servers: EmbeddedServers) -> None:
    """The others may be down, whichever comes first."""
    nobody = f"nats://127.0.0.1:{free_port()}"
    async with connected(f"{nobody},{servers.nats_url}", "several") as client:
        await client.flush()
        assert client.is_connected


async def test_nobody_at_any_address_is_said_so() -> None:
    """With all of them, and the cure."""
    nobody = f"nats://127.0.0.1:{free_port()},nats://127.0.0.1:{free_port()}"
    with pytest.raises(Unreachable, match="TASKLORE_NATS_URL"):
        async with connected(nobody, "nobody"):
            pass


async def test_a_wrong_password_is_not_taken_for_a_server_that_is_away(tmp_path: Path) -> None:
    """The message says that we are refused, and shows no password."""
    server = GuardedServer(tmp_path / "nats")
    await server.start()
    wrong = server.url.replace("nats://", "nats://worker:wr0ng@")
    try:
        with pytest.raises(Unreachable, match="refuses us") as refused:
            async with connected(wrong, "stranger"):
                pass
        assert "wr0ng" not in str(refused.value)
        async with connected(server.url.replace("nats://", "nats://worker:right@"), "friend") as client:
            assert client.is_connected
    finally:
        await server.stop()
