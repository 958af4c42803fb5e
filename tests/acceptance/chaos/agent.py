"""The agent of the storm: a task of some milliseconds that writes down each run, and makes one side effect in all.

Its tasks differ in what the product may do: `work` may run while the ledger is away, `careful` may not, `recalled` is
remembered and therefore makes no effect.
"""

import asyncio
import os
import secrets
from functools import cache
from pathlib import Path

from pydantic import BaseModel

from tasklore import Agent, Context, Field, Parameters
from tests.acceptance.chaos.history import History

#: The folder of the history, told to each worker by whoever forks it.
HISTORY_VARIABLE = "CHAOS_HISTORY"

#: What the side effect is called in the ledger.
EFFECT = "effect"

agent = Agent("StormAgent", keywords=("storm",))


class Work(Parameters):
    """What to do; `number` tells one question from another."""

    number: int
    ms: int = Field(50, ge=0, description="Milliseconds that a run takes.")


class Done(BaseModel):
    """Which question it was."""

    number: int


@agent.task(max_attempts=50, remember=False)
async def work(work: Work, context: Context) -> Done:
    """Work for some milliseconds, and make the effect."""
    return await _work(work, context)


@agent.task(max_attempts=50, remember=False, idempotent=False)
async def careful(work: Work, context: Context) -> Done:
    """Work for some milliseconds, only while the ledger can fence it, and make the effect."""
    return await _work(work, context)


@agent.task(max_attempts=50, remember="shared")
async def recalled(work: Work, context: Context) -> Done:
    """Work for some milliseconds, and be remembered."""
    return await _work(work, context, makes_effect=False)


async def _work(work: Work, context: Context, *, makes_effect: bool = True) -> Done:
    """Make the effect in the middle of the run, so that a kill may come before and after it."""
    history = _history()
    task = context.assignment.task_id
    run = secrets.token_hex(4)
    history.note("run-start", task=task, run=run, about=str(context.attempt))
    try:
        await asyncio.sleep(work.ms / 2000)
        if makes_effect and await context.once(EFFECT):
            history.note("effect", task=task, run=run)
        await asyncio.sleep(work.ms / 2000)
    except BaseException as error:
        history.note("run-raised", task=task, run=run, about=type(error).__name__)
        raise
    history.note("run-end", task=task, run=run)
    return Done(number=work.number)


@cache
def _history() -> History:
    """Open this process's history with the first run: the process that imports this module forks afterwards."""
    return History(Path(os.environ[HISTORY_VARIABLE]))
