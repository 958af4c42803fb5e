"""Numbers that tell a whole party at once: "so we are five", "that makes 4", "2 tables of 4", "2 rooms for 3 each"."""

import re
from collections.abc import Mapping, Sequence

from supervisor.interpretation.words import LIGHT, word_set

#: What stands right before a number that sums up who comes, whatever was listed before.
_SUMS_UP = re.compile(
    r"(?:\bwe(?:'re|\u2019re|'ll be|\u2019ll be| are| will be| would be| make)"
    r"|\bthere(?:'ll be|\u2019ll be| are| will be)"
    r"|\b(?:that|it|which|this)(?:'ll| will| would)? (?:makes?|totals?)|\bmak(?:es|ing)"
    r"|\bwhich (?:is|means)|\b(?:in|all) all|\baltogether|\bin total|=)"
    r"(?: (?:us|it|that|a total of|now|only|just|actually|then|going to be|gonna be|all|in total))*[\s:]+$",
    re.IGNORECASE,
)
#: These do so only behind who was listed: "so" may also begin anything else.
_CONCLUDES = re.compile(
    r"(?:\bso|\b(?:it|that)(?:'d|\u2019d|'ll|\u2019ll| will| would) be|\bthat(?:'s|\u2019s| is))"
    r"(?: (?:it's|just|only|about))?\s+$",
    re.IGNORECASE,
)
#: Characters that the longest of them takes, and the words that they end with.
_REACH = 48
_LAST = word_set(
    "we're we'll be are make makes making total totals is that's means all altogether us it that of now only just"
    " actually then so it's about gonna = :"
)
#: What may follow such a number, besides a mark: "we are 4 tonight", not "we are 4 tables".
_AFTER = (LIGHT - {"of"}) | word_set(
    "and but or please thanks thank tonight today tomorrow then altogether people persons guests"
)
#: What the number that a list comes to may count, one for each: "6 colleagues, so 7 seats".
_ONE_EACH = frozenset({"seats", "places", "chairs", "covers"})
#: What people sit at or ride in, each as many as the next.
_HOLDERS = word_set("tables booths rooms boats cars lanes tents taxis cabs vans cabins rows benches")
_HOLDING = word_set("for of with seating fitting holding")
#: Between ages, and tokens of a list of them.
_JOINS = frozenset({",", "and", "&", "+", "plus"})
_LONGEST_AGES, _LONGEST_AGE = 12, 5
#: Behind a list, its number is that of all.
_IN_ALL = word_set("total altogether")
#: "5 people each", "4 per table".
_EACH = frozenset({"each", "apiece", "per"})


def sums_up(text: str, start: int, before: str, following: str, *, is_behind_list: bool) -> bool:
    """True when the number at *start*, between these words or marks, tells how many there are in all."""
    if before not in _LAST:
        return False
    is_seats = is_behind_list and following in _ONE_EACH
    if following[:1].isalnum() and following not in _AFTER and not is_seats:
        return False
    near = max(start - _REACH, 0)
    return bool(_SUMS_UP.search(text, near, start) or (is_behind_list and _CONCLUDES.search(text, near, start)))


def past_total(words: Sequence[str], end: int) -> int | None:
    """Return the token after the "altogether" that calls what ends before *end* a total, None where nothing does."""
    following = list(words[end : end + 2])
    if following[:1] and following[0] in _IN_ALL:
        return end + 1
    return end if following in (["in", "total"], ["in", "all"], ["all", "together"]) else None


def is_shared_out(words: Sequence[str], end: int) -> bool:
    """True when the number before *end* is that of each of several: "each" follows it, or "per table"."""
    return end < len(words) and words[end] in _EACH


def is_rate(words: Sequence[str], place: int) -> bool:
    """True for "a head" at *place*, behind what each of them costs: "60 a head"."""
    return words[place] == "a" and words[place + 1 : place + 2] in (["head"], ["person"], ["guest"], ["cover"])


def held(words: Sequence[str], numbers: Mapping[int, tuple[int, int]], place: int) -> tuple[int, int] | None:
    """Return how many "2 tables of 4" at *place* hold and where it ends; None where the 4 may be of both together."""
    count, end = numbers[place]
    if end >= len(words) or words[end] not in _HOLDERS or end + 1 >= len(words) or words[end + 1] not in _HOLDING:
        return None
    inner = numbers.get(end + 2)
    if inner is None:
        return None
    size, after = inner
    for step in (after, after + 1):
        if is_shared_out(words, step):
            return count * size, step + 1 + (words[step] == "per")
    return (count * size, after) if words[end + 1] == "of" else None


def after_ages(words: Sequence[str], numbers: Mapping[int, tuple[int, int]], place: int) -> int:
    """Return the token after the "aged 4 and 6" at *place*, which counts nobody; *place* where no ages stand there."""
    if place >= len(words) or words[place] not in {"aged", "ages"}:
        return place
    after = place + 1
    while after < len(words) and (after in numbers or words[after] in _JOINS) and after - place < _LONGEST_AGES:
        if after not in numbers and after + 1 not in numbers:
            break
        after = numbers[after][1] if after in numbers else after + 1
    return after


def after_age(words: Sequence[str], place: int) -> int:
    """Return the token after the "4 year old" at *place*; *place* where no age stands there."""
    if "old" not in words[place + 2 : place + _LONGEST_AGE]:
        return place
    said = [word for word in words[place : place + _LONGEST_AGE] if word != "-"]
    if said[1:3] not in (["year", "old"], ["years", "old"], ["month", "old"], ["months", "old"], ["yr", "old"]):
        return place
    return words.index("old", place) + 1
