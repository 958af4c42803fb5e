"""What a model's wishes must withstand before the arbiter weighs them: the words of the fact have to bear them out.

A model knows what words mean and we do not; so it may choose *which* items a fact is about. *That* the fact takes
something back, contradicts it or clears a list has to stand in the fact, and how much goes with it is bounded. What the
taxonomy knows better, the model cannot say.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from memory.documents.items import METADATA, leaf_values
from memory.documents.paths import Path, lookup
from workers.agents.memory_worker.case import Case, Refused, Wish
from workers.agents.memory_worker.grounds import Grounds
from workers.agents.memory_worker.wording import (
    content_of,
    is_in_order,
    keeps_negation,
    negations_in,
    says_something,
    text_of,
    topics_of,
    unsupported,
    words_of,
)
from workers.statements.normal import may_merge, normal
from workers.statements.taxonomy import Taxonomy

#: Items that a fact may delete on a model's word alone: "no more dairy" is about a handful, more is a misreading.
MAX_TAKEN_BACK = 10
#: The same for items of which not even a word ties them to the fact.
MAX_UNLINKED = 3
#: Items of a list from which on emptying it needs a fact that says so.
WHOLE_LIST = 3
#: Characters by which an item may be longer than the words that it is made of: what joins them.
_JOINTS = 40

#: Relations whose places say that somebody wants something, or does it; and those that say that they do not.
_WANTED = frozenset(("like", "interest", "daily", "timing_rule"))
_LIKED = frozenset(("like", "interest"))
_UNWANTED = frozenset(("dislike", "avoid", "allergy"))
#: The end of one sentence and the beginning of another; "Dr. Weber" is none.
_SENTENCES = re.compile(r"\w{4,}\W?[.!?;]\W*\s+\w")
_JOINING = re.compile(r"\s*(?:\band\b|&)\s*", re.IGNORECASE)

Spot = tuple[str, Path]


@dataclass(frozen=True, slots=True)
class Shown:
    """What the editor was shown, by document and path: items, and lists that it may add to."""

    items: frozenset[Spot]
    lists: frozenset[Spot]


def scrutinise(case: Case, grounds: Grounds, wishes: Sequence[Wish], shown: Shown, taxonomy: Taxonomy) -> None:
    """Let *wishes* pass that the fact bears out.

    Raises:
        Refused: one is not borne out, or what is to be deleted is more than the fact says.
    """
    scrutiny = _Scrutiny(case, grounds, shown, taxonomy, tuple(wishes))
    for wish in wishes:
        scrutiny.check(wish)
    scrutiny.check_extent([wish for wish in wishes if wish.operation == "delete"])


@dataclass(frozen=True)
class _Scrutiny:
    """One fact, what it entitles to, and what was shown for it."""

    case: Case
    grounds: Grounds
    shown: Shown
    taxonomy: Taxonomy
    wishes: tuple[Wish, ...]

    def check(self, wish: Wish) -> None:
        """Refuse *wish* when the fact does not bear it out, whatever else is wished for."""
        spot = (wish.resource_id, wish.path)
        if wish.path.steps[:1] == (METADATA,):
            raise Refused("protected", f"{str(wish.path)!r} is not for edits")
        if spot not in (self.shown.lists if wish.operation == "insert" else self.shown.items):
            raise Refused("path", f"{str(wish.path)!r} of {wish.resource_id!r} was not shown")
        if wish.operation == "insert":
            self._check_new(wish)
        elif wish.operation == "update":
            self._check_changed(wish)
        else:
            self._check_deleted(wish)

    def check_extent(self, deletes: Sequence[Wish]) -> None:
        """Refuse to delete a whole list, or many items, that nothing but the model's word ties to the fact."""
        if self.grounds.clears:
            self._check_cleared({wish.resource_id for wish in deletes})
            return
        unproven = [wish for wish in deletes if not self._is_proven(self._kept(wish))]
        loose = [wish for wish in unproven if not self._is_linked(self._kept(wish))]
        most_loose = MAX_TAKEN_BACK if self.grounds.diets else MAX_UNLINKED
        if len(unproven) > MAX_TAKEN_BACK or len(loose) > most_loose:
            raise Refused("sweep", f"{len(unproven)} items are to go, and the fact is about few")
        for (resource_id, path), count in Counter((wish.resource_id, wish.path.parent) for wish in unproven).items():
            held = lookup(self.case.body(resource_id), path)
            if isinstance(held, list) and len(held) >= WHOLE_LIST and count == len(held):
                raise Refused("sweep", f"all of {str(path)!r} is to go, and the fact does not say so")

    def _check_new(self, wish: Wish) -> None:
        told, relation = self.case.pending.fact.text, self._relation(wish.resource_id, wish.path)
        _check_words(wish.display, told)
        if not is_in_order(wish.display, told):
            raise Refused("evidence", f"{wish.display!r} has the words of the fact in another order")
        wanted, unwanted = relation in _LIKED, relation in _UNWANTED
        if (unwanted and self.grounds.only_likes) or (wanted and self.grounds.only_dislikes):
            raise Refused("place", f"{wish.display!r} would say the contrary of the fact at {str(wish.path)!r}")
        if not unwanted and not keeps_negation(wish.display, told):
            raise Refused("evidence", f"{wish.display!r} leaves out a 'not' of the fact, or adds one")
        for resource_id, path in wish.contests:
            self._check_contested(wish, relation, resource_id, path)

    def _check_contested(self, wish: Wish, relation: str, resource_id: str, path: Path) -> None:
        """Refuse to call something the contrary that is neither about the same nor in a contrary list."""
        if (resource_id, path) not in self.shown.items:
            raise Refused("path", f"{str(path)!r} of {resource_id!r} was not shown")
        kept, other = text_of(lookup(self.case.body(resource_id), path)), self._relation(resource_id, path)
        is_contrary = {relation, other} & _LIKED and {relation, other} & _UNWANTED
        if not is_contrary and not self._is_linked(kept):
            raise Refused("mention", f"{kept!r} says nothing against {wish.display!r}")

    def _check_changed(self, wish: Wish) -> None:
        told, kept = self.case.pending.fact.text, self._kept(wish)
        _check_words(wish.display, told, kept)
        if _is_refined(kept, wish.display) or _is_recounted(kept, wish.display):
            return
        # Another thing in its place: as bad as deleting it, and so it needs the same grounds.
        place = self.case.place(wish.resource_id, wish.path)
        is_single = place is not None and place.single
        is_taken_back = self.grounds.takes_back and bool(topics_of(kept) & topics_of(told))
        if not (is_single or is_taken_back) or not keeps_negation(wish.display, told):
            raise Refused("merge", f"{kept!r} is another thing than {wish.display!r}")

    def _check_deleted(self, wish: Wish) -> None:
        kept, relation = self._kept(wish), self._relation(wish.resource_id, wish.path)
        if any(self.taxonomy.excludes(diet, kept) is False for diet in self.grounds.diets):
            raise Refused("mention", f"{kept!r} is allowed by what the fact says")
        is_guarded = self.case.is_guarded(wish.resource_id)
        reaches = self.grounds.reaches
        if reaches and not any(reach.covers(relation, is_guarded=is_guarded) for reach in reaches):
            raise Refused("sweep", f"the fact does not say that {kept!r} is to be cleared")
        if not self._is_meant(kept, relation):
            raise Refused("mention", f"nothing in the fact takes {kept!r} back")

    def _is_meant(self, kept: str, relation: str) -> bool:
        """Tell whether the fact can take *kept* back, or say the contrary of it."""
        grounds, is_linked = self.grounds, self._is_linked(kept)
        if grounds.clears or (grounds.takes_back and is_linked):
            return True
        if grounds.diets:
            return relation in _WANTED
        if grounds.dislikes or grounds.takes_back:
            if is_linked:
                return relation in _WANTED
            # What shares nothing with the fact can be meant when the fact names nothing that is kept.
            is_vague = grounds.only_dislikes and relation in _LIKED and not self._names_some
            return is_vague and not self._is_surely_other(kept)
        return relation in _UNWANTED and is_linked and grounds.likes and self._is_moved(kept)

    def _is_moved(self, kept: str) -> bool:
        """Tell whether what is disliked goes because the same is to be liked."""
        new = [wish for wish in self.wishes if wish.operation == "insert"]
        liked = [wish for wish in new if self._relation(wish.resource_id, wish.path) in _LIKED]
        return any(topics_of(wish.display) & topics_of(kept) for wish in liked)

    def _check_cleared(self, resources: Collection[str]) -> None:
        tags = self.grounds.tags
        strange = set(resources) - set(self.case.routed(tags)) if tags else set()
        if strange:
            raise Refused("sweep", f"the fact does not say that {', '.join(sorted(strange))} is to be cleared")

    @cached_property
    def _names_some(self) -> bool:
        """Whether the fact names something that is kept in the documents in question, found or not."""
        names = {name for name, _ in (*self.shown.items, *self.shown.lists)}
        kept = (value for name in names for _, value in leaf_values(self.case.body(name)))
        return any(self._is_linked(text_of(value)) for value in kept)

    def _relation(self, resource_id: str, path: Path) -> str:
        place = self.case.place(resource_id, path)
        return place.relation if place is not None else "other"

    def _kept(self, wish: Wish) -> str:
        return text_of(lookup(self.case.body(wish.resource_id), wish.path))

    def _is_linked(self, kept: str) -> bool:
        """Tell whether *kept* shares a word with the fact, or is known to be of what the fact is about."""
        if topics_of(kept) & topics_of(self.case.pending.fact.text):
            return True
        return any(self.taxonomy.is_a(kept, about) for about in self.grounds.objects)

    def _is_proven(self, kept: str) -> bool:
        by_diet = any(self.taxonomy.excludes(diet, kept) for diet in self.grounds.diets)
        return by_diet or any(self.taxonomy.is_a(kept, about) for about in self.grounds.objects)

    def _is_surely_other(self, kept: str) -> bool:
        """Tell whether the taxonomy knows that *kept* is nothing of what the fact is about."""
        objects = self.grounds.objects
        return bool(objects) and all(self.taxonomy.is_a(kept, about) is False for about in objects)


def _check_words(display: str, *sources: str) -> None:
    if not says_something(display):
        raise Refused("value", "an item has no words of its own")
    if _SENTENCES.search(display):
        raise Refused("value", "an item is one phrase, and no text of several sentences")
    if len(display) > sum(map(len, sources)) + _JOINTS:
        raise Refused("value", f"an item of {len(display)} characters says more than the fact")
    invented = unsupported(display, *sources)
    if invented:
        raise Refused("evidence", f"{', '.join(sorted(invented))!r} is not in the fact")


def _is_refined(kept: str, display: str) -> bool:
    """Tell whether *display* says all of *kept* and differs in no number, unit, name or negation."""
    return content_of(kept) <= words_of(display) and may_merge(_JOINING.sub(", ", kept), _JOINING.sub(", ", display))


def _is_recounted(kept: str, display: str) -> bool:
    """Tell whether *display* differs from *kept* in numbers alone."""
    one, other = normal(kept), normal(display)
    same_words = _without_numbers(kept) == _without_numbers(display) and negations_in(kept) == negations_in(display)
    return same_words and bool(one.numbers) and one.numbers != other.numbers


def _without_numbers(text: str) -> frozenset[str]:
    return frozenset(token.surface.casefold() for token in normal(text).tokens if token.kind != "number")
