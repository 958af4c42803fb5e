"""Several questions open at once, and one sentence in answer: "50k, and 30k for the other", "Lima for both".

An answer completes every question that it is certainly for. What it leaves open is asked again in the same words, so
that nothing is lost; what it may be for more than one of is asked about, and starts nothing.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from supervisor.interpretation.earlier_tasks.references import Past
from supervisor.understanding.outcome import Missing, Single, Understood, Unfitting
from supervisor.interpretation.questions import leave
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.scene import Scene, scene_of
from supervisor.interpretation.wishes.routing import Prepared, Router
from supervisor.interpretation.words import STOP, stem, word_set

#: A task that a question is open about, and the fields that it asked for.
Pending = tuple[Past, Prepared, tuple[FieldShape, ...]]
#: Completes one question by what is said; None when that is no answer to it.
Answer = Callable[[Scene, Pending], Single | None]

_PLACES = {"first": 0, "former": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1, "latter": -1}
_ALL = r"(?:both|all|each)(?: (?:of )?(?:them|these|those|two|three|one|questions?|tasks?))?\b"
_FOR_ALL = re.compile(
    rf"\W{{0,8}}\b(?:(?:for|to|in|at|of) )?{_ALL}[\s.!]{{0,8}}$|^\W{{0,8}}{_ALL}(?: (?:are|is|have|with)\b)?\W{{0,8}}",
    re.IGNORECASE,
)
_PLACE = "|".join(_PLACES)
_FOR_ONE = re.compile(
    rf"(?:\W{{0,8}}\b(?:(?:for|to|in|of|on) )?the (?P<which>other|{_PLACE})|^\W{{0,8}}(?P<alone>{_PLACE}))"
    r"(?: (?:one|question|task))?\b(?: (?:is|was|with|has)\b)?[\s:]{0,8}",
    re.IGNORECASE,
)
_JOINING = r"[,;\n&/]|\b(?:and|then|plus)\b"
_JOINT = re.compile(rf"(?:{_JOINING}|\.\s)(?:[ \t]{{0,8}}(?:{_JOINING}))*", re.IGNORECASE)
_WORDS = re.compile(r"[\w']+")
_LEAVING = r"(?P<verb>never ?mind|nvm|forget|cancel|stop|drop|leave|skip|scrap|abort)"
#: Begins to say that a question is not to be answered.
_LEFT = re.compile(
    rf"\W{{0,8}}(?:(?:no|oh|ok|okay|well|please|actually|and|but)\b\W{{0,8}})?{_LEAVING}\b", re.IGNORECASE
)
_ENDED = re.compile(
    rf"(?:{_LEFT.pattern}(?: (?:about|it|that|this|these|those|them|both|all|everything|alone|of|questions?|tasks?))*"
    r"|\W{0,8}neither(?: of (?:these|those|them))?|\W{0,8}no,? thank(?:s| you))"
    r"(?:\W{0,8}(?:please|thanks|thank you|then|for now))?\W*",
    re.IGNORECASE,
)
#: "Between 40k and 50k" is one thing said, and no two answers.
_RANGE = re.compile(r"\bbetween\b", re.IGNORECASE)
#: A part with no other words says nothing.
_POLITE = STOP | word_set("well so ok okay yes sure right hm oh thanks then")
#: Said behind the first question when nothing tells which of them was answered.
_UNPLACED = " (I cannot tell which of these questions that answers.)"
#: Characters of an answer, and parts of it, past which it is none to several questions.
_LONGEST, _MOST_PIECES = 400, 16
#: The place of what is no answer at all: past every question.
_ELSEWHERE = 1000
#: Questions whose answers are looked at in every order: 24 of four.
_MOST_SHUFFLED = 4


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of an answer: where its *values* lie, and at which *place*, from 1, the question is that it names.

    A negative place counts from the last. `is_other` is for "the other", which only what stands beside it explains.
    What `is_left` says that its question is not to be answered.
    """

    values: tuple[int, int]
    place: int | None
    is_other: bool = False
    is_left: bool = False


def ends_questions(text: str) -> bool:
    """Return whether *text* says that what was asked is not to be answered, all of it, and nothing else."""
    return _ENDED.fullmatch(text) is not None


def answers_to(scene: Scene, opened: Sequence[Pending], router: Router, answer: Answer) -> list[Single] | None:
    """Return what *scene* makes of each of *opened*, in the order asked; None when it does not say which is which."""
    if len(scene.text) > _LONGEST:
        return None
    choice = router.choose(scene) if (are_alike := _are_alike(opened)) else None
    is_plain = are_alike and (choice is None or choice.task is opened[0][1])
    if is_plain and (found := _shared(scene, opened, answer)) is not None:
        return found
    shared = _FOR_ALL.search(scene.text)
    if shared is not None and (found := _shared(scene.without([shared.span()]), opened, answer)) is not None:
        return found
    spans = [] if _RANGE.search(scene.text) else _pieces(scene)
    pieces = [_named(scene, piece, opened, router) for piece in spans] if len(spans) <= _MOST_PIECES else []
    if any(one.is_left and one.place is None and not one.is_other for one in pieces):
        return None if any(one.place == _ELSEWHERE for one in pieces) else _unplaced(opened)
    placed = _placed(scene, pieces, opened, answer)
    left = {at for at, parts in placed.items() if any(one.is_left for one in parts)}
    answers = {
        at: answer(_only(scene, [one.values for one in parts]), opened[at])
        for at, parts in placed.items()
        if at not in left
    }
    if not placed or None in answers.values():
        return None
    kept = [answers.get(at) or asked_again(pending) for at, pending in enumerate(opened) if at not in left]
    return kept or [Unfitting(leave("them", router.catalogue.abilities()))]


def answer_to_one(scene: Scene, opened: Sequence[Pending], answer: Answer) -> list[Single] | None:
    """Return *opened* with the one completed that *scene* can only be for; all asked again when it may be for several.

    None when it is for none, or has words of its own for one.
    """
    if any(cue.field in asked for _, task, asked in opened for cue in task.cues.find(scene.tokens)):
        return None
    found = [answer(scene, one) for one in opened]
    complete = [one for one in found if isinstance(one, Understood)]
    if not complete:
        return None
    if len(complete) > 1 or _is_left_over(scene, complete[0], opened):
        return _unplaced(opened)
    return [
        one if isinstance(one, Understood) else asked_again(pending) for one, pending in zip(found, opened, strict=True)
    ]


def _is_left_over(scene: Scene, complete: Understood, opened: Sequence[Pending]) -> bool:
    """Return whether *complete* has the words of *scene* only as any text would do: amounts that others were asked for.

    So too where it says that something is not to be answered.
    """
    asked = [shape for past, _, fields in opened if past.call.name != complete.task.name for shape in fields]
    is_amount_for_others = bool(scene.items) and any(shape.is_numeric for shape in asked)
    own = [shape for past, _, fields in opened if past.call.name == complete.task.name for shape in fields]
    is_text = not any(shape.is_numeric for shape in own)
    return is_text and (is_amount_for_others or _LEFT.match(scene.text) is not None)


def _unplaced(opened: Sequence[Pending]) -> list[Single]:
    """Return the questions of *opened* again; the first says why."""
    first, *others = map(asked_again, opened)
    return [replace(first, question=first.question + _UNPLACED), *others]


def is_unplaced(question: str) -> bool:
    """Return whether *question* was asked because nothing tells which of several was answered."""
    return question.endswith(_UNPLACED)


def asked_again(pending: Pending) -> Missing:
    """Return the question of *pending* as it was asked."""
    past, _, asked = pending
    known = past.call.parameters
    names = tuple(shape.name for shape in asked)
    question = past.turn.text.removesuffix(_UNPLACED)
    return Missing(past.offer.agent.agent_id, past.call.name, known, names, question)


def _shared(scene: Scene, opened: Sequence[Pending], answer: Answer) -> list[Single] | None:
    """Return *opened* each completed by the same words, or None when one of them is not."""
    found = [answer(scene, one) for one in opened]
    return [one for one in found if isinstance(one, Understood)] if all(map(_is_complete, found)) else None


def _are_alike(opened: Sequence[Pending]) -> bool:
    """Return whether *opened* are the same task on several days: what lacks was asked for all of them at once."""
    (first, task, asked), *others = opened
    names = {shape.name for shape in task.shape.fields if shape.is_timed}
    return all(
        other is task
        and fields == asked
        and {key: value for key, value in past.call.parameters.items() if key not in names}
        == {key: value for key, value in first.call.parameters.items() if key not in names}
        for past, other, fields in others
    )


def _is_complete(found: Single | None) -> bool:
    return isinstance(found, Understood) and found.is_certain


def _pieces(scene: Scene) -> list[tuple[int, int]]:
    """Return where the parts of *scene* lie that commas and the like join, none of them within a value."""
    kept = [(item.start, item.end) for item in scene.items] + [(one.start, one.end) for one in scene.quoted]
    joints = [
        joint.span()
        for joint in _JOINT.finditer(scene.text)
        if not any(start < joint.end() and joint.start() < end for start, end in kept)
    ]
    edges = [0, *(edge for joint in joints for edge in joint), len(scene.text)]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [pair for pair in pairs if not _POLITE.issuperset(_WORDS.findall(scene.text[slice(*pair)].lower()))]


def _named(scene: Scene, piece: tuple[int, int], opened: Sequence[Pending], router: Router) -> _Piece:
    """Return which of *opened* the words of *piece* name, and where its values lie."""
    text = scene.text[slice(*piece)]
    part = scene_of(text, decimal_mark=scene.decimal_mark, now=scene.now)
    choice = router.choose(part)
    leaving = _LEFT.match(text)
    is_left = leaving is not None and (choice is None or stem(leaving["verb"].lower()) not in choice.task.names)
    if (told := _FOR_ONE.search(text)) is not None:
        before, behind = (piece[0], piece[0] + told.start()), (piece[0] + told.end(), piece[1])
        values = before if any(letter.isalnum() for letter in scene.text[slice(*before)]) else behind
        place = _PLACES.get((told["which"] or told["alone"]).lower())
        return _Piece(
            values, place if place is None or place < 0 else place + 1, is_other=place is None, is_left=is_left
        )
    tasks = [task for _, task, _ in opened]
    if choice is not None and not any(task in tasks for task in (choice.task, *choice.rivals)):
        return _Piece(piece, _ELSEWHERE)
    if choice is not None and not choice.rivals and tasks.count(choice.task) == 1:
        return _Piece(piece, tasks.index(choice.task) + 1, is_left=is_left)
    fields = [frozenset(cue.field.name for cue in task.cues.find(part.tokens)) for task in tasks]
    cued = [at for at, (_, _, asked) in enumerate(opened, 1) if any(one.name in fields[at - 1] for one in asked)]
    return _Piece(piece, cued[0] if len(cued) == 1 else None, is_left=is_left)


def _placed(
    scene: Scene, pieces: Sequence[_Piece], opened: Sequence[Pending], answer: Answer
) -> dict[int, list[_Piece]]:
    """Return which of *pieces* are for which of *opened*, by its place from 0; empty when that is not certain."""
    count = len(opened)
    names = [one.place % (count + 1) if one.place is not None and one.place < 0 else one.place for one in pieces]
    if any(name is not None and name > count for name in names):
        return {}
    if any(one.is_other for one in pieces):
        if (count, len(pieces)) != (2, 2) or all(one.is_other for one in pieces):
            return {}
        other = [one.is_other for one in pieces].index(True)
        names[1 - other] = names[1 - other] or 1
        names[other] = 3 - (names[1 - other] or 1)
    unnamed = [at for at, name in enumerate(names) if name is None]
    free = [at for at in range(1, count + 1) if at not in names]
    if len(pieces) == 1 and unnamed:
        return {}
    spans = [one.values for one in pieces]
    order = _order(scene, [spans[at] for at in unnamed], [opened[at - 1] for at in free], answer) if unnamed else []
    if order is None:
        return {}
    for at, place in zip(unnamed, order, strict=True):
        names[at] = free[place]
    placed: dict[int, list[_Piece]] = {}
    for name, piece in zip(names, pieces, strict=True):
        placed.setdefault((name or 0) - 1, []).append(piece)
    return placed


def _order(
    scene: Scene, spans: Sequence[tuple[int, int]], opened: Sequence[Pending], answer: Answer
) -> Sequence[int] | None:
    """Return which of *opened* each of *spans* is for: in the order asked, or in the only one that fits them all."""
    asked = [at for at, (_, _, fields) in enumerate(opened) for _ in fields]
    if len(asked) != len(spans) or any(shape.is_list for _, _, fields in opened for shape in fields):
        return None
    if len(asked) != len(opened) or len(asked) > _MOST_SHUFFLED:
        return asked
    fits = [[isinstance(answer(scene.only([span]), one), Understood) for one in opened] for span in spans]
    fitting = [order for order in permutations(asked) if all(fits[at][place] for at, place in enumerate(order))]
    if tuple(asked) in fitting or len(fitting) != 1:
        return asked
    return fitting[0]


def _only(scene: Scene, spans: Sequence[tuple[int, int]]) -> Scene:
    """Return *scene* with nothing in it but what lies from the first to the last of *spans*, where it lies."""
    return scene.only([(min(start for start, _ in spans), max(end for _, end in spans))])
