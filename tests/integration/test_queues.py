"""The contract of waiting rows."""

import time

import pytest
from redis.asyncio import Redis

from contracts.errors import InvalidInput
from contracts.identifiers import user_token
from memory.queues.claims import Closing, Outcome
from memory.queues.queue import PersonalQueue
from tests.integration.waiting import (
    BLINK_MS,
    LATER,
    LEASE_MS,
    NOW,
    OWNER,
    TABLE,
    after_a_crash,
    claimed,
    closing_all,
    ids,
    states,
    until,
)
from tests.servers import PATIENCE_S


@pytest.fixture
def queue(valkey_or_redis: Redis) -> PersonalQueue:
    """Return a queue on a server."""
    return PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S)


async def test_rows_are_claimed_in_the_order_in_which_they_came(queue: PersonalQueue) -> None:
    """Over several appends, whatever their ids."""
    assert await queue.append(OWNER, [("z", b"1"), ("m", b"2")]) == 2
    assert await queue.append(OWNER, [("a", b"3")]) == 1
    claim = await claimed(queue)
    assert [(row.row_id, row.body, row.attempts, row.note) for row in claim.rows] == [
        ("z", b"1", 0, None),
        ("m", b"2", 0, None),
        ("a", b"3", 0, None),
    ]


async def test_a_row_keeps_the_trace_it_came_in_until_it_is_closed(queue: PersonalQueue) -> None:
    """Over claims that end without a word; one that came in none has none."""
    await queue.append(OWNER, [("a", b"1"), ("b", b"2")], trace="00-x-y-01 vendor=1")
    await queue.append(OWNER, [("c", b"3")])
    for _ in range(2):
        claim = await claimed(queue)
        assert [row.trace for row in claim.rows] == ["00-x-y-01 vendor=1"] * 2 + [""]
        await queue.release(claim)


async def test_a_claim_takes_no_more_than_it_asks_for(queue: PersonalQueue) -> None:
    """The rest comes with the next one."""
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue, limit=2)
    assert ids(claim) == ["a", "b"]
    assert await queue.close(claim, closing_all(claim))
    await queue.release(claim)
    assert ids(await claimed(queue)) == ["c"]


@pytest.mark.parametrize("outcome", ["done", "failed", "rejected", "conflict"])
async def test_a_row_that_comes_again_is_known_even_when_it_is_closed(queue: PersonalQueue, outcome: Outcome) -> None:
    """A redelivery adds nothing and reopens nothing."""
    await queue.append(OWNER, TABLE)
    assert await queue.append(OWNER, [*TABLE, ("d", b"4")]) == 1
    claim = await claimed(queue)
    assert ids(claim) == ["a", "b", "c", "d"]
    await queue.close(claim, closing_all(claim, outcome))
    await queue.release(claim)
    assert await queue.append(OWNER, [("a", b"other")]) == 0
    assert await queue.claim(OWNER, holder="w1", limit=1, lease_ms=LEASE_MS, now_ms=LATER) is None


async def test_an_id_twice_in_one_append_is_one_row(queue: PersonalQueue) -> None:
    """Its first body and place count."""
    assert await queue.append(OWNER, [("a", b"first"), ("b", b"other"), ("a", b"second")]) == 2
    assert [row.body for row in (await claimed(queue)).rows] == [b"first", b"other"]


async def test_nobody_else_claims_what_is_claimed(queue: PersonalQueue) -> None:
    """Neither another nor the same holder, nor rows that came since."""
    await queue.append(OWNER, TABLE)
    await claimed(queue, limit=1)
    await queue.append(OWNER, [("d", b"4")])
    for holder in ("w1", "w2"):
        assert await queue.claim(OWNER, holder=holder, limit=9, lease_ms=LEASE_MS, now_ms=LATER) is None


async def test_owners_do_not_wait_for_one_another(queue: PersonalQueue) -> None:
    """A claim is of one owner's rows."""
    await queue.append("ada", [("a", b"1")])
    await queue.append("bob", [("a", b"2")])
    await claimed(queue, "ada")
    assert [row.body for row in (await claimed(queue, "bob")).rows] == [b"2"]


async def test_what_is_given_back_is_there_for_the_next_as_if_untouched(queue: PersonalQueue) -> None:
    """It counts neither as an attempt nor as a crash."""
    await queue.append(OWNER, TABLE)
    first = await claimed(queue)
    await queue.release(first)
    second = await claimed(queue)
    assert second.rows == first.rows
    assert second.fence > first.fence
    assert {row.crashes for row in second.rows} == {0}


async def test_who_lost_the_lease_can_say_nothing_more(queue: PersonalQueue) -> None:
    """Neither close, nor note, nor renew, nor give back what is another's by now."""
    await queue.append(OWNER, TABLE)
    lost = await claimed(queue, lease_ms=BLINK_MS)
    current = await after_a_crash(queue)
    assert not await queue.close(lost, closing_all(lost, "failed"))
    assert not await queue.note(lost, "a", b"late")
    assert not await queue.renew(lost, LEASE_MS)
    await queue.release(lost)
    assert await queue.renew(current, LEASE_MS)
    assert set((await states(queue)).values()) == {"waiting"}


async def test_a_lease_that_ran_out_closes_nothing_even_when_nobody_took_it(queue: PersonalQueue) -> None:
    """Time alone ends it."""
    await queue.append(OWNER, [("a", b"1")])
    lost = await claimed(queue, lease_ms=BLINK_MS)

    async def is_over() -> bool | None:
        return None if await queue.renew(lost, BLINK_MS) else True

    await until(is_over)
    assert not await queue.close(lost, closing_all(lost))


async def test_a_claim_lasts_as_long_as_it_was_last_renewed_for(queue: PersonalQueue) -> None:
    """Not as long as it was first taken for."""
    await queue.append(OWNER, [("a", b"1")])
    claim = await claimed(queue, lease_ms=LEASE_MS // 2)
    for lease_ms in (LEASE_MS, BLINK_MS):
        assert await queue.renew(claim, lease_ms)
    await after_a_crash(queue)


async def test_closing_again_changes_nothing(queue: PersonalQueue) -> None:
    """As when the first answer was lost; a retry is one attempt however often it is said."""
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue)
    for _ in range(2):
        assert await queue.close(claim, [Closing("a", "done"), Closing("b", "retry")])
    assert await queue.close(claim, [Closing("a", "failed"), Closing("unheard-of", "done")])
    await queue.release(claim)
    assert [(row.row_id, row.attempts) for row in (await claimed(queue)).rows] == [("b", 1), ("c", 0)]
    assert (await states(queue))["a"] == "done"


async def test_a_row_to_be_tried_again_stays_first_and_holds_the_others(queue: PersonalQueue) -> None:
    """A later one must not overtake; it comes when its time has come, with one attempt more."""
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue)
    await queue.close(claim, [Closing("a", "retry", "no luck", not_before_ms=LATER)])
    await queue.release(claim)
    assert await queue.claim(OWNER, holder="w1", limit=9, lease_ms=LEASE_MS, now_ms=LATER - 1) is None
    again = await claimed(queue, now_ms=LATER)
    assert ids(again) == ["a", "b", "c"]
    assert again.rows[0].attempts == 1


async def test_a_claim_ends_before_a_row_that_is_not_due(queue: PersonalQueue) -> None:
    """What stands before it is taken."""
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue)
    await queue.close(claim, [Closing("b", "retry", not_before_ms=LATER)])
    await queue.release(claim)
    assert ids(await claimed(queue)) == ["a"]


async def test_a_poisoned_row_is_set_aside_and_the_next_goes_on(queue: PersonalQueue) -> None:
    """Once its attempts are used up."""
    await queue.append(OWNER, TABLE)
    for attempt in range(3):
        claim = await claimed(queue)
        assert claim.rows[0].attempts == attempt
        last = attempt == 2
        await queue.close(claim, [Closing("a", "failed" if last else "retry", "cannot be read")])
        await queue.release(claim)
    assert ids(await claimed(queue)) == ["b", "c"]
    known = (await queue.rows(OWNER, 9))[-1]
    assert (known.row_id, known.state, known.reason, known.attempts) == ("a", "failed", "cannot be read", 2)


async def test_rows_whose_claim_ended_without_a_word_come_alone(queue: PersonalQueue) -> None:
    """One of them may have killed the worker; a crash beside others is held against nobody."""
    await queue.append(OWNER, TABLE)
    await claimed(queue, lease_ms=BLINK_MS)
    suspect = await after_a_crash(queue)
    assert [(row.row_id, row.attempts, row.crashes) for row in suspect.rows] == [("a", 0, 1)]
    await queue.close(suspect, closing_all(suspect))
    await queue.append(OWNER, [("d", b"4")])
    await queue.release(suspect)
    claim = await claimed(queue, lease_ms=BLINK_MS)
    assert ids(claim) == ["b"]
    culprit = await after_a_crash(queue)
    assert [(row.row_id, row.attempts, row.crashes) for row in culprit.rows] == [("b", 1, 2)]


async def test_who_said_a_word_before_the_crash_is_no_suspect(queue: PersonalQueue) -> None:
    """A closed row is done, a row to be tried again has had its attempt counted."""
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue)
    assert await queue.close(claim, [Closing("a", "done"), Closing("b", "retry")])
    assert await queue.renew(claim, BLINK_MS)
    nxt = await after_a_crash(queue)
    assert [(row.row_id, row.attempts, row.crashes) for row in nxt.rows] == [("b", 1, 0)]


async def test_what_needs_a_model_leaves_the_order_until_there_is_one(queue: PersonalQueue) -> None:
    """It overtakes nobody and holds nobody, and comes back to where it was."""
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue)
    await queue.close(claim, [Closing("a", "needs_model", "no rule reads it"), Closing("b", "done")])
    await queue.release(claim)
    after = await claimed(queue)
    assert ids(after) == ["c"]
    await queue.release(after)
    assert [(row.row_id, row.state, row.reason) for row in await queue.rows(OWNER, 9)] == [
        ("c", "waiting", ""),
        ("a", "needs_model", "no rule reads it"),
        ("b", "done", ""),
    ]
    assert await queue.resume(OWNER, reason="needs_model") == 1
    assert await queue.resume(OWNER) == 0
    assert ids(await claimed(queue)) == ["a", "c"]


async def test_everybody_is_resumed_at_once(queue: PersonalQueue) -> None:
    """Also who has nothing else to do, and is not offered until then."""
    for owner in ("ada", "bob", "cy"):
        await queue.append(owner, TABLE)
    for owner in ("ada", "bob"):
        claim = await claimed(queue, owner)
        await queue.close(claim, [Closing(row_id, "needs_model") for row_id in ids(claim)])
        await queue.release(claim)
    assert await queue.owners_due(LATER, 9) == ["cy"]
    assert await queue.pending_total(9) == 3
    assert await queue.resume_all() == 6
    assert sorted(await queue.owners_due(LATER, 9)) == ["ada", "bob", "cy"]
    assert await queue.pending_total(9) == 9


async def test_what_was_worked_out_is_there_for_the_next_attempt(queue: PersonalQueue) -> None:
    """Until the row is closed for good."""
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue)
    assert await queue.note(claim, "a", b"\x00worked out\xff")
    assert not await queue.note(claim, "unheard-of", b"?")
    await queue.close(claim, [Closing("a", "retry")])
    await queue.release(claim)
    again = await claimed(queue)
    assert [row.note for row in again.rows] == [b"\x00worked out\xff", None, None]
    await queue.close(again, closing_all(again))
    assert {row.note for row in await queue.rows(OWNER, 9)} == {None}


async def test_who_has_something_to_do_is_offered(queue: PersonalQueue) -> None:
    """Longest waiting first; not who is claimed, waits for a time to come, or has nothing left."""
    for owner in ("first", "leased", "later", "finished", "last"):
        await queue.append(owner, [("a", b"1")])
    await claimed(queue, "leased")
    for owner, closing in {
        "later": Closing("a", "retry", not_before_ms=LATER),
        "finished": Closing("a", "done"),
    }.items():
        claim = await claimed(queue, owner)
        await queue.close(claim, [closing])
        await queue.release(claim)
        # Whoever was told to look writes down what there was to see.
        assert await queue.claim(owner, holder="w2", limit=1, lease_ms=LEASE_MS, now_ms=NOW) is None
    assert await queue.owners_due(NOW, 9) == ["first", "last"]
    assert await queue.owners_due(NOW, 1) == ["first"]
    assert "later" in await queue.owners_due(LATER, 9)


async def test_who_says_more_while_waiting_keeps_the_place(queue: PersonalQueue) -> None:
    """Whoever never stops would never be served otherwise."""
    for owner in ("talks", "waits", "talks", "talks"):
        await queue.append(owner, [(str(time.time()), b"1")])
    assert await queue.owners_due(NOW, 9) == ["talks", "waits"]


@pytest.mark.parametrize("owner", ["ada@example.org", "Zoë 🦊", "{a}:*?[x]", "a" * 3, "b" * 500, "\x00"])
async def test_an_owner_may_have_any_name(queue: PersonalQueue, owner: str) -> None:
    """It is offered as it was given."""
    await queue.append(owner, [("a/b:{c} 🦊", b"1")])
    assert await queue.owners_due(NOW, 9) == [owner]
    claim = await claimed(queue, owner)
    assert (claim.owner, claim.holder, ids(claim)) == (owner, "w1", ["a/b:{c} 🦊"])
    assert claim.owner_token == user_token(owner)


@pytest.mark.parametrize("owner", ["", "\ud800"])
async def test_rows_of_nobody_are_refused(queue: PersonalQueue, owner: str) -> None:
    """Rather than shared by everybody whose id was lost."""
    with pytest.raises(InvalidInput):
        await queue.append(owner, TABLE)
    with pytest.raises(InvalidInput):
        await queue.claim(owner, holder="w1", limit=1, lease_ms=LEASE_MS, now_ms=NOW)
    with pytest.raises(InvalidInput):
        await queue.forget(owner)


async def test_a_row_without_id_is_refused(queue: PersonalQueue) -> None:
    """And nothing of what came with it is added."""
    with pytest.raises(InvalidInput):
        await queue.append(OWNER, [("a", b"1"), ("", b"2")])
    assert await queue.rows(OWNER, 9) == ()


@pytest.mark.parametrize("limit", [0, -1, 1001])
async def test_a_claim_of_no_rows_is_refused(queue: PersonalQueue, limit: int) -> None:
    """It would look as if nothing waited."""
    with pytest.raises(InvalidInput):
        await queue.claim(OWNER, holder="w1", limit=limit, lease_ms=LEASE_MS, now_ms=NOW)


async def test_people_see_what_waits_and_what_became_of_the_rest(queue: PersonalQueue) -> None:
    """With reason, plan and times, newest closed first, and no more rows than they ask for."""
    before = int(time.time() * 1000) - 60_000
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue, limit=2)
    await queue.close(claim, [Closing("b", "conflict", "two truths", plan_id="p1")])
    await queue.close(claim, [Closing("a", "retry", "\ud800 busy", not_before_ms=LATER)])
    retried, waiting, closed = await queue.rows(OWNER, 9)
    assert (retried.row_id, retried.state, retried.attempts, retried.not_before_ms) == ("a", "retry", 1, LATER)
    assert retried.reason.endswith(" busy")
    assert (waiting.row_id, waiting.state, waiting.reason, waiting.not_before_ms) == ("c", "waiting", "", None)
    assert (closed.row_id, closed.body, closed.state, closed.plan_id) == ("b", b"2", "conflict", "p1")
    assert min(row.at_ms for row in (retried, waiting, closed)) > before
    assert [row.row_id for row in await queue.rows(OWNER, 2)] == ["a", "c"]
    counts = await queue.counts(OWNER)
    assert (counts.waiting, counts.parked) == (2, 0)
    assert counts.closed == {"done": 0, "failed": 0, "rejected": 0, "conflict": 1}


async def test_it_is_known_how_much_waits_and_since_when(queue: PersonalQueue) -> None:
    """Claimed rows wait too; of owners past the limit one row is counted."""
    before = int(time.time() * 1000) - 60_000
    assert (await queue.pending_total(9), await queue.oldest(9)) == (0, None)
    for owner in ("ada", "bob", "cy"):
        await queue.append(owner, TABLE)
    await claimed(queue, "ada")
    assert await queue.pending_total(9) == 9
    assert await queue.pending_total(1) == 5
    oldest = await queue.oldest(9)
    assert oldest is not None
    assert before < oldest < before + 120_000


async def test_who_is_forgotten_can_begin_anew_at_once(queue: PersonalQueue) -> None:
    """An old claim holds no more, and nothing tells that there was one."""
    await queue.append(OWNER, TABLE)
    old = await claimed(queue)
    assert await queue.forget(OWNER) == 3
    assert await queue.forget(OWNER) == 0
    assert (await queue.rows(OWNER, 9), await queue.owners_due(LATER, 9)) == ((), [])
    assert await queue.append(OWNER, [("a", b"new")]) == 1
    assert not await queue.close(old, closing_all(old))
    new = await claimed(queue)
    assert new.fence > old.fence
    assert not await queue.close(old, closing_all(old))
    assert [(row.body, row.crashes) for row in new.rows] == [(b"new", 0)]
