"""What careless people add after a name, and what is no part of it: "Anna pls", "Lima for my trip", "Bob :)"."""

import re

#: Said to be polite or hurried, in small letters: "Cape Town thx", "Acme GmbH asap", "Bob, would you".
_POLITE = re.compile(
    r",?\s+(?:pl[sz]+|please|thx|tnx|tx|ty|thanks(?: a lot| so much)?|thank you|cheers|asap|rn|atm|kindly|lol|haha"
    r"|as soon as possible|if (?:possible|you (?:can|could|may|please|like|would|don't mind|have time))"
    r"|if (?:it is|it's|that is|that's) (?:no trouble|ok|okay|possible)"
    r"|(?:would|will|could|can|won't|can't) you|right (?:now|away)|at once|immediately)$"
)
#: For whose sake: "say hello to Anna for me"; "waiting for me" may be a title.
_FOR_ME = re.compile(
    r"(?<!ing)\s+for (?:me|us|(?:my|our|his|her|their) (?:boss|manager|mom|mum|mother|dad|father|parents|brother|sister"
    r"|wife|husband|partner|girlfriend|boyfriend|son|daughter|kids|children|family|friends?|colleagues?|team|clients?))$"
)
#: Behind a name in capitals, small letters only: why, when or in what order; "Requiem for a Dream" goes on in capitals.
_BEHIND_NAME = re.compile(
    r",?\s+(?:first|now|next|set|due|scheduled|planned|soon|later|quickly|nicely|politely|warmly|again|already"
    r"|for (?:lunch|dinner|breakfast|brunch|supper|work|fun|now|him|her|them"
    r"|(?:my|our|his|her|their|the|this|that|next|an?) [a-z' ]{1,40})"
    r"|(?:when(?:ever)?|if|because|since|so|before|after|while|until|unless|once|in case) (?:that )?"
    r"(?:(?:[Ii]|you|we|he|she|it|they|there|(?:my|our|the) [a-z]+ (?:is|are|was|will))\b.{0,60}|possible|convenient))$"
)
#: "For Rome I need a forecast": what is wanted, behind what was put first.
_WANTING = re.compile(
    r",?\s+(?:[Ii]|we)(?:\s+(?:really\s+)?(?:need|wanna|want to|would like|would love)|'d (?:like|love))\b"
)
#: Between a name and what announces another value: "New York *for the* next 3 days".
_TO_NEXT = re.compile(
    r"\s+(?:for|over|in|during|within|with|at|on|of|and|but|the|an?|my|about|around|no|not|to|sorry|wait)$",
    re.IGNORECASE,
)
#: Signs and faces at the end.
_FACES = re.compile(
    r"(?:[\s\u2190-\u2bff\ufe0f\u200d\U0001f000-\U0001faff]*[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]"
    r"|\s+(?:[:;=]['-]?[()DPp/|*]{1,3}|<3|x{2,3}))\s*$"
)
#: Additions that are taken off one text, each at the cost of a look at its end.
_MOST = 6
#: Characters at the end of a text that may be added.
_REACH = 80


def without_faces(text: str, start: int, end: int) -> int:
    """Return where `text[start:end]` ends without the signs and faces behind it."""
    tail = max(end - _REACH, start)
    match = _FACES.search(text[tail:end])
    return tail + match.start() if match else end


def without_politeness(text: str, start: int, end: int) -> int:
    """Return where `text[start:end]` ends without what is only said to be polite."""
    return _without(text, start, end, (_POLITE,))


def without_afterthoughts(text: str, start: int, end: int, name_end: int | None) -> int:
    """Return where the name `text[start:end]` ends; *name_end* is where its words in capitals do, None without any."""
    if match := _WANTING.search(text, start + 1, end):
        end = match.start()
    end = _without(text, start, end, (_POLITE, _FOR_ME))
    if name_end is not None and start < name_end < end:
        tail = _without(text, name_end, end, (_BEHIND_NAME, _POLITE, _FOR_ME))
        end = tail if tail == name_end or tail < end else end
    return end


def before_next(text: str, start: int, end: int) -> int:
    """Return where `text[start:end]` ends without the small words that lead to the value behind it."""
    return _without(text, start, end, (_TO_NEXT,))


def _without(text: str, start: int, end: int, endings: tuple[re.Pattern[str], ...]) -> int:
    for _ in range(_MOST):
        end = without_faces(text, start, start + len(text[start:end].rstrip(" \t\r\n.,;:!?")))
        tail = max(end - _REACH, start)
        match = next((found for one in endings if (found := one.search(text[tail:end]))), None)
        if match is None:
            return end
        end = tail + match.start()
    return end
