"""What the text of a proposed fact must not add to its evidence: a word, a number, a name, a no, or what it is for.

A model chooses which words of a turn say something of a person; what they say is read in them and not in the model.
"""

import re
from collections.abc import Sequence
from datetime import date

from workers.statements.grammar import load_grammar
from workers.statements.normal import normal, same
from workers.statements.reading import read_statements
from workers.statements.statement import Polarity, Statement
from workers.statements.support import denies_alike, load_support, says_no, untold
from workers.statements.taxonomy import Taxonomy
from workers.statements.words import load_words

#: On which day a text is read of which only the relation matters.
_ANY_DAY = date(2000, 1, 1)

#: What changes most of all that is kept, or harms somebody when it is wrong.
_GUARDED = frozenset(("diet", "allergy", "condition"))

WORDS = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
#: What somebody is called, as the patterns word it, and as a model might.
_NAMED = ("name is ", "wants to be called ", "is called ", "goes by ")
_IS_NAMED = re.compile(r"(?:the )?user(?:'s|\u2019s)? (?:[a-z]+ ){0,2}(?:is|as|by|called|named) ", re.IGNORECASE)


def words_in(text: str) -> list[str]:
    """Return the words of *text* as the grammar has them: small, contractions in full."""
    contractions = load_words().contractions
    said = (word.replace("\u2019", "'").casefold() for word in WORDS.findall(text))
    return [part for word in said for part in contractions.get(word, (word,))]


def fault_of_wording(told: str, evidence: str, clause: str, sentence: str) -> str | None:
    """Return why *evidence* does not bear out *told*, a sentence about the user; None when it does.

    *clause* and *sentence* are those of the turn that the evidence stands in.
    """
    form = normal(told)
    if not form.numbers <= normal(evidence).numbers:
        return "number"
    heard = {word.casefold() for word in WORDS.findall(evidence)}
    if any(token.surface.casefold() not in heard for token in form.tokens[1:] if token.kind == "name"):
        return "name"
    statements, said = _read(told), _read(evidence)
    if any(one.kind != "tells" and not _is_among(one, said) for one in statements):
        return "kind"
    if any(_is_doubtful(one, evidence, clause, sentence) for one in statements if one.kind != "tells"):
        return "kind"
    if untold(told, evidence):
        return "support"
    if any(_is_anothers(one, said, evidence, sentence) for one in statements if one.relation in _GUARDED):
        return "kind"
    if _contradicts(statements, said) or not denies_alike(told, clause):
        return "polarity"
    return "name" if _is_renamed(told, statements, said, evidence) else None


def polarity_of(told: str, proposed: Polarity) -> Polarity:
    """Return the polarity of the sentence *told*: as it is read, else as *proposed*; a dislike says no."""
    read = {one.polarity for one in _read(told) if one.kind == "tells"}
    if len(read) == 1:
        return read.pop()
    return "neutral" if proposed == "negative" and not says_no(told) else proposed


def _read(text: str) -> tuple[Statement, ...]:
    return read_statements(text, today=_ANY_DAY)


def _is_among(wanted: Statement, said: Sequence[Statement]) -> bool:
    """Tell whether *said* takes back, or clears, just what *wanted* does: of nothing less can so much go."""
    return any(
        (one.kind, one.relation, one.tags) == (wanted.kind, wanted.relation, wanted.tags)
        and same(one.object, wanted.object)
        for one in said
    )


def _is_doubtful(wish: Statement, evidence: str, clause: str, sentence: str) -> bool:
    """Tell whether what stands beside *evidence* may turn it round, or make it another's: "I would never say ...".

    Who asks to have something removed says so at the beginning of a sentence.
    """
    grammar, negations = load_grammar(), load_words().negations
    before = words_in((sentence if wish.kind == "clears" else clause).partition(evidence)[0])
    while length := grammar.lead_ins.opening(before):
        before = before[length:]
    beside = words_in(sentence.replace(evidence, " "))
    return bool(before) or any(grammar.is_blocked(word, is_timed=False) or word in negations for word in beside)


def _is_anothers(told: Statement, said: Sequence[Statement], evidence: str, sentence: str) -> bool:
    """Tell whether *told* may hold of somebody else in *sentence*, or under a condition only."""
    grammar, taxonomy, words = load_grammar(), Taxonomy.load(), words_in(sentence)
    is_of_me = not grammar.blocks.about_me.isdisjoint(words_in(evidence))
    is_read = is_of_me and any((one.kind, one.relation) == (told.kind, told.relation) for one in said)
    # "My doctor told me I have asthma"; what a diet costs is too much to go by hearsay.
    passed = load_support().reporting if is_read and told.relation != "diet" else frozenset[str]()
    if any(word not in passed and grammar.is_blocked(word, is_timed=False) for word in words):
        return True
    owners = (word.removesuffix("'s") for word in words)
    return not is_read and any(
        word in grammar.blocks.other_persons or taxonomy.is_wholly(word, "kin") for word in owners
    )


def _contradicts(statements: Sequence[Statement], said: Sequence[Statement]) -> bool:
    """Tell whether the patterns read the evidence as something else, whose polarity is another or whose relation is."""
    if not statements or not said:
        return False
    return not any((one.kind, one.relation) == (two.kind, two.relation) for one in statements for two in said)


def _is_renamed(told: str, statements: Sequence[Statement], said: Sequence[Statement], evidence: str) -> bool:
    """Tell whether *told* calls the user by a name by which they do not call themselves in *evidence*."""
    name = _name_in(told, statements)
    if name is None:
        return False
    if any(_is_named(one) and words_in(one.object)[-1:] == name[-1:] for one in said):
        return False
    words = words_in(evidence)
    places = (place for place in range(len(words)) if words[place : place + len(name)] == name)
    return not any(
        tuple(words[max(0, place - len(before)) : place]) == before
        for place in places
        for before in load_support().introductions
    )


def _name_in(told: str, statements: Sequence[Statement]) -> list[str] | None:
    for one in statements:
        if _is_named(one):
            begin = next(begin for begin in _NAMED if one.object.startswith(begin))
            return words_in(one.object.removeprefix(begin))
    match = None if statements else _IS_NAMED.match(told)
    if match is None:
        return None
    rest = normal(f"is {told[match.end() :]}").tokens[1:]
    return words_in(told[match.end() :]) if rest and all(token.kind == "name" for token in rest) else None


def _is_named(one: Statement) -> bool:
    return one.kind == "tells" and one.relation == "about" and one.object.startswith(_NAMED)
