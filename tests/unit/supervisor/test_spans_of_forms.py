"""Spans of time in the bodies of operations: bounded, so that every sum with them is a time."""

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from tasklore.contracts.spans import read_span
from tasklore.supervisor.operations.dead_letters import LettersToRedrive
from tasklore.supervisor.operations.forms import Later, When, moment_of
from tasklore.supervisor.operations.memory.history import Undo
from tasklore.supervisor.operations.memory.items import NewItem
from tasklore.supervisor.operations.memory.turns import Telling
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


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("2h", timedelta(hours=2)),
        ("1.5d", timedelta(hours=36)),
        ("2w", timedelta(days=14)),
        ("2y", None),
    ],
)
def test_each_letter_of_a_span_is_a_unit(text: str, span: timedelta | None) -> None:
    assert read_span(text) == span


def test_a_span_of_a_hundred_years_is_taken() -> None:
    later = Later.model_validate({"after": "36525d"})
    assert later.find_start(NOW) == NOW + timedelta(days=36_525)


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("2h", -2),
        ("1d", -24),
        ("2026-11-24T01:00:00Z", 1),
        ("2026-11-24 01:00", 1),
        ("2026-11-24T01:00:00+01:00", 0),
    ],
)
def test_a_time_that_has_passed_is_so_long_ago_or_a_moment(
    text: str, hours: int
) -> None:
    """Without a zone it is in UTC."""
    when = TypeAdapter[datetime | timedelta](When).validate_python(text)
    assert moment_of(when, NOW) == NOW + timedelta(hours=hours)


def test_a_time_before_all_time_is_its_beginning() -> None:
    when = TypeAdapter[datetime | timedelta](When).validate_python("9999999w")
    assert moment_of(when, NOW) == datetime.fromtimestamp(0, UTC)


def test_text_that_is_no_time_is_refused_with_examples() -> None:
    with pytest.raises(ValidationError, match="such as 2h or 7d, or a time such as"):
        TypeAdapter[datetime | timedelta](When).validate_python("soon")


@pytest.mark.parametrize(
    ("form", "other"),
    [
        (Undo, {}),
        (Telling, {"text": "hello"}),
        (NewItem, {"category": "food.likes", "value": "lox"}),
    ],
)
@pytest.mark.parametrize("typed", ["90", "90.0", "90s", 90, 90.0])
def test_a_wait_is_read_as_it_is_typed(
    form: type[BaseModel], other: dict[str, str], typed: object
) -> None:
    """A command sends words alone."""
    found = form.model_validate({**other, "wait_seconds": typed})
    assert found.model_dump()["wait_seconds"] == 90


@pytest.mark.parametrize("typed", ["-1", -1, "-0.5"])
def test_a_span_below_zero_is_one_fault_however_it_is_typed(typed: object) -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        Undo.model_validate({"wait_seconds": typed})


def test_a_span_says_its_own_bounds() -> None:
    number = Undo.model_json_schema()["properties"]["wait_seconds"]["anyOf"][0]
    assert (number["minimum"], number["maximum"]) == (0, 300)
