"""Streams, buckets and consumers on a real server: declared as often as one likes, never changed behind one's back."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from nats.aio.client import Client

from contracts import subjects
from contracts.errors import ConfigurationError, DriftedConfiguration
from contracts.messages import AgentCard
from runtime.connection import connected
from runtime.embedded import NatsServer
from runtime.jetstream import ask_jetstream, ask_or_none
from runtime.streams import Sizes, Source, declare_consumer, declare_streams, stream_configurations
from supervisor.cards import CardIndex, read_cards

SIZES = Sizes(tasks_max_bytes=64 * 1024**2)
READER = Source(subjects.TASKS, "Somebody", subjects.tasks_of("Somebody"), 30.0)


@pytest.fixture
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    """Connect to a server that has no streams yet."""
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    await server.start()
    try:
        async with connected(server.url, "test-streams") as client:
            yield client
    finally:
        await server.stop()


async def configurations(client: Client) -> dict[str, object]:
    """Return what the server has, by name."""
    names = [wanted["name"] for wanted in stream_configurations(SIZES)]
    return {name: (await ask_jetstream(client, f"STREAM.INFO.{name}"))["config"] for name in names}


async def test_streams_are_declared_twice_and_by_several_at_once_without_harm(client: Client) -> None:
    """The second declaration changes nothing, and no racing process fails."""
    await asyncio.gather(*(declare_streams(client, SIZES) for _ in range(5)))
    first = await configurations(client)
    await client.request("tasks.Somebody.x", b"{}", timeout=5)
    await declare_streams(client, SIZES)
    assert await configurations(client) == first
    assert (await ask_jetstream(client, "STREAM.INFO.TASKS"))["state"]["messages"] == 1


async def test_the_contract_of_the_wire_is_what_the_server_has(client: Client) -> None:
    """What outside programs rely on, in the server's own words."""
    await declare_streams(client, SIZES)
    found = await configurations(client)
    tasks, later, reports = found["TASKS"], found["LATER"], found["REPORTS"]
    assert isinstance(tasks, dict)
    assert isinstance(later, dict)
    assert isinstance(reports, dict)
    assert (tasks["retention"], tasks["storage"], tasks["discard"]) == ("workqueue", "file", "new")
    assert tasks["duplicate_window"] == 300 * 10**9
    assert tasks["sources"][0]["name"] == "LATER"
    assert (later["subjects"], later["discard"], later["allow_msg_schedules"]) == (
        ["schedules.>", "due.>"],
        "old",
        True,
    )
    assert (reports["max_msgs_per_subject"], reports["discard_new_per_subject"]) == (1, True)
    assert reports["max_age"] == 3600 * 10**9
    assert {"TURNS", "FACTS", "DEAD", "KV_agents", "KV_workers"} <= set(found)


async def test_a_scheduled_retry_becomes_a_task(client: Client) -> None:
    """What a schedule in LATER aims at `due.tasks.` arrives in TASKS under its plain subject."""
    await declare_streams(client, SIZES)
    headers = {"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": subjects.due("Somebody", "x")}
    answer = json.loads((await client.request(subjects.schedule("t1", 1), b"{}", timeout=5, headers=headers)).data)
    assert "error" not in answer
    async with asyncio.timeout(20):
        while not (await ask_jetstream(client, "STREAM.INFO.TASKS"))["state"]["messages"]:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.05)
    info = await ask_jetstream(client, "STREAM.INFO.TASKS", {"subjects_filter": ">"})
    assert info["state"]["subjects"] == {"tasks.Somebody.x": 1}


async def test_a_stream_that_differs_is_an_error_that_names_each_difference(client: Client) -> None:
    """Nothing is changed and nothing is created until a person has decided."""
    await ask_jetstream(
        client,
        "STREAM.CREATE.REPORTS",
        {"name": "REPORTS", "subjects": ["reports.>"], "max_age": 60 * 10**9, "storage": "memory"},
    )
    with pytest.raises(DriftedConfiguration) as raised:
        await declare_streams(client, SIZES)
    text = str(raised.value)
    assert "REPORTS: max_age is 60000000000, wanted 3600000000000" in text
    assert "REPORTS: storage is 'memory', wanted 'file'" in text
    assert "Delete or edit the stream" in text
    assert await ask_or_none(client, "STREAM.INFO.TASKS") is None


async def test_a_changed_setting_is_a_difference_too(client: Client) -> None:
    """Two processes that were told different sizes do not overwrite each other."""
    await declare_streams(client, SIZES)
    with pytest.raises(DriftedConfiguration, match="TASKS: max_bytes is 67108864, wanted 1048576"):
        await declare_streams(client, Sizes(tasks_max_bytes=1024**2))


async def test_a_consumer_is_declared_twice_and_its_timing_is_adjusted(client: Client) -> None:
    """Another lease keeps the place in the stream; another filter is an error that names it."""
    await declare_streams(client, SIZES)
    await client.request("tasks.Somebody.x", b"{}", timeout=5)
    for _ in range(2):
        await declare_consumer(client, READER)
    await declare_consumer(client, Source(READER.stream, READER.durable, READER.filter_subject, 5.0))
    info = await ask_jetstream(client, "CONSUMER.INFO.TASKS.Somebody")
    assert (info["config"]["ack_wait"], info["num_pending"]) == (5 * 10**9, 1)
    assert (info["config"].get("max_deliver", -1), info["config"].get("max_ack_pending", -1)) == (-1, -1)
    with pytest.raises(DriftedConfiguration, match=r"filter_subject is 'tasks.Somebody.>', wanted 'tasks.Other.>'"):
        await declare_consumer(client, Source(READER.stream, READER.durable, "tasks.Other.>", 5.0))


async def test_where_it_may_not_be_created_a_missing_consumer_is_an_error_with_the_cure(client: Client) -> None:
    """The message says which setting leaves it to others."""
    await declare_streams(client, SIZES)
    with pytest.raises(ConfigurationError, match=r"no consumer 'Somebody'; TASKLORE_PROVISION=never"):
        await declare_consumer(client, READER, may_create=False)


async def test_a_report_cannot_be_stored_twice(client: Client) -> None:
    """The server itself keeps one message for each report's subject, under any message id."""
    await declare_streams(client, SIZES)
    subject = subjects.report("S", "t1", 1)
    first = json.loads((await client.request(subject, b"1", timeout=5, headers={"Nats-Msg-Id": "a"})).data)
    second = json.loads((await client.request(subject, b"2", timeout=5, headers={"Nats-Msg-Id": "b"})).data)
    assert first["seq"] == 1
    assert "maximum messages per subject" in second["error"]["description"]


async def test_a_card_put_while_all_cards_are_read_is_not_lost(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notice that comes during a load is read again, not undone."""
    await declare_streams(client, SIZES)
    bucket = await client.jetstream().key_value(subjects.AGENTS_BUCKET)
    index, newcomer = CardIndex(), AgentCard(agent_id="Newcomer", tasks=(), digest="d")

    async def read_slowly(asked: Client) -> list[AgentCard]:
        found = await read_cards(asked)
        if not index.catalogue.cards:
            await bucket.put(newcomer.agent_id, newcomer.model_dump_json().encode())
            index.learn(newcomer)
        return found

    monkeypatch.setattr("supervisor.cards.read_cards", read_slowly)
    await index.load(client)
    assert set(index.catalogue.cards) == {"Newcomer"}
