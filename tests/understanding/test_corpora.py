"""Sentences for eight agents and for six strangers, without a model: what starts is meant, or asked about."""

from pathlib import Path

import pytest

from tasklore.supervisor.understanding.rules import RuleInterpreter
from tests.understanding.agents import EVERYDAY
from tests.understanding.scoring import conversations, judge_corpus, share, summary_of
from tests.understanding.strangers import STRANGERS

#: The part that may start a task or a value that was not meant, and the part that has to be right or asked about.
MOST_WRONG = 0.005
LEAST_RIGHT_OR_ASKED = 0.85


@pytest.mark.parametrize(
    "name",
    [
        "development",
        "held_out",
        "strangers_seen",
        "strangers_others_seen",
        "everyday_others_seen",
    ],
)
async def test_what_is_started_is_what_was_meant(name: str) -> None:
    """Few sentences start something else, and most are right or asked about; `python -m tests.understanding` tells."""
    judged = await judge_corpus(
        conversations(Path(__file__).parent / f"{name}.json"),
        RuleInterpreter(),
        STRANGERS if name.startswith("strangers") else EVERYDAY,
    )
    wrong = "\n".join(str(one) for one in judged if one.verdict == "wrong")
    assert share(judged, "wrong") <= MOST_WRONG, f"{summary_of(judged)}\n{wrong}"
    assert share(judged, "right", "asked") >= LEAST_RIGHT_OR_ASKED, summary_of(judged)
