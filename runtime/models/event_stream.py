"""Reads server-sent events of a streamed completion, and what other servers send in place of them."""

from tasklore.contracts.errors import LlmUnavailable
from tasklore.runtime.models.answer_reader import is_whole, words_of

#: What the last event of a stream says.
DONE = "[DONE]"


class EventReader:
    """Gives the data of events whose bytes come in pieces.

    Comments and names of events are passed over. A line that is JSON without the word `data:` is an event, and so is
    each of several such lines without a blank one between them.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data = ""
        #: The first line that is no part of an event, "" without one.
        self.stray = ""

    def feed(self, piece: bytes) -> list[str]:
        """Return the data of the events that *piece* completes.

        Raises:
            LlmUnavailable: an event ends in the middle of its data.
        """
        *lines, self._rest = (self._rest + piece).replace(b"\r\n", b"\n").split(b"\n")
        return [data for line in lines for data in self._take(line)]

    def end(self) -> list[str]:
        """Return the data of an event that nothing follows; raises as `feed`."""
        rest = self._rest
        self._rest = b""
        return [*self._take(rest), *self._take(b"")]

    def _take(self, line: bytes) -> list[str]:
        text = line.decode("utf-8", "replace").strip("\ufeff\r")
        if not text.strip():
            if self._data:
                raise LlmUnavailable(
                    f"an event of the stream is no JSON: {words_of(self._data)}"
                )
            return []
        if text.startswith("data:"):
            self._data += text.removeprefix("data:").strip()
        elif text.startswith("{") and not self._data:
            self._data = text.strip()
        elif not text.startswith((":", "event:", "id:", "retry:")):
            self.stray = self.stray or words_of(text)
        if not self._data:
            return []
        if self._data != DONE and not is_whole(self._data):
            return []
        data = self._data
        self._data = ""
        return [data]
