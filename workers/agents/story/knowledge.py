"""Find facts about the story's world in a response, and which characters know them."""

from collections.abc import Iterator

from tasklore import Agent
from tasklore.contracts.analysis.background import Knowledge, KnownFact
from tasklore.workers.agents.story.blocks import plain_prose
from tasklore.workers.agents.story.checks import (
    LONGEST_NAME,
    FindingFault,
    check_length,
    check_numbers,
    check_person,
    stands_in,
)
from tasklore.workers.agents.story.names import fold
from tasklore.workers.agents.story.parts import Finding, Part, Text, Texts, one_of
from tasklore.workers.agents.story.prose import one_line
from tasklore.workers.agents.story.question import serve
from tasklore.workers.agents.story.view import StoryView
from tasklore.workers.answers import AnswerSchema

#: Facts of one response, and characters of one.
MOST_FACTS = 8
LONGEST_FACT = 160


class WordedFact(Finding):
    """One fact as a model words it."""

    category: Text = one_of(
        "character", "location", "object", "setting", "event", "other"
    )
    subject: Text = ""
    fact: Text = ""
    confidence: Text = one_of("high", "medium", "low")
    known_by: Texts = ()


class FoundFacts(AnswerSchema):
    """All facts that a model finds in a response."""

    reasoning: Text
    facts: tuple[WordedFact, ...] = ()


class KnowledgePart(Part[FoundFacts, Knowledge]):
    """Find at most eight facts."""

    section = "knowledge"
    answer = FoundFacts
    result = Knowledge
    needs = ("knowledge",)
    blocks = ("names", "known", "response")
    limits = {"most": MOST_FACTS, "longest": LONGEST_FACT}  # noqa: RUF012 - a class constant

    def faults(self, finding: Finding, view: StoryView) -> Iterator[FindingFault]:
        """Yield faults of subject, numbers and persons."""
        if not isinstance(finding, WordedFact):
            return
        subject = finding.subject.strip()
        yield from check_length("subject", subject, LONGEST_NAME)
        if subject and view.handles.owner(subject) is None:
            sources = (
                plain_prose(view.response.text),
                *(fact.subject for fact in view.knowledge),
            )
            if not any(stands_in(subject, text) for text in sources):
                yield FindingFault(
                    "subject", "must be a name that is given, or words of the response"
                )
        yield from check_length("fact", finding.fact, LONGEST_FACT)
        yield from check_numbers("fact", finding.fact, view.response.text)
        for name in finding.known_by:
            yield from check_person("known_by", name, view)

    def reduce(self, view: StoryView, answer: FoundFacts | None) -> Knowledge:
        """Take new facts, each once."""
        known = {_key(fact) for fact in view.knowledge}
        facts: dict[tuple[str, str], KnownFact] = {}
        for one in answer.facts if answer is not None else ():
            fields: dict[str, object] = {
                "cat": one.category,
                "subj": view.owner_of(" ".join(one.subject.split())),
                "fact": one_line(one.fact, LONGEST_FACT),
                "conf": one.confidence,
                "src": view.response.source,
            }
            if known_by := tuple(
                dict.fromkeys(view.owner_of(name) for name in one.known_by)
            ):
                fields["known"] = known_by
            fact = KnownFact.model_validate(fields)
            if _key(fact) not in known:
                facts.setdefault(_key(fact), fact)
        return Knowledge(facts=tuple(facts.values())[:MOST_FACTS])


agent = serve(
    KnowledgePart(),
    Agent(
        "StoryKnowledgeAgent",
        description="Finds what a response of a story tells about its world.",
    ),
)


def _key(fact: KnownFact) -> tuple[str, str]:
    return fold(fact.subject), fold(fact.fact).rstrip(" .")
