"""Bodies that were parsed or written lately, so that a large document is not sent and parsed for every edit."""

from collections import OrderedDict
from collections.abc import Iterable

from tasklore.memory.documents.plans import Document

#: Bytes of JSON text that are kept parsed: some hundred users at work, a few times as much in memory.
MAX_BYTES = 8 * 1024 * 1024


class Bodies:
    """Documents by user token and resource id, those unused for longest dropped first.

    Whether one is still the stored one is asked of the server each time, by its revision and its life.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[tuple[str, str], Document] = OrderedDict()

    def get(self, token: str, resource_id: str) -> Document | None:
        """Return the document as it was last seen, None when it was not."""
        document = self._kept.get((token, resource_id))
        if document is not None:
            self._kept.move_to_end((token, resource_id))
        return document

    def put(self, token: str, document: Document) -> None:
        """Keep *document*, whose size is known."""
        self.drop(token, [document.resource_id])
        size = document.size or 0
        if size > self._max_bytes:
            return
        self._kept[token, document.resource_id] = document
        self._bytes += size
        while self._bytes > self._max_bytes:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= oldest.size or 0

    def drop(self, token: str, resources: Iterable[str]) -> None:
        """Forget *resources* of a user."""
        for resource_id in resources:
            former = self._kept.pop((token, resource_id), None)
            if former is not None:
                self._bytes -= former.size or 0
