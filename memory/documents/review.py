"""What a person should look at in a user's documents: contraries, duplicates, the stale, unread and misplaced.

Nothing is altered here. What counts as the same text is for the caller to say: by default what `plain_form` makes
equal.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from pydantic import JsonValue

from tasklore.memory.documents.decay import is_stale
from tasklore.memory.documents.items import (
    CONFLICT,
    Item,
    is_expired,
    lasting_name,
    leaf_values,
)
from tasklore.memory.documents.kinds import Kinds, Place
from tasklore.memory.documents.paths import Path
from tasklore.memory.documents.storage.history import PlanRecord

#: What the reasoning of a plan begins with that replaced or ended something protected.
PROTECTED = "protected: "
#: For how long such a plan is shown.
_FLAGGED_FOR = timedelta(days=30)
#: Bodies by resource id.
Bodies = Mapping[str, Mapping[str, JsonValue]]
#: What two texts must share to count as one.
TextForm = Callable[[str], Hashable]

# A sign or a separator in a number is part of it: -5 is not 5, and 1.5 is not 15.
_WORDS = re.compile(
    r"(?<!\w)[-+\u2212](?=\d)|\d+(?:[.,:/]\d+)*|[^\W\d_]+|[%\u00b0$\u20ac\u00a3\u00a5+#]"
)


@dataclass(frozen=True, slots=True)
class Spot:
    """One leaf: its document, its path, and its text."""

    resource_id: str
    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class LeafConflict:
    """Leaves that cannot all hold.

    `why` is `opposite` (their places are contrary), `single` (one may be there) or `marked` (who stored them saw it).
    `mark` names the plan that saw it, "" otherwise: its fact is the other side of a lone entry.
    """

    why: str
    spots: tuple[Spot, ...]
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The findings among `leaves` leaves.

    `duplicates` are groups of leaves of one place that say the same, of one time. `stale` have expired, or faded so
    much that they should be asked for again. `never_read` is None when reads are not counted. `orphans` stand in no
    place of their kind, where no rule finds them. `unreadable` have a day that is none, so that it has no effect.
    """

    leaves: int
    conflicts: tuple[LeafConflict, ...]
    duplicates: tuple[tuple[Spot, ...], ...]
    stale: tuple[Spot, ...]
    never_read: tuple[Spot, ...] | None
    orphans: tuple[Spot, ...]
    unreadable: tuple[Spot, ...]

    @property
    def rates(self) -> dict[str, float | None]:
        """Return which share of the leaves each finding is about, 0 to 1; of duplicates, the surplus ones."""
        found = {
            "duplicate": sum(len(group) - 1 for group in self.duplicates),
            "stale": len(self.stale),
            "never_read": None if self.never_read is None else len(self.never_read),
            "conflict": len(
                {
                    (spot.resource_id, spot.path)
                    for conflict in self.conflicts
                    for spot in conflict.spots
                }
            ),
            "orphan": len(self.orphans),
        }
        return {
            name: None if count is None else count / max(1, self.leaves)
            for name, count in found.items()
        }


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One leaf, the place it stands in and its item; both None when there is none."""

    spot: Spot
    value: JsonValue
    item: Item | None
    place: Place | None

    def is_past(self, today: date) -> bool:
        """Whether it ended, and stays as the past."""
        return self.item is not None and self.item.state(today) == "past"

    def is_stale(self, today: date) -> bool:
        """Whether it should be asked for again."""
        return not self.is_past(today) and (
            is_expired(self.value, today) or is_stale(self.value, today)
        )

    @property
    def home(self) -> Path:
        return self.spot.path.parent if self.place is None else self.place.path


def review(
    documents: Bodies,
    kinds: Kinds,
    *,
    today: date,
    reads: Collection[tuple[str, str]] | None = None,
    text_form: TextForm | None = None,
) -> Review:
    """Return what there is to look at in *documents* on *today*.

    *reads* are the leaves that were shown to a person, by resource id and `lasting_name`; None when that is not known.
    """
    found = list(_leaves(documents, kinds))
    form = text_form or plain_form
    unread = [
        leaf for leaf in found if reads is not None and _lasting(leaf) not in reads
    ]
    return Review(
        leaves=len(found),
        conflicts=tuple(_conflicts(found, kinds, form, today)),
        duplicates=tuple(
            _duplicates([leaf for leaf in found if not leaf.is_past(today)], form)
        ),
        stale=_spots(leaf for leaf in found if leaf.is_stale(today)),
        never_read=None if reads is None else _spots(unread),
        orphans=_spots(leaf for leaf in found if leaf.place is None),
        unreadable=_spots(leaf for leaf in found if _has_unreadable_day(leaf)),
    )


def conflicts(
    documents: Bodies, kinds: Kinds, *, today: date, text_form: TextForm | None = None
) -> tuple[LeafConflict, ...]:
    """Return statements that cannot all hold on *today*; an expired one is in no conflict."""
    return tuple(
        _conflicts(
            list(_leaves(documents, kinds)), kinds, text_form or plain_form, today
        )
    )


def find_changed_protected(
    records: Iterable[PlanRecord], now: datetime
) -> tuple[PlanRecord, ...]:
    """Return the plans of the last 30 days that stand and replaced or ended something protected, newest first."""
    return tuple(
        record
        for record in records
        if record.kind == "edit"
        and record.undone_by is None
        and record.origin.reasoning.startswith(PROTECTED)
        and now - record.origin.at <= _FLAGGED_FOR
    )


def plain_form(text: str) -> Hashable:
    """Return the words and numbers of *text* in their order, in small letters, whatever stands between them.

    Signs, decimals, units and negations stay; two texts with one form differ in nothing but case and punctuation.
    """
    return tuple(_WORDS.findall(unicodedata.normalize("NFKC", text).casefold()))


def _leaves(documents: Bodies, kinds: Kinds) -> Iterator[_Leaf]:
    for resource_id, body in documents.items():
        kind = kinds.get(resource_id)
        for path, value in leaf_values(body):
            item = Item.read(value)
            text = item.display if item is not None else str(value)
            place = kind.place_at(path) if kind is not None else None
            yield _Leaf(Spot(resource_id, path, text), value, item, place)


def _conflicts(
    found: Iterable[_Leaf], kinds: Kinds, form: TextForm, today: date
) -> Iterator[LeafConflict]:
    alive = [
        leaf
        for leaf in found
        if leaf.item is None or leaf.item.state(today) == "current"
    ]
    by_place: dict[tuple[str, Path], list[_Leaf]] = {}
    for leaf in alive:
        if leaf.place is not None:
            by_place.setdefault((leaf.spot.resource_id, leaf.place.path), []).append(
                leaf
            )
    for leaves in by_place.values():
        if leaves[0].place is not None and leaves[0].place.single and len(leaves) > 1:
            yield LeafConflict("single", _spots(leaves))
    yield from _opposites(by_place, kinds, form)
    by_mark: dict[str, list[_Leaf]] = {}
    for leaf in alive:
        mark = leaf.item.others.get(CONFLICT) if leaf.item is not None else None
        if isinstance(mark, str):
            by_mark.setdefault(mark, []).append(leaf)
    yield from (
        LeafConflict("marked", _spots(leaves), mark) for mark, leaves in by_mark.items()
    )


def _opposites(
    by_place: Mapping[tuple[str, Path], list[_Leaf]], kinds: Kinds, form: TextForm
) -> Iterator[LeafConflict]:
    by_form = {where: _by_form(leaves, form) for where, leaves in by_place.items()}
    seen: set[frozenset[tuple[str, Path]]] = set()
    for where, leaves in by_place.items():
        opposite = leaves[0].place.opposite if leaves[0].place is not None else None
        place = kinds.place_for(opposite, where[0]) if opposite is not None else None
        contrary = (where[0], place.path) if place is not None else None
        if (
            contrary in by_form
            and contrary != where
            and frozenset((where, contrary)) not in seen
        ):
            seen.add(frozenset((where, contrary)))
            for said, here in by_form[where].items():
                if said in by_form[contrary]:
                    yield LeafConflict(
                        "opposite", _spots([*here, *by_form[contrary][said]])
                    )


def _duplicates(found: Iterable[_Leaf], form: TextForm) -> Iterator[tuple[Spot, ...]]:
    by_home: dict[tuple[str, Path], list[_Leaf]] = {}
    for leaf in found:
        # A value under a name of its own ("pets": 2, "cars": 2) says something else than the one beside it.
        if isinstance(leaf.spot.path.last, int):
            by_home.setdefault((leaf.spot.resource_id, leaf.home), []).append(leaf)
    for leaves in by_home.values():
        by_time: dict[Hashable, list[_Leaf]] = {}
        for leaf in leaves:
            by_time.setdefault(_time_of(leaf), []).append(leaf)
        yield from (
            _spots(same)
            for held in by_time.values()
            for same in _by_form(held, form).values()
            if len(same) > 1
        )


def _time_of(leaf: _Leaf) -> Hashable:
    """Return the time of which *leaf* speaks: the day of an event, and on which it ended; None for none."""
    if leaf.item is None:
        return (None, None)
    is_event = leaf.place is not None and leaf.place.events
    return (leaf.item.expiry if is_event else None, leaf.item.until)


def _by_form(leaves: Iterable[_Leaf], form: TextForm) -> dict[Hashable, list[_Leaf]]:
    by_form: dict[Hashable, list[_Leaf]] = {}
    for leaf in leaves:
        by_form.setdefault(form(leaf.spot.text) or leaf.spot.text, []).append(leaf)
    return by_form


def _spots(leaves: Iterable[_Leaf]) -> tuple[Spot, ...]:
    return tuple(leaf.spot for leaf in leaves)


def _lasting(leaf: _Leaf) -> tuple[str, str]:
    return leaf.spot.resource_id, lasting_name(leaf.spot.path, leaf.value)


def _has_unreadable_day(leaf: _Leaf) -> bool:
    if leaf.item is None or not isinstance(leaf.value, dict):
        return False
    said = leaf.value.get("expiry", leaf.value.get("expiry_date"))
    return (said not in (None, "") and leaf.item.expiry is None) or (
        leaf.value.get("added") not in (None, "") and leaf.item.added is None
    )
