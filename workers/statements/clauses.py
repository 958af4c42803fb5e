"""A clause made ready for patterns: in the first person, its subject in front, without what only surrounds it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from workers.statements.dates import Dates, End
from workers.statements.grammar import Grammar
from workers.statements.slots import Slots
from workers.statements.tokens import Word

#: Words that may stand before the subject of a clause: "On Tuesdays and Thursdays,".
_LONGEST_ADVERBIAL = 8
#: Places at the beginning of a clause at which "no longer" is looked for.
_TURN_WITHIN = 5
#: Times and closing words that are taken off the end of a clause, one after the other.
_MOST_ENDS = 6
#: Signs that may end a thing.
_CLOSING_SIGNS = frozenset({")", "%", "+", "#"})


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause as patterns see it: `words` in the first person, `place` in the text.

    `ending` is what its end says of time. `is_third` tells that it was said of "the user", as it is written, and
    `is_weak` that it is denied to be so much: of "I do not like tea much" a dislike is left, of a habit nothing.
    """

    words: tuple[Word, ...]
    place: tuple[int, int]
    is_third: bool = False
    ending: End | None = None
    is_weak: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """Its words as they are compared."""
        return tuple(word.text for word in self.words)


class Clauses:
    """Cuts sentences into clauses and brings them into form; pure."""

    def __init__(self, grammar: Grammar, dates: Dates, slots: Slots) -> None:
        self._grammar = grammar
        self._dates = dates
        self._slots = slots
        turned = reversed(list(grammar.person_words.items()))
        self._mine = {other: own for own, other in turned if own != grammar.first}

    def split(self, words: tuple[Word, ...]) -> Iterator[tuple[Word, ...]]:
        """Yield the clauses of a sentence, each of which begins with a subject of its own."""
        joins, begin = self._grammar.joins, 0
        for place in range(1, len(words)):
            if words[place].text not in joins:
                continue
            if place == begin:
                begin = place + 1
            elif self.begins(words, place + 1):
                yield words[begin:place]
                begin = place + 1
        yield words[begin:]

    def begins(self, words: tuple[Word, ...], place: int) -> bool:
        """True when a clause with a subject begins at *place*, after words such as "and also"."""
        grammar = self._grammar
        while place < len(words) and (words[place].text in grammar.joins or words[place].text in grammar.adverbs):
            place += 1
        if place >= len(words):
            return False
        text = words[place].text
        return text in (grammar.first, grammar.owner) or self._third(words[place : place + 3]) > 0

    def candidates(self, words: tuple[Word, ...], today: date) -> Iterator[Clause]:
        """Yield the ways to take a clause: bare of what only surrounds it, with more of that, and as an order."""
        grammar = self._grammar
        place = (words[0].start, words[-1].end)
        reason = grammar.reasons.place_in([word.text for word in words], 3)
        whole = self._turned(Clause(words[:reason] if reason else words, place), today)
        for clause in self._with_ends(self._in_first_person(whole), today):
            yield clause
            length = grammar.wishes.opening(clause.texts)
            if length and clause.texts[length : length + 1] and clause.texts[length] in grammar.openings:
                yield replace(clause, words=clause.words[length:])

    def before_and_now(self, clause: Clause) -> tuple[Clause, Clause] | None:
        """Return what was so before and what is said to be now, when *clause* has a "no longer" or an "any more"."""
        turns, words, texts = self._grammar.turns, clause.words, clause.texts
        place = turns.no_longer.place_in(texts[:_TURN_WITHIN])
        if place is not None:
            before, after = words[:place], words[place + turns.no_longer.opening(texts[place:]) :]
            if turns.limiting.intersection(word.text for word in after[:1]):
                return None
            is_helped = place > 0 and texts[place - 1] in turns.helping
            denied = turns.denials[1] if is_helped else turns.denials[0]
            denying = tuple(replace(words[place], text=one, written=one) for one in denied)
            return replace(clause, words=before + after), replace(clause, words=before + denying + after)
        length = turns.any_more.closing(texts)
        if not length:
            return None
        rest, said = words[:-length], texts[:-length]
        for denied in turns.denials:
            for at in range(1, min(4, len(said))):
                if said[at : at + len(denied)] == denied:
                    if turns.limiting.intersection(said[at + len(denied) :][:1]):
                        return None
                    return replace(clause, words=rest[:at] + rest[at + len(denied) :]), replace(clause, words=rest)
        return None

    # -- what surrounds a clause -------------------------------------------------------------------------------------

    def _with_ends(self, clause: Clause, today: date) -> Iterator[Clause]:
        """Yield *clause* without what its end says about time or only rounds it off, the barest first."""
        stages = [clause]
        while len(stages) <= _MOST_ENDS and (shorter := self._shortened(stages[-1], today)) is not None:
            stages.append(shorter)
        yield from (one for one in reversed(stages) if one.is_weak == stages[-1].is_weak)

    def _shortened(self, clause: Clause, today: date) -> Clause | None:
        words = clause.words
        while words and not words[-1].text[:1].isalnum() and words[-1].text not in _CLOSING_SIGNS:
            words = words[:-1]
        if len(words) < 2:
            return None
        texts = tuple(word.text for word in words)
        end = self._dates.end_of(texts, today) if clause.ending is None else None
        if end is not None and end.words < len(words):
            is_end = not self._grammar.is_behind(texts, end.words)
            return replace(clause, words=words[: -end.words], ending=end if is_end else None)
        if self._grammar.is_denied(texts):
            if self._grammar.limits.closing(texts):
                return replace(clause, words=(), is_weak=True)
            if 0 < (length := self._grammar.degrees.closing(texts)) < len(words):
                return replace(clause, words=words[:-length], is_weak=True)
        length = self._grammar.tails.closing(texts) or self._grammar.past.closing(texts)
        if not length and self._grammar.is_past(texts):
            length = self._dates.begun(texts)
        if 0 < length < len(words):
            return replace(clause, words=words[:-length])
        return replace(clause, words=words) if len(words) < len(clause.words) else None

    def _turned(self, clause: Clause, today: date) -> Clause:
        """Bring what stands before the subject to the end: "On Fridays I work from home"."""
        words = clause.words
        for place in range(1, min(_LONGEST_ADVERBIAL, len(words))):
            if words[place].text not in self._grammar.adverbs and self.begins(words, place):
                before = words[: place - 1] if words[place - 1].text == "," else words[:place]
                end = self._dates.end_of([word.text for word in before], today)
                is_time = self._slots.is_time(before) or (end is not None and end.words == len(before))
                return replace(clause, words=words[place:] + before) if is_time else clause
        return clause

    # -- whose clause it is ------------------------------------------------------------------------------------------

    def _third(self, words: Sequence[Word]) -> int:
        return self._grammar.third.opening([word.text for word in words])

    def _in_first_person(self, clause: Clause) -> Clause:
        """Return a clause about "the user" as the user would say it; what is written stays."""
        length = self._third(clause.words[:4])
        if not length:
            return clause
        subject, rest = clause.words[length - 1], list(clause.words[length:])
        if rest and rest[0].text == "'s":
            owner = Word(self._grammar.owner, subject.written, subject.start, rest[0].end)
            return replace(clause, words=(owner, *self._as_mine(rest[1:])), is_third=True)
        verb = next((place for place, word in enumerate(rest) if word.text not in self._grammar.adverbs), None)
        if verb is not None:
            rest[verb] = replace(rest[verb], text=self._grammar.base(rest[verb].text))
        first = Word(self._grammar.first, subject.written, subject.start, subject.end)
        return replace(clause, words=(first, *self._as_mine(rest)), is_third=True)

    def _as_mine(self, words: Sequence[Word]) -> list[Word]:
        return [replace(word, text=self._mine.get(word.text, word.text)) for word in words]
