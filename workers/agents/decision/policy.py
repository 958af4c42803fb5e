"""Choose an action without a model: by the first of a few rules that applies.

It depends on nothing but the moment and the history, so that the same world goes the same way again.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tasklore.contracts.conversations import TakenMessages, Utterance
from tasklore.contracts.observations import (
    FARTHEST,
    Action,
    AgentTarget,
    Observation,
    Position,
)
from tasklore.memory.rendering.narration import Narrator, distance, list_words, place
from tasklore.workers.agents.decision.moment import Moment
from tasklore.workers.agents.decision.skills import nearest_objects, towards

#: Objects in sight that are worth a text.
MANY = 3
#: Moments for which an agent is quiet after a text that nobody asked for.
QUIET_FOR = 5
#: Observations that the rules look back upon.
LOOKED_AT = 50
#: Messages before the new ones among which a question may still be open.
_STILL_OPEN = 20
#: Seconds for which an agent walks to the same place when nothing is in sight.
_LEG_S = 20.0
#: Further places that are tried when it is at the first already, and how near that is.
_TRIES = 4
_ARRIVED = 0.5
#: Kinds, and places of each, that a text tells.
_TOLD = 3

_QUESTION = "?\uff1f\u061f\u037e"
_WITHOUT_QUESTIONS = str.maketrans(dict.fromkeys(_QUESTION, ""))


@dataclass(frozen=True, slots=True)
class ChosenAction:
    """An action, and why."""

    action: Action
    reasoning: str


#: Chooses an action without a model.
Policy = Callable[[Moment, TakenMessages], ChosenAction]
_Rule = Callable[[Moment, TakenMessages], ChosenAction | None]


def by_rules(moment: Moment, taken: TakenMessages) -> ChosenAction:
    """Return the choice of the first rule that applies among the allowed actions; waiting when none does.

    It collects an object within reach, answers askers, tells others of many objects, walks to the nearest one, and
    looks around otherwise.
    """
    for action, rule in _RULES:
        choice = rule(moment, taken) if action in moment.allowed else None
        if choice is not None:
            return choice
    return ChosenAction(Action(action="wait"), "Nothing else is to be done.")


def _collect(moment: Moment, _taken: TakenMessages) -> ChosenAction | None:
    near = nearest_objects(moment, moment.reach)
    if not near:
        return None
    action = Action(action="collect", target=near[0].position)
    return ChosenAction(
        action, f"The {near[0].kind} at {place(near[0].position)} is within reach."
    )


def _answer(moment: Moment, taken: TakenMessages) -> ChosenAction | None:
    """Answer the first open question of a known agent: each once, and never with a question."""
    asker = next(_askers(moment, taken), None)
    return _text(
        asker,
        f"I am at {place(moment.sensory_data.position)} and see {_sight(moment)}.",
        "asked",
    )


def _askers(moment: Moment, taken: TakenMessages) -> Iterator[str]:
    """Yield agents with an open question, the first asker first."""
    known = set(moment.others)
    texted = _last_texts(taken.observations)
    past = taken.history.past[-_STILL_OPEN:]
    current = taken.history.current
    for one in past:
        if (
            _is_question(one)
            and one.speaker in known
            and one.time > texted.get(one.speaker, -1.0)
        ):
            yield one.speaker
    for one in current:
        if _is_question(one) and one.speaker in known:
            yield one.speaker


def _tell(moment: Moment, taken: TakenMessages) -> ChosenAction | None:
    """Text about many objects to the agent out of sight that was texted longest ago; not at every moment."""
    if len(moment.sensory_data.world_objects) < MANY or _last_texts(
        taken.observations[-QUIET_FOR:]
    ):
        return None
    seen = {one.name for one in moment.sensory_data.nearby_agents}
    texted = _last_texts(taken.observations)
    away = sorted(
        set(moment.others) - seen, key=lambda name: (texted.get(name, -1.0), name)
    )
    return _text(
        next(iter(away), None), f"I see {_sight(moment)}.", "does not see this"
    )


def _text(to: str | None, utterance: str, why: str) -> ChosenAction | None:
    if to is None:
        return None
    # A name may hold one; two agents that ask back would never end.
    plain = utterance.translate(_WITHOUT_QUESTIONS)
    return ChosenAction(
        Action(action="text", target=AgentTarget(agent=to), utterance=plain),
        f"{to} {why}.",
    )


def _approach(moment: Moment, _taken: TakenMessages) -> ChosenAction | None:
    here = moment.sensory_data.position
    away = next(
        (one for one in nearest_objects(moment) if distance(here, one.position) > 0),
        None,
    )
    if away is None or not moment.can_walk:
        return None
    action = Action(action="move", target=towards(here, away.position, moment.step))
    return ChosenAction(
        action, f"The {away.kind} at {place(away.position)} is the nearest."
    )


def _explore(moment: Moment, _taken: TakenMessages) -> ChosenAction | None:
    here = moment.sensory_data.position
    leg = int(moment.simulation_time // _LEG_S)
    for number in range(_TRIES):
        there = _somewhere(moment, f"{leg} {number}")
        if moment.can_walk and distance(here, there) > _ARRIVED:
            action = Action(action="move", target=towards(here, there, moment.step))
            return ChosenAction(
                action, "Nothing is in sight; something may be elsewhere."
            )
    return None


def _somewhere(moment: Moment, when: str) -> Position:
    """Return a place that this agent, and probably no other, walks to at that time."""
    first = _share(f"x {moment.name} {when}")
    second = _share(f"z {moment.name} {when}")
    if moment.bounds is not None:
        low = moment.bounds.low
        high = moment.bounds.high
        return moment.bounds.nearest(
            round(low.x + first * (high.x - low.x), 2),
            round(low.z + second * (high.z - low.z), 2),
        )
    here = moment.sensory_data.position
    far = max(moment.step or 1.0, 2 * _ARRIVED)
    x, z = (far * 2 * part(first * math.tau) for part in (math.cos, math.sin))
    return Position(x=_on_earth(here.x + x), z=_on_earth(here.z + z))


def _on_earth(coordinate: float) -> float:
    return round(min(max(coordinate, -FARTHEST), FARTHEST), 2)


def _share(seed: str) -> float:
    """Return a number from 0 to 1 that *seed* decides, in every process."""
    return (
        int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=4).digest(), "big")
        / 2**32
    )


def _last_texts(observations: Sequence[Observation]) -> Mapping[str, float]:
    """Return the times of the last texts, by receiver."""
    return {
        one.did.target.agent: one.time
        for one in observations
        if one.did is not None
        and one.did.action == "text"
        and isinstance(one.did.target, AgentTarget)
    }


def _is_question(one: Utterance) -> bool:
    return any(sign in _QUESTION for sign in one.message)


def _sight(moment: Moment) -> str:
    """Return the objects in sight as part of a sentence."""
    objects = Narrator().telling(_TOLD).objects(moment.sensory_data)
    return list_words(objects) or "no objects"


_RULES: Sequence[tuple[str, _Rule]] = (
    ("collect", _collect),
    ("text", _answer),
    ("text", _tell),
    ("move", _approach),
    ("move", _explore),
)
