"""Who or what is told by whose it is: "my brother" and "his office" are no names, and nothing without their "my"."""

from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.words import stems_of, word_set

_OWNERS = word_set("my our his her their your")
_WHOEVER = word_set("him her them he she they someone somebody anyone anybody whoever whomever")
_NAME = stems_of("name")[0]
#: What has a name that is not a person's.
_THINGS = frozenset(stem for word in word_set("file folder list project task product brand") for stem in stems_of(word))


def owner_before(scene: Scene, place: int, end: int) -> int | None:
    """Return where the "my" begins that belongs to the text from token *place* up to *end*, None where none does.

    A name in capitals needs no owner: "my friend Ada" is Ada.
    """
    tokens = scene.tokens
    if not 0 < place < len(tokens) or tokens[place - 1].text not in _OWNERS:
        return None
    return tokens[place - 1].start if scene.text[tokens[place].start : end].islower() else None


def is_whoever(text: str) -> bool:
    """Return whether *text* is no answer to who or where, since it tells neither: "her", "somebody"."""
    return text.lower().strip(" .,!?") in _WHOEVER


def is_name_of_somebody(field: FieldShape) -> bool:
    """Return whether *field* is a person's name, for which "my brother" is no value but a reason to ask."""
    stems = stems_of(field.name)
    return stems[-1:] == (_NAME,) and _THINGS.isdisjoint(stems)
