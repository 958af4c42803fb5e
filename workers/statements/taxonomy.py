"""What is a kind of what, or has it in it: `is_a("scrambled eggs with lox", "fish")`, from data files alone.

Terms are compared by their normal words, so that plurals and slugs do not matter. What the files do not tell is None:
unknown, which is neither yes nor no.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path

from workers.statements.datafiles import Table, read_tables, strings_at, table_at, words_at
from workers.statements.normal import normal
from workers.statements.words import load_words

Phrase = tuple[str, ...]

#: Terms kept: those of the data files, and of many users' documents.
_CACHED = 20_000
#: Words of a term that no file knows, before its head: "Grandma's lasagne" is one, a sentence is none.
UNKNOWN_BEFORE_HEAD = 1


@dataclass(frozen=True, slots=True)
class Match:
    """A known phrase in a term: `words[start:end]`.

    `is_absent` when the term says that it is not in it, `is_doubtful` when something else may be meant ("soy yogurt").
    """

    start: int
    end: int
    phrase: Phrase
    is_absent: bool = False
    is_doubtful: bool = False


@dataclass(frozen=True)
class SeenTerm:
    """A term as the taxonomy sees it; `loose` are the words that are no match and do not just join others."""

    words: Phrase
    matches: tuple[Match, ...]
    loose: tuple[str, ...]

    @property
    def present(self) -> tuple[Match, ...]:
        """The matches that are neither absent nor doubtful."""
        return tuple(match for match in self.matches if not match.is_absent and not match.is_doubtful)

    @property
    def head(self) -> Phrase | None:
        """What the term ends in, None when that is unknown or absent."""
        last = self.matches[-1] if self.matches else None
        return last.phrase if last is not None and last.end == len(self.words) and not last.is_absent else None


class Taxonomy:
    """Categories and what belongs to them; make one with `load`. Immutable, and pure."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._graphs = {root: _edges(below, "is_a") for root, below in _by_root(tables).items()}
        self._roots = frozenset(phrase_of(root) for root in self._graphs)
        self._known = frozenset(chain.from_iterable(self._graphs.values()))
        self._perhaps = _edges(tables.values(), "may_contain")
        self._without = _listed(tables.values(), "without")
        self._excludes = _listed(tables.values(), "excludes")
        self._aliases = _renamed(tables.values(), "alias")
        self._versions = _renamed(tables.values(), "versions")
        self._open = _phrases_at(tables.values(), "open", "terms")
        self._settled = _phrases_at(tables.values(), "open", "settled")
        self._plain = {
            root: frozenset(word for phrase in _phrases_at(below, "plain", "words") for word in phrase)
            for root, below in _by_root(tables).items()
        }
        self._bases = _phrases_at(tables.values(), "substitutes", "bases")
        self._heads = _phrases_at(tables.values(), "substitutes", "heads")
        self._mains = _phrases_at(tables.values(), "mains", "terms")
        self._incidental = _phrases_at(tables.values(), "mains", "incidental")
        self._tags = {root: tag for table in tables.values() for root, tag in _tags(table)}
        self._phrases = _by_first_word(chain(self._known, self._without, self._versions, self._excludes, self._aliases))
        self._readings = lru_cache(maxsize=_CACHED)(self._read)
        self._above: dict[Phrase, frozenset[Phrase]] = {}

    @classmethod
    def load(cls, *folders: Path) -> "Taxonomy":
        """Return the taxonomy of the shipped files, and of *folders* over them; read once.

        Raises:
            ConfigurationError: a file cannot be read or has another shape.
        """
        return _loaded(folders)

    # -- questions ---------------------------------------------------------------------------------------------------

    def is_a(self, term: str, category: str) -> bool | None:
        """Say whether *term* belongs to *category* or has something of it in it; None when the files do not tell.

        "egg-free mayonnaise" is no egg, "pizza" may or may not be meat, and a category that no file knows is one only
        of what has its very words.
        """
        wanted = phrase_of(category)
        if not wanted:
            return None
        reading = self.read(term)
        absent = self._absent(reading)
        if wanted in absent:
            return False
        found = self._found(reading, absent)
        if absent & self._ancestors(wanted) and wanted not in found:
            return False
        if wanted not in self._known:
            return True if _has_words(reading, wanted) else None
        if wanted in found or any(match.phrase == wanted for match in reading.present):
            return True
        return None if self._is_undecided(reading, wanted, absent) else False

    def is_about(self, term: str, category: str) -> bool:
        """True when one would name *term* under *category*, not just because something of it is in it.

        A carbonara has eggs in it, and nobody means it by "egg preferences"; an omelette is one. What is no mere
        ingredient, such as meat, is meant wherever it is in.
        """
        if self.is_a(term, category) is not True:
            return False
        wanted, reading = phrase_of(category), self.read(term)
        above = {wanted} | self._ancestors(wanted)
        if _has_words(reading, wanted) or not above & self._incidental:
            return True
        named = set[Phrase]().union(*({match.phrase} | self._ancestors(match.phrase) for match in reading.present))
        return all(base in above or wanted in self._ancestors(base) for base in named & self._mains)

    def is_headed(self, term: str, category: str, most_unknown: int = UNKNOWN_BEFORE_HEAD) -> bool:
        """True when *term* as a whole is a kind of *category*: its last words are, few are unknown."""
        reading = self.read(term)
        head = reading.head
        wanted = phrase_of(category)
        if head is None or not (head == wanted or wanted in self._ancestors(head)):
            return False
        # A book about asthma is no illness, and vegan cheese is cheese.
        last = len(reading.words)
        named = (one.phrase for one in reading.matches if one.end == last or one.phrase not in self._versions)
        is_one_thing = all(self._shares_graph(phrase, wanted) for phrase in named)
        return is_one_thing and self._unknown(reading, wanted) <= most_unknown

    def is_wholly(self, term: str, category: str) -> bool:
        """True when no word of *term* is unknown and all that is named in it is of *category*."""
        reading = self.read(term)
        wanted = phrase_of(category)
        named = [match.phrase for match in reading.matches]
        is_named = bool(named) and all(phrase == wanted or wanted in self._ancestors(phrase) for phrase in named)
        return is_named and self._unknown(reading, wanted) == 0

    def knows(self, term: str) -> bool:
        """True when some file has *term* as a term of its own."""
        return phrase_of(term) in self._known

    def tag_of(self, category: str) -> str | None:
        """Return the tag of the file whose root *category* is or belongs to, None when it is under none."""
        phrase = phrase_of(category)
        above = {phrase} | self._ancestors(phrase)
        return next((tag for root, tag in self._tags.items() if phrase_of(root) in above), None)

    def excluded_by(self, diet: str) -> frozenset[str] | None:
        """Return the categories that *diet* leaves out, None when it is not known."""
        named = self._diet(diet)
        return None if named is None else frozenset(" ".join(phrase) for phrase in self._excludes[named])

    def excludes(self, diet: str, term: str) -> bool | None:
        """Say whether *diet* leaves *term* out; None when that cannot be told."""
        categories = self.excluded_by(diet)
        if categories is None:
            return None
        answers = [self.is_a(term, category) for category in sorted(categories)]
        if True in answers:
            return True
        return None if None in answers else False

    # -- reading a term ------------------------------------------------------------------------------------------------

    def read(self, term: str) -> SeenTerm:
        """Return the known phrases of *term*, the longest at each place."""
        return self._readings(phrase_of(term))

    def _read(self, words: Phrase) -> SeenTerm:
        absence = load_words().absence
        matches: list[Match] = []
        loose: list[str] = []
        place = 0
        is_absent = False
        while place < len(words):
            word = words[place]
            phrase = self._phrase_at(words, place)
            if phrase is not None:
                end = place + len(phrase)
                is_free = words[end : end + 1] != () and words[end] in absence.after
                after_base = bool(matches) and matches[-1].end == place and matches[-1].phrase in self._bases
                is_doubtful = after_base and phrase in self._heads
                matches.append(Match(place, end, phrase, is_absent or is_free, is_doubtful))
                place = end + is_free
                continue
            stem = self._deprived(word)
            if stem is not None:
                matches.append(Match(place, place + 1, stem, is_absent=True))
            elif word in absence.before:
                is_absent = True
            elif word in absence.until:
                is_absent = False
            elif word not in load_words().function and not word[:1].isdigit():
                loose.append(word)
            place += 1
        return SeenTerm(words, tuple(matches), tuple(loose))

    def is_known(self, term: str) -> bool:
        """True when there is no word in *term* that every data file leaves unexplained."""
        reading = self.read(term)
        return not self._unknown(reading)

    def _phrase_at(self, words: Phrase, place: int) -> Phrase | None:
        for phrase in self._phrases.get(words[place], ()):
            if words[place : place + len(phrase)] == phrase:
                return phrase
        return None

    def _deprived(self, word: str) -> Phrase | None:
        """Return what an "eggless" thing has none of."""
        for ending in load_words().absence.ending:
            stem = (word.removesuffix(ending),)
            if word.endswith(ending) and stem in self._known:
                return stem
        return None

    def _unknown(self, reading: SeenTerm, category: Phrase | None = None) -> int:
        """Return how many words say nothing that is known, beside terms of *category* or of any."""
        plain = (words for root, words in self._plain.items() if category is None or category in self._graphs[root])
        known = frozenset(chain.from_iterable(plain))
        return sum(word not in known for word in reading.loose)

    # -- what follows from it ----------------------------------------------------------------------------------------

    def _ancestors(self, phrase: Phrase) -> frozenset[Phrase]:
        known = self._above.get(phrase)
        if known is None:
            known = self._above[phrase] = self._reached(phrase, frozenset())
        return known

    def _reached(self, phrase: Phrase, closed: frozenset[Phrase]) -> frozenset[Phrase]:
        """Return everything above *phrase*, each graph by itself: a fish on a plate is no pet."""
        return frozenset(chain.from_iterable(_reached(phrase, parents, closed) for parents in self._graphs.values()))

    def _shares_graph(self, phrase: Phrase, other: Phrase) -> bool:
        return any(phrase in parents and other in parents for parents in self._graphs.values())

    def _absent(self, reading: SeenTerm) -> frozenset[Phrase]:
        """Return what is not in it: named absent, left out by a diet it is a version for, or never in that term."""
        absent = {match.phrase for match in reading.matches if match.is_absent}
        for match in reading.present:
            absent |= self._without.get(match.phrase, frozenset())
            diet = self._diet_of(match.phrase)
            if diet is not None and len(reading.present) > 1:
                absent |= self._excludes[diet]
        return frozenset(absent)

    def _found(self, reading: SeenTerm, absent: frozenset[Phrase]) -> set[Phrase]:
        found: set[Phrase] = set()
        for match in reading.present:
            found |= self._reached(match.phrase, absent)
        # Decaf is coffee all the same; a cheese without milk may be called one or not.
        told = {match.phrase for match in reading.present if match.phrase in self._without}
        if told or not absent:
            return found
        return {phrase for phrase in found if not absent & self._ancestors(phrase)}

    def _is_undecided(self, reading: SeenTerm, wanted: Phrase, absent: frozenset[Phrase]) -> bool:
        """True when *wanted* may still be in it: something unknown, something open, or a wider word than *wanted*."""
        is_doubtful = any(match.is_doubtful for match in reading.matches)
        if self._unknown(reading) or not reading.present or is_doubtful or absent - self._expected(reading):
            return True
        for match in reading.present:
            # Falafel is a dish, and one of which everything is told.
            is_settled = match.phrase in self._settled
            kinds = {match.phrase} if is_settled else {match.phrase} | self._ancestors(match.phrase)
            if kinds & self._open or match.phrase in self._ancestors(wanted):
                return True
            if any(
                wanted == maybe or wanted in self._ancestors(maybe)
                for kind in kinds
                for maybe in self._perhaps.get(kind, ())
            ):
                return True
        return False

    def _expected(self, reading: SeenTerm) -> frozenset[Phrase]:
        """Return what is not in terms of which everything is told: peanut butter leaves nothing open."""
        settled = (match.phrase for match in reading.present if match.phrase in self._settled)
        return frozenset(chain.from_iterable(self._without.get(phrase, ()) for phrase in settled))

    def _diet(self, diet: str) -> Phrase | None:
        words = phrase_of(diet)
        # "Vegan diet" as well as "vegan".
        return self._diet_of(words) or (self._diet_of(words[:-1]) if words[-1:] in self._roots else None)

    def _diet_of(self, phrase: Phrase) -> Phrase | None:
        named = self._versions.get(phrase, phrase)
        named = self._aliases.get(named, named)
        return named if named in self._excludes else None


@lru_cache(maxsize=_CACHED)
def phrase_of(text: str) -> Phrase:
    """Return the words of *text* as taxonomies compare them: singular, in small letters, without articles."""
    return normal(text.replace("-", " ")).key_words


@cache
def _loaded(folders: tuple[Path, ...]) -> Taxonomy:
    return Taxonomy({name: table for name, table in read_tables(*folders).items() if "is_a" in table})


def _by_root(tables: Mapping[str, Table]) -> dict[str, list[Table]]:
    """Return the files by the root they name: those of one root are one graph, whoever wrote them."""
    found: dict[str, list[Table]] = {}
    for name, table in tables.items():
        found.setdefault(next(iter(strings_at(table, "root")), name), []).append(table)
    return found


def _tags(table: Table) -> Iterable[tuple[str, str]]:
    return zip(strings_at(table, "root"), strings_at(table, "tag"), strict=False)


def _edges(tables: Iterable[Table], name: str) -> dict[Phrase, frozenset[Phrase]]:
    """Return the categories of every term; a category without one of its own stands in it too."""
    parents: dict[Phrase, set[Phrase]] = {}
    for table in tables:
        for category in table_at(table, name):
            above = phrase_of(category)
            parents.setdefault(above, set())
            for term in strings_at(table, name, category):
                parents.setdefault(phrase_of(term), set()).add(above)
    return {term: frozenset(above - {term}) for term, above in parents.items()}


def _listed(tables: Iterable[Table], name: str) -> dict[Phrase, frozenset[Phrase]]:
    return {
        phrase_of(term): frozenset(phrase_of(one) for one in strings_at(table, name, term))
        for table in tables
        for term in table_at(table, name)
    }


def _phrases_at(tables: Iterable[Table], *names: str) -> frozenset[Phrase]:
    return frozenset(phrase_of(term) for table in tables for term in strings_at(table, *names))


def _renamed(tables: Iterable[Table], name: str) -> dict[Phrase, Phrase]:
    return {phrase_of(one): phrase_of(two) for table in tables for one, two in words_at(table, name).items()}


def _by_first_word(phrases: Iterable[Phrase]) -> dict[str, tuple[Phrase, ...]]:
    """Return *phrases* by their first word, the longest first."""
    found: dict[str, set[Phrase]] = {}
    for phrase in phrases:
        if phrase:
            found.setdefault(phrase[0], set()).add(phrase)
    return {word: tuple(sorted(group, key=lambda phrase: (-len(phrase), phrase))) for word, group in found.items()}


def _reached(start: Phrase, parents: Mapping[Phrase, frozenset[Phrase]], closed: frozenset[Phrase]) -> Iterator[Phrase]:
    """Yield everything above *start*, no way leading through *closed*."""
    seen = {start}
    waiting = [start]
    while waiting:
        for above in parents.get(waiting.pop(), ()):
            if above not in seen and above not in closed:
                seen.add(above)
                waiting.append(above)
                yield above


def _has_words(reading: SeenTerm, wanted: Phrase) -> bool:
    """True when *wanted* stands in the term word by word, and is not said to be absent."""
    absent = {place for match in reading.matches if match.is_absent for place in range(match.start, match.end)}
    length = len(wanted)
    places = range(len(reading.words) - length + 1)
    return any(reading.words[place : place + length] == wanted and place not in absent for place in places)
