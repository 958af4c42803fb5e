"""A client for programs of your own, such as the server of a simulated world: asks for tasks and speaks to agents.

```python
async with asking("CoinWorld") as asker:
    report = await asker.ask("DecisionAgent", "decide", {"name": "Alice", ...}, conversation_id="coins.Alice")
    await asker.tell("coins.Alice", "Bob", "Found coins!", time=5)
```

It needs NATS alone: the ledger hears of a task from its worker, and its report lies in the stream REPORTS, where a
program may read its own.
"""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from tasklore.contracts import subjects
from tasklore.contracts.agent_messages import agent_message
from tasklore.contracts.errors import Forbidden, TaskExpired, Unreachable
from tasklore.contracts.identifiers import checked_name, new_id
from tasklore.contracts.messages import (
    CompletionReport,
    MemoryMode,
    TaskAssignment,
    TaskCall,
)
from tasklore.runtime.messaging.buckets import read_bucket
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox, open_outbox
from tasklore.runtime.servers.endpoints import find_endpoints
from tasklore.runtime.task_caller import TaskCaller, first_letter
from tasklore.supervisor.reports.reports import ReportWaiter

#: How long a task may take, its time in the queue included, unless the call says otherwise.
WITHIN = timedelta(seconds=30)
#: Seconds past that in which its report is waited for: a worker reports a task that it gives up at its deadline.
_REPORT_S = 1.0


class Asker:
    """Sends tasks under one supervisor id and returns their reports, and speaks to agents; made by `asking`."""

    def __init__(
        self,
        *,
        supervisor_id: str,
        link: Link,
        outbox: Outbox,
        reports: ReportWaiter,
    ) -> None:
        self._supervisor_id = supervisor_id
        self._link = link
        self._outbox = outbox
        self._caller = TaskCaller(send=self._store, reports=reports)

    async def has_worker(self, agent_id: str) -> bool:
        """Return whether a worker of *agent_id* is alive, as `tasklore agents list` has it; a dead one counts for 15 s.

        Without one a task waits in its queue until its time is over: look here before you ask for many.

        Raises:
            Forbidden: this user may ask, and may not see who works.
            Unreachable: NATS did not answer, or no system was ever started on it.
        """
        try:
            alive = await read_bucket(self._link, subjects.WORKERS_BUCKET)
        except Unreachable as error:
            if isinstance(error.__cause__, Forbidden):
                raise error.__cause__ from error
            raise
        return any(key.partition(".")[0] == agent_id for key in alive)

    async def ask(
        self,
        agent_id: str,
        task_name: str,
        parameters: Mapping[str, Any],
        *,
        task_id: str | None = None,
        within: timedelta = WITHIN,
        max_attempts: int = 5,
        memory: MemoryMode = "use",
        user_id: str | None = None,
        tenant: str | None = None,
        conversation_id: str | None = None,
    ) -> CompletionReport:
        """Return the report of one task, whatever its `status`.

        The same *task_id* again is the same task: it runs once, and its one report is returned.

        Raises:
            TaskExpired: there is no report within *within*: no worker runs the agent, or it is too slow.
            NotAccepted: it is not known to be stored; ask again with the same task id.
            MessageTooLarge: the parameters do not fit into a message.
        """
        now = datetime.now(UTC)
        assignment = TaskAssignment(
            task_id=task_id or new_id(int(now.timestamp() * 1000)),
            agent_id=agent_id,
            supervisor_id=self._supervisor_id,
            task=TaskCall(name=task_name, parameters=dict(parameters)),
            created_at=now,
            deadline=now + within,
            has_own_deadline=False,
            max_attempts=max_attempts,
            memory=memory,
            user_id=user_id,
            tenant=tenant,
            conversation_id=conversation_id,
        )
        found = await self._caller.call(
            assignment,
            within_s=within.total_seconds() + _REPORT_S,
            is_new=task_id is None,
            is_stored_again=True,
        )
        if found is None:
            msg = f"{agent_id} did not report {task_name!r} within {within.total_seconds():g} s; is a worker of it up?"
            raise TaskExpired(msg)
        return found

    async def _store(self, assignment: TaskAssignment) -> None:
        """Publish *assignment*; return when it is durably stored. The same again changes nothing."""
        letter = first_letter(assignment)
        await self._outbox.put(
            letter.subject, letter.body, letter.message_id, headers=letter.headers
        )

    async def tell(
        self,
        conversation_id: str,
        sender: str,
        message: str,
        *,
        time: float,
        message_id: str | None = None,
        user_id: str | None = None,
    ) -> str:
        """Say *message* as *sender* to the agent of *conversation_id*, at *time* of its world; return the message id.

        It is stored when this returns, and new to the agent's next task once a supervisor has delivered it. The same
        *message_id* again is the same message. *user_id* is the person who says it, if it is one.

        Raises:
            InvalidInput: it cannot be said; names every field that is wrong.
            NotAccepted: it is not known to be stored; say it again with the same message id.
        """
        said = agent_message(
            message_id=message_id or new_id(int(datetime.now(UTC).timestamp() * 1000)),
            conversation_id=conversation_id,
            sender=sender,
            message=message,
            time=time,
            user_id=user_id,
        )
        await self._outbox.put(
            subjects.messages(said.conversation_id, said.sender),
            said.model_dump_json(exclude_none=True).encode(),
            subjects.agent_message_id(
                said.conversation_id, said.sender, said.message_id
            ),
        )
        return said.message_id


@asynccontextmanager
async def asking(
    supervisor_id: str,
    *,
    nats_url: str | None = None,
    redis_url: str | None = None,  # noqa: ARG001 - programs of 0.2 name it
) -> AsyncIterator[Asker]:
    """Open an `Asker`, and close it; the address is that of the environment, or of `tasklore up`, by default.

    Two programs of one *supervisor_id* hear each other's reports, and take only their own. *redis_url* is of no use
    any more: a program needs NATS alone.

    Raises:
        ConfigurationError: nothing says where NATS is.
        Unreachable: it does not answer.
    """
    checked_name(supervisor_id, "supervisor_id")
    if nats_url is None:
        nats_url = find_endpoints(os.environ).nats
    async with AsyncExitStack() as stack:
        name = f"tasklore-asking-{supervisor_id}"
        client = await stack.enter_async_context(connected(nats_url, name))
        link = Link(client)
        outbox = await stack.enter_async_context(open_outbox(link))
        reports = ReportWaiter(client, None)
        await link.listen(subjects.reports_to(supervisor_id), reports.hear_hint)
        yield Asker(
            supervisor_id=supervisor_id, link=link, outbox=outbox, reports=reports
        )
