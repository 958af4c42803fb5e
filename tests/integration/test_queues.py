"""Queues of rows by owner on a real store: order, claims, retries, crashes and forgetting."""

import asyncio
import time

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import user_token
from tasklore.memory.queues.claims import Closing, Outcome
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.memory.queues.waiting_rows import count_waiting
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
    return PersonalQueue(valkey_or_redis, "facts", deadline_s=PATIENCE_S)


async def test_rows_are_claimed_in_the_order_of_their_append_by_one_holder_at_a_time(
    queue: PersonalQueue,
) -> None:
    assert await queue.append(OWNER, [("z", b"1"), ("m", b"2"), ("z", b"again")]) == 2
    assert await queue.append(OWNER, [("a", b"3")]) == 1
    claim = await claimed(queue, limit=2)
    rows = [(row.row_id, row.body, row.attempts, row.note) for row in claim.rows]
    assert rows == [("z", b"1", 0, None), ("m", b"2", 0, None)]
    await queue.append(OWNER, [("d", b"4")])
    for holder in ("w1", "w2"):
        assert (
            await queue.claim(
                OWNER, holder=holder, limit=9, lease_ms=LEASE_MS, now_ms=LATER
            )
            is None
        )
    await queue.append("bob", [("a", b"of bob")])
    assert [row.body for row in (await claimed(queue, "bob")).rows] == [b"of bob"]
    assert await queue.close(claim, closing_all(claim))
    await queue.release(claim)
    assert ids(await claimed(queue)) == ["a", "d"]


async def test_a_row_keeps_the_trace_it_came_in_until_it_is_closed(
    queue: PersonalQueue,
) -> None:
    await queue.append(OWNER, [("a", b"1"), ("b", b"2")], trace="00-x-y-01 vendor=1")
    await queue.append(OWNER, [("c", b"3")])
    for _ in range(2):
        claim = await claimed(queue)
        assert [row.trace for row in claim.rows] == ["00-x-y-01 vendor=1"] * 2 + [""]
        await queue.release(claim)


async def test_a_row_that_is_appended_again_is_known_even_when_it_is_closed(
    queue: PersonalQueue,
) -> None:
    outcomes: list[Outcome] = ["done", "failed", "rejected", "conflict"]
    rows = [(outcome, b"1") for outcome in outcomes]
    await queue.append(OWNER, rows)
    assert await queue.append(OWNER, [*rows, ("more", b"4")]) == 1
    claim = await claimed(queue)
    await queue.close(
        claim,
        [
            *(Closing(row_id=outcome, state=outcome) for outcome in outcomes),
            Closing(row_id="more", state="done"),
        ],
    )
    await queue.release(claim)
    assert await queue.append(OWNER, [(outcome, b"other") for outcome in outcomes]) == 0
    assert (
        await queue.claim(OWNER, holder="w1", limit=1, lease_ms=LEASE_MS, now_ms=LATER)
        is None
    )


async def test_released_rows_are_claimed_again_untouched(queue: PersonalQueue) -> None:
    await queue.append(OWNER, TABLE)
    first = await claimed(queue)
    await queue.release(first)
    second = await claimed(queue)
    assert second.rows == first.rows
    assert second.fence > first.fence
    assert {row.crashes for row in second.rows} == {0}


async def test_a_holder_whose_lease_ran_out_changes_nothing(
    queue: PersonalQueue,
) -> None:
    """Whether or not another holder took the rows."""
    await queue.append(OWNER, TABLE)
    lost = await claimed(queue, lease_ms=BLINK_MS)

    async def is_over() -> bool | None:
        return None if await queue.renew(lost, BLINK_MS) else True

    await until(is_over)
    assert not await queue.close(lost, closing_all(lost))
    current = await after_a_crash(queue)
    assert not await queue.close(lost, closing_all(lost, "failed"))
    assert not await queue.renew(lost, LEASE_MS)
    await queue.release(lost)
    assert await queue.renew(current, LEASE_MS)
    assert set((await states(queue)).values()) == {"waiting"}


async def test_a_claim_lasts_as_long_as_its_last_renewal(queue: PersonalQueue) -> None:
    await queue.append(OWNER, [("a", b"1")])
    claim = await claimed(queue, lease_ms=LEASE_MS // 2)
    for lease_ms in (LEASE_MS, BLINK_MS):
        assert await queue.renew(claim, lease_ms)
    await after_a_crash(queue)


async def test_closing_a_row_again_changes_nothing(queue: PersonalQueue) -> None:
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue)
    for _ in range(2):
        assert await queue.close(
            claim,
            [Closing(row_id="a", state="done"), Closing(row_id="b", state="retry")],
        )
    assert await queue.close(
        claim,
        [
            Closing(row_id="a", state="failed"),
            Closing(row_id="unheard-of", state="done"),
        ],
    )
    await queue.release(claim)
    assert [(row.row_id, row.attempts) for row in (await claimed(queue)).rows] == [
        ("b", 1),
        ("c", 0),
    ]
    assert (await states(queue))["a"] == "done"


async def test_a_row_to_be_tried_again_keeps_its_place_and_holds_later_rows(
    queue: PersonalQueue,
) -> None:
    await queue.append(OWNER, [("first", b"0"), *TABLE])
    claim = await claimed(queue)
    await queue.close(
        claim,
        [Closing(row_id="a", state="retry", reason="no luck", not_before_ms=LATER)],
    )
    await queue.release(claim)
    before = await claimed(queue)
    assert ids(before) == ["first"]
    await queue.close(before, closing_all(before))
    await queue.release(before)
    assert (
        await queue.claim(
            OWNER, holder="w1", limit=9, lease_ms=LEASE_MS, now_ms=LATER - 1
        )
        is None
    )
    again = await claimed(queue, now_ms=LATER)
    assert [(row.row_id, row.attempts) for row in again.rows] == [
        ("a", 1),
        ("b", 0),
        ("c", 0),
    ]


async def test_a_row_out_of_attempts_is_set_aside_and_the_next_goes_on(
    queue: PersonalQueue,
) -> None:
    await queue.append(OWNER, TABLE)
    for attempt in range(3):
        claim = await claimed(queue)
        assert claim.rows[0].attempts == attempt
        last = attempt == 2
        await queue.close(
            claim,
            [
                Closing(
                    row_id="a",
                    state="failed" if last else "retry",
                    reason="cannot be read",
                )
            ],
        )
        await queue.release(claim)
    assert ids(await claimed(queue)) == ["b", "c"]
    known = (await queue.rows(OWNER, 9))[-1]
    assert (known.row_id, known.state, known.reason, known.attempts) == (
        "a",
        "failed",
        "cannot be read",
        2,
    )


async def test_rows_of_a_crashed_claim_come_alone_until_one_is_convicted(
    queue: PersonalQueue,
) -> None:
    """A crash beside others counts against no row, nor does one after a word on the row."""
    await queue.append(OWNER, TABLE)
    await claimed(queue, lease_ms=BLINK_MS)
    suspect = await after_a_crash(queue)
    assert [(row.row_id, row.attempts, row.crashes) for row in suspect.rows] == [
        ("a", 0, 1)
    ]
    await queue.close(suspect, closing_all(suspect))
    await queue.append(OWNER, [("d", b"4")])
    await queue.release(suspect)
    claim = await claimed(queue, lease_ms=BLINK_MS)
    assert ids(claim) == ["b"]
    culprit = await after_a_crash(queue)
    assert [(row.row_id, row.attempts, row.crashes) for row in culprit.rows] == [
        ("b", 1, 2)
    ]
    await queue.append("bob", TABLE)
    worded = await claimed(queue, "bob")
    assert await queue.close(
        worded, [Closing(row_id="a", state="done"), Closing(row_id="b", state="retry")]
    )
    assert await queue.renew(worded, BLINK_MS)
    following = await until(
        lambda: queue.claim("bob", holder="w2", limit=9, lease_ms=LEASE_MS, now_ms=NOW)
    )
    assert [(row.row_id, row.attempts, row.crashes) for row in following.rows] == [
        ("b", 1, 0)
    ]


async def test_a_suspect_row_that_ends_with_a_word_is_suspect_no_more(
    queue: PersonalQueue,
) -> None:
    await queue.append(OWNER, TABLE)
    await claimed(queue, lease_ms=BLINK_MS)
    suspect = await after_a_crash(queue)
    await queue.close(suspect, [Closing(row_id="a", state="retry")])
    await queue.release(suspect)
    again = await claimed(queue)
    assert [(row.row_id, row.attempts, row.crashes) for row in again.rows] == [
        ("a", 1, 0)
    ]


async def test_a_suspect_row_comes_without_rows_that_were_never_claimed(
    queue: PersonalQueue,
) -> None:
    await queue.append(OWNER, TABLE[:1])
    await claimed(queue, lease_ms=BLINK_MS)
    await queue.append(OWNER, TABLE[1:])
    assert ids(await after_a_crash(queue)) == ["a"]


async def test_a_row_that_needs_a_model_leaves_the_order_until_it_is_resumed(
    queue: PersonalQueue,
) -> None:
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue)
    await queue.close(
        claim,
        [
            Closing(row_id="a", state="needs_model", reason="no rule reads it"),
            Closing(row_id="b", state="done"),
        ],
    )
    await queue.release(claim)
    after = await claimed(queue)
    assert ids(after) == ["c"]
    await queue.release(after)
    rows = [(row.row_id, row.state, row.reason) for row in await queue.rows(OWNER, 9)]
    assert rows == [
        ("c", "waiting", ""),
        ("a", "needs_model", "no rule reads it"),
        ("b", "done", ""),
    ]
    assert await queue.resume(OWNER, reason="needs_model") == 1
    assert await queue.resume(OWNER) == 0
    assert ids(await claimed(queue)) == ["a", "c"]


async def test_rows_of_all_owners_are_resumed_at_once(queue: PersonalQueue) -> None:
    for owner in ("ada", "bob", "cy"):
        await queue.append(owner, TABLE)
    for owner in ("ada", "bob"):
        claim = await claimed(queue, owner)
        await queue.close(
            claim,
            [Closing(row_id=row_id, state="needs_model") for row_id in ids(claim)],
        )
        await queue.release(claim)
    assert await queue.owners_due(LATER, 9) == ["cy"]
    assert await queue.pending_total(9) == 3
    assert await queue.resume_all() == 6
    assert sorted(await queue.owners_due(LATER, 9)) == ["ada", "bob", "cy"]
    assert await queue.pending_total(9) == 9


async def test_a_note_is_kept_for_the_next_attempt(queue: PersonalQueue) -> None:
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue)
    note = b"\x00worked out\xff"
    await queue.close(claim, [Closing(row_id="a", state="retry", note=note)])
    await queue.close(claim, [Closing(row_id="a", state="retry")])
    await queue.release(claim)
    again = await claimed(queue)
    assert [row.note for row in again.rows] == [note, None, None]
    await queue.close(again, closing_all(again))
    assert {row.note for row in await queue.rows(OWNER, 9)} == {None}


async def test_owners_with_due_rows_are_offered_longest_waiting_first(
    queue: PersonalQueue,
) -> None:
    for owner in ("first", "leased", "later", "finished", "last"):
        await queue.append(owner, [("a", b"1")])
    await claimed(queue, "leased")
    endings = {
        "later": Closing(row_id="a", state="retry", not_before_ms=LATER),
        "finished": Closing(row_id="a", state="done"),
    }
    for owner, closing in endings.items():
        claim = await claimed(queue, owner)
        await queue.close(claim, [closing])
        await queue.release(claim)
        assert (
            await queue.claim(
                owner, holder="w2", limit=1, lease_ms=LEASE_MS, now_ms=NOW
            )
            is None
        )
    assert await queue.owners_due(NOW, 9) == ["first", "last"]
    assert await queue.owners_due(NOW, 1) == ["first"]
    assert "later" in await queue.owners_due(LATER, 9)


async def test_an_owner_whose_rows_another_works_on_is_offered_when_the_lease_is_over(
    queue: PersonalQueue,
) -> None:
    """Not before, though more was said meanwhile: whoever looked finds nothing to claim."""
    await queue.append(OWNER, TABLE)
    await claimed(queue)
    await queue.append(OWNER, [("d", b"4")])
    assert await queue.owners_due(NOW, 9) == [OWNER]
    other = await queue.claim(
        OWNER, holder="w2", limit=9, lease_ms=LEASE_MS, now_ms=NOW
    )
    assert (other, await queue.owners_due(NOW, 9)) == (None, [])
    assert await queue.owners_due(LATER, 9) == [OWNER]


async def test_an_owner_who_appends_more_keeps_the_place(queue: PersonalQueue) -> None:
    for owner in ("talks", "waits", "talks", "talks"):
        await queue.append(owner, [(str(time.time()), b"1")])
    assert await queue.owners_due(NOW, 9) == ["talks", "waits"]


async def test_an_owner_may_have_any_name(queue: PersonalQueue) -> None:
    for owner in ("ada@example.org", "Zoë 🦊", "{a}:*?[x]", "b" * 500, "\x00"):
        await queue.append(owner, [("a/b:{c} 🦊", b"1")])
        assert owner in await queue.owners_due(NOW, 9)
        claim = await claimed(queue, owner)
        assert (claim.owner, claim.holder, ids(claim)) == (owner, "w1", ["a/b:{c} 🦊"])
        assert claim.owner_token == user_token(owner)


async def test_an_empty_owner_row_or_claim_is_refused(queue: PersonalQueue) -> None:
    for owner in ("", "\ud800"):
        with pytest.raises(InvalidInput):
            await queue.append(owner, TABLE)
        with pytest.raises(InvalidInput):
            await queue.claim(
                owner, holder="w1", limit=1, lease_ms=LEASE_MS, now_ms=NOW
            )
        with pytest.raises(InvalidInput):
            await queue.forget(owner)
    with pytest.raises(InvalidInput):
        await queue.append(OWNER, [("a", b"1"), ("", b"2")])
    assert await queue.rows(OWNER, 9) == ()
    for limit in (0, -1, 1001):
        with pytest.raises(InvalidInput):
            await queue.claim(
                OWNER, holder="w1", limit=limit, lease_ms=LEASE_MS, now_ms=NOW
            )


async def test_rows_are_shown_with_state_reason_plan_and_times(
    queue: PersonalQueue,
) -> None:
    before = int(time.time() * 1000) - 60_000
    await queue.append(OWNER, TABLE)
    claim = await claimed(queue, limit=2)
    await queue.close(
        claim,
        [Closing(row_id="b", state="conflict", reason="two truths", plan_id="p1")],
    )
    await queue.close(
        claim,
        [Closing(row_id="a", state="retry", reason="\ud800 busy", not_before_ms=LATER)],
    )
    retried, waiting, closed = await queue.rows(OWNER, 9)
    assert (retried.row_id, retried.state, retried.attempts, retried.not_before_ms) == (
        "a",
        "retry",
        1,
        LATER,
    )
    assert retried.reason.endswith(" busy")
    assert (waiting.row_id, waiting.state, waiting.reason, waiting.not_before_ms) == (
        "c",
        "waiting",
        "",
        None,
    )
    assert (closed.row_id, closed.body, closed.state, closed.plan_id) == (
        "b",
        b"2",
        "conflict",
        "p1",
    )
    assert min(row.at_ms for row in (retried, waiting, closed)) > before
    assert [row.row_id for row in await queue.rows(OWNER, 2)] == ["a", "c"]
    counts = await queue.counts(OWNER)
    assert (counts.waiting, counts.parked) == (2, 0)
    assert counts.closed == {"done": 0, "failed": 0, "rejected": 0, "conflict": 1}


async def test_pending_rows_are_counted_with_the_age_of_the_oldest(
    queue: PersonalQueue,
) -> None:
    before = int(time.time() * 1000) - 60_000
    assert (await queue.pending_total(9), await queue.oldest(9)) == (0, None)
    await queue.append("ada", TABLE)
    first = await queue.oldest(9)
    await asyncio.sleep(2 * BLINK_MS / 1000)
    for owner in ("bob", "cy"):
        await queue.append(owner, TABLE)
    assert await queue.oldest(9) == first
    await claimed(queue, "ada")
    assert await queue.pending_total(9) == 9
    assert await queue.pending_total(1) == 5
    oldest = await queue.oldest(9)
    assert oldest is not None
    assert before < oldest < before + 120_000


async def test_a_forgotten_owner_begins_anew_at_once(queue: PersonalQueue) -> None:
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


async def test_rows_that_wait_for_a_model_and_failed_ones_are_waited_for_too(
    valkey_or_redis: Redis,
) -> None:
    """Of both tables together; what is done is not."""
    turns, facts = (
        PersonalQueue(valkey_or_redis, name, deadline_s=PATIENCE_S)
        for name in ("turns", "facts")
    )
    await turns.append(OWNER, TABLE)
    claim = await claimed(turns)
    assert await turns.close(
        claim,
        [
            Closing(row_id="a", state="needs_model"),
            Closing(row_id="b", state="failed"),
            Closing(row_id="c", state="done"),
        ],
    )
    await facts.append(OWNER, TABLE[:1])
    assert await count_waiting(OWNER, turns, facts) == 3
