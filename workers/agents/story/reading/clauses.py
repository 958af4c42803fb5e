"""Sentences cut into clauses, each with the one whom it is about: what rules can take for a statement.

Conservative: a clause whose subject is not plain, that asks, doubts, compares or makes a condition, is left out. She,
he and it stand for the subject of the sentence before, as long as nobody else came up.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from workers.agents.story.reading.casting import is_spoken_to
from workers.agents.story.reading.file_lines import bare
from workers.agents.story.reading.lexicon import lexicon, stem
from workers.agents.story.reading.named_words import Names, Word, words_of
from workers.agents.story.reading.phrases import says_any
from workers.agents.story.reading.prose import Quotation, ends_of, paragraphs, quotations, sentences, words

#: Words and characters of a sentence that is read: a longer one is none.
_LONGEST, _LONGEST_SIGNS = 150, 2_000
#: Words of a line that says something without naming whom it is about.
_LEAST = 2
#: Words before a name at the beginning of a sentence, as in "In the year of the wreck, Mara kept the lamp".
_LEAD = 9

_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)]|>)[ \t]+", re.MULTILINE)
_HEADING = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_LABEL = re.compile(r"^([A-Z][\w -]{1,30}):\s+(?=\S)")
_IS, _HAS = Word("is", "is", stem("is")), Word("has", "has", stem("has"))
_ENDS = frozenset(".!?\u2026")
_BREAKS = frozenset(",;:()\u2014\u2013") | {"--"}


@dataclass(frozen=True, slots=True)
class Clause:
    """What `words` say of `subject`; `owned` when they begin with something of the subject's ("Mara's left ear").

    `is_main` when its sentence begins with it, `is_named` when it names its subject itself. `then` is the sign or word
    that joins the next clause to it, `speaker` who says it.
    """

    subject: str
    words: tuple[Word, ...]
    sentence: str
    owned: bool = False
    is_spoken: bool = False
    is_main: bool = False
    is_named: bool = False
    then: str = ""
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class _Segment:
    connector: str
    words: tuple[Word, ...]
    before: Word | None
    then: str


def clauses_in(text: str, names: Names, teller: str | None = None) -> list[Clause]:
    """Return the clauses of prose that tell something: what is told first, then what is said in it.

    *teller* is who "I" is in what is told, None for nobody of whom anything is known. Of a text that is longer than two
    chapters the beginning and the end are read.
    """
    text = ends_of(text)
    spoken = quotations(text)
    found = _clauses(_without(text, spoken), text, names, speaker=teller)
    speaker, last = None, 0
    for one in spoken:
        # Whoever goes on in the same paragraph is named once.
        goes_on = "\n" not in text[last : one.start].strip(" ")
        speaker = _speaker(one, names) or (speaker if goes_on and last else None)
        said = _clauses(one.text, one.text, names, speaker=speaker)
        found += [replace(clause, is_spoken=True, speaker=speaker) for clause in said]
        last = one.end
    return found


def _speaker(said: Quotation, names: Names) -> str | None:
    """Return who says it, when what stands right behind or before it tells so: "..., said Mara", "Mara said, ..."."""
    behind = re.split(r"[.!?\u2026;]", said.after, maxsplit=1)[0]
    before = re.split(r"[.!?\u2026;]\s", said.before.rstrip())[-1] if said.before.endswith((",", ":")) else ""
    for told in (behind, before):
        named = [one for one in names.handles.find(told) if not is_spoken_to(told, one)]
        verbs = {stem(word) for word in words(told.lower())[: 1 if told is behind and told[:1].islower() else 6]}
        if len({one.name for one in named}) == 1 and verbs & lexicon().saying:
            return named[0].name
    return None


def clauses_of_file(text: str, names: Names, whose: str) -> list[Clause]:
    """Return the clauses of a file, a fact or a memory of *whose*: what names nobody is about them.

    Each item of a list is read by itself, and headings are not.
    """
    plain = _ITEM.sub("\n\n", _HEADING.sub("\n", text))
    told = (bare(plain[start:end]) for start, end in paragraphs(plain))
    return [clause for line in told for clause in _clauses(line, line, names, whose)]


def _clauses(
    told: str, text: str, names: Names, implied: str | None = None, speaker: str | None = None
) -> list[Clause]:
    """Return the clauses of *told*, which stands in *text* at the same places."""
    found: list[Clause] = []
    for start, end in paragraphs(told):
        antecedent = implied
        for sentence in sentences(told[start:end]):
            if len(sentence.text) > _LONGEST_SIGNS or len(sentence.text.split()) > _LONGEST:
                continue
            begin = start + sentence.start
            here = list(_told(sentence.text, names, _Around(antecedent, implied, speaker, names.characters)))
            found += [replace(clause, sentence=text[begin : start + sentence.end]) for clause in here]
            antecedent = _antecedent(sentence.text, here, names, antecedent)
    return found


def _without(text: str, spoken: Sequence[Quotation]) -> str:
    """Return *text* with blanks for what is said in it, and a full stop where that ends the sentence around it.

    What asks is what is said: `Mara owned it. "Who says so?"` tells something.
    """
    pieces, at = [], 0
    for one in spoken:
        ends = one.text[-1:] in _ENDS and one.before and one.before[-1] not in _ENDS
        sign = "." if ends else " "
        pieces += [text[at : one.start], " " * (one.end - one.start - 1), sign]
        at = one.end
    return "".join((*pieces, text[at:]))


@dataclass(frozen=True, slots=True)
class _Around:
    """Whom a sentence may mean that it does not name: by "she", by nothing, and by "I"."""

    antecedent: str | None
    implied: str | None
    speaker: str | None
    characters: frozenset[str]


def _told(text: str, names: Names, around: _Around) -> Iterator[Clause]:
    """Yield the clauses of one sentence."""
    told = words_of(text, names.handles)
    if not told or text.rstrip("\"'\u201d\u2019 ").endswith("?") or says_any(lexicon().words["doubt_phrases"], text):
        return
    if around.implied is not None and _LABEL.match(text):
        # "Age: 34" is said of whoever's file it is.
        words_of_it = tuple(word for word in told if word.low != ":")
        yield Clause(around.implied, words_of_it, text, owned=True, is_main=True)
        return
    subject: str | None = None
    persons: set[str] = set()
    for number, segment in enumerate(_segments(told)):
        here = around if number == 0 else replace(around, antecedent=None, implied=None)
        clause, subject = _clause(segment, text, subject, here, persons)
        persons |= {word.name for word in segment.words if word.name and word.is_entity}
        if clause is not None and clause.words:
            yield replace(clause, is_main=number == 0, then=segment.then)


def _begins_bare(told: Sequence[Word]) -> bool:
    """Tell whether a line of a file leaves its subject out: "Lives in the tower", "Keeper of the light"."""
    first = told[0]
    if len(told) < _LEAST or first.name is not None or first.low in lexicon().words["pronouns"]:
        return False
    return (_is_verb(first) and first.text[0].isupper()) or not any(_is_verb(word) for word in told[:_LEAD])


def _segments(words: Sequence[Word]) -> Iterator[_Segment]:
    """Yield the pieces between signs and the words that join clauses."""
    joins = lexicon().words["connectors"]
    connector, before = "", None
    piece: list[Word] = []
    last: Word | None = None
    for place, word in enumerate(words):
        is_sign = word.low in _BREAKS and (word.low != "," or _ends_clause(words, place, connector))
        joins_here = word.low in joins and _joins(words, place)
        if is_sign or joins_here:
            if piece:
                yield _Segment(connector, tuple(piece), before, word.low)
                connector, piece, before = "", [], last
            if joins_here:
                connector, before = word.low, last
            continue
        piece.append(word)
        last = word
    if piece:
        yield _Segment(connector, tuple(piece), before, "")


def _ends_clause(words: Sequence[Word], place: int, connector: str) -> bool:
    """Tell whether the comma at *place* ends the clause that *connector* began."""
    if place + 1 >= len(words) or connector in {"who", "which"}:
        # "Mara, who kept the lamp, went up": what follows tells something else.
        return place + 1 < len(words)
    known, following = lexicon().words, words[place + 1]
    # "When the ice sang, Mara was at the window": the main clause comes behind the other.
    begins = (following.is_entity and not following.is_owner) or following.low in known["pronouns"]
    return following.low in known["connectors"] or (begins and connector in known["leading"])


def _joins(words: Sequence[Word], place: int) -> bool:
    """Tell whether the joining word at *place* joins clauses, and not two things."""
    word = words[place].low
    if word in {"and", "but", "or", "for", "so", "yet", "since", "before", "after", "until"}:
        following = words[place + 1 : place + 3]
        if not following:
            return False
        first = following[0]
        if first.low in lexicon().words["pronouns"] or first.low in {"who", "which", "i", "they", "we", "you"}:
            return True
        if first.low in lexicon().words["possessives"]:
            return place > 0 and words[place - 1].low == ","
        if first.name is not None and not first.is_owner:
            return len(following) > 1 and following[1].stem in _verbs()
        return word in {"and", "but"} and _is_verb(first) and first.name is None
    if word == "that":
        return place > 0 and (words[place - 1].low == "," or words[place - 1].stem in lexicon().saying)
    return True


def _is_verb(word: Word) -> bool:
    return word.stem in _verbs() or word.low.endswith("ed") or word.low in lexicon().forms


def _verbs() -> frozenset[str]:
    return lexicon().lasting | lexicon().words["auxiliaries"] | {"hav"}


def _clause(
    segment: _Segment, text: str, subject: str | None, around: _Around, persons: set[str]
) -> tuple[Clause | None, str | None]:
    """Return what *segment* tells, None for nothing, and whom the next one goes on about."""
    known = lexicon().words
    is_told = not segment.connector or segment.connector in known["telling"]
    is_told = is_told and not any(word.low in known["doubt"] for word in segment.words)
    told = _led_in(segment.words)
    first = told[0]
    goes_on = segment.connector in {"and", "but"}
    clause: Clause | None = None
    if first.is_entity and first.name is not None:
        if len(told) > 1 and told[1].low in {"and", "or"} and any(word.name for word in told[2:4]):
            return None, None
        clause, subject = Clause(first.name, told[1:], text, owned=first.is_owner, is_named=True), first.name
    elif segment.connector in {"who", "which"}:
        before = segment.before
        if before is not None and before.is_entity and before.name:
            # Behind others it may be one of them who does: "the man beside Corwin, who owned it".
            clause = Clause(before.name, told, text, is_named=subject == before.name and persons == {subject})
    elif (meant := _meant(first, subject, around, persons)) is not None:
        clause, subject = Clause(meant, told[1:], text, owned=first.low in {*known["possessives"], "my"}), meant
    elif subject is not None and goes_on and _is_verb(first) and first.name is None:
        clause = Clause(subject, told, text)
    elif (place := _place_of(told)) is not None:
        clause, subject = Clause(place, (_HAS, *told[2:]), text, is_named=True), None
    elif around.implied is not None and _begins_bare(told):
        # "Keeper of the light" says what somebody is.
        lead = () if _is_verb(first) else (_IS,)
        clause, subject = Clause(around.implied, (*lead, *told), text), around.implied
    elif not goes_on:
        subject = None
    return (clause if is_told else None), subject


def _place_of(told: Sequence[Word]) -> str | None:
    """Return what is said to have something: the Bell in "There are five rooms in the Herring Bell"."""
    if len(told) < _LEAST or told[0].low != "there" or told[1].stem != _IS.stem:
        return None
    for before, word in pairwise(told[2:]):
        if word.is_entity and before.low in {"in", "of", "at", "the"}:
            return word.name
    return None


def _meant(first: Word, subject: str | None, around: _Around, persons: set[str]) -> str | None:
    """Return whom a pronoun at the beginning of a clause means, None when it is none, or may mean several."""
    known = lexicon().words
    if first.low in {"i", "my"}:
        return around.speaker
    if first.low not in known["pronouns"] and first.low not in known["possessives"]:
        return None
    meant = subject or around.antecedent
    if meant is None or persons - {meant} or (first.low in {"it", "its"}) == (meant in around.characters):
        return None
    return meant


def _led_in(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return *words* from its subject on: an article goes, and so do words up to a comma before a name."""
    start = 0
    while start < len(words) - 1 and words[start].low in {"the", "and", "but", "old", "young", "poor", "dear"}:
        start += 1
    if words[start].is_entity or words[start].low in {*lexicon().words["pronouns"], "i"}:
        return words[start:]
    for place in range(1, min(_LEAD, len(words) - 1)):
        if words[place].name is not None and words[place].is_entity:
            break
        if words[place].low == ",":
            after = words[place + 1 :]
            after = after[1:] if len(after) > 1 and after[0].low == "the" else after
            is_subject = after[0].is_entity or after[0].low in lexicon().words["pronouns"]
            # What leads in tells of the subject, too: "At thirty-four, Tobias Renn is afraid of heights".
            return (after[0], *after[1:], words[place], *words[:place]) if is_subject else words
    return words


def _antecedent(text: str, told: Sequence[Clause], names: Names, before: str | None) -> str | None:
    """Return whom "she" or "he" means in the next sentence, None when several can be meant."""
    found = names.handles.find(text)
    here = {one.name for one in found}
    subjects = [clause.subject for clause in told if clause.is_main]
    if not subjects and found and found[0].start <= len("The "):
        subjects = [found[0].name]
    if subjects:
        return subjects[0] if here <= {subjects[0]} else None
    # Whatever else a sentence begins with may be what the next one goes on about.
    goes_on = text.split(maxsplit=1)[0].lower() in {*lexicon().words["pronouns"], *lexicon().words["possessives"]}
    return before if goes_on and not here else None
