"""Rule on a batch of facts, one after the other: find the entries concerned, have the arbiter judge, edit.

Finding is mechanical: items that a fact names, and those that its kind or its words point to. A model is asked, once
for all facts of the batch, where a fact sweeps over a document or takes back items that no turn names.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

from pydantic import JsonValue

from tasklore.contracts.errors import EditRefused, LlmError
from tasklore.memory.documents.draft import Origin, Plan
from tasklore.memory.documents.entries import DocumentEntry, place_of
from tasklore.memory.documents.review import PROTECTED
from tasklore.workers.agents.memory_worker.arbiter import JudgedEntries, judge
from tasklore.workers.agents.memory_worker.case import CHANGING, Case
from tasklore.workers.agents.memory_worker.editor import (
    PlannedEdits,
    change_for,
    is_too_much,
)
from tasklore.workers.agents.memory_worker.finder import FoundEntries, find
from tasklore.workers.agents.memory_worker.notices import lines_for, lines_for_unread
from tasklore.workers.agents.memory_worker.places import with_missing_places
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.row_outcomes import is_outage
from tasklore.workers.listening.values import FactBatch, PendingFact, Ruling

#: Facts in one question: what a user says in a minute, and few enough to keep apart.
MAX_FACTS = 12
#: Characters of an error in the reason of what waits, and of a reason that the history keeps.
_WORDS = 300
_REASON = 4_000
#: What begins the reason of a plan that took something protected away: `memory audit` flags it for a while.


async def edit(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
    """Return a ruling for each fact of *batch*; its edits are applied to the draft of *context*.

    Each fact sees the edits of those before it.

    Raises:
        LlmError: the model is away for now, which is no reason to let later facts go first.
    """
    run = _BatchRun(batch=batch, context=context)
    rulings = []
    for number, pending in enumerate(batch.facts):
        await run.look(number)
        rulings.append(run.rule(pending))
        # Other work of this process goes on between two facts.
        await asyncio.sleep(0)
    return rulings


@dataclass(kw_only=True)
class _BatchRun:
    """The run of one batch: facts that the finder was asked about, its findings, and why it found nothing."""

    batch: FactBatch
    context: ListenContext
    looked: set[str] = field(default_factory=set)
    found: dict[str, FoundEntries] = field(default_factory=dict)
    unfound: str = ""

    @property
    def today(self) -> date:
        """The day on which all is decided."""
        return self.context.now().date()

    async def look(self, number: int) -> None:
        """Ask the finder's model about fact *number* if it needs that, and about those after it that do, at once.

        Raises:
            LlmError: it is away.
        """
        first = self.batch.facts[number]
        if first.fact.fact_id in self.looked or not _is_asking(self._case(first)):
            return
        if self.context.llm is None:
            self.unfound = "no model is configured that could find what it means"
            return
        asking = [
            case
            for case in map(self._case, self.batch.facts[number:])
            if _is_asking(case)
        ][:MAX_FACTS]
        self.looked |= {case.pending.fact.fact_id for case in asking}
        facts = [case.pending.fact for case in asking]
        entries = asking[0].live(
            sorted({name for case in asking for name in _resources_for(case)})
        )
        if not entries:
            return
        try:
            found = await find(self.context, facts, entries)
        except ExceptionGroup as failed:
            error: BaseException = failed
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            if not isinstance(error, LlmError) or is_outage(error):
                raise error from failed
            words = f"{type(error).__name__}: {error}"[:_WORDS]
            self.unfound = f"the model gave no usable answer ({words})"
            return
        self.found |= {
            fact.fact_id: finding for fact, finding in zip(facts, found, strict=True)
        }
        for finding in found:
            for _ in range(finding.refused):
                self.context.refused("path")

    def rule(self, pending: PendingFact) -> Ruling:
        """Return the ruling on *pending*, over the documents as they are now."""
        fact = pending.fact
        if fact.confidence == 0:
            return Ruling(
                fact_id=fact.fact_id,
                outcome="rejected",
                reasoning=fact.reasoning,
                notices=lines_for_unread(fact),
            )
        if fact.durability == "momentary" and fact.relation not in CHANGING:
            return Ruling(
                fact_id=fact.fact_id,
                outcome="rejected",
                reasoning="momentary: it is over by tomorrow, and stays in what was said",
            )
        case = self._case(pending)
        finding = self.found.get(fact.fact_id, FoundEntries())
        newer = case.superseding()
        if newer is not None:
            return Ruling(
                fact_id=fact.fact_id,
                outcome="rejected",
                reasoning=f"older: superseded by {newer.fact_id}: {newer.text}",
            )
        named = _targets(case, finding)
        swept = _swept(case, finding)
        judged = judge(case, named)
        found = judge(case, swept, is_swept=True)
        # A swept entry that may not go is no conflict: the person said nothing of it. Who wants something forgotten
        # said that, and sees what of it stays.
        stays = found.refused if fact.relation == "forget" else ()
        judged = JudgedEntries(judged.allowed + found.allowed, judged.refused + stays)
        if (
            fact.relation == "forget"
            and _takes_back(case)
            and not named
            and not swept
            and self.unfound
        ):
            return Ruling(
                fact_id=fact.fact_id, outcome="needs_model", reasoning=self.unfound
            )
        change = change_for(
            case, judged, None if fact.relation in ("ends", "forget") else case.twin()
        )
        if is_too_much(change):
            return Ruling(
                fact_id=fact.fact_id,
                outcome="rejected",
                reasoning=f"{len(change.edits)} edits are more than a plan may have",
            )
        for _, why in judged.refused:
            self.context.refused(why)
        return self._carry_out(case, finding, judged, change)

    def _case(self, pending: PendingFact) -> Case:
        return Case(pending, self.context.draft, self.context.kinds, self.today)

    def _carry_out(
        self,
        case: Case,
        finding: FoundEntries,
        judged: JudgedEntries,
        change: PlannedEdits,
    ) -> Ruling:
        """Apply *change*, and return the ruling; the documents' guard has the last word."""
        fact = case.pending.fact
        reasoning = self._reasoning(case, judged, change)
        if not change.edits:
            return Ruling(
                fact_id=fact.fact_id,
                outcome="conflict" if judged.conflicts else "known",
                reasoning=reasoning,
            )
        edits = with_missing_places(change.edits, case.draft.body)
        plan = Plan(
            plan_id=fact.fact_id,
            edits=edits,
            origin=self._origin(
                case, finding=finding, judged=judged, change=change, reasoning=reasoning
            ),
        )
        try:
            applied = case.draft.apply(plan)
        except EditRefused as refused:
            return Ruling(
                fact_id=fact.fact_id,
                outcome="rejected",
                reasoning=f"{refused.reason}: {refused}",
            )
        if not applied.changes and not applied.known:
            return Ruling(
                fact_id=fact.fact_id, outcome="known", reasoning=reasoning, plan=plan
            )
        lines = lines_for(fact, change)
        return Ruling(
            fact_id=fact.fact_id,
            outcome="conflict" if judged.conflicts else "applied",
            reasoning=reasoning,
            plan=plan,
            notices=lines,
        )

    def _reasoning(
        self, case: Case, judged: JudgedEntries, change: PlannedEdits
    ) -> str:
        """Return the reasons of *change*: those of the switchboard, and entries that stay though contradicted."""
        fact = case.pending.fact
        stays = [
            f"{entry.text[:60]!r} stays ({why})" for entry, why in judged.refused[:5]
        ]
        missed = [self.unfound] if self.unfound and _sweeps(case) else []
        nothing = [] if change.edits else ["there is nothing to change"]
        said = "; ".join(
            part for part in (fact.reasoning, *stays, *missed, *nothing) if part
        )
        return f"{PROTECTED if judged.is_protected else ''}{said}"

    def _origin(
        self,
        case: Case,
        finding: FoundEntries,
        judged: JudgedEntries,
        change: PlannedEdits,
        reasoning: str,
    ) -> Origin:
        fact = case.pending.fact
        found = (*judged.allowed, *(entry for entry, _ in judged.refused))
        steps: list[JsonValue] = [step.dump() for step in change.steps[:50]]
        return Origin(
            by=fact.extracted_by or "rules",
            at=self.context.now(),
            turn_id=case.pending.turn_id,
            fact_id=fact.fact_id,
            fact_text=fact.text,
            evidence=fact.evidence,
            reasoning=reasoning[:_REASON],
            finder=finding.dump(found),
            editor={"model": f"relation {fact.relation}", "edits": steps},
        )


def _is_asking(case: Case) -> bool:
    """Return whether only a model can find the entries that the fact is about."""
    if case.superseding() is not None:
        return False
    return _sweeps(case) or (_takes_back(case) and not _targets(case, FoundEntries()))


def _sweeps(case: Case) -> bool:
    """Return whether the item of a new fact may contradict others anywhere in its document."""
    fact = case.pending.fact
    is_new = (
        fact.relation in ("new", "updates", "adds_to", "contradicts")
        and not fact.inferred
        and not fact.subject
    )
    if (
        not is_new
        or not case.home.sweeps
        or fact.confidence == 0
        or fact.durability == "momentary"
    ):
        return False
    twin = case.twin()
    return twin is None or not twin.is_live(case.today)


def _takes_back(case: Case) -> bool:
    """Return whether the fact takes back items that it may mean without their words; not all of a named category."""
    fact = case.pending.fact
    is_all_of_one = fact.relation == "forget" and bool(fact.category) and not fact.value
    return fact.relation in CHANGING and fact.confidence > 0 and not is_all_of_one


def _targets(case: Case, finding: FoundEntries) -> list[DocumentEntry]:
    """Return the entries that the fact is against: by names, kind and words; by a model where it takes back."""
    fact = case.pending.fact
    if fact.relation == "same":
        return []
    entries = case.find_named() if fact.relation in CHANGING else []
    if fact.relation in ("ends", "forget"):
        entries = entries or case.find_by_words()
    elif not (fact.relation == "adds_to" and fact.related):
        entries += case.find_displaced()
    if fact.relation in CHANGING and not entries:
        entries += [
            entry
            for entry in case.live()
            if entry.reference in finding.locations and not _sweeps(case)
        ]
    return list({(entry.resource_id, entry.path): entry for entry in entries}.values())


def _swept(case: Case, finding: FoundEntries) -> list[DocumentEntry]:
    """Return entries that a model found and no turn names."""
    if not finding.locations:
        return []
    fact = case.pending.fact
    known = {entry.reference for entry in _targets(case, finding)}
    return [
        entry
        for entry in case.live()
        if entry.reference in finding.locations
        and entry.reference not in known
        and not (fact.relation == "adds_to" and entry.reference in fact.related)
    ]


def _resources_for(case: Case) -> Sequence[str]:
    """Return the documents that a model is shown for the fact: its own; all where it has no category."""
    fact = case.pending.fact
    if _sweeps(case):
        return [case.home.resource_id]
    is_known = place_of(fact.category, case.kinds) is not None
    return [case.home.resource_id] if is_known else list(case.draft.documents)
