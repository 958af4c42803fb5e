"""Looks at tasks in each layout of the ledger: a glance, signs for a client, and whether a run went to wait."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.waits import RunWait, Wait, WaitAnswer
from tasklore.contracts.identifiers import TaskName
from tasklore.memory import keys
from tasklore.memory.ledger.ledger import Ledger, RunGlance
from tasklore.memory.ledger.runs import Ended, RunName
from tasklore.memory.ledger.waits import Waits
from tasklore.supervisor.feed import signs
from tasklore.supervisor.feed.events import BeganWaiting, FeedPosition, PersonQuestion
from tasklore.supervisor.feed.signs import SignSources, TaskSigns
from tests.ledger_layouts import AGENT, LayoutUnderTest
from tests.servers import PATIENCE_S

LEASE_MS = 30_000
TASK = TaskName(AGENT, "0199-dddd")
NOW = datetime.now(UTC)


@pytest.fixture
def ledger(valkey_or_redis: Redis, layout: LayoutUnderTest) -> Ledger:
    return Ledger(valkey_or_redis, deadline_s=PATIENCE_S)


@pytest.fixture
def waits(valkey_or_redis: Redis, layout: LayoutUnderTest) -> Waits:
    return Waits(valkey_or_redis, deadline_s=PATIENCE_S)


def a_question(text: str = "Shall I?", slot: str = "0") -> Wait:
    return Wait(
        kind="ask",
        slot=slot,
        digest=f"digest of {text}",
        agent_id=AGENT,
        task_name="look",
        generation=1,
        text=text,
        asked_at=NOW,
        until=NOW + timedelta(hours=1),
    )


async def glance(ledger: Ledger) -> RunGlance | None:
    """Look at the task beside one that is unknown."""
    unknown, found = await ledger.glance([(AGENT, "nothing", 1), (AGENT, TASK, 1)])
    assert unknown is None
    return found


async def test_a_glance_shows_each_state(ledger: Ledger) -> None:
    due_ms = int(NOW.timestamp() * 1000) + 50
    assert await glance(ledger) is None
    await ledger.accept(TASK, 1, b"{}", due_at_ms=due_ms)
    assert await glance(ledger) == RunGlance("accepted", 0, None, due_ms)
    await asyncio.sleep(0.1)
    await ledger.begin(TASK, 1, "w1", 1, LEASE_MS, token="t")
    assert await glance(ledger) == RunGlance("running", 1, None)
    wait = RunWait(kind="limit", name="l", text="t", since=NOW, until=NOW)
    await ledger.park(Ended(TASK, 1, "t"), 0, b"{}", wait)
    assert await glance(ledger) == RunGlance("waiting", 1, wait)
    await ledger.cancel(TASK, 1, "enough")
    assert await glance(ledger) == RunGlance("cancelling", 1, wait)
    await ledger.finish(TASK, 1, "cancelled", b"{}")
    assert await glance(ledger) == RunGlance("cancelled", 0, None)


async def test_a_glance_shows_a_cancel_request_by_the_id_alone(ledger: Ledger) -> None:
    """Whoever sent it may know no agent; what was sent again is another generation."""
    await ledger.cancel("0199-dddd", None, "never")
    found = await glance(ledger)
    await ledger.accept(TASK, 1, b"{}")
    assert found in (None, RunGlance("cancelling", 0, None))
    assert await glance(ledger) == RunGlance("cancelling", 0, None)
    await ledger.accept(TASK, 2, b"{}")
    assert await ledger.glance([(AGENT, TASK, 2)]) == [RunGlance("accepted", 0, None)]


async def test_a_run_that_went_to_wait_is_known(ledger: Ledger, waits: Waits) -> None:
    """Also to a caller that has the id alone; a run that broke off since is none."""
    await ledger.begin(TASK, 1, "w1", 1, LEASE_MS, token="t")
    assert not await waits.is_last_waiting(TASK, 1, run=1)
    times = {"wait_s": 60, "due_s": 60}
    await waits.begin(Ended(TASK, 1, "t"), [a_question()], **times, assignment=b"{}")
    for name in (TASK, str(TASK)):
        assert await waits.is_last_waiting(name, 1, run=1)
        assert not await waits.is_last_waiting(name, 1, run=2)
        assert not await waits.is_last_waiting(name, 2, run=1)
    assert not await waits.is_last_waiting("nothing", 1, run=1)


@pytest.fixture
async def task_signs(
    ledger: Ledger, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> TaskSigns:
    """The signs of tasks whose progress nobody hears, read as often as asked."""
    monkeypatch.setattr(signs, "_LOOK_S", 0.0)
    monkeypatch.setattr(signs, "_SOON_S", 0.0)
    monkeypatch.setattr(signs, "_LOOKS_PER_S", 1_000_000_000)
    sources = SignSources(
        link=cast("Any", None),
        supervisor_id="S",
        ledger=ledger,
        reports=cast("Any", None),
        waits=waits,
    )
    return TaskSigns(sources, asyncio.Event())


async def look(task_signs: TaskSigns) -> list[str]:
    """Return what a look shows, in words."""
    await asyncio.sleep(0.001)
    shown = []
    for one in await task_signs.look(FeedPosition()):
        if isinstance(one, PersonQuestion):
            shown.append(one.question.question)
        else:
            assert isinstance(one, BeganWaiting)
            shown.append(one.wait.kind)
    return shown


async def test_signs_show_a_task_by_its_id_alone(
    ledger: Ledger, waits: Waits, task_signs: TaskSigns
) -> None:
    """What it waits for, its questions, and that it was cancelled; each once."""
    await task_signs.watch([str(TASK)], hears=False)
    assert await look(task_signs) == []
    await ledger.accept(TASK, 1, b"{}")
    wait = RunWait(kind="limit", name="l", text="t", since=NOW, until=NOW)
    await ledger.note_wait(TASK, 1, wait)
    assert await look(task_signs) == ["limit"]
    await ledger.begin(TASK, 1, "w1", 1, LEASE_MS, token="t")
    assert await waits.ask(RunName(TASK, 1, "w1"), a_question("And now?", "1"))
    assert await look(task_signs) == ["And now?"]
    times = {"wait_s": 60, "due_s": 60}
    await waits.begin(Ended(TASK, 1, "t"), [a_question()], **times, assignment=b"{}")
    assert await look(task_signs) == ["Shall I?"]
    answer = WaitAnswer(value=True, at=NOW, door="http", digest=a_question().digest)
    assert await waits.answer(str(TASK), "0", answer) is None
    assert await look(task_signs) == []
    assert (task_signs.is_cancelled, task_signs.is_gone) == (False, False)
    await ledger.cancel(str(TASK), None, "enough")
    await look(task_signs)
    assert (task_signs.is_cancelled, task_signs.is_gone) == (True, False)


async def test_signs_show_that_a_task_is_gone(
    ledger: Ledger,
    task_signs: TaskSigns,
    valkey_or_redis: Redis,
    layout: LayoutUnderTest,
) -> None:
    """One whose report has expired is not gone: its end is read where reports are."""
    await task_signs.watch([str(TASK)], hears=False)
    await ledger.accept(TASK, 1, b"{}")
    await ledger.finish(TASK, 1, "completed", b"{}")
    if layout.is_by_agent:
        await valkey_or_redis.delete(keys.entry_report(layout.key(TASK), 1))
    await look(task_signs)
    assert (task_signs.is_cancelled, task_signs.is_gone) == (False, False)
    await valkey_or_redis.delete(layout.key(TASK), keys.task_agent(TASK))
    await look(task_signs)
    assert (task_signs.is_cancelled, task_signs.is_gone) == (False, True)
