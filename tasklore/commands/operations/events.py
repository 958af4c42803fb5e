"""Server-sent events of the API, read from the pieces in which they come, over as many connections as it takes."""

import json
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any, NamedTuple

from tasklore.commands.operations.problems import ApiRefused
from tasklore.commands.operations.transport import AnswerCut, Request
from tasklore.contracts.errors import Unreachable

#: Seconds before a stream that broke off is taken up again.
_PAUSE_S = 0.5


class StreamedEvent(NamedTuple):
    """One event: its *id* leads to those behind it, and is "" where none does; *data* is its JSON, read."""

    id: str
    event: str
    data: Any


class EventReader:
    """Reads the events of one connection."""

    def __init__(self) -> None:
        self._left = b""
        self._fields: dict[str, str] = {}

    def read(self, piece: bytes) -> Iterator[StreamedEvent]:
        """Yield the events that *piece* ends, wherever it was cut."""
        *lines, self._left = (self._left + piece).split(b"\n")
        for line in lines:
            name, _, value = line.decode(errors="replace").rstrip("\r").partition(":")
            if name:
                self._fields[name] = value.removeprefix(" ")
            elif not line.strip() and "data" in self._fields:
                yield StreamedEvent(
                    id=self._fields.get("id", ""),
                    event=self._fields.get("event", ""),
                    data=json.loads(self._fields["data"]),
                )
            if not line.strip():
                self._fields = {}


class _Ended(Exception):
    """Its reader wants no more of a stream."""


def follow_events(
    pour: Callable[[Request, Callable[[bytes], object]], int],
    path: str,
    take: Callable[[StreamedEvent], bool],
) -> None:
    """Call *take* with each event at *path* until it returns True, or there will be no other.

    *pour* gives the pieces of an answer to a sink, and returns its status. A stream that breaks off is taken up again.

    Raises:
        ApiRefused: the API refuses it for good, as an unknown task.
        TaskloreError: it is no stream of events.
    """
    last = ""
    while True:
        reader = EventReader()

        def sink(piece: bytes, reader: EventReader = reader) -> None:
            nonlocal last
            for event in reader.read(piece):
                last = event.id or last
                if take(event):
                    raise _Ended

        headers = (("Last-Event-ID", last),) if last else ()
        try:
            if (
                pour(Request("GET", path, headers=headers), sink)
                == HTTPStatus.NO_CONTENT
            ):
                return
        except _Ended:
            return
        except (Unreachable, AnswerCut):
            pass
        except ApiRefused as error:
            if error.body.get("status") not in (429, 502, 503, 504):
                raise
        time.sleep(_PAUSE_S)
