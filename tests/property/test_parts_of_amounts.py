"""Parts of an amount: what a sentence says as a percentage of another is that percentage, exactly."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from quantities.amounts import Amount
from supervisor.understanding import Understood
from tests.interpretation_cases import understand


@given(
    percent=st.decimals(min_value="0.25", max_value=400, places=2),
    limit=st.decimals(min_value=1, max_value=10**9, places=2),
)
def test_a_percentage_of_the_limit_is_exact(percent: Decimal, limit: Decimal) -> None:
    """Whatever the digits, and the limit stays itself."""
    found = understand(f"I spent {percent}% of my {limit} budget")
    assert isinstance(found, Understood), found
    parameters = found.task.parameters
    assert Amount.read(parameters["budget_limit"]).value == limit
    assert Amount.read(parameters["spent"]).value == percent * limit / 100
