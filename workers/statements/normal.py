"""One form for the many wordings of a thing, so that saying it again is noticed and nothing else is taken for it.

Case, articles, plurals, punctuation, contractions and the spelling of numbers do not count. Numbers, units, negations
and names do: two texts that differ in one of them never have the same form. In doubt the forms differ, which at worst
keeps a thing twice.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from quantities.amounts import canonical
from quantities.numerals import Found, find_amounts
from quantities.numerals.words import OPENING_WORDS
from workers.statements.words import Words, load_words

#: Forms kept: those of one user's documents and facts, many times over.
_CACHED = 20_000

Kind = Literal["word", "name", "number"]


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a form: `text` as it is compared, and `surface`, which is the same before it lost its plural."""

    text: str
    surface: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Form:
    """What is left of a text when wording is taken away; `str(form)` writes it."""

    tokens: tuple[Token, ...]

    def __str__(self) -> str:
        return " ".join(_written(token) for token in self.tokens)

    @property
    def key(self) -> str:
        """A coarse index: what is `same` shares it, and now and then something else does."""
        return " ".join(self.key_words)

    @property
    def key_words(self) -> tuple[str, ...]:
        """The words of `key`."""
        words = load_words()
        return tuple(words.singular(token.surface.casefold()) for token in self.tokens)

    @property
    def numbers(self) -> Counter[str]:
        """Its numbers with their units, each as often as it occurs."""
        return Counter(token.text for token in self.tokens if token.kind == "number")


def normal(text: str) -> Form:
    """Return the form of *text*: an object ("two eggs"), a slug ("scrambled_eggs") or a sentence."""
    return _normal(text)


def same(first: str, second: str) -> bool:
    """True when both say the same in other wording; never when a number, unit, negation or name differs."""
    one, other = _normal(first).tokens, _normal(second).tokens
    return len(one) == len(other) and all(_agree(mine, theirs) for mine, theirs in zip(one, other, strict=True))


def may_merge(first: str, second: str) -> bool:
    """True unless a number, unit, negation, name or contrast (morning, evening) tells *first* and *second* apart.

    Necessary and not sufficient: whoever proposes that two texts mean the same, such as embeddings, must pass this
    first. It says nothing about whether they do.
    """
    one, other = _normal(first), _normal(second)
    words = load_words()
    if one.numbers != other.numbers:
        return False
    if _counted(one, words.negations) != _counted(other, words.negations) or not _names_agree(one, other):
        return False
    return _contrasts(one, words) == _contrasts(other, words)


def _agree(mine: Token, theirs: Token) -> bool:
    if mine.kind == theirs.kind:
        return mine.text == theirs.text
    if "number" in (mine.kind, theirs.kind):
        return False
    # Who writes in small letters throughout writes names so too; but a plural is not looked for in a name.
    return mine.surface.casefold() == theirs.surface.casefold() and mine.surface.casefold() not in _homographs()


def _homographs() -> frozenset[str]:
    return load_words().capitalised


def _written(token: Token) -> str:
    return token.text[:1].upper() + token.text[1:] if token.kind == "name" else token.text


def _counted(form: Form, words: frozenset[str]) -> Counter[str]:
    return Counter(token.text for token in form.tokens if token.text in words)


def _names_agree(one: Form, other: Form) -> bool:
    return _names(one) <= _surfaces(other) and _names(other) <= _surfaces(one)


def _names(form: Form) -> set[str]:
    return {token.surface.casefold() for token in form.tokens if token.kind == "name"}


def _surfaces(form: Form) -> set[str]:
    return {token.surface.casefold() for token in form.tokens}


def _contrasts(form: Form, words: Words) -> Counter[str]:
    return Counter(token.text for token in form.tokens if token.text in words.contrasts)


# -- how a form is made ------------------------------------------------------------------------------------------------

#: "6:30", "6.30 pm", "7am": hours and minutes, or hours with their half of the day.
_CLOCK = re.compile(
    r"(?<![\w.,:/-]) (?: (?P<hour>\d{1,2}) [:.] (?P<minute>[0-5]\d) | (?P<full>\d{1,2}) (?=\s?[aApP]\.?\s?[mM]\b) )"
    r"(?: \s? (?P<half>[aApP]) \.? \s? [mM]\b \.? )? (?! [\d:/] | [.,]\d )",
    re.VERBOSE,
)
#: Without any of these, and without a word for a number, a text holds no amount: most are read so.
_MAY_HOLD_NUMBER = re.compile(r"[^a-zA-Z\s'\u2019_-]")
_LETTERS = re.compile(r"[a-z]+")
#: A word, with what holds it together; whatever has a digit keeps its inner signs ("v2.0", "12/3", "2025-12-03").
_WORD = re.compile(r"[^\W_]*\d(?:[\w.,:/'+-]*\w)?|[^\W_]+(?:'[^\W_]+)*'?|[^\w\s]|_")
#: What only parts sentences; every other sign is kept ("c++", "<5", "20°").
_PUNCTUATION = frozenset(".,;:!\"'()[]{}-_`|/\\…“”„«»·•\u2039\u203a\u2018\u2019\u2013\u2014")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2019\u02bc\u00b4\u2018`", "'"))
_DASHES = frozenset("-\u2013")
_HALF_DAY = 12
_DAY = 24


@lru_cache(maxsize=_CACHED)
def _normal(text: str) -> Form:
    words = load_words()
    tokens: list[Token] = []
    for piece in _pieces(_cleaned(text)):
        tokens.extend([piece] if isinstance(piece, Token) else _words_of(piece, words, is_first=not tokens))
    return Form(tuple(_without_articles(tokens, words)))


def _cleaned(text: str) -> str:
    """Return *text* without invisible characters, and with raised digits apart from the ones before them."""
    if text.isascii():
        return text.replace("_", " ")
    kept = (
        f" ^{unicodedata.normalize('NFKC', sign)} " if _is_raised(sign) else sign
        for sign in text.translate(_APOSTROPHES)
        if unicodedata.category(sign) != "Cf"
    )
    return "".join(kept).replace("_", " ")


def _is_raised(sign: str) -> bool:
    """True for the "²" of "10²"; "½" is a number of its own."""
    return sign.isdigit() and not sign.isdecimal()


def _pieces(text: str) -> Iterator[Token | str]:
    """Yield the numbers and times of *text* as tokens, and what is between them as text."""
    if not _MAY_HOLD_NUMBER.search(text) and OPENING_WORDS.isdisjoint(_LETTERS.findall(text.lower())):
        yield text
        return
    spans = [(match.start(), match.end(), clock) for match in _CLOCK.finditer(text) if (clock := _clock(match))]
    taken = {place for start, end, _ in spans for place in range(start, end)}
    spans += [
        (amount.start, amount.end, _number(amount))
        for amount in find_amounts(text)
        if amount.start not in taken and amount.end - 1 not in taken
    ]
    at, was_number = 0, False
    for start, end, token in sorted(spans, key=lambda span: span[:2]):
        gap = text[at:start]
        # "5-10" is a range and "5/10" a part; "5 10" is neither.
        between = "-" if gap.strip() in _DASHES else gap.strip()
        if was_number and between in {"-", "/", ":", "x"}:
            yield Token(between, between, "word")
        else:
            yield gap
        yield token
        at, was_number = end, True
    yield text[at:]


def _clock(match: re.Match[str]) -> Token | None:
    """Return a time of day as "18:30"; one that may be morning or evening keeps its single digit ("6:30")."""
    hour, minute = match["hour"] or match["full"], match["minute"] or "00"
    half = (match["half"] or "").lower()
    if not half and "." in match[0]:
        return None
    value = int(hour)
    if half:
        if not 1 <= value <= _HALF_DAY:
            return None
        value = value % _HALF_DAY + (_HALF_DAY if half == "p" else 0)
    elif value >= _DAY:
        return None
    is_told = half or value > _HALF_DAY or hour.startswith("0")
    text = f"{value:02d}:{minute}" if is_told else f"{value}:{minute}"
    return Token(text, text, "number")


def _number(amount: Found) -> Token:
    if amount.value is None:
        return Token(amount.text.casefold(), amount.text, "number")
    value, unit = canonical(amount.value), amount.unit or ""
    # "$" may be one of many dollars, and "USD" is one.
    text = f"{value} {unit}{'?' if amount.also else ''}".strip()
    return Token(text, text, "number")


def _words_of(text: str, words: Words, *, is_first: bool) -> Iterator[Token]:
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text)):
        written = match[0].rstrip("'")
        if not written or written in _PUNCTUATION:
            continue
        told = words.contractions.get(written.casefold())
        if told is not None:
            yield from (Token(word, word, "word") for word in told)
        else:
            yield from _word(written, words, is_first=is_first)
        is_first = False


def _word(written: str, words: Words, *, is_first: bool) -> Iterator[Token]:
    stem, apostrophe, rest = written.partition("'")
    folded = stem.casefold()
    if any(sign.isdigit() for sign in written):
        yield Token(written.casefold(), written, "number")
        return
    if _is_name(stem, words, is_first=is_first):
        yield Token(folded, stem, "name")
    else:
        yield Token(words.singular(folded) if not apostrophe else folded, folded, "word")
    if apostrophe and rest:
        yield Token(f"'{rest.casefold()}", f"'{rest.casefold()}", "word")


def _is_name(stem: str, words: Words, *, is_first: bool) -> bool:
    """True for a capital that means something: a word that is not known as a common one.

    The first word of a text is one only when it is unknown: whether its capital means anything cannot be told.
    """
    if stem == stem.casefold() or stem == "I":
        return False
    folded = stem.casefold()
    if folded in words.articles or folded in words.function or folded in words.negations:
        return len(stem) == 1 and not is_first
    if folded in words.capitalised:
        return not is_first
    return not words.is_common(folded)


def _without_articles(tokens: list[Token], words: Words) -> Iterator[Token]:
    """Leave articles out, unless they end the text or name something: "vitamin a", "Plan A"."""
    for place, token in enumerate(tokens):
        is_last = place == len(tokens) - 1
        named = token.kind == "name" or (place > 0 and tokens[place - 1].text in words.lettered)
        if token.text not in words.articles or is_last or named:
            yield token
