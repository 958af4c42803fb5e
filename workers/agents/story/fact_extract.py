"""Condense the files of those who are only mentioned: at most five facts each, far smaller than the files."""

from collections.abc import Iterator

from contracts.analysis.immediate import FactExtraction
from contracts.analysis.stories import Entity
from memory.stories.arithmetic import reduction
from workers import Agent, Context
from workers.agents.story.blocks import plain_line
from workers.agents.story.file_lines import lines_of
from workers.agents.story.parts import (
    Fault,
    Finding,
    Part,
    Text,
    enroll,
    length_faults,
    number_faults,
)
from workers.agents.story.prose import one_line, without_stop
from workers.agents.story.seen import Seen, Turn
from workers.agents.story.sharing import analyse as analyse_part
from workers.agents.story.shown import files_to_condense
from workers.agents.story.sizes import file_tokens, take_turns
from workers.answers import Answer

#: Facts of one file, and characters of one.
MOST_FACTS, LONGEST_FACT = 5, 120

agent = Agent("StoryFactAgent", description="Condenses the files of whoever is mentioned to at most five facts each.")


class CondensedFact(Finding):
    """A fact of somebody's file, in fewer words; the quotation stands in the file."""

    name: Text = ""
    fact: Text = ""


class CondensedFacts(Answer):
    """What a model takes from files."""

    reasoning: Text
    facts: tuple[CondensedFact, ...] = ()


class FactPart(Part[CondensedFacts, FactExtraction]):
    """Facts for the next prompt."""

    section = "fact_extract"
    answer = CondensedFacts
    needs = ("tier2",)
    blocks = ("files", "response")
    limits = {"most": MOST_FACTS, "longest": LONGEST_FACT}  # noqa: RUF012 - a class constant

    def is_askable(self, seen: Seen) -> bool:
        """Return whether there is a file to condense."""
        return bool(files_to_condense(seen))

    def text_of(self, finding: Finding, seen: Seen) -> str:
        """Return the lines of the file that *finding* is of."""
        entity = seen.by_name.get(seen.owner_of(finding.name)) if isinstance(finding, CondensedFact) else None
        return "" if entity is None else "\n".join(map(plain_line, lines_of(entity.text)))

    def faults(self, finding: Finding, seen: Seen) -> Iterator[Fault]:
        """Yield names without a file, and a fact that is longer than a line or has a number of its own."""
        if not isinstance(finding, CondensedFact):
            return
        entity = seen.by_name.get(seen.owner_of(finding.name))
        if entity is None:
            yield Fault("name", f"{finding.name[:40]!r} has no file; copy a name of files")
        yield from length_faults("fact", finding.fact, LONGEST_FACT)
        yield from number_faults("fact", finding.fact, entity.text if entity is not None else "")

    def reduce(self, seen: Seen, answer: CondensedFacts | None) -> FactExtraction:
        """Take five facts a file, in turns, as many as make them much smaller than the files."""
        files = files_to_condense(seen)
        found = {entity.name: list(_facts(entity, seen, answer)) for entity in files}
        before = sum(map(file_tokens, files))
        facts, after = take_turns(found, str, before)
        return FactExtraction(facts=facts, reduction=reduction(before, after))


PART = enroll(FactPart())


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> FactExtraction:
    """Return the facts of tier 2, and what condensing its files saved."""
    return await analyse_part(PART, context)


def _facts(entity: Entity, seen: Seen, answer: CondensedFacts | None) -> Iterator[str]:
    """Yield at most five facts: those that were chosen, or else the first lines of the file, which say who it is."""
    chosen = [one for one in answer.facts if seen.owner_of(one.name) == entity.name] if answer is not None else []
    told = [one.fact for one in chosen] or lines_of(entity.text)
    once = dict.fromkeys(without_stop(one_line(fact, LONGEST_FACT)) for fact in told)
    yield from list(once)[:MOST_FACTS]
