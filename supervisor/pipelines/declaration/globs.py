"""Patterns of file paths as `reads_files` has them: `src/**/*.py`, relative to the pipeline's root.

`*` stands for any characters but `/`, `?` for one, `[abc]` for one of these, `[!abc]` for any other, and `**` as a
whole step for any number of folders, also none. Upper and lower case are told apart, and a leading dot is no exception.

Patterns come from clients. So they are no regular expressions, which go back and try again: a pattern is an automaton
whose states are the bits of a number, and each character of a path moves all of them at once.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache

#: Characters of one pattern, steps between its `/`, and patterns of one pipeline: far above what anybody writes.
LONGEST, MOST_STEPS, MOST_GLOBS = 1_000, 50, 1_000

#: Patterns that are kept translated, and elements for which each knows its moves.
_KEPT = 500


class _Automaton:
    """Matches a sequence against *pieces*: what says whether one element fits, or None for any number of elements.

    State *n*, the bit *n*, is to have matched the first *n* pieces, not counting None.
    """

    def __init__(self, pieces: Iterable[Callable[[str], bool] | None]) -> None:
        self._fits: list[Callable[[str], bool]] = []
        self._stays = 0
        for piece in pieces:
            if piece is None:
                self._stays |= 1 << len(self._fits)
            else:
                self._fits.append(piece)
        self._moves: dict[str, int] = {}

    def matches(self, elements: Iterable[str]) -> bool:
        """Return whether all of *elements* fit; it takes a time of their number times that of the pieces at most."""
        states = 1
        for element in elements:
            moves = self._moves.get(element)
            if moves is None:
                moves = sum(1 << at for at, fits in enumerate(self._fits) if fits(element))
                if len(self._moves) < _KEPT:
                    self._moves[element] = moves
            states = (states & moves) << 1 | states & self._stays
            if not states:
                return False
        return bool(states >> len(self._fits))


def matches(glob: str, path: str) -> bool:
    """Return whether *path*, relative and with `/` between its steps, fits *glob*."""
    return not path.startswith("/") and _pattern(glob).matches(path.split("/"))


def reason_against(glob: str) -> str | None:
    """Return why *glob* can name no file below a root, and the cure; None when it can."""
    if len(glob) > LONGEST:
        return f"has {len(glob):,} characters, at most {LONGEST:,} are taken; write a shorter pattern"
    steps = glob.split("/")
    if not glob.strip():
        return "is empty; write a path or a pattern such as '**/*.py'"
    if "\\" in glob:
        return f"must have '/' between its steps; write {glob.replace(chr(92), '/')[:100]!r}"
    if "\0" in glob:
        return "holds a NUL, which no path has; leave it out"
    if glob.startswith(("/", "~")) or (glob[1:2] == ":" and glob[0].isascii() and glob[0].isalpha()):
        return "must be relative to the pipeline's root; leave out what leads there"
    if ".." in steps:
        return "must not lead out of the pipeline's root; set `root` to a folder above all of them"
    if glob.endswith("/"):
        return f"names a folder; write {glob[-100:] + '**'!r} for everything in it"
    if "." in steps or "" in steps:
        return f"has an empty step; write {'/'.join(step for step in steps if step not in ('', '.'))[:100]!r}"
    if len(steps) > MOST_STEPS:
        return f"has {len(steps)} steps, at most {MOST_STEPS} are taken; set `root` to a folder nearer to the files"
    return None


@lru_cache(_KEPT)
def _pattern(glob: str) -> _Automaton:
    steps = glob.split("/")
    # Everything below a folder is something below it.
    ends = ["**", "*"] if steps[-1] == "**" else steps[-1:]
    return _Automaton(None if step == "**" else _step(step) for step in (*steps[:-1], *ends))


def _step(step: str) -> Callable[[str], bool]:
    """Return what says whether a name fits *step*, what is between two `/`."""
    if not any(sign in step for sign in "*?["):
        return step.__eq__
    pieces: list[Callable[[str], bool] | None] = []
    at = 0
    while at < len(step):
        char, end = step[at], at + 1
        if char == "*":
            pieces.append(None)
        elif char == "?":
            pieces.append(_any)
        elif char == "[" and (closed := step.find("]", at + 2 + step.startswith("!", at + 1))) > 0:
            pieces.append(_choice(step[at + 1 : closed]))
            end = closed + 1
        else:
            pieces.append(char.__eq__)
        at = end
    return _Automaton(pieces).matches


def _any(_char: str) -> bool:
    return True


def _choice(inside: str) -> Callable[[str], bool]:
    """Return what says whether a character is one of *inside*, or none of it after `!`; `a-z` is a range of them."""
    is_other, inside = inside.startswith("!"), inside.removeprefix("!")
    ranges, at = list[tuple[str, str]](), 0
    while at < len(inside):
        # A range the wrong way round, such as [z-a], means its characters.
        is_range = inside[at + 1 : at + 2] == "-" and inside[at] <= inside[at + 2 : at + 3]
        ranges.append((inside[at], inside[at + 2 if is_range else at]))
        at += 3 if is_range else 1
    return lambda char: any(low <= char <= high for low, high in ranges) != is_other
