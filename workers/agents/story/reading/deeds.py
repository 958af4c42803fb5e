"""Who says and who does what a response tells: each part of a sentence with the character it belongs to.

Rules guess with care: a name goes before a pronoun, a pronoun means whoever was named first and can be meant by those
in their file, and speech that nothing ascribes is somebody's only where one alone is left to say it.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from contracts.stories import Entity
from workers.agents.story.reading.casting import Cast, Handles, speaker
from workers.agents.story.reading.phrases import affirmed
from workers.agents.story.reading.prose import (
    Quotation,
    Sentence,
    ends_of,
    folded,
    paragraphs,
    quotations,
    sentences,
    words,
)

#: A pronoun that says what stands before it.
_SAYS = re.compile(r"\W*(?:he|she)\b")
#: One that somebody acts under.
_BEGINS = re.compile(r"\W*(?:he|she)\b", re.IGNORECASE)
#: What stands between two clauses, before the name of whoever acts in the second.
_JOINS = re.compile(r"[,;:\u2014]\s+(?:(?:and|but|while|then|so|because|until)\s+)?$")
#: Characters of it that are looked at.
_JOINED = 40
#: Whom what is said may be about, but for whoever says it.
_NOT_I = frozenset({"you", "he", "she", "they", "it"})
_HE = re.compile(r"\b(?:he|him|his)\b", re.IGNORECASE)
_SHE = re.compile(r"\b(?:she|her|hers)\b", re.IGNORECASE)
_PRONOUN = re.compile(f"{_HE.pattern}|{_SHE.pattern}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Deed:
    """What *who*, a character in the scene, says or does: `text`, a part of `sentence`; `is_said` when they say it.

    `quotation` is all that they say in one breath there, None when they say nothing. `others` are words that stand for
    somebody else when something is said of them: "you" in what is said, "he" where *who* is a woman, other names.
    """

    who: str
    text: str
    sentence: str
    is_said: bool = False
    quotation: str | None = None
    others: frozenset[str] = frozenset()

    def shows(self, phrases: Sequence[str]) -> re.Match[str] | None:
        """Return where it says one of *phrases* as a fact and of *who*: not in "you promised" or "he saw Ines leap"."""
        found = affirmed(phrases, self.text)
        if found is None:
            return None
        before = words(self.text[: found.start()])[-1:]
        return None if before and folded(before[0]) in self.others else found


def deeds_in(text: str, entities: Sequence[Entity], cast: Cast) -> list[Deed]:
    """Return what the characters in the scene say and do in *text*, in order; what nobody in it does is left out.

    Of a text that is longer than two chapters the beginning and the end are read.
    """
    return list(_Reader(ends_of(text), entities, cast).deeds())


class _Reader:
    """Reads one response from its beginning to its end, and keeps in mind who acted and who spoke last."""

    def __init__(self, text: str, entities: Sequence[Entity], cast: Cast) -> None:
        self._text = text
        self._characters = [entity for entity in entities if entity.name in cast.in_scene]
        self._handles = Handles([entity for entity in entities if entity.kind == "character"])
        self._in_scene = cast.in_scene
        known = [called for entity in entities for called in (entity.name, *entity.aliases)]
        self._words = {"i", *(word for called in known for word in words(folded(called)))}
        self._leanings = {
            one.name: len(_HE.findall(one.text)) - len(_SHE.findall(one.text)) for one in self._characters
        }
        self._spoken = quotations(text)
        self._speakers = self._all_speakers()

    def deeds(self) -> Iterator[Deed]:
        """Yield what is told and what is said, sentence by sentence."""
        last: list[str] = []
        for sentence in sentences(self._text):
            said = self._said_in(sentence)
            told = self._told(sentence, [quotation for quotation, _ in said])
            for part in self._clauses(told):
                named = self._named(part)
                who = self._acts(part, named, last)
                last = self._in_mind(part, [*filter(None, [who]), *named], last)
                if who is not None:
                    breath = next((quotation.text for quotation, by in said if by == who), None)
                    yield Deed(who, part, sentence.text, quotation=breath, others=self._others(who))
            for quotation, by in said:
                part = self._text[max(sentence.start, quotation.start) : min(sentence.end, quotation.end)]
                if by is not None:
                    last = [by, *(name for name in last if name != by)]
                    yield Deed(by, part, sentence.text, is_said=True, quotation=quotation.text, others=_NOT_I)

    def _said_in(self, sentence: Sentence) -> list[tuple[Quotation, str | None]]:
        """Return what is said in *sentence*, with who says it; it is looked up, since a chapter may say much."""
        first = bisect_right(self._spoken, sentence.start, key=attrgetter("end"))
        last = bisect_left(self._spoken, sentence.end, key=attrgetter("start"))
        return list(zip(self._spoken[first:last], self._speakers[first:last], strict=True))

    def _told(self, sentence: Sentence, said: Sequence[Quotation]) -> str:
        """Return *sentence* with a dash for what is *said* in it."""
        told, at = "", sentence.start
        for quotation in said:
            if quotation.end > at:
                told += self._text[at : max(at, quotation.start)] + "\u2014"
                at = quotation.end
        return told + self._text[at : sentence.end] if at < sentence.end else told

    def _clauses(self, told: str) -> Iterator[str]:
        """Yield the parts of *told*, each of which somebody else acts in: "She sat down, and Mara left"."""
        first = 0
        for naming in self._handles.find(told):
            if naming.name in self._in_scene and _JOINS.search(told, max(first, naming.start - _JOINED), naming.start):
                yield told[first : naming.start]
                first = naming.start
        if any(sign.isalnum() for sign in told):
            yield told[first:]

    def _acts(self, told: str, named: Sequence[str], last: Sequence[str]) -> str | None:
        """Return who acts in *told*: whom its first word means, else who is named first, else whom a pronoun means."""
        if _BEGINS.match(told):
            return self._meant(told, last)
        if named:
            return named[0]
        return None if self._strangers(told) else self._meant(told, last)

    def _strangers(self, told: str) -> bool:
        """Tell whether *told* names somebody, or something, that the story has no file of."""
        return any(word[0].isupper() and folded(word) not in self._words for word in words(told)[1:])

    def _named(self, told: str) -> list[str]:
        return [naming.name for naming in self._handles.find(told) if naming.name in self._in_scene]

    def _in_mind(self, told: str, named: Sequence[str], last: Sequence[str]) -> list[str]:
        """Return who can be meant after *told*: nobody known once it names a stranger and nobody else."""
        if named:
            return list(dict.fromkeys(named))
        return [] if self._strangers(told) else list(last)

    def _others(self, who: str) -> frozenset[str]:
        """Return the words that mean somebody else than *who* in what is told."""
        names = {word for name in self._in_scene if name != who for word in words(folded(name))}
        return frozenset(names | {word for word in ("he", "she") if not self._can_be(who, word)} | {"they"})

    def _meant(self, told: str, last: Sequence[str]) -> str | None:
        """Return whom a sentence without a name means by its pronoun: the first of those named last who can be."""
        return next((name for name in last if self._can_be(name, told)), None) if _says_pronoun(told) else None

    def _can_be(self, name: str, told: str) -> bool:
        """Tell whether the first pronoun of *told* can stand for somebody, by those in their file."""
        first, leaning = _PRONOUN.search(told), self._leanings.get(name, 0)
        if first is None or not leaning:
            return True
        return (_HE if leaning > 0 else _SHE).fullmatch(first[0]) is not None

    def _all_speakers(self) -> list[str | None]:
        """Return who says each quotation, None where nothing tells."""
        found: list[str | None] = []
        before: str | None = None
        starts, last = [start for start, _ in paragraphs(self._text)], 0
        for quotation in self._spoken:
            place = bisect_right(starts, quotation.start)
            alongside = found[-1] if found and place == last else None
            last = place
            who = self._named_speaker(quotation) or alongside or self._other(before, quotation)
            found.append(who)
            before = who or before
        return found

    def _named_speaker(self, quotation: Quotation) -> str | None:
        """Return who is told to say it; in `Tobias saw Mara. "Wait," he said.` that is Tobias, by his file."""
        if _SAYS.match(quotation.after):
            return self._meant(quotation.after, self._named(quotation.before))
        return speaker(quotation, self._characters)

    def _other(self, before: str | None, quotation: Quotation) -> str | None:
        """Return who speaks where no name is given, and somebody else did *before*: whoever alone can."""
        around = f"{quotation.before} {quotation.after}"
        others = [name for name in self._in_scene if name != before]
        if _says_pronoun(around):
            others = [name for name in others if self._can_be(name, around)]
        elif before is None:
            return None
        return others[0] if len(others) == 1 else None


def _says_pronoun(told: str) -> bool:
    return _PRONOUN.search(told) is not None
