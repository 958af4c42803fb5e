"""What each operation asks of the server, without asking it: generators that a client drives, awaiting or not.

A flow yields a `Call` and is sent its `Answer`, or a `Pause` and is sent nothing, and returns its result. A call may be
repeated: what changes something carries an id, and is done once.
"""

import time
import uuid
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tasklore.client.errors import ApiError, NotDone, Unreachable
from tasklore.client.results import Asked, Reply, Result, Task

Shape = TypeVar("Shape", bound=Result)
T = TypeVar("T")

#: Times that a call is made, and seconds before the second; each further pause is twice as long.
_TRIES, _PAUSE_S = 4, 0.25
#: Seconds that one call waits at the server, and the longest pause between two looks.
_LONGEST_CALL_S, _LONGEST_LOOK_S = 30.0, 2.0
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
    """What came back; status 0 when nothing did, with the reason as `detail` of its body."""

    status: int
    body: Any = None
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Seconds in which nothing is asked."""

    seconds: float


Flow = Generator[Call | Pause, Any, T]


def fetch(call: Call, shape: type[Shape]) -> Flow[Shape]:
    """Return what *call* answers, as *shape*; it is made again while the server is away or busy.

    Raises:
        ApiError: the server refused.
        Unreachable: it did not answer.
    """
    answer = Answer(0)
    for attempt in range(_TRIES):
        answer = yield call
        if answer.status not in _LATER or attempt + 1 == _TRIES:
            break
        yield Pause(answer.retry_after_s or _PAUSE_S * 2**attempt)
    if 200 <= answer.status < 300:
        return shape.model_validate(answer.body)
    told = answer.body if isinstance(answer.body, dict) else {}
    if answer.status == 0:
        raise Unreachable(str(told.get("detail", "the server did not answer")))
    detail = str(told.get("detail") or told.get("title") or f"status {answer.status}")
    problems = [f"{one['where']}: {one['message']}" for one in told.get("problems", ())]
    raise ApiError(answer.status, str(told.get("type", "")).rpartition(":")[2], detail, problems)


def ask(text: str, within_s: float, request_id: str | None, **options: Any) -> Flow[Reply]:
    """Return the reply to *text*.

    Raises:
        NotDone: there is none after *within_s* seconds.
    """
    ends, key = time.monotonic() + within_s, request_id or new_id()
    waits = min(within_s, _LONGEST_CALL_S)
    body = {"text": text, "wait_seconds": waits, **_given(options)}
    asked = yield from fetch(Call("POST", "/v1/requests", body=body, key=key, wait_s=waits), Asked)
    pause = _PAUSE_S
    while asked.reply is None or asked.reply.kind == "pending":
        if time.monotonic() >= ends:
            raise NotDone(key, within_s)
        yield Pause(pause)
        pause = min(2 * pause, _LONGEST_LOOK_S)
        asked = yield from fetch(Call("GET", f"/v1/requests/{key}"), Asked)
    return asked.reply


def run(
    agent_id: str, task: str, parameters: Mapping[str, Any], within_s: float, task_key: str | None, **options: Any
) -> Flow[Task]:
    """Return a task as it stands when it is done, whatever its report says; with 0 *within_s*, once it is accepted.

    Raises:
        NotDone: it is not done after *within_s* seconds.
    """
    ends, waits = time.monotonic() + within_s, min(within_s, _LONGEST_CALL_S)
    body = {
        "agent_id": agent_id,
        "task": task,
        "parameters": dict(parameters),
        "wait_seconds": waits,
        **_given(options),
    }
    sent = yield from fetch(Call("POST", "/v1/tasks", body=body, key=task_key or new_id(), wait_s=waits), Task)
    pause = _PAUSE_S
    while within_s and sent.state not in ("done", "cancelled"):
        if time.monotonic() >= ends:
            raise NotDone(sent.task_id, within_s)
        yield Pause(pause)
        pause = min(2 * pause, _LONGEST_LOOK_S)
        sent = yield from fetch(Call("GET", f"/v1/tasks/{sent.task_id}"), Task)
    return sent


def new_id() -> str:
    """Return an id that no other call has."""
    return uuid.uuid4().hex


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is not None."""
    return {name: value for name, value in options.items() if value is not None}


def turns_body(turns: Sequence[Any]) -> dict[str, Any]:
    """Return *turns* as the body that hands them in."""
    return {"turns": [turn.model_dump(mode="json", exclude_none=True) for turn in turns]}
