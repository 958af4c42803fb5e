"""Texts told by their looks: "ORD-5567" for a field whose examples are "ORD-1234" and "ORD-0001"."""

import re
from collections.abc import Sequence
from functools import lru_cache

from supervisor.interpretation.questions import ask_which_value
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.looks import address_in
from supervisor.interpretation.values.plain_values import Reading
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.values.worth import Doubt

#: Letters, digits, and single marks between them; what has more words than two has no looks of its own.
_CODE = re.compile(r"[A-Za-z0-9]+(?:[-_/. ]?[A-Za-z0-9]+){0,5}")
_PIECE = re.compile(r"[A-Za-z]+|\d+|[-_/. ]")
_LONGEST = 32
_MOST_EXAMPLES = 16
#: Digits by which one may be longer than those that were declared.
_SPARE = 2


def patterned(scene: Scene, fields: Sequence[FieldShape]) -> list[Reading | Doubt]:
    """Return the stretch that looks like the examples of each text field, a doubt where there are several.

    Where two fields look alike, nothing says whose it is.
    """
    found = {}
    for field in fields:
        texts = tuple(one for one in field.examples if isinstance(one, str) and len(one) <= _LONGEST)
        is_told = field.kind == "text" and not field.is_list and 0 < len(texts) == len(field.examples) <= _MOST_EXAMPLES
        pattern = _looks(texts) if is_told else None
        matches = list(pattern.finditer(scene.text)) if pattern is not None else _addresses(scene, field)
        if matches:
            found[field.name] = field, matches
    stretches = [match.span() for _, matches in found.values() for match in matches]
    return [
        _read(field, matches)
        for field, matches in found.values()
        if all(stretches.count(match.span()) == 1 for match in matches)
    ]


def _addresses(scene: Scene, field: FieldShape) -> list[re.Match[str]]:
    match = address_in(field, scene.text) if field.kind == "text" and not field.is_list else None
    return (
        [match] if match is not None and not any(one.start <= match.start() < one.end for one in scene.quoted) else []
    )


def _read(field: FieldShape, matches: Sequence[re.Match[str]]) -> Reading | Doubt:
    said = list(dict.fromkeys(match.group() for match in matches))
    if len(said) > 1:
        return Doubt(field, ask_which_value(field, said))
    return Reading(field, said[0], matches[0].start(), matches[0].end(), is_sure=len(field.examples) > 1)


@lru_cache(maxsize=1024)
def _looks(texts: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return what all of *texts* look like, None when they are no codes of letters and digits, or not alike."""
    if not all(_is_code(text) for text in texts):
        return None
    split = [[piece for piece in _PIECE.findall(text) if piece.isalnum()] for text in texts]
    if len({tuple(piece.isdigit() for piece in pieces) for pieces in split}) != 1:
        return None
    gaps = {mark for text in texts for mark in _PIECE.findall(text) if not mark.isalnum()}
    is_bare = any(len(_PIECE.findall(text)) < 2 * len(pieces) - 1 for text, pieces in zip(texts, split, strict=True))
    gap = f"[{re.escape(''.join(sorted(gaps)))}]" + "?" * is_bare if gaps else ""
    pieces = [_like(alternatives, is_spaced=" " in gaps) for alternatives in zip(*split, strict=True)]
    return re.compile(r"(?<![\w-])" + gap.join(pieces) + r"(?![\w-])")


def _is_code(text: str) -> bool:
    has_both = any(letter.isdigit() for letter in text) and any(letter.isalpha() for letter in text)
    return has_both and text.count(" ") <= 1 and _CODE.fullmatch(text) is not None


def _like(pieces: Sequence[str], *, is_spaced: bool) -> str:
    if len({piece.lower() for piece in pieces}) == 1 and pieces[0].isalpha() and len(pieces) > 1:
        return f"(?i:{re.escape(pieces[0])})"
    shortest, longest = min(map(len, pieces)), max(map(len, pieces))
    if pieces[0].isdigit():
        return rf"\d{{{max(shortest - 1, 1)},{longest + _SPARE}}}"
    # With a space, "at 1200" would look like "LH 1200".
    letters = "A-Z" if is_spaced and all(piece.isupper() for piece in pieces) else "A-Za-z"
    return f"[{letters}]{{{shortest},{longest}}}"
