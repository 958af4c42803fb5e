"""`tasklore cancel`: a task that is not to be done any more."""

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.places import open_nats, open_redis
from tasklore.commands.render.screen import print_json
from tasklore.contracts.identifiers import checked_name
from tasklore.memory.budgets.waiting_tasks import WaitingTasks
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.supervisor.cancellation import Canceller

#: Seconds for one look into the ledger: a person waits, and an answer late is better than none.
_LEDGER_S = 5.0


async def cancel_task(task_id: str, reason: str, *, as_json: bool) -> int:
    """Cancel, print the result and return the exit code.

    Raises:
        InvalidInput: *task_id* is none.
        Unreachable: a server does not answer.
    """
    checked_name(task_id, "TASK")
    async with (
        open_redis("tasklore-cancel", _LEDGER_S) as redis,
        open_nats("tasklore-cancel") as client,
        open_outbox(Link(client)) as outbox,
    ):
        canceller = Canceller(
            client,
            outbox,
            Ledger(redis, deadline_s=_LEDGER_S),
            "tasklore-cancel",
            waiting=WaitingTasks(redis, deadline_s=_LEDGER_S),
        )
        came = await canceller.cancel(task_id, reason)
    if as_json:
        print_json({"task_id": task_id, "outcome": came.outcome, "status": came.status})
    else:
        sentences = {
            "cancelled": f"{task_id} is cancelled.",
            "too_late": f"{task_id} had ended already: {came.status}.",
        }
        unknown = f"There is no task {task_id} yet; if it arrives later, it is cancelled before it starts."
        print(sentences.get(came.outcome, unknown))
    return FAILED if came.outcome == "too_late" else OK
