"""The arbiter: decide whether a fact may take items away. It guards stakes, and knows nothing of grammar. Pure.

An inferred fact overrules no stated item, and none in a guarded document. Protected items (allergies, conditions,
diets, a name) end by the person's own quoted words alone; the one item of a place, as a home, by no words about
somebody else. Items that were said later stay, and so does what is to be forgotten by words that do not name it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from tasklore.memory.documents.entries import DocumentEntry
from tasklore.memory.episodes.words import signs_of, words_of
from tasklore.workers.agents.memory_worker.case import CHANGING, Case

#: Why a fact may not take something away. rank: it was inferred, and the other was said; guarded: it was inferred, and
#: the other is about health; protected: only the person's own words end that; older: the other was said later;
#: breath: both were said in one turn; unsaid: the fact does not say that anything holds no longer, or asks to forget
#: something that its words do not name.
Refusal = Literal["rank", "guarded", "protected", "older", "breath", "unsaid"]
REFUSALS: tuple[Refusal, ...] = get_args(Refusal)


@dataclass(frozen=True, slots=True)
class JudgedEntries:
    """Entries that may go, and entries that stay though the fact is against them, each with the reason."""

    allowed: tuple[DocumentEntry, ...] = ()
    refused: tuple[tuple[DocumentEntry, Refusal], ...] = ()

    @property
    def later(self) -> tuple[DocumentEntry, ...]:
        """Refused entries that were said after the fact."""
        return tuple(entry for entry, why in self.refused if why == "older")

    @property
    def conflicts(self) -> tuple[DocumentEntry, ...]:
        """Refused entries that contradict the fact and stay beside it."""
        return tuple(entry for entry, why in self.refused if why != "older")

    @property
    def is_protected(self) -> bool:
        """Whether something protected is among what goes."""
        return any(entry.is_protected for entry in self.allowed)


def judge(
    case: Case, targets: Iterable[DocumentEntry], *, is_swept: bool = False
) -> JudgedEntries:
    """Return which of *targets* the fact may take away; *is_swept*: a model found them, and no turn names them."""
    allowed: list[DocumentEntry] = []
    refused: list[tuple[DocumentEntry, Refusal]] = []
    for entry in targets:
        why = _refusal(case, entry, is_swept=is_swept)
        if why is None:
            allowed.append(entry)
        else:
            refused.append((entry, why))
    return JudgedEntries(tuple(allowed), tuple(refused))


def _refusal(case: Case, entry: DocumentEntry, *, is_swept: bool) -> Refusal | None:
    fact = case.pending.fact
    item = entry.item
    kind = case.kinds.get(entry.resource_id)
    if case.is_newer(entry):
        return "older"
    if fact.inferred and kind is not None and kind.guarded:
        return "guarded"
    if fact.inferred and (item is None or not item.is_inferred):
        return "rank"
    if entry.is_protected and not _is_own_word(case, entry, is_swept=is_swept):
        return "protected"
    if fact.relation == "forget" and not _is_named(case, entry):
        return "unsaid"
    if entry.place is not None and entry.place.single and not case.is_mine(entry):
        return "protected"
    if fact.relation not in CHANGING and not is_swept:
        return "unsaid"
    is_taking_its_place = fact.relation in ("updates", "contradicts")
    is_of_one_turn = item is not None and item.source == case.source
    if is_of_one_turn and is_taking_its_place and not case.is_changing(entry):
        return "breath"
    return None


def _is_own_word(case: Case, entry: DocumentEntry, *, is_swept: bool) -> bool:
    """Tell whether the person says of themselves, and is quoted, that *entry* holds no longer."""
    fact = case.pending.fact
    is_first_person = not fact.subject and not entry.subject
    is_said = not fact.inferred and bool(fact.evidence.strip())
    if fact.relation == "forget":
        return is_first_person and is_said and _is_named(case, entry)
    return is_first_person and is_said and not is_swept


def _is_named(case: Case, entry: DocumentEntry) -> bool:
    """Tell whether the quoted words name *entry*, its place or its document: nothing is kept of it but the history.

    "Forget it" and "delete my last order" name nothing that is remembered, whatever a model takes them for.
    """
    kind = case.kinds.get(entry.resource_id)
    topics = (kind.title, *kind.titles, *kind.tags) if kind is not None else ()
    names = words_of(
        " ".join((entry.text, *map(str, entry.path.parent.steps), *topics))
    )
    evidence = case.pending.fact.evidence
    said = signs_of(evidence).union(words_of(evidence))
    return not said.isdisjoint(names)
