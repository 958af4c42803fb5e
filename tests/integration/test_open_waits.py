"""The open waits of one task, read from its entry: not from the list of all, and not from all of the entry."""

from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.waits import MOST_OPEN, Kind, Wait, WaitAnswer
from tasklore.contracts.errors import InvalidInput
from tasklore.memory import keys
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import Ended, NotDue, RunName, RunPermission
from tasklore.memory.ledger.task_tree import MOST_WAITS, TaskTree
from tasklore.memory.ledger.waits import WaitName, Waits
from tasklore.supervisor.approvals.questions import list_questions, view_of
from tests.servers import PATIENCE_S

TASK = "waiter"
LEASE_MS = 30_000


@pytest.fixture
def ledger(valkey_or_redis: Redis) -> Ledger:
    return Ledger(valkey_or_redis, deadline_s=PATIENCE_S)


@pytest.fixture
def waits(valkey_or_redis: Redis) -> Waits:
    return Waits(valkey_or_redis, deadline_s=PATIENCE_S)


def a_wait(slot: str, kind: Kind = "ask", generation: int = 1) -> Wait:
    now = datetime.now(UTC)
    return Wait(
        kind=kind,
        slot=slot,
        digest=slot[-1] * 32,
        agent_id="PayerAgent",
        task_name="pay",
        generation=generation,
        text=f"Pay {slot}?",
        who="role:finance" if kind == "ask" else None,
        asked_at=now,
        until=now + timedelta(days=1),
    )


def an_answer(wait: Wait) -> WaitAnswer:
    return WaitAnswer(
        value={"approved": True, "note": ""},
        by="user:fay",
        at=datetime.now(UTC),
        door="http",
        digest=wait.digest,
        asked=wait.as_asked(),
    )


async def park(
    ledger: Ledger, waits: Waits, *open_ones: Wait, task_id: str = TASK
) -> bool | None:
    """Let a run of the task begin, and end in *open_ones*."""
    generation = open_ones[0].generation
    begun = await ledger.begin(task_id, generation, "w", 1, LEASE_MS, token="run")
    assert isinstance(begun, RunPermission)
    ended = Ended(task_id, generation, "run")
    return await waits.begin(
        ended, open_ones, wait_s=86_400, due_s=86_400, assignment=b"{}"
    )


async def slots_of(waits: Waits, task_id: str = TASK) -> list[str]:
    return [state.wait.slot for state in await waits.of(task_id)]


async def test_the_open_waits_of_a_task_are_those_of_its_last_run_in_their_order(
    ledger: Ledger, waits: Waits
) -> None:
    """Of every kind; an answered one is open no more, and one that the next run does not come to neither."""
    assert await slots_of(waits) == []
    first = (
        a_wait("2"),
        a_wait("signal.paid", "signal"),
        a_wait("0"),
        a_wait("1", "sleep"),
    )
    assert await park(ledger, waits, *first) is True
    assert await slots_of(waits) == ["2", "signal.paid", "0", "1"]
    assert [one.wait for one in await waits.of(TASK)] == list(first)

    assert await waits.answer(TASK, "0", an_answer(first[2])) is None
    assert await slots_of(waits) == ["2", "signal.paid", "1"]
    assert await park(ledger, waits, a_wait("5"), a_wait("2")) is True
    assert await slots_of(waits) == ["5", "2"]


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_task_that_has_ended_or_is_to_be_cancelled_waits_for_nothing(
    is_cancelled: bool, ledger: Ledger, waits: Waits
) -> None:
    await park(ledger, waits, a_wait("0"), a_wait("1"))
    if is_cancelled:
        await ledger.cancel(TASK, None, "no need")
    else:
        await ledger.finish(TASK, 1, "failed", b"{}")
    assert await waits.of(TASK) == []


async def test_a_redriven_task_waits_for_what_its_new_generation_asks(
    ledger: Ledger, waits: Waits
) -> None:
    await park(ledger, waits, a_wait("0"))
    await ledger.finish(TASK, 1, "failed", b"{}")
    await park(ledger, waits, a_wait("0", generation=2), a_wait("3", generation=2))
    assert await slots_of(waits) == ["0", "3"]
    assert {one.wait.generation for one in await waits.of(TASK)} == {2}


async def test_a_task_that_a_worker_of_before_let_wait_is_read_by_the_names_of_its_fields(
    waits: Waits, valkey_or_redis: Redis
) -> None:
    """It kept no list of slots. Answers, refusals and notices are fields too, and answered waits stay."""
    asked, done, paid = a_wait("7"), a_wait("2"), a_wait("signal.paid", "signal")
    await valkey_or_redis.hset(
        keys.task(TASK),
        mapping={
            "state:1": "waiting",
            "assignment:1": "{}",
            "once.effect": "token",
            "wait.7": asked.model_dump_json(),
            "wait.7.notices": "2",
            "wait.7.refusals": "",
            "wait.2": done.model_dump_json(),
            "wait.2.answer": an_answer(done).model_dump_json(),
            "wait.signal.paid": paid.model_dump_json(),
            "wait.signal.early.answer": an_answer(paid).model_dump_json(),
        },
    )
    assert sorted(await slots_of(waits)) == ["7", "signal.paid"]


async def test_a_task_that_a_worker_of_before_took_over_waits_for_what_that_one_asks(
    ledger: Ledger, waits: Waits, valkey_or_redis: Redis
) -> None:
    """As while workers are replaced: it leaves the list of a run before as it was."""
    first, later = a_wait("0"), a_wait("4")
    await park(ledger, waits, first)
    await waits.answer(TASK, "0", an_answer(first))
    run = await ledger.begin(TASK, 1, "w", 1, LEASE_MS, token="of before")
    assert isinstance(run, RunPermission)
    await valkey_or_redis.hset(
        keys.task(TASK),
        mapping={"state:1": "waiting", "wait.4": later.model_dump_json()},
    )
    assert await slots_of(waits) == ["4"]


async def test_what_is_no_wait_or_none_of_ours_is_left_out(
    ledger: Ledger, waits: Waits, valkey_or_redis: Redis
) -> None:
    """Roles that write the ledger may write anything there."""
    await park(ledger, waits, a_wait("0"))
    await valkey_or_redis.hset(
        keys.task(TASK),
        mapping={"open_waits": "1 1 0 9 signal.x \u00ff", "wait.9": "x"},
    )
    assert await slots_of(waits) == ["0"]
    await valkey_or_redis.set(keys.task("other"), "text")
    assert await waits.of("other") == []


async def test_an_entry_with_a_hundred_thousand_fields_is_not_looked_through(
    ledger: Ledger, waits: Waits, valkey_or_redis: Redis
) -> None:
    """What the server does for it is bounded by what is open."""
    await park(ledger, waits, *(a_wait(str(number)) for number in range(MOST_OPEN)))
    many = {f"once.{number}": "token" for number in range(100_000)}
    await valkey_or_redis.hset(keys.task(TASK), mapping=many)
    before = await spent_us(valkey_or_redis)
    assert len(await waits.of(TASK)) == MOST_OPEN
    small = await spent_us(valkey_or_redis) - before
    await valkey_or_redis.hdel(keys.task(TASK), *many)
    before = await spent_us(valkey_or_redis)
    assert len(await waits.of(TASK)) == MOST_OPEN
    assert small < 5 * (await spent_us(valkey_or_redis) - before)


async def spent_us(redis: Redis) -> int:
    """Return the microseconds that the server has spent in functions that read."""
    return int((await redis.info("commandstats"))["cmdstat_fcall_ro"]["usec"])


async def test_the_questions_of_one_task_are_listed_without_the_list_of_all(
    ledger: Ledger, waits: Waits, valkey_or_redis: Redis
) -> None:
    """Nothing names them in the list of all open waits here."""
    await park(ledger, waits, a_wait("1"), a_wait("signal.paid", "signal"), a_wait("0"))
    found = await list_questions(waits, 10, lambda _state: True, task_id=TASK)
    assert [one.id for one in found] == [f"{TASK}.1", f"{TASK}.0"]
    only = await list_questions(
        waits, 10, lambda state: state.wait.slot == "0", task_id=TASK
    )
    assert [one.question for one in only] == ["Pay 0?"]
    assert len(await list_questions(waits, 1, lambda _state: True, task_id=TASK)) == 1
    assert await list_questions(waits, 10, lambda _state: True) == ()


async def test_a_trace_says_what_its_tasks_wait_for(
    ledger: Ledger, waits: Waits, valkey_or_redis: Redis
) -> None:
    tree = TaskTree(valkey_or_redis, deadline_s=PATIENCE_S)
    first = a_wait("1")
    await park(ledger, waits, first, a_wait("signal.paid", "signal"))
    trace = await tree.read(TASK)
    assert trace is not None
    until = f"until {first.until:%Y-%m-%d %H:%M:%S} UTC"
    assert trace.root.waits[0].sentence == (
        f"waits for the answer of role:finance (question {TASK}.1), {until}"
    )
    assert trace.root.waits[0].question == "Pay 1?"
    assert trace.root.waits_for is not None
    assert trace.root.waits_for.sentence == (
        f"waits for the answer of role:finance (question {TASK}.1), and 1 more, {until}"
    )
    assert [one.id for one in trace.root.waits] == [f"{TASK}.1", None]

    many = [a_wait(str(number), "sleep") for number in range(MOST_WAITS + 3)]
    await park(ledger, waits, *many, task_id="many")
    trace = await tree.read("many")
    assert trace is not None
    assert len(trace.root.waits) == MOST_WAITS
    assert trace.root.more_waits == 3


async def listed(redis: Redis) -> set[str]:
    """Return the names in the list of all open waits."""
    return {name.decode() for name in await redis.zrange(keys.index("waits"), 0, -1)}


async def list_all(waits: Waits, *open_ones: Wait) -> None:
    now = datetime.now(UTC)
    await waits.look_at_many(
        {WaitName(one.kind, TASK, one.slot): now for one in open_ones}
    )


async def test_an_answer_to_one_of_several_lets_the_task_be_due_at_once(
    ledger: Ledger, waits: Waits
) -> None:
    """Also one that came before the run ended; the others stay open."""
    first, second = a_wait("0"), a_wait("1")
    assert await park(ledger, waits, first, second) is True
    assert await waits.answer(TASK, "1", an_answer(second)) is None
    assert await waits.answer(TASK, "1", an_answer(second)) is not None
    third = a_wait("2")
    assert await park(ledger, waits, first, third) is True
    begun = await ledger.begin(TASK, 1, "w", 1, LEASE_MS, token="again")
    assert isinstance(begun, NotDue)
    assert await waits.answer(TASK, "2", an_answer(third)) is None
    begun = await ledger.begin(TASK, 1, "w", 1, LEASE_MS, token="again")
    assert isinstance(begun, RunPermission)
    assert await waits.answer(TASK, "0", an_answer(first)) is None
    ended = Ended(TASK, 1, "again")

    async def end(*open_ones: Wait) -> bool | None:
        return await waits.begin(ended, open_ones, wait_s=1, due_s=1, assignment=b"{}")

    assert await end(a_wait("5"), first) is False
    assert await end(first) is None


async def test_a_wait_that_a_later_run_leaves_out_is_withdrawn(
    ledger: Ledger, waits: Waits, valkey_or_redis: Redis
) -> None:
    """It leaves both lists, and an answer to it is refused; an earlier answer stays one, and is left to the desk."""
    first, second, third = a_wait("0"), a_wait("1"), a_wait("2")
    await list_all(waits, first, second, third)
    await park(ledger, waits, first, second, third)
    await waits.answer(TASK, "1", an_answer(second))
    await park(ledger, waits, third)
    assert await listed(valkey_or_redis) == {f"ask {TASK} 1", f"ask {TASK} 2"}
    states = [await waits.read(TASK, slot) for slot in "012"]
    assert [one and one.is_withdrawn for one in states] == [True, True, False]
    with pytest.raises(InvalidInput, match="has continued"):
        await waits.answer(TASK, "0", an_answer(first))
    assert await waits.answer(TASK, "1", an_answer(second)) is not None
    shown = [view_of(TASK, one).state for one in states if one is not None]
    assert shown == ["ended", "answered", "open"]


async def test_a_question_is_put_while_its_run_goes_on(
    ledger: Ledger, waits: Waits, valkey_or_redis: Redis
) -> None:
    """What was open before stays so; a run that is not the task's any more puts none."""
    first, second = a_wait("0"), a_wait("1")
    await park(ledger, waits, first, second)
    await waits.answer(TASK, "1", an_answer(second))
    run = RunName(TASK, 1, "w")
    third = a_wait("2")
    assert await waits.ask(run, third) is False
    await ledger.begin(TASK, 1, "w", 1, LEASE_MS, token="run")
    assert await waits.ask(run, third) is True
    assert await waits.ask(run, third) is True
    assert await slots_of(waits) == ["0", "2"]
    assert f"ask {TASK} 2" in await listed(valkey_or_redis)
    assert await waits.ask(RunName(TASK, 1, "another"), a_wait("3")) is False
    assert await waits.answer(TASK, "2", an_answer(third)) is None
    await ledger.finish(TASK, 1, "completed", b"{}")
    assert await waits.ask(run, a_wait("4")) is False


async def test_the_waits_of_a_task_that_has_ended_leave_the_list_of_all(
    ledger: Ledger, waits: Waits, valkey_or_redis: Redis
) -> None:
    open_ones = a_wait("0"), a_wait("signal.paid", "signal"), a_wait("1", "sleep")
    await list_all(waits, *open_ones)
    await park(ledger, waits, *open_ones)
    await ledger.finish(TASK, 1, "failed", b"{}")
    await waits.close(TASK)
    await waits.close("unknown")
    assert await listed(valkey_or_redis) == set()


async def test_what_the_desk_may_not_have_told_of_stays_in_the_list_of_all(
    ledger: Ledger, waits: Waits, valkey_or_redis: Redis
) -> None:
    """A question with an answer is due at once, one past its time when it was; what the desk has dropped stays so."""
    answered, seen, left = a_wait("0"), a_wait("1"), a_wait("2")
    past = a_wait("3").model_copy(update={"until": datetime.now(UTC)})
    signal = a_wait("signal.paid", "signal")
    open_ones = answered, seen, left, past, signal
    await list_all(waits, *open_ones)
    await park(ledger, waits, *open_ones)
    for question in (answered, seen):
        assert await waits.answer(TASK, question.slot, an_answer(question)) is None
    await waits.answer(TASK, signal.slot, an_answer(signal), is_signal=True)
    await waits.drop(WaitName("ask", TASK, "1"))
    later = datetime.now(UTC) + timedelta(minutes=6)
    await waits.look_at_many({WaitName("ask", TASK, slot): later for slot in "03"})
    await ledger.finish(TASK, 1, "failed", b"{}")
    await waits.close(TASK)
    assert await listed(valkey_or_redis) == {f"ask {TASK} 0", f"ask {TASK} 3"}
    due = await waits.due(datetime.now(UTC), 10)
    assert due == [WaitName("ask", TASK, "0")]


async def test_a_wait_that_a_scan_meets_twice_is_listed_once(
    waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may give a member twice while its table grows."""
    pages = [(b"7", [b"ask t s", b"1", b"ask u s", b"1"]), (b"0", [b"ask t s", b"1"])]

    async def scan(_commands: object) -> list[object]:
        return [pages.pop(0)]

    monkeypatch.setattr(waits._batch, "run", scan)
    assert await waits.list_open("ask", 9) == [
        WaitName("ask", "t", "s"),
        WaitName("ask", "u", "s"),
    ]
