"""Deadlines, pauses and the shared limit of `tasklore.runtime.models.llm`, against a scripted server."""

import asyncio
from threading import Event

import pytest

from tasklore.contracts.errors import LlmError, LlmRateLimited, LlmTimeout
from tasklore.runtime.models.llm import Llm, LlmRole, LlmSettings, Spent
from tests.llm_double import (
    Canned,
    ScriptedLlm,
    answer,
    dropped,
    fault,
    rate_limited,
    stalled,
)
from tests.llm_questions import GOOD, Book, Opener, Pauses, ask

pytest_plugins = ["tests.fixtures_llm"]


async def test_a_stalled_attempt_is_retried_and_a_timeout_in_the_end(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    scripted_llm.respond = lambda asked: stalled()
    llm = open_llm(
        roles={"editor": LlmRole(attempt_deadline_s=0.8)},
        max_attempts=2,
        max_concurrency=1,
    )
    await llm.warm_up()
    with pytest.raises(LlmTimeout, match=r"0\.8 s"):
        await ask(llm)
    assert len(scripted_llm.requests) == 2
    # A cancelled question frees its slot.
    llm = open_llm(max_concurrency=1)
    cancelled = asyncio.create_task(ask(llm))
    await scripted_llm.wait_for_requests(3)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    scripted_llm.respond = lambda asked: answer(GOOD)
    assert (await ask(llm)).value.colour == "green"


async def test_the_deadline_of_the_task_ends_a_long_attempt(
    scripted_llm: ScriptedLlm,
) -> None:
    scripted_llm.respond = lambda asked: stalled()
    async with Llm(LlmSettings(base_url=scripted_llm.base_url)) as llm:
        await llm.warm_up()
        with pytest.raises(LlmTimeout):
            await ask(llm, deadline_s=0.2)
    assert len(scripted_llm.requests) <= 1


async def test_waiting_for_a_slot_counts_against_the_deadline(
    scripted_llm: ScriptedLlm,
) -> None:
    gate = Event()
    scripted_llm.queue(answer(GOOD).behind(gate))
    async with Llm(
        LlmSettings(base_url=scripted_llm.base_url, max_concurrency=1)
    ) as llm:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(ask(llm))
            await scripted_llm.wait_for_requests(1)
            with pytest.raises(LlmTimeout):
                await ask(llm, deadline_s=0.2)
            gate.set()
        assert first.result().value.colour == "green"
    assert len(scripted_llm.requests) == 1


async def test_pauses_grow_and_stay_below_their_cap(
    open_llm: Opener, scripted_llm: ScriptedLlm, pauses: Pauses
) -> None:
    scripted_llm.queue(*[fault(500)] * 4, GOOD)
    await ask(open_llm(max_attempts=5, backoff_base_s=1.0, backoff_cap_s=3.0))
    assert pauses.pauses == [1.0, 2.0, 3.0, 3.0]


async def test_the_pause_of_the_provider_is_kept(
    open_llm: Opener, scripted_llm: ScriptedLlm, pauses: Pauses
) -> None:
    """Retry-After in each spelling is waited out, with our jitter on top; nonsense leaves only the jitter."""
    dates = {
        "retry_after": "Wed, 21 Oct 2026 07:28:12 GMT",
        "Date": "Wed, 21 Oct 2026 07:28:00 GMT",
    }
    for status, headers, asked_s in (
        (429, {"retry_after": "7"}, 7.0),
        (503, {"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        (429, dates, 12.0),
        (503, {"retry_after": "soon"}, 0.0),
        (429, {"retry_after": "nan"}, 0.0),
        (503, {"retry_after": "-5"}, 0.0),
    ):
        scripted_llm.queue(fault(status, **headers), GOOD)
        await ask(open_llm(backoff_base_s=0.5))
        assert pauses.pauses.pop() == asked_s + 0.5


async def test_a_pause_too_long_for_us_or_the_deadline_goes_to_the_caller(
    open_llm: Opener, scripted_llm: ScriptedLlm, pauses: Pauses
) -> None:
    scripted_llm.queue(rate_limited(3_600), rate_limited(20))
    with pytest.raises(LlmRateLimited) as caught:
        await ask(open_llm())
    assert caught.value.retry_after_s == 3_600
    with pytest.raises(LlmRateLimited):
        await ask(open_llm(), deadline_s=15.0)
    with pytest.raises(LlmTimeout, match="no time is left"):
        await ask(open_llm(), deadline_s=0.0)
    assert pauses.pauses == []
    assert len(scripted_llm.requests) == 2


async def test_all_roles_share_one_limit(
    open_llm: Opener, scripted_llm: ScriptedLlm
) -> None:
    gate = Event()
    scripted_llm.respond = lambda asked: answer(GOOD).after(0.03).behind(gate)
    llm = open_llm(max_concurrency=2)
    async with asyncio.TaskGroup() as group:
        for role in ["finder", "editor", "supervisor"] * 3:
            group.create_task(ask(llm, role))
        await scripted_llm.wait_for_requests(2, in_flight=True)
        gate.set()
    assert len(scripted_llm.requests) == 9
    assert scripted_llm.max_in_flight == 2


async def test_a_pause_holds_no_slot(scripted_llm: ScriptedLlm) -> None:
    resumed = asyncio.Event()

    async def sleep(pause_s: float) -> None:
        await resumed.wait()

    scripted_llm.queue(fault(500), GOOD, GOOD)
    async with Llm(
        LlmSettings(base_url=scripted_llm.base_url, max_concurrency=1), sleep=sleep
    ) as llm:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(ask(llm))
            await scripted_llm.wait_for_requests(1)
            second = await ask(llm)
            resumed.set()
        assert (first.result().attempts, second.attempts) == (2, 1)


@pytest.mark.parametrize(
    "canned", [fault(503), dropped(), stalled()], ids=["503", "cut", "stall"]
)
async def test_a_provider_that_is_away_is_only_asked_by_questions_under_way(
    open_llm: Opener, scripted_llm: ScriptedLlm, pauses: Pauses, canned: Canned
) -> None:
    scripted_llm.respond = lambda asked: GOOD if asked.model == "well" else canned
    book = Book()
    spent = Spent()
    roles = {
        "editor": LlmRole(
            model="ill", attempt_deadline_s=0.6 if canned.ending == "stall" else 30.0
        ),
        "finder": LlmRole(model="well"),
    }
    llm = open_llm(meter=book, roles=roles, max_concurrency=8)
    errors = await asyncio.gather(
        *(ask(llm, spent=spent) for _ in range(40)), return_exceptions=True
    )
    assert all(
        isinstance(error, LlmError) and error.away_s is not None for error in errors
    )
    assert len(book.lines) == spent.attempts <= 8 + 3
    assert len(scripted_llm.requests) <= spent.attempts
    assert llm.open_seconds().keys() == {"ill"}
    [away] = llm.away_models()
    assert away.model == "ill"
    assert away.said
    # Another model of the same provider is none of its business.
    assert (await ask(llm, "finder")).value.colour == "green"
    scripted_llm.respond = lambda _asked: GOOD
    pauses.now_s += 10
    assert (await ask(llm)).attempts == 1
    assert llm.open_seconds() == {"ill": 0.0, "well": 0.0}
    assert llm.away_models() == ()
