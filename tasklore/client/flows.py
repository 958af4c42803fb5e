"""The requests of each operation, without sending them: generators that a client drives, awaiting or not.

A flow yields a `Call` and is sent its `Answer`, or a `Pause` and is sent nothing, and returns its result. A call may be
repeated: what changes something carries an id, and is done once.
"""

import time
import uuid
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from tasklore.client.errors import ApiError, NotDone, Unreachable
from tasklore.client.results import (
    Asked,
    Begun,
    Reply,
    Result,
    Schedule,
    Schedules,
    Task,
    TaskEntries,
    TaskEntry,
)

Shape = TypeVar("Shape", bound=Result)
T = TypeVar("T")

#: Times that a call is made, and seconds before the second; each further pause is twice as long.
_TRIES = 4
_PAUSE_S = 0.25
#: Seconds that one call waits at the server, and the longest pause between two looks.
_LONGEST_CALL_S = 30.0
_LONGEST_LOOK_S = 2.0
#: Statuses after which the same call may succeed.
_LATER = frozenset((0, 429, 502, 503, 504))


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request; *wait_s* is how long the server may take on purpose."""

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    key: str | None = None
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The response; status 0 when there was none, with the reason as `detail` of its body."""

    status: int
    body: Any = None
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Seconds in which nothing is asked."""

    seconds: float


Flow = Generator[Call | Pause, Any, T]


def fetch(call: Call, shape: type[Shape], tries: int = _TRIES) -> Flow[Shape]:
    """Return what *call* answers, as *shape*; it is made again while the server is away or busy, *tries* times at most.

    Raises:
        ApiError: the server refused.
        Unreachable: it did not answer.
    """
    answer = Answer(0)
    for attempt in range(tries):
        answer = yield call
        if answer.status not in _LATER or attempt + 1 == tries:
            break
        yield Pause(answer.retry_after_s or _PAUSE_S * 2**attempt)
    if 200 <= answer.status < 300:
        return shape.model_validate(answer.body)
    problem = answer.body if isinstance(answer.body, dict) else {}
    if answer.status == 0:
        raise Unreachable(str(problem.get("detail", "the server did not answer")))
    detail = str(
        problem.get("detail") or problem.get("title") or f"status {answer.status}"
    )
    problems = [
        f"{one['where']}: {one['message']}" for one in problem.get("problems", ())
    ]
    raise ApiError(
        answer.status, str(problem.get("type", "")).rpartition(":")[2], detail, problems
    )


class SystemFlows:
    """The operations on a running system; every method returns a flow."""

    def ask(
        self,
        text: str,
        *,
        user: str | None = None,
        conversation: str | None = None,
        memory: str | None = None,
        time_zone: str | None = None,
        within_s: float = 60.0,
        request_id: str | None = None,
    ) -> Flow[Reply]:
        """Return the reply to *text*; the same *request_id* again starts nothing twice.

        Raises:
            NotDone: there is none after *within_s* seconds.
        """
        ends = time.monotonic() + within_s
        key = request_id or new_id()
        waits = min(within_s, _LONGEST_CALL_S)
        body = {
            "text": text,
            "wait_seconds": waits,
            **_without_none(
                user=user, conversation=conversation, memory=memory, time_zone=time_zone
            ),
        }
        asked = yield from fetch(
            Call("POST", "/v1/requests", body=body, key=key, wait_s=waits), Asked
        )
        pause = _PAUSE_S
        while asked.reply is None or asked.reply.kind == "pending":
            pause = yield from _wait(pause, ends, NotDone(key, within_s))
            asked = yield from fetch(Call("GET", f"/v1/requests/{key}"), Asked)
        return asked.reply

    def run(
        self,
        agent_id: str,
        task: str,
        parameters: Mapping[str, Any],
        *,
        user: str | None = None,
        conversation: str | None = None,
        memory: str | None = None,
        within_s: float = 60.0,
        task_key: str | None = None,
        at: datetime | None = None,
        after_s: float | None = None,
        callback_url: str | None = None,
    ) -> Flow[Task]:
        """Return a task when it is done, whatever its report says; with 0 *within_s*, once it is accepted.

        It begins *at* a time, which has a zone, or *after_s* seconds, and at once when neither is given.
        *callback_url* hears of its end by a webhook.

        Raises:
            NotDone: it is not done after *within_s* seconds.
        """
        ends = time.monotonic() + within_s
        waits = min(within_s, _LONGEST_CALL_S)
        body = {
            "agent_id": agent_id,
            "task": task,
            "parameters": dict(parameters),
            "wait_seconds": waits,
            **_without_none(
                user=user,
                conversation=conversation,
                memory=memory,
                at=None if at is None else at.isoformat(),
                callback_url=callback_url,
            ),
        }
        if after_s is not None:
            body["after"] = after_s
        sent = yield from fetch(
            Call(
                "POST", "/v1/tasks", body=body, key=task_key or new_id(), wait_s=waits
            ),
            Task,
        )
        pause = _PAUSE_S
        while within_s and sent.state not in ("done", "cancelled"):
            pause = yield from _wait(pause, ends, NotDone(sent.task_id, within_s))
            sent = yield from fetch(Call("GET", f"/v1/tasks/{sent.task_id}"), Task)
        return sent

    def add_schedule(
        self,
        agent_id: str,
        task: str,
        parameters: Mapping[str, Any],
        *,
        cron: str | None = None,
        every_s: int | None = None,
        at: datetime | None = None,
        time_zone: str = "UTC",
        missed: str = "once",
        user: str | None = None,
        schedule_id: str | None = None,
    ) -> Flow[Schedule]:
        """Return a new schedule of a task; the same *schedule_id* with the same content again changes nothing."""
        body = {
            "id": schedule_id or f"{task[:7]}-{new_id()}",
            "agent_id": agent_id,
            "task": task,
            "parameters": dict(parameters),
            "time_zone": time_zone,
            "missed": missed,
            **_without_none(
                cron=cron, at=None if at is None else at.isoformat(), user=user
            ),
            **({} if every_s is None else {"every": every_s}),
        }
        return (yield from fetch(Call("POST", "/v1/schedules", body=body), Schedule))

    def tasks(
        self,
        *,
        agent: str | None = None,
        state: str | None = None,
        tenant: str | None = None,
        user: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        parent: str | None = None,
        error: str | None = None,
        limit: int = 50,
    ) -> Flow[list[TaskEntry]]:
        """Return the last *limit* tasks to which all of that applies and that the key may see.

        *created_after*, which is included, and *created_before* have a zone.
        """
        asked = {
            "agent": agent,
            "state": state,
            "tenant": tenant,
            "user": user,
            "created_after": created_after and created_after.isoformat(),
            "created_before": created_before and created_before.isoformat(),
            "parent": parent,
            "error": error,
        }
        params: dict[str, Any] = {name: one for name, one in asked.items() if one}
        found: list[TaskEntry] = []
        after: str | None = ""
        # A page may come back short, or empty.
        while after is not None and len(found) < limit:
            place = {"after": after, "limit": min(200, limit - len(found))}
            page = yield from fetch(
                Call("GET", "/v1/tasks", params | place), TaskEntries
            )
            found += page.tasks
            after = page.after
        return found

    def schedules(self) -> Flow[list[Schedule]]:
        """Return every schedule that the key may see."""
        found: list[Schedule] = []
        after: str | None = ""
        while after is not None:
            page = yield from fetch(
                Call("GET", "/v1/schedules", {"after": after, "limit": 200}), Schedules
            )
            found += page.schedules
            after = page.after
        return found

    def schedule(self, schedule_id: str) -> Flow[Schedule]:
        """Return one schedule with its next times."""
        return (yield from fetch(Call("GET", f"/v1/schedules/{schedule_id}"), Schedule))

    def pause_schedule(
        self, schedule_id: str, *, paused: bool = True
    ) -> Flow[Schedule]:
        """Let no tick come, or let them come again, and return the schedule."""
        how = "pause" if paused else "resume"
        return (
            yield from fetch(
                Call("POST", f"/v1/schedules/{schedule_id}/{how}"), Schedule
            )
        )

    def run_schedule(self, schedule_id: str) -> Flow[str]:
        """Run it once more, now, and return the id of the task or session; called once, as each call is a run."""
        return (
            yield from fetch(
                Call("POST", f"/v1/schedules/{schedule_id}/run"), Begun, tries=1
            )
        ).task_id

    def remove_schedule(self, schedule_id: str) -> Flow[None]:
        """Remove a schedule."""
        yield from fetch(Call("DELETE", f"/v1/schedules/{schedule_id}"), Schedule)


def _wait(pause_s: float, ends: float, late: NotDone) -> Flow[float]:
    """Pause, and return the seconds of the next pause; raise *late* when it is past *ends*."""
    if time.monotonic() >= ends:
        raise late
    yield Pause(pause_s)
    return min(2 * pause_s, _LONGEST_LOOK_S)


def new_id() -> str:
    """Return an id that no other call has."""
    return uuid.uuid4().hex


def _without_none(**options: str | None) -> dict[str, str]:
    return {name: value for name, value in options.items() if value is not None}
