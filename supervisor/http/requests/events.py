"""The feed of a request as server-sent events: from its beginning, however late a client comes, and to its end.

Ids are stages, not counts: `1` accepted, `2` routed, `3` progress, partial, waiting and question, `4` done; behind a
question or a wait the marks of those follow that a client knows. A client that comes back with the id of the last
one it read, to any replica, gets those that follow, and of several tasks once more which have ended.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Literal, NamedTuple

import structlog
from pydantic import Field, RootModel

from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.messages import Progress, ReplyPart
from tasklore.supervisor.feed.events import (
    BecameTasks,
    BeganWaiting,
    Done,
    FeedEvent,
    PersonQuestion,
)
from tasklore.supervisor.feed.requests import RequestStanding, follow_request
from tasklore.supervisor.http.dependencies import ApiDependencies
from tasklore.supervisor.http.event_streams import (
    HEARTBEAT,
    ProgressEvent,
    QuestionEvent,
    StreamEvent,
    WaitingEvent,
    encode_sign,
)
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.requests.outcome import Lookup, RequestPlace, read_outcome

log = structlog.get_logger(__name__)

_ACCEPTED = 1
_ROUTED = 2
_PROGRESS = 3
_DONE = 4


class AcceptedEvent(StreamEvent):
    """The request is kept."""

    event: Literal["accepted"]
    data: Lookup


class RoutedEvent(StreamEvent):
    """It is known which tasks the request becomes."""

    event: Literal["routed"]
    data: Lookup


class PartialEvent(StreamEvent):
    """A part of the answer while others go on: of one of several tasks, or the last words of a running one."""

    event: Literal["partial"]
    data: ReplyPart | Progress


class RequestDoneEvent(StreamEvent):
    """The end, with the reply; nothing follows."""

    event: Literal["done"]
    data: Lookup


class RequestStreamEvent(
    RootModel[
        Annotated[
            AcceptedEvent
            | RoutedEvent
            | ProgressEvent
            | PartialEvent
            | WaitingEvent
            | QuestionEvent
            | RequestDoneEvent,
            Field(discriminator="event"),
        ]
    ]
):
    """One server-sent event of a request; `data` is shown as it is once its JSON is read."""


class RequestEventPlace(NamedTuple):
    """How far a client is: the last stage it knows, and the marks of questions and waits that it knows."""

    stage: int = 0
    known: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> "RequestEventPlace":
        """Return the place that *text* spells, which fits `REQUEST_EVENT_ID`; the beginning for None."""
        stage, *known = (text or "0").split(".")
        return cls(int(stage), tuple(known))

    @property
    def has_ended(self) -> bool:
        """Whether the client knows the end."""
        return self.stage >= _DONE


async def events_of(
    parts: ApiDependencies, place: RequestPlace, task_id: str, after: RequestEventPlace
) -> AsyncGenerator[bytes, None]:
    """Yield the events of the request at *place*, which becomes *task_id*, beyond the stage *after*."""
    encoder = _Encoder(parts, place, task_id, after)
    feed = follow_request(
        parts.feeds.demand_sources(),
        encoder.look,
        known=after.known,
        leaving=parts.life.draining,
        beat_s=parts.heartbeat_s,
    )
    try:
        async with aclosing(feed):
            async for events in feed:
                yield b"".join(map(encoder.encode, events)) or HEARTBEAT
    except (Refused, TaskloreError) as error:
        # It is no longer known, or the store does not answer: a client that comes back is told.
        log.info("request_not_followed", error=str(error))


class _Encoder:
    """Spells the feed of one request for one client, and looks at the request for it."""

    def __init__(
        self,
        parts: ApiDependencies,
        place: RequestPlace,
        task_id: str,
        after: RequestEventPlace,
    ) -> None:
        self._services = parts.for_requests
        self._place = place
        self._task_id = task_id
        self._reached = after.stage
        self._known = after.known
        self._asked: Lookup | None = None

    async def look(self) -> RequestStanding:
        """Return how the request stands; errors as of `read_outcome`."""
        # Taken first: a change from now on is seen in the next round.
        underway = self._services.work.find(self._place.key)
        changed = None if underway is None else underway.changed
        asked = self._asked = await read_outcome(self._services, self._place)
        ids = tuple(part.task_id for part in asked.parts)
        if asked.agent_id is not None and asked.task_id is not None:
            ids = (*ids, asked.task_id)
        return RequestStanding(
            whole_id=self._task_id,
            task_ids=ids,
            ended={
                part.task_id: part.reply.report
                for part in asked.parts
                if part.reply is not None
            },
            is_done=asked.state == "done",
            report=asked.reply.report if asked.reply is not None else None,
            changed=changed,
        )

    def encode(self, event: FeedEvent) -> bytes:
        """Return *event* with those before it that the client does not know; nothing for one that it knows."""
        assert self._asked is not None  # noqa: S101 - it was looked at before the first event
        asked = self._asked
        first = self._encode_stage(
            AcceptedEvent(id=str(_ACCEPTED), event="accepted", data=_accepted(asked))
        )
        if isinstance(event, BecameTasks):
            if not event.task_ids:
                return first
            routed = RoutedEvent(id=str(_ROUTED), event="routed", data=_routed(asked))
            return first + self._encode_stage(routed)
        if isinstance(event, Done):
            ended = (part for part in asked.parts if part.task_id == event.task_id)
            part = next(ended, None)
            if part is None or part.reply is None or asked.state == "done":
                done = RequestDoneEvent(id=str(_DONE), event="done", data=asked)
                return first + done.encode()
            return first + self._encode_partial(part.reply)
        if isinstance(event, Progress):
            if event.fraction is None:
                return first + self._encode_partial(event)
            progress = ProgressEvent(id=self._going_on, event="progress", data=event)
            return first + progress.encode()
        if isinstance(event, BeganWaiting | PersonQuestion):
            self._known = event.at.known
            return first + encode_sign(event, self._going_on)
        return first

    @property
    def _going_on(self) -> str:
        """The id of an event while the request goes on."""
        return ".".join((str(_PROGRESS), *self._known))

    def _encode_partial(self, said: ReplyPart | Progress) -> bytes:
        return PartialEvent(id=self._going_on, event="partial", data=said).encode()

    def _encode_stage(self, event: AcceptedEvent | RoutedEvent) -> bytes:
        stage = int(event.id)
        if stage <= self._reached:
            return b""
        self._reached = stage
        return event.encode()


def _accepted(asked: Lookup) -> Lookup:
    """Return *asked* as it was before it was known which tasks it becomes."""
    first = {"request_id": asked.request_id, "conversation_id": asked.conversation_id}
    return Lookup(**first, state="accepted")


def _routed(asked: Lookup) -> Lookup:
    going = tuple(part.model_copy(update={"reply": None}) for part in asked.parts)
    return asked.model_copy(update={"state": "running", "reply": None, "parts": going})
