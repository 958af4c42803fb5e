"""Zones beside a time of day in a sentence: "UTC", "9am est", "GMT+2", "New York time", "14:00 +02:00"."""

from datetime import timedelta, timezone, tzinfo

from quantities.times.places import LETTERS, zone_called
from quantities.times.tokens import Sentence
from quantities.times.words import ZONES

#: Zones whose letters, small ones, are a word.
_OTHER_WORDS = frozenset({"west", "wet", "z"})
#: What may follow a zone in small letters.
_AFTER_ZONE = frozenset(
    {"time", "on", "tomorrow", "today", "tonight", "please", "for", "with", "and", "to", "this", "next"}
)
_AMERICAN = frozenset({"eastern", "central", "mountain", "pacific"})
#: Words and marks before a zone.
_OPENING, _OPENING_MARKS = _AMERICAN | {"in"}, frozenset("(+,")
#: Before "time" they say that no other zone is meant.
_HERE = frozenset({"local", "my", "our"})
#: Words of a place before "time" ("San Francisco", "Ho Chi Minh").
_MOST_WORDS = 3
#: Characters of the name of a place.
_LONGEST = 64


def zone_at(sentence: Sentence, place: int) -> tuple[tuple[tzinfo, ...], int]:
    """Return what the zone at *place* can mean ("UTC", "EST", "UTC+2", "New York time"), and its end.

    Nothing when none is said, or "local time".
    """
    if not _may_be_zone(sentence, place):
        return (), place
    if sentence.symbol(place) == "(":
        zones, end = zone_at(sentence, place + 1)
        return (zones, end + 1) if zones and sentence.symbol(end) == ")" else ((), place)
    if sentence.symbol(place) == "+" and (written := _written_offset(sentence, place)) is not None:
        return (timezone(timedelta(minutes=written)),), place + 2
    at = place + (sentence.word(place) == "in" or sentence.symbol(place) == ",")
    zones, end = _lettered(sentence, at)
    if not zones:
        zones, end = _placed(sentence, at)
        zones, end = (zones, end) if end > at else _american(sentence, at)
    elif sentence.word(end) == "time":
        end += 1
    return (zones, end) if end > at else ((), place)


def _may_be_zone(sentence: Sentence, place: int) -> bool:
    """Say at a quick look whether a zone may stand at *place*: most times of day have none."""
    token = sentence.token(place)
    if token is None:
        return False
    if token.kind != "word":
        return token.text in _OPENING_MARKS
    if token.text in _OPENING or token.text in ZONES or token.text in LETTERS:
        return True
    behind = sentence.tokens[place + 1 : place + 1 + _MOST_WORDS]
    return any(one.text in {"time", "/"} for one in behind)


def _lettered(sentence: Sentence, place: int) -> tuple[tuple[tzinfo, ...], int]:
    """Read "UTC", "EST", "est", "ET" and "GMT+2"."""
    token = sentence.token(place)
    if token is None or token.kind != "word" or not (token.text in ZONES or token.text in LETTERS):
        return (), place
    if not sentence.text[token.start : token.end].isupper() and not _is_small_zone(sentence, place):
        return (), place
    if token.text in LETTERS:
        zone = zone_called(LETTERS[token.text])
        return ((zone,), place + 1) if zone else ((), place)
    end, minutes = place + 1, ZONES[token.text]
    if token.text in {"utc", "gmt"} and (offset := _offset(sentence, end)) is not None:
        end, minutes = end + 2, (offset,)
    return tuple(timezone(timedelta(minutes=one)) for one in minutes), end


def _is_small_zone(sentence: Sentence, place: int) -> bool:
    """True for the "est" of "9am est" and "9am est tomorrow": in small letters a zone ends what is said."""
    word, after = sentence.word(place), sentence.word(place + 1)
    if word in {"utc", "gmt"}:
        return True
    return word in ZONES and word not in _OTHER_WORDS and (sentence.kind(place + 1) != "word" or after in _AFTER_ZONE)


def _placed(sentence: Sentence, place: int) -> tuple[tuple[tzinfo, ...], int]:
    """Read "New York time", "Eastern Standard Time" and "Europe/Berlin"; "local time" is none of them."""
    last = sentence.token(place + 2)
    if sentence.symbol(place + 1) == "/" and last is not None and last.kind == "word" and sentence.is_glued(place + 2):
        end = place + 3
        while sentence.symbol(end) in {"_", "/"} and sentence.is_glued(end) and sentence.kind(end + 1) == "word":
            end += 2
        named = _called(sentence, place, end) if sentence.word(place) else None
        return ((named,), end) if named else ((), place)
    for count in range(1, _MOST_WORDS + 1):
        if sentence.kind(place + count - 1) != "word":
            break
        if sentence.word(place + count) == "time":
            if count == 1 and sentence.word(place) in _HERE:
                return (), place + 2
            zone = _called(sentence, place, place + count)
            return ((zone,), place + count + 1) if zone else ((), place)
    return (), place


def _american(sentence: Sentence, place: int) -> tuple[tuple[tzinfo, ...], int]:
    """Read the "Pacific" of "2pm Pacific tomorrow", in a capital and with no noun behind it."""
    token = sentence.token(place)
    if token is None or token.text not in _AMERICAN or not sentence.text[token.start].isupper():
        return (), place
    is_end = sentence.kind(place + 1) != "word" or sentence.word(place + 1) in _AFTER_ZONE
    zone = zone_called(token.text) if is_end else None
    return ((zone,), place + 1) if zone else ((), place)


def _called(sentence: Sentence, place: int, end: int) -> tzinfo | None:
    start, stop, name = sentence.cut(place, end)
    return zone_called(name) if stop - start <= _LONGEST else None


def _written_offset(sentence: Sentence, place: int) -> int | None:
    """Return the minutes of the "+02:00" behind a time of day; behind a minus there may be the end of a period."""
    token = sentence.token(place + 1)
    if token is None or token.kind != "clock" or not token.is_glued:
        return None
    hours, _, minutes = token.text.partition(":")
    return int(hours) * 60 + int(minutes) if minutes.isdigit() and int(hours) <= 14 and int(minutes) < 60 else None


def _offset(sentence: Sentence, place: int) -> int | None:
    """Return the minutes of the "+2" or "-05:30" right after "UTC"."""
    sign = {"+": 1, "-": -1}.get(sentence.symbol(place))
    token = sentence.token(place + 1)
    if sign is None or not sentence.is_glued(place) or token is None or not token.is_glued:
        return None
    hours, _, minutes = token.text.partition(":")
    if not (hours.isdigit() and len(hours) <= 2 and int(hours) <= 14 and (minutes or "0").isdigit()):
        return None
    return sign * (int(hours) * 60 + int(minutes or 0)) if int(minutes or 0) < 60 else None
