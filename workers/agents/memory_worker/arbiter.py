"""The arbiter: turns wishes for one fact into edits, or refuses them. Pure; a model's word decides nothing here.

What it holds to, whoever wishes:

- The newest statement wins over an older one that it contradicts, and what was said over what was inferred. An inferred
  fact deletes and overwrites nothing that was said, and nothing at all in a guarded document.
- What contradicts at equal rank (two inferences, one breath) is kept, both, and marked: each of the items gets the
  field `conflict` with the id of the plan that noticed it.
- What is there already, in whatever wording, is not added again; an item that was inferred or had expired and is now
  said takes the new date, source and expiry.
- `_metadata` is nobody's to edit, and an item goes into a list.

What a model wishes for is scrutinised first (`memory_worker.scrutiny`).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from pydantic import JsonValue

from contracts.edits import MAX_EDITS, Delete, Edit, Insert, Update
from contracts.errors import EditRefused, UnknownPath
from memory.documents.items import CONFLICT, METADATA, Body, Item, is_expired, is_item
from memory.documents.kinds import Place
from memory.documents.paths import Path, exists, lookup
from workers.agents.memory_worker.case import Case, Refused, Verdict, Wish, sentence
from workers.agents.memory_worker.wording import is_same, text_of

#: The first 48 bits of a UUID of version 7: milliseconds since 1970.
_TIMED = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}(?=-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z)")

#: Items of a list from which on it is emptied by one edit instead of one each: a plan may have only so many.
_CLEARED_AT_ONCE = 50


@dataclass
class _New:
    """An item to be inserted at the end of the list at *path*."""

    resource_id: str
    path: Path
    item: Body
    is_contested: bool


@dataclass
class _Ruling:
    """Edits as they come together: at most one an item, so that none of them meets another."""

    case: Case
    by_place: dict[tuple[str, Path], Edit] = field(default_factory=dict)
    inserts: list[_New] = field(default_factory=list)
    marked: set[tuple[str, Path]] = field(default_factory=set)
    kept: list[str] = field(default_factory=list)

    @property
    def is_contested(self) -> bool:
        """Whether something that contradicts it at equal rank stays beside it."""
        return bool(self.marked) or any(new.is_contested for new in self.inserts)


def arbitrate(case: Case, wishes: Sequence[Wish], reasoning: str) -> Verdict:
    """Return what is to be done of *wishes*, all of it or nothing; *reasoning* is that of whoever wishes."""
    ruling = _Ruling(case)
    try:
        for wish in wishes:
            _grant(ruling, wish)
        edits = _edits_of(ruling)
    except Refused as refused:
        return refused.verdict()
    if not edits:
        known = f"already kept: {', '.join(ruling.kept)}" if ruling.kept else "there is nothing to change"
        return Verdict("known", sentence((known, reasoning)))
    return Verdict("conflict" if ruling.is_contested else "applied", reasoning, edits)


def contest(case: Case, resource_id: str, value: JsonValue) -> Literal["wins", "ties"]:
    """Say whether the fact overrules what is kept as *value*; it ties with what was inferred, or said, alike.

    Raises:
        Refused: it may not.
    """
    item, shown = Item.read(value), text_of(value)
    if case.inferred:
        if case.is_guarded(resource_id):
            raise Refused("guarded", f"{shown!r} is about health, and this is only inferred")
        if item is None or not item.is_inferred:
            raise Refused("rank", f"{shown!r} was said, and this is only inferred")
        return "ties"
    if item is None or item.is_inferred:
        return "wins"
    if is_newer(case, item):
        raise Refused("older", f"{shown!r} was said later than this")
    return "ties" if item.source == case.source else "wins"


def is_newer(case: Case, item: Item) -> bool:
    """Tell whether *item* was said in a later turn than the fact of *case*.

    Only ids that begin with their time can tell, and those of turns that are known to have come later.
    """
    other = item.source.partition(":")[2]
    if any(later.turn_id == other for later in case.pending.later):
        return other != case.pending.turn_id
    both = _TIMED.match(other), _TIMED.match(case.pending.turn_id)
    return both[0] is not None and both[1] is not None and both[0][0] > both[1][0]


def _grant(ruling: _Ruling, wish: Wish) -> None:
    steps = wish.path.steps
    if not steps or steps[0] == METADATA:
        raise Refused("protected", f"{str(wish.path)!r} is not for edits")
    try:
        body = ruling.case.body(wish.resource_id)
        value: JsonValue = [] if _is_missing_place(ruling.case, wish, body) else lookup(body, wish.path)
    except (EditRefused, UnknownPath) as error:
        raise Refused("path", str(error)) from error
    if wish.operation != "insert" and not _is_leaf(body, wish.path):
        raise Refused("place", f"{str(wish.path)!r} is no item")
    if wish.operation != "delete" and not wish.display.strip():
        raise Refused("value", "an item has no text")
    if wish.operation == "insert":
        _insert(ruling, wish, value)
    elif wish.operation == "update":
        _update(ruling, wish, value)
    else:
        _delete(ruling, wish, value)


def _is_missing_place(case: Case, wish: Wish, body: Body) -> bool:
    """Tell whether *wish* adds to a place of its kind that the document does not have: it will be made."""
    place = case.place(wish.resource_id, wish.path)
    is_place = wish.operation == "insert" and place is not None and place.path == wish.path
    return is_place and not exists(body, wish.path)


def _insert(ruling: _Ruling, wish: Wish, held: JsonValue) -> None:
    case = ruling.case
    if not isinstance(held, list):
        raise Refused("place", f"{str(wish.path)!r} is no list that an item could be added to")
    item = case.new_item(wish.display, expiry=wish.expiry, durability=wish.durability)
    ties = [*_settle(ruling, wish, held), *_contested(case, wish)]
    known = next((index for index, value in enumerate(held) if is_same(text_of(value), wish.display)), None)
    if known is not None:
        _renew(ruling, wish, held[known], wish.path / known, item, is_contested=bool(ties))
    elif not any(_is_again(new, wish) for new in ruling.inserts):
        denied = [new for new in ruling.inserts if _is_denied(case, new, wish)]
        ruling.inserts.append(_New(wish.resource_id, wish.path, item, bool(ties or denied)))
        for new in denied:
            new.is_contested = True
    ruling.marked.update(ties)


def _update(ruling: _Ruling, wish: Wish, value: JsonValue) -> None:
    if is_same(text_of(value), wish.display):
        ruling.kept.append(text_of(value))
        return
    if contest(ruling.case, wish.resource_id, value) == "ties" and ruling.case.inferred:
        raise Refused("rank", f"{text_of(value)!r} was inferred too, and stays until somebody says so")
    item = ruling.case.new_item(wish.display, expiry=wish.expiry, durability=wish.durability)
    _put(ruling, wish.resource_id, wish.path, _replacing(wish.resource_id, wish.path, value, item))


def _delete(ruling: _Ruling, wish: Wish, value: JsonValue) -> None:
    if contest(ruling.case, wish.resource_id, value) == "ties" and ruling.case.inferred:
        raise Refused("rank", f"{text_of(value)!r} was inferred too, and stays until somebody says so")
    _put(ruling, wish.resource_id, wish.path, Delete(path=str(wish.path), file=wish.resource_id))


def _settle(ruling: _Ruling, wish: Wish, held: Sequence[JsonValue]) -> list[tuple[str, Path]]:
    """Take out what the new item of *wish* contradicts; return where that cannot be decided."""
    case, ties = ruling.case, list[tuple[str, Path]]()
    place = case.place(wish.resource_id, wish.path)
    if place is None or place.path != wish.path:
        return ties
    contrary = list(_said_contrary(case, wish, place))
    if place.single:
        others = ((at, value) for at, value in enumerate(held) if not is_same(text_of(value), wish.display))
        contrary += [(place.path / at, value) for at, value in others]
    for path, value in contrary:
        if is_expired(value, case.today) or contest(case, wish.resource_id, value) == "wins":
            _put(ruling, wish.resource_id, path, Delete(path=str(path), file=wish.resource_id))
        else:
            ties.append((wish.resource_id, path))
    return ties


def _contested(case: Case, wish: Wish) -> list[tuple[str, Path]]:
    """Return what *wish* says it contests; the fact has to be able to."""
    for resource_id, path in wish.contests:
        contest(case, resource_id, lookup(case.body(resource_id), path))
    return list(wish.contests)


def _said_contrary(case: Case, wish: Wish, place: Place) -> Iterator[tuple[Path, JsonValue]]:
    """Yield the items that say the contrary about the same thing, in the places for that."""
    kind, body = case.kind(wish.resource_id), case.body(wish.resource_id)
    for other in kind.places if kind is not None else ():
        held = lookup(body, other.path) if _is_contrary(place, other) and exists(body, other.path) else None
        for at, value in enumerate(held if isinstance(held, list) else ()):
            if is_same(text_of(value), wish.display):
                yield other.path / at, value


def _renew(ruling: _Ruling, wish: Wish, value: JsonValue, path: Path, item: Body, *, is_contested: bool) -> None:
    """Put *item* over what is kept already where it says more: that the person says so now, or until when."""
    case, kept = ruling.case, Item.read(value)
    if is_contested:
        ruling.marked.add((wish.resource_id, path))
    is_weaker = kept is None or (case.inferred and not kept.is_inferred) or is_newer(case, kept)
    if kept is None or is_weaker or is_contested:
        ruling.kept.append(text_of(value))
        return
    says_so_now = not case.inferred and (kept.is_inferred or CONFLICT in kept.others)
    until = item["expiry"] if wish.expiry is not None or case.pending.fact.expiry is not None else None
    lasts_otherwise = until is not None and until != (None if kept.expiry is None else kept.expiry.isoformat())
    if says_so_now or lasts_otherwise or is_expired(kept, case.today):
        renewed = {**item, "item": kept.item, "display": kept.display}
        if not is_expired(renewed, case.today):
            _put(ruling, wish.resource_id, path, _replacing(wish.resource_id, path, value, renewed))
            return
    ruling.kept.append(kept.display)


def _replacing(resource_id: str, path: Path, value: JsonValue, item: Body) -> Edit:
    """Return the edit that puts *item* in the place of *value*: with what else that said, but no conflict any more."""
    old = Item.read(value)
    if old is None and not isinstance(value, str):
        raise Refused("place", f"{str(path)!r} holds no text")
    others = {} if old is None else {name: other for name, other in old.others.items() if name != CONFLICT}
    new_value: JsonValue = item["display"] if old is None else {**item, **others}
    return Update(path=str(path), file=resource_id, new_value=new_value)


def _edits_of(ruling: _Ruling) -> tuple[Edit, ...]:
    edits = _cleared_at_once(ruling)
    contested = {(file, path): lookup(ruling.case.body(file), path) for file, path in sorted(ruling.marked, key=str)}
    known = [mark for value in contested.values() if isinstance(value, dict) and (mark := value.get(CONFLICT))]
    # Who contradicts what is contested already joins in under the same mark.
    mark = known[0] if known else ruling.case.plan_id
    for (file, path), value in contested.items():
        if isinstance(value, dict) and CONFLICT not in value:
            edits.append(Insert(path=str(path / CONFLICT), file=file, new_value=mark))
    for new in ruling.inserts:
        item = {**new.item, CONFLICT: mark} if new.is_contested else new.item
        edits.append(Insert(path=str(new.path), file=new.resource_id, new_value=item))
    if len(edits) > MAX_EDITS:
        raise Refused("size", f"{len(edits)} edits are more than the {MAX_EDITS} of a plan")
    return tuple(edits)


def _cleared_at_once(ruling: _Ruling) -> list[Edit]:
    """Return the edits of what is there: of a long list that is to be emptied, one that empties it."""
    goes = Counter((file, path.parent) for (file, path), edit in ruling.by_place.items() if isinstance(edit, Delete))
    kept_busy = {(new.resource_id, new.path) for new in ruling.inserts} | {(f, p.parent) for f, p in ruling.marked}
    emptied = {
        (file, path)
        for (file, path), count in goes.items()
        if count > _CLEARED_AT_ONCE
        and (file, path) not in kept_busy
        and count == len(cast("list[JsonValue]", lookup(ruling.case.body(file), path)))
    }
    edits = [edit for (file, path), edit in ruling.by_place.items() if (file, path.parent) not in emptied]
    return edits + [Update(path=str(path), file=file, new_value=[]) for file, path in sorted(emptied, key=str)]


def _is_again(new: _New, wish: Wish) -> bool:
    at_one_place = (new.resource_id, new.path) == (wish.resource_id, wish.path)
    return at_one_place and is_same(text_of(new.item), wish.display)


def _is_denied(case: Case, new: _New, wish: Wish) -> bool:
    """Tell whether *wish* says the contrary of *new*, in one breath with it."""
    one, other = case.place(new.resource_id, new.path), case.place(wish.resource_id, wish.path)
    if one is None or other is None or new.resource_id != wish.resource_id or not _is_contrary(one, other):
        return False
    return is_same(text_of(new.item), wish.display)


def _put(ruling: _Ruling, resource_id: str, path: Path, edit: Edit) -> None:
    """Keep *edit*, unless the same item is to be deleted anyway."""
    known = ruling.by_place.get((resource_id, path))
    if known is None or isinstance(edit, Delete):
        ruling.by_place[resource_id, path] = edit
    elif known != edit and not isinstance(known, Delete):
        raise Refused("merge", f"{str(path)!r} is to become two different things")


def _is_contrary(one: Place, other: Place) -> bool:
    return other != one and (one.opposite == other.relation or other.opposite == one.relation)


def _is_leaf(body: Body, path: Path) -> bool:
    """Tell whether *path* is an item or a value by itself, and nothing inside of an item."""
    value: JsonValue = body
    for step in path.steps:
        if is_item(value):
            return False
        value = lookup(value, Path((step,)))
    return is_item(value) or not isinstance(value, dict | list)
