"""Schemas of clients that cost more than they look: refused with field and cure, and nobody else waits."""

import asyncio
import gc
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import InvalidInput
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.chat.forms import ResponseFormat
from tasklore.supervisor.http.chat.structured import AnswerFormat
from tasklore.supervisor.json_schemas import JsonSchemas, Misfit
from tasklore.supervisor.operations.refusals import Refused
from tests.integration.http_stand import http_stand

#: Seconds between two beats of the loop, and those for which this process may compute between them: the first answer
#: of an application takes 0.16, and no other case 0.04.
BEAT_S = 0.005
HELD_S = 0.25
#: To go through so many objects so often takes longer than that.
MANY_OBJECTS = 500_000
COLLECTIONS = 8
#: Bytes by which this process may grow, and those that a child may have.
MOST = 200 * 1024**2

ALL_OF_IT = r"[\p{L}\p{M}\p{N}\p{P}\p{S}]"


def named(*patterns: str) -> dict[str, Any]:
    return {"type": "object", "patternProperties": dict.fromkeys(patterns, True)}


def nested(pattern: str, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"pattern": pattern}
    for number in range(depth):
        schema = {
            "properties": {"a": schema},
            "patternProperties": {f"{pattern}{number}": schema},
        }
    return schema


#: Each compiles to hundreds of megabytes, or takes seconds, where nothing limits it.
BOMBS = {
    "many classes": named(*(rf"\pL{{100}}{n}" for n in range(950))),
    "fewer classes": named(*(rf"\pL{{100}}{n}" for n in range(200))),
    "words": named(*(rf"[\w\pL]{{200}}{n}" for n in range(300))),
    "not words": named(*(rf"\W{{2000}}{n}" for n in range(300))),
    "no class": named(*(rf"[^a]{{2000}}{n}" for n in range(300))),
    "ranges": named(*(rf"[\u0100-\uffff]{{5000}}{n}" for n in range(300))),
    "any sign": named(*(rf".{{3000}}{n}" for n in range(300))),
    "at least": named(*(rf"\pL{{150,}}{n}" for n in range(300))),
    "up to": named(*(rf"\pL{{0,150}}{n}" for n in range(300))),
    "nested counts": named(*(rf"((a{{99}}){{99}}){{99}}{n}" for n in range(300))),
    "choices": named(*(rf"({'|'.join([ALL_OF_IT] * 40)}){{90}}{n}" for n in range(60))),
    "one long pattern": {"pattern": r"\pL{100}" * 2000},
    "without case": {"pattern": "(?i)" + r"\pL" * 20_000},
    "case inside": named(*(rf"(?i:\pL{{90}}){n}" for n in range(300))),
    "set arithmetic": {"pattern": "".join([r"(?i)[\pL--[\pN&&\pL]]{20}"] * 1500)},
    "an item each": {
        "prefixItems": [{"pattern": rf"\pL{{100}}{n}"} for n in range(600)]
    },
    "a property each": {
        "properties": {f"p{n}": {"pattern": rf"\pL{{100}}{n}"} for n in range(600)}
    },
    "names": {
        "allOf": [{"propertyNames": {"pattern": rf"\pL{{100}}{n}"}} for n in range(500)]
    },
    "deep": nested(r"\pL{100}", 9),
    "looking ahead": named(*(rf"(?=\pL{{100}})(\w+)+{n}" for n in range(300))),
    "definitions": {
        "$defs": {f"d{n}": {"pattern": rf"\pL{{100}}{n}"} for n in range(300)},
        "anyOf": [{"$ref": f"#/$defs/d{n}"} for n in range(300)],
    },
    "none evaluated": {
        "allOf": [named(rf"\pL{{100}}{n}") for n in range(300)],
        "unevaluatedProperties": False,
    },
}


@pytest.fixture
async def schemas() -> AsyncIterator[JsonSchemas]:
    made = JsonSchemas()
    # The children are there, so that what is seen afterwards is the work.
    await made.demand({}, whose=None)
    yield made
    await made.close()


class Heart:
    """Measures for how long this process computes until the loop comes round.

    That is time of a processor, all threads together: a busy machine adds nothing, and a thread that has the
    interpreter's lock counts. What is there already is left out by the collector of garbage, as in a process that
    serves: going through all that other tests left takes seconds.
    """

    def __init__(self) -> None:
        gc.freeze()
        self._held_s = 0.0
        self._beat_at_s = time.process_time()
        self._beating = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            self._come_round()

    def _come_round(self) -> None:
        now_s = time.process_time()
        self._held_s = max(self._held_s, now_s - self._beat_at_s)
        self._beat_at_s = now_s

    def stop(self) -> float:
        """Return the most seconds for which the loop was held."""
        self._beating.cancel()
        self._come_round()
        return self._held_s

    def demand_alive(self, name: str = "") -> None:
        """Assert that it came round all the while."""
        held_s = self.stop()
        assert held_s < HELD_S, f"{name}: {held_s:.3f} s"


def memory_of(pid: int | str = "self", which: str = "VmRSS") -> int:
    """Return the bytes of memory that a process has, or with `VmHWM` had at most."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(which):
            return int(line.split()[1]) * 1024
    raise AssertionError(which)


async def test_a_heart_feels_what_computes_and_not_what_waits() -> None:
    """Neither a processor that others have, nor a loop that has nothing to do, nor what lies about, is its work."""
    left_about = [[[]] for _ in range(MANY_OBJECTS)]
    idle = Heart()
    await asyncio.to_thread(time.sleep, 2 * HELD_S)
    time.sleep(2 * HELD_S)  # noqa: ASYNC251 - as a process that is not given a processor
    for _ in range(COLLECTIONS):
        gc.collect()
    idle.demand_alive()
    del left_about
    held = Heart()
    await asyncio.sleep(0)
    began_s = time.process_time()
    while time.process_time() < began_s + HELD_S:
        pass
    assert held.stop() >= HELD_S


@pytest.mark.parametrize("name", BOMBS)
async def test_a_schema_that_compiles_to_more_than_it_looks_is_refused(
    name: str, schemas: JsonSchemas
) -> None:
    """With its field and the cure; meanwhile the loop goes round, and the next schema is checked."""
    form = {"type": "json_schema", "json_schema": {"schema": BOMBS[name]}}
    asked = ResponseFormat.model_validate(form)
    heart = Heart()
    before = memory_of()
    with pytest.raises(Refused) as refusal:
        await AnswerFormat.read(asked, schemas, "ada")
    heart.demand_alive()
    assert refusal.value.problem.status == 400
    [fault] = refusal.value.problem.problems
    assert fault.where == "response_format.json_schema.schema"
    assert "write" in fault.message or "ask for less" in fault.message
    assert memory_of() - before < MOST
    assert await schemas.find_misfit({"pattern": "^a+$"}, "aa", whose="ada") is None
    for child in schemas._children.idle:
        assert memory_of(child.pid, "VmHWM") < MOST


RUNS: dict[str, tuple[dict[str, Any], Any]] = {
    "a copy in each fault": (
        {"anyOf": [{"const": {"x": [n] * 100}} for n in range(900)]},
        ["x" * 1_000_000],
    ),
    "going back": ({"pattern": r"^(?=a)(?:(a+)+)\1b$"}, "a" * 5_000),
    "a large automaton": (
        {"allOf": [{"pattern": rf"(a|b)*a(a|b){{200}}{n}"} for n in range(900)]},
        "ab" * 400_000,
    ),
}


@pytest.mark.parametrize("name", RUNS)
async def test_a_value_that_takes_too_much_to_check_is_refused(
    name: str, schemas: JsonSchemas
) -> None:
    """Or found unfit; the loop goes round either way."""
    heart = Heart()
    before = memory_of()
    found = await asyncio.gather(
        schemas.find_misfit(*RUNS[name], whose="ada"), return_exceptions=True
    )
    assert "write a smaller schema" in str(found[0]) or isinstance(found[0], Misfit)
    heart.demand_alive()
    assert memory_of() - before < MOST
    assert await schemas.find_misfit({"type": "null"}, 1, whose="ada")


async def test_the_bombs_of_one_caller_leave_a_child_to_others(
    schemas: JsonSchemas,
) -> None:
    """They take turns; somebody else's schema is checked before the second of them is through."""
    slow = {"pattern": "(?i)" + r"\pL" * 20_000}
    bombs = [
        asyncio.create_task(schemas.demand(slow, whose="mallory")) for _ in range(3)
    ]
    await asyncio.sleep(0)
    await schemas.demand({"pattern": "a"}, whose="ada")
    assert sum(one.done() for one in bombs) < len(bombs) - 1
    outcomes = await asyncio.gather(*bombs, return_exceptions=True)
    assert {type(one) for one in outcomes} == {InvalidInput}


async def test_a_child_is_given_no_secret_and_no_core(
    schemas: JsonSchemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in its memory is a client's; it lies in no file."""
    monkeypatch.setenv("TASKLORE_LLM_API_KEY", "sk-secret")
    await schemas.demand({}, whose=None)
    [child] = schemas._children.idle
    environment = await asyncio.to_thread(Path(f"/proc/{child.pid}/environ").read_bytes)
    assert b"sk-secret" not in environment
    limits = await asyncio.to_thread(Path(f"/proc/{child.pid}/limits").read_text)
    [core] = [line for line in limits.splitlines() if "core file" in line]
    assert core.split()[4:6] == ["0", "0"]
    assert os.getpriority(os.PRIO_PROCESS, child.pid) > 0


async def test_a_request_with_such_a_schema_is_refused_and_the_next_one_served(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """Over HTTP, in the form of OpenAI's errors."""
    form = {
        "type": "json_schema",
        "json_schema": {"name": "form", "schema": BOMBS["many classes"]},
    }
    body = {"model": "tasklore", "messages": [{"role": "user", "content": "hi"}]}
    async with (
        http_stand(servers, redis) as stand,
        httpx.AsyncClient(base_url=stand.url, timeout=60) as client,
    ):
        heart = Heart()
        refused = await client.post(
            "/v1/chat/completions", json=body | {"response_format": form}
        )
        heart.demand_alive()
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "response_format.json_schema.schema"
        assert (await client.get("/v1/models")).status_code == 200
