"""Find what characters show each other; what that counts, their tastes and a table say, never a model."""

from collections.abc import Iterator

from contracts.analysis.background import Relationships
from workers import Agent, Context
from workers.agents.story.feelings import DEGREES, Feelings, Show, fold_trait
from workers.agents.story.parts import (
    LONGEST_NAME,
    Fault,
    Finding,
    Part,
    Text,
    enroll,
    length_faults,
    one_of,
    person_faults,
)
from workers.agents.story.seen import Seen, Turn
from workers.agents.story.sharing import analyse as analyse_part
from workers.answers import Answer

agent = Agent("StoryRelationshipAgent", description="Finds what characters show each other in a response of a story.")


class FoundShow(Finding):
    """What a model says one character showed another."""

    giver: Text = ""
    receiver: Text = ""
    trait: Text = ""
    shown: Text = ""
    direction: Text = one_of("up", "down")
    degree: Text = one_of(*DEGREES)


class FoundShows(Answer):
    """All that a model saw."""

    reasoning: Text
    shows: tuple[FoundShow, ...] = ()


class RelationshipPart(Part[FoundShows, Relationships]):
    """Changes of relationships."""

    section = "relationship"
    answer = FoundShows
    needs = ("relations", "scores")
    blocks = ("names", "tastes", "response")

    def faults(self, finding: Finding, seen: Seen) -> Iterator[Fault]:
        """Yield persons that are none, and two who are one."""
        if not isinstance(finding, FoundShow):
            return
        yield from person_faults("giver", finding.giver, seen)
        yield from person_faults("receiver", finding.receiver, seen)
        yield from length_faults("shown", finding.shown, LONGEST_NAME)
        if seen.owner_of(finding.giver) == seen.owner_of(finding.receiver):
            yield Fault("receiver", "must be another one than giver")

    def reduce(self, seen: Seen, answer: FoundShows | None) -> Relationships:
        """Count points, one interaction for each pair."""
        feelings = Feelings(seen.relations, seen.handles)
        shows = [] if answer is None else [_show(one, seen, feelings) for one in answer.shows]
        return self.settle(Relationships(interactions=tuple(feelings.interactions(shows))), seen)


PART = enroll(RelationshipPart())


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> Relationships:
    """Find what changed between two characters, one interaction for each pair."""
    return await analyse_part(PART, context)


def _show(found: FoundShow, seen: Seen, feelings: Feelings) -> Show:
    giver, receiver = seen.owner_of(found.giver), seen.owner_of(found.receiver)
    shown = " ".join(found.shown.split())
    points = DEGREES[found.degree] * (1 if found.direction == "up" else -1)
    trait = feelings.trait_for(receiver, found.trait)
    return Show(giver, receiver, trait or fold_trait(shown), shown, points=points)
