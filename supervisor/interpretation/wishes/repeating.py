"""One order for several sets of values: "send 50 to Anna, 30 to Bob" is two tasks, the verb of which is said once."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from quantities.times import stretches
from supervisor.understanding.outcome import Single, Understood
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.clauses import pieces_of
from supervisor.interpretation.wishes.orders import CORRECTING
from supervisor.interpretation.wishes.routing import Prepared
from supervisor.interpretation.words import word_set

#: Pieces of one wish that are looked at, each at the cost of a reading; what has more is a list of something.
_MOST_PIECES = 12
#: Characters of a wish past which it is not looked into: patterns are slow on a long blank.
_LONGEST = 400
#: Pieces that one set of values may be said in: "50, for lunch, to Bob".
_MOST_JOINED = 2
#: Fields that have to come again, one of them a text: one alone may be a list, or a correction.
_FEWEST = 2
_NOT_A_FURTHER_ONE = CORRECTING | word_set(
    "not but or instead never without if when unless because since though although"
)
#: Stands for what the order is about: "a flight from Lima to Oslo, then *one* from Oslo to Rome".
_ONE = re.compile(r"(?:and\s+)?(?:(?:another|a second|a third|a further)(?:\s+one)?|one)\s+(?=[^\W\d])", re.IGNORECASE)

_BEFORE_DAY = re.compile(r"^(?:(?:also|again|then|on|at|in|for)\s+)+", re.IGNORECASE)

Place = tuple[int, int]
#: Reads what of a wish stands in some of its characters, as if the others had not been said.
ReadPart = Callable[[Scene], Single]


def sets_of(scene: Scene, task: Prepared, read: ReadPart, part: Callable[[str], Scene]) -> list[Scene]:
    """Return *scene* once for each set of values that it has for *task*; empty when it has one, as most do.

    The others are blanked out, so that every value stays in its place. *part* makes a scene of a text.
    """
    if not _may_repeat(task) or scene.is_corrected or len(scene.text) > _LONGEST:
        return []
    pieces = _with_their_days(scene, pieces_of(scene))
    if not 1 < len(pieces) <= _MOST_PIECES or any(_is_no_further_one(scene, piece) for piece in pieces[1:]):
        return []
    return _Sets(scene, task, read, part).of(pieces)


def _with_their_days(scene: Scene, pieces: Sequence[Place]) -> list[Place]:
    """Return *pieces* with each that is only a day joined to the one before: "Porto on Tuesday, *Wednesday*"."""
    joined: list[Place] = []
    for start, end in pieces:
        if joined and _is_day(scene.text[start:end]):
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined


def _is_day(text: str) -> bool:
    bare = _BEFORE_DAY.sub("", text)
    return stretches(bare) == ((0, len(bare)),)


def _may_repeat(task: Prepared) -> bool:
    scalars = [shape for shape in task.shape.fields if not shape.is_list]
    return len(scalars) >= _FEWEST and any(shape.kind == "text" for shape in scalars)


def _is_no_further_one(scene: Scene, piece: Place) -> bool:
    return scene.tokens[scene.index_at(piece[0])].text in _NOT_A_FURTHER_ONE


class _Sets:
    """Looks for the sets of values in the text of one wish."""

    def __init__(self, scene: Scene, task: Prepared, read: ReadPart, part: Callable[[str], Scene]) -> None:
        self.text = scene.text
        self.amounts = [item.start for item in scene.items]
        self.numeric = {shape.name for shape in task.shape.fields if shape.is_numeric}
        self.task = task
        self.read = read
        self.part = part

    def of(self, pieces: Sequence[Place]) -> list[Scene]:
        first = 0
        values: dict[str, Place] = {}
        while not values and first < min(_MOST_JOINED, len(pieces)):
            first += 1
            values = self._values(self._lead(pieces[:first]), 0)
        if not values or first == len(pieces):
            return []
        stem = min(start for start, _ in values.values())
        groups = [(pieces[0][0], pieces[first - 1][1])]
        place = first
        while place < len(pieces):
            count = self._count(pieces[place : place + _MOST_JOINED], stem, values)
            if count:
                groups.append((pieces[place][0], pieces[place + count - 1][1]))
            else:
                # What is no set of its own says more of the one before it.
                groups[-1] = groups[-1][0], pieces[place][1]
            place += count or 1
        return [self._only(stem, group) for group in groups] if len(groups) > 1 else []

    def _lead(self, pieces: Sequence[Place]) -> Scene:
        return self.part(self.text[: pieces[-1][1]])

    def _count(self, pieces: Sequence[Place], stem: int, wanted: dict[str, Place]) -> int:
        """Return how many of *pieces* say the *wanted* fields anew, 0 when they do not."""
        for count in range(1, len(pieces) + 1):
            start, end = pieces[0][0], pieces[count - 1][1]
            if not self._may_hold(start, end, wanted):
                continue
            said = self._values(self._only(stem, (start, end)), start)
            is_all = wanted.keys() <= said.keys()
            if is_all and all(_holds_any(piece, said.values()) for piece in pieces[:count]):
                return count
        return 0

    def _may_hold(self, start: int, end: int, wanted: dict[str, Place]) -> bool:
        """Return whether these characters have a word for each of the *wanted* fields, and an amount where one is."""
        if len(self.text[start:end].split()) < len(wanted):
            return False
        amounts = sum(start <= one < end for one in self.amounts)
        return amounts >= len(self.numeric.intersection(wanted))

    def _only(self, stem: int, group: Place) -> Scene:
        """Return the words before the first value, and those of *group*, with nothing between them."""
        start, end = group
        if start <= stem:
            return self.part(self.text[:end])
        if match := _ONE.match(self.text, start):
            start = match.end()
        return self.part(self.text[:stem] + " " * (start - stem) + self.text[start:end])

    def _values(self, scene: Scene, least: int) -> dict[str, Place]:
        """Return where *scene* has its values from *least* on, by field; empty when that is no whole set."""
        found = self.read(scene)
        if not isinstance(found, Understood):
            return {}
        places = dict(_places(found, least))
        kinds = [shape.kind for shape in self.task.shape.fields if shape.name in places]
        return places if len(places) >= _FEWEST and "text" in kinds else {}


def _places(found: Understood, least: int) -> Iterator[tuple[str, Place]]:
    for span in found.spans:
        if span.source is None and span.start >= least:
            yield span.field, (span.start, span.end)


def _holds_any(piece: Place, values: Iterable[Place]) -> bool:
    return any(piece[0] <= start < piece[1] for start, _ in values)
