"""Conversations and inboxes: turns and messages in order, once, bounded, and forgotten whole."""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from tasklore.contracts.conversations import Digest, History
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import ChatTurn
from tasklore.memory import keys
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.conversations.inbox import LONGEST_SUMMARY, Inbox
from tests.integration.inboxes import ids, said, seen, whole
from tests.servers import PATIENCE_S

AT = datetime(2026, 11, 21, 12, 0, 0, 250_000, tzinfo=UTC)


@pytest.fixture
def inbox(valkey_or_redis: Redis) -> Inbox:
    """Return an inbox that shows four messages and keeps ten."""
    return Inbox(valkey_or_redis, window=4, keep=10, deadline_s=PATIENCE_S)


def shown(history: History) -> tuple[list[str], list[str]]:
    return ids(history.past), ids(history.current)


async def turn(redis: Redis, number: int, text: str = "hello", **more: str) -> None:
    one = ChatTurn.model_validate(
        {
            "turn_id": f"p{number}",
            "conversation_id": "c",
            "speaker": "person",
            "text": text,
            "at": AT,
            **more,
        }
    )
    body = one.model_dump_json(exclude_none=True).encode()
    await Conversations(redis, keep_turns=10, deadline_s=PATIENCE_S).append(
        "c", body, one.turn_id
    )


async def test_posted_messages_are_taken_in_order_and_past_once_settled(
    inbox: Inbox,
) -> None:
    messages = [
        said(f"m{number}", "Ann" if number % 2 else "Bob", number / 4, "a 'b' \\ \n ü")
        for number in range(3)
    ]
    for one in messages:
        assert await inbox.post("c", one)
    history = (await inbox.take("c", "t1")).history
    assert (history.past, history.current) == ((), tuple(messages))
    await inbox.settle("c", "t1")
    assert shown((await inbox.take("c", "t2")).history) == (["m0", "m1", "m2"], [])


async def test_concurrent_posts_of_one_message_deliver_it_once(inbox: Inbox) -> None:
    posted = await asyncio.gather(*(inbox.post("c", said("m1")) for _ in range(20)))
    assert posted.count(True) == 1
    assert shown((await inbox.take("c", "t1")).history) == ([], ["m1"])


async def test_a_settled_task_is_shown_the_same_again_with_what_it_did(
    inbox: Inbox,
) -> None:
    await inbox.post("c", said("m1"))
    first = await inbox.take("c", "t1", observations=5)
    await inbox.settle("c", "t1", said("x", "Me"), observation=seen(7, "text"))
    again = await inbox.take("c", "t1", observations=5)
    assert again.history == first.history
    assert (first.is_settled, again.is_settled) == (False, True)
    assert (first.done, again.done) == (None, seen(7, "text"))
    assert again.observations == ()
    after = await inbox.take("c", "t2", observations=5)
    assert (after.done, after.observations) == (None, (seen(7, "text"),))


async def test_senses_can_be_left_out_of_observations(inbox: Inbox) -> None:
    await inbox.take("c", "t1")
    await inbox.settle("c", "t1", observation=seen(7, "text"))
    whole = (await inbox.take("c", "t2", observations=5)).observations
    deeds = (await inbox.take("c", "t2", observations=5, senses=False)).observations

    assert whole == (seen(7, "text"),)
    assert deeds == (seen(7, "text").model_copy(update={"sensed": None}),)


async def test_settling_twice_changes_nothing(inbox: Inbox) -> None:
    await inbox.take("c", "t1", [said("m1")])
    await inbox.settle("c", "t1", said("x", "Me", message="first"), observation=seen(1))
    await inbox.settle(
        "c", "t1", said("y", "Me", message="second"), observation=seen(2)
    )
    history = (await inbox.take("c", "t2")).history
    assert shown(history) == (["m1", "t1:said"], [])
    assert history.past[-1].message == "first"
    assert await inbox.recent_observations("c", 9) == (seen(1),)


async def test_turns_and_messages_are_one_conversation(
    inbox: Inbox, valkey_or_redis: Redis
) -> None:
    await turn(valkey_or_redis, 1, "x" * 3000)
    await turn(valkey_or_redis, 2, "bell\x07", speaker="assistant", agent_id="Budget")
    await turn(valkey_or_redis, 3, "", speaker="assistant")
    history = (await inbox.take("c", "t1", [said("m1")])).history
    assert [one.speaker for one in history.past] == ["Budget", "assistant"]
    assert [one.speaker for one in history.current] == ["person", "Bob"]
    assert [len(one.message) for one in (*history.past, *history.current[:1])] == [
        5,
        1,
        2000,
    ]
    assert history.current[0].time == AT.timestamp()


async def test_an_answer_of_the_assistant_is_never_new(
    inbox: Inbox, valkey_or_redis: Redis
) -> None:
    """Nor for the retry of a task, nor for one that takes after a failure."""
    answer = {"speaker": "assistant", "agent_id": "Budget"}
    await turn(valkey_or_redis, 1)
    await inbox.take("c", "t1")
    await turn(valkey_or_redis, 2, **answer)
    await turn(valkey_or_redis, 3)
    for task in ("t2", "t2", "t3"):
        assert shown((await inbox.take("c", task)).history) == (["p2"], ["p1", "p3"])
    await inbox.settle("c", "t3")
    await turn(valkey_or_redis, 4, **answer)
    assert shown((await inbox.take("c", "t4")).history) == (
        ["p1", "p2", "p3", "p4"],
        [],
    )
    await turn(valkey_or_redis, 5)
    assert shown((await inbox.take("c", "t5")).history) == (["p2", "p3", "p4"], ["p5"])


async def test_messages_that_leave_the_window_are_counted_once(
    inbox: Inbox, valkey_or_redis: Redis
) -> None:
    """By who said them and from when to when; what is new is shown however much it is."""
    await turn(valkey_or_redis, 1)
    await inbox.take(
        "c", "t1", [said(f"m{number}", "Ann", number) for number in range(7)]
    )
    history = (await inbox.take("c", "t1")).history
    assert (history.num_new, history.earlier) == (8, Digest())
    await inbox.settle("c", "t1")
    for task in ("t2", "t3"):
        history = (await inbox.take("c", task)).history
        assert shown(history) == (["m3", "m4", "m5", "m6"], [])
        expected = Digest(4, {"person": 1, "Ann": 3}, since=0.0, until=AT.timestamp())
        assert history.earlier == expected


async def test_the_time_of_a_turn_is_read_in_any_zone(valkey_or_redis: Redis) -> None:
    inbox = Inbox(valkey_or_redis, window=0, deadline_s=PATIENCE_S)
    conversations = Conversations(valkey_or_redis, deadline_s=PATIENCE_S)
    for year, zone in itertools.product(
        ("1999-02-28", "2000-02-29", "2024-12-31"), ("+02:00", "-05:30", "Z")
    ):
        at = f"{year}T23:59:58.123456{zone}"
        turn = b'{"turn_id":"p","conversation_id":"%b","speaker":"person","text":"x","at":"%b"}'
        await conversations.append(at, turn % (at.encode(), at.encode()), "p")
        await inbox.take(at, "t1")
        await inbox.settle(at, "t1")
        since = (await inbox.take(at, "t2")).history.earlier.since
        assert since == pytest.approx(datetime.fromisoformat(at).timestamp(), abs=1e-6)


async def test_a_digest_names_at_most_two_hundred_speakers(
    valkey_or_redis: Redis,
) -> None:
    inbox = Inbox(valkey_or_redis, window=1, deadline_s=PATIENCE_S)
    for number in range(5):
        task = f"t{number}"
        await inbox.take(
            "c", task, [said(f"{task}-{n}", f"Agent {task} {n}") for n in range(100)]
        )
        await inbox.settle("c", task)
    earlier = (await inbox.take("c", "t9")).history.earlier
    assert earlier.count == sum(earlier.speakers.values()) == 499
    assert len(earlier.speakers) <= 202
    assert earlier.speakers["others"] >= 290


async def test_a_summary_is_kept_beside_the_digest(inbox: Inbox) -> None:
    """Of messages that have left the window, and no older one in the place of a newer."""
    await inbox.take("c", "t1", [said(f"m{number}") for number in range(8)])
    assert not await inbox.summarise("c", 1, "nothing has left yet")
    await inbox.settle("c", "t1")
    await inbox.take("c", "t2")
    assert not await inbox.summarise("c", 5, "one that is still shown")
    assert await inbox.summarise("c", 3, "They met.")
    assert not await inbox.summarise("c", 3, "Again.")
    assert not await inbox.summarise("c", 2, "Less.")
    earlier = (await inbox.take("c", "t2")).history.earlier
    assert (earlier.count, earlier.summary, earlier.summarised) == (4, "They met.", 3)
    assert await inbox.summarise("c", 4, "They met, ünd talked.")
    assert (
        await inbox.take("c", "t2")
    ).history.earlier.summary == "They met, ünd talked."


async def test_a_conversation_is_read_page_by_page(inbox: Inbox) -> None:
    """Each message once, though more is added meanwhile; messages that are gone are counted."""
    await inbox.take("c", "t1", [said(f"m{number}") for number in range(7)])
    last = await inbox.page("c", count=3)
    assert (ids(last.messages), last.before) == (["m4", "m5", "m6"], 5)
    await inbox.take("c", "t2", [said("late"), said("later")])
    middle = await inbox.page("c", last.before, 3)
    assert (ids(middle.messages), middle.before) == (["m1", "m2", "m3"], 2)
    first = await inbox.page("c", middle.before, 3)
    assert (ids(first.messages), first.before) == (["m0"], None)
    assert await whole(inbox, "c", 2) == [
        *(f"m{number}" for number in range(7)),
        "late",
        "later",
    ]

    await inbox.take("many", "t1", [said(f"m{number}") for number in range(13)])
    assert [(await inbox.page("many", before, 2)).gone for before in (None, 5, 3)] == [
        3,
        3,
        3,
    ]
    assert (await inbox.page("many", 3, 2)).messages == ()
    await inbox.post("waiting", said("m1"))
    for owner in ("never", "waiting"):
        page = await inbox.page(owner)
        assert (page.messages, page.before, page.gone) == ((), None, 0)


async def test_a_page_of_whole_texts_ends_by_bytes_and_misses_no_message(
    inbox: Inbox, valkey_or_redis: Redis
) -> None:
    """Each text as it was said, and the newest whatever its length; agents read the beginning of it."""
    texts = ["a\r\n\x07b", "", *("é" * size for size in (3_000, 20_000, 10, 30_000))]
    for number, text in enumerate(texts):
        await turn(valkey_or_redis, number, text)
    for most_bytes in (1, 7_000, 45_000, 1_000_000):
        found: list[str] = []
        before: int | None = None
        pages = 0
        while pages == 0 or before is not None:
            page = await inbox.exact_page("c", before, 4, most_bytes)
            assert page.messages
            found[:0] = [one.text for one in page.messages]
            before = page.before
            pages += 1
        assert found == texts
        assert pages >= (len(texts) if most_bytes == 1 else 2)
    assert max(len(one.message) for one in (await inbox.page("c")).messages) == 2_000


async def test_unusable_pages_task_ids_and_summaries_are_refused(inbox: Inbox) -> None:
    for before, count in ((0, 1), (-1, 1), (None, 0), (None, -1), (None, 1001)):
        with pytest.raises(InvalidInput, match=r"before|count"):
            await inbox.page("c", before, count)
    for task_id in ("", "two words", "a\nb", "x" * 65):
        with pytest.raises(InvalidInput, match="task id"):
            await inbox.take("c", task_id)
        with pytest.raises(InvalidInput, match="task id"):
            await inbox.settle("c", task_id)
    for text in ("", "x" * (LONGEST_SUMMARY + 1), "\ud800"):
        with pytest.raises(InvalidInput, match="summary"):
            await inbox.summarise("c", 1, text)


async def test_a_conversation_is_bounded(inbox: Inbox, valkey_or_redis: Redis) -> None:
    """The oldest messages that nobody takes fall off, and are counted."""
    for number in range(35):
        await inbox.post("c", said(f"m{number}"))
    history = (await inbox.take("c", "t1")).history
    assert shown(history) == ([], [f"m{number}" for number in range(25, 35)])
    assert (history.earlier.count, history.earlier.speakers) == (25, {"Bob": 25})
    assert await whole(inbox, "c") == [f"m{number}" for number in range(25, 35)]
    of = keys.conversation("c")
    assert (
        await valkey_or_redis.llen(of.said) == await valkey_or_redis.zcard(of.ids) == 10
    )
    assert not await valkey_or_redis.exists(of.inbox)


@pytest.mark.parametrize("at", range(7))
async def test_a_key_of_another_type_is_replaced_and_nothing_else_is_lost(
    valkey_or_redis: Redis, at: int
) -> None:
    inbox = Inbox(valkey_or_redis, deadline_s=PATIENCE_S)
    other = keys.conversation("c")[at]
    await inbox.take("c", "t1", [said("m1")])
    await inbox.settle("c", "t1", said("x", "Me"), observation=seen())
    await inbox.post("c", said("m2"))
    await valkey_or_redis.delete(other)
    if at in (0, 2, 5):
        await valkey_or_redis.set(other, "not ours")
    else:
        await valkey_or_redis.lpush(other, "not ours")
    await inbox.page("c")
    taken = await inbox.take("c", "t2", [said("m3")], observations=9)
    assert {"m3"} <= set(ids(taken.history.current)) <= {"m1", "m2", "m3", "t1:said"}
    assert ("m2" in ids(taken.history.current)) == (at != 2)
    await inbox.settle("c", "t2", said("y", "Me"), observation=seen(2))
    await inbox.post("c", said("m4"))
    assert ids((await inbox.take("c", "t3")).history.current) == ["m4"]
    assert (await inbox.recent_observations("c", 1)) == (seen(2),)


async def test_all_of_a_conversation_expires_together(valkey_or_redis: Redis) -> None:
    """Half of it would make old messages new."""
    inbox = Inbox(
        valkey_or_redis, window=1, keep_for=timedelta(minutes=1), deadline_s=PATIENCE_S
    )
    await inbox.take("c", "t1", [said("m1"), said("m2"), said("m3")])
    await inbox.settle("c", "t1", said("x", "Me"), observation=seen())
    await inbox.take("c", "t2")
    await inbox.post("c", said("m4"))
    of = keys.conversation("c")
    lives = [await valkey_or_redis.pttl(key) for key in of]
    assert all(0 < life <= 60_000 for life in lives), lives
    # The server's clock stands still while one script runs.
    assert len({await valkey_or_redis.pexpiretime(key) for key in of[:5]}) == 1


async def test_messages_of_one_id_and_two_senders_are_two(inbox: Inbox) -> None:
    for text in ("first", "again"):
        for who in ("Bob", "Mallory"):
            is_new = await inbox.post(
                "c", said("m1", who, message=text), known_as=f"m1 {who}"
            )
            assert is_new == (text == "first")
    taken = await inbox.take("c", "t1", [said("m1", "Carol")])
    assert [(one.speaker, one.message_id) for one in taken.history.current] == [
        ("Carol", "m1"), ("Bob", "m1"), ("Mallory", "m1"),
    ]  # fmt: skip
    for who in ("Bob", "Mallory"):
        assert not await inbox.post("c", said("m1", who), known_as=f"m1 {who}")
    assert not await inbox.post("c", said("m1", "Carol"))


async def test_a_task_is_remembered_among_the_last_thirty_two(inbox: Inbox) -> None:
    await inbox.take("c", "t0", [said("m1")])
    for number in range(1, 33):
        await inbox.take("c", f"t{number}")
    await inbox.post("c", said("m2"))
    assert shown((await inbox.take("c", "t1")).history) == ([], ["m1"])
    assert shown((await inbox.take("c", "t0")).history) == ([], ["m1", "m2"])


async def test_a_message_and_its_conversation_belong_to_the_user_who_spoke(
    inbox: Inbox, valkey_or_redis: Redis
) -> None:
    await inbox.post("c", said("m1"), user_id="ann")
    await inbox.post(
        "c", said("m2").model_copy(update={"user_id": "ben"}), user_id="ann"
    )
    await inbox.take("c", "t1", [said("m3")], user_id="cay")
    await inbox.settle("c", "t1", said("x", "Me"), user_id="dan")
    messages = (await inbox.page("c")).messages
    assert [one.user_id for one in messages] == ["cay", "ann", "ben", "dan"]
    # Forgetting them has to find the conversations.
    await inbox.take("taken", "t1", user_id="ann")
    await inbox.settle("settled", "t1", said("x"), user_id="ann")
    assert await Conversations(valkey_or_redis, deadline_s=PATIENCE_S).of_user(
        "ann"
    ) == ["c", "settled", "taken"]


@pytest.fixture
def conversations(valkey_or_redis: Redis) -> Conversations:
    """Return a store that keeps five turns."""
    return Conversations(valkey_or_redis, keep_turns=5, deadline_s=PATIENCE_S)


async def test_turns_come_back_oldest_first(conversations: Conversations) -> None:
    for number in range(3):
        assert await conversations.append("c", b'{"n":%d}' % number, f"t{number}")
    assert await conversations.recent("c") == [b'{"n":0}', b'{"n":1}', b'{"n":2}']
    assert await conversations.recent("c", 2) == [b'{"n":1}', b'{"n":2}']
    assert (
        await conversations.recent("c", 0) == await conversations.recent("c", -1) == []
    )
    assert await conversations.recent("never") == []
    with pytest.raises(InvalidInput):
        await conversations.append("", b"1", "t")


async def test_concurrent_appends_of_one_turn_add_it_once(
    conversations: Conversations,
) -> None:
    added = await asyncio.gather(
        *(conversations.append("c", b"%d" % number, "t1") for number in range(20))
    )
    assert added.count(True) == 1
    assert await conversations.recent("c") == [b"%d" % added.index(True)]


async def test_concurrent_replacements_of_a_turn_replace_it_once_in_its_place(
    conversations: Conversations,
) -> None:
    for number in range(3):
        await conversations.append("c", b"%d" % number, f"t{number}")
    done = await asyncio.gather(
        *(conversations.replace("c", b"1", b"one %d" % number) for number in range(10))
    )
    assert done.count(True) == 1
    assert await conversations.recent("c") == [b"0", b"one %d" % done.index(True), b"2"]
    assert not await conversations.append("c", b"1", "t1")
    assert not await conversations.replace("nobody's", b"1", b"2")


async def test_a_conversation_is_bounded_with_its_ids(
    conversations: Conversations, valkey_or_redis: Redis
) -> None:
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
    assert [await conversations.recent(one) for one in ids] == [
        [one.encode()] for one in ids
    ]


async def test_turns_ids_and_the_users_list_expire_together(
    valkey_or_redis: Redis,
) -> None:
    conversations = Conversations(
        valkey_or_redis, keep=timedelta(minutes=1), deadline_s=PATIENCE_S
    )
    await conversations.append("c", b"1", "t1", user_id="ann")
    found = (
        keys.conversation("c").said,
        keys.conversation("c").ids,
        keys.user_conversations("YW5u"),
    )
    assert all([0 < await valkey_or_redis.pttl(key) <= 60_000 for key in found])


async def test_the_conversations_of_a_user_are_listed_once_each(
    conversations: Conversations,
) -> None:
    for name in ("b}{", "a", "a", "\u00e4: 1"):
        await conversations.append(name, b"1", f"t-{name}", user_id="ann")
    await conversations.append("c", b"1", "t", user_id="ben")
    await conversations.append("d", b"1", "t")
    assert await conversations.of_user("ann") == ["a", "b}{", "\u00e4: 1"]
    assert await conversations.of_user("ben") == ["c"]
    assert await conversations.of_user("nobody") == []


async def test_a_forgotten_conversation_leaves_no_key_and_starts_anew(
    valkey_or_redis: Redis,
) -> None:
    conversations = Conversations(valkey_or_redis, deadline_s=PATIENCE_S)
    inbox = Inbox(valkey_or_redis, window=1, deadline_s=PATIENCE_S)
    await inbox.take("c", "t1", [said("m1"), said("m2")])
    await inbox.settle("c", "t1", said("x", "Me"), observation=seen())
    await inbox.take("c", "t2")
    assert await inbox.summarise("c", 2, "They met.")
    await inbox.post("c", said("m3"))
    assert await valkey_or_redis.exists(*keys.conversation("c")) == len(
        keys.conversation("c")
    )
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
    stored = await conversations.recent("c", 9)
    waiting = await conversations.waiting("c")
    assert [len(stored), len(waiting)] == [5, 2]
    assert await conversations.drop("c", [stored[1], stored[3], waiting[0]]) == 3
    assert await conversations.recent("c", 2) == [stored[2], stored[4]]
    assert await conversations.waiting("c") == waiting[1:]
    taken = await inbox.take("c", "t3", observations=9)
    assert (ids(taken.history.past), ids(taken.history.current)) == (["m4"], ["m6"])
    assert (
        taken.history.earlier.count,
        taken.history.earlier.summary,
        taken.observations,
    ) == (4, None, ())


async def test_a_summary_of_turns_that_were_dropped_meanwhile_is_refused(
    valkey_or_redis: Redis,
) -> None:
    conversations = Conversations(valkey_or_redis, deadline_s=PATIENCE_S)
    inbox = Inbox(valkey_or_redis, window=1, deadline_s=PATIENCE_S)
    await inbox.take("c", "t1", [said(f"m{number}") for number in range(5)])
    await inbox.settle("c", "t1")
    before = (await inbox.take("c", "t2")).history.earlier
    assert await conversations.drop("c", (await conversations.recent("c", 9))[:1]) == 1
    assert not await inbox.summarise(
        "c", 4, "Ann said a secret.", removals=before.removals
    )
    after = (await inbox.take("c", "t3")).history.earlier
    assert (before.removals, after.removals, after.summary) == (0, 1, None)
    assert await inbox.summarise("c", 4, "They met.", removals=after.removals)
    await conversations.drop("c", [b"never there"])
    assert (await inbox.take("c", "t4")).history.earlier.removals == 1
    assert all(
        [await valkey_or_redis.pttl(key) > 0 for key in await valkey_or_redis.keys()]
    )


async def test_waiting_messages_are_read_without_being_taken(
    valkey_or_redis: Redis,
) -> None:
    conversations = Conversations(valkey_or_redis, deadline_s=PATIENCE_S)
    inbox = Inbox(valkey_or_redis, deadline_s=PATIENCE_S)
    for name in ("m1", "m2"):
        await inbox.post("c", said(name))
    assert [b'"m1"' in body for body in await conversations.waiting("c")] == [
        True,
        False,
    ]
    assert await conversations.waiting("never") == []
    assert (await inbox.take("c", "t1")).history.num_new == 2
