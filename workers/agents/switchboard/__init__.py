"""Hear what a turn says of the person who said it: rules first, a model for what they cannot read.

A model only proposes: each fact must rest on words that stand in the turn, as they stand there. While it does not
answer, what the rules read is published, and the turn waits for it. Without a model there is nothing to wait for: what
the rules cannot read, mere chat for the most part, is not learned.
"""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import date

import structlog

from contracts.errors import LlmCutOff, LlmError, LlmMalformed, LlmRefused
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
#: Runs of one turn after which no further answer is waited for that can be used: the model has had its say.
MOST_RUNS = 3
#: Characters of an error that stand in the table as the reason.
_LONGEST_REASON = 500

agent = Agent("SwitchboardAgent", description="Hears what people say of themselves in a chat.")


@agent.listen("turns")
async def extract(turn: ChatTurn, context: ListenContext) -> Sequence[Fact]:
    """Return what *turn* says of its user, in order; nothing of what others say, or of memory that is quoted back."""
    if turn.speaker != "person" or turn.user_id is None:
        return ()
    text = own_words(turn.text)[:LONGEST]
    today = turn.at.date()
    reading = await asyncio.to_thread(_read, text, today)
    found = [*context.known_facts, *_new_facts(turn, reading, context.known_facts)]
    if reading.is_whole or context.llm is None:
        return found
    try:
        return [*found, *await asked_facts(context, turn, text, found)]
    except LlmError as error:
        is_final = isinstance(error, LlmRefused) or (_is_unusable(error) and context.attempt >= MOST_RUNS)
        log.warning("turn_read_by_rules_alone", error=type(error).__name__, is_final=is_final)
        if not is_final:
            # What the rules are sure of is worth more now than everything later; the rest is not lost.
            context.wait_for_model(f"{type(error).__name__}: {error}"[:_LONGEST_REASON])
        return found


def _new_facts(turn: ChatTurn, reading: Reading, known: Sequence[Fact]) -> Iterator[Fact]:
    """Yield what was read and is not *known* yet, numbered behind that: the rules may have learned meanwhile."""
    number, texts = len(known), {fact.text for fact in known}
    for statement in reading.statements:
        fact = fact_of(turn.turn_id, number, statement)
        if fact.text not in texts:
            number += 1
            yield fact


def _is_unusable(error: LlmError) -> bool:
    """Tell whether the model has answered, only not so that it helps."""
    return isinstance(error, LlmMalformed | LlmCutOff)


def own_words(text: str) -> str:
    """Return *text* without rendered memory and without lines that quote somebody else (`> ...`)."""
    kept = without_rendered(text)
    return "\n".join(line for line in kept.splitlines() if not line.lstrip().startswith(">"))


def _read(text: str, today: date) -> Reading:
    return read(text, today=today)
