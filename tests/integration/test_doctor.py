"""The doctor before real servers: healthy, misconfigured, locked, frozen and away."""

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


async def test_our_own_servers_have_nothing_but_a_missing_supervisor(clinic: EmbeddedServers) -> None:
    """Standard durability, clocks that agree, and every stream in its place."""
    report = await examined(clinic)
    assert marks(report) == {"nats.supervisor": "warning"}
    assert (report.durability, report.exit_code(strict=False)) == ("standard", 0)
    assert report.addresses == {"nats": clinic.nats_url, "redis": clinic.redis_url}


async def test_strict_servers_are_recognised(tmp_path: Path) -> None:
    """By the words of both, although the interval of JetStream still stands there."""
    async with EmbeddedServers(tmp_path / "servers", "strict", monitor=True) as pair:
        report = await examined(pair)
    assert report.durability == "strict"
    assert marks(report) == {"nats.streams": "problem"}
    assert told(report, "nats.streams").found == "missing: every stream and bucket"


async def test_a_default_nats_server_is_too_lazy(clinic: EmbeddedServers, tmp_path: Path) -> None:
    """Its two minutes are told in seconds, with the line to write."""
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


async def test_a_nats_server_without_jetstream_or_with_small_messages_is_told(
    clinic: EmbeddedServers, tmp_path: Path
) -> None:
    """Nothing is said about streams that nobody could keep."""
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


async def test_a_forgetful_valkey_is_told(clinic: EmbeddedServers, store: Redis) -> None:
    """Eviction, no append-only file, and memory that is almost full."""
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


async def test_a_managed_valkey_tells_what_it_may(clinic: EmbeddedServers, store: Redis) -> None:
    """CONFIG is forbidden: what INFO says is judged, the rest is unknown."""
    await store.execute_command("ACL", "SETUSER", "guest", "on", ">secret", "~*", "&*", "+@all", "-config")
    report = await examined(clinic, redis=clinic.redis_url.replace("://", "://guest:secret@"))
    finding = told(report, "redis.appendonly")
    assert (finding.mark, report.durability) == ("unknown", "unknown")
    assert told(report, "redis.eviction").mark == "ok"
    assert "secret" not in json.dumps(report.document(strict=False))


async def test_a_refused_password_is_told_as_such(clinic: EmbeddedServers, store: Redis, tmp_path: Path) -> None:
    """Of both servers: it is no outage, and the password stays out of the report."""
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


@pytest.mark.parametrize("victim", ["nats", "valkey", "both"])
async def test_a_frozen_server_is_told_in_time_and_the_other_one_examined(clinic: EmbeddedServers, victim: str) -> None:
    """Connections are accepted and nobody answers: every question has its deadline."""
    if victim != "valkey":
        clinic.nats.pause()
    if victim != "nats":
        clinic.valkey.pause()
    report = await examined(clinic)
    frozen = {"nats": {"nats"}, "valkey": {"redis"}, "both": {"nats", "redis"}}[victim]
    assert {one.group for one in report.findings if one.is_unreachable} == frozen
    assert report.exit_code(strict=False) == 3
    assert {"nats", "redis"} - frozen == {one.group for one in report.findings if one.check.endswith(".version")}
    if victim != "valkey":
        assert "says nothing" in told(report, "nats.reachable").found


async def test_servers_that_are_not_there_are_told(clinic: EmbeddedServers) -> None:
    """Nobody listens: one finding each, and the exit code of an outage."""
    nobody = f"127.0.0.1:{free_port()}"
    report = await examined(clinic, nats=f"nats://{nobody}", redis=f"redis://{nobody}", http=f"http://{nobody}")
    assert marks(report) == dict.fromkeys(("nats.reachable", "redis.reachable", "processes.reachable"), "problem")
    assert report.exit_code(strict=False) == 3
    several = await examined(clinic, nats=f"nats://{nobody},nats://{nobody}")
    assert "cannot be connected" in told(several, "nats.reachable").found


async def test_clocks_that_differ_are_told_of_both_servers(clinic: EmbeddedServers) -> None:
    """Ours is ten seconds ahead of theirs, and then two behind."""
    for ahead_s, mark in ((10, "problem"), (-2, "warning")):
        words = f"{abs(ahead_s)}.0 s {'behind' if ahead_s > 0 else 'ahead of'} ours"
        # A look that takes long on a busy machine is that much less exact: one of many is quick enough.
        async with asyncio.timeout(PATIENCE_S):
            while words not in told(report := await examined(clinic, ahead_s=ahead_s), "redis.clock").found:
                pass
        assert {told(report, check).mark for check in ("nats.clock", "redis.clock")} == {mark}


async def test_drifted_and_missing_streams_are_told(clinic: EmbeddedServers, client: Client) -> None:
    """Each with what it is and what it should be."""
    tasks = (await ask_jetstream(client, "STREAM.INFO.TASKS"))["config"]
    await ask_jetstream(client, "STREAM.UPDATE.TASKS", tasks | {"duplicate_window": 60 * 10**9, "discard": "old"})
    await ask_jetstream(client, "STREAM.DELETE.DEAD")
    report = await examined(clinic)
    assert told(report, "nats.streams").found == "missing: DEAD"
    assert "discard is 'old', wanted 'new'" in told(report, "nats.drift").found
    assert "stored twice" in told(report, "nats.duplicate_window").found
    assert report.exit_code(strict=False) == 1


async def test_what_waits_is_counted(clinic: EmbeddedServers, client: Client) -> None:
    """Dead letters, schedules, and tasks for agents without a worker, with a consumer or without."""
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


async def test_consumers_that_would_lose_work_are_told(clinic: EmbeddedServers, client: Client) -> None:
    """Made by somebody else, in another way than a worker does."""
    wanted = Source(subjects.TASKS, "Hasty", subjects.tasks_of("Hasty"), 30.0).configuration()
    changed = wanted | {"ack_wait": 5 * 10**8, "max_deliver": 3}
    await ask_jetstream(
        client, "CONSUMER.DURABLE.CREATE.TASKS.Hasty", {"stream_name": subjects.TASKS, "config": changed}
    )
    told_of = [one.found for one in (await examined(clinic)).findings if one.check == "nats.consumer"]
    assert ["ack_wait of 0.5 s" in told_of[0], "gives up after 3" in told_of[1]] == [True, True]


async def test_live_workers_are_read_from_their_bucket(clinic: EmbeddedServers, client: Client) -> None:
    """Two that contradict each other; their pages are asked for, and an idle agent is noted."""
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


async def test_a_cluster_with_single_copies_is_told(clinic: EmbeddedServers, tmp_path: Path) -> None:
    """Three real servers: one copy of each stream is a warning, three are fine, and a lost server is seen."""
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
