"""Amounts that the sentence says something of: the 1200 of "limit 900, the room is 1200" is that of a room.

Where several fields could hold it and none is called so, which one is meant is asked for, however few are left.
"""

from collections.abc import Collection, Sequence

from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.scene import Item, Scene
from supervisor.interpretation.words import LIGHT, word_set

#: Before a noun, which is then a thing of its own: "the room", "my flat".
_DETERMINERS = word_set("the a an my our your his her their its this that these those each every another")
#: Between a thing and its amount, besides small words.
_LINKS = frozenset({":", "=", "$", "\u20ac", "\u00a3"})
#: They name no thing: "the amount is 1200".
_ANY_AMOUNT = word_set(
    "amount number value figure sum total price cost costs rest other one answer result second first third last money"
    " sorry way moment year month week day today hour end"
)
_TIMES = word_set("time times hour date day slot arrival start")
#: Words between a thing and its amount, and words that tell more of the thing ("the new corner room").
_REACH, _MOST_WORDS = 5, 3


def has_rivals(field: FieldShape, fields: Sequence[FieldShape]) -> bool:
    """True when another field that is needed holds amounts of the same kind, so that nothing but words tells them."""
    return any(
        other is not field
        and other.is_required
        and not other.is_list
        and (other.kind, other.unit) == (field.kind, field.unit)
        for other in fields
    )


def is_of_something_else(scene: Scene, run: Sequence[Item], cues: Sequence[Cue], names: Collection[str]) -> bool:
    """True when a thing that no field is called by, and no task (*names* are stems), stands beside the amounts *run*.

    "The room is 1200", "1200 for the room"; not "it is 1200", "the amount is 1200" or "1200 on Friday".
    """
    first, last = scene.index_at(run[0].start), scene.index_at(run[-1].end - 1) + 1
    known = {place for cue in cues for place in range(cue.first, cue.end)}
    things = (_thing_before(scene, first), _thing_after(scene, last))
    return any(
        thing is not None
        and thing not in known
        and scene.tokens[thing].stem not in names
        and scene.tokens[thing].text not in _ANY_AMOUNT
        for thing in things
    )


def is_of_time(scene: Scene, run: Sequence[Item]) -> bool:
    """True for the 8 of "change the time from 7 to 8"."""
    thing = _thing_before(scene, scene.index_at(run[0].start))
    return thing is not None and scene.tokens[thing].text in _TIMES


def _thing_before(scene: Scene, place: int) -> int | None:
    """Return the token of the "room" of "the room is 1200", whose amount begins at *place*; None without any."""
    tokens, noun = scene.tokens, place - 1
    while noun >= 0 and place - noun <= _REACH and (tokens[noun].text in LIGHT or tokens[noun].text in _LINKS):
        if tokens[noun].text in _DETERMINERS:
            return None
        noun -= 1
    if noun < 0 or noun == place - 1 or not _is_noun(scene, noun):
        return None
    start = noun
    while start > 0 and noun - start < _MOST_WORDS and _is_noun(scene, start - 1):
        start -= 1
    return noun if start > 0 and tokens[start - 1].text in _DETERMINERS else None


def _thing_after(scene: Scene, place: int) -> int | None:
    """Return the token of the "room" of "1200 for the room", whose amount ends before *place*; None without any."""
    tokens, noun = scene.tokens, place
    while noun < len(tokens) and noun - place < _REACH and tokens[noun].text in LIGHT:
        noun += 1
    if noun - place < 2 or noun >= len(tokens) or tokens[noun - 1].text not in _DETERMINERS:
        return None
    return noun if _is_noun(scene, noun) else None


def _is_noun(scene: Scene, place: int) -> bool:
    token = scene.tokens[place]
    return token.is_word and token.text not in LIGHT and not token.text[0].isdigit()
