"""Whether those who were counted become more or fewer: "8 but two can't make it", "add 2 people to my table for 4"."""

import re

#: Words without one of these change nobody's number; looked for first, since most sentences have none.
_HINT = re.compile(
    r"\b(?:add|remov|more|can|could|won|will not|isn|aren|are not|cancel|drop|bail|back|pull)", re.IGNORECASE
)
_SOME = (
    r"(?:\d{1,3}|an?(?:other)?|one|two|three|four|five|six|seven|eight|nine|ten|some(?:one|body)?|a few|a couple"
    r"|(?:my|our) [a-z]+)"
)
_PEOPLE = r"(?:people|persons?|guests?|adults?|kids?|children|friends?|others?|seats?|places?|more)"
_ADDED = re.compile(
    rf"\b(?:add|adding|remove|removing)\s+{_SOME}\s+(?:(?:more|extra|additional|other)\s+)?{_PEOPLE}\b", re.IGNORECASE
)
_CHANGED = re.compile(
    rf"(?:\b(?:but|and|though|however|plus|only)\b|[,;.])\s*(?:(?:but|and|then|unfortunately|sadly|now)\s+)*{_SOME}"
    rf"(?:\s+of\s+(?:us|them|those))?(?:\s+{_PEOPLE})?\s+(?:"
    r"(?:can(?:'t|\u2019t|not| not)|couldn(?:'|\u2019)t|won(?:'|\u2019)t|will not)\s+(?:make|come|be|join|attend)\b"
    r"|(?:is|are)(?:n(?:'|\u2019)t| not)\s+(?:able|coming|joining|attending|showing|going)\b"
    r"|(?:(?:have|has|had|just)\s+)*(?:cancel(?:l?ed)|dropped out|bailed|backed out|pulled out)\b"
    r"|(?:(?:is|are|will be|may be|might be)\s+(?:coming|joining)|(?:will|may|might|want to)\s+(?:come|join))\b)",
    re.IGNORECASE,
)
#: A change of this word must say that it is one more: "6 people and two are coming by car" is no change.
_JOINS = re.compile(r"(?:coming|joining|come|join)$", re.IGNORECASE)
_DENIED = re.compile(r"n(?:'|\u2019)t\b|\bnot\b", re.IGNORECASE)
_MORE = re.compile(r"\b(?:more|another|extra)\b", re.IGNORECASE)
#: "My boss can't make it, please cancel": nobody comes then, and the number is that of the booking.
_ALL_OFF = re.compile(r"\bcancel\b", re.IGNORECASE)
#: What stands between the change and the number that it leads to, or before that number.
_CONCLUDED = re.compile(
    r"\b(?:so|total|altogether|mak(?:e|es|ing)|now|in all|which (?:is|means)"
    r"|that(?:'s|\u2019s)|leav(?:es|ing)|instead)\b",
    re.IGNORECASE,
)
_ALREADY = re.compile(r"\b(?:now|only|just|down to|up to|left)\b", re.IGNORECASE)
#: Characters before and behind a number that may say that it is the latest.
_REACH = 24


def is_changed(text: str, start: int) -> bool:
    """True when the number of people told at *start* is added to or taken from, and no result is said.

    It is the result itself in "two can't make it, so we are 6" and "we are only 6 now, two cancelled".
    """
    if _HINT.search(text) is None or _ALL_OFF.search(text):
        return False
    for match in (*_ADDED.finditer(text), *_CHANGED.finditer(text)):
        if match.start() <= start < match.end():
            continue
        said = match.group()
        if _JOINS.search(said) and not (_DENIED.search(said) or _MORE.search(said)):
            continue
        if start >= match.end() and _CONCLUDED.search(text, match.end(), start):
            continue
        if start < match.start() and _ALREADY.search(text, max(start - _REACH, 0), match.start()):
            continue
        # what is said behind "but two can't come" is a count of its own: "for 6 tonight"
        if start >= match.end() and _ADDED.match(said) is None:
            continue
        return True
    return False
