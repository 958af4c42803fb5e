"""Words for relatives that no list of single words holds: "mum" without a "my", "little ones", "in-laws"."""

from collections.abc import Sequence

from supervisor.interpretation.words import word_set

#: Whom their family calls so, as by a name.
_KIN = word_set(
    "mum mom mommy mummy mama ma dad daddy papa pa granny gran grandma grandpa grandad granddad nan nana auntie"
)
_JOINS = frozenset({",", "and", "&", "+", "plus"})
#: Before somebody who is spoken to or of.
_BEFORE_OTHERS = word_set("tell ask thank call hi hey hello dear from to of by thanks text message said")
_PLURALS = frozenset({("little", "ones"), ("young", "ones"), ("loved", "ones"), ("grown", "ups")})
_IN_LAWS = (("in", "-", "laws"), ("in", "laws"))


def is_kin_in_list(words: Sequence[str], place: int) -> bool:
    """True for the "mum" of "mum, dad and me" at *place*, not for that of "Mum, I need a table"."""
    if words[place] not in _KIN or (place and words[place - 1] in _BEFORE_OTHERS):
        return False
    return place + 2 < len(words) and words[place + 1] in _JOINS and (words[place + 1], words[place + 2]) != (",", "i")


def is_kin(word: str) -> bool:
    """True for "mum", which needs no "my" in a list."""
    return word in _KIN


def two_words_at(words: Sequence[str], place: int) -> bool:
    """True for the "little ones" of "3 little ones" at *place*."""
    return tuple(words[place : place + 2]) in _PLURALS


def in_laws_at(words: Sequence[str], place: int) -> int | None:
    """Return the token after the "in-laws" at *place*, whose number nobody knows; None for anything else."""
    return next((place + len(said) for said in _IN_LAWS if tuple(words[place : place + len(said)]) == said), None)


def after_in_law(words: Sequence[str], place: int) -> int:
    """Return the token after the "in-law" that belongs to the "mother" before *place*; *place* without one."""
    for said in (("in", "law"), ("-", "in", "-", "law")):
        if tuple(words[place : place + len(said)]) == said:
            return place + len(said)
    return place
