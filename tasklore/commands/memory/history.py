"""`tasklore memory history|diff|explain|undo|redo`: how documents came about, and edits taken back."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import JsonValue

from tasklore.commands.memory.lines import (
    SHORT_ID,
    body_lines,
    change_lines,
    one_line,
    paint,
    shorten,
)
from tasklore.commands.memory.stores import (
    UserMemory,
    find_resource,
    find_stored_resource,
    user_memory,
)
from tasklore.commands.render.columns import print_facts
from tasklore.commands.render.durations import read_aloud
from tasklore.commands.render.screen import print_json, print_table, printable, styled
from tasklore.contracts.errors import InvalidInput, UnknownPath
from tasklore.memory.documents.edits import Change
from tasklore.memory.documents.items import leaf_text
from tasklore.memory.documents.paths import ABSENT, exists, parse, resolve
from tasklore.memory.documents.plans import Document
from tasklore.memory.documents.storage.history import PlanRecord

#: Characters of one change in a list of plans, and how many of a plan are shown there; `explain` and JSON have all.
_WIDE = 72
_SHOWN = 3
#: Plans that are looked through for the end of an id; a whole id is found however old it is.
_LOOKED_THROUGH = 10_000


async def print_history(
    user: str, resource: str | None, limit: int, *, as_json: bool
) -> None:
    """Print a line for each of the last *limit* plans, the newest first."""
    async with user_memory() as memory:
        wanted = (
            None
            if resource is None
            else await find_stored_resource(memory, user, resource)
        )
        records = await memory.documents.history(user, wanted, limit)
    if as_json:
        print_json([record_document(record) for record in records])
        return
    if not records:
        print(
            f"Nothing was ever edited for {printable(user)}"
            + (f" in {wanted}." if wanted else ".")
        )
        return
    now = datetime.now(UTC)
    names = shorten([record.plan_id for record in records])
    rows = []
    for record in records:
        mine = [
            changes
            for name, changes in record.changes.items()
            if wanted in (None, name)
        ]
        lines = [
            one_line(str(line), _WIDE)
            for changes in mine
            for line in change_lines(changes)
        ]
        more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        changed = "; ".join([*lines[:_SHOWN], *more]) or "nothing"
        age = read_aloud((now - record.origin.at).total_seconds() * 1000)
        plan_id = printable(names[record.plan_id])
        rows.append(
            (plan_id, age, printable(record.origin.by), _state(record), changed)
        )
    print_table(("PLAN", "AGE", "BY", "STATE", "CHANGES"), rows)


async def print_difference(
    user: str, resource: str, since: int | None, until: int | None, *, as_json: bool
) -> None:
    """Print the changes from revision *since* (None: the one before *until*) to *until* (None: the present one)."""
    async with user_memory() as memory:
        documents = (await memory.documents.snapshot(user)).documents
        wanted = find_resource(resource, memory.kinds, documents)
        last = documents[wanted].revision if until is None else until
        first = max(0, last - 1) if since is None else since
        if as_json:
            changes = [
                _change_document(one)
                for one in await memory.documents.diff(user, wanted, first, last)
            ]
            print_json(
                {"resource": wanted, "from": first, "to": last, "changes": changes}
            )
            return
        before, after = [
            await memory.documents.at(user, wanted, revision)
            for revision in (first, last)
        ]
    print(styled(f"{wanted}, revision {first} to {last}", "bold"))
    for line in [paint(line) for line in body_lines(before.body, after.body)] or [
        "nothing changed"
    ]:
        print(f"  {line}")


async def print_explanation(
    user: str, resource: str | None, path: str, *, as_json: bool
) -> None:
    """Print every plan that touched the entry now at *path*, with the fact behind it and who decided."""
    async with user_memory() as memory:
        documents = (await memory.documents.snapshot(user)).documents
        wanted = (
            find_resource(resource, memory.kinds, documents)
            if resource
            else _find_holder(documents, user, path)
        )
        records = await memory.documents.explain(user, wanted, path)
    if as_json:
        print_json([record_document(record) for record in records])
        return
    print(f"{styled(wanted, 'bold')} {resolve(documents[wanted].body, parse(path))}")
    if not records:
        print("  it came with the document, or before the history that is kept")
    for record in records:
        origin = record.origin
        print(
            f"\n  {styled(record.plan_id, 'bold')}  {origin.at:%Y-%m-%d %H:%M} UTC, {_state(record)}"
        )
        for line in record_lines(record):
            print(f"    {line}")
        facts = {
            "decided by": origin.by,
            "because": origin.reasoning,
            "fact": origin.fact_text,
            "said": origin.evidence,
            "turn": origin.turn_id,
            "finder": _model_line(origin.finder),
            "editor": _model_line(origin.editor),
        }
        print_facts(
            {name: one_line(value) for name, value in facts.items() if value},
            indent="    ",
        )


async def print_undo(
    user: str, plan: str | None, *, again: bool, as_json: bool
) -> None:
    """Take a plan back, or with *again* apply one again, and print what that changed."""
    async with user_memory() as memory:
        now = datetime.now(UTC)
        plan_id = None if plan is None else await _whole_id(memory, user, plan)
        act = memory.documents.redo if again else memory.documents.undo
        record = await act(user, plan_id, at=now)
    if as_json:
        print_json(record_document(record))
        return
    plan_id = printable(record.undoes or "")
    # A plan is taken back by a plan of its own, which is the one that the record of a redo names.
    done = f"{styled('applied again', 'green')} what {plan_id} took back"
    print(done if again else f"{styled('taken back', 'green')} {plan_id}")
    for line in record_lines(record):
        print(f"  {line}")


async def _whole_id(memory: UserMemory, user: str, plan: str) -> str:
    """Return the id of the one plan that *plan* is or ends, as a list shows it; *plan* itself when none fits.

    Raises:
        InvalidInput: several ids end so.
    """
    if len(plan) < SHORT_ID:
        return plan
    known = [
        record.plan_id
        for record in await memory.documents.history(user, limit=_LOOKED_THROUGH)
    ]
    found = [one for one in known if one.endswith(plan)]
    if plan in found or not found:
        return plan
    if len(found) > 1:
        raise InvalidInput(
            f"PLAN {plan!r} ends {len(found)} ids: {', '.join(found[:5])}; give more of it"
        )
    return found[0]


def record_document(record: PlanRecord) -> dict[str, Any]:
    """Return *record* as JSON for programs."""
    return {
        "plan_id": record.plan_id,
        "kind": record.kind,
        "state": _state(record),
        "undoes": record.undoes,
        "undone_by": record.undone_by,
        "origin": record.origin.model_dump(mode="json"),
        "revisions": dict(record.revisions),
        "changes": {
            name: [_change_document(one) for one in changes]
            for name, changes in record.changes.items()
        },
    }


def record_lines(record: PlanRecord) -> list[str]:
    """Return a line for each thing that *record* changed, for people."""
    return [
        paint(line)
        for changes in record.changes.values()
        for line in change_lines(changes)
    ]


def _find_holder(documents: Mapping[str, Document], user: str, path: str) -> str:
    """Return the one of *documents* that has an entry at *path*.

    Raises:
        InvalidInput: several have.
        UnknownPath: none has.
    """
    wanted = parse(path)
    found = [
        one for one, document in documents.items() if exists(document.body, wanted)
    ]
    if len(found) > 1:
        raise InvalidInput(
            f"{path!r} is in {', '.join(found)}; say which with --resource"
        )
    if not found:
        cure = f"`tasklore memory show --user {user}` prints what is there"
        raise UnknownPath(f"no document of {user!r} has {path!r}; {cure}")
    return found[0]


def _model_line(answer: JsonValue) -> str | None:
    """Return an answer of finder or editor in one line: by which model at which temperature, or how without one."""
    if not isinstance(answer, dict):
        return None
    rest = {
        name: value
        for name, value in answer.items()
        if name not in {"model", "temperature"}
    }
    temperature = f" at {answer['temperature']}" if "temperature" in answer else ""
    return f"{answer.get('model')}{temperature}: {leaf_text(rest)}"


def _state(record: PlanRecord) -> str:
    if record.undone_by is not None:
        return "taken back"
    return {"edit": "stands", "undo": "takes back", "redo": "applies again"}.get(
        record.kind, record.kind
    )


def _change_document(change: Change) -> dict[str, Any]:
    sides = {"before": change.before, "after": change.after}
    return {"path": str(change.path)} | {
        name: value for name, value in sides.items() if value is not ABSENT
    }
