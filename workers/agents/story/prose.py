"""The form of prose: words, sentences, speech between quotation marks, and a text cut to a number of tokens."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from tasklore.memory.rendering.tokens import counter

#: What stands where a text was shortened.
GAP = "[...]"
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
#: An end of a sentence: its sign, what closes with it, and a blank before what can begin one. Nothing of it is read
#: twice, however many signs there are.
_END = re.compile(
    r"(?<![.!?\u2026])[.!?\u2026]++[\"'\u201d\u2019\u00bb)\]*_]*+(?=\s++[\"'\u201c\u2018\u00ab(\[*_]*+[^\Wa-z_])"
)
#: Words with a dot that end no sentence, and single letters, which are initials.
_SHORT = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|St|Prof|Capt|Lt|Sgt|Jr|Sr|No|vs|etc|approx|e\.g|i\.e|a\.m|p\.m)|\b[A-Z])\.$"
)
#: Characters of the longest of them.
_SHORT_LENGTH = 10
#: Speech: in double quotes, up to the end of its paragraph where nothing closes it, as speech that goes on is written.
_SPOKEN = re.compile(
    r"[\"\u201c\u201e]([^\"\u201c\u201d\u201e]+)[\"\u201d\u201c]?|\u00ab([^\u00ab\u00bb]+)\u00bb?"
)
#: Speech in single quotes: it opens before a word and closes behind a sign, which no apostrophe does.
_OPENS_SINGLY = re.compile(r"(?<!\w)['\u2018](?=\S)")
_CLOSES_SINGLY = re.compile(r"(?<=[,.?!\u2026\u2014-])['\u2019](?!\w)")
#: Characters of the longest speech in single quotes: what opens more is no quote.
_LONGEST_SPOKEN = 2_000
_LINE = re.compile(r"[^\n]+|\n(?=[ \t]*\n)")
#: Signs with which a paragraph may end.
_LAST_SIGNS = frozenset(".!?\u2026\"'\u201d\u2019\u00bb*_)")
_BLANK = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class ProseSentence:
    """A sentence, `text[start:end]` of the whole."""

    text: str
    start: int
    end: int


def words(text: str) -> list[str]:
    """Return the words of *text* as they stand there; "don't" and "well-known" are one each."""
    return _WORD.findall(text)


def paragraphs(text: str) -> list[tuple[int, int]]:
    """Return where each paragraph of *text* begins and ends.

    A blank line ends one, and so does a line that ends a sentence while nobody is speaking: others are only wrapped.
    """
    found: list[tuple[int, int]] = []
    start = None
    end = 0
    unclosed = 0
    for line in _LINE.finditer(text):
        shown = line[0].rstrip()
        if shown.strip():
            start = line.start() if start is None else start
            end = line.start() + len(shown)
            unclosed += shown.count("\u201c") - shown.count("\u201d")
            # Straight ones close what they opened.
            unclosed = (unclosed + shown.count('"')) % 2 if '"' in shown else unclosed
        if start is not None and (
            not shown.strip() or (shown[-1] in _LAST_SIGNS and unclosed <= 0)
        ):
            found.append((start, end))
            start = None
            unclosed = 0
    return found if start is None else [*found, (start, end)]


def sentences(text: str) -> list[ProseSentence]:
    """Return the sentences of *text*, in order; a heading is one of its own."""
    found: list[ProseSentence] = []
    for start, end in paragraphs(text):
        first = start
        for stop in _END.finditer(text, start, end):
            if _SHORT.search(text, max(first, stop.end() - _SHORT_LENGTH), stop.end()):
                continue
            if text[first : stop.end()].strip():
                found.append(ProseSentence(text[first : stop.end()], first, stop.end()))
            blank = _BLANK.match(text, stop.end(), end)
            first = blank.end() if blank else stop.end()
        if text[first:end].strip():
            found.append(ProseSentence(text[first:end], first, end))
    return found


def quotations(text: str) -> list[str]:
    """Return all speech in *text*, in order and without its marks.

    Double quotes of every kind mark speech; single ones only where there are no double ones.
    """
    is_double = _SPOKEN.search(text) is not None
    return [
        speech.strip()
        for start, end in paragraphs(text)
        for speech in (
            (
                one[1] if one[1] is not None else one[2]
                for one in _SPOKEN.finditer(text, start, end)
            )
            if is_double
            else _find_single_quotes(text, start, end)
        )
    ]


def _find_single_quotes(text: str, start: int, end: int) -> Iterator[str]:
    """Yield each speech in single quotes: it goes up to the first mark behind it that closes."""
    closes = [found.start() for found in _CLOSES_SINGLY.finditer(text, start, end)]
    last = start
    for found in _OPENS_SINGLY.finditer(text, start, end):
        opens = found.start()
        # There is a sign between the two.
        place = bisect_left(closes, opens + 2)
        if (
            opens < last
            or place == len(closes)
            or closes[place] - opens > _LONGEST_SPOKEN + 2
        ):
            continue
        last = closes[place] + 1
        yield text[opens + 1 : closes[place]]


def without_stop(text: str) -> str:
    """Return *text* without the one full stop at its end; that of a shortened word or an initial is part of it."""
    is_stop = text.endswith(".") and not text.endswith("..") and not _SHORT.search(text)
    return text[:-1].rstrip() if is_stop else text


def one_line(text: str, limit: int) -> str:
    """Return *text* as one line, cut behind a word when it is longer than *limit* characters."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    kept, blank, _ = line[:limit].rpartition(" ")
    return f"{(kept if blank else line[: limit - 1]).rstrip(' ,;:.-')}\u2026"


def clip(text: str, tokens: int) -> str:
    """Return *text* with at most *tokens* tokens: its beginning and its end, with `GAP` for what is left out.

    It is cut between sentences, and more of the end is kept: that is what a story goes on from.
    """
    count = counter()
    if count(text) <= tokens:
        return text
    pieces = sentences(text)
    # What surrounds the gap may be cut into tokens otherwise than alone.
    left = tokens - count(f"\n{GAP}\n") - 2
    head = 0
    tail = len(pieces)
    while head < tail:
        from_tail = len(pieces) - tail <= 2 * head
        piece = pieces[tail - 1 if from_tail else head]
        # One more for what stands between it and the next.
        left -= count(piece.text) + 1
        if left < 0:
            break
        head, tail = (head, tail - 1) if from_tail else (head + 1, tail)
    if tail == len(pieces):
        # Not even one sentence fits: the longest beginning that does.
        fitting = bisect_right(
            range(1, len(text) + 1), tokens, key=lambda size: count(text[:size])
        )
        return text[:fitting].rstrip()
    start = text[: pieces[head - 1].end] if head else ""
    return f"{start}\n{GAP}\n{text[pieces[tail].start :]}".strip()
