"""What statements claim of their subject, in a form in which two of them can be compared.

A claim fills slots: an age, a number of things, a state, what somebody's eyes are like, who is whose sister, where
somebody lives, on which days something is done. Two claims can only conflict in one slot.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from contracts.stories import Entity
from workers.agents.story.reading.casting import Handles
from workers.agents.story.reading.clauses import Clause, clauses_in, clauses_of_file
from workers.agents.story.reading.lexicon import lexicon, stem
from workers.agents.story.reading.named_words import Names, Word
from workers.agents.story.reading.phrases import says_any
from workers.agents.story.reading.predicates import Predicate, content_of, is_negated, predicate_of
from workers.agents.story.reading.relations import relations_in

#: Texts whose claims are kept: the files and facts of a few stories.
_KEPT = 4_000
_BE, _HAVE = stem("is"), stem("has")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_PREPOSITIONS = frozenset({"in", "at", "on", "above", "below", "behind", "beside", "near", "from", "for", "over"})


@dataclass(frozen=True, slots=True)
class Slot:
    """One thing that a claim says: `values` of a `key` of some `kind`.

    `nouns` are what a number or a colour is said of, `context` the other words that carry meaning. `is_anchored` when a
    state is told of the past, or a number of all that the subject is.
    """

    kind: str
    key: str
    values: frozenset[str]
    nouns: frozenset[str] = frozenset()
    context: frozenset[str] = frozenset()
    is_anchored: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """What a sentence says of `subject`, and which `source` says so.

    `tells_change` when it says itself that something is otherwise than it was, `is_past` when it says what once was.
    """

    subject: str
    text: str
    source: str
    slots: tuple[Slot, ...]
    predicate: Predicate | None = None
    is_spoken: bool = False
    tells_change: bool = False
    is_past: bool = False


def claims_in(
    text: str, names: Names, source: str, implied: str | None = None, teller: str | None = None
) -> list[Claim]:
    """Return what *text* claims.

    *implied* is whom a file or a fact is about where it names nobody, *teller* who "I" is where prose says it.
    """
    read = clauses_in(text, names, teller) if implied is None else clauses_of_file(text, names, implied)
    return [claim_of(clause, source) for clause in read]


class Reader:
    """Reads texts of one cast; a text that was read once, for any response of the story, is not read again."""

    def __init__(self, entities: Sequence[Entity], strangers: Iterable[str] = ()) -> None:
        handles = Handles(entities)
        # Facts and files also speak of those who have no file.
        names = tuple(dict.fromkeys(name for name in strangers if handles.owner(name) is None))
        self._cast = _Cast(tuple((one.name, one.kind, one.aliases) for one in entities), names)
        characters = frozenset(entity.name for entity in entities if entity.kind == "character")
        everybody = [*entities, *(Entity(name=name, kind="object") for name in names)]
        self._cast.names = Names(Handles(everybody), characters)

    @property
    def names(self) -> Names:
        """What finds names of the cast in a text."""
        return self._cast.names

    @property
    def handles(self) -> Handles:
        """What tells who is called how."""
        return self._cast.names.handles

    def claims(
        self, text: str, source: str, implied: str | None = None, teller: str | None = None
    ) -> tuple[Claim, ...]:
        """Return what *text* claims, as `claims_in` does."""
        return _read(self._cast, text, source, implied, teller)


@dataclass
class _Cast:
    """Who may be named; `names` follow from that, and need not be compared."""

    entities: tuple[tuple[str, str, tuple[str, ...]], ...]
    strangers: tuple[str, ...]
    names: Names = field(init=False, compare=False)

    def __hash__(self) -> int:
        return hash((self.entities, self.strangers))


@lru_cache(_KEPT)
def _read(cast: _Cast, text: str, source: str, implied: str | None, teller: str | None) -> tuple[Claim, ...]:
    return tuple(claims_in(text, cast.names, source, implied, teller))


def claim_of(clause: Clause, source: str) -> Claim:
    """Return what one *clause* claims."""
    words = lexicon().words
    told = {word.low for word in clause.words}
    return Claim(
        clause.subject,
        clause.sentence,
        source,
        tuple(slot for read in _READERS for slot in read(clause)),
        predicate_of(clause),
        is_spoken=clause.is_spoken,
        tells_change=bool(told & words["change"]) or says_any(words["change_phrases"], clause.sentence),
        is_past=bool(told & words["past"]) or says_any(words["past_phrases"], clause.sentence),
    )


def _ages(clause: Clause) -> Iterator[Slot]:
    words = clause.words
    if is_negated(words) or any(word.low in {"could", "must", "can"} for word in words):
        return
    for place, word in enumerate(words):
        if word.number is None:
            continue
        after = [one.low for one in words[place + 1 : place + 4]]
        before = words[place - 1] if place else None
        is_old = after[:2] in (["years", "old"], ["year", "old"]) or after == ["years", "of", "age"]
        is_bare = before is not None and before.stem == _BE and (not after or after[0] in {",", "and"})
        is_told = (is_old or is_bare) and not clause.owned and clause.then not in {"when", "before", "after", "until"}
        if is_told or (before is not None and before.low in {"aged", "age"}):
            yield Slot("age", "age", frozenset({word.number}))


def _counts(clause: Clause) -> Iterator[Slot]:
    words, about = clause.words, lexicon().words["about"]
    if is_negated(words) and not any(word.low == "no" for word in words):
        return
    for place, word in enumerate(words):
        number = word.number or ("0" if word.low == "no" and place and words[place - 1].stem == _HAVE else None)
        if number is None or (place and words[place - 1].low in about) or (place > 1 and words[place - 2].low in about):
            continue
        nouns = _nouns(words[place + 1 : place + 5], 2)
        after = [one.low for one in words[place + 1 : place + 3]]
        if nouns and "old" not in after:
            before = words[max(0, place - 2) : place]
            is_all = any(one.stem == _BE for one in before) and not clause.owned
            yield Slot("count", "count", frozenset({number}), nouns, content_of(clause) - nouns, is_all)


def _nouns(words: tuple[Word, ...], most: int) -> frozenset[str]:
    """Return the stems of the first words of *words* that carry meaning, up to a sign or a word that begins anew."""
    found: list[str] = []
    for word in words:
        if not word.low[0].isalnum() or len(found) == most or word.name or word.number:
            break
        if word.stem in lexicon().stop:
            if found or word.low not in {"of", "the", "her", "his", "its"}:
                break
            continue
        found.append(word.stem.rpartition("-")[2])
    return frozenset(found)


def _states(clause: Clause) -> Iterator[Slot]:
    known, words = lexicon(), clause.words
    for place, word in enumerate(words):
        side = known.state_of.get(word.low)
        if side is None or word.name:
            continue
        before = words[max(0, place - 4) : place]
        is_said = any(one.stem == _BE for one in before) and not any(one.name or one.low == "," for one in before)
        is_verb = place < 3 and word.low.endswith("ed") and not _is_followed_by_noun(words, place)
        if not (is_said or is_verb or place == 0) or _is_followed_by_noun(words, place):
            continue
        name = side.side
        if is_negated(before):
            others = {one.side for one in known.state_of.values() if one.group == side.group} - {name}
            name = others.pop() if len(others) == 1 else ""
        noun = "".join(sorted(_nouns(words, 1))) if clause.owned else ""
        if name:
            anchored = any(one.low in known.words["anchored"] for one in words)
            yield Slot("state", f"{side.group} {noun}".strip(), frozenset({name}), is_anchored=anchored)


def _is_followed_by_noun(words: tuple[Word, ...], place: int) -> bool:
    after = words[place + 1 : place + 2]
    return bool(after) and after[0].low[0].isalpha() and after[0].stem not in lexicon().stop and not after[0].name


def _features(clause: Clause) -> Iterator[Slot]:
    known, words = lexicon(), clause.words
    content = content_of(clause)
    for place, word in enumerate(words):
        adjective, _, of = word.low.rpartition("-")
        sides = known.features_of.get(word.low, ())
        nouns = _nouns(words[place + 1 : place + 4], 2)
        if not sides and of in {"haired", "eyed", "bearded"} and adjective in known.features_of:
            sides, nouns = known.features_of[adjective], frozenset({stem(of.removesuffix("ed"))})
        elif sides and not nouns and clause.owned:
            # "Her eyes were green"
            nouns = _nouns(words, 1) if any(one.stem == _BE for one in words[:place]) else frozenset()
        elif sides and not _is_subjects(clause, place):
            continue
        if is_negated(words) or not nouns:
            continue
        for side in sides:
            yield Slot("feature", side.group, frozenset({side.side}), nouns, content - nouns - {word.stem})


def _is_subjects(clause: Clause, place: int) -> bool:
    """Tell whether the adjective at *place* describes something of the subject's."""
    words, known = clause.words, lexicon().words
    if clause.owned and place == 0:
        return True
    before = words[max(0, place - 3) : place]
    if any(one.low in known["possessives"] for one in before):
        return True
    verbs = {_HAVE, stem("wears"), _BE, stem("lives"), stem("stands"), stem("lodges"), stem("keeps"), stem("carries")}
    return any(one.stem in verbs for one in words[: min(place, 4)]) and not any(one.name for one in words[:place])


def _tastes(clause: Clause) -> Iterator[Slot]:
    known = lexicon()
    for place, word in enumerate(clause.words[:4]):
        side = known.taste_of.get(word.stem)
        if side is None or clause.owned or word.name:
            continue
        if any(one.low in {"to", "for"} for one in clause.words[:place]):
            return
        name = side.side if not is_negated(clause.words) else {"0": "1", "1": "0"}[side.side]
        yield Slot("taste", side.group, frozenset({name}), context=content_of(clause) - {word.stem})
        return


def _places(clause: Clause) -> Iterator[Slot]:
    known, words = lexicon(), clause.words
    if clause.owned or is_negated(words):
        return
    for place, word in enumerate(words[:4]):
        what = known.place_of.get(word.stem)
        if what is None or word.name:
            continue
        for at in range(place + 1, min(place + 4, len(words))):
            if words[at].low in _PREPOSITIONS:
                if (what == "come") == (words[at].low == "from"):
                    yield from _place(what, words[at + 1 :], clause)
                return


def _place(what: str, words: tuple[Word, ...], clause: Clause) -> Iterator[Slot]:
    stop = lexicon().stop
    phrase: list[Word] = []
    for word in words:
        if not word.low[0].isalnum() or (word.low in _PREPOSITIONS and phrase) or (word.low == "to"):
            break
        phrase.append(word)
    names = frozenset(word.name for word in phrase if word.name and not word.is_owner)
    told = frozenset(word.stem for word in phrase if not word.name and word.stem and word.stem not in stop)
    if (names or told) and not any(word.number for word in phrase):
        yield Slot("place", what, names, told, content_of(clause))


def _weekdays(clause: Clause) -> Iterator[Slot]:
    words = clause.words
    days = set()
    for place, word in enumerate(words):
        single = word.low.removesuffix("s")
        if single in _DAYS and (word.low.endswith("s") or (place and words[place - 1].low in {"every", "each"})):
            days.add(single)
    if days and not is_negated(words):
        context = frozenset(one for one in content_of(clause) if one.removesuffix("s") not in _DAYS)
        yield Slot("days", "days", frozenset(days), context=context - {stem(day) for day in days})


def _trades(clause: Clause) -> Iterator[Slot]:
    known, words = lexicon(), clause.words
    if clause.owned or is_negated(words):
        return
    for place, word in enumerate(words):
        trade = known.trade_of.get(word.stem)
        if trade is None or (word.name and not (word.is_title and word.name == clause.subject)):
            continue
        before = words[max(0, place - 5) : place]
        lows = [one.low for one in before] + word.text.lower().split()
        is_clear = not any(one.name or one.low == "," for one in before) and not _is_followed_by_noun(words, place)
        is_said = any(one.stem == _BE for one in before) or "as" in lows
        if is_clear and is_said and ({"a", "an", "the"} & set(lows) or before[-1].stem == _BE):
            yield Slot("trade", "trade", frozenset({trade}))
            return


def _relations(clause: Clause) -> Iterator[Slot]:
    if is_negated(clause.words):
        return
    for one, kin, other, role in relations_in(clause):
        yield Slot("relation", "|".join((one, other)), frozenset({kin}))
        if role in lexicon().roles:
            yield Slot("role", f"{other}|{role}", frozenset({one}))


_READERS: tuple[Callable[[Clause], Iterator[Slot]], ...] = (
    _ages, _counts, _states, _features, _tastes, _places, _weekdays, _trades, _relations,
)  # fmt: skip
