"""Find what a response tells about the story's world, and who of its characters knows it."""

from collections.abc import Iterator

from contracts.analysis.background import Knowledge, KnownFact
from workers import Agent, Context
from workers.agents.story.blocks import plain_prose
from workers.agents.story.names import fold
from workers.agents.story.parts import (
    LONGEST_NAME,
    Fault,
    Finding,
    Part,
    Text,
    Texts,
    enroll,
    length_faults,
    number_faults,
    one_of,
    person_faults,
    stands_in,
)
from workers.agents.story.prose import one_line
from workers.agents.story.seen import Seen, Turn
from workers.agents.story.sharing import analyse as analyse_part
from workers.answers import Answer

#: Facts of one response, and characters of one.
MOST_FACTS, LONGEST_FACT = 8, 160

agent = Agent("StoryKnowledgeAgent", description="Finds what a response of a story tells about its world.")


class FoundFact(Finding):
    """One fact as a model words it."""

    category: Text = one_of("character", "location", "object", "setting", "event", "other")
    subject: Text = ""
    fact: Text = ""
    confidence: Text = one_of("high", "medium", "low")
    known_by: Texts = ()


class FoundFacts(Answer):
    """What a model has learned from a response."""

    reasoning: Text
    facts: tuple[FoundFact, ...] = ()


class KnowledgePart(Part[FoundFacts, Knowledge]):
    """New knowledge."""

    section = "knowledge"
    answer = FoundFacts
    needs = ("knowledge",)
    blocks = ("names", "known", "response")
    limits = {"most": MOST_FACTS, "longest": LONGEST_FACT}  # noqa: RUF012 - a class constant

    def faults(self, finding: Finding, seen: Seen) -> Iterator[Fault]:
        """Yield a subject that is none, numbers that were not told, and persons that are none."""
        if not isinstance(finding, FoundFact):
            return
        subject = finding.subject.strip()
        yield from length_faults("subject", subject, LONGEST_NAME)
        if subject and seen.handles.owner(subject) is None:
            told = (plain_prose(seen.response.text), *(fact.subject for fact in seen.knowledge))
            if not any(stands_in(subject, text) for text in told):
                yield Fault("subject", "must be a name that is given, or words of the response")
        yield from length_faults("fact", finding.fact, LONGEST_FACT)
        yield from number_faults("fact", finding.fact, seen.response.text)
        for name in finding.known_by:
            yield from person_faults("known_by", name, seen)

    def reduce(self, seen: Seen, answer: FoundFacts | None) -> Knowledge:
        """Take what is not known yet, each once."""
        known = {(fold(fact.subject), _bare(fact.fact)) for fact in seen.knowledge}
        facts: dict[tuple[str, str], KnownFact] = {}
        for one in answer.facts if answer is not None else ():
            fact = _fact(one, seen)
            what = fold(fact.subject), _bare(fact.fact)
            if what not in known:
                facts.setdefault(what, fact)
        return Knowledge(facts=tuple(facts.values())[:MOST_FACTS])


PART = enroll(KnowledgePart())


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> Knowledge:
    """Return at most eight facts."""
    return await analyse_part(PART, context)


def _fact(found: FoundFact, seen: Seen) -> KnownFact:
    known_by = tuple(dict.fromkeys(seen.owner_of(name) for name in found.known_by))
    told: dict[str, object] = {
        "cat": found.category,
        "subj": seen.owner_of(" ".join(found.subject.split())),
        "fact": one_line(found.fact, LONGEST_FACT),
        "conf": found.confidence,
        "src": seen.response.source,
    }
    return KnownFact.model_validate(told | ({"known": known_by} if known_by else {}))


def _bare(fact: str) -> str:
    return fold(fact).rstrip(" .")
