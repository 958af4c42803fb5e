"""What a response tells about the world by rules: what somebody or some place is, has, keeps, or has lost.

The words are the response's own. Moments are left out - who sits, looks or is silent is no fact about the world - and
so is what is told of somebody who is not named.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from contracts.analysis_background import KnownFact
from contracts.stories import Entity
from workers.agents.story.reading.claims import Reader, Slot, claim_of
from workers.agents.story.reading.clauses import Clause, clauses_in
from workers.agents.story.reading.lexicon import lexicon, stem
from workers.agents.story.reading.named_words import Word
from workers.agents.story.reading.phrases import one_line
from workers.agents.story.reading.predicates import Predicate, content_of, predicate_of
from workers.agents.story.reading.prose import folded, numbers_in

#: Facts of one response, and characters of one.
MOST_FACTS, LONGEST_FACT = 8, 200
#: Lines of files whose words are kept: those of a story.
_KEPT = 4_000
#: Words of a fact.
_LEAST_WORDS = 2
_CATEGORIES = {"character": "character", "location": "location", "object": "object"}
#: What tells a fact and no moment when a claim fills it.
_TELLING = frozenset({"age", "state", "trade", "relation", "days"})
_PARTICLES = frozenset({"up", "out", "off", "down", "over"})
_ARTICLES = frozenset({"a", "an", "the", "one"})
_OF_OTHERS = {"am": "is", "have": "has", "'m": "is", "'ve": "has", "'d": "had", "\u2019m": "is", "\u2019ve": "has"}
_BE, _HAVE = stem("is"), stem("has")


class Known:
    """What is known already, by subject: facts, and the files of *entities*."""

    def __init__(self, facts: Sequence[KnownFact], entities: Sequence[Entity], reader: Reader) -> None:
        self._said = {(folded(fact.subject), _bare(fact.fact)) for fact in facts}
        self._lines: dict[str, list[str]] = {}
        for subject, text in (
            *((fact.subject, fact.fact) for fact in facts),
            *((one.name, line) for one in entities for line in one.text.splitlines()),
        ):
            self._lines.setdefault(folded(reader.handles.owner(subject) or subject), []).append(text)

    def has(self, subject: str, fact: str) -> bool:
        """Tell whether *fact* says nothing of *subject* that is new: in those words, or in one line of its own."""
        if (folded(subject), _bare(fact)) in self._said:
            return True
        gist = _gist(fact)
        return any(gist <= _gist(line) for line in self._lines.get(folded(subject), ()))

    def add(self, fact: KnownFact) -> None:
        """Know *fact* from now on."""
        self._said.add((folded(fact.subject), _bare(fact.fact)))
        self._lines.setdefault(folded(fact.subject), []).append(fact.fact)


def by_rules(text: str, source: str, entities: Sequence[Entity], reader: Reader, known: Known) -> list[KnownFact]:
    """Return at most eight facts that *text* tells, in words of its own: what is told, then what is said in it."""
    kinds = {entity.name: entity.kind for entity in entities}
    found: list[KnownFact] = []
    for clause in clauses_in(text, reader.names):
        fact = _fact(clause, kinds)
        if fact is None or known.has(clause.subject, fact):
            continue
        found.append(
            KnownFact(
                category=_CATEGORIES.get(kinds[clause.subject], "other"),
                subject=clause.subject,
                fact=fact,
                confidence="medium" if clause.is_spoken else "high",
                source=source,
            )
        )
        known.add(found[-1])
    return found[:MOST_FACTS]


def _fact(clause: Clause, kinds: Mapping[str, str]) -> str | None:
    """Return what *clause* tells as a fact, None when that is none, or a moment."""
    predicate = predicate_of(clause)
    if predicate is None or clause.subject not in kinds or not (clause.is_named or _is_own(clause)) or clause.owned:
        return None
    is_telling = any(_tells(slot, kinds[clause.subject]) for slot in claim_of(clause, "").slots)
    if not is_telling and not _is_fact(clause.words, predicate):
        return None
    # Whom these mean, the fact alone does not tell.
    if any(_is_unclear(clause.words, place, predicate) for place in range(len(clause.words))):
        return None
    told = _rest(clause)
    return told if is_telling or (len(told.split()) >= _LEAST_WORDS and content_of(clause)) else None


def _is_unclear(words: Sequence[Word], place: int, predicate: Predicate) -> bool:
    """Tell whether the word at *place* means something that is told elsewhere; the "that" of "a knot that held" is not.

    In "that quay" and "that day" it does, and so does "her" in "loved her", unlike that in "loved her sister".
    """
    known, after = lexicon().words, words[place + 1 : place + 4]
    if words[place].low in known["possessives"]:
        return not after or not after[0].low[0].isalnum() or after[0].stem in lexicon().stop
    if words[place].low != "that" or place < 1:
        return words[place].low in known["unclear"]
    before = words[place - 1]
    is_noun = before.low[0].isalpha() and before.stem not in {*lexicon().stop, predicate.verb}
    return not is_noun or not after or any(word.low in known["times"] for word in after)


def _is_own(clause: Clause) -> bool:
    """Tell whether somebody says it of themselves."""
    return clause.speaker == clause.subject


def _tells(slot: Slot, kind: str) -> bool:
    """Tell whether *slot* of a claim about one of that *kind* tells a fact of itself."""
    if slot.kind == "place":
        return slot.key != "come" and (slot.key != "stand" or kind != "character")
    # People are broken for a while, things for good.
    return slot.kind in _TELLING and (kind != "character" or slot.key.split()[0] != "soundness")


def _is_fact(words: Sequence[Word], predicate: Predicate) -> bool:
    """Tell whether a predicate is no mere moment."""
    if predicate.form == "going on":
        return False
    if predicate.verb in lexicon().factual:
        # "owned up" and "worked out" tell of a moment.
        return predicate.form != "able" and not any(word.low in _PARTICLES for word in words[:4])
    at = next((place for place, word in enumerate(words) if word.stem in {_BE, _HAVE}), len(words))
    after = [word for word in words[at + 1 :] if not word.low.endswith("ly")][:2]
    if predicate.verb == _BE:
        return _is_what(after)
    if predicate.verb == _HAVE and predicate.form == "have":
        return _has_for_long(words[at + 1 :], predicate)
    return predicate.is_habit and predicate.verb in lexicon().lasting


def _is_what(after: Sequence[Word]) -> bool:
    """Tell whether the words *after* "is" say what somebody is: "was tired" and "was a mile off" are moments."""
    if after and after[0].low in lexicon().words["marks"]:
        return len(after) == 1 or not after[1].low[0].isalnum()
    passing = lexicon().nouns["passing"]
    return len(after) > 1 and (after[0].low in _ARTICLES or after[0].is_owner) and after[1].stem not in passing


def _has_for_long(owned: Sequence[Word], predicate: Predicate) -> bool:
    """Tell whether *owned*, the words behind "has", begin with what somebody keeps."""
    first = owned[:5]
    # "had one finger raised"
    if any(word.low.endswith("ed") for word in first):
        return False
    if any(word.stem in lexicon().nouns["enduring"] for word in first):
        return True
    at = next((place for place, word in enumerate(first) if word.stem in lexicon().nouns["belongings"]), None)
    passing = lexicon().words["for_now"]
    return at is not None and not predicate.is_negated and not any(word.low in passing for word in owned)


def _rest(clause: Clause) -> str:
    """Return the words of *clause* behind its subject, as they stand there, as one line that begins with a capital."""
    words = [word for word in clause.words if word.end]
    if not words:
        return ""
    start, end = words[0].start, max(word.end for word in words)
    said = clause.sentence[start:end].strip(" ,;:")
    first, _, rest = said.partition(" ")
    # "I have a sister" is told of whoever says so.
    said = f"{_OF_OTHERS[first.lower()]} {rest}" if clause.speaker and first.lower() in _OF_OTHERS else said
    line = one_line(said, LONGEST_FACT)
    return line[:1].upper() + line[1:]


def _bare(fact: str) -> str:
    return folded(fact).strip(" .")


@lru_cache(_KEPT)
def _gist(text: str) -> frozenset[str]:
    """Return the stems of the words of *text* that carry meaning, and its numbers."""
    stop = lexicon().stop
    stems = (stem(word.strip(".,;:!?()'")) for word in folded(text).split())
    return frozenset(one for one in stems if one and one not in stop) | numbers_in(text)
