"""What it counts when a character shows another something: by the receiver's tastes, or else by how much it is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from contracts.analysis.background import Interaction
from contracts.analysis.stories import Relations, Tastes
from memory.stories.arithmetic import plain, points_for
from workers.agents.story.names import Handles

#: Points of what is shown to somebody who has no taste for it, by how much it is: two clear ones are a tier's half.
DEGREES: Mapping[str, int] = {"slight": 2, "clear": 5, "strong": 10}


@dataclass(frozen=True, slots=True)
class Show:
    """That *giver* showed *receiver* something: `trait` by its name, `shown` by its look.

    `points` is what it counts, up or down, to somebody who has no taste for the trait.
    """

    giver: str
    receiver: str
    trait: str
    shown: str
    points: float = 0


class Feelings:
    """The relations of a story by the full names of its characters."""

    def __init__(self, relations: Relations, handles: Handles) -> None:
        self._tastes = {handles.owner(name) or name: tastes for name, tastes in relations.tastes.items()}
        bonds = [{handles.owner(name) or name: name for name in bond.characters} for bond in relations.bonds]
        self._pairs = {frozenset(bond): bond for bond in bonds}
        self._called = {handles.owner(name) or name: name for name in relations.tastes}
        for bond in reversed(bonds):
            self._called |= bond

    def trait_for(self, receiver: str, said: str) -> str | None:
        """Return the trait that *receiver* has a taste for and that *said* means, None when there is none."""
        tastes = self._tastes.get(receiver, Tastes())
        return next(
            (trait for trait in (*tastes.likes, *tastes.dislikes) if fold_trait(trait) == fold_trait(said)), None
        )

    def interactions(self, shows: Sequence[Show]) -> Iterator[Interaction]:
        """Yield one interaction for each pair between whom something counts.

        Each of the two counts a trait that they are shown once, by their own taste, whatever the other one counts.
        """
        between: dict[frozenset[str], dict[tuple[str, str], Show]] = {}
        for show in shows:
            pair = between.setdefault(frozenset((show.giver, show.receiver)), {})
            pair.setdefault((show.receiver, fold_trait(show.trait)), show)
        for shown in between.values():
            worth = [(show, *found) for show in shown.values() if (found := self._worth(show))[0]]
            if worth:
                called = self._names(worth[0][0].giver, worth[0][0].receiver)
                yield Interaction(
                    characters=tuple(called.values()),
                    change=plain(fsum(points for _, points, _ in worth)),
                    trigger="; ".join(_trigger(show, points, verb, called) for show, points, verb in worth),
                )

    def _worth(self, show: Show) -> tuple[float, str]:
        """Return what *show* counts, and whether its receiver likes or dislikes it; nothing for no taste of theirs."""
        if self.trait_for(show.receiver, show.trait) is None:
            return show.points, ""
        points = points_for(show.trait, show.receiver, {show.receiver: self._tastes[show.receiver]})
        return points, "likes" if points > 0 else "dislikes"

    def _names(self, one: str, other: str) -> dict[str, str]:
        """Return how the story's files call two characters, in the order of their bond, by their full names."""
        bond = self._pairs.get(frozenset((one, other)))
        return bond or {name: self._called.get(name, name) for name in (one, other)}


def fold_trait(trait: str) -> str:
    """Return *trait* as it is compared: case and how its words are joined make no difference."""
    return " ".join(trait.casefold().replace("_", " ").replace("-", " ").split())


def _trigger(show: Show, points: float, verb: str, called: Mapping[str, str]) -> str:
    """Return what was shown by whom, whose like or dislike that meets, and how many points it is."""
    what = f"{called[show.receiver]} {verb}: {show.trait} " if verb else f"{called[show.receiver]} "
    return f"{called[show.giver]} {show.shown} ({what}{plain(points):+})"
