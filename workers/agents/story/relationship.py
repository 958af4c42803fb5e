"""Find traits that characters show each other; tastes and a table say how much each counts, never a model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from tasklore import Agent
from tasklore.contracts.analysis.background import Interaction, Relationships
from tasklore.contracts.analysis.stories import Relations, Tastes
from tasklore.memory.stories.arithmetic import plain, points_for
from tasklore.workers.agents.story.checks import (
    LONGEST_NAME,
    FindingFault,
    check_length,
    check_person,
)
from tasklore.workers.agents.story.names import Handles
from tasklore.workers.agents.story.parts import Finding, Part, Text, one_of
from tasklore.workers.agents.story.question import serve
from tasklore.workers.agents.story.view import StoryView
from tasklore.workers.answers import AnswerSchema

#: Points of a trait for which its receiver has no taste, by degree: two clear ones are a tier's half.
DEGREES: Mapping[str, int] = {"slight": 2, "clear": 5, "strong": 10}


class FoundShow(Finding):
    """A trait that one character showed another, as a model words it."""

    giver: Text = ""
    receiver: Text = ""
    trait: Text = ""
    shown: Text = ""
    direction: Text = one_of("up", "down")
    degree: Text = one_of(*DEGREES)


class FoundShows(AnswerSchema):
    """All traits that a model found."""

    reasoning: Text
    shows: tuple[FoundShow, ...] = ()


class RelationshipPart(Part[FoundShows, Relationships]):
    """Find changes between two characters, one interaction for each pair."""

    section = "relationship"
    answer = FoundShows
    result = Relationships
    needs = ("relations", "scores")
    blocks = ("names", "tastes", "response")

    def faults(self, finding: Finding, view: StoryView) -> Iterator[FindingFault]:
        """Yield faults of the two persons, who must differ."""
        if isinstance(finding, FoundShow):
            yield from check_person("giver", finding.giver, view)
            yield from check_person("receiver", finding.receiver, view)
            yield from check_length("shown", finding.shown, LONGEST_NAME)
            if view.owner_of(finding.giver) == view.owner_of(finding.receiver):
                yield FindingFault("receiver", "must be another one than giver")

    def reduce(self, view: StoryView, answer: FoundShows | None) -> Relationships:
        """Count points, one interaction for each pair."""
        feelings = Feelings(view.relations, view.handles)
        shows = []
        for one in answer.shows if answer is not None else ():
            receiver = view.owner_of(one.receiver)
            shown = " ".join(one.shown.split())
            points = DEGREES[one.degree] * (1 if one.direction == "up" else -1)
            trait = feelings.trait_for(receiver, one.trait) or fold_trait(shown)
            shows.append(
                Show(
                    view.owner_of(one.giver),
                    receiver=receiver,
                    trait=trait,
                    shown=shown,
                    points=points,
                )
            )
        return self.settle(
            Relationships(interactions=tuple(feelings.interactions(shows))), view
        )


agent = serve(
    RelationshipPart(),
    Agent(
        "StoryRelationshipAgent",
        description="Finds what characters show each other in a response of a story.",
    ),
)


@dataclass(frozen=True, slots=True)
class Show:
    """A trait that *giver* showed *receiver*: `trait` is its name, `shown` its look.

    `points`, up or down, count when the receiver has no taste for the trait.
    """

    giver: str
    receiver: str
    trait: str
    shown: str
    points: float = 0


class Feelings:
    """The relations of a story by the full names of its characters."""

    def __init__(self, relations: Relations, handles: Handles) -> None:
        self._tastes = {
            handles.owner(name) or name: tastes
            for name, tastes in relations.tastes.items()
        }
        bonds = [
            {handles.owner(name) or name: name for name in bond.characters}
            for bond in relations.bonds
        ]
        self._pairs = {frozenset(bond): bond for bond in bonds}
        self._called = {handles.owner(name) or name: name for name in relations.tastes}
        for bond in reversed(bonds):
            self._called |= bond

    def trait_for(self, receiver: str, trait: str) -> str | None:
        """Return the trait, as declared, that *receiver* has a taste for and that *trait* means, else None."""
        tastes = self._tastes.get(receiver, Tastes())
        return next(
            (
                one
                for one in (*tastes.likes, *tastes.dislikes)
                if fold_trait(one) == fold_trait(trait)
            ),
            None,
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
            counted = [
                (show, *worth)
                for show in shown.values()
                if (worth := self._worth(show))[0]
            ]
            if not counted:
                continue
            two = counted[0][0].giver, counted[0][0].receiver
            # The names that the story's files use, in the order of their bond.
            names = self._pairs.get(frozenset(two)) or {
                name: self._called.get(name, name) for name in two
            }
            triggers = [
                f"{names[show.giver]} {show.shown} "
                f"({names[show.receiver]} {f'{verb}: {show.trait} ' if verb else ''}{plain(points):+})"
                for show, points, verb in counted
            ]
            yield Interaction(
                characters=tuple(names.values()),
                change=plain(fsum(points for _, points, _ in counted)),
                trigger="; ".join(triggers),
            )

    def _worth(self, show: Show) -> tuple[float, str]:
        """Return the points of *show*, and "likes" or "dislikes" when its receiver has a taste for the trait."""
        if self.trait_for(show.receiver, show.trait) is None:
            return show.points, ""
        points = points_for(
            show.trait, show.receiver, {show.receiver: self._tastes[show.receiver]}
        )
        return points, "likes" if points > 0 else "dislikes"


def fold_trait(trait: str) -> str:
    """Return *trait* as it is compared: case and how its words are joined make no difference."""
    return " ".join(trait.casefold().replace("_", " ").replace("-", " ").split())
