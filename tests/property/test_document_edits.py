"""Laws of edits, over random documents and random plans: the way back, the way past others, and what guards see."""

import json
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tasklore.contracts.edits import Delete, Edit, Insert, Update
from tasklore.contracts.errors import EditRefused, InvalidPath, UndoRefused
from tasklore.memory.documents.edits import (
    apply_changes,
    apply_edits,
    dump_changes,
    inverse,
    load_changes,
)
from tasklore.memory.documents.guard import check, check_document, growth_of, size_of
from tasklore.memory.documents.paths import APPEND, Path, Step, lookup, parse
from tasklore.memory.documents.rebase import PlanChanges, cross, rebase_edits, take_back
from tests.property.examples import examples, scale

#: Random plans of the most important law.
PLANS = scale(1_500)

NAMES = st.sampled_from(
    ["a", "b", "c", "odd key", "", "$x", "é", "[0]", "x.y", "'\"", "\n"]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, 1.0, -1.5, "", "x", "é\U0001f35d"])
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=4)
    ),
    max_leaves=12,
)
BODIES = (
    st.dictionaries(NAMES, VALUES, max_size=5) | st.lists(VALUES, max_size=5) | VALUES
)
STEPS = st.text(max_size=6) | st.integers(-(2**53) + 1, 2**53 - 1)


def canonical(body: Any) -> bytes:
    """Return the bytes that two equal documents share."""
    return json.dumps(
        body, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    ).encode("utf-8", "surrogatepass")


def ordered(body: Any) -> bytes:
    """Return the bytes that two documents share whose names also stand in one order."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def places(body: Any, steps: tuple[Step, ...] = ()) -> list[Path]:
    """Return every place of *body*."""
    entries = (
        body.items()
        if isinstance(body, dict)
        else enumerate(body)
        if isinstance(body, list)
        else ()
    )
    return [
        Path(steps),
        *(place for step, child in entries for place in places(child, (*steps, step))),
    ]


def edit_of(
    chance: random.Random, body: Any, where: Sequence[Path], value: Any
) -> Edit:
    """Return an edit at one of the places *where* that fits *body* by itself."""
    place = chance.choice(where)
    found = lookup(body, place)
    kind = chance.choice(["insert", "insert", "update", "delete"])
    if kind == "insert" and isinstance(found, list):
        ends: list[Step] = [APPEND, len(found)]
        step = chance.choice([*range(-len(found), len(found)), *ends])
        return Insert(path=str(place / step), new_value=value)
    if kind == "insert" and isinstance(found, dict):
        return Insert(path=str(place / f"new {chance.randrange(4)}"), new_value=value)
    if kind == "delete" and place.steps:
        return Delete(path=str(place))
    return Update(path=str(place), new_value=value)


def plan_of(
    chance: random.Random, body: Any, values: Sequence[Any]
) -> tuple[Edit, ...]:
    """Return a plan for *body* whose edits do not meet, with at most as many edits as *values*."""
    where = places(body)
    edits = [edit_of(chance, body, where, value) for value in values]
    with suppress(EditRefused):
        apply_edits(body, edits)
        return tuple(edits)
    plan: list[Edit] = []
    for edit in edits:
        with suppress(EditRefused):
            apply_edits(body, [*plan, edit])
            plan.append(edit)
    return tuple(plan)


@st.composite
def plans(draw: st.DrawFn, body: Any) -> tuple[Edit, ...]:
    """Draw a plan for *body*."""
    return plan_of(
        draw(st.randoms(use_true_random=False)),
        body,
        draw(st.lists(VALUES, max_size=6)),
    )


def taken_back_exactly(body: Any, plan: Sequence[Edit]) -> None:
    """Apply *plan*, take it back and apply it again, by way of what is written down about it."""
    given_bytes = ordered(body)
    applied = apply_edits(body, plan)
    record = load_changes(json.loads(json.dumps(dump_changes(applied.changes))))
    back = apply_changes(applied.body, inverse(record))

    assert ordered(body) == given_bytes
    assert ordered(back) == given_bytes
    assert canonical(back) == canonical(body)
    assert ordered(apply_changes(back, record)) == ordered(applied.body)


@examples(20)
@given(st.data())
def test_apply_then_undo_is_the_same_document_to_the_byte(data: st.DataObject) -> None:
    """Names in their order too; and the document given is never touched."""
    body = data.draw(BODIES)
    taken_back_exactly(body, data.draw(plans(body)))


@examples(20)
@given(st.data())
def test_a_plan_carried_over_another_is_both_plans_as_one(data: st.DataObject) -> None:
    """Where both fit together as one plan; where they do not, carrying over is refused too."""
    body = data.draw(BODIES)
    first = data.draw(plans(body))
    second = data.draw(plans(body))
    changed = apply_edits(body, first)
    # An update to what is there already meets others in one plan, and changes nothing.
    assume(all(apply_edits(body, [edit]).changes for edit in first))
    try:
        together = apply_edits(body, [*first, *second])
    except EditRefused:
        with pytest.raises(EditRefused, match="has changed since"):
            rebase_edits(second, changed.changes, body)
        return
    moved = rebase_edits(second, changed.changes, body)

    assert canonical(apply_edits(changed.body, moved).body) == canonical(together.body)


@examples(20)
@given(st.data())
def test_changes_of_one_document_lead_to_one_document_either_way_round(
    data: st.DataObject,
) -> None:
    """This is why an undo past later changes is the document in which they were made without the plan."""
    body = data.draw(BODIES)
    mine, other = (apply_edits(body, data.draw(plans(body))) for _ in range(2))
    try:
        mine_last, other_last = cross(mine.changes, other.changes)
    except UndoRefused:
        assume(False)

    one = apply_changes(other.body, mine_last)
    assert canonical(one) == canonical(apply_changes(mine.body, other_last))
    # And each can be taken back past the other.
    for changes, later, left in (
        (mine.changes, other_last, other.body),
        (other.changes, mine_last, mine.body),
    ):
        undone = apply_changes(one, cross(inverse(changes), later)[0])
        assert sorted(map(canonical, flat(undone))) == sorted(
            map(canonical, flat(left))
        )


def flat(value: Any) -> list[Any]:
    """Return every scalar of *value* with the names on its way: two that stood at one gap may come back either way."""
    if isinstance(value, dict):
        return [
            [name, inner] for name, child in value.items() for inner in flat(child)
        ] or [{}]
    if isinstance(value, list):
        return [["item", inner] for child in value for inner in flat(child)] or [[]]
    return [value]


@examples(20)
@given(st.data())
def test_plans_undone_in_any_order_leave_the_first_document(
    data: st.DataObject,
) -> None:
    body = data.draw(BODIES)
    now = body
    history = list[PlanChanges]()
    standing = list[str]()
    for number in range(data.draw(st.integers(1, 4))):
        outcome = apply_edits(now, data.draw(plans(now)))
        history.append(PlanChanges(f"plan {number}", outcome.changes))
        standing.append(f"plan {number}")
        now = outcome.body
    redos = data.draw(st.integers(0, 2))
    while standing:
        chosen = data.draw(st.sampled_from(standing))
        try:
            back = take_back(history, chosen)
        except UndoRefused:
            chosen = standing[-1]
            back = take_back(history, chosen)
        standing.remove(chosen)
        history.append(PlanChanges(f"{len(history)}", back, chosen))
        now = apply_changes(now, back)
        if redos:
            redos -= 1
            again = take_back(history, history[-1].plan_id)
            history.append(PlanChanges(f"{len(history)}", again, history[-1].plan_id))
            standing.append(history[-1].plan_id)
            now = apply_changes(now, again)

    assert canonical(now) == canonical(body)


@examples(20)
@given(st.data())
def test_the_guard_sees_in_the_changed_part_what_it_would_see_in_the_whole(
    data: st.DataObject,
) -> None:
    """A sound document and a plan that is let through make a sound document; growth is never counted too low."""
    body = data.draw(st.dictionaries(NAMES, VALUES, max_size=5))
    applied = apply_edits(body, data.draw(plans(body)))
    try:
        check(body, applied.body, applied.changes, size=check_document(body))
    except EditRefused as refused:
        assert refused.reason in ("type", "protected")  # noqa: PT017
    size = check_document(applied.body)

    assert size == len(ordered(applied.body))
    assert (
        0 <= size_of(body) + growth_of(applied.changes) - size <= len(applied.changes)
    )


@examples(20)
@given(st.lists(STEPS, max_size=5), st.booleans())
def test_every_path_is_read_back_from_its_spelling(
    steps: list[Any], appends: bool
) -> None:
    """Whatever its names are; the spelling is printable and stays on one line."""
    path = Path((*steps, APPEND) if appends else tuple(steps))

    assert parse(str(path)) == path
    assert str(path).isprintable()


@examples(20)
@given(
    st.text(alphabet="$.[]'\"\\u0d8e-1a*?:, \n\ud800é", max_size=12)
    | st.text(max_size=20)
)
def test_any_text_is_a_path_or_refused_as_one(text: str) -> None:
    try:
        path = parse(text)
    except InvalidPath:
        return
    assert parse(str(path)) == path
    assert str(parse(str(path))) == str(path)


def test_random_plans_over_larger_documents_are_taken_back_to_the_byte() -> None:
    """The same law on larger documents, from one seed."""
    chance = random.Random(4)
    edits = 0
    for _ in range(PLANS):
        body = random_body(chance)
        plan = plan_of(
            chance,
            body,
            [random_body(chance, levels=1) for _ in range(chance.randrange(1, 7))],
        )
        taken_back_exactly(body, plan)
        edits += len(plan)

    assert edits > 2 * PLANS


def random_body(chance: random.Random, levels: int = 4) -> Any:
    """Return a document such as people have, with odd names and values in it."""
    if levels == 0 or chance.random() < 0.2:
        return chance.choice(
            [None, True, 0, 1, 1.0, "", "pasta", "é\U0001f35d", -5, 2.5]
        )
    if chance.random() < 0.5:
        return [random_body(chance, levels - 1) for _ in range(chance.randrange(6))]
    names = chance.sample(
        ["a", "b", "likes", "odd key", "", "$x", "é", "x.y", "'\"", "[0]"],
        chance.randrange(6),
    )
    return {name: random_body(chance, levels - 1) for name in names}
