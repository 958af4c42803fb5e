"""The one tokeniser of the memory: a text as the words by which it is found, in any script."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files

from tasklore.contracts.quantities.times.words import MONTHS, WEEKDAYS

__all__ = [
    "index_words",
    "is_asking",
    "names_in",
    "signs_of",
    "telling_words",
    "words_of",
]

#: A word of letters and digits with their marks; an apostrophe inside belongs to it.
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['\u2019][^\W\d_]+)*\d*")
#: Scripts that write no blanks between words: pairs of their signs are found instead.
_UNSPACED = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]+"
)
#: Characters of a word; a longer one is no word of a person.
_LONGEST = 48
#: Characters up to which what ends in a question mark only asks; a longer one mostly tells something, too.
_LONGEST_QUESTION = 200
_QUESTION_MARKS = "?\uff1f\u061f\u037e"
#: What ends a sentence that asks nothing.
_STATEMENT_ENDS = re.compile(r"[.!\u2026](?=\s)|[\u3002\uff01]|\n")
#: What parts a sentence; and words, or signs of scripts without blanks, by which a part before the last may state
#: something ("I'm allergic to shrimp, can I eat this?"), which an address does not reach ("Hey Ana, ...?").
_CLAUSE_ENDS = re.compile(r"[,;:()\u2013\u2014\u060c\u3001\uff0c\uff1b\uff1a]|\s-\s")
_LEAST_STATED = 3
#: Languages that write a name with a capital letter, hardly another word, and never in another form.
_NAMING = frozenset({"english", "french", "spanish", "italian", "portuguese", "dutch"})
#: Letters of a word's beginning: chosen by questions in six languages (`tests/episodes/inflected.toml`).
_BEGINNING = 4
#: Words whose form is kept: headings and items of a person come again with each prompt; a megabyte or two.
_KEPT = 8_192


def words_of(text: str) -> list[str]:
    """Return the words of *text* in their order: case folded, accents evened out, English plurals and "'s" cut off."""
    words: list[str] = []
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text)):
        word = match[0]
        if word[0].isdigit():
            words.append(word.replace(",", ""))
        else:
            words.extend(
                _parts_of(word)
                if len(word) <= _LONGEST
                else _parts_of.__wrapped__(word)
            )
    return words


def index_words(text: str) -> list[str]:
    """Return the words by which *text* is found: those of `words_of`, their beginnings, and each sign that may be one.

    A word in another form begins with the same four letters in most languages ("Fahrrad", "Fahrräder"). English has its
    own rules in `words_of`.
    """
    words = words_of(text)
    return [*words, *_beginnings(words), *sorted(signs_of(text))]


def telling_words(text: str, besides: Collection[str] = ()) -> list[str]:
    """Return the different words of *text* by which it is looked for, without the function words of its language.

    Words *besides* are left out like those. Where there are no others, they are looked for. Beginnings of words come
    last, as `index_words` has them.
    """
    words = list(dict.fromkeys(words_of(text)))
    spoken = _languages_of(words)
    known = _function_words()[spoken[0]] if spoken else frozenset()
    telling = [word for word in words if word not in known and word not in besides]
    found = telling or words
    return [*found, *_beginnings(words, found)]


def _beginnings(words: Collection[str], of: Iterable[str] | None = None) -> list[str]:
    """Return the beginnings of *words*, or of those *of* them, as index words; none where they are English."""
    if _languages_of(words) == ["english"]:
        return []
    begun = (
        f"~{word[:_BEGINNING]}"
        for word in (words if of is None else of)
        if len(word) >= _BEGINNING and word[0].isalpha()
    )
    return list(begun) if of is None else list(dict.fromkeys(begun))


def names_in(text: str) -> list[str]:
    """Return the words of *text* that stand for a name: with a capital letter within a sentence, no day or month.

    None where its language is not sure to write names so, nor where most words begin with one.
    """
    spoken = _languages_of(words_of(text))
    if not spoken or not _NAMING.issuperset(spoken):
        return []
    spelled = [match[0] for match in _WORD.finditer(text) if match[0][0].isalpha()]
    named = [
        word for word in spelled[1:] if word[0].isupper() and not word[1:].isupper()
    ]
    if 2 * len(named) > len(spelled):
        return []
    known = _function_words()[spoken[0]].union(MONTHS, WEEKDAYS)
    found = (
        part
        for word in named
        if word.casefold() not in known
        for part in words_of(word)
    )
    return [word for word in dict.fromkeys(found) if word not in known]


def _languages_of(words: Collection[str]) -> list[str]:
    """Return the languages with most function words among *words*: one, several alike, or none."""
    known = _languages_by_word()
    held = Counter(language for word in set(words) for language in known.get(word, ()))
    most = max(held.values(), default=0)
    return [language for language in _function_words() if held[language] == most > 0]


@cache
def _languages_by_word() -> Mapping[str, Sequence[str]]:
    """Return the languages of which each function word is one."""
    found: dict[str, list[str]] = {}
    for language, words in _function_words().items():
        for word in words:
            found.setdefault(word, []).append(language)
    return found


@cache
def _function_words() -> Mapping[str, frozenset[str]]:
    """Return the function words of each language that `function_words.txt` lists, as `words_of` has them."""
    lines = (
        (files("tasklore.memory.episodes") / "function_words.txt")
        .read_text("utf-8")
        .splitlines()
    )
    return {
        language: frozenset(words_of(listed))
        for language, _, listed in (line.partition(" ") for line in lines)
    }


def is_asking(text: str) -> bool:
    """Return whether *text* does nothing but ask, by its signs: such words of a person tell nothing about them.

    A part before its last may be a statement, and keeps it from that.
    """
    said = text.strip().rstrip("\"')\u201d\u00bb ")
    return (
        len(said) <= _LONGEST_QUESTION
        and said.endswith(tuple(_QUESTION_MARKS))
        and _STATEMENT_ENDS.search(said) is None
        and all(
            len(_WORD.findall(part)) < _LEAST_STATED
            and len(signs_of(part)) < _LEAST_STATED
            for part in _CLAUSE_ENDS.split(said)[:-1]
        )
    )


def signs_of(text: str) -> set[str]:
    """Return the signs of *text* in scripts without blanks: where `words_of` has pairs, a word may be one of them."""
    found = _UNSPACED.findall(unicodedata.normalize("NFKC", text))
    return set("".join(found))


@lru_cache(_KEPT)
def _parts_of(word: str) -> tuple[str, ...]:
    """Return the words by which *word*, of letters, is found: one, or pairs of signs that stand for words."""
    return (
        tuple(_pairs(word))
        if _UNSPACED.search(word)
        else (_stem(_fold(word))[:_LONGEST],)
    )


def _fold(word: str) -> str:
    """Return *word* in small letters without accents."""
    folded = unicodedata.normalize("NFKD", word.casefold().replace("\u2019", "'"))
    return "".join(sign for sign in folded if not unicodedata.combining(sign))


def _stem(word: str) -> str:
    """Return *word* without the endings of number and tense that English puts on every word."""
    word = word.removesuffix("'s").replace("'", "")
    if len(word) < 4 or not word.isascii():
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2 and any(sign in "aeiouy" for sign in stem):
            return (
                stem[:-1]
                if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "ls"
                else stem
            )
    return word.removesuffix("e") if len(word) > 3 else word


def _pairs(word: str) -> list[str]:
    """Return the parts of *word*: pairs of neighbours where signs stand for words, the rest as they are."""
    parts: list[str] = []
    at = 0
    for match in _UNSPACED.finditer(word):
        parts += [_fold(word[at : match.start()])] if match.start() > at else []
        signs = match[0]
        parts += [signs[place : place + 2] for place in range(max(1, len(signs) - 1))]
        at = match.end()
    return parts + ([_fold(word[at:])] if at < len(word) else [])
