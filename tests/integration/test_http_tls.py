"""The HTTP API speaks TLS itself, where it is given a certificate."""

import asyncio
import ssl
import subprocess
from pathlib import Path

import pytest
from redis.asyncio import Redis

from contracts.errors import ConfigurationError
from deploy.credentials import make_certificates
from runtime.servers.embedded import EmbeddedServers
from runtime.settings import Settings
from supervisor.http.admission.key_file import KeyRing, make_key
from supervisor.http.admission.unknown_clients import Strangers
from supervisor.http.server.certificates import Certificate, demand_tls
from supervisor.http.server.handshakes import Handshakes
from supervisor.http.server.timeouts import PatientProtocol
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
    assert tls.current().minimum_version == ssl.TLSVersion.TLSv1_2
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


async def ended(connection: Connection) -> bool:
    """Tell whether the other end has closed *connection* without a word."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await connection.reader.read() == b""
    except ConnectionError:
        return True


async def test_a_handshake_that_does_not_end_is_not_waited_for(
    servers: EmbeddedServers, redis: Redis, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of who says nothing, nor of who begins one and falls silent, nor of what is none."""
    monkeypatch.setattr(Handshakes, "handshake_s", 0.3)
    tls = demand_tls(certificates / "nats.crt", certificates / "nats.key")
    greeting = ssl.MemoryBIO()
    half = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), greeting, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        half.do_handshake()
    begun = greeting.read()
    async with http_stand(servers, redis, tls=tls) as stand:
        for said in (b"", begun[:40], b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            async with Connection(stand.url) as silent:
                silent.writer.write(said)
                assert await ended(silent)
        await until(lambda: stand.server.connections == 0)


async def test_handshakes_take_the_room_of_strangers_and_leave_room_for_who_has_a_key(
    servers: EmbeddedServers, redis: Redis, certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest of an address ends for a newer one, long before its time is over."""
    tls = demand_tls(certificates / "nats.crt", certificates / "nats.key")
    client = ssl.create_default_context(cafile=certificates / "ca.crt")
    shown = {"Authorization": f"Bearer {make_key(tmp_path / 'keys.json', 'shop', ('ask',), None)}"}
    keys, strangers = KeyRing(tmp_path / "keys.json"), Strangers(connections=2)
    monkeypatch.setattr(Handshakes, "handshake_s", 10 * PATIENCE_S)
    async with http_stand(servers, redis, tls=tls, keys=keys, strangers=strangers) as stand:
        async with Connection(stand.url) as first, Connection(stand.url) as second:
            await until(lambda: stand.server.connections == 2)
            async with Connection(stand.url, client) as known:
                assert await ended(first)
                known.send("GET", "/v1/models", headers=shown)
                assert (await known.answer()).status == 200
                async with Connection(stand.url), Connection(stand.url):
                    assert await ended(second)
                    known.send("GET", "/v1/models", headers=shown)
                    assert (await known.answer()).status == 200
        await until(lambda: stand.server.connections == 0)


async def test_handshakes_count_among_all_connections(
    servers: EmbeddedServers, redis: Redis, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody is a stranger the newest is sent away."""
    monkeypatch.setattr(PatientProtocol, "most", 2)
    tls = demand_tls(certificates / "nats.crt", certificates / "nats.key")
    async with http_stand(servers, redis, tls=tls) as stand, Connection(stand.url), Connection(stand.url):
        await until(lambda: stand.server.connections == 2)
        async with Connection(stand.url) as late:
            assert await ended(late)


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


async def test_a_renewed_certificate_is_served_without_a_restart(
    servers: EmbeddedServers, redis: Redis, certificates: Path, tmp_path: Path
) -> None:
    """To new connections, once both of its files are there; half of a pair and nonsense change nothing."""
    now, files = [0.0], [tmp_path / "tls.crt", tmp_path / "tls.key"]

    def put(server: str, *wanted: Path) -> None:
        for file in wanted:
            draft = tmp_path / "draft"
            draft.write_bytes((certificates / f"{server}{file.suffix}").read_bytes())
            draft.replace(file)
        now[0] += 60.0

    put("nats", *files)
    tls = Certificate(*files, monotonic=lambda: now[0])
    client = ssl.create_default_context(cafile=certificates / "ca.crt")

    async def served() -> str:
        async with Connection(stand.url, client) as asked:
            names = asked.writer.get_extra_info("peercert")["subject"]
            return str(names[0][0][1])

    async with http_stand(servers, redis, tls=tls) as stand:
        found = [await served()]
        for change in ((files[0],), (), (files[1],)):
            put("valkey", *change)
            found.append(await served())
        files[0].write_text("nonsense")
        now[0] += 60.0
        found.append(await served())
    assert found == ["nats", "nats", "nats", "valkey", "valkey"]


@pytest.mark.parametrize("one", ["CERT", "KEY"])
def test_a_certificate_and_its_key_go_together(monkeypatch: pytest.MonkeyPatch, one: str) -> None:
    """One without the other would be served without TLS."""
    monkeypatch.setenv(f"TASKLORE_API_TLS_{one}_FILE", "file.pem")
    with pytest.raises(ConfigurationError, match="set both or neither"):
        Settings.load()
