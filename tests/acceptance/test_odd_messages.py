"""A supervisor and a worker beside whatever anybody has put into the bucket of cards, or says to them."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from tests.acceptance.external_program import PATIENCE_S, Json, Outside, outside
from tests.acceptance.system import System

REQUESTS = "requests.SupervisorAgent"
DEEP = b"[" * 5000 + b"]" * 5000

#: Keys, blocks of headers and bodies: what client libraries refuse to write, and what they fall over when they read it.
RUBBISH = [
    *(
        (key, b"NATS/1.0\r\n\r\n", b"{}")
        for key in (b"%s", b"{}", b"\xff\xfe", "ä".encode(), b"a\x00b", b"a.b.c")
    ),
    (b"Head1", b"NATS/1.0 503\r\nKV-Operation: \xff\r\n\r\n", b"{}"),
    (b"Head2", b"NATS/1.0\r\n\xff\r\n\r\n", b"{}"),
    (b"NoCard", b"NATS/1.0\r\n\r\n", b"{}"),
    (b"Deep", b"NATS/1.0\r\n\r\n", b'{"tasks": ' + DEEP + b"}"),
    (b"Large", b"NATS/1.0\r\n\r\n", b'"' + b"x" * 1_000_000 + b'"'),
]


def odd_card(agent_id: str) -> bytes:
    """Return a card that any program might put, with a schema that is none."""
    task = {
        "name": "analyze_budget",
        "parameters": {"type": "object", "properties": {}, "required": [[1]]},
    }
    return json.dumps(
        {"agent_id": agent_id, "digest": "0", "keywords": ["budget"], "tasks": [task]}
    ).encode()


@pytest.fixture
async def littered(own_system: System) -> AsyncIterator[tuple[System, Outside]]:
    """Give a system with a worker whose bucket of cards was filled with rubbish before any supervisor was started."""
    own_system.worker().ready()
    async with outside(own_system.servers.nats_url) as program:
        await program.publish("$KV.agents.OddAgent", odd_card("OddAgent"))
        await publish_raw(own_system.servers.nats.port, RUBBISH)

        async def is_stored() -> bool:
            return "$KV.agents.Large" in await program.counts("KV_agents")

        await program.eventually(is_stored)
        yield own_system, program


async def publish_raw(port: int, messages: list[tuple[bytes, bytes, bytes]]) -> None:
    """Publish without a client library, so that nothing checks what is sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(PATIENCE_S):
        # The server may lose what it reads together with CONNECT.
        writer.write(b'CONNECT {"verbose":false,"headers":true}\r\nPING\r\n')
        await reader.readuntil(b"PONG\r\n")
        for key, head, body in messages:
            size = len(head) + len(body)
            writer.write(
                b"HPUB $KV.agents.%b %d %d\r\n%b%b\r\n"
                % (key, len(head), size, head, body)
            )
        writer.write(b"PING\r\n")
        await reader.readuntil(b"PONG\r\n")
    writer.close()


async def ask(
    program: Outside, body: bytes, headers: dict[str, str] | None = None
) -> Json:
    """Return the supervisor's reply to *body*."""
    answer = await program.client.request(
        REQUESTS, body, timeout=PATIENCE_S, headers=headers
    )
    return dict(json.loads(answer.data))


async def test_rubbish_among_the_cards_keeps_no_supervisor_from_starting_and_answering(
    littered: tuple[System, Outside],
) -> None:
    """Nor what is put there later; each odd card is warned about once, and no consumer is left behind."""
    system, program = littered
    supervisor = system.supervisor().ready()
    budget = b'{"text": "BudgetTrackerAgent: limit 50000, spent 42000"}'
    assert (await ask(program, budget))["kind"] == "answer"
    for name in ("LateAgent", "OddAgent"):
        for _ in range(3):
            await program.publish(f"$KV.agents.{name}", odd_card(name))
    await publish_raw(system.servers.nats.port, RUBBISH)
    assert (await ask(program, budget))["kind"] == "answer"
    supervisor.await_log("LateAgent")
    warnings = [
        event
        for event in map(json.loads, supervisor.log().splitlines())
        if event["event"] == "card_left_out"
    ]
    told = [event["agent"] for event in warnings]
    assert sorted(set(told)) == sorted(told)
    assert {"OddAgent", "LateAgent", "NoCard", "Deep", "Large"} <= set(told)
    assert (await program.api("STREAM.INFO.KV_agents"))["state"]["consumer_count"] == 0
    assert "Traceback" not in supervisor.log()
