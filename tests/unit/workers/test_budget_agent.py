"""The budget agent: both documented examples exactly, and every rule of its recommendations."""

import json
from typing import Any

import pytest

from tasklore.workers.agents.budget import agent
from tasklore.workers.testing import AgentKit, run_task

STEADY = {"budget_limit": 50000, "spent": 42000, "history": [5000, 7000, 8000, 6000]}
SPIKY = {
    "budget_limit": 100000,
    "spent": 30000,
    "history": [5000, 6000, 7000, 5000, 25000, 6000],
}


async def analyzed(parameters: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Return the result of one analysis."""
    report = await run_task(agent, "analyze_budget", parameters, **options)
    assert report.status == "completed", report.error
    result: dict[str, Any] = report.result
    return result


async def advice(limit: Any, spent: Any, history: list[Any]) -> list[str]:
    """Return the recommendations for a budget."""
    result = await analyzed({"budget_limit": limit, "spent": spent, "history": history})
    sentences: list[str] = result["recommendations"]
    return sentences


async def test_a_steady_budget_that_will_not_last() -> None:
    """The first documented example, with JSON numbers."""
    result = await analyzed(STEADY)
    assert json.dumps(
        {name: value for name, value in result.items() if name != "recommendations"}
    ) == (
        '{"remaining": 8000, "spending_rate": 6500, "overshoot_risk": true, "predicted_spending": 68000, '
        '"anomalies": []}'
    )
    assert result["recommendations"] == [
        "Spending is heading for 68000, 18000 over the limit: spend less a period.",
    ]


async def test_a_budget_with_one_unusual_period() -> None:
    """The second documented example, which holds with all six values of the history."""
    assert await analyzed(SPIKY) == {
        "remaining": 70000,
        "spending_rate": 9000,
        "overshoot_risk": False,
        "predicted_spending": 84000,
        "anomalies": [{"value": 25000, "index": 4}],
        "recommendations": ["Look into period 5: 25000 is far above the mean of 9000."],
    }


@pytest.mark.parametrize(
    "spelled",
    [
        {
            "budget_limit": 50000.0,
            "spent": "42000",
            "history": ["5k", "7,000", 8e3, 6000],
        },
        {"limit": "50k", "spending": "$42,000.00", "history": [5000, 7000, 8000, 6000]},
        {
            "history": [5000, 7000, "8000.0", "6 thousand"],
            "budget": "fifty thousand",
            "spent": "42K",
        },
    ],
)
async def test_every_spelling_is_answered_from_memory(spelled: dict[str, Any]) -> None:
    """Aliases, wordings, currency signs and order make no new question."""
    kit = AgentKit(agent)
    first = await kit.run("analyze_budget", STEADY)
    again = await kit.run("analyze_budget", spelled)
    assert (first.memory.outcome, again.memory.outcome) == ("miss", "hit")
    assert (
        first.memory.key
        == again.memory.key
        == "analyze_budget:50000:42000:5000,7000,8000,6000"
    )
    assert again.result == first.result


async def test_each_finding_has_its_own_recommendation() -> None:
    """Exhausted, overspent, heading over the limit, and each anomaly, in this order."""
    assert await advice(100, 100, [0]) == [
        "The budget is used up: stop spending or raise the limit."
    ]
    assert await advice(100, 130, []) == [
        "The budget is overspent by 30: stop spending or raise the limit.",
        "The prediction has no past spending to go by: send that of earlier periods (history).",
    ]
    assert await advice(100, 100, [1, 1, 1, 9, 1, 1, 9]) == [
        "The budget is used up: stop spending or raise the limit.",
        "Spending is heading for 123, 23 over the limit: spend less a period.",
        "Look into period 4: 9 is far above the mean of 3.29.",
        "Look into period 7: 9 is far above the mean of 3.29.",
    ]
    assert await advice(1000, 10, [5, 5]) == []


async def test_exactly_the_limit_is_no_overshoot_and_exactly_the_threshold_no_anomaly() -> (
    None
):
    """Both comparisons are strict, and exact where the mean has no end of digits."""
    result = await analyzed({"budget_limit": 12, "spent": 6, "history": [1, 1, 4]})
    assert (result["overshoot_risk"], result["anomalies"]) == (False, [])
    result = await analyzed(
        {"budget_limit": "11.99", "spent": 6, "history": [1, 1, "4.01"]}
    )
    assert (result["overshoot_risk"], result["anomalies"]) == (
        True,
        [{"value": 4.01, "index": 2}],
    )
    result = await analyzed({"budget_limit": 100, "spent": 0, "history": [3, 3, 4]})
    assert result["spending_rate"] == 3.33333333333333
    assert result["predicted_spending"] == 10
