"""Where roles have keys, an answer counts that a role took which may; any other one is set aside, and that is kept."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.waits import Door, Wait, WaitAnswer
from tasklore.contracts.identifiers import new_id
from tasklore.memory import keys
from tasklore.memory.ledger.waits import Waits
from tasklore.runtime.access import Access
from tasklore.runtime.messaging.signatures import Publishers, open_signer
from tests.role_keys import make_role_keys
from tests.servers import PATIENCE_S

DIGEST = "d" * 32
YES = {"approved": True, "note": ""}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a key for each role, and the list of those that sign."""
    return make_role_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def waits_of(folder: Path, redis: Redis) -> Callable[[str | None], Waits]:
    """Return a function that opens the waits as a role has them, or as a process without a key."""
    known = Publishers(folder / "publishers.json")

    def opened(role: str | None) -> Waits:
        sign = None
        if role is not None:
            sign = open_signer(Access(role, folder / role / "nats.nkey"))
        return Waits(redis, deadline_s=PATIENCE_S, sign=sign, check=known.check)

    return opened


async def ask(redis: Redis) -> str:
    """Let a task ask a question in slot 3, and return its id."""
    task_id = new_id(0)
    now = datetime.now(UTC)
    wait = Wait(
        kind="ask",
        slot="3",
        digest=DIGEST,
        agent_id="PayerAgent",
        task_name="pay",
        generation=1,
        text="Pay 12?",
        who="role:cfo",
        asked_at=now,
        until=now + timedelta(days=1),
        otherwise={"approved": False, "note": "not answered in time"},
    )
    await redis.hset(
        keys.task(task_id),
        mapping={"state:1": "waiting", "wait.3": wait.model_dump_json()},
    )
    return task_id


def an_answer(door: Door = "http", value: object = None) -> WaitAnswer:
    return WaitAnswer.model_validate(
        {
            "value": YES if value is None else value,
            "by": "user:carla",
            "at": datetime.now(UTC),
            "door": door,
            "digest": DIGEST,
        }
    )


async def found(waits: Waits, task_id: str, slot: str = "3") -> WaitAnswer | None:
    """Return the answer as the run of the task finds it."""
    no = {"approved": False, "note": "not answered in time"}
    return (await waits.find(task_id, slot, no))[1]


@pytest.mark.parametrize("role", ["supervisor", "operator"])
async def test_an_answer_counts_that_a_role_took_which_may(
    role: str, waits_of: Callable[[str | None], Waits], redis: Redis
) -> None:
    task_id = await ask(redis)
    assert await waits_of(role).answer(task_id, "3", an_answer()) is None
    answer = await found(waits_of(None), task_id)
    assert answer is not None
    assert (answer.value, answer.by) == (YES, "user:carla")


@pytest.mark.parametrize("role", [None, "program", "worker-budget", "memory"])
async def test_an_answer_that_another_role_wrote_is_set_aside_and_the_question_stays_open(
    role: str | None, waits_of: Callable[[str | None], Waits], redis: Redis
) -> None:
    """By a process without a key, or signed by a role that takes no answers."""
    task_id = await ask(redis)
    forger = waits_of(role)
    assert await forger.answer(task_id, "3", an_answer()) is None
    desk = waits_of("supervisor")

    assert await found(waits_of(None), task_id) is None
    state = await desk.read(task_id, "3")
    assert state is not None
    assert state.answer is None
    assert [(one.by, one.why) for one in state.refusals] == [("user:carla", "forged")]
    assert await desk.answer(task_id, "3", an_answer()) is None
    assert await found(waits_of(None), task_id) is not None


async def test_the_desk_takes_the_answer_of_a_person_after_a_forged_one(
    waits_of: Callable[[str | None], Waits], redis: Redis
) -> None:
    """Also before any run has looked at it, and however its bytes are spelled."""
    task_id = await ask(redis)
    spelled = an_answer().model_dump_json(indent=1)
    await redis.hset(keys.task(task_id), "wait.3.answer", spelled)
    desk = waits_of("supervisor")

    state = await desk.read(task_id, "3")
    assert state is not None
    assert state.answer is None
    assert await desk.answer(task_id, "3", an_answer()) is None


@pytest.mark.parametrize("field", ["value", "by", "at", "door", "digest"])
async def test_a_signed_answer_holds_as_it_was_signed_alone(
    field: str, waits_of: Callable[[str | None], Waits], redis: Redis
) -> None:
    task_id = await ask(redis)
    await waits_of("supervisor").answer(task_id, "3", an_answer())
    place = keys.task(task_id)
    signed = WaitAnswer.model_validate_json(await redis.hget(place, "wait.3.answer"))
    other = {
        "value": {"approved": False, "note": ""},
        "by": "user:mallory",
        "at": signed.at + timedelta(seconds=1),
        "door": "cli",
        "digest": "e" * 32,
    }
    altered = signed.model_copy(update={field: other[field]})
    await redis.hset(place, "wait.3.answer", altered.model_dump_json())

    assert await found(waits_of(None), task_id) is None


async def test_a_signed_answer_is_of_one_question_of_one_task(
    waits_of: Callable[[str | None], Waits], redis: Redis
) -> None:
    """Copied to another task or another slot it does not count."""
    task_id, other = await ask(redis), await ask(redis)
    await waits_of("supervisor").answer(task_id, "3", an_answer())
    signed = await redis.hget(keys.task(task_id), "wait.3.answer")
    wait = await redis.hget(keys.task(task_id), "wait.3")
    await redis.hset(keys.task(other), "wait.3.answer", signed)
    await redis.hset(
        keys.task(task_id), mapping={"wait.4": wait, "wait.4.answer": signed}
    )

    assert await found(waits_of(None), other) is None
    assert await found(waits_of(None), task_id, "4") is None


async def test_at_the_end_of_a_wait_holds_what_its_code_says_and_nothing_else(
    waits_of: Callable[[str | None], Waits], redis: Redis
) -> None:
    late, forged = await ask(redis), await ask(redis)
    no = {"approved": False, "note": "not answered in time"}
    await waits_of(None).answer(late, "3", an_answer("time", no))
    await waits_of(None).answer(forged, "3", an_answer("time", YES))

    answer = await found(waits_of(None), late)
    assert answer is not None
    assert answer.value == no
    assert await found(waits_of(None), forged) is None
