"""What characters have a taste for, and what showing it to them is worth, by whatever names the story's files use."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum

from contracts.analysis_background import Interaction
from contracts.stories import Entity, Relations, Tastes
from memory.stories.arithmetic import plain, points_for
from workers.agents.story.names import Names

#: What something shown is worth to somebody of whose tastes the story says nothing, by its weight.
POINTS = {"slight": 1.0, "clear": 3.0, "strong": 6.0}


@dataclass(frozen=True, slots=True)
class Show:
    """That *giver* showed *receiver* something: `trait` by its name, `shown` by its look.

    How the receiver takes it, and how much it weighs, counts where the story declares no tastes of theirs.
    """

    giver: str
    receiver: str
    trait: str
    shown: str
    is_welcome: bool = True
    weight: str = "clear"


class Feelings:
    """The relations of a story by the full names of its characters."""

    def __init__(self, relations: Relations, entities: Sequence[Entity]) -> None:
        names = Names(entities)
        self._tastes = {names.owner(name) or name: tastes for name, tastes in relations.tastes.items()}
        bonds = [{names.owner(name) or name: name for name in bond.characters} for bond in relations.bonds]
        self._pairs = {frozenset(bond): bond for bond in bonds}
        self._called = {names.owner(name) or name: name for name in relations.tastes}
        for bond in reversed(bonds):
            self._called |= bond

    def tastes_of(self, character: str) -> Tastes:
        """Return what *character* likes and dislikes."""
        return self._tastes.get(character, Tastes())

    def has_tastes(self, character: str) -> bool:
        """Tell whether the story says what *character* likes or dislikes."""
        tastes = self.tastes_of(character)
        return bool(tastes.likes or tastes.dislikes)

    def trait_for(self, receiver: str, said: str) -> str | None:
        """Return the trait that *receiver* has a taste for and that *said* means, None when there is none."""
        tastes = self.tastes_of(receiver)
        return next((trait for trait in (*tastes.likes, *tastes.dislikes) if folded(trait) == folded(said)), None)

    def interactions(self, shows: Sequence[Show]) -> Iterator[Interaction]:
        """Yield one interaction for each pair between whom something counts.

        Each of the two counts a trait that they are shown once, by their own taste, whatever the other one counts.
        """
        people = dict.fromkeys(name for show in shows for name in (show.giver, show.receiver))
        for pair in combinations(people, 2):
            between: dict[tuple[str, str], Show] = {}
            for show in shows:
                if {show.giver, show.receiver} == {*pair}:
                    between.setdefault((show.receiver, folded(show.trait)), show)
            worth = [(show, points) for show in between.values() if (points := self._points(show))]
            if worth:
                called = self._names(*pair)
                yield Interaction(
                    characters=tuple(called.values()),
                    change=plain(fsum(points for _, points in worth)),
                    trigger="; ".join(self._trigger(show, points, called) for show, points in worth),
                )

    def _points(self, show: Show) -> float:
        if self.has_tastes(show.receiver):
            return points_for(show.trait, show.receiver, {show.receiver: self.tastes_of(show.receiver)})
        return POINTS[show.weight] if show.is_welcome else -POINTS[show.weight]

    def _names(self, one: str, other: str) -> dict[str, str]:
        """Return how the story's files call two characters, in the order of their bond, by their full names."""
        bond = self._pairs.get(frozenset((one, other)))
        return bond or {name: self._called.get(name, name) for name in (one, other)}

    def _trigger(self, show: Show, points: float, called: dict[str, str]) -> str:
        """Return whose like or dislike was met, and how many points that is."""
        verb = "likes" if points > 0 else "dislikes"
        receiver = called[show.receiver]
        return f"{called[show.giver]} {show.shown} ({receiver} {verb}: {show.trait} {plain(points):+})"


def folded(trait: str) -> str:
    """Return *trait* as it is compared: case and how its words are joined make no difference."""
    return " ".join(trait.casefold().replace("_", " ").replace("-", " ").split())
