"""What a fact that a model proposes must withstand: the words of the turn have to say it, and of the person themselves.

Whatever is refused gets a word that labels a metric; nothing here asks or decides what a fact is good for.
"""

import re
from collections.abc import Sequence
from datetime import date

from contracts.messages import Fact
from workers.agents.switchboard.answer import ProposedFact
from workers.agents.switchboard.wording import fault_of_wording, words_in
from workers.statements.grammar import load_grammar
from workers.statements.reading import read_statements
from workers.statements.support import clause_around
from workers.statements.taxonomy import Taxonomy

#: Letters of a proposed fact, and of the words that say it: a sentence, and two.
_LONGEST_TEXT, _LONGEST_EVIDENCE = 300, 600
#: Sure enough to be kept; a model that doubts more has concluded it.
_LEAST_CONFIDENCE = 0.3

#: On which day a text is read of which only the relation matters.
_ANY_DAY = date(2000, 1, 1)

_BLANKS = re.compile(r"\s+")
_QUOTED = re.compile(r"[\"\u201c\u201e\u00ab][^\"\u201c\u201d\u00bb]*[\"\u201d\u00bb]")
_ABOUT_THE_USER = re.compile(r"(?:the )?user(?:'s|\u2019s)?\s", re.IGNORECASE)
_END = re.compile(r"[.!?\n]")
_SENTENCE_ENDS = re.compile(r"[.!?](?=\s|$)|\n")


def place_of(evidence: str, text: str) -> tuple[int, int] | None:
    """Return where *evidence* stands in *text*, letter by letter and blank by blanks; None when it does not."""
    said = evidence.strip()
    if not said or len(said) > _LONGEST_EVIDENCE:
        return None
    # Whole words: "ill" is not said by who is still there.
    begin, end = (r"\b" if sign.isalnum() else "" for sign in (said[0], said[-1]))
    pattern = begin + r"\s+".join(map(re.escape, _BLANKS.split(said))) + end
    match = re.search(pattern, text)
    return None if match is None else match.span()


def fault_of(proposed: ProposedFact, text: str, taken: Sequence[Fact]) -> str | None:
    """Return why *proposed* cannot be a fact of the turn *text*, None when it can; *taken* are those it has already."""
    if not _ABOUT_THE_USER.match(proposed.text) or len(proposed.text) > _LONGEST_TEXT:
        return "shape"
    if not _LEAST_CONFIDENCE <= proposed.confidence <= 1:
        return "confidence"
    place = place_of(proposed.evidence, text)
    if place is None:
        return "evidence"
    return _fault_of_evidence(place, text) or _known(proposed, taken) or _fault_of_text(proposed.text, place, text)


def _fault_of_evidence(place: tuple[int, int], text: str) -> str | None:
    said = text[slice(*place)]
    if any(start < place[1] and place[0] < end for start, end in (match.span() for match in _QUOTED.finditer(text))):
        return "quoted"
    words = words_in(said)
    if not words or load_grammar().lead_ins.opening(words) == len(words):
        return "greeting"
    if _is_asked(place, text):
        return "question"
    clause, sentence = words_in(_clause_of(place, text)), words_in(_sentence_of(place, text))
    if load_grammar().blocks.about_me.isdisjoint(sentence):
        return "others"
    return "others" if any(_is_said_of_others(one) for one in (words, clause, sentence)) else None


def _fault_of_text(told: str, place: tuple[int, int], text: str) -> str | None:
    """Return what *told* says that its evidence does not; see `fault_of_wording`."""
    if "?" in told:
        return "question"
    if _is_about_others(told):
        return "others"
    return fault_of_wording(told, text[slice(*place)], _clause_of(place, text), _sentence_of(place, text))


def _sentence_of(place: tuple[int, int], text: str) -> str:
    """Return the sentences of *text* that *place* is part of."""
    begin, end = 0, len(text)
    for match in _SENTENCE_ENDS.finditer(text):
        if match.end() <= place[0]:
            begin = match.end()
        elif match.end() >= place[1]:
            end = match.end()
            break
    return text[begin:end]


def _clause_of(place: tuple[int, int], text: str) -> str:
    """Return the clauses of *text* that *place* is part of."""
    return text[slice(*clause_around(text, *place))]


def _known(proposed: ProposedFact, taken: Sequence[Fact]) -> str | None:
    said = _plain(proposed.evidence)
    by_rules = (_plain(fact.evidence) for fact in taken if fact.extracted_by == "rules")
    if any(said in known or known in said for known in by_rules if known):
        return "known"
    return "known" if any(_plain(fact.text) == _plain(proposed.text) for fact in taken) else None


def _is_asked(place: tuple[int, int], text: str) -> bool:
    """Tell whether the sentence that goes on after *place* is a question."""
    if "?" in text[slice(*place)]:
        return True
    blocks, opening = load_grammar().blocks, words_in(_sentence_of(place, text))[:2]
    if opening[0] in blocks.askers and opening[-1] in blocks.about_me | blocks.other_persons:
        # "Do you think I'm vegan" is one without its sign, too.
        return True
    said = text[slice(*place)].rstrip()
    end = None if _END.search(said[-1:]) else _END.search(text, place[1])
    return end is not None and end[0] == "?"


def _is_said_of_others(words: Sequence[str]) -> bool:
    """True for "my wife likes tea" and "she is vegan": another person is who acts in it, and the writer is not."""
    grammar = load_grammar()
    if words[0] in grammar.blocks.other_persons:
        return True
    if grammar.base(words[0]) != words[0] and grammar.blocks.about_me.isdisjoint(words):
        # "likes fish", cut out of what Bob does.
        return True
    if words[0] != grammar.owner or grammar.first in words:
        return False
    taxonomy = Taxonomy.load()
    return any(taxonomy.is_wholly(" ".join(words[1:length]), "kin") for length in (2, 3) if length < len(words))


def _is_about_others(told: str) -> bool:
    """True for "User's wife likes tea"; not for "User's wife's name is Eva", which is told of the user."""
    subject, _, rest = told.partition(" ")
    if subject.casefold() == "the":
        subject, _, rest = rest.partition(" ")
    if not subject.endswith(("'s", "\u2019s")) or read_statements(told, today=_ANY_DAY):
        return False
    return Taxonomy.load().is_wholly(" ".join(words_in(rest)[:1]), "kin")


def _plain(text: str) -> str:
    return _BLANKS.sub(" ", text).strip().casefold()
