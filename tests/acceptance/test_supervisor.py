"""A conversation with the supervisor over NATS: JSON in, JSON out, as a program of any language holds it."""

import asyncio
import json
import uuid

import pytest

from tests.acceptance.conftest import Standing
from tests.acceptance.external_program import PATIENCE_S, Json, Outside

REQUESTS = "requests.SupervisorAgent"


@pytest.fixture
async def talker(program: Outside, standing: Standing) -> Outside:
    """Give the program once the supervisor has heard of every agent."""
    await asyncio.to_thread(standing.supervisor.await_agents, 3)
    return program


async def ask(program: Outside, text: str, **fields: object) -> Json:
    """Return the supervisor's reply to *text*."""
    return await say(
        program, json.dumps({"schema_version": 1, "text": text} | fields).encode()
    )


async def say(program: Outside, body: bytes) -> Json:
    """Return the supervisor's reply to whatever *body* is."""
    return dict(
        json.loads(
            (await program.client.request(REQUESTS, body, timeout=PATIENCE_S)).data
        )
    )


def new() -> str:
    """Return an id of this test alone."""
    return uuid.uuid4().hex


def memory_of(reply: Json) -> str:
    """Return what the memory had to do with *reply*."""
    return str(reply["report"]["memory"]["outcome"])


async def test_the_seeds_three_questions_are_a_miss_a_hit_and_a_miss(
    talker: Outside,
) -> None:
    """The second one says the same in other words; the third changes what was spent, and takes the history along."""
    conversation = new()
    first = await ask(
        talker,
        "Check my budget: limit 50001, spent 42000, history [5000, 7000, 8000, 6000]",
        conversation_id=conversation,
    )
    second = await ask(
        talker,
        "Analyze budget limit 50,001, spending 42k, past 5k, 7k, 8k and 6k",
        conversation_id=conversation,
    )
    third = await ask(
        talker,
        "Check budget: limit 50001, spent 45000, same history",
        conversation_id=conversation,
    )
    assert [reply["kind"] for reply in (first, second, third)] == ["answer"] * 3
    assert [memory_of(reply) for reply in (first, second, third)] == [
        "miss",
        "hit",
        "miss",
    ]
    assert first["report"]["result"] == second["report"]["result"]
    assert first["report"]["result"]["remaining"] == 8001
    assert third["report"]["result"]["remaining"] == 5001
    assert third["task"]["parameters"]["history"] == [5000, 7000, 8000, 6000]
    assert "From the cache" in second["text"]


async def test_one_request_id_starts_nothing_twice_and_each_turn_is_published_once(
    talker: Outside,
) -> None:
    """Sent again, a request finds the task it started; TURNS holds one turn of the person and one of the assistant."""
    conversation = new()
    request = new()
    fields = {"conversation_id": conversation, "request_id": request}
    text = f"Check my budget: limit {int(request[:6], 16) + 90000}, spent 100"
    first = await ask(talker, text, **fields)
    second = await ask(talker, text, **fields)
    assert (first["kind"], second["kind"]) == ("answer", "answer")
    assert first["request_id"] == second["request_id"] == request
    assert first["report"] == second["report"]
    assert memory_of(second) == "miss"

    said: list[Json] = []

    # Turns of what was asked before, in other conversations, may still be on their way.
    async def both_turns() -> bool:
        said[:] = [
            turn
            for turn in await all_turns(talker)
            if turn["conversation_id"] == conversation
        ]
        return len(said) >= 2

    await talker.eventually(both_turns)
    assert [turn["speaker"] for turn in said] == ["person", "assistant"]
    assert said[0]["text"] == text
    assert said[1]["task"]["name"] == "analyze_budget"


async def test_two_people_who_choose_one_request_id_are_two_people(
    talker: Outside,
) -> None:
    """Each gets an answer of their own, and each of the four turns is published."""
    request = new()
    limit = int(request[:6], 16) + 200_000
    asked = {"alice": limit, "bob": limit + 1}
    replies = {
        user: await ask(
            talker,
            f"Check my budget: limit {number}, spent 100",
            request_id=request,
            user_id=user,
            conversation_id=f"{user}-{request}",
        )
        for user, number in asked.items()
    }
    for user, number in asked.items():
        assert replies[user]["report"]["result"]["remaining"] == number - 100

    said: list[str] = []

    async def four_turns() -> bool:
        said[:] = [turn["conversation_id"] for turn in await all_turns(talker)]
        return all(said.count(f"{user}-{request}") >= 2 for user in asked)

    await talker.eventually(four_turns)
    assert [said.count(f"{user}-{request}") for user in asked] == [2, 2]


async def all_turns(program: Outside) -> list[Json]:
    """Return every turn that lies in TURNS."""
    state = (await program.api("STREAM.INFO.TURNS"))["state"]
    turns = []
    for sequence in range(state["first_seq"], state["last_seq"] + 1):
        body = json.dumps({"seq": sequence}).encode()
        turns.append(
            json.loads(
                (
                    await program.client.request(
                        "$JS.API.DIRECT.GET.TURNS", body, timeout=PATIENCE_S
                    )
                ).data
            )
        )
    return turns


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"{}", "text"),
        (b'{"text": ""}', "text"),
        (b'{"text": "hello", "wait_ms": -1}', "wait_ms"),
        (b'{"text": "hello", "request_id": "a b"}', "request_id"),
        (b"not json", "request"),
        (b"", "request"),
        (b"[1]", "request"),
        (b"\xff\xfe", "request"),
    ],
)
async def test_an_unreadable_request_is_refused_with_the_field(
    talker: Outside, body: bytes, word: str
) -> None:
    """Nobody who asks is left waiting in silence."""
    reply = await say(talker, body)
    assert reply["kind"] == "failed"
    assert word in reply["text"]


async def test_a_card_whose_bucket_was_emptied_comes_back(talker: Outside) -> None:
    """A worker that lives puts its card again; nobody has to restart it."""
    await talker.api("STREAM.PURGE.KV_agents")

    async def is_back() -> bool:
        return "$KV.agents.ProbeAgent" in await talker.counts("KV_agents")

    await talker.eventually(is_back)


async def test_cancellations_pass_the_workers_broker_and_tasks_do_not(
    talker: Outside, standing: Standing
) -> None:
    """FastStream serves what is said on core NATS; the queue is read by the engine alone."""
    worker = standing.worker
    name = "tasklore_broker_received_messages_total"
    before = worker.metric(name)
    for _ in range(5):
        await talker.ask("ProbeAgent", "remembered", {"label": new()})
    assert worker.metric(name) == before
    await talker.client.publish(
        "cancel.nobody", b'{"schema_version": 1, "task_id": "nobody"}'
    )

    async def counted() -> bool:
        # One handler ends what runs here, the other notes the wish for good.
        return worker.metric(name) == before + 2

    await talker.eventually(counted)


async def test_progress_is_published_through_the_workers_broker(
    talker: Outside, standing: Standing
) -> None:
    """A sign of progress reaches whoever listens, and is counted by the middleware on its way."""
    name = "tasklore_broker_published_messages_total"
    before = standing.worker.metric(name)
    task = await talker.assign("ProbeAgent", "fresh", {"label": new()})
    await talker.begun(task)
    [sign] = talker.progress
    assert (sign["fraction"], sign["text"], sign["agent_id"]) == (
        0.0,
        "begun",
        "ProbeAgent",
    )
    assert standing.worker.metric(name) == before + 1
