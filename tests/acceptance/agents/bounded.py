"""An agent for tests of bounds on runs: each notes in a file when it began and when it ended, and in which process."""

import asyncio
import os
import time
from datetime import timedelta
from pathlib import Path

from tasklore import Agent, Context, Parameters

agent = Agent("BoundAgent")


class Work(Parameters):
    """What to work on."""

    account: str
    number: int
    ms: int = 100


def _note(work: Work, word: str) -> None:
    with (Path(os.environ["PROBE_RUNS"]) / work.account).open("a") as file:
        file.write(f"{word} {work.number} {os.getpid()} {time.time():.4f}\n")


async def _work(work: Work) -> int:
    _note(work, "begin")
    try:
        await asyncio.sleep(work.ms / 1000)
    finally:
        _note(work, "end")
    return work.number


@agent.task(at_most=1, per="account")
async def one(work: Work) -> int:
    """Work on an account alone."""
    return await _work(work)


@agent.task(at_most=2, per=("account", "tenant"))
async def two(work: Work) -> int:
    """Work on an account beside another."""
    return await _work(work)


@agent.task(at_most=1, remember="shared", remember_for=timedelta(days=1))
async def known(work: Work) -> int:
    """Work alone, and remember it."""
    return await _work(work)


@agent.task(at_most=1, per="account")
async def nested(work: Work, context: Context) -> int:
    """Call itself until its number is 0 or 10: in other accounts from above 10, in its own from below."""
    if work.number in (0, 10):
        return 0
    account = work.account if work.number < 10 else f"{work.account}-{work.number}"
    return 1 + await context.call(nested, Work(account=account, number=work.number - 1))


@agent.task
async def free(work: Work) -> int:
    """Work without a bound."""
    return await _work(work)
