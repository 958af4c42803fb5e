"""Tasks that need another person's yes before they start: their declaration, their question, and what it holds for."""

from datetime import timedelta
from typing import Any

import pytest

from tasklore import Agent, Context, Parameters
from tasklore.contracts.errors import ConfigurationError
from tasklore.contracts.messages import (
    CompletionReport,
    RequiredApproval,
    TaskAssignment,
    TaskCard,
)
from tasklore.runtime.messaging.pull import Delivery
from tasklore.workers.card import card_of, same_contract
from tasklore.workers.context.children import Children, find_callee
from tasklore.workers.execution.job import Job
from tasklore.workers.execution.job_reader import JobReader
from tasklore.workers.testing import NOW, AgentKit, KitServices, ScriptedLlm
from tasklore.workers.testing.children import KitChildren

agent = Agent("PayAgent")
PAID: list[int] = []


class Payment(Parameters):
    amount: int = 12
    payee: str = "Ana"


@agent.task(confirm="role:finance", deadline=timedelta(minutes=1))
async def pay(payment: Payment, context: Context) -> list[Any]:
    """Pay, and wait within the minute that the task has."""
    PAID.append(payment.amount)
    said = await context.ask_person("Really?", within=timedelta(seconds=30))
    return [said.approved, context.attempt]


@agent.task(confirm="user:ana", remember="shared")
async def quote(payment: Payment) -> int:
    """Quote a price."""
    PAID.append(payment.amount)
    return payment.amount


def declare(confirm: Any) -> Agent:
    declared = Agent("PayAgent")

    @declared.task(confirm=confirm)
    async def pay(payment: Payment) -> None:
        """Pay."""

    return declared


def test_the_card_names_who_must_agree_and_an_older_supervisor_asks_for_a_yes_itself() -> (
    None
):
    card = next(task for task in card_of(agent).tasks if task.name == "pay")
    assert (card.confirm, card.approver) == (True, "role:finance")
    plain = card_of(declare(confirm=True))
    assert "approver" not in plain.tasks[0].model_dump(mode="json")
    assert not same_contract(plain, card_of(declare("role:finance")))


@pytest.mark.parametrize("confirm", ["finance", "role:", "group:finance", "", 1, None])
def test_a_confirm_that_names_nobody_is_refused_with_the_cure(confirm: Any) -> None:
    with pytest.raises(ConfigurationError, match="'role:finance'"):
        declare(confirm)


async def test_words_are_asked_about_and_names_are_not() -> None:
    """The waits of the task itself count on from the yes, in places of their own."""
    PAID.clear()
    kit = AgentKit(agent, answers=[True, True, True])
    found = await kit.run(
        "pay", {"amount": 7}, user_id="bo", in_words="pay\n7\u202e to Ana"
    )
    assert (found.result, PAID) == ([True, 3], [7, 7])
    assert kit.questions[0] == (
        'Start PayAgent.pay?\namount: 7\npayee: "Ana"\nasked by "bo" in the words "pay\\n7\\u202e to Ana"'
    )
    assert (await kit.run("pay", {"amount": 8})).status == "completed"
    assert len(kit.questions) == 3


@pytest.mark.parametrize(
    ("answer", "why"),
    [(False, "user:kit said no"), (None, "role:finance did not say yes")],
)
async def test_without_a_yes_the_task_is_rejected_and_nothing_of_it_runs(
    answer: bool | None, why: str
) -> None:
    PAID.clear()
    report = await AgentKit(agent, answers=[answer]).run("pay", {}, in_words="pay")
    assert report.error is not None
    assert (report.status, report.error.type, report.error.retryable, PAID) == (
        "rejected",
        "NotApproved",
        False,
        [],
    )
    assert report.error.message.startswith(why)


async def test_a_yes_never_holds_for_other_parameters() -> None:
    """A thousand programs that send other parameters under the id of an approved task: a thousand refusals."""
    PAID.clear()
    kit = AgentKit(agent, answers=[True] * 1001)
    assert (
        await kit.run("quote", {"amount": 0}, in_words="quote")
    ).status == "completed"
    for number in range(1, 1001):
        kit._runs = 0
        report = await kit.run("quote", {"amount": number}, in_words="quote")
        assert report.error is not None
        assert (report.status, report.error.type) == ("failed", "ApprovalChanged")
    assert PAID == [0]


async def test_no_remembered_answer_stands_for_a_yes_and_what_was_approved_is_remembered() -> (
    None
):
    kit = AgentKit(agent, answers=[True, False])
    assert (await kit.run("quote", {})).memory.outcome == "miss"
    assert (await kit.run("quote", {}, in_words="quote")).memory.outcome == "refreshed"
    assert (await kit.run("quote", {}, in_words="quote")).status == "rejected"
    assert (await kit.run("quote", {})).memory.outcome == "hit"


async def test_parameters_that_no_person_can_be_shown_are_refused() -> None:
    report = await AgentKit(agent).run("pay", {"payee": "x" * 5_000}, in_words="pay")
    assert report.error is not None
    assert (report.status, "more than 4,000" in report.error.message) == (
        "rejected",
        True,
    )


class Announced(KitChildren):
    """Children whose card names who must agree; what was asked of them is kept."""

    asked: TaskAssignment | None = None

    async def demand_task(self, agent_id: str, task_name: str) -> TaskCard:  # type: ignore[override]
        return TaskCard(
            name=task_name, parameters={}, confirm=True, approver="role:finance"
        )

    async def ask(
        self, assignment: TaskAssignment, parent_generation: int, *, may_be_known: bool
    ) -> CompletionReport:
        self.asked = assignment
        return await super().ask(
            assignment, parent_generation, may_be_known=may_be_known
        )


@pytest.mark.parametrize("deadline", [None, NOW + timedelta(hours=1)])
async def test_a_task_that_a_model_calls_needs_the_yes_and_one_that_code_calls_does_not(
    deadline: Any,
) -> None:
    parent = TaskAssignment.model_validate(
        {
            "task_id": "p",
            "agent_id": "Boss",
            "supervisor_id": "S",
            "task": {"name": "work"},
            "created_at": NOW,
            "deadline": deadline,
        }
    )
    services = KitServices(ScriptedLlm([]), NOW)
    services.children = announced = Announced({"PayAgent.pay": 1})
    calls = Children(parent, parent, services, generation=1, run_number=1, lend=None)  # type: ignore[arg-type]
    assert (
        await calls.call(find_callee("PayAgent.pay"), Payment(), None, "pay Ana") == 1
    )
    assert announced.asked is not None
    until = (
        NOW + timedelta(days=7)
        if deadline is None
        else deadline - timedelta(seconds=10)
    )
    assert announced.asked.approval == RequiredApproval(
        who="role:finance", words="pay Ana", until=until
    )
    await calls.call(find_callee("PayAgent.pay"), Payment(), None)
    assert announced.asked.approval is None


@pytest.mark.parametrize("deadline", [None, NOW + timedelta(days=8)])
def test_the_tasks_own_deadline_counts_from_the_yes_and_one_that_was_sent_stands(
    deadline: Any,
) -> None:
    until = NOW + timedelta(days=7)
    sent = {
        "task_id": "t",
        "agent_id": "PayAgent",
        "supervisor_id": "S",
        "task": {"name": "pay"},
        "created_at": NOW,
        "deadline": deadline,
        "approval": {"who": "role:finance", "until": until},
    }
    body = TaskAssignment.model_validate(sent).model_dump_json().encode()
    job = JobReader(agent).read(
        Delivery(
            subject="tasks.PayAgent.pay",
            body=body,
            headers=None,
            reply="",
            deliveries=1,
            sequence=1,
            arrived_at=0.0,
        ),
        until - timedelta(hours=1),
    )
    assert isinstance(job, Job)
    assert job.deadline == (deadline or until + timedelta(minutes=1))
    for _ in range(2):
        job.begin_at(NOW + timedelta(hours=3))
        assert job.deadline == (deadline or NOW + timedelta(hours=3, minutes=1))
