"""Streams, buckets and consumers on a real server: declared as often as one likes, never changed behind one's back."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from nats.aio.client import Client

from contracts import subjects
from contracts.errors import ConfigurationError, DriftedConfiguration
from contracts.messages import AgentCard
from runtime.messaging.connection import connected
from runtime.messaging.jetstream import ask_jetstream, ask_or_none
from runtime.messaging.streams import (
    Sizes,
    Source,
    declare_consumer,
    declare_streams,
    find_consumer,
    stream_configurations,
)
from runtime.servers.embedded import NatsServer
from supervisor.cards import CardIndex, Warn, read_cards

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


async def configurations(client: Client) -> dict[str, dict[str, Any]]:
    """Return what the server has, by name."""
    names = [wanted["name"] for wanted in stream_configurations(SIZES)]
    return {name: (await ask_jetstream(client, f"STREAM.INFO.{name}"))["config"] for name in names}


async def test_streams_are_declared_twice_and_by_several_at_once_without_harm(client: Client) -> None:
    """The second declaration changes nothing, and no racing process fails."""
    await asyncio.gather(*(declare_streams(client, SIZES) for _ in range(5)))
    first = await configurations(client)
    await client.request("tasks.Somebody.x", b"{}", timeout=60)
    await declare_streams(client, SIZES)
    assert await configurations(client) == first
    assert (await ask_jetstream(client, "STREAM.INFO.TASKS"))["state"]["messages"] == 1


async def test_the_contract_of_the_wire_is_what_the_server_has(client: Client) -> None:
    """What outside programs rely on, in the server's own words."""
    await declare_streams(client, SIZES)
    found = await configurations(client)
    tasks, later, reports = found["TASKS"], found["LATER"], found["REPORTS"]
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
    answer = json.loads((await client.request(subjects.schedule("t1", 1), b"{}", timeout=60, headers=headers)).data)
    assert "error" not in answer
    async with asyncio.timeout(60):
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


async def test_a_changed_number_of_copies_is_a_difference_too(client: Client) -> None:
    """Nor is the size taken over then: a person decides about all of it."""
    await declare_streams(client, SIZES)
    before = await configurations(client)
    with pytest.raises(DriftedConfiguration, match="num_replicas is 1, wanted 3") as raised:
        await declare_streams(client, replace(SIZES, tasks_max_bytes=1024**2, replicas=3))
    assert "TASKS: max_bytes is 67108864, wanted 1048576" in str(raised.value)
    assert await configurations(client) == before


@pytest.mark.parametrize("megabytes", [1, 128])
async def test_changed_sizes_are_taken_over_at_the_next_start(client: Client, megabytes: int) -> None:
    """Up or down, without the nats command, with what lies there and with nothing else changed."""
    await declare_streams(client, SIZES)
    for subject in ("tasks.Somebody.x", "dead.tasks.Somebody.x"):
        for _ in range(3):
            await client.request(subject, b"x" * 500_000, timeout=60)
    before = await configurations(client)
    wanted = {"TASKS": megabytes * 1024**2, "DEAD": 3 * megabytes * 1024**2}
    for _ in range(2):
        await declare_streams(client, Sizes(wanted["TASKS"], 1, wanted["DEAD"]))
    after = await configurations(client)
    assert {name for name in after if after[name] != before[name]} == set(wanted)
    for name, size in wanted.items():
        assert after[name] == before[name] | {"max_bytes": size}
    # Tasks that no longer fit stay until they are done; of dead letters the oldest go.
    assert (await ask_jetstream(client, "STREAM.INFO.TASKS"))["state"]["messages"] == 3
    assert (await ask_jetstream(client, "STREAM.INFO.DEAD"))["state"]["messages"] == 3


async def test_dead_letters_of_an_older_version_get_their_limit_and_stop_no_start(client: Client) -> None:
    """They had none; what lies there stays as far as it fits, the newest first."""
    [wanted] = [one for one in stream_configurations(SIZES) if one["name"] == "DEAD"]
    await ask_jetstream(
        client, "STREAM.CREATE.DEAD", {key: value for key, value in wanted.items() if key != "max_bytes"}
    )
    for number in range(4):
        await client.request("dead.tasks.Somebody.x", b"%d" % number * 500_000, timeout=60)
    await declare_streams(client, replace(SIZES, dead_max_bytes=1024**2 + 200_000))
    state = (await ask_jetstream(client, "STREAM.INFO.DEAD"))["state"]
    assert (state["messages"], state["last_seq"]) == (2, 4)


async def test_a_size_that_the_server_has_no_room_for_stops_no_start(client: Client) -> None:
    """The stream serves as it was, and what is missing is made."""
    await declare_streams(client, SIZES)
    before = await configurations(client)
    await ask_jetstream(client, "STREAM.DELETE.TURNS")
    await declare_streams(client, replace(SIZES, dead_max_bytes=1024**5))
    assert await configurations(client) == before


async def test_a_changed_size_is_left_alone_while_others_are_at_work(client: Client) -> None:
    """What heals a lost stream makes what is missing, and nothing else."""
    await declare_streams(client, SIZES)
    before = await configurations(client)
    await declare_streams(client, replace(SIZES, tasks_max_bytes=1024**2), despite_drift=True)
    assert await configurations(client) == before


async def test_a_consumer_is_declared_twice_and_its_timing_is_adjusted(client: Client) -> None:
    """Another lease keeps the place in the stream; another filter is an error that names it."""
    await declare_streams(client, SIZES)
    await client.request("tasks.Somebody.x", b"{}", timeout=60)
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
    first = json.loads((await client.request(subject, b"1", timeout=60, headers={"Nats-Msg-Id": "a"})).data)
    second = json.loads((await client.request(subject, b"2", timeout=60, headers={"Nats-Msg-Id": "b"})).data)
    assert first["seq"] == 1
    assert "maximum messages per subject" in second["error"]["description"]


async def test_a_card_put_while_all_cards_are_read_is_not_lost(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notice that comes during a load is read again, not undone."""
    await declare_streams(client, SIZES)
    bucket = await client.jetstream().key_value(subjects.AGENTS_BUCKET)
    index, newcomer = CardIndex(), AgentCard(agent_id="Newcomer", tasks=(), digest="d")

    async def read_slowly(asked: Client, warn: Warn) -> list[AgentCard]:
        found = await read_cards(asked, warn)
        if not index.catalogue.cards:
            await bucket.put(newcomer.agent_id, newcomer.model_dump_json().encode())
            index.learn(newcomer)
        return found

    monkeypatch.setattr("supervisor.cards.read_cards", read_slowly)
    await index.load(client)
    assert set(index.catalogue.cards) == {"Newcomer"}


async def test_what_was_changed_by_hand_stops_nobody_who_is_at_work(client: Client) -> None:
    """The missing consumer is made all the same, and a consumer that is there is taken as it is."""
    await declare_streams(client, SIZES)
    await ask_jetstream(client, "STREAM.DELETE.DEAD")
    await ask_jetstream(client, "STREAM.CREATE.DEAD", {"name": "DEAD", "subjects": ["dead.>"], "max_age": 60 * 10**9})
    await ask_jetstream(client, "STREAM.DELETE.TASKS")
    source = Source("TASKS", "Healed", "tasks.Healed.>", 2.0)
    with pytest.raises(ConfigurationError, match="TASKLORE_PROVISION=never"):
        await find_consumer(client, source, SIZES, may_create=False)
    made_at = await find_consumer(client, source, SIZES, may_create=True)
    assert await find_consumer(client, source, SIZES, may_create=False) == made_at
