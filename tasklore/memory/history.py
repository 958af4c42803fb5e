"""`tasklore memory history|diff|explain`: how documents came to be what they are."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import JsonValue

from contracts.errors import InvalidInput, UnknownPath
from memory.documents.edits import Change
from memory.documents.items import leaf_text
from memory.documents.paths import ABSENT, exists, parse, resolve
from memory.documents.plans import Document
from memory.documents.storage.history import PlanRecord
from tasklore.memory.lines import body_lines, change_lines, one_line, shortened
from tasklore.memory.stores import meant_resource, stored_resource, user_memory
from tasklore.render.durations import read_aloud
from tasklore.render.screen import print_json, print_table, printable, styled

#: Characters of one change in a list of plans, and how many of a plan are shown there; `explain` and JSON have all.
_WIDE, _SHOWN = 72, 3


async def print_history(user: str, resource: str | None, limit: int, *, as_json: bool) -> None:
    """Print a line for each of the last *limit* plans, the newest first."""
    async with user_memory() as memory:
        wanted = None if resource is None else await stored_resource(memory, user, resource)
        records = await memory.documents.history(user, wanted, limit)
    if as_json:
        print_json([record_document(record) for record in records])
    elif not records:
        print(f"Nothing was ever edited for {printable(user)}" + (f" in {wanted}." if wanted else "."))
    else:
        now = datetime.now(UTC)
        names = shortened([record.plan_id for record in records])
        rows = [
            (
                printable(names[record.plan_id]),
                read_aloud((now - record.origin.at).total_seconds() * 1000),
                printable(record.origin.by),
                _state(record),
                _in_short(record, wanted),
            )
            for record in records
        ]
        print_table(("PLAN", "AGE", "BY", "STATE", "CHANGES"), rows)


async def print_difference(user: str, resource: str, since: int | None, until: int | None, *, as_json: bool) -> None:
    """Print what changed from revision *since* (None: the one before *until*) to *until* (None: the present one)."""
    async with user_memory() as memory:
        documents = (await memory.documents.snapshot(user)).documents
        wanted = meant_resource(resource, memory.kinds, documents)
        now = documents[wanted].revision
        last = now if until is None else until
        first = max(0, last - 1) if since is None else since
        if as_json:
            changes = [_change_document(one) for one in await memory.documents.diff(user, wanted, first, last)]
            print_json({"resource": wanted, "from": first, "to": last, "changes": changes})
            return
        before, after = [await memory.documents.at(user, wanted, revision) for revision in (first, last)]
    print(styled(f"{wanted}, revision {first} to {last}", "bold"))
    lines = [line.painted() for line in body_lines(before.body, after.body)]
    for line in lines or ["nothing changed"]:
        print(f"  {line}")


async def print_explanation(user: str, resource: str | None, path: str, *, as_json: bool) -> None:
    """Print every plan that touched what is now at *path*, with what was found and who decided."""
    async with user_memory() as memory:
        documents = (await memory.documents.snapshot(user)).documents
        wanted = meant_resource(resource, memory.kinds, documents) if resource else _holder_of(documents, user, path)
        records = await memory.documents.explain(user, wanted, path)
    if as_json:
        print_json([record_document(record) for record in records])
        return
    where = resolve(documents[wanted].body, parse(path))
    print(f"{styled(wanted, 'bold')} {where}")
    if not records:
        print("  it came with the document, or before the history that is kept")
    for record in records:
        _print_reasons(record)


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
        "changes": {name: [_change_document(one) for one in changes] for name, changes in record.changes.items()},
    }


def record_lines(record: PlanRecord) -> list[str]:
    """Return a line for each thing that *record* changed, for people."""
    return [line.painted() for changes in record.changes.values() for line in change_lines(changes)]


def _in_short(record: PlanRecord, wanted: str | None) -> str:
    """Return the first changes of *record*, in *wanted* when it is given, as one cell of a table."""
    mine = [changes for name, changes in record.changes.items() if wanted in (None, name)]
    lines = [one_line(str(line), _WIDE) for changes in mine for line in change_lines(changes)]
    if not lines:
        return "nothing"
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "; ".join([*lines[:_SHOWN], *more])


def _holder_of(documents: Mapping[str, Document], user: str, path: str) -> str:
    """Return the one of *documents* that has something at *path*."""
    wanted = parse(path)
    found = [one for one, document in documents.items() if exists(document.body, wanted)]
    if len(found) > 1:
        raise InvalidInput(f"{path!r} is in {', '.join(found)}; say which with --resource")
    if not found:
        raise UnknownPath(
            f"no document of {user!r} has {path!r}; `tasklore memory show --user {user}` prints what is there"
        )
    return found[0]


def _print_reasons(record: PlanRecord) -> None:
    origin = record.origin
    print(f"\n  {styled(record.plan_id, 'bold')}  {origin.at:%Y-%m-%d %H:%M} UTC, {_state(record)}")
    for line in record_lines(record):
        print(f"    {line}")
    facts: Iterable[tuple[str, str | None]] = (
        ("decided by", origin.by),
        ("because", origin.reasoning),
        ("fact", origin.fact_text),
        ("said", origin.evidence),
        ("turn", origin.turn_id),
        ("finder", _voice(origin.finder)),
        ("editor", _voice(origin.editor)),
    )
    for name, value in facts:
        if value:
            print(f"    {styled(name.ljust(11), 'dim')}{one_line(value)}")


def _voice(said: JsonValue) -> str | None:
    """Return what was found or decided in one line: by which model at which temperature, or how without one."""
    if not isinstance(said, dict):
        return None
    rest = {name: value for name, value in said.items() if name not in {"model", "temperature"}}
    temperature = f" at {said['temperature']}" if "temperature" in said else ""
    return f"{said.get('model')}{temperature}: {leaf_text(rest)}"


def _state(record: PlanRecord) -> str:
    if record.undone_by is not None:
        return "taken back"
    return {"edit": "stands", "undo": "takes back", "redo": "applies again"}.get(record.kind, record.kind)


def _change_document(change: Change) -> dict[str, Any]:
    sides = {"before": change.before, "after": change.after}
    return {"path": str(change.path)} | {name: value for name, value in sides.items() if value is not ABSENT}
