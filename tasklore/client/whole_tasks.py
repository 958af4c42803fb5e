"""What takes several calls: a question until its answer, and a task until its result."""

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import BaseModel

from tasklore.client.calls import PAUSE_S, Flow, Pause, encode, new_id
from tasklore.client.errors import NotDone, TaskFailed
from tasklore.client.models import PersonReply, Sent
from tasklore.client.nouns import RequestsFlows, TasksFlows

#: Seconds that one call waits at the server, and the longest pause between two looks.
_LONGEST_CALL_S = 30.0
_LONGEST_LOOK_S = 2.0
_ENDED = ("done", "cancelled")

Memory = Literal["use", "refresh", "bypass"]


class WholeTasks:
    """Questions and tasks from their beginning to their end; every method returns a flow."""

    def ask(
        self,
        text: str,
        *,
        user: str | None = None,
        conversation: str | None = None,
        memory: Memory | None = None,
        time_zone: str | None = None,
        within_s: float = 60.0,
        request_id: str | None = None,
    ) -> Flow[PersonReply]:
        """Return the reply to *text*; the same *request_id* again starts nothing twice.

        Raises:
            NotDone: there is none after *within_s* seconds.
        """
        ends = time.monotonic() + within_s
        key = request_id or new_id()
        requests = RequestsFlows()
        asked = yield from requests.ask(
            text=text,
            user=user,
            conversation=conversation,
            memory=memory,
            time_zone=time_zone,
            wait_seconds=min(within_s, _LONGEST_CALL_S),
            idempotency_key=key,
        )
        pause = PAUSE_S
        while asked.reply is None or asked.reply.kind == "pending":
            pause = yield from _wait(pause, ends, NotDone(key, within_s))
            asked = yield from requests.show(key)
        return asked.reply

    def run(
        self,
        agent_id: str,
        task: str,
        parameters: Mapping[str, Any] | BaseModel,
        *,
        user: str | None = None,
        conversation: str | None = None,
        memory: Memory | None = None,
        within_s: float = 60.0,
        task_key: str | None = None,
        at: datetime | None = None,
        after: timedelta | float | None = None,
        callback_url: str | None = None,
    ) -> Flow[Sent]:
        """Return a task when it has completed; with 0 *within_s*, once it is accepted.

        It begins *at* a time, which has a zone, or *after* a span or seconds, and at once when neither is given.
        *callback_url* hears of its end by a webhook. The same *task_key* again starts nothing twice.

        Raises:
            NotDone: it is not done after *within_s* seconds.
            TaskFailed: it ended otherwise than completed; with its error.
        """
        ends = time.monotonic() + within_s
        tasks = TasksFlows()
        sent = yield from tasks.send(
            agent_id=agent_id,
            task=task,
            parameters=encode(parameters),
            wait_seconds=min(within_s, _LONGEST_CALL_S),
            user=user,
            conversation=conversation,
            memory=memory,
            at=at,
            after=encode(after),
            callback_url=callback_url,
            idempotency_key=task_key,
        )
        pause = PAUSE_S
        while within_s and sent.state not in _ENDED:
            pause = yield from _wait(pause, ends, NotDone(sent.task_id, within_s))
            sent = yield from tasks.show(sent.task_id)
        if sent.state in _ENDED:
            _demand_completed(sent)
        return sent

    def call(
        self,
        task: str | Callable[..., Any],
        parameters: Mapping[str, Any] | BaseModel,
        *,
        user: str | None = None,
        memory: Memory | None = None,
        within_s: float = 60.0,
        task_key: str | None = None,
    ) -> Flow[Any]:
        """Return the result of *task*, a function with `@agent.task` on it, or its name as "Agent.task".

        The result of a function has the type that it returns.

        Raises:
            InvalidInput: *task* is neither.
            NotDone: it is not done after *within_s* seconds.
            TaskFailed: it ended otherwise than completed; with its error.
        """
        # Who passes a function has its agent's package; the client itself needs none of it.
        from tasklore.workers.context.children import find_callee

        callee = find_callee(task)
        sent = yield from WholeTasks().run(
            callee.agent_id,
            callee.task_name,
            parameters,
            user=user,
            memory=memory,
            within_s=within_s,
            task_key=task_key,
        )
        return callee.result.validate_python(sent.result)


def _demand_completed(sent: Sent) -> None:
    report = sent.report
    if report is not None and report.status == "completed":
        return
    error = None if report is None else report.error
    raise TaskFailed(
        sent.task_id,
        status=sent.state if report is None else report.status,
        kind="" if error is None else error.type,
        detail="" if error is None else error.message,
    )


def _wait(pause_s: float, ends: float, late: NotDone) -> Flow[float]:
    """Pause, and return the seconds of the next pause; raise *late* when it is past *ends*."""
    if time.monotonic() >= ends:
        raise late
    yield Pause(pause_s)
    return min(2 * pause_s, _LONGEST_LOOK_S)
