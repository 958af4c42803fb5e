"""What an agent does without a model: the first rule that applies, and the same again in the same world."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from contracts.observations import Action, AgentTarget, Position
from memory.rendering.narration import distance
from tests.unit.workers.agents.decision.stage import at, coins, known, moment, said, texted
from workers.agents.decision import SKILLS, by_rules
from workers.agents.decision.policy import QUIET_FOR
from workers.agents.decision.skills import permit, towards, wish_of

NOTHING = known()


def chosen(sensed: dict[str, Any] | None = None, taken: Any = NOTHING, **more: Any) -> Action:
    """Return the action."""
    return by_rules(moment(sensed, **more), taken).action


def test_the_nearest_object_is_walked_to() -> None:
    """A step at most, and never farther than one; on the last step exactly there."""
    assert chosen({"worldObjects": coins((5, 5), (2, 4))}) == Action(action="move", target=Position(x=2, z=2))
    assert chosen({"worldObjects": coins((5, 5))}, step=None).target == Position(x=5, z=5)
    diagonal = chosen({"worldObjects": coins((5, 5))})
    assert isinstance(diagonal.target, Position)
    assert 0.98 < distance(Position(x=2, z=1), diagonal.target) <= 1


def test_a_question_is_answered_with_what_is_seen() -> None:
    """Truly, and not with a question."""
    action = chosen({"worldObjects": coins((2, 4), (5, 5))}, known(said(6, "Where are the coins?"), new=1))

    assert action.target == AgentTarget(agent="Bob")
    assert action.utterance == "I am at (2, 1) and see 2 coins at: (2, 4), (5, 5)."


def test_each_asker_is_answered_once() -> None:
    """The next one in the next moment, nobody twice, and who asks again once more."""
    both = said(5, "Where?"), said(6, "What do you see?", "Carol")

    assert chosen(taken=known(*both, new=2)).target == AgentTarget(agent="Bob")
    assert chosen(taken=known(*both, seen=[texted(6, "Bob")])).target == AgentTarget(agent="Carol")
    assert chosen(taken=known(*both, seen=[texted(6, "Bob"), texted(7, "Carol")])).action == "move"
    again = known(*both, said(7, "Where now?"), new=1, seen=[texted(7, "Carol"), texted(7, "Bob")])
    assert chosen(taken=again).target == AgentTarget(agent="Bob")


def test_many_objects_are_told_to_who_is_out_of_sight() -> None:
    """To whoever was told longest ago, and not at every moment."""
    many = {"worldObjects": coins((5, 5), (6, 6), (2, 4)), "nearbyAgents": [{"name": "Bob"}]}
    quiet = [texted(1, "Carol"), *[texted(2).model_copy(update={"did": Action(action="wait")})] * QUIET_FOR]

    told = chosen(many)
    assert (told.target, told.utterance) == (AgentTarget(agent="Carol"), "I see 3 coins at: (5, 5), (6, 6), (2, 4).")
    assert chosen(many, known(seen=[texted(1, "Carol")])).action == "move"
    assert chosen(many, known(seen=quiet)).target == AgentTarget(agent="Carol")
    assert chosen({**many, "nearbyAgents": []}, known(seen=[texted(1, "Bob"), *quiet])).target == AgentTarget(
        agent="Bob"
    )


def test_only_what_is_allowed_is_chosen() -> None:
    """Down to waiting, which is left to everybody."""
    sensed, asked = {"worldObjects": coins((2, 2), (3, 3), (4, 4))}, known(said(6, "Where?"), new=1)

    order = [
        chosen(sensed, asked, allowed=allowed).action for allowed in (["text", "move"], ["move", "wait"], ["wait"])
    ]
    assert order == ["text", "move", "wait"]
    assert chosen(allowed=["collect"]).action == "wait"
    assert chosen(allowed=["move"], step=0).action == "wait"


def test_an_empty_world_is_walked_through() -> None:
    """Agents go different ways, each the same way again, and all places within a while."""
    ways = {}
    for name in ("Ana", "Bob"):
        here, been = Position(x=5, z=5), []
        for time in range(400):
            action = chosen({"position": here.model_dump()}, simulation_time=time, name=name)
            here = action.target if isinstance(action.target, Position) else here
            been.append(here)
        ways[name] = been
    again = chosen({"position": at(5, 5)}, simulation_time=0).target

    assert ways["Ana"] != ways["Bob"]
    assert ways["Ana"][0] == again
    quarters = {(place.x > 5, place.z > 5) for place in ways["Ana"]}
    assert len(quarters) == 4


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
    """What they choose is what is demanded of a model, letter by letter."""
    taken = known(said(1, "Where?"), new=1) if asked else NOTHING
    sensed = {"position": at(*here), "worldObjects": coins(*there)}
    now = moment(sensed, reach=reach, step=step, simulation_time=time, allowed=allowed)
    choice = by_rules(now, taken)

    assert choice == by_rules(now, taken)
    if choice.action.action != "wait":
        assert permit(wish_of(choice.action), now, SKILLS) == choice.action
    if isinstance(choice.action.target, Position) and step is not None and choice.action.action == "move":
        assert distance(now.sensory_data.position, choice.action.target) <= step + 1e-6
