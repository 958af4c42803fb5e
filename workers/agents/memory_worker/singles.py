"""What can be said in one way only at a time, and when a new saying takes the place of the former.

"Gets up at 7" does, of "gets up at 6:30"; "gets up at 7 on weekends" says nothing about the other days, and a year of
birth nothing about the place.
"""

import re
from dataclasses import dataclass

from workers.agents.memory_worker.cues import cue_words
from workers.statements.normal import Token, normal, same
from workers.statements.words import load_words

#: What follows says when or where something holds, and no longer what.
_WHEN = re.compile(
    r"\b(?:on|during|when|while|if|every|each|for|since|until|till|after|before|because|except|in\s+(?:the\s+)?"
    r"(?:spring|summer|autumn|fall|winter|morning|evening|afternoon|week|january|february|march|april|may|june|july"
    r"|august|september|october|november|december))\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


@dataclass(frozen=True, slots=True)
class _Said:
    """What follows a cue: of what sort its value is, and what else is said of it."""

    sort: str
    about: frozenset[str]


def replaces(new: str, kept: str) -> bool:
    """Tell whether *new* cannot hold beside *kept*: both say one thing, of the same sort, for the same days and places.

    In doubt it can: to keep a thing too many is better than to lose one.
    """
    if same(new, kept):
        return False
    if _counted(new) is not None and _counted(new) == _counted(kept):
        return True
    one, other = new.casefold(), kept.casefold()
    cues = cue_words("single") | cue_words("single_times")
    cue = next((cue for cue in cues if one.startswith(f"{cue} ") and other.startswith(f"{cue} ")), None)
    if cue is None:
        return False
    mine, theirs = _said(new[len(cue) :]), _said(kept[len(cue) :])
    return mine == theirs and (mine.sort == "number" or cue not in cue_words("single_times"))


def _counted(text: str) -> str | None:
    """Return *text* without its number where it is a count of which there is one at a time ("is # years old")."""
    form, count = _NUMBER.subn("#", " ".join(text.casefold().split()))
    return form if count == 1 and form in cue_words("single_counts") else None


def _said(rest: str) -> _Said:
    split = _WHEN.search(rest)
    value, when = (rest, "") if split is None else (rest[: split.start()], rest[split.start() :])
    tokens = normal(value).tokens
    if any(_is_number(token) for token in tokens):
        # Which number is what differs; a unit that comes with it is of its text, and days and places are words.
        return _Said("number", _words(tokens) | _all_words(when))
    is_named = any(word[:1].isupper() for word in value.split())
    return _Said("name" if is_named else "thing", _all_words(when))


def _words(tokens: tuple[Token, ...]) -> frozenset[str]:
    return frozenset(
        token.text.casefold() for token in tokens if not _is_number(token) and token.text not in load_words().function
    )


def _is_number(token: Token) -> bool:
    return token.kind == "number" or token.text.casefold() in cue_words("time")


def _all_words(text: str) -> frozenset[str]:
    return frozenset(normal(text).key_words)
