"""One key makes all that it can of each kind, over HTTP and NATS, while others work: nobody is shut out."""

import asyncio
import itertools
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nats
import pytest
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.callers import Caller, keeper_of
from tasklore.contracts.messages import PersonRequest, PipelineRequest
from tasklore.memory.holdings.store import OWNER_PART, OWNERS_PART, Holdings, Store
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.supervisor.http.admission.key_file import make_key
from tests.acceptance.system import NAPPER, PROBE, System
from tests.http_client import Answer, ask
from tests.receiver import SECRET

MIB = 1024**2
#: What a pipeline of one nap is declared as.
NAPPING = {
    "name": "napping",
    "phases": [
        {
            "name": "nap",
            "agent": "NapAgent",
            "task": "take_nap",
            "parameters": {"ms": 1},
        }
    ],
}
#: Far above what it takes, so that a busy machine fails no test.
PATIENCE_S = 120.0
#: Requests of the flood that are under way at once, and seconds between those of the others.
AT_ONCE = 8
BETWEEN_S = 0.25
#: Tasks of the others that end while the flood goes on.
ENOUGH = 5
#: What Valkey and a stream use beside what is counted: their own books, functions, and the deployment's things.
SLACK = 24 * MIB


@dataclass
class Flood:
    """The one that sends: its key's name, how many things were taken and refused by kind, and a task that waits."""

    url: str
    secret: str
    client: nats.NATS
    number: "itertools.count[int]" = field(default_factory=itertools.count)
    taken: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    waiting: str = ""

    async def post(self, path: str, body: Any) -> Answer:
        headers = {"Authorization": f"Bearer {self.secret}"}
        async with asyncio.timeout(PATIENCE_S):
            return await ask(self.url, "POST", path, body, headers)

    async def make(self, kind: str) -> int:
        """Have a thing of *kind* kept, or more of them, and return how many were asked for."""
        number, is_taken = await KINDS[kind](self, next(self.number))
        (self.taken if is_taken else self.refused)[kind] += number
        return number


async def _post(
    flood: Flood, path: str, body: Any, number: int = 1
) -> tuple[int, bool]:
    answer = await flood.post(path, body)
    while answer.status == 429 and answer.body["type"].endswith(":rate"):
        # The rate that is shipped; what is refused for it is asked for again.
        await asyncio.sleep(0.1)
        answer = await flood.post(path, body)
    assert answer.status < 300 or answer.status in (409, 429), answer
    if answer.status == 429:
        assert "raise TASKLORE_" in answer.body["detail"], answer.body
    return number, answer.status < 300


def a_nap(**more: Any) -> dict[str, Any]:
    nap = {"agent_id": "NapAgent", "task": "take_nap", "parameters": {"ms": 1}}
    return {**nap, "wait_seconds": 0, **more}


async def send_later(flood: Flood, number: int) -> tuple[int, bool]:
    """A task in 28 days, whose conversation is named at length so that it is large, with an address."""
    body = {
        "agent_id": "ProbeAgent",
        "task": "fresh",
        "parameters": {"label": "x" * 20_000, "number": number},
        "wait_seconds": 0,
        "after": 28 * 86_400,
        "callback_url": f"http://127.0.0.1:1/{number}",
    }
    return await _post(flood, "/v1/tasks", body)


async def send_now(flood: Flood, number: int) -> tuple[int, bool]:
    return await _post(flood, "/v1/tasks", a_nap(user=f"user{number}"))


async def send_words(flood: Flood, number: int) -> tuple[int, bool]:
    words = f"note number {number}: " + "so many words " * 600
    return await _post(flood, "/v1/requests", {"text": words, "wait_seconds": 0})


async def send_turns(flood: Flood, number: int) -> tuple[int, bool]:
    turns = [
        {
            "turn_id": f"{number}-{one}",
            "conversation_id": f"c{number}",
            "text": f"turn {number}.{one}: " + "so many words " * 10,
        }
        for one in range(100)
    ]
    body = {"turns": turns}
    return await _post(flood, f"/v1/memory/user{number}/turns", body, number=100)


async def send_signal(flood: Flood, number: int) -> tuple[int, bool]:
    path = f"/v1/tasks/{flood.waiting}/signals/s{number}"
    return await _post(flood, path, {"value": "x" * 2000})


async def send_run(flood: Flood, number: int) -> tuple[int, bool]:
    body = {"pipeline": NAPPING, "inputs": {}, "keep": True}
    return await _post(flood, "/v1/pipelines", body)


async def send_schedule(flood: Flood, number: int) -> tuple[int, bool]:
    body = {
        "agent_id": "NapAgent",
        "task": "take_nap",
        "parameters": {"ms": 1},
        "every": 86_400 * 7,
    }
    answer = await flood.post("/v1/schedules", body)
    assert answer.status in (201, 429), answer
    return 1, answer.status == 201


async def ask_at_nats(flood: Flood, number: int) -> tuple[int, bool]:
    """Words of one user by a program."""
    request = PersonRequest(
        text=f"note {number}: " + "so many words " * 600, user_id="flood", wait_ms=0
    )
    subject = subjects.requests("SupervisorAgent")
    reply = json.loads(
        (
            await flood.client.request(
                subject, request.model_dump_json().encode(), timeout=PATIENCE_S
            )
        ).data
    )
    is_refused = "raise TASKLORE_" in reply["text"]
    assert is_refused == (reply["request_id"] == "unknown"), reply
    return 1, not is_refused


async def run_at_nats(flood: Flood, number: int) -> tuple[int, bool]:
    request = PipelineRequest(
        action="run", pipeline=NAPPING, user_id="flood", keep=True
    )
    reply = json.loads(
        (
            await flood.client.request(
                subjects.pipelines("SupervisorAgent"),
                request.model_dump_json().encode(),
                timeout=PATIENCE_S,
            )
        ).data
    )
    is_refused = "raise TASKLORE_" in reply["text"]
    assert is_refused == (reply["kind"] == "refused"), reply
    return 1, not is_refused


Make = Callable[[Flood, int], Awaitable[tuple[int, bool]]]
KINDS: dict[str, Make] = {
    "tasks in 28 days, with an address": send_later,
    "tasks": send_now,
    "words": send_words,
    "turns": send_turns,
    "signals": send_signal,
    "runs": send_run,
    "schedules": send_schedule,
    "words at NATS": ask_at_nats,
    "runs at NATS": run_at_nats,
}
#: How often each is asked for among a hundred.
WEIGHTS = (28, 20, 16, 4, 15, 2, 5, 8, 2)


async def flood_with(flood: Flood, number: int, others: list[float]) -> None:
    """Ask for *number* things of all kinds, and up to four times as many while too few of the *others* have ended."""
    choices = random.Random(7)
    made = 0
    kinds = list(KINDS)

    async def go_on() -> None:
        nonlocal made
        while made < number or (len(others) < ENOUGH and made < 4 * number):
            [kind] = choices.choices(kinds, WEIGHTS)
            asked = await flood.make(kind)
            made += asked

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(go_on())


async def work_on(
    url: str, secret: str, took: list[float], until: asyncio.Event
) -> None:
    """Have tasks of another key done one after the other, and add to *took* how many ms each took."""
    headers = {"Authorization": f"Bearer {secret}"}
    while not until.is_set():
        begun = time.monotonic()
        body = a_nap(wait_seconds=60)
        async with asyncio.timeout(PATIENCE_S):
            answer = await ask(url, "POST", "/v1/tasks", body, headers)
        assert answer.status == 200, answer
        assert answer.body["report"]["status"] == "completed"
        took.append((time.monotonic() - begun) * 1000)
        await asyncio.sleep(BETWEEN_S)


def describe(took: list[float]) -> str:
    """Return how many tasks there were, and in which time half of them and most of them ended."""
    times = sorted(took) or [0.0]
    half, most = (times[len(times) * part // 100] for part in (50, 95))
    return f"{len(took)} tasks, p50 {half:.0f} ms, p95 {most:.0f} ms"


async def bytes_of(client: nats.NATS, *streams: str) -> int:
    infos = [await ask_jetstream(client, f"STREAM.INFO.{one}") for one in streams]
    return sum(int(one["state"]["bytes"]) for one in infos)


async def used_memory(redis: Redis) -> int:
    return int((await redis.info("memory"))["used_memory"])


@pytest.mark.parametrize(
    ("number", "most"),
    [(1_500, 8 * MIB // 3), pytest.param(100_000, 64 * MIB, marks=pytest.mark.long)],
)
async def test_one_key_fills_neither_server_and_others_go_on(
    own_system: System, tmp_path: Path, number: int, most: int
) -> None:
    """Bytes of both servers stay below the owners' part of the bounds, and a newcomer has a place of each kind."""
    file = tmp_path / "keys.json"
    keys = {
        name: make_key(file, name, ("ask", "read"), None)
        for name in ("flood", "other", "newcomer")
    }
    own_system.worker(NAPPER, PROBE).ready()
    supervisor = own_system.supervisor(
        api_keys_file=file,
        tasks_max_bytes=most,
        kept_max_bytes=most,
        webhook_secret=SECRET,
        webhook_networks="127.0.0.1/32",
        llm_base_url="",
        llm_api_key="",
    ).ready()
    await asyncio.to_thread(supervisor.await_agents, 2)
    async with AsyncExitStack() as stack:
        client = await nats.connect(own_system.servers.nats_url)
        stack.push_async_callback(client.close)
        redis = Redis.from_url(own_system.servers.redis_url)
        stack.push_async_callback(redis.aclose)
        bounds: dict[Store, int] = {"queue": most, "store": most}
        holdings = Holdings(redis, bounds, deadline_s=PATIENCE_S)

        before: list[float] = []
        during: list[float] = []
        calm = asyncio.Event()
        working = asyncio.create_task(
            work_on(supervisor.api, keys["other"], before, calm)
        )
        await asyncio.sleep(min(15.0, number / 250))
        calm.set()
        await working
        at_first = await used_memory(redis)

        flood = Flood(supervisor.api, keys["flood"], client)
        sent = await flood.post("/v1/tasks", a_nap(after=28 * 86_400))
        flood.waiting = sent.body["task_id"]
        over = asyncio.Event()
        working = asyncio.create_task(
            work_on(supervisor.api, keys["other"], during, over)
        )
        begun = time.monotonic()
        await flood_with(flood, number, during)
        took_s = time.monotonic() - begun
        ended_meanwhile = len(during)
        over.set()
        await working

        memory = await used_memory(redis) - at_first
        tasks = await bytes_of(client, subjects.TASKS, subjects.WAITING, subjects.LATER)
        turns = await bytes_of(client, subjects.TURNS)
        totals = await holdings.totals()
        kept = await holdings.kept(
            keeper_of(Caller(name="flood", roles=frozenset({"ask"})), None)
        )
        counted = ", ".join(f"{name} {size // 1024}" for name, size in kept.items())
        made = sum(flood.taken.values()) + sum(flood.refused.values())
        lines = [
            f"{made} things in {took_s:.0f} s, {made / took_s:.0f} a second",
            *(
                f"{kind}: {flood.taken[kind]} kept, {flood.refused[kind]} refused"
                for kind in KINDS
            ),
            f"counted for the key, in KiB: {counted}",
            f"Valkey +{memory / MIB:.1f} MiB, queues {tasks / MIB:.1f} MiB, TURNS {turns / MIB:.1f} MiB",
            f"the owners' part of each store: {OWNERS_PART * most / MIB:.1f} MiB",
            *(
                f"others {name}: {describe(took)}"
                for name, took in (("before", before), ("during", during))
            ),
        ]
        sys.stdout.write("\n" + "\n".join(lines) + "\n")
        assert made >= number
        assert ended_meanwhile >= ENOUGH, f"while {made} things were asked for"
        assert {"tasks in 28 days, with an address", "words"} <= flood.refused.keys()
        assert flood.taken["schedules"] <= 1_000
        assert totals["queue"] <= OWNERS_PART * most
        # A report may be larger than what was set aside for it.
        assert totals["store"] <= 1.02 * OWNERS_PART * most
        assert sum(kept.values()) <= 2.02 * OWNER_PART * OWNERS_PART * most
        assert tasks <= OWNERS_PART * most
        assert turns <= OWNERS_PART * most
        # The ledger has a copy of each open task.
        assert memory <= 2 * OWNERS_PART * most + SLACK
        newcomer = Flood(supervisor.api, keys["newcomer"], client)
        sent = await newcomer.post("/v1/tasks", a_nap(after=28 * 86_400))
        newcomer.waiting = sent.body["task_id"]
        for kind, make in KINDS.items():
            if not kind.endswith("NATS"):
                assert (await make(newcomer, next(newcomer.number)))[1], kind


async def test_a_request_that_is_repeated_at_nats_is_counted_once(
    own_system: System, tmp_path: Path
) -> None:
    """Under its id, as is done after `pending`; one under another id is counted."""
    file = tmp_path / "keys.json"
    make_key(file, "any", ("ask",), None)
    own_system.worker(NAPPER).ready()
    supervisor = own_system.supervisor(
        api_keys_file=file, llm_base_url="", llm_api_key=""
    ).ready()
    await asyncio.to_thread(supervisor.await_agents, 1)
    async with AsyncExitStack() as stack:
        client = await nats.connect(own_system.servers.nats_url)
        stack.push_async_callback(client.close)
        redis = Redis.from_url(own_system.servers.redis_url)
        stack.push_async_callback(redis.aclose)
        holdings = Holdings(redis, {"queue": MIB}, deadline_s=PATIENCE_S)

        async def count_after(request_id: str) -> int:
            """Ask under *request_id*, and return the bytes of words and turns that the user keeps."""
            request = PersonRequest(
                text="so many words", request_id=request_id, user_id="ana", wait_ms=0
            )
            await client.request(
                subjects.requests("SupervisorAgent"),
                request.model_dump_json().encode(),
                timeout=PATIENCE_S,
            )
            kept = await holdings.kept(keeper_of(None, "ana"))
            return kept["words"] + kept["turns"]

        first = await count_after("r-1")
        assert [await count_after("r-1") for _ in range(3)] == [first] * 3
        assert await count_after("r-2") == 2 * first
