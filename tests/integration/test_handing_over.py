"""Facts of turns enter their table in the step that closes the turns: whoever dies, and whatever is in the way."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import InvalidInput, MemoryUnavailable
from tasklore.contracts.identifiers import user_token
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.queues.claims import Closing, NewRow
from tasklore.memory.queues.queue import PersonalQueue
from tests.integration.waiting import (
    BLINK_MS,
    LATER,
    LEASE_MS,
    NOW,
    OWNER,
    TABLE,
    claimed,
    closing_all,
    ids,
    states,
    until,
)
from tests.servers import PATIENCE_S

TRACE = f"00-{'a' * 32}-{'b' * 16}-01"
ROWS = (
    NewRow(row_id="a-0", body=b"first", trace=TRACE),
    NewRow(row_id="b-0", body=b"second"),
)


@pytest.fixture
def turns(valkey_or_redis: Redis) -> PersonalQueue:
    return PersonalQueue(valkey_or_redis, "turns", deadline_s=PATIENCE_S)


@pytest.fixture
def facts(valkey_or_redis: Redis) -> PersonalQueue:
    return PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S)


async def test_rows_are_appended_and_others_closed_once(
    turns: PersonalQueue, facts: PersonalQueue
) -> None:
    await turns.append(OWNER, TABLE)
    claim = await claimed(turns)
    closings = [
        Closing(row_id="a", state="done", reason="learned"),
        Closing(row_id="b", state="needs_model", reason="away", note=b"known"),
    ]
    for _ in range(2):
        assert await facts.take_over(claim, closings, ROWS)
    await turns.release(claim)
    assert await states(turns) == {"c": "waiting", "a": "done", "b": "needs_model"}
    noted = {row.row_id: row.note for row in await turns.rows(OWNER, 9)}
    assert noted == {"a": None, "b": b"known", "c": None}
    found = await claimed(facts)
    assert [(row.row_id, row.body, row.trace) for row in found.rows] == [
        ("a-0", b"first", TRACE),
        ("b-0", b"second", ""),
    ]


async def test_a_row_that_came_before_by_another_way_is_not_doubled(
    turns: PersonalQueue, facts: PersonalQueue
) -> None:
    """As when a worker of 0.2 published the same facts: whether they wait, or are dealt with."""
    await facts.append(OWNER, [("a-0", b"first")])
    done = await claimed(facts)
    await facts.close(done, closing_all(done))
    await facts.release(done)
    await facts.append(OWNER, [("b-0", b"second")])
    await turns.append(OWNER, TABLE)
    claim = await claimed(turns)
    assert await facts.take_over(claim, closing_all(claim), ROWS)
    assert await facts.append(OWNER, [(row.row_id, row.body) for row in ROWS]) == 0
    assert await states(facts) == {"b-0": "waiting", "a-0": "done"}


async def test_what_is_handed_over_under_a_lost_claim_changes_nothing(
    turns: PersonalQueue, facts: PersonalQueue, valkey_or_redis: Redis
) -> None:
    await turns.append(OWNER, TABLE)
    lost = await claimed(turns, lease_ms=BLINK_MS)

    async def is_over() -> bool | None:
        return None if await turns.renew(lost, BLINK_MS) else True

    await until(is_over)
    before = await valkey_or_redis.keys("*")
    assert not await facts.take_over(lost, closing_all(lost), ROWS)
    assert sorted(await valkey_or_redis.keys("*")) == sorted(before)
    assert set((await states(turns)).values()) == {"waiting"}


async def test_a_row_without_an_id_is_refused_before_anything_is_written(
    turns: PersonalQueue, facts: PersonalQueue
) -> None:
    await turns.append(OWNER, TABLE)
    claim = await claimed(turns)
    with pytest.raises(InvalidInput, match="needs an id"):
        await facts.take_over(
            claim, closing_all(claim), [*ROWS, NewRow(row_id="", body=b"third")]
        )
    assert await states(facts) == {}


class Cut:
    """Sends the first *most* commands of a write alone, as a process does that is killed over it."""

    def __init__(self, batch: CommandBatch, most: int) -> None:
        self._batch = batch
        self._most = most

    async def run(self, commands: Sequence[Command]) -> list[Any]:
        """Run some of *commands*, and die."""
        if self._most:
            await self._batch.run(commands[: self._most])
        raise ConnectionAbortedError


@pytest.mark.parametrize("sent", [0, 1, 2, 3])
async def test_whoever_is_killed_over_a_hand_over_leaves_all_or_nothing(
    turns: PersonalQueue, facts: PersonalQueue, valkey_or_redis: Redis, sent: int
) -> None:
    """Rows that wait have an owner who is looked at; of an owner of none nothing stays."""
    await turns.append(OWNER, TABLE)
    claim = await claimed(turns)
    mortal = PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S)
    mortal._batch = cast("CommandBatch", Cut(mortal._batch, sent))
    with pytest.raises(ConnectionAbortedError):
        await mortal.take_over(claim, closing_all(claim), ROWS)
    is_done = sent >= 2
    assert set((await states(turns)).values()) == {"done" if is_done else "waiting"}
    assert list(await states(facts)) == (
        [row.row_id for row in ROWS] if is_done else []
    )
    for owner in await facts.owners_due(LATER, 9):
        found = await facts.claim(
            owner, holder="w2", limit=9, lease_ms=LEASE_MS, now_ms=NOW
        )
        assert (found is not None) == is_done
        if found is not None:
            assert ids(found) == ["a-0", "b-0"]
    # The next run of the turns, if there is one, finds the same facts.
    assert await facts.take_over(claim, closing_all(claim), ROWS)
    assert await facts.owners_due(LATER, 9) == [OWNER]
    assert len(await facts.rows(OWNER, 9)) == 2


@pytest.mark.parametrize("part", ["rows", "pending", "state", "closed", "fence"])
@pytest.mark.parametrize("table", ["turns", "facts"])
async def test_a_key_of_another_type_refuses_a_hand_over_as_a_whole(
    turns: PersonalQueue,
    facts: PersonalQueue,
    valkey_or_redis: Redis,
    table: str,
    part: str,
) -> None:
    await turns.append(OWNER, TABLE)
    claim = await claimed(turns)
    key = getattr(keys.queue(table, user_token(OWNER)), part)
    await valkey_or_redis.delete(key)
    await valkey_or_redis.rpush(key, "of another type")
    before = sorted(await valkey_or_redis.keys("tl:*:pending"))
    with pytest.raises(MemoryUnavailable, match="WRONGTYPE"):
        await facts.take_over(claim, closing_all(claim), ROWS)
    assert sorted(await valkey_or_redis.keys("tl:*:pending")) == before
    other = "facts" if table == "turns" else "turns"
    rows = keys.queue(other, user_token(OWNER)).rows
    assert await valkey_or_redis.hlen(rows) == (0 if other == "facts" else len(TABLE))


async def test_a_full_server_refuses_a_hand_over_as_a_whole(
    turns: PersonalQueue, facts: PersonalQueue, valkey_or_redis: Redis
) -> None:
    """The turns wait as they did, and no further ones are claimed: nobody asks a model about what cannot be kept."""
    await turns.append(OWNER, TABLE)
    await turns.append("other", TABLE)
    claim = await claimed(turns)
    await valkey_or_redis.config_set("maxmemory", 1)
    try:
        with pytest.raises(MemoryUnavailable, match="maxmemory"):
            await facts.take_over(claim, closing_all(claim), ROWS)
        with pytest.raises(MemoryUnavailable, match="maxmemory"):
            await claimed(turns, "other")
    finally:
        await valkey_or_redis.config_set("maxmemory", 0)
    assert set((await states(turns)).values()) == {"waiting"}
    assert await states(facts) == {}
    assert await facts.take_over(claim, closing_all(claim), ROWS)
