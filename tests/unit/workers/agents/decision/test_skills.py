"""What a model may wish, and what the world makes of it."""

from typing import Any

import pytest

from contracts.observations import Action, AgentTarget, Position
from tests.unit.workers.agents.decision.stage import coins, moment, wish
from workers.agents.decision import SKILLS, Refusal
from workers.agents.decision.skills import permit, towards

SIGHT = {"worldObjects": coins((2.123, 1.6), (2.5, 1), (9, 9))}


def outcome(action: str, allowed: tuple[str, ...] = ("move", "text", "collect", "wait"), **parts: Any) -> Any:
    """Return what a wish comes to."""
    return permit(wish(action, **parts), moment(SIGHT, allowed=allowed), SKILLS)


def test_what_the_world_allows_is_done() -> None:
    """Each action with its target; a far place is walked to as far as a step goes."""
    assert outcome("move", x=2, z=1.5) == Action(action="move", target=Position(x=2, z=1.5))
    assert outcome("move", x=2, z=9) == Action(action="move", target=Position(x=2, z=2))
    assert outcome("text", agent="Bob", utterance="Hello!") == Action(
        action="text", target=AgentTarget(agent="Bob"), utterance="Hello!"
    )
    assert outcome("wait") == Action(action="wait")


def test_the_object_that_is_meant_is_collected() -> None:
    """A model knows two decimals of its place; without any place it means the nearest."""
    assert outcome("collect", x=2.12, z=1.6).target == Position(x=2.123, z=1.6)
    assert outcome("collect").target == Position(x=2.5, z=1)


@pytest.mark.parametrize(
    ("wished", "reason"),
    [
        ({"action": "fly"}, "'fly' is not allowed; allowed are move, text, collect and wait"),
        ({"action": "move"}, "a move needs x and z"),
        ({"action": "move", "x": float("nan"), "z": 1}, "a move needs x and z"),
        ({"action": "move", "x": 2, "z": 10.1}, "(2, 10.1) is outside the world, which goes from (0, 0) to (10, 10)"),
        ({"action": "collect", "x": 9, "z": 9}, "no object that is seen at (9, 9) is within 1"),
        ({"action": "collect", "x": 2}, "no object that is seen at there is within 1"),
        ({"action": "text", "agent": "Dan", "utterance": "Hello!"}, "there is nobody called 'Dan' to text"),
        ({"action": "text", "agent": "Ana", "utterance": "Hello!"}, "there is nobody called 'Ana' to text"),
        ({"action": "text", "agent": "Bob", "utterance": " \n\x00"}, "there was nothing to say to Bob"),
    ],
)
def test_what_the_world_does_not_allow_is_refused(wished: dict[str, Any], reason: str) -> None:
    """With the reason."""
    assert outcome(**wished) == Refusal(reason)


def test_what_a_model_says_is_one_short_line() -> None:
    """Controls become blanks, and it ends where three sentences do."""
    assert outcome("text", agent="Bob", utterance="a\x1b\n b\u2028c").utterance == "a b c"
    assert len(outcome("text", agent="Bob", utterance="word " * 10_000).utterance) <= 500


@pytest.mark.parametrize("step", [0.001, 0.3, 1.0, 7.07])
def test_a_step_is_never_longer_than_it_may_be(step: float) -> None:
    """In whatever direction, and it goes somewhere."""
    here = Position(x=2, z=1)
    for there in (Position(x=x / 3, z=z / 7) for x in range(-40, 40, 7) for z in range(-40, 40, 7)):
        end = towards(here, there, step)
        gone = ((end.x - here.x) ** 2 + (end.z - here.z) ** 2) ** 0.5

        assert 0 < gone <= step + 1e-6
