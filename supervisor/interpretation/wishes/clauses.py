"""Where one wish may end in a sentence and the next begin: its clauses, before any task is looked at."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from supervisor.interpretation.values.name_times import DAYS_OF_MONTH
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.words import Token

#: Words that join two wishes, and marks; a comma alone joins values, but where an order follows it.
_JOINING = frozenset({"and", "then", "also", "plus", "afterwards", "finally", "additionally"})
#: Where another wish follows them.
_IN_TURN = frozenset({"before", "after"})
_MARKS = frozenset(";.!?\n")
_DASHES = frozenset("-\u2013\u2014")
_AS_WELL_AS = ["as", "well", "as"]
#: No other word can stand between two clauses; most words of a sentence are looked at no further.
_WORDS_BETWEEN = _JOINING | _IN_TURN | {"as", "but"}
#: "2. " and "3) " at the beginning of a line.
_NUMBERED = re.compile(r"^[^\S\n]*(\(?\d{1,2}[.)]\s+)", re.MULTILINE)
#: "1) ... 2) ..." and "a) ... b) ..." in one line; letters need the bracket.
_NUMBERED_INLINE = re.compile(r"(?:^|(?<=[\s,;:.]))(\(?(?:(\d{1,2})[.)]|([a-h]|i{1,3}|i?v)\))\s+)(?=[^\W\d_])")
#: What the numbers of a list count with, each from its first one on.
_COUNTING = (tuple(map(str, range(1, 25))), tuple("abcdefgh"), ("i", "ii", "iii", "iv", "v"))
#: Signs that join wishes where they stand between spaces; within a word or an amount they are a part of it.
_SIGNS = frozenset("&+/|")
#: Clauses that are told apart; what comes after them is one more.
MOST = 24


class Clause(NamedTuple):
    """`text[start:end]`, without what joins it to the one before; *is_apart* when more than a mere "and" does.

    *is_listed* when less does: a comma alone.
    """

    start: int
    end: int
    is_apart: bool
    is_listed: bool = False

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands: from and up to which character."""
        return self.start, self.end


def clauses_of(
    scene: Scene, *, at_commas: bool = False, is_order: Callable[[int], bool] = lambda _: False
) -> list[Clause]:
    """Return the clauses of *scene* in order; the whole of it when nothing joins.

    No border lies in a quotation, in brackets or in an amount; one lies at a comma, a colon, a dash or a "but" only
    with *at_commas*, and at a comma, given by the place of its token, where *is_order* says so. The numbers of a
    numbered list are no words of its items.
    """
    tokens = scene.tokens
    closed = _closed(scene)
    numbers = _numbers(scene.text)
    clauses: list[Clause] = []
    first, place, is_apart, is_listed = 0, 0, False, False
    while place < len(tokens):
        after, apart = _joined(scene, place, closed, numbers, at_commas=at_commas)
        listed = after == place and tokens[place].text == "," and not _is_inside(tokens[place], closed)
        if listed and is_order(place):
            after += 1
        if after == place:
            place += 1
            continue
        if place > first:
            clauses.append(Clause(tokens[first].start, tokens[place - 1].end, is_apart, is_listed))
        is_apart, is_listed = apart or (is_apart and place == first), listed
        first = place = after
    if first < len(tokens):
        clauses.append(Clause(tokens[first].start, tokens[-1].end, is_apart, is_listed))
    if len(clauses) > MOST:
        rest = clauses[MOST - 1]
        clauses[MOST - 1 :] = [rest._replace(end=clauses[-1].end)]
    return clauses


def _numbers(text: str) -> dict[int, int]:
    """Return where the numbers of a list begin and end: at the beginnings of lines, or in one line from 1 or a on."""
    if "." not in text and ")" not in text:
        return {}
    numbers = {match.start(1): match.end(1) for match in _NUMBERED.finditer(text)} if "\n" in text else {}
    found = [(match[2] or match[3], match.start(1), match.end(1)) for match in _NUMBERED_INLINE.finditer(text)]
    for count in _COUNTING:
        counted: dict[int, int] = {}
        for said, start, end in found:
            if len(counted) < len(count) and said == count[len(counted)]:
                counted[start] = end
        if len(counted) > 1:
            return numbers | counted
    return numbers


def pieces_of(scene: Scene) -> list[tuple[int, int]]:
    """Return the stretches of *scene* between its commas, semicolons and words that join; closed ones stay whole."""
    tokens, closed = scene.tokens, _closed(scene)
    pieces: list[tuple[int, int]] = []
    first = 0
    for place, token in enumerate((*tokens, None)):
        if token is not None and not (_joins_values(scene, token) and not _is_inside(token, closed)):
            continue
        if place > first:
            pieces.append((tokens[first].start, tokens[place - 1].end))
        first = place + 1
    return pieces


def _joins_values(scene: Scene, token: Token) -> bool:
    if token.text in _SIGNS:
        return _is_sign(scene.text, token)
    return token.text in _JOINING or token.text in {",", ";", "\n"}


def _joined(
    scene: Scene, place: int, closed: list[tuple[int, int]], numbers: Mapping[int, int], *, at_commas: bool
) -> tuple[int, bool]:
    """Return the token after what joins clauses at *place*, *place* itself when nothing does; and if it is apart."""
    tokens, after, is_apart = scene.tokens, place, False
    while after < len(tokens):
        token = tokens[after]
        if token.start in numbers:
            end, is_apart = numbers[token.start], True
            while after < len(tokens) and tokens[after].start < end:
                after += 1
            continue
        if (token.is_word and token.text not in _WORDS_BETWEEN) or _is_inside(token, closed):
            break
        if token.text in _MARKS and _is_free(scene.text, token):
            is_apart = True
        elif token.text in _JOINING:
            is_apart = is_apart or token.text != "and"
        elif _is_sign(scene.text, token) or _is_in_turn(tokens, after):
            pass
        elif [one.text for one in tokens[after : after + 3]] == _AS_WELL_AS:
            after += 2
        elif not (at_commas and (token.text in {",", "but", ":"} or _is_dash(scene.text, token))) and (
            token.text != "," or not _goes_on(tokens, after)
        ):
            break
        after += 1
    return after, is_apart


def _is_sign(text: str, token: Token) -> bool:
    return token.text in _SIGNS and _is_between_spaces(text, token)


def _is_in_turn(tokens: tuple[Token, ...], place: int) -> bool:
    """True for "greet Bob *before* you tell me a joke": both are wanted, one after the other."""
    if not place or tokens[place].text not in _IN_TURN:
        return False
    following = tokens[place + 1].text if place + 1 < len(tokens) else ""
    return following == "you" or following.endswith("ing")


def _goes_on(tokens: tuple[Token, ...], place: int) -> bool:
    """True for the comma of ", and then"."""
    return place + 1 < len(tokens) and tokens[place + 1].text in _JOINING


def _is_dash(text: str, token: Token) -> bool:
    """True for a dash between words, not within one or before a number."""
    return token.text in _DASHES and _is_between_spaces(text, token)


def _is_between_spaces(text: str, token: Token) -> bool:
    return text[token.start - 1 : token.start].isspace() and text[token.end : token.end + 1].isspace()


def _is_free(text: str, token: Token) -> bool:
    """True for a mark that ends something: the one of "3.5" and "a.b" does not."""
    return token.end >= len(text) or text[token.end].isspace() or token.text in ";\n"


def _is_inside(token: Token, closed: list[tuple[int, int]]) -> bool:
    low, high = 0, len(closed)
    while low < high:
        middle = (low + high) // 2
        if closed[middle][1] <= token.start:
            low = middle + 1
        else:
            high = middle
    return low < len(closed) and closed[low][0] <= token.start


def _closed(scene: Scene) -> list[tuple[int, int]]:
    """Return the stretches that no border lies in, sorted, without overlaps."""
    stretches = sorted(
        [
            *((item.start, item.end) for item in scene.items),
            *((one.start, one.end) for one in (*scene.quoted, *scene.dates)),
            *_brackets(scene),
            *(match.span() for match in DAYS_OF_MONTH.finditer(scene.text)),
        ]
    )
    merged: list[tuple[int, int]] = []
    for start, end in stretches:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _brackets(scene: Scene) -> list[tuple[int, int]]:
    """Return from the first to the last amount of each pair of square brackets."""
    inside: dict[int, tuple[int, int]] = {}
    for item in scene.items:
        if item.bracket is not None:
            inside[item.bracket] = (inside.get(item.bracket, (item.start, 0))[0], item.end)
    return list(inside.values())
