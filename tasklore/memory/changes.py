"""`tasklore memory undo|redo`: edits of documents taken back, and applied again."""

from datetime import UTC, datetime

from contracts.errors import InvalidInput
from memory.documents.storage.history import PlanRecord
from tasklore.memory.history import record_document, record_lines
from tasklore.memory.lines import SHORT_ID
from tasklore.memory.stores import UserMemory, user_memory
from tasklore.render.screen import print_json, printable, styled

#: Plans that are looked through for the end of an id; a whole id is found however old it is.
_LOOKED_THROUGH = 10_000


async def undo_aloud(user: str, plan: str | None, *, again: bool, as_json: bool) -> None:
    """Take a plan back, or with *again* apply one again, and print what that changed."""
    async with user_memory() as memory:
        now = datetime.now(UTC)
        plan_id = None if plan is None else await _whole_id(memory, user, plan)
        if again:
            record = await memory.documents.redo(user, plan_id, at=now)
        else:
            record = await memory.documents.undo(user, plan_id, at=now)
    if as_json:
        print_json(record_document(record))
    else:
        _print(record, again=again)


async def _whole_id(memory: UserMemory, user: str, plan: str) -> str:
    """Return the id of the one plan that *plan* is or ends, as a list shows it; *plan* itself when nothing fits."""
    if len(plan) < SHORT_ID:
        return plan
    known = [record.plan_id for record in await memory.documents.history(user, limit=_LOOKED_THROUGH)]
    found = [one for one in known if one.endswith(plan)]
    if plan in found or not found:
        return plan
    if len(found) > 1:
        raise InvalidInput(f"PLAN {plan!r} ends {len(found)} ids: {', '.join(found[:5])}; give more of it")
    return found[0]


def _print(record: PlanRecord, *, again: bool) -> None:
    what = printable(record.undoes or "")
    if again:
        # It was taken back by a plan of its own, which is the one that this record names.
        print(f"{styled('applied again', 'green')} what {what} took back")
    else:
        print(f"{styled('taken back', 'green')} {what}")
    for line in record_lines(record):
        print(f"  {line}")
