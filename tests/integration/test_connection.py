"""Connecting to NATS: several addresses, and refused passwords."""

from pathlib import Path

import pytest

from tasklore.contracts.errors import Unreachable
from tasklore.runtime.messaging import connection
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.servers.claims import free_port
from tasklore.runtime.servers.embedded import EmbeddedServers, NatsServer


class GuardedServer(NatsServer):
    def _configuration(self, port: int) -> dict[str, object]:
        users = [
            {"user": "worker", "password": "right"},
            {"user": "probe", "password": "p"},
        ]
        return super()._configuration(port) | {
            "authorization": {"users": users},
            "no_auth_user": "probe",
        }


async def test_one_answering_address_of_several_is_enough(
    servers: EmbeddedServers,
) -> None:
    nobody = f"nats://127.0.0.1:{free_port()}"
    async with connected(f"{nobody},{servers.nats_url}", "several") as client:
        await client.flush()
        assert client.is_connected


async def test_a_wrong_password_is_reported_as_a_refusal_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is tried until the deadline.
    monkeypatch.setattr(connection, "CONNECT_S", 1.0)
    server = GuardedServer(tmp_path / "nats")
    await server.start()
    wrong = server.url.replace("nats://", "nats://worker:wr0ng@")
    try:
        with pytest.raises(Unreachable, match="refuses us") as refused:
            async with connected(wrong, "stranger"):
                pass
        assert "wr0ng" not in str(refused.value)
        async with connected(
            server.url.replace("nats://", "nats://worker:right@"), "friend"
        ) as client:
            assert client.is_connected
    finally:
        await server.stop()
