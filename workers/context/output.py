"""The output of a running task: events are sent to the stream OUTPUT in batches, in order and within bounded memory.

One batch of a run is under way at a time, so that the stream has them in order; events that come meanwhile are the
next one. A slow server makes batches larger first, then `emit` wait, and then events are left out, which their numbers
show.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog
from pydantic_core import PydanticSerializationError, from_json, to_json

from tasklore.contracts import subjects
from tasklore.contracts.errors import NotAccepted
from tasklore.contracts.messages import EmittedValue

log = structlog.get_logger(__name__)

#: Seconds between two batches of a run; the first event after a pause goes out at once.
WINDOW_S = 0.05
#: Characters of one event, of which a longer text makes several; bytes of one value; bytes of a batch.
LONGEST_TEXT = 16_384
LARGEST_VALUE = 256 * 1024
BATCH_BYTES = 64 * 1024
#: Bytes of one run that wait to be sent or for the server's word.
MOST_WAITING = 512 * 1024
#: Seconds that `emit` waits for room, that a batch is tried, and that the report of a run is held up by its output.
ROOM_S = 5.0
PATIENCE_S = 30.0
FLUSH_S = 5.0


class PublishBatch(Protocol):
    """How a batch is published: the `send` of an outbox."""

    def __call__(
        self,
        subject: str,
        body: bytes,
        message_id: str,
        settled: Callable[[NotAccepted | None], None],
        /,
        *,
        patience_s: float | None = None,
        waits_when_full: bool = True,
    ) -> None:
        """Publish, and call *settled* once it is stored or given up."""


@dataclass(slots=True)
class _Batch:
    first: int
    events: list[str | EmittedValue] = field(default_factory=list)
    size: int = 0
    end: bool = False


class TaskOutputWriter:
    """Sends the output of one run of a task; *has_waited* and *before* as in `TaskOutput`."""

    def __init__(
        self,
        *,
        send: PublishBatch,
        supervisor_id: str,
        task_id: str,
        generation: int,
        attempt: int,
        has_waited: bool = False,
        before: int = 0,
    ) -> None:
        self._send = send
        self._subject = subjects.output(supervisor_id, task_id, generation, attempt)
        self._name = task_id, generation, attempt
        self._run = secrets.token_hex(4)
        self._loop = asyncio.get_running_loop()
        self._batches: deque[_Batch] = deque()
        self._under_way: _Batch | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._sent_at = 0.0
        self._before = before
        self._has_waited = has_waited
        self._next = before + 1
        self._size = 0
        self._is_closed = False
        self._is_lossy = False
        self._changed = asyncio.Event()

    @property
    def numbered(self) -> int:
        """The number of the last event, 0 before the first of the attempt."""
        return self._next - 1

    async def emit(self, event: Any, kind: str | None = None) -> None:
        """Send *event*, a text or a value in JSON; wait while the server is slow, but never fail."""
        if isinstance(event, str) and kind is None:
            # Half of a surrogate pair is no text.
            text = (
                event if event.isascii() else event.encode("utf-8", "replace").decode()
            )
            for at in range(0, len(text), LONGEST_TEXT):
                piece = text[at : at + LONGEST_TEXT]
                await self._add(
                    piece, len(piece) if piece.isascii() else len(piece.encode())
                )
            return
        try:
            body = to_json(event, fallback=str, inf_nan_mode="null")
            value = EmittedValue(kind=kind or "value", value=from_json(body))
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            log.warning("output_unreadable", task_id=self._name[0], error=str(error))
            self._next += 1
            return
        await self._add(value, len(body))

    async def _add(self, event: str | EmittedValue, size: int) -> None:
        if self._is_closed:
            return
        if self._size + size > MOST_WAITING and not self._is_lossy:
            await self._wait_for_room(size)
        if size > LARGEST_VALUE or self._size + size > MOST_WAITING:
            if not self._is_lossy:
                log.warning(
                    "output_left_out",
                    task_id=self._name[0],
                    number=self._next,
                    bytes=size,
                )
            self._is_lossy = self._is_lossy or size <= LARGEST_VALUE
            self._next += 1
            return
        last = self._batches[-1] if self._batches else None
        if (
            last is None
            or last.first + len(last.events) != self._next
            or last.size + size > BATCH_BYTES
        ):
            self._batches.append(last := _Batch(self._next))
        last.events.append(event)
        last.size += size
        self._size += size
        self._next += 1
        if self._under_way is None and self._timer is None:
            pause_s = self._sent_at + WINDOW_S - self._loop.time()
            if pause_s > 0:
                self._timer = self._loop.call_later(pause_s, self._send_next)
            else:
                self._send_next()
                # The connection writes at the end of this turn of the loop, which a busy task might not end for long.
                await asyncio.sleep(0)

    async def close(self) -> None:
        """Send the rest, and say that nothing follows; return once it is stored, or was waited for long enough."""
        if self._is_closed or self.numbered == self._before:
            self._is_closed = True
            return
        self._is_closed = True
        last = self._batches[-1] if self._batches else None
        if last is None or last.first + len(last.events) != self._next:
            self._batches.append(last := _Batch(self._next))
        last.end = True
        if self._timer is not None:
            self._timer.cancel()
        if self._under_way is None:
            self._send_next()
        try:
            async with asyncio.timeout(FLUSH_S):
                while self._under_way is not None:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            log.warning("output_not_flushed", task_id=self._name[0], bytes=self._size)

    async def _wait_for_room(self, size: int) -> None:
        try:
            async with asyncio.timeout(ROOM_S):
                while self._size + size > MOST_WAITING and self._size:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return

    def _send_next(self) -> None:
        self._timer = None
        if not self._batches:
            return
        batch = self._under_way = self._batches.popleft()
        self._sent_at = self._loop.time()
        # As `TaskOutput` is written, without its validation: there are thousands a second.
        body: dict[str, Any] = {
            "schema_version": 1,
            "run": self._run,
            "first": batch.first,
            "events": batch.events,
        }
        if self._has_waited:
            body["waited"] = True
        if self._before:
            body["before"] = self._before
        if batch.end:
            body["end"] = True
        self._send(
            self._subject,
            to_json(body),
            subjects.output_message_id(*self._name, self._run, batch.first),
            self._settle,
            patience_s=PATIENCE_S,
            waits_when_full=False,
        )

    def _settle(self, problem: NotAccepted | None) -> None:
        batch = self._under_way
        self._under_way = None
        if batch is not None:
            self._size -= batch.size
        if problem is None:
            self._is_lossy = False
        else:
            log.warning("output_not_stored", task_id=self._name[0], error=str(problem))
        if self._batches and self._is_closed:
            self._send_next()
        elif self._batches:
            pause_s = max(0.0, self._sent_at + WINDOW_S - self._loop.time())
            self._timer = self._loop.call_later(pause_s, self._send_next)
        self._changed.set()
