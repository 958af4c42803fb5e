"""One fact over the user's documents when it is its turn, and the entries that it is about."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import cached_property

from tasklore.contracts.messages import Fact
from tasklore.contracts.quantities.times import FoundMoment, find_moments
from tasklore.memory.documents.draft import Draft
from tasklore.memory.documents.entries import (
    DocumentEntry,
    entries_of,
    home_of,
    reference_of,
)
from tasklore.memory.documents.items import Item, slug
from tasklore.memory.documents.kinds import Kinds, Place
from tasklore.memory.documents.tags import targets
from tasklore.memory.episodes.words import signs_of, words_of
from tasklore.workers.listening.values import PendingFact
from tasklore.workers.statements import Attitude, attitude_of

#: Relations by which a fact itself says that something else holds no longer.
CHANGING = frozenset(("updates", "contradicts", "ends", "forget"))
#: Relations of places whose items somebody is for, or against.
_FOR = {"like": True, "interest": True, "dislike": False}
#: The first 48 bits of a UUID of version 7: milliseconds since 1970.
_TIMED = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}(?=-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z)"
)


@dataclass(frozen=True)
class Case:
    """A fact, and the user's documents as they are when it is its turn; *today* is the day on which it is decided."""

    pending: PendingFact
    draft: Draft
    kinds: Kinds
    today: date

    @cached_property
    def day_said(self) -> date:
        """The day on which it was said, never after *today*."""
        said = self.pending.said
        return (
            self.today if said is None else min(self.today, said.astimezone(UTC).date())
        )

    @cached_property
    def home(self) -> Place:
        """The place where it is kept: that of its category; without one, the rest of the first document of its tags.

        A guarded one comes before others: there it is protected.
        """
        place = home_of(
            self.pending.fact.category, self.pending.fact.subject, self.kinds
        )
        if place is not None and place.resource_id in self.draft.documents:
            return place
        routed = [
            self.kinds.get(name)
            for name in targets(self.pending.fact.tags, self.draft, self.kinds)
        ]
        kinds = [
            kind
            for kind in routed
            if kind is not None and kind.resource_id in self.draft.documents
        ]
        if not kinds:
            return self.kinds.by_id[self.kinds.general].rest
        return min(kinds, key=lambda kind: not kind.guarded).rest

    @property
    def display(self) -> str:
        """The text of the item that it would be; a word begins with a capital letter.

        Of a value without a category it is the whole statement.
        """
        fact = self.pending.fact
        is_placed = home_of(fact.category, fact.subject, self.kinds) is not None
        text = (fact.value if is_placed else "") or fact.text
        return text[:1].upper() + text[1:] if text[:2].islower() else text

    @property
    def category(self) -> str:
        """The path of its category; without one, that of its home."""
        return self.pending.fact.category or str(self.home.path)

    @property
    def is_single(self) -> bool:
        """Whether there is one item of its category at a time, of one subject."""
        own = home_of(self.pending.fact.category, None, self.kinds)
        return (own or self.home).single

    @property
    def source(self) -> str:
        """The source of an item that rests on this fact."""
        return f"{'inferred' if self.pending.fact.inferred else 'stated'}:{self.pending.turn_id}"

    def entries(self, resources: Iterable[str] | None = None) -> list[DocumentEntry]:
        """Return the entries of *resources*, None for all documents; the store checks that they did not change."""
        names = self.draft.documents if resources is None else resources
        return [
            entry
            for name in names
            for entry in entries_of(name, self.draft.body(name), self.kinds)
        ]

    def live(self, resources: Iterable[str] | None = None) -> list[DocumentEntry]:
        """Return those of `entries` that hold, or will."""
        return [entry for entry in self.entries(resources) if entry.is_live(self.today)]

    def is_mine(self, entry: DocumentEntry) -> bool:
        """Tell whether *entry* is about the same one as the fact."""
        return entry.subject.casefold() == (self.pending.fact.subject or "").casefold()

    def is_newer(self, entry: DocumentEntry) -> bool:
        """Tell whether *entry* was said after the fact: by its day, or by the ids of their turns."""
        item = entry.item
        if item is None:
            return False
        mine = self.pending.turn_id
        other = item.source.partition(":")[2]
        if other == mine:
            return False
        if item.added is not None and item.added != self.day_said:
            return item.added > self.day_said
        if any(later.turn_id == other for later in self.pending.later):
            return True
        both = _TIMED.match(other), _TIMED.match(mine)
        return both[0] is not None and both[1] is not None and both[0][0] > both[1][0]

    def twin(self) -> DocumentEntry | None:
        """Return the item that says the same already: one that the fact names as the same, or at the same place.

        A current one comes before a past one.
        """
        named = self.find_named() if self.pending.fact.relation == "same" else []
        same = next((entry for entry in named if self._may_be_same(entry)), None)
        if same is not None:
            return same
        found = [
            entry
            for entry in self.entries([self.home.resource_id])
            if entry.place == self.home
            and self.is_mine(entry)
            and entry.category == self.category
            and self._is_of_one_time(entry)
            # What stands in parentheses only adds to it: "Pasta (especially carbonara)".
            and (
                self._is_said_by(entry)
                or is_same(_text_of(entry).partition("(")[0], self.display)
            )
        ]
        return min(found, key=lambda entry: not entry.is_live(self.today), default=None)

    def _may_be_same(self, entry: DocumentEntry) -> bool:
        """Return whether *entry* may say in other words what the fact does: a slip must cost no allergy.

        Where something protected is at stake, both are of one place and *entry* has all words of the fact; of the one
        item of a place, one has all words of the other. Else both are kept. Nothing is the same as its contrary.
        """
        if not self.is_mine(entry) or not self._is_of_one_time(entry):
            return False
        value = self.pending.fact.value
        is_protected = entry.is_protected or self.home.protected
        if not value:
            return True
        if not (is_protected or self.is_single):
            return not _is_contrary(self.home, entry.place)
        mine = set(words_of(value)) - _names_of(self.home)
        theirs = set(words_of(_text_of(entry)))
        is_said = mine <= theirs or (theirs <= mine and not is_protected)
        return is_said and entry.place == self.home

    def is_changing(self, entry: DocumentEntry) -> bool:
        """Return whether the fact says of *entry*, by name, that it holds no longer or otherwise."""
        fact = self.pending.fact
        return fact.relation in CHANGING and entry.reference in fact.related

    def _is_of_one_time(self, entry: DocumentEntry) -> bool:
        """Return whether *entry* may be what the fact says, by its days: an event on another day is another one.

        What has ended by its own words is not what still holds. A fact that names *entry* to change it moves it.
        """
        fact = self.pending.fact
        item = entry.item
        if item is None or self.is_changing(entry):
            return True
        if fact.expiry is None or not entry.is_live(self.today):
            return True
        if self.is_event(entry) and item.expiry is not None:
            return item.expiry == fact.expiry
        return fact.expiry >= self.today

    def _is_said_by(self, entry: DocumentEntry) -> bool:
        """Return whether *entry* says what the fact does: the same words, or the same day and its year too."""
        text = _text_of(entry)
        if is_same(text, self.display):
            return True
        mine = self._whole_day
        theirs = _whole_moment(text, self.today)
        return (
            mine is not None
            and theirs is not None
            and mine.is_relative != theirs.is_relative
            and _days_of(mine) == _days_of(theirs)
        )

    @cached_property
    def _whole_day(self) -> FoundMoment | None:
        """The day that the fact says, and nothing else; it is relative where it does not say of which year."""
        return _whole_moment(self.display, self.today)

    def is_event(self, entry: DocumentEntry) -> bool:
        """Return whether *entry* happens on a day: by its place, or as its text names one of the calendar.

        A day of the week comes again; a name or a home that is dated is none.
        """
        place = entry.place
        if place is None or place.events:
            return place is not None
        moments = find_moments(_text_of(entry), datetime.combine(self.today, time(12)))
        is_dated = any(
            one.has_day and any(map(str.isdigit, one.text)) for one in moments
        )
        return is_dated and not (place.single or place.protected)

    def says_more_than(self, entry: DocumentEntry) -> bool:
        """Return whether the fact has all words of *entry* and more; of what is protected, more might mean less."""
        fact = self.pending.fact
        is_placed = home_of(fact.category, fact.subject, self.kinds) is not None
        theirs = set(words_of(_text_of(entry)))
        if self._says_year_of(entry):
            return True
        return (
            is_placed
            and len(fact.related) <= 1
            and bool(theirs)
            and not entry.is_protected
            and theirs < set(words_of(fact.value))
        )

    def _says_year_of(self, entry: DocumentEntry) -> bool:
        """Return whether the fact says the day of *entry* with its year, which *entry* does not know."""
        day = self._whole_day
        return (
            day is not None
            and not day.is_relative
            and self._is_said_by(entry)
            and not is_same(_text_of(entry), self.display)
        )

    def superseding(self) -> Fact | None:
        """Return a done fact that was said after this one and took back the same statement; None without one."""
        fact = self.pending.fact
        own = reference_of(self.home, self.display)
        for later in (one.fact for one in self.pending.later):
            is_alike = (later.category, later.subject) == (fact.category, fact.subject)
            is_named = own in later.related or (
                is_alike and is_same(later.value, self.display)
            )
            if is_named and later.relation in CHANGING:
                return later
        return None

    def find_named(self) -> list[DocumentEntry]:
        """Return the current entries that the fact names."""
        wanted = self.pending.fact.related
        resources = {reference.partition(":")[0] for reference in wanted} & set(
            self.draft.documents
        )
        found: dict[str, DocumentEntry] = {}
        for entry in sorted(
            self.live(resources) if resources else (),
            key=lambda entry: not self.is_mine(entry),
        ):
            if entry.reference in wanted:
                found.setdefault(entry.reference, entry)
        return [found[reference] for reference in wanted if reference in found]

    def find_displaced(self) -> list[DocumentEntry]:
        """Return entries that cannot hold beside the fact: others at a single place, the same at a contrary one.

        A like that was kept as it was said is contrary to a dislike of the same thing, wherever that stands.
        """
        mine = _attitude(self.home, self.display)
        resources = [self.home.resource_id] if mine is None else None
        return [
            entry
            for entry in self.live(resources)
            if self.is_mine(entry)
            and (
                (mine is not None and _are_at_odds(mine, entry))
                or self._is_displaced(entry)
            )
        ]

    def _is_displaced(self, entry: DocumentEntry) -> bool:
        """Return whether *entry* is another one at a single place of the fact, or the same at a contrary one."""
        if entry.resource_id != self.home.resource_id:
            return False
        if self.is_single and entry.category == self.category:
            return not self._is_said_by(entry)
        return _is_contrary(self.home, entry.place) and is_same(
            _text_of(entry), self.display
        )

    def _may_end(self, entry: DocumentEntry) -> bool:
        """Return whether the fact may end *entry* without naming it; a protected entry with more words stays."""
        fact = self.pending.fact
        plain = _text_of(entry).partition("(")[0]
        return (
            fact.relation != "ends"
            or not entry.is_protected
            or is_same(plain, self.display)
        )

    def find_by_words(self) -> list[DocumentEntry]:
        """Return current entries with every word of the fact's value, in its own category before anywhere else.

        Something protected ends where it has no other words: "not allergic to peanuts" leaves "peanuts and shellfish".

        To forget without a value is to forget all of a category: of `food.likes`, or of `food`.
        """
        fact = self.pending.fact
        words = set(words_of(fact.value))
        wanted = fact.category
        if not words and (fact.relation != "forget" or not wanted):
            return []
        found = [
            entry
            for entry in self.live()
            if self.is_mine(entry)
            and words <= signs_of(entry.text).union(words_of(entry.text))
            and self._may_end(entry)
        ]
        own = [
            entry
            for entry in found
            if entry.category == wanted or entry.category.startswith(f"{wanted}.")
        ]
        if home_of(wanted, fact.subject, self.kinds) is None:
            return own or (found if words else [])
        # "No longer Java" among the tools says nothing of an island.
        return own or [
            entry for entry in found if entry.resource_id == self.home.resource_id
        ]


def is_same(one: str, other: str) -> bool:
    """Tell whether two texts are the same words, whatever their case, accents and number; or the same signs."""
    words = words_of(one)
    return words == words_of(other) and (bool(words) or slug(one) == slug(other))


def _names_of(place: Place) -> set[str]:
    """Return the words that name *place*: "peanut allergy" is "peanuts" among the allergies."""
    names = (place.relation, *map(str, place.path.steps), *place.headings)
    return set(words_of(" ".join(names)))


def _whole_moment(text: str, today: date) -> FoundMoment | None:
    """Return the moment that is all of *text*, None when it says anything else."""
    found = find_moments(text, datetime.combine(today, time(12)))
    return found[0] if len(found) == 1 and found[0].text == text else None


def _days_of(moment: FoundMoment) -> set[tuple[int, int]]:
    """Return the month and the day of each reading of *moment*."""
    return {(reading.month, reading.day) for reading in moment.readings}


def _text_of(entry: DocumentEntry) -> str:
    item: Item | None = entry.item
    return item.display if item is not None else entry.text


def _attitude(place: Place | None, text: str) -> Attitude | None:
    """Return what *text* at *place* is for or against; None where it says neither."""
    if place is None:
        return None
    if place.relation == "other":
        return attitude_of(text)
    is_for = _FOR.get(place.relation)
    return None if is_for is None else Attitude(text, is_for=is_for)


def _are_at_odds(mine: Attitude, entry: DocumentEntry) -> bool:
    theirs = _attitude(entry.place, _text_of(entry))
    return (
        theirs is not None
        and theirs.is_for != mine.is_for
        and is_same(theirs.thing, mine.thing)
    )


def _is_contrary(one: Place, other: Place | None) -> bool:
    if other is None or other == one:
        return False
    return one.opposite == other.relation or other.opposite == one.relation
