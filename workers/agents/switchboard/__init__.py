"""Extract facts from turns: a model reads a batch of them, and every fact of its answer is checked.

A model only proposes: each fact must quote the turn that says it. While it does not answer, plain statements are read
without it and the turns wait; without a model configured there is nothing to wait for.
"""

import asyncio
from collections.abc import Sequence

import structlog

from tasklore import Agent
from tasklore.contracts.errors import LlmCutOff, LlmError, LlmMalformed, LlmRefused
from tasklore.contracts.messages import ChatTurn, Fact
from tasklore.memory.documents.kinds import Kinds
from tasklore.workers.agents.switchboard.extraction import extract_facts
from tasklore.workers.agents.switchboard.facts import fact_id, from_statement
from tasklore.workers.agents.switchboard.prompt import LONGEST, own_words, scene_of
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.values import TurnBatch, TurnFacts
from tasklore.workers.statements import read

log = structlog.get_logger(__name__)

#: Characters of an error that stand in the table as the reason.
_LONGEST_REASON = 500
_LONGEST_FAULT = 250

agent = Agent(
    "SwitchboardAgent", description="Hears what people say of themselves in a chat."
)


@agent.listen("turns")
async def extract(batch: TurnBatch, context: ListenContext) -> Sequence[TurnFacts]:
    """Return the facts of the turns of *batch* about their user, in order; none of others' turns or quoted memory."""
    model = context.llm
    if model is None:
        return [await _read_plainly(turn, batch, context.kinds) for turn in batch.turns]
    snapshot = await context.documents.snapshot()
    bodies = {name: document.body for name, document in snapshot.documents.items()}
    scene = await asyncio.to_thread(scene_of, batch, bodies, context.kinds)
    if not scene.turns:
        return ()
    try:
        heard = await extract_facts(context, model, scene)
    except LlmError as error:
        is_unusable = isinstance(error, LlmMalformed | LlmCutOff | LlmRefused)
        log.warning("turns_read_without_a_model", error=type(error).__name__)
        if is_unusable and len(scene.turns) > 1:
            # One of them may be to blame: each is asked about alone.
            raise
        # Plain statements are worth more now than all facts later; the rest is not lost.
        reason = _reason(error)
        asked = {turn.turn_id for turn in scene.turns}
        plain = [
            await _read_plainly(turn, batch, context.kinds, is_final=False)
            for turn in batch.turns
            if turn.turn_id in asked
        ]
        return [TurnFacts(one.turn_id, one.facts, reason) for one in plain]
    return [
        TurnFacts(turn_id, (*batch.known.get(turn_id, ()), *facts))
        for turn_id, facts in heard.items()
    ]


def _reason(error: LlmError) -> str:
    """Return *error* for the list of what waits, with what the model wrote."""
    reason = f"{type(error).__name__}: {error}"
    written = error.answer if isinstance(error, LlmMalformed) else None
    if written:
        reason = f"{reason[:_LONGEST_FAULT]}; it wrote: {written}"
    return " ".join(reason.split())[:_LONGEST_REASON]


async def _read_plainly(
    turn: ChatTurn, batch: TurnBatch, kinds: Kinds, *, is_final: bool = True
) -> TurnFacts:
    """Return the plain statements of *turn* as facts, behind those that are known already.

    What is left of a sentence that was half read is set aside where that *is_final*, and no model will read it.
    """
    known = batch.known.get(turn.turn_id, ())
    if turn.speaker != "person":
        return TurnFacts(turn.turn_id, known)
    text = own_words(turn.text)[:LONGEST]
    statements = await asyncio.to_thread(read, text, today=turn.at.date())
    found: list[Fact] = list(known)
    for statement in statements:
        if not statement.is_read and not is_final:
            continue
        fact = from_statement(fact_id(turn.turn_id, len(found)), statement, kinds)
        if all(
            (fact.text, fact.relation) != (other.text, other.relation)
            for other in found
        ):
            found.append(fact)
    return TurnFacts(turn.turn_id, tuple(found))
