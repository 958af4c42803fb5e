"""The output of the one task that a request becomes, for a client that cannot take back the words that it has."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import structlog

from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.messages import PersonReply, TaskAssignment
from tasklore.runtime.messaging.output import (
    Gap,
    Item,
    OutputDesk,
    OutputReader,
    Restarted,
)

log = structlog.get_logger(__name__)

#: Words between the output of a run that broke off and that of the next one; in place of events that were lost.
_RESTARTED = "\n\n[broke off, and begins again]\n\n"
_LOST = "[...]"


class Delta(NamedTuple):
    """Words for the client, and *about*: the event that they stand for, for programs."""

    words: str
    about: dict[str, Any] | None = None


class LiveText:
    """Follows one task; of several tasks of one request none."""

    def __init__(self, output: OutputDesk) -> None:
        self._output = output
        self._stack = AsyncExitStack()
        self._reader: OutputReader | None = None
        self._routed = asyncio.Event()
        self._task_id: str | None = None
        self._shown = ""

    async def close(self) -> None:
        """Follow nothing any more."""
        await self._stack.aclose()

    def note(self, assignment: TaskAssignment) -> None:
        """Follow *assignment* from now on."""
        if assignment.parent_id is None:
            self.follow(assignment.task_id)

    def follow(self, task_id: str) -> None:
        """Follow the task *task_id*, which may not be there yet."""
        self._task_id = task_id
        self._routed.set()

    async def wait(self) -> None:
        """Return when there may be something to take."""
        await (self._reader.news if self._reader is not None else self._routed).wait()

    async def take(self) -> list[Delta]:
        """Return what the task has emitted since the last call."""
        self._routed.clear()
        try:
            if self._reader is None:
                if self._task_id is None:
                    return []
                self._reader = await self._stack.enter_async_context(
                    self._output.follow(self._task_id)
                )
            return [
                delta
                for item in await self._reader.read()
                for delta in self._deltas(item)
            ]
        except TaskloreError as error:
            self._give_up(error)
            return []

    async def take_rest(self, reply: PersonReply) -> list[Delta]:
        """Return the rest of the output, and the words of *reply* that it does not have."""
        found: list[Delta] = []
        if self._reader is not None and reply.report is not None:
            try:
                async for items in self._reader.read_rest(reply.report.attempt):
                    found += [delta for item in items for delta in self._deltas(item)]
            except TaskloreError as error:
                self._give_up(error)
        shown = self._shown.strip()
        if not shown:
            return [*found, Delta(reply.text)]
        if reply.text.startswith(self._shown):
            return [*found, Delta(reply.text[len(self._shown) :])]
        before, middle, after = reply.text.partition(shown)
        if middle and not before.strip():
            return [*found, Delta(after)]
        return (
            found
            if middle or reply.text.strip() in shown
            else [*found, Delta(f"\n\n{reply.text}")]
        )

    def _give_up(self, error: TaskloreError) -> None:
        log.info("output_not_read", error=str(error))
        self._task_id = self._reader = None

    def _deltas(self, item: Item) -> list[Delta]:
        if isinstance(item, Restarted):
            words = _RESTARTED if self._shown else ""
            self._shown = ""
            return [Delta(words, {"event": "restarted", "attempt": item.at.attempt})]
        if isinstance(item, Gap):
            return [Delta(_LOST, {"event": "gap"})]
        found = []
        for event in item.events:
            if isinstance(event, str):
                self._shown += event
                found.append(Delta(event))
            else:
                found.append(
                    Delta("", {"event": "value", **event.model_dump(mode="json")})
                )
        return found
