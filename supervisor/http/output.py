"""The output of a running task as server-sent events, from any place on, at any supervisor.

The id of an event is `generation.attempt.sequence`: a client that comes back with the last one that it read gets what
follows. One that leaves stops nothing.
"""

import asyncio
import json
import math
from collections.abc import AsyncGenerator
from itertools import groupby
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Depends, Header
from pydantic import BaseModel
from starlette.responses import Response

from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.messages import CompletionReport
from tasklore.runtime.messaging.direct import NoSuchStream
from tasklore.runtime.messaging.output import (
    LOOK_S,
    Gap,
    Item,
    OutputReader,
    Position,
    Restarted,
)
from tasklore.supervisor.http.admission.keys import Caller, require_role
from tasklore.supervisor.http.admission.stream_tokens import StreamTokenField
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import Refused, answers
from tasklore.supervisor.http.requests.events import EventStream
from tasklore.supervisor.http.responses import EVENTS
from tasklore.supervisor.http.tasks import Sent, TaskId, read_task, to_sent

log = structlog.get_logger(__name__)

#: In place of a number in the id of the last event.
_END = "end"
#: Seconds until a stream that cannot be read is read again, and tries to read its rest before the client is cut off.
_PAUSE_S = 1.0
_TRIES = 5
#: Seconds between looks for the report, of which every supervisor hears at once.
_REPORT_LOOK_S = 15.0
#: Longest pause between two events of one client, shortest one that is made, and pause for a second of being late.
_PAUSE_CAP_S = 1.0
_SHORTEST_S = 0.05
_PAUSE_FOR_LATE = 20.0
#: Milliseconds after which a client that was cut off comes back.
_OPENING = b"retry: 500\n\n"
_HEARTBEAT = b": still here\n\n"

#: The ids of events: generation, attempt and number of an item, or the end of what was put out.
OUTPUT_ID = rf"[0-9]{{1,9}}\.[0-9]{{1,9}}\.([0-9]{{1,9}}|{_END})"
LastOutputId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        pattern=f"^{OUTPUT_ID}$",
        description="Events up to this are left out.",
    ),
]


class _Pace:
    """Makes events of many clients fewer and larger while this process is late with them."""

    def __init__(self) -> None:
        self._late_s = 0.0

    def note(self, late_s: float) -> None:
        """Take into account that an event was so late."""
        self._late_s += 0.02 * (late_s - self._late_s)

    async def pause(self) -> None:
        """Wait before the next event of a client."""
        pause_s = min(_PAUSE_CAP_S, _PAUSE_FOR_LATE * self._late_s)
        if pause_s >= _SHORTEST_S:
            loop = asyncio.get_running_loop()
            ends_at = loop.time() + pause_s
            await asyncio.sleep(pause_s)
            self.note(loop.time() - ends_at)


def routes(parts: ApiParts) -> APIRouter:
    """Return the route of the output of tasks."""
    router = APIRouter(prefix="/v1/tasks", tags=["tasks"])
    pace = _Pace()

    @router.get(
        "/{task_id}/output",
        summary="Follow what a task emits",
        response_class=Response,
        responses={
            200: {"description": "Server-sent events.", "content": EVENTS},
            204: {"description": "The last event was read: there will be no other."},
            **answers(404),
        },
    )
    async def follow(
        task_id: TaskId,
        caller: Annotated[Caller, Depends(require_role("ask"))],
        last_event_id: LastOutputId = None,
        _stream_token: StreamTokenField = None,
    ) -> Response:
        await read_task(parts, caller, task_id)
        generation, attempt, sequence = (last_event_id or "0.0.0").split(".")
        if sequence == _END:
            return Response(status_code=204)
        after = Position(int(generation), int(attempt), int(sequence))
        return EventStream.open(
            parts,
            caller,
            _events_of(parts, caller=caller, task_id=task_id, after=after, pace=pace),
        )

    return router


async def _events_of(
    parts: ApiParts, caller: Caller, task_id: str, after: Position, pace: _Pace
) -> AsyncGenerator[bytes, None]:
    """Yield the events of a task after position *after*, and at last its report; nothing more when the process ends."""
    yield _OPENING
    loop = asyncio.get_running_loop()
    async with parts.output.follow(task_id, after) as reader:
        reported = asyncio.ensure_future(
            parts.reports.report_on(
                parts.supervisor_id, task_id, math.inf, look_s=_REPORT_LOOK_S
            )
        )
        leaving = asyncio.ensure_future(parts.life.draining.wait())
        for sign in (reported, leaving):
            sign.add_done_callback(lambda _done: reader.news.set())
        beat_at = loop.time() + parts.heartbeat_s
        try:
            while not reported.done():
                if leaving.done():
                    return
                if items := await _read(reader):
                    yield encode_items(items)
                    await pace.pause()
                    continue
                pace.note(
                    await reader.wait(min(LOOK_S, max(0.0, beat_at - loop.time())))
                )
                if loop.time() < beat_at:
                    continue
                beat_at = loop.time() + parts.heartbeat_s
                yield _HEARTBEAT
                if (sent := await _read_cancelled(parts, caller, task_id)) is not None:
                    yield _event(
                        f"{reader.at.generation}.{reader.at.attempt}.{_END}",
                        "done",
                        sent,
                    )
                    return
            async for chunk in _last_events(reader, reported.result(), after):
                yield chunk
        finally:
            for sign in (reported, leaving):
                sign.cancel()
            await asyncio.gather(reported, leaving, return_exceptions=True)


async def _read(reader: OutputReader) -> list[Item]:
    """Return new items; none, after a pause, when the stream cannot be read."""
    try:
        return await reader.read()
    except TaskloreError as error:
        log.info("output_not_read", error=str(error))
        reader.look_soon()
        await asyncio.sleep(_PAUSE_S)
        return []


async def _last_events(
    reader: OutputReader, report: CompletionReport | None, after: Position
) -> AsyncGenerator[bytes, None]:
    """Yield the rest of the output, and *report*."""
    assert report is not None  # noqa: S101 - it was waited for without end
    for attempt in range(1, _TRIES + 1):
        try:
            async for items in reader.read_rest(report.attempt):
                yield encode_items(items)
            break
        except NoSuchStream:
            # Nothing of it will come back; the report has the result.
            yield encode_items([Gap(reader.at, reader.at.sequence + 1, is_end=True)])
            break
        except TaskloreError as error:
            log.info("output_not_read", error=str(error))
            if attempt == _TRIES:
                # It comes back with its id.
                return
            await asyncio.sleep(_PAUSE_S)
    place = f"/v1/tasks/{report.task_id}"
    if after.sequence and not reader.found_any:
        yield _event(
            str(after),
            "expired",
            {
                "detail": f"the output is no longer stored; the report follows, see {place}"
            },
        )
    last = f"{report.generation}.{report.attempt}.{_END}"
    yield _event(last, "done", to_sent(report))


async def _read_cancelled(parts: ApiParts, caller: Caller, task_id: str) -> Sent | None:
    """Return the state of a task that will not run and has no report; None of any other."""
    try:
        sent = await read_task(parts, caller, task_id)
    except (Refused, TaskloreError):
        return None
    return sent if sent.state == "cancelled" else None


def encode_items(items: list[Item]) -> bytes:
    """Return *items* as events; texts that follow on each other are one."""
    events = []
    for item in items:
        generation, attempt, last = item.at
        if isinstance(item, Restarted):
            events.append(
                _event(
                    str(item.at),
                    "restarted",
                    {"generation": generation, "attempt": attempt},
                )
            )
        elif isinstance(item, Gap):
            lost = {"first": item.first, "last": None if item.is_end else last}
            events.append(_event(str(item.at), "gap", lost))
        else:
            number = last - len(item.events)
            for is_text, group in groupby(
                item.events, lambda event: isinstance(event, str)
            ):
                found = list(group)
                if is_text:
                    number += len(found)
                    events.append(
                        _event(
                            f"{generation}.{attempt}.{number}",
                            "text",
                            {"text": "".join(map(str, found))},
                        )
                    )
                    continue
                for value in found:
                    number += 1
                    events.append(
                        _event(f"{generation}.{attempt}.{number}", "value", value)
                    )
    return b"".join(events)


def _event(name: str, kind: str, body: Any) -> bytes:
    data = (
        body.model_dump_json()
        if isinstance(body, BaseModel)
        else json.dumps(body, ensure_ascii=False)
    )
    return f"id: {name}\nevent: {kind}\ndata: {data}\n\n".encode()
