"""The one task that every contestant runs: standard library only, so that each peer's venv can import it."""

from typing import Any

#: Distinct questions asked over and over: few enough that all are remembered after the warm-up, many enough that no
#: contestant answers from one object.
DISTINCT_QUESTIONS = 64


def parameters(number: int) -> dict[str, Any]:
    """Return the parameters of the *number*-th question; they repeat every `DISTINCT_QUESTIONS`."""
    variant = number % DISTINCT_QUESTIONS
    return {
        "budget_limit": 50_000 + variant,
        "spent": 42_000,
        "history": [5000, 7000, 8000, 6000],
    }


def analyze(question: dict[str, Any]) -> dict[str, Any]:
    """Return the budget analysis of one question: the computation alone, nothing validated."""
    spent = question["spent"]
    history = question["history"]
    rate = sum(history) / len(history) if history else 0
    predicted = spent + rate * len(history)
    anomalies = [
        {"value": value, "index": index}
        for index, value in enumerate(history)
        if value > 2 * rate
    ]
    return {
        "remaining": question["budget_limit"] - spent,
        "spending_rate": rate,
        "predicted_spending": predicted,
        "overshoot_risk": predicted > question["budget_limit"],
        "anomalies": anomalies,
    }
