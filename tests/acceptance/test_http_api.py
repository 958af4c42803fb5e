"""The HTTP API as it is served: two supervisors and a worker, killed, asked all at once, held to its own document."""

import asyncio
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from redis.asyncio import Redis

from contracts.subjects import turns
from deploy.credentials import make_certificates
from memory.conversations.observations import Observations
from runtime.messaging.connection import connected
from runtime.servers.embedded import EmbeddedServers
from supervisor.http.admission.key_file import make_key
from tests.acceptance.house import AGENTS, BUDGET, PROBE, House, Served
from tests.http_client import PATIENCE_S, Answer, Connection, ask

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
TAVERN = str(AGENTS / "tavern.py")
#: Where it is tomorrow before it is today in the other, at every moment.
EARLIEST, LATEST = "Pacific/Kiritimati", "Pacific/Pago_Pago"
BUDGET_QUESTION = "limit 50k, spent {spent}: how is my budget?"


@dataclass(frozen=True)
class Replicas:
    """A house with two supervisors, and the header of a key that both know."""

    house: House
    first: Served
    second: Served
    key: dict[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Run two supervisors of one id, and one worker."""
    folder = tmp_path_factory.mktemp("http")
    servers = EmbeddedServers(folder / "servers")
    asyncio.run(servers.start())
    house = House(servers, folder)
    keys = folder / "keys.json"
    key = {"Authorization": f"Bearer {make_key(keys, 'tests', ('admin',), None)}"}
    settings = {"api_keys_file": keys, "api_rate": 100_000, "api_burst": 100_000, "api_unknown_rate": 1_000}
    try:
        worker = house.worker(BUDGET, PROBE, TAVERN, "workers.agents.decision", "workers.agents.memory_worker")
        first, second = house.supervisor(**settings), house.supervisor(**settings)
        worker.ready()
        yield Replicas(house, first.ready(), second.ready(), key)
    finally:
        house.close()
        asyncio.run(servers.stop())


def wait(label: str, ms: int) -> dict[str, object]:
    """Return a task that takes *ms*."""
    return {"agent_id": "ProbeAgent", "task": "fresh", "parameters": {"label": label, "ms": ms}}


async def began(house: House, label: str) -> None:
    """Return once a run of *label* has begun."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if house.runs(label):
                return
            await asyncio.sleep(0.02)


async def test_a_sentence_is_answered_and_known_by_the_other_replica(served: Replicas) -> None:
    """The whole way: words, a worker, a report, and the same reply from a process that had no part in it."""
    body = {"text": BUDGET_QUESTION.format(spent=42_000), "user": "ann"}
    answer = await ask(served.first.api, "POST", "/v1/requests", body, served.key)
    assert (answer.status, answer.body["reply"]["report"]["result"]["remaining"]) == (200, 8000)

    path = f"/v1/requests/{answer.body['request_id']}"
    assert (await ask(served.second.api, "GET", path, headers=served.key)).body["reply"] == answer.body["reply"]


async def test_a_running_task_is_cancelled_on_either(served: Replicas) -> None:
    """It is sent by one supervisor and cancelled by the other."""
    sent = await ask(served.first.api, "POST", "/v1/tasks", wait("cut", 60_000) | {"wait_seconds": 0}, served.key)
    assert sent.status == 202
    await began(served.house, "cut")
    came = await ask(served.second.api, "DELETE", sent.headers["location"], headers=served.key)

    assert came.body == {"outcome": "cancelled", "status": "cancelled"}
    assert (await ask(served.first.api, "GET", sent.headers["location"], headers=served.key)).body["state"] == "done"


async def test_an_agent_in_a_world_decides(served: Replicas) -> None:
    """Senses and messages in, an action out; what the agent refuses comes back in its words."""
    moment = {
        "name": "Ana",
        "sensory_data": {
            "position": {"x": 2, "z": 1},
            "worldObjects": [{"type": "coin", "position": {"x": 5, "z": 5}}],
        },
        "simulation_time": 7,
        "agents": ["Bob"],
        "new_messages": [{"sender": "Bob", "message": "Where are the coins?"}],
    }
    path = "/v1/agents/DecisionAgent/brain/decide"
    decided = await ask(served.first.api, "POST", path, moment, served.key)
    assert (decided.status, decided.body["action"], decided.body["target"]) == (200, "text", {"agent": "Bob"})

    refused = await ask(served.first.api, "POST", path, moment | {"agents": []}, served.key)
    assert (refused.status, "add it there" in refused.body["detail"]) == (422, True)


async def test_the_trace_of_a_caller_goes_on_to_the_report_and_to_the_turns(served: Replicas) -> None:
    """Unchanged, although nobody here records it; a request without one gets none."""
    given = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "tracestate": "vendor=1"}
    for headers, user in ((given, "traced"), ({}, "untraced")):
        body = {"text": BUDGET_QUESTION.format(spent=41_000), "user": user}
        answer = await ask(served.first.api, "POST", "/v1/requests", body, served.key | headers)
        task_id = answer.body["reply"]["report"]["task_id"]
        async with connected(served.house.servers.nats_url, "looking") as client:
            for stream, subject in (("REPORTS", f"reports.SupervisorAgent.{task_id}.1"), ("TURNS", turns(user))):
                stored = await client.request(f"$JS.API.DIRECT.GET.{stream}.{subject}", timeout=PATIENCE_S)
                kept = stored.headers or {}
                assert {name: kept[name] for name in ("traceparent", "tracestate") if name in kept} == headers


async def test_senses_and_messages_are_all_that_a_world_has_to_send(served: Replicas) -> None:
    """The agent's own name and the time of what it saw last stand for what is not said."""
    path = "/v1/agents/DecisionAgent/brain/decide"
    told = {"sensory_data": {"position": {"x": 2, "z": 1}}, "conversation": "scarce"}
    first = await ask(served.first.api, "POST", path, told | {"simulation_time": 41.5}, served.key)
    heard = [{"sender": "Bob", "message": "Where are you?"}]
    second = await ask(served.first.api, "POST", path, told | {"new_messages": heard}, served.key)
    assert (first.status, second.status) == (200, 200), second.body
    assert (second.body["action"], second.body["target"]) == ("text", {"agent": "Bob"})

    async with Redis.from_url(served.house.servers.redis_url) as redis:
        seen = await Observations(redis, PATIENCE_S).recent("scarce", 5)
    assert [one.time for one in seen] == [41.5, 41.5]


async def test_two_hundred_at_once_lose_nobody(served: Replicas) -> None:
    """Over both supervisors, each with its own answer, while each is asked twice under one id."""

    async def one(number: int, served_by: Served) -> object:
        body = {"text": BUDGET_QUESTION.format(spent=10_000 + number)}
        key = served.key | {"Idempotency-Key": f"crowd-{number}"}
        answer = await ask(served_by.api, "POST", "/v1/requests", body, key)
        return answer.body["reply"]["report"]["result"]["remaining"]

    both = served.first, served.second
    remaining = await asyncio.gather(*(one(number % 200, both[number % 2 ^ number // 200]) for number in range(400)))

    assert remaining == [40_000 - number % 200 for number in range(400)]


@dataclass(frozen=True)
class Abroad:
    """A supervisor elsewhere that speaks TLS behind a proxy, and the header of its key."""

    api: str
    tls: ssl.SSLContext
    key: dict[str, str]

    async def answer(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """Return what *method* of *path* answers, with the key unless there are other *headers*."""
        async with Connection(self.api, self.tls) as asked:
            asked.send(method, path, body, self.key if headers is None else headers)
            return await asked.answer()


@pytest.fixture(scope="module")
def abroad(served: Replicas, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Abroad]:
    """Run a supervisor as settings of its own say."""
    folder = tmp_path_factory.mktemp("abroad")
    make_certificates(folder / "tls")
    key = {"Authorization": f"Bearer {make_key(folder / 'keys.json', 'safe', ('ask',), None)}"}
    supervisor = served.house.supervisor(
        api_keys_file=folder / "keys.json",
        api_tls_cert_file=folder / "tls" / "nats.crt",
        api_tls_key_file=folder / "tls" / "nats.key",
        api_trusted_proxies="127.0.0.0/8",
        time_zone=EARLIEST,
    ).ready()
    assert supervisor.api.startswith("https://")
    yield Abroad(supervisor.api, ssl.create_default_context(cafile=folder / "tls" / "ca.crt"), key)
    supervisor.kill()


async def test_a_supervisor_speaks_tls_and_tells_strangers_behind_its_proxy_apart(abroad: Abroad) -> None:
    """As its settings say: a stranger who has come too often says nothing about the next."""

    async def status(host: str) -> int:
        return (await abroad.answer("GET", "/v1/agents", headers={"X-Forwarded-For": host})).status

    assert (await abroad.answer("GET", "/v1/agents")).status == 200
    told: list[int] = []
    # Room for more comes back while these are sent: on a slow machine it takes many more than the burst.
    while 429 not in told and len(told) < 500:
        told.append(await status("192.0.2.1"))
    assert set(told) == {401, 429}
    assert await status("192.0.2.2") == 401


@pytest.mark.parametrize(("asked", "zone"), [({}, EARLIEST), ({"time_zone": LATEST}, LATEST)])
async def test_tomorrow_is_that_of_the_request_or_else_of_the_supervisor(
    abroad: Abroad, asked: dict[str, str], zone: str
) -> None:
    """As the task is given it, the whole way through; the two zones never have the same day."""

    def tomorrow() -> str:
        return (datetime.now(ZoneInfo(zone)) + timedelta(days=1)).date().isoformat()

    before = tomorrow()
    answer = await abroad.answer("POST", "/v1/requests", {"text": "reserve a table for tomorrow", **asked})
    assert answer.status == 200, answer.body
    assert answer.body["reply"]["report"]["result"]["day"] in {before, tomorrow()}


async def test_what_a_killed_supervisor_had_taken_is_told_by_another(served: Replicas) -> None:
    """The task runs on; whoever asks the other replica gets its report."""
    doomed = served.house.supervisor(api_port=0).ready()
    sent = asyncio.create_task(
        ask(doomed.api, "POST", "/v1/tasks", wait("orphan", 4000), {"Idempotency-Key": "orphan-1"})
    )
    await began(served.house, "orphan")
    doomed.kill()
    with pytest.raises((OSError, asyncio.IncompleteReadError)):
        await sent
    again = await ask(
        served.first.api, "POST", "/v1/tasks", wait("orphan", 4000), served.key | {"Idempotency-Key": "orphan-1"}
    )

    assert (again.status, again.body["report"]["status"]) == (200, "completed")
    assert len(served.house.runs("orphan")) == 1


async def test_a_supervisor_that_is_asked_to_leave_answers_first(served: Replicas) -> None:
    """Who waits gets the report; the process then ends by itself, with nothing held against it."""
    leaving = served.house.supervisor(api_port=0).ready()
    waiting = asyncio.create_task(ask(leaving.api, "POST", "/v1/tasks", wait("last", 1000)))
    await began(served.house, "last")
    leaving.terminate()

    assert (await waiting).body["report"]["status"] == "completed"
    assert await asyncio.to_thread(leaving.wait) == 0


def hold_to_document(served: Replicas, *options: str) -> str:
    """Return what schemathesis found, having sent what the document allows and what it does not."""
    program = shutil.which("st", path=str(Path(sys.executable).parent))
    assert program is not None
    command = [program, "--config-file", str(CONFIGURATION), "run", f"{served.first.api}/openapi.json"]
    header = f"Authorization: {served.key['Authorization']}"
    done = subprocess.run(
        [*command, "--header", header, "--request-timeout", "60", "--generation-deterministic", *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=served.house.folder,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return done.stdout


def test_the_document_is_kept(served: Replicas) -> None:
    """Nothing that a program made from it would send or expect is answered otherwise."""
    assert "passed" in hold_to_document(served, "--phases", "examples,coverage")


@pytest.mark.long
def test_the_document_is_kept_whatever_is_sent(served: Replicas) -> None:
    """With hundreds of examples an operation, and sequences of them."""
    assert "passed" in hold_to_document(served, "--max-examples", "200")
