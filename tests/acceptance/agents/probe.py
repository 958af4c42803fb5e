"""An agent for tests: waits, blocks, counts its runs in a folder, and fails in every way a task can."""

import asyncio
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel

from tasklore import Agent, Context, Field, Parameters
from tasklore.contracts.errors import GiveUp, RetryLater

agent = Agent("ProbeAgent", keywords=("probe",))

#: Where each run leaves a line, so that tests count runs and not what was reported of them.
RUNS = Path(os.environ["PROBE_RUNS"])


class Wait(Parameters):
    """What to call the runs in the count, and how long one takes; `number` only tells questions apart."""

    label: str
    number: int = 0
    ms: int = Field(0, ge=0, description="Milliseconds that a run takes.")


class Trouble(Parameters):
    """How to fail: the first `times` runs do."""

    label: str
    kind: str = "error"
    times: int = 1000
    after_s: float = 0.0


class Size(Parameters):
    """How large a result to return."""

    bytes: int


class Mute(Exception):
    """An error that cannot even be told."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Echo(BaseModel):
    """What was asked."""

    label: str
    number: int


def note_run(label: str) -> int:
    """Count a run of *label* and return how many there were, this one included."""
    with (RUNS / label).open("a+") as runs:
        runs.write(f"{time.time():.3f}\n")
        runs.flush()
        runs.seek(0)
        return len(runs.readlines())


@agent.task(remember="shared")
async def remembered(wait: Wait) -> Echo:
    """Wait, and be remembered."""
    note_run(wait.label)
    await asyncio.sleep(wait.ms / 1000)
    return Echo(label=wait.label, number=wait.number)


@agent.task(remember=False)
async def fresh(wait: Wait, context: Context) -> Echo:
    """Tell that the run began, wait, and be run each time."""
    note_run(wait.label)
    await context.progress(0.0, "begun")
    await asyncio.sleep(wait.ms / 1000)
    return Echo(label=wait.label, number=wait.number)


@agent.task(remember=False)
def plain(wait: Wait) -> Echo:
    """Wait in a plain function, which runs in a thread."""
    note_run(wait.label)
    time.sleep(wait.ms / 1000)
    return Echo(label=wait.label, number=wait.number)


@agent.task(remember=False, idempotent=False)
async def fenced(wait: Wait) -> Echo:
    """Be run only while the ledger can tell that it was not run before."""
    note_run(wait.label)
    return Echo(label=wait.label, number=wait.number)


@agent.task(remember=False, retry_base=timedelta(milliseconds=10))
async def effect(trouble: Trouble, context: Context) -> Echo:
    """Make an effect once, in whichever run, and fail as often as asked after it."""
    note_run(f"{trouble.label}-begun")
    if await context.once("mail"):
        note_run(f"{trouble.label}-mail")
    if note_run(trouble.label) <= trouble.times:
        raise ConnectionResetError("after the effect")
    return Echo(label=trouble.label, number=context.attempt)


@agent.task(remember=False)
async def stepped(wait: Wait, context: Context) -> Echo:
    """Take `number` steps of `ms` each, two of them at a time, and return how often any of them was done."""

    async def take(position: int) -> int:
        done = note_run(f"{wait.label}-{position}")
        await asyncio.sleep(wait.ms / 1000)
        return done

    done = [
        await asyncio.gather(
            context.step("left", take, position),
            context.step("right", take, position + 1),
        )
        for position in range(0, wait.number, 2)
    ]
    return Echo(label=wait.label, number=sum(map(sum, done)))


@agent.task(remember=False)
async def block(wait: Wait, context: Context) -> Echo:
    """Block the event loop of the worker, as careless code does."""
    note_run(wait.label)
    await context.progress(0.0, "begun")
    time.sleep(wait.ms / 1000)  # noqa: ASYNC251 - this is the carelessness
    return Echo(label=wait.label, number=wait.number)


@agent.task(remember=False, deadline=timedelta(minutes=5))
async def trouble(trouble: Trouble) -> Echo:
    """Fail as asked."""
    run = note_run(trouble.label)
    if run > trouble.times:
        return Echo(label=trouble.label, number=run)
    if trouble.kind == "give_up":
        raise GiveUp("no run can mend this")
    if trouble.kind == "later":
        raise RetryLater("not yet", after_s=trouble.after_s)
    if trouble.kind == "cancelled":
        raise asyncio.CancelledError
    if trouble.kind == "exit":
        sys.exit(3)
    if trouble.kind == "die":
        os._exit(7)
    if trouble.kind == "surrogate":
        raise FileNotFoundError("no file \udcff here")
    if trouble.kind == "mute":
        raise Mute
    raise ConnectionRefusedError(f"the bank of {trouble.label} does not answer")


@agent.task(remember="shared")
async def sulk(trouble: Trouble) -> Echo:
    """Give up at first, and work afterwards."""
    run = note_run(trouble.label)
    if run <= trouble.times:
        raise GiveUp("not in the mood")
    return Echo(label=trouble.label, number=run)


@agent.task(remember=False)
async def swell(size: Size) -> str:
    """Return a result of this size."""
    return "x" * size.bytes
