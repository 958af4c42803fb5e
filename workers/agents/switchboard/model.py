"""A model asked for what the rules could not read; what it proposes is looked up in the turn before it counts."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from contracts.messages import ChatTurn, Fact
from workers.agent_files import load_agent_files
from workers.agents.switchboard.answer import Heard, ProposedFact
from workers.agents.switchboard.facts import fact_id
from workers.agents.switchboard.proofs import fault_of, place_of
from workers.agents.switchboard.wording import polarity_of
from workers.listening.context import ListenContext
from workers.statements.dates import End, load_dates
from workers.statements.reading import read_statements

#: Facts of one turn that are taken from a model: more is no message of a person about themselves.
MOST_FACTS = 20
#: Letters of a model's reasoning that are kept with each fact.
_LONGEST_REASONING = 300
#: Tags that one fact may have: it belongs to a document or two.
_MOST_TAGS = 4


async def asked_facts(context: ListenContext, turn: ChatTurn, text: str, known: Sequence[Fact]) -> list[Fact]:
    """Return what a model finds in *text* beside the *known* facts, each looked up in it.

    What is refused is counted by its reason. Numbers of facts go on behind those that are known.

    Raises:
        LlmError: there is no model, or no usable answer.
    """
    files = load_agent_files(Path(__file__).parent, context.agent_files)
    model = context.llm
    if model is None:
        return []
    tags = sorted({tag for kind in context.kinds.by_id.values() for tag in kind.tags})
    system = files.render(tags=tags, known=[fact.text for fact in known])
    heard = await model.ask(files.role, Heard, system=system, user=_as_data(text))
    name, today, taken = model.role(files.role).model, turn.at.date(), list(known)
    for proposed in heard.facts[:MOST_FACTS]:
        reason = fault_of(proposed, text, taken)
        if reason is not None:
            context.refused(reason)
            continue
        start, end = place_of(proposed.evidence, text) or (0, 0)
        said = proposed.model_copy(update={"evidence": text[start:end]})
        taken.append(_fact(said, fact_id(turn.turn_id, len(taken)), name, heard.reasoning, tags, today))
    for _ in heard.facts[MOST_FACTS:]:
        context.refused("too_many")
    return taken[len(known) :]


def _as_data(text: str) -> str:
    """Return *text* between marks that it cannot hold itself."""
    return f"<turn>\n{text.replace('<', '(').replace('>', ')')}\n</turn>"


def _fact(proposed: ProposedFact, identity: str, model: str, reasoning: str, tags: Sequence[str], today: date) -> Fact:
    """Return *proposed* as a fact; when it ends is read in its evidence, whatever the model may think."""
    end = next(_ends(proposed.evidence, today), None)
    statements = read_statements(proposed.text, today=today)
    read_tags = statements[0].tags if len(statements) == 1 else ()
    proposed_tags = tuple(dict.fromkeys(tag for tag in proposed.tags if tag in tags))[:_MOST_TAGS]
    return Fact(
        fact_id=identity,
        text=proposed.text,
        tags=read_tags or proposed_tags,
        reasoning=reasoning[:_LONGEST_REASONING],
        confidence=proposed.confidence,
        durability=proposed.durability if end is None else end.durability,
        expiry=None if end is None else end.expiry,
        polarity=polarity_of(proposed.text, proposed.polarity),
        evidence=proposed.evidence,
        inferred=proposed.inferred,
        extracted_by=model,
    )


def _ends(evidence: str, today: date) -> Iterator[End]:
    """Yield the ends that *evidence* names: "until Friday", "for two weeks"."""
    words, dates = re.findall(r"[\w:/-]+", evidence.casefold()), load_dates()
    for length in range(1, len(words) + 1):
        end = dates.end_of(words[:length], today)
        if end is not None and end.is_until:
            yield end
