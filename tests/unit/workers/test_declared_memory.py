"""Nothing is remembered unless its author says so, and for how long where a result goes stale."""

from datetime import timedelta
from typing import Any

import pytest

from contracts.errors import ConfigurationError
from workers import Agent, Context, Parameters
from workers.testing import AgentKit

HOUR = timedelta(hours=1)


class Order(Parameters):
    """What is ordered."""

    pizza: str
    count: int = 1


def pizzeria(**options: Any) -> tuple[Agent, list[str]]:
    """Return an agent whose task has an effect, and the list of what it made."""
    agent, made = Agent("PizzaAgent"), []

    @agent.task(**options)
    async def order_pizza(order: Order) -> int:
        """Order pizzas."""
        made.extend([order.pizza] * order.count)
        return len(made)

    return agent, made


@pytest.mark.parametrize("options", [{}, {"remember": False}])
async def test_what_is_ordered_twice_is_made_twice(options: dict[str, Any]) -> None:
    """The second order of two large salami pizzas is no question that was answered before."""
    agent, made = pizzeria(**options)
    kit = AgentKit(agent)
    reports = [await kit.run("order_pizza", {"pizza": "large salami", "count": 2}) for _ in range(2)]
    assert [report.memory.outcome for report in reports] == ["off", "off"]
    assert made == ["large salami"] * 4


async def test_what_is_declared_is_remembered() -> None:
    """For thirty days where the author says nothing else."""
    agent, made = pizzeria(remember="shared")
    assert agent.tasks["order_pizza"].remember_for == timedelta(days=30)
    kit = AgentKit(agent)
    reports = [await kit.run("order_pizza", {"pizza": "salami"}) for _ in range(2)]
    assert [report.memory.outcome for report in reports] == ["miss", "hit"]
    assert made == ["salami"]


@pytest.mark.parametrize(("uses", "lifetime"), [(("clock",), {}), (("llm",), {"remember_for": None})])
def test_a_remembered_result_that_goes_stale_needs_a_time_to_live(
    uses: tuple[str, ...], lifetime: dict[str, Any]
) -> None:
    """It is found at the declaration; for ever is no time to live."""
    with pytest.raises(ConfigurationError, match=rf"'{uses[-1]}'.*remember_for=timedelta.*leave remember out"):
        pizzeria(remember="shared", uses=uses, **lifetime)
    agent, _ = pizzeria(remember="shared", uses=uses, remember_for=HOUR)
    assert agent.tasks["order_pizza"].remember_for == HOUR


@pytest.mark.parametrize("lifetime", [HOUR, None])
def test_a_time_to_live_of_what_is_not_remembered_is_refused(lifetime: timedelta | None) -> None:
    """Agents that were written when everything was remembered would lose their memory without a word."""
    with pytest.raises(ConfigurationError, match='remember_for without remember; add remember="shared" or "user"'):
        pizzeria(remember_for=lifetime)


@pytest.mark.parametrize(
    ("options", "runs"),
    [({"remember": "shared"}, None), ({"remember": "shared", "remember_for": HOUR}, 1), ({}, 2)],
)
async def test_an_effect_of_a_remembered_task_needs_a_time_to_live(options: dict[str, Any], runs: int | None) -> None:
    """A served answer makes no effect, so that the author says for how long; else the first use is refused."""
    agent, sent = Agent("MailAgent"), []

    @agent.task(max_attempts=1, **options)
    async def remind(order: Order, context: Context) -> bool:
        """Send a reminder."""
        if is_ours := await context.once("mail"):
            sent.append(order.pizza)
        return is_ours

    kit = AgentKit(agent)
    reports = [await kit.run("remind", {"pizza": "salami"}) for _ in range(2)]
    if runs is None:
        assert [report.status for report in reports] == ["failed", "failed"]
        assert reports[0].error is not None
        assert "remember_for=timedelta" in reports[0].error.message
    assert len(sent) == (runs or 0)
