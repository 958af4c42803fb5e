"""Check a fact that a model proposes for form and grounding: its quotation, its numbers, its dates and its marks.

The meaning of words is no question here. A fault is worded for the model, which may mend it once, and for people.
"""

import calendar
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from tasklore.contracts.quantities.numerals import find_amounts
from tasklore.memory.documents.entries import DocumentEntry, home_of, reference_of
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.grounding import locate, numbers_in
from tasklore.workers.agents.switchboard.answer import (
    DURABILITIES,
    RELATIONS,
    SAID,
    HeardFact,
)
from tasklore.workers.agents.switchboard.prompt import PromptScene

#: Characters of a statement, of a value and of a quotation: a sentence, a few words, and two sentences.
LONGEST_STATEMENT = 300
LONGEST_VALUE = 120
LONGEST_QUOTATION = 600
#: Items that one fact may name: a list that means one thing.
MOST_ITEMS = 20

#: Relations that take a kept item away.
RETIRING = frozenset(("updates", "ends", "contradicts", "forget"))
#: Relations that need no value where they name an item.
_NAMING = frozenset(("ends", "forget", "same"))

_DAY = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?(?:T.*)?\Z")
#: Words that a statement may have of its own: a few in any, of a longer one three in five, and at most these: "You love
#: ..., which your ... made". Where words are not spaced, pairs of signs are counted.
_OWN_FEW = 4
_OWN_WORDS = 8
_OWN_PAIRS = 20
#: How the names of signs begin whose scripts write no blanks between words.
_UNSPACED = (
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "KHMER",
    "LAO",
    "MYANMAR",
    "THAI",
    "TIBETAN",
)
#: Letters by which two words are held for forms of one.
_STEM = 3
#: How the names of signs begin whose scripts write articles as one with the word, and letters of these.
_PREFIXED = ("ARABIC", "HEBREW")
_PREFIX = 3


@dataclass(frozen=True, slots=True)
class Veto:
    """A fault: the field, why, and a *word* that labels a metric."""

    field: str
    complaint: str
    word: str

    def __str__(self) -> str:
        return f"{self.field}: {self.complaint}"


@dataclass(frozen=True, slots=True)
class Checked:
    """A fact in form and grounded: *text* for people, *quotation* as it stands in the turn, *related* references."""

    heard: HeardFact
    text: str
    quotation: str
    valid_from: date | None
    until: date | None
    related: tuple[str, ...]


class Checker:
    """Checks the facts of one answer, in their order; `@2` in it is the second of them.

    *facts* are those of the answer, by number from 1, None for one that is not kept.
    """

    def __init__(
        self, scene: PromptScene, kinds: Kinds, facts: Mapping[int, HeardFact | None]
    ) -> None:
        self._scene = scene
        self._kinds = kinds
        self._facts = facts

    def check(self, heard: HeardFact, number: int) -> Checked | list[Veto]:
        """Return fact *number* as it may be kept, or all its faults."""
        faults = list(self._faults_of_form(heard))
        is_placed = home_of(heard.category, heard.subject, self._kinds) is not None
        if not is_placed and not (
            heard.relation == "forget" and self._is_topic(heard.category)
        ):
            faults.append(Veto("category", "must be one of the list", "place"))
        quotation = ""
        if 1 <= heard.turn <= len(self._scene.turns):
            quotation = self._quotation_of(heard) or ""
            if not quotation:
                faults.append(
                    Veto(
                        "quotation",
                        f"does not stand in turn {heard.turn}; copy its words",
                        "evidence",
                    )
                )
        else:
            faults.append(
                Veto("turn", f"must be 1 to {len(self._scene.turns)}", "evidence")
            )
        days = self._read_days(heard, faults)
        named = self._read_items(heard, number, faults)
        faults += self._faults_of_value(heard, named, days)
        faults += self._faults_of_protected(heard, named)
        if faults:
            return faults
        references = tuple(
            dict.fromkeys(
                one.reference if isinstance(one, DocumentEntry) else one
                for one in named
            )
        )
        text = heard.statement.strip()
        if self.says_too_much(heard, named):
            value = heard.value.strip() or ", ".join(
                one.text for one in named if isinstance(one, DocumentEntry)
            )
            text = f"{heard.category or heard.relation}: {value}"
        return Checked(heard, text, quotation, *days, references)

    def says_too_much(
        self, heard: HeardFact, named: Sequence[DocumentEntry | str] = ()
    ) -> bool:
        """Return whether the statement has numbers, or many words, that were neither said nor shown.

        The day of the turns and the days of the fact are shown, too.
        """
        said = "\n".join(
            [
                self._scene.text,
                *(one.text for one in named if isinstance(one, DocumentEntry)),
            ]
        )
        days = (
            self._scene.today,
            _day(heard.valid_from, is_last=False),
            _day(heard.until, is_last=True),
        )
        grounded = _amounts(said) | _parts(days)
        if any(
            n.readings and grounded.isdisjoint(n.readings)
            for n in numbers_in(heard.statement)
        ):
            return True
        stems = _stems(heard.statement)
        most = (
            _OWN_PAIRS
            if any(map(_is_unspaced, _words(heard.statement)))
            else _OWN_WORDS
        )
        return len(stems - _said_stems(said)) > min(
            most, max(_OWN_FEW, len(stems) * 3 // 5)
        )

    def _faults_of_form(self, heard: HeardFact) -> Iterator[Veto]:
        for field, words in (
            ("said", SAID),
            ("relation", RELATIONS),
            ("durability", DURABILITIES),
        ):
            if getattr(heard, field) not in words:
                yield Veto(field, f"must be one of {', '.join(words)}", "shape")
        for field, most in (
            ("statement", LONGEST_STATEMENT),
            ("value", LONGEST_VALUE),
            ("quotation", LONGEST_QUOTATION),
            ("subject", LONGEST_VALUE),
        ):
            if len(getattr(heard, field)) > most:
                yield Veto(
                    field, f"has more than {most} characters; shorten it", "shape"
                )
        if not heard.statement.strip():
            yield Veto("statement", "is needed", "shape")
        if (
            not heard.value.strip()
            and not (heard.relation in _NAMING and heard.items)
            and heard.relation != "forget"
        ):
            yield Veto("value", "is needed", "shape")

    def _is_topic(self, category: str) -> bool:
        """Return whether *category* is a prefix of several places, or empty, which means all."""
        places = (
            str(place.path)
            for kind in self._kinds.by_id.values()
            for place in kind.places
        )
        return not category or any(path.startswith(f"{category}.") for path in places)

    def _quotation_of(self, heard: HeardFact) -> str | None:
        """Return the quotation as it stands in its turn, None when it does not."""
        text = self._scene.turns[heard.turn - 1].text
        if len(heard.quotation) > LONGEST_QUOTATION or not any(
            map(str.isalnum, heard.quotation)
        ):
            return None
        place = next(locate(heard.quotation, text), None)
        return None if place is None else text[place.start : place.end]

    def _read_days(
        self, heard: HeardFact, faults: list[Veto]
    ) -> tuple[date | None, date | None]:
        days: list[date | None] = []
        for field, is_last in (("valid_from", False), ("until", True)):
            said = getattr(heard, field).strip()
            day = _day(said, is_last=is_last) if said else None
            if said and day is None:
                faults.append(
                    Veto(field, 'must be a day as YYYY-MM-DD, or ""', "dates")
                )
            days.append(day)
        begin, end = days
        if begin is not None and end is not None and end < begin:
            faults.append(Veto("until", "is before valid_from", "dates"))
        return begin, end

    def _read_items(
        self, heard: HeardFact, number: int, faults: list[Veto]
    ) -> list[DocumentEntry | str]:
        """Return the entries that the marks of *heard* name, or references of facts before it."""
        if len(heard.items) > MOST_ITEMS:
            faults.append(Veto("items", f"names more than {MOST_ITEMS}", "sweep"))
            return []
        named: list[DocumentEntry | str] = []
        for mark in heard.items:
            found = (
                self._fact_at(mark, number)
                if mark.startswith("@")
                else self._scene.shown.at(mark)
            )
            if found is None:
                last = len(self._scene.shown.entries)
                known = (
                    f"#1 to #{last}, or @1 for an earlier fact of this answer"
                    if last
                    else "none, so give []"
                )
                faults.append(
                    Veto(
                        "items",
                        f"{mark[:20]!r} is no mark that was shown; there are {known}",
                        "path",
                    )
                )
            elif found:
                named.append(found)
        return named

    def _fact_at(self, mark: str, number: int) -> str | None:
        """Return the reference that the fact of *mark* will have, "" when it is not kept; None without such a fact."""
        digits = mark.removeprefix("@").strip()
        if not digits.isdecimal() or len(digits) > 4 or not 1 <= int(digits) < number:
            return None
        heard = self._facts.get(int(digits))
        place = (
            home_of(heard.category, heard.subject, self._kinds)
            if heard is not None
            else None
        )
        return (
            reference_of(place, heard.value)
            if heard is not None and place is not None and heard.value
            else ""
        )

    def _faults_of_value(
        self,
        heard: HeardFact,
        named: list[DocumentEntry | str],
        days: tuple[date | None, date | None],
    ) -> Iterator[Veto]:
        """Yield numbers and words of value and subject that were neither said nor shown.

        The days of the fact count as shown, but where it is protected: a birthday has the year that was said, or none.
        """
        entries = [one for one in named if isinstance(one, DocumentEntry)]
        said = "\n".join(
            [self._scene.text, *(f"{one.subject} {one.text}" for one in entries)]
        )
        place = home_of(heard.category, heard.subject, self._kinds)
        is_protected = place is not None and place.protected
        grounded = _amounts(said) | (set() if is_protected else _parts(days))
        for number in numbers_in(heard.value):
            if number.readings and grounded.isdisjoint(number.readings):
                written = heard.value[number.start : number.end]
                yield Veto(
                    "value",
                    f"{written} was not said; write it as the person does",
                    "number",
                )
        known = _said_stems(said)
        words = _words(said)
        for field in ("value", "subject"):
            stems = _stems(getattr(heard, field))
            short = [] if stems else _short_words(getattr(heard, field))
            is_unknown = short and not any(
                word.startswith(one) for one in short for word in words
            )
            if is_unknown or 2 * len(stems & known) < len(stems):
                yield Veto(
                    field,
                    "its words were not said; use those of the turn, in its language",
                    "support",
                )

    def _faults_of_protected(
        self, heard: HeardFact, named: list[DocumentEntry | str]
    ) -> Iterator[Veto]:
        """Yield entries about health that are to go and that no turn names: the harm is too great for a slip."""
        if heard.relation not in RETIRING:
            return
        said = _said_stems(self._scene.text)
        for entry in named:
            kind = (
                self._kinds.get(entry.resource_id)
                if isinstance(entry, DocumentEntry)
                else None
            )
            if (
                isinstance(entry, DocumentEntry)
                and kind is not None
                and kind.guarded
                and not _telling_stems(entry.text) & said
            ):
                yield Veto(
                    "items",
                    f"{entry.text[:60]!r} is about health, and no turn names it",
                    "guarded",
                )


def _day(said: str, *, is_last: bool) -> date | None:
    """Return the date of *said*; of a month or a year the first day, or the last."""
    match = _DAY.match(said)
    if match is None:
        return None
    year = int(match[1])
    month = int(match[2] or (12 if is_last else 1))
    day = int(match[3] or 0)
    try:
        if day:
            return date(year, month, day)
        first = date(year, month, 1)
        return (
            first.replace(day=calendar.monthrange(year, month)[1]) if is_last else first
        )
    except ValueError:
        return None


def _parts(days: Iterable[date | None]) -> set[Decimal]:
    """Return years, months and days of *days* as numbers."""
    return {
        Decimal(part)
        for day in days
        if day is not None
        for part in (day.year, day.month, day.day)
    }


def _amounts(text: str) -> set[Decimal]:
    """Return every number of *text*, in digits of any script or in words that are known."""
    found = {reading for number in numbers_in(text) for reading in number.readings}
    return found | {
        reading for amount in find_amounts(text) for reading in amount.readings
    }


def _said_stems(text: str) -> set[str]:
    """Return the stems of *text*, and each sign where words are not spaced: a word may be one of them.

    Where articles are written as one with the word, its stems without them are among these.
    """
    words = _words(text)
    bare = (
        word[at:]
        for word in words
        if _is_of(word, _PREFIXED)
        for at in range(1, _PREFIX + 1)
    )
    signs = (word for word in words if _is_unspaced(word))
    return _stems(" ".join((*words, *bare))).union(*signs)


def _telling_stems(text: str) -> set[str]:
    """Return the stems of *text*; single signs only where it has nothing longer."""
    stems = _stems(text)
    return {stem for stem in stems if len(stem) > 1} or stems


def _words(text: str) -> list[str]:
    """Return the words of *text* in small letters, without accents; signs of vowels belong to them."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(
        sign if sign.isalnum() or unicodedata.category(sign)[0] == "M" else " "
        for sign in plain
        if not unicodedata.combining(sign)
    ).split()


def _short_words(text: str) -> list[str]:
    """Return the words of *text* that have no stem, and are no numbers."""
    return [word for word in _words(text) if not word.isdecimal()]


def _stems(text: str) -> set[str]:
    """Return the beginnings of the longer words of *text*; where words are not spaced, pairs of its signs."""
    stems: set[str] = set()
    for word in _words(text):
        if _is_unspaced(word):
            stems |= {word[at : at + 2] for at in range(max(1, len(word) - 1))}
        elif len(word) >= _STEM and not word.isdecimal():
            stems.add(word[:_STEM])
    return stems


def _is_unspaced(word: str) -> bool:
    return _is_of(word, _UNSPACED)


def _is_of(word: str, scripts: tuple[str, ...]) -> bool:
    return any(unicodedata.name(sign, "").startswith(scripts) for sign in word)
