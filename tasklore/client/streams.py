"""Streams of the server: how an event is read from its lines, and what a cut one does."""

import json
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from tasklore.client.calls import (
    LATER,
    PAUSE_S,
    TRIES,
    Answer,
    Events,
    JsonLines,
    error_of,
    unread,
)

T = TypeVar("T")

#: Characters of one event; a longer one is none of ours.
_LONGEST = 16 * 1024 * 1024
_ANY_JSON: TypeAdapter[Any] = TypeAdapter(Any)


class StreamReader(Generic[T]):
    """Reads the lines of one stream, over all connections that it takes.

    A stream of events is over when the server says that there is nothing more (204), or refuses for good; when it is
    cut, refused for now, or the server ends it, it is taken up again behind the last event. JSON lines are over when
    they end.
    """

    def __init__(self, stream: Events[T] | JsonLines[T]) -> None:
        self.call = stream.call
        self._is_of_events = isinstance(stream, Events)
        self._adapter: TypeAdapter[T] = TypeAdapter(stream.shape)
        self._last_id = ""
        self._cuts = 0
        # Of the connection: whether there is nothing more, what was refused for now, and whether an event came.
        self._is_over = False
        self._refusal: Answer | None = None
        self._has_event = False
        self._fields: dict[str, str] = {}
        # Of the line that has not ended.
        self._pieces: list[str] = []

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the next connection."""
        place = {"Last-Event-ID": self._last_id} if self._last_id else {}
        return self.call.spell_headers() | place

    def begin(
        self, status: int, body: str = "", *, retry_after_s: float | None = None
    ) -> bool:
        """Return whether lines come, by the *status* of a connection; where none do, `pause_after_end` says what next.

        Raises:
            ApiError: the server refused for good; *body* says why.
        """
        self._fields = {}
        self._pieces = []
        self._has_event = False
        self._refusal = None
        if 200 <= status < 300:
            self._is_over = status == 204
            return not self._is_over
        try:
            problem = json.loads(body)
        except ValueError:
            problem = {"detail": body[:500]}
        answer = Answer(status, problem, retry_after_s)
        if not self._is_of_events or status not in LATER:
            raise error_of(answer)
        self._refusal = answer
        return False

    def read(self, text: str) -> Iterator[T]:
        """Yield what the next *text* of the connection ends, wherever it was cut.

        Lines end with a line feed, behind a carriage return or not: what `str.splitlines` takes for an end beside
        these is a character of JSON.

        Raises:
            UnknownAnswer: a line or an event is something else.
        """
        *ended, left = text.split("\n")
        for line in ended:
            whole = "".join([*self._pieces, line]).removesuffix("\r")
            self._pieces = []
            if (found := self.take(whole)) is not None:
                yield found
        if left:
            self._pieces.append(left)

    def read_rest(self) -> Iterator[T]:
        """Yield what is left once the connection is over: a last line may lack its end, an event may not.

        Raises:
            UnknownAnswer: it is something else.
        """
        if self._pieces:
            yield from self.read("\n")

    def take(self, line: str) -> T | None:
        """Return what *line* ends, None while that is nothing.

        Raises:
            UnknownAnswer: it is something else.
        """
        try:
            return self._take(line)
        except ValidationError as error:
            raise unread(error) from error

    def _take(self, line: str) -> T | None:
        if not self._is_of_events:
            return self._adapter.validate_json(line) if line.strip() else None
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data" and name in self._fields:
                value = f"{self._fields[name]}\n{value}"
            if len(value) > _LONGEST:
                raise error_of(Answer(0, {"detail": "an event is too long to be read"}))
            self._fields[name] = value
            return None
        fields = self._fields
        self._fields = {}
        if "event" not in fields:
            return None
        self._cuts = 0
        self._has_event = True
        self._last_id = fields.get("id", self._last_id)
        event: dict[str, Any] = {
            "event": fields["event"],
            "data": _ANY_JSON.validate_json(fields.get("data") or "null"),
            "id": fields.get("id", ""),
        }
        return self._adapter.validate_python(event)

    def pause_after_end(self) -> float | None:
        """Return the seconds after which to take it up again, now that its lines have ended; None: it is over.

        Raises:
            ApiError: the server refused it for now, over so many connections.
            Unreachable: no event came over so many connections.
        """
        if self._is_over or not self._is_of_events:
            return None
        if self._has_event:
            return 0.0
        return self._pause(
            self._refusal or Answer(0, {"detail": "the stream ended without an event"})
        )

    def pause_after_cut(self, reason: str) -> float:
        """Return the seconds after which to take it up again, now that it was cut for *reason*.

        Raises:
            Unreachable: nothing came over so many connections, or it cannot be taken up again.
        """
        cut = Answer(0, {"detail": reason})
        if not self._is_of_events:
            raise error_of(cut)
        return self._pause(cut)

    def _pause(self, answer: Answer) -> float:
        self._cuts += 1
        if self._cuts >= TRIES:
            raise error_of(answer)
        if answer.retry_after_s is not None:
            return answer.retry_after_s
        return float(PAUSE_S * 2**self._cuts)
