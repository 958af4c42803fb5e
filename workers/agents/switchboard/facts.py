"""Facts for the wire, with ids that a repeat of the turn makes again."""

import hashlib
from collections.abc import Sequence

from tasklore.contracts.messages import Fact, FactRelation
from tasklore.memory.documents.entries import home_of
from tasklore.memory.documents.kinds import Kinds
from tasklore.workers.agents.switchboard.checks import LONGEST_STATEMENT, Checked, Veto
from tasklore.workers.statements import Statement, attitude_of

#: Letters of an id on the wire.
_LONGEST_ID = 64
#: Letters of a model's reasoning that are kept with each fact.
_LONGEST_REASONING = 300
#: Confidence of a fact that was not said but follows from the turn.
_IMPLIED = 0.7
#: Listed in place of a model's own words.
_UNNAMED = "something that could not be checked"
#: Who set a fact aside without a model, and why.
RULES = "rules"
UNREAD = Veto("sentence", "this part is not understood without a model", "unread")
#: The cure where a model could not make a fact of a turn.
_CURE = "say it again in other words, in a conversation or with `tasklore memory tell`"


def fact_id(turn_id: str, number: int) -> str:
    """Return the id of the fact of that *number* in a turn: the same for every reading of it."""
    plain = f"{turn_id}-{number}"
    if len(plain) <= _LONGEST_ID:
        return plain
    return f"{hashlib.blake2b(turn_id.encode(), digest_size=16).hexdigest()}-{number}"


def from_statement(identity: str, statement: Statement, kinds: Kinds) -> Fact:
    """Return a statement that was read without a model as a fact; one that could not be read is set aside."""
    if not statement.is_read:
        aside = set_aside(identity, statement.text, [UNREAD], RULES)
        return aside.model_copy(update={"evidence": statement.evidence})
    return Fact(
        fact_id=identity,
        text=statement.text,
        tags=_tags_of(statement.category, kinds),
        reasoning="read without a model",
        category=statement.category,
        value=statement.value,
        relation=_relation_of(statement, kinds),
        durability=statement.durability,
        expiry=statement.expiry,
        polarity=statement.polarity,
        evidence=statement.evidence,
    )


def _relation_of(statement: Statement, kinds: Kinds) -> FactRelation:
    """Return the relation of *statement*: what cannot hold beside another one says that it takes its place."""
    place = home_of(statement.category, None, kinds)
    if statement.relation != "new" or place is None:
        return statement.relation
    is_attitude = place.relation == "other" and attitude_of(statement.value) is not None
    is_exclusive = place.single or place.opposite is not None or is_attitude
    return "updates" if is_exclusive else "new"


def from_model(
    identity: str, checked: Checked, kinds: Kinds, *, reasoning: str, model: str
) -> Fact:
    """Return a checked fact of a model as a fact for the wire."""
    heard = checked.heard
    is_implied = heard.said == "implied"
    return Fact.model_validate(
        {
            "fact_id": identity,
            "text": checked.text,
            "tags": _tags_of(heard.category, kinds),
            "reasoning": reasoning[:_LONGEST_REASONING],
            "confidence": _IMPLIED if is_implied else 1.0,
            "durability": heard.durability,
            "expiry": checked.until,
            "evidence": checked.quotation,
            "inferred": is_implied,
            "extracted_by": model,
            "subject": heard.subject.strip() or None,
            "category": heard.category,
            "value": " ".join(heard.value.split()),
            "relation": heard.relation,
            "related": checked.related,
            "valid_from": checked.valid_from,
        }
    )


def set_aside(identity: str, text: str, faults: Sequence[Veto], model: str) -> Fact:
    """Return a fact that failed its checks: of no confidence, so that it is listed with its reason and never kept."""
    why = "; ".join(map(str, faults))
    return Fact(
        fact_id=identity,
        text=text.strip()[:LONGEST_STATEMENT] or _UNNAMED,
        reasoning=f"{why[:_LONGEST_REASONING]}; {_CURE}",
        confidence=0.0,
        inferred=True,
        extracted_by=model,
    )


def _tags_of(category: str, kinds: Kinds) -> tuple[str, ...]:
    place = home_of(category, None, kinds)
    kind = kinds.get(place.resource_id) if place is not None else None
    return kind.tags if kind is not None else ()
