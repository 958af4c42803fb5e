"""Records of what was asked over HTTP, on every kind of store: claimed once, held by one, and told how they ended."""

import asyncio
from datetime import timedelta

from redis.asyncio import Redis

from memory.ledger.requests import RequestEnd, RequestRecord, RequestRecords, place_of
from tests.servers import PATIENCE_S

PLACE = place_of("", "request", "r1")
RECORD = RequestRecord(digest="d1", task_id="t1", at_ms=1, conversation_id="c1", memory="bypass")


async def test_the_first_who_claims_an_id_has_it(valkey_or_redis: Redis) -> None:
    """Of many at once one; the others are shown what is there."""
    records = RequestRecords(valkey_or_redis, deadline_s=PATIENCE_S)
    others = [RECORD.model_copy(update={"digest": f"d{number}"}) for number in range(20)]
    found = await asyncio.gather(*(records.claim(PLACE, one) for one in others))

    [first] = [one for one, earlier in zip(others, found, strict=True) if earlier is None]
    assert {earlier for earlier in found if earlier is not None} == {first}
    assert await records.find(PLACE) == (first, None, False)


async def test_one_process_works_on_a_request_at_a_time(valkey_or_redis: Redis) -> None:
    """Until it lets go, or falls silent."""
    records = RequestRecords(valkey_or_redis, deadline_s=PATIENCE_S)
    assert [await records.hold(PLACE, 60_000), await records.hold(PLACE, 60_000)] == [True, False]
    assert (await records.find(PLACE)).is_held
    await records.let_go(PLACE, None)
    assert await records.hold(PLACE, 1)
    await records.keep_holding([PLACE], 60_000)
    assert not await records.hold(PLACE, 1)


async def test_an_id_that_was_just_made_is_claimed_and_held_at_once(valkey_or_redis: Redis) -> None:
    """Nobody else works on it until it is let go."""
    records = RequestRecords(valkey_or_redis, deadline_s=PATIENCE_S)
    assert await records.claim(PLACE, RECORD, 60_000) is None
    assert not await records.hold(PLACE, 1)
    assert await records.find(PLACE) == (RECORD, None, True)


async def test_an_end_is_known_until_it_is_begun_again(valkey_or_redis: Redis) -> None:
    """With what neither a turn nor a report tells; nothing of it outlives its time."""
    records = RequestRecords(valkey_or_redis, keep=timedelta(minutes=1), deadline_s=PATIENCE_S)
    await records.claim(PLACE, RECORD)
    end = RequestEnd(kind="question", missing=("spent",), elapsed_ms=3)
    await records.let_go(PLACE, end)
    assert await records.find(PLACE) == (RECORD, end, False)
    lives_ms = [await valkey_or_redis.pttl(key) for key in await valkey_or_redis.keys("*")]
    assert len(lives_ms) == 2
    assert all(0 < one <= 60_000 for one in lives_ms)
    await records.let_go(PLACE, None)
    assert await records.find(PLACE) == (RECORD, None, False)


def test_a_place_tells_nothing_and_is_nobody_elses() -> None:
    """Neither ids nor users stand in a key; another space, kind or id is another place."""
    places = {place_of(space, kind, name) for space in ("", "YQ") for kind in ("request", "task") for name in "ab"}
    assert len(places) == 8
    assert all(len(place) == 32 for place in places)
