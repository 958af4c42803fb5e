"""The words of English that carry form, as `words.toml` tells them: contractions, plurals, negations, contrasts."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from workers.statements.datafiles import Table, read_tables, strings_at, table_at, words_at

#: Letters of the shortest word that is taken for a plural: "gas" and "yes" are none, "eggs" is.
_SHORTEST_PLURAL = 4


@dataclass(frozen=True)
class Absence:
    """Words that tell what is not in something: before it, after it, glued to it; `until` ends what `before` says."""

    before: frozenset[str]
    after: frozenset[str]
    ending: tuple[str, ...]
    until: frozenset[str]


@dataclass(frozen=True)
class Words:
    """One reading of `words.toml`, and of the vocabulary of the other files; small letters throughout."""

    articles: frozenset[str]
    lettered: frozenset[str]
    function: frozenset[str]
    negations: frozenset[str]
    absence: Absence
    contractions: Mapping[str, tuple[str, ...]]
    singulars: Mapping[str, str]
    endings: tuple[tuple[str, str], ...]
    kept_endings: tuple[str, ...]
    kept: frozenset[str]
    #: What means another thing when it is written with a capital.
    capitalised: frozenset[str]
    #: Of which group a word is, where a group is one of words that contradict each other.
    contrasts: Mapping[str, str]
    #: Every word of a term in any data file: common words, whatever capital they are written with.
    vocabulary: frozenset[str]

    def singular(self, word: str) -> str:
        """Return the singular of *word*, itself when it is none or may not be shortened."""
        if known := self.singulars.get(word):
            return known
        if len(word) < _SHORTEST_PLURAL or not word.endswith("s") or word in self.kept:
            return word
        if word.endswith(self.kept_endings):
            return word
        for ending, instead in self.endings:
            if word.endswith(ending):
                return word.removesuffix(ending) + instead
        return word

    def is_common(self, word: str) -> bool:
        """True for a word that the data files know, which a capital does not make a name."""
        return word not in self.capitalised and (word in self.vocabulary or self.singular(word) in self.vocabulary)


@cache
def load_words(*folders: Path) -> Words:
    """Return the words of the shipped files, and of *folders* over them.

    Raises:
        ConfigurationError: as in `read_tables`.
    """
    tables = read_tables(*folders)
    own = tables["words"]
    return Words(
        articles=frozenset(strings_at(own, "articles")),
        lettered=frozenset(strings_at(own, "lettered")),
        function=frozenset(strings_at(own, "function")),
        negations=frozenset(strings_at(own, "negations")),
        absence=Absence(
            frozenset(strings_at(own, "absence", "before")),
            frozenset(strings_at(own, "absence", "after")),
            strings_at(own, "absence", "ending"),
            frozenset(strings_at(own, "absence", "until")),
        ),
        contractions={word: tuple(said.split()) for word, said in words_at(own, "contractions").items()},
        singulars=words_at(own, "singulars"),
        endings=tuple(words_at(own, "endings").items()),
        kept_endings=strings_at(own, "kept", "endings"),
        kept=frozenset(strings_at(own, "kept", "words")),
        capitalised=frozenset(strings_at(own, "capitalised", "words")),
        contrasts={word: group for group in table_at(own, "contrasts") for word in strings_at(own, "contrasts", group)},
        vocabulary=frozenset(word for table in tables.values() for word in _vocabulary(table)),
    )


def _vocabulary(table: Table) -> list[str]:
    """Return the words of the terms of one taxonomy file."""
    is_a = table_at(table, "is_a")
    terms = [*is_a, *(term for category in is_a for term in strings_at(is_a, category))]
    plain = strings_at(table, "plain", "words")
    return [word for term in (*terms, *plain) for word in term.lower().replace("-", " ").split()]
