"""The doctor on real servers: healthy, misconfigured, locked, frozen and away."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from redis.asyncio import Redis

from contracts import subjects
from contracts.errors import TaskloreError
from contracts.messages import AgentCard, WorkerPresence
from runtime.messaging.connection import connected
from runtime.messaging.jetstream import ask_jetstream
from runtime.messaging.streams import Sizes, Source, declare_consumer, declare_streams
from runtime.servers.claims import free_port
from runtime.servers.embedded import EmbeddedServers, NatsServer
from runtime.servers.endpoints import Endpoints
from runtime.settings import Settings
from tasklore.doctor.examination import examine
from tasklore.doctor.report import Report
from tasklore.doctor.rules import Diagnosis

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


@pytest.fixture
async def clinic(tmp_path: Path) -> AsyncIterator[EmbeddedServers]:
    """Run a pair with its monitoring open and every stream declared."""
    async with EmbeddedServers(tmp_path / "servers", monitor=True) as pair:
        async with connected(pair.nats_url, "test-doctor") as client:
            await declare_streams(client, Sizes())
        yield pair


@pytest.fixture
async def client(clinic: EmbeddedServers) -> AsyncIterator[Client]:
    """Connect to its NATS."""
    async with connected(clinic.nats_url, "test-doctor") as client:
        yield client


@pytest.fixture
async def store(clinic: EmbeddedServers) -> AsyncIterator[Redis]:
    """Connect to its Valkey."""
    async with Redis.from_url(clinic.redis_url, socket_timeout=PATIENCE_S) as client:
        yield client


async def examined(
    pair: EmbeddedServers, *, nats: str | None = None, redis: str | None = None, ahead_s: float = 0, **places: Any
) -> Report:
    """Examine *pair*, or what is named instead, with a clock that is *ahead_s* seconds ahead."""
    named = {"http": None, "workers": {}, "monitor": pair.nats.monitor_url} | places
    endpoints = Endpoints(nats or pair.nats_url, redis or pair.redis_url, **named)
    async with asyncio.timeout(PATIENCE_S):
        return await examine(endpoints, SETTINGS, "endpoints.json", lambda: time.time() + ahead_s)


def told(report: Report, check: str) -> Diagnosis:
    """Return the one finding of *check*."""
    found = [one for one in report.findings if one.check == check]
    assert len(found) == 1, [(one.check, one.mark, one.found) for one in report.findings]
    return found[0]


def marks(report: Report) -> dict[str, str]:
    """Return what is wrong, by check."""
    return {one.check: one.mark for one in report.findings if one.mark not in ("ok", "note")}


async def test_our_own_servers_lack_nothing_but_a_supervisor(clinic: EmbeddedServers) -> None:
    report = await examined(clinic)
    assert marks(report) == {"nats.supervisor": "warning"}
    assert (report.durability, report.exit_code(strict=False)) == ("standard", 0)
    assert report.addresses == {"nats": clinic.nats_url, "redis": clinic.redis_url}


async def test_strict_servers_are_recognised(tmp_path: Path) -> None:
    async with EmbeddedServers(tmp_path / "servers", "strict", monitor=True) as pair:
        report = await examined(pair)
    assert report.durability == "strict"
    assert marks(report) == {"nats.streams": "problem"}
    assert told(report, "nats.streams").found == "missing: every stream and bucket"


async def test_a_nats_server_with_default_settings_flushes_too_seldom(clinic: EmbeddedServers, tmp_path: Path) -> None:
    server = PlainNats(tmp_path / "lazy", sync_interval=None)
    await server.start()
    try:
        report = await examined(clinic, nats=server.url, monitor=server.monitor_url)
        elsewhere = await examined(clinic, nats=server.url)
        untold = await examined(clinic, nats=server.url, monitor=None)
    finally:
        await server.stop()
    finding = told(report, "nats.sync_interval")
    assert (finding.mark, report.durability, report.exit_code(strict=False)) == ("problem", "lazy", 1)
    assert "every 120 s" in finding.found
    assert "sync_interval: 1s" in str(finding.cure)
    # The monitoring of the other server says "1 s", which is not to be believed of this one.
    assert told(elsewhere, "nats.sync_interval").mark == "unknown"
    assert told(untold, "nats.sync_interval").mark == "unknown"


async def test_a_nats_server_without_jetstream_or_with_small_messages_is_a_problem(
    clinic: EmbeddedServers, tmp_path: Path
) -> None:
    server = PlainNats(tmp_path / "bare", jetstream=None, max_payload=64 * 1024)
    await server.start()
    try:
        report = await examined(clinic, nats=server.url, monitor=server.monitor_url)
    finally:
        await server.stop()
    assert marks(report) == {
        "nats.jetstream": "problem",
        "nats.max_payload": "problem",
        "nats.sync_interval": "unknown",
    }


async def test_a_valkey_that_evicts_or_keeps_nothing_on_disk_is_a_problem(
    clinic: EmbeddedServers, store: Redis
) -> None:
    used = (await store.info("memory"))["used_memory"]
    await store.config_set("appendonly", "no")
    await store.config_set("maxmemory", used + 100_000)
    await store.config_set("maxmemory-policy", "allkeys-lru")
    report = await examined(clinic)
    assert marks(report).keys() >= {"redis.appendonly", "redis.eviction", "redis.memory"}
    assert told(report, "redis.appendonly").found.endswith(
        "nothing is kept on disk, and a restart loses ledger and memory"
    )
    assert (report.durability, report.exit_code(strict=False)) == ("lazy", 1)


async def test_a_valkey_without_config_is_judged_by_info_and_else_unknown(
    clinic: EmbeddedServers, store: Redis
) -> None:
    await store.execute_command("ACL", "SETUSER", "guest", "on", ">secret", "~*", "&*", "+@all", "-config")
    report = await examined(clinic, redis=clinic.redis_url.replace("://", "://guest:secret@"))
    finding = told(report, "redis.appendonly")
    assert (finding.mark, report.durability) == ("unknown", "unknown")
    assert told(report, "redis.eviction").mark == "ok"
    assert "secret" not in json.dumps(report.document(strict=False))


async def test_a_refused_password_is_no_outage_and_is_not_shown(
    clinic: EmbeddedServers, store: Redis, tmp_path: Path
) -> None:
    await store.config_set("requirepass", "right")
    server = PlainNats(tmp_path / "locked", authorization={"user": "us", "password": "right"})
    await server.start()
    try:
        nats, redis = (url.replace("://", "://us:wrong@") for url in (server.url, clinic.redis_url))
        report = await examined(clinic, nats=nats, redis=redis)
        without = await examined(clinic, nats=server.url)
    finally:
        await server.stop()
    for each in (report, without):
        assert "refuses the user or password" in told(each, "nats.reachable").found
        assert "refuses the user or password" in told(each, "redis.reachable").found
        assert each.exit_code(strict=False) == 3
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
    assert {one.group for one in report.findings if one.check.endswith(".version")} == {other}


async def test_absent_servers_are_one_finding_each(clinic: EmbeddedServers) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    report = await examined(clinic, nats=f"nats://{nobody}", redis=f"redis://{nobody}", http=f"http://{nobody}")
    assert marks(report) == dict.fromkeys(("nats.reachable", "redis.reachable", "processes.reachable"), "problem")
    assert report.exit_code(strict=False) == 3
    several = await examined(clinic, nats=f"nats://{nobody},nats://{nobody}")
    assert "cannot be connected" in told(several, "nats.reachable").found


async def test_clocks_that_differ_are_reported_for_both_servers(clinic: EmbeddedServers) -> None:
    # A look that takes long on a busy machine is that much less exact: one of many is quick enough.
    async with asyncio.timeout(PATIENCE_S):
        while "10.0 s behind ours" not in told(report := await examined(clinic, ahead_s=10), "redis.clock").found:
            pass
    assert {told(report, check).mark for check in ("nats.clock", "redis.clock")} == {"problem"}


async def test_changed_and_missing_streams_are_reported(clinic: EmbeddedServers, client: Client) -> None:
    tasks = (await ask_jetstream(client, "STREAM.INFO.TASKS"))["config"]
    await ask_jetstream(client, "STREAM.UPDATE.TASKS", tasks | {"duplicate_window": 60 * 10**9, "discard": "old"})
    await ask_jetstream(client, "STREAM.DELETE.DEAD")
    report = await examined(clinic)
    assert told(report, "nats.streams").found == "missing: DEAD"
    assert "discard is 'old', wanted 'new'" in told(report, "nats.drift").found
    assert "stored twice" in told(report, "nats.duplicate_window").found
    assert report.exit_code(strict=False) == 1


async def test_dead_letters_schedules_and_waiting_tasks_are_counted(clinic: EmbeddedServers, client: Client) -> None:
    await declare_consumer(client, Source(subjects.TASKS, "Gone", subjects.tasks_of("Gone"), 30.0))
    stream = client.jetstream()
    await stream.publish(subjects.dead("tasks.Gone.x"), b"{}")
    for subject in ("tasks.Gone.x", "tasks.Gone.y", "tasks.Never.x", "tasks.Ödd.x"):
        await stream.publish(subject, b"{}")
    later = {"Nats-Schedule": "@at 2100-01-01T00:00:00Z", "Nats-Schedule-Target": subjects.due("Gone", "x")}
    await stream.publish(subjects.schedule("t1", 1), b"{}", headers=later)
    report = await examined(clinic)
    assert told(report, "nats.dead").found.startswith("1 dead letter waits, the oldest for ")
    assert told(report, "nats.later").found == "1 schedule in LATER for another run"
    assert [one.found.partition(",")[0] for one in report.findings if one.check == "nats.waiting"] == [
        "2 tasks wait for Gone",
        "1 task waits for Never",
        "1 task waits for Ödd",
    ]


async def test_live_workers_are_read_from_their_bucket(clinic: EmbeddedServers, client: Client) -> None:
    await declare_consumer(client, Source(subjects.TASKS, "Trip", subjects.tasks_of("Trip"), 30.0))
    workers = await client.jetstream().key_value(subjects.WORKERS_BUCKET)
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
    cards = await client.jetstream().key_value(subjects.AGENTS_BUCKET)
    await cards.put("Idle", AgentCard(agent_id="Idle", tasks=(), digest="d").model_dump_json().encode())
    report = await examined(clinic)
    assert "w-1, w-2 serve Trip v1" in told(report, "nats.conflict").found
    assert told(report, "nats.workers").found == "2 live workers for Trip"
    assert told(report, "nats.idle").mark == "note"
    assert told(report, "processes.reachable").mark == "warning"
    assert report.exit_code(strict=False) == 1


async def test_single_copies_and_lost_servers_of_a_cluster_are_reported(
    clinic: EmbeddedServers, tmp_path: Path
) -> None:
    ports = [free_port() for _ in range(3)]
    cluster = {"name": "clinic", "routes": [f"nats-route://127.0.0.1:{port}" for port in ports]}
    servers = [
        PlainNats(tmp_path / f"n{number}", cluster=cluster | {"listen": f"127.0.0.1:{port}"})
        for number, port in enumerate(ports)
    ]
    async with AsyncExitStack() as stack:
        for server in servers:
            stack.push_async_callback(server.stop)
        await asyncio.gather(*(server.start() for server in servers))
        first = servers[0]
        await declared(first.url, Sizes())
        single = await examined(clinic, nats=first.url, monitor=servers[1].monitor_url)
        assert "fewer than 3 copies" in told(single, "nats.replicas").found
        # A neighbour in the cluster is configured alike, and the finding says that it is one.
        assert "alone; ask its neighbours too" in told(single, "nats.sync_interval").found
        await grown(first.url)
        servers[2].kill()
        await until_told(clinic, first, "away or behind")


async def declared(url: str, sizes: Sizes) -> None:
    """Declare every stream once the cluster has a leader that takes it."""
    async with asyncio.timeout(PATIENCE_S), connected(url, "test-doctor") as client:
        while True:
            try:
                return await declare_streams(client, sizes)
            except TaskloreError:
                await asyncio.sleep(0.1)


async def grown(url: str) -> None:
    """Give every stream three copies."""
    async with asyncio.timeout(PATIENCE_S), connected(url, "test-doctor") as client:
        names = (await ask_jetstream(client, "STREAM.NAMES"))["streams"]
        while names:
            try:
                config = (await ask_jetstream(client, f"STREAM.INFO.{names[-1]}"))["config"]
                await ask_jetstream(client, f"STREAM.UPDATE.{names[-1]}", config | {"num_replicas": 3})
            except TaskloreError:
                # Not all of them have found one another yet.
                await asyncio.sleep(0.1)
            else:
                names.pop()


async def until_told(clinic: EmbeddedServers, server: NatsServer, words: str) -> None:
    """Return once the doctor says *words* about copies: a server is missed after some seconds."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            report = await examined(clinic, nats=server.url, monitor=server.monitor_url)
            if any(words in one.found for one in report.findings if one.check == "nats.replicas"):
                return
