"""Single flight on a real store: questions and shared answers asked at once are computed once, though leaders fail."""

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest
from pydantic import JsonValue
from redis.asyncio import Redis

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.memory import keys
from tasklore.memory.long_term.entries import CachedResult
from tasklore.memory.long_term.single_flight import Leader, SingleFlight
from tasklore.memory.stories.shared_answers import KEEP, SharedAnswers, open_answers
from tests.integration.flights import KEY, LONG_S, ROOT, Process, Work, awaited


@pytest.fixture
async def process(redis: Redis) -> AsyncIterator[Process]:
    async with SingleFlight[CachedResult](
        redis, owner="one", budget_s=LONG_S
    ) as flights:
        yield Process(redis, flights)


@pytest.fixture
async def neighbour(redis: Redis) -> AsyncIterator[Process]:
    async with SingleFlight[CachedResult](
        redis, owner="two", budget_s=LONG_S
    ) as flights:
        yield Process(redis, flights)


async def test_two_hundred_callers_of_two_processes_compute_once(
    process: Process, neighbour: Process, redis: Redis
) -> None:
    work = Work()
    asking = [
        asyncio.create_task(one.ask(work))
        for one in (process, neighbour)
        for _ in range(100)
    ]
    await awaited(redis)
    work.may_end.set()
    answers = await asyncio.gather(*asking)
    assert work.runs == 1
    assert {answer for answer, _ in answers} == {b"42"}
    assert [joined for _, joined in answers].count(False) == 1


async def test_a_leader_that_fails_hands_over_at_once(
    process: Process, neighbour: Process, redis: Redis
) -> None:
    started = asyncio.Event()
    may_fail = asyncio.Event()

    async def fail() -> bytes:
        started.set()
        await may_fail.wait()
        raise ValueError("no")

    failing = asyncio.create_task(process.ask(fail))
    await started.wait()
    work = Work()
    work.may_end.set()
    others = [
        asyncio.create_task(one.ask(work)) for one in (process, neighbour, neighbour)
    ]
    await awaited(redis)
    may_fail.set()
    with pytest.raises(ValueError, match="no"):
        await failing
    assert {answer for answer, _ in await asyncio.gather(*others)} == {b"42"}
    assert work.runs == 1


async def test_a_cancelled_leader_hands_over(process: Process, redis: Redis) -> None:
    work = Work()
    leading = asyncio.create_task(process.ask(work))
    await work.started.wait()
    following = asyncio.create_task(process.ask(work))
    leading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leading
    work.may_end.set()
    assert await following == (b"42", False)
    assert await redis.exists(keys.flight_of(KEY)) == 0


async def test_a_caller_that_missed_just_before_the_answer_was_stored_joins(
    process: Process, neighbour: Process
) -> None:
    work = Work()
    work.may_end.set()
    await process.ask(work)
    assert await neighbour.ask(work) == (b"42", True)
    assert work.runs == 1


async def test_an_unreadable_entry_is_computed_and_replaced(
    process: Process, redis: Redis
) -> None:
    await redis.hset(KEY, "a", "b")
    work = Work()
    work.may_end.set()
    assert await process.ask(work) == (b"42", False)


async def test_a_caller_that_cannot_wait_computes_without_the_lease(
    process: Process, neighbour: Process
) -> None:
    work = Work()
    leading = asyncio.create_task(process.ask(work))
    await work.started.wait()
    for one in (process, neighbour):
        outcome = await one.flights.join(
            KEY, lambda: process.memory.recall(KEY), wait_s=0.01
        )
        assert isinstance(outcome, Leader)
        assert not outcome.is_leased
        async with outcome:
            pass
    following = asyncio.create_task(neighbour.ask(work))
    work.may_end.set()
    assert await leading == (b"42", False)
    assert await following == (b"42", True)


STORY = "lighthouse"
NUMBER = 3
NAME = "run:background"
ANSWERS = keys.session_flight(STORY, ".3")
LEASE = keys.session_flight(STORY, f".3:{NAME}")


class Question:
    """A question to a model; its answer comes once it is let go."""

    def __init__(self, answer: JsonValue) -> None:
        self.answer = answer
        self.runs = 0
        self.started = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __call__(self) -> JsonValue:
        self.runs += 1
        self.started.set()
        await self.may_end.wait()
        return self.answer


@pytest.fixture
async def one(redis: Redis) -> AsyncIterator[SharedAnswers]:
    async with open_answers(redis, "one", "grouped", LONG_S) as answers:
        yield answers


@pytest.fixture
async def other(redis: Redis) -> AsyncIterator[SharedAnswers]:
    async with open_answers(redis, "other", "grouped", LONG_S) as answers:
        yield answers


async def ask_story(
    answers: SharedAnswers, question: Question, name: str = NAME, wait_s: float = LONG_S
) -> JsonValue:
    """Return the answer to a question about the response."""
    return await answers.get_or_compute(STORY, NUMBER, name, question, wait_s=wait_s)


async def answer_awaited(redis: Redis) -> None:
    """Return when another process is known to wait."""
    async with asyncio.timeout(LONG_S):
        while not await redis.hexists(LEASE, "awaited"):
            pass


async def test_ten_tasks_in_two_processes_ask_once(
    one: SharedAnswers, other: SharedAnswers, redis: Redis
) -> None:
    question = Question({"knowledge": {"by": "m"}})
    asking = [
        asyncio.create_task(ask_story((one, other)[number % 2], question))
        for number in range(10)
    ]
    await question.started.wait()
    await answer_awaited(redis)
    question.may_end.set()

    assert await asyncio.gather(*asking) == [question.answer] * 10
    assert question.runs == 1
    assert 0 < await redis.pttl(ANSWERS) <= KEEP.total_seconds() * 1000
    assert not await redis.exists(LEASE)
    assert await ask_story(other, Question("another")) == question.answer


async def test_another_analysis_of_the_response_asks_anew(one: SharedAnswers) -> None:
    first = Question("first")
    second = Question("second")
    first.may_end.set()
    second.may_end.set()

    assert await ask_story(one, first) == "first"
    assert await ask_story(one, second, "another run:background") == "second"
    assert await one.get_or_compute(STORY, 4, NAME, second, wait_s=LONG_S) == "second"
    assert (
        await one.get_or_compute("harbour", NUMBER, NAME, second, wait_s=LONG_S)
        == "second"
    )


async def test_an_empty_answer_is_kept_by_the_one_who_asked_for_all(
    one: SharedAnswers, other: SharedAnswers
) -> None:
    slow = Question({"a": 1})
    nothing = Question({})
    nothing.may_end.set()
    asking = asyncio.create_task(ask_story(one, slow))
    await slow.started.wait()
    assert await ask_story(other, nothing, wait_s=0.0) == {}
    slow.may_end.set()
    assert await asking == {"a": 1}
    assert await ask_story(other, Question("never")) == {"a": 1}

    assert await ask_story(one, nothing, "silent") == {}
    assert await ask_story(other, Question("never"), "silent") == {}
    assert nothing.runs == 2


async def test_without_the_store_each_process_asks_itself() -> None:
    async with (
        Redis(port=1) as away,
        open_answers(away, "away", "one", 0.05) as answers,
    ):
        question = Question("so")
        question.may_end.set()
        assert await ask_story(answers, question) == "so"
        with pytest.raises(MemoryUnavailable):
            await answers._batch.run([("PING",)])


async def test_a_process_killed_while_asking_is_replaced(
    one: SharedAnswers, redis: Redis, servers: object
) -> None:
    url = servers.redis_url  # type: ignore[attr-defined]
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DOOMED, url, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    assert await child.stdout.readline() == b"asking\n"
    question = Question("mine")
    question.may_end.set()
    asking = asyncio.create_task(ask_story(one, question))
    await answer_awaited(redis)
    assert question.runs == 0
    child.kill()
    await child.wait()
    # The lease ends by itself five seconds later; no test waits for that.
    assert 0 < await redis.pttl(LEASE) <= 5_000
    await redis.pexpire(LEASE, 1)
    async with asyncio.timeout(LONG_S):
        assert await asking == "mine"


DOOMED = """
import asyncio, sys
from redis.asyncio import Redis
from tasklore.memory.stories.shared_answers import open_answers

async def compute():
    print("asking", flush=True)
    await asyncio.Event().wait()

async def main():
    async with Redis.from_url(sys.argv[1]) as client, open_answers(client, "doomed", "one", 60) as answers:
        await answers.get_or_compute("lighthouse", 3, "run:background", compute, wait_s=60)

asyncio.run(main())
"""
