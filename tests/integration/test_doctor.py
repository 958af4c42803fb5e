"""The doctor on real servers: healthy, misconfigured, locked, frozen and away."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.commands.doctor.examination import examine
from tasklore.commands.doctor.facts import HealthPage, Unanswered
from tasklore.commands.doctor.pages import PAGE_BYTES, examine_monitor, fetch
from tasklore.commands.doctor.report import Report
from tasklore.commands.doctor.rules import Diagnosis
from tasklore.contracts import subjects
from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.messages import AgentCard, WorkerPresence
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.streams import (
    PullSource,
    StreamSizes,
    declare_consumer,
    declare_streams,
)
from tasklore.runtime.servers.claims import free_port
from tasklore.runtime.servers.embedded import EmbeddedServers, NatsServer
from tasklore.runtime.servers.endpoints import Endpoints
from tasklore.runtime.settings import Settings

SETTINGS = Settings()

#: Seconds that an examination may take on a busy machine, frozen servers or not; it needs one to five.
PATIENCE_S = 60.0


class PlainNats(NatsServer):
    """A nats-server with *changes* of what we configure; None takes a key of JetStream, or JetStream itself, away."""

    def __init__(self, data_dir: Path, **changes: Any) -> None:
        super().__init__(data_dir, monitor=True)
        self._changes = changes

    def _configuration(self, port: int) -> dict[str, object]:
        configuration = super()._configuration(port)
        jetstream = configuration["jetstream"]
        assert isinstance(jetstream, dict)
        for key, value in self._changes.items():
            if key == "sync_interval":
                del jetstream[key]
            elif value is None:
                del configuration[key]
            else:
                configuration[key] = value
        return configuration

    async def probe(self, port: int) -> None:
        """Return when somebody listens: one of these has no JetStream, another asks who we are."""
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()


@asynccontextmanager
async def plain_nats(data_dir: Path, **changes: Any) -> AsyncIterator[PlainNats]:
    server = PlainNats(data_dir, **changes)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@pytest.fixture
async def clinic(tmp_path: Path) -> AsyncIterator[EmbeddedServers]:
    async with EmbeddedServers(tmp_path / "servers", monitor=True) as pair:
        async with connected(pair.nats_url, "test-doctor") as client:
            await declare_streams(client, StreamSizes())
        yield pair


@pytest.fixture
async def client(clinic: EmbeddedServers) -> AsyncIterator[Client]:
    async with connected(clinic.nats_url, "test-doctor") as client:
        yield client


@pytest.fixture
async def store(clinic: EmbeddedServers) -> AsyncIterator[Redis]:
    async with Redis.from_url(clinic.redis_url, socket_timeout=PATIENCE_S) as client:
        yield client


async def examined(
    pair: EmbeddedServers,
    *,
    nats: str | None = None,
    redis: str | None = None,
    ahead_s: float = 0,
    **places: Any,
) -> Report:
    """Examine *pair*, or what is named instead, with a clock that is *ahead_s* seconds ahead."""
    named = {"http": None, "workers": {}, "monitor": pair.nats.monitor_url} | places
    endpoints = Endpoints(
        nats=nats or pair.nats_url, redis=redis or pair.redis_url, **named
    )
    async with asyncio.timeout(PATIENCE_S):
        return await examine(
            endpoints, SETTINGS, "endpoints.json", lambda: time.time() + ahead_s
        )


def finding_of(report: Report, check: str) -> Diagnosis:
    found = [one for one in report.findings if one.check == check]
    assert len(found) == 1, [
        (one.check, one.mark, one.found) for one in report.findings
    ]
    return found[0]


def marks(report: Report) -> dict[str, str]:
    """Return the marks of what is wrong, by check."""
    return {
        one.check: one.mark for one in report.findings if one.mark not in ("ok", "note")
    }


async def test_our_own_servers_lack_nothing_but_a_supervisor(
    clinic: EmbeddedServers, tmp_path: Path
) -> None:
    report = await examined(clinic)
    assert marks(report) == {"nats.supervisor": "warning"}
    assert (report.durability, report.exit_code(strict=False)) == ("standard", 0)
    assert report.addresses == {"nats": clinic.nats_url, "redis": clinic.redis_url}
    async with EmbeddedServers(tmp_path / "strict", "strict", monitor=True) as pair:
        report = await examined(pair)
    assert report.durability == "strict"
    assert marks(report) == {"nats.streams": "problem"}
    assert (
        finding_of(report, "nats.streams").found == "missing: every stream and bucket"
    )


async def test_settings_of_another_nats_server_are_read_from_its_own_monitoring(
    clinic: EmbeddedServers, tmp_path: Path
) -> None:
    async with plain_nats(tmp_path / "lazy", sync_interval=None) as server:
        report = await examined(clinic, nats=server.url, monitor=server.monitor_url)
        # The monitoring of our own server says "1 s", which is not to be believed of this one.
        for monitor in (clinic.nats.monitor_url, None):
            elsewhere = await examined(clinic, nats=server.url, monitor=monitor)
            assert finding_of(elsewhere, "nats.sync_interval").mark == "unknown"
    finding = finding_of(report, "nats.sync_interval")
    assert (finding.mark, report.durability, report.exit_code(strict=False)) == (
        "problem",
        "lazy",
        1,
    )
    assert "every 120 s" in finding.found
    assert "sync_interval: 1s" in str(finding.cure)
    async with plain_nats(
        tmp_path / "bare", jetstream=None, max_payload=64 * 1024
    ) as server:
        report = await examined(clinic, nats=server.url, monitor=server.monitor_url)
    wrong = {
        "nats.jetstream": "problem",
        "nats.max_payload": "problem",
        "nats.sync_interval": "unknown",
    }
    assert marks(report) == wrong


async def test_a_valkey_without_config_is_judged_by_info_and_else_unknown(
    clinic: EmbeddedServers, store: Redis
) -> None:
    await store.execute_command(
        "ACL", "SETUSER", "guest", "on", ">secret", "~*", "&*", "+@all", "-config"
    )
    report = await examined(
        clinic, redis=clinic.redis_url.replace("://", "://guest:secret@")
    )
    assert (finding_of(report, "redis.appendonly").mark, report.durability) == (
        "unknown",
        "unknown",
    )
    assert finding_of(report, "redis.eviction").mark == "ok"
    assert "secret" not in json.dumps(report.document(strict=False))


async def test_a_refused_password_is_no_outage_and_is_not_shown(
    clinic: EmbeddedServers, store: Redis, tmp_path: Path
) -> None:
    await store.config_set("requirepass", "right")
    async with plain_nats(
        tmp_path / "locked", authorization={"user": "us", "password": "right"}
    ) as server:
        nats, redis = (
            url.replace("://", "://us:wrong@") for url in (server.url, clinic.redis_url)
        )
        for report in (
            await examined(clinic, nats=nats, redis=redis),
            await examined(clinic, nats=server.url),
        ):
            assert (
                "refuses the user or password"
                in finding_of(report, "nats.reachable").found
            )
            assert (
                "refuses the user or password"
                in finding_of(report, "redis.reachable").found
            )
            assert report.exit_code(strict=False) == 3
            assert "wrong" not in json.dumps(report.document(strict=False))


@pytest.mark.parametrize("victim", ["nats", "valkey"])
async def test_a_frozen_server_is_reported_in_time_and_the_other_one_examined(
    clinic: EmbeddedServers, victim: str
) -> None:
    (clinic.nats if victim == "nats" else clinic.valkey).pause()
    report = await examined(clinic)
    frozen, other = ("nats", "redis") if victim == "nats" else ("redis", "nats")
    assert {one.group for one in report.findings if one.is_unreachable} == {frozen}
    assert report.exit_code(strict=False) == 3
    assert {one.group for one in report.findings if one.check.endswith(".version")} == {
        other
    }


async def test_absent_servers_are_one_finding_each(clinic: EmbeddedServers) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    report = await examined(
        clinic,
        nats=f"nats://{nobody}",
        redis=f"redis://{nobody}",
        http=f"http://{nobody}",
    )
    assert marks(report) == dict.fromkeys(
        ("nats.reachable", "redis.reachable", "processes.reachable"), "problem"
    )
    assert report.exit_code(strict=False) == 3


async def test_a_sick_valkey_clocks_and_streams_are_reported_together(
    clinic: EmbeddedServers, client: Client, store: Redis
) -> None:
    used = (await store.info("memory"))["used_memory"]
    for name, value in (
        ("appendonly", "no"),
        ("maxmemory", used + 100_000),
        ("maxmemory-policy", "allkeys-lru"),
    ):
        await store.config_set(name, value)
    tasks = (await ask_jetstream(client, "STREAM.INFO.TASKS"))["config"]
    await ask_jetstream(
        client,
        "STREAM.UPDATE.TASKS",
        tasks | {"duplicate_window": 60 * 10**9, "discard": "old"},
    )
    await ask_jetstream(client, "STREAM.DELETE.DEAD")
    # A look that takes long on a busy machine is that much less exact: one of many is quick enough.
    async with asyncio.timeout(PATIENCE_S):
        while (
            "10.0 s behind ours"
            not in finding_of(
                report := await examined(clinic, ahead_s=10), "redis.clock"
            ).found
        ):
            pass
    problems = {check for check, mark in marks(report).items() if mark == "problem"}
    assert problems >= {
        "redis.appendonly",
        "redis.eviction",
        "nats.clock",
        "redis.clock",
        "nats.streams",
    }
    assert "redis.memory" in marks(report)
    assert finding_of(report, "nats.streams").found == "missing: DEAD"
    assert "discard is 'old', wanted 'new'" in finding_of(report, "nats.drift").found
    assert "stored twice" in finding_of(report, "nats.duplicate_window").found
    assert (report.durability, report.exit_code(strict=False)) == ("lazy", 1)


async def test_workers_and_what_waits_are_read_from_streams_and_buckets(
    clinic: EmbeddedServers, client: Client
) -> None:
    for agent_id in ("Gone", "Trip"):
        await declare_consumer(
            client,
            PullSource(
                stream=subjects.TASKS,
                durable=agent_id,
                filter_subject=subjects.tasks_of(agent_id),
                ack_wait_s=30.0,
            ),
        )
    stream = client.jetstream()
    await stream.publish(subjects.dead("tasks.Gone.x"), b"{}")
    for subject in ("tasks.Gone.x", "tasks.Gone.y", "tasks.Never.x", "tasks.Ödd.x"):
        await stream.publish(subject, b"{}")
    later = {
        "Nats-Schedule": "@at 2100-01-01T00:00:00Z",
        "Nats-Schedule-Target": subjects.due("Gone", "x"),
    }
    await stream.publish(subjects.schedule("t1", 1), b"{}", headers=later)
    workers = await stream.key_value(subjects.WORKERS_BUCKET)
    for number in (1, 2):
        presence = WorkerPresence(
            worker_id=f"w-{number}",
            agent_id="Trip",
            digest=str(number),
            slots=1,
            http=f"http://127.0.0.1:{free_port()}",
            started_at=datetime.now(UTC),
        )
        await workers.put(f"Trip.w-{number}", presence.model_dump_json().encode())
    cards = await stream.key_value(subjects.AGENTS_BUCKET)
    await cards.put(
        "Idle",
        AgentCard(agent_id="Idle", tasks=(), digest="d").model_dump_json().encode(),
    )
    report = await examined(clinic)
    assert finding_of(report, "nats.dead").found.startswith(
        "1 dead letter waits, the oldest for "
    )
    assert (
        finding_of(report, "nats.later").found == "1 schedule in LATER for another run"
    )
    assert [
        one.found.partition(",")[0]
        for one in report.findings
        if one.check == "nats.waiting"
    ] == [
        "2 tasks wait for Gone",
        "1 task waits for Never",
        "1 task waits for Ödd",
    ]
    assert "w-1, w-2 serve Trip v1" in finding_of(report, "nats.conflict").found
    assert finding_of(report, "nats.workers").found == "2 live workers for Trip"
    assert finding_of(report, "nats.idle").mark == "note"
    assert finding_of(report, "processes.reachable").mark == "warning"
    assert report.exit_code(strict=False) == 1


async def test_single_copies_in_a_cluster_are_reported(
    clinic: EmbeddedServers, tmp_path: Path
) -> None:
    ports = [free_port() for _ in range(3)]
    cluster = {
        "name": "clinic",
        "routes": [f"nats-route://127.0.0.1:{port}" for port in ports],
    }
    servers = [
        PlainNats(
            tmp_path / f"n{number}", cluster=cluster | {"listen": f"127.0.0.1:{port}"}
        )
        for number, port in enumerate(ports)
    ]
    async with AsyncExitStack() as stack:
        for server in servers:
            stack.push_async_callback(server.stop)
        await asyncio.gather(*(server.start() for server in servers))
        async with (
            asyncio.timeout(PATIENCE_S),
            connected(servers[0].url, "test-doctor") as client,
        ):
            while True:
                # The cluster may not have a leader yet that takes it.
                with suppress(TaskloreError):
                    await declare_streams(client, StreamSizes())
                    break
                await asyncio.sleep(0.1)
        report = await examined(
            clinic, nats=servers[0].url, monitor=servers[1].monitor_url
        )
    assert "fewer than 3 copies" in finding_of(report, "nats.replicas").found
    # A neighbour in the cluster is configured alike, and the finding says that it is one.
    assert (
        "alone; ask its neighbours too"
        in finding_of(report, "nats.sync_interval").found
    )


@asynccontextmanager
async def answering(
    answer: Callable[[asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await answer(writer)
        except ConnectionError:
            return
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def saying(text: bytes) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(text)
        await writer.drain()

    return answer


async def dripping(writer: asyncio.StreamWriter) -> None:
    """Say a letter now and then, for longer than anybody listens."""
    while True:
        writer.write(b"H")
        await writer.drain()
        await asyncio.sleep(0.02)


async def test_a_page_has_its_status_and_its_json() -> None:
    """The body of what is no JSON object is empty."""
    async with answering(
        saying(b'HTTP/1.0 503 Busy\r\nX: y\r\n\r\n{"checks": {}}')
    ) as url:
        assert await fetch(f"{url}/readyz", PATIENCE_S) == HealthPage(
            503, {"checks": {}}
        )
    for body in (b"plain words", b"[1, 2]", b"\xff\xfe", b""):
        async with answering(saying(b"HTTP/1.1 200 OK\r\n\r\n" + body)) as url:
            assert await fetch(url, PATIENCE_S) == HealthPage(200, {})


async def test_an_answer_that_is_no_page_is_reported_as_such() -> None:
    for answer in (b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.0 fine\r\n\r\n"):
        async with answering(saying(answer)) as url:
            found = await fetch(url, PATIENCE_S)
        assert isinstance(found, Unanswered)
        assert "no HTTP page" in found.reason
    refused = await fetch(f"http://127.0.0.1:{free_port()}")
    assert isinstance(refused, Unanswered)
    assert "refused" in refused.reason.lower() or "connect" in refused.reason.lower()


async def test_a_page_that_never_ends_is_given_up() -> None:
    """A drop at a time keeps no deadline alive, and a flood is cut off."""
    async with asyncio.timeout(PATIENCE_S):
        async with answering(dripping) as url:
            assert await fetch(url, 0.2) == Unanswered("no answer within 0.2 s")
        flood = b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * (2 * PAGE_BYTES)
        async with answering(saying(flood)) as url:
            assert await fetch(url, PATIENCE_S) == HealthPage(200, {})


async def test_a_monitoring_page_without_a_server_id_is_not_believed() -> None:
    async with answering(saying(b"HTTP/1.0 404 Not Found\r\n\r\n{}")) as url:
        seen = await examine_monitor(f"{url}/", "--monitor")
    assert isinstance(seen.varz, Unanswered)
    assert "404" in seen.varz.reason
