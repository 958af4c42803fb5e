"""Patterns of clauses, as data files write them, compiled into a tree of words that is walked once a clause.

`i (like|am fond of) [really] <thing>`: words, alternatives, what may be left out, and slots; `(verb=keep|stay)` is an
alternative that is asked for by name later, `<it:food>` a slot of type `food` called `it`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from contracts.errors import ConfigurationError

#: Wordings of one pattern: a hundred times a usual one; more is a slip that would fill the memory.
_MOST_WORDINGS = 5_000
#: Words between the beginning of a clause and the first word after a slot that opens it.
_LONGEST_OPENING = 10

#: Words of a clause that are passed over as fillers: "I really do just like eggs" has three.
_MOST_SKIPPED = 5

_PIECE = re.compile(
    r"\((?:(?P<name>\w+)=)?(?P<choice>[^()]*)\)|\[(?P<perhaps>[^\[\]()]*)\]|<(?P<slot>[\w:]+)>|(?P<word>[^\s()<>\[\]]+)"
)


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for words: *name* to ask for it by, *type* to check it by."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A word that must stand there; *name* is that of the alternative it belongs to, "" for none."""

    word: str
    name: str = ""


Item = Slot | Literal


@dataclass(frozen=True, slots=True)
class Wording:
    """One of the ways to say a pattern; *number* is that of the pattern."""

    number: int
    items: tuple[Item, ...]
    #: Of every item, the literals between it and the next slot.
    following: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A wording in a clause: where its literals stand, and from where to where each slot reaches."""

    number: int
    literals: tuple[int, ...]
    slots: dict[str, tuple[str, int, int]]
    named: dict[str, tuple[int, ...]]
    skipped: frozenset[int]


@dataclass
class _Node:
    below: dict[str, "_Node"] = field(default_factory=dict)
    ends: list[Wording] = field(default_factory=list)


class Patterns:
    """All wordings: those that begin with words as a tree, those that begin with a slot by the word after it."""

    def __init__(self, said: Sequence[Sequence[str]], fillers: frozenset[tuple[str, ...]]) -> None:
        self._root = _Node()
        self._after_slot: dict[str, list[Wording]] = {}
        self._fillers = fillers
        self._longest_filler = max(map(len, fillers), default=0)
        for number, texts in enumerate(said):
            for text in texts:
                for items in wordings(text):
                    self._add(Wording(number, items, tuple(_literals_after(items, at) for at in range(len(items)))))

    def verbs_after(self, word: str, adverbs: frozenset[str]) -> frozenset[str]:
        """Return the words that may follow *word* in front of a clause, right after it or after one of *adverbs*."""
        node = self._root.below.get(word, _Node())
        behind = (node.below[adverb].below for adverb in adverbs & set(node.below))
        return frozenset(node.below).union(*behind) - adverbs

    def find(self, words: Sequence[str]) -> Iterator[Found]:
        """Yield the wordings that *words* are, those of earlier patterns first, and the longer ones first of each."""
        found = [*self._walk(self._root, words, 0, (), frozenset()), *self._opened_by_slot(words)]
        yield from sorted(found, key=lambda one: (one.number, -len(one.literals)))

    def _add(self, wording: Wording) -> None:
        node = self._root
        for item in wording.items:
            if isinstance(item, Slot):
                break
            node = node.below.setdefault(item.word, _Node())
        if node is self._root:
            second = wording.items[1] if len(wording.items) > 1 else None
            if not isinstance(second, Literal):
                raise ConfigurationError(f"pattern {wording.number} has no word beside a slot; add one that tells it")
            self._after_slot.setdefault(second.word, []).append(wording)
        else:
            node.ends.append(wording)

    def _walk(
        self, node: _Node, words: Sequence[str], place: int, literals: tuple[int, ...], skipped: frozenset[int]
    ) -> Iterator[Found]:
        for wording in node.ends:
            if (one := self._rest(wording, words, place, literals, skipped)) is not None:
                yield one
        if place >= len(words):
            return
        below = node.below.get(words[place])
        if below is not None:
            yield from self._walk(below, words, place + 1, (*literals, place), skipped)
        if place and node.below:
            length = self._filler_at(words, place)
            if length and len(skipped) + length <= _MOST_SKIPPED:
                passed = skipped | set(range(place, place + length))
                yield from self._walk(node, words, place + length, literals, passed)

    def _filler_at(self, words: Sequence[str], place: int) -> int:
        for length in range(min(self._longest_filler, len(words) - place), 0, -1):
            if tuple(words[place : place + length]) in self._fillers:
                return length
        return 0

    def _opened_by_slot(self, words: Sequence[str]) -> Iterator[Found]:
        for place in range(1, min(len(words), _LONGEST_OPENING)):
            for wording in self._after_slot.get(words[place], ()):
                if (one := self._rest(wording, words, 0, (), frozenset())) is not None:
                    yield one

    def _rest(
        self, wording: Wording, words: Sequence[str], place: int, literals: tuple[int, ...], skipped: frozenset[int]
    ) -> Found | None:
        """Return how *wording* covers all of *words*, of which *place* are behind; each slot as short as may be."""
        slots: dict[str, tuple[str, int, int]] = {}
        passed = set(skipped)
        for index in range(len(literals), len(wording.items)):
            item = wording.items[index]
            if isinstance(item, Literal):
                while place < len(words) and words[place] != item.word and (length := self._filler_at(words, place)):
                    passed |= set(range(place, place + length))
                    place += length
                if place >= len(words) or words[place] != item.word:
                    return None
                literals, place = (*literals, place), place + 1
                continue
            following = wording.following[index]
            end = _place_of(words, following, place + 1, is_last=index + 1 + len(following) == len(wording.items))
            if end is None:
                return None
            slots[item.name] = (item.type, place, end)
            place = end
        if place != len(words):
            return None
        return Found(wording.number, literals, slots, _named(wording, literals), frozenset(passed))


def wordings(text: str) -> list[tuple[Item, ...]]:
    """Return every wording of the pattern *text*.

    Raises:
        ConfigurationError: it has a sign that means nothing, or too many wordings.
    """
    parts: list[list[tuple[Item, ...]]] = []
    rest = text
    while rest := rest.lstrip():
        match = _PIECE.match(rest)
        if match is None:
            raise ConfigurationError(
                f"the pattern {text!r} cannot be read at {rest!r}; use words, (a|b), [a] and <slot>"
            )
        parts.append(_choices(match))
        rest = rest[match.end() :]
    total = 1
    for part in parts:
        total *= len(part)
    if total > _MOST_WORDINGS:
        raise ConfigurationError(f"the pattern {text!r} has {total} wordings, more than {_MOST_WORDINGS}; split it")
    return [tuple(item for piece in chosen for item in piece) for chosen in product(*parts)]


def _choices(match: re.Match[str]) -> list[tuple[Item, ...]]:
    name = match["name"] or ""
    if match["word"]:
        return [(Literal(match["word"]),)]
    if match["slot"]:
        called, _, kind = match["slot"].partition(":")
        return [(Slot(called, kind or called),)]
    if match["choice"] is not None:
        return [_literals(choice, name) for choice in match["choice"].split("|")]
    return [*(_literals(choice, "") for choice in match["perhaps"].split("|")), ()]


def _literals(choice: str, name: str) -> tuple[Item, ...]:
    pieces = (piece for piece in _PIECE.finditer(choice))
    return tuple(_choices(piece)[0][0] if piece["slot"] else Literal(piece[0], name) for piece in pieces)


def _named(wording: Wording, literals: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return where the words of each named alternative stand."""
    said = [item for item in wording.items if isinstance(item, Literal)]
    named: dict[str, tuple[int, ...]] = {}
    for item, at in zip(said, literals, strict=True):
        if item.name:
            named[item.name] = (*named.get(item.name, ()), at)
    return named


def _literals_after(items: Sequence[Item], index: int) -> tuple[str, ...]:
    found: list[str] = []
    for item in items[index + 1 :]:
        if isinstance(item, Slot):
            break
        found.append(item.word)
    return tuple(found)


def _place_of(words: Sequence[str], wanted: tuple[str, ...], first: int, *, is_last: bool) -> int | None:
    """Return where *wanted* stands at or after *first*: at the very end when it *is_last*; None when nowhere."""
    length = len(wanted)
    if is_last:
        place = len(words) - length
        return place if place >= first and tuple(words[place:]) == wanted else None
    places = range(first, len(words) - length + 1)
    return next((place for place in places if tuple(words[place : place + length]) == wanted), None)
