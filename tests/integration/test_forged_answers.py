"""Where roles have keys, an answer counts that a role took which may; any other one is set aside, and that is kept."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.waits import (
    Door,
    Escalation,
    Wait,
    WaitAnswer,
    WaitRefusal,
)
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import new_id
from tasklore.memory import keys
from tasklore.memory.ledger.waits import MOST_REFUSALS, Waits
from tasklore.runtime.access import ServerCredentials
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
            sign = open_signer(ServerCredentials(role, folder / role / "nats.nkey"))
        return Waits(redis, deadline_s=PATIENCE_S, sign=sign, check=known.check)

    return opened


def a_wait(slot: str = "3") -> Wait:
    """Return the question as the run asks it."""
    now = datetime.now(UTC)
    return Wait(
        kind="ask",
        slot=slot,
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


async def ask(redis: Redis, **altered: object) -> str:
    """Let a task ask a question in slot 3, of which others *altered* what is kept, and return its id."""
    task_id = new_id(0)
    wait = a_wait().model_copy(update=altered)
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
            "asked": a_wait().as_asked(),
        }
    )


async def found(waits: Waits, task_id: str, slot: str = "3") -> WaitAnswer | None:
    """Return the answer as the run of the task finds it."""
    return (await waits.find(task_id, a_wait(slot)))[1]


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


@pytest.mark.parametrize("field", ["value", "by", "at", "door", "digest", "asked"])
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
        "asked": "e" * 32,
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


#: What no answer looks like; an unknown door is what a later version might write.
NO_ANSWERS = [
    b"",
    b"yes",
    b"null",
    b"[1]",
    b'{"value": true}',
    b"\xff\xfe",
    b'{"value": true, "by": "user:carla", "at": "2026-01-01T00:00:00Z", "door": "x"}',
]


@pytest.mark.parametrize("stored", NO_ANSWERS)
@pytest.mark.parametrize("reader", ["run", "desk"])
async def test_what_is_no_answer_is_set_aside_and_fails_nobody(
    stored: bytes, reader: str, waits_of: Callable[[str | None], Waits], redis: Redis
) -> None:
    task_id = await ask(redis)
    await redis.hset(keys.task(task_id), "wait.3.answer", stored)
    desk = waits_of("supervisor")

    if reader == "run":
        assert await found(waits_of(None), task_id) is None
    state = await desk.read(task_id, "3")
    assert state is not None
    assert (state.answer, state.has_answer) == (None, False)
    assert [(one.by, one.why) for one in state.refusals] == [("", "unreadable")]
    assert await desk.answer(task_id, "3", an_answer()) is None
    assert await found(waits_of(None), task_id) is not None


async def test_what_is_no_wait_asks_nothing(
    waits_of: Callable[[str | None], Waits], redis: Redis
) -> None:
    """The run asks anew; an answer has nothing that it could be for, and a signal is taken."""
    desk = waits_of("supervisor")
    for stored in (b"", b"x", b"7", b"{}", b'{"generation": "1"}'):
        task_id = await ask(redis)
        await redis.hset(keys.task(task_id), "wait.3", stored)

        assert await waits_of(None).find(task_id, a_wait()) == (None, None)
        assert await desk.read(task_id, "3") is None
        with pytest.raises(InvalidInput, match="no such task or question"):
            await desk.answer(task_id, "3", an_answer())
        assert await desk.answer(task_id, "3", an_answer(), is_signal=True) is None


LATER = Escalation(who="user:mallory", at=datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    "altered",
    [
        {"who": "user:mallory"},
        {"who": None},
        {"text": "Pay 1?"},
        {"user_id": "mallory"},
        {"escalation": LATER},
        {"answer_schema": {"type": "string"}},
    ],
)
async def test_an_answer_to_another_question_than_the_task_asks_does_not_count(
    altered: dict[str, object], waits_of: Callable[[str | None], Waits], redis: Redis
) -> None:
    """Taken and signed by a supervisor, of somebody who was asked by what others wrote into the ledger."""
    task_id = await ask(redis, **altered)
    desk = waits_of("supervisor")
    shown = await desk.read(task_id, "3")
    assert shown is not None
    answer = an_answer().model_copy(update={"asked": shown.wait.as_asked()})
    assert await desk.answer(task_id, "3", answer) is None

    assert await found(waits_of(None), task_id) is None
    state = await desk.read(task_id, "3")
    assert state is not None
    assert [(one.by, one.why) for one in state.refusals] == [("user:carla", "altered")]


async def test_a_signal_that_nobody_took_does_not_stand_before_one_that_is_sent(
    waits_of: Callable[[str | None], Waits], redis: Redis
) -> None:
    """Whether the task waits for it already or not."""
    desk = waits_of("supervisor")
    for waits in (True, False):
        task_id = await ask(redis)
        wait = a_wait("signal.paid").model_copy(update={"kind": "signal"})
        if waits:
            stored = wait.model_dump_json()
            await redis.hset(keys.task(task_id), "wait.signal.paid", stored)
        forged = an_answer().model_dump_json()
        await redis.hset(keys.task(task_id), "wait.signal.paid.answer", forged)

        sent = an_answer(value=12)
        assert (await desk.answer(task_id, "signal.paid", sent, is_signal=True)) is None
        again = await desk.answer(task_id, "signal.paid", an_answer(), is_signal=True)
        assert again is not None
        assert again.value == 12
        answer = (await waits_of(None).find(task_id, wait))[1]
        assert answer is not None
        assert answer.value == 12


def a_refusal(by: str, why: str = "person", link: str | None = None) -> WaitRefusal:
    return WaitRefusal(by=by, at=datetime.now(UTC), door="http", why=why, link=link)


async def audit(waits: Waits, task_id: str) -> tuple[list[str], int]:
    """Return the authors of the refusals that are kept of a question, and how many are not."""
    state = await waits.read(task_id, "3")
    assert state is not None
    return [one.by for one in state.refusals], state.left_out


async def test_answers_forged_in_many_names_leave_the_others_their_place_in_the_audit(
    waits_of: Callable[[str | None], Waits], redis: Redis
) -> None:
    desk = waits_of("supervisor")
    task_id = await ask(redis)
    await desk.refuse(task_id, "3", a_refusal("user:ana"))
    for number in range(100):
        forged = an_answer().model_copy(update={"by": f"user:{number}"})
        await redis.hset(keys.task(task_id), "wait.3.answer", forged.model_dump_json())
        assert await found(waits_of(None), task_id) is None
    await desk.refuse(task_id, "3", a_refusal("user:bea"))

    by, left_out = await audit(desk, task_id)
    assert by == ["user:ana", *(f"user:{number}" for number in range(8)), "user:bea"]
    assert left_out == 92


async def test_many_refused_authors_share_the_audit_and_the_rest_is_counted(
    waits_of: Callable[[str | None], Waits], redis: Redis
) -> None:
    """Who is refused once keeps that, however often others are; nobody has more than an equal part."""
    desk = waits_of("supervisor")
    task_id = await ask(redis)
    await desk.refuse(task_id, "3", a_refusal("user:ana"))
    for number in range(90):
        await desk.refuse(task_id, "3", a_refusal(f"user:{number % 6}"))
    await desk.refuse(task_id, "3", a_refusal("user:bea"))

    by, left_out = await audit(desk, task_id)
    counts = Counter(by)
    assert (counts["user:ana"], counts["user:bea"]) == (1, 1)
    assert {counts[f"user:{number}"] >= 3 for number in range(6)} == {True}
    assert len(by) + left_out == 92
    stored = await redis.hget(keys.task(task_id), "wait.3.refusals")
    assert len(stored) <= MOST_REFUSALS


async def test_one_holder_of_a_link_leaves_the_others_of_its_role_their_place(
    waits_of: Callable[[str | None], Waits], redis: Redis
) -> None:
    """All that hold a link of a role bear one name; each link is an author of its own."""
    desk = waits_of("supervisor")
    task_id = await ask(redis)

    async def refuse(link: str | None) -> None:
        await desk.refuse(task_id, "3", a_refusal("role:finance", "link expired", link))

    for link in ("a", *["b"] * 20, "c", *["b"] * 20, None):
        await refuse(link)

    state = await desk.read(task_id, "3")
    assert state is not None
    links = [one.link for one in state.refusals]
    assert links == ["a", *["b"] * 8, "c", None]
    assert state.left_out == 32


@pytest.mark.parametrize("kept", [b"x", b'{"by": 7}\n[]\n', b"\xff\n" * 2000])
async def test_a_list_of_refusals_that_is_none_is_counted_and_goes_on(
    kept: bytes, waits_of: Callable[[str | None], Waits], redis: Redis
) -> None:
    desk = waits_of("supervisor")
    task_id = await ask(redis)
    await redis.hset(
        keys.task(task_id),
        mapping={"wait.3.refusals": kept, "wait.3.left_out": "many"},
    )
    lines = len(kept.splitlines())
    assert await audit(desk, task_id) == ([], lines)

    await redis.hdel(keys.task(task_id), "wait.3.left_out")
    await desk.refuse(task_id, "3", a_refusal("user:ana"))
    assert await audit(desk, task_id) == (["user:ana"], lines)
