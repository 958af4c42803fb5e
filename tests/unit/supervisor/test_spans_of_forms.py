"""Spans of time in the bodies of operations: bounded, so that every sum with them is a time."""

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import BaseModel, ValidationError

from tasklore.supervisor.operations.dead_letters import LettersToRedrive
from tasklore.supervisor.operations.forms import Later
from tasklore.supervisor.operations.results import ResultsToForget

NOW = datetime(2026, 11, 24, tzinfo=UTC)


@pytest.mark.parametrize(
    ("form", "field"),
    [
        (LettersToRedrive, "new_deadline"),
        (ResultsToForget, "older_than"),
        (Later, "after"),
    ],
)
@pytest.mark.parametrize("span", [1e308, 1e12, 10**400, "9999w", "1" + "0" * 400])
def test_a_span_beyond_a_hundred_years_is_a_fault_of_its_field(
    form: type[BaseModel], field: str, span: object
) -> None:
    with pytest.raises(ValidationError) as refused:
        form.model_validate({field: span})
    assert refused.value.errors()[0]["loc"][0] == field


def test_a_span_of_a_hundred_years_is_taken() -> None:
    later = Later.model_validate({"after": "36525d"})
    assert later.find_start(NOW) == NOW + timedelta(days=36_525)
