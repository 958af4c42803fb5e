"""A model asked for what the rules could not read; what it proposes is looked up in the turn before it counts."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from contracts.messages import ChatTurn, Fact
from workers.agent_files import load_agent_files
from workers.agents.switchboard.facts import fact_id
from workers.listening.context import ListenContext
from workers.statements.dates import End, load_dates
from workers.statements.normal import normal
from workers.statements.reading import read

#: Facts of one turn that are taken from a model: more is no message of a person about themselves.
MOST_FACTS = 20
#: Letters of a proposed fact: a sentence.
_LONGEST_TEXT = 300
#: Sure enough to be kept; a model that doubts more has concluded it.
_LEAST_CONFIDENCE = 0.3

_BLANKS = re.compile(r"\s+")
_QUOTED = re.compile(r"[\"\u201c\u201e\u00ab][^\"\u201c\u201d\u00bb]*[\"\u201d\u00bb]")
_ABOUT_THE_USER = re.compile(r"(?:the )?user(?:'s)?\b", re.IGNORECASE)


class ProposedFact(BaseModel):
    """One fact as a model words it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")

    text: str
    evidence: str
    tags: tuple[str, ...]
    polarity: Literal["positive", "negative", "neutral"]
    durability: Literal["permanent", "long_term", "short_term", "momentary"]
    confidence: float
    inferred: bool


class Heard(BaseModel):
    """What a model heard in a turn."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")

    reasoning: str
    facts: tuple[ProposedFact, ...]


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
        reason = _fault_of(proposed, text, taken)
        if reason is not None:
            context.refused(reason)
            continue
        taken.append(_fact(proposed, fact_id(turn.turn_id, len(taken)), name, heard.reasoning, today))
    for _ in heard.facts[MOST_FACTS:]:
        context.refused("too_many")
    return taken[len(known) :]


def _as_data(text: str) -> str:
    """Return *text* between marks that it cannot hold itself."""
    return f"<turn>\n{text.replace('<', '(').replace('>', ')')}\n</turn>"


def _fault_of(proposed: ProposedFact, text: str, taken: Sequence[Fact]) -> str | None:
    """Return why *proposed* cannot be a fact of the turn, None when it can; a word that labels a metric."""
    evidence = _plain(proposed.evidence)
    if not _ABOUT_THE_USER.match(proposed.text) or not 0 < len(proposed.text) <= _LONGEST_TEXT:
        return "shape"
    if not evidence or evidence not in _plain(text):
        return "evidence"
    if evidence not in _plain(_QUOTED.sub(" ", text)):
        return "quoted"
    if "?" in proposed.text or _is_asked(evidence, text):
        return "question"
    if not normal(proposed.text).numbers <= normal(proposed.evidence).numbers:
        return "number"
    if not _LEAST_CONFIDENCE <= proposed.confidence <= 1:
        return "confidence"
    if any(_overlaps(evidence, _plain(fact.evidence)) for fact in taken if fact.extracted_by == "rules"):
        return "known"
    if any(_plain(fact.text) == _plain(proposed.text) for fact in taken):
        return "known"
    return None


def _is_asked(evidence: str, text: str) -> bool:
    """Tell whether the sentence with *evidence* in it is a question."""
    rest = _plain(text).partition(evidence)[2]
    end = re.search(r"[.!?\n]", rest)
    return evidence.endswith("?") or (end is not None and end[0] == "?")


def _overlaps(one: str, other: str) -> bool:
    return bool(one and other) and (one in other or other in one)


def _plain(text: str) -> str:
    return _BLANKS.sub(" ", text).strip().casefold()


def _fact(proposed: ProposedFact, identity: str, model: str, reasoning: str, today: date) -> Fact:
    """Return *proposed* as a fact; when it ends is read in its evidence, whatever the model may think."""
    end = next(_ends(proposed.evidence, today), None)
    statements = read(proposed.text, today=today).statements
    tags = statements[0].tags if len(statements) == 1 and statements[0].tags else proposed.tags
    return Fact(
        fact_id=identity,
        text=proposed.text,
        tags=tags,
        reasoning=reasoning[:_LONGEST_TEXT],
        confidence=proposed.confidence,
        durability=proposed.durability if end is None else end.durability,
        expiry=None if end is None else end.expiry,
        polarity=proposed.polarity,
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
