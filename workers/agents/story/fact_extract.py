"""Condense the files of mentioned entities: at most five facts each, far smaller than the files."""

from collections.abc import Iterator

from tasklore import Agent
from tasklore.contracts.analysis.immediate import FactExtraction
from tasklore.memory.stories.arithmetic import reduction
from tasklore.workers.agents.story.blocks import files_to_condense, plain_line
from tasklore.workers.agents.story.checks import (
    FindingFault,
    check_length,
    check_numbers,
)
from tasklore.workers.agents.story.markdown import lines_of
from tasklore.workers.agents.story.parts import Finding, Part, Text
from tasklore.workers.agents.story.prose import one_line, without_stop
from tasklore.workers.agents.story.question import serve
from tasklore.workers.agents.story.tokens import file_tokens, take_turns
from tasklore.workers.agents.story.view import StoryView
from tasklore.workers.answers import AnswerSchema

#: Facts of one file, and characters of one.
MOST_FACTS = 5
LONGEST_FACT = 120


class CondensedFact(Finding):
    """A fact of an entity's file, in fewer words; the quotation stands in the file."""

    name: Text = ""
    fact: Text = ""


class CondensedFacts(AnswerSchema):
    """The facts that a model takes from files."""

    reasoning: Text
    facts: tuple[CondensedFact, ...] = ()


class FactPart(Part[CondensedFacts, FactExtraction]):
    """Condense the files of tier 2, and count the tokens that saves."""

    section = "fact_extract"
    answer = CondensedFacts
    result = FactExtraction
    needs = ("tier2",)
    blocks = ("files", "response")
    limits = {"most": MOST_FACTS, "longest": LONGEST_FACT}  # noqa: RUF012 - a class constant

    def is_askable(self, view: StoryView) -> bool:
        """Return whether there is a file to condense."""
        return bool(files_to_condense(view))

    def source_of(self, finding: Finding, view: StoryView) -> str:
        """Return the lines of the file that *finding* is of."""
        entity = (
            view.by_name.get(view.owner_of(finding.name))
            if isinstance(finding, CondensedFact)
            else None
        )
        return (
            "" if entity is None else "\n".join(map(plain_line, lines_of(entity.text)))
        )

    def faults(self, finding: Finding, view: StoryView) -> Iterator[FindingFault]:
        """Yield faults of a name without a file, and of a fact that is too long or has a number of its own."""
        if isinstance(finding, CondensedFact):
            entity = view.by_name.get(view.owner_of(finding.name))
            if entity is None:
                yield FindingFault(
                    "name", f"{finding.name[:40]!r} has no file; copy a name of files"
                )
            yield from check_length("fact", finding.fact, LONGEST_FACT)
            yield from check_numbers(
                "fact", finding.fact, entity.text if entity is not None else ""
            )

    def reduce(self, view: StoryView, answer: CondensedFacts | None) -> FactExtraction:
        """Take at most five facts a file, in turns: those chosen, else the file's first lines, which introduce it."""
        files = files_to_condense(view)
        found = dict[str, list[str]]()
        for entity in files:
            chosen = (
                [
                    one.fact
                    for one in answer.facts
                    if view.owner_of(one.name) == entity.name
                ]
                if answer
                else []
            )
            facts = (
                without_stop(one_line(fact, LONGEST_FACT))
                for fact in chosen or lines_of(entity.text)
            )
            found[entity.name] = list(dict.fromkeys(facts))[:MOST_FACTS]
        before = sum(map(file_tokens, files))
        kept, after = take_turns(found, str, before)
        return FactExtraction(facts=kept, reduction=reduction(before, after))


agent = serve(
    FactPart(),
    Agent(
        "StoryFactAgent",
        description="Condenses the files of whoever is mentioned to at most five facts each.",
    ),
)
