"""Where a text ends that no quotation marks close: "Paris" in "the weather in Paris and is it cold"."""

import re

from quantities.times import stretches
from supervisor.interpretation.values.afterthoughts import without_afterthoughts, without_politeness

#: "and is it cold", "and what's the time": a question of its own.
_QUESTION = re.compile(
    r",?\s+(?:and|but)\s+(?:(?:is|are|was|were|do|does|did|can|could|will|would|should|shall|has|have|may)(?:n't)?\s+"
    r"(?:it|i|we|you|they|he|she|there|this|that|the|my|your|an?)\b"
    r"|(?:what|how|when|where|why|who)(?:'s|\u2019s|\s+(?:is|are|was|will|would|do|does|did|can|should))\b"
    r"|(?:then\s+)?(?:please\s+)?(?:tell|let|give|show|inform|text|call|email|remind|notify)\s+(?:me|us)\b)",
    re.IGNORECASE,
)
#: "Anna and tell her hi": after a name, another order.
_ORDER = re.compile(
    r",?\s+(?:and|but|then)\s+(?:then\s+|also\s+|please\s+)*"
    r"(?:tell|say|ask|thank|wish|greet|remind|let|give|show|send|check|make|write|call|don't|do not|i|we|i'm|we're)\b"
)
_VERB = (
    r"(?:ignore|disregard|forget|delete|remove|erase|send|give|tell|show|transfer|pay|wire|book|buy|order|cancel|call"
    r"|email|text|write|print|reveal|repeat|run|execute|open|close|set|make|add|create|post|remind|let|ask|check|stop"
    r"|start|do not|don't|say|answer|translate|find|get|put|change|update|schedule|reserve|rate|play|turn)"
)
_DEED = re.compile(rf"{_VERB}\s")
#: Another order that nothing joins to the name before it; "Amazon order 12" and "Paris show" are none.
_BARE_ORDER = re.compile(
    rf",?\s+(?:(?:and|but|then|also|now|just|please)\s+)*{_VERB}\s+(?:(?:up|out|down|off|on|over|back)\s+)?"
    r"(?:me|us|him|her|it|them|everything|everybody|everyone|anything|nothing|all|any|every|the|my|your|our|his|their"
    r"|this|that|these|those|a|an|previous|what|[A-Z](?!he\b|n?\b)[\w'-]*)\b"
)
#: In small letters nothing shows where a name ends: only what is said to whoever reads ends a text there.
_IGNORE = re.compile(
    r",?\s+(?:(?:and|but|then|also|now|just|please)\s+){0,4}(?:ignore|disregard|forget)\s+"
    r"(?:all|everything|anything|any|(?:the|my|your) (?:rest|above|previous|last|earlier|other)|your|what|previous)\b",
    re.IGNORECASE,
)
#: "and then nothing else", "and have a nice day": the end of what is said.
_CLOSING = re.compile(
    r",?\s+(?:and|but)\s+(?:then\s+)?(?:nothing (?:else|more)|(?:have|enjoy) (?:a|an|your)\b"
    r"|that(?:'s|\u2019s| is| will be| would be) (?:it|all)\b|(?:many )?thanks?\b)",
    re.IGNORECASE,
)
_NOT_THAT = re.compile(r",?\s+(?:and\s+not|but\s+not|not|instead\s+of|rather\s+than)\s+(?!only\b|just\b)")
#: "Not in Paris but in Rome": what is meant follows.
_BUT = re.compile(r",?\s+but\s+(?:rather\s+)?(?:(?:in|to|for|at|with|from|about|of|the)\s+)?(?=\w)", re.IGNORECASE)
_DENIED = re.compile(r"(?:\bnot|n't|n\u2019t)\b[^.;!?\n]{0,40}$", re.IGNORECASE)
#: Characters before a text that may deny it.
_REACH = 48
#: A name, with the small words that stand in names.
_NAME = re.compile(
    r"(?:[a-z]+\s+)?[A-Z][\w'\u2019-]*\.?(?:\s+(?:(?:of|de|la|the|da|del|van|von|upon|on|le|in|and|&)\s+)?[A-Z][\w'\u2019-]*\.?)*"
)
_SHORT_NAME = re.compile(r"[^\W\d][\w'\u2019-]*(?:\s+[^\W\d][\w'\u2019-]*)?(?=\s)")
#: "1984", the name of a book.
_NUMBER = re.compile(r"\d[\w'\u2019-]*(?=\s)")
#: Between a name and the amount of another field.
_TO_AMOUNT = re.compile(r"[\s,:($\u20ac\u00a3]*(?:\s(?:a|an|for|with|at|x)\s+)?")
#: Not "in": what is in May or in spring may be a title.
_ON = re.compile(r"\s+(?:on|at|by|for)\s+", re.IGNORECASE)
_TO_TIME = re.compile(r"^(?:(?:on|at|for|in|by|right)\s+)+(?=\w)")
_PERIOD = re.compile(r"(?:next|this|last|the)\s+(?:week|month|year|weekend|morning|afternoon|evening)|then|later")
_LONGEST_TIME = 40
_MOST_TIMES = 2
#: Before the time at the end of a message: "on Friday" is when, "tickets for Friday" are what.
_LEAD = re.compile(r"[\s,]+(?:(?:on|at|by|in)\s+)?$", re.IGNORECASE)
_KEPT_BEFORE_TIME = re.compile(
    r"\b(?:for|from|of|about|until|till|since|before|after|the|my|our|to|and|or|between)\s+$", re.IGNORECASE
)
#: What is said after a text and is no part of it; "me too" is.
_BESIDE = re.compile(
    r"(?<!\bme)(?<!\byou)(?<!\bhim)(?<!\bher)(?<!\bi),?\s+(?:too|as well|instead|thanks|thank you|please)$"
)


def meant_instead(text: str, start: int, end: int) -> int | None:
    """Return where the text begins that is meant instead of `text[start:end]`: "not in Paris but in *Rome*"."""
    if not _DENIED.search(text, max(start - _REACH, 0), start):
        return None
    match = _BUT.search(text, start, end)
    return match.end() if match else None


def end_of(text: str, start: int, end: int, *, is_free: bool = False) -> int:
    """Return where the text that begins at *start* ends, at most *end*.

    A title keeps its "and": a text is cut only before what is a question, or another order behind a name. One that
    *is_free*, such as a message, may itself hold orders that nothing joins to a name.
    """
    if match := _QUESTION.search(text, start, end):
        end = match.start()
    for closing in (_CLOSING,) if is_free else (_IGNORE, _CLOSING):
        if match := closing.search(text, start, end):
            end = match.start()
    while match := _BESIDE.search(text, start, end):
        end = match.start()
    end = without_politeness(text, start, end)
    name = _NAME.match(text, start, end)
    # "Note: call Anna and send the letter" is all one text.
    is_deed = _DEED.match(text, start) is not None or (is_free and text[start : start + 1].islower())
    if name is not None and not is_deed:
        for border in (_ORDER, _NOT_THAT) if is_free else (_ORDER, _BARE_ORDER, _NOT_THAT):
            if match := border.match(text, name.end(), end):
                end = match.start()
        # "The Ivy on Friday at 7pm" says two of them.
        for _ in range(_MOST_TIMES):
            end = _before_time(text, start, min(name.end(), end), end)
    if is_free or is_deed:
        return end
    return without_afterthoughts(text, start, end, name.end() if name is not None else None)


def _before_time(text: str, start: int, name_end: int, end: int) -> int:
    """Return where the name that begins at *start* ends when only a time follows it ("Paris tomorrow", "on Friday")."""
    borders = [match.start() for match in _ON.finditer(text, start, end)]
    for border in (*borders[-1:], name_end):
        rest = text[border:end].strip(" ,.!?")
        if not 0 < len(rest) <= _LONGEST_TIME:
            continue
        bare = _TO_TIME.sub("", rest)
        if _PERIOD.fullmatch(bare) or any(said == (0, len(one)) for one in (rest, bare) for said in stretches(one)):
            return border
    return end


def before_amount(text: str, start: int, amount: int) -> int | None:
    """Return where the text that begins at *start* ends when the amount at *amount* is none of it, None if it may be.

    "Anna" in "send Anna 50 euros" is a name that an amount follows; "paid 50 euros for lunch" is a text with an amount.
    """
    if amount <= start:
        return start
    name = (
        _NAME.match(text, start, amount) or _SHORT_NAME.match(text, start, amount) or _NUMBER.match(text, start, amount)
    )
    return name.end() if name is not None and _TO_AMOUNT.fullmatch(text, name.end(), amount) else None


def without_lead(text: str, start: int, end: int) -> int | None:
    """Return where `text[start:end]` ends without the "on" of "on Friday"; None for "for Friday", which says what."""
    near = max(start, end - _LONGEST_TIME)
    if _KEPT_BEFORE_TIME.search(text, near, end):
        return None
    match = _LEAD.search(text, near, end)
    return match.start() if match else None
