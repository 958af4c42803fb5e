"""The feed of the one task that a request becomes, for a client that cannot take back the words that it has."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import structlog

from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.messages import PersonReply, TaskAssignment
from tasklore.contracts.shown_text import ShownText
from tasklore.supervisor.feed.events import (
    BeganWaiting,
    Gap,
    PersonQuestion,
    Restarted,
    TaskEvent,
    TextEmission,
    ValueEmission,
)
from tasklore.supervisor.feed.tasks import Feeds, TaskFeed

log = structlog.get_logger(__name__)


class Delta(NamedTuple):
    """Words for the client, and *about*: the event that they stand for, for programs."""

    words: str
    about: dict[str, Any] | None = None


class LiveText:
    """Follows one task; of several tasks of one request none."""

    def __init__(self, feeds: Feeds) -> None:
        self._feeds = feeds
        self._stack = AsyncExitStack()
        self._feed: TaskFeed | None = None
        self._routed = asyncio.Event()
        self._task_id: str | None = None
        self._shown = ShownText()

    async def close(self) -> None:
        """Follow nothing any more."""
        await self._stack.aclose()

    def note(self, assignment: TaskAssignment) -> None:
        """Follow *assignment* from now on."""
        if assignment.parent_id is None:
            self._task_id = assignment.task_id
            self._routed.set()

    async def wait(self, within_s: float) -> None:
        """Return when there may be something to take, after *within_s* seconds at the latest."""
        if self._feed is not None:
            await self._feed.wait(within_s)
        else:
            await self._routed.wait()

    async def take(self) -> list[Delta]:
        """Return what the task has emitted since the last call."""
        self._routed.clear()
        if self._feed is None:
            if self._task_id is None:
                return []
            self._feed = await self._stack.enter_async_context(
                self._feeds.open(self._task_id)
            )
        return [self._to_delta(event) for event in await self._feed.take()]

    async def take_rest(self, reply: PersonReply) -> list[Delta]:
        """Return the rest of the output, and the words of *reply* that it does not have."""
        found: list[Delta] = []
        if self._feed is not None and reply.report is not None:
            try:
                async for events in self._feed.take_rest(reply.report, tries=1):
                    found += map(self._to_delta, events)
            except TaskloreError as error:
                log.info("output_not_read", error=str(error))
        rest = self._shown.finish(reply.text)
        return [*found, Delta(rest)] if rest else found

    def _to_delta(self, event: TaskEvent) -> Delta:
        if isinstance(event, TextEmission):
            return Delta(self._shown.add(event.text))
        if isinstance(event, ValueEmission):
            return Delta("", {"event": "value", **event.value.model_dump(mode="json")})
        if isinstance(event, Restarted):
            about = {"attempt": event.at.output.attempt, "waited": event.has_waited}
            words = self._shown.restart(has_waited=event.has_waited)
            return Delta(words, {"event": "restarted", **about})
        if isinstance(event, Gap):
            return Delta(self._shown.skip(), {"event": "gap"})
        return Delta("", _describe_sign(event))


def _describe_sign(event: TaskEvent) -> dict[str, Any]:
    """Return what a task waits for, or asks, for programs."""
    if isinstance(event, BeganWaiting):
        return {"event": "waiting", **event.describe()}
    if isinstance(event, PersonQuestion):
        question = event.question
        return {"event": "question", "id": question.id, "question": question.question}
    return {"event": type(event).__name__.lower()}
