"""Several waits of one run at once: they are open together, and the run ends once nothing of it can go on."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from tasklore import Agent, Context, Middleware, Parameters
from tasklore.contracts.admission.waits import MOST_OPEN, Wait
from tasklore.workers.context import branches
from tasklore.workers.execution.job import Job
from tasklore.workers.testing import NOW, AgentKit
from tasklore.workers.testing.fakes import KitJournal
from tasklore.workers.testing.waits import KitWaits

agent = Agent("ManyAgent")
SHAPES: dict[str, Callable[[Context], Awaitable[Any]]] = {}
STEPS: Counter[str] = Counter()


class Shape(Parameters):
    shape: str


class OneByOne(KitWaits):
    """Answers one of the open waits a run: the last one first, so that the order turns."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[list[str]] = []

    def end(self, task_id: str, waits: Sequence[Wait], now: datetime) -> datetime:
        self.open.append([wait.text for wait in waits])
        fresh = [wait for wait in waits if (task_id, wait.slot) not in self._waits]
        self.questions += [wait.text for wait in fresh if wait.kind == "ask"]
        self._waits |= {(task_id, wait.slot): wait for wait in waits}
        self._script.append(True)
        self._script_answer(task_id, waits[-1], now)
        if waits[-1].kind == "ask":
            self.questions.pop()
        return now


@agent.task(remember=False)
async def work(given: Shape, context: Context) -> Any:
    """Work in a shape."""
    return await SHAPES[given.shape](context)


def shape(
    function: Callable[[Context], Awaitable[Any]],
) -> Callable[[Context], Awaitable[Any]]:
    """Let tasks take the shape of *function*."""
    SHAPES[function.__name__] = function
    return function


async def note(name: str) -> str:
    """Count that a step was taken."""
    STEPS[name] += 1
    return name


async def approved(context: Context, name: str) -> str:
    """Return *name* once a person agrees to it."""
    said = await context.ask_person(
        "Agree to {name}?", name=name, within=timedelta(days=2)
    )
    return name if said.approved else f"no {name}"


async def pay(context: Context, name: str) -> str:
    """Prepare, ask and pay."""
    await context.step("prepare", note, f"prepare {name}")
    said = await approved(context, name)
    await context.step("pay", note, f"pay {name}", once=True)
    return said


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no branch count as waiting that is not known to: a shape that is not seen through hangs."""
    monkeypatch.setattr(branches, "STILL_S", 3600.0)
    STEPS.clear()


async def run(kit: AgentKit, name: str) -> Any:
    """Return the result of the shape *name*."""
    async with asyncio.timeout(30):
        report = await kit.run("work", {"shape": name})
    assert report.status == "completed", (report.error, kit.raised)
    return report.result


def one_by_one() -> tuple[AgentKit, OneByOne]:
    """Return a kit whose waits are answered one a run, the last one first."""
    kit = AgentKit(agent)
    waits = OneByOne()
    kit.services.waits = waits
    return kit, waits


@shape
async def gathered(context: Context) -> Any:
    return await asyncio.gather(*(approved(context, name) for name in "abc"))


@shape
async def grouped(context: Context) -> Any:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(approved(context, name)) for name in "abc"]
    return [task.result() for task in tasks]


@shape
async def awaited_later(context: Context) -> Any:
    tasks = [asyncio.create_task(approved(context, name)) for name in "ab"]
    last = await approved(context, "c")
    return [*[await task for task in tasks], last]


@shape
async def waited(context: Context) -> Any:
    tasks = [asyncio.create_task(approved(context, name)) for name in "abc"]
    await asyncio.wait(tasks)
    return [task.result() for task in tasks]


@shape
async def as_completed(context: Context) -> Any:
    asked = asyncio.as_completed([approved(context, name) for name in "abc"])
    return sorted([await each for each in asked])


@shape
async def timed(context: Context) -> Any:
    async def each(name: str) -> str:
        async with asyncio.timeout(3600):
            return await asyncio.wait_for(approved(context, name), 3600)

    return await asyncio.gather(*map(each, "abc"))


@shape
async def shielded(context: Context) -> Any:
    return await asyncio.gather(
        *(asyncio.shield(approved(context, name)) for name in "abc")
    )


@shape
async def nested(context: Context) -> Any:
    async def inner() -> list[str]:
        return await asyncio.gather(*(approved(context, name) for name in "ab"))

    async with asyncio.TaskGroup() as group:
        pair = group.create_task(inner())
        last = group.create_task(approved(context, "c"))
    return [*pair.result(), last.result()]


@shape
async def exceptions_kept(context: Context) -> Any:
    return await asyncio.gather(
        *(approved(context, name) for name in "abc"), return_exceptions=True
    )


@shape
async def careless(context: Context) -> Any:
    async def each(name: str) -> str:
        try:
            return await approved(context, name)
        except BaseException:  # noqa: BLE001 - as careless authors do
            if name == "a":
                STEPS["wrong"] += await context.once("wrong")
            if name == "b":
                STEPS["wrong"] += await context.call("AnyAgent", "any") is not None
            await context.step("wrong", note, f"wrong {name}")
            return "wrong"

    return await asyncio.gather(*map(each, "abc"))


@shape
async def stubborn(context: Context) -> Any:
    async def each(name: str) -> str:
        while True:
            try:
                return await approved(context, name)
            except BaseException:  # noqa: BLE001 - as careless authors do
                await asyncio.sleep(0.01)

    return await asyncio.gather(*map(each, "abc"))


@shape
async def limping(context: Context) -> Any:
    """Come to its questions after times of their own, and to the first one last."""

    async def each(number: int, name: str) -> str:
        await asyncio.sleep(0.05 * (3 - number))
        return await approved(context, name)

    return await asyncio.gather(*(each(*one) for one in enumerate("abc")))


@shape
async def ticking(context: Context) -> Any:
    """Have something go on that nothing waits for."""

    async def tick() -> None:
        while True:
            await context.progress(None, "still here")
            await asyncio.sleep(0.01)

    ticker = asyncio.create_task(tick())
    try:
        return await asyncio.gather(*(approved(context, name) for name in "abc"))
    finally:
        ticker.cancel()


@pytest.mark.parametrize(
    "name",
    [
        "gathered",
        "grouped",
        "awaited_later",
        "waited",
        "as_completed",
        "timed",
        "shielded",
        "nested",
        "exceptions_kept",
        "careless",
        "stubborn",
        "limping",
        "ticking",
    ],
)
async def test_questions_that_are_asked_side_by_side_are_open_at_once(
    name: str,
) -> None:
    """Whatever the code is like that asks them; each answer begins a run, and none is asked again."""
    kit, waits = one_by_one()
    assert await run(kit, name) == ["a", "b", "c"]
    asked = [f"Agree to {each}?" for each in "abc"]
    assert [len(each) for each in waits.open] == [3, 2, 1]
    assert sorted(waits.questions) == asked
    assert not STEPS


@shape
async def payments(context: Context) -> Any:
    return await asyncio.gather(*(pay(context, name) for name in "abc"))


async def test_what_follows_an_answer_is_done_once_in_whatever_order_they_come() -> (
    None
):
    """Steps keep their places in their branches: none is taken again, and no effect is uncertain."""
    kit, waits = one_by_one()
    assert await run(kit, "payments") == ["a", "b", "c"]
    assert set(STEPS.values()) == {1}
    assert len(STEPS) == 6
    assert len(waits.open) == 3


@shape
async def of_all_kinds(context: Context) -> Any:
    async def rest() -> str:
        await context.sleep(timedelta(days=1))
        return "rested"

    return await asyncio.gather(
        approved(context, "a"), context.signal("paid", int), rest()
    )


async def test_a_question_a_signal_and_a_time_are_waited_for_at_once() -> None:
    kit = AgentKit(agent, answers=[True], signals={"paid": 7})
    assert await run(kit, "of_all_kinds") == ["a", 7, "rested"]
    assert kit.services.now() == NOW + timedelta(days=1)


async def test_a_question_that_nobody_answers_ends_at_its_own_time() -> None:
    kit = AgentKit(agent, answers=[True, None, True])
    report = await kit.run("work", {"shape": "gathered"})
    assert report.error is not None
    assert (report.error.type, kit.services.now()) == (
        "NotAnswered",
        NOW + timedelta(days=2),
    )
    assert len(kit.questions) == 3


@shape
async def beside_work(context: Context) -> Any:
    async def work() -> str:
        await asyncio.sleep(0.3)
        return await context.step("work", note, "worked")

    return await asyncio.gather(approved(context, "a"), work())


async def test_a_branch_that_can_go_on_is_not_cut_off() -> None:
    kit = AgentKit(agent, answers=[True])
    assert await run(kit, "beside_work") == ["a", "worked"]
    assert STEPS == {"worked": 1}


@shape
async def beside_a_call(context: Context) -> Any:
    called = asyncio.create_task(context.call("AnyAgent", "any"))
    return [await approved(context, "a"), await called]


async def test_a_run_does_not_end_while_a_call_is_under_way() -> None:
    asked_by_then: list[int] = []

    async def answer_late(_parameters: object) -> str:
        await asyncio.sleep(0.3)
        asked_by_then.append(len(kit.questions))
        return "late"

    kit = AgentKit(agent, answers=[True], calls={"AnyAgent.any": answer_late})
    assert await run(kit, "beside_a_call") == ["a", "late"]
    assert asked_by_then == [0, 1]


@shape
async def first_of_two(context: Context) -> Any:
    tasks = [asyncio.create_task(approved(context, name)) for name in "ab"]
    done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    first = [task.result() for task in done]
    return [*first, await approved(context, "c")]


async def test_a_question_that_the_task_goes_on_without_is_open_no_more() -> None:
    kit, waits = one_by_one()
    assert await run(kit, "first_of_two") == ["b", "c"]
    assert waits.open == [["Agree to a?", "Agree to b?"], ["Agree to c?"]]


@shape
async def left_behind(context: Context) -> Any:
    context_task = asyncio.create_task(approved(context, "a"))
    await asyncio.sleep(0)
    assert not context_task.done()
    return "done"


async def test_a_question_that_is_left_behind_keeps_no_result_back() -> None:
    kit, waits = one_by_one()
    assert await run(kit, "left_behind") == "done"
    assert waits.open == []


@shape
async def locked(context: Context) -> Any:
    lock = asyncio.Semaphore(2)

    async def each(name: str) -> str:
        async with lock:
            return await approved(context, name)

    return await asyncio.gather(*map(each, "abc"))


@shape
async def threaded(context: Context) -> Any:
    loop = asyncio.get_running_loop()

    def ask(name: str) -> str:
        return asyncio.run_coroutine_threadsafe(approved(context, name), loop).result()

    return await asyncio.gather(*(asyncio.to_thread(ask, name) for name in "abc"))


@pytest.mark.parametrize("name", ["locked", "threaded"])
async def test_a_branch_that_stands_still_counts_as_one_that_waits(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that another one holds, and a thread, are not seen through."""
    monkeypatch.setattr(branches, "STILL_S", 0.3)
    kit, _ = one_by_one()
    began = time.monotonic()
    assert await run(kit, name) == ["a", "b", "c"]
    assert time.monotonic() - began > 0.3


@shape
async def too_many(context: Context) -> Any:
    return await asyncio.gather(
        *(approved(context, str(number)) for number in range(1000))
    )


async def test_more_waits_at_once_than_are_kept_are_refused_with_the_cure() -> None:
    kit, waits = one_by_one()
    report = await kit.run("work", {"shape": "too_many"})
    assert report.status == "rejected"
    assert report.error is not None
    assert f"in {MOST_OPEN} open waits already" in report.error.message
    assert "in groups of at most" in report.error.message
    assert waits.open == []


async def test_where_asyncio_is_other_than_expected_time_alone_ends_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_frame: object) -> str:
        raise AttributeError("another asyncio")

    monkeypatch.setattr(branches, "_frames_of", refuse)
    monkeypatch.setattr(branches, "STILL_S", 0.2)
    kit, waits = one_by_one()
    assert await run(kit, "grouped") == ["a", "b", "c"]
    assert [len(each) for each in waits.open] == [3, 2, 1]


CHANGED: list[str] = []


@shape
async def shifty(context: Context) -> Any:
    CHANGED.append("x")
    return await asyncio.gather(
        approved(context, "a"), approved(context, "b" * len(CHANGED))
    )


async def test_a_branch_that_asks_another_question_in_its_place_fails_the_task() -> (
    None
):
    """The answer was to another one; in the other branch nothing changes."""
    CHANGED.clear()
    kit, waits = one_by_one()
    report = await kit.run("work", {"shape": "shifty"})
    assert report.error is not None
    assert (report.status, report.error.type) == ("failed", "ApprovalChanged")
    assert waits.open == [["Agree to a?", "Agree to b?"]]


@shape
async def after_steps(context: Context) -> Any:
    steps = await asyncio.gather(
        *(context.step("look", note, f"look {name}") for name in "ab")
    )
    return [*steps, await approved(context, "c"), *await payments(context)]


class AsBefore(OneByOne):
    """Rewrites what the first run kept as a worker of 0.2 keeps it."""

    def __init__(self, journal: KitJournal) -> None:
        super().__init__()
        self._journal = journal

    def end(self, task_id: str, waits: Sequence[Wait], now: datetime) -> datetime:
        if not self.open:
            waits = [one.model_copy(update={"slot": "2"}) for one in waits]
            steps = self._journal._tasks[task_id]
            for position, (head, result) in steps.items():
                digest, _, name = head.partition(" ")
                steps[position] = f"{digest.partition('@')[0]} {name}", result
        return super().end(task_id, waits, now)


async def test_a_task_that_a_worker_of_before_let_wait_goes_on_with_its_steps_and_answers() -> (
    None
):
    """That one numbered steps and waits in the order of calls, whichever branch they were of."""
    kit = AgentKit(agent)
    kit.services.waits = waits = AsBefore(kit.services.journal)
    assert await run(kit, "after_steps") == ["look a", "look b", "c", "a", "b", "c"]
    assert waits.open[0] == ["Agree to c?"]
    assert len(waits.open) == 4
    assert len(STEPS) == 8
    assert set(STEPS.values()) == {1}


async def test_the_branches_of_a_run_are_those_of_the_next_one() -> None:
    """By the function that each runs and the order in which they were begun, whatever else is begun between them."""
    names: list[list[str]] = []

    async def come(run_branches: branches.Branches) -> str:
        return run_branches.current.name

    async def stray() -> None:
        return

    async def main(run_branches: branches.Branches, strays: int) -> None:
        found = [run_branches.current.name]
        for _ in range(2):
            for _ in range(strays):
                await asyncio.create_task(stray())
            found += await asyncio.gather(*(come(run_branches) for _ in range(3)))
        names.append(found)

    for strays in range(3):
        made = branches.Branches(None)
        made.enter()
        await asyncio.create_task(main(made, strays))
    assert names[0] == names[1] == names[2]
    assert len(set(names[0])) == 7
    assert names[0][0] == ""


@pytest.mark.parametrize("later", ["ba", "bac", "bd"])
async def test_steps_of_branches_that_are_begun_in_another_order_are_not_taken_again(
    later: str,
) -> None:
    """Also that at the head of the journal."""

    @shape
    async def turned(context: Context) -> Any:
        names = "ab" if context.attempt == 1 else later
        done = await asyncio.gather(
            *(context.step("pay", note, name) for name in names)
        )
        if context.attempt < 3:
            raise ConnectionResetError("again")
        return done

    assert await run(AgentKit(agent), "turned") == list(later)
    assert Counter({*"ab", *later}) == STEPS


@shape
async def raced(context: Context) -> Any:
    """Ask behind a step beside which another branch takes one, if that is quick enough."""

    async def prepare() -> str:
        await asyncio.sleep(0.1)
        return await note("prepared")

    async def beside() -> str:
        await asyncio.sleep(0.0 if context.attempt == 1 else 0.1)
        return await context.step("beside", note, "beside")

    task = asyncio.create_task(beside())
    await context.step("prepare", prepare)
    said = await approved(context, "a")
    return [said, await task, await approved(context, "b")]


class Respelled(OneByOne):
    """Keeps the first wait in another slot."""

    def __init__(self, slot: str | None) -> None:
        super().__init__()
        self._slot = slot

    def end(self, task_id: str, waits: Sequence[Wait], now: datetime) -> datetime:
        if self._slot is not None:
            waits = [one.model_copy(update={"slot": self._slot}) for one in waits]
            self._slot = None
        return super().end(task_id, waits, now)


@pytest.mark.parametrize("slot", [None, "0000000000-1"])
async def test_the_slot_of_the_task_itself_does_not_depend_on_what_goes_on_beside_it(
    slot: str | None,
) -> None:
    """Also an answer in a slot that did is found."""
    kit = AgentKit(agent)
    kit.services.waits = waits = Respelled(slot)
    assert await run(kit, "raced") == ["a", "beside", "b"]
    assert waits.open == [["Agree to a?"], ["Agree to b?"]]
    assert set(STEPS.values()) == {1}


@shape
async def changing(context: Context) -> Any:
    """Take another step in one branch late, when another one has come to all of its own and a third to nothing."""
    is_first = context.attempt <= 2

    async def change() -> None:
        await asyncio.sleep(0.0 if is_first else 0.1)
        await context.step("look", note, "old" if is_first else "new")
        await context.step("behind", note, "behind")

    async def keep(name: str, wait_s: float) -> None:
        await asyncio.sleep(wait_s if is_first else 2 * wait_s)
        await context.step("pay", note, f"pay {name}", once=True)
        await asyncio.wait_for(context.step("send", note, f"send {name}"), 60)

    async def close() -> None:
        await context.signal("closed", within=timedelta(days=1), otherwise=None)
        await context.step("end", note, "end")

    await asyncio.gather(change(), keep("a", 0.03), keep("b", 0.1))
    await context.step("sum", note, "sum")
    await asyncio.wait_for(close(), 60)
    if context.attempt < 4:
        raise ConnectionResetError("again")
    return context.attempt


async def test_a_step_that_differs_takes_nothing_of_the_branches_beside_it() -> None:
    """What follows it is taken again in its own branch, and in those that wait for it."""
    kit = AgentKit(agent, signals={"closed": 1})
    assert await run(kit, "changing") == 4
    paid = [f"{what} {name}" for what in ("pay", "send") for name in "ab"]
    again = ["behind", "sum", "end"]
    taken = Counter(["old", "new", *again, *again, *paid])
    assert taken == STEPS


class Behind(Middleware):
    """Uses the context when the function has returned, and tries to wait there."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def after_run(
        self, job: Job, context: Context, error: BaseException | None
    ) -> None:
        self.seen.append(await context.once("told"))
        self.seen.append(await context.step("tell", note, "told"))
        self.seen.append(await context.call("AnyAgent", "any"))
        await asyncio.sleep(0.3)
        await context.sleep(timedelta(days=1))


@shape
async def stepping(context: Context) -> Any:
    beside = asyncio.create_task(context.sleep(timedelta(days=1)))
    await asyncio.sleep(0)
    assert not beside.done()
    return await context.step("look", note, "looked")


async def test_a_hook_behind_the_run_uses_the_context_and_is_told_that_it_cannot_wait(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What the run left behind is ended, the hook is not."""
    behind = Behind()
    told = Agent("ToldAgent", middleware=[behind])
    told.task(remember=False)(work)
    kit = AgentKit(told, calls={"AnyAgent.any": "called"})
    assert await run(kit, "stepping") == "looked"
    assert behind.seen == [True, "told", "called"]
    assert set(STEPS) == {"looked", "told"}
    assert "is not allowed in after_run; call it in the task" in capsys.readouterr().out


async def test_what_a_persons_yes_ran_in_ends_nothing_of_the_task_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The end of the first is told again after a while, when the task itself may be at work."""
    monkeypatch.setattr(branches, "_TOLD_AGAIN_S", 0.05)

    async def come(run_branches: branches.Branches, pause_s: float) -> str:
        await run_branches.demand_going()
        await asyncio.sleep(pause_s)
        await run_branches.demand_going()
        return run_branches.current.name

    made = branches.Branches(None)
    for pause_s in (0.0, 0.2):
        made.enter()
        main = asyncio.create_task(come(made, pause_s))
        await asyncio.wait({main})
        assert main.result() == ""


@shape
async def crowded(context: Context) -> Any:
    """Ask in two groups, the second in another order in the last run."""
    numbers = range(MOST_OPEN + 50)
    first = await asyncio.gather(
        *(approved(context, str(number)) for number in numbers[:150])
    )
    turned = numbers[150:] if context.attempt < 3 else numbers[:149:-1]
    return first + await asyncio.gather(
        *(approved(context, str(number)) for number in turned)
    )


async def test_an_answer_is_found_among_more_branches_than_can_wait_at_once() -> None:
    kit = AgentKit(agent, answers=[True] * (MOST_OPEN + 50))
    done = await run(kit, "crowded")
    assert sorted(map(int, done)) == list(range(MOST_OPEN + 50))
    assert len(kit.questions) == MOST_OPEN + 50
