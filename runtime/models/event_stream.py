"""Reads server-sent events of a streamed completion, and what other servers send in place of them."""

from tasklore.contracts.errors import LlmUnavailable
from tasklore.runtime.models.answer_reader import is_whole, words_of

#: What the last event of a stream says.
DONE = "[DONE]"


class EventDecoder:
    """Gives the data of events whose bytes come in pieces.

    Comments and names of events are passed over. A line that is JSON without the word `data:` is an event, and so is
    each of several such lines without a blank one between them.
    """

    def __init__(self) -> None:
        #: Pieces of the line that has not ended, and lines of the event that has not.
        self._line: list[bytes] = []
        self._data: list[str] = []
        #: The first line that is no part of an event, "" without one.
        self.stray = ""

    def feed(self, piece: bytes) -> list[str]:
        """Return the data of the events that *piece* completes.

        Raises:
            LlmUnavailable: an event ends in the middle of its data.
        """
        self._line.append(piece)
        if b"\n" not in piece:
            return []
        *lines, rest = b"".join(self._line).split(b"\n")
        self._line = [rest]
        return [data for line in lines for data in self._take(line)]

    def end(self) -> list[str]:
        """Return the data of an event that nothing follows; raises as `feed`."""
        rest = b"".join(self._line)
        self._line = []
        return [*self._take(rest), *self._take(b"")]

    def _take(self, line: bytes) -> list[str]:
        text = line.decode("utf-8", "replace").strip("\ufeff\r")
        if not text.strip():
            return self._end_event()
        if text.startswith("data:"):
            self._data.append(text.removeprefix("data:").strip())
        elif text.startswith("{") and not self._data:
            self._data.append(text.strip())
        else:
            if not text.startswith((":", "event:", "id:", "retry:")):
                self.stray = self.stray or words_of(text)
            return []
        # Most events have one line, and some servers leave out the blank one behind it.
        if len(self._data) == 1 and _is_event(self._data[0]):
            return [self._data.pop()]
        return []

    def _end_event(self) -> list[str]:
        if not self._data:
            return []
        data = "".join(self._data)
        self._data.clear()
        if not _is_event(data):
            raise LlmUnavailable(
                f"an event of the stream is not valid JSON: {words_of(data)}"
            )
        return [data]


def _is_event(data: str) -> bool:
    return data == DONE or is_whole(data)
