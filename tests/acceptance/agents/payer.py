"""An agent for tests that asks persons, and waits for signals and times; `die-at` names where its worker is killed."""

import asyncio
import os
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import field_validator

from tasklore import Agent, Context, Field, Parameters
from tasklore.contracts.errors import CallFailed, NotAccepted
from tasklore.memory.ledger.waits import Waits
from tasklore.workers.execution.acknowledger import Acknowledger
from tasklore.workers.execution.retry_scheduling import Retries

agent = Agent("PayerAgent", keywords=("pay",))

RUNS = Path(os.environ["PROBE_RUNS"])


def die_at(point: str) -> None:
    """Kill this process when that point was chosen, once."""
    chosen = RUNS / "die-at"
    if chosen.exists() and chosen.read_text() == point:
        chosen.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def wrap(owner: type, name: str, before: str = "", after: str = "") -> None:
    """Let calls of a coroutine of *owner* be preceded and followed by points."""
    inner: Callable[..., Any] = getattr(owner, name)

    async def call(*arguments: Any, **named: Any) -> Any:
        die_at(before)
        result = await inner(*arguments, **named)
        die_at(after)
        return result

    setattr(owner, name, call)


def acknowledge(self: Acknowledger, *arguments: Any) -> None:
    """Die before a delivery is acknowledged."""
    die_at("before acknowledgement")
    _acknowledge(self, *arguments)


async def refuse(*_arguments: Any, **_named: Any) -> None:
    """Refuse a schedule, as the server does to a worker without access to LATER."""
    raise NotAccepted("not stored")


_acknowledge = Acknowledger.acknowledge
if (RUNS / "no-schedules").exists():
    Retries._schedule = refuse  # type: ignore[method-assign]
if (RUNS / "die-at").exists():
    wrap(Retries, "_schedule", after="after schedule")
    wrap(Waits, "begin", before="before record", after="after record")
    wrap(Waits, "ask", before="before asking", after="after asking")
    Acknowledger.acknowledge = acknowledge  # type: ignore[method-assign, assignment]  # in this process alone


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
async def urge(payment: Payment, context: Context) -> str:
    """Ask again every 4 s, and the board as well after 6 s."""
    said = await context.ask_person(
        "Really pay?",
        who=payment.who,
        remind=timedelta(seconds=4),
        escalate=("role:board", timedelta(seconds=6)),
    )
    return said.by


@agent.task(remember=False)
async def order(payment: Payment, context: Context) -> list[Any]:
    """Wait three times: for a time, a signal and a person."""
    await note(f"{payment.label}-runs")
    await context.sleep(timedelta(seconds=2))
    paid = await context.signal("paid", int)
    said = await context.ask_person("Ship it?", who="user:ana")
    await context.step("after", note, f"{payment.label}-after")
    return [paid, said.approved]


class Payments(Parameters):
    """Payments that are asked for at once; the steps of *label* are noted by name."""

    label: str
    names: list[str]


async def pay_one(label: str, name: str, context: Context) -> str:
    """Pay after a person agreed."""
    await context.step("before", note, f"{label}-before-{name}")
    die_at(f"before {name} is asked")
    said = await context.ask_person(
        "Pay {name}?", who="role:finance", otherwise="reject", name=name
    )
    await context.step("after", note, f"{label}-after-{name}", once=True)
    return f"{name} {said.approved} {said.note}"


@agent.task(remember=False)
async def pay_many(payments: Payments, context: Context) -> list[str]:
    """Pay each after a person agreed to it."""
    await note(f"{payments.label}-runs")
    each = (pay_one(payments.label, name, context) for name in payments.names)
    return await asyncio.gather(*each)


@agent.task(remember=False)
async def pay_first(payments: Payments, context: Context) -> list[str]:
    """Pay the first that a person agreed to, and then a last one."""
    each = [
        asyncio.create_task(pay_one(payments.label, name, context))
        for name in payments.names
    ]
    done, left = await asyncio.wait(each, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    last = await pay_one(payments.label, "last", context)
    return [*(task.result() for task in done), last]


async def work_on(label: str) -> str:
    """Work until there is a file of that name."""
    while not (RUNS / f"{label}-worked").exists():  # noqa: ASYNC110 - a file is looked for
        await asyncio.sleep(0.05)
    return label


@agent.task(remember=False)
async def pay_beside(payments: Payments, context: Context) -> list[str]:
    """Pay beside a step that takes long."""
    await note(f"{payments.label}-runs")
    each = (pay_one(payments.label, name, context) for name in payments.names)
    return await asyncio.gather(*each, context.step("work", work_on, payments.label))


class Transfer(Parameters):
    """A transfer of *amount*, to which a file adds 1 in the next run; the *fee* is not said."""

    label: str
    amount: int = Field(cues=("amount",))
    fee: int = 0

    @field_validator("amount")
    @classmethod
    def _change(cls, amount: int) -> int:
        return amount + (RUNS / "amount-changed").exists()


@agent.task(
    confirm="role:finance",
    keywords=("transfer",),
    examples=('transfer: label "L-7", amount 12',),
)
async def transfer(transfer: Transfer) -> int:
    """Transfer money."""
    await note(f"{transfer.label}-runs")
    die_at("in the body")
    await note(f"{transfer.label}-{transfer.amount}")
    return transfer.amount


@agent.task(
    confirm="role:finance",
    remember="shared",
    keywords=("appraise",),
    examples=('appraise: label "L-7", amount 12',),
)
async def appraise(transfer: Transfer) -> int:
    """Appraise a house."""
    await note(f"{transfer.label}-runs")
    return transfer.amount


@agent.task(in_words=False)
async def delegate(transfer: Transfer, context: Context) -> str:
    """Have a transfer made that a model chose."""
    try:
        return str(
            await context.call_in_words(
                "PayerAgent.transfer", transfer, words="pay the bill"
            )
        )
    except CallFailed as failure:
        return f"{failure.status} {failure.error_type}"
