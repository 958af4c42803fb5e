"""The day after the one said before it: "tomorrow and the day after", "friday and the next day at 9"."""

from datetime import date, timedelta

from quantities.times.reckoning import Day
from quantities.times.tokens import Sentence

_JOINING = frozenset({"and", "or", "then", "plus", "also", "on"})
_SAYING = tuple(map(str.split, ("the day after that", "the day after", "the next day", "the following day")))
#: Words and marks between both.
_MOST_JOINING = 4


def day_after_at(sentence: Sentence, place: int, before: int, days: tuple[date, ...]) -> Day | None:
    """Return the day after *days*, whose words end before token *before*, where *place* says just that."""
    if sentence.word(place) != "the" or not 0 < place - before <= _MOST_JOINING:
        return None
    if not all(sentence.word(one) in _JOINING or sentence.symbol(one) in {",", "&"} for one in range(before, place)):
        return None
    for words in _SAYING:
        if all(sentence.word(place + step) == word for step, word in enumerate(words)):
            return Day(tuple(day + timedelta(days=1) for day in days), place + len(words), is_relative=True)
    return None
