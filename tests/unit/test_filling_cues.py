"""Cues with a side, bounds, the marks of a locale, and the digits of dates, for fields of any agent."""

from typing import Any

import pytest

from contracts.errors import ConfigurationError
from contracts.parameters import Field, Parameters
from runtime.settings import Settings
from supervisor.catalogue import Catalogue
from supervisor.understanding import Ambiguous, RuleInterpreter, Understood
from tests.understanding_cases import EVERYBODY, card_for, parameters_of, understand


class Marks(Parameters):
    """Points in an exam, and how many there were."""

    points: int = Field(ge=0, le=100, cues=("{} marks", "{} out of", "score of {}"))
    possible: int | None = Field(None, ge=1, le=100, cues=("out of {}",))
    weight: float | None = Field(None, cues=("weighs {}",))


EXAM = Catalogue([card_for("ExamAgent", "grade_paper", Marks, "Grade a paper.", ("grade", "paper"))])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("grade the paper 30 out of 40", {"points": 30, "possible": 40}),
        ("grade the paper thirty marks out of 40", {"points": 30, "possible": 40}),
        ("out of 40 I grade the paper a 30", {"points": 30, "possible": 40}),
        ("grade paper 7: 30 out of 40", {"points": 30, "possible": 40}),
        ("grade the paper zero out of 40", {"points": 0, "possible": 40}),
        ("grade the paper of 12 May 2026 with a score of 30", {"points": 30}),
        ("grade the paper from 9:30 am, 30 marks", {"points": 30}),
        ("grade the paper on 12 March, a 30", {"points": 30}),
    ],
)
def test_a_cue_takes_the_value_on_its_own_side(text: str, expected: dict[str, Any]) -> None:
    """Two fields may share their words."""
    assert parameters_of(understand(text, catalogue=EXAM)) == expected


def test_a_value_out_of_bounds_is_asked_for_again() -> None:
    """Before any agent is bothered, with the bounds in the question."""
    found = understand("grade the paper with a score of 400", catalogue=EXAM)
    assert isinstance(found, Ambiguous)
    assert found.question == "What is points, from 0 to 100? You wrote '400'."


@pytest.mark.parametrize(
    ("decimal_mark", "text", "expected"),
    [
        (",", "limit 1.500, spent 12,75", {"budget_limit": 1500, "spent": 12.75}),
        (".", "limit 1.500, spent 12.75", {"budget_limit": 1.5, "spent": 12.75}),
        (",", "limit 1,500, spent 7", {"budget_limit": 1.5, "spent": 7}),
    ],
)
def test_a_known_decimal_mark_settles_what_else_is_asked(
    decimal_mark: Any, text: str, expected: dict[str, Any]
) -> None:
    """The value that reaches the task is the one that the writer meant."""
    found = RuleInterpreter(decimal_mark=decimal_mark).understand(text, catalogue=EVERYBODY)
    assert parameters_of(found) == expected


def test_a_locale_that_nobody_knows_is_refused_at_the_start() -> None:
    """With the variable and the cure."""
    with pytest.raises(ConfigurationError, match=r"TASKLORE_LOCALE.*write one such as"):
        Settings.load(locale="xx")
    assert Settings.load(locale="de-DE").locale == "de-DE"


async def test_a_long_text_is_understood_like_a_short_one() -> None:
    """It is read outside the event loop."""
    text = f"limit 50k, spent 42k, history [{', '.join(['5000'] * 300)}]"
    found = await RuleInterpreter().interpret(text, catalogue=EVERYBODY, previous=())
    assert isinstance(found, Understood)
    assert len(found.task.parameters["history"]) == 300


def test_a_history_may_name_its_months() -> None:
    """They part its amounts no more than commas do."""
    found = understand("limit 50k, spent 42k, history jan 5k, feb 7k, mar 8k")
    assert parameters_of(found) == {"budget_limit": 50000, "spent": 42000, "history": [5000, 7000, 8000]}
