"""Bodies that cost more than they look, at each door that compiles or walks them: refused or done, and nobody waits."""

import json
from typing import Any

import httpx
from redis.asyncio import Redis

from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.http_client import PATIENCE_S
from tests.integration.http_stand import http_stand
from tests.integration.test_json_schemas import MOST, Heart, memory_of


def nest(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


def refer(depth: int, width: int) -> dict[str, Any]:
    """Return a schema of some hundred parts that stands for *width* to the power of *depth*."""
    parts: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * width}
        for n in range(depth)
    }
    return {"$defs": {**parts, f"d{depth}": {}}, "$ref": "#/$defs/d0"}


SCHEMAS: dict[str, Any] = {
    "references that multiply": refer(12, 10),
    "references in a circle": {
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        "$ref": "#/$defs/a",
    },
    "itself": {"$ref": "#"},
    "elsewhere": {"$ref": "http://127.0.0.1:1/schema"},
    "a file": {"$id": "file:///etc/passwd", "$schema": "http://127.0.0.1:1/"},
    "dynamic": {"$dynamicAnchor": "n", "items": {"$dynamicRef": "#n"}},
    "deep": nest(300),
    "a tiny step": {"multipleOf": 1e-300},
    "many choices": {"enum": list(range(19_000))},
    "a huge length": {"maxLength": 10**4_000},
    "going back": {"format": "regex", "pattern": "^(a+)+$"},
    "one of many": {"oneOf": [{"pattern": "a" * n} for n in range(1, 1_000)]},
    "unlike items": {"uniqueItems": True, "minItems": 10**9},
    "contained": {"contains": {"contains": {}}, "minContains": 10**9},
    "depending": {
        "dependentSchemas": {f"k{n}": {"required": [f"k{n + 1}"]} for n in range(900)}
    },
}
TIMINGS: dict[str, dict[str, Any]] = {
    "a list": {"cron": ",".join(["0-59/1"] * 2_000) + " * * * *"},
    "never": {"cron": "0 0 30 2 *"},
    "once in decades": {"cron": "59 23 29 2 1"},
    "a huge step": {"cron": "*/999999999 * * * *"},
    "a huge number": {"cron": "9" * 5_000 + " * * * *"},
    "a huge span": {"every": 10**30},
    "a late day": {"at": "9999-12-31T23:59:59Z"},
    "a long zone": {"cron": "0 0 * * *", "time_zone": "A/" * 5_000},
}
BODIES: dict[str, bytes] = {
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "many values": b"[" + b"1," * 400_000 + b"1]",
    "a long name": b'{"' + b"k" * 900_000 + b'": 1}',
    "escapes": b'{"a": "' + rb"\u0041" * 150_000 + b'"}',
    "digits": b'{"a": "' + (b"9" * 308 + b" ") * 3_000 + b'"}',
    "no numbers": b'{"a": ["' + b'1e999", "' * 19_000 + b'"]}',
    "a long number": b'{"a": ' + b"9" * 900_000 + b"}",
}


def schedule(timing: dict[str, Any]) -> bytes:
    task = {"agent_id": "EchoAgent", "task": "echo", "parameters": {"word": "a"}}
    return json.dumps({**task, "dry_run": True, **timing}).encode()


def chat(schema: dict[str, Any]) -> bytes:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    asked = [{"role": "user", "content": "hi"}]
    return json.dumps(
        {"model": "tasklore", "messages": asked, "response_format": form}
    ).encode()


CASES = {
    **{f"schema: {n}": ("/v1/chat/completions", chat(s)) for n, s in SCHEMAS.items()},
    **{f"timing: {n}": ("/v1/schedules", schedule(t)) for n, t in TIMINGS.items()},
    **{f"body: {n}": ("/v1/tasks", body) for n, body in BODIES.items()},
}


async def test_no_body_holds_the_loop_or_the_memory(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """None is an error of ours either; the next request is served after each."""
    async with (
        http_stand(servers, redis) as stand,
        httpx.AsyncClient(base_url=stand.url, timeout=PATIENCE_S) as client,
    ):
        stand.service.gate.set()
        # What is loaded and started with the first one is there.
        await client.post("/v1/chat/completions", json=json.loads(chat({})))
        for name, (path, body) in CASES.items():
            heart = Heart()
            before = memory_of()
            answer = await client.post(
                path, content=body, headers={"Content-Type": "application/json"}
            )
            heart.demand_alive(name)
            assert answer.status_code < 500, (name, answer.text)
            assert memory_of() - before < MOST, name
            assert (await client.get("/v1/agents")).status_code == 200, name
