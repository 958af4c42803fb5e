"""Everyday English: how common a word is, and which words can stand for each other; tables of our own in `english/`."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from supervisor.interpretation.words import stem

_TABLES = Path(__file__).with_name("english")
#: Share of all requests that hold a word, by its line in `common.txt`; 0 is a word of no line, or a phrase.
_SHARES = {1: 0.15, 2: 0.04, 3: 0.012, 4: 0.003, 5: 0.001, 0: 0.0003}
#: How far a word of that line is believed: what is said in every second request tells tasks apart by accident.
_TRUST = {1: 0.5, 2: 0.6, 3: 0.7, 4: 0.9, 5: 1.0, 0: 1.0}
#: The same two for any number in digits.
_NUMBER_SHARE, _NUMBER_TRUST = 0.02, 0.6
#: No group is said in more than half of all requests, however many common words it holds.
_MOST_COMMON = 0.5
#: What every number in digits is compared as, and the kind that holds it.
NUMBER = "0"
_NUMBER_KIND = "#number"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tables by stem; names of kinds begin with "#", those of synonyms with "~"."""

    lines: Mapping[str, int]
    groups: Mapping[tuple[str, ...], frozenset[str]]
    #: Phrases of more than one word by their first.
    phrases: Mapping[str, tuple[tuple[str, ...], ...]]
    group_shares: Mapping[str, float]

    def share_of(self, feature: str) -> float:
        """Return the share of all requests that hold a stem, or any word of a group."""
        if feature == NUMBER:
            return _NUMBER_SHARE
        return self.group_shares.get(feature) or _SHARES[self.lines.get(feature, 0)]

    def trust_in(self, word: str) -> float:
        """Return how far a stem counts, from 0 to 1."""
        return _NUMBER_TRUST if word == NUMBER else _TRUST[self.lines.get(word, 0)]

    def groups_in(self, stems: Sequence[str]) -> list[frozenset[str]]:
        """Return for each of *stems*, as they follow each other, the groups it belongs to, alone or in a phrase."""
        found = [self.groups.get((one,), frozenset()) for one in stems]
        for place, one in enumerate(stems):
            if one[0].isdigit():
                found[place] |= {_NUMBER_KIND}
            for phrase in self.phrases.get(one, ()):
                if tuple(stems[place : place + len(phrase)]) == phrase:
                    for inside in range(place, place + len(phrase)):
                        found[inside] |= self.groups[phrase]
        return found


@cache
def everyday() -> Vocabulary:
    """Return the tables, read once."""
    lines: dict[str, int] = {}
    for number, words in _table("common.txt"):
        for word in words:
            lines.setdefault(stem(word), int(number))
    groups: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for file, mark in (("synonyms.txt", "~"), ("kinds.txt", "#")):
        for name, words in _table(file):
            for word in words:
                groups[tuple(stem(part) for part in word.split("_"))].add(mark + name)
    phrases: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    shares: dict[str, float] = defaultdict(float)
    for stems, names in groups.items():
        if len(stems) > 1:
            phrases[stems[0]].append(stems)
        for name in names:
            shares[name] += _SHARES[lines.get(stems[0], 0) if len(stems) == 1 else 0]
    return Vocabulary(
        lines,
        {stems: frozenset(names) for stems, names in groups.items()},
        {first: tuple(found) for first, found in phrases.items()},
        {name: min(_MOST_COMMON, share) for name, share in shares.items()},
    )


def _table(file: str) -> Iterator[tuple[str, list[str]]]:
    for line in (_TABLES / file).read_text("utf-8").splitlines():
        name, colon, words = line.partition(":")
        if colon and not line.startswith("#"):
            yield name, words.split()
