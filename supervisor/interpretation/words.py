"""A sentence as tokens with their places, and the stems under which words are compared."""

import re
from functools import lru_cache
from typing import NamedTuple

_TOKEN = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?|[^\w\s]|\n")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NAME_WORD = re.compile(r"[^\W_]+")

#: Inflections that no suffix rule finds.
_IRREGULAR = {
    "spent": "spend", "paid": "pay", "bought": "buy", "sold": "sell", "gave": "give", "given": "give", "took": "take",
    "taken": "take", "made": "make", "sent": "send", "got": "get", "ran": "run", "used": "use", "told": "tell",
    "kept": "keep", "lent": "lend", "lost": "lose", "won": "win", "left": "leave", "built": "build", "went": "go",
    "wrote": "write", "written": "write", "drove": "drive", "driven": "drive", "flew": "fly", "flown": "fly",
    "children": "child", "people": "person", "persons": "person", "men": "man", "women": "woman",
    "analysis": "analyze", "analyse": "analyze", "analyses": "analyze", "analysed": "analyze", "analysing": "analyze",
}  # fmt: skip


#: More white space in a row than anybody reads. Patterns try each place in it, some of them again from each.
_EMPTY = re.compile(r"\s{9,}")


def evened(text: str) -> str:
    """Return *text* with long white space as a space, a new line, or two where there were more."""
    return _EMPTY.sub(lambda match: "\n" * min(match.group().count("\n"), 2) or " ", text)


def word_set(text: str) -> frozenset[str]:
    """Return the words of *text*: a list of words that reads as one."""
    return frozenset(text.split())


#: Words between a cue and its value that say nothing ("limit *of my* 50000").
LIGHT = word_set(
    "a an the my our your his her their its this that of is are was were be been being am at as to for from in on it"
    " i i'm i've i'd we we've you he she they have has had got get about around roughly approximately exactly only just"
    " currently now already so far please pls plz equal equals s against out per set stands total which will would"
    " should do does did than by up down over under into me us there them all some any still"
)
#: Words that say nothing about which task is meant.
STOP = LIGHT | word_set(
    "and or but not no with without after before then if when how what what's who where why can could may might must"
    " tell give say show let make want need know like going doing go come one two each every other more most much many"
    " very also too well again same new good ok okay yes hi hello hey thanks thank thx"
)


#: Letters of the longest word that is compared by its stem.
_LONGEST_WORD = 64


class Token(NamedTuple):
    """A word or a mark: *stem* compares, `text[start:end]` is what was written; a mark's stem is itself."""

    text: str
    stem: str
    start: int
    end: int
    is_word: bool


def stem(word: str) -> str:
    """Return what *word*, in small letters, shares with its inflections ("spent", "spending" and "spends")."""
    # What is longer is no word, and would be kept for nothing.
    return word if len(word) > _LONGEST_WORD else _stem(word)


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    word = _IRREGULAR.get(word.removesuffix("'s"), word.removesuffix("'s"))
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word[:-1]
    if len(word) > 5 and word.endswith("ing"):
        word = _single(word[:-3])
    elif len(word) > 4 and word.endswith("ed"):
        word = _single(word[:-2])
    # "note" must not become "not".
    if len(word) > 3 and word.endswith("e") and word[:-1] not in STOP:
        word = word[:-1]
    return word


def _single(word: str) -> str:
    doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz"
    return word[:-1] if doubled else word


def tokens_of(text: str) -> tuple[Token, ...]:
    """Return the words and marks of *text* in order; an underscore separates words."""
    tokens = []
    for match in _TOKEN.finditer(text):
        written = match.group().lower().replace("\u2019", "'")
        is_word = written[0].isalnum()
        tokens.append(Token(written, stem(written) if is_word else written, match.start(), match.end(), is_word))
    return tuple(tokens)


@lru_cache(maxsize=4096)
def stems_of(phrase: str) -> tuple[str, ...]:
    """Return the stems of a phrase or an identifier ("budget_limit", "TripAgent", "budget of")."""
    words = _NAME_WORD.findall(_CAMEL.sub(" ", phrase))
    return tuple(stem(word.lower()) for word in words)
