"""Observations of agents in conversations, on a real store."""

import asyncio
from datetime import timedelta

import pytest
from pydantic import ValidationError
from redis.asyncio import Redis

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.observations import (
    Action,
    AgentTarget,
    Observation,
    Position,
    SensoryData,
)
from tasklore.memory import keys
from tasklore.memory.conversations.observations import Observations
from tests.integration.inboxes import seen
from tests.servers import PATIENCE_S


@pytest.fixture
def observations(valkey_or_redis: Redis) -> Observations:
    return Observations(valkey_or_redis, keep=5, deadline_s=PATIENCE_S)


async def test_the_last_observations_are_kept_oldest_first_one_a_task(
    observations: Observations,
) -> None:
    for number in range(12):
        assert await observations.note("c", f"t{number}", seen(number))
    assert await observations.recent("c", 99) == tuple(
        seen(number) for number in range(7, 12)
    )
    assert await observations.recent("c", 2) == (seen(10), seen(11))
    assert await observations.recent("c", 0) == await observations.recent("c", -1) == ()
    assert not await observations.note("c", "t11", seen(11))
    noted = await asyncio.gather(
        *(observations.note("c", "t12", seen(number)) for number in range(10))
    )
    assert noted.count(True) == 1


async def test_senses_and_actions_come_back_whole(observations: Observations) -> None:
    sensed = SensoryData.model_validate(
        {
            "position": {"x": 0.1 + 0.2, "z": -3},
            "nearbyAgents": [
                {"name": "Alice"},
                {"name": "Bob", "position": {"x": 1, "z": 1}},
            ],
            "worldObjects": [{"type": "coin", "position": {"x": 2, "z": 1.6}}],
            "collected": {"coin": 1},
            "weather": {"rain": None, "wind": [1, 2.5]},
        }
    )
    did = Action(
        action="text", target=AgentTarget(agent="Alice"), utterance="Found coins!"
    )
    every = [
        Observation(time=1.25, sensed=sensed, did=did),
        Observation(time=2, did=Action(action="move", target=Position(x=1, z=2))),
        Observation(time=3, sensed=sensed),
    ]
    for number, one in enumerate(every):
        await observations.note("c", f"t{number}", one)
    assert await observations.recent("c", 3) == tuple(every)


def test_an_observation_holds_no_message() -> None:
    for key in ("receivedTexts", "messages", "utterance"):
        sensed = {"position": {"x": 1, "z": 1}, "inner": [{key: "hello"}]}
        with pytest.raises(ValidationError, match="new_messages"):
            Observation.model_validate({"time": 1, "sensed": sensed})


async def test_observations_of_conversations_do_not_mix(
    observations: Observations,
) -> None:
    owners = ["a", "a:ids", "a}", "{a}", "ä"]
    for number, owner in enumerate(owners):
        await observations.note(owner, "t1", seen(number))
    assert [await observations.recent(owner, 9) for owner in owners] == [
        (seen(number),) for number in range(5)
    ]
    assert await observations.recent("never", 9) == ()
    with pytest.raises(InvalidInput, match="conversation id"):
        await observations.note("", "t1", seen())


async def test_observations_expire_a_while_after_the_last(
    valkey_or_redis: Redis,
) -> None:
    of = keys.conversation("c")
    observations = Observations(
        valkey_or_redis, keep=5, keep_for=timedelta(minutes=1), deadline_s=PATIENCE_S
    )
    for number in range(9):
        await observations.note("c", f"t{number}", seen())
    lives = [await valkey_or_redis.pttl(key) for key in (of.observed, of.observed_in)]
    assert all(0 < life <= 60_000 for life in lives)
    assert (
        await valkey_or_redis.zcard(of.observed_in)
        == await valkey_or_redis.llen(of.observed)
        == 5
    )


async def test_unreadable_observations_are_left_out(valkey_or_redis: Redis) -> None:
    observations = Observations(valkey_or_redis, deadline_s=PATIENCE_S)
    await observations.note("c", "t1", seen(1))
    await valkey_or_redis.rpush(
        keys.conversation("c").observed, b"not json", b'{"time": -1}'
    )
    assert await observations.recent("c", 9) == (seen(1),)
