"""Records of HTTP requests: an id is claimed once, held by one process, and its end is known."""

import asyncio
from datetime import timedelta

from redis.asyncio import Redis

from memory.ledger.requests import RequestEnd, RequestRecord, RequestRecords, place_of
from tests.servers import PATIENCE_S

PLACE = place_of("", "request", "r1")
RECORD = RequestRecord(digest="d1", task_id="t1", at_ms=1, conversation_id="c1", memory="bypass")


async def test_of_many_claims_of_an_id_one_succeeds(valkey_or_redis: Redis) -> None:
    records = RequestRecords(valkey_or_redis, deadline_s=PATIENCE_S)
    others = [RECORD.model_copy(update={"digest": f"d{number}"}) for number in range(20)]
    found = await asyncio.gather(*(records.claim(PLACE, one) for one in others))

    [first] = [one for one, earlier in zip(others, found, strict=True) if earlier is None]
    assert {earlier for earlier in found if earlier is not None} == {first}
    assert await records.find(PLACE) == (first, None, False)


async def test_one_process_at_a_time_holds_a_request(valkey_or_redis: Redis) -> None:
    """Until it lets go, or stops renewing."""
    records = RequestRecords(valkey_or_redis, deadline_s=PATIENCE_S)
    assert [await records.hold(PLACE, 60_000), await records.hold(PLACE, 60_000)] == [True, False]
    assert (await records.find(PLACE)).is_held
    await records.let_go(PLACE, None)
    assert await records.hold(PLACE, 1)
    await records.keep_holding([PLACE], 60_000)
    assert not await records.hold(PLACE, 1)


async def test_a_new_id_is_claimed_and_held_in_one_step(valkey_or_redis: Redis) -> None:
    records = RequestRecords(valkey_or_redis, deadline_s=PATIENCE_S)
    assert await records.claim(PLACE, RECORD, 60_000) is None
    assert not await records.hold(PLACE, 1)
    assert await records.find(PLACE) == (RECORD, None, True)


async def test_an_end_is_known_until_the_request_is_begun_again(valkey_or_redis: Redis) -> None:
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


def test_a_place_contains_no_id_and_differs_by_space_kind_and_id() -> None:
    places = {place_of(space, kind, name) for space in ("", "YQ") for kind in ("request", "task") for name in "ab"}
    assert len(places) == 8
    assert all(len(place) == 32 for place in places)
