"""The HTTP API over TLS, with a certificate of its own."""

import asyncio
import socket
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from redis.asyncio import Redis

from deploy.credentials import make_certificates
from tasklore.contracts.errors import ConfigurationError
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.runtime.settings import Settings
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.http.admission.limits import ClientLimits
from tasklore.supervisor.http.server import demand_tls
from tests.http_client import PATIENCE_S, Connection, until
from tests.integration.http_stand import http_stand

_CA = """[ca]
default_ca = made
[made]
database = {folder}/index.txt
serial = {folder}/serial
new_certs_dir = {folder}
default_md = sha256
policy = any
[any]
commonName = supplied
"""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an authority and certificates signed by it; return their folder."""
    folder = tmp_path_factory.mktemp("tls") / "made"
    make_certificates(folder)
    return folder


async def test_answers_and_events_come_over_tls(
    servers: EmbeddedServers, redis: Redis, certificates: Path
) -> None:
    """Clients that do not trust the authority, speak plain HTTP or say nothing get no answer and delay no other."""
    tls = demand_tls(certificates / "nats.crt", certificates / "nats.key")
    assert tls is not None
    assert tls.minimum_version == ssl.TLSVersion.TLSv1_2
    client = ssl.create_default_context(cafile=certificates / "ca.crt")
    async with http_stand(servers, redis, tls=tls) as stand, Connection(stand.url):
        assert stand.url.startswith("https://127.0.0.1:")
        stand.service.gate.set()
        async with Connection(stand.url, client) as asked:
            asked.send(
                "POST", "/v1/requests", {"text": "hello"}, {"Idempotency-Key": "safe"}
            )
            answer = await asked.answer()
            assert (answer.status, answer.body["reply"]["text"]) == (
                200,
                "Heard: hello",
            )
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


async def test_a_silent_client_over_tls_makes_room_for_a_known_key(
    servers: EmbeddedServers,
    redis: Redis,
    certificates: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Although it does not take part in the end of the TLS session, which asyncio would wait for."""
    monkeypatch.setattr(asyncio.constants, "SSL_SHUTDOWN_TIMEOUT", 10 * PATIENCE_S)
    shown = {
        "Authorization": f"Bearer {make_key(tmp_path / 'keys.json', 'shop', ('ask',), None)}"
    }
    keys = KeyRing(tmp_path / "keys.json")
    tls = demand_tls(certificates / "nats.crt", certificates / "nats.key")
    client = ssl.create_default_context(cafile=certificates / "ca.crt")
    async with http_stand(
        servers, redis, tls=tls, keys=keys, limits=ClientLimits(connections=2)
    ) as stand:
        place = urlsplit(stand.url)

        def connect() -> ssl.SSLSocket:
            return client.wrap_socket(
                socket.create_connection((place.hostname, place.port)),
                server_hostname=place.hostname,
            )

        silent = [await asyncio.to_thread(connect) for _ in range(2)]
        await until(lambda: stand.server.connections == 2)
        async with Connection(stand.url, client) as known, asyncio.timeout(PATIENCE_S):
            known.send("GET", "/v1/agents", headers=shown)
            assert (await known.answer()).status == 200
            assert stand.server.connections == 2
        for one in silent:
            one.close()
        await until(lambda: stand.server.connections == 0)


def test_files_that_are_no_certificate_are_refused_at_the_start(
    certificates: Path, tmp_path: Path
) -> None:
    good = certificates / "nats.crt"
    empty = tmp_path / "empty.pem"
    empty.touch()
    assert demand_tls(None, None) is None
    for cert, key in (
        (good, certificates / "valkey.key"),
        (good, empty),
        (empty, empty),
    ):
        with pytest.raises(
            ConfigurationError,
            match="TASKLORE_API_TLS_CERT_FILE and TASKLORE_API_TLS_KEY_FILE",
        ):
            demand_tls(cert, key)
    with pytest.raises(
        ConfigurationError,
        match=r"TASKLORE_API_TLS_KEY_FILE .*missing.pem.*No such file",
    ):
        demand_tls(good, tmp_path / "missing.pem")
    with pytest.raises(
        ConfigurationError,
        match=r"TASKLORE_API_TLS_CERT_FILE .*missing.pem.*No such file",
    ):
        demand_tls(tmp_path / "missing.pem", certificates / "nats.key")


@pytest.mark.parametrize(
    ("first_day", "problem"), [(-2, "has expired"), (1, "is not valid yet")]
)
def test_an_expired_or_future_certificate_is_refused_at_the_start(
    certificates: Path, tmp_path: Path, first_day: int, problem: str
) -> None:
    key, request, made, config = (
        certificates / "nats.key",
        *(tmp_path / name for name in ("asked", "made.pem", "ca")),
    )
    config.write_text(_CA.format(folder=tmp_path))
    (tmp_path / "index.txt").touch()
    (tmp_path / "serial").write_text("01\n")
    begins = datetime.now(UTC) + timedelta(days=first_day)
    dates = [f"{at:%Y%m%d%H%M%SZ}" for at in (begins, begins + timedelta(days=1))]
    sign = [
        "ca",
        "-batch",
        "-selfsign",
        "-config",
        config,
        "-keyfile",
        key,
        "-in",
        request,
        "-notext",
    ]
    for command in (
        ["req", "-new", "-key", key, "-subj", "/CN=shop", "-out", request],
        [*sign, "-startdate", dates[0], "-enddate", dates[1], "-out", made],
    ):
        subprocess.run(["openssl", *command], check=True)
    with pytest.raises(
        ConfigurationError,
        match=rf"made.pem' {problem}.*renew TASKLORE_API_TLS_CERT_FILE",
    ):
        demand_tls(made, key)


@pytest.mark.parametrize("one", ["CERT", "KEY"])
def test_a_certificate_without_its_key_is_refused_and_so_is_a_key_alone(
    monkeypatch: pytest.MonkeyPatch, one: str
) -> None:
    monkeypatch.setenv(f"TASKLORE_API_TLS_{one}_FILE", "file.pem")
    with pytest.raises(ConfigurationError, match="set both or neither"):
        Settings.load()
