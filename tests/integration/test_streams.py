"""Streams, buckets and consumers on a real server: declared repeatedly and never changed unasked."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from nats.aio.client import Client

from tasklore.contracts import subjects
from tasklore.contracts.errors import ConfigurationError, DriftedConfiguration
from tasklore.contracts.messages import AgentCard
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream, ask_or_none
from tasklore.runtime.messaging.streams import (
    PullSource,
    StreamSizes,
    declare_consumer,
    declare_streams,
    find_consumer,
    stream_configurations,
)
from tasklore.runtime.servers.embedded import NatsServer
from tasklore.supervisor.cards import CardIndex, Warn, read_cards

SIZES = StreamSizes(tasks_max_bytes=64 * 1024**2)
READER = PullSource(
    stream=subjects.TASKS,
    durable="Somebody",
    filter_subject=subjects.tasks_of("Somebody"),
    ack_wait_s=30.0,
)


@pytest.fixture
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
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
    return {
        name: (await ask_jetstream(client, f"STREAM.INFO.{name}"))["config"]
        for name in names
    }


async def test_streams_are_declared_twice_and_by_several_at_once_without_harm(
    client: Client,
) -> None:
    await asyncio.gather(*(declare_streams(client, SIZES) for _ in range(5)))
    first = await configurations(client)
    await client.request("tasks.Somebody.x", b"{}", timeout=60)
    await declare_streams(client, SIZES)
    assert await configurations(client) == first
    assert (await ask_jetstream(client, "STREAM.INFO.TASKS"))["state"]["messages"] == 1


async def test_streams_have_the_properties_that_outside_programs_rely_on(
    client: Client,
) -> None:
    """In the words of the server, and tried: a report is stored once, a scheduled retry becomes a task."""
    await declare_streams(client, SIZES)
    found = await configurations(client)
    tasks = found["TASKS"]
    later = found["LATER"]
    reports = found["REPORTS"]
    assert (tasks["retention"], tasks["storage"], tasks["discard"]) == (
        "workqueue",
        "file",
        "new",
    )
    assert tasks["duplicate_window"] == 300 * 10**9
    assert tasks["sources"][0]["name"] == "LATER"
    assert (later["subjects"], later["discard"]) == (["schedules.>", "due.>"], "old")
    assert later["allow_msg_schedules"] is True
    assert (reports["max_msgs_per_subject"], reports["discard_new_per_subject"]) == (
        1,
        True,
    )
    assert reports["max_age"] == 3600 * 10**9
    assert {"TURNS", "FACTS", "DEAD", "KV_agents", "KV_workers"} <= set(found)

    subject = subjects.report("S", "t1", 1)
    first, second = [
        json.loads(
            (
                await client.request(
                    subject, b"1", timeout=60, headers={"Nats-Msg-Id": name}
                )
            ).data
        )
        for name in ("a", "b")
    ]
    assert first["seq"] == 1
    assert "maximum messages per subject" in second["error"]["description"]

    headers = {
        "Nats-Schedule": "@at 2020-01-01T00:00:00Z",
        "Nats-Schedule-Target": subjects.due("Somebody", "x"),
    }
    answer = json.loads(
        (
            await client.request(
                subjects.schedule("t1", 1), b"{}", timeout=60, headers=headers
            )
        ).data
    )
    assert "error" not in answer
    async with asyncio.timeout(60):
        while (  # noqa: ASYNC110 - no event
            not (await ask_jetstream(client, "STREAM.INFO.TASKS"))["state"]["messages"]
        ):
            await asyncio.sleep(0.05)
    info = await ask_jetstream(client, "STREAM.INFO.TASKS", {"subjects_filter": ">"})
    assert info["state"]["subjects"] == {"tasks.Somebody.x": 1}


async def test_a_stream_that_differs_is_an_error_with_each_difference(
    client: Client,
) -> None:
    await ask_jetstream(
        client,
        "STREAM.CREATE.REPORTS",
        {
            "name": "REPORTS",
            "subjects": ["reports.>"],
            "max_age": 60 * 10**9,
            "storage": "memory",
        },
    )
    with pytest.raises(DriftedConfiguration) as raised:
        await declare_streams(client, SIZES)
    text = str(raised.value)
    assert "REPORTS: max_age is 60000000000, wanted 3600000000000" in text
    assert "REPORTS: storage is 'memory', wanted 'file'" in text
    assert "Delete or edit the stream" in text
    assert await ask_or_none(client, "STREAM.INFO.TASKS") is None


async def test_a_changed_number_of_replicas_is_an_error(client: Client) -> None:
    await declare_streams(client, SIZES)
    before = await configurations(client)
    # Whoever heals a lost stream makes what is missing, and leaves a changed size alone.
    await declare_streams(
        client, replace(SIZES, tasks_max_bytes=1024**2), despite_drift=True
    )
    assert await configurations(client) == before
    with pytest.raises(
        DriftedConfiguration, match="num_replicas is 1, wanted 3"
    ) as raised:
        await declare_streams(
            client, replace(SIZES, tasks_max_bytes=1024**2, replicas=3)
        )
    assert "TASKS: max_bytes is 67108864, wanted 1048576" in str(raised.value)
    assert await configurations(client) == before


@pytest.mark.parametrize("megabytes", [1, 128])
async def test_changed_sizes_apply_at_the_next_start(
    client: Client, megabytes: int
) -> None:
    await declare_streams(client, SIZES)
    for subject in ("tasks.Somebody.x", "dead.tasks.Somebody.x"):
        for _ in range(3):
            await client.request(subject, b"x" * 500_000, timeout=60)
    before = await configurations(client)
    wanted = dict.fromkeys(("TASKS", "WAITING"), megabytes * 1024**2) | {
        "DEAD": 3 * megabytes * 1024**2
    }
    for _ in range(2):
        await declare_streams(client, StreamSizes(wanted["TASKS"], 1, wanted["DEAD"]))
    after = await configurations(client)
    assert {name for name in after if after[name] != before[name]} == set(wanted)
    for name, size in wanted.items():
        assert after[name] == before[name] | {"max_bytes": size}
    # Tasks that no longer fit stay until they are done; of dead letters the oldest go.
    assert (await ask_jetstream(client, "STREAM.INFO.TASKS"))["state"]["messages"] == 3
    assert (await ask_jetstream(client, "STREAM.INFO.DEAD"))["state"]["messages"] == 3


async def test_the_dead_letters_of_an_older_version_get_their_limit(
    client: Client,
) -> None:
    [wanted] = [one for one in stream_configurations(SIZES) if one["name"] == "DEAD"]
    await ask_jetstream(
        client,
        "STREAM.CREATE.DEAD",
        {key: value for key, value in wanted.items() if key != "max_bytes"},
    )
    for number in range(4):
        await client.request(
            "dead.tasks.Somebody.x", b"%d" % number * 500_000, timeout=60
        )
    await declare_streams(client, replace(SIZES, dead_max_bytes=1024**2 + 200_000))
    state = (await ask_jetstream(client, "STREAM.INFO.DEAD"))["state"]
    assert (state["messages"], state["last_seq"]) == (2, 4)


async def test_a_size_beyond_the_room_of_the_server_stops_no_start(
    client: Client,
) -> None:
    await declare_streams(client, SIZES)
    before = await configurations(client)
    await ask_jetstream(client, "STREAM.DELETE.TURNS")
    await declare_streams(client, replace(SIZES, dead_max_bytes=1024**5))
    assert await configurations(client) == before


async def test_a_consumer_is_declared_twice_and_its_timing_is_adjusted(
    client: Client,
) -> None:
    await declare_streams(client, SIZES)
    with pytest.raises(
        ConfigurationError, match=r"no consumer 'Somebody'; TASKLORE_PROVISION=never"
    ):
        await declare_consumer(client, READER, may_create=False)
    await client.request("tasks.Somebody.x", b"{}", timeout=60)
    for _ in range(2):
        await declare_consumer(client, READER)
    await declare_consumer(
        client,
        PullSource(
            stream=READER.stream,
            durable=READER.durable,
            filter_subject=READER.filter_subject,
            ack_wait_s=5.0,
        ),
    )
    info = await ask_jetstream(client, "CONSUMER.INFO.TASKS.Somebody")
    assert (info["config"]["ack_wait"], info["num_pending"]) == (5 * 10**9, 1)
    assert (
        info["config"].get("max_deliver", -1),
        info["config"].get("max_ack_pending", -1),
    ) == (-1, -1)
    with pytest.raises(
        DriftedConfiguration,
        match=r"filter_subject is 'tasks.Somebody.>', wanted 'tasks.Other.>'",
    ):
        await declare_consumer(
            client,
            PullSource(
                stream=READER.stream,
                durable=READER.durable,
                filter_subject="tasks.Other.>",
                ack_wait_s=5.0,
            ),
        )


async def test_a_card_put_while_all_cards_are_read_is_not_lost(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await declare_streams(client, SIZES)
    bucket = await client.jetstream().key_value(subjects.AGENTS_BUCKET)
    index = CardIndex()
    newcomer = AgentCard(agent_id="Newcomer", tasks=(), digest="d")

    async def read_slowly(asked: Client, warn: Warn) -> list[AgentCard]:
        found = await read_cards(asked, warn)
        if not index.catalogue.cards:
            await bucket.put(newcomer.agent_id, newcomer.model_dump_json().encode())
            index.learn(newcomer)
        return found

    monkeypatch.setattr("tasklore.supervisor.cards.read_cards", read_slowly)
    await index.load(client)
    assert set(index.catalogue.cards) == {"Newcomer"}


async def test_a_stream_changed_by_hand_stops_no_process_at_work(
    client: Client,
) -> None:
    await declare_streams(client, SIZES)
    await ask_jetstream(client, "STREAM.DELETE.DEAD")
    await ask_jetstream(
        client,
        "STREAM.CREATE.DEAD",
        {"name": "DEAD", "subjects": ["dead.>"], "max_age": 60 * 10**9},
    )
    await ask_jetstream(client, "STREAM.DELETE.TASKS")
    source = PullSource(
        stream="TASKS",
        durable="Healed",
        filter_subject="tasks.Healed.>",
        ack_wait_s=2.0,
    )
    with pytest.raises(ConfigurationError, match="TASKLORE_PROVISION=never"):
        await find_consumer(client, source, SIZES, may_create=False)
    made_at = await find_consumer(client, source, SIZES, may_create=True)
    assert await find_consumer(client, source, SIZES, may_create=False) == made_at
