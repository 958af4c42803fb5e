"""The HTTP API as it is served: by a supervisor that is killed, behind a proxy, and held to its own document."""

import asyncio
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from redis.asyncio import Redis

from deploy.credentials import make_certificates
from tasklore.contracts.subjects import turns
from tasklore.memory.conversations.observations import Observations
from tasklore.runtime.messaging.connection import connected
from tasklore.supervisor.http.admission.key_file import make_key
from tests.acceptance.system import (
    AGENTS,
    BUDGET,
    PROBE,
    Served,
    System,
    running_system,
)
from tests.http_client import PATIENCE_S, Answer, Connection, ask

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
TAVERN = str(AGENTS / "tavern.py")
#: Where it is tomorrow before it is today in the other, at every moment.
EARLIEST = "Pacific/Kiritimati"
LATEST = "Pacific/Pago_Pago"
BUDGET_QUESTION = "limit 50k, spent {spent}: how is my budget?"


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Run one worker; a test starts supervisors of its own beside the one of `served`."""
    with running_system(tmp_path_factory.mktemp("http")) as system:
        system.worker(
            BUDGET,
            PROBE,
            TAVERN,
            "tasklore.workers.agents.decision",
            "tasklore.workers.agents.memory_worker",
        ).ready()
        yield system


@pytest.fixture(scope="module")
def key(system: System) -> dict[str, str]:
    """Return the header of a key that the supervisor knows."""
    return {
        "Authorization": f"Bearer {make_key(system.folder / 'keys.json', 'tests', ('admin',), None)}"
    }


@pytest.fixture(scope="module")
def served(system: System, key: dict[str, str]) -> Served:
    """Run a supervisor whose API demands keys."""
    settings = {"api_rate": 100_000, "api_burst": 100_000, "api_unknown_rate": 1_000}
    return system.supervisor(
        api_keys_file=system.folder / "keys.json", **settings
    ).ready()


def wait(label: str, ms: int) -> dict[str, object]:
    """Return a task that takes *ms*."""
    return {
        "agent_id": "ProbeAgent",
        "task": "fresh",
        "parameters": {"label": label, "ms": ms},
    }


async def began(system: System, label: str) -> None:
    """Return once a run of *label* has begun."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if system.runs(label):
                return
            await asyncio.sleep(0.02)


async def test_the_trace_of_a_caller_goes_on_to_the_report_and_to_the_turns(
    system: System, served: Served, key: dict[str, str]
) -> None:
    """Unchanged, although nobody here records it; a request without one gets none."""
    given = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "tracestate": "vendor=1"}
    for headers, user in ((given, "traced"), ({}, "untraced")):
        body = {"text": BUDGET_QUESTION.format(spent=41_000), "user": user}
        answer = await ask(served.api, "POST", "/v1/requests", body, key | headers)
        task_id = answer.body["reply"]["report"]["task_id"]
        async with connected(system.servers.nats_url, "looking") as client:
            for stream, subject in (
                ("REPORTS", f"reports.SupervisorAgent.{task_id}.1"),
                ("TURNS", turns(user)),
            ):
                stored = await client.request(
                    f"$JS.API.DIRECT.GET.{stream}.{subject}", timeout=PATIENCE_S
                )
                kept = stored.headers or {}
                assert {
                    name: kept[name]
                    for name in ("traceparent", "tracestate")
                    if name in kept
                } == headers


async def test_senses_and_messages_are_all_that_a_world_has_to_send(
    system: System, served: Served, key: dict[str, str]
) -> None:
    """The agent's own name and the time of what it saw last stand for what is not said."""
    path = "/v1/agents/DecisionAgent/brain/decide"
    told = {"sensory_data": {"position": {"x": 2, "z": 1}}, "conversation": "scarce"}
    first = await ask(served.api, "POST", path, told | {"simulation_time": 41.5}, key)
    heard = [{"sender": "Bob", "message": "Where are you?"}]
    second = await ask(served.api, "POST", path, told | {"new_messages": heard}, key)
    assert (first.status, second.status) == (200, 200), second.body
    assert (second.body["action"], second.body["target"]) == ("text", {"agent": "Bob"})

    async with Redis.from_url(system.servers.redis_url) as redis:
        seen = await Observations(redis, PATIENCE_S).recent("scarce", 5)
    assert [one.time for one in seen] == [41.5, 41.5]


async def test_two_hundred_at_once_lose_nobody(
    system: System, served: Served, key: dict[str, str]
) -> None:
    """Over two supervisors each has its own answer, while each is asked twice under one id."""
    other = system.supervisor(
        api_keys_file=system.folder / "keys.json", api_rate=100_000, api_burst=100_000
    ).ready()

    async def one(number: int, served_by: Served) -> object:
        body = {"text": BUDGET_QUESTION.format(spent=10_000 + number)}
        headers = key | {"Idempotency-Key": f"crowd-{number}"}
        while True:
            answer = await ask(served_by.api, "POST", "/v1/requests", body, headers)
            if answer.status != 503:
                break
            # On a machine that is busy enough the store is late for some of them: asking again is the cure it names.
            await asyncio.sleep(float(answer.headers["retry-after"]))
        return answer.body["reply"]["report"]["result"]["remaining"]

    both = served, other
    remaining = await asyncio.gather(
        *(one(number % 200, both[number % 2 ^ number // 200]) for number in range(400))
    )
    other.kill()

    assert remaining == [40_000 - number % 200 for number in range(400)]


async def test_a_supervisor_behind_a_proxy_speaks_tls_and_tells_unknown_clients_and_days_apart(
    served: Served, system: System, tmp_path: Path
) -> None:
    """As its settings say; tomorrow is that of the request's time zone, or else of the supervisor's."""
    make_certificates(tmp_path / "tls")
    key = {
        "Authorization": f"Bearer {make_key(tmp_path / 'keys.json', 'safe', ('ask',), None)}"
    }
    tls = ssl.create_default_context(cafile=tmp_path / "tls" / "ca.crt")
    supervisor = system.supervisor(
        api_keys_file=tmp_path / "keys.json",
        api_tls_cert_file=tmp_path / "tls" / "nats.crt",
        api_tls_key_file=tmp_path / "tls" / "nats.key",
        api_trusted_proxies="127.0.0.0/8",
        time_zone=EARLIEST,
    ).ready()

    async def answer(
        method: str, path: str, body: object = None, headers: dict[str, str] = key
    ) -> Answer:
        async with Connection(supervisor.api, tls) as asked:
            asked.send(method, path, body, headers)
            return await asked.answer()

    async def status(host: str) -> int:
        return (
            await answer("GET", "/v1/agents", headers={"X-Forwarded-For": host})
        ).status

    assert supervisor.api.startswith("https://")
    assert (await answer("GET", "/v1/agents")).status == 200
    statuses: list[int] = []
    # Room for more comes back while these are sent: on a slow machine it takes many more than the burst.
    while 429 not in statuses and len(statuses) < 500:
        statuses.append(await status("192.0.2.1"))
    assert set(statuses) == {401, 429}
    assert await status("192.0.2.2") == 401
    # The two zones never have the same day.
    for asked, zone in (({}, EARLIEST), ({"time_zone": LATEST}, LATEST)):
        before = _tomorrow_in(zone)
        reserved = await answer(
            "POST", "/v1/requests", {"text": "reserve a table for tomorrow", **asked}
        )
        assert reserved.status == 200, reserved.body
        assert reserved.body["reply"]["report"]["result"]["day"] in {
            before,
            _tomorrow_in(zone),
        }
    supervisor.kill()


def _tomorrow_in(zone: str) -> str:
    return (datetime.now(ZoneInfo(zone)) + timedelta(days=1)).date().isoformat()


async def test_what_a_killed_supervisor_had_taken_is_told_by_another(
    system: System, served: Served, key: dict[str, str]
) -> None:
    doomed = system.supervisor(api_port=0).ready()
    sent = asyncio.create_task(
        ask(
            doomed.api,
            "POST",
            "/v1/tasks",
            wait("orphan", 2500),
            {"Idempotency-Key": "orphan-1"},
        )
    )
    await began(system, "orphan")
    doomed.kill()
    with pytest.raises((OSError, asyncio.IncompleteReadError)):
        await sent
    again = await ask(
        served.api,
        "POST",
        "/v1/tasks",
        wait("orphan", 2500),
        key | {"Idempotency-Key": "orphan-1"},
    )

    assert (again.status, again.body["report"]["status"]) == (200, "completed")
    assert len(system.runs("orphan")) == 1


def hold_to_document(
    system: System, served: Served, key: dict[str, str], *options: str
) -> str:
    """Return what schemathesis found, having sent what the document allows and what it does not."""
    program = shutil.which("st", path=str(Path(sys.executable).parent))
    assert program is not None
    command = [
        program,
        "--config-file",
        str(CONFIGURATION),
        "run",
        f"{served.api}/openapi.json",
    ]
    header = f"Authorization: {key['Authorization']}"
    done = subprocess.run(
        [
            *command,
            "--header",
            header,
            "--request-timeout",
            "60",
            "--generation-deterministic",
            *options,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=system.folder,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return done.stdout


# Half a minute of a core, by another program that is waited for: much beside others.
@pytest.mark.timeout(400)
def test_the_document_is_kept(
    system: System, served: Served, key: dict[str, str]
) -> None:
    """Nothing that a program made from it would send or expect is answered otherwise."""
    assert "passed" in hold_to_document(
        system, served, key, "--phases", "examples,coverage"
    )


@pytest.mark.long
def test_the_document_is_kept_whatever_is_sent(
    system: System, served: Served, key: dict[str, str]
) -> None:
    assert "passed" in hold_to_document(system, served, key, "--max-examples", "200")
