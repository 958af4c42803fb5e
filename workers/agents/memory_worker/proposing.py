"""The way of a fact past two models: the finder looks where it belongs, the editor proposes, Python decides.

The finder is asked once a document for all facts of a batch that need it. What it found is carried along when plans
change the document meanwhile, and what they brought is shown to the editor too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal, cast

from pydantic import JsonValue

from contracts.messages import Fact
from memory.documents.draft import Draft
from memory.documents.edits import Change
from memory.documents.paths import Path, exists, lookup
from memory.rendering.quoting import plain
from workers.agents.memory_worker.arbiter import arbitrate
from workers.agents.memory_worker.case import Case, Refused, Verdict, Wish
from workers.agents.memory_worker.editor import Proposed, ProposedEdit, propose, target_of
from workers.agents.memory_worker.finder import MAX_FACTS, find
from workers.agents.memory_worker.finding import Finding
from workers.agents.memory_worker.grounds import Grounds
from workers.agents.memory_worker.prompting import together
from workers.agents.memory_worker.scrutiny import Shown, scrutinise
from workers.agents.memory_worker.wording import content_of, words_of
from workers.listening.context import ListenContext
from workers.statements.taxonomy import Taxonomy

#: Refusals that another answer may mend; the others are about the fact.
_MENDABLE = frozenset(("path", "protected", "place", "value", "evidence", "merge", "mention", "sweep", "size"))
#: How often the editor is told what was wrong and asked again.
MAX_SECOND_THOUGHTS = 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """A fact that needs the models, the documents it may be about, and what it brings whatever they say."""

    fact: Fact
    resources: tuple[str, ...]
    owed: tuple[Wish, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """What came of asking: the verdict, whose word it rests on, and what both said, for the history."""

    verdict: Verdict
    model: str
    reasoning: str
    finder: JsonValue
    editor: JsonValue


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found for one fact in one document when *seen* plans were applied, and by whom."""

    finding: Finding
    seen: int
    by: Mapping[str, JsonValue]


def is_looked_up(context: ListenContext, wanted: Wanted) -> bool:
    """Tell whether the finder has been asked about a fact already, in all of its documents."""
    return all(_key(wanted.fact, resource_id) in context.finder_cache for resource_id in wanted.resources)


async def propose_edits(
    context: ListenContext, case: Case, grounds: Grounds, wanted: Sequence[Wanted], taxonomy: Taxonomy
) -> Proposal:
    """Return what is to be done about the first of *wanted*; the others are the facts of its batch that follow.

    Raises:
        LlmError: one of the models gave no answer.
    """
    mine = wanted[0]
    await together(_look(context, resource_id, wanted) for resource_id in mine.resources)
    found = [_found(context, mine.fact, resource_id) for resource_id in mine.resources]
    present = [_present(context.draft, one, name) for one, name in zip(found, mine.resources, strict=True)]
    finding = reduce(Finding.joined, present)
    note = ""
    for thought in range(MAX_SECOND_THOUGHTS + 1):
        asked = await propose(context, mine.fact, finding, note)
        verdict = _judge(case, grounds, finding, mine, asked.value, taxonomy)
        if verdict.word not in _MENDABLE or thought == MAX_SECOND_THOUGHTS:
            break
        note = plain(verdict.reasoning)
    editor: JsonValue = {**asked.by, **asked.value.dump()}
    return Proposal(verdict, asked.model, asked.value.reasoning, finding.dump(found[0].by), editor)


async def _look(context: ListenContext, resource_id: str, wanted: Sequence[Wanted]) -> None:
    """Have the finder look into one document for the first of *wanted*, and for the others not yet looked for."""
    if _key(wanted[0].fact, resource_id) in context.finder_cache:
        return
    facts = [one.fact for one in wanted if resource_id in one.resources]
    facts = [fact for fact in facts if _key(fact, resource_id) not in context.finder_cache][:MAX_FACTS]
    draft = context.draft
    seen = len(draft.applied)
    # Asked for, so that the store notices when somebody else changes it meanwhile.
    draft.body(resource_id)
    findings, by = await find(context, facts, draft.documents[resource_id], context.kinds.get(resource_id))
    for fact, finding in zip(facts, findings, strict=True):
        context.finder_cache[_key(fact, resource_id)] = _Found(finding, seen, by)


def _found(context: ListenContext, fact: Fact, resource_id: str) -> _Found:
    return cast("_Found", context.finder_cache[_key(fact, resource_id)])


def _key(fact: Fact, resource_id: str) -> str:
    return f"{fact.fact_id}:{resource_id}"


def _present(draft: Draft, found: _Found, resource_id: str) -> Finding:
    """Return what was found, as the document is now."""
    since: list[Change] = [
        change for applied in draft.applied[found.seen :] for change in applied.changes.get(resource_id, ())
    ]
    return found.finding.after(resource_id, since, draft.body(resource_id)) if since else found.finding


def _judge(
    case: Case,
    grounds: Grounds,
    finding: Finding,
    mine: Wanted,
    proposed: Proposed,
    taxonomy: Taxonomy,
) -> Verdict:
    """Return the verdict on what the editor proposed, and on the new items that it forgot."""
    if proposed.decision == "reject" and mine.owed:
        return arbitrate(case, mine.owed, proposed.reasoning)
    if proposed.decision == "reject":
        is_known = bool(finding.locations)
        return Verdict("known" if is_known else "rejected", proposed.reasoning or "the model sees no use in it")
    try:
        wishes = _wishes_of(proposed, finding)
        if not wishes and not mine.owed:
            outcome: Literal["conflict", "known"] = "conflict" if proposed.decision == "conflict" else "known"
            return Verdict(outcome, proposed.reasoning or "the model names nothing to change")
        scrutinise(case, grounds, wishes, _shown(case, finding, mine.resources), taxonomy)
    except Refused as refused:
        return refused.verdict()
    forgotten = [wish for wish in mine.owed if not any(_brings(one, wish) for one in wishes)]
    return arbitrate(case, [*wishes, *forgotten], proposed.reasoning)


def _brings(wish: Wish, owed: Wish) -> bool:
    """Tell whether *wish* says at the place of *owed* what that does."""
    if wish.operation == "delete" or wish.resource_id != owed.resource_id:
        return False
    is_there = owed.path == (wish.path if wish.operation == "insert" else wish.path.parent)
    return is_there and content_of(owed.display) <= words_of(wish.display)


def _wishes_of(proposed: Proposed, finding: Finding) -> list[Wish]:
    """Return what the editor wishes for; with the decision `conflict`, new items beside what they contradict.

    Raises:
        Refused: a path names nothing.
    """
    edits = [(edit, _spot(edit, finding)) for edit in proposed.edits if edit.operation != "no_change"]
    if proposed.decision == "conflict":
        contests = tuple(spot for edit, spot in edits if edit.operation != "insert")
        return [
            Wish("insert", *spot, display=edit.display, contests=contests)
            for edit, spot in edits
            if edit.operation == "insert" and contests
        ]
    return [Wish(edit.operation, *spot, display=edit.display) for edit, spot in edits if edit.operation != "no_change"]


def _spot(edit: ProposedEdit, finding: Finding) -> tuple[str, Path]:
    target = target_of(edit.path, finding)
    if target.path is None or target.resource_id is None:
        raise Refused("path", f"{plain(edit.path)!r} names no place that was shown")
    return target.resource_id, target.path


def _shown(case: Case, finding: Finding, resources: Sequence[str]) -> Shown:
    """Return what the editor may name: what was found, and the lists it is in or that its documents keep."""
    lists = set(finding.inserts) | {(place.resource_id, place.path.parent) for place in finding.locations}
    for resource_id in resources:
        kind = case.kind(resource_id)
        lists |= {(resource_id, place.path) for place in kind.places} if kind is not None else set()
    return Shown(
        items=frozenset((place.resource_id, place.path) for place in finding.locations),
        lists=frozenset(spot for spot in lists if _is_list(case, *spot)),
    )


def _is_list(case: Case, resource_id: str, path: Path) -> bool:
    body = case.body(resource_id)
    # Only a place of its kind can be missing here.
    return not exists(body, path) or isinstance(lookup(body, path), list)
