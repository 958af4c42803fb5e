"""A long text costs in proportion to its length, also as the answer to a question, whatever it repeats."""

import sys
from collections.abc import Sequence
from typing import Any

import pytest

from contracts.messages import ChatTurn
from contracts.parameters import Parameters
from supervisor.catalogue import Catalogue
from supervisor.interpretation import RuleInterpreter
from supervisor.understanding.outcome import Missing
from tests.interpretation_cases import AT, BUDGET, GREETER, RIDE, TRIP, card_for, said


class Pair(Parameters):
    """Two numbers, of which one has a name that is also a word of every sentence."""

    a: int
    b: int = 0


ALL = Catalogue([BUDGET, TRIP, RIDE, GREETER, card_for("PairAgent", "pair", Pair, keywords=("pair",))])
RULES = RuleInterpreter()


def asked_back(text: str) -> list[ChatTurn]:
    """Return a conversation in which *text* was answered by a question."""
    found = RULES.understand(text, catalogue=ALL, previous=[], now=AT)
    assert isinstance(found, Missing), found
    return [said("person", text), said("assistant", found.question, found.call, found.agent_id)]


def steps(text: str, previous: Sequence[ChatTurn]) -> int:
    """Return how many lines of ours are run to read *text*."""
    count = 0

    def counted(_frame: Any, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return counted

    traced = sys.gettrace()
    sys.settrace(counted)
    try:
        RULES.understand(text, catalogue=ALL, previous=previous, now=AT)
    finally:
        sys.settrace(traced)
    return count


@pytest.mark.parametrize("asked", ["pair", "my budget with a limit of 900", "book a ride", "greet"])
@pytest.mark.parametrize(
    "piece",
    ["a ", "5 ", "a = ", "a 5, ", "no ", "not ", "and 5 ", "ninety ", "A ", "Five ", "of ", "The 5 ", "spent ", "on "],
)
def test_an_answer_takes_steps_in_proportion_to_its_length(piece: str, asked: str) -> None:
    """Twice the text is at most twice the work, and a fifth for luck."""
    previous = asked_back(asked)
    steps(piece * 20, previous)
    assert steps(piece * 400, previous) <= 2.4 * steps(piece * 200, previous) + 500
