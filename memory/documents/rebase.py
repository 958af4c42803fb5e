"""Carry edits and undos over later changes: indexes move along, and two changes of one place are refused.

Where two make room at one index of a list, the earlier one stands in front.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tasklore.contracts.edits import Delete, Edit, Insert, NoChange, Update
from tasklore.contracts.errors import EditRefused, InvalidPath, UndoRefused
from tasklore.memory.documents.changes import Change, inverse
from tasklore.memory.documents.edits import place_of
from tasklore.memory.documents.paths import ABSENT, Absent, Found, Path, Step, parse


class _Met(Exception):
    """Two of them touched one place; *path* is how the one to be moved knows it."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path


def rebase_edits(
    edits: Sequence[Edit], over: Sequence[Change], body: Found = ABSENT
) -> tuple[Edit, ...]:
    """Return *edits*, made for the body before the changes *over*, for the body after them.

    Where both could be one plan, the outcome is that of the plan with *edits* last. *body* is the one before; without
    it an index from the end is refused in a list that has changed.

    Raises:
        EditRefused: a path cannot be read (`path`), is not in *body* (`missing`), or a change touched what the edit is
            about (`overlap`).
    """
    try:
        return _rebase(edits, over, body)
    except _Met as met:
        message = f"{str(met.path)!r} has changed since the edit was planned; read it again and plan again"
        raise EditRefused(message, "overlap") from met


def cross(
    changes: Sequence[Change], over: Sequence[Change]
) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    """Return both, made for one body, each for the body after the other: either way round leads to the same body.

    Raises:
        UndoRefused: they touched the same place; the message names it.
    """
    rest = list(over)
    moved: list[Change] = []
    try:
        for change in changes:
            mine = change
            for number, other in enumerate(rest):
                moved_mine = _move(mine, other, yields=False)
                rest[number] = _move(other, mine, yields=True)
                mine = moved_mine
            moved.append(mine)
    except _Met as met:
        raise UndoRefused(f"{str(met.path)!r} was changed again") from met
    return tuple(moved), tuple(rest)


@dataclass(frozen=True, slots=True)
class PlanChanges:
    """What a plan changed in a document; *undoes* is the plan that it took back, None for any other."""

    plan_id: str
    changes: tuple[Change, ...]
    undoes: str | None = None


def take_back(history: Sequence[PlanChanges], plan_id: str) -> tuple[Change, ...]:
    """Return the changes that take back what *plan_id* did, past all that was done since.

    *history* is best the whole one of the document, undos included: an item that came and went has its place by those
    around it before. Then plans that are all taken back, in whatever order, leave the first body.

    Raises:
        UndoRefused: a later plan, not taken back itself, touched the same place; the message names both.
    """
    kept = _settle(history, plan_id)
    number = next(
        (number for number, deed in enumerate(kept) if deed.plan_id == plan_id), None
    )
    if number is None:
        raise UndoRefused(
            f"plan {plan_id!r} is not in the history; edit the document instead"
        )
    back = inverse(kept[number].changes)
    for deed in kept[number + 1 :]:
        try:
            back, _ = cross(back, deed.changes)
        except UndoRefused as error:
            raise UndoRefused(
                f"plan {plan_id!r} cannot be taken back: {error} by plan {deed.plan_id!r}; undo that one first"
            ) from error
    return back


def _settle(history: Sequence[PlanChanges], wanted: str) -> list[PlanChanges]:
    """Return *history* without plans taken back and their undos, save for the plan *wanted*."""
    # What was applied again counts as new, unless *wanted* is an undo: that one knows its place from what was first.
    again = {deed.undoes for deed in history} if _is_undo(history, wanted) else set()
    kept: list[PlanChanges] = []
    for deed in history:
        stays = (
            deed.undoes is None
            or deed.plan_id in again
            or wanted in (deed.plan_id, deed.undoes)
        )
        rest = None if stays else _without(kept, deed)
        kept = [*kept, deed] if rest is None else rest
    return kept


def _is_undo(history: Sequence[PlanChanges], plan_id: str) -> bool:
    """Return whether *plan_id* took a plan back, rather than being one or applying one again."""
    undoes = {deed.plan_id: deed.undoes for deed in history}
    back = False
    name = undoes.get(plan_id)
    while name is not None:
        back = not back
        name = undoes.get(name)
    return back


def _without(
    kept: Sequence[PlanChanges], undo: PlanChanges
) -> list[PlanChanges] | None:
    """Return *kept* as if the plan that *undo* takes back had never been, None when it takes back none of them."""
    number = next(
        (number for number, deed in enumerate(kept) if deed.plan_id == undo.undoes),
        None,
    )
    if number is None:
        return None
    back = inverse(kept[number].changes)
    between = list[PlanChanges]()
    for deed in kept[number + 1 :]:
        try:
            back, moved = cross(back, deed.changes)
        except UndoRefused:
            return None
        between.append(PlanChanges(deed.plan_id, moved, deed.undoes))
    undone = [change.path for change in back] == [
        change.path for change in undo.changes
    ]
    return [*kept[:number], *between] if undone else None


def _move(change: Change, over: Change, *, yields: bool) -> Change:
    """Return *change* as it is after *over*; one that *yields* goes behind where both make room at one index."""
    steps = _shift_back(
        change.path.steps, over, is_gap=change.before is ABSENT, yields=yields
    )
    if steps is change.path.steps:
        return change
    # Spelled out, as `replace` takes twice as long and a long history does this often.
    return Change(Path(steps), change.before, change.after, change.ahead)


def _rebase(
    edits: Sequence[Edit], over: Sequence[Change], body: Found
) -> tuple[Edit, ...]:
    """Do what `rebase_edits` says, or raise _Met."""
    rebased = list(edits)
    meeting: dict[tuple[Step, ...], list[tuple[int, int]]] = {}
    for order, edit in enumerate(edits):
        if isinstance(edit, NoChange):
            continue
        given, place = _places(edit, body)
        steps = place.steps
        for change in over:
            steps = _shift_back(
                steps, change, is_gap=isinstance(edit, Insert), yields=True
            )
        counts_from_end = any(
            isinstance(step, int) and step < 0 for step in given.steps
        )
        if over and (steps != place.steps or counts_from_end):
            rebased[order] = edit.model_copy(update={"path": str(Path(steps))})
        if isinstance(edit, Insert) and isinstance(place.last, int):
            meeting.setdefault(steps, []).append((place.last, order))
    # What went to two places of a list may go to one now, where the order of the plan decides.
    for inserts in meeting.values():
        in_list = [rebased[order] for _, order in sorted(inserts)]
        for (_, order), edit in zip(inserts, in_list, strict=True):
            rebased[order] = edit
    return tuple(rebased)


def _places(edit: Insert | Update | Delete, body: Found) -> tuple[Path, Path]:
    """Return the path of *edit* as it is written, and as a place of *body* when there is one."""
    try:
        given = parse(edit.path)
    except InvalidPath as error:
        raise EditRefused(str(error), "path") from error
    return given, given if isinstance(body, Absent) else place_of(body, edit)


def _shift_back(
    steps: tuple[Step, ...], over: Change, *, is_gap: bool, yields: bool
) -> tuple[Step, ...]:
    """Return where the place *steps* is after *over*: the same object when it has not moved.

    Raises:
        _Met: *over* touched it, something above it, or (unless it is a gap to be filled) something in it.
    """
    where = over.path.steps
    depth = len(where) - 1
    if len(steps) <= depth:
        if not is_gap and where[: len(steps)] == steps:
            raise _Met(Path(steps))
        return steps
    if depth < 0:
        raise _Met(Path(steps))
    if steps[:depth] != where[:depth]:
        return steps
    mine = steps[depth]
    other = where[depth]
    if isinstance(mine, int) and isinstance(other, int):
        shift = _shift(
            mine, over, other, in_gap=is_gap and len(steps) == depth + 1, yields=yields
        )
        return (*steps[:depth], mine + shift, *steps[depth + 1 :]) if shift else steps
    if mine == other:
        raise _Met(Path(steps))
    return steps


def _shift(mine: int, over: Change, other: int, *, in_gap: bool, yields: bool) -> int:
    """Return by how much *over*, at *other* in a list, moves the item at *mine* in it."""
    if mine < 0:
        raise _Met(over.path)
    if over.before is ABSENT:
        return 1 if other < mine or (other == mine and (yields or not in_gap)) else 0
    if other == mine and not in_gap:
        raise _Met(over.path)
    return -1 if over.after is ABSENT and other < mine else 0
