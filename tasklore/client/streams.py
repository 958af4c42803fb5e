"""Streams of the server: how an event is read from its lines, and what a cut one does."""

import json
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from tasklore.client.calls import (
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

    A stream of events is over when the server says that there is nothing more (204), or refuses; when it is cut, or
    the server ends it, it is taken up again behind the last event. JSON lines are over when they end.
    """

    def __init__(self, stream: Events[T] | JsonLines[T]) -> None:
        self.call = stream.call
        self._is_of_events = isinstance(stream, Events)
        self._adapter: TypeAdapter[T] = TypeAdapter(stream.shape)
        self._last_id = ""
        self._cuts = 0
        self._fields: dict[str, str] = {}
        # Of the line that has not ended.
        self._pieces: list[str] = []

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the next connection."""
        place = {"Last-Event-ID": self._last_id} if self._last_id else {}
        return self.call.spell_headers() | place

    def begin(self, status: int, body: str = "") -> bool:
        """Return whether lines come, by the *status* of a connection.

        Raises:
            ApiError: the server refused; *body* says why.
        """
        self._fields = {}
        self._pieces = []
        if 200 <= status < 300:
            return status != 204
        try:
            problem = json.loads(body)
        except ValueError:
            problem = {"detail": body[:500]}
        raise error_of(Answer(status, problem))

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
        self._last_id = fields.get("id", self._last_id)
        event: dict[str, Any] = {
            "event": fields["event"],
            "data": _ANY_JSON.validate_json(fields.get("data") or "null"),
            "id": fields.get("id", ""),
        }
        return self._adapter.validate_python(event)

    def pause_after_end(self) -> float | None:
        """Return the seconds after which to take it up again, now that its lines have ended; None: it is over."""
        return 0.0 if self._is_of_events else None

    def pause_after_cut(self, reason: str) -> float:
        """Return the seconds after which to take it up again, now that it was cut for *reason*.

        Raises:
            Unreachable: nothing came over so many connections, or it cannot be taken up again.
        """
        self._cuts += 1
        if not self._is_of_events or self._cuts >= TRIES:
            raise error_of(Answer(0, {"detail": reason}))
        return float(PAUSE_S * 2**self._cuts)
