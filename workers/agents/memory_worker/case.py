"""One fact before the arbiter: what is wished for, over which documents, and the words of every verdict."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Literal, get_args

from contracts.edits import Edit
from memory.documents.draft import Draft
from memory.documents.items import Body, make_item
from memory.documents.kinds import Kind, Kinds, Place
from memory.documents.paths import Path
from memory.documents.tags import targets
from workers.listening.values import PendingFact

#: Why a wish is not granted, one word each:
#: path: it names nothing that was shown; protected: it reaches into what the store keeps about a document;
#: place: an item may not stand there; value: an item without text, or one longer than the fact;
#: evidence: words or numbers that the fact does not have; merge: it would put one thing in the place of another;
#: mention: the fact contradicts nothing of what is to be deleted; sweep: more is to be deleted than the fact says;
#: rank: what was only inferred would overrule what was said; guarded: or anything about health;
#: older: what is there was said later; size: more edits than a plan may have; model: there is no usable answer.
Refusal = Literal[
    "path",
    "protected",
    "place",
    "value",
    "evidence",
    "merge",
    "mention",
    "sweep",
    "rank",
    "guarded",
    "older",
    "size",
    "model",
]
REFUSALS: tuple[Refusal, ...] = get_args(Refusal)


@dataclass(frozen=True, slots=True)
class Wish:
    """One edit that rules or a model wish for: of an item, or for an insert of the list that *path* names.

    *display* is the text of a new or changed item; *expiry* and *durability* are the fact's where they are None.
    *contests* are items that a new one contradicts while nobody can say which is right, by document and path.
    """

    operation: Literal["insert", "update", "delete"]
    resource_id: str
    path: Path
    display: str = ""
    expiry: date | None = None
    durability: str | None = None
    contests: tuple[tuple[str, Path], ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be done. `edits` is empty unless something changes; `word` is set when something was refused."""

    outcome: Literal["applied", "known", "rejected", "conflict"]
    reasoning: str
    edits: tuple[Edit, ...] = ()
    word: Refusal | None = None


class Refused(Exception):
    """A wish cannot be granted; *word* is one of REFUSALS. Never leaves this package."""

    def __init__(self, word: Refusal, message: str) -> None:
        super().__init__(message)
        self.word: Refusal = word

    def verdict(self) -> Verdict:
        """Return what becomes of the fact: a conflict when it may not overrule what is kept, else it is rejected."""
        outcome: Literal["conflict", "rejected"] = "conflict" if self.word in ("rank", "guarded") else "rejected"
        return Verdict(outcome, f"{self.word}: {self}", word=self.word)


@dataclass(frozen=True, slots=True)
class Case:
    """A fact, and the user's documents as they are when it is its turn."""

    pending: PendingFact
    draft: Draft
    kinds: Kinds
    today: date

    @property
    def plan_id(self) -> str:
        """The id of the plan for it: that of the fact, so that one that is ruled on again is applied once."""
        return self.pending.fact.fact_id

    @property
    def inferred(self) -> bool:
        """Whether somebody concluded the fact, and the person did not say so."""
        return self.pending.fact.inferred

    @property
    def resources(self) -> tuple[str, ...]:
        """The ids of all documents that the user has."""
        return tuple(self.draft.documents)

    def body(self, resource_id: str) -> Body:
        """Return a document as it is now; whoever decides by it makes the store check that nobody changed it.

        Raises:
            EditRefused: the user has no such document.
        """
        return self.draft.body(resource_id)

    def routed(self, *tags: Iterable[str]) -> tuple[str, ...]:
        """Return the documents that the first of *tags* with any are for; without any, the general one."""
        wanted = next((some for some in map(tuple, tags) if some), ())
        return tuple(name for name in targets(wanted, self.draft, self.kinds) if name in self.draft.documents)

    @property
    def source(self) -> str:
        """What an item says that rests on this fact."""
        return f"{'inferred' if self.inferred else 'stated'}:{self.pending.turn_id}"

    def kind(self, resource_id: str) -> Kind | None:
        """Return the kind of a document, None when nobody described it."""
        return self.kinds.get(resource_id)

    def place(self, resource_id: str, path: Path) -> Place | None:
        """Return the place that *path* is or lies in, None when it is none of a kind."""
        kind = self.kind(resource_id)
        return kind.place_at(path) if kind is not None else None

    def is_guarded(self, resource_id: str) -> bool:
        """Tell whether nothing there may be changed by what was inferred."""
        kind = self.kind(resource_id)
        return kind is not None and kind.guarded

    def new_item(self, display: str, *, expiry: date | None = None, durability: str | None = None) -> Body:
        """Return an item that rests on this fact."""
        fact = self.pending.fact
        return make_item(
            display,
            added=self.today,
            expiry=expiry or fact.expiry,
            confidence=fact.confidence,
            durability=durability or fact.durability,
            source=self.source,
        )


def sentence(parts: Iterable[str]) -> str:
    """Return *parts* that say something, one after the other."""
    return "; ".join(part for part in parts if part)
