"""Kept items of a person that may matter for a batch: shown to the model, each under a short mark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from tasklore.memory.documents.entries import DocumentEntry, live_entries
from tasklore.memory.documents.items import Body
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.episodes.ranking import rank
from tasklore.memory.episodes.words import words_of
from tasklore.memory.rendering.quoting import plain
from tasklore.memory.rendering.tokens import estimate

#: Tokens of shown items: some twenty.
BUDGET_TOKENS = 300
#: Characters of one item that are shown.
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class NumberedEntries:
    """Entries as a model is shown them; the mark of `entries[0]` is `#1`."""

    entries: tuple[DocumentEntry, ...] = ()

    @property
    def lines(self) -> list[str]:
        """A line for each, with its mark, its category and when it was said."""
        return [
            _line(number, entry) for number, entry in enumerate(self.entries, start=1)
        ]

    def at(self, mark: str) -> DocumentEntry | None:
        """Return the entry of *mark*, with or without its sign; None when none has it."""
        number = mark.strip().removeprefix("#")
        if (
            not number.isdecimal()
            or len(number) > 4
            or not 1 <= int(number) <= len(self.entries)
        ):
            return None
        return self.entries[int(number) - 1]


def items_near(
    text: str, bodies: Mapping[str, Body], kinds: Kinds, today: date
) -> NumberedEntries:
    """Return entries of *bodies* that *text* may be about, as many as fit the budget.

    Those that share words with it come first, then protected and pinned ones, single-valued ones, and the newest: "I
    switched to Neovim" names no word of the item that it replaces.
    """
    entries = live_entries(bodies, kinds, today)
    # By whole words alone: shown is what may be meant, and few are.
    told = [f"{entry.subject} {entry.text}" for entry in entries]
    scores = rank(text, told, read_words=words_of)
    order = sorted(
        range(len(entries)),
        key=lambda number: (-scores[number], *_standing(entries[number]), number),
    )
    shown: list[DocumentEntry] = []
    spent = 0
    for number in order:
        cost = estimate(_line(len(shown) + 1, entries[number])) + 1
        if spent + cost > BUDGET_TOKENS:
            continue
        shown.append(entries[number])
        spent += cost
    return NumberedEntries(tuple(shown))


def _standing(entry: DocumentEntry) -> Sequence[int]:
    """Return how far back an entry stands among those that share no word: its place first, then its age."""
    place = entry.place
    item = entry.item
    rank_of_place = (
        2
        if place is None
        else 0
        if place.protected or place.pinned
        else 1
        if place.single
        else 2
    )
    added = item.added.toordinal() if item is not None and item.added is not None else 0
    return rank_of_place, -added


def _line(number: int, entry: DocumentEntry) -> str:
    whose = f"{plain(entry.subject, _SHOWN)}: " if entry.subject else ""
    item = entry.item
    since = "" if item is None or item.added is None else f" ({item.added})"
    return f"#{number} {entry.category}: {whose}{plain(entry.text, _SHOWN)}{since}"
