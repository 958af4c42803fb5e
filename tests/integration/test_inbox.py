"""The contract of inboxes."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from contracts.conversations import Digest, History
from contracts.errors import InvalidInput
from contracts.messages import ChatTurn
from memory import keys
from memory.conversations.conversation import Conversations
from memory.conversations.inbox import LONGEST_SUMMARY, Inbox
from tests.integration.inboxes import ids, said, seen, whole
from tests.servers import PATIENCE_S

AT = datetime(2026, 11, 21, 12, 0, 0, 250_000, tzinfo=UTC)


@pytest.fixture
def inbox(valkey_or_redis: Redis) -> Inbox:
    """Return an inbox that shows four messages and keeps ten."""
    return Inbox(valkey_or_redis, window=4, keep=10, deadline_s=PATIENCE_S)


def shown(history: History) -> tuple[list[str], list[str]]:
    """Return the ids of what is past and of what is new."""
    return ids(history.past), ids(history.current)


async def turn(redis: Redis, number: int, text: str = "hello", **more: str) -> None:
    """Add a turn as the supervisor does."""
    one = ChatTurn.model_validate(
        {"turn_id": f"p{number}", "conversation_id": "c", "speaker": "person", "text": text, "at": AT, **more}
    )
    body = one.model_dump_json(exclude_none=True).encode()
    await Conversations(redis, keep_turns=10, deadline_s=PATIENCE_S).append("c", body, one.turn_id)


async def test_what_was_posted_is_taken_in_order(inbox: Inbox) -> None:
    """All of it is new, every field as it was said."""
    messages = [said(f"m{number}", "Ann" if number % 2 else "Bob", number / 4, "a 'b' \\ \n ü") for number in range(3)]
    for one in messages:
        assert await inbox.post("c", one)
    history = (await inbox.take("c", "t1")).history
    assert (history.past, history.current) == ((), tuple(messages))


async def test_nothing_new_still_gives_the_past(inbox: Inbox) -> None:
    """The seed's mistake was to need a new message to see any."""
    await inbox.post("c", said("m1"))
    await inbox.take("c", "t1")
    await inbox.settle("c", "t1")
    assert shown((await inbox.take("c", "t2")).history) == (["m1"], [])


async def test_what_arrives_stands_before_what_waits(inbox: Inbox) -> None:
    """Each is stored, once."""
    await inbox.post("c", said("w1"))
    history = (await inbox.take("c", "t1", [said("a1"), said("a2"), said("a1")])).history
    assert shown(history) == ([], ["a1", "a2", "w1"])
    assert await whole(inbox, "c") == ["a1", "a2", "w1"]


async def test_a_message_is_delivered_once(inbox: Inbox) -> None:
    """However often it is posted, arrives, or both, before and after it was taken."""
    assert await inbox.post("c", said("m1"))
    assert not await inbox.post("c", said("m1"))
    await inbox.take("c", "t1", [said("m1"), said("m2")])
    assert not await inbox.post("c", said("m2"))
    await inbox.settle("c", "t1")
    assert shown((await inbox.take("c", "t2", [said("m1"), said("m2")])).history) == (["m2", "m1"], [])


async def test_a_message_is_delivered_once_by_many_at_the_same_time(inbox: Inbox) -> None:
    """Looking and adding are one step."""
    posted = await asyncio.gather(*(inbox.post("c", said("m1")) for _ in range(20)))
    assert posted.count(True) == 1
    assert shown((await inbox.take("c", "t1")).history) == ([], ["m1"])


async def test_the_same_task_sees_the_same_again(inbox: Inbox) -> None:
    """What came meanwhile is for the next one."""
    await inbox.post("c", said("m1"))
    first = await inbox.take("c", "t1", [said("a1")])
    await inbox.post("c", said("m2"))
    again = await inbox.take("c", "t1", [said("a1")])
    assert again == first
    await inbox.settle("c", "t1")
    assert shown((await inbox.take("c", "t2")).history) == (["a1", "m1"], ["m2"])


async def test_the_next_task_sees_what_a_failed_one_did_not_settle(inbox: Inbox) -> None:
    """With what came meanwhile."""
    await inbox.post("c", said("m1"))
    await inbox.take("c", "t1")
    await inbox.post("c", said("m2"))
    assert shown((await inbox.take("c", "t2")).history) == ([], ["m1", "m2"])


async def test_a_settled_task_is_shown_the_same_once_more(inbox: Inbox) -> None:
    """Its report may have been lost; it learns that it has settled, and what it did."""
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


async def test_what_was_sensed_can_be_left_out(inbox: Inbox) -> None:
    """What was done is there, with its time."""
    await inbox.take("c", "t1")
    await inbox.settle("c", "t1", observation=seen(7, "text"))
    whole = (await inbox.take("c", "t2", observations=5)).observations
    deeds = (await inbox.take("c", "t2", observations=5, senses=False)).observations

    assert whole == (seen(7, "text"),)
    assert deeds == (seen(7, "text").model_copy(update={"sensed": None}),)


async def test_settling_twice_changes_nothing(inbox: Inbox) -> None:
    """What was said first stays, even when the second run says something else."""
    await inbox.take("c", "t1", [said("m1")])
    await inbox.settle("c", "t1", said("x", "Me", message="first"), observation=seen(1))
    await inbox.settle("c", "t1", said("y", "Me", message="second"), observation=seen(2))
    history = (await inbox.take("c", "t2")).history
    assert shown(history) == (["m1", "t1:said"], [])
    assert history.past[-1].message == "first"
    assert await inbox.recent_observations("c", 9) == (seen(1),)


async def test_a_late_settlement_takes_nothing_back(inbox: Inbox) -> None:
    """What a later task has settled stays settled."""
    await inbox.take("c", "t1", [said("m1")])
    await inbox.take("c", "t2", [said("m2")])
    await inbox.settle("c", "t2")
    await inbox.settle("c", "t1")
    assert shown((await inbox.take("c", "t3")).history) == (["m1", "m2"], [])


async def test_a_retry_is_not_shown_as_new_what_another_task_has_settled(inbox: Inbox) -> None:
    """It takes anew, with what came meanwhile."""
    await inbox.take("c", "t1", [said("m1")])
    await inbox.take("c", "t2")
    await inbox.settle("c", "t2")
    await inbox.post("c", said("m2"))
    assert shown((await inbox.take("c", "t1")).history) == (["m1"], ["m2"])


async def test_a_settlement_hides_nothing_that_came_while_the_task_ran(inbox: Inbox, valkey_or_redis: Redis) -> None:
    """A person spoke before the agent had: that is new to the next task, and what the agent said is not."""
    await turn(valkey_or_redis, 1)
    await inbox.take("c", "t1")
    await turn(valkey_or_redis, 2)
    await inbox.settle("c", "t1", said("x", "Me"))
    await turn(valkey_or_redis, 3)
    assert await whole(inbox, "c") == ["p1", "p2", "t1:said", "p3"]
    assert shown((await inbox.take("c", "t2")).history) == (["p1", "t1:said"], ["p2", "p3"])
    await inbox.settle("c", "t2")
    assert shown((await inbox.take("c", "t3")).history) == (["p1", "p2", "t1:said", "p3"], [])


async def test_own_words_are_never_new(inbox: Inbox) -> None:
    """Task after task, heard or not."""
    for number in range(6):
        assert (await inbox.take("c", f"t{number}")).history.num_new == 0
        await inbox.settle("c", f"t{number}", said("x", "Me"))
    assert (await inbox.take("c", "t6")).history.num_new == 0
    assert (await inbox.take("c", "t6")).history.earlier.count == 2


async def test_settling_without_having_taken_makes_nothing_old(inbox: Inbox) -> None:
    """It was shown nothing."""
    await inbox.take("c", "t1", [said("m1")])
    await inbox.settle("c", "stranger", said("x", "Me"))
    assert shown((await inbox.take("c", "t2")).history) == (["stranger:said"], ["m1"])


async def test_turns_and_messages_are_one_conversation(inbox: Inbox, valkey_or_redis: Redis) -> None:
    """A person's words come as theirs, an answer as that of its agent, both cut to a message."""
    await turn(valkey_or_redis, 1, "x" * 3000)
    await turn(valkey_or_redis, 2, "bell\x07", speaker="assistant", agent_id="Budget")
    await turn(valkey_or_redis, 3, "", speaker="assistant")
    history = (await inbox.take("c", "t1", [said("m1")])).history
    assert [one.speaker for one in history.past] == ["Budget", "assistant"]
    assert [one.speaker for one in history.current] == ["person", "Bob"]
    assert [len(one.message) for one in (*history.past, *history.current[:1])] == [5, 1, 2000]
    assert history.current[0].time == AT.timestamp()


async def test_an_answer_of_the_assistant_is_never_new(inbox: Inbox, valkey_or_redis: Redis) -> None:
    """Heard or not, before a question that is: nor for the retry of a task, nor for one that takes after a failure."""
    answer = {"speaker": "assistant", "agent_id": "Budget"}
    await turn(valkey_or_redis, 1)
    await inbox.take("c", "t1")
    await turn(valkey_or_redis, 2, **answer)
    await turn(valkey_or_redis, 3)
    for task in ("t2", "t2", "t3"):
        assert shown((await inbox.take("c", task)).history) == (["p2"], ["p1", "p3"])
    await inbox.settle("c", "t3")
    await turn(valkey_or_redis, 4, **answer)
    assert shown((await inbox.take("c", "t4")).history) == (["p1", "p2", "p3", "p4"], [])
    await turn(valkey_or_redis, 5)
    assert shown((await inbox.take("c", "t5")).history) == (["p2", "p3", "p4"], ["p5"])


async def test_what_falls_out_of_the_window_is_counted(inbox: Inbox, valkey_or_redis: Redis) -> None:
    """Once, by who said it and from when to when; what is new is shown however much it is."""
    await turn(valkey_or_redis, 1)
    await inbox.take("c", "t1", [said(f"m{number}", "Ann", number) for number in range(7)])
    history = (await inbox.take("c", "t1")).history
    assert (history.num_new, history.earlier) == (8, Digest())
    await inbox.settle("c", "t1")
    for task in ("t2", "t3"):
        history = (await inbox.take("c", task)).history
        assert shown(history) == (["m3", "m4", "m5", "m6"], [])
        expected = Digest(4, {"person": 1, "Ann": 3}, since=0.0, until=AT.timestamp())
        assert history.earlier == expected


@pytest.mark.parametrize("zone", ["+02:00", "-05:30", "Z"])
async def test_the_time_of_a_turn_is_read_in_any_zone(valkey_or_redis: Redis, zone: str) -> None:
    """To the microsecond, as Python does."""
    for year in ("1999-02-28", "2000-02-29", "2024-12-31", "2027-03-01"):
        at = f"{year}T23:59:58.123456{zone}"
        turn = b'{"turn_id":"p","conversation_id":"%b","speaker":"person","text":"x","at":"%b"}'
        await Conversations(valkey_or_redis, deadline_s=PATIENCE_S).append(at, turn % (at.encode(), at.encode()), "p")
        inbox = Inbox(valkey_or_redis, window=0, deadline_s=PATIENCE_S)
        await inbox.take(at, "t1")
        await inbox.settle(at, "t1")
        since = (await inbox.take(at, "t2")).history.earlier.since
        assert since == pytest.approx(datetime.fromisoformat(at).timestamp(), abs=1e-6)


async def test_a_digest_names_no_more_than_two_hundred_speakers(valkey_or_redis: Redis) -> None:
    """The others are counted together: a stranger who changes names fills no memory."""
    inbox = Inbox(valkey_or_redis, window=1, deadline_s=PATIENCE_S)
    for number in range(5):
        task = f"t{number}"
        await inbox.take("c", task, [said(f"{task}-{n}", f"Agent {task} {n}") for n in range(100)])
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
    assert (await inbox.take("c", "t2")).history.earlier.summary == "They met, ünd talked."


@pytest.mark.parametrize("text", ["", "x" * (LONGEST_SUMMARY + 1), "\ud800"])
async def test_what_is_no_summary_is_refused(inbox: Inbox, text: str) -> None:
    """Nothing, far too much, and what is no text."""
    with pytest.raises(InvalidInput, match="summary"):
        await inbox.summarise("c", 1, text)


async def test_a_conversation_is_read_page_by_page(inbox: Inbox) -> None:
    """The last page first; each message once, though more is added meanwhile."""
    await inbox.take("c", "t1", [said(f"m{number}") for number in range(7)])
    last = await inbox.page("c", count=3)
    assert (ids(last.messages), last.before) == (["m4", "m5", "m6"], 5)
    await inbox.take("c", "t2", [said("late"), said("later")])
    middle = await inbox.page("c", last.before, 3)
    assert (ids(middle.messages), middle.before) == (["m1", "m2", "m3"], 2)
    first = await inbox.page("c", middle.before, 3)
    assert (ids(first.messages), first.before) == (["m0"], None)
    assert (await inbox.page("c", 1)).messages == ()
    assert await whole(inbox, "c", 2) == [*(f"m{number}" for number in range(7)), "late", "later"]


async def test_a_page_tells_how_many_messages_are_gone(inbox: Inbox) -> None:
    """Also one that is empty because of that."""
    await inbox.take("c", "t1", [said(f"m{number}") for number in range(13)])
    assert [(await inbox.page("c", before, 2)).gone for before in (None, 5, 3)] == [3, 3, 3]
    assert (await inbox.page("c", 3, 2)).messages == ()
    assert (await inbox.page("never")).gone == 0


async def test_an_unknown_conversation_has_no_page(inbox: Inbox) -> None:
    """Nor does one in which something only waits."""
    await inbox.post("c", said("m1"))
    for owner in ("never", "c"):
        page = await inbox.page(owner)
        assert (page.messages, page.before) == ((), None)


@pytest.mark.parametrize(("before", "count"), [(0, 1), (-1, 1), (None, 0), (None, -1), (None, 1001)])
async def test_a_page_that_cannot_be_is_refused(inbox: Inbox, before: int | None, count: int) -> None:
    """By the name of what is out of its range."""
    with pytest.raises(InvalidInput, match=r"before|count"):
        await inbox.page("c", before, count)


@pytest.mark.parametrize("task_id", ["", "two words", "a\nb", "x" * 65])
async def test_a_task_id_that_is_none_is_refused(inbox: Inbox, task_id: str) -> None:
    """It could pass for two."""
    with pytest.raises(InvalidInput, match="task id"):
        await inbox.take("c", task_id)
    with pytest.raises(InvalidInput, match="task id"):
        await inbox.settle("c", task_id)


async def test_conversations_do_not_mix(inbox: Inbox) -> None:
    """Whatever their free text ids contain."""
    owners = ["a", "a:state", "a}", "{a}", "a%7D", "ä: 1"]
    for owner in owners:
        await inbox.post(owner, said("m1", message=f"to {owner}"))
    taken = [await inbox.take(owner, "t1") for owner in owners]
    assert [one.history.current[0].message for one in taken] == [f"to {owner}" for owner in owners]


async def test_a_conversation_is_bounded(inbox: Inbox) -> None:
    """Of what nobody takes the oldest falls off, and is counted; the last as many as are kept wait besides."""
    for number in range(35):
        await inbox.post("c", said(f"m{number}"))
    history = (await inbox.take("c", "t1")).history
    assert shown(history) == ([], [f"m{number}" for number in range(25, 35)])
    assert (history.earlier.count, history.earlier.speakers) == (25, {"Bob": 25})
    assert await whole(inbox, "c") == [f"m{number}" for number in range(25, 35)]


async def test_five_thousand_messages_leave_as_many_as_are_kept(valkey_or_redis: Redis) -> None:
    """In every key; the digest has counted the others."""
    inbox = Inbox(valkey_or_redis, deadline_s=60)
    for start in range(0, 5000, 1000):
        await inbox.take("c", "t1", [said(f"m{number}") for number in range(start, start + 500)])
        await asyncio.gather(*(inbox.post("c", said(f"m{number}")) for number in range(start + 500, start + 1000)))
    assert (await inbox.take("c", "t2")).history.earlier.count == 3000
    of = keys.conversation("c")
    assert await valkey_or_redis.llen(of.said) == await valkey_or_redis.zcard(of.ids) == 2000
    assert not await valkey_or_redis.exists(of.inbox)
    assert await valkey_or_redis.memory_usage(of.state) < 10_000
    assert len(await whole(inbox, "c")) == 2000


@pytest.mark.parametrize("at", range(7))
async def test_a_key_of_another_type_stops_nobody(valkey_or_redis: Redis, at: int) -> None:
    """Whoever wrote it there: what it held is lost, and nothing else."""
    inbox, other = Inbox(valkey_or_redis, deadline_s=PATIENCE_S), keys.conversation("c")[at]
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


async def test_a_conversation_is_kept_from_its_last_use_on(valkey_or_redis: Redis) -> None:
    """All that is known of it leaves together: half of it would make old messages new."""
    inbox = Inbox(valkey_or_redis, window=1, keep_for=timedelta(minutes=1), deadline_s=PATIENCE_S)
    await inbox.take("c", "t1", [said("m1"), said("m2"), said("m3")])
    await inbox.settle("c", "t1", said("x", "Me"), observation=seen())
    await inbox.take("c", "t2")
    await inbox.post("c", said("m4"))
    of = keys.conversation("c")
    lives = [await valkey_or_redis.pttl(key) for key in of]
    assert all(0 < life <= 60_000 for life in lives), lives
    # The server's clock stands still while one script runs.
    assert len({await valkey_or_redis.pexpiretime(key) for key in of[:5]}) == 1


async def test_only_what_an_agent_said_itself_is_its_own(inbox: Inbox, valkey_or_redis: Redis) -> None:
    """Whatever a message says of itself on its way in; and so is what an assistant answered."""
    claimed = [said(f"m{number}", "Ana").model_copy(update={"own": True}) for number in range(3)]
    await inbox.post("c", claimed[0])
    await inbox.post("c", claimed[1], known_as="another id")
    await inbox.take("c", "t1", [claimed[2]])
    await inbox.settle("c", "t1", said("x", "Ana"))
    await turn(valkey_or_redis, 1, speaker="assistant", agent_id="Ana")
    await turn(valkey_or_redis, 2)
    messages = (await inbox.page("c")).messages
    assert {one.message_id: one.own for one in messages} == {
        "m0": False, "m1": False, "m2": False, "t1:said": True, "p1": True, "p2": False,
    }  # fmt: skip
    shown = (await inbox.take("c", "t2")).history.messages
    assert set(messages[-4:]) <= set(shown) <= set(messages)


async def test_a_message_may_be_known_by_more_than_its_id(inbox: Inbox) -> None:
    """Two of one id are two then, each is added once, and neither is in the way of the id itself."""
    for text in ("first", "again"):
        for who in ("Bob", "Mallory"):
            is_new = await inbox.post("c", said("m1", who, message=text), known_as=f"m1 {who}")
            assert is_new == (text == "first")
    taken = await inbox.take("c", "t1", [said("m1", "Carol")])
    assert [(one.speaker, one.message_id) for one in taken.history.current] == [
        ("Carol", "m1"), ("Bob", "m1"), ("Mallory", "m1"),
    ]  # fmt: skip
    for who in ("Bob", "Mallory"):
        assert not await inbox.post("c", said("m1", who), known_as=f"m1 {who}")
    assert not await inbox.post("c", said("m1", "Carol"))


async def test_of_many_tasks_the_last_are_known(inbox: Inbox) -> None:
    """One that comes again after 32 others is shown what nobody settled, as if it had never come."""
    await inbox.take("c", "t0", [said("m1")])
    for number in range(1, 33):
        await inbox.take("c", f"t{number}")
    await inbox.post("c", said("m2"))
    assert shown((await inbox.take("c", "t1")).history) == ([], ["m1"])
    assert shown((await inbox.take("c", "t0")).history) == ([], ["m1", "m2"])


async def test_a_message_says_whose_words_it_is(inbox: Inbox) -> None:
    """Those of the user for whom it was said, unless it names another."""
    await inbox.post("c", said("m1"), user_id="ann")
    await inbox.post("c", said("m2").model_copy(update={"user_id": "ben"}), user_id="ann")
    await inbox.take("c", "t1", [said("m3")], user_id="cay")
    await inbox.settle("c", "t1", said("x", "Me"), user_id="dan")
    messages = (await inbox.page("c")).messages
    assert [one.user_id for one in messages] == ["cay", "ann", "ben", "dan"]


async def test_whoever_speaks_for_a_user_makes_the_conversation_theirs(valkey_or_redis: Redis) -> None:
    """Forgetting them has to find it."""
    inbox = Inbox(valkey_or_redis, deadline_s=PATIENCE_S)
    await inbox.post("posted", said("m1"), user_id="ann")
    await inbox.take("taken", "t1", user_id="ann")
    await inbox.settle("settled", "t1", said("x"), user_id="ann")
    assert await Conversations(valkey_or_redis, deadline_s=PATIENCE_S).of_user("ann") == ["posted", "settled", "taken"]
