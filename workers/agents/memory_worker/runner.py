"""A batch of facts, each in its turn: rules first, two models where rules do not know, and the arbiter over both."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache

from pydantic import JsonValue

from contracts.errors import EditRefused, LlmError
from memory.documents.draft import Origin, Plan
from workers.agents.memory_worker.case import Case, Refused, Verdict
from workers.agents.memory_worker.grounds import grounds_of
from workers.agents.memory_worker.places import with_missing_places
from workers.agents.memory_worker.proposing import Wanted, is_looked_up, propose_edits
from workers.agents.memory_worker.rules import NeedsModel, decide
from workers.agents.memory_worker.standing import superseding
from workers.agents.memory_worker.witness import demand_deletes_witnessed, demand_witnessed
from workers.listening.context import ListenContext
from workers.listening.fates import is_outage
from workers.listening.values import FactBatch, PendingFact, Ruling
from workers.statements.reading import Reader, Reading, load_reader, read
from workers.statements.taxonomy import Taxonomy

#: What stands in the history for the author of a plan that no model had a part in.
BY_RULES = "rules"
#: Characters of a reason that the history keeps.
_REASON = 4_000


async def edit(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
    """Return a ruling for each fact of *batch*; what it changes is applied to the draft of *context*.

    A fact that follows sees what those before it did. Where no model is, or none gives a usable answer, what the rules
    do not know waits.

    Raises:
        LlmError: the model is away for now, which is no reason to let what was said later go first.
    """
    # Reading the data files takes a tenth of a second or more, once.
    taxonomy, _ = _language() if _language.cache_info().currsize else await asyncio.to_thread(_language)
    desk = _Desk(batch, context, taxonomy)
    rulings = []
    for number in range(len(batch.facts)):
        rulings.append(await desk.rule(number))
        # Rules alone would hold up everybody else in this process for as long as the batch is.
        await asyncio.sleep(0)
    return rulings


@cache
def _language() -> tuple[Taxonomy, Reader]:
    """Return what is known of language."""
    return Taxonomy.load(), load_reader()


class _Desk:
    """One batch at work."""

    def __init__(self, batch: FactBatch, context: ListenContext, taxonomy: Taxonomy) -> None:
        self._facts = batch.facts
        self._context = context
        self._taxonomy = taxonomy
        self._today: date = context.now().date()
        self._readings: dict[int, Reading] = {}

    async def rule(self, number: int) -> Ruling:
        """Return the ruling on the fact of that *number*."""
        pending, case = self._facts[number], self._case(number)
        refused = self._refused(number, case)
        if refused is not None:
            return self._carry_out(pending, refused, BY_RULES, {})
        decided = decide(case, self._reading(number), self._taxonomy)
        if isinstance(decided, Verdict):
            return self._carry_out(pending, self._witnessed(number, case, decided), BY_RULES, {})
        if self._context.llm is None:
            return Ruling(pending.fact.fact_id, "needs_model", decided.reason)
        return await self._ask(number, case, decided)

    def _refused(self, number: int, case: Case) -> Verdict | None:
        """Return the verdict on a fact that is not even looked at; None for any other."""
        told = self._reading(number).statements
        try:
            demand_witnessed(case, told)
        except Refused as refused:
            return refused.verdict()
        newer = superseding(case, told, self._taxonomy)
        if newer is None:
            return None
        return Refused("older", f"superseded by {newer.fact_id}: {newer.text}").verdict()

    def _witnessed(self, number: int, case: Case, verdict: Verdict) -> Verdict:
        """Return *verdict*, unless it takes away what the person's own words do not."""
        try:
            demand_deletes_witnessed(case, self._reading(number).statements, verdict.edits)
        except Refused as refused:
            return refused.verdict()
        return verdict

    async def _ask(self, number: int, case: Case, needed: NeedsModel) -> Ruling:
        """Have the models propose; without a usable answer of theirs the fact waits."""
        pending = self._facts[number]
        grounds = grounds_of(pending.fact, self._reading(number).statements, self._taxonomy)
        wanted = Wanted(pending.fact, needed.resources, needed.owed)
        following = [] if is_looked_up(self._context, wanted) else self._following(number)
        try:
            proposal = await propose_edits(self._context, case, grounds, [wanted, *following], self._taxonomy)
        except LlmError as error:
            if is_outage(error):
                raise
            reason = f"{needed.reason}, and no model answered ({type(error).__name__})"
            return Ruling(pending.fact.fact_id, "needs_model", reason)
        said = {"finder": proposal.finder, "editor": proposal.editor}
        verdict = self._witnessed(number, case, proposal.verdict)
        return self._carry_out(pending, verdict, proposal.model, said)

    def _following(self, number: int) -> list[Wanted]:
        """Return the later facts that, as documents are now, will need the models too: they are looked for at once."""
        later = []
        for other in range(number + 1, len(self._facts)):
            case = self._case(other)
            decided = decide(case, self._reading(other), self._taxonomy)
            if isinstance(decided, NeedsModel):
                later.append(Wanted(self._facts[other].fact, decided.resources))
        return later

    def _reading(self, number: int) -> Reading:
        if number not in self._readings:
            self._readings[number] = read(self._facts[number].fact.text, today=self._today)
        return self._readings[number]

    def _case(self, number: int) -> Case:
        return Case(self._facts[number], self._context.draft, self._context.kinds, self._today)

    def _carry_out(self, pending: PendingFact, verdict: Verdict, by: str, said: Mapping[str, JsonValue]) -> Ruling:
        """Apply what *verdict* says, and return the ruling; the documents' guard has the last word."""
        fact_id = pending.fact.fact_id
        if verdict.word is not None:
            self._context.refused(verdict.word)
        if not verdict.edits:
            outcome = "known" if verdict.outcome == "applied" else verdict.outcome
            return Ruling(fact_id, outcome, verdict.reasoning)
        edits = with_missing_places(verdict.edits, self._context.draft.body)
        plan = Plan(plan_id=fact_id, edits=edits, origin=self._origin(pending, verdict, by, said))
        try:
            applied = self._context.draft.apply(plan)
        except EditRefused as refused:
            return Ruling(fact_id, "rejected", f"{refused.reason}: {refused}")
        if not applied.changes and not applied.known:
            return Ruling(fact_id, "known", verdict.reasoning, plan)
        return Ruling(fact_id, verdict.outcome, verdict.reasoning, plan)

    def _origin(self, pending: PendingFact, verdict: Verdict, by: str, said: Mapping[str, JsonValue]) -> Origin:
        fact = pending.fact
        return Origin(
            by=by,
            at=self._context.now(),
            turn_id=pending.turn_id,
            fact_id=fact.fact_id,
            fact_text=fact.text,
            evidence=fact.evidence,
            reasoning=verdict.reasoning[:_REASON],
            **said,
        )
