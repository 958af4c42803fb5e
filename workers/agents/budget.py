"""Watch a budget: the amount left, the rate of spending, and whether it will last."""

from decimal import Decimal

from pydantic import BaseModel
from pydantic import Field as Setting

from tasklore import Agent, Amount, Field, Parameters


class BudgetSettings(BaseModel):
    """Settings of the agent."""

    anomaly_threshold_multiplier: Decimal = Setting(
        Decimal("2.0"),
        gt=0,
        description="A period is unusual when it is above this many times the mean of all.",
    )


agent = Agent(
    "BudgetTrackerAgent",
    version=2,
    description="Says what is left of a budget, predicts spending and finds unusual periods.",
    keywords=(
        "budget",
        "limit",
        "spent",
        "spending",
        "spend",
        "overshoot",
        "anomaly",
        "history",
    ),
    settings=BudgetSettings,
)


class Budget(Parameters):
    """A budget, what has been spent of it, and what earlier periods cost."""

    budget_limit: Amount = Field(
        aliases=("limit", "budget"),
        cues=("limit", "budget of", "budget"),
        any_currency=True,
        description="What may be spent in all.",
    )
    spent: Amount = Field(
        aliases=("spending",),
        cues=("spent", "spending", "after spending"),
        any_currency=True,
        description="What has been spent so far.",
    )
    history: tuple[Amount, ...] = Field(
        (),
        cues=("history", "past", "previous"),
        any_currency=True,
        description="Spending of earlier periods, oldest first.",
    )


class Anomaly(BaseModel):
    """A period that cost unusually much; `index` counts from 0."""

    value: Amount
    index: int


class BudgetReport(BaseModel):
    """The state of a budget; `spending_rate` is the mean of a period, `predicted_spending` adds all periods again."""

    remaining: Amount
    spending_rate: Amount
    overshoot_risk: bool
    predicted_spending: Amount
    anomalies: list[Anomaly]
    recommendations: list[str]


@agent.task(
    remember="shared",
    examples=(
        "Check my budget: limit 50000, spent 42000, history [5000, 7000, 8000, 6000]",
    ),
)
async def analyze_budget(budget: Budget, settings: BudgetSettings) -> BudgetReport:
    """Analyze a budget: what remains, the spending rate, the predicted spending, overshoot risk and anomalies."""
    periods = len(budget.history)
    total = sum(budget.history, Amount(0))
    threshold = settings.anomaly_threshold_multiplier * total
    # Compared without dividing: the mean may have no end of digits.
    unusual = [
        Anomaly(value=cost, index=i)
        for i, cost in enumerate(budget.history)
        if cost * periods > threshold
    ]
    report = BudgetReport(
        remaining=budget.budget_limit - budget.spent,
        spending_rate=total / periods if periods else Amount(0),
        overshoot_risk=budget.spent + total > budget.budget_limit,
        predicted_spending=budget.spent + total,
        anomalies=unusual,
        recommendations=[],
    )
    return report.model_copy(update={"recommendations": recommend(budget, report)})


def recommend(budget: Budget, report: BudgetReport) -> list[str]:
    """Return one sentence for every finding that asks for action, the gravest first."""
    advice = []
    if report.remaining < 0:
        advice.append(
            f"The budget is overspent by {-report.remaining}: stop spending or raise the limit."
        )
    elif report.remaining == 0:
        advice.append("The budget is used up: stop spending or raise the limit.")
    if report.overshoot_risk and budget.history:
        over = report.predicted_spending - budget.budget_limit
        advice.append(
            f"Spending is heading for {report.predicted_spending}, {over} over the limit: spend less a period."
        )
    mean = round(report.spending_rate, 2)
    advice += [
        f"Look into period {odd.index + 1}: {odd.value} is far above the mean of {mean}."
        for odd in report.anomalies
    ]
    if not budget.history:
        advice.append(
            "The prediction has no past spending to go by: send that of earlier periods (history)."
        )
    return advice
