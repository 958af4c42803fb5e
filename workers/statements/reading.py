"""Sentences about oneself read into statements, by the patterns of `grammar.toml` alone.

What is not sure yields nothing: a question, a wish, a condition, somebody else's words, half a sentence. Linear in the
length of the text.
"""

from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from itertools import islice
from pathlib import Path

from workers.statements.clauses import Clauses
from workers.statements.datafiles import read_tables
from workers.statements.dates import load_dates
from workers.statements.grammar import Grammar, load_grammar
from workers.statements.meanings import Budget, Meanings
from workers.statements.sentences import Sentence, sentences_of
from workers.statements.slots import Slots
from workers.statements.statement import Statement
from workers.statements.taxonomy import Taxonomy
from workers.statements.tokens import Word
from workers.statements.words import Words, load_words

#: Statements and sentences of one text that are looked at: more is no message of a person about themselves.
MOST_STATEMENTS, MOST_SENTENCES = 50, 100
#: How often its clauses are matched with patterns: ten times for each statement, three are usual.
MOST_MATCHES = 500
#: Words of a clause, and of a sentence; a longer one is not read.
_LONGEST_CLAUSE, _LONGEST_SENTENCE = 40, 250
#: Lead-ins one after the other: "Hi there! By the way, just so you know, ...".
_LEAD_INS = 5
#: Words of the shortest question that is more than an echo ("do I really").
_SHORTEST_QUESTION = 3
#: Words that are looked through for a phrase at the beginning.
_OPENING = 10


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says; `is_whole` False when some sentence about the writer was not understood and a model might."""

    statements: tuple[Statement, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class _Run:
    """One reading under way."""

    text: str
    today: date
    budget: Budget


class Reader:
    """Reads statements with one set of data files; make it with `load_reader`. Immutable, and pure."""

    def __init__(self, grammar: Grammar, clauses: Clauses, meanings: Meanings, words: Words) -> None:
        self._grammar = grammar
        self._clauses = clauses
        self._meanings = meanings
        self._words = words

    def read(self, text: str, *, today: date) -> Reading:
        """Return what *text* tells, and whether a model might find more; "until Friday" counts from *today*."""
        run = _Run(text, today, Budget(MOST_MATCHES))
        found: dict[Statement, None] = {}
        is_whole, is_complete = True, True
        sentences = sentences_of(text, self._grammar, self._words)
        for sentence in islice(sentences, MOST_SENTENCES):
            told, is_read = self._sentence(sentence, run)
            found.update(dict.fromkeys(told))
            is_whole = is_whole and (is_read or not self._is_about_me(sentence))
            is_complete = is_complete and (is_read or self._grammar.exceptions.isdisjoint(sentence.texts))
        if not is_complete and any(one.kind == "clears" for one in found):
            # "Delete all meat. Keep steak": what is to stay is not known.
            found, is_whole = {one: None for one in found if one.kind != "clears"}, False
        return Reading(tuple(found)[:MOST_STATEMENTS], is_whole and len(sentences) <= MOST_SENTENCES)

    def _is_about_me(self, sentence: Sentence) -> bool:
        words = self._before_question(sentence) if sentence.is_question else sentence.words
        if self._is_order(sentence):
            return True
        if self._grammar.blocks.nothing.opening(sentence.texts[:_OPENING]):
            return False
        return any(word.text in self._grammar.blocks.about_me for word in words)

    def _is_order(self, sentence: Sentence) -> bool:
        """True for a sentence that may order something to be forgotten, "could you please delete all meat?"."""
        joined = zip(sentence.texts, sentence.texts[1:], strict=False)
        if any(one in self._grammar.joins and other in self._grammar.orders for one, other in joined):
            return True
        texts = tuple(text for text in sentence.texts if text[:1].isalnum())
        for _ in range(_LEAD_INS):
            if texts[:1] and texts[0] in self._grammar.orders:
                return True
            begin = texts[:_OPENING]
            length = self._grammar.wishes.opening(begin) or self._grammar.lead_ins.opening(begin)
            if not length:
                break
            texts = texts[length:]
        return False

    def _sentence(self, sentence: Sentence, run: _Run) -> tuple[list[Statement], bool]:
        """Return the statements of *sentence*, and whether all of it was read."""
        words = self._before_question(sentence) if sentence.is_question else sentence.words
        if not words or sentence.is_foreign or len(words) > _LONGEST_SENTENCE:
            return [], False
        for _ in range(_LEAD_INS):
            found, is_read = self._told(words, run)
            if found:
                # Half understood, only what is known in itself is believed: "I like big nights and I cannot lie". And
                # nothing is forgotten by half an order.
                return [one for one in found if is_read or (one.tags and one.kind != "clears")], is_read
            rest = self._without_lead_in(words)
            texts = [word.text for word in words]
            is_habit = not self._grammar.habitual.isdisjoint(texts[: len(texts) - len(rest)])
            if not rest or (is_habit and self._grammar.is_denied(texts)):
                break
            words = rest
        elided = self._elided(words, run)
        return elided, bool(elided)

    def _before_question(self, sentence: Sentence) -> tuple[Word, ...]:
        """Return what is said before what is asked: "I'm vegan, what can I cook?"; nothing when all of it is asked."""
        words = sentence.words
        for place, word in enumerate(words[:-_SHORTEST_QUESTION]):
            if word.text == "," and words[place + 1].text in self._grammar.blocks.askers:
                return words[:place]
        return ()

    def _told(self, words: tuple[Word, ...], run: _Run) -> tuple[list[Statement], bool]:
        """Return what the clauses of a sentence say, up to the first that says nothing."""
        found: list[Statement] = []
        for clause in self._clauses.split(words):
            told = self._clause(clause, run)
            if not told:
                return found, False
            found.extend(told)
        return found, True

    def _without_lead_in(self, words: tuple[Word, ...]) -> tuple[Word, ...]:
        place = 0
        while place < len(words) and not words[place].text[:1].isalnum():
            place += 1
        length = self._grammar.lead_ins.opening([word.text for word in words[place : place + _OPENING]])
        return words[place + length :] if place + length else ()

    def _elided(self, words: tuple[Word, ...], run: _Run) -> list[Statement]:
        """Return what a sentence says that leaves its subject out: "Not a fan of horror films"."""
        texts = [word.text for word in words[:_OPENING]]
        for opening, missing in self._grammar.elided:
            length = opening.opening(texts)
            # "Love, Anna" ends a letter.
            if length and texts[length : length + 1] != [","]:
                at = words[0].start
                return self._clause((*(Word(one, one, at, at) for one in missing), *words), run)
        return []

    def _clause(self, words: tuple[Word, ...], run: _Run) -> list[Statement]:
        """Return what one clause says, nothing when that is not sure."""
        while words and not words[0].text[:1].isalnum():
            words = words[1:]
        if not words or len(words) > _LONGEST_CLAUSE:
            return []
        begin = self._grammar.wishes.opening([word.text for word in words[:_OPENING]])
        forget = self._grammar.turns.forget.opening([word.text for word in words[begin : begin + _OPENING]])
        if forget:
            told = self._clause(words[begin + forget :], run)
            evidence = run.text[words[0].start : words[-1].end]
            return [_retracted(one, evidence) for one in told] if all(one.kind == "tells" for one in told) else []
        for clause in self._clauses.candidates(words, run.today):
            turned = self._clauses.before_and_now(clause)
            if turned is None:
                told = self._meanings.of(clause, run.text, run.budget)
            else:
                before, now = (self._meanings.of(one, run.text, run.budget) for one in turned)
                was = [_retracted(one, one.evidence) for one in before if one.kind == "tells"]
                told = was or now
            if told:
                return told
        return []


def _retracted(one: Statement, evidence: str) -> Statement:
    return replace(one, kind="retracts", polarity="neutral", expiry=None, durability="long_term", evidence=evidence)


@cache
def load_reader(*folders: Path) -> Reader:
    """Return the reader with the shipped data files, and those of *folders* over them; read once.

    Raises:
        ConfigurationError: a data file cannot be read, or has another shape.
    """
    grammar, taxonomy, words = load_grammar(*folders), Taxonomy.load(*folders), load_words(*folders)
    tables = read_tables(*folders)
    slots = Slots(tables["grammar"], tables["dates"], taxonomy, words)
    clauses = Clauses(grammar, load_dates(*folders), slots)
    return Reader(grammar, clauses, Meanings(grammar, slots, taxonomy), words)


def read(text: str, *, today: date) -> Reading:
    """Return what *text* tells by the shipped data files; see `Reader.read`."""
    return load_reader().read(text, today=today)


def read_statements(text: str, *, today: date) -> tuple[Statement, ...]:
    """Return the statements of *text*, in order, none when nothing in it is sure; *today* is the day it was said on."""
    return read(text, today=today).statements
