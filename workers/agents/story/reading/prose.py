"""Prose as rules read it: sentences, what is spoken in them, words, numbers, and whether something stands there."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from contracts.amounts import canonical
from contracts.numerals import find_amounts
from memory.rendering.tokens import counter

#: What stands where a text was shortened.
GAP = "[...]"
#: Texts whose words and numbers are kept: many things are looked up in the same few.
_KEPT = 16

_FOLDED = str.maketrans(
    {
        **dict.fromkeys('\u2018\u2019\u201a\u201b\u2032\u02bc`\u00b4"\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb', "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015", "-"),
        "\u2026": "...",
        # As a text is shown to a model, which may quote it so.
        "\u2039": "<",
        "\u203a": ">",
    }
)
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
#: An end of a sentence: its sign, what closes with it, and a blank before what can begin one.
_END = re.compile(r"[.!?\u2026]+[\"'\u201d\u2019\u00bb)\]*_]*(?=\s+[\"'\u201c\u2018\u00ab(\[*_]*[^\Wa-z_])")
#: Words with a dot that end no sentence, and single letters, which are initials.
_SHORT = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|St|Prof|Capt|Lt|Sgt|Jr|Sr|No|vs|etc|approx|e\.g|i\.e|a\.m|p\.m)|\b[A-Z])\.$")
#: Speech: in double quotes, up to the end of its paragraph where nothing closes it, as speech that goes on is written.
_SPOKEN = re.compile(r"[\"\u201c\u201e]([^\"\u201c\u201d\u201e]+)[\"\u201d\u201c]?|\u00ab([^\u00ab\u00bb]+)\u00bb?")
#: Speech in single quotes: it opens before a word and closes behind a sign, which no apostrophe does.
_SPOKEN_SINGLY = re.compile(r"(?<!\w)['\u2018](?=\S)(.{0,2000}?[,.?!\u2026\u2014-])['\u2019](?!\w)", re.DOTALL)
_LINE = re.compile(r"[^\n]+|\n(?=[ \t]*\n)")
#: Signs with which a paragraph may end.
_LAST_SIGNS = frozenset(".!?\u2026\"'\u201d\u2019\u00bb*_)")
_BLANK = re.compile(r"\s*")
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, `text[start:end]` of the whole; `in_quotes` when all of it is spoken."""

    text: str
    start: int
    end: int
    in_quotes: bool


@dataclass(frozen=True, slots=True)
class Quotation:
    """What somebody says, without its marks; with them it is `text[start:end]` of the whole.

    `before` and `after` are what is told around it in its paragraph, up to the next thing said: they may name who says
    it.
    """

    text: str
    start: int
    end: int
    before: str = ""
    after: str = ""


def words(text: str) -> list[str]:
    """Return the words of *text* as they stand there; "don't" and "well-known" are one each."""
    return _WORD.findall(text)


def paragraphs(text: str) -> list[tuple[int, int]]:
    """Return where each paragraph of *text* begins and ends.

    A blank line ends one, and so does a line that ends a sentence while nobody is speaking: others are only wrapped.
    """
    found: list[tuple[int, int]] = []
    start, end, unclosed = None, 0, 0
    for line in _LINE.finditer(text):
        shown = line[0].rstrip()
        if shown.strip():
            start, end = line.start() if start is None else start, line.start() + len(shown)
            unclosed += shown.count("\u201c") - shown.count("\u201d")
            # Straight ones close what they opened.
            unclosed = (unclosed + shown.count('"')) % 2 if '"' in shown else unclosed
        if start is not None and (not shown.strip() or (shown[-1] in _LAST_SIGNS and unclosed <= 0)):
            found.append((start, end))
            start, unclosed = None, 0
    return found if start is None else [*found, (start, end)]


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of *text*, in order; what is no prose, such as a heading, is one for each paragraph."""
    spoken = quotations(text)
    starts = [one.start for one in spoken]
    found: list[Sentence] = []
    for start, end in paragraphs(text):
        for first, last in _pieces(text, start, end):
            around = bisect_right(starts, first) - 1
            in_quotes = around >= 0 and last <= spoken[around].end
            found.append(Sentence(text[first:last], first, last, in_quotes))
    return found


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where each sentence of the paragraph `text[start:end]` begins and ends."""
    first = start
    for found in _END.finditer(text, start, end):
        if _SHORT.search(text, first, found.end()):
            continue
        if text[first : found.end()].strip():
            yield first, found.end()
        blank = _BLANK.match(text, found.end(), end)
        first = blank.end() if blank else found.end()
    if text[first:end].strip():
        yield first, end


def quotations(text: str) -> list[Quotation]:
    """Return everything that is said in *text*, in order.

    Double quotes of every kind mark speech; single ones only where there are no double ones.
    """
    found: list[Quotation] = []
    pattern = _SPOKEN if _SPOKEN.search(text) else _SPOKEN_SINGLY
    for start, end in paragraphs(text):
        spoken = list(pattern.finditer(text, start, end))
        edges = [start, *(edge for one in spoken for edge in one.span()), end]
        for number, one in enumerate(spoken):
            said = next(group for group in one.groups() if group is not None)
            before, after = text[edges[2 * number] : one.start()], text[one.end() : edges[2 * number + 3]]
            found.append(Quotation(said.strip(), one.start(), one.end(), before.strip(), after.strip()))
    return found


def narration(text: str) -> str:
    """Return *text* with blanks in place of everything that is spoken: what is told is where it was."""
    shown, last = [], 0
    for one in quotations(text):
        shown += [text[last : one.start], " " * (one.end - one.start)]
        last = one.end
    return "".join((*shown, text[last:]))


def folded(text: str) -> str:
    """Return *text* as it is compared: small letters, single blanks, and one kind of quotes and dashes."""
    return " ".join(text.translate(_FOLDED).casefold().split())


def stands_in(said: str, text: str) -> bool:
    """Return whether the words of *said* stand in *text*, whatever their quotes, blanks and letters' case.

    Quotes around it and an ellipsis at an end count for nothing, and no word is looked for within another.
    """
    wanted = folded(said).strip(" '.").strip()
    if not any(sign.isalnum() for sign in wanted):
        return False
    left = r"(?<!\w)" if wanted[0].isalnum() else ""
    right = r"(?!\w)" if wanted[-1].isalnum() else ""
    return re.search(f"{left}{re.escape(wanted)}{right}", _folded_once(text)) is not None


@lru_cache(_KEPT)
def _folded_once(text: str) -> str:
    return folded(text)


@lru_cache(_KEPT)
def numbers_in(text: str) -> frozenset[str]:
    """Return the numbers of *text*, in digits, however they are written there; "first" and a lone "one" are none."""
    found = {canonical(reading) for amount in find_amounts(text) for reading in amount.readings}
    return frozenset(found | {digits.lstrip("0") or "0" for digits in _DIGITS.findall(text)})


def clipped(text: str, tokens: int) -> str:
    """Return *text* with at most *tokens* tokens: its beginning and its end, with `GAP` for what is left out.

    It is cut between sentences, and more of the end is kept: that is what a story goes on from.
    """
    count = counter()
    if count(text) <= tokens:
        return text
    pieces = sentences(text)
    # What surrounds the gap may be cut into tokens otherwise than alone.
    left = tokens - count(f"\n{GAP}\n") - 2
    head, tail = 0, len(pieces)
    while head < tail:
        from_tail = len(pieces) - tail <= 2 * head
        piece = pieces[tail - 1 if from_tail else head]
        # One more for what stands between it and the next.
        left -= count(piece.text) + 1
        if left < 0:
            break
        head, tail = (head, tail - 1) if from_tail else (head + 1, tail)
    if tail == len(pieces):
        return _cut(text, tokens)
    told = text[: pieces[head - 1].end] if head else ""
    return f"{told}\n{GAP}\n{text[pieces[tail].start :]}".strip()


def _cut(text: str, tokens: int) -> str:
    """Return the longest beginning of *text* that has at most *tokens* tokens."""
    count, least, most = counter(), 0, len(text)
    while least < most:
        middle = (least + most + 1) // 2
        if count(text[:middle]) <= tokens:
            least = middle
        else:
            most = middle - 1
    return text[:least].rstrip()
