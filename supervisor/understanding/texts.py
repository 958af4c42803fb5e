"""Texts of an utterance, from begin to end: quoted, announced by a cue, named, or all that is left."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import jsonschema_rs

from tasklore.supervisor.understanding.conclusion import Filled
from tasklore.supervisor.understanding.cues import Cue
from tasklore.supervisor.understanding.proper_names import names_in
from tasklore.supervisor.understanding.routing import RoutingTask
from tasklore.supervisor.understanding.schema import Slot
from tasklore.supervisor.understanding.utterance import (
    LIGHT,
    STOP,
    ReadUtterance,
    mark,
    stems_of,
    word_set,
)

#: Names of slots that hold a sentence, in which a comma ends nothing.
_SENTENCE = frozenset(
    stems_of(
        "message text note body content reason description comment memo reminder todo task words summary problem issue"
        " complaint feedback question instructions"
    )
)
_ANNOUNCING = frozenset(
    {
        ":",
        "=",
        "is",
        "are",
        "was",
        "as",
        "called",
        "named",
        '"',
        "'",
        "\u201c",
        "-",
        "\u2013",
    }
)
_END = re.compile(
    r"[!?;\n](?=\s|$)|\.(?=\s|$)(?<!\b[A-Z]\.)(?<!\b[DM]r\.)(?<!\bSt\.)(?<!\bMrs\.)"
)
_COMMA = re.compile(r",(?=\s)|\s[\u2013\u2014-]\s")
#: Behind a text: marks and courtesy, and small words that lead the value or cue behind it. "On" belongs to a title,
#: and "log in" to itself where nothing follows.
_TRAILING = re.compile(
    r"(?:[\s.,;:!?]+|(?i:\s+(?:please|pls|thanks|thank you|thx|too|now|asap))|\s+(?:and|but|or|plus|then))$"
)
_TRAILING_FOR_ME = re.compile(r"\s+for me$", re.IGNORECASE)
_TRAILING_SMALL = re.compile(r"\s+(?:for me|with|at|on|in|by|from|to|for|of|the|a)$")
#: Days that no small word leads: "log in tomorrow"; "by tomorrow" is led by one that does.
_DAYS_ALONE = re.compile(
    r"\s*(?:today|tonight|tomorrow|yesterday|now|next|this)\b", re.IGNORECASE
)
_NEVER = re.compile(r"(?!)")
#: The "with" of "logging in with Ann" leads what is behind it, so that "in" does not.
_SMALL_NEXT = re.compile(
    r"\s*(?:with|at|on|in|by|from|to|for|of|about)\s", re.IGNORECASE
)
_LEADS_DAY = re.compile(r"\s+(?:for me|by|from|for|the|a)$")
_LEADING = re.compile(
    r"(?:[\s,:;=\u2013-]+|(?:called|named|is|that|please)\s+)+", re.IGNORECASE
)
#: Characters of the longest text that is taken out of a sentence.
_LONGEST = 2_000
#: These are no names: the person is asked whom or what they mean.
_PRONOUNS = word_set(
    "him her it them me us someone somebody anyone anybody everyone everybody nobody something this that these those"
    " one myself"
)
_DETERMINERS = word_set("a an the my our your his her their some any this that")
_LEADS_ON = word_set("a an the my our your to in at about of on me us from")
_SMALL = word_set("to from at in for with by about into of on as and")
_AND = re.compile(r"(?:(?:and|or|plus|&)\s+)?", re.IGNORECASE)
_CHUNK = re.compile(r"[^\s\"'(,;]+")
_AROUND = ".,;:!?)\"'"
#: Patterns that are tried: no groups, no choices, by an engine that does not go back, and none that grows large.
_LONGEST_CODE = 64
_MOST_COMPILED = 128 * 1024
_SIMPLE = re.compile(r"(?:\[[^\]]*\]|\\[^bBAZ1-9]|[^()|\[\]])*")
_WORDS = re.compile(r"\S+")


def stray_digits(utterance: ReadUtterance) -> list[tuple[int, int]]:
    """Return where digits stand that are no amount, no date and no length of time: "A4", "2x"."""
    dates = utterance.moment_marks
    amounts = utterance.amount_marks
    found = []
    for match in _WORDS.finditer(utterance.text):
        if not any(map(str.isdigit, match.group())):
            continue
        end = match.start() + len(match.group().rstrip(".,;:!?)"))
        if not any(dates[match.start() : end]) and not any(
            amounts[match.start() : end]
        ):
            found.append((match.start(), end))
    if not found:
        return found
    lengths = mark(
        len(utterance.text), ((one.start, one.end) for one in utterance.durations)
    )
    return [one for one in found if not any(lengths[slice(*one)])]


def fits(slot: Slot, text: str) -> bool:
    """Return whether *text* is as the pattern of *slot* wants it; a pattern that may take for ever is not tried."""
    pattern = simple_pattern(slot.pattern) if slot.pattern else None
    return pattern is None or (len(text) <= _LONGEST_CODE and pattern.is_valid(text))


@lru_cache(maxsize=512)
def simple_pattern(pattern: str) -> jsonschema_rs.Draft202012Validator | None:
    """Return what finds *pattern* of a card, None for one with groups or choices: it may be anybody's, and large."""
    if len(pattern) > 2 * _LONGEST_CODE or _SIMPLE.fullmatch(pattern) is None:
        return None
    options = jsonschema_rs.RegexOptions(
        size_limit=_MOST_COMPILED, dfa_size_limit=_MOST_COMPILED
    )
    try:
        return jsonschema_rs.Draft202012Validator(
            {"pattern": pattern}, offline=True, pattern_options=options
        )
    except ValueError:
        return None


def find_announced_texts(
    utterance: ReadUtterance,
    task: RoutingTask,
    cues: Sequence[Cue],
    filled: Filled,
    asked: Sequence[Slot],
) -> Iterator[tuple[Slot, int, int]]:
    """Yield the texts that are said beyond doubt: by their pattern, as one of the examples, or behind a cue.

    An answer to a question for one text is that text, as far as nothing else is found in it.
    """
    texts = [slot for slot in task.schema.slots if slot.kind == "text"]
    for slot in texts:
        if (
            filled.is_open(slot)
            and not slot.is_list
            and (found := _by_looks(utterance, slot, filled)) is not None
        ):
            yield slot, *found
    behind = _behind_cues(utterance, task, cues, filled)
    for slot, start, end in behind:
        if filled.is_open(slot):
            yield from (
                (slot, *part)
                for part in (
                    _items(utterance, slot, start, end)
                    if slot.is_list
                    else [(start, end)]
                )
            )
    answered = [slot for slot in asked if slot.kind == "text" and filled.is_open(slot)]
    if len(asked) == 1 and answered:
        found = _extent(
            utterance,
            slot=answered[0],
            start=0,
            stop=len(utterance.text),
            filled=filled,
            is_answer=True,
        )
        if found is not None:
            parts = (
                _items(utterance, answered[0], *found)
                if answered[0].is_list
                else [found]
            )
            yield from ((answered[0], *part) for part in parts)


def _by_looks(
    utterance: ReadUtterance, slot: Slot, filled: Filled
) -> tuple[int, int] | None:
    """Return the one word that is as the pattern of *slot* wants it, or the one of its examples that is said."""
    text = utterance.text
    if slot.pattern and simple_pattern(slot.pattern):
        found = [
            (match.start(), match.start() + len(match.group().rstrip(_AROUND)))
            for match in _CHUNK.finditer(text)
        ]
        found = [
            one
            for one in found
            if fits(slot, text[slice(*one)])
            and any(map(str.isdigit, text[slice(*one)]))
        ]
    else:
        found = []
        for value in slot.examples:
            match = (
                re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE)
                if isinstance(value, str) and 2 < len(value) < _LONGEST_CODE
                else None
            )
            if match and not any(start <= match.start() < end for start, end in found):
                found.append(match.span())
    free = [
        one
        for one in found
        if not filled.holds(*one) and not _is_led_away(utterance, slot, one[0])
    ]
    return free[0] if len(free) == 1 else None


def _behind_cues(
    utterance: ReadUtterance,
    task: RoutingTask,
    cues: Sequence[Cue],
    filled: Filled,
) -> list[tuple[Slot, int, int]]:
    """Return the texts behind their cues; a slot may be announced twice, and the first that leads a text counts."""
    text = utterance.text
    tokens = utterance.tokens
    found: list[tuple[Slot, int, int]] = []
    begins: list[int] = []
    for cue in sorted(
        cues, key=lambda one: (one.penalty, one.first, one.first - one.end)
    ):
        slot = cue.slot
        if slot.kind != "text" or cue.side == "left" or not filled.is_open(slot):
            continue
        if any(one is slot for one, _, _ in found) or not _leads(
            utterance, task, cue, cues
        ):
            continue
        others = [one for one in cues if one.first >= cue.end and one.slot is not slot]
        if not slot.is_list:
            # A small word may stand in any text; one that leads the only text of another slot ends this one.
            led = {one.name for one, _, _ in found} | {
                one.slot.name for one in cues if one.first < cue.first
            }
            others = [
                one
                for one in others
                if one.end - one.first > 1
                or tokens[one.first].text not in _SMALL
                or (
                    one.slot.kind == "text"
                    and one.slot.name not in led
                    and filled.is_open(one.slot)
                    and not is_sentence(slot)
                    and _leads_name(utterance, one)
                )
            ]
        stop = min((tokens[one.first].start for one in others), default=len(text))
        if (
            extent := _extent(
                utterance,
                slot=slot,
                start=tokens[cue.end - 1].end,
                stop=stop,
                filled=filled,
            )
        ) is not None:
            is_light = (
                all(one.text in LIGHT for one in tokens[cue.first : cue.end])
                and not slot.is_list
            )
            begins.append(tokens[cue.first].start)
            found.append(
                (slot, *(_bare(utterance, task, *extent) if is_light else extent))
            )
    return [
        (
            slot,
            start,
            end
            if is_sentence(slot) or slot.is_list
            else _cut(text, start, end, begins),
        )
        for slot, start, end in found
    ]


def _cut(text: str, start: int, end: int, begins: Sequence[int]) -> int:
    """Return the end of the text from *start* to *end*, before the first of the cues of other texts in it."""
    inside = [one for one in begins if start < one < end]
    cut = _trim(text, start, min(inside), _NEVER) if inside else end
    return cut if cut > start else end


def _bare(
    utterance: ReadUtterance, task: RoutingTask, start: int, end: int
) -> tuple[int, int]:
    """Return the text behind a mere "to" without words of the task: "Peru" of "Peru cost" and "Peru by air"."""
    last = end
    text = utterance.text
    tokens = [one for one in utterance.tokens if start <= one.start < end]
    for place, token in enumerate(tokens):
        is_name = text[token.start].isupper()
        goes_on = place + 1 == len(tokens) or text[tokens[place + 1].start].isupper()
        if place and (
            token.text in {"by", "via", "or"} or (token.text == "and" and not goes_on)
        ):
            break
        # "Log in", at the end: a small word that led a value was cut off before.
        is_new = token.stem not in task.said and token.text not in STOP
        is_last = place + 1 == len(tokens) and token.text in _SMALL
        if is_name or is_new or (is_last and place):
            last = token.end
    return start, last


def _leads(
    utterance: ReadUtterance, task: RoutingTask, cue: Cue, cues: Sequence[Cue]
) -> bool:
    """Return whether a text may begin behind *cue*: "name: Ada", "with the words Hello"; not "name and age"."""
    tokens = utterance.tokens
    place = cue.end
    if any(one.slot is cue.slot and place <= one.first <= place + 1 for one in cues):
        return False
    if place >= len(tokens):
        return False
    token = tokens[place]
    is_light = all(one.text in LIGHT for one in tokens[cue.first : cue.end])
    if (
        is_light
        and token.stem in task.said | task.openers
        and not utterance.text[token.start].isupper()
    ):
        return False
    if token.text in _ANNOUNCING or utterance.text[token.start].isupper():
        return True
    return token.is_word and (
        token.text not in STOP
        or token.text in _DETERMINERS
        or (cue.end - cue.first > 1 and not is_light)
    )


def _items(
    utterance: ReadUtterance, slot: Slot, start: int, end: int
) -> Iterator[tuple[int, int]]:
    """Yield the items of the list that stands at *start* to *end*: "rice, leeks and eggs"."""
    own = {phrase.stems for phrase in slot.phrases}
    for match in re.finditer(
        r"(?:(?!,|;|\s(?:and|or|&|plus)\s|\n).)+", utterance.text[start:end]
    ):
        first = start + match.start() + len(_lead(match.group(), 0))
        first += len(_AND.match(utterance.text, first, end).group())  # type: ignore[union-attr]  # matches nothing too
        if (word := _WORDS.match(utterance.text, first, end)) and stems_of(
            word.group()
        ) in own:
            first = min(word.end() + 1, end)  # "no leeks and no onions" avoids onions
        last = _trim(utterance.text, first, start + match.end())
        if first < last:
            yield first, last


def _extent(
    utterance: ReadUtterance,
    slot: Slot,
    start: int,
    stop: int,
    filled: Filled,
    *,
    is_answer: bool = False,
) -> tuple[int, int] | None:
    """Return the text for *slot* between *start* and *stop*: a quotation, or as far as its clause goes."""
    text = utterance.text
    lead = len(_lead(text, start))
    for quoted in utterance.quotations:
        if start <= quoted.start <= start + lead + 2 and quoted.end <= stop:
            return quoted.start, quoted.end
    start += lead
    if start >= stop:
        return None
    ends = [stop, min(len(text), start + _LONGEST)]
    ends += [match.start() for match in [_END.search(text, start, stop)] if match]
    ends += [
        span.start
        for span in filled.spans
        if start <= span.start < stop and span.end > start
    ]
    is_long = is_sentence(slot) or is_answer
    if not is_long and not slot.is_list:
        ends += [match.start() for match in [_COMMA.search(text, start, stop)] if match]
    if not is_long:
        ends += [one.start for one in utterance.moments if one.start >= start]
        # An amount that a small word leads, "for 2.5 kg" of "to Tokyo for 2.5 kg", is no part of the name.
        places = [
            (one.start, utterance.index_at(one.start))
            for one in utterance.amounts
            if one.start >= start
        ]
        ends += [
            at
            for at, place in places
            if place and utterance.tokens[place - 1].text in LIGHT
        ]
    end = min(ends)
    small = _small_words_behind(text, end, is_sentence=is_long)
    end = _trim(text, start, end, small)
    words = [
        token
        for token in utterance.tokens
        if start <= token.start < end and token.is_word
    ]
    if (
        not words
        or (len(words) == 1 and words[0].text in _PRONOUNS)
        or all(word.text in LIGHT for word in words)
    ):
        return None
    values = utterance.amount_marks
    if (
        not is_answer
        and slot.pattern is None
        and all(values[word.start] or word.text in LIGHT for word in words)
    ):
        return None
    return (start, end) if fits(slot, text[start:end]) else None


def is_sentence(slot: Slot) -> bool:
    """Return whether *slot* is named after what holds a sentence, in which commas and small words end nothing."""
    return not _SENTENCE.isdisjoint(stems_of(slot.name))


def _leads_name(utterance: ReadUtterance, cue: Cue) -> bool:
    """Return whether a name of more than a pronoun follows *cue*: "to Turin", but not the "by Me" of a title."""
    after = utterance.tokens[cue.end : cue.end + 1]
    return any(
        utterance.text[one.start].isupper() and one.text not in _PRONOUNS
        for one in after
    )


def _lead(text: str, start: int) -> str:
    match = _LEADING.match(text, start)
    return match.group() if match else ""


def _trim(
    text: str, start: int, end: int, small: re.Pattern[str] = _TRAILING_SMALL
) -> int:
    """Return where the text from *start* to *end* ends without marks, courtesy and the *small* words behind it."""
    while end > start and (
        match := _TRAILING.search(text[max(start, end - 40) : end])
        or small.search(text[max(start, end - 40) : end])
    ):
        end -= len(match.group())
    return end


def _small_words_behind(text: str, end: int, *, is_sentence: bool) -> re.Pattern[str]:
    """Return the small words that belong to what stands at *end*: none where the clause ends there."""
    rest = text[end:]
    if not rest.strip() or _END.match(rest) or _COMMA.match(rest):
        return _NEVER if is_sentence else _TRAILING_FOR_ME
    if _SMALL_NEXT.match(rest):
        return _NEVER
    return _LEADS_DAY if _DAYS_ALONE.match(rest) else _TRAILING_SMALL


def remaining_text(
    utterance: ReadUtterance,
    task: RoutingTask,
    cues: Sequence[Cue],
    filled: Filled,
    asked: Sequence[Slot],
) -> tuple[Slot, int, int] | None:
    """Return the text of the only open slot: the one quotation, the one name, or the words behind those of the task."""
    open_slots = [
        slot
        for slot in task.schema.slots
        if slot.kind == "text" and filled.is_open(slot)
    ]
    needed = [slot for slot in open_slots if slot in asked] or [
        slot for slot in open_slots if slot.is_required
    ]
    if len(needed) != 1:
        return None
    slot = needed[0]
    for spans in (utterance.quotations, names_in(utterance, task.known)):
        free = [one for one in spans if not filled.holds(*one)]
        if len(free) > 1:
            return None
        if free:
            is_meant = fits(slot, utterance.text[slice(*free[0])]) and not _is_led_away(
                utterance, slot, free[0][0]
            )
            return (slot, *free[0]) if is_meant else None
    return (
        (slot, *found)
        if (
            found := _after_task_words(
                utterance, slot=slot, task=task, cues=cues, filled=filled
            )
        )
        else None
    )


def _is_led_away(utterance: ReadUtterance, slot: Slot, start: int) -> bool:
    """Return whether a word before *start* gives what follows another part: "from Oslo" names no destination."""
    before = utterance.tokens[max(utterance.index_at(start) - 1, 0)].text
    return before in {"from", "by"} and not any(
        (before,) == phrase.stems for phrase in slot.phrases
    )


def _after_task_words(
    utterance: ReadUtterance,
    slot: Slot,
    task: RoutingTask,
    cues: Sequence[Cue],
    filled: Filled,
) -> tuple[int, int] | None:
    """Return the one stretch of words that the card does not know, right behind words that ask for the task."""
    tokens = utterance.tokens
    in_cue = {place for cue in cues for place in range(cue.first, cue.end)}
    loose = [
        token.is_word and not filled.holds(token.start, token.end) for token in tokens
    ]
    new = [
        place
        for place, token in enumerate(tokens)
        if loose[place]
        and place not in in_cue
        and token.text not in STOP
        and token.stem not in task.known
    ]
    if not new or not all(loose[new[0] : new[-1]]):
        return None
    end = new[-1] + 1
    before = new[0] - 1
    while end < len(tokens) and loose[end]:
        end += 1
    while tokens[end - 1].text in STOP:
        end -= 1
    while before >= 0 and tokens[before].text in _LEADS_ON:
        before -= 1
    if before < 0 or tokens[before].stem not in task.names:
        return None
    return _extent(
        utterance,
        slot=slot,
        start=tokens[new[0]].start,
        stop=tokens[end - 1].end,
        filled=filled,
    )
