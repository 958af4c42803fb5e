"""The HTTP API speaks TLS itself, where it is given a certificate."""

import asyncio
import ssl
import subprocess
from pathlib import Path

import pytest
from redis.asyncio import Redis

from contracts.errors import ConfigurationError
from deploy.credentials import make_certificates
from runtime.embedded import EmbeddedServers
from runtime.settings import Settings
from supervisor.http.certificates import demand_tls
from tests.http_client import PATIENCE_S, Connection, until
from tests.integration.http_stand import http_stand


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an authority, and a certificate that it vouches for; return their folder."""
    folder = tmp_path_factory.mktemp("tls") / "made"
    make_certificates(folder)
    return folder


async def test_an_answer_and_a_stream_of_events_come_over_tls(
    servers: EmbeddedServers, redis: Redis, certificates: Path
) -> None:
    """To who knows the authority; who does not ends the connection, and plain HTTP is not answered."""
    tls = demand_tls(certificates / "nats.crt", certificates / "nats.key")
    assert tls is not None
    assert tls.minimum_version == ssl.TLSVersion.TLSv1_2
    client = ssl.create_default_context(cafile=certificates / "ca.crt")
    async with http_stand(servers, redis, tls=tls) as stand:
        assert stand.url.startswith("https://127.0.0.1:")
        stand.service.gate.set()
        async with Connection(stand.url, client) as asked:
            asked.send("POST", "/v1/requests", {"text": "hello"}, {"Idempotency-Key": "safe"})
            answer = await asked.answer()
            assert (answer.status, answer.body["reply"]["text"]) == (200, "Heard: hello")
            asked.send("GET", "/v1/requests/safe/events")
            assert (await asked.head())[0] == 200
            assert [name async for _, name, _ in asked.events()][-1] == "done"
        with pytest.raises(ssl.SSLCertVerificationError):
            await Connection(stand.url, ssl.create_default_context()).__aenter__()
        async with Connection(stand.url) as plain:
            plain.send("GET", "/v1/agents")
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await plain.head()
        await until(lambda: stand.server.connections == 0)


async def test_who_never_greets_is_not_waited_for_by_others(
    servers: EmbeddedServers, redis: Redis, certificates: Path
) -> None:
    """A connection without a handshake holds nothing up."""
    tls = demand_tls(certificates / "nats.crt", certificates / "nats.key")
    client = ssl.create_default_context(cafile=certificates / "ca.crt")
    async with (
        http_stand(servers, redis, tls=tls) as stand,
        Connection(stand.url),
        Connection(stand.url, client) as asked,
        asyncio.timeout(PATIENCE_S),
    ):
        asked.send("GET", "/v1/agents")
        assert (await asked.answer()).status == 200


def test_files_that_are_no_certificate_are_refused_at_the_start(certificates: Path, tmp_path: Path) -> None:
    """With the settings that name them; a key of another certificate, too."""
    good, empty = certificates / "nats.crt", tmp_path / "empty.pem"
    empty.touch()
    assert demand_tls(None, None) is None
    for cert, key in ((good, certificates / "valkey.key"), (good, empty), (empty, empty)):
        with pytest.raises(ConfigurationError, match="TASKLORE_API_TLS_CERT_FILE and TASKLORE_API_TLS_KEY_FILE"):
            demand_tls(cert, key)
    with pytest.raises(ConfigurationError, match=r"TASKLORE_API_TLS_KEY_FILE .*missing.pem.*No such file"):
        demand_tls(good, tmp_path / "missing.pem")


def test_a_certificate_that_has_expired_is_refused_at_the_start(certificates: Path, tmp_path: Path) -> None:
    """It would be refused by every client, one after the other."""
    key, asked, expired = certificates / "nats.key", tmp_path / "asked.pem", tmp_path / "expired.pem"
    sign = ["openssl", "x509", "-req", "-in", asked, "-signkey", key, "-days", "-1", "-out", expired]
    for command in (["openssl", "req", "-new", "-key", key, "-subj", "/CN=old", "-out", asked], sign):
        subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(ConfigurationError, match=r"expired.pem' has expired.*renew TASKLORE_API_TLS_CERT_FILE"):
        demand_tls(expired, key)


@pytest.mark.parametrize("one", ["CERT", "KEY"])
def test_a_certificate_and_its_key_go_together(monkeypatch: pytest.MonkeyPatch, one: str) -> None:
    """One without the other would be served without TLS."""
    monkeypatch.setenv(f"TASKLORE_API_TLS_{one}_FILE", "file.pem")
    with pytest.raises(ConfigurationError, match="set both or neither"):
        Settings.load()
