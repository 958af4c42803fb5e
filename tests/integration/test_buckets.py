"""Buckets that hold anything anybody put there: our entries are read in pages, and no consumer is left behind."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog
from nats.aio.client import Client

from tasklore.contracts import subjects
from tasklore.contracts.errors import Unreachable
from tasklore.contracts.messages import AgentCard, WorkerPresence
from tasklore.runtime.messaging import direct
from tasklore.runtime.messaging.buckets import read_bucket
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.presences import live_workers
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.cards import CardIndex, read_cards
from tasklore.workers.agents.budget import agent
from tasklore.workers.card import card_of

#: Seconds for a fact on a busy machine.
PATIENCE_S = 60.0

GOOD = card_of(agent)

#: Keys that the client library would not write, nor read.
STRANGE_KEYS = (
    b"%s",
    b"{}",
    b"\xff\xfe",
    "ä".encode(),
    b"a\x00b",
    b"$",
    b"a/b=c",
    b"x" * 65,
    b"a.b.c",
    b"\x7f",
)

#: Headers that are no text, that look like the server's own words, or that end too early.
STRANGE_HEADERS = (
    b"NATS/1.0 503\r\nKV-Operation: \xff\r\n\r\n",
    b"NATS/1.0 503\r\n\r\n",
    b"NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: 99999\r\n\r\n",
    b"NATS/1.0\r\nStatus: 503\r\nNats-Sequence: x\r\n\r\n",
    b"NATS/1.0\r\nNats-Sequence: 1\r\nNats-Subject: $KV.agents.Liar\r\n\r\n",
    b"NATS/1.0\r\n: \r\n\r\nA\r\n",
    b"NATS/1.0\r\n\xff\xfe\r\n\r\n",
)
#: Headers at which the client library ends its reading for good.
DEADLY_HEADERS = (
    b"NATS/1.0 503\xff\r",
    "NATS/1.0 503ä".encode() + b"\r",
    b"NATS/1.0 204 EOB\xffKV-Operation: x",
    b" ",
    b"\x00",
)


class Storage:
    """A server with the house's buckets, and a connection that checks nothing of what it writes."""

    def __init__(self, servers: EmbeddedServers, client: Client) -> None:
        self.servers = servers
        self.client = client

    async def put(
        self, bucket: str, key: str, value: bytes, headers: dict[str, str] | None = None
    ) -> None:
        await self.client.jetstream().publish(
            f"$KV.{bucket}.{key}", value, headers=headers
        )

    async def put_raw(self, bucket: str, *values: tuple[bytes, bytes, bytes]) -> None:
        """Store each of *values*, which are key, block of headers and body, whatever they are."""
        stored = (await self.state(bucket))["last_seq"] + len(values)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.servers.nats.port
        )
        # The server may lose what it reads together with CONNECT.
        writer.write(b'CONNECT {"verbose":false,"headers":true}\r\nPING\r\n')
        async with asyncio.timeout(PATIENCE_S):
            await reader.readuntil(b"PONG\r\n")
        for key, head, body in values:
            subject = b"$KV." + bucket.encode() + b"." + key
            writer.write(
                b"HPUB %b %d %d\r\n%b%b\r\n"
                % (subject, len(head), len(head) + len(body), head, body)
            )
        await writer.drain()
        async with asyncio.timeout(PATIENCE_S):
            while (await self.state(bucket))["last_seq"] < stored:  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.01)
        writer.close()

    async def state(self, bucket: str) -> dict[str, Any]:
        info = await ask_jetstream(
            self.client, f"STREAM.INFO.{subjects.bucket_stream(bucket)}"
        )
        return dict(info["state"])


@pytest.fixture
async def storage(own_servers: EmbeddedServers) -> AsyncIterator[Storage]:
    async with connected(own_servers.nats_url, "test-buckets") as client:
        await declare_streams(client, StreamSizes())
        yield Storage(own_servers, client)


def body_of(card: AgentCard) -> bytes:
    return card.model_dump_json().encode()


def a_presence(worker_id: str = "w1") -> WorkerPresence:
    return WorkerPresence(
        worker_id=worker_id,
        agent_id="A",
        digest="d",
        slots=1,
        started_at=datetime.now(UTC),
    )


@pytest.mark.parametrize("is_linked", [False, True])
async def test_unreadable_keys_and_headers_hide_no_card(
    storage: Storage, is_linked: bool
) -> None:
    await storage.put_raw(
        "agents", *((key, b"NATS/1.0\r\n\r\n", b"{}") for key in STRANGE_KEYS)
    )
    await storage.put("agents", GOOD.agent_id, body_of(GOOD))
    heads = (*STRANGE_HEADERS, *DEADLY_HEADERS) if is_linked else STRANGE_HEADERS
    await storage.put_raw(
        "agents",
        *((b"Odd%d" % number, head, b"{}") for number, head in enumerate(heads)),
    )
    await storage.put(
        "agents", "Last", body_of(GOOD.model_copy(update={"agent_id": "Last"}))
    )
    async with connected(storage.servers.nats_url, "reader") as client:
        cards = await read_cards(Link(client) if is_linked else client)
        assert [card.agent_id for card in cards] == [GOOD.agent_id, "Last"]
        # The connection is as good as before.
        assert await live_workers(client) == []
    assert (await storage.state("agents"))["consumer_count"] == 0


async def test_deleted_purged_and_expired_entries_have_no_value(
    storage: Storage,
) -> None:
    for key in ("Deleted", "Purged", "Expired", "Again", "Kept"):
        await storage.put("agents", key, b"1")
    bucket = await storage.client.jetstream().key_value("agents")
    await bucket.delete("Deleted")
    await bucket.purge("Purged")
    await bucket.delete("Again")
    await storage.put("agents", "Again", b"2")
    await storage.put("agents", "Expired", b"1", {"Nats-Marker-Reason": "MaxAge"})
    await storage.put("agents", "Full", b"1", {"KV-Operation": "DEL"})
    assert await read_bucket(storage.client, "agents") == {"Again": b"2", "Kept": b"1"}


async def test_several_pages_are_read_in_order_without_repeats(
    storage: Storage,
) -> None:
    numbers = range(3 * direct.PAGE + 1)
    stream = storage.client.jetstream()
    for value in (b"old", b"new"):
        await asyncio.gather(
            *[
                await stream.publish_async(f"$KV.agents.k{number:04}", value)
                for number in numbers
                if number % 3
            ]
        )
    found = await read_bucket(storage.client, "agents")
    assert found == {f"k{number:04}": b"new" for number in numbers if number % 3}
    assert list(found) == sorted(found)


async def test_pages_of_the_largest_values_are_limited_by_size(
    storage: Storage,
) -> None:
    largest = b"x" * (storage.client.max_payload - 100)
    for number in range(20):
        await storage.put("agents", f"k{number}", largest)
    found = await read_bucket(storage.client, "agents")
    assert {key: len(value) for key, value in found.items()} == {
        f"k{number}": len(largest) for number in range(20)
    }


async def test_an_empty_bucket_is_empty_and_a_missing_one_is_an_error(
    storage: Storage,
) -> None:
    assert await read_bucket(storage.client, "agents") == {}
    with pytest.raises(
        Unreachable,
        match=r"the bucket .nobody. did not answer .*was a supervisor started",
    ):
        await read_bucket(storage.client, "nobody")


async def test_a_silent_server_is_an_error_after_the_deadline(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "API_S", 0.2)
    storage.servers.nats.pause()
    try:
        with pytest.raises(Unreachable, match="the bucket 'agents' did not answer"):
            await until_it_fails(storage.client)
    finally:
        storage.servers.nats.resume()


async def until_it_fails(client: Client) -> None:
    """Read again and again: a server that is frozen may still have answered the first time."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            await read_bucket(client, "agents")


async def test_a_worker_counts_under_its_own_key_alone(storage: Storage) -> None:
    await storage.put_raw(
        "workers", *((key, STRANGE_HEADERS[0], b"{}") for key in STRANGE_KEYS)
    )
    for key in ("A.w2", "w1", "A.w1.x", "B.w1"):
        await storage.put("workers", key, a_presence().model_dump_json().encode())
    await storage.put("workers", "A.w3", b"\x00")
    assert await live_workers(storage.client) == []
    presence = a_presence()
    await storage.put("workers", "A.w1", presence.model_dump_json().encode())
    assert await live_workers(storage.client) == [presence]


async def test_unreadable_cards_are_left_out_and_warned_about_once(
    storage: Storage,
) -> None:
    odd = json.loads(body_of(GOOD)) | {"agent_id": "OddShape"}
    odd["tasks"][0]["parameters"] = {"required": 5}
    await storage.put("agents", "OddShape", json.dumps(odd).encode())
    await storage.put(
        "agents", "Deep", b'{"tasks": ' + b"[" * 5000 + b"]" * 5000 + b"}"
    )
    await storage.put("agents", "NoCard", b"{}")
    await storage.put(
        "agents", "Large", body_of(GOOD)[:-1] + b" " * subjects.MAX_BODY + b"}"
    )
    await storage.put("agents", GOOD.agent_id, body_of(GOOD))
    refused: list[int] = []
    index = CardIndex(lambda: refused.append(1))
    with structlog.testing.capture_logs() as log:
        for number in range(3):
            await storage.put("agents", "Else", str(number).encode())
            await index.load(storage.client)
    assert set(index.catalogue.cards) == {GOOD.agent_id}
    warnings = [
        (event["agent"], event["problem"])
        for event in log
        if event["event"] == "card_left_out"
    ]
    problems = dict(warnings)
    assert len(warnings) == len(problems) == len(refused) == 5
    assert (
        problems["OddShape"]
        == "task 'analyze_budget': parameters.required must be a list, not 5"
    )
    assert problems["Large"].endswith("bytes; keep to 983,040")


async def test_an_unchanged_bucket_is_not_read_again(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = CardIndex()
    read = list[int]()

    async def read_and_count(*arguments: Any) -> list[AgentCard]:
        read.append(len(read))
        return await read_cards(*arguments)

    monkeypatch.setattr("tasklore.supervisor.cards.read_cards", read_and_count)

    async def loads() -> int:
        before = len(read)
        for _ in range(3):
            await index.load(storage.client)
        return len(read) - before

    assert await loads() == 1
    await storage.put("agents", GOOD.agent_id, body_of(GOOD))
    assert (await loads(), set(index.catalogue.cards)) == (1, {GOOD.agent_id})
    catalogue = index.catalogue
    # A notice may tell of what the stream refused.
    index.forget(GOOD.agent_id)
    assert (await loads(), set(index.catalogue.cards)) == (1, {GOOD.agent_id})
    assert index.catalogue is not catalogue
    await (await storage.client.jetstream().key_value("agents")).delete(GOOD.agent_id)
    assert (await loads(), set(index.catalogue.cards)) == (1, set())
    await storage.put("agents", GOOD.agent_id, body_of(GOOD))
    assert await loads() == 1
    await ask_jetstream(storage.client, "STREAM.PURGE.KV_agents")
    assert (await loads(), set(index.catalogue.cards)) == (1, set())


async def test_endless_notices_do_not_keep_a_supervisor_from_starting(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One comes with every reading; each counts, and the last one about an agent is kept."""
    await storage.put(
        "agents", "Old", body_of(GOOD.model_copy(update={"agent_id": "Old"}))
    )
    index = CardIndex()
    told = list[str]()

    async def read_while_told(*arguments: Any) -> list[AgentCard]:
        cards = await read_cards(*arguments)
        told.append(f"New{len(told)}")
        index.learn(GOOD.model_copy(update={"agent_id": told[-1]}))
        index.forget("Old")
        return cards

    monkeypatch.setattr("tasklore.supervisor.cards.read_cards", read_while_told)
    async with asyncio.timeout(PATIENCE_S):
        await index.load(storage.client)
    assert told == ["New0"]
    assert set(index.catalogue.cards) == {"New0"}
