"""What is seen of an analysis while its request is out: whether it moves, and whether what is waited for is there."""

import time
from collections.abc import Collection

from pydantic import JsonValue

from contracts.analysis.document import AnalysisDocument

#: Seconds without a change after which whoever took the request may be gone, and most until that is doubted again.
STILL_S, STILL_CAP_S = 3.0, 12.0
#: Seconds in which the reply comes once everything is there.
OVER_S = 0.5


class Sight:
    """The analysis as it is looked up; it was *before* when it was asked for.

    *sections* are those of the agents that take part, *waited* those of them that the request waits for.
    """

    def __init__(self, sections: Collection[str], waited: Collection[str], before: AnalysisDocument | None) -> None:
        self._sections = frozenset(sections)
        self._waited = frozenset(waited)
        self.document = before
        self.has_moved = False
        self._moved_at = time.monotonic()
        self._pause_s = STILL_S
        self._doubt_at = self._moved_at + STILL_S

    @property
    def since_asked(self) -> AnalysisDocument | None:
        """What there is; None while that is an earlier analysis as a whole, of which everything is found anew."""
        is_earlier = not self.has_moved and self._sections <= self._found().keys()
        return None if is_earlier else self.document

    @property
    def is_over(self) -> bool:
        """Whether everything that is waited for has come, and the reply should have for some time."""
        return self._has_come and time.monotonic() >= self._moved_at + STILL_S

    def see(self, document: AnalysisDocument | None) -> None:
        """Take note of *document*; None could not be looked up."""
        if document is None or _found_in(document) == self._found():
            return
        self.document, self.has_moved, self._moved_at, self._pause_s = document, True, time.monotonic(), STILL_S
        self._doubt_at = self._moved_at + (OVER_S if self._has_come else STILL_S)

    def doubts(self) -> bool:
        """Return whether it is time to ask once more: then it is not for a while.

        Who failed since would be asked again by that, so that nobody is when somebody did.
        """
        if time.monotonic() < self._doubt_at or (self.has_moved and self._has_failures):
            return False
        self._doubt_at = time.monotonic() + self._pause_s
        self._pause_s = min(STILL_CAP_S, 2 * self._pause_s)
        return True

    @property
    def _has_come(self) -> bool:
        return self.has_moved and self._waited <= self._found().keys()

    @property
    def _has_failures(self) -> bool:
        return any(
            isinstance(body, dict) and body.get("status") in ("failed", "late") for body in self._found().values()
        )

    def _found(self) -> dict[str, JsonValue]:
        return _found_in(self.document) if self.document is not None else {}


def _found_in(document: AnalysisDocument) -> dict[str, JsonValue]:
    return dict(document.sections())
