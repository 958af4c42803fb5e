"""Statements as facts, with ids that a repeat of the turn makes again."""

import hashlib

from contracts.messages import Fact
from workers.statements.statement import Statement
from workers.statements.wording import statement_text

#: Letters of an id on the wire.
_LONGEST_ID = 64
#: Letters of a fact's text on the wire.
_LONGEST_TEXT = 2_000

_REASONS = {
    "tells": "said of themselves",
    "retracts": "took back what was so before",
    "clears": "asked to have it removed",
}


def fact_of(turn_id: str, number: int, statement: Statement) -> Fact:
    """Return *statement*, the one of that *number* in the turn, as a fact."""
    return Fact(
        fact_id=fact_id(turn_id, number),
        text=statement_text(statement)[:_LONGEST_TEXT],
        tags=statement.tags,
        reasoning=_REASONS[statement.kind],
        durability=statement.durability,
        expiry=statement.expiry,
        polarity=statement.polarity,
        evidence=statement.evidence,
    )


def fact_id(turn_id: str, number: int) -> str:
    """Return the id of the fact of that *number* in a turn: the same for every reading of it."""
    plain = f"{turn_id}-{number}"
    if len(plain) <= _LONGEST_ID:
        return plain
    return f"{hashlib.blake2b(turn_id.encode(), digest_size=16).hexdigest()}-{number}"
