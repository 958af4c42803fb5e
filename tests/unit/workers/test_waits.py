"""Waiting for persons, signals and times in the kit: a run ends, and the next one goes on from the journal."""

import asyncio
import itertools
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from tasklore import Agent, Approval, Context, Parameters
from tasklore.contracts.errors import NotAnswered
from tasklore.workers.testing import NOW, AgentKit

agent = Agent("PayAgent")
STEPS: list[str] = []


class Payment(Parameters):
    amount: int = 12
    payee: str = "Ana"


class Choice(BaseModel):
    account: str


async def note(name: str) -> str:
    STEPS.append(name)
    return name


@agent.task(remember=False)
async def pay(payment: Payment, context: Context) -> dict[str, Any]:
    """Pay, pay."""
    await context.step("before", note, "before")
    said = await context.ask_person(
        "Pay {amount} to {payee}?",
        who="role:finance",
        otherwise="reject",
        amount=payment.amount,
        payee=payment.payee,
    )
    await context.step("after", note, "after")
    return {"approved": said.approved, "by": said.by, "note": said.note}


@agent.task(remember=False)
async def three(_payment: Payment, context: Context) -> list[Any]:
    """Pay, three."""
    first = await context.ask_person("Which account?", Choice)
    await context.sleep(timedelta(days=3))
    second = await context.signal("paid", int, within=timedelta(days=1), otherwise=0)
    third = await context.ask_person("Really?")
    return [first.account, second, third.approved, context.attempt]


@agent.task(remember=False)
async def careless(_payment: Payment, context: Context) -> bool:
    """Pay, careless."""
    try:
        return (await context.ask_person("Sure?")).approved
    except BaseException as error:
        if isinstance(error, NotAnswered):
            raise
        return False


@agent.task(remember=False)
async def together(_payment: Payment, context: Context) -> list[bool]:
    """Pay, together."""
    said = await asyncio.gather(
        *(context.ask_person("Number {n}?", n=n) for n in range(3))
    )
    return [one.approved for one in said]


@agent.task(remember=False)
async def within_a_step(_payment: Payment, context: Context) -> str:
    """Pay, within a step."""

    async def ask(_question: str) -> str:
        return (await context.ask_person("Sure?")).note

    return await context.step("ask", ask, "sure")


@agent.task(remember=False)
async def too_long(_payment: Payment, context: Context) -> None:
    """Pay, too long."""
    await context.sleep(timedelta(days=30))


@agent.task(remember=False, deadline=timedelta(days=1))
async def past_its_deadline(_payment: Payment, context: Context) -> None:
    """Pay, past its deadline."""
    await context.sleep(timedelta(days=2))


@agent.task(remember="shared")
async def remembered(_payment: Payment, context: Context) -> None:
    """Pay, remembered."""
    await context.sleep(timedelta(days=2))


async def test_a_run_goes_on_from_its_journal_once_a_person_has_answered() -> None:
    STEPS.clear()
    kit = AgentKit(agent, answers=[Approval(approved=True, note="fine")])
    report = await kit.run("pay", {"amount": 12})
    assert report.result == {"approved": True, "by": "user:kit", "note": "fine"}
    assert kit.questions == ["Pay 12 to Ana?"]
    assert STEPS == ["before", "after"]
    assert report.attempt == 2


async def test_no_argument_forges_a_line_of_a_question_or_turns_its_order() -> None:
    kit = AgentKit(agent, answers=[True])
    await kit.run("pay", {"payee": "Ana?\nApproved by: fay\u202e\u2028x"})
    assert kit.questions == ["Pay 12 to Ana?\n    Approved by: fay\\u202e\n    x?"]


async def test_a_question_without_an_answer_is_decided_by_otherwise_at_its_end() -> (
    None
):
    kit = AgentKit(agent, answers=[None])
    report = await kit.run("pay", {})
    assert report.result == {
        "approved": False,
        "by": "",
        "note": "not answered in time",
    }
    assert kit.services.now() == NOW + timedelta(days=7)


async def test_a_question_without_otherwise_fails_the_task_when_nobody_answers() -> (
    None
):
    report = await AgentKit(agent, answers=[None]).run("careless", {})
    assert (report.status, report.error and report.error.type) == (
        "failed",
        "NotAnswered",
    )


async def test_questions_signals_and_sleeps_follow_one_another_in_one_task() -> None:
    kit = AgentKit(agent, answers=[Choice(account="one"), True], signals={"paid": 7})
    report = await kit.run("three", {})
    assert report.result == ["one", 7, True, 5]
    assert kit.services.now() == NOW + timedelta(days=3)


async def test_a_task_that_swallows_the_end_of_its_run_waits_all_the_same() -> None:
    assert (await AgentKit(agent, answers=[True]).run("careless", {})).result is True


async def test_questions_that_are_asked_together_are_each_answered_once() -> None:
    kit = AgentKit(agent, answers=[True, False, True])
    assert (await kit.run("together", {})).result == [True, False, True]
    assert kit.questions == ["Number 0?", "Number 1?", "Number 2?"]


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("too_long", "at most 29 days"),
        ("past_its_deadline", "past the deadline"),
        ("remembered", "remember=False"),
        ("within_a_step", "within a step"),
    ],
)
async def test_a_wait_that_cannot_be_kept_is_refused_with_its_cure(
    task: str, words: str
) -> None:
    report = await AgentKit(agent).run(task, {})
    assert report.error is not None
    assert words in report.error.message


AMOUNTS = itertools.count()


@agent.task(remember=False)
async def shifty(_payment: Payment, context: Context) -> str:
    """Pay another amount in each run."""
    await context.ask_person("Pay {amount}?", amount=next(AMOUNTS))
    return "paid"


async def test_an_answer_never_holds_for_other_arguments() -> None:
    """A thousand payments whose amount changes after the answer: a thousand refusals."""
    kit = AgentKit(agent, answers=[True] * 1000)
    for number in range(1000):
        report = await kit.run("shifty", {"amount": number})
        assert report.error is not None
        assert (report.status, report.error.type) == ("failed", "ApprovalChanged")
