"""A flat world with coins and agents in it: what each senses, and what comes of what they all do at once.

Nothing here asks, waits or draws by chance: a seed, and what was decided, say all that happens. So the same seed and
decisions make the same world again, in whatever order the decisions came in.
"""

import hashlib
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from tasklore.contracts.errors import InvalidInput

#: What an agent may do here.
ALLOWED = ("move", "text", "collect", "wait")
#: How far an agent sees, reaches, and walks in one step, in units of the world.
SIGHT = 5.0
REACH = 1.0
STRIDE = 1.0
#: Seconds of the world that one step takes.
STEP_S = 1.0
#: Agents of one world: each is told the names of all others, and no request names more.
MOST_AGENTS = 500
#: The longest edge of a world.
LARGEST = 1_000
#: What agents are called; further ones of a world get a number.
NAMES = (
    *(
        "Alice",
        "Bob",
        "Carol",
        "Dan",
        "Eve",
        "Frank",
        "Grace",
        "Heidi",
        "Ivan",
        "Judy",
        "Karl",
        "Leo",
        "Mia",
    ),
    *(
        "Nora",
        "Otto",
        "Pia",
        "Quinn",
        "Rosa",
        "Sven",
        "Tess",
        "Uma",
        "Vera",
        "Walt",
        "Xenia",
        "Yuri",
        "Zoe",
    ),
)
#: How much farther a move may go than the stride, for want of decimals.
_ROUNDING = 1e-6


def names(count: int) -> tuple[str, ...]:
    """Return what *count* agents are called."""
    rounds = range(1, count // len(NAMES) + 2)
    return tuple(
        f"{name}{number if number > 1 else ''}" for number in rounds for name in NAMES
    )[: max(0, count)]


class Place(NamedTuple):
    """A place in the world."""

    x: float
    z: float

    def far_from(self, other: "Place") -> float:
        """Return the distance."""
        return math.hypot(self.x - other.x, self.z - other.z)


@dataclass(frozen=True, slots=True)
class Choice:
    """What an agent decided: `target` is a place to walk to or the place of a coin, `to` whom it texts."""

    action: str
    target: Place | None = None
    to: str | None = None
    said: str | None = None
    reasoning: str = ""
    by: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return it for JSON."""
        target = self.target._asdict() if self.target is not None else None
        return {**{name: getattr(self, name) for name in _SAID}, "target": target}


#: What of a choice is told as it is.
_SAID = ("action", "to", "said", "reasoning", "by")

#: What an agent does of whom nothing was heard in time.
WAITS = Choice("wait", reasoning="Nothing was heard of it in time.")


@dataclass(frozen=True, slots=True)
class Deed:
    """What came of a choice; `refused` says why nothing did, `late` that none was made in time."""

    choice: Choice
    refused: str | None = None
    late: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What a world begins with. The same plan begins the same world."""

    seed: int
    names: tuple[str, ...]
    size: int
    coins: int

    def __post_init__(self) -> None:
        if not 1 <= len(set(self.names)) == len(self.names) <= MOST_AGENTS:
            raise InvalidInput(
                f"names are {len(self.names)}; give each of 1 to {MOST_AGENTS} agents one of its own"
            )
        if not 1 <= self.size <= LARGEST:
            raise InvalidInput(f"size is {self.size}; it goes from 1 to {LARGEST}")
        places = (self.size + 1) ** 2
        if not 0 <= self.coins <= places:
            raise InvalidInput(
                f"coins are {self.coins}; a world of size {self.size} has places for 0 to {places}"
            )


@dataclass
class _Body:
    place: Place
    collected: int = 0
    deed: Deed = field(
        default_factory=lambda: Deed(
            Choice("wait", reasoning="The world has just begun.")
        )
    )


class World:
    """Agents and coins, after so many steps."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.step = 0
        chance = random.Random(plan.seed)  # noqa: S311 - the same for everybody who knows the seed
        edge = plan.size + 1
        self._coins = {
            _place(*divmod(spot, edge))
            for spot in chance.sample(range(edge**2), plan.coins)
        }
        self._bodies = {
            name: _Body(
                _place(chance.randint(0, plan.size), chance.randint(0, plan.size))
            )
            for name in plan.names
        }

    @classmethod
    def new(cls, seed: int, names: Sequence[str], size: int, coins: int) -> Self:
        """Return a world at its beginning.

        Raises:
            InvalidInput: there cannot be such a world; the message names the field.
        """
        return cls(Plan(seed, tuple(names), size, coins))

    @property
    def time(self) -> float:
        """Seconds since it began."""
        return self.step * STEP_S

    @property
    def left(self) -> int:
        """How many coins nobody has yet."""
        return len(self._coins)

    @property
    def deeds(self) -> dict[str, Deed]:
        """What came of the last step, by name."""
        return {name: body.deed for name, body in self._bodies.items()}

    def collected(self, name: str) -> int:
        """Return how many coins *name* has."""
        return self._bodies[name].collected

    def place(self, name: str) -> Place:
        """Return where *name* is."""
        return self._bodies[name].place

    def senses(self, name: str) -> dict[str, Any]:
        """Return what *name* senses: where it is, whom and which coins it sees, and what it has."""
        me = self._bodies[name]
        return {
            "position": me.place._asdict(),
            "nearbyAgents": [
                {"name": other, "position": body.place._asdict()}
                for other, body in self._bodies.items()
                if other != name and body.place.far_from(me.place) <= SIGHT
            ],
            "worldObjects": [
                {"type": "coin", "position": coin._asdict()}
                for coin in sorted(self._coins)
                if coin.far_from(me.place) <= SIGHT
            ],
            "collected": {"coin": me.collected} if me.collected else {},
        }

    def moment(self, name: str) -> dict[str, Any]:
        """Return what the world says when it asks *name* for a decision: the parameters of the task `decide`."""
        return {
            "name": name,
            "sensory_data": self.senses(name),
            "simulation_time": self.time,
            "allowed": ALLOWED,
            "agents": self.plan.names,
            "bounds": {
                "low": {"x": 0, "z": 0},
                "high": {"x": self.plan.size, "z": self.plan.size},
            },
            "reach": REACH,
            "step": STRIDE,
        }

    def apply(
        self,
        choices: Mapping[str, Choice | None],
        problems: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, Deed]:
        """Do what was chosen, all at once, and return what came of it; who chose nothing waits.

        Of several who reach for one coin one gets it: the first in an order that seed and step draw. *problems* says by
        name why nothing was chosen, where that is known; nothing else comes of it.
        """
        for name in sorted(self._bodies, key=self._lot):
            body = self._bodies[name]
            choice = choices.get(name)
            refused = self._refusal(body, choice) if choice is not None else None
            waits = replace(WAITS, reasoning=problems.get(name, WAITS.reasoning))
            body.deed = Deed(choice or waits, refused, late=choice is None)
            if choice is None or refused is not None or choice.target is None:
                continue
            if choice.action == "move":
                body.place = choice.target
            elif choice.action == "collect":
                self._coins.remove(choice.target)
                body.collected += 1
        self.step += 1
        return self.deeds

    def digest(self) -> str:
        """Return what tells this world from any other: a hash of all that happened in it, not of who decided it why."""
        bodies = [
            (
                name,
                body.place,
                body.collected,
                body.deed.choice.action,
                body.deed.choice.to,
                body.deed.choice.said,
            )
            for name, body in self._bodies.items()
        ]
        state = json.dumps([self.step, bodies, sorted(self._coins)])
        return hashlib.sha256(state.encode()).hexdigest()[:32]

    def picture(self) -> dict[str, Any]:
        """Return the world as a page shows it."""
        return {
            "step": self.step,
            "time": self.time,
            "size": {"x": self.plan.size, "z": self.plan.size},
            "agents": [_shown(name, body) for name, body in self._bodies.items()],
            "coins": [coin._asdict() for coin in sorted(self._coins)],
            "left": self.left,
        }

    def _refusal(self, body: _Body, choice: Choice) -> str | None:
        """Return why *choice* is not possible in this world, None when it is; the last word is the world's."""
        match choice.action:
            case "wait":
                return None
            case "text":
                return (
                    None
                    if choice.to in self._bodies
                    else f"there is nobody called {choice.to!r}"
                )
            case "move" if choice.target is not None:
                return self._no_way(body.place, choice.target)
            case "collect" if choice.target is not None:
                if choice.target not in self._coins:
                    return "there is no coin any more"
                return (
                    None
                    if body.place.far_from(choice.target) <= REACH + _ROUNDING
                    else "it is out of reach"
                )
        return f"nobody can {choice.action!r} like that"

    def _no_way(self, here: Place, there: Place) -> str | None:
        if not all(0 <= edge <= self.plan.size for edge in there):
            return "that is outside the world"
        return (
            None
            if here.far_from(there) <= STRIDE + _ROUNDING
            else "that is too far for one step"
        )

    def _lot(self, name: str) -> bytes:
        return hashlib.blake2b(
            f"{self.plan.seed} {self.step} {name}".encode(), digest_size=8
        ).digest()


def _place(x: int, z: int) -> Place:
    # Floats from the beginning: a place reads the same whether it was drawn or decided.
    return Place(float(x), float(z))


def _shown(name: str, body: _Body) -> dict[str, Any]:
    return {
        "name": name,
        **body.place._asdict(),
        "collected": {"coin": body.collected},
        **body.deed.choice.as_data(),
        "refused": body.deed.refused,
        "late": body.deed.late,
    }
