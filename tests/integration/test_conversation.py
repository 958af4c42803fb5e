"""Conversations: turns in order, once, bounded, and forgotten whole."""

import asyncio
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from contracts.errors import InvalidInput
from memory import keys
from memory.conversations.conversation import Conversations
from memory.conversations.inbox import Inbox
from tests.integration.inboxes import ids, said, seen
from tests.servers import PATIENCE_S


@pytest.fixture
def conversations(valkey_or_redis: Redis) -> Conversations:
    """Return a store that keeps five turns."""
    return Conversations(valkey_or_redis, keep_turns=5, deadline_s=PATIENCE_S)


async def test_turns_come_back_oldest_first(conversations: Conversations) -> None:
    for number in range(3):
        assert await conversations.append("c", b'{"n":%d}' % number, f"t{number}")
    assert await conversations.recent("c") == [b'{"n":0}', b'{"n":1}', b'{"n":2}']
    assert await conversations.recent("c", 2) == [b'{"n":1}', b'{"n":2}']
    assert await conversations.recent("c", 0) == await conversations.recent("c", -1) == []
    assert await conversations.recent("never") == []
    with pytest.raises(InvalidInput):
        await conversations.append("", b"1", "t")


async def test_concurrent_appends_of_one_turn_add_it_once(conversations: Conversations) -> None:
    added = await asyncio.gather(*(conversations.append("c", b"%d" % number, "t1") for number in range(20)))
    assert added.count(True) == 1
    assert await conversations.recent("c") == [b"%d" % added.index(True)]


async def test_concurrent_replacements_of_a_turn_replace_it_once_in_its_place(conversations: Conversations) -> None:
    for number in range(3):
        await conversations.append("c", b"%d" % number, f"t{number}")
    done = await asyncio.gather(*(conversations.replace("c", b"1", b"one %d" % number) for number in range(10)))
    assert done.count(True) == 1
    assert await conversations.recent("c") == [b"0", b"one %d" % done.index(True), b"2"]
    assert not await conversations.append("c", b"1", "t1")
    assert not await conversations.replace("nobody's", b"1", b"2")


async def test_a_conversation_is_bounded_with_its_ids(conversations: Conversations, valkey_or_redis: Redis) -> None:
    for number in range(12):
        await conversations.append("c", b"%d" % number, f"t{number}")
    assert await conversations.recent("c", 100) == [b"7", b"8", b"9", b"10", b"11"]
    assert not await conversations.append("c", b"again", "t11")
    assert await valkey_or_redis.zcard(keys.conversation("c").ids) == 5


async def test_conversations_do_not_mix(conversations: Conversations) -> None:
    """Whatever characters their ids contain."""
    ids = ["a", "a:ids", "a}", "{a}", "a%7D", "ä: 1"]
    for one in ids:
        await conversations.append(one, one.encode(), "t")
    assert [await conversations.recent(one) for one in ids] == [[one.encode()] for one in ids]


async def test_turns_ids_and_the_users_list_expire_together(valkey_or_redis: Redis) -> None:
    conversations = Conversations(valkey_or_redis, keep=timedelta(minutes=1), deadline_s=PATIENCE_S)
    await conversations.append("c", b"1", "t1", user_id="ann")
    found = (keys.conversation("c").said, keys.conversation("c").ids, keys.user_conversations("YW5u"))
    assert all([0 < await valkey_or_redis.pttl(key) <= 60_000 for key in found])


async def test_the_conversations_of_a_user_are_listed_once_each(conversations: Conversations) -> None:
    for name in ("b}{", "a", "a", "\u00e4: 1"):
        await conversations.append(name, b"1", f"t-{name}", user_id="ann")
    await conversations.append("c", b"1", "t", user_id="ben")
    await conversations.append("d", b"1", "t")
    assert await conversations.of_user("ann") == ["a", "b}{", "\u00e4: 1"]
    assert await conversations.of_user("ben") == ["c"]
    assert await conversations.of_user("nobody") == []


async def test_a_forgotten_conversation_leaves_no_key_and_starts_anew(valkey_or_redis: Redis) -> None:
    conversations = Conversations(valkey_or_redis, deadline_s=PATIENCE_S)
    inbox = Inbox(valkey_or_redis, window=1, deadline_s=PATIENCE_S)
    await inbox.take("c", "t1", [said("m1"), said("m2")])
    await inbox.settle("c", "t1", said("x", "Me"), observation=seen())
    await inbox.take("c", "t2")
    assert await inbox.summarise("c", 2, "They met.")
    await inbox.post("c", said("m3"))
    assert await valkey_or_redis.exists(*keys.conversation("c")) == len(keys.conversation("c"))
    assert await conversations.forget("c")
    assert await valkey_or_redis.keys() == []
    assert not await conversations.forget("c")
    assert await conversations.append("c", b"1", "m1")


async def test_dropped_turns_leave_the_others_seen_or_new_as_they_were_and_end_the_summary(
    valkey_or_redis: Redis,
) -> None:
    conversations = Conversations(valkey_or_redis, deadline_s=PATIENCE_S)
    inbox = Inbox(valkey_or_redis, window=3, deadline_s=PATIENCE_S)
    await inbox.take("c", "t1", [said(f"m{number}") for number in range(5)])
    await inbox.settle("c", "t1", observation=seen())
    await inbox.take("c", "t2")
    assert await inbox.summarise("c", 2, "They met.")
    await inbox.post("c", said("m5"))
    await inbox.post("c", said("m6"))
    stored, waiting = await conversations.recent("c", 9), await conversations.waiting("c")
    assert [len(stored), len(waiting)] == [5, 2]
    assert await conversations.drop("c", [stored[1], stored[3], waiting[0]]) == 3
    assert await conversations.recent("c", 2) == [stored[2], stored[4]]
    assert await conversations.waiting("c") == waiting[1:]
    taken = await inbox.take("c", "t3", observations=9)
    assert (ids(taken.history.past), ids(taken.history.current)) == (["m4"], ["m6"])
    assert (taken.history.earlier.count, taken.history.earlier.summary, taken.observations) == (4, None, ())


async def test_a_summary_of_turns_that_were_dropped_meanwhile_is_refused(valkey_or_redis: Redis) -> None:
    conversations = Conversations(valkey_or_redis, deadline_s=PATIENCE_S)
    inbox = Inbox(valkey_or_redis, window=1, deadline_s=PATIENCE_S)
    await inbox.take("c", "t1", [said(f"m{number}") for number in range(5)])
    await inbox.settle("c", "t1")
    before = (await inbox.take("c", "t2")).history.earlier
    assert await conversations.drop("c", (await conversations.recent("c", 9))[:1]) == 1
    assert not await inbox.summarise("c", 4, "Ann said a secret.", removals=before.removals)
    after = (await inbox.take("c", "t3")).history.earlier
    assert (before.removals, after.removals, after.summary) == (0, 1, None)
    assert await inbox.summarise("c", 4, "They met.", removals=after.removals)
    await conversations.drop("c", [b"never there"])
    assert (await inbox.take("c", "t4")).history.earlier.removals == 1
    assert all([await valkey_or_redis.pttl(key) > 0 for key in await valkey_or_redis.keys()])


async def test_waiting_messages_are_read_without_being_taken(valkey_or_redis: Redis) -> None:
    conversations = Conversations(valkey_or_redis, deadline_s=PATIENCE_S)
    inbox = Inbox(valkey_or_redis, deadline_s=PATIENCE_S)
    for name in ("m1", "m2"):
        await inbox.post("c", said(name))
    assert [b'"m1"' in body for body in await conversations.waiting("c")] == [True, False]
    assert await conversations.waiting("never") == []
    assert (await inbox.take("c", "t1")).history.num_new == 2
