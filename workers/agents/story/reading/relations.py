"""Who is whose kin, as a clause says it."""

from collections.abc import Iterator

from workers.agents.story.reading.clauses import Clause
from workers.agents.story.reading.lexicon import lexicon, stem
from workers.agents.story.reading.named_words import Word

_BE, _HAVE = stem("is"), stem("has")
#: Words that may stand between "the" or "Mara's" and what of kin somebody is.
_MOST_BETWEEN = 3

#: Somebody, what they are to the other, the other, and the word for it: ("Emil Renn", "parent", "Tobias Renn", "fath").
Kin = tuple[str, str, str, str]


def relations_in(clause: Clause) -> Iterator[Kin]:
    """Yield who is whose kin: "is the daughter of Jonas", "Tobias's father Emil", "has a sister called Ada"."""
    words = clause.words
    for place, word in enumerate(words):
        kin = lexicon().kin_of.get(word.stem)
        if kin is None or word.name or word.low in {"mothered", "fathered"}:
            continue
        for one, other in _pairs(clause, place):
            if one != other:
                yield one, kin, other, word.stem
                in_turn = lexicon().in_turn[kin]
                yield other, in_turn, one, ""


def _pairs(clause: Clause, place: int) -> Iterator[tuple[str, str]]:
    """Yield who is kin of whom by the word at *place*."""
    words, subject = clause.words, clause.subject
    owner = _owner(clause, place)
    after = words[place + 1 : place + 4]
    of = after[1].name if len(after) > 1 and after[0].low == "of" else None
    other = of or owner
    if other is None and _has(words, place):
        named = _named_after(after)
        if named:
            yield named, subject
        return
    if other is None:
        return
    if other != subject and _is_said_of_subject(clause, place):
        yield subject, other
        return
    named = _named_after(after if of is None else words[place + 3 : place + 6])
    if named:
        yield named, other


def _owner(clause: Clause, place: int) -> str | None:
    """Return whose kin is meant by "her", "Mara's" or the beginning of an owned clause, before *place*."""
    words = clause.words
    for back in range(place - 1, max(-1, place - 1 - _MOST_BETWEEN), -1):
        word = words[back]
        if word.is_owner and word.name:
            return word.name
        if word.low in lexicon().words["possessives"] or word.low == "my":
            return clause.speaker if word.low == "my" else clause.subject
        if not word.low[0].isalpha() or word.name:
            return None
    return clause.subject if clause.owned and place < _MOST_BETWEEN else None


def _is_said_of_subject(clause: Clause, place: int) -> bool:
    """Tell whether the subject is what stands at *place*: "is the only daughter of", ", Mara's younger brother"."""
    before = clause.words[:place]
    lead = [word for word in before if word.stem == _BE]
    names = [word for word in before if word.name and not word.is_owner]
    if clause.owned or names or any(word.low == "," for word in before[1:]):
        return False
    starts_apposition = bool(before) and before[0].low == ","
    return starts_apposition or (bool(lead) and before.index(lead[0]) <= 2 and len(before) <= 6)


def _has(words: tuple[Word, ...], place: int) -> bool:
    return any(word.stem == _HAVE for word in words[:3]) and place <= 5


def _named_after(words: tuple[Word, ...]) -> str | None:
    """Return the name that is said right behind: "her father Jonas", "his father, Emil", "a sister called Ada"."""
    for word in words[:3]:
        if word.name:
            return None if word.is_owner else word.name
        if word.low not in {",", "called", "named", "was", "is", "\u2014"}:
            return None
    return None
