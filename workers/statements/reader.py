"""Read plain statements: one clause at a time, each a whole wording of the table or nothing. Pure, linear, precise."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import chain
from typing import Literal

from tasklore.contracts.quantities.times import find_durations, find_moments
from tasklore.workers.statements.table import PatternForm, load_table

__all__ = ["Attitude", "Statement", "attitude_of", "read"]

#: Characters of a text that are looked at, and of a clause that can be one wording.
_LONGEST_TEXT = 4_000
_LONGEST_CLAUSE = 160
#: Statements of one text; more is no message of a person about themselves.
_MOST = 30
#: Days until the last day of something that is said to end: ten years.
_MOST_DAYS = 3_660

_SENTENCE_ENDS = re.compile(
    r"(?<![A-Z.])(?<!\bSt)(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?:[!?]+|\.(?!\.))(?=\s|$)|\n"
)
#: Where a new clause of the same person begins.
_JOINTS = re.compile(
    r"(?:,\s*|\s+)(?:and|but|so|also)\s+(?=(?:i|my|please|call|forget)\b)|,\s*(?=(?:i|my)\b)",
    re.IGNORECASE,
)
_PARTS_END = re.compile(r";")
#: How long something holds, at the end of a clause.
_UNTIL = re.compile(r"\s+(?P<rest>(?:until|till|for)\s+[^,]{2,40})$", re.IGNORECASE)
#: A text with one of these takes back what it says.
_TAKEN_BACK = re.compile(
    r"\bNOT!|(?i:[;,-]\s*not\b\W*$)|/s\b|\b(?:just kidding|jk|said no one)\b"
)
_PARTS = re.compile(r", and | and | or |, ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement about the person who speaks.

    `category` is the path of the list that keeps it, `value` the text of its item, `text` the whole in the third
    person, `evidence` the words as they were written. `expiry` is the last day on which it holds, None for no end.
    Without `is_read` it is a clause beside one that was read: only its words are known.
    """

    category: str
    value: str
    text: str
    evidence: str
    relation: Literal["new", "ends", "forget"] = "new"
    polarity: Literal["positive", "negative", "neutral"] = "neutral"
    durability: Literal["permanent", "long_term", "short_term"] = "long_term"
    expiry: date | None = None
    is_read: bool = True


@dataclass(frozen=True, slots=True)
class Attitude:
    """The *thing* that somebody likes, where it *is_for*, or else dislikes."""

    thing: str
    is_for: bool


def read(text: str, *, today: date) -> tuple[Statement, ...]:
    """Return the plain statements of *text* about its writer, in order; "until Friday" counts from *today*.

    A sentence with a doubt in it (a condition, a quotation, a hedge, a question) says nothing, and neither does a
    clause that is no whole wording of the table. Where another clause of its sentence is one, what is left of the
    sentence is returned as well, unread: who hears half of a sentence must not seem to have heard all of it.
    """
    even = text[:_LONGEST_TEXT].replace("\u2019", "'").replace("\u00a0", " ")
    words = load_table().words
    if words.tasks.match(even) or _TAKEN_BACK.search(even):
        return ()
    found: dict[Statement, None] = {}
    for start, end in _sentences(even):
        if (
            even[start:end].isspace()
            or even[end : end + 1] == "?"
            or words.doubts.search(even, start, end)
        ):
            continue
        parts = [
            _read_part(text, even=even, start=begin, end=stop, today=today)
            for begin, stop in _split(_PARTS_END, even, start, end)
        ]
        if any(one.is_read for part in parts for one in part):
            found |= dict.fromkeys(chain.from_iterable(parts))
    return tuple(found)[:_MOST]


def attitude_of(clause: str) -> Attitude | None:
    """Return what *clause*, a like or dislike that was kept as it was said, is for or against; None for any other."""
    plain = re.sub(r"\s+", " ", clause.strip()).replace("\u2019", "'")
    for form in load_table().attitudes:
        if (match := form.expression.fullmatch(plain)) is not None:
            return Attitude(
                match[form.slot], is_for=form.pattern.polarity == "positive"
            )
    return None


def _read_part(
    text: str, even: str, start: int, end: int, today: date
) -> list[Statement]:
    """Return the statements of the part `text[start:end]` of a sentence, and what is left of it, unread."""
    words = load_table().words
    found: list[Statement] = []
    for begin, stop in _split(_JOINTS, even, start, end):
        read_here = list(
            _statements(text, even=even, start=begin, end=stop, today=today)
        )
        if not read_here and not words.lead_ins.fullmatch(
            f"{even[begin:stop].strip(' ,')} "
        ):
            # Whose words the next clause is may stand in this one.
            left = text[begin:end].strip()
            return [*found, _unread(left)] if left else found
        found += read_here
    return found


def _unread(words: str) -> Statement:
    return Statement(category="", value="", text=words, evidence=words, is_read=False)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _SENTENCE_ENDS.finditer(text):
        end = match.start() + (match[0].find("?") if "?" in match[0] else 0)
        yield start, end
        start = match.end()
    yield start, len(text)


def _split(
    joint: re.Pattern[str], text: str, start: int, end: int
) -> Iterator[tuple[int, int]]:
    for match in joint.finditer(text, start, end):
        yield start, match.start()
        start = match.end()
    yield start, end


def _statements(
    text: str, even: str, start: int, end: int, today: date
) -> Iterator[Statement]:
    """Yield the statements of the clause `text[start:end]`, one for each value that is joined in it.

    *even* is *text* with its apostrophes and blanks evened out, each in its place.
    """
    words = load_table().words
    lead_in = words.lead_ins.match(even, start + _blanks(even[start:end]), end)
    start = lead_in.end() if lead_in is not None else start + _blanks(even[start:end])
    clause = words.endings.sub("", even[start:end].rstrip(" .,!:)\t")).rstrip(" ,")
    if not clause or len(clause) > _LONGEST_CLAUSE:
        return
    plain = re.sub(r"\s+", " ", clause)
    until = _UNTIL.search(plain)
    expiry = None if until is None else _last_day(until["rest"], today)
    bare = plain if until is None or expiry is None else plain[: until.start()]
    form, match, expiry = _match(bare, expiry)
    if form is None and bare != plain:
        form, match, expiry = _match(plain, None)
    if form is None or match is None:
        return
    pattern = form.pattern
    slots = match.groupdict()
    thing = slots.get("thing") or slots.get("things") or slots.get("named") or ""
    if (
        words.no_names.search(slots.get("Name") or "")
        or _is_name(slots.get("foods") or "")
        or words.no_things.search(thing)
    ):
        return
    is_joined = form.is_list and " with " not in slots[form.slot]
    for value in _PARTS.split(slots[form.slot]) if is_joined else [slots[form.slot]]:
        filled = {**slots, "slot": value.strip(), "clause": plain}
        yield Statement(
            category=pattern.category,
            value=pattern.value.format_map(filled),
            text=pattern.text.format_map(filled),
            evidence=text[start : start + len(clause)],
            relation=pattern.relation,
            polarity=pattern.polarity,
            durability=pattern.durability if expiry is None else "short_term",
            expiry=expiry,
        )


def _match(
    clause: str, expiry: date | None
) -> tuple[PatternForm | None, re.Match[str] | None, date | None]:
    for form in load_table().forms:
        if (match := form.expression.fullmatch(clause)) is not None:
            return form, match, expiry
    return None, None, None


def _last_day(phrase: str, today: date) -> date | None:
    """Return the last day that "until Friday" or "for two weeks" names, None where that is no day to come."""
    word, _, rest = phrase.partition(" ")
    if word.casefold() == "for":
        found = find_durations(rest)
        length = found[0].length if len(found) == 1 and found[0].text == rest else None
        days = (
            0 if length is None else int(length.months * 30 + length.seconds / 86_400)
        )
        return today + timedelta(days=days) if 1 <= days <= _MOST_DAYS else None
    moments = find_moments(rest, datetime.combine(today, time(12)))
    if len(moments) != 1 or moments[0].text != rest or moments[0].value is None:
        return None
    value = moments[0].value
    day = value.date() if isinstance(value, datetime) else value
    return day if today < day <= today + timedelta(days=_MOST_DAYS) else None


def _is_name(food: str) -> bool:
    """Return whether *food* is written as a name, as Turkey is; several words may begin with one, as Thai food does."""
    return food.istitle() and " " not in food


def _blanks(text: str) -> int:
    return len(text) - len(text.lstrip(" \t,.!:-"))
