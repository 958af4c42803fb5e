"""What the world allows of a wish, and what an agent does without a model."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasklore.contracts.observations import Action, AgentTarget, Position
from tasklore.memory.rendering.narration import distance
from tasklore.workers.agents.decision import SKILLS, ActionRefusal, by_rules
from tasklore.workers.agents.decision.skills import permit, towards, wish_of
from tests.unit.workers.agents.decision.sample_world import (
    at,
    coins,
    known,
    moment,
    said,
    texted,
    wish,
)

NOTHING = known()


def chosen(
    sensed: dict[str, Any] | None = None, taken: Any = NOTHING, **more: Any
) -> Action:
    """Return the action."""
    return by_rules(moment(sensed, **more), taken).action


def test_the_nearest_object_is_walked_to() -> None:
    """A step at most, and never farther than one; on the last step exactly there."""
    assert chosen({"worldObjects": coins((5, 5), (2, 4))}) == Action(
        action="move", target=Position(x=2, z=2)
    )
    assert chosen({"worldObjects": coins((5, 5))}, step=None).target == Position(
        x=5, z=5
    )
    diagonal = chosen({"worldObjects": coins((5, 5))})
    assert isinstance(diagonal.target, Position)
    assert 0.98 < distance(Position(x=2, z=1), diagonal.target) <= 1


def test_a_question_is_answered_with_what_is_seen() -> None:
    action = chosen(
        {"worldObjects": coins((2, 4), (5, 5))},
        known(said(6, "Where are the coins?"), new=1),
    )

    assert action.target == AgentTarget(agent="Bob")
    assert action.utterance == "I am at (2, 1) and see 2 coins at: (2, 4), (5, 5)."


def test_each_asker_is_answered_once() -> None:
    both = said(5, "Where?"), said(6, "What do you see?", "Carol")

    assert chosen(taken=known(*both, new=2)).target == AgentTarget(agent="Bob")
    assert chosen(taken=known(*both, seen=[texted(6, "Bob")])).target == AgentTarget(
        agent="Carol"
    )
    assert (
        chosen(taken=known(*both, seen=[texted(6, "Bob"), texted(7, "Carol")])).action
        == "move"
    )
    again = known(
        *both, said(7, "Where now?"), new=1, seen=[texted(7, "Carol"), texted(7, "Bob")]
    )
    assert chosen(taken=again).target == AgentTarget(agent="Bob")


def test_only_what_is_allowed_is_chosen() -> None:
    """Down to waiting, which is left to everybody."""
    sensed = {"worldObjects": coins((2, 2), (3, 3), (4, 4))}
    asked = known(said(6, "Where?"), new=1)

    order = [
        chosen(sensed, asked, allowed=allowed).action
        for allowed in (["text", "move"], ["move", "wait"], ["wait"])
    ]
    assert order == ["text", "move", "wait"]
    assert chosen(allowed=["collect"]).action == "wait"
    assert chosen(allowed=["move"], step=0).action == "wait"


def test_a_move_that_was_cut_to_a_tiny_step_is_not_cut_again() -> None:
    """Floating point makes it longer than the step by a breath, and the same move must be allowed as it was chosen."""
    here = Position(x=0.0, z=0.5)
    cut = towards(here, Position(x=5, z=5), 0.0078125)

    assert towards(here, cut, 0.0078125) == cut


_places = st.tuples(st.floats(0, 10), st.floats(0, 10))


@given(
    _places, st.lists(_places, max_size=5), st.floats(0, 12), st.none() | st.floats(0, 12), st.floats(0, 1e6),
    st.lists(st.sampled_from(["move", "text", "collect", "wait"]), min_size=1, max_size=4), st.booleans(),
)  # fmt: skip
def test_rules_choose_only_what_the_world_allows(
    here: tuple[float, float],
    there: list[tuple[float, float]],
    reach: float,
    step: float | None,
    time: float,
    allowed: list[str],
    asked: bool,
) -> None:
    taken = known(said(1, "Where?"), new=1) if asked else NOTHING
    sensed = {"position": at(*here), "worldObjects": coins(*there)}
    now = moment(sensed, reach=reach, step=step, simulation_time=time, allowed=allowed)
    choice = by_rules(now, taken)

    assert choice == by_rules(now, taken)
    if choice.action.action != "wait":
        assert permit(wish_of(choice.action), now, SKILLS) == choice.action
    if (
        isinstance(choice.action.target, Position)
        and step is not None
        and choice.action.action == "move"
    ):
        assert distance(now.sensory_data.position, choice.action.target) <= step + 1e-6


SIGHT = {"worldObjects": coins((2.123, 1.6), (2.5, 1), (9, 9))}


def outcome(
    action: str,
    allowed: tuple[str, ...] = ("move", "text", "collect", "wait"),
    **parts: Any,
) -> Any:
    """Return what a wish comes to."""
    return permit(wish(action, **parts), moment(SIGHT, allowed=allowed), SKILLS)


def test_what_the_world_allows_is_done() -> None:
    """Each action with its target; a far place is walked to as far as a step goes."""
    assert outcome("move", x=2, z=1.5) == Action(
        action="move", target=Position(x=2, z=1.5)
    )
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
        (
            {"action": "fly"},
            "'fly' is not allowed; allowed are move, text, collect and wait",
        ),
        ({"action": "move"}, "a move needs x and z"),
        ({"action": "move", "x": float("nan"), "z": 1}, "a move needs x and z"),
        (
            {"action": "move", "x": 2, "z": 10.1},
            "(2, 10.1) is outside the world, which goes from (0, 0) to (10, 10)",
        ),
        (
            {"action": "collect", "x": 9, "z": 9},
            "no object that is seen at (9, 9) is within 1",
        ),
        ({"action": "collect", "x": 2}, "no object that is seen at there is within 1"),
        (
            {"action": "text", "agent": "Dan", "utterance": "Hello!"},
            "there is nobody called 'Dan' to text",
        ),
        (
            {"action": "text", "agent": "Ana", "utterance": "Hello!"},
            "there is nobody called 'Ana' to text",
        ),
        (
            {"action": "text", "agent": "Bob", "utterance": " \n\x00"},
            "there was nothing to say to Bob",
        ),
    ],
)
def test_what_the_world_does_not_allow_is_refused(
    wished: dict[str, Any], reason: str
) -> None:
    """With the reason."""
    assert outcome(**wished) == ActionRefusal(reason)


def test_what_a_model_says_is_one_short_line() -> None:
    """Controls become blanks, and it ends where three sentences do."""
    assert (
        outcome("text", agent="Bob", utterance="a\x1b\n b\u2028c").utterance == "a b c"
    )
    assert (
        len(outcome("text", agent="Bob", utterance="word " * 10_000).utterance) <= 500
    )


@pytest.mark.parametrize("step", [0.001, 0.3, 1.0, 7.07])
def test_a_step_is_never_longer_than_it_may_be(step: float) -> None:
    """In whatever direction, and it goes somewhere."""
    here = Position(x=2, z=1)
    for there in (
        Position(x=x / 3, z=z / 7) for x in range(-40, 40, 7) for z in range(-40, 40, 7)
    ):
        end = towards(here, there, step)
        gone = ((end.x - here.x) ** 2 + (end.z - here.z) ** 2) ** 0.5

        assert 0 < gone <= step + 1e-6
