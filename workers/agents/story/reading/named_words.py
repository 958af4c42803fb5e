"""The words of a sentence as statements are read from: names and numbers are one word each, however many they have."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from quantities.numerals import find_amounts
from workers.agents.story.reading.casting import Handles
from workers.agents.story.reading.lexicon import lexicon, stem
from workers.agents.story.reading.story_time import moments_in

_TOKENS = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*|[,;:?!()\u2014\u2013]|--")
_OWNER = re.compile(r"['\u2019](?:s\b|(?=\s))")
#: "I'm" is two words.
_FIRST_PERSON = {"i'm": "am", "i've": "have", "i'd": "had"}


@dataclass(frozen=True, slots=True)
class Names:
    """What finds names in a text, and which of those whom they mean are persons: she and he, where others are it."""

    handles: Handles
    characters: frozenset[str]


@dataclass(frozen=True, slots=True)
class Word:
    """A word, name or sign: `name` is the full name for what names somebody or something, `number` what it counts.

    `is_title` when it names by a common word, as "the engineer" does: that says what somebody is, too. It stands in its
    sentence from `start` to `end`.
    """

    text: str
    low: str
    stem: str
    name: str | None = None
    is_entity: bool = False
    is_owner: bool = False
    is_title: bool = False
    number: str | None = None
    start: int = 0
    end: int = 0


def words_of(text: str, handles: Handles) -> tuple[Word, ...]:
    """Return the words and signs of *text*; names and numbers of several words are one each."""
    spans = [(one.start, one.end, one.name) for one in reversed(handles.find(text))]
    timed = _times(text)
    numbers = {
        found.start: (found.end, str(found.value), found.unit)
        for found in find_amounts(text)
        if found.value is not None and not any(begin <= found.start < end for begin, end in timed)
    }
    words: list[Word] = []
    at = 0
    for match in _TOKENS.finditer(text):
        if match.start() < at:
            continue
        while spans and spans[-1][1] <= match.start():
            spans.pop()
        if spans and spans[-1][0] <= match.start():
            named = spans.pop()
            at = named[1]
            owner = _OWNER.match(text, at)
            at = owner.end() if owner else at
            word = _naming(text[named[0] : named[1]], named[2], is_owner=owner is not None)
            words.append(replace(word, start=named[0], end=at))
        elif match.start() in numbers:
            end, value, unit = numbers[match.start()]
            counted = _counted(text[match.start() : end], value, unit)
            words += [replace(word, start=match.start(), end=end) for word in counted]
            at = end
        else:
            words += _plain(match, words)
            at = match.end()
    return tuple(_with_strangers(words))


def _times(text: str) -> list[tuple[int, int]]:
    """Return where times of day stand in *text*: their numbers count nothing."""
    found: list[tuple[int, int]] = []
    for moment in moments_in(text):
        start = text.find(moment.words, found[-1][1] if found else 0)
        if moment.minute is not None:
            found.append((start, start + len(moment.words)))
    return found


def _naming(said: str, name: str, *, is_owner: bool) -> Word:
    is_title = said.split()[-1].islower()
    told = stem(said.split()[-1].lower()) if is_title else ""
    return Word(said, name.casefold(), told, name, is_entity=True, is_owner=is_owner, is_title=is_title)


def _counted(said: str, value: str, unit: str | None) -> list[Word]:
    """Return a number, and the unit that was read with it as a word of its own."""
    number = Word(said, said.lower(), "", number=value)
    last = re.split(r"[\s-]+", said)[-1].lower()
    if unit is None or len(re.split(r"[\s-]+", said)) < 2 or not last.isalpha():
        return [number]
    return [number, Word(last, last, stem(last))]


def _plain(match: re.Match[str], before: Sequence[Word]) -> list[Word]:
    text = match[0]
    low = text.lower().replace("\u2019", "'")
    if low in _FIRST_PERSON:
        helper = _FIRST_PERSON[low]
        edge = match.start() + 1
        return [
            Word(text[0], "i", "i", start=match.start(), end=edge),
            Word(text[1:], helper, stem(helper), start=edge, end=match.end()),
        ]
    begins = not before or before[-1].low in {".", ":", "\u2014"}
    is_name = text[0].isupper() and not begins and low.removesuffix("'s") not in lexicon().stop and low[0] != "i"
    name = text.removesuffix("'s").removesuffix("\u2019s") if is_name else None
    return [Word(text, low, stem(low), name, is_owner=low.endswith("'s"), start=match.start(), end=match.end())]


def _with_strangers(words: Sequence[Word]) -> Iterator[Word]:
    """Yield *words* with the parts of a name that no file knows as one."""
    held: Word | None = None
    for word in words:
        joins = word.name is not None and not word.is_entity
        if joins and held is not None and not held.is_owner:
            held = replace(
                held,
                text=f"{held.text} {word.text}",
                name=f"{held.name} {word.name}",
                is_owner=word.is_owner,
                end=word.end,
            )
            continue
        if held is not None:
            yield replace(held, low=(held.name or "").casefold())
        held = word if joins else None
        if held is None:
            yield word
    if held is not None:
        yield replace(held, low=(held.name or "").casefold())
