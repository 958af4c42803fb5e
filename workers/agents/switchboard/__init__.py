"""Hear what a turn says of the person who said it: rules first, a model for what they cannot read.

A model only proposes: each fact must rest on words that stand in the turn, as they stand there.
"""

import asyncio
from collections.abc import Sequence
from datetime import date

import structlog

from contracts.errors import LlmError
from contracts.messages import ChatTurn, Fact
from memory.rendering.documents import without_rendered
from workers import Agent
from workers.agents.switchboard.facts import fact_of
from workers.agents.switchboard.model import asked_facts
from workers.listening.context import ListenContext
from workers.statements.reading import Reading, read

log = structlog.get_logger(__name__)

#: Characters of a turn that are read: what a request may have. The rest of a longer one is a document, not a statement.
LONGEST = 20_000

agent = Agent("SwitchboardAgent", description="Hears what people say of themselves in a chat.")


@agent.listen("turns")
async def extract(turn: ChatTurn, context: ListenContext) -> Sequence[Fact]:
    """Return what *turn* says of its user, in order; nothing of what others say, or of memory that is quoted back."""
    if turn.speaker != "person" or turn.user_id is None:
        return ()
    text = own_words(turn.text)[:LONGEST]
    today = turn.at.date()
    reading = await asyncio.to_thread(_read, text, today)
    found = [fact_of(turn.turn_id, number, statement) for number, statement in enumerate(reading.statements)]
    if reading.is_whole or context.llm is None:
        return found
    try:
        return [*found, *await asked_facts(context, turn, text, found)]
    except LlmError as error:
        # What the rules are sure of is worth more now than everything later.
        log.warning("turn_read_by_rules_alone", error=type(error).__name__)
        return found


def own_words(text: str) -> str:
    """Return *text* without rendered memory and without lines that quote somebody else (`> ...`)."""
    kept = without_rendered(text)
    return "\n".join(line for line in kept.splitlines() if not line.lstrip().startswith(">"))


def _read(text: str, today: date) -> Reading:
    return read(text, today=today)
