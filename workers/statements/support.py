"""What the words of one text bear out of another; over normal forms, and pure.

A model words things as it likes. Whatever it says has to be said by the text that it names: word by word, apart from
what a sentence is built with.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from workers.statements.datafiles import read_tables, strings_at, table_at
from workers.statements.grammar import load_grammar
from workers.statements.normal import normal
from workers.statements.words import load_words

#: Parts of a sentence that may each say yes or no for themselves.
_CLAUSES = re.compile(r"[,;.!?]\s|\b(?:but|except|although|though|however|while|whereas)\b", re.IGNORECASE)
#: Joins what two texts say, and says nothing itself.
_JOINING = frozenset(("and",))
#: Endings that tell when and who, and not what; and the letters of the shortest word that is left.
_ENDINGS = ("ing", "ed", "es", "s", "d", "ly")
_SHORTEST_STEM = 3


def words_of(text: str) -> frozenset[str]:
    """Return the words and numbers of *text* in their normal form."""
    return frozenset(normal(text).key_words)


def content_of(text: str) -> frozenset[str]:
    """Return the words of *text* that say something by themselves."""
    return words_of(text) - _fillers()


def unsupported(display: str, *sources: str) -> frozenset[str]:
    """Return the words of *display* that are in none of *sources*; what only joins words needs no support."""
    known = frozenset[str]().union(*map(words_of, sources))
    return content_of(display) - known


def negations_in(text: str) -> frozenset[str]:
    """Return the words of *text* that say no."""
    return words_of(text) & load_words().negations


def keeps_negation(display: str, text: str) -> bool:
    """Tell whether *display* says no where *text* does: in the clause that it comes from, or else in all of it."""
    wanted = negations_in(display)
    clauses = [clause for clause in clauses_of(text) if content_of(display) <= words_of(clause)]
    return any(negations_in(clause) == wanted for clause in clauses or [text])


def clauses_of(text: str) -> list[str]:
    """Return the parts of *text* that may each say yes or no for themselves."""
    return _CLAUSES.split(text)


def clause_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return from where to where the clauses go that `text[start:end]` is part of."""
    begin, close = 0, len(text)
    for match in _CLAUSES.finditer(text):
        if match.end() <= start:
            begin = match.end()
        elif match.start() >= end:
            close = match.start()
            break
    return begin, close


def untold(sentence: str, said: str) -> frozenset[str]:
    """Return the words of *sentence*, one about the user, that nothing of *said* bears out; numbers left out.

    Unlike `unsupported` it takes another ending for the same word, since "I run" is told as "runs".
    """
    heard = frozenset(form for word in _plain_words(said) for form in _forms(word))
    needed = _plain_words(sentence) - _fillers() - load_support().scaffold
    return frozenset(word for word in needed if heard.isdisjoint(_forms(word)))


def says_no(text: str) -> bool:
    """Tell whether *text* denies something, or speaks against it."""
    support = load_support()
    return any(not support.noes.isdisjoint(_forms(word)) for word in _plain_words(text))


def denies_alike(sentence: str, said: str) -> bool:
    """Tell whether *sentence*, one about the user, says no just where *said* does: in a clause that bears it out."""
    fitting = [clause for clause in clauses_of(said) if not untold(sentence, clause)]
    return any(says_no(clause) == says_no(sentence) for clause in fitting or [said])


@dataclass(frozen=True)
class Support:
    """One reading of `support.toml`.

    `noes` are the words that deny, `introductions` those before one's own name, `reporting` those by which somebody
    tells what others told them.
    """

    scaffold: frozenset[str]
    noes: frozenset[str]
    introductions: tuple[tuple[str, ...], ...]
    reporting: frozenset[str]
    families: Mapping[str, str]


@cache
def load_support() -> Support:
    """Return the words of the shipped file; read once.

    Raises:
        ConfigurationError: it has another shape.
    """
    table = read_tables()["support"]
    families = table_at(table, "families")
    return Support(
        scaffold=frozenset(strings_at(table, "scaffold")),
        noes=load_words().negations - frozenset(strings_at(table, "joining")) | frozenset(strings_at(table, "against")),
        introductions=tuple(tuple(text.split()) for text in strings_at(table, "introductions")),
        reporting=frozenset(strings_at(table, "reporting")),
        families={word: name for name in families for word in strings_at(families, name)},
    )


@cache
def _fillers() -> frozenset[str]:
    words = load_words()
    return (words.function - words.negations - frozenset(words.contrasts)) | _JOINING


def _plain_words(text: str) -> frozenset[str]:
    """Return the words of *text* without its numbers, as they are compared."""
    words = load_words()
    return frozenset(
        words.singular(token.surface.casefold()) for token in normal(text).tokens if token.kind != "number"
    )


def _forms(word: str) -> frozenset[str]:
    """Return *word* with and without the endings that tell when and who, and what its family is called."""
    families, forms = load_support().families, {word, load_grammar().base(word), *_stems(word)}
    return frozenset((*forms, *_names(forms, families)))


def _names(forms: Iterable[str], families: Mapping[str, str]) -> Iterator[str]:
    return (f"#{families[form]}" for form in forms if form in families)


def _stems(word: str) -> Iterator[str]:
    for ending in _ENDINGS:
        rest = word.removesuffix(ending)
        if rest == word or len(rest) < _SHORTEST_STEM:
            continue
        yield rest
        yield f"{rest}e"
        if rest[-1] == rest[-2]:
            yield rest[:-1]
        if rest.endswith("i"):
            yield f"{rest[:-1]}y"
