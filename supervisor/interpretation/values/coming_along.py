"""Whether those who are listed come beside the speaker: "I'm coming with 5 others", "with my wife and son"."""

from collections.abc import Sequence

from supervisor.interpretation.values.people import COMES

#: Between "we will be coming" and "3 others".
_WITH = frozenset({"with", "bringing", "bring", "plus", "by"})
_WE = frozenset({"we", "we'll", "we're", "we've", "us"})
_I = frozenset({"i", "i'm", "i'll", "i'd", "im", "ill", "i've"})
#: Words before the list that say who brings it.
_REACH = 8
_VERB_REACH = 5


def came_along(words: Sequence[str], place: int, *, is_others: bool, is_related: bool, told: int | None) -> int | None:
    """Return how many to add for the speaker to the list at *place*, None when that is not known.

    *is_others* is for a list of "others" alone, *is_related* for one of whom the speaker calls theirs; *told* are those
    who were listed before with the speaker.
    """
    before = words[max(place - _REACH, 0) : place]
    if not before or before[-1] not in _WITH:
        return None if is_others else 0
    if not _WE.isdisjoint(before):
        return None if told is None else 0
    is_mine = is_related and is_with_mine(words, place)
    return 1 if is_others or is_mine or not _I.isdisjoint(before) else 0


def is_with_mine(words: Sequence[str], place: int) -> bool:
    """Return whether the list at *place* is one of "with my wife"."""
    return place > 0 and words[place - 1] == "with" and words[place] == "my"


def comes(words: Sequence[str], place: int) -> bool:
    """Return whether "I'll come with" or a bare "with" is before *place*, not "talk with my wife"."""
    return place == 1 or not COMES.isdisjoint(words[max(place - _VERB_REACH, 0) : place])


def are_brought(words: Sequence[str], place: int) -> bool:
    """Return whether the list at *place* comes beside one before it: "me and my wife, and we're bringing 3 kids"."""
    return place > 1 and words[place - 1] in _WITH and words[place - 2] in {"we're", "we'll", "be", "are", "also"}
