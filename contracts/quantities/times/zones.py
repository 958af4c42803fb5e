"""Zones beside a time of day: "UTC", "9am est", "GMT+2", "14:00 +02:00", "Eastern time", "New York time", "ET"."""

import re
from datetime import datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import Final

from tasklore.contracts.quantities.sentence import Sentence
from tasklore.contracts.quantities.times.words import ZONES

#: Zones that no city names, by what stands before "time"; every city of the IANA table is known by its own name.
_CALLED: Final = {
    "eastern": "America/New_York", "central": "America/Chicago", "mountain": "America/Denver",
    "pacific": "America/Los_Angeles", "uk": "Europe/London", "british": "Europe/London",
    "central european": "Europe/Berlin", "india": "Asia/Kolkata", "indian": "Asia/Kolkata",
}  # fmt: skip
#: Minutes ahead of UTC by names that no season changes.
_FIXED: Final = {
    "eastern standard": -300, "eastern daylight": -240, "central standard": -360, "central daylight": -300,
    "mountain standard": -420, "mountain daylight": -360, "pacific standard": -480, "pacific daylight": -420,
    "greenwich mean": 0, "coordinated universal": 0, "british summer": 60, "central european summer": 120,
}  # fmt: skip
#: In capitals right after a time of day: without "standard" or "daylight" the calendar says which.
_LETTERS: Final = {
    "et": "America/New_York", "ct": "America/Chicago", "mt": "America/Denver", "pt": "America/Los_Angeles",
}  # fmt: skip
_IANA: Final = re.compile(r"[A-Z][A-Za-z]{1,15}/[A-Z][A-Za-z_/-]{1,30}[A-Za-z]")
_REGIONS: Final = (
    "Europe",
    "America",
    "Asia",
    "Africa",
    "Australia",
    "Pacific",
    "Atlantic",
    "Indian",
)
#: Zones whose letters, small ones, are a word; places whose names are other words.
_OTHER_WORDS: Final = frozenset({"west", "wet", "z"})
_OTHER_PLACES: Final = frozenset(
    {"easter", "wake", "midway", "west", "north", "south", "act"}
)
#: What may follow a zone in small letters.
_AFTER_ZONE: Final = frozenset(
    {
        "time",
        "on",
        "tomorrow",
        "today",
        "tonight",
        "please",
        "for",
        "with",
        "and",
        "to",
        "this",
        "next",
    }
)
#: In a capital, with no noun behind it, it needs no "time": "2pm Pacific tomorrow".
_AMERICAN: Final = frozenset({"eastern", "central", "mountain", "pacific"})
#: Before "time" they say that no other zone is meant.
_HERE: Final = frozenset({"local", "my", "our"})
#: Words of a place before "time" ("San Francisco"), and characters of its name.
_MOST_WORDS = 3
_LONGEST = 64
_MOST_HOURS = 14


class UnknownZone(Exception):
    """A time of day is told in a place whose zone is not known here, so nothing can be read of it."""


def zone_at(sentence: Sentence, place: int) -> tuple[tuple[tzinfo, ...], int]:
    """Return what the zone at *place* can mean ("UTC", "EST", "UTC+2", "New York time"), and its end.

    Nothing when none is said, or "local time".
    """
    token = sentence.token(place)
    if token is None or token.kind not in {"word", "symbol"}:
        return (), place
    if token.text == "(":
        zones, end = (
            zone_at(sentence, place + 1)
            if sentence.symbol(place + 1) != "("
            else ((), place)
        )
        return (
            (zones, end + 1) if zones and sentence.symbol(end) == ")" else ((), place)
        )
    if (
        token.text == "+"
        and sentence.kind(place + 1) == "clock"
        and (offset := _offset(sentence, place)) is not None
    ):
        return (timezone(timedelta(minutes=offset)),), place + 2
    at = place + (token.text in {"in", ","})
    zones, end = _read_letters(sentence, at)
    if zones:
        return zones, end + (sentence.word(end) == "time")
    zones, end = _read_place(sentence, at)
    return (zones, end) if end > at else ((), place)


def _read_letters(sentence: Sentence, place: int) -> tuple[tuple[tzinfo, ...], int]:
    """Read "UTC", "EST", "est", "ET" and "GMT+2"."""
    word = sentence.word(place)
    if word not in ZONES and word not in _LETTERS:
        return (), place
    token = sentence.tokens[place]
    is_free = (
        sentence.kind(place + 1) != "word" or sentence.word(place + 1) in _AFTER_ZONE
    )
    is_small = word in {"utc", "gmt"} or (
        word in ZONES and word not in _OTHER_WORDS and is_free
    )
    if not sentence.text[token.start : token.end].isupper() and not is_small:
        return (), place
    if word in _LETTERS:
        zone = _zone(_LETTERS[word])
        return ((zone,), place + 1) if zone else ((), place)
    end = place + 1
    minutes = ZONES[word]
    if (
        word in {"utc", "gmt"}
        and sentence.is_glued(end)
        and (offset := _offset(sentence, end)) is not None
    ):
        end = end + 2
        minutes = (offset,)
    return tuple(timezone(timedelta(minutes=one)) for one in minutes), end


def _offset(sentence: Sentence, place: int) -> int | None:
    """Return the minutes of the "+2", "-05:30" or "+02:00" at *place*."""
    sign = {"+": 1, "-": -1}.get(sentence.symbol(place))
    token = sentence.token(place + 1)
    if sign is None or token is None or not token.is_glued:
        return None
    hours, _, minutes = token.text.partition(":")
    if not (
        hours.isdigit()
        and len(hours) <= 2
        and int(hours) <= _MOST_HOURS
        and (minutes or "0").isdigit()
    ):
        return None
    return (
        sign * (int(hours) * 60 + int(minutes or 0)) if int(minutes or 0) < 60 else None
    )


def _read_place(sentence: Sentence, place: int) -> tuple[tuple[tzinfo, ...], int]:
    """Read "New York time", "Eastern Standard Time" and "Europe/Berlin"; "local time" is none of them."""
    if sentence.symbol(place + 1) == "/" and (
        iana := _IANA.match(sentence.text, sentence.tokens[place].start)
    ):
        zone = zone_called(iana.group())
        end = place
        while end < len(sentence.tokens) and sentence.tokens[end].start < iana.end():
            end += 1
        return ((zone,), end) if zone else ((), place)
    for count in range(1, _MOST_WORDS + 1):
        if not sentence.word(place + count - 1):
            break
        if sentence.word(place + count) == "time":
            if count == 1 and sentence.word(place) in _HERE:
                return (), place + 2
            start, stop, name = sentence.cut(place, place + count)
            zone = zone_called(name) if stop - start <= _LONGEST else None
            if zone is None and name[0].isupper():
                raise UnknownZone(name)
            return ((zone,), place + count + 1) if zone else ((), place)
    token = sentence.tokens[place] if sentence.word(place) in _AMERICAN else None
    follows = sentence.word(place + 1)
    is_zone = (
        token is not None
        and sentence.text[token.start].isupper()
        and (not follows or follows in _AFTER_ZONE)
    )
    american = zone_called(sentence.word(place)) if is_zone else None
    return ((american,), place + 1) if american else ((), place)


def zone_called(name: str) -> tzinfo | None:
    """Return the zone of the city *name* ("new york"), or the one of that name ("Europe/Berlin"); None for others."""
    said = name.lower()
    if said in _FIXED:
        return timezone(timedelta(minutes=_FIXED[said]))
    known = _CALLED.get(said) or _zones().get(said)
    return _zone(known) if known else None


@cache
def _zones() -> dict[str, str]:
    """Return the zones of cities by their small letters, with their region and without it; not before one is said."""
    from zoneinfo import available_timezones

    names = sorted(
        one
        for one in available_timezones()
        if one.count("/") == 1 and one.split("/")[0] in _REGIONS
    )
    cities = {one.split("/")[1].replace("_", " ").lower(): one for one in names}
    known = {city: one for city, one in cities.items() if city not in _OTHER_PLACES}
    return {one.lower(): one for one in names} | known


def _zone(name: str) -> tzinfo | None:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def in_fixed_zone(moment: datetime) -> tuple[datetime, ...]:
    """Return *moment* with its offset: two where clocks are put back, or skip that hour; a local one as it is."""
    if moment.tzinfo is None or isinstance(moment.tzinfo, timezone):
        return (moment,)
    offsets = dict.fromkeys(moment.replace(fold=fold).utcoffset() for fold in (0, 1))
    return tuple(
        moment.replace(tzinfo=timezone(one), fold=0)
        for one in offsets
        if one is not None
    )
