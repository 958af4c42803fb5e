"""An agent for tests that asks persons, and waits for signals and times."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from workers import Agent, Context, Parameters

agent = Agent("PayerAgent", keywords=("pay",))

RUNS = Path(os.environ["PROBE_RUNS"])


class Payment(Parameters):
    """A payment; the runs of *label* are noted."""

    label: str
    amount: int = 12
    who: str = "role:finance"
    seconds: float = 604_800


async def note(label: str) -> str:
    """Add the time to the file of *label*."""
    with (RUNS / label).open("a") as runs:
        runs.write(f"{asyncio.get_running_loop().time()}\n")
    return label


@agent.task(remember=False)
async def pay(payment: Payment, context: Context) -> dict[str, Any]:
    """Pay after a person agreed; the times of a run are those of the machine's clock."""
    await note(f"{payment.label}-runs")
    await context.step("before", note, f"{payment.label}-before")
    # A file makes the arguments of the next run others.
    changed = RUNS / f"{payment.label}-changed"
    said = await context.ask_person(
        "Pay {amount}?",
        who=payment.who,
        within=timedelta(seconds=payment.seconds),
        otherwise="reject",
        amount=payment.amount + changed.exists(),
    )
    await context.step("after", note, f"{payment.label}-after")
    return {"approved": said.approved, "by": said.by, "note": said.note}


@agent.task(remember=False)
async def order(payment: Payment, context: Context) -> list[Any]:
    """Wait three times: for a time, a signal and a person."""
    await note(f"{payment.label}-runs")
    await context.sleep(timedelta(seconds=2))
    paid = await context.signal("paid", int)
    said = await context.ask_person("Ship it?", who="user:ana")
    await context.step("after", note, f"{payment.label}-after")
    return [paid, said.approved]
