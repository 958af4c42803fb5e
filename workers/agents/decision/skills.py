"""The actions that an agent can choose, and the checks of each against the world.

A world adds its own: a `Skill` has a line about the action for a model, its check, and its wording in a history.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from tasklore.contracts.observations import Action, AgentTarget, Position, SeenObject
from tasklore.memory.rendering.narration import (
    TellAction,
    distance,
    list_words,
    place,
    short,
)
from tasklore.workers.agents.decision.answer import Wish
from tasklore.workers.agents.decision.moment import Moment

#: Characters of what a model says at once: three sentences.
LONGEST_SAID = 500
#: How far a place may be from the one meant: a model is told two decimals.
NEAR_ENOUGH = 0.01
#: How much longer a step may be for want of decimals.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class ActionRefusal:
    """Why an action is not possible now: a part of a sentence."""

    reason: str


@dataclass(frozen=True, slots=True)
class Skill:
    """One action: `explained` is a line for a model, `checked` holds a proposal against the world.

    A history words it by the function in `told`; None: by its name.
    """

    action: str
    explained: str
    checked: Callable[[Wish, Moment], Action | ActionRefusal]
    told: TellAction | None = None


#: What floating point may add to a move that was cut to one step: it is taken as it is, not cut again.
_ROUNDING = 1e-9


def nearest_objects(moment: Moment, within: float | None = None) -> list[SeenObject]:
    """Return the objects in sight, the nearest first, only those *within* a distance when one is given."""
    here = moment.sensory_data.position
    seen = sorted(
        moment.sensory_data.world_objects,
        key=lambda one: (
            distance(here, one.position),
            one.kind,
            one.position.x,
            one.position.z,
        ),
    )
    return [
        one for one in seen if within is None or distance(here, one.position) <= within
    ]


def towards(here: Position, there: Position, step: float | None) -> Position:
    """Return where a move from *here* to *there* ends when it goes *step* at most; it never goes farther."""
    far = distance(here, there)
    if step is None or far <= step or 0 < far - step <= _ROUNDING < step:
        return there
    if not step:
        return here
    x = (there.x - here.x) * step / far
    z = (there.z - here.z) * step / far
    # Cut, not rounded: a rounded step can be longer than one.
    cut = Position(
        x=round(here.x + math.trunc(x * 100) / 100, 6),
        z=round(here.z + math.trunc(z * 100) / 100, 6),
    )
    return cut if distance(here, cut) > 0 else Position(x=here.x + x, z=here.z + z)


def position_of(wish: Wish) -> Position | None:
    """Return the place that *wish* names, None without a possible one."""
    if wish.x is None or wish.z is None:
        return None
    try:
        return Position(x=wish.x, z=wish.z)
    except ValidationError:
        return None


def text_of(wish: Wish) -> str | None:
    """Return the utterance of *wish* on one line, without controls and not too long; None without one."""
    text = "".join(sign if sign.isprintable() else " " for sign in wish.utterance or "")
    text = " ".join(text.split())
    if len(text) > LONGEST_SAID:
        text = f"{text[: LONGEST_SAID - 1].rstrip()}\u2026"
    return text or None


def _move(wish: Wish, moment: Moment) -> Action | ActionRefusal:
    there = position_of(wish)
    here = moment.sensory_data.position
    if there is None:
        return ActionRefusal("a move needs x and z")
    if moment.bounds is not None and not moment.bounds.hold(there):
        return ActionRefusal(
            f"{place(there)} is outside the world, which goes {moment.bounds}"
        )
    return Action(action="move", target=towards(here, there, moment.step))


def _text(wish: Wish, moment: Moment) -> Action | ActionRefusal:
    utterance = text_of(wish)
    others = moment.others
    if wish.agent not in others:
        return ActionRefusal(
            f"there is nobody called {(wish.agent or '')[:64]!r} to text"
        )
    if not utterance:
        return ActionRefusal(f"there was nothing to say to {wish.agent}")
    return Action(
        action="text", target=AgentTarget(agent=wish.agent), utterance=utterance
    )


def _collect(wish: Wish, moment: Moment) -> Action | ActionRefusal:
    there = position_of(wish)
    near = nearest_objects(moment, moment.reach + _ROUNDING)
    if not near:
        return ActionRefusal(f"no object is within {short(moment.reach)}")
    if wish.x is None and wish.z is None:
        return Action(action="collect", target=near[0].position)
    meant = [
        one
        for one in near
        if there is not None
        and max(abs(one.position.x - there.x), abs(one.position.z - there.z))
        <= NEAR_ENOUGH
    ]
    if not meant:
        where = place(there) if there is not None else "there"
        return ActionRefusal(
            f"no object that is seen at {where} is within {short(moment.reach)}"
        )
    return Action(action="collect", target=meant[0].position)


SKILLS: Sequence[Skill] = (
    Skill("move", "move: go to the place x, z", _move),
    Skill("text", "text: say utterance to agent, short and true", _text),
    Skill(
        "collect",
        "collect: take the object you see at x, z, when it is within reach",
        _collect,
    ),
    Skill("wait", "wait: do nothing", lambda _wish, _moment: Action(action="wait")),
)


def permit(
    wish: Wish, moment: Moment, skills: Sequence[Skill]
) -> Action | ActionRefusal:
    """Return the action of *wish* in the world, or why it is not possible."""
    skill = next((one for one in skills if one.action == wish.action), None)
    if skill is None or wish.action not in moment.allowed:
        return ActionRefusal(
            f"{wish.action[:64]!r} is not allowed; allowed are {list_words(moment.allowed)}"
        )
    return skill.checked(wish, moment)


def wish_of(action: Action, reasoning: str = "") -> Wish:
    """Return *action* as a proposal."""
    there = action.target if isinstance(action.target, Position) else None
    return Wish(
        reasoning=reasoning,
        action=action.action,
        x=there.x if there is not None else None,
        z=there.z if there is not None else None,
        agent=action.target.agent if isinstance(action.target, AgentTarget) else None,
        utterance=action.utterance,
    )
