"""How often a model is asked about a turn that waits for it."""

import pytest

from tasklore.workers.listening.turns import Lesson
from tasklore.workers.testing import NOW


def runs_asked(waits_for: str | None, most: int) -> list[int]:
    """Return after which numbers of runs a turn that *waits_for* something is asked about, up to *most*."""
    lesson = Lesson(
        turn_id="t1",
        conversation_id="c1",
        user_id="ana",
        facts=(),
        at=NOW,
        waits_for=waits_for,
    )
    return [
        runs
        for runs in range(1, most + 1)
        if lesson.model_copy(update={"runs": runs}).is_asked_again
    ]


@pytest.mark.parametrize("reason", ["LlmMalformed", "LlmCutOff", "LlmRefused"])
def test_a_model_that_cannot_be_read_is_asked_less_and_less(reason: str) -> None:
    """Each answer is paid for; it never ends, since another model may read it."""
    asked = runs_asked(f"{reason}: no Heard", 900)
    assert asked == [*range(1, 9), 16, 32, 64, 128, 256, 288, 512, 576, 864]


@pytest.mark.parametrize("reason", [None, "LlmUnavailable: 503", "LlmTimeout: late"])
def test_a_model_that_is_away_is_asked_each_time(reason: str | None) -> None:
    assert runs_asked(reason, 100) == list(range(1, 101))
