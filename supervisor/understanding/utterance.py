"""An utterance as tokens and values, each with the characters it stands at; read when first asked for."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import NamedTuple

from tasklore.contracts.quantities.numerals import (
    DecimalMark,
    FoundAmount,
    find_amounts,
)
from tasklore.contracts.quantities.times import (
    FoundDuration,
    FoundMoment,
    find_durations,
    find_moments,
)
from tasklore.memory.grounding import Passage, quotations_in

_TOKEN = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?|[^\w\s]|\n")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")
#: More white space in a row than anybody reads: patterns try each place in it.
_EMPTY = re.compile(r"\s{9,}")
_LIST_NUMBER = re.compile(r"^[ \t]*(\d{1,2}[.)])(?=\s)", re.MULTILINE)
#: Letters of the longest word that is compared by its stem.
_LONGEST_WORD = 64
#: Inflections that no suffix rule finds.
_IRREGULAR = {
    "spent": "spend", "paid": "pay", "bought": "buy", "sold": "sell", "gave": "give", "given": "give", "took": "take",
    "taken": "take", "made": "make", "sent": "send", "got": "get", "ran": "run", "used": "use", "told": "tell",
    "kept": "keep", "lent": "lend", "lost": "lose", "won": "win", "left": "leave", "built": "build", "went": "go",
    "wrote": "write", "written": "write", "drove": "drive", "driven": "drive", "flew": "fly", "flown": "fly",
    "children": "child", "people": "person", "persons": "person", "men": "man", "women": "woman",
    "analysis": "analyze", "analyse": "analyze", "analyses": "analyze", "analysed": "analyze", "analysing": "analyze",
}  # fmt: skip


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
    "and or but not no with without after before then if when how what what's who's who where why can could may might"
    " must tell give say show let make want need know like going doing go come one two each every other more most much"
    " many very also too well again same new good ok okay yes hi hello hey thanks thank thx dear sorry let's i'll we'll"
)
#: Words by which "on Friday" was the last one; a verb in the past counts behind a doer, or as the first word.
_PAST = word_set("was were did had ago yesterday")
_FUTURE = word_set(
    "will shall want need remind can could should would until by tomorrow next"
)
_DOERS = word_set(
    "i we he she they i've we've he's she's they've have has just already"
)


class Token(NamedTuple):
    """A word or a mark: *stem* compares, and `text[start:end]` of the utterance is its spelling there."""

    text: str
    stem: str
    start: int
    end: int
    is_word: bool


class ReadUtterance:
    """The words of a person; each reading of them is made when it is first asked for.

    *decimal_mark* stands before decimals, None when "1.500" has two readings. *now* is the reference date.
    """

    def __init__(
        self,
        text: str,
        *,
        decimal_mark: DecimalMark | None = None,
        now: datetime | None = None,
    ) -> None:
        self.text = text
        self.decimal_mark = decimal_mark
        self.now = now or datetime.now(UTC)

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """The words and marks."""
        return tokens_of(self.text)

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """The stems of the words, in order."""
        return tuple(token.stem for token in self.tokens if token.is_word)

    @property
    def extent(self) -> tuple[int, int]:
        """From the first to the last of its tokens."""
        return (self.tokens[0].start, self.tokens[-1].end) if self.tokens else (0, 0)

    @cached_property
    def quotations(self) -> tuple[Passage, ...]:
        """Texts between quotation marks that have a letter."""
        return tuple(
            one
            for one in quotations_in(self.text)
            if any(map(str.isalpha, self.text[one.start : one.end]))
        )

    @cached_property
    def amounts(self) -> tuple[FoundAmount, ...]:
        """Numbers with their units, dates and times left out."""
        return find_amounts(self.text, decimal_mark=self.decimal_mark)

    @cached_property
    def moments(self) -> tuple[FoundMoment, ...]:
        """Days and times, reckoned from *now*: into the future, unless the words speak of the past alone."""
        return find_moments(
            self.text, self.now, lean="past" if tells_of_past(self.tokens) else "future"
        )

    @cached_property
    def moments_by_start(self) -> dict[int, FoundMoment]:
        """The days and times by the place where each begins."""
        return {one.start: one for one in self.moments}

    @cached_property
    def durations(self) -> tuple[FoundDuration, ...]:
        """Lengths of time."""
        return find_durations(self.text)

    @cached_property
    def value_spans(self) -> tuple[tuple[int, int], ...]:
        """Where numbers, days and times stand."""
        amounts = self.amounts
        moments = self.moments
        return (
            *((one.start, one.end) for one in amounts),
            *((one.start, one.end) for one in moments),
        )

    @cached_property
    def amount_marks(self) -> bytearray:
        """1 for each character of an amount."""
        return mark(len(self.text), ((one.start, one.end) for one in self.amounts))

    @cached_property
    def moment_marks(self) -> bytearray:
        """1 for each character of a day or a time."""
        return mark(len(self.text), ((one.start, one.end) for one in self.moments))

    def index_at(self, position: int) -> int:
        """Return the index of the first token that ends after *position*."""
        return bisect_right(self._token_ends, position)

    @cached_property
    def _token_ends(self) -> list[int]:
        return [token.end for token in self.tokens]

    def without(self, places: Iterable[tuple[int, int]]) -> "ReadUtterance":
        """Return it with blanks in *places*, so that all the rest stands where it did."""
        return ReadUtterance(
            _blank(self.text, places), decimal_mark=self.decimal_mark, now=self.now
        )

    def only(self, *places: tuple[int, int]) -> "ReadUtterance":
        """Return it with blanks outside of *places*; nothing is read again."""
        ordered = sorted(places)
        ends = [0, *(end for _, end in ordered)]
        starts = [*(start for start, _ in ordered), len(self.text)]
        rest = self.without(zip(ends, starts, strict=True))
        is_in = mark(len(self.text), ordered)
        rest.tokens = tuple(one for one in self.tokens if is_in[one.start])
        rest.moments = tuple(
            one for one in self.moments if all(is_in[one.start : one.end])
        )
        rest.amounts = tuple(
            one for one in self.amounts if all(is_in[one.start : one.end])
        )
        return rest


def tells_of_past(tokens: Sequence[Token]) -> bool:
    """Return whether *tokens* speak of the past alone."""
    said = {token.text for token in tokens}
    if said & _FUTURE:
        return False
    return bool(said & _PAST) or any(
        token.stem != token.text
        and (
            token.text in _IRREGULAR
            or (len(token.text) > 4 and token.text.endswith("ed"))
        )
        and (place == 0 or tokens[place - 1].text in _DOERS)
        for place, token in enumerate(tokens)
    )


def mark(size: int, spans: Iterable[tuple[int, int]]) -> bytearray:
    """Return 1 for each of *size* characters that lies in one of *spans*, so that a long text is read in one pass."""
    marks = bytearray(size)
    for start, end in spans:
        marks[start:end] = b"\1" * (end - start)
    return marks


def _blank(text: str, places: Iterable[tuple[int, int]]) -> str:
    parts = []
    reach = 0
    for start, end in sorted(places):
        parts += [text[reach:start], " " * (end - max(start, reach))]
        reach = max(reach, end)
    return "".join(parts) + text[reach:]


def collapse_space(text: str) -> str:
    """Return *text* with long white space as a space, a new line, or two where there were more."""
    return _EMPTY.sub(
        lambda match: "\n" * min(match.group().count("\n"), 2) or " ", text
    )


def without_list_numbers(text: str) -> str:
    """Return *text* with blanks for the numbers of a list ("1. ..., 2. ..."), which count nothing."""
    numbers = [match.span(1) for match in _LIST_NUMBER.finditer(text)]
    return _blank(text, numbers) if len(numbers) > 1 else text


def stem(word: str) -> str:
    """Return the stem that *word*, in small letters, shares with its inflections ("spent", "spending" and "spends")."""
    return word if len(word) > _LONGEST_WORD else _stem(word)


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    word = _IRREGULAR.get(word.removesuffix("'s"), word.removesuffix("'s"))
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = (
            word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word[:-1]
        )
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
        tokens.append(
            Token(
                written,
                stem=stem(written) if is_word else written,
                start=match.start(),
                end=match.end(),
                is_word=is_word,
            )
        )
    return tuple(tokens)


@lru_cache(maxsize=4096)
def stems_of(phrase: str) -> tuple[str, ...]:
    """Return the stems of a phrase or an identifier ("budget_limit", "TripAgent", "budget of")."""
    words = _WORD.findall(_CAMEL.sub(" ", phrase))
    return tuple(stem(word.lower()) for word in words)
