"""Names with an "and" inside: those that a card knows, and those that everybody does ("mac and cheese")."""

import re
from collections.abc import Iterable

from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.words import word_set

_AND = re.compile(r"\s+(?:and|&|n|'n'|\+)\s+", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
#: Dishes, drinks and the like that are one thing; "salt and pepper" are two.
_PAIRS = frozenset(
    {
        "mac and cheese", "macaroni and cheese", "fish and chips", "bangers and mash", "surf and turf",
        "sweet and sour", "gin and tonic", "rum and coke", "vodka and tonic", "whisky and soda", "whiskey and soda",
        "peanut butter and jelly", "peanut butter and jam", "ham and cheese", "cream and onion", "salt and vinegar",
        "cookies and cream", "bread and butter pudding", "rice and beans", "beans and rice", "chicken and waffles",
        "biscuits and gravy", "steak and chips", "steak and kidney pie", "bacon and egg sandwich", "half and half",
        "oil and vinegar dressing", "sage and onion stuffing", "ham and cheese sandwich", "head and shoulders",
        "arm and hammer", "ben and jerry's", "ben and jerrys", "m and ms", "johnson and johnson", "black and decker",
        "dolce and gabbana", "bed and breakfast", "rock and roll", "drum and bass", "rhythm and blues",
        "lost and found",
        "arts and crafts", "pros and cons", "research and development", "health and safety", "terms and conditions",
        "trial and error", "bits and pieces", "odds and ends", "hide and seek", "cut and paste", "snakes and ladders",
        "dungeons and dragons", "tom and jerry", "romeo and juliet", "pride and prejudice", "war and peace",
        "beauty and the beast", "crime and punishment", "sense and sensibility", "antony and cleopatra",
        "simon and garfunkel", "mumford and sons", "earth, wind and fire", "guns and roses",
    }
)  # fmt: skip
_COLOURS = word_set(
    "black white red green blue yellow brown grey gray pink purple orange beige navy gold silver turquoise"
)
#: Characters of the longest name that is looked up.
_LONGEST = 80


def is_one_name(text: str, field: FieldShape) -> bool:
    """Return whether *text*, with an "and" inside, is one name: an example or choice of *field*, or known to all."""
    if len(text) > _LONGEST:
        return False
    said = _plain(text)
    known = (one for one in (*field.examples, *field.choices) if isinstance(one, str))
    return said in _PAIRS or any(said == _plain(one) for one in known)


def rejoined(text: str, places: Iterable[tuple[int, int]], field: FieldShape) -> list[tuple[int, int]]:
    """Return *places* in *text*, with those made one again between which an "and" is a part of one name."""
    kept: list[tuple[int, int]] = []
    for start, end in places:
        if kept and _AND.fullmatch(text, kept[-1][1], start) is not None:
            first, whole = kept[-1], text[kept[-1][0] : end]
            is_coloured = text[slice(*first)].strip().lower() in _COLOURS and " " in text[start:end].strip()
            if is_coloured or is_one_name(_without_article(whole), field):
                kept[-1] = first[0], end
                continue
        kept.append((start, end))
    return kept


def _without_article(text: str) -> str:
    return re.sub(r"^\s*(?:(?:some|the|a|an|my)\s+)?", "", text, flags=re.IGNORECASE)


def _plain(text: str) -> str:
    return _SPACE.sub(" ", _AND.sub(" and ", text.strip().lower())).replace(", and ", " and ")
