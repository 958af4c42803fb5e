"""`tasklore cancel`: a task that is not to be done any more."""

import json

from contracts.errors import MemoryUnavailable, Unreachable
from contracts.identifiers import checked_name
from memory.ledger.ledger import Ledger
from runtime.messaging.connection import connected
from runtime.messaging.link import Link
from runtime.messaging.outbox import open_outbox
from runtime.servers import valkey
from supervisor.cancellation import Canceller, Cancelling
from tasklore.exits import FAILED, OK
from tasklore.places import current_endpoints, demand_listener

#: Seconds for one look into the ledger: a person waits, and an answer late is better than none.
_LEDGER_S = 5.0


async def cancel_aloud(task_id: str, reason: str, *, as_json: bool) -> int:
    """Cancel, print what came of it and return the exit code.

    Raises:
        InvalidInput: *task_id* is none.
        Unreachable: a server does not answer.
    """
    checked_name(task_id, "TASK")
    found = current_endpoints()
    await demand_listener(found.nats)
    await demand_listener(found.redis_url)
    async with (
        valkey.connect(found.redis_url, name="tasklore-cancel", deadline_s=_LEDGER_S) as redis,
        connected(found.nats, "tasklore-cancel") as client,
        open_outbox(Link(client)) as outbox,
    ):
        canceller = Canceller(client, outbox, Ledger(redis, deadline_s=_LEDGER_S), "tasklore-cancel")
        try:
            came = await canceller.cancel(task_id, reason)
        except MemoryUnavailable as error:
            raise Unreachable(str(error)) from error
    if as_json:
        print(json.dumps({"task_id": task_id, "outcome": came.outcome, "status": came.status}))
    else:
        print(_sentence(task_id, came))
    return FAILED if came.outcome == "too_late" else OK


def _sentence(task_id: str, came: Cancelling) -> str:
    if came.outcome == "cancelled":
        return f"{task_id} is cancelled."
    if came.outcome == "too_late":
        return f"{task_id} had ended already: {came.status}."
    return f"Nobody knows {task_id} by what it is; should it turn up, it is cancelled instead of run."
