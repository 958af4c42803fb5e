"""Whether what a model took out of a turn is what the person said in it: the fact's text beside its evidence.

The text of such a fact is a model's wording. Rules would believe it to the letter, and so what deletes anything has to
be read in the person's own words too.
"""

from collections.abc import Sequence

from contracts.edits import Delete, Edit, Update
from contracts.messages import Fact
from workers.agents.memory_worker.case import Case, Refused
from workers.agents.memory_worker.cues import cue_words
from workers.agents.memory_worker.wording import content_of, is_same, keeps_negation, words_of
from workers.statements.normal import normal
from workers.statements.reading import read_statements
from workers.statements.statement import Statement

#: Who put the fact down by patterns, of which each is its own proof.
_BY_RULES = "rules"
_LIKED = frozenset(("like", "interest"))
_UNWANTED = frozenset(("dislike", "avoid"))
_SENSES = (_LIKED, _UNWANTED)


def demand_witnessed(case: Case, told: Sequence[Statement]) -> None:
    """Refuse a fact of a model's that says more than its evidence; *told* is what patterns read in its text.

    Raises:
        Refused: the evidence does not say it.
    """
    fact = case.pending.fact
    if fact.extracted_by == _BY_RULES:
        return
    said = read_statements(fact.evidence, today=case.today)
    for one in told:
        if one.kind != "tells" or one.relation == "diet":
            _demand_read(fact, one, said)
        else:
            _demand_words(fact, one, said)
    if not told:
        _demand_mood(fact)


def demand_deletes_witnessed(case: Case, told: Sequence[Statement], edits: Sequence[Edit]) -> None:
    """Refuse *edits* that take something away on the word of a model's fact which patterns do not read in its evidence.

    Raises:
        Refused: something would be lost.
    """
    fact = case.pending.fact
    if fact.extracted_by == _BY_RULES or not any(isinstance(edit, Delete | Update) for edit in edits):
        return
    said = read_statements(fact.evidence, today=case.today)
    for one in told:
        _demand_read(fact, one, said)


def _demand_read(fact: Fact, told: Statement, said: Sequence[Statement]) -> None:
    if not any(_is_alike(one, told) for one in said):
        raise Refused("evidence", f"{fact.evidence!r} does not say what the fact {told.kind}")


def _is_alike(said: Statement, told: Statement) -> bool:
    if said.kind != told.kind or not _is_one_sense(said.relation, told.relation):
        return False
    if said.kind != "clears":
        return is_same(said.object, told.object)
    # To clear all of something is to clear a part of it, and never more.
    is_within = not said.tags or (bool(told.tags) and set(told.tags) <= set(said.tags))
    return is_within and (not said.object or is_same(said.object, told.object))


def _is_one_sense(one: str | None, other: str | None) -> bool:
    return one == other or any(one in sense and other in sense for sense in _SENSES)


def _demand_words(fact: Fact, told: Statement, said: Sequence[Statement]) -> None:
    """Refuse what is told in words, numbers or with a 'not' that the evidence does not have."""
    for one in said:
        is_contrary = any(one.relation in sense and told.relation not in sense for sense in _SENSES)
        if is_contrary and told.relation in _LIKED | _UNWANTED and is_same(one.object, told.object):
            raise Refused("evidence", f"{fact.evidence!r} says the contrary of the fact")
    if any(_is_alike(one, told) for one in said):
        return
    if fact.inferred:
        # Somebody concluded it, in words of their own; it overrules nothing that was said.
        return
    known = words_of(fact.evidence).union(*(words_of(one.object) for one in said))
    invented = {word for word in content_of(told.object) - known - cue_words("everyday") if not _is_form(word, known)}
    missing = set(normal(told.object).numbers) - set(normal(fact.evidence).numbers)
    if invented or missing:
        raise Refused("evidence", f"{', '.join(sorted(invented | missing))!r} is not in what was said")
    if told.relation not in (*_UNWANTED, "allergy") and not keeps_negation(told.object, fact.evidence):
        raise Refused("evidence", f"{told.object!r} leaves out a 'not' of what was said, or adds one")


def _is_form(word: str, known: frozenset[str]) -> bool:
    """Tell whether *word* is another person's form of a verb in *known*: "lives" of "live"."""
    return any(word in (f"{stem}s", f"{stem}es") or stem in (f"{word}s", f"{word}es") for stem in known)


def _demand_mood(fact: Fact) -> None:
    """Refuse that something is taken back in the model's words and not in the person's."""
    taken_back = cue_words("taken_back")
    if words_of(fact.text) & taken_back and not words_of(fact.evidence) & taken_back:
        raise Refused("evidence", f"{fact.evidence!r} takes nothing back")
